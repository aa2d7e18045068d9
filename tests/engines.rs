//! One suite of tests for all executors: the reference interpreter, the evaluation of nests and
//! plans after each stage of the compiler, the interpreter of nests, and compiled code at each CPU
//! level. Moves of ranges of the packed stream are tested as well.
//!
//! Small types go through all oracles with counts 0, 1, 2, 3 and 17. Large types, of up to 2^40
//! bytes and more, go through the executors with counts 1 and 2 on reserved address space.

use ddtc::internal::corpus::{self, CorpusEntry, Size};
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::fuzzing::guard::{Edge, Rig};
use ddtc::internal::fuzzing::{Case, Choices, Oracle, RangeCase};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;

const TYPES: &[&str] = &[
    "int",
    "double_int",
    "short_int",
    "contiguous(5, double)",
    "contiguous(0, double)",
    "vector(34, 10, 64, double)",
    "vector(3, 1, 2, int)",
    "vector(100, 1, 3, char)",
    "vector(8, 1, -1, char)",
    "vector(4, 3, 0, int)",
    "hvector(4, 1, 4, vector(3, 1, 4, int))",
    "hvector(5, 2, 100, vector(3, 2, 4, int))",
    "hvector(3, 1, -7, short)",
    "indexed([1, 2, 0, 3], [0, 4, 9, 11], int)",
    "indexed([2, 1, 3], [7, 0, 2], vector(2, 1, 3, short))",
    "indexed_block(2, [0, 5, 9, 20, 21, 40], double)",
    "hindexed([3, 1, 2], [100, -4, 57], int)",
    "hindexed_block(3, [0, 100, 40], float)",
    "struct([1, 1, 3], [0, 8, 16], [int, double, float])",
    "resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))",
    "struct([1, 1, 1, 1], [0, 100, 200, 350], [vector(3,1,2,int), vector(3,1,2,int), vector(3,1,2,int), int])",
    // The instances of this type overlap, so a permutation pattern moves the instances one at a
    // time.
    "resized(0, 12, struct([1, 2], [0, 8], [int, float]))",
    "resized(-8, 24, vector(2, 1, 3, int))",
    "resized(0, 16, vector(16, 1, 64, double_complex))",
    "contiguous(7, resized(0, 16, vector(16, 1, 64, double_complex)))",
    "subarray([4, 8], [1, 3], [2, 1], C, double)",
    "subarray([16, 16, 16], [16, 1, 16], [0, 3, 0], C, double)",
    "subarray([16, 16, 16], [16, 16, 1], [0, 0, 5], C, double)",
    "subarray([16, 16, 16], [4, 5, 3], [1, 2, 5], Fortran, int)",
    "darray(4, 1, [6, 4], [cyclic, block], [2, default], [2, 2], Fortran, double)",
    "darray(4, 3, [13, 11], [cyclic, cyclic], [3, 2], [2, 2], C, float)",
    "dup(vector(5, 1, 2, float))",
    "hindexed([100, 200, 64, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [0, 128, 500, 600, 603, 605, 609, 615, 622, 630, 639, 649, 660, 672, 685, 699, 714, 730, 747, 765], char)",
];

/// Names of the corpus entries whose datatypes do not fit into any address space.
const UNADDRESSABLE: &[&str] = &["large.size_2_62"];

const COUNTS: [u64; 5] = [0, 1, 2, 3, 17];
/// Limits of what counts as a small type: the maximum number of packed bytes of one instance, and
/// the maximum number of bytes of its span.
const SMALL: (i64, i64) = (4 << 10, 64 << 10);

fn oracle() -> Oracle {
    Oracle::new(&Level::available().collect::<Vec<_>>())
}

fn cuts(t: &Datatype, count: u64) -> Choices<'static> {
    Choices::from_seed(t.structural_hash() as u64 ^ count)
}

fn is_small(t: &Datatype) -> bool {
    t.size() <= SMALL.0 && t.true_extent().saturating_add(t.extent().saturating_abs()) <= SMALL.1
}

/// Checks a corpus entry with all oracles if its type is small, and otherwise with the executors
/// only. Returns false if the entry's datatype does not fit into any address space.
fn entry(oracle: &mut Oracle, e: &CorpusEntry) -> bool {
    let t = &e.datatype;
    if is_small(t) {
        for count in COUNTS.into_iter().chain([e.count]) {
            let checked = oracle.check(t, count, &mut cuts(t, count));
            checked.unwrap_or_else(|m| panic!("{}: {count} of {t}: {m}", e.name));
        }
        return true;
    }
    [1, 2].iter().all(|&count| {
        let checked = oracle.check_large(t, count);
        checked.unwrap_or_else(|m| panic!("{}: {count} instances: {m}", e.name))
    })
}

