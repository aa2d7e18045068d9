//! A table of objects by handle. Slots are reused, each time with another generation in the handle.
//!
//! Slots never move, and their memory is never freed, so a handle of any age can be checked. When
//! the generations of a slot are used up, the slot stays empty forever, so that no value of a
//! handle ever names a second object. A look-up takes no lock and never waits for one.
//!
//! The life of an object in its slot begins when the state of the slot is set, after the object was
//! stored. It ends when the state changes to the next generation, before the object is removed. A
//! reader loads the object first and the state after that. So if a reader finds the object of a
//! later life, it also finds a later state.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use arc_swap::{ArcSwapOption, Guard};

use super::handle::Handle;
use crate::error::{Error, ErrorClass, Result};
use crate::process::{Mutex, Once};

/// Number of slots in chunk 0. Chunk `k` has 2^k times as many.
const FIRST: u32 = 256;
const CHUNKS: usize = 24;
/// Maximum number of objects that a slot can hold one after the other, each with a generation of
/// its own.
const GENERATIONS: u32 = 1 << 24;

#[derive(Debug)]
struct Slot<T> {
    object: ArcSwapOption<T>,
    /// State of the slot as one number. If an object lives in the slot, the state is `2g+1`, where
    /// g is the generation of the object. Otherwise it is `2g`, where g is the generation that the
    /// next object will have.
    state: AtomicU32,
}

/// Returns the state of the slot of `handle` while the object of the handle is live.
fn living(handle: Handle) -> u32 {
    2 * handle.generation() + 1
}

#[derive(Debug)]
struct Free {
    slots: Vec<u32>,
    /// Index of the first slot that was never used. No slot after it was used either.
    fresh: u32,
}

/// Table of the objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    tag: u8,
    chunks: [Once<Box<[Slot<T>]>>; CHUNKS],
    free: Mutex<Free>,
    len: AtomicU64,
}

/// An object that was looked up. It remains valid as long as this value exists, even if its handle
/// is freed in the meantime.
#[derive(Debug)]
pub struct Found<T>(Guard<Option<Arc<T>>>);

impl<T> std::ops::Deref for Found<T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        self.0.as_ref().expect("only made of an object")
    }
}

/// Returns the chunk of slot `index` and the position in that chunk.
fn chunk_and_index(index: u32) -> (usize, usize) {
    let n = index / FIRST + 1;
    let chunk = n.ilog2();
    (chunk as usize, (index - FIRST * ((1 << chunk) - 1)) as usize)
}

impl<T> Table<T> {
    /// Returns an empty table whose handles contain `tag`.
    pub const fn new(tag: u8) -> Table<T> {
        Table {
            tag,
            chunks: [const { Once::new() }; CHUNKS],
            free: Mutex::new(Free { slots: Vec::new(), fresh: 0 }),
            len: AtomicU64::new(0),
        }
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let (chunk, i) = chunk_and_index(index);
        self.chunks.get(chunk)?.get()?.get(i)
    }

    /// Adds the object that `make` returns for its handle, and returns that handle.
    ///
    /// # Errors
    /// Class `NoMem` if all slots, nearly 2^32, are in use or used up.
    pub fn insert(&self, make: impl FnOnce(Handle) -> T) -> Result<Handle> {
        // Take a free slot, or the next one that was never used. A chunk is allocated when its
        // first slot is used.
        let index = {
            let mut free = self.free.lock();
            match free.slots.pop() {
                Some(index) => index,
                None => {
                    let index = free.fresh;
                    let (chunk, _) = chunk_and_index(index);
                    if chunk >= CHUNKS {
                        let rule = "all handles are in use";
                        return Err(Error::new(ErrorClass::NoMem, "handle", "handles", index, rule));
                    }
                    self.chunks[chunk].get_or_init(|| {
                        let empty = || Slot { object: ArcSwapOption::empty(), state: AtomicU32::new(0) };
                        (0..FIRST << chunk).map(|_| empty()).collect()
                    });
                    free.fresh += 1;
                    index
                }
            }
        };
        let Some(slot) = self.slot(index) else {
            return Err(Error::internal("handle", "a slot without a chunk"));
        };
        // The slot was taken from the free list, or from the unused slots, under the lock, so no
        // other thread writes to it now.
        let handle = Handle::derived(self.tag, slot.state.load(Relaxed) / 2, index);
        slot.object.store(Some(Arc::new(make(handle))));
        slot.state.store(living(handle), Release);
        self.len.fetch_add(1, Relaxed);
        Ok(handle)
    }

