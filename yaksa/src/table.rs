//! Types by number: slots that are reused, each life under another generation, so that the number of a freed type names nothing.
//!
//! A slot is 16 bytes: a program may hold 10^5 types, and what one takes beside its node is this. Slots stand in chunks that never move and are never
//! given back, so that a thread finds one, and sees whether what it remembers of it still holds ([`crate::recent`]), without a lock.
//!
//! * A slot that is vacant is somebody's: of the list here, or of a thread, which keeps a few. Its owner fills it without a lock.
//! * A slot that is filled is read and emptied only under the lock, so nobody frees a node while another thread takes a reference to it.
//! * A thread that stops for good at any step, as others do when one forks, leaves at most slots that nobody has.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use ddtc::internal::process::{Latch, Once};

use crate::abi::{Code, Result};
use crate::node::{Node, Ref};

/// Slots of the first chunk, a power of two; each further one is as large as all before it, but for the first.
const FEW: u32 = 256;
/// Chunks that there may be: as many as it takes for all numbers of 32 bits.
const CHUNKS: usize = 25;
/// The first number that a derived type may have; those of predefined types are below.
const FIRST: u32 = 64;
/// Slots that are looked for at once.
const BATCH: usize = 16;

pub(crate) struct Slot {
    /// A reference that is away, or null.
    node: AtomicPtr<Node>,
    /// Lives that ended here.
    generation: AtomicU32,
}

/// Holds the size of a slot.
const _: () = assert!(size_of::<Slot>() <= 16);

/// A slot that nobody has but whoever has this.
#[derive(Debug)]
pub(crate) struct Vacant(u32);

struct Table {
    /// Slots that were used before; the last one freed comes first.
    free: Vec<Vacant>,
    /// Slots from here on were never used.
    fresh: u32,
}

static TABLE: Latch<Table> = Latch::new(Table { free: Vec::new(), fresh: 0 });

static SLOTS: [Once<Box<[Slot]>>; CHUNKS] = [const { Once::new() }; CHUNKS];

/// Chunk of a slot, its slots, and its place among them.
#[inline]
fn place(index: u32) -> (usize, usize, usize) {
    let from_few = u64::from(index) + u64::from(FEW);
    let size = 1 << from_few.ilog2();
    ((from_few.ilog2() - FEW.ilog2()) as usize, size as usize, (from_few - size) as usize)
}

#[inline]
fn slot(index: u32) -> Option<&'static Slot> {
    let (chunk, _, at) = place(index);
    SLOTS.get(chunk)?.get()?.get(at)
}

/// Returns the slot that a number is of, whether or not it names a type.
#[inline]
pub(crate) fn find(number: u64) -> Option<&'static Slot> {
    slot((number as u32).checked_sub(FIRST)?)
}

impl Slot {
    /// Says whether a number that named a type of this slot does so still.
    #[inline]
    pub(crate) fn still(&self, number: u64) -> bool {
        u64::from(self.generation.load(Ordering::Acquire)) == number >> 32
    }

    /// The reference that lies here under `number`. Whoever holds the lock may follow it.
    #[inline]
    fn filled(&self, number: u64) -> Option<NonNull<Node>> {
        let node = NonNull::new(self.node.load(Ordering::Acquire))?;
        self.still(number).then_some(node)
    }
}

impl Table {
    /// Ends the life in a slot, whose owner is the caller from then on, unless it had its last one.
    fn emptied(&self, index: u32, slot: &Slot) -> Option<Vacant> {
        slot.node.store(ptr::null_mut(), Ordering::Relaxed);
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Release);
        (generation != 0).then_some(Vacant(index))
    }

    fn vacant(&mut self) -> Result<Vacant> {
        if let Some(vacant) = self.free.pop() {
            return Ok(vacant);
        }
        let index = self.fresh;
        if index >= u32::MAX - FIRST {
            return Err(Code::OutOfMem);
        }
        let (chunk, size, _) = place(index);
        let chunk = SLOTS.get(chunk).ok_or(Code::OutOfMem)?;
        if chunk.get().is_none() {
            let mut slots = Vec::new();
            slots.try_reserve_exact(size).map_err(|_| Code::OutOfMem)?;
            let empty = || Slot { node: AtomicPtr::new(ptr::null_mut()), generation: AtomicU32::new(0) };
            slots.resize_with(size, empty);
            chunk.get_or_init(|| slots.into());
        }
        self.fresh += 1;
        Ok(Vacant(index))
    }
}

