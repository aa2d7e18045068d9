//! Measured times of a layout: the nanoseconds that the MPI library and our kernel take to pack
//! messages of the layout from the program's own buffer.
//!
//! A policy table must gain on every machine, so it leaves much of the possible gain unused.
//! Measured times show how much a conversion of messages of one layout gains on this machine: the
//! `MPI_Pack` of the MPI library and our kernel pack the same elements, and both are timed. This
//! suffices because the MPI library moves bytes by the same loops in `MPI_Pack` and in messages,
//! and because the times that its protocols add are known (docs/history/performance.md,
//! "Evidence").
//!
//! Both sides are timed once the messages of a layout and size class have moved enough bytes to pay
//! for the timing. From then on a message of this layout and class is converted in two cases.
//! Either our kernel gains more than staging costs, or the policy table wants the message and our
//! kernel was not found to be as slow as the MPI library. Before the timing, the measured times of
//! the similarity class decide ([`crate::similar`]), and if there are none, the policy table alone.
//! If both ranks must decide alike about a message, its layout's runs decide and not the times
//! ([`Measured::verdict_of_both`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::internal::process::{Lazy, Mutex};
use ddtc_hosts::policy::Policy;
use ddtc_hosts::profile::Costs;

use crate::decision::Verdict;
use crate::host::Host;
use crate::profile_cache;
use crate::times::{LATER, PART, ROUNDS, Runs, Times, is_faster};
use crate::use_kind::CompletedBy;

/// Factor for the minimum number of bytes before a timing. It is applied if the layout's similarity
/// class decides already about messages of this size. Without this factor, SPECFEM3D_cm took 1.69
/// times as long and LAMMPS_full 1.22 times under Open MPI (Emerald Rapids, 2026-11-29).
const SIMILAR_FACTOR: u64 = 16;
/// Number of times that a timing moves its sample: in each round the MPI library and our kernel
/// pack the sample, and its packed bytes are copied. A size class is timed only after its messages
/// have moved this many times the bytes of the sample, which is one message or, if that is less,
/// [`PART`] bytes.
const MOVED_BY_TIMING: u64 = 3 * ROUNDS;
/// Number of size classes. Size class `n` holds messages of 2^n to 2^(n+1) - 1 bytes. The last size
/// class has no upper bound.
pub(crate) const CLASSES: usize = 40;
/// Maximum number of layouts whose times are kept. For messages of other layouts, the times of the
/// similarity class decide, or the policy table.
const MAX_LAYOUTS: usize = 2048;

/// Measured times of one size class of a layout, or of a similarity class.
struct SizeClass {
    /// Bytes that messages of the size class have moved before the class was timed.
    moved: AtomicU64,
    bytes: AtomicU32,
    host: AtomicU32,
    ours: AtomicU32,
    copy: AtomicU32,
    /// Nanoseconds that a conversion of the shortest message of the size class saves, as
    /// [`Times::saves`] computes them.
    saves: AtomicU32,
}

impl SizeClass {
    const fn new() -> SizeClass {
        SizeClass {
            moved: AtomicU64::new(0),
            bytes: AtomicU32::new(0),
            host: AtomicU32::new(0),
            ours: AtomicU32::new(0),
            copy: AtomicU32::new(0),
            saves: AtomicU32::new(0),
        }
    }
}

/// Measured times of a layout, or of a similarity class, and the verdicts that follow from these
/// times. A value of this type is never freed. Types of equal layouts share one value, and so do
/// layouts that differ only in distances of 64 KiB and more.
pub(crate) struct Measured {
    /// Summary of the layout's runs, in the form that [`Runs::word`] returns. The length of the
    /// runs is 0 while they are not known.
    runs: AtomicU64,
    /// Times of the layout's similarity class. They decide about size classes for which the layout
    /// has no times of its own. `None` if this value itself holds the times of a similarity class.
    similar: Option<&'static Measured>,
    /// Size classes that are not timed any more, one bit for each: those that were timed and those
    /// that could not be timed.
    timed: AtomicU64,
    /// Timed size classes, one bit for each, for which a conversion gains according to
    /// [`Times::gains`], whatever the policy table says.
    gains: AtomicU64,
    /// Timed size classes, one bit for each, for which our kernel is no faster than the MPI
    /// library, or for which the layout alone decides against a conversion ([`Times::loses`]).
    /// Messages of these size classes are bypassed even if the policy table wants them, unless
    /// their bit in `gains` is set too.
    loses: AtomicU64,
    /// Size classes, one bit for each, for which some layouts of the similarity class gain and
    /// others do not. The times of the similarity class decide nothing about these size classes.
    /// Used only in the times of a similarity class.
    mixed: AtomicU64,
    classes: [SizeClass; CLASSES],
}

