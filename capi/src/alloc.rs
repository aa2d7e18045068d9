//! The global allocator of the library. An embedder can replace it by functions of its own.
//!
//! If `ddtc_set_allocator` succeeds, the library's heap memory comes from the embedder's functions.
//! The executable pages of code arenas still come from the system. `ddtc_set_allocator` succeeds
//! only before the first allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::arguments::export;

/// The functions of an embedder: `ddtc_allocator` of ddtc.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Hooks {
    alloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize)>,
    context: *mut c_void,
}

/// Initial state: nothing was allocated, and no hooks were set.
const OPEN: u8 = 0;
/// State while one thread writes the hooks. Allocations of other threads wait until this state
/// ends.
const SETTING: u8 = 1;
/// Final state in which the system's allocator serves all calls.
const SYSTEM: u8 = 2;
/// Final state in which the embedder's hooks serve all calls.
const HOOKED: u8 = 3;

/// The allocator. It consists of its state and the hooks, which are valid only in state `HOOKED`.
struct Allocator {
    state: AtomicU8,
    hooks: UnsafeCell<Hooks>,
}

// SAFETY: threads share the cell `hooks`, but no write to it overlaps another access. Only the
// thread that moved `state` from OPEN to SETTING writes it, which can happen once, and afterwards
// sets HOOKED with release order. `Allocator::hooks` reads the cell only after it has loaded HOOKED
// with acquire order. ddtc.h demands that the functions of the embedder may be called from any
// thread.
unsafe impl Sync for Allocator {}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {
    state: AtomicU8::new(OPEN),
    hooks: UnsafeCell::new(Hooks { alloc: None, free: None, context: std::ptr::null_mut() }),
};

impl Allocator {
    /// Returns the embedder's hooks, or none if the system's allocator serves. After the first call
    /// the answer never changes.
    fn hooks(&self) -> Option<&Hooks> {
        let mut state = self.state.load(Ordering::Acquire);
        if state == OPEN {
            // The first allocation finds no hooks, so the system's allocator serves from now on. If
            // another thread has changed the state since it was loaded, the decision of that thread
            // counts.
            state = match self.state.compare_exchange(OPEN, SYSTEM, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => SYSTEM,
                Err(now) => now,
            };
        }
        while state == SETTING {
            std::hint::spin_loop();
            state = self.state.load(Ordering::Acquire);
        }
        // SAFETY: the state is HOOKED, which no thread leaves, so the cell is never written again.
        // The acquire load of HOOKED makes the hooks that were written before it visible here.
        (state == HOOKED).then(|| unsafe { &*self.hooks.get() })
    }
}

// SAFETY: `hooks` gives the same answer at every call, so memory goes back to where it came from.
// The system's allocator satisfies the contract of `GlobalAlloc`. Of the embedder's hooks, ddtc.h
// demands the same: memory of the size and alignment asked for, or null. No method here panics.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.hooks() {
            // SAFETY: `ddtc_set_allocator` took this function together with this context, and its
            // caller promised that it may be called from any thread. `ddtc_set_allocator` never
            // sets hooks with a null function, so the other arm is that of the system.
            Some(Hooks { alloc: Some(alloc), context, .. }) => unsafe {
                alloc(*context, layout.size(), layout.align()).cast()
            },
            // SAFETY: the size of `layout` is not 0, as the caller of this method promises.
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match self.hooks() {
            // SAFETY: `pointer` and `layout` are those of an earlier `alloc`, as the caller
            // promises, and that call used the same hooks, because they never change.
            Some(Hooks { free: Some(free), context, .. }) => unsafe {
                free(*context, pointer.cast(), layout.size(), layout.align());
            },
            // SAFETY: `pointer` and `layout` are those of an earlier `alloc`, as the caller
            // promises, and that call used the system's allocator, because hooks are never set
            // after an allocation.
            _ => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.hooks().is_none() {
            // SAFETY: the caller promises that `pointer` was allocated here with `layout`, and that
            // `size` is a valid size other than 0. Without hooks it came from the system.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // SAFETY: `layout.align()` is the alignment of a valid layout, and the caller promises that
        // `size` is not 0 and, rounded up to that alignment, fits in an `isize`. The copy reads at
        // most the `layout.size()` bytes at `pointer` and writes at most the `size` bytes at `new`,
        // which is not null and overlaps no other allocation. After it nothing uses `pointer`,
        // which was allocated here with `layout`.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(pointer, new, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            new
        }
    }
}

/// `MPI_ERR_ARG` of the standard ABI. `ddtc_set_allocator` returns its codes without a message,
/// because storing a message allocates memory, after which no hooks can be set.
const ARG: c_int = 13;
/// `MPI_ERR_OTHER` of the standard ABI.
const OTHER: c_int = 16;

/// Sets the functions from which the library gets its memory (see `ddtc_set_allocator` in ddtc.h).
/// Returns `MPI_ERR_ARG` for a null pointer or function, and `MPI_ERR_OTHER` if something was
/// already allocated, if hooks were already set, or if the process is inconsistent after a fork.
///
/// # Safety
/// `hooks` must be null or point to a structure whose functions satisfy the contract in ddtc.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ddtc_set_allocator(hooks: *const Hooks) -> c_int {
    if hooks.is_null() {
        return ARG;
    }
    // SAFETY: `hooks` is not null, and the caller promises that it then points to an initialized
    // and aligned structure of this type.
    let hooks = unsafe { hooks.read() };
    if hooks.alloc.is_none() || hooks.free.is_none() {
        return ARG;
    }
    if ddtc::internal::process::is_inconsistent() {
        return OTHER;
    }
    let state = &ALLOCATOR.state;
    // A fork waits for the end of this section, so that a child process does not start in state
    // SETTING, in which its first allocation would wait forever. Nothing in the section allocates.
    let _section = ddtc::internal::process::section();
    if state.compare_exchange(OPEN, SETTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return OTHER;
    }
    // SAFETY: this thread has just moved the state from OPEN to SETTING. No other thread can do
    // that, so this is the only writer, and the cell is read only in state HOOKED, which is set
    // below.
    unsafe { ALLOCATOR.hooks.get().write(hooks) };
    state.store(HOOKED, Ordering::Release);
    0
}

export! {
    fn ddtc_allocator_is_set(flag: *mut c_int) {
        let flag = crate::arguments::out("allocator_is_set", "flag", flag)?;
        flag.set(c_int::from(ALLOCATOR.hooks().is_some()));
        Ok(())
    }
}
