//! Preparation of datatypes for Open MPI's convertor hook, in which compiled code packs and unpacks
//! the bytes of requests inside Open MPI. When the program itself passes a type to a call, this
//! module compiles the type and finds the places in its packed bytes at which its elements end.
//!
//! Inside Open MPI's progress ddtc decodes and compiles nothing, and waits for nothing. If the type
//! of a request is not ready there, Open MPI's mover packs or unpacks the request, and the type is
//! marked, so that a later call of the program makes it ready.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ddtc::internal::committed::LayoutCopy;
use ddtc::internal::engine::Mode;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::runtime;
use ddtc_hosts::policy::{Call, Class, Policy};

use super::described::ENOUGH;
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
use crate::times::{SHORT_BYTES, staging};

/// Threshold in nanoseconds for enabling the hook: it is enabled once compiled code inside Open MPI
/// would have saved the requests of the process this much time together. The proof, which must be
/// made before that, takes 0.8 ms.
const MISSED: u64 = 2 << 20;

/// Approximate number of positions for a test whether the elements of a type end in Open MPI where
/// ddtc expects their ends ([`Functions::cuts`]).
const ASKED: u64 = 8;

/// Reason why the proof of Open MPI's structures has failed; `None` if the proof has succeeded or
/// was not tried.
static FAILURE: AtomicRef<&'static str> = AtomicRef::none();

/// Returns why the proof of Open MPI's structures has failed; `None` if the proof has succeeded or
/// was not tried.
pub(crate) fn failure() -> Option<&'static str> {
    FAILURE.load().copied()
}

/// Returns false if the hook is enabled but ddtc cannot interpret Open MPI's descriptions of types.
pub(crate) fn reads_descriptions() -> bool {
    !is_enabled() || order().is_some()
}

/// Returns true if the hook may be enabled: the profile of the MPI library has `moves_inside`, as
/// that of Open MPI has, and the settings do not turn the hook off.
#[inline]
pub(crate) fn may_enable(host: &Host) -> bool {
    host.profile.costs.moves_inside && settings().hook != HookChoice::Off
}

/// Returns Open MPI's functions if the hook is enabled. The first call in a process makes the proof
/// of Open MPI's structures, and enables the hook if the proof succeeds.
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
        // The proof uses the communicator `MPI_COMM_SELF`, so it is made only while the world is
        // initialized and not finalized.
        host.with_world(|| FOUND.get_or_init(try_once))?;
    }
    functions().filter(|_| is_enabled())
}

/// Enables the hook although no type was timed. Called if the program has committed a type and
/// ddtc's wrapper has not seen the commit, or if the time that requests would have saved inside
/// Open MPI has reached [`MISSED`].
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

/// Returns true if a type justifies the hook: the hook is enabled already, or every type is
/// compiled at its first use, or compiled code inside Open MPI saves at least a nanosecond for
/// [`SHORT_BYTES`] bytes of the type's requests. Types with long runs save less.
fn enables(entry: &TypeEntry) -> bool {
    is_enabled() || settings().config.lazy_threshold == 0 || entry.spares(ENOUGH) >= ENOUGH / SHORT_BYTES
}

/// Makes a type that was just decoded or timed ready for the hook in both directions. Does so only
/// if the type justifies the hook ([`enables`]), and only if the type is compiled already or every
/// type is compiled at its first use. The caller must hold an [`Inside`].
pub(crate) fn adopted(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    if may_enable(host) && entry.rules().class != Class::Dense && enables(entry) && enabled(host).is_some() {
        make(host, entry, handle, [Some(0); 2]);
    }
}

/// Counts the time that compiled code inside Open MPI would have saved a collective call while the
/// hook is not enabled. The program passes `bytes` bytes of a type to the call, and Open MPI makes
/// messages from them, which nobody times. For layouts with short runs a nanosecond is counted for
/// [`SHORT_BYTES`] bytes. For other layouts nothing is counted.
#[inline]
pub(crate) fn record_collective(host: &'static Host, entry: &TypeEntry, bytes: u64) {
    misses(host, || match entry.rules().class {
        Class::StridedShort | Class::BlocksShort | Class::TableShort => bytes / SHORT_BYTES,
        _ => 0,
    });
}

/// Returns the state of the hook for a message of `bytes` bytes: whether compiled code inside Open
/// MPI packs and unpacks the message, in all the given directions.
#[inline]
pub(crate) fn inside(host: &Host, entry: &TypeEntry, bytes: u64, directions: &[Direction]) -> HookState {
    if !Policy::has(policy(host).payloads(Call::Inside, entry.rules().class), bytes) {
        HookState::No
    } else if !is_enabled() || directions.iter().any(|&direction| entry.served.by(direction).is_none()) {
        HookState::NotReady
    } else {
        HookState::Ready { gains: entry.gains_inside(bytes) }
    }
}

/// Counts a message of `bytes` bytes that compiled code would have packed or unpacked inside Open
/// MPI if its type were ready for the hook. Instead the message usually goes through a staging
/// buffer, which takes more time. If the hook is enabled, marks the type to be made ready once
/// these messages have had [`ENOUGH`] bytes.
pub(crate) fn offer(host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction) {
    misses(host, || staging(bytes));
    if is_enabled() {
        entry.served.ask(direction, bytes, ENOUGH);
    }
}

/// Adds the nanoseconds that a request would have saved if compiled code had packed or unpacked it
/// inside Open MPI. The hook is enabled once the sum for the process has reached [`MISSED`].
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

/// Makes a type ready for the hook in each direction for which the type was marked. If the type was
/// marked for copies from buffer to buffer, compiles a copy too. Called when the program passes the
/// type to a call.
#[cold]
pub(crate) fn attend(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    by_itself(|| {
        make(host, entry, handle, entry.served.take());
        if entry.served.take_copies() {
            entry.served.copy_by(copies(entry));
        }
    });
}

/// Returns compiled code that copies instances of a type from buffer to buffer, which Open MPI
/// would copy run by run; `None` if the mode is `Off`, the type is dense, or the copy cannot be
/// compiled.
fn copies(entry: &'static TypeEntry) -> Option<LayoutCopy> {
    // SAFETY: the entry was found by its type's handle, and the program holds the type during the
    // call.
    let committed = unsafe { entry.committed() }?;
    let wanted = runtime::mode() != Mode::Off && entry.rules().class != Class::Dense;
    let copies = committed.direct(committed).ok().filter(|_| wanted)?;
    copies.make().then_some(copies)
}

/// Makes a type ready for the hook in both directions when the program makes a persistent request
/// with the type, because the request is prepared once and started often.
#[cold]
pub(crate) fn persists(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    by_itself(|| make(host, entry, handle, [Some(u64::MAX); 2]));
}

/// Runs `what`, which calls Open MPI or takes long, and charges its time to the overhead budget.
/// MPI calls of `what` count as ddtc's own calls. Does nothing inside another own call of ddtc, or
/// if memory has run out.
pub(crate) fn by_itself(what: impl FnOnce()) {
    if let Some(_inside) = Inside::enter().filter(|_| !reserve::is_short()) {
        guard(|| overhead_budget::on(what));
    }
}

/// Makes a type ready for the hook in each direction that has a number of bytes in `moved`. These
/// bytes, usually those that Open MPI's mover has packed or unpacked in this direction, count for
/// the decision to compile the type. If compiled code can never serve requests of the type in the
/// hook, refuses the type for good.
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
