//! Interface [`Hook`] to the hook of an MPI library: a place inside the MPI library at which
//! compiled code packs and unpacks the bytes of the MPI library's own requests. The functions of
//! [`crate::hooks`] return the hook of an MPI library.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::internal::kind::Direction;

use crate::decision::HookState;
use crate::host::{HandleWord, Host};
use crate::table::TypeEntry;

/// Handle of the type that ddtc's wrapper of `MPI_Type_commit` is committing, 0 if it is committing
/// none. ddtc's hook in the MPI library may see every commit, also those that do not pass through
/// the wrapper. It compares the handle of each committed type with this handle, and so
/// distinguishes commits by the wrapper from other commits. If two threads commit at once, a commit
/// by the wrapper may look like one of the others. Then the hook searches the stack for a call of
/// the program, and may be enabled without need.
static COMMITTING: AtomicU64 = AtomicU64::new(0);

/// Commits a type of the program by calling `commit`. If ddtc's hook in this MPI library sees
/// commits, the type's handle is in [`COMMITTING`] during the call.
#[inline]
pub(crate) fn committing(host: &Host, datatype: HandleWord, commit: impl FnOnce() -> c_int) -> c_int {
    if !host.shows_commits() {
        return commit();
    }
    COMMITTING.store(datatype, Relaxed);
    let code = commit();
    COMMITTING.store(0, Relaxed);
    code
}

/// Returns true if ddtc's wrapper of `MPI_Type_commit` is committing the type of this handle.
pub(crate) fn is_committing(datatype: u64) -> bool {
    COMMITTING.load(Relaxed) == datatype
}

/// Notes and counts about a hook for ddtc's report.
#[derive(Default)]
pub(crate) struct HookReport {
    /// Notes for the user, for example the reason why the hook is not enabled.
    pub(crate) notes: Vec<String>,
    /// Number of types that are known only by the MPI library's own descriptions of them, because
    /// the program passes them to no call that ddtc sees.
    pub(crate) types_unseen: u64,
    /// Number of types that are known only by the MPI library's own descriptions and for which a
    /// comparison has found that the MPI library and compiled code move different bytes.
    pub(crate) types_different: u64,
}

/// Hook in an MPI library: a place inside the MPI library at which compiled code can pack and
/// unpack the bytes of the MPI library's requests. In all functions `bytes` is a number of packed
/// bytes, and `handle` is the handle of the type of `entry`, masked by [`Host::mask`].
pub(crate) trait Hook: Sync {
    /// Returns true if the settings and the profile of the MPI library allow compiled code to move
    /// bytes inside the MPI library.
    fn may_enable(&self, host: &Host) -> bool;

    /// Does the work on types that could not be done during the progress of the MPI library. Called
    /// at the beginning of a call of the program.
    fn attend_in_call(&self);

    /// Informs the hook that a type was decoded or timed. The hook may then let compiled code serve
    /// the type's requests inside the MPI library.
    fn adopted(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// Lets compiled code serve requests of a type inside the MPI library. Called when the program
    /// passes the type to a call after the MPI library's own mover has served enough of its
    /// requests.
    fn attend(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// Lets compiled code serve requests of a type inside the MPI library, because the program
    /// makes a persistent request of the type, which is prepared once and started often.
    fn persists(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// Records that the program passes `bytes` bytes of a type to a collective call, from which the
    /// MPI library makes messages.
    fn record_collective(&self, host: &'static Host, entry: &TypeEntry, bytes: u64);

    /// Returns whether compiled code packs or unpacks a message of `bytes` bytes inside the MPI
    /// library, in all these directions.
    fn inside(
        &self,
        host: &'static Host,
        entry: &TypeEntry,
        bytes: u64,
        directions: &[Direction],
    ) -> HookState;

    /// Counts a message that is packed into a staging buffer because compiled code does not serve
    /// its type inside the MPI library yet. After enough of these messages the type is queued to be
    /// made ready for that.
    fn offer(&self, host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction);

    /// Adds, to a sum, the nanoseconds that would have been saved if compiled code had moved a
    /// message inside the MPI library. Once the sum is large enough, the hook is enabled. `nanos`
    /// is called only if the hook is allowed and not enabled yet.
    fn misses(&self, host: &'static Host, nanos: &dyn Fn() -> u64);

    /// Adds the uses that the hook has counted for its types to the counters of the process.
    fn fold_all(&self);

    /// Returns the notes and counts about this hook for ddtc's report.
    fn report(&self) -> HookReport;

    /// Disables the hook and forgets addresses and objects of the MPI library. Called if the MPI
    /// library has no user any more, so that it may be unloaded.
    fn disable(&self);

    /// Enables the hook again if its proof has succeeded before. Called if the MPI library has a
    /// user again.
    fn enable_again(&self);
}
