//! Similarity classes: types of the same combiner and kind of use, and of approximately the same
//! size and extent. The types of a class that were freed show what to expect from the next types of
//! the class.
//!
//! Programs that make new types for every step (lists of particles, boundaries of a moving mesh)
//! make few types that are equal to an earlier one. Each type moves too few bytes for decoding,
//! timing and compiling to pay for that type alone. So five facts are kept of each class: how many
//! bytes its types move until they are freed, how many arguments their constructors have, whether
//! conversions gain time, how many types were decoded in vain, and whether layouts are new.
//!
//! All facts but the last are written to the profile cache ([`profile_cache`]), so that the next
//! run of the program begins with them. A class only decides when a type is decoded, and whether a
//! message is converted whose own layout was not timed. Bytes are always moved by the type's own
//! kernel.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ddtc::internal::datatype::contents::CombinerKind;
use ddtc::internal::process::{Awaited, Once};
use ddtc_hosts::profile::Costs;

use crate::host::{HandleWord, Host};
use crate::measured::{CLASSES, Measured};
use crate::profile_cache::{self, Row};
use crate::relative::ADDRESSES;
use crate::slots::spread;
use crate::times::Times;
use crate::use_kind::UseKind;
use crate::worth::CONSTRUCTOR;

/// Maximum number of similarity classes. Types that get no class are judged by their own uses.
const MAX_CLASSES: usize = 256;
/// Number of successive slots of [`ALL`] in which a class may be. The hash of the class selects the
/// first of them. If each class had only one slot, and there were 70 classes, one class in eight
/// would find its slot taken.
const PROBES: usize = 8;

/// All similarity classes. A class is allocated when it is first needed. If the classes themselves
/// were static, they would take space in the library's file, because the initial values of some of
/// their fields are not 0.
static ALL: [Once<Box<SimilarityClass>>; MAX_CLASSES] = [const { Once::new() }; MAX_CLASSES];

/// Facts about the freed types of a combiner. New classes of the combiner start from these facts.
/// ScaLAPACK's LU makes types of twenty classes and uses each type once or twice. If each class had
/// to learn that by itself, one type or more of each would be decoded in vain, and decoding takes
/// 10 to 60 us in a program that computes between its messages (Emerald Rapids).
struct Combiner {
    /// Running mean of the uses of one instance of a type, in units of 1 / [`ONE_USE`]; 0: no type
    /// was freed.
    uses: AtomicU64,
    /// As [`SimilarityClass::vain`], for all types of the combiner.
    vain: AtomicU64,
}

/// Facts about each combiner, by its number.
static COMBINERS: [Combiner; 1 << 8] =
    [const { Combiner { uses: AtomicU64::new(0), vain: AtomicU64::new(0) } }; 1 << 8];
/// One use of one instance in [`Combiner::uses`].
const ONE_USE: u64 = 16;

/// Class of similar types, with statistics about its types.
pub(crate) struct SimilarityClass {
    key: u64,
    /// Measured times of layouts of the class.
    pub(crate) measured: Measured,
    /// Maximum number of arguments that all constructors of one type of the class have together, as
    /// far as it is known. Each constructor counts as [`CONSTRUCTOR`] additional arguments.
    arguments: AtomicU64,
    /// Number of blocks in an instance, if the types have a list-like combiner (indexed, indexed
    /// block or struct); 0 for other combiners.
    blocks: u64,
    /// Running mean of the bytes that a type of the class moves until it is freed. Until a type
    /// that has moved bytes is freed, the mean follows from [`Combiner::uses`] as they were when
    /// the class was made; 0 if nothing was known then.
    mean: AtomicU64,
    /// Number of types that were decoded in vain, because they were freed before they were compiled
    /// for any direction. Counts from the last decoded type that was freed after it was compiled,
    /// and starts from [`Combiner::vain`].
    vain: AtomicU64,
    /// True if the type of the class that was decoded last had a layout that was not compiled yet.
    makes_new: AtomicBool,
}

