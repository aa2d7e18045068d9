//! From a host's datatype handle to what we know of the type: one hash, a few loads, no lock.
//!
//! Slots hold pointers to entries that are never freed, only reused, and an entry says whose handle it is: so a reader that races
//! with a change of other handles sees either the right entry or none, never another's, and "none" only sends a call to the host.
//! A handle is bound while its type lives: the host's attribute on the type unbinds it when the type dies (`types`), before the
//! host can give the value to another type. Changes take a lock that is never held across a call of the host.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU8, AtomicU64, Ordering};

use ddtc::committed::Committed;
use ddtc::policy::Class;
use ddtc::process::{Guard, Mutex};

use crate::basic::Basic;
use crate::counted::Uses;
use crate::dense::Dense;
use crate::host::{HandleWord, Host};
use crate::policy::Rules;

/// `TypeEntry::size` of types that are the host's business: predefined ones and those that we cannot decode.
const PASSED: i64 = -1;

/// What is known of a host's type. Entries live forever; one is used again for another type when its own is gone.
#[repr(align(64))]
pub(crate) struct TypeEntry {
    /// The bound handle, 0 if none.
    handle: AtomicU64,
    /// Packed bytes of one instance, or `PASSED`.
    size: AtomicI64,
    /// Payloads of messages that are converted, see `ddtc::policy`.
    payloads: AtomicU64,
    /// The place of its layout class in `Class::ALL`, or past its end.
    class: AtomicU8,
    /// Written before the handle is bound, taken after it is unbound.
    committed: UnsafeCell<Option<Committed>>,
    /// What stands for it in messages.
    pub(crate) dense: Dense,
    /// What stands for it in accumulates.
    pub(crate) basic: Basic,
    /// Uses of the type, while they are counted.
    pub(crate) uses: Uses,
}

// SAFETY: `committed` is written only while the entry is not bound, by its one owner: the free list hands an entry to one thread,
// and the host runs one delete callback per attribute. Readers reach it only through a bound handle, whose type the program
// holds during the call: freeing a type while another thread packs with it is erroneous in MPI.
unsafe impl Sync for TypeEntry {}

/// What a lookup found.
pub(crate) enum Found {
    /// A type that we convert.
    Convert(&'static TypeEntry),
    /// A type that is left to the host.
    Pass,
    /// Not seen yet.
    Unknown,
}

impl TypeEntry {
    const fn new() -> TypeEntry {
        TypeEntry {
            handle: AtomicU64::new(0),
            size: AtomicI64::new(PASSED),
            payloads: AtomicU64::new(0),
            class: AtomicU8::new(u8::MAX),
            committed: UnsafeCell::new(None),
            dense: Dense::new(),
            basic: Basic::new(),
            uses: Uses::new(),
        }
    }

    /// Packed bytes of one instance; positive for entries that convert.
    #[inline]
    pub(crate) fn size(&self) -> i64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Payloads of messages that are converted.
    #[inline]
    pub(crate) fn payloads(&self) -> u64 {
        self.payloads.load(Ordering::Relaxed)
    }

    /// What the policy says of it.
    pub(crate) fn rules(&self) -> Rules {
        Rules { class: self.class(), messages: self.payloads() }
    }

    /// Its layout class.
    #[inline]
    fn class(&self) -> Class {
        let class = Class::ALL.get(usize::from(self.class.load(Ordering::Relaxed)));
        class.copied().unwrap_or(Class::Dense)
    }

    /// The committed type of an entry that converts.
    ///
    /// # Safety
    /// The entry must be bound, or owned by the caller, while the reference lives.
    #[inline]
    pub(crate) unsafe fn committed(&self) -> Option<&Committed> {
        // SAFETY: nobody writes while the entry is bound or owned by the caller, as promised.
        unsafe { (*self.committed.get()).as_ref() }
    }
}

/// An open-addressed table with linear probing, at most a quarter full.
struct Slots {
    shift: u32,
    slots: Box<[AtomicPtr<TypeEntry>]>,
}

impl Slots {
    fn new(bits: u32) -> Slots {
        let slots = (0..1usize << bits).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        Slots { shift: 64 - bits, slots }
    }

