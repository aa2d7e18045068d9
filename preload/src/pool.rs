//! Staging buffers for messages: reused, because fresh pages cost more than packing into them.
//!
//! Sizes are powers of two; freed buffers wait in a list per size, up to a limit together, and short ones first with the thread that freed
//! them, two of a size: what a call sends and receives. What is in use and what waits stays below a cap; past it a message is the host's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use ddtc::process::{Guard, Mutex, is_inconsistent};
use ddtc_hosts::bypass::Bypass;

use crate::counted;
#[cfg(debug_assertions)]
use crate::fences::{self, Fenced};
use crate::outcome::bypassed;
use crate::reserve;
use crate::settings::settings;

/// The smallest buffer, as a power of two; also what all are aligned to at least.
const LEAST: u32 = 8;
/// Sizes that there are: up to 2^40 bytes.
const SIZES: usize = 33;
/// Sizes of which buffers wait with a thread: up to 64 KiB, 256 KiB together.
const OWN: usize = 9;
/// Bytes that may wait for their next use in the lists.
const WAITING: usize = 64 << 20;

/// Bytes of all buffers, in use or waiting, and of those that wait.
static HELD: AtomicUsize = AtomicUsize::new(0);
static IDLE: AtomicUsize = AtomicUsize::new(0);

static LISTS: [Mutex<Vec<Block>>; SIZES] = [const { Mutex::new(Vec::new()) }; SIZES];

struct Block(NonNull<u8>);

// SAFETY: plain memory that nobody else knows.
unsafe impl Send for Block {}

/// Blocks that wait with a thread; they go to the lists when it ends. A fork takes along what the forking thread has.
struct Own([[Cell<Option<Block>>; 2]; OWN]);

thread_local! {
    static MINE: Own = const { Own([const { [const { Cell::new(None) }; 2] }; OWN]) };
}

impl Own {
    /// The thread's buffer of a size, if one waits with it.
    #[inline]
    fn take(size: usize) -> Option<Block> {
        MINE.try_with(|mine| mine.0.get(size)?.iter().find_map(Cell::take)).ok()?
    }

    /// Leaves a buffer with the thread; gives back what does not stay.
    #[inline]
    fn leave(block: Block, size: usize) -> Option<Block> {
        let mut left = Some(block);
        // Late in the end of a thread nothing waits with it.
        let _ = MINE.try_with(|mine| {
            for place in mine.0.get(size).into_iter().flatten() {
                left = place.replace(left.take());
                if left.is_none() {
                    break;
                }
            }
        });
        left
    }

    /// Takes all of them.
    fn empty(&self, then: impl Fn(Block, usize)) {
        for (size, places) in self.0.iter().enumerate() {
            places.iter().filter_map(Cell::take).for_each(|block| then(block, size));
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // The lists of an inconsistent process may be locked for good.
        self.empty(if is_inconsistent() { |block, size| free(&block, size) } else { list_or_free });
    }
}

/// A staging buffer; waits for its next use when dropped.
pub(crate) struct Buffer {
    block: Block,
    size: usize,
    /// Where tests have set fences: memory of its own, for this use alone.
    #[cfg(debug_assertions)]
    fenced: Option<Fenced>,
}

fn list(size: usize) -> Guard<'static, Vec<Block>> {
    LISTS[size].lock()
}

fn layout(size: usize) -> Option<Layout> {
    let bytes = 1usize << (size + LEAST as usize);
    Layout::from_size_align(bytes, if bytes < 4096 { 64 } else { 4096 }).ok()
}

impl Buffer {
    /// Returns a buffer of at least `bytes` bytes; `None` past the cap or out of memory.
    pub(crate) fn get(bytes: u64) -> Option<Buffer> {
        let size = bytes.max(1).checked_next_power_of_two()?.ilog2().saturating_sub(LEAST) as usize;
        if size >= SIZES || reserve::is_short() {
            return refused();
        }
        #[cfg(debug_assertions)]
        if fences::wanted() {
            return Buffer::fenced(bytes.max(1) as usize, size);
        }
        if let Some(block) = Own::take(size) {
            return Some(Buffer::of(block, size));
        }
        if let Some(block) = list(size).pop() {
            IDLE.fetch_sub(layout(size)?.size(), Ordering::Relaxed);
            return Some(Buffer::of(block, size));
        }
        Buffer::fresh(size)
    }

    fn of(block: Block, size: usize) -> Buffer {
        Buffer {
            block,
            size,
            #[cfg(debug_assertions)]
            fenced: None,
        }
    }

    #[cfg(debug_assertions)]
    fn fenced(bytes: usize, size: usize) -> Option<Buffer> {
        let layout = Buffer::charge(size)?;
        let Some(fenced) = Fenced::new(bytes) else {
            HELD.fetch_sub(layout.size(), Ordering::Relaxed);
            return refused();
        };
        Some(Buffer { block: Block(fenced.at()), size, fenced: Some(fenced) })
    }

