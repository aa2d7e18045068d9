//! The baseline instruction set: the instructions that every machine of the architecture has, which
//! on x86-64 include SSE2.

use super::{Code, Isa, MadeFor};
use crate::micro::registers::{ALL, Registers};
use crate::micro::units::{Reverse, by_units};
use crate::target::Level;

/// The baseline instruction set, whose code is portable except for a few functions on x86-64.
pub(in crate::micro) struct Baseline;

impl Registers for Baseline {
    const WIDE: usize = 16;
}

impl Isa for Baseline {
    const LEVEL: Level = Level::Baseline;
    type Below = Baseline;
    const MADE_FOR: MadeFor = MadeFor { strided: ALL, rows: ALL, transposed: ALL };
}

/// Reverses the bytes of each unit, one unit after the other. The function is called and not
/// inlined: without an instruction that reverses the bytes of a register, a row of units takes a
/// few hundred bytes of code, and the micro-kernels that reverse units contain dozens of such rows.
impl Reverse for Baseline {
    #[inline(never)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: the conditions of `by_units` are those of this function.
        unsafe { by_units::<UNIT, LEN>(dst, src) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Code for Baseline {
    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        for i in 0..4 * lines {
            // SAFETY: the 16 bytes at `16 * i` lie within the lines that the caller promises on
            // both sides. In `dst`, which is a multiple of 64, they are aligned to 16.
            unsafe { _mm_stream_si128(dst.add(16 * i).cast(), _mm_loadu_si128(src.add(16 * i).cast())) }
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every x86-64 machine has the instruction.
        unsafe { std::arch::x86_64::_mm_sfence() }
    }

    #[inline(always)]
    fn prefetch<const WRITE: bool>(address: *const u8) {
        #[cfg(not(miri))]
        // SAFETY: a prefetch is a hint, which does not fail for any address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
            if WRITE {
                _mm_prefetch::<_MM_HINT_ET0>(address.cast())
            } else {
                _mm_prefetch::<_MM_HINT_T0>(address.cast())
            }
        }
        #[cfg(miri)]
        let _ = address;
    }
}

/// On architectures other than x86-64, `stream` uses plain stores, because portable code has no
/// stores that bypass the caches.
#[cfg(not(target_arch = "x86_64"))]
impl Code for Baseline {
    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        // SAFETY: the caller promises `lines` lines of 64 bytes on both sides, without overlap.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, 64 * lines) }
    }

    fn fence() {}

    #[inline(always)]
    fn prefetch<const WRITE: bool>(_address: *const u8) {}
}
