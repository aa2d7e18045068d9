//! Whether messages are converted under this host at all.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::canary::packs_raw;
use crate::guard::guard;
use crate::hooks::allowed_hook;
use crate::host::Host;
use crate::reentrancy::Inside;
use crate::settings::settings;
use crate::warn::warn;

const UNKNOWN: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

/// Whether messages of this process are converted at all.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Ends the epoch.
pub(crate) fn end_epoch() {
    STATE.store(UNKNOWN, Ordering::Relaxed);
}

/// Says whether they are.
#[inline]
pub(crate) fn messages(host: &'static Host) -> bool {
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => decide(host),
        state => state == ON,
    }
}

/// Says whether the host's packing of messages may be timed: where they are converted, and where compiled code may move them inside the host.
pub(crate) fn timing(host: &'static Host) -> bool {
    messages(host) || STATE.load(Ordering::Relaxed) == OFF && allowed_hook(host).is_some()
}

/// Decides once, from what this process sees by itself: a peer may not have the library, so nothing is agreed upon.
#[cold]
fn decide(host: &'static Host) -> bool {
    // Sessions without the world give no communicator to try packing on.
    let decided = host.with_world(|| {
        let _inside = Inside::enter()?;
        let found = guard(|| supported(host) && packs_raw(host, host.myself) && size_is_enough(host));
        let on = found.unwrap_or(false);
        STATE.store(if on { ON } else { OFF }, Ordering::Relaxed);
        Some(on)
    });
    decided.flatten().unwrap_or(false)
}

/// Says whether messages were tried on this library.
fn supported(host: &Host) -> bool {
    let known = host.profile.messages && host.packed != 0 && host.byte != 0;
    if !known && settings().report.is_some() {
        warn(format_args!("{}: messages are not converted under this MPI library", host.version));
    }
    known
}

/// Whether the host's own bound for packed bytes covers them.
fn size_is_enough(host: &Host) -> bool {
    let mut size = 0;
    // SAFETY: a named type, the communicator of the world's self, a number to write to.
    let code = host.f.pack_size.map(|f| unsafe { f(12, host.packed, host.myself, &raw mut size) });
    code == Some(0) && size >= 12
}
