//! Hotness counters: for each committed type that is not decoded, the time that its uses have cost
//! the MPI library.
//!
//! Decoding a type costs more than a small call, and a type may be used only once. So in mode
//! `lazy` a commit only records the handle here. Each call that could be converted adds to the
//! type's counter the minimum time that the call costs the unmodified library. The type is decoded
//! ([`crate::types::adopt`]) when [`crate::worth`] expects decoding to pay.
//!
//! The hash of a handle selects the handle's slot in the array [`COUNTERS`]. If another handle has
//! that slot, the handle gets a slot in the table [`OTHERS`], which grows. Counts are not exact: a
//! handle may belong to a later type than the type that was counted under it, and if two threads
//! count at once, one count may be lost. Counts only decide when a type is decoded. A decoded type
//! is tied to its entry, with kernels and verdicts, by an attribute of the MPI library, and not by
//! its handle. A handle has a slot only if a commit of it was seen, or the MPI library was seen to
//! accept it as committed, and no [`MPI_Type_free`](crate::wrap) was seen after that. So the MPI
//! library can be queried about it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::internal::process::is_inconsistent;

use crate::atomic_ref::AtomicRef;
use crate::host::{HandleWord, Host};
use crate::similar::{self, Gain, SimilarityClass};
use crate::slots::{Entry, Table, spread};
use crate::table::{self, Found};
use crate::use_kind::{CompletedBy, UseKind, UseRules};
use crate::worth::{self, BLOCK, COMPILE, DOUBLINGS_WITHOUT_GAIN, MAX_DOUBLINGS, Outlook};

/// Number of slots in the array [`COUNTERS`]: more than the number of types that programs usually
/// have at a time, and few enough for the array to stay in a processor cache.
const SLOTS: usize = 2048;

/// Slot of a committed type: the hotness counter of the type as long as it is not decoded, and the
/// type's back-off, which is used for decoded types too.
#[repr(align(64))]
struct Slot {
    /// Masked handle of the type; 0 if no type has the slot.
    handle: AtomicU64,
    /// Packed bytes of an instance of the type; 0 until the first counted use of the type, which
    /// queries them from the MPI library.
    size: AtomicI64,
    /// Nanoseconds that the counted uses of the type have cost the MPI library.
    spent: AtomicU64,
    /// Nanoseconds that the uses of the type must have cost before ddtc decides again whether to
    /// decode the type.
    next: AtomicU64,
    /// Bytes that the counted uses of the type have moved.
    moved: AtomicU64,
    /// Similarity class of the type; null until the uses of the type have cost enough for a look-up
    /// of the class.
    class: AtomicRef<SimilarityClass>,
    /// Back-off: the number of next uses of the type that pass without any decision about them. The
    /// low 16 bits ([`USES_LEFT`]) are the number of uses that are left, and the next 16 bits are
    /// the number at the start of the back-off. If the upper half is not 0, the back-off is limited
    /// to the messages that it names ([`Like::bits`]).
    back_off: AtomicU64,
    /// True if another handle with the hash of this slot has or had a slot in [`OTHERS`].
    is_shared: AtomicBool,
    /// True once a type was freed whose handle has the hash of this slot ([`may_be_dying`]).
    has_freed: AtomicBool,
}

/// Mask of the bits of [`Slot::back_off`] that count down the uses that are left in a back-off.
const USES_LEFT: u64 = u16::MAX as u64;
/// Position in [`Slot::back_off`] of the lowest of the 16 bits that hold the number of uses at the
/// start of a back-off.
const USES_AT: u32 = 16;
/// Position in [`Slot::back_off`] of the lowest of the bits that [`Like::bits`] returns, which
/// limit a back-off to similar messages.
const LIKE_AT: u32 = 32;
/// Number of messages in the back-off that starts after a message of a decoded type was bypassed.
/// This many of the next similar messages pass without any decision about them.
const BACK_OFF_MESSAGES: u64 = 63;

