//! Evidence for a layout: how long the host takes to pack it, and our kernel, on the program's own buffer.
//!
//! A table that must gain on every machine leaves most of what there is to gain. What a message of this layout gains here shows when the host's `MPI_Pack` and
//! our kernel pack the same elements: the host moves bytes by the same loops in both, and what its protocols add is known (docs/records/performance.md,
//! "Evidence"). So once the messages of a layout and size class have moved enough to pay for it, both are timed, and the class is converted where ours gains
//! beyond the cost of staging. Until then the table decides.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::process::{Lazy, Mutex};
use ddtc_hosts::policy::{Family, Policy};

use crate::host::Host;
use crate::remembered;
use crate::times::{PART, Times};

/// Times as many bytes as are packed for it that a class moves before it is timed.
const WORTH: u64 = 8;
/// Size classes: powers of two, the last without end.
const CLASSES: usize = 40;
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
    /// Nanoseconds that a conversion saves by the times alone.
    saves: AtomicU32,
}

/// Times and verdicts of a layout. Lives forever: one for each layout, not each type.
pub(crate) struct Evidence {
    /// Bytes of its runs, on average.
    run: u64,
    /// Size classes that were timed, a bit each.
    timed: AtomicU64,
    /// Those where a conversion gains by the times alone.
    gains: AtomicU64,
    /// Those where our kernel is no faster than the host: whatever a table says, they are the host's.
    loses: AtomicU64,
    classes: [Class; CLASSES],
}

static KNOWN: Lazy<Mutex<HashMap<u64, &'static Evidence>>> = Lazy::new(Mutex::default);

