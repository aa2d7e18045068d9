//! Leaves of a nest, which move bytes or values of a class, and the packed side of a nest, which is
//! a stream or a second layout in memory.
//!
//! The leaf and the packed side are type parameters of a nest. The type `LoopNest<P>` always means
//! byte leaves and a stream, so code that takes such a nest never gets other leaves or a second
//! layout. A value has a class instead of a basic type, so that adjacent values merge into one run
//! if an operation treats them in the same way. For example, `int` and `float` are one class in
//! external32.

use std::fmt;
use std::hash::Hash;

use super::Offsets;
use crate::datatype::{Class as Basic, Named};
use crate::kind::Op;

mod sealed {
    pub trait Sealed {}
}

/// Unit in which a leaf counts its length.
pub trait Leaf: sealed::Sealed + Copy + Eq + Hash + fmt::Debug + fmt::Display + 'static {
    /// Whether moving a unit twice has the same effect as moving it once. This is false for values,
    /// because an operation may add them.
    const IDEMPOTENT: bool;

    /// Returns the unit for a nest whose packed side is memory too. In such a nest, the unit has
    /// its user size on both sides.
    fn in_memory(self) -> Self;

    /// Returns the number of bytes of one unit in user memory.
    fn user(self) -> i64;

    /// Returns the number of bytes of one unit on the packed side.
    fn packed(self) -> i64;

    /// Parses the unit from its text form. The empty text stands for a byte.
    fn from_text(text: &str) -> Option<Self>;

    /// Returns the number of bytes of `k` units on each side, or `None` if one of these numbers
    /// does not fit in 63 bits.
    fn bytes(self, k: u64) -> Option<Offsets> {
        let k = i64::try_from(k).ok()?;
        Some(Offsets { user: self.user().checked_mul(k)?, packed: self.packed().checked_mul(k)? })
    }

    /// Returns the number of bytes of `k` units on each side. The caller must know that both
    /// numbers fit in 63 bits, as for the lengths in a nest.
    fn span(self, k: i64) -> Offsets {
        Offsets { user: self.user().wrapping_mul(k), packed: self.packed().wrapping_mul(k) }
    }
}

/// One byte on both sides, without an interpretation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Byte;

impl sealed::Sealed for Byte {}

impl fmt::Display for Byte {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Leaf for Byte {
    const IDEMPOTENT: bool = true;

    fn in_memory(self) -> Byte {
        self
    }

    #[inline(always)]
    fn user(self) -> i64 {
        1
    }

    #[inline(always)]
    fn packed(self) -> i64 {
        1
    }

    fn from_text(text: &str) -> Option<Byte> {
        text.is_empty().then_some(Byte)
    }
}

/// Kind of number. An operation treats a value according to this kind and to the size of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// Signed integer.
    Int,
    /// Unsigned integer.
    Uint,
    /// IEEE binary floating point, in the format that the size of the value determines.
    Float,
    /// C's `long double` where it is the x87 format: 10 bytes and padding.
    Extended,
    /// Complex number: two [`Number::Float`]s, each of half the size of the value.
    Complex,
    /// Complex number: two [`Number::Extended`] numbers.
    ExtendedComplex,
    /// Truth value.
    Logical,
    /// Character, for which no arithmetic is defined.
    Character,
    /// Bits without a meaning.
    Bits,
}

impl Number {
    const ALL: [(Number, &'static str); 9] = [
        (Number::Int, "int"),
        (Number::Uint, "uint"),
        (Number::Float, "float"),
        (Number::Extended, "extended"),
        (Number::Complex, "complex"),
        (Number::ExtendedComplex, "extended_complex"),
        (Number::Logical, "logical"),
        (Number::Character, "character"),
        (Number::Bits, "bits"),
    ];

    fn name(self) -> &'static str {
        Number::ALL.iter().find(|n| n.0 == self).map_or("", |n| n.1)
    }

    /// Returns the kind of number that a basic type holds. For a pair the result has no meaning.
    fn from_named(named: Named) -> Number {
        // On x86-64, except with Windows, `long double` has the x87 format, which uses 80 bits of
        // its 16 bytes. On other targets, `long double` is binary64 or binary128.
        let x87 = cfg!(target_arch = "x86_64") && cfg!(not(windows));
        match (named.class(), named) {
            (Basic::Float, Named::LongDouble) if x87 => Number::Extended,
            (Basic::Complex, Named::CLongDoubleComplex | Named::CxxLongDoubleComplex) if x87 => {
                Number::ExtendedComplex
            }
            (Basic::Integer, _) => Number::Int,
            (Basic::Unsigned, _) => Number::Uint,
            (Basic::Float, _) => Number::Float,
            (Basic::Complex, _) => Number::Complex,
            (Basic::Logical, _) => Number::Logical,
            (Basic::Character, _) => Number::Character,
            _ => Number::Bits,
        }
    }
}

