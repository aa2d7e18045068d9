//! Classes of values for which there are micro-kernels of reductions, and what each operation does
//! to two values.

use super::real::product;
use crate::datatype::Named;
use crate::nest::{Leaf, Number, Value, ValueClass};

/// Enumeration of the classes of values for which there are micro-kernels of reductions. Tables of
/// micro-kernels use these entries to distinguish the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Int1,
    Int2,
    Int4,
    Int8,
    Int16,
    Uint1,
    Uint2,
    Uint4,
    Uint8,
    Uint16,
    Float4,
    Float8,
    Complex8,
    Complex16,
    Float4Int4,
    Float8Int4,
    Int8Int4,
    Int4Int4,
    Int2Int4,
    Float4Float4,
    Float8Float8,
    Int8Int8,
    Float8Int8,
}

impl Cell {
    /// Returns the entry of the enumeration for the class `value`, or `None` if there is no
    /// micro-kernel for this class.
    pub(super) fn from_class(value: Value) -> Option<Cell> {
        use Number::{Complex, Float, Int, Uint};
        Some(match (value.class(), value.user()) {
            (ValueClass::Native(Int), 1) => Cell::Int1,
            (ValueClass::Native(Int), 2) => Cell::Int2,
            (ValueClass::Native(Int), 4) => Cell::Int4,
            (ValueClass::Native(Int), 8) => Cell::Int8,
            (ValueClass::Native(Int), 16) => Cell::Int16,
            (ValueClass::Native(Uint), 1) => Cell::Uint1,
            (ValueClass::Native(Uint), 2) => Cell::Uint2,
            (ValueClass::Native(Uint), 4) => Cell::Uint4,
            (ValueClass::Native(Uint), 8) => Cell::Uint8,
            (ValueClass::Native(Uint), 16) => Cell::Uint16,
            (ValueClass::Native(Float), 4) => Cell::Float4,
            (ValueClass::Native(Float), 8) => Cell::Float8,
            (ValueClass::Native(Complex), 8) => Cell::Complex8,
            (ValueClass::Native(Complex), 16) => Cell::Complex16,
            (ValueClass::Pair([(Float, 4), (Int, 4)]), 8) => Cell::Float4Int4,
            (ValueClass::Pair([(Float, 8), (Int, 4)]), 12) => Cell::Float8Int4,
            (ValueClass::Pair([(Int, 8), (Int, 4)]), 12) => Cell::Int8Int4,
            (ValueClass::Pair([(Int, 4), (Int, 4)]), 8) => Cell::Int4Int4,
            (ValueClass::Pair([(Int, 2), (Int, 4)]), 8) => Cell::Int2Int4,
            (ValueClass::Pair([(Float, 4), (Float, 4)]), 8) => Cell::Float4Float4,
            (ValueClass::Pair([(Float, 8), (Float, 8)]), 16) => Cell::Float8Float8,
            (ValueClass::Pair([(Int, 8), (Int, 8)]), 16) => Cell::Int8Int8,
            (ValueClass::Pair([(Float, 8), (Int, 8)]), 16) => Cell::Float8Int8,
            _ => return None,
        })
    }

    /// Returns the class of values for which this entry of the enumeration stands.
    pub(super) fn value(self) -> Value {
        let pair = |value: Named, index: Named, at| Value::pair(value, index, at);
        match self {
            Cell::Int1 => Value::number(Number::Int, 1),
            Cell::Int2 => Value::number(Number::Int, 2),
            Cell::Int4 => Value::number(Number::Int, 4),
            Cell::Int8 => Value::number(Number::Int, 8),
            Cell::Int16 => Value::number(Number::Int, 16),
            Cell::Uint1 => Value::number(Number::Uint, 1),
            Cell::Uint2 => Value::number(Number::Uint, 2),
            Cell::Uint4 => Value::number(Number::Uint, 4),
            Cell::Uint8 => Value::number(Number::Uint, 8),
            Cell::Uint16 => Value::number(Number::Uint, 16),
            Cell::Float4 => Value::number(Number::Float, 4),
            Cell::Float8 => Value::number(Number::Float, 8),
            Cell::Complex8 => Value::number(Number::Complex, 8),
            Cell::Complex16 => Value::number(Number::Complex, 16),
            Cell::Float4Int4 => pair(Named::Float, Named::Int32, 4),
            Cell::Float8Int4 => pair(Named::Double, Named::Int32, 8),
            Cell::Int8Int4 => pair(Named::Int64, Named::Int32, 8),
            Cell::Int4Int4 => pair(Named::Int32, Named::Int32, 4),
            Cell::Int2Int4 => pair(Named::Int16, Named::Int32, 4),
            Cell::Float4Float4 => pair(Named::Float, Named::Float, 4),
            Cell::Float8Float8 => pair(Named::Double, Named::Double, 8),
            Cell::Int8Int8 => pair(Named::Int64, Named::Int64, 8),
            Cell::Float8Int8 => pair(Named::Double, Named::Int64, 8),
        }
    }
}

/// Type of a value, or of a pair of a value and an index, while it is held in registers.
pub(super) trait InRegister: Copy {
    /// Number of bytes of a value, equal in user memory and on the packed side, if several values
    /// may follow each other in a block. The number is 0 for a pair of a value and an index, which
    /// is a block by itself.
    const RUN: usize;

