//! The assignment of hooks ([`Hook`]) to MPI libraries.

use crate::convertor_hook::OPEN_MPI;
use crate::hook::Hook;
use crate::host::Host;
use crate::slow_path::{UNSEEN, watched_for};
use crate::table::TypeEntry;

/// Returns the hook of a library, whether or not the hook may move anything.
#[inline]
pub(crate) fn hook(host: &Host) -> Option<&'static dyn Hook> {
    // Open MPI is recognized by its symbols, which a library of another name may have too, or by
    // its name, which is known even if the ABI is not.
    let is_there = host.is_open_mpi() || host.profile.costs.moves_inside;
    if is_there { Some(&OPEN_MPI) } else { None }
}

/// Returns all hooks. They are all closed if the first MPI library of the process was unloaded: the
/// description of another library does not tell which hook the first one had.
pub(crate) fn hooks() -> [&'static dyn Hook; 1] {
    [&OPEN_MPI]
}

/// Returns the hook of a library if settings and version allow the hook to move anything.
#[inline]
pub(crate) fn allowed_hook(host: &Host) -> Option<&'static dyn Hook> {
    hook(host).filter(|hook| hook.may_enable(host))
}

/// Tells the hook that a type was decoded or timed.
pub(crate) fn adopted(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    if let Some(hook) = hook(host) {
        hook.adopted(host, entry, handle);
    }
}

/// Adds the uses that the library's hook has counted for its types to the counters of the process.
pub(crate) fn fold_all(host: &Host) {
    if let Some(hook) = hook(host) {
        hook.fold_all();
    }
}

/// Lets the library's hook do the work that waits for a call of the program. Called at the
/// beginning of a call.
#[inline]
pub(crate) fn attend_in_call(host: &Host) {
    if watched_for(UNSEEN)
        && let Some(hook) = hook(host)
    {
        hook.attend_in_call();
    }
}
