//! Reductions from one buffer to another of the same layout, and reductions by functions of the
//! caller (MPI 5.0, 6.9.5 and 6.9.7). The module `operation` has the reductions by built-in
//! operations that take place during an unpack.

use super::{Committed, CommittedOperation};
use crate::calls;
use crate::datatype::{Class, Named};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::{Direction, Kind, Op, Operation};
use crate::micro::Buffers;
use crate::micro::buffers::Element;

impl CommittedOperation {
    /// Combines `count` instances at `from` with those at `user`, element by element in the order
    /// of the type map, as `MPI_Reduce_local` does: `user = op(from, user)`. Both addresses are
    /// those of displacement 0 of the first instance.
    ///
    /// # Errors
    /// Returns class `Op` if the operation is not a reduction, and class `Count` if the packed size
    /// of all instances does not fit into 63 bits.
    ///
    /// # Safety
    /// All instances must be readable at both addresses and writable at `user`. The instances at
    /// `from` must not overlap those at `user`. During the call, nothing else may write to the
    /// instances at `from` or access those at `user`.
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
        // SAFETY: only values of this nest are touched, at their places in this layout on both
        // sides. The caller promises that these are valid, do not overlap, and are free of data
        // races. This machine runs the level of an engine, since `Engine::new` replaces any other.
        let memory = unsafe { Buffers::new(user, from.cast_mut(), Direction::Unpack, engine.config().level) };
        engine.combine(self.layout(), op, &memory, count)
    }
}

/// Handle that passes the elements of a datatype to a function that the caller provides. All
/// elements have the same basic type.
#[derive(Clone, Debug)]
pub struct ByFunction {
    applied: CommittedOperation,
    element: Named,
}

impl Committed {
    /// Returns the handle that passes the elements to a function, or none for a type without
    /// elements.
    ///
    /// # Errors
    /// Returns class `Op` if not all elements have the same basic type; the error names the first
    /// element whose basic type differs from that of element 0. MPI 5.0, 12.3.4 requires one basic
    /// type for accumulate, which calls an operation for elements. Returns class `Type` for unnamed
    /// pairs.
    pub(crate) fn by_function(&self) -> Result<Option<ByFunction>> {
        let Some(element) = self.datatype().only_basic("unpack_reduce")? else { return Ok(None) };
        // The elements are passed by means of the layout of a built-in operation. For that
        // operation, each element must be one value in its own form. The operations on pairs meet
        // this condition for pairs, and `Replace` meets it for all other types.
        let op = if element.class() == Class::Pair { Op::Minloc } else { Op::Replace };
        Ok(Some(ByFunction { applied: self.for_operation(Operation::Reduce(op))?, element }))
    }
}

impl ByFunction {
    /// Returns the basic type of the elements.
    pub fn element(&self) -> Named {
        self.element
    }

    /// Calls `f(packed elements, user elements, number of elements)` for arrays of the elements of
    /// `count` instances, in the order of the type map. Both arrays are aligned for the basic type.
    /// If the elements lie as aligned arrays both in the stream and in the memory of the user, `f`
    /// gets these arrays themselves; otherwise it gets copies of both. What `f` writes to a copy of
    /// user elements is stored to the memory of the user.
    ///
    /// # Errors
    /// Returns class `Count` if the packed size of all instances does not fit into 63 bits.
    ///
    /// # Safety
    /// The promises of [`CommittedOperation::unpack_raw`] for a reduction must hold: the packed
    /// bytes must be readable, and the elements of the instances at `user` must be readable as well
    /// as writable. `f` may access both only through the addresses that it gets, and only until it
    /// returns.
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
        // SAFETY: only values of this nest are touched. The caller promises that these are valid,
        // do not overlap, and are free of data races. This machine runs the level of an
        // engine, since `Engine::new` replaces any other.
        let memory =
            unsafe { Buffers::new(user, packed.cast_mut(), Direction::Unpack, engine.config().level) };
        engine.hand_on(self.applied.layout(), element, &memory, count, f)
    }
}
