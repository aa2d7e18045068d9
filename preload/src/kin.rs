//! Types that are alike: of one combiner, about as large, spread as far, with as many bytes an argument, sent or received alike.
//!
//! Programs that make types anew for every message or step (lists of particles, boundaries of a mesh that moves) make few that are equal to an earlier one. Each is used too
//! little to be decoded, timed and compiled for what it alone has moved. What the ones before it took, gained and moved until they ended says what the next one
//! will: so the first are looked at once all of them together have cost enough, and later ones at their second use, where that pays.
//!
//! That is kept for the next run of the program, beside the times of layouts ([`remembered`]): one that gains nothing decodes less and less.
//!
//! Nothing hangs on kinship but the moment of decoding and a verdict that is a guess anyway: which way a message goes. Bytes are moved by the type's own kernel.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::datatype::contents::CombinerKind;
use ddtc::process::{Awaited, Once};
use ddtc_hosts::profile::Costs;

use crate::evidence::{CLASSES, Evidence};
use crate::host::{HandleWord, Host};
use crate::remembered::{self, Row};
use crate::slots::spread;
use crate::times::Times;
use crate::use_kind::UseKind;

/// Kins that are told apart; types of others have none.
const KINS: usize = 256;
/// Places of each: with one only, one of eight would have none where there are 70.
const PLACES: usize = 8;
/// Messages of the least size that a kin's types have, at most, where they are used a few times.
const FEW: u64 = 8;
/// Messages that a type must be likely to move still if nothing but that is known of it.
const SOME: u64 = 4;
/// How often a kin is looked at in vain before it is left alone.
const PROBES: u64 = 6;

/// Each in memory of its own, when there is one: what is not made yet is no zeros, so places for all of them would lie in the library's file.
static ALL: [Once<Box<Kin>>; KINS] = [const { Once::new() }; KINS];

/// Holds what may go into a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pays {
    /// Nanoseconds of decoding and compiling it.
    pub(crate) nanos: u64,
    /// Arguments of its constructors.
    pub(crate) arguments: u64,
    /// Says whether what its kin gained makes up for that twice: it is spent then, whatever was spent before.
    pub(crate) is_sure: bool,
}

/// Holds what is known of types that are alike.
pub(crate) struct Kin {
    key: u64,
    /// Times of those that were timed.
    pub(crate) evidence: Evidence,
    /// Nanoseconds that uses of types that are not decoded have cost the host since one was looked at.
    spent: AtomicU64,
    /// How often one was looked at before any was timed.
    probes: AtomicU64,
    /// Arguments of the constructors of one, as far as they are known.
    arguments: AtomicU64,
    /// Blocks of a list, each of which costs the host beside its bytes; 0 for other combiners.
    blocks: u64,
    /// Bytes that one moves until it ends, a running mean; 0: none has ended.
    lived: AtomicU64,
    /// Types that were decoded, and the nanoseconds that went into decoding and compiling them.
    decoded: AtomicU64,
    took: AtomicU64,
}

/// Returns the kin of a type that the host has accepted as committed, of that size and extent in bytes, and so used. `constructor`: arguments that each constructor costs as much as,
/// beside its own.
pub(crate) fn of(
    host: &Host,
    datatype: HandleWord,
    size: i64,
    extent: i64,
    used: UseKind,
    constructor: u64,
) -> Option<&'static Kin> {
    // SAFETY: the host's functions, and a type that the program holds.
    let envelope = unsafe { host.queries(host.abi?).envelope(datatype) }.ok()?;
    let arguments = envelope.arguments();
    let size = size.unsigned_abs();
    let words = [
        envelope.combiner as u64,
        log(size),
        log(extent.unsigned_abs()),
        arguments_of(envelope.combiner, size, arguments),
        used as u64,
    ];
    let key = key(words);
    find(&ALL, key, || {
        let blocks = blocks(envelope.combiner, arguments);
        let kin = Kin { blocks, ..Kin::new(key, constructor.saturating_add(arguments)) };
        kin.hear(&host.profile.costs, &remembered::of(host, kept_as(key)));
        kin
    })
}

