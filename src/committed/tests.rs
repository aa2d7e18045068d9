//! Tests of check mode, and of the calls and properties of committed datatypes. To test check mode
//! with executors that move the wrong bytes, a test serves a datatype with the layout of another
//! datatype.

use super::{Committed, Run};
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::error::ErrorClass;
use crate::exec::interp;
use crate::kind::Direction;
use crate::layout::PlacedLayout;
use crate::segments::Segment;

/// Pairs of types with the same bytes in a different order. In the last two pairs, entries overlap,
/// so that a different entry is the last to be written.
const PAIRS: [(&str, &str); 4] = [
    ("hindexed([9, 5], [0, 16], char)", "hindexed([5, 9], [16, 0], char)"),
    ("hvector(100, 1, 24, int)", "hvector(100, 1, -24, resized(0, 4, hindexed([1], [2376], int)))"),
    ("hindexed([8, 8], [0, 4], char)", "hindexed([8, 8], [4, 0], char)"),
    ("hvector(50, 1, 3, double)", "hvector(50, 1, -3, hindexed([1], [147], double))"),
];
const ROOM: usize = 8192;

/// Returns a committed type for `t` that moves the bytes of the datatype `layout`.
fn served_as(engine: &Engine, t: &Datatype, layout: &Datatype) -> Committed {
    let other = engine.commit(layout).unwrap();
    let placed = PlacedLayout { layout: other.0.layout.clone(), origin: other.0.origin as i64 };
    Committed::new(engine.clone(), t.clone(), placed)
}

fn bytes(seed: usize) -> Vec<u8> {
    (0..ROOM).map(|i| (i * 31 + i / 7 + seed) as u8).collect()
}

/// Moves the stream in pieces between neighbouring `cuts`. Returns true if the result is what the
/// definition of the datatype gives.
fn matches_definition(c: &Committed, direction: Direction, count: u64, cuts: &[usize]) -> bool {
    let t = c.datatype();
    let (source, before) = (bytes(1), bytes(2));
    let (mut found, mut wanted) = (before.clone(), before);
    for piece in cuts.windows(2) {
        let (at, end) = (piece[0], piece[1]);
        let offset = at as u64;
        match direction {
            Direction::Pack => {
                c.pack_range(&source, 64, count, offset, &mut found[at..end]).unwrap();
                interp::pack_range(t, count, &source, 64, offset, &mut wanted[at..end]).unwrap();
            }
            Direction::Unpack => {
                c.unpack_range(&source[at..end], 64, count, offset, &mut found).unwrap();
                interp::unpack_range(t, count, &source[at..end], &mut wanted, 64, offset).unwrap();
            }
        }
    }
    found == wanted
}

/// Returns two ways to cut a stream of `n` bytes: into one piece, and into pieces of 7 bytes, which
/// end inside of entries.
fn cuts(n: usize) -> [Vec<usize>; 2] {
    [vec![0, n], (0..n).step_by(7).chain([n]).collect()]
}

fn for_each_fault(mode: Mode, check: bool, f: impl Fn(&Engine, [Datatype; 2], Direction, u64, &[usize])) {
    for (t, other) in
        PAIRS.map(|(t, other)| (t.parse::<Datatype>().unwrap(), other.parse::<Datatype>().unwrap()))
    {
        for direction in Direction::BOTH {
            for count in [1, 2] {
                for cuts in cuts(t.size() as usize * count as usize) {
                    let config = Config { mode, check, lazy_threshold: 1, ..Config::default() };
                    f(&Engine::new(config), [t.clone(), other.clone()], direction, count, &cuts);
                }
            }
        }
    }
}

#[test]
fn check_mode_finds_faults_of_whole_calls_and_of_ranges() {
    for mode in [Mode::Interpret, Mode::Lazy, Mode::Commit] {
        for_each_fault(mode, false, |engine, [t, other], direction, count, cuts| {
            let wrong = served_as(engine, &t, &other);
            assert!(
                !matches_definition(&wrong, direction, count, cuts),
                "{mode} {direction} {t}: no fault to find"
            );
        });
        for_each_fault(mode, true, |engine, [t, other], direction, count, cuts| {
            let honest = engine.commit(&t).unwrap();
            assert!(matches_definition(&honest, direction, count, cuts), "{mode} {direction} {count} of {t}");
            assert_eq!(engine.counters().mismatches, 0, "{mode} {direction} {count} of {t}");
            let wrong = served_as(engine, &t, &other);
            // A wrong unpack of a piece also writes bytes that the piece does not map. Check mode
            // does not correct those.
            let mended = matches_definition(&wrong, direction, count, cuts);
            let mends = direction == Direction::Pack || cuts.len() == 2;
            assert!(mended || !mends, "{mode} {direction} {count} of {t}: not put right");
            assert!(engine.counters().mismatches > 0, "{mode} {direction} {count} of {t}: not counted");
        });
    }
}

