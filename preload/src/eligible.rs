//! Decision whether any message of this process is converted. Each process decides for itself,
//! without the other processes, and keeps the decision until its world is finalized or the epoch
//! ends, or until the process is connected to another job by a transport with which no kind of call
//! was right.

use std::sync::atomic::{AtomicU8, Ordering};

use ddtc_hosts::tried::Kinds;

use crate::canary::packs_raw;
use crate::guard::guard;
use crate::hooks::allowed_hook;
use crate::host::Host;
use crate::proof;
use crate::reentrancy::Inside;
use crate::settings::settings;
use crate::spawned::is_spawned;
use crate::warn::warn;

/// Value of [`STATE`]: it is not decided yet whether messages are converted.
const UNKNOWN: u8 = 0;
/// Value of [`STATE`]: messages may be converted.
const ON: u8 = 1;
/// Value of [`STATE`]: all messages are bypassed.
const OFF: u8 = 2;

/// Decision whether messages are converted: [`UNKNOWN`], [`ON`] or [`OFF`]. The kinds of calls are
/// restricted before it is written, so a thread that reads the decision reads these kinds too.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Restricts conversions to the kinds of calls that were right with the transport to other jobs
/// too. Called before the program is connected to processes of another job.
pub(crate) fn connects(host: &Host) {
    host.kinds.restrict(host.kinds_beyond);
    if host.kinds_beyond.is_empty() {
        STATE.store(OFF, Ordering::Release);
    }
}

/// Forgets the decision whether messages are converted, because it was made with a communicator of
/// the world. Called when the world is finalized, and at the end of the epoch.
pub(crate) fn end_epoch() {
    STATE.store(UNKNOWN, Ordering::Release);
}

/// Returns true if messages of this process may be converted. Makes the decision if it was not made
/// yet.
#[inline]
pub(crate) fn messages(host: &'static Host) -> bool {
    match STATE.load(Ordering::Acquire) {
        UNKNOWN => decide(host),
        state => state == ON,
    }
}

/// Returns the kinds of calls that may be converted. Makes the decision if it was not made yet,
/// because it restricts the kinds in a process that was spawned by another job.
#[inline]
pub(crate) fn kinds(host: &'static Host) -> Kinds {
    messages(host);
    host.kinds.get()
}

/// Returns true if ddtc may time how the MPI library packs the types of messages. That is so if
/// messages may be converted, or if they may not be converted but compiled code may pack them
/// inside the MPI library by the convertor hook.
pub(crate) fn timing(host: &'static Host) -> bool {
    messages(host) || STATE.load(Ordering::Acquire) == OFF && allowed_hook(host).is_some()
}

/// Decides whether messages may be converted. The decision depends only on this process and is not
/// agreed upon with other ranks, because other ranks may run without ddtc.
#[cold]
fn decide(host: &'static Host) -> bool {
    // In a process that uses only sessions, ddtc knows no communicator on which it could test
    // packing. Then nothing is decided, and no message is converted.
    let decided = host.with_world(|| {
        let _inside = Inside::enter()?;
        if is_spawned(host) {
            connects(host);
        }
        let is_right = || packs_raw(host, host.myself) && size_is_enough(host);
        let is_supported = || {
            proof::read(host);
            supported(host)
        };
        let on = guard(|| is_supported() && is_right()).unwrap_or(false);
        // Another thread may have connected the process to another job meanwhile, and so ended
        // conversions.
        let decided = if on { ON } else { OFF };
        let before = STATE.compare_exchange(UNKNOWN, decided, Ordering::AcqRel, Ordering::Acquire);
        Some(on && before.unwrap_or_else(|state| state) != OFF)
    });
    decided.flatten().unwrap_or(false)
}

/// Returns true if some kind of calls may be converted under this MPI library, and the handles of
/// `MPI_PACKED` and `MPI_BYTE` are known.
fn supported(host: &Host) -> bool {
    let known = !host.kinds.get().is_empty() && host.packed != 0 && host.byte != 0;
    let asked = host.asked();
    if known && !asked.is_empty() && !settings().unproven {
        warn(format_args!("{}", host.trial_status.in_words(&host.library, asked)));
    }
    known
}

/// Returns true if the MPI library's `MPI_Pack_size` returns at least 12 for 12 instances of
/// `MPI_PACKED`.
fn size_is_enough(host: &Host) -> bool {
    let mut size = 0;
    // SAFETY: the datatype is a named one, the communicator is `MPI_COMM_SELF` of a world that is
    // initialized (`with_world`), and `size` may be written.
    let code = host.f.pack_size.map(|f| unsafe { f(12, host.packed, host.myself, &raw mut size) });
    code == Some(0) && size >= 12
}
