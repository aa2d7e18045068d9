//! Committed datatypes under a leaf operation other than a copy of bytes. The caller gets the
//! handle once and keeps it. The layout is not compiled at commit: if the mode compiles, a later
//! call does that.

mod definition;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::Committed;
use super::definition::Call;
use crate::calls;
use crate::code::kernel::Kernel;
use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::interval;
use crate::kind::{Direction, Kind, Operation};
use crate::layout::{CompiledLayout, PlacedLayout, Tier};
use crate::micro::Buffers;
use crate::nest::{LoopNest, Normal, Value};

/// A committed datatype that applies an [`Operation`] to its values, made by
/// [`Committed::for_operation`]. Clones share it and keep its code alive.
///
/// ```
/// use ddtc::{Datatype, Operation};
///
/// // Doubles are big-endian in external32, whatever they are here.
/// let double = ddtc::commit(&Datatype::of::<f64>())?.for_operation(Operation::External32)?;
/// let mut packed = [0; 8];
/// double.pack(&1.5f64.to_ne_bytes(), 0, 1, &mut packed)?;
/// assert_eq!(packed, 1.5f64.to_be_bytes());
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone)]
pub struct CommittedOperation(Arc<Inner>);

struct Inner {
    committed: Committed,
    layout: Arc<CompiledLayout<Value>>,
    origin: isize,
}

impl fmt::Debug for CommittedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommittedOperation")
            .field("operation", &self.operation())
            .field("committed", &self.0.committed)
            .finish()
    }
}

impl Committed {
    /// Returns the datatype in a form that applies `operation` to each value while it packs and
    /// unpacks. There is no such form for [`Operation::Bytes`], because the methods of
    /// [`Committed`] move bytes unchanged.
    ///
    /// ```
    /// use ddtc::{Datatype, Op, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<u8>())?)?;
    /// let sum = pair.for_operation(Operation::Reduce(Op::Sum))?;
    /// let mut user = [10, 20];
    /// sum.unpack(&[1, 2], 0, 1, &mut user)?;
    /// assert_eq!(user, [11, 22]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Arg` for [`Operation::Bytes`]. Class `Op`, with the first element for which a
    /// reduction is not defined. Class `ValueTooLarge` if the size of the datatype is more than
    /// half of [`i64::MAX`]: its size in external32 might not fit in 63 bits, but the limit is the
    /// same for every operation. Class `NoMem` if there is not enough memory.
    pub fn for_operation(&self, operation: Operation) -> Result<CommittedOperation> {
        if operation == Operation::Bytes {
            let rule = "must not be bytes: the committed datatype itself moves bytes";
            return Err(Error::new(ErrorClass::Arg, "for_operation", "operation", operation, rule));
        }
        let PlacedLayout { layout, origin } = self.engine().values(self.datatype(), operation)?;
        Ok(CommittedOperation(Arc::new(Inner { committed: self.clone(), layout, origin: origin as isize })))
    }
}

