//! Hooks: a place inside an MPI library where compiled code moves the bytes of the library's own
//! requests. [`crate::hooks`] says which library has one.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::kind::Direction;

use crate::decision::HookState;
use crate::host::{HandleWord, Host};
use crate::table::TypeEntry;

/// The type that is being committed by a wrapper, 0 if none is. A hook that meets commits inside the
/// library compares their types with it, to tell which of them a wrapper makes. If two threads commit at
/// once, a commit may look like one that no wrapper made; the hook then searches the stack, and may become
/// active without need.
static COMMITTING: AtomicU64 = AtomicU64::new(0);

/// Commits a type of the program by `commit`.
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

/// Says whether a wrapper is committing this type.
pub(crate) fn is_committing(datatype: u64) -> bool {
    COMMITTING.load(Relaxed) == datatype
}

/// Holds what a report says of a hook.
#[derive(Default)]
pub(crate) struct HookReport {
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// Number of types that are known only from the library's own descriptions of them.
    pub(crate) types_unseen: u64,
    /// Number of types known only from descriptions whose bytes the library moved otherwise than compiled
    /// code would have.
    pub(crate) types_different: u64,
}

/// A hook in an MPI library. `bytes` are packed bytes, and `handle` is the masked handle of the entry.
pub(crate) trait Hook: Sync {
    /// Says whether settings and library allow that anything is moved inside.
    fn may_open(&self, host: &Host) -> bool;

    /// A call of the program has begun: what could not be done inside the library is done now.
    fn attend_in_call(&self);

    /// A type was decoded or timed.
    fn adopted(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// The program uses a type of which enough requests went to the library's own mover.
    fn attend(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// The program makes a persistent request, which is prepared once and started often.
    fn persists(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64);

    /// The program passes a type to a collective call, which the library makes messages of.
    fn passes(&self, host: &'static Host, entry: &TypeEntry, bytes: u64);

    /// Returns whether compiled code moves a message inside the library in all these directions.
    fn inside(
        &self,
        host: &'static Host,
        entry: &TypeEntry,
        bytes: u64,
        directions: &[Direction],
    ) -> HookState;

    /// A message is packed first because its type is not ready inside the library: counts it, so that the
    /// type is made ready there if there are many.
    fn offer(&self, host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction);

    /// Adds the nanoseconds that a message would have saved inside.
    fn misses(&self, host: &'static Host, nanos: &dyn Fn() -> u64);

    /// Adds what was counted about types to the counters of the process.
    fn fold_all(&self);

    /// Returns what a report says.
    fn report(&self) -> HookReport;

    /// Disables the hook and forgets addresses and objects of the library, which has no user any more
    /// and may be unloaded.
    fn close(&self);

    /// The library has a user: enables the hook again if it was proven before.
    fn reopen(&self);
}
