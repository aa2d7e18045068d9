//! Overhead budget: the time that ddtc may spend on measurements and on other work that saves no
//! time by itself.
//!
//! The time for decoding, compiling and timing types is counted here. Decoding and compiling of a
//! type begin when the type was used so much that they pay ([`crate::worth`]), whatever the budget
//! is. Timing, and work for types that only Open MPI's convertor hook has seen, must fit into the
//! budget. The budget is a part of the time that the program has run, plus a fixed amount
//! ([`AHEAD`]), plus the time that conversions have saved. Work that has begun is finished, so one
//! measurement may exceed the budget.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use ddtc::internal::process::Awaited;

use crate::reserve;
use crate::settings::settings;

/// Inverse of the part of the program's run time that may be spent. An 80th is 1.25 %, which is
/// less than the usual difference between the times of two runs of one program.
const PART: u64 = 80;
/// Nanoseconds that may be spent as soon as the program starts, because the first compile of a
/// process takes 60 us and more.
const AHEAD: u64 = 250_000;

/// Nanoseconds that were spent so far on work whose time [`on`] counts, such as decoding, compiling
/// and timing types.
static SPENT: AtomicU64 = AtomicU64::new(0);
/// Lower bound of the nanoseconds that conversions have saved.
static SAVED: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds of work that is done once in a process. They are added to the budget, because
/// [`SPENT`] may include them and conversions need not make up for that work.
static EXEMPT: AtomicU64 = AtomicU64::new(0);

/// Returns the time at which this function was called first.
fn began() -> Instant {
    static BEGAN: Awaited<Instant> = Awaited::new();
    *BEGAN.get_or_init(Instant::now)
}

/// Starts the clock for the time that the program has run, if it has not been started yet.
pub(crate) fn begin() {
    let _ = began();
}

/// Returns true if about `nanos` nanoseconds may be spent now. Nothing may be spent once memory has
/// run out. Otherwise there is no limit if the threshold for compiling is 0
/// (`DDTC_LAZY_THRESHOLD`).
pub(crate) fn allows(nanos: u64) -> bool {
    if reserve::is_short() {
        return false;
    }
    settings().config.lazy_threshold == 0 || {
        let saved = SAVED.load(Relaxed).saturating_add(EXEMPT.load(Relaxed));
        within(SPENT.load(Relaxed), nanos, saved, began().elapsed().as_nanos() as u64)
    }
}

fn within(spent: u64, more: u64, saved: u64, elapsed: u64) -> bool {
    spent.saturating_add(more) <= AHEAD + elapsed / PART + saved
}

/// Records that a message was converted, which saves `nanos` nanoseconds.
#[inline]
pub(crate) fn saved(nanos: u64) {
    // If two threads add at the same time, one number may be lost. The sum is then still a lower
    // bound, and no call waits for another.
    SAVED.store(SAVED.load(Relaxed).saturating_add(nanos), Relaxed);
}

/// Exempts `nanos` nanoseconds of work that is done once in a process from the budget.
pub(crate) fn exempt(nanos: u64) {
    EXEMPT.fetch_add(nanos, Relaxed);
}

/// Runs `work` and counts its time as spent. The time is taken from the wall clock, because reading
/// the clock of the thread is a system call of 0.7 us (Zen 4), about as long as decoding a small
/// type takes. If other processes take the core away meanwhile, more time is counted as spent, so
/// less is timed and converted later.
pub(crate) fn on<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = work();
    SPENT.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
    made
}

/// Returns the microseconds that were spent so far on work whose time [`on`] counts, such as
/// decoding, compiling and timing types.
pub(crate) fn spent_micros() -> u64 {
    SPENT.load(Relaxed) / 1000
}

/// Returns a lower bound of the microseconds that conversions have saved so far.
pub(crate) fn saved_micros() -> u64 {
    SAVED.load(Relaxed) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_part_of_the_time_is_spent() {
        assert!(within(0, AHEAD, 0, 0) && !within(1, AHEAD, 0, 0) && within(1, AHEAD, 1, 0));
        let second = 1_000_000_000;
        assert!(within(second / PART, AHEAD, 0, second) && !within(second / PART + AHEAD, 1, 0, second));
    }
}