#[test]
fn mode_off_asks_the_definition_alone() {
    for_each_fault(Mode::Off, false, |engine, [t, other], direction, count, cuts| {
        let wrong = served_as(engine, &t, &other);
        assert!(matches_definition(&wrong, direction, count, cuts), "{direction} {count} of {t}");
    });
}

/// The interpreter may move columns of a matrix in another order only if no two elements overlap:
/// an element must overlap neither its neighbour nor the first element of the next row.
#[test]
fn columns_are_walked_as_they_are_defined() {
    for columns in [
        "hvector(8, 1, 8, hvector(9, 1, 64, double))",
        "hvector(8, 1, 4, hvector(9, 1, 64, double))",
        "hvector(9, 1, 8, hvector(9, 1, 64, double))",
        "hvector(8, 1, -8, hindexed([1], [56], hvector(9, 1, 64, double)))",
        "hvector(4, 1, 4, hvector(5, 1, -68, hindexed([1], [800], int)))",
    ] {
        let t: Datatype = columns.parse().unwrap();
        let interpreted =
            Engine::new(Config { mode: Mode::Interpret, ..Config::default() }).commit(&t).unwrap();
        for (direction, count) in Direction::BOTH.into_iter().flat_map(|d| [(d, 1), (d, 2)]) {
            for cuts in cuts(t.size() as usize * count as usize) {
                assert!(
                    matches_definition(&interpreted, direction, count, &cuts),
                    "{direction} {count} of {columns}"
                );
            }
        }
    }
}

/// When entries overlap, an unpack leaves the bytes of the last entry, so the bytes of earlier
/// entries rightly differ from the stream.
#[test]
fn check_mode_leaves_overlap_alone() {
    let engine = Engine::new(Config { check: true, ..Config::default() });
    for text in ["vector(4, 3, 2, char)", "resized(0, 1, contiguous(4, char))", "vector(4, 3, 0, char)"] {
        let t: Datatype = text.parse().unwrap();
        let c = engine.commit(&t).unwrap();
        let mut user = [0; 64];
        let stream: Vec<u8> = (1..=c.packed_size(3).unwrap() as u8).collect();
        c.unpack(&stream, 0, 3, &mut user).unwrap();
        assert_eq!(engine.counters().mismatches, 0, "{text}");
    }
}

/// Segments of a committed type include its origin, are refused if sizes or displacements overflow,
/// work for thousands of levels, and are kept with the layout and charged to the cache.
#[test]
fn segments() {
    let engine = Engine::new(Config { mode: Mode::Interpret, ..Config::default() });
    let committed = |text: &str| engine.commit(&crate::corpus::datatype(text).unwrap()).unwrap();
    let c = committed("hindexed([1, 2], [-100, 64], int)");
    let mut list = [Segment::default(); 4];
    let s = c.segments(2).unwrap();
    assert_eq!(s.fill(0, &mut list), Ok(3));
    // The extent is 172, from -100 to 72. The last entry of the first instance and the first entry
    // of the second are adjacent, so they form one segment.
    assert_eq!(list.map(|s| (s.at, s.len)), [(-100, 4), (64, 12), (236, 8), (0, 0)]);
    assert_eq!(s.based(1000).fill(1, &mut list), Ok(2));
    assert_eq!(list[0], Segment { at: 1064, len: 12 });

    let refused = |text: &str, count: u64| committed(text).segments(count).unwrap_err().class();
    assert_eq!(refused("vector(2, 1, 2, int)", 1 << 60), ErrorClass::Count);
    assert_eq!(refused("resized(0, 4611686018427387904, int)", 3), ErrorClass::ValueTooLarge);
    assert_eq!(refused("resized(0, -4611686018427387904, int)", 4), ErrorClass::ValueTooLarge);
    assert_eq!(committed("resized(0, -4611686018427387904, int)").segments(3).unwrap().len(), 3);
    assert_eq!(
        committed("resized(0, 4611686018427387904, contiguous(0, int))").segments(9).unwrap().len(),
        0
    );

    for text in ["@chain(20000)", "@deep(20000)", "@tangle(50)"] {
        let c = committed(text);
        let s = c.segments(2).unwrap();
        for at in [0, s.bytes() / 3, s.bytes() - 1] {
            let n = s.fill_from(at, &mut list).unwrap();
            let expected = interp::segments(c.datatype(), 2, at..s.bytes().min(at + 40)).unwrap();
            let listed: Vec<(i64, u64)> = list[..n].iter().map(|s| (s.at, s.len)).collect();
            assert_eq!(listed[..n - 1], expected[..n - 1], "{text} from {at}");
        }
    }

    // The table of segments is kept with the layout. An equal type shares the layout, so the table
    // is charged only once.
    let c = committed("hindexed_block(1, [0, 9, 40, 49, 90], vector(2, 1, 2, char))");
    let before = engine.counters().cached_bytes;
    let first = std::ptr::from_ref(c.segments(1).unwrap().runs());
    assert!(engine.counters().cached_bytes > before);
    let same = committed("hindexed_block(1, [0, 9, 40, 49, 90], vector(2, 1, 2, byte))");
    let before = engine.counters().cached_bytes;
    assert!(std::ptr::eq(first, same.segments(3).unwrap().runs()));
    assert_eq!(engine.counters().cached_bytes, before);
}

