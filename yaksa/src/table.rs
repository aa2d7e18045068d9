//! Table of types by number. A number names a slot and one of its generations. Slots are reused,
//! and each type in a slot has its own generation, so the number of a freed type names nothing.
//!
//! A slot has 16 bytes, because a program may hold 10^5 types, and the slot is all that a type
//! takes in addition to its node. Slots are in chunks that never move and are never freed. So a
//! thread needs no lock to find a slot, or to see whether its cached entry for the slot is still
//! valid ([`crate::recent`]).
//!
//! * A vacant slot has one owner: the list in this module, or a thread, which keeps a few vacant
//!   slots. The owner fills the slot without a lock.
//! * A filled slot is read and emptied only under the lock, so nobody frees a node while another
//!   thread takes a reference to it.
//! * A thread can stop for good at any step: in the child of a fork, all threads but one do. The
//!   worst that such a thread leaves behind is slots without an owner.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use ddtc::internal::process::{Once, SpinLock};

use crate::abi::{Code, Result};
use crate::node::{Node, Ref};

/// Number of slots in the first chunk, a power of two. Each further chunk is twice as large as the
/// one before it.
const FIRST_CHUNK_SLOTS: u32 = 256;
/// Maximum number of chunks. It suffices for all slots that a number of 32 bits can name.
const CHUNKS: usize = 25;
/// Lower half of the number of a type in slot 0. The numbers of predefined types are less than
/// this.
const FIRST: u32 = 64;
/// Number of slots that a thread takes from the table at once.
const BATCH: usize = 16;

/// Slot: place for a type, and the generation that the number of that type must have.
pub(crate) struct Slot {
    /// Result of [`Ref::away`] for the reference to the node of the type; null if the slot is
    /// vacant.
    node: AtomicPtr<Node>,
    /// Number of types that were freed in this slot, modulo 2^32.
    generation: AtomicU32,
}

/// Limits the size of a slot, because a program may hold 10^5 types.
const _: () = assert!(size_of::<Slot>() <= 16);

/// Vacant slot, which belongs to the holder of this value only.
#[derive(Debug)]
pub(crate) struct Vacant(u32);

/// Vacant slots that no thread keeps.
struct Table {
    /// Slots that may have been used before. The list is a stack: the last slot is taken first.
    free: Vec<Vacant>,
    /// First slot of those that were never given out.
    fresh: u32,
}

static TABLE: SpinLock<Table> = SpinLock::new(Table { free: Vec::new(), fresh: 0 });

/// Chunks of slots. A chunk is allocated when its first slot is needed.
static SLOTS: [Once<Box<[Slot]>>; CHUNKS] = [const { Once::new() }; CHUNKS];

/// Returns the chunk of a slot, the number of slots in that chunk, and the index of the slot in it.
#[inline]
fn chunk_and_index(index: u32) -> (usize, usize, usize) {
    let biased = u64::from(index) + u64::from(FIRST_CHUNK_SLOTS);
    let size = 1 << biased.ilog2();
    ((biased.ilog2() - FIRST_CHUNK_SLOTS.ilog2()) as usize, size as usize, (biased - size) as usize)
}

/// Returns a slot; `None` if its chunk has not been allocated.
#[inline]
fn slot(index: u32) -> Option<&'static Slot> {
    let (chunk, _, at) = chunk_and_index(index);
    SLOTS.get(chunk)?.get()?.get(at)
}

/// Returns the slot that the lower half of a number names, whether or not the slot holds a type;
/// `None` if no such slot was ever allocated. The upper half of the number is not examined.
#[inline]
pub(crate) fn find(number: u64) -> Option<&'static Slot> {
    slot((number as u32).checked_sub(FIRST)?)
}

impl Slot {
    /// Returns true if a number that once named a type of this slot still does.
    #[inline]
    pub(crate) fn still(&self, number: u64) -> bool {
        u64::from(self.generation.load(Ordering::Acquire)) == number >> 32
    }

    /// Returns the node in the slot; `None` if `number` does not name that node. Only a holder of
    /// the lock may dereference the result.
    #[inline]
    fn filled(&self, number: u64) -> Option<NonNull<Node>> {
        let node = NonNull::new(self.node.load(Ordering::Acquire))?;
        self.still(number).then_some(node)
    }
}

