//! Evidence for a layout: how long the host takes to pack it, and our kernel, on the program's own buffer.
//!
//! A table that must gain on every machine leaves most of what there is to gain. What a message of this layout gains here shows when the host's `MPI_Pack` and
//! our kernel pack the same elements: the host moves bytes by the same loops in both, and what its protocols add is known (docs/records/performance.md,
//! "Evidence"). So once the messages of a layout and size class have moved enough to pay for it, both are timed, and the class is converted where ours gains
//! beyond the cost of staging. Until then those decide that are alike ([`crate::kin`]), and without them the table.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::process::{Lazy, Mutex};
use ddtc_hosts::policy::Policy;
use ddtc_hosts::profile::Costs;

use crate::decision::Verdict;
use crate::host::Host;
use crate::remembered;
use crate::times::{LATER, PART, Runs, Times};
use crate::use_kind::CompletedBy;

/// Times as many bytes as are packed for it that a class moves before it is timed.
const WORTH: u64 = 8;
/// Times as many bytes where the layouts that are alike say what gains.
const KIN: u64 = 16;
/// Size classes: powers of two, the last without end.
pub(crate) const CLASSES: usize = 40;
/// Layouts of which evidence is kept; the table decides for others.
const MOST: usize = 2048;

/// Times and verdict of a size class.
struct Class {
    /// Bytes that were moved before it was timed.
    moved: AtomicU64,
    bytes: AtomicU32,
    host: AtomicU32,
    ours: AtomicU32,
    copy: AtomicU32,
    /// Nanoseconds that a conversion saves by the times alone, and those at stake.
    saves: AtomicU32,
    stake: AtomicU32,
}

impl Class {
    const fn new() -> Class {
        Class {
            moved: AtomicU64::new(0),
            bytes: AtomicU32::new(0),
            host: AtomicU32::new(0),
            ours: AtomicU32::new(0),
            copy: AtomicU32::new(0),
            saves: AtomicU32::new(0),
            stake: AtomicU32::new(0),
        }
    }
}

/// Times and verdicts of a layout. Lives forever: one for each layout, not each type.
pub(crate) struct Evidence {
    /// Its runs, by [`Runs::word`]; of no bytes where that is not known yet.
    runs: AtomicU64,
    /// Evidence of layouts that are alike, where it has none of its own.
    kin: Option<&'static Evidence>,
    /// Size classes that were timed, a bit each.
    timed: AtomicU64,
    /// Those where a conversion gains by the times alone.
    gains: AtomicU64,
    /// Those where our kernel is no faster than the host: whatever a table says, they are the host's.
    loses: AtomicU64,
    /// Those of which layouts that are alike say both.
    mixed: AtomicU64,
    classes: [Class; CLASSES],
}

static KNOWN: Lazy<Mutex<HashMap<u64, &'static Evidence>>> = Lazy::new(Mutex::default);

/// Returns the evidence for the layout of that hash, of such runs: that of its kin where too many layouts have some.
pub(crate) fn of(
    host: &Host,
    key: u64,
    runs: Runs,
    kin: Option<&'static Evidence>,
) -> Option<&'static Evidence> {
    if let Some(evidence) = known(key) {
        return Some(evidence);
    }
    // Not under the lock: a file may be read.
    let learnt = remembered::of(host, key);
    let mut known = KNOWN.lock();
    if known.len() >= MOST && !known.contains_key(&key) {
        if let Some(kin) = kin {
            let _ = kin.runs.compare_exchange(0, runs.word(), Relaxed, Relaxed);
        }
        return kin;
    }
    let new = || Box::leak(Box::new(Evidence { kin, ..Evidence::new(runs.word()) }));
    let evidence: &'static Evidence = known.entry(key).or_insert_with(|| new());
    for (class, times) in learnt {
        evidence.learn(&host.profile.costs, class, times);
    }
    Some(evidence)
}