/// Property by which messages of one type are similar: the number of elements, and whether the call
/// that begins a message completes it, or a later call does.
#[derive(Clone, Copy)]
pub(crate) struct Like {
    pub(crate) count: i64,
    pub(crate) by: CompletedBy,
}

impl Like {
    /// Returns the upper half of [`Slot::back_off`] for a back-off that is limited to messages like
    /// this: the number of elements, and whether a later call completes the messages. Returns 0 if
    /// the number of elements is not between 1 and 2^31 - 1. A back-off whose upper half is 0 is
    /// for all uses of the type.
    fn bits(self) -> u64 {
        let later = u64::from(self.by == CompletedBy::LaterCall);
        if (1..1 << 31).contains(&self.count) { (self.count as u64) << 1 | later } else { 0 }
    }

    /// Returns true if a message like this passes in a back-off whose upper half is `bits`. The
    /// number of elements must be the same. A message that its own call completes passes only in a
    /// back-off for messages that their own call completes. A message that a later call completes
    /// costs more to convert, so it passes in both kinds of back-off.
    #[inline(always)]
    fn is_of(self, bits: u64) -> bool {
        match self.by {
            CompletedBy::SameCall => bits == (self.count as u64) << 1,
            CompletedBy::LaterCall => bits >> 1 == self.count as u64,
        }
    }
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            handle: AtomicU64::new(0),
            size: AtomicI64::new(0),
            spent: AtomicU64::new(0),
            next: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            class: AtomicRef::none(),
            back_off: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
            has_freed: AtomicBool::new(false),
        }
    }

    /// Returns the packed bytes of an instance of the slot's type. Queries the MPI library if the
    /// slot does not hold them yet.
    #[inline]
    fn size(&self, host: &Host, datatype: HandleWord) -> Option<i64> {
        let known = self.size.load(Relaxed);
        if known != 0 {
            return Some(known);
        }
        let size = bytes(host, datatype)?;
        self.size.store(size, Relaxed);
        Some(size)
    }

    /// Returns the similarity class of the slot's type. Looks up the class if the slot does not
    /// hold it yet.
    fn class(&self, host: &Host, datatype: HandleWord, used: UseKind) -> Option<&'static SimilarityClass> {
        self.class.load().or_else(|| {
            let class = similar::class(host, datatype, self.size.load(Relaxed), used);
            self.class.store(class);
            class
        })
    }

    /// Postpones the next decision about the type until its uses have cost twice as much as they
    /// have now. Returns the cost in nanoseconds at which that decision is made.
    fn look_later(&self) -> u64 {
        let next = self.spent.load(Relaxed).saturating_mul(2);
        self.next.store(next, Relaxed);
        next
    }

    /// Starts a back-off for all uses of the type. Assumes that each of the next uses costs `cost`
    /// nanoseconds, as the last use did. The uses in the back-off may together cost at most the
    /// difference between `until` and `spent`, and at most as much as the uses before the last one
    /// have cost. `spent`: the cost of all uses so far. `until`: the cost at which the next
    /// decision about the type is made.
    fn start_back_off(&self, cost: u64, spent: u64, until: u64) {
        let uses = until.saturating_sub(spent).min(spent.saturating_sub(cost)) / cost.max(1);
        if uses > 0 {
            let uses = uses.min(USES_LEFT);
            self.back_off.store(uses << USES_AT | uses, Relaxed);
        }
    }

    /// Returns true if a use passes in the back-off, and then counts the back-off down by one use.
    /// `back_off`: the value of [`Slot::back_off`], whose number of uses left is not 0. `like`: the
    /// property of the use's message; `None` if the use is not a message.
    #[inline(always)]
    fn passes_in_back_off(&self, back_off: u64, like: Option<Like>) -> bool {
        let of = back_off >> LIKE_AT;
        if of != 0 && !like.is_some_and(|like| like.is_of(of)) {
            return false;
        }
        // If another thread changes the back-off at the same time, or commits a type that gets the
        // slot, one of the two changes is lost. Then the next decision about a type is made earlier
        // or later, with no other effect.
        self.back_off.store(back_off - 1, Relaxed);
        true
    }

    /// Ends the back-off. Returns the number of uses that have passed in it.
    fn end_back_off(&self) -> u64 {
        let back_off = self.back_off.load(Relaxed);
        self.back_off.store(0, Relaxed);
        (back_off >> USES_AT & USES_LEFT) - (back_off & USES_LEFT)
    }

    /// Gives the slot to a handle, and resets all counts.
    #[inline]
    fn begin(&self, handle: u64) {
        self.handle.store(handle, Relaxed);
        self.size.store(0, Relaxed);
        self.spent.store(0, Relaxed);
        self.next.store(worth::DECODE, Relaxed);
        self.moved.store(0, Relaxed);
        self.class.store(None);
        self.back_off.store(0, Relaxed);
    }

    /// Adds the bytes that the slot's type has moved to the statistics of its similarity class.
    /// Called when the type is about to be freed.
    #[inline]
    fn end(&self) {
        if let Some(class) = self.class.load() {
            class.ended(self.moved.load(Relaxed), self.size.load(Relaxed).unsigned_abs());
        }
    }

    /// Ends the back-off, and adds the bytes of the uses that have passed in it to the bytes that
    /// the type has moved. If the type is decoded, that sum is in its table entry, otherwise in the
    /// slot.
    fn count_and_end_back_off(&self, handle: u64) {
        let count = (self.back_off.load(Relaxed) >> LIKE_AT >> 1).max(1);
        let elements = self.end_back_off().saturating_mul(count);
        let bytes = |size: i64| elements.saturating_mul(size.unsigned_abs());
        match table::find(handle) {
            Found::Convert(entry) => entry.moves(bytes(entry.size())),
            _ => {
                add(&self.moved, bytes(self.size.load(Relaxed)));
            }
        }
    }
}

