//! Swap: strided blocks of units of 2, 4, 8 or 16 bytes, the bytes of every unit reversed: external32 on a little-endian machine.
//!
//! Long blocks go by registers of whole units. Blocks of one unit are first gathered, or last scattered, as `strided` does it, through a
//! register's worth of memory that never leaves the first-level cache.

use super::cursor::{Cursor, Strided};
use super::isa::{Code, by_length, for_each_code, with_code};
use super::{Actual, Call, Direction, Family, Micro, Role, Transform, strided};
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

/// As [`strided::Function`], for blocks of `len` bytes, a multiple of the unit that the function is made for.
pub type Function = strided::Function;

/// Equal blocks at a constant step on both sides, the bytes of every unit reversed.
pub static FAMILY: Family = Family {
    name: "swap",
    directed: false,
    parameters: strided::parameters,
    variant: |unit, f| write!(f, ".{unit}"),
    transform: Transform::Reversed,
    address: |micro| function(micro.variant().into(), micro.level()).map_or(0, |f| f as usize),
    check,
    blocks: strided::blocks,
    takes: Family::nothing,
};

/// Bytes of the units that there are functions for.
pub const UNITS: [u8; 4] = [2, 4, 8, 16];

fn check(call: &Actual<'_>) -> Result<(), &'static str> {
    let unit = u64::from(call.callee().variant());
    match UNITS.iter().any(|&u| u64::from(u) == unit) {
        false => Err("units that no micro-kernel is made for"),
        // For one instance: what carries the count is a multiple for any.
        true if !call.number(Role::Length).is_multiple_of(unit) => Err("blocks that are not whole units"),
        true => Ok(()),
    }
}

/// The call that moves `n` blocks of `len` bytes, the one `step` from the other, in units of `unit` bytes; none if there is no such unit.
pub fn call(
    direction: Direction,
    level: Level,
    n: Quantity,
    step: Offsets,
    len: Quantity,
    unit: i64,
) -> Option<Call> {
    let unit = *UNITS.iter().find(|&&u| i64::from(u) == unit)?;
    Some(strided::with(Micro::new(&FAMILY, direction, level).with_variant(unit), n, step, len))
}

/// The meaning: every unit's bytes, the last first.
///
/// # Safety
/// As [`strided::twin`]; `len` is a multiple of `UNIT`.
pub unsafe extern "C" fn twin<const UNIT: usize>(
    dst: *mut u8,
    src: *const u8,
    n: u64,
    dst_stride: i64,
    src_stride: i64,
    len: u64,
) {
    for i in 0..n as i64 {
        for k in 0..len as usize {
            let from = k / UNIT * UNIT + (UNIT - 1 - k % UNIT);
            let d = dst.wrapping_offset((i * dst_stride) as isize).wrapping_add(k);
            let s = src.wrapping_offset((i * src_stride) as isize).wrapping_add(from);
            // SAFETY: bytes of block `i`, which the caller promises.
            unsafe { d.write(s.read()) }
        }
    }
}

/// Bytes for a group of blocks of one unit: eight of the longest.
const BUFFER: usize = 128;

/// An unsigned integer of a unit's size.
trait Unit: Copy {
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
unsafe fn one<U: Unit>(dst: *mut u8, src: *const u8) {
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

/// The places in a register of 16 bytes that its bytes come from.
pub(super) const fn places<const UNIT: usize>() -> [u8; 16] {
    let mut places = [0; 16];
    let mut i = 0;
    while i < 16 {
        places[i] = (i ^ (UNIT - 1)) as u8;
        i += 1;
    }
    places
}

/// Swaps `len` bytes of units that lie one after the other.
///
/// # Safety
/// They are readable at `src` and writable at `dst`, without overlap; `len` is a multiple of the unit; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn dense<I: Code, U: Unit, const UNIT: usize>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: registers, then units, that end at or before `len`.
    unsafe {
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

/// Swaps `n` blocks of one unit, `UNIT` bytes.
///
/// # Safety
/// As [`twin`] with `len = UNIT`; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn single<I: Code, U: Unit, const UNIT: usize>(
    mut dst: *mut u8,
    mut src: *const u8,
    mut n: usize,
    (ds, ss): (isize, isize),
) {
    let mut buffer = [0_u8; BUFFER];
    let (gathered, scattered) = const { (by_length(I::GATHERED, UNIT), by_length(I::SCATTERED, UNIT)) };
    // Whether an instruction set moves blocks of this length in groups, and a group fits the buffer.
    let fits = |blocks: usize| blocks > 0 && blocks * UNIT <= BUFFER;
    // SAFETY: blocks that remain, a group of them at a time, then one by one; the buffer holds a group.
    unsafe {
        if ds == UNIT as isize && fits(gathered) {
            let mut from = Strided::new(src.cast_mut(), ss);
            while n >= gathered {
                I::gather::<UNIT>(buffer.as_mut_ptr(), &from);
                dense::<I, U, UNIT>(dst, buffer.as_ptr(), gathered * UNIT);
                from.advance(gathered);
                dst = dst.wrapping_add(gathered * UNIT);
                src = src.wrapping_offset(gathered as isize * ss);
                n -= gathered;
            }
        } else if ss == UNIT as isize && fits(scattered) {
            let mut to = Strided::new(dst, ds);
            while n >= scattered {
                dense::<I, U, UNIT>(buffer.as_mut_ptr(), src, scattered * UNIT);
                I::scatter::<UNIT>(&to, buffer.as_ptr());
                to.advance(scattered);
                src = src.wrapping_add(scattered * UNIT);
                dst = dst.wrapping_offset(scattered as isize * ds);
                n -= scattered;
            }
        }
        for _ in 0..n {
            one::<U>(dst, src);
            (dst, src) = (dst.wrapping_offset(ds), src.wrapping_offset(ss));
        }
    }
}

/// Any blocks of whole units.
///
/// # Safety
/// As [`twin`]; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn any<I: Code, U: Unit, const UNIT: usize>(
    mut dst: *mut u8,
    mut src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
    len: usize,
) {
    // SAFETY: the same blocks, or one after the other.
    unsafe {
        if len == UNIT {
            return single::<I, U, UNIT>(dst, src, n, (ds, ss));
        }
        // Blocks of one register: nothing is asked of each.
        macro_rules! registers {
            ($($len:literal)*) => {
                match len {
                    $($len => for _ in 0..n {
                        I::reverse::<UNIT, $len>(dst, src);
                        (dst, src) = (dst.wrapping_offset(ds), src.wrapping_offset(ss));
                    },)*
                    _ => for _ in 0..n {
                        dense::<I, U, UNIT>(dst, src, len);
                        (dst, src) = (dst.wrapping_offset(ds), src.wrapping_offset(ss));
                    },
                }
            };
        }
        registers! { 16 32 64 }
    }
}

/// The C functions of one instruction set.
trait Functions: Code {
    /// That for units of so many bytes, if there is one.
    fn of(unit: u64) -> Option<Function>;
}

macro_rules! functions {
    ($isa:ty, $(#[$feature:meta])?) => {
        impl Functions for $isa {
            #[inline(always)]
            fn of(unit: u64) -> Option<Function> {
                /// # Safety
                /// As [`twin`], on a machine of this instruction set.
                $(#[$feature])?
                unsafe extern "C" fn entry<U: Unit, const UNIT: usize>(
                    dst: *mut u8,
                    src: *const u8,
                    n: u64,
                    dst_stride: i64,
                    src_stride: i64,
                    len: u64,
                ) {
                    let strides = (dst_stride as isize, src_stride as isize);
                    // SAFETY: as promised by the caller.
                    unsafe { any::<$isa, U, UNIT>(dst, src, n as usize, strides, len as usize) }
                }
                match unit {
                    2 => Some(entry::<u16, 2>),
                    4 => Some(entry::<u32, 4>),
                    8 => Some(entry::<u64, 8>),
                    16 => Some(entry::<u128, 16>),
                    _ => None,
                }
            }
        }
    };
}

for_each_code!(functions);

/// The function for units of `unit` bytes, if there is one.
pub fn function(unit: u64, level: Level) -> Option<Function> {
    with_code!(level, I => <I as Functions>::of(unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micro::testing::{Guarded, check, span};

    #[test]
    fn two_blocks_by_hand() {
        let src = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        for level in Level::available() {
            let mut dst = [0; 8];
            // SAFETY: blocks of 4 bytes at 0 and 6 of 10 bytes go to the 8 bytes of `dst`.
            unsafe { function(2, level).unwrap()(dst.as_mut_ptr(), src.as_ptr(), 2, 4, 6, 4) };
            assert_eq!(dst, [2, 1, 4, 3, 8, 7, 10, 9], "{level}");
        }
    }

    #[test]
    fn every_unit_every_stride_between_guard_pages() {
        let twins: [Function; 4] = [twin::<2>, twin::<4>, twin::<8>, twin::<16>];
        let mut areas = (Guarded::new(300 << 10), Guarded::new(300 << 10));
        for (level, (unit, twin)) in
            Level::available().flat_map(|level| UNITS.into_iter().zip(twins).map(move |u| (level, u)))
        {
            let f = function(unit.into(), level).unwrap();
            for units in [1, 2, 3, 5, 8, 9, 31, 32, 33, 64, 67] {
                let len = i64::from(unit) * units;
                let sides = [len, len + 1, 2 * len, len + 8, -len, -len - 3, len / 2, 1, 0, 4500];
                for (ds, ss) in sides.map(|s| (len, s)).into_iter().chain(sides.map(|s| (s, len))) {
                    for n in [0, 1, 2, 7, 8, 9, 16, 17, 33] {
                        let len = len as u64;
                        let ((dst_len, d), (src_len, s)) = (span(n, ds, len), span(n, ss, len));
                        check(
                            &mut areas,
                            (dst_len, src_len),
                            // SAFETY: the areas span all blocks.
                            |dst, src| unsafe { f(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len) },
                            // SAFETY: the same.
                            |dst, src| unsafe {
                                twin(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len)
                            },
                            || format!("{level}: {n} blocks of {units} units of {unit} by ({ds}, {ss})"),
                        );
                    }
                }
            }
        }
    }
}