/// Returns the evidence of a layout, if there is some.
pub(crate) fn known(layout: u64) -> Option<&'static Evidence> {
    KNOWN.lock().get(&layout).copied()
}

/// Returns all evidence of this process: layout, size class and times.
pub(crate) fn all() -> Vec<(u64, usize, Times)> {
    let known = KNOWN.lock();
    let of = |(&key, evidence): (&u64, &&'static Evidence)| {
        let evidence: &'static Evidence = evidence;
        evidence.timed().map(move |(class, times)| (key, class, times))
    };
    known.iter().flat_map(of).collect()
}

/// The size class of a number of bytes.
#[inline]
fn class(bytes: u64) -> usize {
    (bytes.max(1).ilog2() as usize).min(CLASSES - 1)
}

impl Evidence {
    /// Of runs by [`Runs::word`].
    pub(crate) const fn new(runs: u64) -> Evidence {
        Evidence {
            runs: AtomicU64::new(runs),
            kin: None,
            timed: AtomicU64::new(0),
            gains: AtomicU64::new(0),
            loses: AtomicU64::new(0),
            mixed: AtomicU64::new(0),
            classes: [const { Class::new() }; CLASSES],
        }
    }

    /// What decides about messages of so many bytes: it or its kin, if the class was timed; then the class's bit. `None`: the table.
    #[inline]
    fn decider(&self, bytes: u64) -> Option<(&Evidence, u64)> {
        let bit = 1u64 << class(bytes);
        let timed = |e: &&Evidence| e.timed.load(Relaxed) & bit != 0 && e.mixed.load(Relaxed) & bit == 0;
        Some(self).filter(timed).or_else(|| self.kin().filter(timed)).map(|e| (e, bit))
    }

    fn runs(&self) -> Runs {
        Runs::from_word(self.runs.load(Relaxed))
    }