    /// Loads a value from user memory.
    ///
    /// # Safety
    /// The value must be readable at `at`.
    unsafe fn user(at: *const u8) -> Self;

    /// Loads a value of `len` bytes from the packed side, where the padding between the value and
    /// the index of a pair may be missing.
    ///
    /// # Safety
    /// `len` bytes must be readable at `at`, and they must be a value of this type.
    unsafe fn packed(at: *const u8, len: usize) -> Self;

    /// Stores the value into user memory. The padding inside a pair of a value and an index is not
    /// written.
    ///
    /// # Safety
    /// The value must be writable at `at`.
    unsafe fn put(self, at: *mut u8);
}

/// Type of numbers whose bytes have no padding and may have any bit pattern.
pub(super) trait Plain: Copy {}

impl<T: Plain> InRegister for T {
    const RUN: usize = size_of::<T>();

    #[inline(always)]
    unsafe fn user(at: *const u8) -> T {
        // SAFETY: the caller promises a readable value. Any bit pattern is a number of this type,
        // and the access needs no alignment.
        unsafe { at.cast::<T>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn packed(at: *const u8, _: usize) -> T {
        // SAFETY: the caller promises a readable value, which has the same form on both sides.
        unsafe { T::user(at) }
    }

    #[inline(always)]
    unsafe fn put(self, at: *mut u8) {
        // SAFETY: the caller promises a writable value; the access needs no alignment.
        unsafe { at.cast::<T>().write_unaligned(self) }
    }
}

/// A pair of a value and an index, as `MPI_MINLOC` uses it. In user memory, the index begins `AT`
/// bytes after the first byte of the pair.
#[derive(Clone, Copy)]
pub(super) struct Pair<V, I, const AT: usize>(V, I);

impl<V: Plain, I: Plain, const AT: usize> InRegister for Pair<V, I, AT> {
    const RUN: usize = 0;

    #[inline(always)]
    unsafe fn user(at: *const u8) -> Self {
        // SAFETY: the caller promises a readable pair, whose index lies at `AT`.
        unsafe { Pair(V::user(at), I::user(at.add(AT))) }
    }

    #[inline(always)]
    unsafe fn packed(at: *const u8, len: usize) -> Self {
        // SAFETY: the caller promises a readable pair of `len` bytes. The index is at its end, with
        // or without padding before it.
        unsafe { Pair(V::user(at), I::user(at.add(len - size_of::<I>()))) }
    }

    #[inline(always)]
    unsafe fn put(self, at: *mut u8) {
        // SAFETY: the caller promises a writable pair, whose index lies at `AT`.
        unsafe {
            self.0.put(at);
            self.1.put(at.add(AT));
        }
    }
}

/// An operation of a reduction on two values of type `T`.
pub(super) trait Combine<T> {
    fn combine(new: T, old: T) -> T;
}

/// Declares types without values that stand for the operations of reductions.
macro_rules! operations {
    ($($op:ident)*) => {$(pub(super) struct $op;)*};
}
operations! { Sum Prod Min Max Band Bor Bxor Land Lor Lxor Minloc Maxloc }

macro_rules! combine {
    ($op:ident for $t:ty: $new:ident, $old:ident => $then:expr) => {
        impl Combine<$t> for $op {
            #[inline(always)]
            fn combine($new: $t, $old: $t) -> $t {
                $then
            }
        }
    };
}

macro_rules! both {
    ($($t:ty)*) => {$(
        impl Plain for $t {}
        combine! { Min for $t: new, old => if new < old { new } else { old } }
        combine! { Max for $t: new, old => if new > old { new } else { old } }
    )*};
}
both! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 }

macro_rules! integers {
    ($($t:ty)*) => {$(
        combine! { Sum for $t: new, old => new.wrapping_add(old) }
        combine! { Prod for $t: new, old => new.wrapping_mul(old) }
        combine! { Band for $t: new, old => new & old }
        combine! { Bor for $t: new, old => new | old }
        combine! { Bxor for $t: new, old => new ^ old }
        combine! { Land for $t: new, old => <$t>::from(new != 0 && old != 0) }
        combine! { Lor for $t: new, old => <$t>::from((new | old) != 0) }
        combine! { Lxor for $t: new, old => <$t>::from((new != 0) != (old != 0)) }
    )*};
}
integers! { i8 i16 i32 i64 i128 }

macro_rules! reals {
    ($($t:ty)*) => {$(
        combine! { Sum for $t: new, old => new + old }
        combine! { Prod for $t: new, old => new * old }
        impl Plain for [$t; 2] {}
        combine! { Prod for [$t; 2]: new, old => product(new, old) }
    )*};
}
reals! { f32 f64 }

macro_rules! locations {
    ($($op:ident $better:tt)*) => {$(
        impl<V: Plain + PartialOrd, I: Plain + PartialOrd, const AT: usize> Combine<Pair<V, I, AT>> for $op {
            #[inline(always)]
            fn combine(new: Pair<V, I, AT>, old: Pair<V, I, AT>) -> Pair<V, I, AT> {
                let better = new.0 $better old.0;
                let sooner = new.0 == old.0 && new.1 < old.1;
                Pair(if better { new.0 } else { old.0 }, if better || sooner { new.1 } else { old.1 })
            }
        }
    )*};
}
locations! { Minloc < Maxloc > }
