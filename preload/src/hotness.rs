//! Hotness counters: the time that uses of committed types which are not decoded have cost the MPI
//! library.
//!
//! A type may be used once, and decoding it costs more than a small call. So in mode `lazy` a
//! commit only records the handle here. Each call that could be converted adds the minimum time
//! that it costs the unmodified library, and the type is decoded ([`crate::types::adopt`]) when
//! [`crate::worth`] expects decoding to pay.
//!
//! The hash of a handle gives its slot in an array. If that slot belongs to another handle, the
//! handle has a slot in a table that grows. Counts are not exact: the handle may belong to a later
//! type than the one that was counted, and if two threads count at once, one count may be lost.
//! Nothing depends on a count but the moment of decoding. Once decoded, a type is tied to its
//! entry, with kernels and verdicts, by an attribute of the MPI library, and not by its handle. If
//! a handle has a slot, a commit of it was seen and no [`MPI_Type_free`](crate::wrap) after that,
//! so the MPI library can be asked about it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::process::is_inconsistent;

use crate::atomic_ref::AtomicRef;
use crate::host::{HandleWord, Host};
use crate::similar::{self, Gain, SimilarityClass};
use crate::slots::{Entry, Table, spread};
use crate::table::{self, Found};
use crate::use_kind::{CompletedBy, UseKind, UseRules};
use crate::worth::{self, BLOCK, MARGIN, MAX_DOUBLINGS, NOTHING, Outlook};

/// Number of slots in the array: more than the number of types that programs use at a time, and few
/// enough for the array to stay in a cache.
const SLOTS: usize = 2048;

/// Counter of a type that is not decoded, and back-off of every type.
#[repr(align(64))]
struct Slot {
    /// 0 if no type has the slot.
    handle: AtomicU64,
    /// Bytes of an instance; 0 until a use asks for them.
    size: AtomicI64,
    /// Nanoseconds that uses have cost the MPI library.
    spent: AtomicU64,
    /// Nanoseconds that uses must have cost before the type is looked at again.
    next: AtomicU64,
    /// Bytes that uses have moved.
    moved: AtomicU64,
    /// Similarity class; null until the uses have cost enough to ask for it.
    class: AtomicRef<SimilarityClass>,
    /// Back-off: a number of next uses that are let pass without looking at them. The low 16 bits
    /// ([`LEFT`]) are the number that is left, the next 16 bits the number at the start, and the
    /// upper half says to which messages the back-off is limited ([`Like::bits`]).
    rest: AtomicU64,
    /// True if another handle with the hash of this slot has or had a slot in [`OTHERS`].
    is_shared: AtomicBool,
}

/// Mask of the bits of [`Slot::rest`] that are counted down.
const LEFT: u64 = u16::MAX as u64;
/// Position in [`Slot::rest`] of the lowest bit of the number at the start.
const USES_AT: u32 = 16;
/// Position in [`Slot::rest`] of the lowest of the bits that [`Like::bits`] returns.
const LIKE_AT: u32 = 32;
/// Number of messages that are let pass without looking at them after a similar message of a
/// decoded type was bypassed.
const ALIKE_PASS: u64 = 63;

/// Similar messages of one type: they have the same number of elements, and are completed by the
/// call that begins them, or by a later one.
#[derive(Clone, Copy)]
pub(crate) struct Like {
    pub(crate) count: i64,
    pub(crate) by: CompletedBy,
}

impl Like {
    /// Returns the bits for the upper half of [`Slot::rest`]: the number of elements, and whether a
    /// later call completes the messages. Returns 0 if the number of elements does not fit. A
    /// back-off whose bits are 0 is for all uses of the type.
    fn bits(self) -> u64 {
        let later = u64::from(self.by == CompletedBy::LaterCall);
        if (1..1 << 31).contains(&self.count) { (self.count as u64) << 1 | later } else { 0 }
    }

