//! Tests that ranges and copies whose kernels are made in advance move the right bytes and compile
//! nothing more.

use super::*;
use crate::datatype::Datatype;
use crate::engine::{Config, Engine, Mode};
use crate::exec::interp;
use crate::fuzzing::{self, Budget, Choices};
use crate::target::Level;

/// Returns the size in bytes of a user memory for `count` instances, and the index of displacement
/// 0 in it.
fn memory(t: &Datatype, count: u64) -> (usize, usize) {
    let last = (count as i64 - 1).max(0) * t.extent();
    let low = (t.true_lb() + last.min(0)).min(0);
    let high = (t.true_ub() + last.max(0)).max(0);
    ((high - low) as usize, (-low) as usize)
}

fn bytes(n: usize, seed: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251 + seed) as u8).collect()
}

/// Moves the stream of `count` instances in pieces that end at `cuts`, and asserts that the result
/// is that of the definition.
fn moves(committed: &Committed, direction: Direction, count: u64, cuts: &[u64]) {
    let t = committed.datatype();
    let (room, at) = memory(t, count);
    let all = (count * t.size() as u64) as usize;
    let (mut user, mut packed) = match direction {
        Direction::Pack => (bytes(room, 3), vec![0xa5; all]),
        Direction::Unpack => (vec![0xa5; room], bytes(all, 5)),
    };
    let (mut want_user, mut want_packed) = (user.clone(), packed.clone());
    let mut from = 0;
    for &end in cuts.iter().chain([&(all as u64)]) {
        let (a, b) = (from as usize, end as usize);
        // SAFETY: `user` has room for all instances, and the slice of `packed` for the bytes of the
        // piece.
        unsafe {
            let user = user.as_mut_ptr().wrapping_add(at);
            committed.range_made(direction, user, count, packed[a..b].as_mut_ptr(), from..end);
        }
        match direction {
            Direction::Pack => {
                interp::pack_range(t, count, &want_user, at, from, &mut want_packed[a..b]).unwrap()
            }
            Direction::Unpack => {
                interp::unpack_range(t, count, &want_packed[a..b], &mut want_user, at, from).unwrap();
            }
        }
        from = end;
    }
    assert!(user == want_user && packed == want_packed, "{direction} of {count} {t} by {cuts:?}");
}

fn engines() -> Vec<Engine> {
    Level::available()
        .flat_map(|level| {
            [(true, Mode::Lazy), (false, Mode::Lazy), (true, Mode::Commit), (true, Mode::Interpret)]
                .map(|(native, mode)| Engine::new(Config { level, native, mode, ..Config::default() }))
        })
        .collect()
}

#[test]
fn ranges_go_by_what_is_made_and_make_nothing() {
    let engines = engines();
    for seed in 0..1500 {
        let mut choices = Choices::from_seed(seed);
        let t = fuzzing::datatype(&mut choices, &Budget::small());
        let count = choices.below(5) + 1;
        let all = count * t.size() as u64;
        if all == 0 {
            continue;
        }
        let engine = &engines[seed as usize % engines.len()];
        let committed = engine.commit(&t).unwrap();
        let direction = Direction::BOTH[choices.below(2) as usize];
        // For about one seed in five, nothing is made in advance, so that all ranges are
        // interpreted or moved by what the commit compiled.
        if choices.below(5) > 0 {
            committed.make_ranges(direction);
        }
        let made = engine.counters();
        let mut cuts: Vec<u64> = (0..choices.below(6)).map(|_| choices.below(all)).collect();
        cuts.sort_unstable();
        moves(&committed, direction, count, &cuts);
        moves(&committed, direction, count, &[]);
        let now = engine.counters();
        assert_eq!((made.compiles, made.cached_bytes), (now.compiles, now.cached_bytes), "{t}");
    }
}

#[test]
fn ranges_of_large_layouts_go_by_kernels() {
    let places: Vec<String> = (0..5000).map(|i| (i * 3 + i % 2).to_string()).collect();
    let texts = [
        "vector(5000, 1, 2, double)".to_owned(),
        "subarray([60, 60, 60], [59, 2, 60], [0, 3, 0], C, double)".to_owned(),
        format!("indexed_block(1, [{}], double)", places.join(",")),
        "hvector(700, 1, 40, struct([1, 2], [0, 8], [int, double]))".to_owned(),
    ];
    for engine in engines().into_iter().filter(|engine| engine.config().mode == Mode::Commit) {
        for text in &texts {
            let t: Datatype = text.parse().unwrap();
            let committed = engine.commit(&t).unwrap();
            for direction in Direction::BOTH {
                committed.make_ranges(direction);
                let made = engine.counters().compiles;
                let all = t.size() as u64;
                for step in [1009, 4096, all / 2 + 1] {
                    moves(&committed, direction, 1, &(step..all).step_by(step as usize).collect::<Vec<_>>());
                }
                assert_eq!(engine.counters().compiles, made, "{text}");
            }
        }
    }
}

#[test]
fn copies_go_by_what_is_made_or_not_at_all() {
    let (engines, mut done) = (engines(), 0);
    for seed in 0..1500 {
        let mut choices = Choices::from_seed(seed);
        let t = fuzzing::datatype(&mut choices, &Budget::small());
        let (count, engine) = (choices.below(5) + 1, &engines[seed as usize % engines.len()]);
        if t.size() == 0 {
            continue;
        }
        let committed = engine.commit(&t).unwrap();
        let direct = committed.direct(&committed).unwrap();
        let makes = direct.make();
        let compiles = engine.counters().compiles;
        let (room, at) = memory(&t, count);
        let (source, mut target) = (bytes(room, 1), vec![0xa5; room]);
        // SAFETY: both memories have room for all instances, and `make` has been called.
        let copied = unsafe {
            let (from, to) = (source.as_ptr().wrapping_add(at), target.as_mut_ptr().wrapping_add(at));
            direct.copy_made(from, to, count)
        };
        assert_eq!(engine.counters().compiles, compiles, "{t}");
        assert_eq!(copied, makes, "{t}");
        if copied {
            done += 1;
            let (mut stream, mut want) = (vec![0; (count * t.size() as u64) as usize], vec![0xa5; room]);
            interp::pack(&t, count, &source, at, &mut stream).unwrap();
            interp::unpack(&t, count, &stream, &mut want, at).unwrap();
            assert!(target == want, "{count} {t}");
        }
        // A copy of a memory onto itself is refused, and nothing is written.
        let before = target.clone();
        // SAFETY: `target` has room for all instances, and `make` has been called.
        let copied = unsafe {
            let to = target.as_mut_ptr().wrapping_add(at);
            direct.copy_made(to, to, count)
        };
        assert!(!copied && target == before, "{t}");
    }
    assert!(done > 500, "{done}");
}