impl Entry for Slot {
    fn new() -> Slot {
        Slot::new()
    }

    fn handle(&self) -> &AtomicU64 {
        &self.handle
    }
}

/// Array of the slots, in which the hash of a handle selects the handle's slot.
static COUNTERS: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

/// Table of the slots of handles that found the slot of their hash in [`COUNTERS`] taken by another
/// handle, because the program keeps many types.
static OTHERS: Table<Slot> = Table::new();

/// True once [`OTHERS`] has had a slot.
static HAS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Returns the slot in [`COUNTERS`] that the hash of a handle selects. Another handle may have it.
#[inline]
fn home(handle: u64) -> &'static Slot {
    &COUNTERS[place_of(handle)]
}

/// Returns the slot that a handle has in [`COUNTERS`] or [`OTHERS`]; `None` if it has none.
#[inline]
fn find(handle: u64) -> Option<&'static Slot> {
    let home = home(handle);
    if home.handle.load(Relaxed) == handle {
        Some(home)
    } else if HAS_OTHERS.load(Relaxed) {
        OTHERS.find(handle)
    } else {
        None
    }
}

#[inline]
fn place_of(handle: u64) -> usize {
    spread(handle, 64 - SLOTS.ilog2())
}

/// Number of slots in a page of memory, which has 4096 bytes.
const PAGE: usize = 64;
/// Bit for each page of [`COUNTERS`] that is set once a slot of the page was used. When all slots
/// are cleared, pages whose bit is not set are not even read, because the first access to a page
/// takes 2 us.
static PAGES: AtomicU32 = AtomicU32::new(0);
const _: () = assert!(SLOTS / PAGE <= u32::BITS as usize);

/// Gives a slot to a handle whose type was just committed, or was accepted by the MPI library in a
/// call that requires a committed type.
#[inline]
pub(crate) fn record(handle: u64) {
    let place = place_of(handle);
    let home = &COUNTERS[place];
    if home.handle.load(Relaxed) != 0 || home.is_shared.load(Relaxed) {
        return record_other(handle);
    }
    use_page(place);
    home.begin(handle);
}

