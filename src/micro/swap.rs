//! Family `swap` of micro-kernels: copies strided blocks that consist of units of 2, 4, 8 or 16
//! bytes, and reverses the bytes of every unit. On a little-endian machine, this is the conversion
//! to and from external32 of values that have the same size and format in user memory and in the
//! packed stream.
//!
//! Long blocks are moved in registers of whole units. Short blocks that are near to each other are
//! moved as in the family `strided`, by a permutation of the bytes of a vector, which here also
//! reverses the units. Other blocks of a single unit are gathered and scattered in groups of eight,
//! through full vectors if the instruction set has code for that.

use std::marker::PhantomData;

use super::constant_length::misaligned;
use super::cursor::{Cursor, Dense, Strided};
use super::functions::functions;
use super::isa::{Code, with_code};
use super::units::{Unit, dense, one};
use super::{Actual, Call, Direction, Family, Micro, Role, Transform, strided};
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

functions! {
    /// Copies block `i` of `len` bytes from `src + i * src_stride` to `dst + i * dst_stride`, in
    /// order, as [`strided::Function`] does, and reverses the bytes of every unit. `len` is a
    /// multiple of the size of the units for which the function is made.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Family that copies blocks of equal length at constant steps in user memory and on the packed
/// side, and reverses the bytes of every unit in them. The variant is the number of bytes of a
/// unit.
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

/// Sizes in bytes of the units whose bytes the functions of this family reverse.
pub const UNITS: [u8; 4] = [2, 4, 8, 16];

fn check(call: &Actual<'_>) -> Result<(), &'static str> {
    let unit = u64::from(call.callee().variant());
    match UNITS.iter().any(|&u| u64::from(u) == unit) {
        false => Err("units that no micro-kernel is made for"),
        // The length for one instance is checked. If the length of the call is this length times
        // the instance count, it is then a multiple of the unit for any count.
        true if !call.number(Role::Length).is_multiple_of(unit) => Err("blocks that are not whole units"),
        true => Ok(()),
    }
}

/// Returns the call of a micro-kernel that moves `n` blocks of `len` bytes and reverses the bytes
/// of each of their units of `unit` bytes. `step` has the distances from one block to the next in
/// user memory and on the packed side. Returns `None` if there is no code for units of this size.
/// Whether `len` is a multiple of `unit` is not checked here.
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

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies the
/// bytes of every unit in reverse order.
///
/// # Safety
/// Every byte of every source block must be readable, and every byte of every destination block
/// writable. The two sides must not overlap. `len` must be a multiple of `UNIT`.
pub unsafe extern "C" fn scalar_reference<const UNIT: usize>(
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
            // SAFETY: `d` and `s` are bytes of block `i` on their sides: `k` is less than `len`,
            // and `from` lies in the same unit as `k`, which is whole.
            unsafe { d.write(s.read()) }
        }
    }
}

/// Copies `n` blocks, each of which is one unit of `UNIT` bytes, and reverses the bytes of each
/// unit.
///
/// # Safety
/// `n` blocks of `UNIT` bytes must be readable from `src` on at the stride `ss`, and writable from
/// `dst` on at the stride `ds`. The two sides must not overlap. The machine must have the
/// instructions of `I`.
#[inline(always)]
unsafe fn single<I: Code, U: Unit, const UNIT: usize>(
    dst: *mut u8,
    src: *const u8,
    mut n: usize,
    (ds, ss): (isize, isize),
) {
    // The source is only read. Its pointer is cast to `*mut u8` because the cursors of both sides
    // have the same type.
    let src = src.cast_mut();
    // SAFETY: `n` always counts the promised blocks that remain after those that the cursors have
    // passed. The functions for eight units are used only if eight remain, on the side that is
    // dense. `first` is at most 3, and 0 unless more than eight blocks remain.
    unsafe {
        if ds == UNIT as isize {
            let (mut to, mut from) = (Dense::<UNIT>(dst), Strided::new(src, ss));
            let first = if n > 8 { misaligned::<I, UNIT>(dst) } else { 0 };
            few::<U>(&mut to, &mut from, first);
            n -= first;
            while n >= 8 {
                I::gather_reversed::<UNIT>(to.0, &from);
                to.advance(8);
                from.advance(8);
                n -= 8;
            }
            few::<U>(&mut to, &mut from, n);
        } else if ss == UNIT as isize {
            let (mut to, mut from) = (Strided::new(dst, ds), Dense::<UNIT>(src));
            while n >= 8 {
                I::scatter_reversed::<UNIT>(&to, from.0);
                to.advance(8);
                from.advance(8);
                n -= 8;
            }
            few::<U>(&mut to, &mut from, n);
        } else {
            few::<U>(&mut Strided::new(dst, ds), &mut Strided::new(src, ss), n);
        }
    }
}

