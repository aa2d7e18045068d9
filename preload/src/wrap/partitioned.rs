//! Partitioned messages are the host's. Open MPI prepares their requests once, in its progress, so their types are made ready when they are made.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use ddtc_hosts::policy::Call;

use crate::door::{ready, unseen};
use crate::handles::{NO_HOST, missing};
use crate::host::{HandleWord, Host, host};
use crate::types;
use crate::use_kind::UseKind;

/// Buffer, partitions, elements of each, type, peer, tag, communicator, info, request.
type Init = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    i64,
    HandleWord,
    c_int,
    c_int,
    HandleWord,
    HandleWord,
    *mut c_void,
) -> c_int;

/// The host's function, looked up once.
fn real(cell: &AtomicPtr<c_void>, host: &Host, name: &CStr) -> Option<Init> {
    let known = cell.load(Ordering::Acquire);
    let found = if known.is_null() { host.function(name) } else { known };
    cell.store(found, Ordering::Release);
    // SAFETY: null is none, and any other address the host's function of that name, with the arguments of the standard.
    unsafe { std::mem::transmute::<*mut c_void, Option<Init>>(found) }
}

macro_rules! partitioned {
    ($($name:ident $real:literal $section:literal;)*) => {$(
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            buf: *mut c_void,
            partitions: c_int,
            count: i64,
            datatype: HandleWord,
            peer: c_int,
            tag: c_int,
            comm: HandleWord,
            info: HandleWord,
            request: *mut c_void,
        ) -> c_int {
            static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let Some(host) = host() else { return NO_HOST };
            let Some(theirs) = real(&REAL, host, $real) else { return missing(host) };
            if ready::may_open(host) {
                unseen::attend_in_call();
                types::wanted(host, datatype, count, Call::Message, const { UseKind::of(stringify!($name)) });
            }
            // SAFETY: the caller's arguments.
            unsafe { theirs(buf, partitions, count, datatype, peer, tag, comm, info, request) }
        }
    )*};
}

partitioned! {
    MPI_Psend_init c"PMPI_Psend_init" "4.2.1";
    MPI_Precv_init c"PMPI_Precv_init" "4.2.1";
}