/// Expectation of what a conversion of a message gains, from the similarity class of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gain {
    /// The gain is not known, because no type of the class was timed, or because some types of the
    /// class gain and others do not.
    Unknown,
    /// A conversion is expected to save this number of nanoseconds.
    Nanos(u64),
    /// A conversion is expected to save no time.
    Nothing,
}

/// Returns the similarity class of a type that the MPI library has accepted as committed. `size`:
/// bytes of an instance. `used`: the kind of the use at hand. Returns `None` if all slots for the
/// class are taken, or if the MPI library does not return the envelope or the extent of the type.
pub(crate) fn class(
    host: &Host,
    datatype: HandleWord,
    size: i64,
    used: UseKind,
) -> Option<&'static SimilarityClass> {
    // SAFETY: `host` has the functions of the MPI library of this process, which has accepted the
    // type as committed, and the program holds the type during this call.
    let envelope = unsafe { host.queries(host.abi?).envelope(datatype) }.ok()?;
    let (combiner, arguments) = (envelope.combiner, envelope.arguments());
    let (size, extent) = (size.unsigned_abs(), extent(host, datatype)?);
    let key = key([combiner as u64, log(size), log(extent), shape(combiner, size, arguments), used as u64]);
    find(&ALL, key, || {
        let class = SimilarityClass {
            blocks: blocks(combiner, arguments),
            ..SimilarityClass::new(key, CONSTRUCTOR.saturating_add(arguments))
        };
        class.start(size);
        class.deserialize(&host.profile.costs, &profile_cache::times_of(host, kept_as(key)));
        class
    })
}

/// Returns the absolute value of a type's extent in bytes, as the MPI library reports it. Returns 0
/// for types whose displacements are absolute addresses, because their extent depends on where the
/// program's objects lie.
fn extent(host: &Host, datatype: HandleWord) -> Option<u64> {
    let (mut lb, mut extent) = (0isize, 0isize);
    // SAFETY: the MPI library has accepted the type as committed, the program holds the type, and
    // both numbers may be written.
    let code = unsafe { host.f.type_extent?(datatype, &raw mut lb, &raw mut extent) };
    let is_absolute = lb as i64 >= ADDRESSES;
    (code == 0).then(|| if is_absolute { 0 } else { (extent as i64).unsigned_abs() })
}

fn log(n: u64) -> u64 {
    u64::from(n.max(1).ilog2())
}

/// Returns the part of a key that describes the arguments of the type's constructor. In general
/// this is the binary logarithm of the number of bytes for each argument. For structures of few
/// members it is the number of arguments itself, with a bit set that no logarithm has. The number
/// of members of a structure is usually fixed in the source of the program, so it distinguishes
/// structures. For example, LAMMPS_full receives 6 arrays, and WRF_x receives as many bytes from 9
/// subarrays.
fn shape(combiner: CombinerKind, size: u64, arguments: u64) -> u64 {
    const OF_MEMBERS: u64 = 1 << 7;
    match combiner {
        CombinerKind::Struct if arguments < OF_MEMBERS => OF_MEMBERS | arguments,
        _ => log(size / arguments.max(1)),
    }
}

/// Number of bits of a [`key`]: a leading 1 and five words of 8 bits.
const KEY_BITS: u32 = 41;

/// Returns the key of a class, which is never 0. `words`: combiner, logarithms of size and extent,
/// [`shape`] and kind of use, each less than 256.
fn key(words: [u64; 5]) -> u64 {
    words.into_iter().fold(1, |key, word| key << 8 | word)
}