#[test]
fn listed_types() {
    let mut oracle = oracle();
    for text in TYPES {
        let t: Datatype = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        for count in COUNTS {
            let checked = oracle.check(&t, count, &mut cuts(&t, count));
            checked.unwrap_or_else(|m| panic!("{count} of {text}: {m}"));
        }
    }
}

#[test]
fn corner_cases() {
    let mut oracle = oracle();
    let entries = corpus::corner();
    let left: Vec<&str> =
        entries.iter().filter(|e| !entry(&mut oracle, e)).map(|e| e.name.as_str()).collect();
    assert_eq!(left, UNADDRESSABLE, "entries that no address space holds");
}

fn application(size: Size) {
    let mut oracle = oracle();
    for e in corpus::application().iter().filter(|e| e.size == size) {
        assert!(entry(&mut oracle, e), "{}: no address space", e.name);
    }
}

#[test]
fn small_application_layouts() {
    application(Size::S);
}

#[test]
fn large_application_layouts() {
    application(Size::L);
}

/// Tests irregular lists of blocks that are long enough for the schedule to move the blocks in an
/// order different from that of the type map. If blocks begin at a distance of 50 bytes, some bytes
/// are written twice, so the order of the type map must be kept.
#[test]
fn long_irregular_lists() {
    let mut oracle = oracle();
    let rows = 2 * ddtc::internal::target::cost::BUCKETED_ROWS as i64;
    let lengths: Vec<i64> = (0..rows).map(|i| 1 + i * 37 % 61).collect();
    for distance in [64, 50] {
        let places: Vec<i64> = (0..rows).map(|i| distance * i).collect();
        let t = Datatype::hindexed(&lengths, &places, &"char".parse().unwrap()).unwrap();
        oracle.check(&t, 2, &mut cuts(&t, 2)).unwrap_or_else(|m| panic!("distance {distance}: {}", m.stage));
    }
}

/// Tests ranges of types whose nodes are shared so often that inlining them all would exceed the
/// budget. The nests of these types keep shared nodes, and ranges must be found in them.
#[test]
fn ranges_of_shared_nodes() {
    for levels in [9, 10, 11, 14, 20, 30, 40] {
        let t = corpus::datatype(&format!("@dag({levels})")).unwrap();
        let n = t.size() as u64;
        for mode in [Mode::Interpret, Mode::Commit] {
            let engine = Engine::new(Config { mode, ..Config::default() });
            let c = engine.commit(&t).unwrap();
            for from in [0, n / 3 + 1, n / 2 - 5, n - 200] {
                let mut case = RangeCase::new(&t, 1, from..from + 200).unwrap().unwrap();
                for d in Direction::BOTH {
                    case.check("range", &c, d).unwrap_or_else(|m| panic!("@dag({levels}): {m}"));
                }
            }
        }
    }
}

/// Tests that `pack_range` and `unpack_range` return the number of bytes that they moved. This is
/// the rest of the packed stream after the offset, or the length of the slice if that is less.
#[test]
fn ranges_say_how_much_they_moved() {
    let t: Datatype = "vector(3, 2, 5, int)".parse().unwrap();
    for mode in [Mode::Interpret, Mode::Commit] {
        let c = Engine::new(Config { mode, ..Config::default() }).commit(&t).unwrap();
        // The user memory contains two instances with 24 packed bytes each. The second instance
        // ends at byte 96.
        let (user, mut back) = ([7; 96], [0; 96]);
        for (offset, room, moved) in [
            (0, 0, 0),
            (0, 48, 48),
            (0, 100, 48),
            (5, 10, 10),
            (24, 24, 24),
            (40, 100, 8),
            (47, 1, 1),
            (48, 5, 0),
        ] {
            let mut packed = vec![0; room];
            assert_eq!(c.pack_range(&user, 0, 2, offset, &mut packed), Ok(moved), "{mode} {offset} {room}");
            assert!(packed.iter().take(moved).all(|&b| b == 7) && packed.iter().skip(moved).all(|&b| b == 0));
            back.fill(0);
            assert_eq!(c.unpack_range(&packed, 0, 2, offset, &mut back), Ok(moved), "{mode} {offset} {room}");
            assert_eq!(back.iter().filter(|&&b| b == 7).count(), moved);
        }
        assert!(c.pack_range(&user, 0, 2, 49, &mut [0; 9]).is_err());
        assert!(c.unpack_range(&[0; 9], 0, 2, 49, &mut back).is_err());
        // The slice of user memory must contain the whole span of all instances, whichever range is
        // moved.
        assert!(c.pack_range(&user[..95], 0, 2, 0, &mut [0; 1]).is_err());
        assert!(c.unpack_range(&[0; 1], 0, 2, 0, &mut back[..95]).is_err());
        // So many instances do not fit into memory, so the calls must fail.
        for count in [1 << 31, 1 << 62, u64::MAX] {
            assert!(c.pack_range(&user, 0, count, 0, &mut [0; 9]).is_err(), "{mode} {count}");
            assert!(c.unpack_range(&[0; 9], 0, count, 0, &mut back).is_err(), "{mode} {count}");
        }
    }
}

