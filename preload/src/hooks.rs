//! Which MPI libraries have a [`Hook`].

use crate::door::OPEN_MPI;
use crate::hook::Hook;
use crate::host::Host;
use crate::slow_path::{UNSEEN, watched_for};
use crate::table::TypeEntry;

/// Returns the hook of a library.
#[inline]
pub(crate) fn hook(host: &Host) -> Option<&'static dyn Hook> {
    // Open MPI is known by its symbols, which a library with another name may have, or by its name, which
    // does not depend on the ABI.
    let is_there = host.is_open_mpi() || host.profile.costs.moves_inside;
    if is_there { Some(&OPEN_MPI) } else { None }
}

/// Returns all hooks. Used when the first library was unloaded, whose hook the description of another
/// library does not tell.
pub(crate) fn hooks() -> [&'static dyn Hook; 1] {
    [&OPEN_MPI]
}

/// Returns the hook of a library if it may move anything.
#[inline]
pub(crate) fn allowed_hook(host: &Host) -> Option<&'static dyn Hook> {
    hook(host).filter(|hook| hook.may_open(host))
}

/// Tells the hook that a type was decoded or timed.
pub(crate) fn adopted(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    if let Some(hook) = hook(host) {
        hook.adopted(host, entry, handle);
    }
}

/// Adds what the hook has counted about types to the counters of the process.
pub(crate) fn fold_all(host: &Host) {
    if let Some(hook) = hook(host) {
        hook.fold_all();
    }
}

/// Lets the hook do what waits for a call of the program. Called at the beginning of a call.
#[inline]
pub(crate) fn attend_in_call(host: &Host) {
    if watched_for(UNSEEN)
        && let Some(hook) = hook(host)
    {
        hook.attend_in_call();
    }
}
