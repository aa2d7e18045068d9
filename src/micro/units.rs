//! Units: 2, 4, 8 or 16 bytes whose order is reversed, one by one, in registers, and by rows of them.

use super::block;
use super::cursor::Cursor;

/// An unsigned integer of a unit's size.
pub(super) trait Unit: Copy {
    fn swapped(self) -> Self;
}

macro_rules! units {
    ($($t:ty)*) => {$(
        impl Unit for $t {
            #[inline(always)]
            fn swapped(self) -> $t {
                self.swap_bytes()
            }
        }
    )*};
}
units! { u16 u32 u64 u128 }

/// Swaps one unit.
///
/// # Safety
/// It is readable at `src` and writable at `dst`.
#[inline(always)]
pub(super) unsafe fn one<U: Unit>(dst: *mut u8, src: *const u8) {
    // SAFETY: as promised by the caller.
    unsafe { dst.cast::<U>().write_unaligned(src.cast::<U>().read_unaligned().swapped()) }
}

/// Swaps `LEN` bytes of units of `UNIT` bytes, one by one: what serves where an instruction set reverses no bytes in a register.
///
/// # Safety
/// They are readable at `src` and writable at `dst`, without overlap.
#[inline(always)]
pub(super) unsafe fn by_units<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
    for at in (0..LEN).step_by(UNIT) {
        // SAFETY: one of those units.
        unsafe {
            let (dst, src) = (dst.add(at), src.add(at));
            match UNIT {
                2 => one::<u16>(dst, src),
                4 => one::<u32>(dst, src),
                8 => one::<u64>(dst, src),
                _ => one::<u128>(dst, src),
            }
        }
    }
}

/// Returns the places in a register of 16 bytes that its bytes come from.
pub(super) const fn places<const UNIT: usize>() -> [u8; 16] {
    let mut places = [0; 16];
    let mut i = 0;
    while i < 16 {
        places[i] = (i ^ (UNIT - 1)) as u8;
        i += 1;
    }
    places
}

/// Registers of units.
pub(super) trait Reverse {
    /// Reverses the bytes of every unit of `UNIT` bytes (2, 4, 8 or 16) in a row of `LEN` (16, 32 or 64).
    ///
    /// # Safety
    /// They are readable at `src` and writable at `dst`, without overlap.
    #[inline(always)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: as promised by the caller.
        unsafe { by_units::<UNIT, LEN>(dst, src) }
    }
}

/// Permutation of units one by one, on every machine.
struct OneByOne;

impl Reverse for OneByOne {}

/// Bytes from which a block is written by whole lines: a store that crosses them goes to both.
const ALIGNED: usize = 512;

/// Swaps `len` bytes of units that lie one after the other.
///
/// # Safety
/// They are readable at `src` and writable at `dst`, without overlap; `len` is a multiple of the unit; the machine has the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn dense<I: Reverse, U: Unit, const UNIT: usize>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: registers, then units, that end at or before `len`; two of them may overlap where the first whole line begins.
    unsafe {
        let before = (dst as usize).wrapping_neg() % 64;
        if len >= ALIGNED && before > 0 && before.is_multiple_of(UNIT) {
            I::reverse::<UNIT, 64>(dst, src);
            at = before;
        }
        while len - at >= 256 {
            for row in 0..4 {
                I::reverse::<UNIT, 64>(dst.add(at + 64 * row), src.add(at + 64 * row));
            }
            at += 256;
        }
        while len - at >= 64 {
            I::reverse::<UNIT, 64>(dst.add(at), src.add(at));
            at += 64;
        }
        if len - at >= 32 {
            I::reverse::<UNIT, 32>(dst.add(at), src.add(at));
            at += 32;
        }
        if len - at >= 16 {
            I::reverse::<UNIT, 16>(dst.add(at), src.add(at));
            at += 16;
        }
        while at < len {
            one::<U>(dst.add(at), src.add(at));
            at += UNIT;
        }
    }
}

/// Swaps one block of units of `unit` bytes; of one byte copies it. AVX-512 asks for those before an aligned one.
///
/// # Safety
/// `len` bytes, whole units, are readable at `src` and writable at `dst`, without overlap.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
#[inline(always)]
pub(super) unsafe fn swapped(dst: *mut u8, src: *const u8, len: usize, unit: usize) {
    // SAFETY: the block, or units of it.
    unsafe {
        match unit {
            1 => block::run_time::<16>(dst, src, len),
            2 => dense::<OneByOne, u16, 2>(dst, src, len),
            4 => dense::<OneByOne, u32, 4>(dst, src, len),
            8 => dense::<OneByOne, u64, 8>(dst, src, len),
            _ => dense::<OneByOne, u128, 16>(dst, src, len),
        }
    }
}

/// Swaps eight units of `UNIT` bytes from a dense source, short ones by words of 8 bytes: in a swapped word the first unit is the highest.
///
/// # Safety
/// Eight blocks of `UNIT` bytes remain in `dst`, writable, and are readable at `src`, without overlap.
#[inline(always)]
pub(super) unsafe fn scatter<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
    let units = if UNIT < 8 { 8 / UNIT } else { 1 };
    // SAFETY: unit `u` of those, or the 8 bytes of `units` of them.
    unsafe {
        for first in (0..8).step_by(units) {
            let src = src.add(first * UNIT);
            if UNIT >= 8 {
                by_units::<UNIT, UNIT>(dst.at(first), src);
                continue;
            }
            let word = src.cast::<[u8; 8]>().read();
            let word = u64::from_be_bytes(word);
            for u in 0..units {
                let unit = word >> (8 * UNIT * (units - 1 - u));
                match UNIT {
                    2 => dst.at(first + u).cast::<u16>().write_unaligned(unit as u16),
                    _ => dst.at(first + u).cast::<u32>().write_unaligned(unit as u32),
                }
            }
        }
    }
}
