//! Reductions (MPI 5.0, 6.9): combine values on the packed side with values in user memory, in the
//! order of the type map.
//!
//! Micro-kernels do this where there is one for the operation and the value. Otherwise the same
//! arithmetic is done value by value: for the x87 format, binary16 and binary128, and for pairs
//! that no named type has.

use super::{Packed, Run, Unfit};
use crate::kind::{Direction, Op};
use crate::micro::Buffers;
use crate::micro::buffers::Combined;
use crate::nest::{Leaf, Offsets, ValueClass};

/// Combines the values of a run, whose packed side is `side`. Returns an error if `memory` packs,
/// or if the class of the values occurs only in conversions. `NoOp` does nothing and accepts any
/// class.
pub(super) fn run(op: Op, memory: &Buffers, run: &Run, side: Packed) -> Result<(), Unfit> {
    if memory.direction() == Direction::Pack {
        return Err(Unfit { at: Offsets::ZERO, rule: "a value that is combined while packing" });
    }
    let Run { at, n, step, units, value } = *run;
    // `NoOp` leaves the user's values as they are. `Replace` is a copy for single values; pairs,
    // which may have padding in user memory, are left to `combine`.
    match (op, value.class()) {
        (Op::NoOp, _) => {}
        (Op::Replace, ValueClass::Native(_)) => {
            let len = units * value.user() as u64;
            memory.strided(at.user, at.packed, n, (step.user, step.packed), len);
        }
        (_, ValueClass::Native(_) | ValueClass::Pair(_)) => {
            memory.combine(&Combined { op, value, at, n, step, units, packed: run.packed(side) });
        }
        (_, ValueClass::Swap | ValueClass::Resize(_)) => {
            return Err(Unfit { at: Offsets::ZERO, rule: "a value that a reduction has not" });
        }
    }
    Ok(())
}
