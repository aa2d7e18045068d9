//! Hotness counters: what the uses of a committed type that is not decoded have cost the MPI library.
//!
//! A type may be used once, and decoding it costs more than a small call. So in mode `lazy` a commit only
//! records the handle here. Each call that could be converted adds the least that it costs the
//! unmodified library, and the type is decoded ([`crate::types::adopt`]) when [`crate::worth`] expects
//! that to pay.
//!
//! Each handle has a slot, by its hash. The slots of one array belong to one handle each; further handles
//! of the same hash have slots in a table that grows. Counts are not exact: a handle may have been given
//! to another type since, and threads may lose one another's counts. Nothing depends on a count but the
//! moment of decoding. A decoded type is tied to its entry by an attribute of the MPI library, as every
//! kernel and verdict is. A handle in a slot is one whose commit was seen, and no
//! [`MPI_Type_free`](crate::wrap) since, so the MPI library can be asked about it.

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

/// Number of slots in the array: more than programs use types at a time, and few enough to stay in a
/// cache.
const SLOTS: usize = 2048;

/// Counter of a type that is not decoded.
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
    /// Back-off: uses that are not looked at. The low 16 bits count down how many are left ([`LEFT`]), the next 16
    /// have the number at the start, and the upper half which messages they are ([`Like`]).
    rest: AtomicU64,
    /// A handle of the slot's hash has a slot in [`OTHERS`], or had one.
    is_shared: AtomicBool,
}

/// The bits of [`Slot::rest`] that are counted down.
const LEFT: u64 = u16::MAX as u64;
/// Places in [`Slot::rest`] of the number at the start, and of the messages.
const USES_AT: u32 = 16;
const LIKE_AT: u32 = 32;
/// Messages that are not looked at after a similar one of a decoded type was bypassed.
const ALIKE_PASS: u64 = 63;

/// Similar messages of one type: they have the same number of elements, and are completed by the call that
/// begins them, or by a later one.
#[derive(Clone, Copy)]
pub(crate) struct Like {
    pub(crate) count: i64,
    pub(crate) by: CompletedBy,
}

impl Like {
    /// Returns the bits for [`Slot::rest`]; 0 stands for all uses, and for a number of elements that has no
    /// place there.
    fn bits(self) -> u64 {
        let later = u64::from(self.by == CompletedBy::LaterCall);
        if (1..1 << 31).contains(&self.count) { (self.count as u64) << 1 | later } else { 0 }
    }

    /// Returns true if a message need not be looked at while messages of these bits need not. A message
    /// that a later call completes costs more to convert, so it rests with those that the same call
    /// completes.
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

    /// Returns the bytes of an instance of its type.
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

    /// Returns the similarity class of its type.
    fn class(&self, host: &Host, datatype: HandleWord, used: UseKind) -> Option<&'static SimilarityClass> {
        self.class.load().or_else(|| {
            let class = similar::class(host, datatype, self.size.load(Relaxed), used);
            self.class.store(class);
            class
        })
    }

    /// Puts off the next look at the type until its uses have cost half as much more. Returns the nanoseconds
    /// that they have cost then.
    fn look_later(&self) -> u64 {
        let spent = self.spent.load(Relaxed);
        let next = spent.saturating_add(spent / 2);
        self.next.store(next, Relaxed);
        next
    }

    /// Lets uses pass that cost `cost` nanoseconds each, as the last one did: at most as many as lead half
    /// of the way from `spent` to `until`, and at most three times as many as were made before.
    fn rest(&self, cost: u64, spent: u64, until: u64) {
        let before = spent.saturating_sub(cost).saturating_mul(3);
        if before < cost {
            return;
        }
        let uses = (until.saturating_sub(spent) / 2).min(before) / cost.max(1);
        let uses = uses.min(LEFT);
        self.rest.store(uses << USES_AT | uses, Relaxed);
    }

    /// Returns true if a use passes. `rest`: the back-off, which has some left.
    #[inline(always)]
    fn passes(&self, rest: u64, like: Option<Like>) -> bool {
        let of = rest >> LIKE_AT;
        if of != 0 && !like.is_some_and(|like| like.is_of(of)) {
            return false;
        }
        // Threads may lose one another's, and that of a type that was committed since: a type is then
        // looked at earlier or later.
        self.rest.store(rest - 1, Relaxed);
        true
    }

    /// Ends the back-off. Returns how many uses have passed.
    fn passed(&self) -> u64 {
        let rest = self.rest.load(Relaxed);
        self.rest.store(0, Relaxed);
        (rest >> USES_AT & LEFT) - (rest & LEFT)
    }

    /// Gives the slot to the type of a handle, of which nothing is known.
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

    /// Ends the counter: its type is about to be freed.
    #[inline]
    fn end(&self) {
        if let Some(class) = self.class.load() {
            class.ended(self.moved.load(Relaxed));
        }
    }

    /// Adds the uses that have passed since the last one that was looked at to what the type has moved. If
    /// it is decoded, its entry has that number.
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

/// Slots of handles whose own slot in the array belongs to another type, because the program keeps many
/// types.
static OTHERS: Table<Slot> = Table::new();

/// [`OTHERS`] has slots, or had some.
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

/// Slots in a page of memory. [`PAGES`] has a bit for each page with a slot in use; the others are not
/// even read when all slots are cleared, because a page that nobody has touched takes 2 us.
const PAGE: usize = 64;
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

/// As [`record`], if the slot of the handle's hash belongs or belonged to another handle too.
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

