//! Reductions that are more than an operation on the way from the stream: from one buffer to another of the same layout, and by functions of the
//! caller's own (MPI 5.0, 6.9.5 and 6.9.7).

use super::{Committed, CommittedOperation};
use crate::calls;
use crate::datatype::{Class, Named};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::{Direction, Kind, Op, Operation};
use crate::micro::Buffers;
use crate::micro::buffers::Element;

impl CommittedOperation {
    /// Combines `count` instances at `from` with those at `user`, element by element in the order of the type map: `user = op(from, user)`, as
    /// `MPI_Reduce_local` does. Both are buffer addresses as MPI means them.
    ///
    /// # Errors
    /// Class `Op` where the operation is no reduction; a packed size beyond 63 bits.
    ///
    /// # Safety
    /// All instances are readable at both, writable at `user`, and do not overlap between the two.
    pub(crate) unsafe fn combine_raw(&self, from: *const u8, count: u64, user: *mut u8) -> Result<()> {
        let operation = self.operation();
        let Operation::Reduce(op) = operation else {
            let rule = "must be a reduction";
            return Err(Error::new(ErrorClass::Op, "reduce_local", "operation", operation, rule));
        };
        let bytes = self.packed_size(count)?;
        if bytes == 0 {
            return Ok(());
        }
        if calls::counting() {
            calls::count(Kind { direction: Direction::Unpack, operation }, bytes);
        }
        let engine = self.committed().engine();
        let (from, user) = (from.wrapping_offset(self.origin()), user.wrapping_offset(self.origin()));
        // SAFETY: only values of this nest are touched, at their places in the user's layout on both sides, which the caller vouches for.
        let memory = unsafe { Buffers::new(user, from.cast_mut(), Direction::Unpack, engine.config().level) };
        engine.combine(self.layout(), op, &memory, count)
    }
}

/// Hands the elements of a datatype to a function of the caller's: all of one basic type.
#[derive(Clone, Debug)]
pub struct ByFunction {
    applied: CommittedOperation,
    element: Named,
}

impl Committed {
    /// Returns the handle that hands the elements to a function; none for a type without elements.
    ///
    /// # Errors
    /// Class `Op`, naming the first element that is of another basic type than the first (MPI 5.0, 12.3.4 asks this of accumulate, whose elements
    /// an operation is called for); class `Type` for unnamed pairs.
    pub(crate) fn by_function(&self) -> Result<Option<ByFunction>> {
        let Some(element) = self.datatype().only_basic("unpack_reduce")? else { return Ok(None) };
        // What only copies has the elements as they are; a pair is one with the operations on pairs.
        let op = if element.class() == Class::Pair { Op::Minloc } else { Op::Replace };
        Ok(Some(ByFunction { applied: self.for_operation(Operation::Reduce(op))?, element }))
    }
}

impl ByFunction {
    /// Returns the basic type of the elements.
    pub fn element(&self) -> Named {
        self.element
    }

    /// Calls `f(packed elements, user elements, number)` for rows of elements of `count` instances, in the order of the type map. Both are arrays
    /// that are aligned for the type: the user's own memory and the stream where these are, else copies.
    ///
    /// # Errors
    /// A packed size beyond 63 bits.
    ///
    /// # Safety
    /// As [`CommittedOperation::unpack_raw`].
    pub unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        count: u64,
        user: *mut u8,
        f: &mut dyn FnMut(*const u8, *mut u8, u64),
    ) -> Result<()> {
        let bytes = self.applied.packed_size(count)?;
        if bytes == 0 {
            return Ok(());
        }
        if calls::counting() {
            calls::count(Kind { direction: Direction::Unpack, operation: self.applied.operation() }, bytes);
        }
        let engine = self.applied.committed().engine();
        let user = user.wrapping_offset(self.applied.origin());
        let element =
            Element { extent: self.element.extent() as usize, alignment: self.element.alignment() as usize };
        // SAFETY: only values of this nest are touched, which the caller vouches for.
        let memory =
            unsafe { Buffers::new(user, packed.cast_mut(), Direction::Unpack, engine.config().level) };
        engine.hand_on(self.applied.layout(), element, &memory, count, f)
    }
}