/// Copies the next `n` units of the cursor `src` to those of the cursor `dst`, reverses the bytes
/// of each unit, and advances both cursors past these units.
///
/// # Safety
/// At least `n` units must remain in both cursors, readable in `src` and writable in `dst`. No
/// source unit may overlap a destination unit.
#[inline(always)]
unsafe fn few<U: Unit>(dst: &mut impl Cursor, src: &mut impl Cursor, n: usize) {
    for _ in 0..n {
        // SAFETY: fewer than `n` units have been copied, so the next one remains on both sides.
        unsafe { one::<U>(dst.address(0), src.address(0)) };
        dst.advance(1);
        src.advance(1);
    }
}

/// Copies `n` blocks of `len` bytes, which are any number of whole units, and reverses the bytes of
/// each unit.
///
/// # Safety
/// `n` blocks of `len` bytes must be readable from `src` on at the stride `ss`, and writable from
/// `dst` on at the stride `ds`. The two sides must not overlap. `len` must be a multiple of `UNIT`.
/// The machine must have the instructions of `I`.
#[inline(always)]
unsafe fn any<I: Code, U: Unit, const UNIT: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
    len: usize,
) {
    // SAFETY: the conditions of `reverse_near` are those of this function, and it copies only
    // blocks among the `n`.
    let done = unsafe { I::reverse_near::<UNIT>(dst, src, n, len, (ds, ss)) };
    let after = |stride: isize| (done as isize).wrapping_mul(stride);
    let (mut dst, mut src, n) = (dst.wrapping_offset(after(ds)), src.wrapping_offset(after(ss)), n - done);
    // SAFETY: these are the `n` blocks after the first `done` ones. Each function gets all blocks,
    // or one block after the other, with their length, which is a multiple of the unit.
    unsafe {
        if len == UNIT {
            return single::<I, U, UNIT>(dst, src, n, (ds, ss));
        }
        match len {
            16 => registers::<I, UNIT, 16>(dst, src, n, (ds, ss)),
            32 => registers::<I, UNIT, 32>(dst, src, n, (ds, ss)),
            64 => registers::<I, UNIT, 64>(dst, src, n, (ds, ss)),
            _ => {
                for _ in 0..n {
                    dense::<I, U, UNIT>(dst, src, len);
                    (dst, src) = (dst.wrapping_offset(ds), src.wrapping_offset(ss));
                }
            }
        }
    }
}

/// Copies `n` blocks of `LEN` bytes (16, 32 or 64) and reverses the bytes of each unit. As the
/// length is a constant, the loop has no test of the length for each block.
///
/// # Safety
/// `n` blocks of `LEN` bytes must be readable from `src` on at the stride `ss`, and writable from
/// `dst` on at the stride `ds`. The two sides must not overlap. `LEN` must be a multiple of `UNIT`.
/// The machine must have the instructions of `I`.
#[inline(always)]
unsafe fn registers<I: Code, const UNIT: usize, const LEN: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
) {
    // The source is only read. Its pointer is cast to `*mut u8` because the cursors of both sides
    // have the same type.
    let (src, len) = (src.cast_mut(), LEN as isize);
    // SAFETY: in each case these are the promised blocks; a dense cursor is used only where the
    // stride is `LEN`.
    unsafe {
        if ds == len {
            swap_blocks::<I, UNIT, LEN>(Dense::<LEN>(dst), Strided::new(src, ss), n);
        } else if ss == len {
            swap_blocks::<I, UNIT, LEN>(Strided::new(dst, ds), Dense::<LEN>(src), n);
        } else {
            swap_blocks::<I, UNIT, LEN>(Strided::new(dst, ds), Strided::new(src, ss), n);
        }
    }
}

