//! Hash table that maps a handle of the MPI library to ddtc's record of the handle's object. A
//! lookup takes one hash, a few loads and no lock.
//!
//! Slots hold pointers to entries. Entries are never freed, only reused, and each entry contains
//! the handle that it is bound to. So a reader that races with a change of other handles finds
//! either the entry of its handle or none, never the entry of another handle. If it finds none, the
//! call is bypassed, which is always correct. A handle is bound only while its object lives: ddtc
//! puts an attribute on the object, and the attribute's delete callback unbinds the handle when the
//! object dies, before the MPI library can give the handle to another object. Changes take a lock
//! that is never held across a call of the MPI library.

use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::process::{Guard, Mutex};

use crate::atomic_ref::AtomicRef;

/// Record of an object of the MPI library, which a [`Table`] finds by the object's handle.
pub(crate) trait Entry: Sync + 'static {
    /// Returns an entry that is bound to no handle.
    fn new() -> Self;
    /// Returns the handle that the entry is bound to, or 0 if it is bound to none. Only the table
    /// of the entry may change the handle.
    fn handle(&self) -> &AtomicU64;
}

/// Table of the entries for one kind of objects of the MPI library.
pub(crate) struct Table<E: Entry> {
    slots: AtomicRef<Slots<E>>,
    state: Mutex<State<E>>,
}

/// Slots of a hash table with open addressing and linear probing. At most a quarter of the slots is
/// in use.
struct Slots<E: Entry> {
    shift: u32,
    slots: Box<[AtomicRef<E>]>,
}

/// Part of a table that is used only by threads that change the table. Its lock puts all changes of
/// the table in one order.
struct State<E: Entry> {
    /// Number of entries that are bound to a handle.
    bound: usize,
    /// Binary logarithm of the number of slots.
    bits: u32,
    /// Entries that are bound to no handle and may be taken for another object.
    free: Vec<&'static E>,
}

