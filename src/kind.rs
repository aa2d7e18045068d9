//! Kinds of transfers: the direction in which bytes move, and the operation on each value.
//!
//! A kind is a [`Direction`] (pack or unpack) together with a leaf [`Operation`]. The kernels of a
//! layout, the counters of calls and the output of `ddtc explain` are keyed by kind. Every
//! committed datatype can pack and unpack bytes; any other kind costs nothing until it is asked
//! for.

mod op;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorClass};
pub use op::Op;

/// Transfer between the user's buffer and the packed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// User memory to the packed stream.
    Pack,
    /// Packed stream to user memory.
    Unpack,
}

impl Direction {
    /// Both directions, pack first.
    pub const BOTH: [Direction; 2] = [Direction::Pack, Direction::Unpack];

    /// Returns `pack` or `unpack`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Pack => "pack",
            Direction::Unpack => "unpack",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Operation on each value while it is packed or unpacked.
///
/// ```
/// use ddtc::{Datatype, Operation};
///
/// let number = ddtc::commit(&Datatype::of::<u16>())?;
/// let mut packed = [0; 2];
/// number.for_operation(Operation::External32)?.pack(&258u16.to_ne_bytes(), 0, 1, &mut packed)?;
/// assert_eq!(packed, [1, 2]);
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// The bytes of each value are moved as they are.
    #[default]
    Bytes,
    /// Each value has the external32 representation on the packed side (MPI 5.0, 14.5.2).
    External32,
    /// Each packed value is combined with the value in the user's buffer, which receives the
    /// result. This operation is only defined for unpacking.
    Reduce(Op),
}

impl Operation {
    /// All operations except the reductions, beginning with `Bytes`.
    pub(crate) const PLAIN: [Operation; 2] = [Operation::Bytes, Operation::External32];

    /// Number of classes of operations that are counted separately: one for each plain operation,
    /// and one for all reductions together.
    const CLASSES: usize = Operation::PLAIN.len() + 1;

    /// Returns all operations, beginning with `Bytes` and ending with the reductions.
    pub(crate) fn all() -> impl Iterator<Item = Operation> {
        Operation::PLAIN.into_iter().chain(Op::ALL.into_iter().map(Operation::Reduce))
    }

    /// Returns the number of the class in which the operation is counted. It is below
    /// [`Operation::CLASSES`].
    fn class(self) -> usize {
        match self {
            Operation::Bytes => 0,
            Operation::External32 => 1,
            Operation::Reduce(_) => Operation::CLASSES - 1,
        }
    }

    /// Returns the operation's name in text forms and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Bytes => "bytes",
            Operation::External32 => "external32",
            Operation::Reduce(op) => op.name(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Operation, Error> {
        Operation::all().find(|o| o.name() == text).ok_or_else(|| {
            let names: Vec<_> = Operation::all().map(Operation::name).collect();
            let rule = format!("must be one of {}", names.join(", "));
            Error::new(ErrorClass::Arg, "kind", "operation", text, rule)
        })
    }
}

/// Kind of a transfer: its direction, and the operation on each value on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Direction in which the bytes move.
    pub direction: Direction,
    /// Operation on each value that is moved.
    pub operation: Operation,
}

impl Kind {
    /// Number of kinds that are counted separately.
    pub const COUNT: usize = 2 * Operation::CLASSES;

    /// Returns the index of the kind in tables that have an entry for each kind. It is below
    /// [`Kind::COUNT`]. Pack and unpack of bytes have the first two indices, and all reductions of
    /// one direction share one index.
    pub fn index(self) -> usize {
        2 * self.operation.class() + self.direction as usize
    }
}

impl From<Direction> for Kind {
    /// Returns the kind that moves bytes unchanged in this direction.
    fn from(direction: Direction) -> Kind {
        Kind { direction, operation: Operation::Bytes }
    }
}

/// Writes `pack` or `unpack`, followed by the operation unless it is `Bytes`, as in `pack
/// external32`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.direction.fmt(f)?;
        if self.operation == Operation::Bytes { Ok(()) } else { write!(f, " {}", self.operation) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_order() {
        let all = Operation::PLAIN.into_iter().chain([Operation::Reduce(Op::Sum)]);
        let kinds = all.flat_map(|operation| Direction::BOTH.map(|direction| Kind { direction, operation }));
        assert!(kinds.map(Kind::index).eq(0..Kind::COUNT));
        let reductions =
            Op::ALL.map(|op| Kind { direction: Direction::Unpack, operation: Operation::Reduce(op) });
        assert!(reductions.iter().all(|kind| kind.index() == Kind::COUNT - 1));
        assert_eq!(Kind::from(Direction::Unpack).index(), Direction::Unpack as usize);
    }

    #[test]
    fn operations_read_as_they_print() {
        for operation in Operation::all() {
            assert_eq!(operation.to_string().parse(), Ok(operation));
        }
        let error = "external64".parse::<Operation>().unwrap_err().to_string();
        assert!(error.contains("bytes, external32, sum") && error.contains("no_op"), "{error}");
    }
}