    /// Returns true if a message passes in a back-off with the bits `bits`: its number of elements
    /// is the same, and so is the kind of call that completes it. A message that a later call
    /// completes costs more to convert, so it also passes in a back-off for messages that their own
    /// call completes.
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
            rest: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
        }
    }

    /// Returns the bytes of an instance of the slot's type. Asks the MPI library if they are not
    /// known.
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

    /// Returns the similarity class of the slot's type. Looks it up if it is not known.
    fn class(&self, host: &Host, datatype: HandleWord, used: UseKind) -> Option<&'static SimilarityClass> {
        self.class.load().or_else(|| {
            let class = similar::class(host, datatype, self.size.load(Relaxed), used);
            self.class.store(class);
            class
        })
    }

    /// Puts off the next look at the type until its uses have cost half as much more as they have
    /// now. Returns the cost in nanoseconds at which the type is looked at again.
    fn look_later(&self) -> u64 {
        let spent = self.spent.load(Relaxed);
        let next = spent.saturating_add(spent / 2);
        self.next.store(next, Relaxed);
        next
    }

    /// Starts a back-off, on the assumption that each of the next uses costs `cost` nanoseconds as
    /// the last one did. The number of uses that pass is limited: together they may cost at most
    /// half of the difference between `until` and `spent`, and at most three times what the uses
    /// before the last one have cost. `spent`: the cost of all uses so far. `until`: the cost at
    /// which the type is to be looked at.
    fn rest(&self, cost: u64, spent: u64, until: u64) {
        let before = spent.saturating_sub(cost).saturating_mul(3);
        if before < cost {
            return;
        }
        let uses = (until.saturating_sub(spent) / 2).min(before) / cost.max(1);
        let uses = uses.min(LEFT);
        self.rest.store(uses << USES_AT | uses, Relaxed);
    }

    /// Returns true if a use passes, and counts the back-off down. `rest`: the value of
    /// [`Slot::rest`], whose number of uses left is not 0. `like`: the message of the use; `None`
    /// for other uses.
    #[inline(always)]
    fn passes(&self, rest: u64, like: Option<Like>) -> bool {
        let of = rest >> LIKE_AT;
        if of != 0 && !like.is_some_and(|like| like.is_of(of)) {
            return false;
        }
        // If another thread changes the back-off at the same time, or commits a type that gets the
        // slot, one of the changes is lost. A type is then looked at earlier or later.
        self.rest.store(rest - 1, Relaxed);
        true
    }

    /// Ends the back-off. Returns the number of uses that have passed in it.
    fn passed(&self) -> u64 {
        let rest = self.rest.load(Relaxed);
        self.rest.store(0, Relaxed);
        (rest >> USES_AT & LEFT) - (rest & LEFT)
    }

    /// Gives the slot to a handle, and resets all counts.
    #[inline]
    fn begin(&self, handle: u64) {
        self.handle.store(handle, Relaxed);
        self.size.store(0, Relaxed);
        self.spent.store(0, Relaxed);
        self.next.store(worth::MIN, Relaxed);
        self.moved.store(0, Relaxed);
        self.class.store(None);
        self.rest.store(0, Relaxed);
    }

    /// Tells the similarity class how many bytes the slot's type has moved, because the type is
    /// about to be freed.
    #[inline]
    fn end(&self) {
        if let Some(class) = self.class.load() {
            class.ended(self.moved.load(Relaxed), self.size.load(Relaxed).unsigned_abs());
        }
    }

    /// Ends the back-off, and adds the bytes of the uses that have passed in it to the bytes that
    /// the type has moved. If the type is decoded, its table entry has that number, otherwise the
    /// slot.
    fn end_rest(&self, handle: u64) {
        let count = (self.rest.load(Relaxed) >> LIKE_AT >> 1).max(1);
        let elements = self.passed().saturating_mul(count);
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

/// The array of slots.
static COUNTERS: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

/// Slots of handles whose own slot in the array belongs to another type, because the program keeps
/// many types.
static OTHERS: Table<Slot> = Table::new();

/// True once [`OTHERS`] has had a slot.
static HAS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Returns the slot of a handle's hash, which may belong to another handle.
#[inline]
fn home(handle: u64) -> &'static Slot {
    &COUNTERS[place_of(handle)]
}

/// Returns the slot that belongs to a handle.
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

/// Number of slots in a page of memory.
const PAGE: usize = 64;
/// Bit for each page of [`COUNTERS`] in which a slot was used. Other pages are not even read when
/// all slots are cleared, because the first access to a page takes 2 us.
static PAGES: AtomicU32 = AtomicU32::new(0);
const _: () = assert!(SLOTS / PAGE <= u32::BITS as usize);