/// Copies `n` blocks of `LEN` bytes (16, 32 or 64) and reverses the bytes of each unit.
///
/// # Safety
/// At least `n` blocks must remain in both cursors, readable in `src` and writable in `dst`. No
/// source block may overlap a destination block. The machine must have the instructions of `I`.
#[inline(always)]
unsafe fn swap_blocks<I: Code, const UNIT: usize, const LEN: usize>(
    mut dst: impl Cursor,
    mut src: impl Cursor,
    n: usize,
) {
    // SAFETY: the first loop takes four of the promised blocks in each iteration, `n / 4` times,
    // and `u` is less than four. The second takes the `n % 4` blocks that are left.
    unsafe {
        for _ in 0..n / 4 {
            for u in 0..4 {
                I::reverse::<UNIT, LEN>(dst.address(u), src.address(u));
            }
            dst.advance(4);
            src.advance(4);
        }
        for _ in 0..n % 4 {
            I::reverse::<UNIT, LEN>(dst.address(0), src.address(0));
            dst.advance(1);
            src.advance(1);
        }
    }
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of units of `UNIT` bytes,
/// generic over the instruction set.
struct OfUnits<U, const UNIT: usize>(PhantomData<U>);

impl<U: Unit, const UNIT: usize> Body for OfUnits<U, UNIT> {
    #[inline(always)]
    unsafe fn run<I: Functions>(
        dst: *mut u8,
        src: *const u8,
        n: u64,
        dst_stride: i64,
        src_stride: i64,
        len: u64,
    ) {
        let strides = (dst_stride as isize, src_stride as isize);
        // SAFETY: the conditions of `any` are those of this function, for the unit of the body.
        unsafe { any::<I, U, UNIT>(dst, src, n as usize, strides, len as usize) }
    }
}

fn of_unit<I: Functions>(unit: u64) -> Option<Function> {
    match unit {
        2 => Some(I::function::<OfUnits<u16, 2>>()),
        4 => Some(I::function::<OfUnits<u32, 4>>()),
        8 => Some(I::function::<OfUnits<u64, 8>>()),
        16 => Some(I::function::<OfUnits<u128, 16>>()),
        _ => None,
    }
}

/// Returns the function that copies blocks and reverses the bytes of units of `unit` bytes, or
/// `None` if there is no such function.
pub fn function(unit: u64, level: Level) -> Option<Function> {
    with_code!(level, I => of_unit::<I>(unit))
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
            // SAFETY: blocks of 4 bytes at 0 and 6 lie within the 10 bytes of `src`, and at 0 and 4
            // within the 8 bytes of `dst`.
            unsafe { function(2, level).unwrap()(dst.as_mut_ptr(), src.as_ptr(), 2, 4, 6, 4) };
            assert_eq!(dst, [2, 1, 4, 3, 8, 7, 10, 9], "{level}");
        }
    }

    /// Compares the functions for all levels and sizes of units with the scalar reference. `units`
    /// lists the numbers of units in a block, and `counts` the numbers of blocks. On one side the
    /// blocks follow each other directly; on the other side they have each of the strides in bytes
    /// that `strides` returns for the length of a block.
    fn between_guard_pages(units: &[i64], strides: impl Fn(i64) -> Vec<i64>, counts: &[u64]) {
        let references: [Function; 4] =
            [scalar_reference::<2>, scalar_reference::<4>, scalar_reference::<8>, scalar_reference::<16>];
        let mut areas = (Guarded::new(300 << 10), Guarded::new(300 << 10));
        for (level, (unit, reference)) in
            Level::available().flat_map(|level| UNITS.into_iter().zip(references).map(move |u| (level, u)))
        {
            let f = function(unit.into(), level).unwrap();
            for units in units {
                let len = i64::from(unit) * units;
                let sides = strides(len);
                let packing = sides.iter().map(|&s| (len, s));
                for (ds, ss) in packing.chain(sides.iter().map(|&s| (s, len))) {
                    for &n in counts {
                        let len = len as u64;
                        let ((dst_len, d), (src_len, s)) = (span(n, ds, len), span(n, ss, len));
                        check(
                            &mut areas,
                            (dst_len, src_len),
                            // SAFETY: `span` returns lengths of areas that contain all `n` blocks
                            // at these strides, and the offsets of their first blocks.
                            |dst, src| unsafe { f(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len) },
                            // SAFETY: `span` returns lengths of areas that contain all `n` blocks
                            // at these strides, and the offsets of their first blocks.
                            |dst, src| unsafe {
                                reference(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len)
                            },
                            || format!("{level}: {n} blocks of {units} units of {unit} by ({ds}, {ss})"),
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_unit_every_stride_between_guard_pages() {
        let strides = |len: i64| vec![len, len + 1, 2 * len, len + 8, -len, -len - 3, len / 2, 1, 0, 4500];
        between_guard_pages(
            &[1, 2, 3, 5, 8, 9, 31, 32, 33, 64, 67],
            strides,
            &[0, 1, 2, 7, 8, 9, 16, 17, 33],
        );
    }

    #[test]
    fn short_blocks_near_to_each_other() {
        let strides = |len: i64| (len..=66).chain([-len - 1, 128]).collect();
        between_guard_pages(&[1, 2, 3, 4, 5, 6, 7], strides, &[31, 32, 40, 65, 127, 128, 140]);
    }

    #[test]
    fn many_single_units() {
        let strides = |len: i64| vec![len + 1, 2 * len, 4 * len + 2, 100, 256, -len, len / 2];
        between_guard_pages(&[1], strides, &[255, 256, 257, 520, 1100]);
    }
}
