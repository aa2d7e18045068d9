//! Requests of types that the program never passes to a call which ddtc sees. Such a type is found
//! by Open MPI's description of the type, and compiled in the program's next call.
//!
//! If a request has 16 KiB or more and its type is not in ddtc's table of types, the type is looked
//! up by Open MPI's description of it. An unknown description is copied into memory that exists
//! already. When the program next calls MPI, three things are made from the description: a datatype
//! of bytes ([`super::description`]), its kernels, and the places where its elements end. They are
//! made at once, during the request, if [`super::standing`] finds a call of the program on the
//! stack and not Open MPI's progress. They are never freed, because convertors point to them, and
//! their number is limited.
//!
//! The `HeaderCopy` is a copy of the description's header, which replaces Open MPI's description in
//! the convertor. Its address leads ddtc's mover to the compiled type without a search. A clone of
//! the convertor has the `HeaderCopy` too. Compiled code serves no request of the type until Open
//! MPI has packed or unpacked the first requests and the bytes were compared ([`super::first`]).

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use ddtc::internal::engine::Mode;
use ddtc::internal::kind::Direction;
use ddtc::internal::object::runtime;
use ddtc_hosts::policy::Call;

use super::described::{Described, ENOUGH, all, find, make};
use super::description::{MAX_ENTRIES, View, order, view};
use super::first;
use super::functions::functions;
use super::layout::{Convertor, layout};
use super::mover::Ours;
use super::ready::by_itself;
use super::standing::in_a_call_of_the_program;
use crate::cuts::Entry;
use crate::host::known;
use crate::hotness;
use crate::overhead_budget;
use crate::relative::ADDRESSES;
use crate::slow_path::{UNSEEN, unwatch, watch, watched_for};

/// Slot for one of Open MPI's descriptions of types that waits to be compiled. If a thread holds a
/// slot while the process forks, the child process cannot use that slot.
struct Slot {
    state: AtomicU8,
    hash: AtomicU64,
    copy: UnsafeCell<DescriptionCopy>,
}

struct DescriptionCopy {
    bounds: [i64; 5],
    used: usize,
    entries: [Entry; MAX_ENTRIES + 1],
}

// SAFETY: only the thread that has set `state` to `TAKEN` reads or writes `copy`.
unsafe impl Sync for Slot {}

const EMPTY: u8 = 0;
const TAKEN: u8 = 1;
const FULL: u8 = 2;

/// Slots for descriptions that wait to be compiled. They are static memory of ddtc, whose pages are
/// not touched before a description is copied into a slot.
static SLOTS: [Slot; 4] = [const {
    let entry = Entry { flags: 0, kind: 0, count: 0, length: 0, extent: 0, displacement: 0 };
    Slot {
        state: AtomicU8::new(EMPTY),
        hash: AtomicU64::new(0),
        copy: UnsafeCell::new(DescriptionCopy { bounds: [0; 5], used: 0, entries: [entry; MAX_ENTRIES + 1] }),
    }
}; 4];

/// Returns true if a description waits to be compiled, or if a type that is known by its
/// description waits to be made ready for its requests.
fn is_pending() -> bool {
    watched_for(UNSEEN)
}

/// Empties a slot at the end of a scope, even if a panic ends it.
struct Emptied(&'static Slot);

impl Drop for Emptied {
    fn drop(&mut self) {
        self.0.state.store(EMPTY, Ordering::Release);
    }
}

impl Slot {
    fn take(&self, from: u8) -> bool {
        self.state.compare_exchange(from, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// Estimated nanoseconds that compiling one of Open MPI's descriptions of types takes for each
/// entry of the description (4600 entries take 5 ms, Zen 4).
const ENTRY: u64 = 1100;

/// Copies a description into a slot so that it is compiled later, if a slot is free and the
/// overhead budget allows compiling the description. Does nothing if a slot has a description with
/// the same hash already.
fn queue_description(view: &View<'_>) {
    if !overhead_budget::allows(ENTRY * view.entries.len() as u64) {
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
    let copy = unsafe { &mut *slot.copy.get() };
    copy.bounds = view.bounds;
    copy.used = view.entries.len().min(MAX_ENTRIES + 1);
    copy.entries[..copy.used].copy_from_slice(&view.entries[..copy.used]);
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
                let _emptied = Emptied(slot);
                // SAFETY: this thread has set the slot's state to `TAKEN`.
                let copy = unsafe { &*slot.copy.get() };
                let view = View { bounds: copy.bounds, entries: &copy.entries[..copy.used] };
                if runtime::mode() != Mode::Off {
                    make(&view, functions.sizes(), order);
                }
            }
        }
        all().filter(|known| known.served.is_asked()).for_each(Described::serve);
    });
}

/// Number of successive times that a thread found work for [`attend`] but was not in a call of the
/// program, so far as its stack shows, or did not inspect its stack.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// Returns true if this thread may compile descriptions now, because its stack shows that it is in
/// a call of the program.
fn may_make() -> bool {
    let vain = IN_VAIN.load(Ordering::Relaxed);
    // Inspecting the stack takes some microseconds. After 16 successive failures, only every 256th
    // call of this function inspects the stack.
    let may = (vain < 16 || vain.is_multiple_of(256)) && in_a_call_of_the_program();
    IN_VAIN.store(if may { 0 } else { vain.wrapping_add(1) }, Ordering::Relaxed);
    may
}

/// Stores a mover of ddtc in the convertor of a request, if the request's type is not in ddtc's
/// table of types but is known by its description. If the description is unknown, records it for
/// later.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI that was prepared for its generic mover, with `size`
/// packed bytes of the type `datatype`, and that has moved nothing yet.
#[cold]
pub(crate) unsafe fn choose(direction: Direction, convertor: Convertor, datatype: u64, size: u64) {
    // If the program passes the type to calls that ddtc sees, the type is decoded once it was used
    // so much that decoding pays, and its description is not needed.
    if order().is_none() || hotness::is_used(datatype) && is_decoded_by_uses() {
        return;
    }
    // SAFETY: `order` returns `Some` only after the proof of the layout. Open MPI has accepted the
    // type as committed, and the type lives during this preparation.
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
            None => queue_description(&view),
        }
        if turn == 2 || !is_pending() || !may_make() {
            return;
        }
        attend();
    }
}

/// Returns true if ddtc counts the uses of types in messages, and decodes a type once it was used
/// so much that decoding pays. ddtc does not count uses if a PMPI layer takes messages, because
/// then no type is decoded by its handle.
fn is_decoded_by_uses() -> bool {
    known().is_none_or(|host| !host.layers.take(Call::Message))
}

/// Stores the `HeaderCopy` of the type `known` and a mover of ddtc in a convertor.
///
/// # Safety
/// As for [`choose`]. `known` must have been found by the description of the convertor's type.
unsafe fn store(known: &'static Described, direction: Direction, convertor: Convertor) {
    let l = layout();
    // SAFETY: the caller promises a convertor of Open MPI that has moved nothing yet and that
    // nobody else uses, and the layout is proven. The `HeaderCopy` has the same entries as Open
    // MPI's description. A mover of [`first`] lets Open MPI's mover do the work, which keeps the
    // convertor's stack up to date, so the function that sets the position need not be replaced.
    unsafe {
        convertor.put(l.description, known.header_copy());
        if known.is_proven(direction) {
            Ours::Described(direction).store(convertor);
        } else {
            convertor.put(l.mover, first::mover(direction) as usize as u64);
        }
    }
}