fn log(n: u64) -> u64 {
    u64::from(n.max(1).ilog2())
}

/// What a key says of a type's arguments: the logarithm of bytes an argument. Of structures of few members their very number, beyond all logarithms: a program writes it down
/// where it makes them, and has another one for what it fills otherwise (LAMMPS_full receives 6 arrays, WRF_x as many bytes from 9 subarrays).
fn arguments_of(combiner: CombinerKind, size: u64, arguments: u64) -> u64 {
    const OF_MEMBERS: u64 = 1 << 7;
    match combiner {
        CombinerKind::Struct if arguments < OF_MEMBERS => OF_MEMBERS | arguments,
        _ => log(size / arguments.max(1)),
    }
}

/// Bits of a [`key`].
const KEY_BITS: u32 = 41;

/// A key, never 0: combiner, logarithms of size and extent, [`arguments_of`], and the kind of use.
fn key(words: [u64; 5]) -> u64 {
    words.into_iter().fold(1, |key, word| key << 8 | word)
}

/// The kin of a key, made if there is room for it.
fn find(all: &'static [Once<Box<Kin>>; KINS], key: u64, new: impl FnOnce() -> Kin) -> Option<&'static Kin> {
    let first = spread(key, 64 - KINS.ilog2());
    let places = || (0..PLACES).map(|n| (first + n) % KINS);
    let known = places().map_while(|at| all[at].get()).find(|kin| kin.key == key).map(Box::as_ref);
    if known.is_some() || places().all(|at| all[at].get().is_some()) {
        return known;
    }
    // Not where others wait for it: a file may be read.
    let mut new = Some(Box::new(new()));
    let mut make = |at: usize| all[at].get_or_init(|| new.take().unwrap_or_else(|| Kin::new(key, 0).into()));
    places().map(&mut make).find(|kin| kin.key == key).map(Box::as_ref)
}

/// Returns what later runs may know of all kins.
pub(crate) fn all() -> Vec<Row> {
    let told = ALL.iter().filter_map(Once::get).flat_map(|kin| kin.told());
    told.map(|(key, at, times)| (kept_as(key), at, times)).collect()
}

/// The key of a kin among what is kept, with the program: how long types are used is a matter of that.
fn kept_as(key: u64) -> u64 {
    static PROGRAM: Awaited<u64> = Awaited::new();
    let program = PROGRAM.get_or_init(|| {
        let mut hash = DefaultHasher::new();
        std::env::current_exe().unwrap_or_default().hash(&mut hash);
        hash.finish()
    });
    program << KEY_BITS | key
}

/// Blocks of a list of so many arguments.
fn blocks(combiner: CombinerKind, arguments: u64) -> u64 {
    use CombinerKind as C;
    match combiner {
        C::IndexedBlock | C::HindexedBlock => arguments,
        C::Indexed | C::Hindexed | C::HindexedInteger => arguments / 2,
        C::Struct | C::StructInteger => arguments / 3,
        _ => 0,
    }
}

impl Kin {
    const fn new(key: u64, arguments: u64) -> Kin {
        Kin {
            key,
            evidence: Evidence::new(0),
            spent: AtomicU64::new(0),
            probes: AtomicU64::new(0),
            arguments: AtomicU64::new(arguments),
            blocks: 0,
            lived: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
            took: AtomicU64::new(0),
        }
    }

    /// The logarithm of its types' size.
    fn log_size(&self) -> u32 {
        u32::from(self.key.to_be_bytes()[4])
    }

    /// What later runs may know: the times of its size classes; and behind the last one, in the places of bytes and times, how often it was looked at, the
    /// nanoseconds that decoding one takes, the bytes that one moves, and its runs.
    fn told(&self) -> Vec<Row> {
        let least = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let (runs, mut rows) = self.evidence.told();
        let [bytes, host, ours, copy] =
            [self.probes.load(Relaxed), self.takes().unwrap_or(0), self.lived.load(Relaxed), runs].map(least);
        if bytes > 0 || !rows.is_empty() {
            rows.push((CLASSES, Times { bytes, host, ours, copy }));
        }
        rows.into_iter().map(|(at, times)| (self.key, at, times)).collect()
    }

    /// Learns what an earlier run has told.
    fn hear(&self, costs: &Costs, rows: &[(usize, Times)]) {
        let Some((_, last)) = rows.iter().find(|(at, _)| *at == CLASSES) else { return };
        let [probes, takes, lived, runs] = [last.bytes, last.host, last.ours, last.copy].map(u64::from);
        self.lived.store(lived, Relaxed);
        // What is used for longer may have been looked at in vain because it was not used long enough in one run: each tries anew.
        if lived < FEW << self.log_size() {
            self.probes.store(probes, Relaxed);
            self.took.store(takes, Relaxed);
            self.decoded.store(u64::from(takes > 0), Relaxed);
        }
        self.evidence.hear(costs, runs, rows.iter().copied());
    }

    /// A use of a type that is not decoded and has moved `moved` bytes before, of a message of `bytes`, which cost the host `nanos` at least. `decoding`: the nanoseconds
    /// of a decoding of so many arguments. Returns what may go into it now, if that pays.
    pub(crate) fn used(
        &self,
        costs: &Costs,
        bytes: u64,
        moved: u64,
        nanos: u64,
        decoding: impl Fn(u64) -> u64,
    ) -> Option<Pays> {
        // Threads may lose one another's: nothing but a moment hangs on it.
        let all = self.spent.load(Relaxed).saturating_add(nanos);
        self.spent.store(all, Relaxed);
        let arguments = self.arguments();
        let nanos = self.takes().unwrap_or_else(|| decoding(arguments).saturating_mul(4));
        let pays = Pays { nanos, arguments: arguments.saturating_mul(2), is_sure: false };
        if self.evidence.is_decided(bytes) {
            let one = self.stake(costs, bytes, moved)?;
            if self.makes_up(one, bytes, moved, nanos) {
                return Some(Pays { is_sure: true, ..pays });
            }
            // The next ones may be of the layout of this one, which is then known.
            if !self.goes_on(bytes, moved) {
                return None;
            }
        }
        let probes = self.probes.load(Relaxed);
        if probes >= PROBES || all < nanos.saturating_mul(1 << probes) {
            return None;
        }
        self.probes.store(probes + 1, Relaxed);
        self.spent.store(0, Relaxed);
        Some(pays)
    }

    /// Says whether what a type saves which has moved `moved` bytes is twice so many nanoseconds, if it moves as much as its kin did.
    pub(crate) fn promises(&self, bytes: u64, moved: u64, nanos: u64) -> bool {
        self.at_stake(bytes, moved).is_some_and(|one| self.makes_up(one, bytes, moved, nanos))
    }

    /// What conversions of its messages save, or, of a type that goes on, all that is at stake: of one that ends nobody converts any.
    fn at_stake(&self, bytes: u64, moved: u64) -> Option<u64> {
        if self.goes_on(bytes, moved) { self.evidence.stake(bytes) } else { self.evidence.saves(bytes) }
    }

    /// As [`Kin::promises`], of a type of which a message saves `one` nanoseconds.
    fn makes_up(&self, one: u64, bytes: u64, moved: u64, nanos: u64) -> bool {
        u128::from(one) * u128::from(self.left(moved)) / u128::from(bytes.max(1)) >= 2 * u128::from(nanos)
    }

    /// Returns the nanoseconds at stake with a message of so many bytes, if one was timed and that gains.
    fn stake(&self, costs: &Costs, bytes: u64, moved: u64) -> Option<u64> {
        self.at_stake(bytes, moved).or_else(|| {
            // Inside the host, where nothing is staged.
            let ahead = costs.moves_inside && self.evidence.is_ahead(bytes);
            self.evidence.spares(bytes).filter(|_| ahead)
        })
    }

    /// Says whether one was timed with messages of so many bytes, and gains nothing.
    pub(crate) fn is_poor(&self, costs: &Costs, bytes: u64) -> bool {
        self.evidence.is_decided(bytes) && self.stake(costs, bytes, 0).is_none()
    }

    /// Returns how many times its cost a type must have cost the host to be decoded whatever its kin promise, which has moved `moved` bytes before this message:
    /// many if they gain nothing, or end about here and were looked at in vain or have shown what they gain by then.
    pub(crate) fn patience(&self, costs: &Costs, bytes: u64, moved: u64) -> u64 {
        let is_decided = self.evidence.is_decided(bytes);
        let tries = match self.lived.load(Relaxed) {
            _ if self.is_poor(costs, bytes) => PROBES,
            _ if self.goes_on(bytes, moved) => 0,
            0 if is_decided => 0,
            _ if is_decided => PROBES,
            _ => self.probes.load(Relaxed).min(PROBES),
        };
        1 << tries
    }

    /// Says whether a type that has moved so much before this message is likely to move a quarter of all that still, and some messages: decoding costs half of what
    /// its uses have cost, and a conversion may take away nearly all that the others will.
    fn goes_on(&self, bytes: u64, moved: u64) -> bool {
        let now = moved.saturating_add(bytes);
        self.lived.load(Relaxed).saturating_sub(now) >= (now / 4).max(bytes.saturating_mul(SOME))
    }

    /// One is looked at that has paid for it by itself.
    pub(crate) fn looked(&self, bytes: u64) {
        let probes = self.probes.load(Relaxed);
        if probes < PROBES && !self.evidence.is_decided(bytes) {
            self.probes.store(probes + 1, Relaxed);
        }
    }

    /// Returns the blocks of `count` instances, if they are lists.
    pub(crate) fn blocks(&self, count: u64) -> u64 {
        self.blocks.saturating_mul(count)
    }

    /// Returns the arguments of the constructors of one, as far as they are known.
    pub(crate) fn arguments(&self) -> u64 {
        self.arguments.load(Relaxed)
    }

    /// Bytes that a type will move still, which has moved so many: what its kin did, or as many again.
    fn left(&self, moved: u64) -> u64 {
        self.lived.load(Relaxed).saturating_sub(moved).max(moved)
    }

    /// Nanoseconds that decoding and compiling a type takes; `None`: none was decoded.
    fn takes(&self) -> Option<u64> {
        self.took.load(Relaxed).checked_div(self.decoded.load(Relaxed))
    }

    /// One was decoded, in so many nanoseconds.
    pub(crate) fn decoded(&self, nanos: u64) {
        self.decoded.fetch_add(1, Relaxed);
        self.compiled(nanos);
    }

    /// One was compiled, in so many nanoseconds.
    pub(crate) fn compiled(&self, nanos: u64) {
        self.took.fetch_add(nanos, Relaxed);
    }

    /// One was not decoded, since it has so many arguments at least.
    pub(crate) fn costs_more(&self, arguments: u64) {
        self.arguments.fetch_max(arguments, Relaxed);
        // That was none.
        let _ = self.probes.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
    }

    /// A type has ended that moved so many bytes; one that moved none tells nothing.
    pub(crate) fn ended(&self, moved: u64) {
        let lived = match self.lived.load(Relaxed) {
            _ if moved == 0 => return,
            0 => moved,
            // Of threads that meet here one counts.
            lived => lived - lived / 4 + moved / 4,
        };
        self.lived.store(lived, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::{Runs, Times};
    use ddtc_hosts::profile;

    const COSTS: &Costs = &profile::INTEL.costs;
    const SLOW: Times = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };

    /// 20 messages of 4000 bytes, which cost the host 1200 ns each: the use that it is decoded at, of a decoding of 10 us.
    fn one(kin: &Kin) -> Option<u64> {
        let at = (0..20).find(|n| kin.used(COSTS, 4000, n * 4000, 1200, |_| 2500).is_some());
        kin.ended(80_000);
        at
    }

    #[test]
    fn the_first_pay_together_and_later_ones_for_themselves() {
        let kin = Kin::new(1, 800);
        // 10 us are 9 messages; the next time it must be twice as much, and then four times.
        assert_eq!((one(&kin), one(&kin), one(&kin), one(&kin)), (Some(8), Some(16), None, Some(13)));
        assert!(!kin.is_poor(COSTS, 4000));
        kin.evidence.learn_bytes(COSTS, 4000, SLOW);
        assert_eq!((one(&kin), kin.is_poor(COSTS, 4000)), (Some(0), false));
        assert!(kin.used(COSTS, 4000, 0, 1200, |_| 2500).is_some_and(|pays| pays.is_sure));
        // 7000 ns of each of twenty messages.
        assert_eq!([30_000, 60_000, 80_000].map(|nanos| kin.promises(4000, 0, nanos)), [true, true, false]);
        assert!(!kin.promises(40_000, 0, 1));
        // What its kin take is measured as they are decoded: half of that is more than what 20 messages save.
        kin.decoded(70_000);
        kin.compiled(10_000);
        assert_eq!((kin.takes(), one(&kin)), (Some(80_000), None));
    }

    #[test]
    fn kins_do_not_take_each_others_place() {
        static FEW: [Once<Box<Kin>>; KINS] = [const { Once::new() }; KINS];
        let of = |key: u64| find(&FEW, key, || Kin::new(key, 1)).filter(|kin| kin.key == key);
        let keys = || (0..KINS as u64 / 2).map(|n| (1 << 32) | (n << 8) | (n % 7));
        let found: Vec<_> = keys().map(of).collect();
        assert!(found.iter().flatten().count() * 100 >= found.len() * 99);
        for (key, before) in keys().zip(found) {
            assert_eq!(of(key).map(std::ptr::from_ref), before.map(std::ptr::from_ref));
        }
    }

    #[test]
    fn a_later_run_begins_with_what_an_earlier_one_found() {
        // Of 4000 bytes.
        let of = key([1, 11, 11, 1, 1]);
        let kin = Kin::new(of, 800);
        assert_eq!((kin.log_size(), kin.told()), (11, vec![]));
        assert_eq!(kept_as(of) & ((1 << KEY_BITS) - 1), of);
        assert!(key([255; 5]) < 1 << KEY_BITS && kept_as(of) != of);
        let later = |kin: &Kin| {
            let rows: Vec<_> =
                kin.told().into_iter().map(|(key, at, times)| (at, times, key == of)).collect();
            assert!(rows.iter().all(|&(.., own)| own));
            let later = Kin::new(of, 800);
            later.hear(COSTS, &rows.iter().map(|&(at, times, _)| (at, times)).collect::<Vec<_>>());
            later
        };
        // Looked at in vain and ended with the second message: the next run waits twice as long.
        kin.looked(4000);
        kin.decoded(70_000);
        kin.ended(8000);
        let second = later(&kin);
        assert_eq!(second.told(), kin.told());
        assert_eq!((second.takes(), second.left(0), second.probes.load(Relaxed)), (Some(70_000), 8000, 1));
        assert_eq!([0, 4000].map(|moved| second.patience(COSTS, 4000, moved)), [2, 2]);
        // Those that are used for longer are looked at anew.
        (0..20).for_each(|_| second.ended(80_000));
        let long = later(&second);
        assert_eq!((long.takes(), long.probes.load(Relaxed)), (None, 0));
        assert_eq!(long.left(0), second.left(0));
        // Found to gain, or nothing.
        second.evidence.learn_bytes(COSTS, 4000, SLOW);
        second.evidence.learn_bytes(COSTS, 40_000, Times { bytes: 40_000, ours: 8900, ..SLOW });
        let third = later(&second);
        assert_eq!(third.told().len(), 3);
        assert!(!third.is_poor(COSTS, 4000) && third.is_poor(COSTS, 40_000) && !third.is_poor(COSTS, 400));
        assert_eq!(third.stake(COSTS, 4000, 0), second.stake(COSTS, 4000, 0));
    }

    #[test]
    fn a_type_waits_where_its_kin_speak_against_it() {
        let kin = Kin::new(1, 800);
        let patience = |moved| kin.patience(COSTS, 4000, moved);
        assert_eq!(patience(0), 1);
        (0..8).for_each(|_| kin.looked(4000));
        assert_eq!(patience(0), 64);
        // They end with the twentieth message.
        kin.ended(80_000);
        let all = || [patience(0), patience(60_000), patience(64_000), patience(1 << 30)];
        assert_eq!(all(), [1, 1, 64, 64]);
        kin.evidence.learn_bytes(COSTS, 4000, SLOW);
        assert_eq!(all(), [1, 1, 64, 64]);
        let kin = Kin::new(1, 800);
        kin.evidence.learn_bytes(COSTS, 4000, SLOW);
        assert_eq!(kin.patience(COSTS, 4000, 1 << 30), 1);
        let kin = Kin::new(1, 800);
        kin.evidence.learn_bytes(COSTS, 4000, Times { ours: 8900, ..SLOW });
        assert_eq!(kin.patience(COSTS, 4000, 0), 64);
    }

    #[test]
    fn structures_are_alike_by_their_members() {
        use CombinerKind as C;
        let of = |combiner, arguments| arguments_of(combiner, 143_552, arguments);
        // 6 and 9 members, of as many bytes an argument by their logarithms; lists may be of any length.
        assert!(of(C::Struct, 19) != of(C::Struct, 28) && of(C::Indexed, 19) == of(C::Indexed, 28));
        assert_eq!(of(C::Struct, 1000), of(C::Indexed, 1000));
        assert!((0..1000).all(|n| of(C::Struct, n) < 256));
    }

    #[test]
    fn what_one_rank_alone_would_lose_pays_for_a_type() {
        // WRF_x of 174 KB, which is sent fourteen times: MPI_Pack is no faster than the kernel.
        let times = Times { bytes: 173_712, host: 42_249, ours: 41_758, copy: 7133 };
        let kin = Kin::new(1, 28);
        kin.evidence.hear(&profile::MPICH.costs, Runs::new(12, false, 600).word(), [(17, times)]);
        kin.ended(2_433_093);
        let saved = kin.evidence.saves(173_712).unwrap();
        assert!(!kin.makes_up(saved, 173_712, 173_712, 105_000) && kin.promises(173_712, 173_712, 105_000));
        // Not of one that ends with its second message.
        (0..30).for_each(|_| kin.ended(2 * 173_712));
        assert!(!kin.promises(173_712, 173_712, 20_000));
    }

    #[test]
    fn lists_have_blocks() {
        use CombinerKind as C;
        let of = [C::HindexedBlock, C::Indexed, C::Struct, C::Subarray].map(|c| blocks(c, 600));
        assert_eq!(of, [600, 300, 200, 0]);
        assert_eq!((Kin { blocks: 600, ..Kin::new(1, 800) }).blocks(3), 1800);
    }

    #[test]
    fn a_type_that_is_used_once_is_not_decoded() {
        let kin = Kin::new(1, 800);
        kin.evidence.learn_bytes(COSTS, 4000, SLOW);
        (0..20).for_each(|_| kin.ended(4000));
        assert_eq!(kin.used(COSTS, 4000, 0, 1200, |_| 2500), None);
        // Unless it goes on: as long again as it did so far.
        assert!(kin.used(COSTS, 4000, 12_000, 1200, |_| 2500).is_some());
    }

    #[test]
    fn what_gains_nothing_is_left_alone() {
        let kin = Kin::new(1, 800);
        kin.evidence.learn_bytes(COSTS, 4000, Times { ours: 8900, ..SLOW });
        assert!((0..1000).all(|_| kin.used(COSTS, 4000, 1 << 30, 1 << 20, |_| 2500).is_none()));
        assert!(kin.is_poor(COSTS, 4000) && !kin.is_poor(COSTS, 9000));
        // And what is never timed is not looked at forever.
        let kin = Kin::new(1, 800);
        let looked = (0..10_000).filter(|_| kin.used(COSTS, 4000, 0, 1 << 20, |_| 2500).is_some());
        assert_eq!(looked.count() as u64, PROBES);
    }
}
