//! Wrappers of the functions that connect this process to processes of other jobs, and of
//! `MPI_Comm_disconnect`, which ends such a connection.
//!
//! Messages within a job and messages between jobs may take different transports: ranks on one
//! machine share memory, but two jobs on it use the network. As soon as this process is connected
//! to another job, only those kinds of calls are converted that were right with both transports.
//! This holds for calls within the job too, because ddtc does not look up to which job the
//! communicator of a message leads.
//!
//! A process can also reach another job by an intercommunicator whose leader was connected to that
//! job.

use std::ffi::{c_char, c_int, c_void};

use ddtc::internal::process::is_inconsistent;

use crate::eligible::connects;
use crate::guard::guard;
use crate::handles::{NO_HOST, handle_at, missing};
use crate::host::{HandleWord, Host, host};
use crate::reentrancy::Inside;
use crate::requests;

macro_rules! connects {
    ($($name:ident $field:ident $section:literal ($($argument:ident: $kind:ty),*);)*) => {$(
        #[doc = concat!("# Safety\nAs `", stringify!($name), "` (MPI 5.0, ", $section, ").")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(theirs) = host.next.$field else { return missing(host) };
            connects(host);
            // SAFETY: the arguments are the program's, unchanged.
            unsafe { theirs($($argument),*) }
        }
    )*};
}

connects! {
    MPI_Comm_spawn comm_spawn "11.8.2"
        (command: *const c_char, argv: *mut c_void, maxprocs: c_int, info: HandleWord, root: c_int, comm: HandleWord,
         intercomm: *mut c_void, errcodes: *mut c_int);
    MPI_Comm_spawn_multiple comm_spawn_multiple "11.8.3"
        (count: c_int, commands: *mut c_void, argvs: *mut c_void, maxprocs: *const c_int, infos: *const c_void,
         root: c_int, comm: HandleWord, intercomm: *mut c_void, errcodes: *mut c_int);
    MPI_Comm_accept comm_accept "11.9.2"
        (port: *const c_char, info: HandleWord, root: c_int, comm: HandleWord, newcomm: *mut c_void);
    MPI_Comm_connect comm_connect "11.9.3"
        (port: *const c_char, info: HandleWord, root: c_int, comm: HandleWord, newcomm: *mut c_void);
    MPI_Comm_join comm_join "11.10.5" (fd: c_int, intercomm: *mut c_void);
}

/// # Safety
/// As `MPI_Comm_disconnect` (MPI 5.0, 11.10.4).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Comm_disconnect(comm: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(theirs) = host.next.comm_disconnect else { return missing(host) };
    if comm.is_null() || host.abi.is_none() || !requests::live() || is_inconsistent() {
        // SAFETY: the argument is the program's, unchanged.
        return unsafe { theirs(comm) };
    }
    // SAFETY: `comm` is not null, so it points to a handle of the program. The handle may have any
    // value.
    let handle = unsafe { handle_at(host, comm) } & host.mask;
    requests::finish_freed(host, handle);
    // The operations are looked up before the call. Once the communicator is disconnected, another
    // thread may make a communicator of the same handle, with operations of its own.
    let inactive = requests::inactive_of(handle);
    // SAFETY: the argument is the program's, unchanged.
    let code = unsafe { theirs(comm) };
    // SAFETY: `comm` still points to a handle of the program.
    if code == 0 && unsafe { handle_at(host, comm) } & host.mask == host.comm_null {
        requests::forget(inactive);
    }
    code
}

/// # Safety
/// As `MPI_Intercomm_create` (MPI 5.0, 7.6.2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Intercomm_create(
    comm: HandleWord,
    leader: c_int,
    peer: HandleWord,
    remote_leader: c_int,
    tag: c_int,
    intercomm: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(theirs) = host.next.intercomm_create else { return missing(host) };
    // SAFETY: the arguments are the program's, unchanged.
    let code = unsafe { theirs(comm, leader, peer, remote_leader, tag, intercomm) };
    if code == 0 && host.abi.is_some() && host.kinds.get() != host.kinds_beyond {
        // SAFETY: the MPI library has written the handle of the new communicator.
        let made = unsafe { handle_at(host, intercomm) };
        let _inside = Inside::enter();
        if guard(|| is_within_world(host, made)).flatten() != Some(true) {
            connects(host);
        }
    }
    code
}

/// Returns true if all processes of an intercommunicator's remote group belong to
/// `MPI_COMM_WORLD`; `None` if the MPI library cannot say that.
fn is_within_world(host: &Host, intercomm: HandleWord) -> Option<bool> {
    let f = &host.f;
    let (mut remote, mut world, mut size): (u64, u64, c_int) = (0, 0, 0);
    // SAFETY: the MPI library has just made `intercomm`, and the world exists as long as its
    // communicators do. `remote`, `world` and `size` may be written, the arrays have `size`
    // elements, and each group is freed once.
    unsafe {
        if f.comm_remote_group?(intercomm, (&raw mut remote).cast()) != 0
            || f.comm_group?(host.world, (&raw mut world).cast()) != 0
            || f.group_size?(remote, &raw mut size) != 0
        {
            return None;
        }
        let ranks: Vec<c_int> = (0..size).collect();
        let mut found = vec![0; ranks.len()];
        let code = f.group_translate_ranks?(remote, size, ranks.as_ptr(), world, found.as_mut_ptr());
        f.group_free?((&raw mut remote).cast());
        f.group_free?((&raw mut world).cast());
        let undefined = host.abi?.constants.undefined;
        (code == 0).then(|| found.iter().all(|&rank| rank != undefined))
    }
}
