//! Tests of the effects of forks and of limits of a process on the library. They have a process of
//! their own, because a fork seals all arenas and waits for all threads that are in a fork section.

mod arena;
mod busy;
mod child;
mod entrance;
mod limits;
mod sections;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns a guard for one test at a time: other tests would see its forks in their counters, and
/// would have to wait for its threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
