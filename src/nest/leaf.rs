//! Leaves of a nest, which move bytes or values of a class, and its packed side.
//!
//! Both are types. Whoever takes a `LoopNest<P>` takes bytes and a stream, and cannot be given anything else. A value carries a class rather than a
//! basic type: `int` and `float` have one class where they behave alike, so their runs merge.

use std::fmt;
use std::hash::Hash;

use super::Offsets;
use crate::datatype::{Class as Basic, Named};
use crate::kind::Op;

mod sealed {
    pub trait Sealed {}
}

/// Unit that a leaf counts.
pub trait Leaf: sealed::Sealed + Copy + Eq + Hash + fmt::Debug + fmt::Display + 'static {
    /// Whether moving a unit twice is moving it once.
    const IDEMPOTENT: bool;

    /// Returns the unit where the packed side is memory too.
    fn in_memory(self) -> Self;

    /// Bytes of one unit in user memory.
    fn user(self) -> i64;

    /// Bytes of one unit on the packed side.
    fn packed(self) -> i64;

    /// The leaf of a text; the empty one is the byte's.
    fn from_text(text: &str) -> Option<Self>;

    /// Bytes of `k` units on both sides; none past 63 bits.
    fn bytes(self, k: u64) -> Option<Offsets> {
        let k = i64::try_from(k).ok()?;
        Some(Offsets { user: self.user().checked_mul(k)?, packed: self.packed().checked_mul(k)? })
    }

    /// Returns the span of `k` units where it is known to fit: of a length that a nest holds.
    fn span(self, k: i64) -> Offsets {
        Offsets { user: self.user().wrapping_mul(k), packed: self.packed().wrapping_mul(k) }
    }
}

/// One byte on both sides.
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

/// A number as a machine holds it: what an operation on it depends on, besides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// Signed integer.
    Int,
    /// Unsigned integer.
    Uint,
    /// IEEE binary floating point of its size.
    Float,
    /// C's `long double` where that is x87's: 10 bytes and padding.
    Extended,
    /// Two [`Number::Float`]s of half its size.
    Complex,
    /// Two [`Number::Extended`].
    ExtendedComplex,
    /// Truth value.
    Logical,
    /// Character: no arithmetic.
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

    /// Returns the kind of number that a basic type holds, which is no pair.
    fn from_named(named: Named) -> Number {
        // x87 has 80 bits of its 16 bytes; elsewhere C's long double is binary64 or binary128.
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

/// Facts of a value that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The value itself: for operations that combine values.
    Native(Number),
    /// A value and an index with their sizes in bytes, in one unit: for MINLOC and MAXLOC.
    Pair([(Number, u8); 2]),
    /// external32 of the same size: the bytes reversed on machines that are little-endian.
    Swap,
    /// external32 of another size (MPI 5.0, 14.5.2), by the conversion of this kind of number.
    Resize(Number),
}

/// A value of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    class: Class,
    user: u8,
    packed: u8,
}

impl Value {
    /// Returns the value that a basic type is natively; a pair is one value, its padding inside included.
    pub fn native(named: Named) -> Value {
        match *named.parts() {
            [(value, _), (index, at)] => Value::pair(value, index, at),
            _ => Value::number(Number::from_named(named), named.size() as u8),
        }
    }

    /// Returns a number of so many bytes on both sides.
    pub fn number(number: Number, bytes: u8) -> Value {
        Value { class: Class::Native(number), user: bytes, packed: bytes }
    }

    /// Returns a value with an index `at` bytes behind its first byte; gapless on the packed side.
    pub fn pair(value: Named, index: Named, at: i64) -> Value {
        let number = |n: Named| (Number::from_named(n), n.size() as u8);
        let class = Class::Pair([number(value), number(index)]);
        Value { class, user: (at + index.size()) as u8, packed: (value.size() + index.size()) as u8 }
    }

    /// Returns the class of a basic type that is no pair to `op`, and how many of them: types that `op` treats alike are one class, so their runs merge. The sum
    /// of complex numbers is that of their parts.
    pub fn reduced(op: Op, named: Named) -> (Value, u64) {
        let number = Number::from_named(named);
        let (number, n) = match (op, number) {
            (Op::Replace | Op::NoOp, _) => (Number::Bits, 1),
            (Op::Sum, Number::Complex) => (Number::Float, 2),
            (Op::Sum, Number::ExtendedComplex) => (Number::Extended, 2),
            // What is no number is refused before it is lowered.
            (Op::Min | Op::Max, number) => (number, 1),
            (_, Number::Uint | Number::Logical | Number::Character | Number::Bits) => (Number::Int, 1),
            (_, number) => (number, 1),
        };
        (Value::number(number, (named.size() / n) as u8), n as u64)
    }

    /// Returns the class of a basic type that is no pair in external32, and how many of them: a complex number is two.
    pub fn external32(named: Named) -> (Value, u64) {
        let number = Number::from_named(named);
        let (number, n) = match number {
            Number::Complex => (Number::Float, 2),
            Number::ExtendedComplex => (Number::Extended, 2),
            number => (number, 1),
        };
        let (user, packed) = ((named.size() / n) as u8, (named.external32_size() / n) as u8);
        let same = user == packed && number != Number::Extended;
        let class = if same { Class::Swap } else { Class::Resize(number) };
        (Value { class, user, packed }, n as u64)
    }

    /// Returns the facts of it that an operation needs.
    pub fn class(self) -> Class {
        self.class
    }
}

impl sealed::Sealed for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Class::Swap => write!(f, "swap{}", self.user),
            Class::Native(number) => write!(f, "{}{}", number.name(), self.user),
            Class::Pair(pair) => {
                write!(f, "pair")?;
                pair.iter().try_for_each(|(number, size)| write!(f, "_{}{size}", number.name()))?;
                write!(f, "_{}", self.user)
            }
            Class::Resize(number) => write!(f, "{}{}_{}", number.name(), self.user, self.packed),
        }
    }
}

impl Leaf for Value {
    /// It may be added.
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

    /// Values are few: those of the basic types.
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

/// Space of the packed offsets of a nest.
pub trait Side: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// The word of the text form; empty for a stream.
    const NAME: &'static str;
}

/// The packed stream: gapless, in type-map order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream;

/// A second layout in user memory, with gaps and in any order.
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
        // Another representation, though the sizes are equal.
        #[cfg(target_arch = "x86_64")]
        assert_ne!(swapped(Named::LongDouble), swapped(Named::Real16));
    }

    #[test]
    fn pairs_are_one_value() {
        let pair = Value::native(Named::ShortInt);
        assert_eq!((pair.user(), pair.packed()), (8, 6));
        assert_eq!(pair.class(), Class::Pair([(Number::Int, 2), (Number::Int, 4)]));
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