/// Tests instances that go down from displacement 0 or begin below it. The origin must leave enough
/// bytes before it for the lowest byte, and the slice must reach up to the highest byte.
#[test]
fn spans_are_those_of_all_instances() {
    for (text, lowest, highest) in [
        ("resized(0, -8, int)", 16, 4),
        ("resized(0, 8, int)", 0, 20),
        ("hindexed([1, 1], [-6, 3], short)", 6, 29),
        ("resized(0, -8, hindexed([1, 1], [-6, 3], short))", 22, 5),
    ] {
        let t: Datatype = text.parse().unwrap();
        let c = Engine::default().commit(&t).unwrap();
        let (user, mut packed) = (vec![5; lowest + highest], vec![0; c.packed_size(3).unwrap() as usize]);
        let n = packed.len();
        assert_eq!(c.pack(&user, lowest, 3, &mut packed), Ok(n), "{text}");
        assert!(packed.iter().all(|&b| b == 5), "{text}");
        let short = c.pack(&user[..lowest + highest - 1], lowest, 3, &mut packed).unwrap_err();
        assert_eq!(short.argument(), "src.len()", "{text}");
        if lowest > 0 {
            let low = c.pack(&user, lowest - 1, 3, &mut packed).unwrap_err();
            assert_eq!(low.argument(), "origin", "{text}");
        }
        // A call that packs 0 instances needs no memory.
        assert_eq!(c.pack(&[], 0, 0, &mut []), Ok(0), "{text}");
    }
}

/// Cuts the packed stream in two at each offset, and moves both pieces with compiled code at each
/// level and with the interpreter of nests. For even offsets the first piece is moved before the
/// second, and for odd offsets after it.
#[test]
fn cuts_at_every_offset() {
    let mut rig = Rig::default();
    let mut engines: Vec<Engine> =
        Level::available().map(|level| Engine::new(Config { level, ..Config::default() })).collect();
    engines.push(Engine::new(Config { mode: Mode::Interpret, ..Config::default() }));
    for text in TYPES {
        let t: Datatype = text.parse().unwrap();
        for count in [1, 3] {
            let case = Case::new(&t, count).unwrap();
            let n = case.packed_len();
            if n > 600 {
                continue;
            }
            for engine in &engines {
                let c = engine.commit(&t).unwrap();
                for cut in 0..=n {
                    let pieces = if cut % 2 == 0 { [0..cut, cut..n] } else { [cut..n, 0..cut] };
                    let checked = case.ranges(&c, &mut rig, &pieces, Edge::Back);
                    checked.unwrap_or_else(|m| panic!("{count} of {text} cut at {cut}: {m}"));
                }
                // Move the same packed stream once more, in pieces of one byte.
                let pieces: Vec<_> = (0..n).map(|i| i..i + 1).collect();
                let checked = case.ranges(&c, &mut rig, &pieces, Edge::Front);
                checked.unwrap_or_else(|m| panic!("{count} of {text} byte by byte: {m}"));
            }
        }
    }
}

