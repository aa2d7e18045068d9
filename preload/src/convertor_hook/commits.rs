//! Detection of commits that the program makes without ddtc's wrapper of `MPI_Type_commit`, as
//! Fortran programs do. The first such commit enables Open MPI's convertor hook, which can
//! recognize the committed types by Open MPI's descriptions of them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use super::host::{COMMIT, Commit, FAILED, called};
use super::ready;
use super::standing::is_in;
use crate::hook::is_committing;
use crate::host::host;

/// Number of commits that ddtc will still examine. Only commits that no wrapper of ddtc has made
/// are examined. The number becomes 0 as soon as ddtc has found that the program made one of them.
/// If the program has made none of the first 64, ddtc assumes that the program makes no unseen
/// commits, and stops examining.
static COMMITS_TO_EXAMINE: AtomicU32 = AtomicU32::new(64);

/// Commits a type by Open MPI's function of this name. Then examines whether the program has made
/// the commit, unless a wrapper of ddtc has made it.
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_datatype_commit(datatype: *mut c_void) -> i32 {
    let Some(theirs) = called!(COMMIT, Commit) else { return FAILED };
    // In Open MPI the handle of a type in C is the address of the type's structure, which is the
    // argument of this function. So `is_committing`, which compares handles, can be called with it.
    if is_committing(datatype.addr() as u64) || COMMITS_TO_EXAMINE.load(Ordering::Relaxed) == 0 {
        // SAFETY: `theirs` is Open MPI's function of this name, and the caller keeps its contract.
        return unsafe { theirs(datatype) };
    }
    // SAFETY: `theirs` is Open MPI's function of this name, and the caller keeps its contract.
    let code = unsafe { theirs(datatype) };
    look();
    code
}

/// Enables Open MPI's convertor hook if `MPI_Type_commit` or `PMPI_Type_commit` is on the stack,
/// which shows that the program has made this commit without passing a wrapper of ddtc.
#[cold]
fn look() {
    COMMITS_TO_EXAMINE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
    if is_in(|name| name.ends_with(b"MPI_Type_commit"))
        && let Some(host) = host()
    {
        COMMITS_TO_EXAMINE.store(0, Ordering::Relaxed);
        ready::enable_untimed(host);
    }
}
