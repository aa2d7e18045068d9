//! The allocator hook: all memory of the library but code arenas comes from the embedder, if it asks before anything else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::arguments::export;

/// `ddtc_allocator` of ddtc.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Hooks {
    alloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize)>,
    context: *mut c_void,
}

/// Nobody has allocated; hooks are being set; hooks or the system serve for good.
const OPEN: u8 = 0;
const SETTING: u8 = 1;
const SYSTEM: u8 = 2;
const HOOKED: u8 = 3;

struct Allocator {
    state: AtomicU8,
    hooks: UnsafeCell<Hooks>,
}

// SAFETY: `hooks` is written once, by the thread that moved `state` from OPEN to SETTING, and read only in state HOOKED,
// which that thread sets with release order afterwards.
unsafe impl Sync for Allocator {}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {
    state: AtomicU8::new(OPEN),
    hooks: UnsafeCell::new(Hooks { alloc: None, free: None, context: std::ptr::null_mut() }),
};

impl Allocator {
    fn hooks(&self) -> Option<&Hooks> {
        let mut state = self.state.load(Ordering::Acquire);
        if state == OPEN {
            // The first allocation decides.
            state = match self.state.compare_exchange(OPEN, SYSTEM, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => SYSTEM,
                Err(now) => now,
            };
        }
        while state == SETTING {
            std::hint::spin_loop();
            state = self.state.load(Ordering::Acquire);
        }
        // SAFETY: in state HOOKED the cell is never written again.
        (state == HOOKED).then(|| unsafe { &*self.hooks.get() })
    }
}

// SAFETY: either all calls go to the system's allocator or all go to the hooks, of which ddtc.h demands the same.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.hooks() {
            // SAFETY: as the caller promises; hooks with null functions are never set.
            Some(Hooks { alloc: Some(alloc), context, .. }) => unsafe {
                alloc(*context, layout.size(), layout.align()).cast()
            },
            // SAFETY: as the caller promises.
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match self.hooks() {
            // SAFETY: as the caller promises; the memory came from the same hooks.
            Some(Hooks { free: Some(free), context, .. }) => unsafe {
                free(*context, pointer.cast(), layout.size(), layout.align());
            },
            // SAFETY: as the caller promises; the memory came from the system.
            _ => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.hooks().is_none() {
            // SAFETY: as the caller promises; the memory came from the system.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // SAFETY: as the caller promises; both pieces are as large as what is copied.
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

/// `MPI_ERR_ARG` and `MPI_ERR_OTHER`: an error text would need memory.
const ARG: c_int = 13;
const OTHER: c_int = 16;

/// See `ddtc_set_allocator` in ddtc.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ddtc_set_allocator(hooks: *const Hooks) -> c_int {
    if hooks.is_null() {
        return ARG;
    }
    // SAFETY: not null, so a structure of this type, as the caller promises.
    let hooks = unsafe { hooks.read() };
    if hooks.alloc.is_none() || hooks.free.is_none() {
        return ARG;
    }
    if ddtc::internal::process::is_inconsistent() {
        return OTHER;
    }
    let state = &ALLOCATOR.state;
    // A child must not find it half set. Nothing is allocated here.
    let _section = ddtc::internal::process::section();
    if state.compare_exchange(OPEN, SETTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return OTHER;
    }
    // SAFETY: this thread alone is in state SETTING, and nobody reads before HOOKED.
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