    #[inline]
    fn home(&self, handle: u64) -> usize {
        // Handles are small integers or addresses: Fibonacci hashing spreads both.
        (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn get(&self, handle: u64) -> Option<&'static TypeEntry> {
        let mask = self.slots.len() - 1;
        let home = self.home(handle);
        for at in home..=home + mask {
            let entry = self.slots[at & mask].load(Ordering::Acquire);
            // SAFETY: null or an entry, and entries are never freed.
            let entry = unsafe { entry.as_ref() }?;
            if entry.handle.load(Ordering::Acquire) == handle {
                return Some(entry);
            }
        }
        None
    }

    fn insert(&self, entry: &'static TypeEntry, handle: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(handle) & mask;
        while !self.slots[at].load(Ordering::Relaxed).is_null() {
            at = (at + 1) & mask;
        }
        self.slots[at].store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
    }

    /// Removes the entry of a handle and closes the gap, so that probing never ends before an entry.
    fn remove(&self, entry: &'static TypeEntry, handle: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(handle) & mask;
        loop {
            let here = self.slots[at].load(Ordering::Relaxed);
            if here.is_null() {
                return;
            }
            if std::ptr::eq(here, entry) {
                break;
            }
            at = (at + 1) & mask;
        }
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let candidate = self.slots[next].load(Ordering::Relaxed);
            // SAFETY: null or an entry, and entries are never freed.
            let Some(candidate) = (unsafe { candidate.as_ref() }) else { break };
            let home = self.home(candidate.handle.load(Ordering::Relaxed)) & mask;
            // It may move back if its home is not between the gap and where it is.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(at) & mask) {
                self.slots[at].store(std::ptr::from_ref(candidate).cast_mut(), Ordering::Release);
                at = next;
            }
        }
        self.slots[at].store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// What changes of the table need besides its slots; reached under the lock, which orders all changes.
struct TableState {
    /// Entries bound to a handle.
    bound: usize,
    /// Binary logarithm of the number of slots.
    bits: u32,
    /// Entries of no type.
    free: Vec<&'static TypeEntry>,
}

/// Entries allocated at a time.
const CHUNK: usize = 64;

static SLOTS: AtomicPtr<Slots> = AtomicPtr::new(std::ptr::null_mut());
static STATE: Mutex<TableState> = Mutex::new(TableState { bound: 0, bits: 8, free: Vec::new() });

fn state() -> Guard<'static, TableState> {
    STATE.lock()
}

/// What is known of the type of a handle.
#[inline]
pub(crate) fn find(handle: u64) -> Found {
    // SAFETY: null, or a table that was leaked.
    let Some(slots) = (unsafe { SLOTS.load(Ordering::Acquire).as_ref() }) else { return Found::Unknown };
    match slots.get(handle) {
        None => Found::Unknown,
        Some(entry) if entry.size() > 0 => Found::Convert(entry),
        Some(_) => Found::Pass,
    }
}

/// The layout class of a type that we convert.
#[inline]
pub(crate) fn converted(host: &Host, datatype: HandleWord) -> Option<Class> {
    match find(datatype & host.mask) {
        Found::Convert(entry) => Some(entry.class()),
        Found::Pass | Found::Unknown => None,
    }
}

/// A new entry for a type, not bound to a handle yet; `None` leaves the type to the host.
pub(crate) fn entry(committed: Option<Committed>, rules: Rules) -> &'static TypeEntry {
    let mut state = state();
    if state.free.is_empty() {
        let chunk: Vec<TypeEntry> = (0..CHUNK).map(|_| TypeEntry::new()).collect();
        state.free.extend(Vec::leak(chunk).iter());
    }
    let entry = state.free.pop().unwrap_or_else(|| Box::leak(Box::new(TypeEntry::new())));
    drop(state);
    // An empty type has nothing to convert.
    let size = committed.as_ref().map(|c| c.datatype().size()).filter(|&s| s > 0);
    entry.size.store(size.unwrap_or(PASSED), Ordering::Relaxed);
    entry.payloads.store(rules.messages, Ordering::Relaxed);
    let class = Class::ALL.iter().position(|&c| c == rules.class);
    entry.class.store(class.map_or(u8::MAX, |at| at as u8), Ordering::Relaxed);
    entry.dense.reset();
    entry.basic.reset();
    entry.uses.reset();
    // SAFETY: the entry came from the free list, so this thread owns it.
    unsafe { *entry.committed.get() = committed };
    entry
}