/// Tests that all modes of an engine move the same bytes. In lazy mode the calls before and after
/// the compile are tested. With the option `check`, the engine must find no mismatch.
#[test]
fn every_mode() {
    for mode in Mode::ALL {
        for check in [false, true] {
            let engine = Engine::new(Config { mode, check, lazy_threshold: 300, ..Config::default() });
            let mut rig = Rig::default();
            for text in TYPES {
                let t: Datatype = text.parse().unwrap();
                let case = Case::new(&t, 3).unwrap();
                let c = engine.commit(&t).unwrap();
                // In lazy mode the first of these calls interpret the nest, and the last ones run
                // compiled code.
                for _ in 0..1 + 200 / case.packed_len().max(1) {
                    case.committed("mode", &c, &mut rig).unwrap_or_else(|m| panic!("{mode} {text}: {m}"));
                }
                let compiled = c.schedule(Direction::Pack);
                let interpreted = compiled.starts_with("not compiled");
                let expected = matches!(mode, Mode::Off | Mode::Interpret) || case.packed_len() == 0;
                assert!(
                    interpreted == expected || (mode == Mode::Commit && !interpreted),
                    "{mode} {text}: {compiled}"
                );
            }
            let counters = engine.counters();
            assert_eq!((counters.fallbacks, counters.mismatches), (0, 0), "{mode}: {counters:?}");
        }
    }
}

/// Tests that all entries of the corpus are compiled without a fallback. The exceptions are the
/// entries that the schedule refuses, which `REFUSED` lists.
#[test]
fn no_fallbacks_on_the_corpus() {
    let mut refused: Vec<String> = Vec::new();
    for level in Level::available() {
        let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
        for e in corpus::application().iter().chain(&corpus::corner()) {
            let c = engine.commit(&e.datatype).unwrap();
            for d in Direction::BOTH {
                let schedule = c.schedule(d);
                if schedule.starts_with("interpreted") && !refused.contains(&e.name) {
                    refused.push(e.name.clone());
                }
            }
        }
        assert_eq!(engine.counters().fallbacks, 0, "{level}");
    }
    assert_eq!(refused, REFUSED, "entries that the schedule refuses");
}

/// Tests that an engine never has a level that this machine does not run. The configuration may ask
/// for such a level, since any level can be parsed from its name. The engine then uses the
/// machine's level.
#[test]
fn an_engine_has_a_level_that_the_machine_runs() {
    for level in Level::ALL {
        let level: Level = level.name().parse().unwrap();
        let engine = Engine::new(Config { level, ..Config::default() });
        assert_eq!(engine.config().level, if level.runs() { level } else { Level::detect() });
    }
    assert!(Level::ALL.iter().any(|level| !level.runs()), "no machine has the levels of two architectures");
}

/// Names of the corpus entries for which the schedule refuses to make a kernel.
const REFUSED: &[&str] = &["dag.40", "children.10000"];

/// Tests `plain_size`, which returns the packed size of a call, or none. If it returns a size, the
/// size must be right, and the exact span of all instances must lie in the address space above its
/// first page. For the types that programs usually have, it must return a size.
#[test]
fn plain_sizes_are_exact() {
    use ddtc::internal::committed::FIRST_PAGE;
    let engine = Engine::default();
    let ends = [0, 1, 2, 3, i32::MAX as u64, i32::MAX as u64 + 1, u64::MAX];
    let buffers =
        [0, 1, FIRST_PAGE - 1, FIRST_PAGE, 1 << 40, (1 << 62) - 1, 1 << 62, usize::MAX - 64, usize::MAX];
    let types = [
        "int",
        "vector(3, 2, 5, double)",
        "vector(3, 2, -5, double)",
        "resized(0, -8, double)",
        "resized(-8, 16, double)",
        "hindexed([1], [-4096], int)",
        "hindexed([1], [2147483643], int)",
        "hindexed([1], [2147483644], int)",
        "resized(0, 2147483647, int)",
        "resized(0, 2147483648, int)",
        "hvector(1073741824, 1, 0, int)",
        "contiguous(0, int)",
    ];
    let mut answers = 0;
    for text in types {
        let t: Datatype = text.parse().unwrap();
        let c = engine.commit(&t).unwrap();
        for (count, buffer) in ends.iter().flat_map(|&n| buffers.map(|b| (n, b))) {
            let Some(size) = c.plain_size(buffer, count) else { continue };
            answers += 1;
            assert_eq!(i128::from(size), i128::from(count) * i128::from(t.size()), "{text} {count}");
            let last = (i128::from(count) - 1).max(0) * i128::from(t.extent());
            let low = buffer as i128 + i128::from(t.true_lb()) + last.min(0);
            let high = buffer as i128 + i128::from(t.true_ub()) + last.max(0);
            assert!(low >= FIRST_PAGE as i128 && high <= i128::from(u64::MAX), "{text} {count} {buffer:#x}");
        }
    }
    assert!(answers >= 60, "{answers}");
    let c = engine.commit(&"vector(3, 2, 5, double)".parse().unwrap()).unwrap();
    assert_eq!(c.plain_size(0x7fff_0000_0000, 10), Some(480));
}
