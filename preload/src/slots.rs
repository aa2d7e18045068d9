//! From a host's handle to what is known of its object: one hash, a few loads, no lock.
//!
//! Slots hold pointers to entries that are never freed, only reused, and an entry says whose handle it is: so a reader that races
//! with a change of other handles sees either the right entry or none, never another's, and "none" only sends a call to the host.
//! A handle is bound while its object lives: the host's attribute on the object unbinds it when the object dies, before the
//! host can give the value to another. Changes take a lock that is never held across a call of the host.

use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::process::{Guard, Mutex};

use crate::atomic_ref::AtomicRef;

/// Facts about an object.
pub(crate) trait Entry: Sync + 'static {
    /// One of no object.
    fn new() -> Self;
    /// The bound handle, 0 if none. Changed by its table alone.
    fn handle(&self) -> &AtomicU64;
}

/// The entries of a kind of objects.
pub(crate) struct Table<E: Entry> {
    slots: AtomicRef<Slots<E>>,
    state: Mutex<State<E>>,
}

/// An open-addressed table with linear probing, at most a quarter full.
struct Slots<E: Entry> {
    shift: u32,
    slots: Box<[AtomicRef<E>]>,
}

/// State that changes of the table need besides its slots; reached under the lock, which orders all changes.
struct State<E: Entry> {
    /// Entries bound to a handle.
    bound: usize,
    /// Binary logarithm of the number of slots.
    bits: u32,
    /// Entries of no object.
    free: Vec<&'static E>,
}

/// Returns a word's place among `1 << (64 - shift)`: Fibonacci hashing, which spreads handles that are small integers and those that are addresses.
#[inline]
pub(crate) fn spread(word: u64, shift: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// Entries allocated at a time.
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
            // Most are null, so it ends; and every place is one of theirs.
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

    /// Removes the entry of a handle and closes the gap, so that probing never ends before an entry.
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
            // It may move back if its home is not between the gap and where it is.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(at) & mask) {
                self.slots[at].store(Some(candidate));
                at = next;
            }
        }
        self.slots[at].store(None);
    }
}

impl<E: Entry> Table<E> {
    /// Of no handles.
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

    /// Returns an entry that is bound to no handle, for its caller alone.
    pub(crate) fn take(&'static self) -> &'static E {
        let mut state = self.state();
        if state.free.is_empty() {
            let chunk: Vec<E> = (0..CHUNK).map(|_| E::new()).collect();
            state.free.extend(Vec::leak(chunk).iter());
        }
        state.free.pop().unwrap_or_else(|| Box::leak(Box::new(E::new())))
    }

    /// Gives back an entry that is its caller's alone.
    pub(crate) fn give_back(&'static self, entry: &'static E) {
        self.state().free.push(entry);
    }

    /// Binds an entry that its caller owns to a handle; readers find it from now on. `keep`: what is bound to the handle already stays, and the
    /// answer is no; otherwise that is the stale owner of a value, which only a host that broke its word leaves behind.
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
                // Old tables stay for readers that are still in them: together they are smaller than the new one.
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

    /// Nobody finds an entry any more.
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

    /// Unbinds every entry; `then` is done with each under the lock.
    pub(crate) fn forget_all(&'static self, then: impl Fn(&'static E)) {
        let mut state = self.state();
        for entry in self.bound() {
            self.remove(&mut state, entry);
            then(entry);
        }
    }

    /// Something is done with every bound entry under the lock: none is bound or unbound meanwhile.
    pub(crate) fn each(&'static self, f: impl Fn(&'static E)) {
        let _state = self.state();
        self.bound().into_iter().for_each(f);
    }

    /// Every bound entry, at this moment.
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

    // One test: the table is global.
    #[test]
    fn binds_unbinds_grows_and_reuses() {
        assert!(!known(7));
        let entries: Vec<_> = (0..5000u64).map(|i| (0x8c00_0000 + i, bound(0x8c00_0000 + i))).collect();
        assert!(entries.iter().all(|&(h, e)| PLAIN.find(h).is_some_and(|found| std::ptr::eq(found, e))));
        // Every second one goes; the others stay reachable across closed gaps.
        for &(_, e) in entries.iter().step_by(2) {
            retire(e);
        }
        assert!(entries.iter().enumerate().all(|(i, &(h, _))| known(h) == (i % 2 == 1)));
        let bits = PLAIN.state().bits;
        let free_before = PLAIN.state().free.len();
        for i in 0..100_000u64 {
            retire(bound(0x7f00_0000_0000 + i * 64));
        }
        // Two statements: each takes the lock.
        assert_eq!(PLAIN.state().bits, bits);
        assert_eq!(PLAIN.state().free.len(), free_before);
        PLAIN.forget_all(|_| ());
        assert!(entries.iter().all(|&(h, _)| !known(h)));
        assert_eq!(PLAIN.state().bound, 0);
        // A handle that comes back as another object belongs to the new entry alone.
        let (old, new) = (bound(99), bound(99));
        retire(old);
        assert!(known(99));
        // Unless the first is to stay.
        let late = PLAIN.take();
        assert!(!PLAIN.bind(late, 99, true) && late.0.load(Ordering::Relaxed) == 0);
        PLAIN.give_back(late);
        retire(new);
        assert!(!known(99));
    }
}
