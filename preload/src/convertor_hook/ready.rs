//! Preparation of types for requests inside Open MPI. When the program itself passes a type to a
//! call, the type is compiled, and the ends of its elements are found.
//!
//! Inside Open MPI's progress nothing is decoded, compiled or waited for. A request whose type is
//! not ready there is moved by Open MPI, and the type is marked to be made ready.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ddtc::committed::LayoutCopy;
use ddtc::engine::Mode;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc_hosts::policy::{Call, Class, Policy};

use super::described::LOOKED_AT;
use super::description::{order, understood};
use super::functions::{FOUND, Functions, functions};
use super::host::{enable, is_enabled};
use super::layout::{layout, take_for};
use super::nearness::is_near;
use super::proof::{Proven, prove};
use crate::atomic_ref::AtomicRef;
use crate::decision::HookState;
use crate::guard::guard;
use crate::host::Host;
use crate::overhead_budget;
use crate::policy::policy;
use crate::reentrancy::Inside;
use crate::reserve;
use crate::settings::{HookChoice, settings};
use crate::slow_path::{SHADOW, watch};
use crate::table::TypeEntry;
use crate::times::staging;

/// Bytes of requests that Open MPI moves before their type is marked to be made ready.
pub(crate) const ENOUGH: u64 = 4096;

/// Minimum bytes of a message for which a type is marked at once. The message is packed first,
/// because the type is not ready inside. Making a type ready takes some ten microseconds, and
/// longer for a list.
const AT_ONCE: u64 = 64 << 10;
/// Number of messages shorter than [`AT_ONCE`], all of one length, after which the type is marked.
const BEFORE: u64 = 64;

/// Nanoseconds that compiled code inside Open MPI would have saved the requests of the process,
/// from which the hook is enabled for them. The proof takes 0.8 ms.
const MISSED: u64 = 2 << 20;

/// Number of positions at which Open MPI is asked where an element of a type ends.
const ASKED: u64 = 8;

/// Reason why the proof has failed; `None` if it has succeeded or was not tried.
static FAILURE: AtomicRef<&'static str> = AtomicRef::none();

/// Returns why the proof has failed; `None` if it has succeeded or was not tried.
pub(crate) fn failure() -> Option<&'static str> {
    FAILURE.load().copied()
}

/// Returns false if the hook is enabled and types cannot be understood by their descriptions.
pub(crate) fn reads_descriptions() -> bool {
    !is_enabled() || order().is_some()
}

/// Returns true if the hook may be enabled: the profile of the MPI library says so, as that of Open
/// MPI does, and so do the settings.
#[inline]
pub(crate) fn may_enable(host: &Host) -> bool {
    host.profile.costs.moves_inside && settings().hook != HookChoice::Off
}

