//! Wrappers of the functions that make partitioned messages. The messages themselves are bypassed.
//!
//! Open MPI prepares the request of a partitioned message once, while it makes progress, when ddtc
//! decodes and compiles no types. So these wrappers let ddtc make the type ready for Open MPI's
//! convertor hook when the program makes the request.

use std::ffi::{c_int, c_void};

use ddtc_hosts::policy::Call;

use crate::deciding::look;
use crate::handles::{NO_HOST, missing};
use crate::hooks::{allowed_hook, attend_in_call};
use crate::host::{HandleWord, host};
use crate::use_kind::UseKind;

macro_rules! partitioned {
    ($($name:ident $field:ident $section:literal;)*) => {$(
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
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
            let Some(host) = host() else { return NO_HOST };
            let Some(theirs) = host.next.$field else { return missing(host) };
            if allowed_hook(host).is_some() {
                attend_in_call(host);
                look(host, datatype, count, Call::Message, UseKind::Persistent);
            }
            // SAFETY: the arguments are the program's, unchanged.
            unsafe { theirs(buf, partitions, count, datatype, peer, tag, comm, info, request) }
        }
    )*};
}

partitioned! {
    MPI_Psend_init psend_init "4.2.1";
    MPI_Precv_init precv_init "4.2.1";
}
