//! Reductions (MPI 5.0, 6.9): values of the packed side combined with those in user memory, in the order of the type map.
//!
//! Micro-kernels do it where there is one for the operation and the value, and the same arithmetic value by value where there is none: x87's format,
//! binary16 and binary128, and pairs that no named type is.

use super::{Packed, Run, Unfit};
use crate::kind::{Direction, Op};
use crate::micro::Buffers;
use crate::micro::buffers::Combined;
use crate::nest::{Class, Leaf, Offsets};

/// Does it to a run, whose packed side is as `side` says.
pub(super) fn run(op: Op, memory: &Buffers, run: &Run, side: Packed) -> Result<(), Unfit> {
    if memory.direction() == Direction::Pack {
        return Err(Unfit { at: Offsets::ZERO, rule: "a value that is combined while packing" });
    }
    let Run { at, n, step, units, value } = *run;
    match (op, value.class()) {
        (Op::NoOp, _) => {}
        (Op::Replace, Class::Native(_)) => {
            let len = units * value.user() as u64;
            memory.strided(at.user, at.packed, n, (step.user, step.packed), len);
        }
        (_, Class::Native(_) | Class::Pair(_)) => {
            memory.combine(&Combined { op, value, at, n, step, units, packed: run.packed(side) });
        }
        (_, Class::Swap | Class::Resize(_)) => {
            return Err(Unfit { at: Offsets::ZERO, rule: "a value that a reduction has not" });
        }
    }
    Ok(())
}
