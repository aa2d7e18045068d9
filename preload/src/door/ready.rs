//! Types are made ready for the host's progress before they get there: compiled, and their elements looked at, when the program itself passes them to a call.
//!
//! In progress nothing is decoded, compiled or waited for: a request whose type is not ready is the host's, and the type is asked for.

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
use super::host::{is_open, open};
use super::layout::{layout, take_for};
use super::nearness::is_near;
use super::proof::{Proven, prove};
use crate::atomic_ref::AtomicRef;
use crate::decision::HookState;
use crate::guard::guard;
use crate::host::Host;
use crate::policy::policy;
use crate::reentrancy::Inside;
use crate::reserve;
use crate::settings::{HookChoice, settings};
use crate::slow_path::{SHADOW, watch};
use crate::spending;
use crate::table::TypeEntry;
use crate::times::staging;

/// Bytes of requests that are the host's before a type is asked for.
pub(crate) const ENOUGH: u64 = 4096;

/// Bytes of a message that is packed first from which its type is made ready inside at once, and how many shorter ones go before it is: that takes some ten microseconds,
/// and longer for a list.
const AT_ONCE: u64 = 64 << 10;
const BEFORE: u64 = 64;

/// Nanoseconds that requests would have taken less inside, from which the door is opened for them: the proof takes 0.8 ms.
const MISSED: u64 = 2 << 20;

/// Positions at which the host is asked where an element of a type ends.
const ASKED: u64 = 8;

/// Why the door is shut; `None`: it is open, or nobody has come to it.
static SHUT: AtomicRef<&'static str> = AtomicRef::none();

/// Why the door is shut, where that is not as it should be.
pub(crate) fn shut() -> Option<&'static str> {
    SHUT.load().copied()
}

/// Whether types are understood by their descriptions, or the door is not open.
pub(crate) fn reads_descriptions() -> bool {
    !is_open() || order().is_some()
}

/// Whether there may be a door: under Open MPI of which the structures are known.
#[inline]
pub(crate) fn may_open(host: &Host) -> bool {
    host.profile.costs.moves_inside && settings().hook != HookChoice::Off
}

