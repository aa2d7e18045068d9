//! Test that kernels move those whole iterations of a loop that lie inside a range of the packed
//! stream. This file has a single test, because the counter that the test reads belongs to the
//! process.

use ddtc::internal::calls::{Counting, totals};
use ddtc::internal::corpus;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::fuzzing::Case;
use ddtc::internal::fuzzing::guard::{Edge, Rig};
use ddtc::internal::target::Level;

/// Each row has a datatype, a number of instances, and a number of parts. The packed stream is
/// moved in three pieces, and kernels must move this number of parts of them. The number is the sum
/// over both directions.
const TYPES: [(&str, u64, u64); 7] = [
    // Each of the three pieces of the stream contains whole instances.
    ("resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))", 40, 6),
    // There is only one instance of these types, so kernels move iterations of the outer loop
    // inside the instance.
    ("subarray([24, 24, 24], [20, 20, 1], [0, 3, 5], C, double)", 1, 6),
    ("hvector(30, 1, 200, struct([1, 1, 3], [0, 8, 20], [int, double, float]))", 1, 6),
    // This structure has two members. One cut between the pieces lies inside the first member, and
    // the other cut inside the second member.
    (
        "struct([1, 1], [0, 9000], [hvector(12, 1, 100, vector(4, 2, 4, int)), hvector(12, 1, 100, vector(4, 2, 4, int))])",
        1,
        8,
    ),
    // This type is a list of blocks, which the plan cuts into blocks of equal length. Kernels move
    // all of these equal blocks that lie completely in one piece.
    ("@wide(1, 200)", 1, 6),
    // The nest of this type is a table over a structure, and kernels move rows of this table.
    (
        "hindexed_block(1, [0, 100, 250, 330, 470, 520, 640, 755, 800, 940], struct([1, 1, 3], [0, 8, 20], [int, double, float]))",
        1,
        6,
    ),
    // A single call of a micro-kernel moves this type. The interpreter of nests makes the same
    // call, so no part is compiled.
    ("vector(100, 1, 3, double)", 1, 0),
];

/// Tests ranges of irregular rows. Levels without masks sort such rows by length within buckets. If
/// a whole bucket lies in a range, it must be moved by the sorted columns.
fn buckets(rig: &mut Rig) {
    let lengths: Vec<i64> = (0..4700).map(|i| 1 + 2 * (i * 17 % 31)).collect();
    let places: Vec<i64> = (0..4700).map(|i| 64 * i).collect();
    let t = Datatype::hindexed(&lengths, &places, &"char".parse().unwrap()).unwrap();
    let case = Case::new(&t, 1).unwrap();
    let n = case.packed_len();
    // One cut between these pieces lies inside the first bucket, one in the middle, and one inside
    // the last bucket, which is shorter than the others.
    let pieces = [n - 700..n, 0..1000, 1000..n / 2 + 1, n / 2 + 1..n - 700];
    for level in Level::available() {
        let config = Config { level, lazy_threshold: 0, both_directions: true, ..Config::default() };
        let c = Engine::new(config).commit(&t).unwrap();
        let before = totals().parts;
        case.ranges(&c, rig, &pieces, Edge::Back).unwrap_or_else(|m| panic!("{level}: {m}"));
        let sorted = matches!(level, Level::Baseline | Level::Avx2);
        assert_eq!(totals().parts - before, if sorted { 8 } else { 0 }, "{level}");
    }
}

#[test]
fn whole_iterations_go_by_kernels() {
    let _counting = Counting::start();
    let mut rig = Rig::default();
    buckets(&mut rig);
    for native in [true, false] {
        for (text, count, parts) in TYPES {
            let t = corpus::datatype(text).unwrap();
            let config = Config { native, lazy_threshold: 0, both_directions: true, ..Config::default() };
            let case = Case::new(&t, count).unwrap();
            let n = case.packed_len();
            let pieces = [n * 2 / 3 - 1..n, 0..n / 3 + 1, n / 3 + 1..n * 2 / 3 - 1];
            let moved = |mode, rig: &mut Rig| {
                let c = Engine::new(Config { mode, ..config.clone() }).commit(&t).unwrap();
                let before = totals().parts;
                case.ranges(&c, rig, &pieces, Edge::Back).unwrap_or_else(|m| panic!("{text}: {m}"));
                totals().parts - before
            };
            assert_eq!(moved(Mode::Commit, &mut rig), parts, "{text}");
            assert_eq!(moved(Mode::Interpret, &mut rig), 0, "{text}");
            // If the lazy threshold is not reached, no part is compiled, and kernels move nothing.
            let c = Engine::new(Config { lazy_threshold: 1 << 40, ..config }).commit(&t).unwrap();
            let before = totals().parts;
            case.ranges(&c, &mut rig, &pieces, Edge::Front).unwrap_or_else(|m| panic!("{text}: {m}"));
            assert_eq!(totals().parts - before, 0, "{text}");
        }
    }
}
