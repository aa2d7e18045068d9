//! Reduce: strided blocks of values, each combined with the one that lies at its destination: `dst = op(src, dst)`.
//!
//! Unlike a copy that is no operation to be done twice, and what it loads another block may just have stored. So blocks go one after the other, and
//! a block, whose values are apart, by registers of whole values: no tail reaches back, no block is loaded before the one ahead of it is stored, and
//! an element that several blocks name gets each contribution, in order. Strides are of both sides, so source and destination may be any layouts.
//!
//! There is code per operation and value, once for any block (`LIST`); what has none is combined value by value ([`meaning`]).

mod cells;
pub mod meaning;
mod real;
pub(super) mod vector;

use std::marker::PhantomData;

use super::functions::functions;
use super::isa::{Code, with_code};
use super::{Actual, Call, Direction, Family, Micro, Role, Transform, strided};
use crate::kind::Op;
use crate::nest::{Leaf, Offsets, Quantity, Value};
use crate::target::Level;
use cells::{
    Band, Bor, Bxor, Cell, Combine, Held, Land, Lor, Lxor, Max, Maxloc, Min, Minloc, Pair, Plain, Prod, Sum,
};
use vector::Vector;

functions! {
    /// Combines as [`strided::Function`] copies, blocks of `len` bytes of whole values. A pair comes alone, of as many bytes as it has on the side of
    /// the source.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Equal blocks of values at a constant step on both sides, each combined with what is there.
pub static FAMILY: Family = Family {
    name: "reduce",
    directed: false,
    parameters: strided::parameters,
    variant: |i, f| LIST.get(usize::from(i)).map_or(Ok(()), |(op, cell)| write!(f, ".{op}.{}", cell.value())),
    transform: |i| match LIST.get(usize::from(i)) {
        Some((op, cell)) => Transform::Combined(*op, cell.value()),
        None => Transform::Copied,
    },
    address: |micro| {
        let found =
            LIST.get(usize::from(micro.variant())).and_then(|&(op, cell)| get(op, cell, micro.level()));
        found.map_or(0, |f| f as usize)
    },
    check,
    blocks: strided::blocks,
    takes: Family::nothing,
};

fn check(call: &Actual<'_>) -> Result<(), &'static str> {
    let Transform::Combined(_, value) = call.callee().transform() else {
        return Err("values that no micro-kernel is made for");
    };
    let (unit, len) = (value.packed() as u64, call.number(Role::Length));
    // Of a stream, or of a second layout, where a pair has its padding.
    let one = [unit, value.user() as u64].contains(&len) && !call.carries_count(Role::Length);
    // For one instance: what carries the count is a multiple for any.
    match value.user() == value.packed() && !is_pair(value) {
        false if !one => Err("blocks that are not one pair"),
        true if !len.is_multiple_of(unit) => Err("blocks that are not whole values"),
        _ if call.callee().direction() != Direction::Unpack => Err("values that are combined while packing"),
        _ => Ok(()),
    }
}

/// Says whether it is a value with an index.
pub(super) fn is_pair(value: Value) -> bool {
    matches!(value.class(), crate::nest::Class::Pair(_))
}

/// Returns the call that combines `n` blocks of `units` values, the one `step` from the other; none if there is no such code, or a block that has none.
pub fn call(op: Op, level: Level, n: Quantity, step: Offsets, units: Quantity, value: Value) -> Option<Call> {
    let cell = Cell::of(value)?;
    let variant = LIST.iter().position(|&known| known == (op, cell))?;
    let len = Quantity { k: units.k.checked_mul(value.packed() as u64)?, ..units };
    let level = if is_hot(op, cell) { level } else { Level::Baseline };
    (!is_pair(value) || units.is(1)).then(|| {
        let micro = Micro::new(&FAMILY, Direction::Unpack, level).with_variant(variant as u8);
        strided::with(micro, n, step, len)
    })
}

/// Combines one value after the other: what is written once, and small.
///
/// # Safety
/// `n` blocks of `len` bytes are readable at `src` and, as values in user memory, writable at `dst`, without overlap of the sides.
#[inline(always)]
unsafe fn each<T: Held, O: Combine<T>>(
    mut dst: *mut u8,
    mut src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
    len: usize,
) {
    // SAFETY: every value of every block, in order.
    unsafe {
        for _ in 0..n {
            let mut at = 0;
            loop {
                one::<T, O>(dst.add(at), src.add(at), len);
                at += T::RUN;
                small();
                if T::RUN == 0 || at >= len {
                    break;
                }
            }
            (dst, src) = (dst.wrapping_offset(ds), src.wrapping_offset(ss));
        }
    }
}

/// Keeps a loop as it is written: the code of all operations has a budget, which those spend that are asked for most.
#[inline(always)]
fn small() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// Combines one value.
///
/// # Safety
/// It is readable at both places, and writable at `dst`.
#[inline(always)]
unsafe fn one<T: Held, O: Combine<T>>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe { O::combine(T::packed(src, len), T::user(dst)).put(dst) }
}

/// Functions that combine so many values that lie one after the other: they load all of them, and store all of them. Written out, so that all stay
/// in registers whatever surrounds them.
macro_rules! rows_of {
    ($($name:ident $n:literal: $($k:literal)*;)*) => {$(
        /// # Safety
        /// As [`one`], for all of the values; they are apart.
        #[inline(always)]
        unsafe fn $name<T: Plain, O: Combine<T>>(dst: *mut u8, src: *const u8) {
            // SAFETY: as promised by the caller; every pattern of bits is such a row.
            unsafe {
                let (new, old) = (src.cast::<[T; $n]>().read_unaligned(), dst.cast::<[T; $n]>().read_unaligned());
                dst.cast::<[T; $n]>().write_unaligned([$(O::combine(new[$k], old[$k])),*]);
            }
        }
    )*};
}
rows_of! {
    two 2: 0 1;
    three 3: 0 1 2;
    four 4: 0 1 2 3;
    eight 8: 0 1 2 3 4 5 6 7;
    sixteen 16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;
}

/// Vectors of numbers under an operation.
struct Rows<T, O>(PhantomData<(T, O)>);

impl<T: Plain, O: Combine<T>> Vector for Rows<T, O> {
    const SIZE: usize = size_of::<T>();

    #[inline(always)]
    fn combine(new: [u8; 64], mut old: [u8; 64]) -> [u8; 64] {
        let (dst, src) = (old.as_mut_ptr(), new.as_ptr());
        // SAFETY: 64 bytes on both sides, which are eight or sixteen numbers.
        unsafe {
            match size_of::<T>() {
                4 => sixteen::<T, O>(dst, src),
                _ => eight::<T, O>(dst, src),
            }
        }
        old
    }
}

/// Combines `len` bytes of values that lie one after the other.
///
/// # Safety
/// As [`eight`].
#[inline(always)]
unsafe fn dense<T: Plain, O: Combine<T>>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: rows, then values, that end at or before `len`.
    unsafe {
        while len - at >= 64 {
            match size_of::<T>() {
                4 => sixteen::<T, O>(dst.add(at), src.add(at)),
                _ => eight::<T, O>(dst.add(at), src.add(at)),
            }
            at += 64;
            small();
        }
        while at < len {
            one::<T, O>(dst.add(at), src.add(at), T::RUN);
            at += T::RUN;
            small();
        }
    }
}