/// Forgets a handle, whose type is about to be freed: the MPI library is not asked about it any more.
/// Returns false if [`forget_other`] is to be called instead: its slot may be one in [`OTHERS`], or has a
/// back-off.
#[inline]
pub(crate) fn forget(handle: u64) -> bool {
    let home = home(handle);
    if home.handle.load(Relaxed) != handle {
        return !HAS_OTHERS.load(Relaxed);
    }
    if home.rest.load(Relaxed) != 0 {
        return false;
    }
    // The type of another thread may take the slot in between and lose it. That type is then bypassed.
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
        // Threads that still have the slot add to the counts of no type, or of the next one.
        OTHERS.unbind(slot);
        OTHERS.give_back(slot);
    }
}

/// Returns the similarity class of a type that is not decoded, and the bytes that its uses have moved.
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

/// Returns true if a handle is that of a committed type, by all that was seen, which is not decoded.
#[inline]
pub(crate) fn has(handle: u64) -> bool {
    handle != 0 && find(handle).is_some()
}

/// Counts down the back-off of a type for a use of it. Returns true if the use need not be looked at.
#[inline(always)]
pub(crate) fn passes(handle: u64, like: Option<Like>) -> bool {
    let home = home(handle);
    let rest = home.rest.load(Relaxed);
    // Slots in `OTHERS` have no back-off: a call that finds them would save registers in every call.
    rest & LEFT != 0 && home.handle.load(Relaxed) == handle && home.passes(rest, like)
}

/// Starts a back-off after a message of a decoded type was bypassed, for what is known of its layout: the next
/// messages that are like it pass. Returns how many.
pub(crate) fn bypassed(handle: u64, like: Like) -> u64 {
    let (slot, of) = (home(handle), like.bits());
    if slot.handle.load(Relaxed) != handle || of == 0 {
        return 0;
    }
    slot.rest.store(of << LIKE_AT | ALIKE_PASS << USES_AT | ALIKE_PASS, Relaxed);
    ALIKE_PASS
}

/// Ends the back-off of a type, with which something is to be done at its next use. Waits for nobody.
pub(crate) fn wake(handle: u64) {
    if let Some(slot) = find(handle) {
        slot.rest.store(0, Relaxed);
    }
}

/// Returns true if a type is not decoded and some call was seen to use it.
pub(crate) fn is_used(handle: u64) -> bool {
    let Some(slot) = find(handle).filter(|_| handle != 0) else { return false };
    let rest = slot.rest.load(Relaxed);
    slot.size.load(Relaxed) != 0 || rest >> USES_AT & LEFT != rest & LEFT
}

/// Adds to a sum, of which threads may lose one another's. Returns the sum.
fn add(sum: &AtomicU64, n: u64) -> u64 {
    let all = sum.load(Relaxed).saturating_add(n);
    sum.store(all, Relaxed);
    all
}

/// Counts a use of `count` instances of a type that has a slot, and the uses that have passed since the last
/// one that was looked at, as if they were like it. Returns how many arguments of its constructors may be
/// decoded now, where each constructor counts as [`worth::CONSTRUCTOR`] more. `None`: it is not decoded
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
    looked_at(host, datatype, slot, used, Outlook { moved, mean: 0, bytes, saves: cost })
}

/// Returns how many arguments of a type may be decoded, if decoding is expected to pay. Otherwise the type
/// is looked at again when its uses have cost half as much more. `outlook`: its uses alone.
#[inline(never)]
fn looked_at(host: &Host, datatype: HandleWord, slot: &Slot, used: UseKind, outlook: Outlook) -> Option<u64> {
    let (cost, costs) = (outlook.saves, &host.profile.costs);
    let class = slot.class(host, datatype, used);
    let (mean, arguments) = class.map_or((0, 0), |class| (class.mean(), class.arguments()));
    let decoding = worth::cost(arguments);
    let (outlook, needed) = match class.map(|class| (class, class.gain(costs, outlook.bytes))) {
        None => (outlook, decoding),
        Some((class, Gain::Unknown)) => {
            let doublings = class.vain().min(MAX_DOUBLINGS);
            (Outlook { mean, ..outlook }, decoding << doublings)
        }
        Some((class, Gain::Nanos(saves))) => {
            let compiling = if class.makes_new_layouts() { worth::COMPILE } else { 0 };
            (Outlook { mean, saves, ..outlook }, MARGIN * (decoding + compiling))
        }
        // Its own uses alone may show that it differs.
        Some((_, Gain::Nothing)) => (Outlook { saves: cost / NOTHING, ..outlook }, decoding),
    };
    let saves = outlook.saves();
    if saves >= needed {
        return Some(worth::arguments(saves));
    }
    let next = slot.look_later();
    slot.rest(cost, slot.spent.load(Relaxed), next);
    None
}

/// Records that a type is not decoded now, because it has at least that many arguments, more than its uses
/// pay for.
pub(crate) fn costs_more(handle: u64, arguments: u64) {
    let Some(slot) = find(handle) else { return };
    slot.look_later();
    if let Some(class) = slot.class.load() {
        class.costs_more(arguments);
    }
}

/// Returns the bytes of an instance of a committed type of the program, as the MPI library says. `None` if
/// there are none.
pub(crate) fn bytes(host: &Host, datatype: HandleWord) -> Option<i64> {
    let mut size = 0i64;
    // SAFETY: a type that the library has accepted as committed and the program holds, a number to write to.
    let code = unsafe { host.f.type_size_x.or(host.f.type_size_c)?(datatype, &raw mut size) };
    (code == 0 && size > 0).then_some(size)
}

#[cfg(test)]
mod tests;