impl Table {
    /// Empties a slot, so that the number of the type in it names nothing. Returns the slot as a
    /// vacant one; `None` if all its generations are used up, in which case the slot is not used
    /// again.
    fn emptied(&self, index: u32, slot: &Slot) -> Option<Vacant> {
        slot.node.store(ptr::null_mut(), Ordering::Relaxed);
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Release);
        (generation != 0).then_some(Vacant(index))
    }

    /// Returns a vacant slot, and allocates its chunk if necessary. Fails with [`Code::OutOfMem`]
    /// if there is no memory or no further slot.
    fn vacant(&mut self) -> Result<Vacant> {
        if let Some(vacant) = self.free.pop() {
            return Ok(vacant);
        }
        let index = self.fresh;
        if index >= u32::MAX - FIRST {
            return Err(Code::OutOfMem);
        }
        let (chunk, size, _) = chunk_and_index(index);
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

/// Adds at least one and at most [`BATCH`] vacant slots to `stock`. Fails with [`Code::OutOfMem`]
/// if there is no memory or no vacant slot.
#[cold]
pub(crate) fn restock(stock: &mut Vec<Vacant>) -> Result<()> {
    stock.try_reserve(STOCK).map_err(|_| Code::OutOfMem)?;
    let mut table = TABLE.lock();
    stock.push(table.vacant()?);
    for _ in 1..BATCH {
        let Ok(vacant) = table.vacant() else { break };
        stock.push(vacant);
    }
    // Threads take slots from the end of `stock`. After the reversal they use the slots in the
    // order in which the table gave them out.
    stock.reverse();
    Ok(())
}

/// Takes slots back. If there is no memory for the list, these slots are not used again.
#[cold]
pub(crate) fn put_back(slots: impl ExactSizeIterator<Item = Vacant>) {
    let mut table = TABLE.lock();
    if table.free.try_reserve(slots.len()).is_ok() {
        table.free.extend(slots);
    }
}

/// Maximum number of vacant slots that a thread keeps.
pub(crate) const STOCK: usize = 2 * BATCH;

/// Puts a type into a vacant slot and returns its number.
#[inline]
pub(crate) fn fill(vacant: Vacant, node: Ref) -> Result<u64> {
    let Vacant(index) = vacant;
    let slot = slot(index).ok_or(Code::Internal)?;
    let generation = slot.generation.load(Ordering::Relaxed);
    slot.node.store(node.away(), Ordering::Release);
    Ok(u64::from(generation) << 32 | u64::from(index + FIRST))
}

/// Returns the result of `f` for a derived type. `f` must be short, because the lock is held. Fails
/// with [`Code::Internal`] if the number names no derived type.
pub(crate) fn with<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    let slot = find(number).ok_or(Code::Internal)?;
    let _table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    // SAFETY: the slot holds a reference that was given away. It is taken back only under the lock,
    // which `_table` holds here, so the node stays alive during this call. Nobody changes it, since
    // `Ref::alone` needs the only reference.
    Ok(f(unsafe { node.as_ref() }))
}

/// Returns a reference to a derived type. Fails with [`Code::Internal`] if the number names no
/// derived type.
pub(crate) fn get(number: u64) -> Result<Ref> {
    let slot = find(number).ok_or(Code::Internal)?;
    let _table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    // SAFETY: `node` is what `Ref::away` returned in `fill`. The reference is taken back only under
    // the lock, which `_table` holds here, and therefore not during the call.
    Ok(unsafe { Ref::further(node) })
}

/// Frees the number of a derived type. Returns the type, and the slot if it can be used again.
/// Fails with [`Code::Internal`] if the number names no derived type.
#[inline]
pub(crate) fn remove(number: u64) -> Result<(Ref, Option<Vacant>)> {
    let slot = find(number).ok_or(Code::Internal)?;
    let table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    let vacant = table.emptied(number as u32 - FIRST, slot);
    // SAFETY: `node` is what `Ref::away` returned in `fill`. `emptied` has removed it from the slot
    // under the lock, which is still held, so nobody else can take the reference back.
    Ok((unsafe { Ref::back(node) }, vacant))
}

/// Frees the numbers of all derived types. Returns the types.
pub(crate) fn emptied() -> Vec<Ref> {
    let mut dead = Vec::new();
    let mut table = TABLE.lock();
    for index in 0..table.fresh {
        let Some(slot) = slot(index) else { continue };
        let Some(node) = NonNull::new(slot.node.load(Ordering::Acquire)) else { continue };
        let vacant = table.emptied(index, slot);
        table.free.extend(vacant);
        // SAFETY: `node` is what `Ref::away` returned in `fill`. `emptied` has removed it from the
        // slot under the lock, which is still held, so nobody else can take the reference back.
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
            let (chunk, size, at) = chunk_and_index(index);
            assert!(at < size && chunk < CHUNKS, "{index}");
            if index < 5000 {
                assert_eq!((chunk, at), expected);
                expected = if at + 1 == size { (chunk + 1, 0) } else { (chunk, at + 1) };
            }
        }
        assert_eq!(chunk_and_index(0), (0, 256, 0));
        assert_eq!(chunk_and_index(256), (1, 512, 0));
    }
}
