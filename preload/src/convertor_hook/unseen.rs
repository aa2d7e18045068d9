//! Requests of types that the program never passes to a call that this library sees. Such a type is
//! found by its description, and compiled by the program's next call.
//!
//! A request of 16 KiB or more whose type is not in the table is looked up by the type's
//! description. An unknown description is noted in memory that exists already. When the program
//! next calls MPI, three things are made of the description: a datatype of bytes
//! ([`super::description`]), its kernels, and the places where its elements end. They are made at
//! once if [`super::standing`] finds a call of the program on the stack and not Open MPI's
//! progress. They are never freed, because convertors point to them, and their number is limited.
//!
//! The `HeaderCopy`, a copy of the description's header, then replaces Open MPI's description in the
//! convertor. So ddtc's mover finds what was made without a search, and a clone of the convertor
//! has the `HeaderCopy` too. Compiled code serves no request of the type before Open MPI has moved the
//! first ones and their bytes were compared ([`super::first`]).

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use ddtc::engine::Mode;
use ddtc::kind::Direction;
use ddtc::object::runtime;
use ddtc_hosts::policy::Call;

use super::described::{Described, all, find, make};
use super::description::{MOST, View, order, view};
use super::first;
use super::functions::functions;
use super::layout::{Convertor, layout};
use super::mover::Ours;
use super::ready::{ENOUGH, by_itself};
use super::standing::in_a_call_of_the_program;
use crate::cuts::Entry;
use crate::host::known;
use crate::hotness;
use crate::overhead_budget;
use crate::relative::ADDRESSES;
use crate::slow_path::{UNSEEN, unwatch, watch, watched_for};
use crate::worth::COMPILE;

/// A description that waits to be compiled. If a thread holds a slot while the process forks, the
/// slot is lost to the child.
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

// SAFETY: only the thread that has set `state` to `TAKEN` reads or writes `noted`.
unsafe impl Sync for Slot {}

const EMPTY: u8 = 0;
const TAKEN: u8 = 1;
const FULL: u8 = 2;

/// Slots in the memory of this library. Their pages are not touched before a description is noted.
static SLOTS: [Slot; 4] = [const {
    let entry = Entry { flags: 0, kind: 0, count: 0, length: 0, extent: 0, displacement: 0 };
    Slot {
        state: AtomicU8::new(EMPTY),
        hash: AtomicU64::new(0),
        noted: UnsafeCell::new(Noted { bounds: [0; 5], used: 0, entries: [entry; MOST + 1] }),
    }
}; 4];

/// Returns true if a description waits to be compiled, or a type that is known by its description
/// waits to be served.
fn is_pending() -> bool {
    watched_for(UNSEEN)
}

impl Slot {
    fn take(&self, from: u8) -> bool {
        self.state.compare_exchange(from, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// Nanoseconds that compiling a description is estimated to take for each of its entries (4600
/// entries take 5 ms, Zen 4).
const ENTRY: u64 = 1100;

/// Notes a description, if a slot is free and the overhead budget allows compiling the description.
fn note(view: &View<'_>) {
    if !overhead_budget::allows(COMPILE + ENTRY * view.entries.len() as u64) {
        return;
    }
    let hash = view.hash();
    if SLOTS.iter().any(|s| s.state.load(Ordering::Relaxed) == FULL && s.hash.load(Ordering::Relaxed) == hash)
    {
        return;
    }
    let Some(slot) = SLOTS.iter().find(|slot| slot.take(EMPTY)) else { return };
    slot.hash.store(hash, Ordering::Relaxed);
    // SAFETY: this thread has set the slot's state to `TAKEN`.
    let noted = unsafe { &mut *slot.noted.get() };
    noted.bounds = view.bounds;
    noted.used = view.entries.len().min(MOST + 1);
    noted.entries[..noted.used].copy_from_slice(&view.entries[..noted.used]);
    slot.state.store(FULL, Ordering::Release);
    watch(UNSEEN);
}

/// Compiles the descriptions that wait. Called at the beginning of a call of the program, never in
/// Open MPI's progress.
#[cold]
pub(super) fn attend() {
    by_itself(|| {
        let (Some(functions), Some(order)) = (functions(), order()) else { return };
        unwatch(UNSEEN);
        for slot in &SLOTS {
            if slot.take(FULL) {
                // SAFETY: this thread has set the slot's state to `TAKEN`.
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

/// Number of successive times that a thread had work for [`attend`] and was not seen to be in a
/// call of the program.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// Returns true if this thread may compile descriptions now, because it is in a call of the
/// program.
fn may_make() -> bool {
    let vain = IN_VAIN.load(Ordering::Relaxed);
    // Looking at the stack takes some microseconds. After 16 looks in vain only every 256th call
    // looks again.
    let may = (vain < 16 || vain.is_multiple_of(256)) && in_a_call_of_the_program();
    IN_VAIN.store(if may { 0 } else { vain.wrapping_add(1) }, Ordering::Relaxed);
    may
}

/// Stores a mover for a request whose type is not in the table, if the type is known by its
/// description.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI that was just prepared for its generic mover, with
/// `size` packed bytes of the type `datatype`.
#[cold]
pub(crate) unsafe fn choose(direction: Direction, convertor: Convertor, datatype: u64, size: u64) {
    // A type that the program passes to calls which this library sees is decoded once its uses have
    // paid for that.
    if order().is_none() || hotness::is_used(datatype) && is_decoded_by_uses() {
        return;
    }
    // SAFETY: the layout is proven if there is an order. Open MPI has accepted the type as
    // committed, and the type lives during this preparation.
    let Some(view) = (unsafe { view(datatype) }) else { return };
    // SAFETY: the caller promises a convertor of Open MPI, and the layout is proven.
    if unsafe { convertor.word(layout().buffer) } == 0 && view.bounds[1] < ADDRESSES {
        return;
    }
    for turn in 0..3 {
        match find(&view) {
            Some(known) if known.way(direction).is_some() => {
                if known.served.gains(size) {
                    // SAFETY: the contract of `store` is this function's, and `known` was found by
                    // the description of the convertor's type.
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

/// Returns true if uses of types in messages are counted. They are not counted if a PMPI layer
/// takes messages: then nobody decodes the types by their handles.
fn is_decoded_by_uses() -> bool {
    known().is_none_or(|host| !host.layers.take(Call::Message))
}

/// Stores the `HeaderCopy` of a type and a mover in a convertor.
///
/// # Safety
/// As for [`choose`]. `known` must have been found by the description of the convertor's type.
unsafe fn store(known: &'static Described, direction: Direction, convertor: Convertor) {
    let l = layout();
    // SAFETY: the caller promises a fresh convertor of Open MPI that nobody else uses, and the
    // layout is proven. The `HeaderCopy` has the same entries as Open MPI's description. While a mover
    // only compares, Open MPI's mover keeps the stack up to date, so the function that sets the
    // position is not replaced.
    unsafe {
        convertor.put(l.description, known.header_copy());
        if known.is_proven(direction) {
            Ours::Described(direction).store(convertor);
        } else {
            convertor.put(l.mover, first::mover(direction) as usize as u64);
        }
    }
}