/// Properties of a value that determine how an operation treats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueClass {
    /// The value in the representation of the machine, for operations that combine values.
    Native(Number),
    /// A value and an index with their sizes in bytes, as one unit, for MINLOC and MAXLOC.
    Pair([(Number, u8); 2]),
    /// external32 representation of the same size: bytes are reversed on little-endian machines.
    Swap,
    /// external32 representation that must be converted to and from this kind of number (MPI 5.0,
    /// 14.5.2). In most cases its size differs from the size in memory.
    Resize(Number),
}

/// A value of a class, with its sizes in bytes on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    class: ValueClass,
    user: u8,
    packed: u8,
}

impl Value {
    /// Returns the value that represents a basic type in memory. A pair is one value, which
    /// includes the padding between the value and the index, but no padding after the index.
    pub fn native(named: Named) -> Value {
        match *named.parts() {
            [(value, _), (index, at)] => Value::pair(value, index, at),
            _ => Value::number(Number::from_named(named), named.size() as u8),
        }
    }

    /// Returns a number that has `bytes` bytes on both sides.
    pub fn number(number: Number, bytes: u8) -> Value {
        Value { class: ValueClass::Native(number), user: bytes, packed: bytes }
    }

    /// Returns a pair whose index begins `at` bytes after the first byte of the value. On the
    /// packed side the pair has no gap.
    pub fn pair(value: Named, index: Named, at: i64) -> Value {
        let number = |n: Named| (Number::from_named(n), n.size() as u8);
        let class = ValueClass::Pair([number(value), number(index)]);
        Value { class, user: (at + index.size()) as u8, packed: (value.size() + index.size()) as u8 }
    }

    /// Returns the kind of value that a reduction by `op` combines in a basic type, and the number
    /// of such values in one element of that type. Types that `op` treats in the same way have
    /// equal values, so that adjacent elements of these types merge into one run. For a sum, for
    /// example, a complex number is two real numbers. For a pair the result has no meaning.
    pub fn reduced(op: Op, named: Named) -> (Value, u64) {
        let number = Number::from_named(named);
        let (number, n) = match (op, number) {
            (Op::Replace | Op::NoOp, _) => (Number::Bits, 1),
            (Op::Sum, Number::Complex) => (Number::Float, 2),
            (Op::Sum, Number::ExtendedComplex) => (Number::Extended, 2),
            // Only MIN and MAX distinguish signed from unsigned integers. `Leaves::check` has
            // refused types for which `op` is not defined.
            (Op::Min | Op::Max, number) => (number, 1),
            (_, Number::Uint | Number::Logical | Number::Character | Number::Bits) => (Number::Int, 1),
            (_, number) => (number, 1),
        };
        (Value::number(number, (named.size() / n) as u8), n as u64)
    }

    /// Returns the kind of external32 value in a basic type, and the number of such values in one
    /// element of that type. A complex number has two. The type must not be a pair.
    pub fn external32(named: Named) -> (Value, u64) {
        let number = Number::from_named(named);
        let (number, n) = match number {
            Number::Complex => (Number::Float, 2),
            Number::ExtendedComplex => (Number::Extended, 2),
            number => (number, 1),
        };
        let (user, packed) = ((named.size() / n) as u8, (named.external32_size() / n) as u8);
        let same = user == packed && number != Number::Extended;
        let class = if same { ValueClass::Swap } else { ValueClass::Resize(number) };
        (Value { class, user, packed }, n as u64)
    }

    /// Returns the properties that determine how an operation treats the value.
    pub fn class(self) -> ValueClass {
        self.class
    }
}

impl sealed::Sealed for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            ValueClass::Swap => write!(f, "swap{}", self.user),
            ValueClass::Native(number) => write!(f, "{}{}", number.name(), self.user),
            ValueClass::Pair(pair) => {
                write!(f, "pair")?;
                pair.iter().try_for_each(|(number, size)| write!(f, "_{}{size}", number.name()))?;
                write!(f, "_{}", self.user)
            }
            ValueClass::Resize(number) => write!(f, "{}{}_{}", number.name(), self.user, self.packed),
        }
    }
}