#[test]
fn what_serves_a_type_is_named() {
    for precompiled in [true, false] {
        let engine = Engine::new(Config {
            mode: Mode::Commit,
            precompiled,
            lazy_threshold: 0,
            both_directions: true,
            ..Config::default()
        });
        let strided = engine.commit(&"vector(1000, 1, 2, double)".parse().unwrap()).unwrap();
        for direction in Direction::BOTH {
            // There is a kernel with either configuration. With precompiled code, it is
            // precompiled; otherwise its code was emitted.
            let schedule = strided.schedule(direction);
            assert!(schedule.contains("strided<8>"), "{schedule}");
            assert_eq!(schedule.starts_with("precompiled "), precompiled, "{schedule}");
        }
    }
}

#[test]
fn runs_of_bytes_are_copied_where_nothing_else_is_asked() {
    let kind = |t: &str, config: Config| Engine::new(config).commit(&t.parse().unwrap()).unwrap().0.run;
    let run = |t: &str, config: Config| kind(t, config) == Run::Any;
    let plain = Config::default;
    // Instances that follow each other without gaps. The first begins at displacement 0 or at
    // another displacement.
    for t in ["double", "contiguous(60, double)", "resized(0, 8, hindexed([8], [16], char))"] {
        assert!(run(t, plain()), "{t}");
        for mode in [Mode::Off, Mode::Interpret] {
            assert!(!run(t, Config { mode, ..plain() }), "{t} {mode}");
        }
        assert!(run(t, Config { mode: Mode::Lazy, ..plain() }), "{t}");
        assert!(
            !run(t, Config { check: true, ..plain() }) && !run(t, Config { threads: 2, ..plain() }),
            "{t}"
        );
        assert!(!run(t, Config { stream_bytes: 1 << 20, ..plain() }), "{t}");
    }
    // A single instance is a run, but there are gaps or overlaps between instances.
    for t in ["resized(0, 16, double)", "subarray([4, 4], [1, 4], [3, 0], C, int)", "resized(0, 4, double)"] {
        assert_eq!(kind(t, plain()), Run::One, "{t}");
        assert_eq!(kind(t, Config { check: true, ..plain() }), Run::None, "{t}");
        assert!(Run::One.covers(1) && !Run::One.covers(0) && !Run::One.covers(2));
    }
    for t in ["vector(2, 1, 2, int)", "hindexed([4, 4], [4, 0], char)", "contiguous(0, int)"] {
        assert_eq!(kind(t, plain()), Run::None, "{t}");
    }
}

/// If a caller already has the committed type and clones it by `again`, this is counted as a commit
/// and as a cache hit.
#[test]
fn a_type_that_is_committed_again_is_counted() {
    let engine = Engine::new(Config::default());
    let t: Datatype = "vector(3, 1, 2, double)".parse().unwrap();
    let first = engine.commit(&t).unwrap();
    let counted = || (engine.counters().commits, engine.counters().cache.type_hits);
    assert_eq!(counted(), (1, 0));
    let again = first.again();
    assert!(again.shares_layout(&first) && again.datatype() == first.datatype());
    assert_eq!(counted(), (2, 1));
    engine.commit(&t).unwrap();
    assert_eq!(counted(), (3, 2));
}