/// Returns the class of a key. If there is no class of that key, makes it with `new`, unless all
/// slots for the class are taken.
fn find(
    all: &'static [Once<Box<SimilarityClass>>; MAX_CLASSES],
    key: u64,
    new: impl FnOnce() -> SimilarityClass,
) -> Option<&'static SimilarityClass> {
    let first = spread(key, 64 - MAX_CLASSES.ilog2());
    let slots = || (0..PROBES).map(|n| (first + n) % MAX_CLASSES);
    let known = slots().map_while(|at| all[at].get()).find(|class| class.key == key).map(Box::as_ref);
    if known.is_some() || slots().all(|at| all[at].get().is_some()) {
        return known;
    }
    // The class is made before any slot is locked, because `new` may read a file.
    let mut new = Some(Box::new(new()));
    let mut make =
        |at: usize| all[at].get_or_init(|| new.take().unwrap_or_else(|| SimilarityClass::new(key, 0).into()));
    slots().map(&mut make).find(|class| class.key == key).map(Box::as_ref)
}

/// Returns the rows of all similarity classes for the profile cache.
pub(crate) fn serialized() -> Vec<Row> {
    let rows = ALL.iter().filter_map(Once::get).flat_map(|class| class.serialize());
    rows.map(|(key, at, times)| (kept_as(key), at, times)).collect()
}

/// Returns the key under which a class is stored in the profile cache. It also contains a hash of
/// the program's path, because the program decides how long types are used.
fn kept_as(key: u64) -> u64 {
    static PROGRAM: Awaited<u64> = Awaited::new();
    let program = PROGRAM.get_or_init(|| {
        let mut hash = DefaultHasher::new();
        std::env::current_exe().unwrap_or_default().hash(&mut hash);
        hash.finish()
    });
    program << KEY_BITS | key
}

/// Returns the number of blocks of a type with a list-like combiner (indexed, indexed block or
/// struct) whose constructor has `arguments` arguments; 0 for other combiners.
fn blocks(combiner: CombinerKind, arguments: u64) -> u64 {
    use CombinerKind as C;
    match combiner {
        C::IndexedBlock | C::HindexedBlock => arguments,
        C::Indexed | C::Hindexed | C::HindexedInteger => arguments / 2,
        C::Struct | C::StructInteger => arguments / 3,
        _ => 0,
    }
}

impl SimilarityClass {
    const fn new(key: u64, arguments: u64) -> SimilarityClass {
        SimilarityClass {
            key,
            measured: Measured::new(0),
            arguments: AtomicU64::new(arguments),
            blocks: 0,
            mean: AtomicU64::new(0),
            vain: AtomicU64::new(0),
            makes_new: AtomicBool::new(false),
        }
    }

    /// Takes over what is known of the class's combiner, for types with instances of `size` bytes.
    fn start(&self, size: u64) {
        let Combiner { uses, vain } = self.combiner();
        self.mean.store(size.saturating_mul(uses.load(Relaxed)) / ONE_USE, Relaxed);
        self.vain.store(vain.load(Relaxed), Relaxed);
    }

    /// Returns the rows of this class for the profile cache: a row with the times of each size
    /// class, and one further row, whose number [`CLASSES`] no size class has. The further row has
    /// the number of arguments in place of the bytes. In place of the three times it has the number
    /// of types decoded in vain, the mean and the runs.
    fn serialize(&self) -> Vec<Row> {
        let saturated = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let (runs, mut rows) = self.measured.serialize();
        let mean = self.mean();
        if mean > 0 || !rows.is_empty() {
            let [bytes, host, ours, copy] = [self.arguments(), self.vain(), mean, runs].map(saturated);
            rows.push((CLASSES, Times { bytes, host, ours, copy }));
        }
        rows.into_iter().map(|(at, times)| (self.key, at, times)).collect()
    }

    /// Takes over the rows that an earlier run of the program has written for this class to the
    /// profile cache.
    fn deserialize(&self, costs: &Costs, rows: &[(usize, Times)]) {
        let Some((_, last)) = rows.iter().find(|(at, _)| *at == CLASSES) else { return };
        self.arguments.fetch_max(last.bytes.into(), Relaxed);
        self.vain.store(last.host.into(), Relaxed);
        self.mean.store(last.ours.into(), Relaxed);
        self.measured.deserialize(costs, last.copy.into(), rows.iter().copied());
    }

