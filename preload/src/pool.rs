//! Staging buffers for messages. They are reused, because it takes longer to get fresh pages than
//! to pack into them.
//!
//! The sizes of buffers are powers of two, and all buffers of one size form a size class. A buffer
//! that is no longer in use waits to be used again. Short buffers wait first with the thread that
//! used them, two of each size class: one for what a call sends, and one for what it receives. All
//! other buffers wait in the list of their size class, from which every thread takes buffers. All
//! lists together have a limit in bytes. The bytes of all buffers, in use and waiting, stay within
//! a cap (`DDTC_STAGING_MIB`). A message that would need more is bypassed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use ddtc::internal::process::{Guard, Mutex, is_inconsistent};
use ddtc_hosts::bypass::Bypass;

use crate::counted;
#[cfg(debug_assertions)]
use crate::fences::{self, Fenced};
use crate::outcome::bypassed;
use crate::reserve;
use crate::settings::settings;

/// Binary logarithm of the smallest size of a buffer: 256 bytes.
const MIN_SIZE_LOG2: u32 = 8;
/// Number of size classes of buffers: from 256 bytes to 2^40 bytes.
const SIZES: usize = 33;
/// Number of size classes whose buffers may wait with a thread. They are the smallest ones, up to
/// 64 KiB. Buffers that wait with one thread, two of each of these classes, take less than 256 KiB
/// together.
const OWN: usize = 9;
/// Maximum number of bytes of the buffers that wait in [`LISTS`].
const WAITING: usize = 64 << 20;

/// Bytes of all buffers, in use or waiting.
static TOTAL_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the buffers that wait in [`LISTS`].
static IDLE: AtomicUsize = AtomicUsize::new(0);

static LISTS: [Mutex<Vec<Block>>; SIZES] = [const { Mutex::new(Vec::new()) }; SIZES];

struct Block(NonNull<u8>);

// SAFETY: a block is plain memory, and only the owner of the `Block` has its address.
unsafe impl Send for Block {}

/// Blocks that wait with a thread, two for each of the first [`OWN`] size classes. When the thread
/// ends, they go to [`LISTS`]. In the child of a fork, the thread that forked keeps its blocks.
struct Own([[Cell<Option<Block>>; 2]; OWN]);

thread_local! {
    static MINE: Own = const { Own([const { [const { Cell::new(None) }; 2] }; OWN]) };
}

impl Own {
    /// Takes a block of the size class `size` that waits with this thread, if there is one.
    #[inline]
    fn take(size: usize) -> Option<Block> {
        MINE.try_with(|mine| mine.0.get(size)?.iter().find_map(Cell::take)).ok()?
    }

    /// Lets a block of the size class `size` wait with this thread. If two blocks of this class
    /// wait with the thread already, returns the block that has waited longest. If blocks of this
    /// class do not wait with threads, returns `block`.
    #[inline]
    fn leave(block: Block, size: usize) -> Option<Block> {
        let mut left = Some(block);
        // While a thread ends, its thread-local values are dropped. After that, no block can be
        // kept in them.
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

    /// Takes out all blocks that wait with the thread, and calls `then` with each block and its
    /// size class.
    fn empty(&self, then: impl Fn(Block, usize)) {
        for (size, places) in self.0.iter().enumerate() {
            places.iter().filter_map(Cell::take).for_each(|block| then(block, size));
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // In an inconsistent process the lists may be locked forever, so the blocks are freed and
        // not put into the lists.
        self.empty(if is_inconsistent() { |block, size| free(&block, size) } else { list_or_free });
    }
}

/// Staging buffer. When the buffer is dropped, its memory waits for the next use or is freed.
pub(crate) struct Buffer {
    block: Block,
    size: usize,
    /// Memory between two inaccessible regions, which is used for this buffer alone. `None` unless
    /// tests have switched on fences.
    #[cfg(debug_assertions)]
    fenced: Option<Fenced>,
}

fn list(size: usize) -> Guard<'static, Vec<Block>> {
    LISTS[size].lock()
}

/// Returns the memory layout of the buffers of the size class with index `size`. Buffers of 4096
/// bytes and more are aligned to 4096 bytes, and shorter buffers to 64 bytes.
fn layout(size: usize) -> Option<Layout> {
    let bytes = 1usize << (size + MIN_SIZE_LOG2 as usize);
    Layout::from_size_align(bytes, if bytes < 4096 { 64 } else { 4096 }).ok()
}

impl Buffer {
    /// Returns a buffer of at least `bytes` bytes. Returns `None` if the buffer would exceed the
    /// cap on all buffers, or if memory has run out.
    pub(crate) fn get(bytes: u64) -> Option<Buffer> {
        let size = bytes.max(1).checked_next_power_of_two()?.ilog2().saturating_sub(MIN_SIZE_LOG2) as usize;
        if size >= SIZES || reserve::is_short() {
            return refused();
        }
        #[cfg(debug_assertions)]
        if fences::wanted() {
            return Buffer::fenced(bytes.max(1) as usize, size);
        }
        if let Some(block) = Own::take(size) {
            return Some(Buffer::from_block(block, size));
        }
        if let Some(block) = list(size).pop() {
            IDLE.fetch_sub(layout(size)?.size(), Ordering::Relaxed);
            return Some(Buffer::from_block(block, size));
        }
        Buffer::fresh(size)
    }

