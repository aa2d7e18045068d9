//! Processes that other MPI programs have started.

use ddtc::internal::process::Awaited;

use crate::host::Host;

/// Returns true if another MPI program started this process by `MPI_Comm_spawn`. Then the process
/// has a rank in a world of its own, and a process of the other program has the same rank.
///
/// The MPI library is asked only once, because the program may free the parent's communicator
/// later. Before the world is initialized the result is false.
pub(crate) fn is_spawned(host: &Host) -> bool {
    static SPAWNED: Awaited<bool> = Awaited::new();
    if let Some(&known) = SPAWNED.get() {
        return known;
    }
    let mut parent: u64 = 0;
    // SAFETY: `parent` has room for a handle of any ABI, and `with_world` runs this closure only
    // while the world is initialized.
    let ask = || Some(unsafe { host.f.comm_get_parent?((&raw mut parent).cast()) });
    let Some(code) = host.with_world(ask) else { return false };
    *SPAWNED.get_or_init(|| code == Some(0) && parent & host.mask != host.comm_null)
}