    /// Returns the expected gain of converting a message of `bytes` bytes. `moves_inside`: compiled
    /// code may move messages inside the MPI library.
    ///
    /// Some messages must be converted by both ranks or by neither. The gain of these messages is
    /// computed from the runs of the layout alone, because the measured times of the two ranks
    /// differ.
    pub(crate) fn gain(&self, costs: &Costs, bytes: u64, moves_inside: bool) -> Gain {
        if let Some(nanos) = self.measured.gain_on_both_ranks(costs, bytes) {
            return if nanos > 0 { Gain::Nanos(nanos) } else { Gain::Nothing };
        }
        if !self.measured.is_decided(bytes) {
            return Gain::Unknown;
        }
        // Inside the MPI library nothing is staged. So compiled code there saves more time than a
        // conversion with staging, and may save time even if staging gains nothing.
        let inside = self.measured.gain_inside(bytes).filter(|_| moves_inside);
        self.measured.saves(bytes).max(inside).map_or(Gain::Nothing, Gain::Nanos)
    }

    /// Returns the number of blocks of `count` instances, if the types of the class have a
    /// list-like combiner; otherwise 0.
    pub(crate) fn blocks(&self, count: u64) -> u64 {
        self.blocks.saturating_mul(count)
    }

    /// Returns the maximum number of arguments that all constructors of one type of the class have
    /// together, as far as it is known.
    pub(crate) fn arguments(&self) -> u64 {
        self.arguments.load(Relaxed)
    }

    /// Returns the mean number of bytes that a type of the class moves until it is freed. Until a
    /// type of the class is freed, this is an estimate from the combiner; 0 if nothing is known.
    pub(crate) fn mean(&self) -> u64 {
        self.mean.load(Relaxed)
    }

    /// Records that a type of the class was decoded. `is_new`: its layout was not compiled yet.
    pub(crate) fn decoded(&self, is_new: bool) {
        self.makes_new.store(is_new, Relaxed);
    }

    /// Returns true if the type of the class that was decoded last had a layout that was not
    /// compiled yet.
    pub(crate) fn makes_new_layouts(&self) -> bool {
        self.makes_new.load(Relaxed)
    }

    /// Records that a type of the class was not decoded, because its constructors have at least
    /// `arguments` arguments together.
    pub(crate) fn costs_more(&self, arguments: u64) {
        self.arguments.fetch_max(arguments, Relaxed);
    }

    /// Records that a decoded type of the class was freed after it had moved `moved` bytes, with
    /// instances of `size` bytes. `is_converted`: the type was compiled for at least one direction,
    /// so buffers of it could be converted.
    pub(crate) fn decoded_ended(&self, moved: u64, size: u64, is_converted: bool) {
        for vain in [&self.vain, &self.combiner().vain] {
            vain.store(if is_converted { 0 } else { vain.load(Relaxed) + 1 }, Relaxed);
        }
        self.ended(moved, size);
    }

    /// Returns the number of types that were decoded in vain since a decoded type was compiled and
    /// freed: types of the class, and those that were counted for its combiner before.
    pub(crate) fn vain(&self) -> u64 {
        self.vain.load(Relaxed)
    }

    /// Records that a type of the class was freed after it had moved `moved` bytes, with instances
    /// of `size` bytes. A type that has moved no bytes does not change the means.
    pub(crate) fn ended(&self, moved: u64, size: u64) {
        if moved > 0 {
            add_to_mean(&self.mean, moved);
            add_to_mean(&self.combiner().uses, moved.saturating_mul(ONE_USE) / size.max(1));
        }
    }

    /// Returns the facts about the class's combiner, whose number is part of the [`key`].
    fn combiner(&self) -> &'static Combiner {
        &COMBINERS[(self.key >> 32) as usize & (COMBINERS.len() - 1)]
    }
}

