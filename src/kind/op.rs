//! Predefined reduction operations (MPI 5.0, 6.9.2 and 6.9.4), and `MPI_REPLACE` and `MPI_NO_OP` of
//! one-sided communication (12.3.4).

use std::fmt;

/// One of MPI's predefined reduction operations. It combines a packed element with the user's:
/// `user = op(packed, user)`, which is `inoutvec[i] = invec[i] op inoutvec[i]` in MPI 5.0, 6.9.5.
///
/// ```
/// use ddtc::{Datatype, Op, Operation};
///
/// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<u8>())?)?;
/// let mut user = [7, 7];
/// pair.for_operation(Operation::Reduce(Op::Max))?.unpack(&[5, 9], 0, 1, &mut user)?;
/// assert_eq!(user, [7, 9]);
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
#[allow(clippy::enum_variant_names)] // `NoOp` is MPI's name.
pub enum Op {
    /// Sum; integers wrap around.
    Sum,
    /// Product; integers wrap around.
    Prod,
    /// The smaller value. If neither is smaller, for example because one is a NaN, the user's
    /// value.
    Min,
    /// The larger value. If neither is larger, for example because one is a NaN, the user's value.
    Max,
    /// Bitwise and.
    Band,
    /// Bitwise or.
    Bor,
    /// Bitwise exclusive or.
    Bxor,
    /// Logical and: 1 if both values are different from 0, else 0.
    Land,
    /// Logical or.
    Lor,
    /// Logical exclusive or.
    Lxor,
    /// The pair with the smaller value; for equal values, the smaller index.
    Minloc,
    /// The pair with the larger value; for equal values, the smaller index.
    Maxloc,
    /// The packed value.
    Replace,
    /// The user's value, which stays unchanged.
    NoOp,
}

impl Op {
    /// All operations in the order of the enum: `ALL[op as usize] == op`.
    pub(crate) const ALL: [Op; 14] = [
        Op::Sum,
        Op::Prod,
        Op::Min,
        Op::Max,
        Op::Band,
        Op::Bor,
        Op::Bxor,
        Op::Land,
        Op::Lor,
        Op::Lxor,
        Op::Minloc,
        Op::Maxloc,
        Op::Replace,
        Op::NoOp,
    ];

    /// Returns the operation's name in text forms and on the command line, which is MPI's name in
    /// lower case without `MPI_`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Prod => "prod",
            Op::Min => "min",
            Op::Max => "max",
            Op::Band => "band",
            Op::Bor => "bor",
            Op::Bxor => "bxor",
            Op::Land => "land",
            Op::Lor => "lor",
            Op::Lxor => "lxor",
            Op::Minloc => "minloc",
            Op::Maxloc => "maxloc",
            Op::Replace => "replace",
            Op::NoOp => "no_op",
        }
    }

    /// Returns MPI's name of the operation, such as `MPI_SUM`.
    pub(crate) fn mpi_name(self) -> String {
        format!("MPI_{}", self.name().to_uppercase())
    }

    /// Returns the value of the operation's handle in the ABI of MPI 5.0 (section 20.4).
    pub(crate) fn abi_value(self) -> u32 {
        match self {
            Op::Sum => 0x21,
            Op::Min => 0x22,
            Op::Max => 0x23,
            Op::Prod => 0x24,
            Op::Band => 0x28,
            Op::Bor => 0x29,
            Op::Bxor => 0x2a,
            Op::Land => 0x30,
            Op::Lor => 0x31,
            Op::Lxor => 0x32,
            Op::Minloc => 0x38,
            Op::Maxloc => 0x39,
            Op::Replace => 0x3c,
            Op::NoOp => 0x3d,
        }
    }

    /// Returns the operation whose ABI handle has the given value, or `None` if there is none.
    pub(crate) fn from_abi(value: u64) -> Option<Op> {
        Op::ALL.into_iter().find(|op| u64::from(op.abi_value()) == value)
    }

    /// Returns true for `MPI_MINLOC` and `MPI_MAXLOC`, whose operands are pairs of a value and an
    /// index.
    pub(crate) fn is_location(self) -> bool {
        matches!(self, Op::Minloc | Op::Maxloc)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_numbered_and_named() {
        for (i, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, i);
            assert_eq!(Op::from_abi(op.abi_value().into()), Some(op));
        }
        assert_eq!((Op::from_abi(0x20), Op::from_abi(0x25)), (None, None));
        assert_eq!(Op::NoOp.mpi_name(), "MPI_NO_OP");
    }
}
