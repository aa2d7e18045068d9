//! Table that maps the handles of derived types to the types. A handle is a 64-bit number that
//! consists of the index of a slot and a generation. The slot of a freed type is used again for
//! another type, with a new generation. So the handle of the freed type no longer names a type.
//!
//! A slot has only 16 bytes, because a program may hold 10^5 types, and each type needs a slot in
//! addition to its node. Slots are allocated in chunks that never move and are never freed. So a
//! thread needs no lock to find a slot. It needs no lock either to check whether an entry of its
//! own cache ([`crate::recent`]) is still valid.
//!
//! A filled slot has the address of a node, the structure in which a type is stored
//! ([`crate::node`]). The following rules say who may change a slot, and when the lock of the table
//! is needed.
//!
//! * A vacant slot has one owner: the list of vacant slots in this module, or a thread, which keeps
//!   a few vacant slots. A thread needs no lock to put a type into a slot that it owns.
//! * A thread holds the lock while it empties a filled slot, and while it reads the node address in
//!   a filled slot and uses the node. So no thread frees a node while another thread takes a
//!   reference to it.
//! * A thread may disappear at any step: the child of a fork has none of the other threads of its
//!   parent. The worst consequence is vacant slots that have no owner, which are never used again.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use ddtc::internal::process::{Once, SpinLock};

use crate::abi::{Code, Result};
use crate::node::{Node, Ref};

/// Number of slots in the first chunk, a power of two. Each further chunk is twice as large as the
/// one before it.
const FIRST_CHUNK_SLOTS: u32 = 256;
/// Maximum number of chunks. This number of chunks contains all slots that an index of 32 bits can
/// name.
const CHUNKS: usize = 25;
/// Lower 32 bits of the handle of a type in slot 0. The handles of predefined types are less than
/// this number.
const FIRST: u32 = 64;
/// Maximum number of vacant slots that a thread takes from the table at once.
const BATCH: usize = 16;

/// Slot of the table: the node of a type, if the slot is filled, and the generation that a handle
/// must contain to name that type.
pub(crate) struct Slot {
    /// Address of the node of the type, as [`Ref::away`] has returned it; null if the slot is
    /// vacant. The slot owns one reference to the node.
    node: AtomicPtr<Node>,
    /// Number of types that were in this slot and have been freed, modulo 2^32.
    generation: AtomicU32,
}

/// Limits the size of a slot, because a program may hold 10^5 types.
const _: () = assert!(size_of::<Slot>() <= 16);

/// Index of a vacant slot. Only the holder of this value may fill the slot.
#[derive(Debug)]
pub(crate) struct Vacant(u32);

/// Vacant slots that no thread owns.
struct Table {
    /// Vacant slots that were given out before and have come back. The list is a stack: the last
    /// slot is taken first.
    free: Vec<Vacant>,
    /// Index of the first slot that was never given out. No slot with a higher index was given out,
    /// either.
    fresh: u32,
}

static TABLE: SpinLock<Table> = SpinLock::new(Table { free: Vec::new(), fresh: 0 });

/// Chunks that contain the slots of the table. A chunk is allocated when its first slot is needed.
static SLOTS: [Once<Box<[Slot]>>; CHUNKS] = [const { Once::new() }; CHUNKS];

/// Returns the number of the chunk that contains slot `index`, the number of slots in that chunk,
/// and the index of the slot inside the chunk.
#[inline]
fn chunk_and_index(index: u32) -> (usize, usize, usize) {
    let biased = u64::from(index) + u64::from(FIRST_CHUNK_SLOTS);
    let size = 1 << biased.ilog2();
    ((biased.ilog2() - FIRST_CHUNK_SLOTS.ilog2()) as usize, size as usize, (biased - size) as usize)
}

/// Returns the slot that has the index `index`; `None` if the chunk that contains the slot has not
/// been allocated.
#[inline]
fn slot(index: u32) -> Option<&'static Slot> {
    let (chunk, _, at) = chunk_and_index(index);
    SLOTS.get(chunk)?.get()?.get(at)
}

/// Returns the slot of a type handle; `None` if no such slot has been allocated. Only the lower 32
/// bits of the handle are examined, and not the generation in the upper 32 bits. So the slot may be
/// vacant or hold another type.
#[inline]
pub(crate) fn find(number: u64) -> Option<&'static Slot> {
    slot((number as u32).checked_sub(FIRST)?)
}

