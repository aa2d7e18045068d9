//! Test whether the MPI library packs raw bytes without a header. It is made once, with a small
//! datatype.

use std::ffi::c_int;

use ddtc::internal::datatype::Named;

use crate::host::{HandleWord, Host};
use crate::settings::settings;
use crate::slow_path::{CHECK, COUNT, FOREIGN, PERF, UNPROVEN, proven, watch, watched_for};
use crate::warn::warn;

/// Returns true if the MPI library packs raw bytes without a header. The first call of this
/// function tests that with the communicator `comm`, which must be valid.
pub(crate) fn packs_raw(host: &'static Host, comm: HandleWord) -> bool {
    if watched_for(UNPROVEN) {
        prove(host, comm);
    }
    !watched_for(FOREIGN)
}

/// Sets the flags of [`crate::slow_path`] that make calls leave the short path because a setting
/// asks for it: for counting, for checking, or for the perf map.
fn watch_as_asked() {
    let settings = settings();
    let asked = [(settings.counting(), COUNT), (settings.check, CHECK), (settings.perf_map, PERF)];
    asked.iter().filter(|(on, _)| *on).for_each(|&(_, reason)| watch(reason));
}

/// Tests whether the MPI library packs and unpacks raw bytes without a header, and records the
/// result in the flags that every call reads. If the test fails, ddtc converts no call from then
/// on.
fn prove(host: &'static Host, comm: HandleWord) {
    // SAFETY: the callers of `packs_raw` pass a communicator with which the MPI library has just
    // accepted a call, or `MPI_COMM_SELF` of a world that is initialized.
    let raw = unsafe { canary(host, comm) }.unwrap_or(false);
    if !raw {
        warn(format_args!(
            "{}: MPI_Pack does not write raw bytes, which conversion needs; nothing is converted",
            host.version
        ));
        watch(FOREIGN);
    }
    watch_as_asked();
    proven();
}

/// Packs and unpacks one instance of `vector(3, 1, 2, int)` with the MPI library's functions.
/// Returns true if exactly the raw bytes of the three integers were packed and unpacked; `None` if
/// the type could not be made, or if a function or the named type is missing.
///
/// # Safety
/// The communicator must be valid.
unsafe fn canary(host: &'static Host, comm: HandleWord) -> Option<bool> {
    let f = &host.f;
    let mut user: [c_int; 5] = [0x0102_0304, -1, 0x1122_3344, -2, 0x7a7b_7c7d];
    let mut packed = [0u8; 64];
    let mut datatype: HandleWord = 0;
    let mut position = 0;
    // SAFETY: each call gets arguments that the standard allows. The type is committed before it is
    // used and freed once, handles are read and written in 8 bytes, `user` holds one instance,
    // `packed` has 64 bytes and `stream` 12, as the calls say, and the caller promises that `comm`
    // is valid.
    unsafe {
        if f.type_vector?(3, 1, 2, host.handle(Named::Int)?, (&raw mut datatype).cast()) != 0
            || f.type_commit?((&raw mut datatype).cast()) != 0
        {
            return None;
        }
        let code = host.counted.pack?(
            user.as_ptr().cast(),
            1,
            datatype,
            packed.as_mut_ptr().cast(),
            64,
            &raw mut position,
            comm,
        );
        let expected = [user[0], user[2], user[4]].map(c_int::to_ne_bytes).concat();
        let mut raw = code == 0 && position == 12 && packed[..12] == expected;
        let stream = [5, 6, 7].map(c_int::to_ne_bytes).concat();
        position = 0;
        let code = host.counted.unpack?(
            stream.as_ptr().cast(),
            12,
            &raw mut position,
            user.as_mut_ptr().cast(),
            1,
            datatype,
            comm,
        );
        raw &= code == 0 && position == 12 && user == [5, -1, 6, -2, 7];
        f.type_free?((&raw mut datatype).cast());
        Some(raw)
    }
}
