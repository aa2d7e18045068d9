//! Communicators that the host has accepted: whether one is valid is all that packing wants of it.
//!
//! The world and self are valid from their first acceptance to the end of the epoch. Others carry an attribute whose delete
//! callback forgets them, so that a freed communicator goes to the host, which raises what it would raise.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::keyval::Keyval;

static WORLD: AtomicBool = AtomicBool::new(false);
static MYSELF: AtomicBool = AtomicBool::new(false);

/// Others, a set in groups of `WAYS`: what does not fit is asked of the host again.
const WAYS: usize = 4;
const GROUPS: usize = 64;
static OTHERS: [AtomicU64; WAYS * GROUPS] = [const { AtomicU64::new(0) }; WAYS * GROUPS];

static KEYVAL: Keyval = Keyval::new();

fn group(comm: u64) -> &'static [AtomicU64] {
    let group = (comm.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
    &OTHERS[group * WAYS..(group + 1) * WAYS]
}

/// Whether the host has accepted a communicator.
#[inline]
pub(crate) fn accepted(host: &Host, comm: HandleWord) -> bool {
    let comm = comm & host.mask;
    if comm == host.world {
        WORLD.load(Ordering::Relaxed)
    } else if comm == host.myself {
        MYSELF.load(Ordering::Relaxed)
    } else {
        group(comm).iter().any(|slot| slot.load(Ordering::Relaxed) == comm)
    }
}

/// Remembers a communicator that the host has just accepted.
pub(crate) fn accept(host: &Host, comm: HandleWord) -> Option<()> {
    let handle = comm & host.mask;
    if handle == host.world {
        WORLD.store(true, Ordering::Relaxed);
    } else if handle == host.myself {
        MYSELF.store(true, Ordering::Relaxed);
    } else if handle != 0 && !accepted(host, comm) {
        let make = || {
            let mut keyval = 0;
            // SAFETY: two callbacks of the standard's types, a number to write to.
            let code =
                unsafe { host.f.comm_create_keyval?(no_copy, delete, &raw mut keyval, std::ptr::null_mut()) };
            (code == 0).then_some(keyval)
        };
        let keyval = KEYVAL.get(make, |keyval| free_keyval(host, keyval))?;
        // The value is the handle: a delete callback may be given another one.
        let value = std::ptr::without_provenance_mut::<c_void>(handle as usize);
        // SAFETY: a communicator that the host has just accepted, and our keyval.
        if unsafe { host.f.comm_set_attr?(comm, keyval, value) } != 0 {
            return None;
        }
        let slots = group(handle);
        let free = slots
            .iter()
            .find(|s| s.compare_exchange(0, handle, Ordering::Relaxed, Ordering::Relaxed).is_ok());
        if free.is_none() {
            slots[(handle >> 3) as usize % WAYS].store(handle, Ordering::Relaxed);
        }
    }
    Some(())
}

fn free_keyval(host: &Host, mut keyval: c_int) {
    if let Some(comm_free_keyval) = host.f.comm_free_keyval {
        // SAFETY: a keyval that we made.
        let _ = unsafe { comm_free_keyval(&raw mut keyval) };
    }
}

/// Ends the epoch.
pub(crate) fn end_epoch(host: &Host) {
    WORLD.store(false, Ordering::Relaxed);
    MYSELF.store(false, Ordering::Relaxed);
    OTHERS.iter().for_each(|slot| slot.store(0, Ordering::Relaxed));
    if let Some(keyval) = KEYVAL.take() {
        free_keyval(host, keyval);
    }
}

/// A duplicate of a communicator is asked of the host by itself.
unsafe extern "C" fn no_copy(
    _comm: HandleWord,
    _keyval: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the host gives a pointer to a flag (MPI 5.0, 7.7.2).
    unsafe { flag.write(0) };
    0
}

unsafe extern "C" fn delete(
    _comm: HandleWord,
    _keyval: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    guard(|| {
        let handle = value.addr() as u64;
        for slot in group(handle) {
            let _ = slot.compare_exchange(handle, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    });
    0
}
