//! Flags that every wrapper reads at the beginning of a call. Each flag makes some kinds of calls
//! take the long path.

use std::sync::atomic::{AtomicU32, Ordering};

/// Flag that is set until ddtc has tested whether the MPI library's own packing gives raw bytes.
pub(crate) const UNPROVEN: u32 = 1;
/// Flag that is set if the MPI library packs with a header or in another data representation, so
/// that nothing can be converted.
pub(crate) const FOREIGN: u32 = 2;
/// Flag that is set if a GPU runtime is loaded that can distinguish host memory from GPU memory by
/// the address.
pub(crate) const GPU: u32 = 4;
/// Flag that is set if a GPU runtime is loaded that cannot distinguish host memory from GPU memory
/// by the address.
pub(crate) const OPAQUE_GPU: u32 = 8;
/// Flag that is set if calls and uses of types are counted for a report or a record.
pub(crate) const COUNT: u32 = 16;
/// Flag that is set if the environment has `DDTC_CHECK=1`.
pub(crate) const CHECK: u32 = 32;
/// Flag that is set if the environment has `DDTC_PERF_MAP=1`.
pub(crate) const PERF: u32 = 64;
/// Flag that is set if an object (the program or a shared library) is loaded that may complete
/// requests without a call of ddtc's wrappers.
pub(crate) const BYPASS: u32 = 128;

/// Flag that is set if a library of collectives (UCC or HCOLL) is loaded that chooses its
/// algorithms by the local type. Ranks that convert and ranks that do not convert would choose
/// different algorithms.
pub(crate) const TYPED_COLLECTIVES: u32 = 256;

/// Flag that is set if a Fortran binding of the MPI library is loaded and ddtc has not tested yet
/// whether the calls of the binding reach ddtc's wrappers.
pub(crate) const BINDING: u32 = 512;

/// Flag that is set if a Fortran binding of the MPI library is loaded. The binding may call the MPI
/// library without ddtc's wrappers. ddtc tests this only for the functions about requests, and
/// [`BINDING`] shows whether the test is still to be made.
pub(crate) const FORTRAN: u32 = 1024;

/// Flag that is set if an object (the program or a shared library) is loaded that may complete
/// operations on a window without a call of ddtc's wrappers.
pub(crate) const EPOCHS: u32 = 2048;

/// Flag that is set if the environment has `DDTC_HOOK=check` and Open MPI's convertor hook is
/// enabled.
pub(crate) const SHADOW: u32 = 4096;

/// Flag that is set if Open MPI's convertor hook has found types whose commit ddtc has not seen and
/// that wait to be made ready for compiled code. The program's next call makes them ready.
pub(crate) const UNSEEN: u32 = 8192;

/// Flag that is set if a PMPI layer after ddtc has a function that packs. Then `MPI_Pack` and
/// `MPI_Unpack` are not converted.
pub(crate) const LAYER: u32 = 16384;

/// Set of the flags that make every pack and unpack take the long path. [`UNSEEN`] does so too, but
/// only until its types were made ready. All other flags concern only some kinds of other calls.
pub(crate) const PACKING: u32 = UNPROVEN | FOREIGN | GPU | OPAQUE_GPU | COUNT | CHECK | PERF | LAYER;

/// Set of the flags that are set now. [`UNPROVEN`] is set from the start.
static WATCH: AtomicU32 = AtomicU32::new(UNPROVEN);

/// Sets the flags `reason`, so that from now on the calls that they concern take the long path.
pub(crate) fn watch(reason: u32) {
    WATCH.fetch_or(reason, Ordering::Relaxed);
}

/// Records that the MPI library's packing was tested, by clearing [`UNPROVEN`].
pub(crate) fn proven() {
    unwatch(UNPROVEN);
}

/// Clears the flags `reason`.
pub(crate) fn unwatch(reason: u32) {
    WATCH.fetch_and(!reason, Ordering::Relaxed);
}

/// Clears all flags. Called when every call is passed on to the MPI library unchanged from then on.
pub(crate) fn unwatch_all() {
    WATCH.store(0, Ordering::Relaxed);
}

/// Returns true if at least one of the flags `reason` is set.
#[inline]
pub(crate) fn watched_for(reason: u32) -> bool {
    reasons() & reason != 0
}

/// Returns the flags that are set.
#[inline]
pub(crate) fn reasons() -> u32 {
    WATCH.load(Ordering::Relaxed)
}