/// Returns Open MPI's functions while the hook is enabled. The first call of a process makes the
/// proof.
fn enabled(host: &'static Host) -> Option<&'static Functions> {
    if !may_enable(host) {
        return None;
    }
    let try_once = || {
        let start = Instant::now();
        let found = tried(host).map_err(say).ok();
        overhead_budget::exempt(start.elapsed().as_nanos() as u64);
        found
    };
    if FOUND.get().is_none() {
        // The proof uses the communicator `MPI_COMM_SELF`, so the world must be up.
        host.with_world(|| FOUND.get_or_init(try_once))?;
    }
    functions().filter(|_| is_enabled())
}

/// Enables the hook although no type was timed. Called if the program has committed a type that was
/// not seen, or if the time that requests would have saved inside Open MPI has reached [`MISSED`].
pub(crate) fn enable_untimed(host: &'static Host) {
    if may_enable(host) && runtime::mode() != Mode::Off {
        by_itself(|| {
            let _ = enabled(host);
        });
    }
}

fn tried(host: &'static Host) -> Result<Functions, &'static str> {
    if !take_for(host.library.version) {
        return Err("its structures are not known");
    }
    let functions = Functions::find(layout())?;
    let Proven { generic, order } = prove(host, &functions, *layout())?;
    if let Some(order) = order {
        understood(order);
    }
    if settings().hook == HookChoice::Check {
        watch(SHADOW);
    }
    enable(generic);
    Ok(functions)
}

fn say(why: &'static str) {
    FAILURE.store(Some(Box::leak(Box::new(why))));
}

/// Returns true if requests of a type gain enough inside to enable the hook for them: an eighth of
/// a nanosecond a byte, which types with long runs do not gain.
fn enables(entry: &TypeEntry) -> bool {
    is_enabled() || settings().config.lazy_threshold == 0 || entry.spares(LOOKED_AT) >= LOOKED_AT / 8
}

/// Makes a type that was decoded or timed ready in both directions, if its requests gain enough
/// inside Open MPI to enable the hook for them, and if it is compiled already or every type is
/// compiled at its first use. The caller must hold an [`Inside`].
pub(crate) fn adopted(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    if may_enable(host) && entry.rules().class != Class::Dense && enables(entry) && enabled(host).is_some() {
        make(host, entry, handle, [Some(0); 2]);
    }
}

/// Counts the time that compiled code inside Open MPI would have saved a collective call. The
/// program passes `bytes` bytes of a type to the call, and Open MPI makes messages of them, which
/// nobody times. Open MPI takes at least a quarter of a nanosecond a byte for short runs, which is
/// what is counted.
#[inline]
pub(crate) fn passes(host: &'static Host, entry: &TypeEntry, bytes: u64) {
    misses(host, || match entry.rules().class {
        Class::StridedShort | Class::BlocksShort | Class::TableShort => bytes / 4,
        _ => 0,
    });
}

/// Returns whether compiled code moves a message of `bytes` bytes inside Open MPI in all these
/// directions.
#[inline]
pub(crate) fn inside(host: &Host, entry: &TypeEntry, bytes: u64, directions: &[Direction]) -> HookState {
    if !Policy::has(policy(host).of(Call::Inside, entry.rules().class), bytes) {
        HookState::No
    } else if !is_enabled() || directions.iter().any(|&direction| entry.served.by(direction).is_none()) {
        HookState::NotReady
    } else {
        HookState::Ready { gains: entry.gains_inside(bytes) }
    }
}

/// Counts a message of `bytes` bytes that is packed first, because its type is not ready inside
/// Open MPI. Moving its bytes inside would gain more.
pub(crate) fn offer(host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction) {
    misses(host, || staging(bytes));
    if is_enabled() {
        let enough = bytes.saturating_mul(if bytes >= AT_ONCE { 1 } else { BEFORE });
        entry.served.ask(direction, bytes, enough);
    }
}

/// Adds nanoseconds that a request would have saved inside. The hook is enabled once the sum has
/// reached [`MISSED`].
#[inline]
pub(crate) fn misses(host: &'static Host, nanos: impl FnOnce() -> u64) {
    static ALL: AtomicU64 = AtomicU64::new(0);
    if is_enabled() || !may_enable(host) {
        return;
    }
    let nanos = nanos();
    let before = ALL.fetch_add(nanos, Ordering::Relaxed);
    if before < MISSED && before.saturating_add(nanos) >= MISSED {
        enable_untimed(host);
    }
}

/// Makes a type ready for the directions and copies for which it was marked. Called when the
/// program passes the type to a call.
#[cold]
pub(crate) fn attend(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    by_itself(|| {
        make(host, entry, handle, entry.served.take());
        if entry.served.take_copies() {
            entry.served.copy_by(copies(entry));
        }
    });
}

/// Returns the copy of instances from buffer to buffer, which Open MPI would copy run by run;
/// `None` if the mode is `Off`, the type is dense, or no such copy can be compiled.
fn copies(entry: &'static TypeEntry) -> Option<LayoutCopy> {
    // SAFETY: the entry was found by its type's handle, and the program holds the type during the
    // call.
    let committed = unsafe { entry.committed() }?;
    let wanted = runtime::mode() != Mode::Off && entry.rules().class != Class::Dense;
    let copies = committed.direct(committed).ok().filter(|_| wanted)?;
    copies.make().then_some(copies)
}

/// Makes a type ready in both directions, because the program makes a persistent request of it: the
/// request is prepared once and started often.
#[cold]
pub(crate) fn persists(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    by_itself(|| make(host, entry, handle, [Some(u64::MAX); 2]));
}

/// Runs `what`, which calls Open MPI or takes long, as this library's own call, and counts its time
/// to the overhead budget. Does nothing inside another own call, or if memory has run out.
pub(crate) fn by_itself(what: impl FnOnce()) {
    if let Some(_inside) = Inside::enter().filter(|_| !reserve::is_short()) {
        guard(|| overhead_budget::on(what));
    }
}

/// Makes a type ready for each direction that has a number of bytes in `moved`. Open MPI has moved
/// this number of bytes, and they count for the decision to compile. A type that never can be
/// served is refused for good.
fn make(host: &'static Host, entry: &'static TypeEntry, handle: u64, moved: [Option<u64>; 2]) {
    if runtime::mode() == Mode::Off || entry.size() <= 0 || entry.rules().class == Class::Dense {
        return entry.served.refuse();
    }
    let mut in_vain = false;
    for (direction, moved) in Direction::BOTH.into_iter().zip(moved) {
        let Some(moved) = moved else { continue };
        // SAFETY: the entry was found by its type's handle, and the program holds the type during
        // the call.
        let Some(committed) = (unsafe { entry.committed().filter(|_| entry.ready(direction, moved)) }) else {
            in_vain |= moved > 0;
            continue;
        };
        let Some(functions) = enabled(host) else { return };
        let size = committed.datatype().size() as u64;
        // SAFETY: `handle` is a committed type of the program, of `size` bytes, and the layout is
        // proven.
        let kept = entry.served.keep(|| unsafe { functions.cuts(layout(), handle, size, ASKED) });
        if kept.is_none() {
            return entry.served.refuse();
        }
        if entry.rules().class == Class::StridedShort && is_near(committed.nest()) {
            entry.served.keep_short();
        }
        committed.make_ranges(direction);
        entry.served.serve(direction);
    }
    if in_vain && !overhead_budget::allows(0) {
        entry.served.wait_longer();
    }
}
