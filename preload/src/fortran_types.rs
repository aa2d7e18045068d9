//! Wrappers of `MPI_Type_commit` and `MPI_Type_free` for `use mpi_f08`.
//!
//! The `mpi_f08` binding of MPICH as Debian builds it calls `PMPI_Type_commit` and
//! `PMPI_Type_free`, so the C wrappers do not see these calls. Without the wrappers here, no type
//! of a program that uses this binding would be known to be committed, and no message with such a
//! type would be converted. If a binding calls the `MPI_` names, a commit or free is recorded
//! twice, once by the wrappers here and once by the C wrappers, which does no harm.
//!
//! Handles are recorded only if a Fortran handle has the same value as the C handle, as in the ABI
//! of MPICH. In other ABIs Fortran's handles are other numbers than C's. Under Open MPI, types are
//! found inside the library instead (docs/CALLS.md, "Inside Open MPI").

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicPtr;

use crate::fortran::{Ref, real};
use crate::host::{HandleWord, Host, host};
use crate::{hotness, types};

/// C type of the Fortran functions `MPI_Type_commit` and `MPI_Type_free`, which take a handle and
/// an error code, both by reference.
type OfType = unsafe extern "C-unwind" fn(Ref, Ref);

/// Returns the C handle that a `TYPE(MPI_Datatype)` holds. Returns `None` if `datatype` is null.
/// Also returns `None` if C handles are not 4 bytes wide, because Fortran's handles are then other
/// numbers than C's.
///
/// # Safety
/// `datatype` must be null or point to a `TYPE(MPI_Datatype)` of `use mpi_f08`, which begins with a
/// Fortran integer.
unsafe fn handle_in(host: &Host, datatype: Ref) -> Option<HandleWord> {
    if datatype.is_null() || host.abi.is_none_or(|abi| abi.handle_bytes != size_of::<c_int>()) {
        return None;
    }
    // SAFETY: `datatype` is not null, so the caller promises that it points to a Fortran integer,
    // which has at least 4 bytes. In an ABI with handles of 4 bytes, that integer is the C handle.
    let handle = unsafe { datatype.cast::<u32>().read() };
    Some(HandleWord::from(handle))
}

/// # Safety
/// The arguments must be valid for `MPI_Type_commit` of `use mpi_f08` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_commit_f08_(datatype: Ref, ierror: Ref) {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let Some(host) = host() else { return };
    let found = real(&REAL, host, c"pmpi_type_commit_f08_", c"mpi_type_commit_f08_");
    // SAFETY: null becomes `None`. Any other address is that of the Fortran function of the name
    // that the caller has used, which takes two references.
    let Some(theirs) = (unsafe { std::mem::transmute::<*mut c_void, Option<OfType>>(found) }) else { return };
    // SAFETY: the caller passes a `TYPE(MPI_Datatype)` by reference.
    let handle = unsafe { handle_in(host, datatype) };
    let mut own: c_int = 0;
    // The error argument is optional in Fortran. If the program omits it, `ierror` is null.
    let place: *mut c_int = if ierror.is_null() { &raw mut own } else { ierror.cast() };
    // SAFETY: `datatype` is the caller's argument, and `place` points to `own` or to the caller's
    // integer for the error code. The function writes an error code there before it is read.
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
/// The arguments must be valid for `MPI_Type_free` of `use mpi_f08` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_free_f08_(datatype: Ref, ierror: Ref) {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let Some(host) = host() else { return };
    let found = real(&REAL, host, c"pmpi_type_free_f08_", c"mpi_type_free_f08_");
    // SAFETY: null becomes `None`. Any other address is that of the Fortran function of the name
    // that the caller has used, which takes two references.
    let Some(theirs) = (unsafe { std::mem::transmute::<*mut c_void, Option<OfType>>(found) }) else { return };
    // ddtc forgets the type before the MPI library frees it. Once the type is freed, the MPI
    // library may give its handle to a type that another thread creates.
    // SAFETY: the caller passes a `TYPE(MPI_Datatype)` by reference.
    let handle = unsafe { handle_in(host, datatype) }.map_or(0, |handle| handle & host.mask);
    if handle != 0 && !hotness::forget(handle) {
        hotness::forget_other(handle);
    }
    // SAFETY: the arguments are those of the caller, who keeps the contract of the function.
    unsafe { theirs(datatype, ierror) };
}