    /// Counts a buffer of a size as held, if the cap has room for it.
    fn charge(size: usize) -> Option<Layout> {
        let layout = layout(size)?;
        let cap = settings().staging_bytes;
        let take = |held: usize| held.checked_add(layout.size()).filter(|&sum| sum <= cap);
        if HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            trim();
            if HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                refused();
                return None;
            }
        }
        Some(layout)
    }

    #[cold]
    fn fresh(size: usize) -> Option<Buffer> {
        let layout = Buffer::charge(size)?;
        // SAFETY: the layout is not empty. Of the system itself: a message that finds no memory is the host's.
        match NonNull::new(unsafe { System.alloc(layout) }) {
            Some(at) => Some(Buffer::of(Block(at), size)),
            None => {
                HELD.fetch_sub(layout.size(), Ordering::Relaxed);
                refused()
            }
        }
    }

    /// Returns the bytes that it counts for.
    pub(crate) fn capacity(&self) -> usize {
        layout(self.size).map_or(0, |l| l.size())
    }

    /// Returns its memory.
    #[inline]
    pub(crate) fn at(&self) -> *mut c_void {
        self.block.0.as_ptr().cast()
    }
}

#[cold]
fn refused() -> Option<Buffer> {
    counted::OVER_STAGING_LIMIT.add();
    bypassed(Bypass::OverStagingLimit)
}

fn free(block: &Block, size: usize) {
    if let Some(layout) = layout(size) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: allocated with this layout by `fresh`, and the caller owned it.
        unsafe { System.dealloc(block.0.as_ptr(), layout) };
    }
}

/// Gives back what waits, but for what waits with other threads.
fn trim() {
    let _ = MINE.try_with(|mine| mine.empty(|block, size| free(&block, size)));
    for size in 0..SIZES {
        let blocks = std::mem::take(&mut *list(size));
        for block in &blocks {
            IDLE.fetch_sub(layout(size).map_or(0, |l| l.size()), Ordering::Relaxed);
            free(block, size);
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        if self.fenced.take().is_some() {
            HELD.fetch_sub(layout(self.size).map_or(0, |l| l.size()), Ordering::Relaxed);
            return;
        }
        if let Some(block) = Own::leave(Block(self.block.0), self.size) {
            list_or_free(block, self.size);
        }
    }
}

/// A buffer waits in its list if there is room: those of other sizes make some, which were used before it.
fn list_or_free(block: Block, size: usize) {
    let bytes = layout(size).map_or(0, |l| l.size());
    if bytes > WAITING {
        return free(&block, size);
    }
    let take = |idle: usize| idle.checked_add(bytes).filter(|&sum| sum <= WAITING);
    while IDLE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
        // The largest first: that frees the fewest.
        let other = (0..SIZES).rev().filter(|&other| other != size);
        let Some((old, other)) = other.filter_map(|other| Some((list(other).pop()?, other))).next() else {
            return free(&block, size);
        };
        IDLE.fetch_sub(layout(other).map_or(0, |l| l.size()), Ordering::Relaxed);
        free(&old, other);
    }
    list(size).push(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test: the pool is global.
    #[test]
    fn buffers_are_reused_and_capped() {
        let first = Buffer::get(1000).unwrap();
        let at = first.at();
        assert_eq!(at.addr() % 64, 0);
        drop(first);
        let again = Buffer::get(513).unwrap();
        assert_eq!((again.at(), HELD.load(Ordering::Relaxed)), (at, 1024));
        let cap = settings().staging_bytes as u64;
        // Address space only: nothing is touched.
        let large = Buffer::get(cap / 2).unwrap();
        assert!(Buffer::get(cap).is_none() && Buffer::get(u64::MAX).is_none());
        assert_eq!(counted::OVER_STAGING_LIMIT.get(), 1);
        drop((again, large));
        // What waits makes room.
        assert!(HELD.load(Ordering::Relaxed) == 1024 && Buffer::get(cap).is_some());
        assert_eq!((HELD.load(Ordering::Relaxed), IDLE.load(Ordering::Relaxed)), (0, 0));
        // Three wait, two of them with the thread that ends.
        let three = || drop([Buffer::get(300), Buffer::get(300), Buffer::get(300)]);
        let left = std::thread::spawn(move || (three(), IDLE.load(Ordering::Relaxed)).1).join().unwrap();
        assert_eq!((left, IDLE.load(Ordering::Relaxed), HELD.load(Ordering::Relaxed)), (512, 1536, 1536));
        // What was used last waits, whatever waited before it, up to the limit.
        drop([Buffer::get(WAITING as u64), Buffer::get(WAITING as u64 / 2)]);
        assert_eq!(IDLE.load(Ordering::Relaxed), WAITING / 2);
        drop(Buffer::get(WAITING as u64));
        assert_eq!((IDLE.load(Ordering::Relaxed), HELD.load(Ordering::Relaxed)), (WAITING, WAITING));
        drop(Buffer::get(WAITING as u64 + 1));
        assert_eq!(IDLE.load(Ordering::Relaxed), WAITING);
    }
}
