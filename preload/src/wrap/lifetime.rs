//! Wrappers of the functions that initialize and finalize the world and sessions, and of
//! `MPI_Abort`.
//!
//! A PMPI layer begins its own work when its initialization function is called. So the wrappers
//! pass an initialization on to the function that the caller would have reached without ddtc, and
//! never directly to the `PMPI_` name. Finalization and `MPI_Abort` are passed on to the PMPI layer
//! that was found after ddtc ([`crate::layers`]), or to the MPI library if there is no layer.

use std::ffi::{c_int, c_void};

use crate::epoch::{finalize, initialize};
use crate::handles::{NO_HOST, missing};
use crate::host::{HandleWord, c_name, host, host_of_caller};
use crate::report;
use crate::scopes::next;
use crate::users::User;

macro_rules! initializes {
    ($($name:ident $user:ident $section:literal ($($argument:ident: $kind:ty),*);)*) => {$(
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            let Some(host) = host_of_caller() else { return NO_HOST };
            let found = next(c_name!(stringify!($name)));
            // SAFETY: a null pointer becomes `None`. Any other address is that of a function with
            // this name, whose C type is fixed by the MPI standard.
            let theirs = unsafe {
                std::mem::transmute::<*mut c_void, Option<unsafe extern "C-unwind" fn($($kind),*) -> c_int>>(found)
            };
            let Some(theirs) = theirs else { return missing(host) };
            // SAFETY: the arguments are the program's, unchanged.
            initialize(host, User::$user, || unsafe { theirs($($argument),*) })
        }
    )*};
}

initializes! {
    MPI_Init World "11.2.1" (argc: *mut c_int, argv: *mut c_void);
    MPI_Init_thread World "11.2.1" (argc: *mut c_int, argv: *mut c_void, required: c_int, provided: *mut c_int);
    MPI_Session_init Session "11.3.1" (info: HandleWord, errhandler: HandleWord, session: *mut c_void);
}

/// # Safety
/// As `MPI_Finalize` (MPI 5.0, 11.2.2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Finalize() -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(theirs) = host.next.finalize else { return missing(host) };
    // SAFETY: the function takes no arguments, and the program calls it now.
    finalize(host, User::World, || unsafe { theirs() })
}

/// # Safety
/// As `MPI_Session_finalize` (MPI 5.0, 11.3.1).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Session_finalize(session: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(theirs) = host.next.session_finalize else { return missing(host) };
    // SAFETY: the argument is the program's, unchanged.
    finalize(host, User::Session, || unsafe { theirs(session) })
}

/// # Safety
/// As `MPI_Abort` (MPI 5.0, 11.4.2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Abort(comm: HandleWord, code: c_int) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    report::so_far(host);
    // SAFETY: the arguments are the program's, unchanged.
    host.next.abort.map_or(missing(host), |abort| unsafe { abort(comm, code) })
}
