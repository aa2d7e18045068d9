//! Open MPI's functions that work on convertors and types, each looked up at its first call, and
//! the state of Open MPI's convertor hook, which is enabled or disabled.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use ddtc::internal::kind::Direction;
use ddtc::internal::process::when_inconsistent;

use super::layout::{Convertor, Layout};
use crate::scopes::after_ours;

/// Type of Open MPI's functions that pack or unpack the bytes of a convertor. Arguments: convertor,
/// buffers, number of buffers, and a result: the number of bytes that were packed or unpacked.
pub(crate) type Mover = unsafe extern "C" fn(Convertor, *mut libc::iovec, *mut u32, *mut usize) -> c_int;
/// Type of Open MPI's functions that prepare a convertor for a send or a receive. Arguments:
/// convertor, datatype, number of instances, program's buffer.
pub(crate) type Prepare = unsafe extern "C" fn(Convertor, *const c_void, usize, *const c_void) -> c_int;
/// Type of Open MPI's function that copies instances of a datatype from one buffer to another.
/// Arguments: datatype, number of instances (see [`Layout::instances`]), destination, source.
pub(crate) type Copy = unsafe extern "C" fn(*const c_void, usize, *mut c_void, *mut c_void) -> i32;
/// Type of Open MPI's function that commits a datatype, which is its argument.
pub(crate) type Commit = unsafe extern "C" fn(*mut c_void) -> i32;
/// Type of Open MPI's functions that set the position of a convertor in its packed bytes.
/// Arguments: convertor, position.
pub(crate) type Position = unsafe extern "C" fn(Convertor, *mut usize) -> c_int;

/// Result that ddtc returns to Open MPI in place of one of Open MPI's own functions if that
/// function was not found: Open MPI's general error, `OPAL_ERROR`.
pub(crate) const FAILED: c_int = -1;

/// A function of Open MPI, which is looked up by its name at the first use.
pub(crate) struct Original {
    name: &'static str,
    at: AtomicPtr<c_void>,
}

impl Original {
    const fn new(name: &'static str) -> Original {
        Original { name, at: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the address of the function, after looking it up if the address is not known yet;
    /// null if no object has the function.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.known();
        if known.is_null() { self.find() } else { known }
    }

    /// Returns the address of the function, without looking it up; null if it was not looked up
    /// yet, or if no object has the function.
    #[inline]
    pub(crate) fn known(&self) -> *mut c_void {
        self.at.load(Ordering::Acquire)
    }

    /// Forgets the address, because Open MPI may be unloaded.
    fn forget(&self) {
        self.at.store(std::ptr::null_mut(), Ordering::Release);
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let found = after_ours(self.name);
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

/// Casts the address of a function of Open MPI to the C type `$type`; gives `None` for null.
macro_rules! typed {
    ($address:expr, $type:ty) => {{
        let address = $address;
        // SAFETY: null becomes `None`. Any other address is that of the function that was looked up
        // by its name in Open MPI, and this function has the type `$type` in Open MPI's headers.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<$type>>(address) }
    }};
}
pub(crate) use typed;

/// Looks up a function of Open MPI, and casts its address to the C type `$type`; gives `None` if no
/// object has the function.
macro_rules! called {
    ($original:expr, $type:ty) => {
        $crate::convertor_hook::host::typed!($original.address(), $type)
    };
}
pub(crate) use called;

/// Returns Open MPI's function that sets the position of a convertor with a generic mover; `None`
/// if the function is not found.
#[inline]
pub(crate) fn placer(layout: &Layout) -> Option<Position> {
    if layout.placer == 0 { called!(SET_POSITION, Position) } else { called!(GENERIC_POSITION, Position) }
}

/// Addresses of Open MPI's generic movers, which interpret Open MPI's description of a type. One
/// packs and one unpacks. Both addresses are 0 while the hook is disabled.
static GENERIC: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Returns the address of Open MPI's generic mover of a direction; 0 while the hook is disabled.
#[inline]
pub(crate) fn generic(direction: Direction) -> usize {
    // Pairs with the `Release` in `enable`, so a thread that sees the address also sees the proven
    // layout of convertors.
    GENERIC[direction as usize].load(Ordering::Acquire)
}

/// Returns true while the hook is enabled.
#[inline]
pub(crate) fn is_enabled() -> bool {
    generic(Direction::Pack) != 0
}

/// Addresses of Open MPI's generic movers, stored when the hook was first enabled, which is after
/// the proof has succeeded. They stay when the hook is disabled.
static PROVEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Returns the address of Open MPI's generic mover of a direction; 0 if the hook was never enabled.
/// The address is returned also after the hook was disabled, because convertors that were prepared
/// before may still have a mover of ddtc, which then calls Open MPI's.
pub(crate) fn proven(direction: Direction) -> usize {
    PROVEN[direction as usize].load(Ordering::Acquire)
}

/// Enables the hook with these generic movers of Open MPI. If a fork leaves the child process
/// inconsistent, the hook is disabled in the child.
pub(crate) fn enable(generic: [usize; 2]) {
    static DISABLE: fn() = disable;
    when_inconsistent(&DISABLE);
    PROVEN.iter().zip(generic).for_each(|(proven, generic)| proven.store(generic, Ordering::Release));
    // The address for packing is stored last, because `is_enabled` reads it. So a thread that sees
    // the hook enabled finds both addresses.
    for direction in [Direction::Unpack, Direction::Pack] {
        GENERIC[direction as usize].store(generic[direction as usize], Ordering::Release);
    }
}

/// Disables the hook, so that no convertor which is prepared from now on gets a mover of ddtc.
fn disable() {
    for direction in Direction::BOTH {
        GENERIC[direction as usize].store(0, Ordering::Release);
    }
}

/// Disables the hook and forgets the addresses of Open MPI's functions that were looked up.
pub(super) fn disable_and_forget() {
    disable();
    for original in
        [&PREPARE_FOR_SEND, &PREPARE_FOR_RECV, &SET_POSITION, &GENERIC_POSITION, &RAW, &COMMIT, &COPY]
    {
        original.forget();
    }
}

/// Enables the hook again if it was enabled before. Called when Open MPI has a user (the world or a
/// session) again.
pub(crate) fn enable_again() {
    let movers = [0, 1].map(|direction| PROVEN[direction].load(Ordering::Acquire));
    if movers[0] != 0 {
        enable(movers);
    }
}
