//! The assignment of hooks ([`Hook`]) to MPI libraries.

use crate::convertor_hook::OPEN_MPI;
use crate::hook::Hook;
use crate::host::Host;
use crate::slow_path::{UNSEEN, watched_for};
use crate::table::TypeEntry;

/// Returns the hook for an MPI library, even if the settings or the version of the library do not
/// allow the hook to move any bytes. Returns `None` if there is no hook for this MPI library.
#[inline]
pub(crate) fn hook(host: &Host) -> Option<&'static dyn Hook> {
    // Open MPI is recognized by its symbols or by its name. Either of them suffices, because an MPI
    // library of another name may have Open MPI's symbols, and the name is known even if the ABI is
    // not.
    let is_there = host.is_open_mpi() || host.profile.costs.moves_inside;
    if is_there { Some(&OPEN_MPI) } else { None }
}

/// Returns all hooks of the process. If the first MPI library of the process was unloaded, all
/// hooks are disabled, because the record of another MPI library does not show which hook the first
/// library had.
pub(crate) fn hooks() -> [&'static dyn Hook; 1] {
    [&OPEN_MPI]
}

/// Returns the hook for an MPI library if the settings and the version of the library allow the
/// hook to move bytes.
#[inline]
pub(crate) fn allowed_hook(host: &Host) -> Option<&'static dyn Hook> {
    hook(host).filter(|hook| hook.may_enable(host))
}

/// Notifies the hook for the MPI library, if there is one, that a type was decoded or timed.
pub(crate) fn adopted(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    if let Some(hook) = hook(host) {
        hook.adopted(host, entry, handle);
    }
}

/// Adds the uses of types that the hook for the MPI library has counted to the counters of the
/// process.
pub(crate) fn fold_all(host: &Host) {
    if let Some(hook) = hook(host) {
        hook.fold_all();
    }
}

/// Has the hook for the MPI library do the work that it could not do inside the MPI library. Called
/// at the beginning of a call of the program.
#[inline]
pub(crate) fn attend_in_call(host: &Host) {
    if watched_for(UNSEEN)
        && let Some(hook) = hook(host)
    {
        hook.attend_in_call();
    }
}
