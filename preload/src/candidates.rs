//! Types that the program has committed and that are not decoded: what their uses have cost the host so far.
//!
//! A type may be used once, and to decode it costs more than a small call. So in mode `lazy` a commit only notes the handle here. Each call that could
//! be converted adds the least that it costs the bare host, and the type is decoded ([`crate::types::adopt`]) once that is half of the sum, if
//! [`spending`] has time for it; or before, where types that are alike have shown what that gains ([`kin`]).
//!
//! A slot belongs to the handles of one hash. While one of them has it, the others have slots in a table that grows. Sums are not exact: a handle may have been given to
//! another type since, threads may mix two types. Nothing hangs on a sum but the moment of decoding: what is
//! decoded is tied to its type by an attribute of the host's, as every kernel and verdict is. A handle in a slot is one whose commit was seen, and no
//! [`MPI_Type_free`](crate::wrap) since: so the host can be asked about it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use ddtc::process::is_inconsistent;

use crate::atomic_ref::AtomicRef;
use crate::decoding::{self, CONSTRUCTOR};
use crate::host::{HandleWord, Host};
use crate::kin::{self, Kin, Pays};
use crate::prospect::{Prospect, expected, telling};
use crate::slots::{Entry, Table, spread};
use crate::spending;
use crate::use_kind::{CompletedBy, UseKind, UseRules};

/// Slots: more than programs use at a time, few enough to stay in a cache.
const SLOTS: usize = 2048;

/// Largest cost of a decoding, as a part of what the type's uses have cost the host: a type that was used twice may be used again.
const PART: u64 = 2;
/// Nanoseconds that a block of a list costs hosts at least, beside its bytes: 6 under Open MPI to 24 under Intel MPI (3225 blocks of 4 B, Zen 3).
const BLOCK: u64 = 4;
/// Bytes of calls of which a type's kin are asked.
const ALIKE: u64 = 1024;
#[repr(align(64))]
struct Slot {
    /// 0 if none.
    handle: AtomicU64,
    /// Bytes of an instance, 0 if they were not asked for; and its extent, [`NOT_ASKED`] if it was not.
    size: AtomicI64,
    extent: AtomicI64,
    /// Nanoseconds that uses have cost the host.
    spent: AtomicU64,
    /// Cost that uses must reach before the type is looked at again.
    needed: AtomicU64,
    /// Types that are alike, null where that was not asked or is of no use.
    kin: AtomicRef<Kin>,
    /// Bytes that calls of [`ALIKE`] bytes and more have moved, behind how many these were, up to [`CALLS`], and how many of the types that will have this slot are not
    /// looked at when they are used once ([`YOUNG`]).
    moved: AtomicU64,
    /// Uses that pass before the type is looked at again: how many of them are left ([`LEFT`]), how many they were, and which ([`Like`]).
    rest: AtomicU64,
}

/// The bits of [`Slot::rest`] that are counted down, and where the next ones begin.
const LEFT: u64 = u16::MAX as u64;
const USES_AT: u32 = 16;
const LIKE_AT: u32 = 32;
/// Calls that [`Slot::moved`] tells apart, and where in it the types begin whose first use passes, and the bytes.
const CALLS: u64 = 3;
const YOUNG_AT: u32 = 2;
/// Bit of [`Slot::moved`]: a type of the slot's hash has or had a slot in [`OTHERS`].
const SHARED: u64 = 1 << 5;
const BYTES_AT: u32 = 8;
/// Types of a slot whose first use passes after one that has ended without having cost much.
const YOUNG: u64 = 7;
/// [`Slot::rest`] of one use that passes.
const ONE: u64 = 1 << USES_AT | 1;
/// Messages that pass once one like them was left to the host.
const ALIKE_PASS: u64 = 63;

/// Messages that are alike: of one number of elements, completed by the call which begins them, or by a later one.
#[derive(Clone, Copy)]
pub(crate) struct Like {
    pub(crate) count: i64,
    pub(crate) by: CompletedBy,
}

impl Like {
    /// In the bits of [`Slot::rest`]; 0, which says that all uses pass, where the number has no place there.
    fn bits(self) -> u64 {
        let later = u64::from(self.by == CompletedBy::LaterCall);
        if (1..1 << 31).contains(&self.count) { (self.count as u64) << 1 | later } else { 0 }
    }

    /// Whether these pass where those of such bits do: a message that costs more to convert does where one that costs less does.
    #[inline(always)]
    fn is_of(self, bits: u64) -> bool {
        match self.by {
            CompletedBy::SameCall => bits == (self.count as u64) << 1,
            CompletedBy::LaterCall => bits >> 1 == self.count as u64,
        }
    }
}

