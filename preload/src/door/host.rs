//! Open MPI's functions that work on convertors, found when the first of them is called, and what is shared once the door is open.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use ddtc::kind::Direction;
use ddtc::process::when_inconsistent;

use super::layout::{Convertor, Layout};
use crate::scopes::behind;

/// A function that moves bytes: convertor, buffers, how many of them, bytes that were moved.
pub(crate) type Mover = unsafe extern "C" fn(Convertor, *mut libc::iovec, *mut u32, *mut usize) -> c_int;
/// Convertor, type, instances, buffer.
pub(crate) type Prepare = unsafe extern "C" fn(Convertor, *const c_void, usize, *const c_void) -> c_int;
/// Type, instances ([`Layout::instances`]), where to, where from.
pub(crate) type Copy = unsafe extern "C" fn(*const c_void, usize, *mut c_void, *mut c_void) -> i32;
/// A type.
pub(crate) type Commit = unsafe extern "C" fn(*mut c_void) -> i32;
/// Convertor, position.
pub(crate) type Position = unsafe extern "C" fn(Convertor, *mut usize) -> c_int;

/// The result of a function of the host that cannot be: its general error.
pub(crate) const FAILED: c_int = -1;

/// A function of the host, found once.
pub(crate) struct Original {
    name: &'static str,
    at: AtomicPtr<c_void>,
}

impl Original {
    const fn new(name: &'static str) -> Original {
        Original { name, at: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null: no object has it.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.known();
        if known.is_null() { self.find() } else { known }
    }

    /// Its address; null: nobody has asked for it yet, or no object has it.
    #[inline]
    pub(crate) fn known(&self) -> *mut c_void {
        self.at.load(Ordering::Acquire)
    }

    /// Forgets the address, which may be that of a library that is unloaded.
    fn forget(&self) {
        self.at.store(std::ptr::null_mut(), Ordering::Release);
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let found = behind(self.name);
        self.at.store(found, Ordering::Release);
        found
    }
}

pub(crate) static PREPARE_FOR_SEND: Original = Original::new("opal_convertor_prepare_for_send");
pub(crate) static PREPARE_FOR_RECV: Original = Original::new("opal_convertor_prepare_for_recv");
pub(crate) static SET_POSITION: Original = Original::new("opal_convertor_set_position_nocheck");
static GENERIC_POSITION: Original = Original::new("opal_convertor_position_generic");
pub(crate) static RAW: Original = Original::new("opal_convertor_raw");
pub(crate) static COMMIT: Original = Original::new("opal_datatype_commit");
pub(crate) static COPY: Original = Original::new("opal_datatype_copy_content_same_ddt");

/// An address of a function of the host as one of a C type.
macro_rules! typed {
    ($address:expr, $type:ty) => {{
        let address = $address;
        // SAFETY: null is none, and any other address the host's function of that name, of which Open MPI's headers say the type.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$type>>(address) }
    }};
}
pub(crate) use typed;

/// A function of the host as one of a C type.
macro_rules! called {
    ($original:expr, $type:ty) => {
        $crate::door::host::typed!($original.address(), $type)
    };
}
pub(crate) use called;

/// Returns the host's function that places a convertor which its generic movers serve.
#[inline]
pub(crate) fn placer(layout: &Layout) -> Option<Position> {
    if layout.placer == 0 { called!(SET_POSITION, Position) } else { called!(GENERIC_POSITION, Position) }
}

/// The host's generic movers, of each direction, once the door is open; 0 while it is shut.
static GENERIC: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The host's generic mover of a direction, if the door is open.
#[inline]
pub(crate) fn generic(direction: Direction) -> usize {
    // With it comes the layout that is proven.
    GENERIC[direction as usize].load(Ordering::Acquire)
}

/// Whether the door is open.
#[inline]
pub(crate) fn is_open() -> bool {
    generic(Direction::Pack) != 0
}

/// The generic movers of the library that was proven.
static PROVEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Returns the host's generic mover of a direction also after the door was shut, for convertors that
/// have a mover of ours from before; 0 if the door was never open.
pub(crate) fn proven(direction: Direction) -> usize {
    PROVEN[direction as usize].load(Ordering::Acquire)
}

/// Opens it.
pub(crate) fn open(generic: [usize; 2]) {
    static SHUT: fn() = shut;
    when_inconsistent(&SHUT);
    PROVEN.iter().zip(generic).for_each(|(proven, generic)| proven.store(generic, Ordering::Release));
    // What is asked first last.
    for direction in [Direction::Unpack, Direction::Pack] {
        GENERIC[direction as usize].store(generic[direction as usize], Ordering::Release);
    }
}

/// Shuts the door: no convertor that is prepared from now on gets a mover of ours.
fn shut() {
    for direction in Direction::BOTH {
        GENERIC[direction as usize].store(0, Ordering::Release);
    }
}

/// Shuts the door and forgets the library's functions.
pub(super) fn close() {
    shut();
    for original in
        [&PREPARE_FOR_SEND, &PREPARE_FOR_RECV, &SET_POSITION, &GENERIC_POSITION, &RAW, &COMMIT, &COPY]
    {
        original.forget();
    }
}

/// Opens the door again if it was open for this library, which has a user again.
pub(crate) fn reopen() {
    let movers = [0, 1].map(|direction| PROVEN[direction].load(Ordering::Acquire));
    if movers[0] != 0 {
        open(movers);
    }
}
