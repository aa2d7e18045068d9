//! Wrappers of the functions that make error handlers.
//!
//! The MPI library gets an entry point of [`crate::handlers`] instead of the program's error
//! handler. The entry point unpacks received bytes before it jumps to the program's error handler.

use std::ffi::{c_int, c_void};

use crate::handlers::entry_point;
use crate::handles::{NO_HOST, missing};
use crate::host::host;

macro_rules! makes_handlers {
    ($($name:ident $field:ident $section:literal;)*) => {$(
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(function: *mut c_void, errhandler: *mut c_void) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(theirs) = host.next.$field else { return missing(host) };
            // If the next function is that of a PMPI layer and not that of the MPI library, the
            // layer gets the program's own function.
            let is_librarys = host.f.$field.is_some_and(|own| std::ptr::fn_addr_eq(own, theirs));
            let attends = host.abi.is_some() && is_librarys;
            let function = if attends { entry_point(function) } else { function };
            // SAFETY: the arguments are the program's, except that an entry point may replace the
            // program's function. The entry point jumps to the program's function with all
            // arguments that it got.
            unsafe { theirs(function, errhandler) }
        }
    )*};
}

makes_handlers! {
    MPI_Comm_create_errhandler comm_create_errhandler "9.3.1";
    MPI_Win_create_errhandler win_create_errhandler "9.3.2";
    MPI_File_create_errhandler file_create_errhandler "9.3.3";
    MPI_Session_create_errhandler session_create_errhandler "9.3.4";
    MPI_Errhandler_create errhandler_create "17.1, removed in MPI 3.0";
}
