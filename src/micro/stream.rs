//! Packing of strided blocks with streaming stores, which bypass the caches.
//!
//! Streaming is for payloads that exceed the last-level cache and that nobody reads soon. A plain
//! store first reads the cache line that it overwrites; a streaming store does not. Short blocks
//! are packed into a small buffer by the strided micro-kernel, and whole cache lines are streamed
//! from this buffer; long blocks are streamed directly. For data in the caches, streaming is far
//! slower than plain stores, so the caller decides when to use it.

use super::functions::functions;
use super::isa::{Code, with_code};
use super::{block, strided};
use crate::target::Level;

functions! {
    /// Copies block `i` of `len` bytes from `src + i * src_stride` to `dst + i * dst_stride`, in
    /// order, as [`strided::Function`] does. The blocks should follow each other directly in the
    /// destination (`dst_stride` equal to `len`); otherwise they are copied by plain stores.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Bytes of a cache line.
const LINE: usize = 64;
/// Number of bytes that are packed into a buffer before they are streamed from it: many cache
/// lines, but few enough to stay in the L1 cache.
const BUFFER: usize = 8 << 10;
/// Blocks of at least this many bytes are streamed without being packed into the buffer first.
const MIN_DIRECT_BLOCK: usize = 2 << 10;

/// Copies `len` bytes. Whole cache lines of the destination are written by streaming stores, which
/// bypass the caches; the bytes before the first and after the last whole line are copied by plain
/// stores.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`. The source must not overlap the
/// destination. The machine must have the instructions of `I`.
#[inline(always)]
unsafe fn copy<I: Code>(dst: *mut u8, src: *const u8, len: usize) {
    let head = dst.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let done = head + lines * LINE;
    // SAFETY: the three parts are consecutive and end at `len`, within the block that the caller
    // promises. If there is a line to stream, `dst + head` is a multiple of 64.
    unsafe {
        block::run_time::<16>(dst, src, head);
        I::stream(dst.add(head), src.add(head), lines);
        block::run_time::<16>(dst.add(done), src.add(done), len - done);
    }
}

/// Copies `n` short blocks of `len` bytes, at a stride of `src_stride` bytes, to a destination in
/// which they follow each other directly. The blocks are packed into a buffer, from which whole
/// cache lines are streamed.
///
/// # Safety
/// All blocks must be readable in the source, and `n * len` bytes must be writable at `dst`. The
/// two sides must not overlap. `len` must be greater than 0 and less than `MIN_DIRECT_BLOCK`.
/// `pack` must be the function of the family `strided` for blocks of `len` bytes. The machine must
/// have the instructions of `I`.
#[inline(always)]
unsafe fn buffered<I: Code>(
    mut dst: *mut u8,
    mut src: *const u8,
    mut n: usize,
    src_stride: isize,
    len: usize,
    pack: strided::Function,
) {
    let mut room = [std::mem::MaybeUninit::<u8>::uninit(); LINE + BUFFER];
    let buffer = room.as_mut_ptr().cast::<u8>();
    // `held` is the number of bytes at the start of the buffer that are packed but not yet stored
    // to the destination.
    let mut held = 0;
    while n > 0 {
        let blocks = n.min(((BUFFER - held) / len).max(1));
        // SAFETY: `held` is less than `LINE`. `blocks * len` is at most `BUFFER - held`, or it is
        // one block of less than `MIN_DIRECT_BLOCK` bytes, so the packed bytes fit into the buffer.
        // Only bytes that have been packed are stored. They go to `dst`, which has advanced by the
        // bytes stored before and has room for those of the remaining blocks.
        unsafe {
            pack(buffer.add(held), src, blocks as u64, len as i64, src_stride as i64, len as u64);
            let packed = held + blocks * len;
            let head = dst.align_offset(LINE).min(packed);
            block::run_time::<16>(dst, buffer, head);
            let lines = (packed - head) / LINE;
            I::stream(dst.add(head), buffer.add(head), lines);
            let done = head + lines * LINE;
            held = packed - done;
            std::ptr::copy(buffer.add(done), buffer, held);
            dst = dst.add(done);
        }
        src = src.wrapping_offset(blocks as isize * src_stride);
        n -= blocks;
    }
    // SAFETY: the `held` bytes are the last packed bytes, and `dst` is their place in the
    // destination.
    unsafe { block::run_time::<16>(dst, buffer, held) }
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of any length, generic over
/// the instruction set.
struct Streamed;

impl Body for Streamed {
    #[inline(always)]
    unsafe fn run<I: Functions>(
        mut dst: *mut u8,
        mut src: *const u8,
        n: u64,
        dst_stride: i64,
        src_stride: i64,
        len: u64,
    ) {
        // SAFETY: the caller promises `n` blocks of `len` bytes at these strides and the
        // instructions of `I`, whose level `pack` is made for. `buffered` gets blocks of 1 to
        // `MIN_DIRECT_BLOCK - 1` bytes and a dense destination; `copy` gets one block at a time.
        unsafe {
            let pack = strided::function(len, I::LEVEL);
            if len == 0 || dst_stride != len as i64 {
                return pack(dst, src, n, dst_stride, src_stride, len);
            }
            if len < MIN_DIRECT_BLOCK as u64 {
                buffered::<I>(dst, src, n as usize, src_stride as isize, len as usize, pack);
            } else {
                for _ in 0..n {
                    copy::<I>(dst, src, len as usize);
                    dst = dst.wrapping_add(len as usize);
                    src = src.wrapping_offset(src_stride as isize);
                }
            }
            I::fence();
        }
    }
}

/// Returns the function that packs blocks of any length with streaming stores, compiled with the
/// instructions of `level`.
pub fn function(level: Level) -> Function {
    with_code!(level, I => I::function::<Streamed>())
}

#[cfg(test)]
mod tests;