const NOT_ASKED: i64 = i64::MIN;

impl Slot {
    const fn new() -> Slot {
        Slot {
            handle: AtomicU64::new(0),
            size: AtomicI64::new(0),
            extent: AtomicI64::new(0),
            spent: AtomicU64::new(0),
            needed: AtomicU64::new(0),
            kin: AtomicRef::none(),
            moved: AtomicU64::new(0),
            rest: AtomicU64::new(0),
        }
    }

    /// What the extent of its type tells.
    fn extent(&self, host: &Host, datatype: HandleWord) -> Option<i64> {
        let known = self.extent.load(Relaxed);
        if known != NOT_ASKED {
            return Some(known);
        }
        let asked = extent(host, datatype)?;
        self.extent.store(asked, Relaxed);
        Some(asked)
    }

    fn kin(&self) -> Option<&'static Kin> {
        self.kin.load()
    }

    /// Finds the kin of its type; `None`: the host does not say what the type is like.
    fn ask(&self, host: &Host, datatype: HandleWord, now: &Use) -> Option<()> {
        let extent = self.extent(host, datatype)?;
        let kin = kin::of(host, datatype, now.size, extent, now.kind, CONSTRUCTOR);
        if let Some(kin) = kin {
            self.needed.fetch_max(decoding::nanos(kin.arguments()).saturating_mul(PART), Relaxed);
        }
        self.kin.store(kin);
        Some(())
    }

    /// Lets uses pass, of `cost` nanoseconds each like the last one: three times as many as were made before it, and as lead half of the way from `spent` to `until`.
    fn rest(&self, cost: u64, spent: u64, until: u64) {
        let before = spent.saturating_sub(cost).saturating_mul(3);
        if before < cost {
            return;
        }
        let uses = (until.saturating_sub(spent) / 2).min(before) / cost.max(1);
        let uses = uses.min(LEFT);
        self.rest.store(uses << USES_AT | uses, Relaxed);
    }

    /// Says whether a use passes, of which some are left to pass by `rest`.
    #[inline(always)]
    fn passes(&self, rest: u64, like: Option<Like>) -> bool {
        let of = rest >> LIKE_AT;
        if of != 0 && !like.is_some_and(|like| like.is_of(of)) {
            return false;
        }
        // Threads may lose one another's, and a type that was committed since: it is looked at later, or sooner.
        self.rest.store(rest - 1, Relaxed);
        true
    }

    /// Ends the rest: how many uses have passed.
    fn passed(&self) -> u64 {
        let rest = self.rest.load(Relaxed);
        self.rest.store(0, Relaxed);
        (rest >> USES_AT & LEFT) - (rest & LEFT)
    }

    /// Bytes that calls have moved which count for that.
    fn moved(&self) -> u64 {
        self.moved.load(Relaxed) >> BYTES_AT
    }

    /// Counts so many calls of so many bytes: how many had been moved before the last one, and whether the second one is among them.
    #[inline]
    fn moves(&self, bytes: u64, uses: u64) -> (u64, bool) {
        let (calls, young) = (self.moved.load(Relaxed) & CALLS, self.young());
        let before = self.moved().saturating_add(bytes.saturating_mul(uses - 1));
        let now = before.saturating_add(bytes).min(u64::MAX >> BYTES_AT);
        let all = calls.saturating_add(uses).min(CALLS);
        self.moved.store(now << BYTES_AT | self.shared() | young << YOUNG_AT | all, Relaxed);
        (before, calls < 2 && calls + uses >= 2)
    }

    /// Types that will have this slot whose first use passes.
    #[inline]
    fn young(&self) -> u64 {
        self.moved.load(Relaxed) >> YOUNG_AT & YOUNG
    }

    /// Its type is the one of this handle from now on, of which nothing is known. `young`: types whose first use passes, this one
    /// among them.
    #[inline]
    fn begin(&self, handle: u64, young: u64) {
        self.handle.store(handle, Relaxed);
        self.size.store(0, Relaxed);
        self.extent.store(NOT_ASKED, Relaxed);
        self.spent.store(0, Relaxed);
        self.needed.store(decoding::nanos(0) * PART, Relaxed);
        self.kin.store(None);
        self.moved.store(young.saturating_sub(1) << YOUNG_AT | self.shared(), Relaxed);
        self.rest.store(if young > 0 { ONE } else { 0 }, Relaxed);
    }

    /// [`SHARED`] if it is set.
    #[inline]
    fn shared(&self) -> u64 {
        self.moved.load(Relaxed) & SHARED
    }

    /// Its type ends.
    #[inline]
    fn end(&self) {
        if let Some(kin) = self.kin() {
            kin.ended(self.moved());
        }
        self.ended();
    }

    /// Its type has ended. Where it has cost little those behind it are likely to do so: their first use is looked at with the second, if there is one.
    #[inline]
    fn ended(&self) {
        // One that was not looked at says nothing.
        if self.size.load(Relaxed) != 0 {
            let young = if is_far(self.spent.load(Relaxed), self.needed.load(Relaxed)) { YOUNG } else { 0 };
            self.moved.store(young << YOUNG_AT | self.shared(), Relaxed);
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

/// The slots of most types: each handle has one.
static CANDIDATES: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

/// The slots of types whose own slot has the handle of another type, because the program keeps many types.
static OTHERS: Table<Slot> = Table::new();

/// There are [`OTHERS`], or there were.
static HAS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Returns the slot of a handle in [`CANDIDATES`], which may have another one.
#[inline]
fn home(handle: u64) -> &'static Slot {
    &CANDIDATES[place_of(handle)]
}

/// Returns the slot that a handle has.
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

/// Slots of a page of memory, and a bit for each page that has one in use: the others are not even read at the end, where a page that nobody has touched takes 2 us.
const PAGE: usize = 64;
static PAGES: AtomicU32 = AtomicU32::new(0);
const _: () = assert!(SLOTS / PAGE <= u32::BITS as usize);

/// A type was committed, or the host has accepted it as committed.
#[inline]
pub(crate) fn note(handle: u64) {
    let place = place_of(handle);
    let home = &CANDIDATES[place];
    let special = (YOUNG << YOUNG_AT) | SHARED;
    if home.handle.load(Relaxed) != 0 || home.moved.load(Relaxed) & special != 0 {
        return note_special(handle);
    }
    use_page(place);
    home.begin(handle, 0);
}

/// As [`note`], where the slot is not free, or something is known of the types that will have it.
#[inline(never)]
fn note_special(handle: u64) {
    let place = place_of(handle);
    let home = &CANDIDATES[place];
    let taken = home.handle.load(Relaxed);
    if taken != handle
        && HAS_OTHERS.load(Relaxed)
        && !is_inconsistent()
        && let Some(slot) = OTHERS.find(handle)
    {
        slot.begin(handle, slot.young());
    } else if taken == 0 || taken == handle {
        use_page(place);
        home.begin(handle, home.young());
    } else if !is_inconsistent() {
        home.moved.fetch_or(SHARED, Relaxed);
        let slot = OTHERS.take();
        slot.begin(0, 0);
        if OTHERS.bind(slot, handle, true) {
            HAS_OTHERS.store(true, Relaxed);
        } else {
            // Another thread has noted it.
            OTHERS.give_back(slot);
        }
    }
}

/// The slot of this place is in use.
#[inline(always)]
fn use_page(place: usize) {
    let page = 1 << (place / PAGE);
    if PAGES.load(Relaxed) & page == 0 {
        PAGES.fetch_or(page, Relaxed);
    }
}

/// A type is about to be freed: nothing is asked about it from now on. Returns false if its slot may be one in
/// [`OTHERS`], which [`forget_other`] forgets.
#[inline]
pub(crate) fn forget(handle: u64) -> bool {
    let home = home(handle);
    if home.handle.load(Relaxed) != handle {
        return !HAS_OTHERS.load(Relaxed);
    }
    // Another thread's type may take the slot over in between and lose it: then that one is the host's.
    home.handle.store(0, Relaxed);
    home.end();
    true
}

/// As [`forget`], of a type whose slot is one in [`OTHERS`].
#[cold]
pub(crate) fn forget_other(handle: u64) {
    if !is_inconsistent()
        && let Some(slot) = OTHERS.find(handle)
    {
        slot.end();
        // Threads that still have the slot add to sums of nobody, or of the next type.
        OTHERS.unbind(slot);
        OTHERS.give_back(slot);
    }
}

/// Types that are like one which has a slot, and the bytes that its messages have moved.
pub(crate) fn alike(handle: u64) -> Option<(&'static Kin, u64)> {
    let slot = find(handle).filter(|_| handle != 0)?;
    slot.kin().map(|kin| (kin, slot.moved()))
}

/// A type is decoded: what it moves is counted there from now on. It was worth that, whatever its uses had cost.
pub(crate) fn decoded(handle: u64) {
    if let Some(slot) = find(handle) {
        slot.kin.store(None);
        slot.spent.store(u64::MAX, Relaxed);
    }
}

/// All handles lose their meaning.
pub(crate) fn forget_all() {
    let pages = PAGES.load(Relaxed);
    let used = CANDIDATES.chunks(PAGE).enumerate().filter(|(at, _)| pages >> at & 1 != 0);
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

/// Says whether a handle is that of a committed type, for all that was seen, which is not decoded.
#[inline]
pub(crate) fn has(handle: u64) -> bool {
    handle != 0 && find(handle).is_some()
}

/// A type is used: says whether that use passes. Of one that is far from being decoded not every use is looked at, nor of one that is decoded every message
/// which is like one that was left to the host.
#[inline(always)]
pub(crate) fn passes(handle: u64, like: Option<Like>) -> bool {
    let home = home(handle);
    let rest = home.rest.load(Relaxed);
    // Types in `OTHERS` are looked at each time: a call to find theirs would save registers in every call.
    rest & LEFT != 0 && home.handle.load(Relaxed) == handle && home.passes(rest, like)
}

/// A message of a decoded type was left to the host, for what is known of its layout: so are the next ones that are like it. How many of them pass.
pub(crate) fn left(handle: u64, like: Like) -> u64 {
    let (slot, of) = (home(handle), like.bits());
    if slot.handle.load(Relaxed) != handle || of == 0 {
        return 0;
    }
    slot.rest.store(of << LIKE_AT | ALIKE_PASS << USES_AT | ALIKE_PASS, Relaxed);
    ALIKE_PASS
}

/// Something is to be done with a type at its next use: no use of it passes now. Waits for nobody.
pub(crate) fn wake(handle: u64) {
    if let Some(slot) = find(handle) {
        slot.rest.store(0, Relaxed);
    }
}

/// Says whether a type that is not decoded is one that calls were seen to use.
pub(crate) fn is_shown(handle: u64) -> bool {
    let Some(slot) = find(handle).filter(|_| handle != 0) else { return false };
    let rest = slot.rest.load(Relaxed);
    slot.size.load(Relaxed) != 0 || rest >> USES_AT & LEFT != rest & LEFT
}

/// Adds a use of `count` instances of a type that has a slot, and those that have passed since the last one that was looked at, as if they were like it. How many arguments of its constructors may be decoded now, each constructor as [`CONSTRUCTOR`] more; `None`: none yet.
pub(crate) fn used(
    host: &Host,
    datatype: HandleWord,
    count: i64,
    used: UseKind,
    rules: UseRules,
) -> Option<u64> {
    let slot = find(datatype & host.mask)?;
    let mut size = slot.size.load(Relaxed);
    if size == 0 {
        size = bytes(host, datatype)?;
        slot.size.store(size, Relaxed);
    }
    let bytes =
        size.checked_mul(count).and_then(|bytes| u64::try_from(bytes).ok()).filter(|&bytes| bytes > 0)?;
    let blocks = slot.kin().map_or(0, |kin| kin.blocks(count.unsigned_abs()).saturating_mul(BLOCK));
    let cost = used.cost(&host.profile.costs, bytes).saturating_add(blocks);
    let uses = 1 + slot.passed();
    let all = |of_one: u64| of_one.saturating_mul(uses);
    let before = slot.spent.load(Relaxed);
    let spent = before.saturating_add(all(cost));
    slot.spent.store(spent, Relaxed);
    if rules.at_once() {
        return Some(u64::MAX);
    }
    let alike =
        matches!(used, UseKind::Call | UseKind::Send | UseKind::Receive) && bytes >= ALIKE && rules.alike();
    let moved = alike.then(|| slot.moves(bytes, uses));
    // Many types are used once: they are done with here.
    if before == 0 && uses == 1 && is_far(spent, slot.needed.load(Relaxed)) {
        return None;
    }
    looked_at(
        host,
        datatype,
        slot,
        Use { kind: used, size, bytes, cost, spent, cost_of_all: all(cost), moved },
    )
}

/// Says whether no prospect lets a type be decoded that has cost the host so much: none asks for less than a quarter, and decoding never takes less than where calls
/// follow each other.
#[inline]
fn is_far(spent: u64, needed: u64) -> bool {
    spent.saturating_mul(4) < needed
}

/// What a use lets go into its type, by its kin or by what all uses of it have cost.
#[inline(never)]
fn looked_at(host: &Host, datatype: HandleWord, slot: &Slot, now: Use) -> Option<u64> {
    if let Some((_, is_second)) = now.moved {
        // To ask takes as long as a short message: a type that is used once does not pay for that.
        if is_second {
            slot.ask(host, datatype, &now)?;
        }
        if let Some(pays) = slot.kin().and_then(|kin| now.pays(host, kin)) {
            return Some(pays.arguments);
        }
    }
    by_cost(host, datatype, slot, &now)
}

/// A use that is looked at.
struct Use {
    kind: UseKind,
    /// Bytes of an instance, and of the use.
    size: i64,
    bytes: u64,
    /// Nanoseconds that it has cost the host, and all uses of its type have.
    cost: u64,
    spent: u64,
    /// That it and those have which passed before it.
    cost_of_all: u64,
    /// If its kin may be asked: bytes that its type had moved before, and whether it is the second use, or the second one is among those that have passed.
    moved: Option<(u64, bool)>,
}

impl Use {
    /// What may go into its type for what its kin say.
    fn pays(&self, host: &Host, kin: &Kin) -> Option<Pays> {
        kin.used(&host.profile.costs, self.bytes, self.moved?.0, self.cost_of_all, decoding::nanos)
            .filter(|pays| pays.is_sure || spending::allows(pays.nanos))
    }
}

/// How many arguments may be decoded for what the uses of a type have cost.
fn by_cost(host: &Host, datatype: HandleWord, slot: &Slot, now: &Use) -> Option<u64> {
    let needed = slot.needed.load(Relaxed);
    if is_far(now.spent, needed) {
        slot.rest(now.cost, now.spent, needed / 4);
        return None;
    }
    let factor = decoding::factor();
    // What decoding takes where calls follow each other, as often as the uses pay for it here.
    let paid = |(times, part): (u64, u64)| {
        let spent = now.spent.saturating_mul(part).saturating_mul(decoding::ONCE);
        let until = needed.saturating_mul(times).saturating_mul(factor);
        if spent < until {
            slot.rest(now.cost, now.spent, until / (decoding::ONCE * part));
            return None;
        }
        Some(spent / (factor * times))
    };
    // A type that is used little is not asked for its extent, nor who its kin are.
    paid(Prospect::Good.factor())?;
    let expected = expected(now.size, slot.extent(host, datatype)?);
    let mut paying = paid(expected.factor())?;
    if now.moved.is_some() && slot.kin().is_none() {
        slot.ask(host, datatype, now)?;
        if let Some(pays) = slot.kin().and_then(|kin| now.pays(host, kin)) {
            return Some(pays.arguments);
        }
    }
    let kin =
        slot.kin().filter(|kin| expected != Prospect::Good || kin.is_poor(&host.profile.costs, now.bytes));
    if let Some(kin) = kin {
        paying =
            paid((kin.patience(&host.profile.costs, now.bytes, now.moved.map_or(0, |(moved, _)| moved)), 1))?;
    }
    if !spending::allows(needed.saturating_mul(factor) / decoding::ONCE / PART) {
        slot.needed.store(needed.saturating_mul(2), Relaxed);
        return None;
    }
    if let Some(kin) = kin {
        kin.looked(now.bytes);
    }
    Some(decoding::arguments(paying / PART))
}

/// The type is not decoded now, because it has so many arguments at least, more than its uses pay for.
pub(crate) fn costs_more(handle: u64, arguments: u64) {
    let Some(slot) = find(handle) else { return };
    slot.needed.fetch_max(decoding::nanos(arguments).saturating_mul(PART), Relaxed);
    if let Some(kin) = slot.kin() {
        kin.costs_more(arguments);
    }
}

/// What the extent of a committed type of the program's tells, in bytes, as the host says.
fn extent(host: &Host, datatype: HandleWord) -> Option<i64> {
    let (mut lb, mut extent) = (0isize, 0isize);
    // SAFETY: a type that the host has accepted as committed and the program holds, two numbers to write to.
    let code = unsafe { host.f.type_extent?(datatype, &raw mut lb, &raw mut extent) };
    (code == 0).then(|| telling(lb as i64, extent as i64))
}

/// Returns the bytes of an instance of a committed type of the program's, as the host says.
pub(crate) fn bytes(host: &Host, datatype: HandleWord) -> Option<i64> {
    let mut size = 0i64;
    // SAFETY: a type that the host has accepted as committed and the program holds, a number to write to.
    let code = unsafe { host.f.type_size_x.or(host.f.type_size_c)?(datatype, &raw mut size) };
    (code == 0 && size > 0).then_some(size)
}

#[cfg(test)]
mod tests;
