//! Sums the cost of decoding, compiling and timing for the program, and says whether more may be spent.
//!
//! A program's uses of a type do not say how often it will be used again. So all that this library does ahead of a gain is kept within a part of the time
//! that the program has run, and of what its conversions have saved. What is begun is finished, so one decoding or compile may go beyond it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use ddtc::process::Awaited;

use crate::reserve;
use crate::settings::settings;

/// The part of the program's time: one in so many.
const PART: u64 = 80;
/// Nanoseconds that may be spent before any time has gone by: the first compile of a process takes 0.06 ms and more.
const AHEAD: u64 = 250_000;

static SPENT: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds that conversions have saved, at least.
static SAVED: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds that went into what is done once in a process.
static ONCE: AtomicU64 = AtomicU64::new(0);

fn began() -> Instant {
    static BEGAN: Awaited<Instant> = Awaited::new();
    *BEGAN.get_or_init(Instant::now)
}

/// The time of which a part may be spent begins now, at the latest.
pub(crate) fn begin() {
    let _ = began();
}

/// Says whether about so many nanoseconds may be spent now.
pub(crate) fn allows(nanos: u64) -> bool {
    if reserve::is_short() {
        return false;
    }
    settings().config.lazy_threshold == 0 || {
        let saved = SAVED.load(Relaxed).saturating_add(ONCE.load(Relaxed));
        within(SPENT.load(Relaxed), nanos, saved, began().elapsed().as_nanos() as u64)
    }
}

fn within(spent: u64, more: u64, saved: u64, elapsed: u64) -> bool {
    spent.saturating_add(more) <= AHEAD + elapsed / PART + saved
}

/// A message was converted that saves so many nanoseconds.
#[inline]
pub(crate) fn saved(nanos: u64) {
    // Threads may lose one another's: the sum is a bound from below, and no call waits for it.
    SAVED.store(SAVED.load(Relaxed).saturating_add(nanos), Relaxed);
}

/// So many nanoseconds went into what is done once in a process: types need not make up for them.
pub(crate) fn forgive(nanos: u64) {
    ONCE.fetch_add(nanos, Relaxed);
}

/// Nanoseconds that went into such things so far.
pub(crate) fn forgiven() -> u64 {
    ONCE.load(Relaxed)
}

/// Does what costs time, and counts it, by the clock on the wall: that of the thread alone is a call of the system, of 0.7 us (Zen 4), which is what
/// decoding a small type takes, and calls that wait for a compile would make it each time. Where others take the core away less is converted.
pub(crate) fn on<T>(what: impl FnOnce() -> T) -> T {
    timed(what).0
}

/// As [`on`], with the nanoseconds that it took.
pub(crate) fn timed<T>(what: impl FnOnce() -> T) -> (T, u64) {
    let start = Instant::now();
    let made = what();
    let nanos = start.elapsed().as_nanos() as u64;
    SPENT.fetch_add(nanos, Relaxed);
    (made, nanos)
}

/// Returns the microseconds spent so far.
pub(crate) fn spent_micros() -> u64 {
    SPENT.load(Relaxed) / 1000
}

/// Returns the microseconds that conversions have saved so far, at least.
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
