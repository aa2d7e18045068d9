//! Outcomes of calls, for the report: noted where they are decided, counted where the call ends, and only
//! while calls are counted.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc_hosts::bypass::Bypass;

use crate::slow_path::{COUNT, watched_for};
use crate::stack::here;

static CALLS: [AtomicU64; Bypass::ALL.len()] = [const { AtomicU64::new(0) }; Bypass::ALL.len()];

/// Returns the number of calls that were bypassed for a reason.
pub(crate) fn calls(why: Bypass) -> u64 {
    CALLS[why as usize].load(Relaxed)
}

/// Counts a call of the program that was bypassed.
pub(crate) fn add(why: Bypass) {
    CALLS[why as usize].fetch_add(1, Relaxed);
}

/// Outcome of a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Something of it was converted.
    pub(crate) converted: bool,
    /// Why something of it was not: the first reason that was noted.
    pub(crate) noted: Option<Bypass>,
}

thread_local! {
    /// Outcome of the call that this thread is in, and the stack address at which its count began. A
    /// call at that address or above it is a later one: the earlier call was abandoned.
    static NOW: Cell<Option<(usize, Outcome)>> = const { Cell::new(None) };
}

/// A call of the program that is counted. Calls that the host makes inside are its own.
pub(crate) struct Counted(());

impl Counted {
    /// Begins a call, if calls are counted.
    #[inline]
    pub(crate) fn begin() -> Option<Counted> {
        if watched_for(COUNT) { Counted::open(here()) } else { None }
    }

    #[cold]
    fn open(place: usize) -> Option<Counted> {
        let open = |now: &Cell<Option<(usize, Outcome)>>| {
            if now.get().is_some_and(|(outer, _)| place < outer) {
                return None;
            }
            now.set(Some((place, Outcome::default())));
            Some(Counted(()))
        };
        NOW.try_with(open).ok().flatten()
    }

    /// Returns the outcome so far.
    pub(crate) fn outcome(&self) -> Outcome {
        NOW.try_with(Cell::get).ok().flatten().map_or_else(Outcome::default, |(_, outcome)| outcome)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = NOW.try_with(|now| now.set(None));
    }
}

/// Notes why something of this call is bypassed. Returns none, so that a caller can end with it.
#[inline]
pub(crate) fn bypassed<T>(why: Bypass) -> Option<T> {
    if watched_for(COUNT) {
        change(|outcome| outcome.noted = outcome.noted.or(Some(why)));
    }
    None
}

/// Notes that something of this call is converted.
#[inline]
pub(crate) fn converted() {
    if watched_for(COUNT) {
        change(|outcome| outcome.converted = true);
    }
}

#[cold]
fn change(change: impl FnOnce(&mut Outcome)) {
    let _ = NOW.try_with(|now| {
        if let Some((place, mut outcome)) = now.get() {
            change(&mut outcome);
            now.set(Some((place, outcome)));
        }
    });
}
