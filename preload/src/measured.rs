//! Measured times of a layout: how long the MPI library and our kernel take to pack
//! it, on the program's own buffer.
//!
//! A policy table that must gain on every machine leaves much of the possible gain unused. How much
//! a conversion of messages of a layout gains on this machine shows if the `MPI_Pack` of the MPI
//! library and our kernel pack the same elements: the library moves bytes by the same loops in
//! `MPI_Pack` and in messages, and the times that its protocols add are known
//! (docs/records/performance.md, "Evidence"). So once the messages of a layout and size class have
//! moved enough bytes to pay for the timing, both sides are timed. From then on messages of this
//! layout and class are converted if our kernel gains more than staging costs, or if the policy
//! table wants them and our kernel was not found to be as slow as the MPI library. Until then the
//! measured times of the similarity class decide ([`crate::similar`]), and if there are none, the
//! policy table alone. Messages about which both ranks must decide alike are decided by the
//! layout's runs, not by times ([`Measured::verdict_of_both`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::process::{Lazy, Mutex};
use ddtc_hosts::policy::Policy;
use ddtc_hosts::profile::Costs;

use crate::decision::Verdict;
use crate::host::Host;
use crate::profile_cache;
use crate::times::{LATER, PART, Runs, Times};
use crate::use_kind::CompletedBy;

/// Minimum number of bytes that a size class must have moved before it is timed, in multiples of
/// the bytes that are packed to time it: those of one message, at most [`PART`].
const WORTH: u64 = 8;
/// Factor by which a layout must have moved more bytes than otherwise before it is timed, if its
/// similarity class decides already about messages of this size.
const KIN: u64 = 16;
/// Number of size classes. Class `n` has messages of 2^n to 2^(n+1) - 1 bytes. The last class has
/// no upper bound.
pub(crate) const CLASSES: usize = 40;
/// Maximum number of layouts of which times are kept. For others the similarity class decides, or
/// the policy table.
const MOST: usize = 2048;

/// Measured times of a size class.
struct Class {
    /// Bytes that messages have moved before the class was timed.
    moved: AtomicU64,
    bytes: AtomicU32,
    host: AtomicU32,
    ours: AtomicU32,
    copy: AtomicU32,
    /// Nanoseconds that a conversion of the shortest message of the class saves, by
    /// [`Times::saves`].
    saves: AtomicU32,
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
        }
    }
}

/// Measured times of a layout, or of a similarity class, and the verdicts that follow from them. A
/// value of this type is never freed. Types of equal layouts share one value, and so do layouts
/// that differ only in distances of 64 KiB and more.
pub(crate) struct Measured {
    /// Runs of the layout, as [`Runs::word`] makes them. Their length is 0 while the runs are not
    /// known.
    runs: AtomicU64,
    /// Times of the similarity class, which decide about size classes for which the layout has none
    /// of its own. `None` in the times of a similarity class.
    kin: Option<&'static Measured>,
    /// Size classes that are not timed any more, one bit for each: those that were timed, and those
    /// that could not be timed.
    timed: AtomicU64,
    /// Timed size classes for which a conversion gains, by [`Times::gains`] and without regard to
    /// the policy table.
    gains: AtomicU64,
    /// Timed size classes for which our kernel is no faster than the MPI library, or for which the
    /// layout alone decides against a conversion ([`Times::loses`]). Their messages are bypassed
    /// even if the policy table wants them, unless their bit in `gains` is set too.
    loses: AtomicU64,
    /// Size classes for which some layouts of the similarity class gain and others do not. For them
    /// the times of the class decide nothing.
    mixed: AtomicU64,
    classes: [Class; CLASSES],
}

static KNOWN: Lazy<Mutex<HashMap<u64, &'static Measured>>> = Lazy::new(Mutex::default);