static KNOWN: Lazy<Mutex<HashMap<u64, &'static Measured>>> = Lazy::new(Mutex::default);

/// Returns the times of the layout with the hash `key`. If the layout has no times yet, makes a
/// value for them, with the runs that `runs` returns, and enters the times that the profile cache
/// has from earlier runs of the program. If [`MAX_LAYOUTS`] other layouts have times already,
/// returns `similar`, the times of the similarity class.
pub(crate) fn find_or_insert(
    host: &Host,
    key: u64,
    runs: impl FnOnce() -> Runs,
    similar: Option<&'static Measured>,
) -> Option<&'static Measured> {
    if let Some(measured) = known(key) {
        return Some(measured);
    }
    // The profile cache is read before the lock is taken, because reading it may read a file.
    let (learnt, runs) = (profile_cache::times_of(host, key), runs());
    if let Some(similar) = similar {
        let _ = similar.runs.compare_exchange(0, runs.word(), Relaxed, Relaxed);
    }
    let mut known = KNOWN.lock();
    if known.len() >= MAX_LAYOUTS && !known.contains_key(&key) {
        return similar;
    }
    let new = || Box::leak(Box::new(Measured { similar, ..Measured::new(runs.word()) }));
    let measured: &'static Measured = known.entry(key).or_insert_with(|| new());
    for (class, times) in learnt {
        measured.learn(&host.profile.costs, class, times);
    }
    Some(measured)
}