    /// Evidence of layouts that are alike, in their runs too.
    #[inline]
    fn kin(&self) -> Option<&'static Evidence> {
        self.kin.filter(|kin| self.runs().are_like(kin.runs()))
    }

    /// Says whether messages of so many bytes were timed, its own or those of its kin.
    #[inline]
    pub(crate) fn is_decided(&self, bytes: u64) -> bool {
        self.decider(bytes).is_some()
    }

    /// Says whether messages of so many bytes were timed of its own: no more are.
    pub(crate) fn is_timed(&self, bytes: u64) -> bool {
        self.timed.load(Relaxed) >> class(bytes) & 1 != 0
    }

    /// Size classes, a bit each, of which its kin gain by a conversion and its own were not timed.
    pub(crate) fn hoped(&self) -> u64 {
        let gains = self.kin().map_or(0, |kin| kin.gains.load(Relaxed) & !kin.mixed.load(Relaxed));
        gains & !self.timed.load(Relaxed)
    }

    /// Returns what the times say about messages of so many bytes, if they were taken: those of the layout, or
    /// of the layouts that are alike.
    #[inline]
    pub(crate) fn verdict(&self, bytes: u64, by: CompletedBy) -> Option<Verdict> {
        let (e, bit) = self.decider(bytes)?;
        let gains = match by {
            CompletedBy::SameCall => e.gains.load(Relaxed) & bit != 0,
            CompletedBy::LaterCall => self.saves(bytes).is_some_and(|saves| saves >= LATER),
        };
        Some(Verdict { gains, loses: e.loses.load(Relaxed) & bit != 0 })
    }

    /// Returns what the layout says about messages of so many bytes, if both ranks must decide them alike: no
    /// rank may go by its own times.
    #[inline]
    pub(crate) fn verdict_of_both(&self, costs: &Costs, bytes: u64) -> Option<Verdict> {
        let gains = self.runs().gain_on_both_ranks(costs, bytes)?;
        Some(Verdict { gains, loses: !gains })
    }

    /// Says whether messages of so many bytes are converted; `table` says whether the policy has them.
    pub(crate) fn wants(&self, bytes: u64, by: CompletedBy, table: bool) -> bool {
        self.verdict(bytes, by).map_or(table, |verdict| verdict.wants(table))
    }

    /// Says whether messages of any size are converted, as far as is known; a table has the payloads `table`.
    pub(crate) fn hopeful(&self, table: u64) -> bool {
        let timed = self.timed().chain(self.kin().into_iter().flat_map(Evidence::timed));
        timed
            .into_iter()
            .any(|(at, _)| self.wants(1 << at, CompletedBy::SameCall, Policy::has(table, 1 << at)))
    }

    /// Says whether nothing of it was timed, nor of its kin.
    pub(crate) fn is_new(&self) -> bool {
        self.timed.load(Relaxed) == 0 && self.kin().is_none_or(Evidence::is_new)
    }

    /// Counts a message; whether its class has moved enough to be timed before it, or that of its kin. `least`: bytes that a class moves at least.
    #[inline]
    pub(crate) fn due(&self, bytes: u64, least: u64) -> bool {
        if self.is_timed(bytes) {
            return false;
        }
        let (kin, decided) = (self.kin(), self.is_decided(bytes));
        // Where its kin decide there is little to learn.
        let own = self.has_moved(bytes, if decided { least.saturating_mul(KIN) } else { least });
        own || !decided && kin.is_some_and(|kin| kin.has_moved(bytes, least))
    }

    /// Counts a message; whether its class has moved enough.
    fn has_moved(&self, bytes: u64, least: u64) -> bool {
        let before = self.classes[class(bytes)].moved.fetch_add(bytes, Relaxed);
        let worth = if least == 0 { 0 } else { least.max(WORTH * bytes.min(PART)) };
        before.saturating_add(bytes) >= worth
    }

    /// A class that cannot be timed: the table decides from now on.
    pub(crate) fn give_up(&self, bytes: u64) {
        self.timed.fetch_or(1 << class(bytes), Relaxed);
    }

    /// The times of a class are known from now on.
    fn learn(&self, costs: &Costs, at: usize, times: Times) {
        let (Some(class), bit) = (self.classes.get(at), 1u64 << at.min(CLASSES - 1)) else { return };
        class.bytes.store(times.bytes, Relaxed);
        class.host.store(times.host, Relaxed);
        class.ours.store(times.ours, Relaxed);
        class.copy.store(times.copy, Relaxed);
        let runs = self.runs();
        class.saves.store(times.saves(costs, 1 << at, runs), Relaxed);
        class.stake.store(times.stake(costs, 1 << at, runs), Relaxed);
        let gains = times.gains(costs, 1 << at, runs);
        if gains {
            self.gains.fetch_or(bit, Relaxed);
        }
        if times.loses(costs, 1 << at, runs) {
            self.loses.fetch_or(bit, Relaxed);
        }
        self.timed.fetch_or(bit, Relaxed);
        if let Some(kin) = self.kin {
            if kin.timed.load(Relaxed) & bit == 0 {
                // What it says of one kind of runs is not taken for another's.
                if runs.are_like(kin.runs()) {
                    kin.runs.store(runs.word(), Relaxed);
                    kin.learn(costs, at, times);
                }
            } else if (kin.gains.load(Relaxed) & bit != 0) != gains {
                kin.mixed.fetch_or(bit, Relaxed);
            }
        }
    }

    /// Returns the nanoseconds that converting a message of so many bytes saves, if its class was found to gain.
    #[inline]
    pub(crate) fn saves(&self, bytes: u64) -> Option<u64> {
        self.gained(bytes, |class| &class.saves)
    }

    /// As [`Evidence::saves`], the nanoseconds at stake ([`Times::stake`]).
    pub(crate) fn stake(&self, bytes: u64) -> Option<u64> {
        self.gained(bytes, |class| &class.stake)
    }

    /// Returns what a class says of its least message, for one of so many bytes.
    #[inline]
    fn gained(&self, bytes: u64, of: impl FnOnce(&Class) -> &AtomicU32) -> Option<u64> {
        let (e, bit) = self.decider(bytes)?;
        let gains = e.gains.load(Relaxed) & bit != 0;
        let at = class(bytes);
        gains.then(|| u64::from(of(&e.classes[at]).load(Relaxed)).saturating_mul(bytes) >> at)
    }

    /// Returns the nanoseconds that our kernel is faster than the host's packing for a message of so many bytes, if its class was timed: what is saved where nothing is
    /// staged.
    #[inline]
    pub(crate) fn spares(&self, bytes: u64) -> Option<u64> {
        let [part, ours, host] = self.both(bytes)?;
        Some(host.saturating_sub(ours).saturating_mul(bytes) / part)
    }

    /// Says whether our kernel was found to pack messages of so many bytes in four fifths of the host's time or less.
    #[inline]
    pub(crate) fn is_ahead(&self, bytes: u64) -> bool {
        self.both(bytes).is_some_and(|[_, ours, host]| ours * 5 < host * 4)
    }

    /// Says whether our kernel was found to be about as slow as the host in packing messages of so many bytes: nine tenths of its time and more.
    #[inline]
    pub(crate) fn is_even(&self, bytes: u64) -> bool {
        self.both(bytes).is_some_and(|[_, ours, host]| ours * 10 >= host * 9)
    }

    /// Returns the bytes of a part of such a message, and the nanoseconds that packing it took our kernel and the host.
    #[inline]
    fn both(&self, bytes: u64) -> Option<[u64; 3]> {
        let class = &self.decider(bytes)?.0.classes[class(bytes)];
        let [part, ours, host] = [&class.bytes, &class.ours, &class.host].map(|n| u64::from(n.load(Relaxed)));
        (part > 0).then_some([part, ours, host])
    }

    /// The times of messages of so many bytes are known from now on.
    pub(crate) fn learn_bytes(&self, costs: &Costs, bytes: u64, times: Times) {
        self.learn(costs, class(bytes), times);
    }

    /// Size classes and their times, of those that could be timed.
    fn timed(&self) -> impl Iterator<Item = (usize, Times)> {
        self.decided().filter(|(_, times)| times.bytes > 0)
    }

    /// Size classes that nobody times any more, and their times, of no bytes where there are none.
    fn decided(&self) -> impl Iterator<Item = (usize, Times)> {
        let timed = self.timed.load(Relaxed);
        let classes = self.classes.iter().enumerate().filter(move |(at, _)| timed >> at & 1 != 0);
        classes.map(|(at, class)| {
            let [bytes, host, ours, copy] =
                [&class.bytes, &class.host, &class.ours, &class.copy].map(|n| n.load(Relaxed));
            (at, Times { bytes, host, ours, copy })
        })
    }

    /// Returns what a later run may know of layouts that are alike: their runs by [`Runs::word`], size classes, and their times, of no bytes where they say both.
    pub(crate) fn told(&self) -> (u64, Vec<(usize, Times)>) {
        let mixed = self.mixed.load(Relaxed);
        let is_mixed = |at: usize| mixed >> at & 1 != 0;
        let told =
            self.decided().map(|(at, times)| (at, if is_mixed(at) { Times::default() } else { times }));
        let rows = told.filter(|&(at, times)| is_mixed(at) || times.bytes > 0).collect();
        (self.runs.load(Relaxed), rows)
    }

    /// Learns what an earlier run has told.
    pub(crate) fn hear(&self, costs: &Costs, runs: u64, rows: impl IntoIterator<Item = (usize, Times)>) {
        self.runs.store(runs, Relaxed);
        for (at, times) in rows.into_iter().filter(|&(at, _)| at < CLASSES) {
            if times.bytes == 0 {
                self.mixed.fetch_or(1 << at, Relaxed);
                self.timed.fetch_or(1 << at, Relaxed);
            } else {
                self.learn(costs, at, times);
            }
        }
    }

    /// Returns a line for each class that was timed, for the report; `table`: payloads that the table has.
    pub(crate) fn lines(&self, table: u64) -> Vec<String> {
        use CompletedBy::{LaterCall, SameCall};
        let timed = self.timed().map(|(at, Times { bytes, host, ours, copy })| {
            let from = 1u64 << at;
            let table = Policy::has(table, from);
            let verdict = match [SameCall, LaterCall].map(|by| self.wants(from, by, table)) {
                [true, true] => "converted",
                [true, false] => "converted if one call begins and completes them",
                [false, _] => "bypassed",
            };
            format!(
                "messages from {from} B: {verdict}; {bytes} B take the MPI library {host} ns, ddtc {ours} ns, \
                 a copy {copy} ns"
            )
        });
        let hoped = self.hoped();
        let hoped = (0..CLASSES).map(|at| 1u64 << at).filter(|bit| hoped & bit != 0);
        let alike = hoped.map(|from| format!("messages from {from} B: converted, as those of similar types"));
        timed.chain(alike).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CompletedBy::{LaterCall, SameCall};
    use ddtc_hosts::profile;

    #[test]
    fn layouts_that_are_alike_speak_for_each_other() {
        let kin: &'static Evidence = Box::leak(Box::new(Evidence::new(0)));
        let new = || Evidence { kin: Some(kin), ..Evidence::new(4) };
        let [one, other, third] = [new(), new(), new()];
        // Their messages count together until one was timed, and each for itself.
        let due = |e: &Evidence, n: u64| (0..n).filter(|_| e.due(4096, 80 << 10)).count();
        assert_eq!((due(&one, 15), due(&other, 4), due(&third, 1)), (0, 0, 1));
        assert!(one.is_new() && one.hoped() == 0 && !one.wants(4096, SameCall, false));
        let slow = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };
        one.learn_bytes(&profile::INTEL.costs, 4096, slow);
        assert!(
            !other.is_new()
                && other.hoped() == 4096
                && other.wants(4096, SameCall, false)
                && other.hopeful(0)
        );
        assert!(one.hoped() == 0 && !other.wants(8192, SameCall, false));
        assert_eq!((other.saves(4096), other.spares(4096)), (one.saves(4096), Some(8100)));
        assert_eq!((due(&other, 315), due(&other, 1)), (0, 1));
        // What one says of its own stands; that both are true says nothing of a third.
        other.learn_bytes(&profile::INTEL.costs, 4096, Times { ours: 9000, ..slow });
        assert!(!other.wants(4096, SameCall, false) && one.wants(4096, SameCall, false));
        assert!(
            third.hoped() == 0 && third.wants(4096, SameCall, true) && !third.wants(4096, SameCall, false)
        );
    }

    #[test]
    fn layouts_of_other_runs_do_not_speak_for_each_other() {
        let kin: &'static Evidence = Box::leak(Box::new(Evidence::new(0)));
        let of = |run| Evidence { kin: Some(kin), ..Evidence::new(run) };
        // What LAMMPS_full receives, six arrays; WRF_x is of as many bytes.
        of(23_925).learn_bytes(
            &profile::MPICH.costs,
            143_552,
            Times { bytes: 143_552, host: 3666, ours: 3286, copy: 3055 },
        );
        let decided = [12, 16_384, 0].map(|run| of(run).is_decided(173_712));
        assert_eq!(decided, [false, true, true]);
        // Nor do they teach what is known of the others.
        of(12).learn_bytes(
            &profile::MPICH.costs,
            16_384,
            Times { bytes: 16_384, host: 9000, ours: 900, copy: 400 },
        );
        assert!(!kin.is_decided(16_384) && kin.runs() == Runs::new(23_925, false, 600));
    }

    #[test]
    fn layouts_that_are_alike_speak_to_later_runs() {
        let slow = Times { bytes: 16384, host: 9000, ours: 900, copy: 100 };
        let kin: &'static Evidence = Box::leak(Box::new(Evidence::new(0)));
        let one = Evidence { kin: Some(kin), ..Evidence::new(4) };
        one.learn_bytes(&profile::MPICH.costs, 16384, slow);
        let little = Times { bytes: 1024, ..slow };
        one.learn_bytes(&profile::MPICH.costs, 1024, little);
        let other = Evidence { kin: Some(kin), ..Evidence::new(4) };
        other.learn_bytes(&profile::MPICH.costs, 1024, Times { ours: 9000, ..little });
        kin.give_up(2 << 20);
        let (runs, told) = kin.told();
        assert_eq!((runs, &told[..]), (4, &[(10, Times::default()), (14, slow)][..]));
        let later = Evidence::new(0);
        later.hear(&profile::MPICH.costs, runs, told.iter().copied().chain([(CLASSES, slow)]));
        let verdicts = |e: &Evidence| {
            [1024, 16384, 2 << 20].map(|n| (e.is_decided(n), e.wants(n, SameCall, false), e.saves(n)))
        };
        assert_eq!(verdicts(&later)[..2], verdicts(kin)[..2]);
        assert!(!later.is_decided(1024) && later.wants(16384, SameCall, false));
        assert_eq!(later.told(), (runs, told));
    }

    #[test]
    fn a_class_is_timed_once_and_then_believed() {
        let evidence = Evidence::new(64);
        let due = |bytes, n: u64| (0..n).filter(|_| evidence.due(bytes, 80 << 10)).count();
        assert_eq!((due(4096, 19), due(4096, 3)), (0, 3));
        // 8 of what is packed, and another class for itself.
        assert_eq!((due(64 << 10, 7), due(64 << 10, 1), due(2 << 20, 1)), (0, 1, 1));
        evidence.give_up(2 << 20);
        assert!(
            due(2 << 20, 9) == 0
                && evidence.wants(2 << 20, SameCall, true)
                && !evidence.wants(2 << 20, SameCall, false)
        );
        assert!(evidence.wants(5000, SameCall, true) && !evidence.wants(5000, SameCall, false));
        let slow = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };
        evidence.learn_bytes(&profile::INTEL.costs, 5000, slow);
        assert!(
            evidence.wants(4096, SameCall, false)
                && !evidence.verdict(4096, SameCall).is_some_and(|v| v.loses)
                && !evidence.wants(8192, SameCall, false)
        );
        assert_eq!((evidence.spares(8000), evidence.spares(8192)), (Some(8100 * 8000 / 4096), None));
        assert!(evidence.is_ahead(5000) && !evidence.is_ahead(8192));
        // One that could not be timed, and one that was not, say nothing.
        assert!([5000, 8192, 2 << 20].map(|bytes| evidence.is_even(bytes)) == [false; 3]);
        let slow = Times { bytes: 8192, host: 9000, ours: 9000, copy: 100 };
        evidence.learn_bytes(&profile::MPICH.costs, 8192, slow);
        // What a later call completes must save more.
        let little = Times { bytes: 480, host: 160, ours: 10, copy: 10 };
        evidence.learn_bytes(&profile::MPICH.costs, 480, little);
        assert!(
            evidence.wants(480, SameCall, false)
                && !evidence.wants(480, LaterCall, false)
                && evidence.wants(480, LaterCall, true)
        );
        assert!(evidence.wants(4096, LaterCall, false) && evidence.wants(100, LaterCall, true));
        assert!(
            !evidence.wants(8192, SameCall, true)
                && evidence.verdict(8192, SameCall).is_some_and(|v| v.loses)
                && !evidence.is_ahead(8192)
        );
        assert!(evidence.is_even(8192));
        let fast = Times { bytes: 16384, host: 900, ours: 900, copy: 100 };
        evidence.learn_bytes(&profile::INTEL.costs, 16384, fast);
        assert!(evidence.wants(16384, SameCall, true) && !evidence.wants(16384, SameCall, false));
        assert_eq!(due(8192, 1000), 0);
        // First uses, for whoever asks for that.
        assert!(Evidence::new(64).due(8, 0));
    }
}
