//! Why calls leave the short path: flags that are read at every call.

use std::sync::atomic::{AtomicU32, Ordering};

/// The host's own packing was not looked at yet.
pub(crate) const UNPROVEN: u32 = 1;
/// The host packs with a header or another representation: nothing is converted.
pub(crate) const FOREIGN: u32 = 2;
/// A GPU runtime can tell whether an address is host memory.
pub(crate) const GPU: u32 = 4;
/// One that cannot is loaded.
pub(crate) const OPAQUE_GPU: u32 = 8;
/// Somebody counts uses.
pub(crate) const COUNT: u32 = 16;
/// `DDTC_CHECK=1`.
pub(crate) const CHECK: u32 = 32;
/// `DDTC_PERF_MAP=1`.
pub(crate) const PERF: u32 = 64;
/// An object is loaded that may complete requests where this library does not see it.
pub(crate) const BYPASS: u32 = 128;

/// A library of collectives is loaded that chooses its algorithms by the local type: ranks that convert and ranks that do not would differ.
pub(crate) const TYPED_COLLECTIVES: u32 = 256;

/// A Fortran binding of the host's is loaded, and nobody has tried yet whether its calls come here.
pub(crate) const BINDING: u32 = 512;

/// A Fortran binding is loaded, tried or not: it may reach functions of the host that this library wraps, other than those of requests.
pub(crate) const FORTRAN: u32 = 1024;

/// An object is loaded that may end the epochs of a window where this library does not see it.
pub(crate) const EPOCHS: u32 = 2048;

/// `DDTC_INSIDE=check`, once the door into the host is open.
pub(crate) const SHADOW: u32 = 4096;

/// Types made inside the host wait for a call of the program to be made something of.
pub(crate) const UNSEEN: u32 = 8192;

/// A PMPI layer after this library has a function that packs: `MPI_Pack` and `MPI_Unpack` are not
/// converted.
pub(crate) const LAYER: u32 = 16384;

/// Reasons that concern every call that packs or unpacks; the others concern calls of some kinds.
pub(crate) const PACKING: u32 = UNPROVEN | FOREIGN | GPU | OPAQUE_GPU | COUNT | CHECK | PERF | LAYER;

/// All that makes a call leave the short path.
static WATCH: AtomicU32 = AtomicU32::new(UNPROVEN);

/// From now on calls take the long path for this reason.
pub(crate) fn watch(reason: u32) {
    WATCH.fetch_or(reason, Ordering::Relaxed);
}

/// The host's packing was looked at.
pub(crate) fn proven() {
    unwatch(UNPROVEN);
}

/// This reason is gone.
pub(crate) fn unwatch(reason: u32) {
    WATCH.fetch_and(!reason, Ordering::Relaxed);
}

/// No reason is left: calls are handed on, whatever was to be looked at.
pub(crate) fn unwatch_all() {
    WATCH.store(0, Ordering::Relaxed);
}

/// Says whether calls are watched for a reason.
#[inline]
pub(crate) fn watched_for(reason: u32) -> bool {
    reasons() & reason != 0
}

/// Returns why calls leave the short path now.
#[inline]
pub(crate) fn reasons() -> u32 {
    WATCH.load(Ordering::Relaxed)
}