/// Returns the times of the layout with this hash, if times of the layout are kept.
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
    /// Returns a value without times, for a layout whose runs have the summary `runs` in the form
    /// that [`Runs::word`] returns; 0 if the runs are not known.
    pub(crate) const fn new(runs: u64) -> Measured {
        Measured {
            runs: AtomicU64::new(runs),
            similar: None,
            timed: AtomicU64::new(0),
            gains: AtomicU64::new(0),
            loses: AtomicU64::new(0),
            mixed: AtomicU64::new(0),
            classes: [const { SizeClass::new() }; CLASSES],
        }
    }

    /// Returns the times that decide about messages of `bytes` bytes, and the bit of the messages'
    /// size class. They are the layout's own times if its size class was timed or could not be
    /// timed. Otherwise they are those of the similarity class, unless the layouts of that class
    /// disagree about this size. `None`: there are no times that decide, so the policy table does.
    #[inline]
    fn decider(&self, bytes: u64) -> Option<(&Measured, u64)> {
        let bit = 1u64 << class(bytes);
        let timed = |e: &&Measured| e.timed.load(Relaxed) & bit != 0 && e.mixed.load(Relaxed) & bit == 0;
        Some(self).filter(timed).or_else(|| self.similar().filter(timed)).map(|e| (e, bit))
    }

    fn runs(&self) -> Runs {
        Runs::from_word(self.runs.load(Relaxed))
    }

    /// Returns the times of the layout's similarity class; `None` if the runs of that class are of
    /// another kind than those of the layout ([`Runs::are_like`]).
    #[inline]
    fn similar(&self) -> Option<&'static Measured> {
        self.similar.filter(|similar| self.runs().are_like(similar.runs()))
    }

    /// Returns true if messages of `bytes` bytes were timed, or could not be timed, for this layout
    /// or for its similarity class. Times of a size class about which the layouts of the similarity
    /// class disagree do not count.
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
    /// the layouts of the similarity class disagree are left out.
    pub(crate) fn expected_gains(&self) -> u64 {
        let gains =
            self.similar().map_or(0, |similar| similar.gains.load(Relaxed) & !similar.mixed.load(Relaxed));
        gains & !self.timed.load(Relaxed)
    }

    /// Returns the verdict of the measured times on messages of `bytes` bytes which a call of the
    /// kind `by` completes. The times are those of the layout, or else of its similarity class.
    /// `None`: there are no times for this size.
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
    /// decide alike about these messages, so that no rank may use its own times. `None`: each rank
    /// decides by its own times.
    #[inline]
    pub(crate) fn verdict_of_both(&self, costs: &Costs, bytes: u64) -> Option<Verdict> {
        let gains = self.runs().gain_on_both_ranks(costs, bytes)?;
        Some(Verdict { gains, loses: !gains })
    }

    /// Returns the nanoseconds that a conversion of a message of `bytes` bytes gains, if both ranks
    /// must decide alike about the message; 0 if the conversion gains nothing. `None`: each rank
    /// decides about the message by its own times.
    pub(crate) fn gain_on_both_ranks(&self, costs: &Costs, bytes: u64) -> Option<u64> {
        let runs = self.runs();
        let gains = runs.gain_on_both_ranks(costs, bytes)?;
        Some(if gains { runs.saving(bytes) } else { 0 })
    }

    /// Returns true if messages of `bytes` bytes which a call of the kind `by` completes are
    /// converted. The measured times decide, or if there are none the policy table. `table`:
    /// whether the policy table wants these messages.
    pub(crate) fn wants(&self, bytes: u64, by: CompletedBy, table: bool) -> bool {
        self.verdict(bytes, by).map_or(table, |verdict| verdict.wants(table))
    }

    /// Counts a message of `bytes` bytes, which is about to be sent or received. Returns true if
    /// the message's size class is to be timed now. That is so if this layout has moved enough
    /// bytes in messages of this size class, or if its similarity class has moved enough bytes in
    /// them and does not decide about them yet. `min_bytes` is the minimum number of bytes; if
    /// `min_bytes` is 0, a size class is timed at its first message.
    #[inline]
    pub(crate) fn due(&self, bytes: u64, min_bytes: u64) -> bool {
        if self.is_timed(bytes) {
            return false;
        }
        let (similar, decided) = (self.similar(), self.is_decided(bytes));
        // If the similarity class decides already, timing this layout too gives little new
        // information. So the layout must have moved more bytes itself before it is timed.
        let own =
            self.has_moved(bytes, if decided { min_bytes.saturating_mul(SIMILAR_FACTOR) } else { min_bytes });
        own || !decided && similar.is_some_and(|similar| similar.has_moved(bytes, min_bytes))
    }

    /// Counts a message of `bytes` bytes. Returns true if the messages of its size class have moved
    /// enough bytes for a timing, this message included. `min_bytes` is as in [`Measured::due`].
    fn has_moved(&self, bytes: u64, min_bytes: u64) -> bool {
        let before = self.classes[class(bytes)].moved.fetch_add(bytes, Relaxed);
        let worth = if min_bytes == 0 { 0 } else { min_bytes.max(MOVED_BY_TIMING * bytes.min(PART)) };
        before.saturating_add(bytes) >= worth
    }

    /// Records that messages of the size class of `bytes` cannot be timed. The policy table decides
    /// about these messages from now on, whatever the similarity class says.
    pub(crate) fn give_up(&self, bytes: u64) {
        self.timed.fetch_or(1 << class(bytes), Relaxed);
    }

    /// Records the times of the size class with the number `at` and the verdicts that follow from
    /// them. From now on these verdicts decide. The similarity class takes the times over if it has
    /// none for this size. If the similarity class has times already, and a conversion gains either
    /// for the layout only or for the similarity class only, the similarity class does not decide
    /// about this size any more.
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
        // A layout whose runs are unlike those of the similarity class neither gives the class
        // times nor disagrees with it: `similar` returns `None` for such a layout.
        if let Some(similar) = self.similar() {
            if similar.timed.load(Relaxed) & bit == 0 {
                similar.runs.store(runs.word(), Relaxed);
                similar.learn(costs, at, times);
            } else if (similar.gains.load(Relaxed) & bit != 0) != gains {
                similar.mixed.fetch_or(bit, Relaxed);
            }
        }
    }

    /// Returns the nanoseconds that converting a message of `bytes` bytes saves; `None` if a
    /// conversion of messages of its size class was not found to gain.
    #[inline]
    pub(crate) fn saves(&self, bytes: u64) -> Option<u64> {
        let (e, bit) = self.decider(bytes)?;
        let gains = e.gains.load(Relaxed) & bit != 0;
        let at = class(bytes);
        // The stored saving is that of the shortest message of the size class, which has `1 << at`
        // bytes.
        gains.then(|| u64::from(e.classes[at].saves.load(Relaxed)).saturating_mul(bytes) >> at)
    }

    /// Returns by how many nanoseconds our kernel packs a message of `bytes` bytes faster than the
    /// MPI library; `None` if its size class was not timed. A conversion that stages nothing saves
    /// this time.
    #[inline]
    pub(crate) fn spares(&self, bytes: u64) -> Option<u64> {
        let [part, ours, host] = self.both(bytes)?;
        Some(host.saturating_sub(ours).saturating_mul(bytes) / part)
    }

    /// Returns whether our kernel packs messages of `bytes` bytes faster than the MPI library
    /// ([`is_faster`]); `None` if their size class was not timed.
    #[inline]
    pub(crate) fn packs_faster(&self, bytes: u64) -> Option<bool> {
        self.both(bytes).map(|[_, ours, host]| is_faster(ours, host))
    }

    /// Returns what [`Measured::spares`] returns, if our kernel packs messages of `bytes` bytes
    /// faster than the MPI library ([`is_faster`]); otherwise `None`.
    pub(crate) fn gain_inside(&self, bytes: u64) -> Option<u64> {
        self.spares(bytes).filter(|_| self.packs_faster(bytes) == Some(true))
    }

    /// Returns three numbers for the size class of `bytes`: the length in bytes of the part of a
    /// message that was timed, and the nanoseconds in which our kernel and the MPI library packed
    /// this part. `None`: there are no times.
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

    /// Returns the size classes that are not timed any more, with their times. If a size class
    /// could not be timed, the field `bytes` of its times is 0.
    fn decided(&self) -> impl Iterator<Item = (usize, Times)> {
        let timed = self.timed.load(Relaxed);
        let classes = self.classes.iter().enumerate().filter(move |(at, _)| timed >> at & 1 != 0);
        classes.map(|(at, class)| {
            let [bytes, host, ours, copy] =
                [&class.bytes, &class.host, &class.ours, &class.copy].map(|n| n.load(Relaxed));
            (at, Times { bytes, host, ours, copy })
        })
    }

    /// Returns what the profile cache keeps of the times of a similarity class: the summary of the
    /// runs, in the form that [`Runs::word`] returns, and the size classes with their times. If the
    /// layouts of the similarity class disagree about a size class, the field `bytes` of its times
    /// is 0.
    pub(crate) fn serialize(&self) -> (u64, Vec<(usize, Times)>) {
        let mixed = self.mixed.load(Relaxed);
        let is_mixed = |at: usize| mixed >> at & 1 != 0;
        let all = self.decided().map(|(at, times)| (at, if is_mixed(at) { Times::default() } else { times }));
        let rows = all.filter(|&(at, times)| is_mixed(at) || times.bytes > 0).collect();
        (self.runs.load(Relaxed), rows)
    }

    /// Takes over the times of a similarity class that an earlier run of the program has written to
    /// the profile cache ([`Measured::serialize`]). Rows with a size class whose number is larger
    /// than that of the last size class are ignored.
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

    /// Returns the lines of the report about this layout: one for each size class that was timed,
    /// and one for each size class whose messages are converted because the similarity class gains.
    /// `table` is the set of payloads that the policy table converts.
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
        let expected = self.expected_gains();
        let expected = (0..CLASSES).map(|at| 1u64 << at).filter(|bit| expected & bit != 0);
        let by_similar =
            expected.map(|from| format!("messages from {from} B: converted, as those of similar types"));
        timed.chain(by_similar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CompletedBy::{LaterCall, SameCall};
    use ddtc_hosts::profile;

    #[test]
    fn layouts_that_are_alike_speak_for_each_other() {
        let similar: &'static Measured = Box::leak(Box::new(Measured::new(0)));
        let new = || Measured { similar: Some(similar), ..Measured::new(4) };
        let [one, other, third] = [new(), new(), new()];
        // The messages of the three layouts are counted together until one of the layouts is timed,
        // and separately from then on.
        let due = |e: &Measured, n: u64| (0..n).filter(|_| e.due(4096, 80 << 10)).count();
        assert_eq!((due(&one, 15), due(&other, 4), due(&third, 1)), (0, 0, 1));
        assert!(one.expected_gains() == 0 && !one.wants(4096, SameCall, false));
        let slow = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };
        one.learn_bytes(&profile::INTEL.costs, 4096, slow);
        assert!(other.expected_gains() == 4096 && other.wants(4096, SameCall, false));
        assert!(one.expected_gains() == 0 && !other.wants(8192, SameCall, false));
        assert_eq!((other.saves(4096), other.spares(4096)), (one.saves(4096), Some(8100)));
        assert_eq!((due(&other, 315), due(&other, 1)), (0, 1));
        // If a layout has times of its own, they decide about it. If two layouts have times that
        // disagree, these times decide nothing about a third layout.
        other.learn_bytes(&profile::INTEL.costs, 4096, Times { ours: 9000, ..slow });
        assert!(!other.wants(4096, SameCall, false) && one.wants(4096, SameCall, false));
        assert!(
            third.expected_gains() == 0
                && third.wants(4096, SameCall, true)
                && !third.wants(4096, SameCall, false)
        );
    }

    #[test]
    fn layouts_of_other_runs_do_not_speak_for_each_other() {
        let similar: &'static Measured = Box::leak(Box::new(Measured::new(0)));
        let of = |run| Measured { similar: Some(similar), ..Measured::new(run) };
        // Times of a receive of the benchmark LAMMPS_full, whose type consists of six arrays.
        // Messages of the benchmark WRF_x are in the same size class, but have runs of 12 bytes.
        of(23_925).learn_bytes(
            &profile::MPICH.costs,
            143_552,
            Times { bytes: 143_552, host: 3666, ours: 3286, copy: 3055 },
        );
        let decided = [12, 16_384, 0].map(|run| of(run).is_decided(173_712));
        assert_eq!(decided, [false, true, true]);
        // A layout whose runs are unlike those of the similarity class gives the similarity class
        // no times, even in a size class in which the similarity class has none.
        of(12).learn_bytes(
            &profile::MPICH.costs,
            16_384,
            Times { bytes: 16_384, host: 9000, ours: 900, copy: 400 },
        );
        assert!(!similar.is_decided(16_384) && similar.runs() == Runs::new(23_925, false, 600));
        // Times of a layout whose runs are unlike those of the similarity class do not count as a
        // disagreement with the times of that class either.
        of(12).learn_bytes(
            &profile::MPICH.costs,
            143_552,
            Times { bytes: 143_552, host: 90_000, ours: 900, copy: 400 },
        );
        assert!(similar.is_decided(143_552));
    }

    #[test]
    fn layouts_that_are_alike_speak_to_later_runs() {
        let slow = Times { bytes: 16384, host: 9000, ours: 900, copy: 100 };
        let similar: &'static Measured = Box::leak(Box::new(Measured::new(0)));
        let one = Measured { similar: Some(similar), ..Measured::new(4) };
        one.learn_bytes(&profile::MPICH.costs, 16384, slow);
        let little = Times { bytes: 1024, ..slow };
        one.learn_bytes(&profile::MPICH.costs, 1024, little);
        let other = Measured { similar: Some(similar), ..Measured::new(4) };
        other.learn_bytes(&profile::MPICH.costs, 1024, Times { ours: 9000, ..little });
        similar.give_up(2 << 20);
        let (runs, written) = similar.serialize();
        assert_eq!((runs, &written[..]), (4, &[(10, Times::default()), (14, slow)][..]));
        let later = Measured::new(0);
        later.deserialize(&profile::MPICH.costs, runs, written.iter().copied().chain([(CLASSES, slow)]));
        let verdicts = |e: &Measured| {
            [1024, 16384, 2 << 20].map(|n| (e.is_decided(n), e.wants(n, SameCall, false), e.saves(n)))
        };
        assert_eq!(verdicts(&later)[..2], verdicts(similar)[..2]);
        assert!(!later.is_decided(1024) && later.wants(16384, SameCall, false));
        assert_eq!(later.serialize(), (runs, written));
    }

    #[test]
    fn a_class_is_timed_once_and_then_believed() {
        let measured = Measured::new(64);
        let due = |bytes, n: u64| (0..n).filter(|_| measured.due(bytes, 80 << 10)).count();
        assert_eq!((due(4096, 19), due(4096, 3)), (0, 3));
        // Messages of 64 KiB must have moved nine times the 64 KiB that are packed to time them. A
        // message of 2 MiB is in another size class, which is counted separately, and moves enough
        // bytes by itself.
        assert_eq!((due(64 << 10, 8), due(64 << 10, 1), due(2 << 20, 1)), (0, 1, 1));
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
        // The size class of 5000 bytes was timed, that of 8192 bytes was not, and that of 2 MiB
        // could not be timed.
        let faster = [5000, 8192, 2 << 20].map(|bytes| measured.packs_faster(bytes));
        assert_eq!(faster, [Some(true), None, None]);
        let slow = Times { bytes: 8192, host: 9000, ours: 9000, copy: 100 };
        measured.learn_bytes(&profile::MPICH.costs, 8192, slow);
        // A conversion must save more if the message is completed by a later call than if the call
        // that begins it also completes it.
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
                && measured.packs_faster(8192) == Some(false)
        );
        // The part of 16 KiB has 256 runs of 64 bytes, each of which takes Intel MPI at least 20
        // ns. The measured 900 ns are less, so they are replaced by 5120 ns.
        let even = Times { bytes: 16384, host: 900, ours: 5000, copy: 100 };
        measured.learn_bytes(&profile::INTEL.costs, 16384, even);
        assert!(measured.wants(16384, SameCall, true) && !measured.wants(16384, SameCall, false));
        assert_eq!(due(8192, 1000), 0);
        // With a minimum of 0 bytes a size class is timed at its first message.
        assert!(Measured::new(64).due(8, 0));
    }
}
