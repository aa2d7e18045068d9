//! The lock of all arenas, held across `fork`.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::State;

/// All arenas of the process, under one lock: it is held for tens of nanoseconds per compile, and one lock is what a fork
/// handler can hold.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) next: u64,
    pub(super) arenas: BTreeMap<u64, State>,
}

impl Registry {
    pub(super) fn state(&mut self, id: u64) -> &mut State {
        self.arenas.get_mut(&id).expect("an arena lives as long as its handle")
    }
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { next: 0, arenas: BTreeMap::new() });

pub(super) fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The guard that a forking thread holds from `before_fork` to `after_fork`.
struct Held(UnsafeCell<Option<MutexGuard<'static, Registry>>>);

// SAFETY: touched only by the thread that holds the lock of the registry; in the child that thread is the only one.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

extern "C" fn before_fork() {
    let guard = lock();
    // SAFETY: this thread holds the lock, hence the cell.
    unsafe { *HELD.0.get() = Some(guard) };
}

/// Runs in the parent and in the child.
extern "C" fn after_fork() {
    // SAFETY: the forking thread has held the lock, hence the cell, since `before_fork`; it goes on in both processes.
    let guard = unsafe { (*HELD.0.get()).take() };
    if let Some(mut registry) = guard {
        for state in registry.arenas.values_mut() {
            state.seal();
        }
    }
}

pub(super) fn register_fork_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this library that neither unwind nor allocate beyond what `fork` allows.
        let status = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        assert_eq!(status, 0, "no memory for fork handlers");
    });
}