    fn from_block(block: Block, size: usize) -> Buffer {
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
            TOTAL_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
            return refused();
        };
        Some(Buffer { block: Block(fenced.address()), size, fenced: Some(fenced) })
    }

    /// Adds the bytes of a buffer of the size class `size` to [`TOTAL_BYTES`], if the cap allows
    /// that. If it does not, frees waiting buffers and tries once more.
    fn charge(size: usize) -> Option<Layout> {
        let layout = layout(size)?;
        let cap = settings().staging_bytes;
        let take = |total: usize| total.checked_add(layout.size()).filter(|&sum| sum <= cap);
        if TOTAL_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            trim();
            if TOTAL_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                refused();
                return None;
            }
        }
        Some(layout)
    }

    #[cold]
    fn fresh(size: usize) -> Option<Buffer> {
        let layout = Buffer::charge(size)?;
        // SAFETY: the layout is not empty. The memory comes from the system's allocator directly,
        // and not from [`crate::reserve`], because ddtc can do without it: a message for which
        // there is no memory is bypassed.
        match NonNull::new(unsafe { System.alloc(layout) }) {
            Some(at) => Some(Buffer::from_block(Block(at), size)),
            None => {
                TOTAL_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
                refused()
            }
        }
    }

    /// Returns how many bytes of the cap on all buffers this buffer takes.
    pub(crate) fn capacity(&self) -> usize {
        layout(self.size).map_or(0, |l| l.size())
    }

    /// Returns the address of the buffer's memory.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
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
        TOTAL_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `fresh` has allocated the block with this layout. The caller owned the block and
        // does not use it any more.
        unsafe { System.dealloc(block.0.as_ptr(), layout) };
    }
}

/// Frees the buffers that wait in [`LISTS`] and with this thread. Buffers that wait with other
/// threads stay.
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
            TOTAL_BYTES.fetch_sub(layout(self.size).map_or(0, |l| l.size()), Ordering::Relaxed);
            return;
        }
        if let Some(block) = Own::leave(Block(self.block.0), self.size) {
            list_or_free(block, self.size);
        }
    }
}

/// Lets a block wait in the list of its size class. If the limit on all lists has no room for it,
/// first frees blocks of other size classes, which were used before this block. If no such block
/// waits, frees `block`.
fn list_or_free(block: Block, size: usize) {
    let bytes = layout(size).map_or(0, |l| l.size());
    if bytes > WAITING {
        return free(&block, size);
    }
    let take = |idle: usize| idle.checked_add(bytes).filter(|&sum| sum <= WAITING);
    while IDLE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
        // The largest blocks are freed first, so that few have to be freed.
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

    // This is one test, because the pool is global.
    #[test]
    fn buffers_are_reused_and_capped() {
        let first = Buffer::get(1000).unwrap();
        let at = first.address();
        assert_eq!(at.addr() % 64, 0);
        drop(first);
        let again = Buffer::get(513).unwrap();
        assert_eq!((again.address(), TOTAL_BYTES.load(Ordering::Relaxed)), (at, 1024));
        let cap = settings().staging_bytes as u64;
        // These buffers take only address space, since nothing is written to them.
        let large = Buffer::get(cap / 2).unwrap();
        assert!(Buffer::get(cap).is_none() && Buffer::get(u64::MAX).is_none());
        assert_eq!(counted::OVER_STAGING_LIMIT.get(), 1);
        drop((again, large));
        // Waiting buffers are freed to make room.
        assert!(TOTAL_BYTES.load(Ordering::Relaxed) == 1024 && Buffer::get(cap).is_some());
        assert_eq!((TOTAL_BYTES.load(Ordering::Relaxed), IDLE.load(Ordering::Relaxed)), (0, 0));
        // Three buffers of one size wait: two with the thread until it ends, and one in the lists.
        let three = || drop([Buffer::get(300), Buffer::get(300), Buffer::get(300)]);
        let left = std::thread::spawn(move || (three(), IDLE.load(Ordering::Relaxed)).1).join().unwrap();
        assert_eq!(
            (left, IDLE.load(Ordering::Relaxed), TOTAL_BYTES.load(Ordering::Relaxed)),
            (512, 1536, 1536)
        );
        // The buffer that was used last waits, and waiting buffers of other sizes are freed for it.
        // A buffer longer than the limit never waits.
        drop([Buffer::get(WAITING as u64), Buffer::get(WAITING as u64 / 2)]);
        assert_eq!(IDLE.load(Ordering::Relaxed), WAITING / 2);
        drop(Buffer::get(WAITING as u64));
        assert_eq!((IDLE.load(Ordering::Relaxed), TOTAL_BYTES.load(Ordering::Relaxed)), (WAITING, WAITING));
        drop(Buffer::get(WAITING as u64 + 1));
        assert_eq!(IDLE.load(Ordering::Relaxed), WAITING);
    }
}
