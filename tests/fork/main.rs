//! Tests of the effects that forks, and limits on a process, have on the library. These tests have
//! a process of their own, because a fork seals all arenas and waits for all threads that are in a
//! fork section.

mod arena;
mod busy;
mod child;
mod delayed;
mod limits;
mod sections;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns a guard that only one test at a time can hold. If tests ran at the same time, each would
/// see the forks of the other tests in its counters, and would have to wait for their threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
