//! Types by number: slots that are reused, each life under another generation, so that the number of a freed type names nothing.
//!
//! A slot is 24 bytes: a program may hold 10^5 types, and what one takes beside its node is this. Slots stand in chunks that never move.
//! What calls read again and again, each thread keeps ([`crate::recent`]); here everything is behind one lock, held for a few instructions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::process::Mutex;

use crate::abi::{Code, Result};
use crate::builtin;
use crate::node::Node;
use crate::used::Used;

/// Slots of a chunk.
const CHUNK: usize = 256;
/// The first number that a derived type may have; those of predefined types are below.
const FIRST: u64 = 64;

#[derive(Default)]
struct Slot {
    node: Option<Arc<Node>>,
    used: Option<Arc<Used>>,
    generation: u32,
}

struct Table {
    chunks: Vec<Box<[Slot]>>,
    /// Slots that were used before; the last one freed comes first.
    free: Vec<u32>,
    /// Slots from here on were never used.
    fresh: u32,
}

static TABLE: Mutex<Table> = Mutex::new(Table { chunks: Vec::new(), free: Vec::new(), fresh: 0 });

/// Types freed so far: while it stands still, what a thread remembers of a living type holds.
static FREED: AtomicU64 = AtomicU64::new(0);

/// How many types have been freed.
#[inline]
pub(crate) fn freed() -> u64 {
    FREED.load(Ordering::Acquire)
}

/// Counts one more, under the lock.
fn count_freed() {
    FREED.store(FREED.load(Ordering::Relaxed) + 1, Ordering::Release);
}

impl Table {
    /// The slot of a derived type that lives.
    fn living(&mut self, number: u64) -> Option<&mut Slot> {
        let index = (number & u64::from(u32::MAX)).checked_sub(FIRST)? as usize;
        let slot = self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)?;
        (slot.node.is_some() && u64::from(slot.generation) == number >> 32).then_some(slot)
    }

    fn vacant(&mut self) -> Result<(u32, &mut Slot)> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                if u64::from(self.fresh) + FIRST >= u64::from(u32::MAX) {
                    return Err(Code::OutOfMem);
                }
                if self.fresh as usize == self.chunks.len() * CHUNK {
                    let mut chunk = Vec::new();
                    chunk.try_reserve_exact(CHUNK).map_err(|_| Code::OutOfMem)?;
                    self.chunks.try_reserve(1).map_err(|_| Code::OutOfMem)?;
                    chunk.resize_with(CHUNK, Slot::default);
                    self.chunks.push(chunk.into());
                }
                self.fresh += 1;
                self.fresh - 1
            }
        };
        let chunk = self.chunks.get_mut(index as usize / CHUNK);
        chunk.map(|chunk| (index, &mut chunk[index as usize % CHUNK])).ok_or(Code::Internal)
    }
}

/// Gives a type a number; `used` is what it shares with another number of the same tree.
pub(crate) fn insert(node: Arc<Node>, used: Option<Arc<Used>>) -> Result<u64> {
    let mut table = TABLE.lock();
    let (index, slot) = table.vacant()?;
    (slot.node, slot.used) = (Some(node), used);
    Ok(u64::from(slot.generation) << 32 | (u64::from(index) + FIRST))
}

/// The type of a number, predefined or not, and what is known of its use.
pub(crate) fn get(number: u64) -> Result<(Arc<Node>, Option<Arc<Used>>)> {
    if let Some(node) = builtin::node(number) {
        return Ok((Arc::clone(node), None));
    }
    let mut table = TABLE.lock();
    let slot = table.living(number).ok_or(Code::Internal)?;
    slot.node.clone().map(|node| (node, slot.used.clone())).ok_or(Code::Internal)
}

/// Keeps what is known of the use of a type: that of whoever came first, if it still lives.
pub(crate) fn keep(number: u64, used: Arc<Used>) -> Arc<Used> {
    let mut table = TABLE.lock();
    match table.living(number) {
        Some(slot) => Arc::clone(slot.used.get_or_insert(used)),
        None => used,
    }
}

/// Ends the life of a number.
pub(crate) fn remove(number: u64) -> Result<()> {
    let dead = {
        let mut table = TABLE.lock();
        let slot = table.living(number).ok_or(Code::Internal)?;
        let dead = (slot.node.take(), slot.used.take());
        let last = slot.generation == u32::MAX;
        slot.generation = slot.generation.wrapping_add(1);
        if !last {
            // Fewer than slots, for which there was memory.
            let index = (number as u32) - FIRST as u32;
            table.free.push(index);
        }
        count_freed();
        dead
    };
    // Outside the lock: a tree may be large.
    drop(dead);
    Ok(())
}

/// Frees all types.
pub(crate) fn clear() {
    let mut dead = Vec::new();
    {
        let mut table = TABLE.lock();
        for index in 0..table.fresh {
            let (chunk, i) = (index as usize / CHUNK, index as usize % CHUNK);
            let slot = &mut table.chunks[chunk][i];
            let Some(node) = slot.node.take() else { continue };
            dead.push((node, slot.used.take()));
            let last = slot.generation == u32::MAX;
            slot.generation = slot.generation.wrapping_add(1);
            if !last {
                table.free.push(index);
            }
        }
        count_freed();
    }
    drop(dead);
}

/// What a slot takes is kept in sight.
const _: () = assert!(size_of::<Slot>() <= 24);
