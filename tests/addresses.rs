//! Tests of datatypes that list the absolute addresses of several objects. If a later type lists
//! the same objects at other addresses, no new machine code may be generated for that type.

use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;

/// Size in bytes of the memory in which the objects lie. Any two objects begin more than 64 KiB
/// apart, which is the distance from which `src/nest/near.rs` treats blocks as separate objects.
const MEMORY: usize = 8 << 20;
/// Number of bytes from the start of one slot of the memory to the start of the next. Each object
/// lies in a slot of its own and begins in the first half of that slot.
const APART: u64 = 160 << 10;

/// Generator of pseudo-random numbers (xorshift). Equal seeds give equal numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Returns the offsets of `n` objects in the memory, in random order and at irregular
    /// distances.
    fn places(&mut self, n: usize) -> Vec<i64> {
        let mut free: Vec<u64> = (0..MEMORY as u64 / APART - 1).collect();
        let place = |random: &mut Random, free: &mut Vec<u64>| {
            let chosen = random.below(free.len() as u64) as usize;
            (free.swap_remove(chosen) * APART + random.below(APART / 2)) as i64
        };
        (0..n).map(|_| place(self, &mut free)).collect()
    }
}

/// Returns a structure with members in four objects, which begin at the offsets `at`. If `strided`
/// is false, each member has a few bytes, so the plan consists of moves. If `strided` is true, one
/// member is a vector, so the plan calls a micro-kernel for that member.
fn of_objects(strided: bool, at: &[i64]) -> Datatype {
    let runs = if strided { "vector(40,3,5,short)" } else { "short" };
    let text = format!(
        "struct([1,1,3,1,2,1],[{},{},{},{},{},{}],[double,int,float,{runs},char,double])",
        at[0],
        at[0] + 16,
        at[1],
        at[2],
        at[3],
        at[3] + 8,
    );
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn memory(seed: u64) -> Vec<u8> {
    (0..MEMORY as u64).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 11) as u8).collect()
}

/// Checks that packing and unpacking one instance of `t` move the same bytes as with `judge`, which
/// is the same type in an engine that follows the definition of the type map (`Mode::Off`).
fn moves_right(t: &Committed, judge: &Committed, user: &[u8], name: &str) {
    let size = t.packed_size(1).unwrap() as usize;
    let (mut packed, mut right) = (vec![0; size], vec![0; size]);
    t.pack(user, 0, 1, &mut packed).unwrap();
    judge.pack(user, 0, 1, &mut right).unwrap();
    assert_eq!(packed, right, "{name}: {t:?}");
    let (mut into, mut expected) = (vec![7; MEMORY], vec![7; MEMORY]);
    t.unpack(&packed, 0, 1, &mut into).unwrap();
    judge.unpack(&packed, 0, 1, &mut expected).unwrap();
    assert!(into == expected, "{name}: {t:?}");
}

#[test]
fn objects_elsewhere_share_code() {
    // Commit twelve types that have the same members in objects at different places. Compiling each
    // type in both directions gives 24 compiles, but code may be emitted only once per direction.
    // Check this with both emitters (templates and Cranelift), at each level that this machine has,
    // and with small and with strided members.
    let definition = Engine::new(Config { mode: Mode::Off, ..Config::default() });
    let user = memory(1);
    for native in [true, false] {
        for &level in Level::ALL.iter().filter(|level| Level::detect().includes(**level)) {
            for strided in [false, true] {
                let name = format!("templates {native}, {level}, strided {strided}");
                let config = Config { mode: Mode::Commit, native, level, ..Config::default() };
                let engine = Engine::new(Config { both_directions: true, ..config });
                let mut random = Random(20_261_125);
                for _ in 0..12 {
                    let t = of_objects(strided, &random.places(4));
                    let (ours, judge) = (engine.commit(&t).unwrap(), definition.commit(&t).unwrap());
                    moves_right(&ours, &judge, &user, &name);
                }
                let c = engine.counters();
                assert_eq!((c.compiles, c.fallbacks, c.refusals), (24, 0, 0), "{name}");
                assert_eq!(c.emitted, 2, "{name}: code of a direction for all places");
            }
        }
    }
}

/// Tests that rows of a matrix are not treated as separate objects, although the rows are far
/// apart. The distances between rows are constants in the machine code, which makes the code a
/// little faster. So two row lengths, each in both directions, need four pieces of code.
#[test]
fn rows_of_a_matrix_keep_their_code() {
    let engine = Engine::new(Config { mode: Mode::Commit, both_directions: true, ..Config::default() });
    for columns in [20_000, 30_000] {
        let t: Datatype = format!("vector(4,1,{columns},double)").parse().unwrap();
        engine.commit(&t).unwrap();
    }
    assert_eq!(engine.counters().emitted, 4);
}

/// Tests that bytes that one type of absolute addresses has moved count towards the lazy threshold
/// of the next type, which lists the same objects at other addresses. So if a program allocates its
/// objects anew for each message, the later types are compiled at their first use.
#[test]
fn what_moved_elsewhere_counts() {
    let engine = Engine::new(Config { mode: Mode::Lazy, lazy_threshold: 1000, ..Config::default() });
    let (mut random, user) = (Random(7), memory(2));
    let mut packed = [0; 64];
    let mut compiled = |random: &mut Random| {
        let t = engine.commit(&of_objects(false, &random.places(4))).unwrap();
        t.pack(&user, 0, 1, &mut packed).unwrap();
        t.settled(Direction::Pack, 0)
    };
    // The threshold is 1000 bytes. Each instance has 36 packed bytes, so 27 calls move 972 bytes,
    // and none of them reaches the threshold.
    let first: Vec<bool> = (0..27).map(|_| compiled(&mut random)).collect();
    assert!(first.iter().all(|settled| !settled), "{first:?}");
    let later: Vec<bool> = (0..20).map(|_| compiled(&mut random)).collect();
    assert!(later.iter().all(|settled| *settled), "{later:?}");
    assert_eq!(engine.counters().emitted, 1);
    // This type has a strided member, so its count of moved bytes is separate from that of the
    // types before. It has not reached the threshold.
    let t = engine.commit(&of_objects(true, &random.places(4))).unwrap();
    assert!(!t.settled(Direction::Pack, 100));
    // Types with the same members at other addresses have equal `near_hash` values. An equal value
    // means that what is recorded for one type also holds for the other.
    let hash =
        |random: &mut Random| engine.commit(&of_objects(false, &random.places(4))).unwrap().near_hash();
    let (one, other) = (hash(&mut random), hash(&mut random));
    assert_eq!(one, other);
    assert_ne!(one, t.near_hash());
}
