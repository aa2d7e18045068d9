//! Tests of properties that all datatypes and all stages of the compiler must have, on generated
//! datatypes.
//!
//! The environment variable `DDTC_CASES` is the number of random datatypes, and `DDTC_SEED` is
//! their seed. `ddtc check` does the same run with a progress bar.

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::fuzzing::guard::{Edge, Rig};
use ddtc::internal::fuzzing::{Budget, Case, Choices, Failure, Oracle, check_random, datatype, instances};
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;
use proptest::prelude::*;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap_or_else(|e| panic!("{name}={v}: {e}")))
}

#[test]
fn random_datatypes() {
    let (cases, seed) = (setting("DDTC_CASES", 1000), setting("DDTC_SEED", 20_261_120));
    let summary = check_random(cases, seed, &mut |p| {
        if p.done % 10_000 == 0 {
            println!("{} of {}: {:?}", p.done, p.cases, p.summary);
        }
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    println!("{summary:?}");
    assert_eq!(summary.cases, cases);
}

/// Datatypes for each way in which a range of the packed stream can pass through a node of a nest.
/// Each datatype comes with a number of instances, which together have 72 to 200 packed bytes.
const NODES: [(&str, u64); 11] = [
    // The nests of these types are loops of copies, for one and for several instances. The shortest
    // of these copies moves one byte.
    ("hvector(7, 13, 17, byte)", 1),
    ("resized(0, 5, vector(1, 3, 3, byte))", 30),
    ("vector(60, 1, 2, byte)", 2),
    // This type is one contiguous run.
    ("contiguous(50, short)", 2),
    // The nests of these types are loops of structures. The first structure has so few blocks that
    // they are searched one by one, and the second has more.
    ("resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))", 5),
    ("resized(0, 40, hindexed([1, 2, 1, 2, 1, 2, 1, 2, 1], [0, 3, 7, 10, 14, 17, 21, 24, 36], byte))", 8),
    // The nests of these types have loops in loops, tables of copies and of loops, and irregular
    // blocks. Some of the irregular blocks are moved in pieces, and some as they are listed.
    ("subarray([6, 6, 6], [5, 4, 3], [1, 0, 2], C, short)", 1),
    ("hindexed_block(5, [0, 100, 37, 9, 61, 80], byte)", 3),
    ("hindexed_block(1, [0, 100, 37, 250, 61, 180], vector(3, 3, 5, byte))", 2),
    ("hindexed([3, 1, 5, 2, 7, 4, 1, 6, 3, 9, 2], [0, 5, 7, 20, 23, 40, 50, 53, 70, 80, 90], short)", 1),
    // This type has members one after the other, and its instances go downwards in memory.
    (
        "resized(0, -200, struct([1, 1, 1], [0, 100, 60], [vector(3, 2, 4, short), hvector(4, 1, 9, vector(2, 1, 2, byte)), int]))",
        3,
    ),
];

#[test]
fn ranges_begin_and_end_anywhere() {
    let mut rig = Rig::default();
    for (text, count) in NODES {
        let t: Datatype = text.parse().unwrap();
        let case = Case::new(&t, count).unwrap();
        let n = case.packed_len();
        for mode in [Mode::Commit, Mode::Interpret] {
            let config = Config { mode, lazy_threshold: 0, both_directions: true, ..Config::default() };
            let c = Engine::new(config).commit(&t).unwrap();
            for (from, to) in (0..n).flat_map(|from| (from + 1..=n).map(move |to| (from, to))) {
                let edge = if from % 2 == 0 { Edge::Front } else { Edge::Back };
                let piece = from..to;
                case.ranges(&c, &mut rig, std::slice::from_ref(&piece), edge)
                    .unwrap_or_else(|m| panic!("{text} from {from} to {to}, {mode:?}: {m}"));
            }
        }
    }
}

/// Tests ranges whose two ends are cut at more levels of a nest than the library enters by
/// recursion.
#[test]
fn ranges_of_deep_nests() {
    let mut rig = Rig::default();
    let (mut text, mut extent) = ("byte".to_owned(), 1);
    for gap in 1..19 {
        // The distances differ at each level of the nest, so that no two levels can become one
        // loop.
        text = format!("hvector(2, 1, {}, {text})", extent + gap);
        extent = 2 * extent + gap;
    }
    let t: Datatype = text.parse().unwrap();
    let case = Case::new(&t, 1).unwrap();
    let n = case.packed_len();
    assert_eq!(n, 1 << 18);
    for mode in [Mode::Commit, Mode::Interpret] {
        let config = Config { mode, lazy_threshold: 0, both_directions: true, ..Config::default() };
        let c = Engine::new(config).commit(&t).unwrap();
        assert!(c.nest().nodes().len() > 17, "a level each: {:?}", c.nest());
        for piece in [1..n - 1, 1..2, n / 2 - 1..n / 2 + 1, n / 3..n / 3 + 12345] {
            case.ranges(&c, &mut rig, std::slice::from_ref(&piece), Edge::Back)
                .unwrap_or_else(|m| panic!("{piece:?}, {mode:?}: {m}"));
        }
    }
}

/// Returns datatypes, each with a number of instances, as a strategy for proptest. The datatypes
/// are generated from random bytes, and each byte is one choice of the generator. So proptest
/// shrinks a failure to fewer bytes with lower values.
fn any_datatype() -> impl Strategy<Value = (Datatype, u64)> {
    proptest::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| {
        let mut c = Choices::from_bytes(&bytes);
        let t = datatype(&mut c, &Budget::small());
        (t, instances(&mut c))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chosen_datatypes((t, count) in any_datatype()) {
        let levels = [Level::detect()];
        let mut cuts = Choices::from_seed(t.structural_hash() as u64);
        if let Err(mismatch) = Oracle::new(&levels).check(&t, count, &mut cuts) {
            panic!("{}", Failure::shrunk(&t, count, mismatch, &levels));
        }
    }
}
