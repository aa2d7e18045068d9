//! Family `reduce` of micro-kernels: combines the values of strided blocks with the values at their
//! destination: `dst = op(src, dst)`.
//!
//! Unlike a copy, a combination must not be done twice, and a value that it loads from the
//! destination may have been stored when the block just before was combined. Therefore blocks are
//! combined strictly one after the other. Within a block, whose values do not overlap, rows of
//! whole values are combined in registers. The code for the remainder of a block never covers
//! values that are already combined, and no block is loaded before the results of the preceding
//! block are stored. An element that is in several destination blocks thus gets each contribution,
//! in order. Both sides have strides, so source and destination may be any layouts.
//!
//! For each pair of an operation and a class of values in `LIST` there is code that serves blocks
//! of any length: one function for every instruction set if the pair is used often (`hot`), or else
//! one function for all instruction sets. Other values are combined one by one ([`meaning`]).

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
    Band, Bor, Bxor, Cell, Combine, InRegister, Land, Lor, Lxor, Max, Maxloc, Min, Minloc, Pair, Plain, Prod,
    Sum,
};
use vector::Vector;

functions! {
    /// Combines the values of `n` blocks of `len` bytes with the values at their destination. Block
    /// `i` lies at `src + i * src_stride` and at `dst + i * dst_stride`, and consists of whole
    /// values. If the values are pairs of a value and an index, a block is a single pair, and `len`
    /// is the number of its bytes on the source side.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Family that combines the values of blocks of equal length at constant steps in user memory and
/// on the packed side. The values of each block are combined with the values at its destination.
/// The variant is an index into `LIST`, whose entries are pairs of an operation and a class of
/// values.
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
    // In a packed stream, a pair of a value and an index has no padding. If the packed side is a
    // second layout in user memory, a pair has its padding there, and thus the size that it has in
    // user memory.
    let one = [unit, value.user() as u64].contains(&len) && !call.carries_count(Role::Length);
    // The length is checked for one instance. If the length is multiplied by the instance count, it
    // is a multiple of the value's size for any count.
    match value.user() == value.packed() && !is_pair(value) {
        false if !one => Err("blocks that are not one pair"),
        true if !len.is_multiple_of(unit) => Err("blocks that are not whole values"),
        _ if call.callee().direction() != Direction::Unpack => Err("values that are combined while packing"),
        _ => Ok(()),
    }
}

/// Returns true if `value` is a pair of a number and an index.
pub(super) fn is_pair(value: Value) -> bool {
    matches!(value.class(), crate::nest::ValueClass::Pair(_))
}

/// Returns the call of a micro-kernel that combines `n` blocks of `units` values with the values at
/// their destination. `step` has the distances from one block to the next in user memory and on the
/// packed side. Returns `None` if there is no code for the operation and the class of values, if a
/// block is too long, or if the values are pairs of a value and an index and `units` is not 1.
pub fn call(op: Op, level: Level, n: Quantity, step: Offsets, units: Quantity, value: Value) -> Option<Call> {
    let cell = Cell::from_class(value)?;
    let variant = LIST.iter().position(|&known| known == (op, cell))?;
    let len = Quantity { k: units.k.checked_mul(value.packed() as u64)?, ..units };
    let level = if is_hot(op, cell) { level } else { Level::Baseline };
    (!is_pair(value) || units.is(1)).then(|| {
        let micro = Micro::new(&FAMILY, Direction::Unpack, level).with_variant(variant as u8);
        strided::with(micro, n, step, len)
    })
}

/// Combines the values of `n` blocks of `len` bytes with the values at their destination, one after
/// the other. The machine code of this loop is small on purpose.
///
/// # Safety
/// `n` blocks of `len` bytes, of at least one value each, must be readable at `src`. The values of
/// these blocks must be readable and writable at `dst` in the form that they have in user memory.
/// The sides must not overlap.
#[inline(always)]
unsafe fn combine_blocks<T: InRegister, O: Combine<T>>(
    mut dst: *mut u8,
    mut src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
    len: usize,
) {
    // SAFETY: `at` advances by whole values and is less than `len`, except that the first value of
    // a block is always combined; blocks have at least one value. The blocks are those that the
    // caller promises.
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

/// Keeps the compiler from unrolling or vectorizing the loop that calls this function. The size of
/// the code of all operations together is limited, so long code is made only for the operations
/// that are used most.
#[inline(always)]
fn small() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the assembly text is empty, so no instruction runs.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// Combines one value with the value at its destination. `len` is the number of bytes of the value
/// on the source side; only pairs of a value and an index use `len`.
///
/// # Safety
/// The value must be readable at `src` and at `dst`, and writable at `dst`.
#[inline(always)]
unsafe fn one<T: InRegister, O: Combine<T>>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller promises that the value is readable at `src` and `dst` and writable at
    // `dst`.
    unsafe { O::combine(T::packed(src, len), T::user(dst)).put(dst) }
}