/// Returns the times of the layout with the hash `key` and these runs. If the layout has none yet,
/// makes them, with the times of earlier runs from the profile cache. If [`MOST`] other layouts
/// have times, returns `kin`, the times of the similarity class.
pub(crate) fn of(
    host: &Host,
    key: u64,
    runs: Runs,
    kin: Option<&'static Measured>,
) -> Option<&'static Measured> {
    if let Some(measured) = known(key) {
        return Some(measured);
    }
    // The profile cache is asked before the lock is taken, because it may read a file.
    let learnt = profile_cache::of(host, key);
    if let Some(kin) = kin {
        let _ = kin.runs.compare_exchange(0, runs.word(), Relaxed, Relaxed);
    }
    let mut known = KNOWN.lock();
    if known.len() >= MOST && !known.contains_key(&key) {
        return kin;
    }
    let new = || Box::leak(Box::new(Measured { kin, ..Measured::new(runs.word()) }));
    let measured: &'static Measured = known.entry(key).or_insert_with(|| new());
    for (class, times) in learnt {
        measured.learn(&host.profile.costs, class, times);
    }
    Some(measured)
}

/// Returns the times of the layout with this hash, if some are kept.
pub(crate) fn known(layout: u64) -> Option<&'static Measured> {
    KNOWN.lock().get(&layout).copied()
}

/// Returns all measured times of this process, each with the hash of its layout and its size class.
pub(crate) fn all() -> Vec<(u64, usize, Times)> {
    let known = KNOWN.lock();
    let of = |(&key, measured): (&u64, &&'static Measured)| {
        let measured: &'static Measured = measured;
        measured.timed().map(move |(class, times)| (key, class, times))
    };
    known.iter().flat_map(of).collect()
}

/// Returns the size class of a message of `bytes` bytes.
#[inline]
fn class(bytes: u64) -> usize {
    (bytes.max(1).ilog2() as usize).min(CLASSES - 1)
}

impl Measured {
    /// Returns a value without times for a layout with these runs, as [`Runs::word`] makes them. 0:
    /// the runs are not known.
    pub(crate) const fn new(runs: u64) -> Measured {
        Measured {
            runs: AtomicU64::new(runs),
            kin: None,
            timed: AtomicU64::new(0),
            gains: AtomicU64::new(0),
            loses: AtomicU64::new(0),
            mixed: AtomicU64::new(0),
            classes: [const { Class::new() }; CLASSES],
        }
    }

    /// Returns the times that decide about messages of `bytes` bytes, and the bit of their size
    /// class: the layout's own times if the size class was timed or could not be timed, else those
    /// of the similarity class, unless its layouts disagree. `None`: the policy table decides.
    #[inline]
    fn decider(&self, bytes: u64) -> Option<(&Measured, u64)> {
        let bit = 1u64 << class(bytes);
        let timed = |e: &&Measured| e.timed.load(Relaxed) & bit != 0 && e.mixed.load(Relaxed) & bit == 0;
        Some(self).filter(timed).or_else(|| self.kin().filter(timed)).map(|e| (e, bit))
    }

    fn runs(&self) -> Runs {
        Runs::from_word(self.runs.load(Relaxed))
    }