/// Returns the evidence for the layout of that hash, of runs of so many bytes; `None`: too many layouts have some.
pub(crate) fn of(host: &Host, key: u64, run: u64) -> Option<&'static Evidence> {
    if let Some(evidence) = known(key) {
        return Some(evidence);
    }
    // Not under the lock: a file may be read.
    let learnt = remembered::of(host, key);
    let mut known = KNOWN.lock();
    if known.len() >= MOST && !known.contains_key(&key) {
        return None;
    }
    let evidence: &'static Evidence =
        known.entry(key).or_insert_with(|| Box::leak(Box::new(Evidence::new(run))));
    for (class, times) in learnt {
        evidence.learn(host.family, class, times);
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
    fn new(run: u64) -> Evidence {
        let class = || Class {
            moved: AtomicU64::new(0),
            bytes: AtomicU32::new(0),
            host: AtomicU32::new(0),
            ours: AtomicU32::new(0),
            copy: AtomicU32::new(0),
            saves: AtomicU32::new(0),
        };
        Evidence {
            run,
            timed: AtomicU64::new(0),
            gains: AtomicU64::new(0),
            loses: AtomicU64::new(0),
            classes: std::array::from_fn(|_| class()),
        }
    }

    /// Says whether messages of so many bytes are converted, of which a table says `table`.
    #[inline]
    pub(crate) fn wants(&self, bytes: u64, table: bool) -> bool {
        let bit = 1u64 << class(bytes);
        if self.timed.load(Relaxed) & bit == 0 {
            return table;
        }
        self.gains.load(Relaxed) & bit != 0 || table && self.loses.load(Relaxed) & bit == 0
    }

    /// Says whether messages of any size are converted, as far as is known; a table has the payloads `table`.
    pub(crate) fn hopeful(&'static self, table: u64) -> bool {
        self.timed().any(|(at, _)| self.wants(1 << at, Policy::has(table, 1 << at)))
    }

    /// Says whether nothing of it was timed.
    pub(crate) fn is_new(&self) -> bool {
        self.timed.load(Relaxed) == 0
    }

    /// Says whether a call may be converted whose own costs are not known: a table must have it, and the times not speak against it.
    #[inline]
    pub(crate) fn allows(&self, bytes: u64) -> bool {
        self.loses.load(Relaxed) >> class(bytes) & 1 == 0
    }

    /// Counts a message; whether its class has moved enough to be timed before it. `least`: bytes that a class moves at least.
    #[inline]
    pub(crate) fn due(&self, bytes: u64, least: u64) -> bool {
        let at = class(bytes);
        if self.timed.load(Relaxed) >> at & 1 != 0 {
            return false;
        }
        let before = self.classes[at].moved.fetch_add(bytes, Relaxed);
        let worth = if least == 0 { 0 } else { least.max(WORTH * bytes.min(PART)) };
        before.saturating_add(bytes) >= worth
    }

    /// A class that cannot be timed: the table decides from now on.
    pub(crate) fn give_up(&self, bytes: u64) {
        self.timed.fetch_or(1 << class(bytes), Relaxed);
    }

    /// The times of a class are known from now on.
    fn learn(&self, family: Family, at: usize, times: Times) {
        let Some(class) = self.classes.get(at) else { return };
        class.bytes.store(times.bytes, Relaxed);
        class.host.store(times.host, Relaxed);
        class.ours.store(times.ours, Relaxed);
        class.copy.store(times.copy, Relaxed);
        let bit = 1u64 << at;
        class.saves.store(times.saves(family, 1 << at, self.run), Relaxed);
        if times.gains(family, 1 << at, self.run) {
            self.gains.fetch_or(bit, Relaxed);
        }
        if times.loses(family) {
            self.loses.fetch_or(bit, Relaxed);
        }
        self.timed.fetch_or(bit, Relaxed);
    }

    /// Returns the nanoseconds that converting a message of so many bytes saves, if its class was found to gain.
    #[inline]
    pub(crate) fn saves(&self, bytes: u64) -> Option<u64> {
        let at = class(bytes);
        let gains = self.gains.load(Relaxed) >> at & 1 != 0;
        gains.then(|| u64::from(self.classes[at].saves.load(Relaxed)))
    }

    /// Returns the nanoseconds that our kernel is faster than the host's packing for a message of so many bytes, if its class was timed: what is saved where nothing is
    /// staged.
    #[inline]
    pub(crate) fn spares(&self, bytes: u64) -> Option<u64> {
        let class = &self.classes[class(bytes)];
        let [part, host, ours] = [&class.bytes, &class.host, &class.ours].map(|n| u64::from(n.load(Relaxed)));
        host.saturating_sub(ours).saturating_mul(bytes).checked_div(part)
    }

    /// Says whether our kernel was found to pack messages of so many bytes in four fifths of the host's time or less.
    #[inline]
    pub(crate) fn is_ahead(&self, bytes: u64) -> bool {
        let class = &self.classes[class(bytes)];
        u64::from(class.ours.load(Relaxed)) * 5 < u64::from(class.host.load(Relaxed)) * 4
    }

    /// The times of messages of so many bytes are known from now on.
    pub(crate) fn learn_bytes(&self, family: Family, bytes: u64, times: Times) {
        self.learn(family, class(bytes), times);
    }

    /// Size classes and their times, of those that could be timed.
    fn timed(&'static self) -> impl Iterator<Item = (usize, Times)> {
        let timed = self.timed.load(Relaxed);
        let classes = self.classes.iter().enumerate().filter(move |(at, _)| timed >> at & 1 != 0);
        let times = classes.map(|(at, class)| {
            let [bytes, host, ours, copy] =
                [&class.bytes, &class.host, &class.ours, &class.copy].map(|n| n.load(Relaxed));
            (at, Times { bytes, host, ours, copy })
        });
        times.filter(|(_, times)| times.bytes > 0)
    }

    /// Returns a line for each class that was timed, for the report; `table`: payloads that the table has.
    pub(crate) fn lines(&'static self, table: u64) -> String {
        let mut out = String::new();
        for (at, Times { bytes, host, ours, copy }) in self.timed() {
            let verdict =
                if self.wants(1 << at, Policy::has(table, 1 << at)) { "converted" } else { "the host's" };
            let from = 1u64 << at;
            let _ = writeln!(
                out,
                "    messages from {from} B: {verdict}; {bytes} B take the host {host} ns, ours {ours} ns, a copy {copy} ns"
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_timed_once_and_then_believed() {
        let evidence = Evidence::new(64);
        let due = |bytes, n: u64| (0..n).filter(|_| evidence.due(bytes, 80 << 10)).count();
        assert_eq!((due(4096, 19), due(4096, 3)), (0, 3));
        // 8 of what is packed, and another class for itself.
        assert_eq!((due(64 << 10, 7), due(64 << 10, 1), due(2 << 20, 1)), (0, 1, 1));
        evidence.give_up(2 << 20);
        assert!(due(2 << 20, 9) == 0 && evidence.wants(2 << 20, true) && !evidence.wants(2 << 20, false));
        assert!(evidence.wants(5000, true) && !evidence.wants(5000, false));
        let slow = Times { bytes: 4096, host: 9000, ours: 900, copy: 100 };
        evidence.learn_bytes(Family::Intel, 5000, slow);
        assert!(evidence.wants(4096, false) && evidence.allows(4096) && !evidence.wants(8192, false));
        assert_eq!((evidence.spares(8000), evidence.spares(8192)), (Some(8100 * 8000 / 4096), None));
        assert!(evidence.is_ahead(5000) && !evidence.is_ahead(8192));
        let slow = Times { bytes: 8192, host: 9000, ours: 9000, copy: 100 };
        evidence.learn_bytes(Family::Mpich, 8192, slow);
        assert!(!evidence.wants(8192, true) && !evidence.allows(8192) && !evidence.is_ahead(8192));
        let fast = Times { bytes: 16384, host: 900, ours: 900, copy: 100 };
        evidence.learn_bytes(Family::Intel, 16384, fast);
        assert!(evidence.wants(16384, true) && !evidence.wants(16384, false));
        assert_eq!(due(8192, 1000), 0);
        // First uses, for whoever asks for that.
        assert!(Evidence::new(64).due(8, 0));
    }
}