/// Adds vacant slots to `stock`, one at least.
#[cold]
pub(crate) fn restock(stock: &mut Vec<Vacant>) -> Result<()> {
    stock.try_reserve(STOCK).map_err(|_| Code::OutOfMem)?;
    let mut table = TABLE.lock();
    stock.push(table.vacant()?);
    for _ in 1..BATCH {
        let Ok(vacant) = table.vacant() else { break };
        stock.push(vacant);
    }
    // The next one taken is the last.
    stock.reverse();
    Ok(())
}

/// Takes slots back, as far as there is memory for a list of them.
#[cold]
pub(crate) fn put_back(slots: impl ExactSizeIterator<Item = Vacant>) {
    let mut table = TABLE.lock();
    if table.free.try_reserve(slots.len()).is_ok() {
        table.free.extend(slots);
    }
}

/// Most slots that a thread keeps.
pub(crate) const STOCK: usize = 2 * BATCH;

/// Gives a type a number.
#[inline]
pub(crate) fn fill(vacant: Vacant, node: Ref) -> Result<u64> {
    let Vacant(index) = vacant;
    let slot = slot(index).ok_or(Code::Internal)?;
    let generation = slot.generation.load(Ordering::Relaxed);
    slot.node.store(node.away(), Ordering::Release);
    Ok(u64::from(generation) << 32 | u64::from(index + FIRST))
}

/// Calls `f`, which must be short, with a derived type that lives.
pub(crate) fn with<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    let slot = find(number).ok_or(Code::Internal)?;
    let _table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    // SAFETY: the reference that is away stays so as long as the lock is held, and keeps the node.
    Ok(f(unsafe { node.as_ref() }))
}

/// Returns a derived type that lives.
pub(crate) fn get(number: u64) -> Result<Ref> {
    let slot = find(number).ok_or(Code::Internal)?;
    let _table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    // SAFETY: as above.
    Ok(unsafe { Ref::beside(node) })
}

/// Ends the life of a number: what lived, and its slot.
#[inline]
pub(crate) fn remove(number: u64) -> Result<(Ref, Option<Vacant>)> {
    let slot = find(number).ok_or(Code::Internal)?;
    let table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    let vacant = table.emptied(number as u32 - FIRST, slot);
    // SAFETY: the slot has forgotten it, under the lock.
    Ok((unsafe { Ref::back(node) }, vacant))
}

/// Ends the lives of all numbers: what lived.
pub(crate) fn emptied() -> Vec<Ref> {
    let mut dead = Vec::new();
    let mut table = TABLE.lock();
    for index in 0..table.fresh {
        let Some(slot) = slot(index) else { continue };
        let Some(node) = NonNull::new(slot.node.load(Ordering::Acquire)) else { continue };
        let vacant = table.emptied(index, slot);
        table.free.extend(vacant);
        // SAFETY: as in `remove`.
        dead.push(unsafe { Ref::back(node) });
    }
    dead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_all_slots_in_order() {
        let mut expected = (0, 0);
        for index in (0..5000).chain(u32::MAX - 3..u32::MAX) {
            let (chunk, size, at) = place(index);
            assert!(at < size && chunk < CHUNKS, "{index}");
            if index < 5000 {
                assert_eq!((chunk, at), expected);
                expected = if at + 1 == size { (chunk + 1, 0) } else { (chunk, at + 1) };
            }
        }
        assert_eq!(place(0), (0, 256, 0));
        assert_eq!(place(256), (1, 512, 0));
    }
}