    /// Returns the times of the similarity class, if its runs are like those of the layout too.
    #[inline]
    fn kin(&self) -> Option<&'static Measured> {
        self.kin.filter(|kin| self.runs().are_like(kin.runs()))
    }

    /// Returns true if messages of `bytes` bytes were timed for this layout or for its similarity
    /// class, or if they could not be timed.
    #[inline]
    pub(crate) fn is_decided(&self, bytes: u64) -> bool {
        self.decider(bytes).is_some()
    }

    /// Returns true if messages of `bytes` bytes of the layout itself are not timed any more,
    /// because they were timed or could not be.
    pub(crate) fn is_timed(&self, bytes: u64) -> bool {
        self.timed.load(Relaxed) >> class(bytes) & 1 != 0
    }

    /// Returns the size classes, one bit for each, for which a conversion gains according to the
    /// similarity class and which were not timed for the layout itself. Size classes about which
    /// the layouts of the similarity class disagree are not among them.
    pub(crate) fn hoped(&self) -> u64 {
        let gains = self.kin().map_or(0, |kin| kin.gains.load(Relaxed) & !kin.mixed.load(Relaxed));
        gains & !self.timed.load(Relaxed)
    }

    /// Returns the verdict of the times on messages of `bytes` bytes which a call of the kind `by`
    /// completes. The times are those of the layout, or of its similarity class. `None`: there are
    /// no times.
    #[inline]
    pub(crate) fn verdict(&self, bytes: u64, by: CompletedBy) -> Option<Verdict> {
        let (e, bit) = self.decider(bytes)?;
        let gains = match by {
            CompletedBy::SameCall => e.gains.load(Relaxed) & bit != 0,
            CompletedBy::LaterCall => self.saves(bytes).is_some_and(|saves| saves >= LATER),
        };
        Some(Verdict { gains, loses: e.loses.load(Relaxed) & bit != 0 })
    }

    /// Returns the verdict of the layout's runs on messages of `bytes` bytes, if both ranks must
    /// decide alike. Then no rank may go by its own times. `None`: each rank decides by its own
    /// times.
    #[inline]
    pub(crate) fn verdict_of_both(&self, costs: &Costs, bytes: u64) -> Option<Verdict> {
        let gains = self.runs().gain_on_both_ranks(costs, bytes)?;
        Some(Verdict { gains, loses: !gains })
    }

    /// Returns the nanoseconds that a conversion of a message of `bytes` bytes gains, 0 for no
    /// gain, if both ranks must decide alike whether they convert the message. `None`: each rank
    /// decides by its own times.
    pub(crate) fn gain_on_both_ranks(&self, costs: &Costs, bytes: u64) -> Option<u64> {
        let runs = self.runs();
        let gains = runs.gain_on_both_ranks(costs, bytes)?;
        Some(if gains { runs.saving(bytes) } else { 0 })
    }

    /// Returns true if messages of `bytes` bytes which a call of the kind `by` completes are
    /// converted according to the times, or without times to the policy table. `table`: the policy
    /// table wants them.
    pub(crate) fn wants(&self, bytes: u64, by: CompletedBy, table: bool) -> bool {
        self.verdict(bytes, by).map_or(table, |verdict| verdict.wants(table))
    }

    /// Counts a message of `bytes` bytes, which is about to be sent or received. Returns true if
    /// messages of its size class are to be timed now, because this layout has moved enough bytes
    /// in them, or its similarity class has and does not decide yet. `least` is the minimum number
    /// of bytes; if `least` is 0, a class is timed at its first message.
    #[inline]
    pub(crate) fn due(&self, bytes: u64, least: u64) -> bool {
        if self.is_timed(bytes) {
            return false;
        }
        let (kin, decided) = (self.kin(), self.is_decided(bytes));
        // If the similarity class decides already, timing this layout too teaches little, so it
        // must have moved more bytes itself.
        let own = self.has_moved(bytes, if decided { least.saturating_mul(KIN) } else { least });
        own || !decided && kin.is_some_and(|kin| kin.has_moved(bytes, least))
    }

    /// Counts a message of `bytes` bytes. Returns true if its size class has moved enough bytes,
    /// this message included.
    fn has_moved(&self, bytes: u64, least: u64) -> bool {
        let before = self.classes[class(bytes)].moved.fetch_add(bytes, Relaxed);
        let worth = if least == 0 { 0 } else { least.max(WORTH * bytes.min(PART)) };
        before.saturating_add(bytes) >= worth
    }

    /// Records that messages of the size class of `bytes` cannot be timed. The policy table decides
    /// about them from now on, whatever the similarity class says.
    pub(crate) fn give_up(&self, bytes: u64) {
        self.timed.fetch_or(1 << class(bytes), Relaxed);
    }

    /// Records the times of a size class and the verdicts that follow from them, which decide from
    /// now on. The similarity class takes the times over if the class has none for this size. If
    /// the class has times and they gain where these do not, or the other way round, the class does
    /// not decide about this size any more.
    fn learn(&self, costs: &Costs, at: usize, times: Times) {
        let (Some(class), bit) = (self.classes.get(at), 1u64 << at.min(CLASSES - 1)) else { return };
        class.bytes.store(times.bytes, Relaxed);
        class.host.store(times.host, Relaxed);
        class.ours.store(times.ours, Relaxed);
        class.copy.store(times.copy, Relaxed);
        let runs = self.runs();
        class.saves.store(times.saves(costs, 1 << at, runs), Relaxed);
        let gains = times.gains(costs, 1 << at, runs);
        if gains {
            self.gains.fetch_or(bit, Relaxed);
        }
        if times.loses(costs, 1 << at, runs) {
            self.loses.fetch_or(bit, Relaxed);
        }
        self.timed.fetch_or(bit, Relaxed);
        // Layouts whose runs are unlike those of the similarity class say nothing about it.
        if let Some(kin) = self.kin() {
            if kin.timed.load(Relaxed) & bit == 0 {
                kin.runs.store(runs.word(), Relaxed);
                kin.learn(costs, at, times);
            } else if (kin.gains.load(Relaxed) & bit != 0) != gains {
                kin.mixed.fetch_or(bit, Relaxed);
            }
        }
    }

    /// Returns the nanoseconds that converting a message of `bytes` bytes saves, if its size class
    /// was found to gain.
    #[inline]
    pub(crate) fn saves(&self, bytes: u64) -> Option<u64> {
        let (e, bit) = self.decider(bytes)?;
        let gains = e.gains.load(Relaxed) & bit != 0;
        let at = class(bytes);
        // The stored time is that of the shortest message of the class, which has `1 << at` bytes.
        gains.then(|| u64::from(e.classes[at].saves.load(Relaxed)).saturating_mul(bytes) >> at)
    }

    /// Returns the nanoseconds that our kernel packs a message of `bytes` bytes faster than the MPI
    /// library, if its size class was timed. So much is saved if nothing is staged.
    #[inline]
    pub(crate) fn spares(&self, bytes: u64) -> Option<u64> {
        let [part, ours, host] = self.both(bytes)?;
        Some(host.saturating_sub(ours).saturating_mul(bytes) / part)
    }

    /// Returns true if our kernel was found to pack messages of `bytes` bytes in less than four
    /// fifths of the MPI library's time.
    #[inline]
    pub(crate) fn is_ahead(&self, bytes: u64) -> bool {
        self.both(bytes).is_some_and(|[_, ours, host]| ours * 5 < host * 4)
    }

    /// Returns true if our kernel was found to take nine tenths of the MPI library's time or more
    /// to pack messages of `bytes` bytes.
    #[inline]
    pub(crate) fn is_even(&self, bytes: u64) -> bool {
        self.both(bytes).is_some_and(|[_, ours, host]| ours * 10 >= host * 9)
    }

    /// Returns the length in bytes of the part of a message that was timed, and the nanoseconds in
    /// which our kernel and the MPI library packed the part, for the size class of `bytes`. `None`:
    /// there are no times.
    #[inline]
    fn both(&self, bytes: u64) -> Option<[u64; 3]> {
        let class = &self.decider(bytes)?.0.classes[class(bytes)];
        let [part, ours, host] = [&class.bytes, &class.ours, &class.host].map(|n| u64::from(n.load(Relaxed)));
        (part > 0).then_some([part, ours, host])
    }

    /// Records the times of messages of the size class of `bytes`.
    pub(crate) fn learn_bytes(&self, costs: &Costs, bytes: u64, times: Times) {
        self.learn(costs, class(bytes), times);
    }

    /// Returns the size classes that could be timed, with their times.
    fn timed(&self) -> impl Iterator<Item = (usize, Times)> {
        self.decided().filter(|(_, times)| times.bytes > 0)
    }

    /// Returns the size classes that are not timed any more, with their times. A class that could
    /// not be timed has times of 0 bytes.
    fn decided(&self) -> impl Iterator<Item = (usize, Times)> {
        let timed = self.timed.load(Relaxed);
        let classes = self.classes.iter().enumerate().filter(move |(at, _)| timed >> at & 1 != 0);
        classes.map(|(at, class)| {
            let [bytes, host, ours, copy] =
                [&class.bytes, &class.host, &class.ours, &class.copy].map(|n| n.load(Relaxed));
            (at, Times { bytes, host, ours, copy })
        })
    }

    /// Returns the part of the times of a similarity class that is written to the profile cache:
    /// the runs, as [`Runs::word`] makes them, and the size classes with their times. If layouts of
    /// the class disagree about a size class, its times have 0 bytes.
    pub(crate) fn serialize(&self) -> (u64, Vec<(usize, Times)>) {
        let mixed = self.mixed.load(Relaxed);
        let is_mixed = |at: usize| mixed >> at & 1 != 0;
        let told =
            self.decided().map(|(at, times)| (at, if is_mixed(at) { Times::default() } else { times }));
        let rows = told.filter(|&(at, times)| is_mixed(at) || times.bytes > 0).collect();
        (self.runs.load(Relaxed), rows)
    }

    /// Takes over the times of a similarity class that an earlier run has written with
    /// [`Measured::serialize`]. Rows past the last size class are ignored.
    pub(crate) fn deserialize(
        &self,
        costs: &Costs,
        runs: u64,
        rows: impl IntoIterator<Item = (usize, Times)>,
    ) {
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

    /// Returns the lines of the report: one for each size class that was timed, and one for each
    /// that is converted because its similarity class gains. `table` is the set of payloads that
    /// the policy table converts.
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
        let kin: &'static Measured = Box::leak(Box::new(Measured::new(0)));
        let new = || Measured { kin: Some(kin), ..Measured::new(4) };
        let [one, other, third] = [new(), new(), new()];
        // The messages of the three layouts count together until one of the layouts was timed, and
        // separately from then on.
        let due = |e: &Measured, n: u64| (0..n).filter(|_| e.due(4096, 80 << 10)).count();
        assert_eq!((due(&one, 15), due(&other, 4), due(&third, 1)), (0, 0, 1));
        assert!(one.hoped() == 0 && !one.wants(4096, SameCall, false));
        let slow = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };
        one.learn_bytes(&profile::INTEL.costs, 4096, slow);
        assert!(other.hoped() == 4096 && other.wants(4096, SameCall, false));
        assert!(one.hoped() == 0 && !other.wants(8192, SameCall, false));
        assert_eq!((other.saves(4096), other.spares(4096)), (one.saves(4096), Some(8100)));
        assert_eq!((due(&other, 315), due(&other, 1)), (0, 1));
        // A layout is decided by its own times, if there are some. Times of two layouts that
        // disagree decide nothing about a third.
        other.learn_bytes(&profile::INTEL.costs, 4096, Times { ours: 9000, ..slow });
        assert!(!other.wants(4096, SameCall, false) && one.wants(4096, SameCall, false));
        assert!(
            third.hoped() == 0 && third.wants(4096, SameCall, true) && !third.wants(4096, SameCall, false)
        );
    }

    #[test]
    fn layouts_of_other_runs_do_not_speak_for_each_other() {
        let kin: &'static Measured = Box::leak(Box::new(Measured::new(0)));
        let of = |run| Measured { kin: Some(kin), ..Measured::new(run) };
        // Times of a receive of LAMMPS_full, whose type has six arrays. Messages of WRF_x are of
        // the same size class.
        of(23_925).learn_bytes(
            &profile::MPICH.costs,
            143_552,
            Times { bytes: 143_552, host: 3666, ours: 3286, copy: 3055 },
        );
        let decided = [12, 16_384, 0].map(|run| of(run).is_decided(173_712));
        assert_eq!(decided, [false, true, true]);
        // A layout of unlike runs does not change the times of the similarity class either.
        of(12).learn_bytes(
            &profile::MPICH.costs,
            16_384,
            Times { bytes: 16_384, host: 9000, ours: 900, copy: 400 },
        );
        assert!(!kin.is_decided(16_384) && kin.runs() == Runs::new(23_925, false, 600));
        // Nor does it disagree with them.
        of(12).learn_bytes(
            &profile::MPICH.costs,
            143_552,
            Times { bytes: 143_552, host: 90_000, ours: 900, copy: 400 },
        );
        assert!(kin.is_decided(143_552));
    }

    #[test]
    fn layouts_that_are_alike_speak_to_later_runs() {
        let slow = Times { bytes: 16384, host: 9000, ours: 900, copy: 100 };
        let kin: &'static Measured = Box::leak(Box::new(Measured::new(0)));
        let one = Measured { kin: Some(kin), ..Measured::new(4) };
        one.learn_bytes(&profile::MPICH.costs, 16384, slow);
        let little = Times { bytes: 1024, ..slow };
        one.learn_bytes(&profile::MPICH.costs, 1024, little);
        let other = Measured { kin: Some(kin), ..Measured::new(4) };
        other.learn_bytes(&profile::MPICH.costs, 1024, Times { ours: 9000, ..little });
        kin.give_up(2 << 20);
        let (runs, told) = kin.serialize();
        assert_eq!((runs, &told[..]), (4, &[(10, Times::default()), (14, slow)][..]));
        let later = Measured::new(0);
        later.deserialize(&profile::MPICH.costs, runs, told.iter().copied().chain([(CLASSES, slow)]));
        let verdicts = |e: &Measured| {
            [1024, 16384, 2 << 20].map(|n| (e.is_decided(n), e.wants(n, SameCall, false), e.saves(n)))
        };
        assert_eq!(verdicts(&later)[..2], verdicts(kin)[..2]);
        assert!(!later.is_decided(1024) && later.wants(16384, SameCall, false));
        assert_eq!(later.serialize(), (runs, told));
    }

    #[test]
    fn a_class_is_timed_once_and_then_believed() {
        let measured = Measured::new(64);
        let due = |bytes, n: u64| (0..n).filter(|_| measured.due(bytes, 80 << 10)).count();
        assert_eq!((due(4096, 19), due(4096, 3)), (0, 3));
        // Messages of 64 KiB must have moved eight times the 64 KiB that are packed to time them. A
        // message of 2 MiB is of another class, which is counted separately, and moves enough at
        // once.
        assert_eq!((due(64 << 10, 7), due(64 << 10, 1), due(2 << 20, 1)), (0, 1, 1));
        measured.give_up(2 << 20);
        assert!(
            due(2 << 20, 9) == 0
                && measured.wants(2 << 20, SameCall, true)
                && !measured.wants(2 << 20, SameCall, false)
        );
        assert!(measured.wants(5000, SameCall, true) && !measured.wants(5000, SameCall, false));
        let slow = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };
        measured.learn_bytes(&profile::INTEL.costs, 5000, slow);
        assert!(
            measured.wants(4096, SameCall, false)
                && !measured.verdict(4096, SameCall).is_some_and(|v| v.loses)
                && !measured.wants(8192, SameCall, false)
        );
        assert_eq!((measured.spares(8000), measured.spares(8192)), (Some(8100 * 8000 / 4096), None));
        assert!(measured.is_ahead(5000) && !measured.is_ahead(8192));
        // A class whose kernel is fast, a class that was not timed and a class that could not be
        // timed are not even.
        assert!([5000, 8192, 2 << 20].map(|bytes| measured.is_even(bytes)) == [false; 3]);
        let slow = Times { bytes: 8192, host: 9000, ours: 9000, copy: 100 };
        measured.learn_bytes(&profile::MPICH.costs, 8192, slow);
        // A conversion must save more if a later call completes the message.
        let little = Times { bytes: 480, host: 160, ours: 10, copy: 10 };
        measured.learn_bytes(&profile::MPICH.costs, 480, little);
        assert!(
            measured.wants(480, SameCall, false)
                && !measured.wants(480, LaterCall, false)
                && measured.wants(480, LaterCall, true)
        );
        assert!(measured.wants(4096, LaterCall, false) && measured.wants(100, LaterCall, true));
        assert!(
            !measured.wants(8192, SameCall, true)
                && measured.verdict(8192, SameCall).is_some_and(|v| v.loses)
                && !measured.is_ahead(8192)
        );
        assert!(measured.is_even(8192));
        // 256 runs take Intel MPI at least 20 ns each.
        let even = Times { bytes: 16384, host: 900, ours: 5000, copy: 100 };
        measured.learn_bytes(&profile::INTEL.costs, 16384, even);
        assert!(measured.wants(16384, SameCall, true) && !measured.wants(16384, SameCall, false));
        assert_eq!(due(8192, 1000), 0);
        // With a threshold of 0 the first message is timed.
        assert!(Measured::new(64).due(8, 0));
    }
}
