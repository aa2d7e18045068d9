//! Types that the program never shows: found by what their descriptions say, made by the program's next call.
//!
//! A request of 16 KiB and more whose type is not in the table is looked up by its description. One that is not known is noted, in memory that is there, and made when
//! the program next calls, or now, where [`super::standing`] says that a call of the program is on the stack and the host's progress is not: a type of bytes
//! ([`super::description`]), its kernels, where its elements end. What is made stays for good, as many as there are places: convertors point to it. Its copy of the
//! description takes the place of the host's in such a convertor, so that our mover finds what serves it without a look-up, and clones have it too. Until
//! its first requests were moved by the host and compared ([`super::first`]) nothing goes by it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use ddtc::engine::Mode;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc_hosts::policy::Call;

use super::described::{COMPILE, Described, all, find, make};
use super::description::{MOST, View, order, view};
use super::first;
use super::functions::functions;
use super::layout::{Convertor, layout};
use super::mover::Ours;
use super::ready::{ENOUGH, by_itself};
use super::standing::in_a_call_of_the_program;
use crate::candidates;
use crate::cuts::Entry;
use crate::host::known;
use crate::relative::ADDRESSES;
use crate::slow_path::{UNSEEN, unwatch, watch, watched_for};
use crate::spending;

/// A description that waits to be made. One that a thread holds while the process forks is lost to the child.
struct Slot {
    state: AtomicU8,
    hash: AtomicU64,
    noted: UnsafeCell<Noted>,
}

struct Noted {
    bounds: [i64; 5],
    used: usize,
    entries: [Entry; MOST + 1],
}

// SAFETY: what is noted is touched by whoever has set the state to `TAKEN`.
unsafe impl Sync for Slot {}

const EMPTY: u8 = 0;
const TAKEN: u8 = 1;
const FULL: u8 = 2;

/// Memory of this library's own, of which nothing is touched before it is used.
static SLOTS: [Slot; 4] = [const {
    let entry = Entry { flags: 0, kind: 0, count: 0, length: 0, extent: 0, displacement: 0 };
    Slot {
        state: AtomicU8::new(EMPTY),
        hash: AtomicU64::new(0),
        noted: UnsafeCell::new(Noted { bounds: [0; 5], used: 0, entries: [entry; MOST + 1] }),
    }
}; 4];

/// Whether something waits to be made.
fn is_pending() -> bool {
    watched_for(UNSEEN)
}

impl Slot {
    fn take(&self, from: u8) -> bool {
        self.state.compare_exchange(from, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// Nanoseconds that making something of a description takes for each of its entries (4600 entries 5 ms, Zen 4).
const ENTRY: u64 = 1100;

/// Notes a type, if there is room, and time to make something of it.
fn note(view: &View<'_>) {
    if !spending::allows(COMPILE + ENTRY * view.entries.len() as u64) {
        return;
    }
    let hash = view.hash();
    if SLOTS.iter().any(|s| s.state.load(Ordering::Relaxed) == FULL && s.hash.load(Ordering::Relaxed) == hash)
    {
        return;
    }
    let Some(slot) = SLOTS.iter().find(|slot| slot.take(EMPTY)) else { return };
    slot.hash.store(hash, Ordering::Relaxed);
    // SAFETY: this thread has taken it.
    let noted = unsafe { &mut *slot.noted.get() };
    noted.bounds = view.bounds;
    noted.used = view.entries.len().min(MOST + 1);
    noted.entries[..noted.used].copy_from_slice(&view.entries[..noted.used]);
    slot.state.store(FULL, Ordering::Release);
    watch(UNSEEN);
}

/// Makes what waits: at the begin of a call of the program, never in the host's progress.
#[cold]
pub(super) fn attend() {
    by_itself(|| {
        let (Some(functions), Some(order)) = (functions(), order()) else { return };
        unwatch(UNSEEN);
        for slot in &SLOTS {
            if slot.take(FULL) {
                // SAFETY: this thread has taken it.
                let noted = unsafe { &*slot.noted.get() };
                let view = View { bounds: noted.bounds, entries: &noted.entries[..noted.used] };
                if runtime::mode() != Mode::Off {
                    make(&view, functions.sizes(), order);
                }
                slot.state.store(EMPTY, Ordering::Release);
            }
        }
        all().filter(|known| known.served.is_asked()).for_each(Described::serve);
    });
}

/// How often nobody could be told to make what waits.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// Whether this thread may make what waits here and now.
fn may_make() -> bool {
    let vain = IN_VAIN.load(Ordering::Relaxed);
    // A look at the stack takes some microseconds.
    let may = (vain < 16 || vain.is_multiple_of(256)) && in_a_call_of_the_program();
    IN_VAIN.store(if may { 0 } else { vain.wrapping_add(1) }, Ordering::Relaxed);
    may
}

/// Stores what moves a request whose type the table does not have, if it is known by its description.
///
/// # Safety
/// `convertor` must be one of the host's that was just prepared for its generic mover, of `size` bytes, and `datatype` its type.
#[cold]
pub(crate) unsafe fn choose(direction: Direction, convertor: Convertor, datatype: u64, size: u64) {
    // One that calls of the program's show is decoded once its uses have paid for that.
    if order().is_none() || candidates::is_shown(datatype) && is_decoded_by_uses() {
        return;
    }
    // SAFETY: the layout is proven where an order is, and the host has accepted it as committed.
    let Some(view) = (unsafe { view(datatype) }) else { return };
    // SAFETY: as the caller promises.
    if unsafe { convertor.word(layout().buffer) } == 0 && view.bounds[1] < ADDRESSES {
        return;
    }
    for turn in 0..3 {
        match find(&view) {
            Some(known) if known.way(direction).is_some() => {
                if known.served.gains(size) {
                    // SAFETY: as the caller promises; what stands in is a description like the host's.
                    unsafe { store(known, direction, convertor) };
                }
                return;
            }
            Some(known) => {
                known.served.ask(direction, size, ENOUGH);
                if !known.served.is_asked() {
                    return;
                }
                watch(UNSEEN);
            }
            None => note(&view),
        }
        if turn == 2 || !is_pending() || !may_make() {
            return;
        }
        attend();
    }
}

/// Whether uses of types in messages count: not if a PMPI layer takes messages, whose types nobody
/// decodes by their handles.
fn is_decoded_by_uses() -> bool {
    known().is_none_or(|host| !host.layers.take(Call::Message))
}

/// # Safety
/// As [`choose`], of what is known of its type.
unsafe fn store(known: &'static Described, direction: Direction, convertor: Convertor) {
    let l = layout();
    // SAFETY: as the caller promises. What only compares leaves the host's stack to the host, and with it where a convertor is placed.
    unsafe {
        convertor.put(l.description, known.stand_in());
        if known.is_proven(direction) {
            Ours::Described(direction).store(convertor);
        } else {
            convertor.put(l.mover, first::mover(direction) as usize as u64);
        }
    }
}
