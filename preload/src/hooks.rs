//! Which MPI libraries have a [`Hook`].

use crate::door::OPEN_MPI;
use crate::hook::Hook;
use crate::host::Host;
use crate::slow_path::{UNSEEN, watched_for};

/// Returns the hook of a library.
#[inline]
pub(crate) fn hook(host: &Host) -> Option<&'static dyn Hook> {
    if host.is_open_mpi() { Some(&OPEN_MPI) } else { None }
}

/// Returns the hooks of all libraries, for a moment at which the library is gone.
pub(crate) fn hooks() -> [&'static dyn Hook; 1] {
    [&OPEN_MPI]
}

/// Returns the hook of a library if it may move anything.
#[inline]
pub(crate) fn allowed_hook(host: &Host) -> Option<&'static dyn Hook> {
    hook(host).filter(|hook| hook.may_open(host))
}

/// Lets the hook do what waits for a call of the program. Called at the begin of a call.
#[inline]
pub(crate) fn attend_in_call(host: &Host) {
    if watched_for(UNSEEN)
        && let Some(hook) = hook(host)
    {
        hook.attend_in_call();
    }
}