/// Any blocks of numbers that rows are made of.
///
/// # Safety
/// As [`each`]; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn rows<I: Code, T: Plain, O: Combine<T>>(
    mut dst: *mut u8,
    mut src: *const u8,
    mut n: usize,
    (ds, ss): (isize, isize),
    len: usize,
) {
    macro_rules! blocks {
        ($($what:tt)*) => {
            for _ in 0..n {
                $($what)*;
                (dst, src) = (dst.wrapping_offset(ds), src.wrapping_offset(ss));
                small();
            }
        };
    }
    // SAFETY: the same blocks, one after the other. Blocks of one row: nothing is asked of each.
    unsafe {
        let done = I::combine_near::<Rows<T, O>>(dst, src, n, (ds, ss), len);
        (dst, src) = (dst.wrapping_offset(done as isize * ds), src.wrapping_offset(done as isize * ss));
        n -= done;
        match len / size_of::<T>() {
            1 => {
                while n >= 4 {
                    for k in 0..4 {
                        one::<T, O>(dst.wrapping_offset(k * ds), src.wrapping_offset(k * ss), len);
                    }
                    (dst, src) = (dst.wrapping_offset(4 * ds), src.wrapping_offset(4 * ss));
                    n -= 4;
                    small();
                }
                blocks! { one::<T, O>(dst, src, len) }
            }
            // The rest of the code's budget goes to instruction sets that have wider registers.
            _ if I::WIDE < 32 => blocks! { dense::<T, O>(dst, src, len) },
            2 => blocks! { two::<T, O>(dst, src) },
            3 => blocks! { three::<T, O>(dst, src) },
            4 => blocks! { four::<T, O>(dst, src) },
            8 => blocks! { eight::<T, O>(dst, src) },
            _ => blocks! { dense::<T, O>(dst, src, len) },
        }
    }
}

impl<T: Plain, O: Combine<T>> Body for Rows<T, O> {
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
        // SAFETY: as promised by the caller.
        unsafe { rows::<I, T, O>(dst, src, n as usize, strides, len as usize) }
    }
}

