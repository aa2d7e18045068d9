//! Reversal of units. A unit is 2, 4, 8 or 16 consecutive bytes whose order is to be reversed.
//! Units are reversed one by one in integer registers, or in rows of 16, 32 or 64 bytes.

use super::block;
use super::cursor::Cursor;

/// Unsigned integer with as many bytes as a unit, a group of bytes whose order is reversed.
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

/// Copies one unit, which has the size of `U`, and reverses the order of its bytes.
///
/// # Safety
/// The unit must be readable at `src` and writable at `dst`.
#[inline(always)]
pub(super) unsafe fn one<U: Unit>(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller promises that the unit is readable at `src` and writable at `dst`. Neither
    // access needs alignment.
    unsafe { dst.cast::<U>().write_unaligned(src.cast::<U>().read_unaligned().swapped()) }
}

/// Copies `LEN` bytes and reverses the bytes of every unit of `UNIT` bytes in them, one unit after
/// the other. This function serves instruction sets that cannot reverse bytes in a vector register.
///
/// # Safety
/// The bytes must be readable at `src` and writable at `dst`. The source must not overlap the
/// destination. `LEN` must be a multiple of `UNIT`.
#[inline(always)]
pub(super) unsafe fn by_units<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
    for at in (0..LEN).step_by(UNIT) {
        // SAFETY: the unit at `at` lies within the `LEN` bytes, which are readable and writable by
        // the caller's promise.
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

/// Returns the table for a shuffle that reverses the bytes of every unit of `UNIT` bytes in a
/// register of 16 bytes: entry `i` is the index of the byte that the shuffle moves to byte `i`.
pub(super) const fn places<const UNIT: usize>() -> [u8; 16] {
    let mut places = [0; 16];
    let mut i = 0;
    while i < 16 {
        places[i] = (i ^ (UNIT - 1)) as u8;
        i += 1;
    }
    places
}

/// How an instruction set reverses units, which are groups of 2 to 16 bytes.
pub(super) trait Reverse {
    /// Copies a row of `LEN` contiguous bytes (16, 32 or 64) and reverses the bytes of every unit
    /// of `UNIT` bytes (2, 4, 8 or 16) in it.
    ///
    /// # Safety
    /// The row must be readable at `src` and writable at `dst`. The source must not overlap the
    /// destination.
    #[inline(always)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: the caller promises the row on both sides. `LEN` is a multiple of `UNIT`, as both
        // are powers of two and `LEN` is not the smaller one.
        unsafe { by_units::<UNIT, LEN>(dst, src) }
    }
}

/// Marker type. Its implementation of `Reverse` reverses units one by one, which works on every
/// machine.
struct OneByOne;

impl Reverse for OneByOne {}

/// Minimum length in bytes of a block whose stores are aligned to whole cache lines. A store that
/// crosses the boundary between two cache lines writes to both.
const ALIGNED: usize = 512;

/// Copies `len` bytes, which are units of `UNIT` bytes that follow each other directly, and
/// reverses the bytes of each unit.
///
/// # Safety
/// The bytes must be readable at `src` and writable at `dst`. The source must not overlap the
/// destination. `len` must be a multiple of `UNIT`. The machine must have the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn dense<I: Reverse, U: Unit, const UNIT: usize>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: every row and every unit below begins at a multiple of the unit and ends at or before
    // `len`. The row before the first whole line and the one that begins there may overlap, which
    // writes the same bytes twice.
    unsafe {
        let before = (dst as usize).wrapping_neg() % 64;
        if len >= ALIGNED && before > 0 && before.is_multiple_of(UNIT) {
            I::reverse::<UNIT, 64>(dst, src);
            at = before;
        }
        // From here on `at` is the number of bytes from the start that need not be moved again. The
        // rest of the bytes is moved in rows of 64, 32 and 16 bytes, and then unit by unit.
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

/// Copies one block and reverses the bytes of each of its units of `unit` bytes; with units of 1
/// byte it only copies. The code for AVX-512 calls this function for the blocks before the first
/// block in a cache line.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`. The source must not overlap the
/// destination. `len` must be a multiple of `unit`.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
#[inline(always)]
pub(super) unsafe fn swapped(dst: *mut u8, src: *const u8, len: usize, unit: usize) {
    // SAFETY: the caller promises `len` bytes on both sides, which are whole units. `OneByOne`
    // needs no special instructions.
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

/// Copies eight units of `UNIT` bytes, which follow each other directly at `src`, to the next eight
/// blocks of `dst`, and reverses the bytes of each unit. Units shorter than 8 bytes are loaded in
/// words of 8 bytes. All bytes of a word are reversed at once; its first unit is then in the
/// highest bits.
///
/// # Safety
/// Eight blocks of `UNIT` bytes must remain in `dst` and be writable. `8 * UNIT` bytes must be
/// readable at `src`. The two sides must not overlap.
#[inline(always)]
pub(super) unsafe fn scatter<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
    let units = if UNIT < 8 { 8 / UNIT } else { 1 };
    // SAFETY: `first` is less than 8, so unit `first` remains on both sides. For shorter units, so
    // do the `units` units from `first` on, which are the 8 bytes of the word; `dst.at` gets
    // numbers of at most 7.
    unsafe {
        for first in (0..8).step_by(units) {
            let src = src.add(first * UNIT);
            if UNIT >= 8 {
                by_units::<UNIT, UNIT>(dst.address(first), src);
                continue;
            }
            let word = src.cast::<[u8; 8]>().read();
            let word = u64::from_be_bytes(word);
            for u in 0..units {
                let unit = word >> (8 * UNIT * (units - 1 - u));
                match UNIT {
                    2 => dst.address(first + u).cast::<u16>().write_unaligned(unit as u16),
                    _ => dst.address(first + u).cast::<u32>().write_unaligned(unit as u32),
                }
            }
        }
    }
}