impl CommittedOperation {
    /// Returns the committed datatype.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// assert_eq!(big.committed().packed_size(1)?, 8);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn committed(&self) -> &Committed {
        &self.0.committed
    }

    /// Returns the layout, whose leaves are values, that serves calls.
    pub(super) fn layout(&self) -> &Arc<CompiledLayout<Value>> {
        &self.0.layout
    }

    /// Returns the number of bytes to add to a buffer address to get the address at which the nest
    /// begins.
    pub(super) fn origin(&self) -> isize {
        self.0.origin
    }

    fn datatype(&self) -> &Datatype {
        self.0.committed.datatype()
    }

    /// Returns the operation that is applied to the values.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// assert_eq!(big.operation(), Operation::External32);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn operation(&self) -> Operation {
        self.0.layout.operation()
    }

    /// Returns the canonical loop nest of values, at origin 0.
    pub(crate) fn nest(&self) -> &LoopNest<Normal, Value> {
        self.0.layout.nest()
    }

    /// Returns the kernel of `direction`, and compiles it now if the mode compiles at all. Returns
    /// none if values are moved without a kernel.
    pub(crate) fn kernel(&self, direction: Direction) -> Option<&Arc<Kernel>> {
        self.kernel_for(direction, None)
    }

    /// Returns one line that describes how calls of `direction` are served.
    pub(crate) fn schedule(&self, direction: Direction) -> String {
        match self.0.layout.served(direction) {
            None => "not compiled yet".to_owned(),
            Some(Tier::Kernel { schedule, .. }) => schedule.to_string(),
            Some(Tier::Interpreted { reason, .. }) => format!("without a kernel: {reason}"),
        }
    }

    fn kernel_for(&self, direction: Direction, bytes: Option<u64>) -> Option<&Arc<Kernel>> {
        let served = self.0.committed.engine().serve_call(&self.0.layout, direction, bytes);
        served.and_then(Tier::kernel)
    }

    /// Returns the number of packed bytes of `count` instances.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// // A long is 4 bytes in external32, whatever it is here.
    /// let long = ddtc::commit(&"long".parse()?)?.for_operation(Operation::External32)?;
    /// assert_eq!(long.packed_size(3)?, 12);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Count` if the number does not fit in 63 bits.
    pub fn packed_size(&self, count: u64) -> Result<u64> {
        let bytes = u128::from(count) * self.nest().size() as u128;
        u64::try_from(bytes).ok().filter(|&b| b <= i64::MAX as u64).ok_or_else(|| {
            let rule = "count times the packed size of the datatype must fit in 63 bits";
            Error::new(ErrorClass::Count, "packed_size", "count", count, rule)
        })
    }

    /// Packs `count` instances from `user` to `packed`. The pointer `user` is the address of
    /// displacement 0 of the first instance, as in MPI.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// let mut packed = [0; 8];
    /// // SAFETY: two integers are read and 8 bytes written.
    /// unsafe { big.pack_raw([1i32, 2].as_ptr().cast(), 1, packed.as_mut_ptr())? };
    /// assert_eq!(packed, [0, 0, 0, 1, 0, 0, 0, 2]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Conversion`, with the index of the first basic element whose value does not fit. The
    /// elements before it have been packed. Class `Op` for a reduction, which can only be unpacked,
    /// and class `Count` if the packed size of all instances does not fit in 63 bits; nothing is
    /// written then.
    ///
    /// # Safety
    /// As for [`Committed::pack_raw`], with [`CommittedOperation::packed_size`] bytes at `packed`.
    pub unsafe fn pack_raw(&self, user: *const u8, count: u64, packed: *mut u8) -> Result<()> {
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe {
            self.range_raw(Direction::Pack, user.cast_mut(), count, packed, 0..self.packed_size(count)?)
        }
    }

    /// Unpacks `count` instances from `packed` to `user`.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// let mut user = [0i32; 2];
    /// // SAFETY: 8 bytes are read and two integers written.
    /// unsafe { big.unpack_raw([0, 0, 0, 1, 0, 0, 0, 2].as_ptr(), 1, user.as_mut_ptr().cast())? };
    /// assert_eq!(user, [1, 2]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`CommittedOperation::pack_raw`], except that a reduction can be unpacked. If a value
    /// does not fit in its type, the elements before this value have been unpacked.
    ///
    /// # Safety
    /// As for [`CommittedOperation::pack_raw`], with reading and writing exchanged. A reduction
    /// also reads the values of the instances, so these must be readable, too.
    pub unsafe fn unpack_raw(&self, packed: *const u8, count: u64, user: *mut u8) -> Result<()> {
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe {
            self.range_raw(Direction::Unpack, user, count, packed.cast_mut(), 0..self.packed_size(count)?)
        }
    }

    /// Checks that the operation exists in `direction`. Callers need this check even if they move
    /// nothing.
    ///
    /// # Errors
    /// Returns class `Op` for packing under a reduction.
    pub(crate) fn check_direction(&self, direction: Direction) -> Result<()> {
        match (direction, self.operation()) {
            (Direction::Pack, Operation::Reduce(op)) => {
                let rule = "must not be a reduction: it combines packed values with those in user memory, so it can only unpack";
                Err(Error::new(ErrorClass::Op, "pack", "operation", op.mpi_name(), rule))
            }
            _ => Ok(()),
        }
    }

    /// Moves the whole values in the packed bytes `range` of `count` instances in `direction`.
    /// `packed` is the address of packed byte `range.start`.
    ///
    /// # Errors
    /// Returns the errors of [`CommittedOperation::pack_raw`] or
    /// [`CommittedOperation::unpack_raw`], and class `Op` for packing under a reduction.
    ///
    /// # Safety
    /// The promises of [`CommittedOperation::pack_raw`] or [`CommittedOperation::unpack_raw`] must
    /// hold for the values inside the range, and `range` must lie inside the packed stream. A
    /// reduction also reads the values in user memory, so these must be readable, too.
    pub(crate) unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) -> Result<()> {
        self.check_direction(direction)?;
        let kind = Kind { direction, operation: self.operation() };
        if range.is_empty() {
            return Ok(());
        }
        let bytes = range.end - range.start;
        if calls::counting() {
            calls::count(kind, bytes);
        }
        // If the call moves the whole stream, a kernel serves it, which may be compiled now. If the
        // call moves only a range, or if there is no kernel, the executor of values serves it.
        let moved = user.wrapping_offset(self.0.origin);
        let whole = bytes == self.packed_size(count)?;
        let kernel = whole.then(|| self.kernel_for(direction, Some(bytes))).flatten();
        let by = if kernel.is_some() { "kernel" } else { "values" };
        tracing::trace!(target: "ddtc", %kind, bytes, by, "call");
        let engine = self.0.committed.engine();
        let done = if let Some(kernel) = kernel {
            // SAFETY: the kernel was made for the nest of this layout, which begins at `moved`. The
            // range is the whole stream, and the caller promises that its memory is valid.
            unsafe { kernel.call(moved, packed, count) };
            Ok(())
        } else {
            let start = packed.wrapping_sub(range.start as usize);
            // SAFETY: only values of this nest inside the range are moved. The caller promises that
            // these are valid, do not overlap, and are free of data races. This machine
            // runs the level of an engine, since `Engine::new` replaces any other.
            let memory = unsafe { Buffers::new(moved, start, direction, engine.config().level) };
            engine.apply(self.datatype(), &self.0.layout, &memory, count, range.clone())
        };
        // Check mode compares conversions only: a reduction overwrites the values that it has read,
        // so there is nothing left to compare its result with.
        if !engine.config().check || self.operation() != Operation::External32 {
            return done;
        }
        // SAFETY: the promises of the caller still hold just after the call.
        unsafe { self.0.compare(&Call { direction, user, packed, count, range }, done) }
    }

    /// Packs `count` instances from `src` into `dst`. The argument `origin` is the index in `src`
    /// of displacement 0 of the first instance. Returns the number of bytes written, which is
    /// [`CommittedOperation::packed_size`].
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// let user: Vec<u8> = [1i32, 2].iter().flat_map(|n| n.to_ne_bytes()).collect();
    /// let mut packed = [0; 8];
    /// assert_eq!(big.pack(&user, 0, 1, &mut packed)?, 8);
    /// assert_eq!(packed, [0, 0, 0, 1, 0, 0, 0, 2]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Committed::pack`], after which nothing has been written, and the errors of
    /// [`CommittedOperation::pack_raw`].
    pub fn pack(&self, src: &[u8], origin: usize, count: u64, dst: &mut [u8]) -> Result<usize> {
        let n = self.whole(("src", src.len()), origin, count, ("dst", dst.len()))?;
        // SAFETY: `whole` has checked that all instances lie inside `src` and the packed bytes
        // inside `dst`. The borrows keep the two apart.
        unsafe { self.pack_raw(src.as_ptr().wrapping_add(origin), count, dst.as_mut_ptr()) }?;
        Ok(n)
    }

    /// Unpacks `count` instances from `src` into `dst`. The argument `origin` is the index in `dst`
    /// of displacement 0 of the first instance. Returns the number of bytes read.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// let mut user = [0; 8];
    /// assert_eq!(big.unpack(&[0, 0, 0, 1, 0, 0, 0, 2], 0, 1, &mut user)?, 8);
    /// assert_eq!(user[..4], 1i32.to_ne_bytes());
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Committed::unpack`], after which nothing has been written, and the errors of
    /// [`CommittedOperation::unpack_raw`].
    pub fn unpack(&self, src: &[u8], origin: usize, count: u64, dst: &mut [u8]) -> Result<usize> {
        let n = self.whole(("dst", dst.len()), origin, count, ("src", src.len()))?;
        // SAFETY: `whole` has checked that all instances lie inside `dst` and the packed bytes
        // inside `src`. The borrows keep the two apart.
        unsafe { self.unpack_raw(src.as_ptr(), count, dst.as_mut_ptr().wrapping_add(origin)) }?;
        Ok(n)
    }

    /// Packs a part of the packed stream of `count` instances into `dst`. The part begins with byte
    /// `offset` of the stream, and has as many whole values as fit in `dst`. Returns the number of
    /// bytes written, which may be less than the length of `dst`.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// let user: Vec<u8> = [1i32, 2].iter().flat_map(|n| n.to_ne_bytes()).collect();
    /// // One value fits into 6 bytes.
    /// let mut piece = [0; 6];
    /// assert_eq!(big.pack_range(&user, 0, 1, 4, &mut piece)?, 4);
    /// assert_eq!(piece[..4], [0, 0, 0, 2]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Buffer` if an instance has bytes outside of `src`. Class `Arg` if `offset` is neither
    /// between two values of the stream nor at one of its ends. In these cases nothing is written.
    /// Also the errors of [`CommittedOperation::pack_raw`].
    pub fn pack_range(
        &self,
        src: &[u8],
        origin: usize,
        count: u64,
        offset: u64,
        dst: &mut [u8],
    ) -> Result<usize> {
        let range = self.range(("src", src.len()), origin, count, offset, dst.len())?;
        let n = (range.end - range.start) as usize;
        let user = src.as_ptr().wrapping_add(origin).cast_mut();
        // SAFETY: `range` has checked that all instances lie inside `src`, and has cut the range to
        // the length of `dst`. Packing only reads `src`, so the cast to a mutable pointer is
        // harmless.
        unsafe { self.range_raw(Direction::Pack, user, count, dst.as_mut_ptr(), range) }?;
        Ok(n)
    }

    /// Unpacks `src` into `dst`. The bytes in `src` are the part of the packed stream of `count`
    /// instances that begins with byte `offset`. Only whole values are unpacked. Returns the number
    /// of bytes read.
    ///
    /// ```
    /// use ddtc::{Datatype, Operation};
    ///
    /// let pair = ddtc::commit(&Datatype::contiguous(2, &Datatype::of::<i32>())?)?;
    /// let big = pair.for_operation(Operation::External32)?;
    /// let mut user = [0; 8];
    /// assert_eq!(big.unpack_range(&[0, 0, 0, 2], 0, 1, 4, &mut user)?, 4);
    /// assert_eq!(user[4..], 2i32.to_ne_bytes());
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`CommittedOperation::pack_range`], with `src` and `dst` exchanged, except that a
    /// reduction can be unpacked.
    pub fn unpack_range(
        &self,
        src: &[u8],
        origin: usize,
        count: u64,
        offset: u64,
        dst: &mut [u8],
    ) -> Result<usize> {
        let range = self.range(("dst", dst.len()), origin, count, offset, src.len())?;
        let n = (range.end - range.start) as usize;
        let user = dst.as_mut_ptr().wrapping_add(origin);
        // SAFETY: `range` has checked that all instances lie inside `dst`, and has cut the range to
        // the length of `src`. Unpacking only reads `src`, so the cast to a mutable pointer is
        // harmless.
        unsafe { self.range_raw(Direction::Unpack, user, count, src.as_ptr().cast_mut(), range) }?;
        Ok(n)
    }

    /// Checks both slices of a call of `count` whole instances and returns the packed size in
    /// bytes.
    ///
    /// # Errors
    /// Returns class `Buffer` if an instance leaves the user slice, `Count` if the packed size
    /// overflows, and `Truncate` if the packed slice is too short.
    fn whole(
        &self,
        user: (&'static str, usize),
        origin: usize,
        count: u64,
        packed: (&'static str, usize),
    ) -> Result<usize> {
        self.0.committed.span(self.operation().name(), user, origin, count)?;
        let n = self.packed_size(count)?;
        if n > packed.1 as u64 {
            let rule = format!("must hold the {n} packed bytes of {count} instances");
            let argument = format!("{}.len()", packed.0);
            return Err(Error::new(ErrorClass::Truncate, self.operation().name(), argument, packed.1, rule));
        }
        Ok(n as usize)
    }

    fn range(
        &self,
        user: (&'static str, usize),
        origin: usize,
        count: u64,
        offset: u64,
        max_bytes: usize,
    ) -> Result<Range<u64>> {
        self.0.committed.span(self.operation().name(), user, origin, count)?;
        self.whole_values(count, offset, max_bytes as u64)
    }

    /// Returns the range of the packed stream of `count` instances that begins at `offset` and
    /// contains as many whole values as `max_bytes` bytes hold. [`CommittedOperation::range_raw`]
    /// takes such a range.
    ///
    /// # Errors
    /// Returns class `Arg` if `offset` lies past the stream or inside a value, and class `Count` if
    /// the packed size overflows.
    pub(crate) fn whole_values(&self, count: u64, offset: u64, max_bytes: u64) -> Result<Range<u64>> {
        let name = self.operation().name();
        let total = self.packed_size(count)?;
        let refuse = |rule| Err(Error::new(ErrorClass::Arg, name, "offset", offset, rule));
        if offset > total {
            return refuse(format!("must not lie past the {total} packed bytes of {count} instances"));
        }
        let boundary = |at: u64| if at == total { at } else { interval::boundary(self.nest(), count, at) };
        if boundary(offset) != offset {
            return refuse(format!("must lie between two values, as {} does", boundary(offset)));
        }
        Ok(offset..boundary(total.min(offset.saturating_add(max_bytes))))
    }
}

const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<CommittedOperation>();
};

#[cfg(test)]
mod tests;