/// Does what [`record`] does if the slot of the handle's hash is in use, or if another handle with
/// that hash has or had a slot in [`OTHERS`].
#[inline(never)]
fn record_other(handle: u64) {
    let place = place_of(handle);
    let home = &COUNTERS[place];
    let taken = home.handle.load(Relaxed);
    if taken != handle
        && HAS_OTHERS.load(Relaxed)
        && !is_inconsistent()
        && let Some(slot) = OTHERS.find(handle)
    {
        slot.begin(handle);
    } else if taken == 0 || taken == handle {
        use_page(place);
        home.begin(handle);
    } else if !is_inconsistent() {
        home.is_shared.store(true, Relaxed);
        let slot = OTHERS.take();
        slot.begin(0);
        if OTHERS.bind(slot, handle, true) {
            HAS_OTHERS.store(true, Relaxed);
        } else {
            // Another thread has given a slot to the handle in the meantime.
            OTHERS.give_back(slot);
        }
    }
}

/// Marks the page of [`COUNTERS`] that contains the slot with index `place` as used.
#[inline(always)]
fn use_page(place: usize) {
    let page = 1 << (place / PAGE);
    if PAGES.load(Relaxed) & page == 0 {
        PAGES.fetch_or(page, Relaxed);
    }
}

/// Takes the slot from a handle whose type is about to be freed, so that the MPI library is not
/// queried about the handle any more until a type of that handle is committed. Returns false if
/// nothing was done and the caller must call [`forget_other`] instead, because the handle may have
/// a slot in [`OTHERS`], or its slot has a back-off.
#[inline]
pub(crate) fn forget(handle: u64) -> bool {
    let home = home(handle);
    home.has_freed.store(true, Relaxed);
    if home.handle.load(Relaxed) != handle {
        return !HAS_OTHERS.load(Relaxed);
    }
    if home.back_off.load(Relaxed) != 0 {
        return false;
    }
    // Another thread may record a type in this slot between the test above and this store. That
    // type then has no slot, and is bypassed.
    home.handle.store(0, Relaxed);
    home.end();
    true
}

/// Does what [`forget`] does, but for any handle, also if its slot is in [`OTHERS`] or has a
/// back-off.
#[cold]
pub(crate) fn forget_other(handle: u64) {
    let home = home(handle);
    if home.handle.load(Relaxed) == handle {
        home.count_and_end_back_off(handle);
        forget(handle);
    } else if !is_inconsistent()
        && let Some(slot) = OTHERS.find(handle)
    {
        slot.end();
        // Other threads may still have a reference to the slot. These threads then add to the
        // counts of a slot that no type has, or that the next type has.
        OTHERS.unbind(slot);
        OTHERS.give_back(slot);
    }
}

/// Returns true if the type of a handle without a slot may be one that the program has freed. The
/// MPI library deletes a freed type only when no operation uses it any more. Then delete callbacks
/// of the program run, on any thread, and may still pack with the type. That the MPI library
/// accepts such a pack does not show that the type may be recorded or decoded: the MPI library may
/// refuse to be asked about the type, and would not delete a new attribute of it.
///
/// To need no memory for each freed handle, one mark per hash is kept, and is never removed. So
/// this function may also return true for a type that lives and whose commit was not seen. Such a
/// type is bypassed.
pub(crate) fn may_be_dying(handle: u64) -> bool {
    home(handle).has_freed.load(Relaxed)
}

/// Returns the similarity class of a type that is not decoded, and the bytes that its uses have
/// moved. These bytes do not include the use for which the type is about to be decoded.
pub(crate) fn class(handle: u64) -> Option<(&'static SimilarityClass, u64)> {
    let slot = find(handle).filter(|_| handle != 0)?;
    slot.class.load().map(|class| (class, slot.moved.load(Relaxed)))
}

/// Removes the similarity class from the slot of a type that was decoded, because the type's table
/// entry counts its uses from now on.
pub(crate) fn decoded(handle: u64) {
    if let Some(slot) = find(handle) {
        slot.class.store(None);
    }
}