/// Calls a macro with the values that rows are made of, and the operations on them.
macro_rules! hot {
    ($with:ident $($arguments:tt)*) => {
        $with! { ($($arguments)*)
            Int4 = i32: Sum Prod Min Max Band Bor Bxor;
            Int8 = i64: Sum Min Max Band Bor Bxor;
            Uint4 = u32: Min Max;
            Uint8 = u64: Min Max;
            Float4 = f32: Sum Prod Min Max;
            Float8 = f64: Sum Prod Min Max;
        }
    };
}

/// Expands a body with the operations that are combined one after the other, by code of the baseline.
macro_rules! cold {
    ($with:ident $($arguments:tt)*) => {
        $with! { ($($arguments)*)
            Int1 = i8: Sum Prod Min Max Band Bor Bxor Land Lor Lxor;
            Int2 = i16: Sum Prod Min Max Band Bor Bxor Land Lor Lxor;
            Int4 = i32: Land Lor Lxor;
            Int8 = i64: Prod Land Lor Lxor;
            Int16 = i128: Sum Prod Min Max Band Bor Bxor Land Lor Lxor;
            Uint1 = u8: Min Max;
            Uint2 = u16: Min Max;
            Uint16 = u128: Min Max;
            Complex8 = [f32; 2]: Prod;
            Complex16 = [f64; 2]: Prod;
            Float4Int4 = Pair<f32, i32, 4>: Minloc Maxloc;
            Float8Int4 = Pair<f64, i32, 8>: Minloc Maxloc;
            Int8Int4 = Pair<i64, i32, 8>: Minloc Maxloc;
            Int4Int4 = Pair<i32, i32, 4>: Minloc Maxloc;
            Int2Int4 = Pair<i16, i32, 4>: Minloc Maxloc;
            Float4Float4 = Pair<f32, f32, 4>: Minloc Maxloc;
            Float8Float8 = Pair<f64, f64, 8>: Minloc Maxloc;
            Int8Int8 = Pair<i64, i64, 8>: Minloc Maxloc;
            Float8Int8 = Pair<f64, i64, 8>: Minloc Maxloc;
        }
    };
}

macro_rules! listed {
    (() $($cell:ident = $t:ty: $($op:ident)*;)*) => {
        &[$($((Op::$op, Cell::$cell),)*)*]
    };
}

const HOT: &[(Op, Cell)] = hot!(listed);
const COLD: &[(Op, Cell)] = cold!(listed);

/// Operations and values that there is code for; a place is the number of a variant.
const LIST: [(Op, Cell); HOT.len() + COLD.len()] = {
    let mut list = [HOT[0]; HOT.len() + COLD.len()];
    let mut i = 0;
    while i < list.len() {
        list[i] = if i < HOT.len() { HOT[i] } else { COLD[i - HOT.len()] };
        i += 1;
    }
    list
};

/// Whether every instruction set has code of its own.
fn is_hot(op: Op, cell: Cell) -> bool {
    HOT.contains(&(op, cell))
}

macro_rules! chosen {
    (($made:ident $op:ident $cell:ident $otherwise:expr) $($known:ident = $t:ty: $($name:ident)*;)*) => {
        match ($op, $cell) {
            $($((Op::$name, Cell::$known) => Some($made!($t, $name)),)*)*
            _ => $otherwise,
        }
    };
}

/// The function for an operation and a value of those that every instruction set has code of its own for.
fn hot<I: Functions>(op: Op, cell: Cell) -> Option<Function> {
    macro_rules! made {
        ($t:ty, $name:ident) => {
            I::of::<Rows<$t, $name>>()
        };
    }
    hot!(chosen made op cell None)
}

/// # Safety
/// As [`each`].
unsafe extern "C" fn alone<T: Held, O: Combine<T>>(
    dst: *mut u8,
    src: *const u8,
    n: u64,
    dst_stride: i64,
    src_stride: i64,
    len: u64,
) {
    let strides = (dst_stride as isize, src_stride as isize);
    // SAFETY: as promised by the caller.
    unsafe { each::<T, O>(dst, src, n as usize, strides, len as usize) }
}

fn get(op: Op, cell: Cell, level: Level) -> Option<Function> {
    macro_rules! made {
        ($t:ty, $name:ident) => {
            alone::<$t, $name> as Function
        };
    }
    cold!(chosen made op cell with_code!(level, I => hot::<I>(op, cell)))
}

/// Returns the function for an operation on a value, if there is one.
pub fn function(op: Op, value: Value, level: Level) -> Option<Function> {
    get(op, Cell::of(value)?, level)
}

#[cfg(test)]
mod tests;
