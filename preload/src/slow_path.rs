//! Flags that every call reads, each of which makes some calls leave the short path.

use std::sync::atomic::{AtomicU32, Ordering};

/// It was not tried yet whether the MPI library's own packing gives raw bytes.
pub(crate) const UNPROVEN: u32 = 1;
/// The MPI library packs with a header or in another representation, so nothing is converted.
pub(crate) const FOREIGN: u32 = 2;
/// A GPU runtime is loaded that can tell whether an address is host memory.
pub(crate) const GPU: u32 = 4;
/// A GPU runtime is loaded that cannot tell whether an address is host memory.
pub(crate) const OPAQUE_GPU: u32 = 8;
/// Calls and uses of types are counted for a report or record.
pub(crate) const COUNT: u32 = 16;
/// `DDTC_CHECK=1` is set.
pub(crate) const CHECK: u32 = 32;
/// `DDTC_PERF_MAP=1` is set.
pub(crate) const PERF: u32 = 64;
/// An object is loaded that may complete requests without a call of this library.
pub(crate) const BYPASS: u32 = 128;

/// A library of collectives (UCC or HCOLL) is loaded that chooses its algorithms by the local type.
/// Ranks that convert and ranks that do not would choose different algorithms.
pub(crate) const TYPED_COLLECTIVES: u32 = 256;

/// A Fortran binding of the MPI library is loaded, and it was not tried yet whether its calls reach
/// this library.
pub(crate) const BINDING: u32 = 512;

/// A Fortran binding is loaded, tried or not. It may call the MPI library past this library's
/// wrappers. For the functions about requests, [`BINDING`] says whether that was tried.
pub(crate) const FORTRAN: u32 = 1024;

/// An object is loaded that may complete operations on a window without a call of this library.
pub(crate) const EPOCHS: u32 = 2048;

/// `DDTC_HOOK=check` is set, and Open MPI's convertor hook is enabled.
pub(crate) const SHADOW: u32 = 4096;

/// Types whose commit was not seen were met inside the MPI library. The program's next call makes
/// them ready.
pub(crate) const UNSEEN: u32 = 8192;

/// A PMPI layer after this library has a function that packs: `MPI_Pack` and `MPI_Unpack` are not
/// converted.
pub(crate) const LAYER: u32 = 16384;

/// Flags that make every pack and unpack leave the short path. Each other flag concerns only some
/// kinds of calls.
pub(crate) const PACKING: u32 = UNPROVEN | FOREIGN | GPU | OPAQUE_GPU | COUNT | CHECK | PERF | LAYER;

/// Flags that are set now.
static WATCH: AtomicU32 = AtomicU32::new(UNPROVEN);

/// Sets flags: from now on the calls that they concern leave the short path.
pub(crate) fn watch(reason: u32) {
    WATCH.fetch_or(reason, Ordering::Relaxed);
}

/// Notes that the MPI library's packing was tried.
pub(crate) fn proven() {
    unwatch(UNPROVEN);
}

/// Clears flags.
pub(crate) fn unwatch(reason: u32) {
    WATCH.fetch_and(!reason, Ordering::Relaxed);
}

/// Clears all flags, because every call is handed to the MPI library from now on.
pub(crate) fn unwatch_all() {
    WATCH.store(0, Ordering::Relaxed);
}

/// Returns true if one of these flags is set.
#[inline]
pub(crate) fn watched_for(reason: u32) -> bool {
    reasons() & reason != 0
}

/// Returns the flags that are set.
#[inline]
pub(crate) fn reasons() -> u32 {
    WATCH.load(Ordering::Relaxed)
}
