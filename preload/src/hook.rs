//! The interface [`Hook`] to a place inside an MPI library at which compiled code moves the bytes
//! of the library's own requests. The functions of [`crate::hooks`] find the hook of a library.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::kind::Direction;

use crate::decision::HookState;
use crate::host::{HandleWord, Host};
use crate::table::TypeEntry;

/// Handle of the type that a wrapper of `MPI_Type_commit` is committing, 0 if none is. A hook that
/// sees the commits inside the library compares their types with this handle, to distinguish the
/// commits that a wrapper makes. If two threads commit at once, a wrapper's commit may look like
/// one that no wrapper made. The hook then searches the stack for a call of the program, and may be
/// enabled without need.
static COMMITTING: AtomicU64 = AtomicU64::new(0);

/// Commits a type of the program by calling `commit`. If the MPI library shows its commits to a
/// hook, the type's handle is in [`COMMITTING`] during the call.
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

/// Returns true if a wrapper is committing the type of this handle.
pub(crate) fn is_committing(datatype: u64) -> bool {
    COMMITTING.load(Relaxed) == datatype
}

/// Lines of a report about a hook.
#[derive(Default)]
pub(crate) struct HookReport {
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// Number of types of which only the library's own descriptions are known.
    pub(crate) types_unseen: u64,
    /// Number of types known only from descriptions whose bytes the library did not move in the way
    /// in which compiled code would have moved them.
    pub(crate) types_different: u64,
}

/// A hook in an MPI library. Arguments `bytes` are numbers of packed bytes, and `handle` is the
/// handle of the type of `entry`, masked by [`Host::mask`].
pub(crate) trait Hook: Sync {
    /// Returns true if the settings and the version of the library allow compiled code to move
    /// bytes inside.
    fn may_enable(&self, host: &Host) -> bool;

    /// Does the work that could not be done inside the library. Called at the beginning of a call
    /// of the program.
    fn attend_in_call(&self);

    /// Notes that a type was decoded or timed.
    fn adopted(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// Makes a type ready inside the library. Called if the program passes the type to a call after
    /// enough of its requests went to the library's own mover.
    fn attend(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// Makes a type ready inside the library, because the program makes a persistent request of the
    /// type: the request is prepared once and started often.
    fn persists(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// Notes that the program passes `bytes` bytes of a type to a collective call, of which the
    /// library makes messages.
    fn passes(&self, host: &'static Host, entry: &TypeEntry, bytes: u64);

    /// Returns whether compiled code moves a message inside the library in all these directions.
    fn inside(
        &self,
        host: &'static Host,
        entry: &TypeEntry,
        bytes: u64,
        directions: &[Direction],
    ) -> HookState;

    /// Counts a message that is packed first because its type is not ready inside the library.
    /// After enough of these messages the type is made ready there.
    fn offer(&self, host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction);

    /// Adds the nanoseconds that a message would have saved inside the library to a sum that
    /// enables the hook once it is large enough. `nanos` is called only if the hook is allowed and
    /// not enabled yet.
    fn misses(&self, host: &'static Host, nanos: &dyn Fn() -> u64);

    /// Adds the uses that the hook has counted for its types to the counters of the process.
    fn fold_all(&self);

    /// Returns the lines of a report about this hook.
    fn report(&self) -> HookReport;

    /// Disables the hook and forgets addresses and objects of the library, because the library has
    /// no user any more and may be unloaded.
    fn disable(&self);

    /// Enables the hook again if its proof has succeeded before, because the library has a user
    /// again.
    fn enable_again(&self);
}