impl Slot {
    /// Returns true if a handle that was given to a type in this slot has not been freed, that is,
    /// if its generation is the current one of the slot.
    #[inline]
    pub(crate) fn still(&self, number: u64) -> bool {
        u64::from(self.generation.load(Ordering::Acquire)) == number >> 32
    }

    /// Returns the address of the node in the slot; `None` if the slot is vacant or the handle
    /// `number` has another generation than the slot. The caller may dereference the result only
    /// while it holds the lock of the table.
    #[inline]
    fn filled(&self, number: u64) -> Option<NonNull<Node>> {
        let node = NonNull::new(self.node.load(Ordering::Acquire))?;
        self.still(number).then_some(node)
    }
}

impl Table {
    /// Empties a slot, so that the handle of the type in it no longer names a type. Returns the
    /// slot as a vacant one. Returns `None` if all 2^32 generations of the slot have been used.
    /// Then the slot is not used again.
    fn emptied(&self, index: u32, slot: &Slot) -> Option<Vacant> {
        slot.node.store(ptr::null_mut(), Ordering::Relaxed);
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Release);
        (generation != 0).then_some(Vacant(index))
    }

    /// Takes a vacant slot from the table, and allocates a further chunk of slots if necessary.
    /// Fails with [`Code::OutOfMem`] if there is no memory, or if all slots that a handle can name
    /// have been given out.
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

/// Moves at least one and at most [`BATCH`] vacant slots from the table to `stock`, the list of a
/// thread. Fails with [`Code::OutOfMem`] if there is no memory or no vacant slot.
#[cold]
pub(crate) fn restock(stock: &mut Vec<Vacant>) -> Result<()> {
    stock.try_reserve(STOCK).map_err(|_| Code::OutOfMem)?;
    let mut table = TABLE.lock();
    stock.push(table.vacant()?);
    for _ in 1..BATCH {
        let Ok(vacant) = table.vacant() else { break };
        stock.push(vacant);
    }
    // Threads take slots from the end of `stock`. Because the order is reversed here, they use the
    // slots in the order in which the table gave them out.
    stock.reverse();
    Ok(())
}

/// Returns vacant slots to the table. If there is no memory to extend the list of vacant slots,
/// these slots are not used again.
#[cold]
pub(crate) fn put_back(slots: impl ExactSizeIterator<Item = Vacant>) {
    let mut table = TABLE.lock();
    if table.free.try_reserve(slots.len()).is_ok() {
        table.free.extend(slots);
    }
}

/// Maximum number of vacant slots that a thread owns.
pub(crate) const STOCK: usize = 2 * BATCH;

/// Puts a type into a vacant slot and returns the handle of the type.
#[inline]
pub(crate) fn fill(vacant: Vacant, node: Ref) -> Result<u64> {
    let Vacant(index) = vacant;
    let slot = slot(index).ok_or(Code::Internal)?;
    let generation = slot.generation.load(Ordering::Relaxed);
    slot.node.store(node.away(), Ordering::Release);
    Ok(u64::from(generation) << 32 | u64::from(index + FIRST))
}

/// Calls `f` with the derived type that a handle names, and returns the result. `f` must be short,
/// because the lock of the table is held while it runs. Fails with [`Code::Internal`] if the handle
/// names no derived type.
pub(crate) fn with<R>(number: u64, f: impl FnOnce(&Node) -> R) -> Result<R> {
    let slot = find(number).ok_or(Code::Internal)?;
    let _table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    // SAFETY: the slot holds a reference to the node, which `Ref::away` has given away. The
    // reference is taken back only under the lock, which `_table` holds here, so the node stays
    // alive during this call. Nobody changes the node, since `Ref::alone` needs the only reference.
    Ok(f(unsafe { node.as_ref() }))
}

/// Returns a reference to the derived type that a handle names. Fails with [`Code::Internal`] if
/// the handle names no derived type.
pub(crate) fn get(number: u64) -> Result<Ref> {
    let slot = find(number).ok_or(Code::Internal)?;
    let _table = TABLE.lock();
    let node = slot.filled(number).ok_or(Code::Internal)?;
    // SAFETY: `node` is what `Ref::away` returned in `fill`. The reference is taken back only under
    // the lock, which `_table` holds here, and therefore not during the call.
    Ok(unsafe { Ref::further(node) })
}

/// Frees the handle of a derived type. Returns the type, and its slot if the slot can be used
/// again. Fails with [`Code::Internal`] if the handle names no derived type.
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

/// Frees the handles of all derived types. Returns these types, so that the caller can drop them
/// while no lock is held.
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
