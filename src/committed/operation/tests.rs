//! Tests of check mode with kernels and executors that move the wrong values. To get these, a test
//! serves a datatype with the layout of another datatype.

use std::sync::Arc;

use super::{CommittedOperation, Inner};
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::error::{ErrorClass, Result};
use crate::exec::interp::external32;
use crate::kind::{Direction, Operation};

/// Pairs of types of the same size in external32, whose values differ in their places or their
/// sizes. Each pair is followed by a packed offset at which a value ends in both types, and by true
/// if both types map the same bytes. In the last two pairs, values overlap, so that a different
/// value is the last to be written.
const PAIRS: [(&str, &str, usize, bool); 7] = [
    ("hindexed([2, 3], [0, 16], int)", "hindexed([3, 2], [16, 0], int)", 8, true),
    ("contiguous(40, double)", "contiguous(80, int)", 16, true),
    (
        "contiguous(9, resized(0, 16, struct([1, 1], [0, 8], [int, double])))",
        "contiguous(9, resized(0, 16, struct([1, 2], [0, 8], [int, int])))",
        12,
        true,
    ),
    ("hindexed([2, 3], [0, 32], long)", "hindexed([3, 2], [32, 0], long)", 8, true),
    (
        "struct([2, 1, 2], [0, 32, 48], [int, long, short])",
        "struct([2, 1, 2], [0, 40, 48], [int, long, short])",
        8,
        false,
    ),
    ("hvector(50, 1, 3, double)", "hvector(50, 1, -3, hindexed([1], [147], double))", 16, true),
    ("hindexed([1, 1, 1], [0, 8, 8], long)", "hindexed([1, 1, 1], [8, 8, 0], long)", 4, true),
];
const ROOM: usize = 2048;
const ORIGIN: usize = 64;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap()
}

fn applied(engine: &Engine, t: &Datatype) -> CommittedOperation {
    engine.commit(t).unwrap().for_operation(Operation::External32).unwrap()
}

/// Returns a handle for `t` that moves the values of the datatype `layout`.
fn served_as(engine: &Engine, t: &Datatype, layout: &Datatype) -> CommittedOperation {
    let other = applied(engine, layout);
    let committed = engine.commit(t).unwrap();
    CommittedOperation(Arc::new(Inner { committed, layout: other.0.layout.clone(), origin: other.0.origin }))
}

/// Returns user bytes whose values all fit into external32, if longs begin at multiples of 8.
fn small(seed: usize) -> Vec<u8> {
    (0..ROOM).map(|i| if i % 8 < 3 { (i * 31 + i / 7 + seed) as u8 } else { 0 }).collect()
}

/// Moves the stream in pieces between neighbouring `cuts`. Returns true if the result is what the
/// definition of the datatype gives.
fn matches_definition(a: &CommittedOperation, direction: Direction, count: u64, cuts: &[usize]) -> bool {
    let t = a.committed().datatype();
    let (user, before) = (small(1), small(2));
    // When unpacking, any bytes in the stream are values that fit.
    let stream: Vec<u8> = (0..ROOM).map(|i| (i * 37 + i / 5) as u8).collect();
    let (mut found, mut wanted) = (before.clone(), before);
    for piece in cuts.windows(2) {
        let (at, end) = (piece[0], piece[1]);
        let moved = match direction {
            Direction::Pack => a.pack_range(&user, ORIGIN, count, at as u64, &mut found[at..end]),
            Direction::Unpack => a.unpack_range(&stream[at..end], ORIGIN, count, at as u64, &mut found),
        };
        assert_eq!(moved, Ok(end - at), "{direction} {at}..{end} of {t}");
    }
    match direction {
        Direction::Pack => {
            let (bytes, fit) = external32::pack(t, count, &user, ORIGIN);
            fit.unwrap();
            wanted[..bytes.len()].copy_from_slice(&bytes);
        }
        Direction::Unpack => external32::unpack(t, count, &stream, &mut wanted, ORIGIN).unwrap(),
    }
    found == wanted
}

