//! A table of objects by handle: slots that are reused, each life under another generation.
//!
//! Slots never move and are never given back, so a handle of any age can be checked. A slot whose generations are used up stays
//! empty for good: no handle value ever names a second object. Looking up takes the slot's own lock for a few instructions;
//! [`super::with`] avoids even that for handles that the thread used before.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::handle::Handle;
use crate::error::{Error, ErrorClass, Result};

/// Slots of chunk 0; chunk k has this many times 2^k.
const FIRST: u32 = 256;
const CHUNKS: usize = 24;
/// Lives of a slot.
const GENERATIONS: u32 = 1 << 24;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

#[derive(Debug)]
struct Free {
    slots: Vec<u32>,
    /// Slots from here on were never used.
    fresh: u32,
}

type Chunk<T> = Box<[Mutex<Slot<T>>]>;

/// Objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    tag: u8,
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    free: Mutex<Free>,
    len: AtomicU64,
}

/// Chunk and place in it.
fn place(index: u32) -> (usize, usize) {
    let n = index / FIRST + 1;
    let chunk = n.ilog2();
    (chunk as usize, (index - FIRST * ((1 << chunk) - 1)) as usize)
}

/// Nothing that runs under these locks can panic half way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Table<T> {
    /// An empty table whose handles carry `tag`.
    pub const fn new(tag: u8) -> Table<T> {
        Table {
            tag,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free { slots: Vec::new(), fresh: 0 }),
            len: AtomicU64::new(0),
        }
    }

    fn slot(&self, index: u32) -> Option<&Mutex<Slot<T>>> {
        let (chunk, i) = place(index);
        self.chunks.get(chunk)?.get()?.get(i)
    }

    /// Adds what `make` makes of its handle.
    ///
    /// # Errors
    /// Class `NoMem` when there are more than 2^31 objects.
    pub fn insert(&self, make: impl FnOnce(Handle) -> T) -> Result<Handle> {
        let index = {
            let mut free = lock(&self.free);
            match free.slots.pop() {
                Some(index) => index,
                None => {
                    let index = free.fresh;
                    let (chunk, _) = place(index);
                    if chunk >= CHUNKS {
                        let rule = "all handles are in use";
                        return Err(Error::new(ErrorClass::NoMem, "handle", "handles", index, rule));
                    }
                    self.chunks[chunk].get_or_init(|| {
                        let empty = || Mutex::new(Slot { generation: 0, object: None });
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
        let generation = lock(slot).generation;
        let handle = Handle::derived(self.tag, generation, index);
        // Nobody has the handle yet, so the lock need not be held while the object is made.
        let object = Arc::new(make(handle));
        lock(slot).object = Some(object);
        self.len.fetch_add(1, Relaxed);
        Ok(handle)
    }

    /// The object of `handle` if it lives.
    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        if handle.tag() != self.tag {
            return None;
        }
        let slot = lock(self.slot(handle.index())?);
        if slot.generation == handle.generation() { slot.object.clone() } else { None }
    }

    /// Ends the life of `handle` and returns its object.
    pub fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        if handle.tag() != self.tag {
            return None;
        }
        let object = {
            let mut slot = lock(self.slot(handle.index())?);
            if slot.generation != handle.generation() {
                return None;
            }
            let object = slot.object.take()?;
            slot.generation += 1;
            if slot.generation < GENERATIONS {
                drop(slot);
                lock(&self.free).slots.push(handle.index());
            }
            object
        };
        self.len.fetch_sub(1, Relaxed);
        Some(object)
    }

    /// Whether the handle was given out at some time.
    pub fn was_given(&self, handle: Handle) -> bool {
        let Some(slot) = self.slot(handle.index()) else { return false };
        let slot = lock(slot);
        handle.tag() == self.tag
            && (handle.generation() < slot.generation
                || (handle.generation() == slot.generation && slot.object.is_some()))
    }

    /// Objects that live.
    pub fn len(&self) -> u64 {
        self.len.load(Relaxed)
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_chunks() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(FIRST - 1), (0, FIRST as usize - 1));
        assert_eq!(place(FIRST), (1, 0));
        assert_eq!(place(3 * FIRST - 1), (1, 2 * FIRST as usize - 1));
        assert_eq!(place(3 * FIRST), (2, 0));
    }

    #[test]
    fn stale_handles_name_nothing() {
        let table = Table::<u32>::new(0xaa);
        let a = table.insert(|_| 1).unwrap();
        assert_eq!(table.get(a).as_deref(), Some(&1));
        assert_eq!(table.remove(a).as_deref(), Some(&1));
        assert!(table.remove(a).is_none() && table.get(a).is_none() && table.was_given(a));
        let b = table.insert(|_| 2).unwrap();
        assert_eq!(a.index(), b.index());
        assert_ne!(a, b);
        assert!(table.get(a).is_none());
        assert_eq!(table.get(b).as_deref(), Some(&2));
        assert!(table.get(Handle::derived(0xab, b.generation(), b.index())).is_none());
        assert!(!table.was_given(Handle::derived(0xaa, 9, b.index())));
        assert!(table.get(Handle::derived(0xaa, 0, u32::MAX)).is_none());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_slot_is_given_up_after_its_last_generation() {
        let table = Table::<()>::new(0xaa);
        let a = table.insert(|_| ()).unwrap();
        lock(table.slot(a.index()).unwrap()).generation = GENERATIONS - 1;
        let last = Handle::derived(0xaa, GENERATIONS - 1, a.index());
        assert!(table.remove(last).is_some());
        assert_ne!(table.insert(|_| ()).unwrap().index(), a.index());
    }
}
