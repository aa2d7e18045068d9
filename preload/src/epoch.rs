//! The end of an epoch, which lasts from the first user of MPI (the world or a session) to the
//! last.

use std::ffi::c_int;

use crate::guard::guard;
use crate::hooks::{hook, hooks};
use crate::host::{Host, first_is_gone};
use crate::reentrancy::Inside;
use crate::remembered::KEEPING;
use crate::users::{User, World};
use crate::{
    comms, eligible, evidence, files, kin, own_types, remembered, report, requests, spending, types, windows,
};

/// Forgets everything that is known about handles, which are about to lose their meaning, and
/// writes the report. Called before the library is finalized for its last user.
fn end_epoch(host: &'static Host) {
    if host.abi.is_some()
        && let Some(_inside) = Inside::enter()
    {
        // Errors of freed requests are raised, so the program's code may run.
        requests::finish(host);
        guard(|| {
            types::end_epoch(host);
            own_types::end_epoch(host);
            comms::end_epoch(host);
            files::end_epoch();
            eligible::end_epoch();
            if report::rank(host).is_some_and(|(rank, _)| rank < KEEPING) {
                remembered::keep(host, &[evidence::all(), kin::all()].concat());
            }
            report::write(host);
        });
    }
}

/// Initializes MPI for a user by `call`.
pub(crate) fn initialize(host: &Host, user: User, call: impl FnOnce() -> c_int) -> c_int {
    // Intel MPI says so while a session is open too, so that is asked before.
    host.users.come(user, host.world_is_up());
    host.used();
    if first_is_gone() {
        hooks().iter().for_each(|hook| hook.close());
    } else if let Some(hook) = hook(host) {
        hook.reopen();
    }
    let code = call();
    // The program's own time: an initialization takes some tenths of a second, in which nothing can be gained.
    spending::begin();
    match user {
        _ if code != 0 => host.users.failed(user),
        User::World => host.users.saw(World::Up),
        User::Session => {}
    }
    code
}

/// Finalizes MPI for a user by `call`. With the last user the epoch ends.
pub(crate) fn finalize(host: &'static Host, user: User, call: impl FnOnce() -> c_int) -> c_int {
    let last = host.users.go(user);
    if last {
        end_epoch(host);
    } else if user == User::World {
        // Sessions go on, and may never be finalized.
        report::so_far(host);
    }
    if user == User::World {
        host.users.close_world();
        if host.abi.is_some() {
            // Whether messages are converted was found out by the world's communicators.
            eligible::end_epoch();
        }
    }
    let code = call();
    match user {
        _ if code != 0 => host.users.add(user),
        User::World => host.users.saw(World::Finalized),
        User::Session => {}
    }
    if last {
        if host.abi.is_some() {
            requests::end_epoch();
            windows::end_epoch();
        }
        if let Some(hook) = hook(host) {
            hook.close();
        }
        host.unused();
        host.users.ended();
    }
    code
}