/// Functions of the host, once the door is open; the first who comes proves it.
fn opened(host: &'static Host) -> Option<&'static Functions> {
    if !may_open(host) {
        return None;
    }
    let try_once = || {
        let start = Instant::now();
        let found = tried(host).map_err(say).ok();
        spending::forgive(start.elapsed().as_nanos() as u64);
        found
    };
    if FOUND.get().is_none() {
        // The proof uses the communicator of this process.
        host.with_world(|| FOUND.get_or_init(try_once))?;
    }
    functions().filter(|_| is_open())
}

/// The program has committed a type that was not seen, or moves a lot that is not timed.
pub(crate) fn open_untimed(host: &'static Host) {
    if may_open(host) && runtime::mode() != Mode::Off {
        by_itself(|| {
            let _ = opened(host);
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
    open(generic);
    Ok(functions)
}

fn say(why: &'static str) {
    SHUT.store(Some(Box::leak(Box::new(why))));
}

/// Whether requests of a type gain enough inside that the door is opened for it: an eighth of a nanosecond a byte, which long runs do not.
fn opens(entry: &TypeEntry) -> bool {
    is_open() || settings().config.lazy_threshold == 0 || entry.spares(LOOKED_AT) >= LOOKED_AT / 8
}

/// A type was decoded, or timed: it is ready at once where that costs nothing more, or nobody asks what it costs. The caller is inside.
pub(crate) fn adopted(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    if may_open(host) && entry.rules().class != Class::Dense && opens(entry) && opened(host).is_some() {
        make(host, entry, handle, [Some(0); 2]);
    }
}

/// The program passes so many bytes of a type to a collective call, of which the host makes messages. Nobody times those: of short runs the host takes a quarter of a
/// nanosecond a byte and more.
#[inline]
pub(crate) fn passes(host: &'static Host, entry: &TypeEntry, bytes: u64) {
    misses(host, || match entry.rules().class {
        Class::StridedShort | Class::BlocksShort | Class::TableShort => bytes / 4,
        _ => 0,
    });
}

/// Returns whether compiled code moves a message of so many bytes inside the library in all these directions.
#[inline]
pub(crate) fn inside(host: &Host, entry: &TypeEntry, bytes: u64, directions: &[Direction]) -> HookState {
    if !Policy::has(policy(host).of(Call::Inside, entry.rules().class), bytes) {
        HookState::No
    } else if !is_open() || directions.iter().any(|&direction| entry.served.by(direction).is_none()) {
        HookState::NotReady
    } else {
        HookState::Ready { gains: entry.gains_inside(bytes) }
    }
}

/// A message of so many bytes is packed first, and would gain more inside, where its type is not ready.
pub(crate) fn offer(host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction) {
    misses(host, || staging(bytes));
    if is_open() {
        let enough = bytes.saturating_mul(if bytes >= AT_ONCE { 1 } else { BEFORE });
        entry.served.ask(direction, bytes, enough);
    }
}

/// So many nanoseconds less would be taken inside: once they are many, the door is opened.
#[inline]
pub(crate) fn misses(host: &'static Host, nanos: impl FnOnce() -> u64) {
    static ALL: AtomicU64 = AtomicU64::new(0);
    if is_open() || !may_open(host) {
        return;
    }
    let nanos = nanos();
    let before = ALL.fetch_add(nanos, Ordering::Relaxed);
    if before < MISSED && before.saturating_add(nanos) >= MISSED {
        open_untimed(host);
    }
}

/// The program passes a type to a call of which requests were the host's.
#[cold]
pub(crate) fn attend(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    by_itself(|| {
        make(host, entry, handle, entry.served.take());
        if entry.served.take_copies() {
            entry.served.copy_by(copies(entry));
        }
    });
}

/// What copies instances from buffer to buffer where the host moves run by run.
fn copies(entry: &'static TypeEntry) -> Option<LayoutCopy> {
    // SAFETY: the entry is bound, and the program holds its type during the call.
    let committed = unsafe { entry.committed() }?;
    let wanted = runtime::mode() != Mode::Off && entry.rules().class != Class::Dense;
    let copies = committed.direct(committed).ok().filter(|_| wanted)?;
    copies.make().then_some(copies)
}

/// The program makes a persistent request: that is often started, and prepared once.
#[cold]
pub(crate) fn persists(host: &'static Host, entry: &'static TypeEntry, handle: u64) {
    by_itself(|| make(host, entry, handle, [Some(u64::MAX); 2]));
}

/// Does what makes calls to the host, or takes long, unless that is being done.
pub(crate) fn by_itself(what: impl FnOnce()) {
    if let Some(_inside) = Inside::enter().filter(|_| !reserve::is_short()) {
        guard(|| spending::on(what));
    }
}

/// Makes a type ready for directions in which so many bytes were the host's.
fn make(host: &'static Host, entry: &'static TypeEntry, handle: u64, moved: [Option<u64>; 2]) {
    if runtime::mode() == Mode::Off || entry.size() <= 0 || entry.rules().class == Class::Dense {
        return entry.served.refuse();
    }
    let mut in_vain = false;
    for (direction, moved) in Direction::BOTH.into_iter().zip(moved) {
        let Some(moved) = moved else { continue };
        // SAFETY: the entry is bound, and the program holds its type during the call.
        let Some(committed) = (unsafe { entry.committed().filter(|_| entry.ready(direction, moved)) }) else {
            in_vain |= moved > 0;
            continue;
        };
        let Some(functions) = opened(host) else { return };
        let size = committed.datatype().size() as u64;
        // SAFETY: a committed type of the program's, of that size; the layout is proven.
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
    if in_vain && !spending::allows(0) {
        entry.served.wait_longer();
    }
}
