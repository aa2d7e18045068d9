//! What a fork and the limits of a process do to the library, in a process of its own: a fork seals every arena, and waits for every thread.

mod arena;
mod busy;
mod child;
mod entrance;
mod limits;
mod sections;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time: the others would see its forks in their figures, and wait for its threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