/// Returns the slot of a word among `1 << (64 - shift)` slots, by Fibonacci hashing. This hash
/// spreads handles evenly, both handles that are small integers and handles that are addresses.
#[inline]
pub(crate) fn spread(word: u64, shift: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// Number of entries that are allocated together when no entry is free.
const CHUNK: usize = 64;

impl<E: Entry> Slots<E> {
    fn new(bits: u32) -> Slots<E> {
        let slots = (0..1usize << bits).map(|_| AtomicRef::none()).collect();
        Slots { shift: 64 - bits, slots }
    }

    #[inline]
    fn home(&self, handle: u64) -> usize {
        spread(handle, self.shift)
    }

    #[inline]
    fn get(&self, handle: u64) -> Option<&'static E> {
        let mut at = self.home(handle);
        loop {
            // The loop ends because at least three quarters of the slots are null. `get` succeeds
            // for every index, because `home` and the mask below give only indices of slots.
            let entry = self.slots.get(at)?.load()?;
            if entry.handle().load(Ordering::Acquire) == handle {
                return Some(entry);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn insert(&self, entry: &'static E, handle: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(handle) & mask;
        while self.slots[at].load().is_some() {
            at = (at + 1) & mask;
        }
        self.slots[at].store(Some(entry));
    }

    /// Removes the entry of a handle, and moves later entries back into the gap, so that no probe
    /// for another handle ends at the gap.
    fn remove(&self, entry: &'static E, handle: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(handle) & mask;
        loop {
            let Some(here) = self.slots[at].load() else { return };
            if std::ptr::eq(here, entry) {
                break;
            }
            at = (at + 1) & mask;
        }
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let Some(candidate) = self.slots[next].load() else { break };
            let home = self.home(candidate.handle().load(Ordering::Relaxed)) & mask;
            // The candidate may move into the gap unless its home slot lies between the gap and its
            // present slot.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(at) & mask) {
                self.slots[at].store(Some(candidate));
                at = next;
            }
        }
        self.slots[at].store(None);
    }
}

impl<E: Entry> Table<E> {
    /// Returns a table without entries.
    pub(crate) const fn new() -> Table<E> {
        Table { slots: AtomicRef::none(), state: Mutex::new(State { bound: 0, bits: 8, free: Vec::new() }) }
    }

    fn state(&'static self) -> Guard<'static, State<E>> {
        self.state.lock()
    }

    #[inline]
    fn slots(&self) -> Option<&'static Slots<E>> {
        self.slots.load()
    }

    /// Returns the entry that is bound to a handle.
    #[inline]
    pub(crate) fn find(&self, handle: u64) -> Option<&'static E> {
        self.slots()?.get(handle)
    }

    /// Returns an entry that is bound to no handle and that the caller alone owns.
    pub(crate) fn take(&'static self) -> &'static E {
        let mut state = self.state();
        if state.free.is_empty() {
            let chunk: Vec<E> = (0..CHUNK).map(|_| E::new()).collect();
            state.free.extend(Vec::leak(chunk).iter());
        }
        state.free.pop().unwrap_or_else(|| Box::leak(Box::new(E::new())))
    }

    /// Gives back an entry that the caller alone owns and that is bound to no handle.
    pub(crate) fn give_back(&'static self, entry: &'static E) {
        self.state().free.push(entry);
    }

    /// Binds an entry that the caller owns to a handle, so that readers find it from now on.
    /// Returns true if the entry is bound. If it was bound before, nothing changes. If another
    /// entry is bound to the handle, `keep` decides. If `keep` is true, the old entry stays and
    /// this function returns false. If `keep` is false, the old entry is stale and is unbound: the
    /// MPI library has given the handle to a new object without running the delete callback of the
    /// old object's attribute.
    pub(crate) fn bind(&'static self, entry: &'static E, handle: u64, keep: bool) -> bool {
        let mut state = self.state();
        if entry.handle().load(Ordering::Relaxed) != 0 {
            return true;
        }
        let old = self.slots();
        let stale = old.and_then(|slots| slots.get(handle));
        if stale.is_some() && keep {
            return false;
        }
        let slots = match old {
            Some(slots) if (state.bound + 1) * 4 <= slots.slots.len() => slots,
            _ => {
                // The old array of slots is not freed, because other threads may still read it. All
                // old arrays together are smaller than the new array.
                state.bits += u32::from(old.is_some());
                let new: &'static Slots<E> = Box::leak(Box::new(Slots::new(state.bits)));
                for slot in old.map_or(&[][..], |o| &o.slots) {
                    if let Some(moved) = slot.load() {
                        new.insert(moved, moved.handle().load(Ordering::Relaxed));
                    }
                }
                self.slots.store(Some(new));
                new
            }
        };
        if let Some(stale) = stale {
            slots.remove(stale, handle);
            stale.handle().store(0, Ordering::Release);
            state.bound -= 1;
        }
        entry.handle().store(handle, Ordering::Release);
        slots.insert(entry, handle);
        state.bound += 1;
        true
    }

    /// Unbinds an entry from its handle, if it has one, so that no reader finds the entry from now
    /// on.
    pub(crate) fn unbind(&'static self, entry: &'static E) {
        self.remove(&mut self.state(), entry);
    }

    fn remove(&self, state: &mut State<E>, entry: &'static E) {
        let handle = entry.handle().load(Ordering::Relaxed);
        if let Some(slots) = self.slots().filter(|_| handle != 0) {
            slots.remove(entry, handle);
            entry.handle().store(0, Ordering::Release);
            state.bound -= 1;
        }
    }

    /// Unbinds every entry and calls `then` for it. The lock of the table is held all the while.
    pub(crate) fn forget_all(&'static self, then: impl Fn(&'static E)) {
        let mut state = self.state();
        for entry in self.bound() {
            self.remove(&mut state, entry);
            then(entry);
        }
    }

    /// Calls `f` for every bound entry. The lock of the table is held meanwhile, so that no entry
    /// is bound or unbound.
    pub(crate) fn for_each_bound(&'static self, f: impl Fn(&'static E)) {
        let _state = self.state();
        self.bound().into_iter().for_each(f);
    }

    /// Returns all entries that are bound now.
    fn bound(&self) -> Vec<&'static E> {
        let slots = self.slots().map_or(&[][..], |s| &s.slots);
        slots.iter().filter_map(AtomicRef::load).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain(AtomicU64);

    impl Entry for Plain {
        fn new() -> Plain {
            Plain(AtomicU64::new(0))
        }
        fn handle(&self) -> &AtomicU64 {
            &self.0
        }
    }

    static PLAIN: Table<Plain> = Table::new();

    fn known(handle: u64) -> bool {
        PLAIN.find(handle).is_some()
    }

    fn bound(handle: u64) -> &'static Plain {
        let entry = PLAIN.take();
        assert!(PLAIN.bind(entry, handle, false));
        entry
    }

    fn retire(entry: &'static Plain) {
        PLAIN.unbind(entry);
        PLAIN.give_back(entry);
    }

    // This is one test because the table is global.
    #[test]
    fn binds_unbinds_grows_and_reuses() {
        assert!(!known(7));
        let entries: Vec<_> = (0..5000u64).map(|i| (0x8c00_0000 + i, bound(0x8c00_0000 + i))).collect();
        assert!(entries.iter().all(|&(h, e)| PLAIN.find(h).is_some_and(|found| std::ptr::eq(found, e))));
        // Every second entry is retired. All other entries must still be found, although the gaps
        // in the array were closed.
        for &(_, e) in entries.iter().step_by(2) {
            retire(e);
        }
        assert!(entries.iter().enumerate().all(|(i, &(h, _))| known(h) == (i % 2 == 1)));
        let bits = PLAIN.state().bits;
        let free_before = PLAIN.state().free.len();
        for i in 0..100_000u64 {
            retire(bound(0x7f00_0000_0000 + i * 64));
        }
        // Two statements are needed, because each takes the lock of the table.
        assert_eq!(PLAIN.state().bits, bits);
        assert_eq!(PLAIN.state().free.len(), free_before);
        PLAIN.forget_all(|_| ());
        assert!(entries.iter().all(|&(h, _)| !known(h)));
        assert_eq!(PLAIN.state().bound, 0);
        // If a handle is bound again for another object, only the new entry is found.
        let (old, new) = (bound(99), bound(99));
        retire(old);
        assert!(known(99));
        // If `keep` is true, the entry that was bound first stays.
        let late = PLAIN.take();
        assert!(!PLAIN.bind(late, 99, true) && late.0.load(Ordering::Relaxed) == 0);
        PLAIN.give_back(late);
        retire(new);
        assert!(!known(99));
    }
}