/// Adds a number to a running mean, with a weight of a quarter. If two threads add at once, only
/// one number may count.
fn add_to_mean(mean: &AtomicU64, n: u64) {
    let mean_now = match mean.load(Relaxed) {
        0 => n,
        mean => mean - mean / 4 + n / 4,
    };
    mean.store(mean_now, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::Runs;
    use ddtc_hosts::profile;

    const COSTS: &Costs = &profile::INTEL.costs;
    const SLOW: Times = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };

    #[test]
    fn classes_do_not_take_each_others_slots() {
        static TABLE: [Once<Box<SimilarityClass>>; MAX_CLASSES] = [const { Once::new() }; MAX_CLASSES];
        let of =
            |key: u64| find(&TABLE, key, || SimilarityClass::new(key, 1)).filter(|class| class.key == key);
        let keys = || (0..MAX_CLASSES as u64 / 2).map(|n| (1 << 32) | (n << 8) | (n % 7));
        let found: Vec<_> = keys().map(of).collect();
        assert!(found.iter().flatten().count() * 100 >= found.len() * 99);
        for (key, before) in keys().zip(found) {
            assert_eq!(of(key).map(std::ptr::from_ref), before.map(std::ptr::from_ref));
        }
    }

    #[test]
    fn a_later_run_begins_with_what_an_earlier_one_found() {
        let of = key([1, 11, 11, 1, 1]);
        let class = SimilarityClass::new(of, 800);
        assert_eq!(class.serialize(), vec![]);
        assert_eq!(kept_as(of) & ((1 << KEY_BITS) - 1), of);
        assert!(key([255; 5]) < 1 << KEY_BITS && kept_as(of) != of);
        let later = |class: &SimilarityClass| {
            let rows = class.serialize();
            assert!(rows.iter().all(|&(key, ..)| key == of));
            let later = SimilarityClass::new(of, 60);
            later.deserialize(COSTS, &rows.iter().map(|&(_, at, times)| (at, times)).collect::<Vec<_>>());
            later
        };
        class.decoded_ended(8000, 4000, false);
        let second = later(&class);
        assert_eq!(second.serialize(), class.serialize());
        assert_eq!((second.mean(), second.arguments(), second.vain()), (8000, 800, 1));
        // Converting messages of one size class is found to gain time, and converting messages of
        // another to gain nothing.
        second.measured.learn_bytes(COSTS, 4000, SLOW);
        second.measured.learn_bytes(COSTS, 40_000, Times { bytes: 40_000, ours: 8900, ..SLOW });
        let third = later(&second);
        assert_eq!(third.serialize().len(), 3);
        assert_eq!(
            [400, 40_000].map(|bytes| third.gain(COSTS, bytes, false)),
            [Gain::Unknown, Gain::Nothing]
        );
        assert_eq!(third.gain(COSTS, 4000, false), second.gain(COSTS, 4000, false));
        assert!(matches!(third.gain(COSTS, 4000, false), Gain::Nanos(7000..9000)));
    }

    #[test]
    fn the_mean_follows_the_types_that_end() {
        let class = SimilarityClass::new(1, 800);
        class.ended(0, 8000);
        assert_eq!(class.mean(), 0);
        class.ended(80_000, 8000);
        assert_eq!(class.mean(), 80_000);
        (0..30).for_each(|_| class.ended(8000, 8000));
        assert!((8000..8100).contains(&class.mean()), "{}", class.mean());
    }

    #[test]
    fn types_that_are_decoded_in_vain_are_counted_until_one_is_converted() {
        let class = SimilarityClass::new(1, 800);
        class.decoded(true);
        assert_eq!((class.gain(COSTS, 4000, false), class.makes_new_layouts()), (Gain::Unknown, true));
        (0..3).for_each(|_| class.decoded_ended(4000, 4000, false));
        assert_eq!((class.vain(), class.mean()), (3, 4000));
        class.decoded_ended(4000, 4000, true);
        assert_eq!(class.vain(), 0);
    }

    #[test]
    fn a_class_starts_from_its_combiner() {
        // No other test has a class of this combiner.
        let of = |size: u64| {
            let key = key([200, log(size), log(size), 1, 1]);
            SimilarityClass::new(key, 54)
        };
        let first = of(30_000);
        first.start(30_000);
        assert_eq!((first.mean(), first.vain()), (0, 0));
        first.decoded_ended(30_000, 30_000, false);
        let second = of(500);
        second.start(500);
        assert_eq!((second.mean(), second.vain()), (500, 1));
        // Facts about types that are used twice, and about one type that was converted.
        (0..20).for_each(|_| second.ended(1000, 500));
        second.decoded_ended(1000, 500, true);
        let third = of(8000);
        third.start(8000);
        assert!((14_000..=16_000).contains(&third.mean()) && third.vain() == 0, "{}", third.mean());
    }

    #[test]
    fn structures_are_alike_by_their_members() {
        use CombinerKind as C;
        let of = |combiner, arguments| shape(combiner, 143_552, arguments);
        // A structure of 6 members has 19 arguments, and a structure of 9 members has 28. The
        // logarithm of the bytes for each argument is equal for both. So only the number of
        // arguments distinguishes them. It does not distinguish indexed types or structures of many
        // members.
        assert!(of(C::Struct, 19) != of(C::Struct, 28) && of(C::Indexed, 19) == of(C::Indexed, 28));
        assert_eq!(of(C::Struct, 1000), of(C::Indexed, 1000));
        assert!((0..1000).all(|n| of(C::Struct, n) < 256));
    }

    #[test]
    fn messages_of_both_ranks_are_judged_by_their_runs() {
        // The runs of the first class are those of a vector. Those of the second class are the runs
        // of DDTBench's NAS_MG_x (messages of 1 MiB), which lie under two loops.
        let class = |runs: Runs| {
            let class = SimilarityClass::new(1, 28);
            class.measured.deserialize(&profile::MPICH.costs, runs.word(), []);
            class
        };
        let vector = class(Runs::new(12, false, 600).under_one_loop());
        assert_eq!(vector.gain(&profile::MPICH.costs, 173_712, false), Gain::Nanos(14_476 * 14));
        let mg = class(Runs::new(8, false, 1040));
        assert_eq!(mg.gain(&profile::MPICH.costs, 1 << 20, false), Gain::Nothing);
        let times = Times { bytes: 1 << 20, host: 900_000, ours: 1000, copy: 100 };
        mg.measured.learn_bytes(&profile::MPICH.costs, 1 << 20, times);
        assert_eq!(mg.gain(&profile::MPICH.costs, 1 << 20, false), Gain::Nothing);
    }

    #[test]
    fn messages_that_move_inside_save_more() {
        // Times of SPECFEM3D_cm under Open MPI, which gains little if its messages are staged.
        let times = Times { bytes: 106_248, host: 31_334, ours: 9542, copy: 2677 };
        let costs = &profile::OPEN_MPI.costs;
        let class = SimilarityClass::new(1, 17_700);
        class.measured.deserialize(costs, Runs::new(12, true, 600).word(), []);
        class.measured.learn_bytes(costs, 106_248, times);
        assert_eq!(class.gain(costs, 106_248, true), Gain::Nanos(31_334 - 9542));
        let staged = class.gain(costs, 106_248, false);
        assert!(matches!(staged, Gain::Nanos(..5000)), "{staged:?}");
    }

    #[test]
    fn lists_have_blocks() {
        use CombinerKind as C;
        let of = [C::HindexedBlock, C::Indexed, C::Struct, C::Subarray].map(|c| blocks(c, 600));
        assert_eq!(of, [600, 300, 200, 0]);
        let class = SimilarityClass { blocks: 600, ..SimilarityClass::new(1, 800) };
        assert_eq!(class.blocks(3), 1800);
    }
}
