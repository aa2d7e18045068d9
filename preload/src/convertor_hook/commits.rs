//! Commits that the program makes where this library does not see them, as Fortran's do. The first
//! one enables the convertor hook, so that such types can be found by their descriptions.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use super::host::{COMMIT, Commit, FAILED, called};
use super::ready;
use super::standing::is_in;
use crate::hook::is_committing;
use crate::host::host;

/// Number of commits without a wrapper that are still examined. If none of the first 64 is the
/// program's, the program is taken to make no unseen commits.
static LEFT: AtomicU32 = AtomicU32::new(64);

/// Commits a type by Open MPI's function of this name.
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_datatype_commit(datatype: *mut c_void) -> i32 {
    let Some(theirs) = called!(COMMIT, Commit) else { return FAILED };
    // The handle of a type in C is the address of Open MPI's structure, which is passed here.
    if is_committing(datatype.addr() as u64) || LEFT.load(Ordering::Relaxed) == 0 {
        // SAFETY: `theirs` is Open MPI's function of this name, and the caller keeps its contract.
        return unsafe { theirs(datatype) };
    }
    // SAFETY: `theirs` is Open MPI's function of this name, and the caller keeps its contract.
    let code = unsafe { theirs(datatype) };
    look();
    code
}

/// Enables the hook if `MPI_Type_commit` is on the stack: the program commits, and no wrapper has
/// seen the commit.
#[cold]
fn look() {
    LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
    if is_in(|name| name.ends_with(b"MPI_Type_commit"))
        && let Some(host) = host()
    {
        LEFT.store(0, Ordering::Relaxed);
        ready::enable_untimed(host);
    }
}
