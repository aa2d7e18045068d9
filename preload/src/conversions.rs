//! What a process tells the programs of `ddtc tune` about its conversions.

use std::ffi::c_int;

use crate::guard::guard;
use crate::{counted, eligible, host};

/// Returns the number of messages that compiled code has packed (`of` is 0) or unpacked (1), or of
/// calls in which something was converted (2). If `of` is 3, returns 1 if messages of this process
/// may be converted, and 0 otherwise. If `of` is 4, returns 1 if the MPI library has the ABI of
/// MPICH, 2 if it has that of Open MPI, and 3 if it has the standard ABI. Returns 0 for any other
/// `of`. Calls are counted only if a report or a record is requested, messages also while they are
/// checked or shown to a profiler.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ddtc_conversions(of: c_int) -> u64 {
    match of {
        0 => counted::MESSAGES_PACKED.get(),
        1 => counted::MESSAGES_UNPACKED.get(),
        2 => counted::CALLS_CONVERTED.get(),
        3 => guard(|| host::host().is_some_and(eligible::messages)).unwrap_or(false).into(),
        4 => {
            let abi = guard(|| host::host().and_then(|host| host.abi)).flatten();
            abi.map_or(0, |abi| abi.flavour as u64 + 1)
        }
        _ => 0,
    }
}