/// Records a handle: its type was committed, or the MPI library has accepted it as committed.
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

/// As [`record`], if the slot of the handle's hash is in use, or if another handle of that hash has
/// or had a slot in [`OTHERS`].
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
            // Another thread has recorded it.
            OTHERS.give_back(slot);
        }
    }
}

/// Marks the page of a slot as used.
#[inline(always)]
fn use_page(place: usize) {
    let page = 1 << (place / PAGE);
    if PAGES.load(Relaxed) & page == 0 {
        PAGES.fetch_or(page, Relaxed);
    }
}

/// Forgets a handle whose type is about to be freed, so that the MPI library is not asked about it
/// any more. Returns false if nothing was done and the caller must call [`forget_other`] instead,
/// because the handle may have a slot in [`OTHERS`], or its slot has a back-off.
#[inline]
pub(crate) fn forget(handle: u64) -> bool {
    let home = home(handle);
    if home.handle.load(Relaxed) != handle {
        return !HAS_OTHERS.load(Relaxed);
    }
    if home.rest.load(Relaxed) != 0 {
        return false;
    }
    // Another thread may record a type in this slot between the test above and this store. That
    // type then has no slot, and is bypassed.
    home.handle.store(0, Relaxed);
    home.end();
    true
}

/// As [`forget`], for every handle.
#[cold]
pub(crate) fn forget_other(handle: u64) {
    let home = home(handle);
    if home.handle.load(Relaxed) == handle {
        home.end_rest(handle);
        forget(handle);
    } else if !is_inconsistent()
        && let Some(slot) = OTHERS.find(handle)
    {
        slot.end();
        // Other threads may still have a reference to the slot. They then add to a slot that no
        // type has, or that the next type has.
        OTHERS.unbind(slot);
        OTHERS.give_back(slot);
    }
}

/// Returns the similarity class of a type that is not decoded, and the bytes that its uses have
/// moved. The use for which the type is about to be decoded is not among them.
pub(crate) fn class(handle: u64) -> Option<(&'static SimilarityClass, u64)> {
    let slot = find(handle).filter(|_| handle != 0)?;
    slot.class.load().map(|class| (class, slot.moved.load(Relaxed)))
}

/// Ends counting for a type that was decoded: its entry counts from now on.
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
        OTHERS.each(|slot| others.borrow_mut().push(slot));
        for slot in others.into_inner() {
            OTHERS.unbind(slot);
            OTHERS.give_back(slot);
        }
    }
}

/// Returns true if a handle has a slot: a commit of the handle was seen, and the type was not freed
/// after that. The slot stays when the type is decoded, so callers look into the table of decoded
/// types too.
#[inline]
pub(crate) fn has(handle: u64) -> bool {
    handle != 0 && find(handle).is_some()
}

/// Counts down the back-off of a type for a use of the type. Returns true if the use need not be
/// looked at. `like`: the message of the use; `None` for other uses.
#[inline(always)]
pub(crate) fn passes(handle: u64, like: Option<Like>) -> bool {
    let home = home(handle);
    let rest = home.rest.load(Relaxed);
    // Slots in `OTHERS` have no back-off. To find them takes a function call, for which registers
    // would be saved in every MPI call.
    rest & LEFT != 0 && home.handle.load(Relaxed) == handle && home.passes(rest, like)
}

/// Starts a back-off after a message of a decoded type was bypassed: the next messages that are
/// similar to it by `like` pass. Returns their number, which is 0 if the handle has no slot in the
/// array, or if `like` does not fit into a slot.
pub(crate) fn bypassed(handle: u64, like: Like) -> u64 {
    let (slot, of) = (home(handle), like.bits());
    if slot.handle.load(Relaxed) != handle || of == 0 {
        return 0;
    }
    slot.end_rest(handle);
    slot.rest.store(of << LIKE_AT | ALIKE_PASS << USES_AT | ALIKE_PASS, Relaxed);
    ALIKE_PASS
}

/// Ends the back-off of a type, so that its next use is looked at. Does not wait for any lock or
/// thread.
pub(crate) fn wake(handle: u64) {
    if let Some(slot) = find(handle) {
        slot.rest.store(0, Relaxed);
    }
}