    /// Returns the object of `handle` if it is live.
    #[inline]
    pub fn get(&self, handle: Handle) -> Option<Found<T>> {
        if handle.tag() != self.tag {
            return None;
        }
        let slot = self.slot(handle.index())?;
        let object = slot.object.load();
        let lives = object.is_some() && slot.state.load(Acquire) == living(handle);
        lives.then(|| Found(object))
    }

    /// Ends the life of the object of `handle` and returns the object. The result is none if the
    /// object is not live.
    pub fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        if handle.tag() != self.tag {
            return None;
        }
        let slot = self.slot(handle.index())?;
        // Of several concurrent callers, one succeeds. That caller then owns the slot until it puts
        // the slot on the free list.
        slot.state.compare_exchange(living(handle), living(handle) + 1, AcqRel, Relaxed).ok()?;
        let object = slot.object.swap(None);
        self.len.fetch_sub(1, Relaxed);
        if handle.generation() + 1 < GENERATIONS {
            self.free.lock().slots.push(handle.index());
        }
        object
    }

    /// Returns true if the table has returned this handle at some time, whether or not its object
    /// is live.
    pub fn was_given(&self, handle: Handle) -> bool {
        let slot = self.slot(handle.index());
        handle.tag() == self.tag && slot.is_some_and(|s| living(handle) <= s.state.load(Acquire))
    }

    /// Returns the number of live objects.
    pub fn len(&self) -> u64 {
        self.len.load(Relaxed)
    }

    /// Returns true if no object is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_chunks() {
        assert_eq!(chunk_and_index(0), (0, 0));
        assert_eq!(chunk_and_index(FIRST - 1), (0, FIRST as usize - 1));
        assert_eq!(chunk_and_index(FIRST), (1, 0));
        assert_eq!(chunk_and_index(3 * FIRST - 1), (1, 2 * FIRST as usize - 1));
        assert_eq!(chunk_and_index(3 * FIRST), (2, 0));
    }

    #[test]
    fn stale_handles_name_nothing() {
        let table = Table::<u32>::new(0xaa);
        let a = table.insert(|_| 1).unwrap();
        assert_eq!(table.get(a).as_deref().map(|o| **o), Some(1));
        assert_eq!(table.remove(a).as_deref(), Some(&1));
        assert!(table.remove(a).is_none() && table.get(a).is_none() && table.was_given(a));
        let b = table.insert(|_| 2).unwrap();
        assert_eq!(a.index(), b.index());
        assert_ne!(a, b);
        assert!(table.get(a).is_none());
        assert_eq!(table.get(b).as_deref().map(|o| **o), Some(2));
        assert!(table.get(Handle::derived(0xab, b.generation(), b.index())).is_none());
        assert!(!table.was_given(Handle::derived(0xaa, 9, b.index())));
        assert!(table.get(Handle::derived(0xaa, 0, u32::MAX)).is_none());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_slot_is_given_up_after_its_last_generation() {
        let table = Table::<()>::new(0xaa);
        let a = table.insert(|_| ()).unwrap();
        let last = Handle::derived(0xaa, GENERATIONS - 1, a.index());
        table.slot(a.index()).unwrap().state.store(living(last), Relaxed);
        assert!(table.remove(last).is_some());
        assert_ne!(table.insert(|_| ()).unwrap().index(), a.index());
    }

    /// Readers of a handle see its object or nothing, and never an object that was stored in the
    /// same slot later. Of several callers that remove a handle, one succeeds.
    #[test]
    fn lives_are_kept_apart_between_threads() {
        let table = Table::<Handle>::new(0xaa);
        let (shared, removed) = (AtomicU64::new(0), AtomicU64::new(0));
        shared.store(table.insert(|h| h).unwrap().bits(), Release);
        const ROUNDS: u64 = 2000;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let handle = Handle::from_bits(shared.load(Acquire));
                        if let Some(found) = table.get(handle) {
                            assert_eq!(**found, handle);
                        }
                        if let Some(object) = table.remove(handle) {
                            assert_eq!(*object, handle);
                            removed.fetch_add(1, Relaxed);
                            shared.store(table.insert(|h| h).unwrap().bits(), Release);
                        }
                    }
                });
            }
        });
        assert!(removed.load(Relaxed) > 0);
        assert_eq!(table.len(), 1);
    }
}
