//! Beginning and end of an epoch, which lasts from the initialization of MPI for its first user
//! (the world or a session) to the finalization of its last user.

use std::ffi::c_int;

use crate::guard::guard;
use crate::hooks::{hook, hooks};
use crate::host::{self, Host, first_is_gone};
use crate::profile_cache::KEEPING;
use crate::reentrancy::Inside;
use crate::requests::Bound;
use crate::users::{User, World};
use crate::{
    comms, eligible, files, measured, overhead_budget, own_types, profile_cache, report, requests, similar,
    types, windows,
};

/// Forgets everything that is known about handles, because the handles are about to lose their
/// meaning, and writes the report and the profile cache. Called before the MPI library is finalized
/// for its last user (the world or a session).
fn end_epoch(host: &'static Host) {
    if host.abi.is_some()
        && let Some(_inside) = Inside::enter()
    {
        // This call is outside of the guard, because it raises the errors of requests that the
        // program has freed, and error handlers of the program may run then.
        requests::finish(host);
        guard(|| {
            types::end_epoch(host);
            own_types::end_epoch(host);
            comms::end_epoch(host);
            files::end_epoch();
            eligible::end_epoch();
            if report::rank(host).is_some_and(|(rank, _)| rank < KEEPING) {
                profile_cache::keep(host, &[measured::all(), similar::serialized()].concat());
            }
            report::write(host);
        });
    }
}

/// Initializes MPI for a user (the world or a session) by running `call`, and returns the error
/// code of `call`.
pub(crate) fn initialize(host: &'static Host, user: User, call: impl FnOnce() -> c_int) -> c_int {
    // `world_is_up` is called before `call`, because Intel MPI reports an initialized world while
    // any session is open.
    host.users.come(user, host.world_is_up());
    host.used();
    if first_is_gone() {
        hooks().iter().for_each(|hook| hook.disable());
    } else if let Some(hook) = hook(host) {
        hook.enable_again();
    }
    let code = call();
    let before = host;
    let host = if code == 0 { host::initialized(host) } else { host };
    if !std::ptr::eq(host, before) {
        host.users.come(user, false);
        host.used();
    }
    if code == 0
        && host.abi.is_some()
        && let Some(_inside) = Inside::enter()
    {
        guard(|| types::begin_epoch(host));
    }
    // The overhead budget grows with the time that the program has run. That time begins here,
    // because an initialization takes some tenths of a second, in which no conversion can gain
    // anything.
    overhead_budget::begin();
    match user {
        _ if code != 0 => host.users.failed(user),
        User::World => host.users.saw(World::Up),
        User::Session => {}
    }
    code
}

/// Finalizes MPI for a user (the world or a session) by running `call`, and returns the error code
/// of `call`. The epoch ends with the last user, before `call` runs: a callback of the program that
/// `call` runs may open a session, which begins a new epoch.
pub(crate) fn finalize(host: &'static Host, user: User, call: impl FnOnce() -> c_int) -> c_int {
    let last = host.users.go(user);
    if last {
        end_epoch(host);
    } else if user == User::World {
        // Sessions are still open and may never be finalized, so the report is written with the
        // counts so far.
        report::so_far(host);
    }
    if user == User::World {
        host.users.close_world();
        if host.abi.is_some() {
            // The decision whether messages are converted was made with a communicator of the
            // world, which is about to become invalid.
            eligible::end_epoch();
        }
    }
    if last {
        host.users.ended();
    }
    let old = requests::bound();
    let code = call();
    if last && code == 0 && host.abi.is_some() {
        guard(requests::unpack_left);
        // A session that a callback has opened during `call` may have requests of its own.
        guard(|| requests::end_epoch(old));
    }
    match user {
        _ if code != 0 => host.users.add(user),
        User::World => host.users.saw(World::Finalized),
        User::Session => {}
    }
    if last && host.users.are_gone() {
        if host.abi.is_some() {
            requests::end_epoch(Bound::ALL);
            windows::end_epoch();
            // Delete callbacks of the program, such as those of `MPI_COMM_SELF`, ran during `call`
            // and may have used types and communicators.
            guard(|| {
                types::forget_after_end();
                own_types::forget_after_end();
                comms::forget_after_end();
                files::end_epoch();
                eligible::end_epoch();
            });
        }
        if let Some(hook) = hook(host) {
            hook.disable();
        }
        host.unused();
        host.users.ended();
    }
    code
}
