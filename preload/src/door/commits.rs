//! Commits of types that the program makes where this library does not see them, as Fortran's do: there the door is opened for what is known by its description.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use super::host::{COMMIT, Commit, FAILED, called};
use super::ready;
use super::standing::is_in;
use crate::hook::is_committing;
use crate::host::host;

/// Commits of the host's that are looked at before nobody is thought to make unseen ones.
static LEFT: AtomicU32 = AtomicU32::new(64);

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_datatype_commit(datatype: *mut c_void) -> i32 {
    let Some(theirs) = called!(COMMIT, Commit) else { return FAILED };
    // The host's structure of a type lies where its handle points.
    if is_committing(datatype.addr() as u64) || LEFT.load(Ordering::Relaxed) == 0 {
        // SAFETY: as the caller promises.
        return unsafe { theirs(datatype) };
    }
    // SAFETY: as the caller promises.
    let code = unsafe { theirs(datatype) };
    look();
    code
}

/// Opens the door, if it is the program that commits.
#[cold]
fn look() {
    LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
    if is_in(|name| name.ends_with(b"MPI_Type_commit"))
        && let Some(host) = host()
    {
        LEFT.store(0, Ordering::Relaxed);
        ready::open_untimed(host);
    }
}