/// Binds an entry that its caller owns to a handle; readers find it from now on.
pub(crate) fn bind(entry: &'static TypeEntry, handle: u64) {
    let mut state = state();
    if entry.handle.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: null, or a table that was leaked.
    let old = unsafe { SLOTS.load(Ordering::Acquire).as_ref() };
    let slots = match old {
        Some(slots) if (state.bound + 1) * 4 <= slots.slots.len() => slots,
        _ => {
            // Old tables stay for readers that are still in them: together they are smaller than the new one.
            state.bits += u32::from(old.is_some());
            let new: &'static Slots = Box::leak(Box::new(Slots::new(state.bits)));
            for slot in old.map_or(&[][..], |o| &o.slots) {
                // SAFETY: null or an entry, and entries are never freed.
                if let Some(moved) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
                    new.insert(moved, moved.handle.load(Ordering::Relaxed));
                }
            }
            SLOTS.store(std::ptr::from_ref(new).cast_mut(), Ordering::Release);
            new
        }
    };
    // A stale owner of the value, which only a host that broke its word leaves behind.
    if let Some(stale) = slots.get(handle) {
        slots.remove(stale, handle);
        stale.handle.store(0, Ordering::Release);
        state.bound -= 1;
    }
    entry.handle.store(handle, Ordering::Release);
    slots.insert(entry, handle);
    state.bound += 1;
}

fn unbind(state: &mut TableState, entry: &'static TypeEntry) {
    let handle = entry.handle.load(Ordering::Relaxed);
    // SAFETY: null, or a table that was leaked.
    let slots = unsafe { SLOTS.load(Ordering::Acquire).as_ref() };
    if let Some(slots) = slots.filter(|_| handle != 0) {
        slots.remove(entry, handle);
        entry.handle.store(0, Ordering::Release);
        state.bound -= 1;
    }
}

/// Ends an entry: unbinds it and gives it back. The caller owns it: its type is gone, or it was never bound.
pub(crate) fn retire(entry: &'static TypeEntry) {
    unbind(&mut state(), entry);
    // SAFETY: the caller owns the entry, and it is not bound.
    let committed = unsafe { (*entry.committed.get()).take() };
    if let Some(committed) = &committed {
        entry.uses.fold(committed);
    }
    // Its kernels may go back to the arena here: outside the lock.
    drop(committed);
    state().free.push(entry);
}

/// Unbinds every handle: the host's values mean nothing after its finalization. Entries of types that had an attribute are given
/// back by its delete callback, whenever the host runs it. Folds the uses of what was bound.
pub(crate) fn forget_all() {
    let mut state = state();
    for entry in bound() {
        unbind(&mut state, entry);
        // SAFETY: no call may use types now, so nobody retires or reads the entry but us.
        if let Some(committed) = unsafe { entry.committed() } {
            entry.uses.fold(committed);
        }
    }
}

/// Every bound entry, at this moment.
pub(crate) fn bound() -> Vec<&'static TypeEntry> {
    // SAFETY: null, or a table that was leaked; slots hold null or entries, which are never freed.
    unsafe {
        let slots = SLOTS.load(Ordering::Acquire).as_ref();
        let slots = slots.map_or(&[][..], |s| &s.slots);
        slots.iter().filter_map(|slot| slot.load(Ordering::Acquire).as_ref()).collect()
    }
}

/// Entries that exist: a measure of growth for tests.
#[cfg(test)]
pub(crate) fn free() -> usize {
    state().free.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(handle: u64) -> bool {
        matches!(find(handle), Found::Pass)
    }

    // One test: the table is global.
    #[test]
    fn binds_unbinds_grows_and_reuses() {
        assert!(matches!(find(7), Found::Unknown));
        let entries: Vec<_> = (0..5000u64).map(|i| (0x8c00_0000 + i, entry(None, Rules::NONE))).collect();
        for &(handle, e) in &entries {
            bind(e, handle);
        }
        assert!(entries.iter().all(|&(h, _)| known(h)));
        // Every second one goes; the others stay reachable across closed gaps.
        for &(_, e) in entries.iter().step_by(2) {
            retire(e);
        }
        assert!(entries.iter().enumerate().all(|(i, &(h, _))| known(h) == (i % 2 == 1)));
        let bits = state().bits;
        let free_before = free();
        for i in 0..100_000u64 {
            let e = entry(None, Rules::NONE);
            bind(e, 0x7f00_0000_0000 + i * 64);
            retire(e);
        }
        // Two statements: each takes the lock.
        assert_eq!(state().bits, bits);
        assert_eq!(free(), free_before);
        forget_all();
        assert!(entries.iter().all(|&(h, _)| !known(h)));
        assert_eq!(state().bound, 0);
        // A handle that comes back as another type belongs to the new entry alone.
        let (old, new) = (entry(None, Rules::NONE), entry(None, Rules::NONE));
        bind(old, 99);
        bind(new, 99);
        retire(old);
        assert!(known(99));
        retire(new);
        assert!(!known(99));
    }
}