impl Leaf for Value {
    /// A reduction may add values, so applying it twice is not the same as applying it once.
    const IDEMPOTENT: bool = false;

    fn in_memory(self) -> Value {
        Value { packed: self.user, ..self }
    }

    fn user(self) -> i64 {
        self.user.into()
    }

    fn packed(self) -> i64 {
        self.packed.into()
    }

    /// Searches the values of all basic types and of all pairs of basic types. There are few basic
    /// types. The search also finds some values that no basic type has, such as `int12`, because
    /// pairs are passed to [`Value::reduced`] as well.
    fn from_text(text: &str) -> Option<Value> {
        let all = Named::ALL.iter().filter(|named| !named.is_marker());
        let found = |value: &Value| value.to_string() == text;
        let mut values = all.clone().flat_map(|&named| {
            let parts = named.parts().iter().map(|&(part, _)| Value::external32(part).0);
            let reduced = [Op::Sum, Op::Replace].map(|op| Value::reduced(op, named).0);
            parts.chain([Value::native(named)]).chain(reduced)
        });
        let pair = || {
            let aligned_pair = |value: Named, index: Named| {
                let align = index.alignment();
                Value::pair(value, index, (value.size() + align - 1) / align * align)
            };
            let mut pairs =
                all.clone().flat_map(|&value| all.clone().map(move |&index| aligned_pair(value, index)));
            pairs.find(found)
        };
        values.find(found).or_else(|| text.starts_with("pair_").then(pair).flatten())
    }
}

/// Address space of the packed offsets of a nest: a stream, or memory.
pub trait Side: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// Word in the text form that marks this side; empty for a stream.
    const NAME: &'static str;
}

/// Packed side that is a stream, without gaps and in type-map order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream;

/// Packed side that is a second layout in user memory, with gaps and in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemorySide;

impl sealed::Sealed for Stream {}
impl sealed::Sealed for MemorySide {}
impl Side for Stream {
    const NAME: &'static str = "";
}
impl Side for MemorySide {
    const NAME: &'static str = "layout";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_behave_alike_are_one_class() {
        let swapped = |named| Value::external32(named).0;
        assert_eq!(swapped(Named::Int), swapped(Named::Float));
        assert_eq!(Value::external32(Named::DoubleComplex), (swapped(Named::Double), 2));
        assert_ne!(Value::native(Named::Int), Value::native(Named::Float));
        assert_eq!(Value::native(Named::LongLong), Value::native(Named::Int64));
        // These two types have the same sizes, but different representations.
        #[cfg(target_arch = "x86_64")]
        assert_ne!(swapped(Named::LongDouble), swapped(Named::Real16));
    }

    #[test]
    fn pairs_are_one_value() {
        let pair = Value::native(Named::ShortInt);
        assert_eq!((pair.user(), pair.packed()), (8, 6));
        assert_eq!(pair.class(), ValueClass::Pair([(Number::Int, 2), (Number::Int, 4)]));
    }

    #[test]
    fn operations_tell_types_apart_where_they_must() {
        let reduced = |op, named| Value::reduced(op, named);
        assert_eq!(reduced(Op::Sum, Named::Int), reduced(Op::Sum, Named::Unsigned));
        assert_ne!(reduced(Op::Min, Named::Int), reduced(Op::Min, Named::Unsigned));
        assert_ne!(reduced(Op::Sum, Named::Int), reduced(Op::Sum, Named::Float));
        assert_eq!(reduced(Op::Replace, Named::Int), reduced(Op::Replace, Named::Float));
        assert_eq!(reduced(Op::Sum, Named::DoubleComplex), (Value::native(Named::Double), 2));
        assert_eq!(reduced(Op::Prod, Named::DoubleComplex), (Value::native(Named::DoubleComplex), 1));
    }

    #[test]
    fn values_read_as_they_print() {
        for &named in Named::ALL.iter().filter(|n| !n.is_marker()) {
            for value in named.parts().iter().map(|p| Value::external32(p.0).0).chain([Value::native(named)])
            {
                assert_eq!(Value::from_text(&value.to_string()), Some(value), "{named}: {value}");
            }
        }
        let pair = Value::pair(Named::Double, Named::Int64, 8);
        assert_eq!(Value::from_text("pair_float8_int8_16"), Some(pair));
        assert_eq!((Value::from_text("swap3"), Value::from_text("")), (None, None));
        assert_eq!((Byte::from_text(""), Byte::from_text("swap4")), (Some(Byte), None));
    }
}
