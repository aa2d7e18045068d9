//! Stream: a strided pack whose destination bypasses the caches.
//!
//! For payloads past the last-level cache that nobody reads soon: a plain store first reads the line that it overwrites, a
//! streaming store does not. Blocks are packed into a small buffer by the strided micro-kernel and leave it in whole lines; long
//! blocks leave directly. In cache this is far slower than plain stores: the choice is the caller's.

use super::functions::functions;
use super::isa::{Code, with_code};
use super::{block, strided};
use crate::target::Level;

functions! {
    /// Copies as [`strided::Function`] does, to a dense destination: `dst_stride` is `len`, or the blocks are copied by plain stores.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that are packed before they are streamed: well within L1, and many lines.
const BUFFER: usize = 8 << 10;
/// Blocks of at least this many bytes are streamed from where they are.
const LONG: usize = 2 << 10;

/// Copies `len` bytes: whole lines past the caches, the edges by plain stores.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, without overlap; the machine has the instructions.
#[inline(always)]
unsafe fn copy<I: Code>(dst: *mut u8, src: *const u8, len: usize) {
    let head = dst.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let done = head + lines * LINE;
    // SAFETY: three pieces of the block; the middle one starts a line.
    unsafe {
        block::run_time::<16>(dst, src, head);
        I::stream(dst.add(head), src.add(head), lines);
        block::run_time::<16>(dst.add(done), src.add(done), len - done);
    }
}

/// Copies `n` short blocks to a dense destination through a buffer.
///
/// # Safety
/// As [`strided::twin`] with `dst_stride = len < LONG`; `pack` is the strided micro-kernel for `len`; the machine has the
/// instructions.
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
    // Bytes at the start of the buffer that are packed and not yet stored.
    let mut held = 0;
    while n > 0 {
        let blocks = n.min(((BUFFER - held) / len).max(1));
        // SAFETY: `held < LINE` and `blocks * len` is at most `BUFFER - held`, or one block of less than `LONG`: it fits. The
        // bytes that are stored have been packed.
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
    // SAFETY: the last bytes of the last block.
    unsafe { block::run_time::<16>(dst, buffer, held) }
}

/// Blocks of any length.
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
        // SAFETY: the blocks are the caller's, in every case.
        unsafe {
            let pack = strided::function(len, I::LEVEL);
            if len == 0 || dst_stride != len as i64 {
                return pack(dst, src, n, dst_stride, src_stride, len);
            }
            if len < LONG as u64 {
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

/// Returns the function for blocks of any length.
pub fn function(level: Level) -> Function {
    with_code!(level, I => I::of::<Streamed>())
}

#[cfg(test)]
mod tests;
