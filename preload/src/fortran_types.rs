//! `MPI_Type_commit` and `MPI_Type_free` of `use mpi_f08`.
//!
//! The binding of MPICH as Debian builds it calls `PMPI_Type_commit` and `PMPI_Type_free`, which the C
//! wrappers do not see. A type that is not known to be committed is never converted in a message. A
//! binding that calls the `MPI_` names is noted twice, which does no harm.
//!
//! Only MPICH's handles are noted here, since a Fortran handle is the C handle there. Open MPI's are
//! other numbers; its types are found inside the library (docs/PRELOAD.md, "Inside Open MPI").

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicPtr;

use crate::fortran::{Ref, real};
use crate::host::{HandleWord, Host, host};
use crate::{candidates, types};

/// `MPI_Type_commit` and `MPI_Type_free`: a handle and an error code, both by reference.
type OfType = unsafe extern "C-unwind" fn(Ref, Ref);

/// The C handle that a `TYPE(MPI_Datatype)` holds, or none under a library with other numbers.
///
/// # Safety
/// `datatype` must be null or a handle of `use mpi_f08`, which begins with a Fortran integer.
unsafe fn handle_in(host: &Host, datatype: Ref) -> Option<HandleWord> {
    if datatype.is_null() || host.abi.is_none_or(|abi| abi.handle_bytes != size_of::<c_int>()) {
        return None;
    }
    // SAFETY: as the caller promises; C's handles of four bytes are those integers.
    let handle = unsafe { datatype.cast::<u32>().read() };
    Some(HandleWord::from(handle))
}

/// # Safety
/// As `MPI_Type_commit` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_commit_f08_(datatype: Ref, ierror: Ref) {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let Some(host) = host() else { return };
    let found = real(&REAL, host, c"pmpi_type_commit_f08_", c"mpi_type_commit_f08_");
    // SAFETY: null is none, and any other address the function that the caller meant.
    let Some(theirs) = (unsafe { std::mem::transmute::<*mut c_void, Option<OfType>>(found) }) else { return };
    // SAFETY: the caller's handle.
    let handle = unsafe { handle_in(host, datatype) };
    let mut own: c_int = 0;
    // The argument may be left out.
    let place: *mut c_int = if ierror.is_null() { &raw mut own } else { ierror.cast() };
    // SAFETY: the caller's arguments, and a place for the error code, which is written.
    let code = unsafe {
        theirs(datatype, place.cast());
        *place
    };
    if let Some(handle) = handle
        && code == 0
    {
        types::committed(host, handle);
    }
}

/// # Safety
/// As `MPI_Type_free` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_free_f08_(datatype: Ref, ierror: Ref) {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let Some(host) = host() else { return };
    let found = real(&REAL, host, c"pmpi_type_free_f08_", c"mpi_type_free_f08_");
    // SAFETY: null is none, and any other address the function that the caller meant.
    let Some(theirs) = (unsafe { std::mem::transmute::<*mut c_void, Option<OfType>>(found) }) else { return };
    // Before the library may give the value to a type of another thread.
    // SAFETY: the caller's handle.
    if let Some(handle) = unsafe { handle_in(host, datatype) }
        && !candidates::forget(handle & host.mask)
    {
        candidates::forget_other(handle & host.mask);
    }
    // SAFETY: the caller's arguments.
    unsafe { theirs(datatype, ierror) }
}