/// Returns true if a handle has a slot and some call was seen to use its type.
pub(crate) fn is_used(handle: u64) -> bool {
    let Some(slot) = find(handle).filter(|_| handle != 0) else { return false };
    let rest = slot.rest.load(Relaxed);
    slot.size.load(Relaxed) != 0 || rest >> USES_AT & LEFT != rest & LEFT
}

/// Adds `n` to a sum, and returns the new sum. If two threads add at once, one number may be lost.
fn add(sum: &AtomicU64, n: u64) -> u64 {
    let all = sum.load(Relaxed).saturating_add(n);
    sum.store(all, Relaxed);
    all
}

/// Counts a use of `count` instances of a type that has a slot. The uses that have passed in a
/// back-off since the last count are counted as if they were equal to this use. Returns the maximum
/// number of arguments that the constructors of the type may have for it to be decoded now; each
/// constructor counts as [`worth::CONSTRUCTOR`] more. Returns `None` if the type is not decoded
/// now.
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
    let uses = 1 + slot.passed();
    let spent = add(&slot.spent, cost.saturating_mul(uses));
    let moved = add(&slot.moved, bytes.saturating_mul(uses));
    if rules.at_once() {
        return Some(u64::MAX);
    }
    let next = if moved == bytes { worth::MIN_ONCE } else { slot.next.load(Relaxed) };
    if spent < next {
        slot.rest(cost, spent, next);
        return None;
    }
    let arguments = looked_at(host, datatype, slot, used, Outlook { moved, mean: 0, bytes, saves: cost })?;
    // The entry of the decoded type counts this use. If the type is not decoded after all, the use
    // is not counted.
    slot.moved.store(moved - bytes, Relaxed);
    Some(arguments)
}

/// Decides by the type's similarity class whether decoding is expected to pay, and if so returns
/// the maximum number of arguments as [`used`] does. Otherwise the type is looked at again when its
/// uses have cost half as much more. `outlook`: the expectation from the type's own uses alone.
#[inline(never)]
fn looked_at(host: &Host, datatype: HandleWord, slot: &Slot, used: UseKind, outlook: Outlook) -> Option<u64> {
    let (cost, costs) = (outlook.saves, &host.profile.costs);
    let class = slot.class(host, datatype, used);
    let (mean, arguments) = class.map_or((0, 0), |class| (class.mean(), class.arguments()));
    let (outlook, factor, compiling) = match class.map(|class| (class, class.gain(costs, outlook.bytes))) {
        None => (outlook, 1, 0),
        Some((class, Gain::Unknown)) => {
            (Outlook { mean, ..outlook }, 1 << class.vain().min(MAX_DOUBLINGS), 0)
        }
        Some((class, Gain::Nanos(saves))) => {
            let compiling = if class.makes_new_layouts() { worth::COMPILE } else { 0 };
            (Outlook { mean, saves, ..outlook }, MARGIN, compiling)
        }
        // Conversions of similar types gain nothing. Only long use of this type makes it worth
        // finding out whether it differs from them.
        Some((_, Gain::Nothing)) => (Outlook { saves: cost / NOTHING, ..outlook }, 1, 0),
    };
    // Nanoseconds that decoding may take.
    let budget = (outlook.saves() / factor).saturating_sub(compiling);
    if budget >= worth::cost(arguments) {
        return Some(worth::arguments(budget));
    }
    let next = slot.look_later();
    slot.rest(cost, slot.spent.load(Relaxed), next);
    None
}

/// Records that a type is not decoded now, because its constructors have at least `arguments`
/// arguments, which is more than its uses pay for.
pub(crate) fn costs_more(handle: u64, arguments: u64) {
    let Some(slot) = find(handle) else { return };
    slot.look_later();
    if let Some(class) = slot.class.load() {
        class.costs_more(arguments);
    }
}

/// Asks the MPI library for the bytes of an instance of a committed type of the program. Returns
/// `None` if there are none, or if the call fails.
pub(crate) fn bytes(host: &Host, datatype: HandleWord) -> Option<i64> {
    let mut size = 0i64;
    // SAFETY: the MPI library has accepted the type as committed, and the program holds the type
    // during this call. `size` is a local variable of the type that the function writes.
    let code = unsafe { host.f.type_size_x.or(host.f.type_size_c)?(datatype, &raw mut size) };
    (code == 0 && size > 0).then_some(size)
}

#[cfg(test)]
mod tests;