/// Forgets all handles.
pub(crate) fn forget_all() {
    let pages = PAGES.load(Relaxed);
    let used = COUNTERS.chunks(PAGE).enumerate().filter(|(at, _)| pages >> at & 1 != 0);
    used.flat_map(|(_, page)| page).for_each(|slot| slot.handle.store(0, Relaxed));
    if HAS_OTHERS.load(Relaxed) && !is_inconsistent() {
        let others = RefCell::new(Vec::new());
        OTHERS.for_each_bound(|slot| others.borrow_mut().push(slot));
        for slot in others.into_inner() {
            OTHERS.unbind(slot);
            OTHERS.give_back(slot);
        }
    }
}

/// Returns true if a handle has a slot, because a commit of the handle was seen, or the MPI library
/// was seen to accept the handle as committed, and the type was not freed after that. The slot
/// stays when the type is decoded. So only the table of decoded types shows whether the type is
/// decoded.
#[inline]
pub(crate) fn has(handle: u64) -> bool {
    handle != 0 && find(handle).is_some()
}

/// Returns true if a use of a type passes in the type's back-off, so that no decision about the use
/// is needed. The back-off is then counted down by one use. `like`: the property of the use's
/// message; `None` if the use is not a message.
#[inline(always)]
pub(crate) fn passes_in_back_off(handle: u64, like: Option<Like>) -> bool {
    let home = home(handle);
    let back_off = home.back_off.load(Relaxed);
    // A back-off of a slot in `OTHERS` has no effect, because finding that slot takes a function
    // call, for which registers would be saved in every MPI call.
    back_off & USES_LEFT != 0
        && home.handle.load(Relaxed) == handle
        && home.passes_in_back_off(back_off, like)
}

/// Starts a back-off after a message of a decoded type was bypassed. The next messages of the type
/// that have the property `like` pass in it. Returns their number, which is 0 if the handle has no
/// slot in [`COUNTERS`], or if `like` does not fit into a slot.
pub(crate) fn start_back_off(handle: u64, like: Like) -> u64 {
    let (slot, of) = (home(handle), like.bits());
    if slot.handle.load(Relaxed) != handle || of == 0 {
        return 0;
    }
    slot.count_and_end_back_off(handle);
    slot.back_off.store(of << LIKE_AT | BACK_OFF_MESSAGES << USES_AT | BACK_OFF_MESSAGES, Relaxed);
    BACK_OFF_MESSAGES
}

/// Ends the back-off of a type, so that a decision is made about its next use. Does not wait for
/// any lock or thread.
pub(crate) fn end_back_off(handle: u64) {
    if let Some(slot) = find(handle) {
        slot.back_off.store(0, Relaxed);
    }
}

/// Returns true if a handle has a slot and at least one call was seen that uses the handle's type.
pub(crate) fn is_used(handle: u64) -> bool {
    let Some(slot) = find(handle).filter(|_| handle != 0) else { return false };
    let back_off = slot.back_off.load(Relaxed);
    slot.size.load(Relaxed) != 0 || back_off >> USES_AT & USES_LEFT != back_off & USES_LEFT
}

/// Adds `n` to a sum, and returns the new sum. If two threads add to the sum at once, one of the
/// two numbers may be lost.
fn add(sum: &AtomicU64, n: u64) -> u64 {
    let all = sum.load(Relaxed).saturating_add(n);
    sum.store(all, Relaxed);
    all
}

