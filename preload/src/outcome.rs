//! Outcomes of the program's MPI calls, for the report: at least one buffer of the call was
//! converted, or the call was bypassed for a reason. An outcome is recorded when ddtc decides about
//! a buffer of the call, and it is counted when the call ends. Both happen only while calls are
//! counted.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc_hosts::bypass::Bypass;

use crate::slow_path::{COUNT, watched_for};
use crate::stack::here;

/// Number of bypassed calls for each [`Bypass`] reason.
static CALLS: [AtomicU64; Bypass::ALL.len()] = [const { AtomicU64::new(0) }; Bypass::ALL.len()];

/// Returns the number of calls that were bypassed for the reason `why`.
pub(crate) fn calls(why: Bypass) -> u64 {
    CALLS[why as usize].load(Relaxed)
}

/// Counts a call of the program that was bypassed for the reason `why`.
pub(crate) fn add(why: Bypass) {
    CALLS[why as usize].fetch_add(1, Relaxed);
}

/// Outcome of a call up to now.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// True if at least one buffer of the call was converted.
    pub(crate) converted: bool,
    /// First reason that was recorded for bypassing a buffer of the call.
    pub(crate) bypass_reason: Option<Bypass>,
}

thread_local! {
    /// Outcome of the call that this thread is in, and the stack address at which the count of that
    /// call began. Stacks grow downwards. So if a call begins at that address or above it, it was
    /// not made inside the earlier call, and the program has left the earlier call by an exception
    /// or `longjmp`.
    static NOW: Cell<Option<(usize, Outcome)>> = const { Cell::new(None) };
}

/// Call of the program that is being counted. While this value lives, MPI calls that the MPI
/// library makes inside the call begin no count of their own.
pub(crate) struct Counted(());

impl Counted {
    /// Begins the count of a call. Returns `None` if calls are not counted, or if this thread is
    /// inside a call that is counted.
    #[inline]
    pub(crate) fn begin() -> Option<Counted> {
        if watched_for(COUNT) { Counted::begin_outermost(here()) } else { None }
    }

    #[cold]
    fn begin_outermost(place: usize) -> Option<Counted> {
        let begin = |now: &Cell<Option<(usize, Outcome)>>| {
            if now.get().is_some_and(|(outer, _)| place < outer) {
                return None;
            }
            now.set(Some((place, Outcome::default())));
            Some(Counted(()))
        };
        NOW.try_with(begin).ok().flatten()
    }

    /// Returns the outcome of the call up to now.
    pub(crate) fn outcome(&self) -> Outcome {
        NOW.try_with(Cell::get).ok().flatten().map_or_else(Outcome::default, |(_, outcome)| outcome)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = NOW.try_with(|now| now.set(None));
    }
}

/// Records the reason for which a buffer of the current call is bypassed, unless the call has a
/// reason already. Always returns `None`, so that callers can return the result of this function.
#[inline]
pub(crate) fn bypassed<T>(why: Bypass) -> Option<T> {
    if watched_for(COUNT) {
        change(|outcome| outcome.bypass_reason = outcome.bypass_reason.or(Some(why)));
    }
    None
}

/// Records that a buffer of the current call is converted.
#[inline]
pub(crate) fn converted() {
    if watched_for(COUNT) {
        change(|outcome| outcome.converted = true);
    }
}

/// Changes the outcome of the call that this thread is in, if that call is counted.
#[cold]
fn change(change: impl FnOnce(&mut Outcome)) {
    let _ = NOW.try_with(|now| {
        if let Some((place, mut outcome)) = now.get() {
            change(&mut outcome);
            now.set(Some((place, outcome)));
        }
    });
}