/// Declares functions that combine a fixed number of values that follow each other directly. Each
/// function loads all of its values before it stores any. The elements of the arrays are written
/// out, so that they stay in registers whatever code surrounds them.
macro_rules! rows_of {
    ($($name:ident $n:literal: $($k:literal)*;)*) => {$(
        /// Combines a row of values that follow each other directly with the values at their
        /// destination.
        ///
        /// # Safety
        /// Every value of the row must be readable at `src` and at `dst`, and writable at `dst`.
        /// The values must not overlap.
        #[inline(always)]
        unsafe fn $name<T: Plain, O: Combine<T>>(dst: *mut u8, src: *const u8) {
            // SAFETY: the caller promises the values of the row on both sides; all bit patterns are
            // valid arrays of plain numbers, and the accesses need no alignment.
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

/// Marker type that stands for operation `O` on numbers of type `T`. Its [`Body`] is the code of the
/// functions that combine blocks of any length, and the operation on whole vectors.
struct Rows<T, O>(PhantomData<(T, O)>);

impl<T: Plain, O: Combine<T>> Vector for Rows<T, O> {
    const SIZE: usize = size_of::<T>();

    #[inline(always)]
    fn combine(new: [u8; 64], mut old: [u8; 64]) -> [u8; 64] {
        let (dst, src) = (old.as_mut_ptr(), new.as_ptr());
        // SAFETY: both arrays have 64 bytes, which are sixteen numbers of 4 bytes or eight of 8
        // bytes.
        unsafe {
            match size_of::<T>() {
                4 => sixteen::<T, O>(dst, src),
                _ => eight::<T, O>(dst, src),
            }
        }
        old
    }
}

/// Combines `len` bytes of values that follow each other directly with the values at their
/// destination.
///
/// # Safety
/// Every value must be readable at `src` and at `dst`, and writable at `dst`. The values must not
/// overlap. `len` must be a multiple of the size of a value.
#[inline(always)]
unsafe fn dense<T: Plain, O: Combine<T>>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: a row of 64 bytes is taken only if 64 bytes are left, and then values until `len`;
    // all lie within the bytes that the caller promises.
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

/// Combines the values of `n` blocks of any length with the values at their destination, in rows of
/// several values. This code is made for the operations and types in `hot`, for which every
/// instruction set has code.
///
/// # Safety
/// Blocks of `len` bytes, `n` in number and of at least one value each, must be readable at `src`,
/// and readable and writable at `dst`, at the strides `ss` and `ds`. The sides must not overlap.
/// The machine must have the instructions of `I`.
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
    // SAFETY: these are the promised blocks, one after the other: first those that `combine_near`
    // has done, then the others. For lengths of one row, the number of values is known from `len`,
    // and nothing is tested for each block.
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
            // Instruction sets with registers of fewer than 32 bytes do not use the functions for
            // rows of two to eight values, so that these functions are not compiled for them.
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
        // SAFETY: the conditions of `rows` are those of this function.
        unsafe { rows::<I, T, O>(dst, src, n as usize, strides, len as usize) }
    }
}

/// Calls a macro with the list of types and operations for which values are combined in rows of
/// several values, by code of every instruction set.
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

/// Calls a macro with the list of types and operations for which values are combined one by one, by
/// code of the baseline.
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

/// Pairs of an operation and a class of values for which there is code. The index of an entry is
/// the variant number of its micro-kernel.
const LIST: [(Op, Cell); HOT.len() + COLD.len()] = {
    let mut list = [HOT[0]; HOT.len() + COLD.len()];
    let mut i = 0;
    while i < list.len() {
        list[i] = if i < HOT.len() { HOT[i] } else { COLD[i - HOT.len()] };
        i += 1;
    }
    list
};

/// Returns true if every instruction set has code of its own for this operation on this class of
/// values.
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

/// Returns the function of the instruction set `I` for an operation on a class of values. Returns
/// `None` if not every instruction set has code of its own for this pair.
fn hot<I: Functions>(op: Op, cell: Cell) -> Option<Function> {
    macro_rules! made {
        ($t:ty, $name:ident) => {
            I::function::<Rows<$t, $name>>()
        };
    }
    hot!(chosen made op cell None)
}

/// Combines the values of `n` blocks of `len` bytes with the values at their destination, one value
/// after the other.
///
/// # Safety
/// Blocks of `len` bytes, `n` in number and of at least one value each, must be readable at `src`.
/// The values of these blocks must be readable and writable at `dst` in the form that they have in
/// user memory. The sides must not overlap.
unsafe extern "C" fn alone<T: InRegister, O: Combine<T>>(
    dst: *mut u8,
    src: *const u8,
    n: u64,
    dst_stride: i64,
    src_stride: i64,
    len: u64,
) {
    let strides = (dst_stride as isize, src_stride as isize);
    // SAFETY: the conditions of `combine_blocks` are those of this function.
    unsafe { combine_blocks::<T, O>(dst, src, n as usize, strides, len as usize) }
}

fn get(op: Op, cell: Cell, level: Level) -> Option<Function> {
    macro_rules! made {
        ($t:ty, $name:ident) => {
            alone::<$t, $name> as Function
        };
    }
    cold!(chosen made op cell with_code!(level, I => hot::<I>(op, cell)))
}

/// Returns the function that combines values of the class `value` by the operation `op`, or `None`
/// if there is no such function.
pub fn function(op: Op, value: Value, level: Level) -> Option<Function> {
    get(op, Cell::from_class(value)?, level)
}

#[cfg(test)]
mod tests;