/// Counts a use of `count` instances of a type that has a slot. The uses that have passed in a
/// back-off since the last count are counted as if they were equal to this use. Returns `None` if
/// the type is not to be decoded now. Otherwise returns the maximum number of arguments that the
/// constructors of the type may have together for it to be decoded now, where each constructor
/// counts as [`worth::CONSTRUCTOR`] additional arguments.
pub(crate) fn used(
    host: &Host,
    datatype: HandleWord,
    count: i64,
    used: UseKind,
    rules: UseRules,
) -> Option<u64> {
    let slot = find(datatype & host.mask)?;
    let size = slot.size(host, datatype)?;
    let bytes =
        size.checked_mul(count).and_then(|bytes| u64::try_from(bytes).ok()).filter(|&bytes| bytes > 0)?;
    let blocks = slot.class.load().map_or(0, |class| class.blocks(count.unsigned_abs()));
    let cost = used.cost(&host.profile.costs, bytes).saturating_add(blocks.saturating_mul(BLOCK));
    let uses = 1 + slot.end_back_off();
    let spent = add(&slot.spent, cost.saturating_mul(uses));
    let moved = add(&slot.moved, bytes.saturating_mul(uses));
    if rules.at_once() {
        return Some(u64::MAX);
    }
    let next = slot.next.load(Relaxed);
    if spent < next && used != UseKind::Persistent {
        slot.start_back_off(cost, spent, next);
        return None;
    }
    let arguments =
        looked_at(host, datatype, slot, used, rules, Outlook { moved, mean: 0, bytes, saves: cost })?;
    // The entry of the decoded type counts the bytes of this use, so they are subtracted here. If
    // the type is not decoded after all, they are counted nowhere.
    slot.moved.store(moved - bytes, Relaxed);
    Some(arguments)
}

/// Decides by the type's similarity class whether decoding is expected to pay. If so, or if the use
/// makes a persistent request, returns the maximum number of arguments, as [`used`] does. Otherwise
/// returns `None`, and the next decision about the type is made when its uses have cost twice as
/// much as now. `outlook`: the expectation from the type's own uses alone.
#[inline(never)]
fn looked_at(
    host: &Host,
    datatype: HandleWord,
    slot: &Slot,
    used: UseKind,
    rules: UseRules,
    outlook: Outlook,
) -> Option<u64> {
    let (cost, costs) = (outlook.saves, &host.profile.costs);
    let class = slot.class(host, datatype, used);
    if used == UseKind::Persistent {
        // A persistent request may be started many times.
        return Some(u64::MAX);
    }
    let (mean, arguments) = class.map_or((0, 0), |class| (class.mean(), class.arguments()));
    let gain = class.map(|class| (class, class.gain(costs, outlook.bytes, rules.moves_inside())));
    let (outlook, doublings, compiling) = match gain {
        None => (outlook, 0, 0),
        Some((class, Gain::Unknown)) => (Outlook { mean, ..outlook }, class.vain().min(MAX_DOUBLINGS), 0),
        // Types of a class that gains are compiled at once, so the saving must cover the cost of
        // compiling too.
        Some((class, Gain::Nanos(saves))) => {
            let compiling = if class.makes_new_layouts() { COMPILE } else { 0 };
            (Outlook { mean, saves, ..outlook }, 0, compiling)
        }
        Some((_, Gain::Nothing)) => (outlook, DOUBLINGS_WITHOUT_GAIN, 0),
    };
    // `budget` is the number of nanoseconds that decoding may take.
    let budget = (outlook.saves() >> doublings).saturating_sub(compiling);
    if budget >= worth::cost(arguments) {
        return Some(worth::arguments(budget));
    }
    let next = slot.look_later();
    slot.start_back_off(cost, slot.spent.load(Relaxed), next);
    None
}

/// Records that a type is not decoded now, because its constructors together have at least
/// `arguments` arguments, and decoding that many arguments costs more than the uses of the type
/// justify.
pub(crate) fn costs_more(handle: u64, arguments: u64) {
    let Some(slot) = find(handle) else { return };
    slot.look_later();
    if let Some(class) = slot.class.load() {
        class.costs_more(arguments);
    }
}

/// Queries the MPI library for the packed bytes of an instance of a committed type of the program.
/// Returns `None` if an instance has no bytes, or if the query fails.
pub(crate) fn bytes(host: &Host, datatype: HandleWord) -> Option<i64> {
    let mut size = 0i64;
    // SAFETY: the MPI library has accepted the type as committed, and the program holds the type
    // during this call. `size` is a local variable of the type that the function writes.
    let code = unsafe { host.f.type_size_x.or(host.f.type_size_c)?(datatype, &raw mut size) };
    (code == 0 && size > 0).then_some(size)
}

#[cfg(test)]
mod tests;
