//! Stream: a strided pack whose destination bypasses the caches.
//!
//! For payloads past the last-level cache that nobody reads soon: a plain store first reads the line that it overwrites, a
//! streaming store does not. Blocks are packed into a small buffer by the strided micro-kernel and leave it in whole lines; long
//! blocks leave directly. In cache this is far slower than plain stores: the choice is the caller's.

use super::{Family, block, strided};
use crate::target::Level;

/// As [`strided::Function`], with the destination dense: `dst_stride` is `len`, or the blocks are copied by plain stores.
pub type Function = strided::Function;

/// Equal blocks at a constant step, packed past the caches.
pub static FAMILY: Family = Family {
    name: "stream",
    directed: false,
    parameters: strided::parameters,
    variant: Family::plain,
    address: |micro| function(micro.level()) as usize,
    check: Family::anything,
    blocks: strided::blocks,
};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that are packed before they are streamed: well within L1, and many lines.
const BUFFER: usize = 8 << 10;
/// Blocks of at least this many bytes are streamed from where they are.
const LONG: usize = 2 << 10;

/// Stores whole lines past the caches.
trait Lines {
    /// Copies `lines` lines.
    ///
    /// # Safety
    /// That many lines are readable at `src` and writable at `dst`, which starts a line; the machine has the instructions.
    unsafe fn copy(dst: *mut u8, src: *const u8, lines: usize);

    /// Orders the streamed lines before whatever is stored next.
    fn fence();
}

/// Plain stores, where there are no others.
#[cfg(not(target_arch = "x86_64"))]
struct Cached;

#[cfg(not(target_arch = "x86_64"))]
impl Lines for Cached {
    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, lines: usize) {
        // SAFETY: as promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, lines * LINE) }
    }

    fn fence() {}
}

/// Pairs of registers, marked as not soon used again. The mark is a hint: cores that see whole lines stored in a row may not need it.
#[cfg(target_arch = "aarch64")]
struct Neon;

#[cfg(target_arch = "aarch64")]
impl Lines for Neon {
    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, lines: usize) {
        use std::arch::aarch64::vld1q_u8;
        for i in 0..lines {
            // SAFETY: one line, which the instructions store and nothing else.
            unsafe {
                let s = src.add(LINE * i);
                std::arch::asm!(
                    "stnp {0:q}, {1:q}, [{d}]",
                    "stnp {2:q}, {3:q}, [{d}, #32]",
                    in(vreg) vld1q_u8(s),
                    in(vreg) vld1q_u8(s.add(16)),
                    in(vreg) vld1q_u8(s.add(32)),
                    in(vreg) vld1q_u8(s.add(48)),
                    d = in(reg) dst.add(LINE * i),
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    /// Nothing: such stores are ordered as others are.
    fn fence() {}
}

#[cfg(target_arch = "x86_64")]
struct Sse2;

#[cfg(target_arch = "x86_64")]
impl Lines for Sse2 {
    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, lines: usize) {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        for i in 0..4 * lines {
            // SAFETY: 16 bytes of the lines, aligned to 16 in `dst`.
            unsafe { _mm_stream_si128(dst.add(16 * i).cast(), _mm_loadu_si128(src.add(16 * i).cast())) }
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every x86-64 has the instruction.
        unsafe { std::arch::x86_64::_mm_sfence() }
    }
}

#[cfg(target_arch = "x86_64")]
struct Avx;

#[cfg(target_arch = "x86_64")]
impl Lines for Avx {
    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, lines: usize) {
        use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
        for i in 0..lines {
            // SAFETY: one line, aligned in `dst`.
            unsafe {
                let (low, high) = (
                    _mm256_loadu_si256(src.add(LINE * i).cast()),
                    _mm256_loadu_si256(src.add(LINE * i + 32).cast()),
                );
                _mm256_stream_si256(dst.add(LINE * i).cast(), low);
                _mm256_stream_si256(dst.add(LINE * i + 32).cast(), high);
            }
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every x86-64 has the instruction.
        unsafe { std::arch::x86_64::_mm_sfence() }
    }
}

/// Copies `len` bytes: whole lines past the caches, the edges by plain stores.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, without overlap; the machine has the instructions.
#[inline(always)]
unsafe fn copy<S: Lines>(dst: *mut u8, src: *const u8, len: usize) {
    let head = dst.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let done = head + lines * LINE;
    // SAFETY: three pieces of the block; the middle one starts a line.
    unsafe {
        block::run_time::<16>(dst, src, head);
        S::copy(dst.add(head), src.add(head), lines);
        block::run_time::<16>(dst.add(done), src.add(done), len - done);
    }
}

/// Copies `n` short blocks to a dense destination through a buffer.
///
/// # Safety
/// As [`strided::twin`] with `dst_stride = len < LONG`; `pack` is the strided micro-kernel for `len`; the machine has the
/// instructions.
#[inline(always)]
unsafe fn buffered<S: Lines>(
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
            S::copy(dst.add(head), buffer.add(head), lines);
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

macro_rules! function {
    ($name:ident, $lines:ty, $level:expr, $(#[$feature:meta])?) => {
        /// # Safety
        /// As [`strided::twin`], on a machine of this level.
        $(#[$feature])?
        unsafe extern "C" fn $name(
            mut dst: *mut u8,
            mut src: *const u8,
            n: u64,
            dst_stride: i64,
            src_stride: i64,
            len: u64,
        ) {
            // SAFETY: the blocks are the caller's, in every case.
            unsafe {
                let pack = strided::function(len, $level);
                if len == 0 || dst_stride != len as i64 {
                    return pack(dst, src, n, dst_stride, src_stride, len);
                }
                if len < LONG as u64 {
                    buffered::<$lines>(dst, src, n as usize, src_stride as isize, len as usize, pack);
                } else {
                    for _ in 0..n {
                        copy::<$lines>(dst, src, len as usize);
                        dst = dst.wrapping_add(len as usize);
                        src = src.wrapping_offset(src_stride as isize);
                    }
                }
                <$lines>::fence();
            }
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
function!(baseline, Cached, Level::Baseline,);
#[cfg(target_arch = "aarch64")]
function!(neon, Neon, Level::Neon,);
#[cfg(target_arch = "x86_64")]
function!(baseline, Sse2, Level::Baseline,);
#[cfg(target_arch = "x86_64")]
function!(avx2, Avx, Level::Avx2, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
#[cfg(target_arch = "x86_64")]
function!(avx512, Avx, Level::Avx512, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);

/// The function for blocks of any length.
pub fn function(level: Level) -> Function {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512,
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon,
        _ => baseline,
    }
}

#[cfg(test)]
mod tests;