#[test]
fn check_mode_finds_faults_of_whole_calls_and_of_ranges() {
    for mode in [Mode::Interpret, Mode::Lazy, Mode::Commit] {
        for (t, other, cut, same) in PAIRS.map(|(t, other, cut, same)| (parse(t), parse(other), cut, same)) {
            for (direction, count) in Direction::BOTH.into_iter().flat_map(|d| [(d, 1), (d, 2)]) {
                let engine =
                    |check| Engine::new(Config { mode, check, lazy_threshold: 1, ..Config::default() });
                let n = applied(&engine(false), &t).packed_size(count).unwrap() as usize;
                for cuts in [vec![0, n], vec![0, cut, n]] {
                    let what = format!("{mode} {direction} {count} of {t} at {cuts:?}");
                    let unchecked = served_as(&engine(false), &t, &other);
                    assert!(
                        !matches_definition(&unchecked, direction, count, &cuts),
                        "{what}: no fault to find"
                    );
                    let checking = engine(true);
                    let honest = applied(&checking, &t);
                    assert!(matches_definition(&honest, direction, count, &cuts), "{what}");
                    assert_eq!(checking.counters().mismatches, 0, "{what}");
                    let wrong = served_as(&checking, &t, &other);
                    // A wrong unpack also writes bytes that the type or the piece does not map.
                    // Check mode does not correct those.
                    let mended = matches_definition(&wrong, direction, count, &cuts);
                    let mends = direction == Direction::Pack || same && cuts.len() == 2;
                    assert!(mended || !mends, "{what}: not put right");
                    assert!(checking.counters().mismatches > 0, "{what}: not counted");
                }
            }
        }
    }
}

/// When entries overlap, an unpack leaves the bytes of the last entry, so the bytes of earlier
/// entries rightly differ from the stream.
#[test]
fn check_mode_leaves_overlap_alone() {
    let engine = Engine::new(Config { check: true, ..Config::default() });
    for text in ["hvector(4, 3, 8, int)", "resized(0, 4, contiguous(4, int))", "hvector(4, 3, 0, long)"] {
        let (t, mut user) = (parse(text), [0; 256]);
        let a = applied(&engine, &t);
        let stream: Vec<u8> = (1..=a.packed_size(3).unwrap() as u8).collect();
        a.unpack(&stream, 0, 3, &mut user).unwrap();
        assert_eq!(engine.counters().mismatches, 0, "{text}");
    }
}

/// Check mode also compares which value a call refuses. It reports a call that refuses the wrong
/// value, that refuses a value although all fit, or that refuses none although one does not fit.
#[test]
fn check_mode_judges_what_is_refused() {
    let engine = Engine::new(Config { check: true, ..Config::default() });
    let pack = |a: &CommittedOperation, large: &[usize]| -> (Result<usize>, [u8; 24]) {
        let (mut user, mut packed) = (small(3), [9; 24]);
        large.iter().for_each(|&at| user[ORIGIN + at + 7] = 1);
        (a.pack(&user, ORIGIN, 2, &mut packed), packed)
    };
    // Each instance has longs at 0, 8 and 32, and the second instance begins 40 bytes after the
    // first.
    let t = parse("hindexed([2, 1], [0, 32], long)");
    let honest = applied(&engine, &t);
    for (i, large) in [0, 8, 32, 40, 48, 72].into_iter().enumerate() {
        let refused = pack(&honest, &[large]).0.unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Conversion);
        assert!(refused.value().starts_with(&format!("{i} (")), "{large}: {refused}");
    }
    assert_eq!(pack(&honest, &[]).0, Ok(24));
    assert_eq!(engine.counters().mismatches, 0);
    let first = "hindexed([1, 2], [32, 0], long)";
    let dense = "resized(0, 40, contiguous(3, long))";
    for (other, large, packed) in
        [(first, &[32][..], 8), (dense, &[16], 24), (dense, &[32], 8), (dense, &[8], 4)]
    {
        let wrong = served_as(&engine, &t, &parse(other));
        let (before, (found, bytes)) = (engine.counters().mismatches, pack(&wrong, large));
        let (wanted, right) = pack(&honest, large);
        assert_eq!(found, wanted, "{other} {large:?}");
        assert_eq!(bytes[..packed], right[..packed], "{other} {large:?}");
        // Up to displacement 8, both types have the same places, so the value there is refused correctly.
        let differs = u64::from(large != [8]);
        assert_eq!(engine.counters().mismatches, before + differs, "{other} {large:?}");
    }
}
