//! Commits of types that the program makes where this library does not see them, as Fortran's do: there the door is opened for what is known by its description.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::host::{COMMIT, Commit, FAILED, called};
use super::ready;
use super::standing::is_in;
use crate::host::{HandleWord, Host, host};

/// The type that is being committed where that is seen: the host's structure lies where its handle points. Threads that meet here let one another's commits look
/// unseen: the door opens for nothing then.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Commits of the host's that are looked at before nobody is thought to make unseen ones.
static LEFT: AtomicU32 = AtomicU32::new(64);

/// Commits a type by `commit`, and says meanwhile that the commit is seen.
#[inline]
pub(crate) fn seen(host: &Host, datatype: HandleWord, commit: impl FnOnce() -> c_int) -> c_int {
    // The other libraries do not call the function below.
    if !host.shows_commits() {
        return commit();
    }
    SEEN.store(datatype, Ordering::Relaxed);
    let code = commit();
    SEEN.store(0, Ordering::Relaxed);
    code
}

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_datatype_commit(datatype: *mut c_void) -> i32 {
    let Some(theirs) = called!(COMMIT, Commit) else { return FAILED };
    if SEEN.load(Ordering::Relaxed) == datatype.addr() as u64 || LEFT.load(Ordering::Relaxed) == 0 {
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
