//! Copies and reductions from one layout to another, without a packed stream between them.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use super::Committed;
#[cfg(feature = "operations")]
use super::CommittedOperation;
use super::definition::Call;
use crate::calls;
use crate::column::try_with_capacity;
use crate::datatype::{Match, Named, compare_signatures, element};
use crate::engine::Fusible;
use crate::error::{Error, ErrorClass, Result};
use crate::interval::gcd;
use crate::kind::Direction;
#[cfg(feature = "operations")]
use crate::kind::{Op, Operation};
#[cfg(feature = "operations")]
use crate::layout::PlacedLayout;
use crate::layout::{CompiledLayout, FusedCopy, Tier};
use crate::nest::Leaf;
#[cfg(feature = "operations")]
use crate::nest::Value;

/// Size in bytes of the buffer for data that no kernel copies. Such data is packed into the buffer
/// and unpacked from it. The buffer is so small that the data stays in the first-level cache
/// between these two steps.
const BUFFER: u64 = 16 << 10;

/// A copy from instances of one datatype to instances of another without a packed buffer, made by
/// [`Committed::direct`] or [`Committed::direct_reduce`]. Clones share it, and keep both datatypes
/// and its code alive.
///
/// ```
/// use ddtc::Datatype;
///
/// // The transpose of a matrix of 2 rows and 3 columns, column by column.
/// let element = Datatype::of::<u8>();
/// let column = ddtc::commit(&Datatype::resized(0, 1, &Datatype::vector(2, 1, 3, &element)?)?)?;
/// let row = ddtc::commit(&Datatype::contiguous(2, &element)?)?;
/// let mut transposed = [0; 6];
/// column.direct(&row)?.copy(&[1, 2, 3, 4, 5, 6], 0, 3, &mut transposed, 0, 3)?;
/// assert_eq!(transposed, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), ddtc::Error>(())
/// ```
#[derive(Clone)]
pub struct LayoutCopy(Arc<Inner>);

struct Inner {
    from: Committed,
    to: Committed,
    way: Way,
    /// Whether the shorter of the two signatures is always a prefix of the longer one, for any two
    /// numbers of instances of the two datatypes.
    signatures_agree: bool,
}

/// The operation that computes the bytes or values that are written to the target.
enum Way {
    /// The bytes of the source are copied.
    Copied(Arc<FusedCopy>),
    /// The values of the source are combined with those of the target by `op`.
    #[cfg(feature = "operations")]
    Combined { op: Op, from: PlacedLayout<Value>, to: CommittedOperation, fused: Arc<FusedCopy<Value>> },
}

impl fmt::Debug for LayoutCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayoutCopy").field("from", &self.0.from).field("to", &self.0.to).finish()
    }
}

impl Committed {
    /// Returns a [`LayoutCopy`] that copies instances of this datatype to instances of `to`. The
    /// bytes end up where packing them by this datatype and unpacking them by `to` would put them.
    ///
    /// The engine of this datatype keeps the copy in its cache, so a later call for the same two
    /// layouts finds it again. The cache does not keep either layout alive for the copy. A program
    /// that makes no such copies pays nothing for this feature.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(3, 1, 4, &Datatype::of::<u8>())?)?;
    /// let row = ddtc::commit(&Datatype::contiguous(3, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..12).collect();
    /// let mut line = [0; 3];
    /// column.direct(&row)?.copy(&matrix, 1, 1, &mut line, 0, 1)?;
    /// assert_eq!(line, [1, 5, 9]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `NoMem` if there is not enough memory.
    pub fn direct(&self, to: &Committed) -> Result<LayoutCopy> {
        let way = Way::Copied(self.0.engine.fused_copy([&self.0.layout, &to.0.layout])?);
        Ok(self.direct_by(to, way))
    }

    /// Returns a [`LayoutCopy`] that combines instances of this datatype with instances of `to`,
    /// and writes the results to the instances of `to`: `target = op(source, target)` for each
    /// value, in the order of the type map (MPI 5.0, 6.9.5).
    ///
    /// ```
    /// use ddtc::{Datatype, Op};
    ///
    /// let column = ddtc::commit(&Datatype::vector(3, 1, 4, &Datatype::of::<u8>())?)?;
    /// let row = ddtc::commit(&Datatype::contiguous(3, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..12).collect();
    /// let mut line = [100; 3];
    /// column.direct_reduce(&row, Op::Sum)?.copy(&matrix, 1, 1, &mut line, 0, 1)?;
    /// assert_eq!(line, [101, 105, 109]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Committed::direct`]; also class `Op`, with the first element of either datatype for
    /// which `op` is not defined, and class `ValueTooLarge` if the size of either datatype is more
    /// than half of [`i64::MAX`].
    #[cfg(feature = "operations")]
    pub fn direct_reduce(&self, to: &Committed, op: Op) -> Result<LayoutCopy> {
        let applied = to.for_operation(Operation::Reduce(op))?;
        let from = self.0.engine.values(self.datatype(), Operation::Reduce(op))?;
        let fused = self.0.engine.fused_copy([&from.layout, applied.layout()])?;
        Ok(self.direct_by(to, Way::Combined { op, from, to: applied, fused }))
    }

    fn direct_by(&self, to: &Committed, way: Way) -> LayoutCopy {
        let signatures_agree = signatures_agree(self, to);
        LayoutCopy(Arc::new(Inner { from: self.clone(), to: to.clone(), way, signatures_agree }))
    }
}

/// Returns one line that describes how calls of `fused` are served. If there is a kernel, the line
/// describes the kernel. A kernel moves whole joint periods: a joint period is the shortest part of
/// the packed stream that consists of whole root iterations of both layouts.
///
/// The bytes after the last whole period go through a buffer nevertheless. So do all bytes if
/// values are combined and all periods lie at the same places in memory (`FusedNest::still`).
fn served<L: Leaf>(fused: &FusedCopy<L>) -> String {
    match (fused.nest(), fused.served()) {
        (Err(reason), _) => format!("through a buffer: {reason}"),
        (Ok(_), None) => "not compiled yet: through a buffer".to_owned(),
        (Ok(_), Some(Tier::Kernel { schedule, .. })) => schedule.to_string(),
        (Ok(_), Some(Tier::Interpreted { reason, .. })) => format!("through a buffer: {reason}"),
    }
}

/// Returns true if, for any numbers of instances of the two datatypes, the shorter of the two
/// signatures is a prefix of the longer one.
///
/// The function compares the signatures of the smallest numbers of instances for which both
/// signatures have the same length. The signatures of more instances only repeat these. If exactly
/// one of the datatypes has no elements, the result is true, because its signature is empty for any
/// number of instances. If neither has elements, the result is false; no bytes are copied then.
fn signatures_agree(from: &Committed, to: &Committed) -> bool {
    let (a, b) = (from.datatype(), to.datatype());
    let lengths = [a.signature().length(), b.signature().length()];
    let gcd = gcd(lengths[0].unsigned_abs(), lengths[1].unsigned_abs()) as i64;
    gcd > 0 && compare_signatures(lengths[1] / gcd, a, lengths[0] / gcd, b) == Ok(Match::Equal)
}

impl LayoutCopy {
    /// Returns the datatype that is read.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(3, 1, 4, &Datatype::of::<u8>())?)?;
    /// let row = ddtc::commit(&Datatype::contiguous(3, &Datatype::of::<u8>())?)?;
    /// assert_eq!(column.direct(&row)?.from().datatype(), column.datatype());
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn from(&self) -> &Committed {
        &self.0.from
    }

    /// Returns the datatype that is written.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(3, 1, 4, &Datatype::of::<u8>())?)?;
    /// let row = ddtc::commit(&Datatype::contiguous(3, &Datatype::of::<u8>())?)?;
    /// assert_eq!(column.direct(&row)?.to().datatype(), row.datatype());
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    pub fn to(&self) -> &Committed {
        &self.0.to
    }

    /// Returns the operation that combines the values, or none for a copy.
    #[cfg(feature = "operations")]
    pub(crate) fn operation(&self) -> Option<Op> {
        match &self.0.way {
            Way::Copied(_) => None,
            Way::Combined { op, .. } => Some(*op),
        }
    }

    /// Returns the number of packed bytes in one joint period, which is the unit that a kernel
    /// moves. The bytes after the last whole period of a call go through a buffer. All bytes go
    /// through the buffer as long as there is no kernel. They also do so if values are combined and
    /// all periods lie at the same places in memory. Returns none if the layouts could not be
    /// fused, so that there will never be a kernel.
    pub(crate) fn period(&self) -> Option<u64> {
        match &self.0.way {
            Way::Copied(fused) => fused.nest().ok().map(|fused| fused.period),
            #[cfg(feature = "operations")]
            Way::Combined { fused, .. } => fused.nest().ok().map(|fused| fused.period),
        }
    }

    /// Returns one line that describes how calls are served. If there is a kernel, the line
    /// describes the kernel, although some bytes, or all, may go through a buffer
    /// ([`LayoutCopy::period`]).
    pub(crate) fn schedule(&self) -> String {
        match &self.0.way {
            Way::Copied(fused) => served(fused),
            #[cfg(feature = "operations")]
            Way::Combined { fused, .. } => served(fused),
        }
    }

    /// Copies `from_count` instances at `src` to the `to_count` instances at `dst`, or combines the
    /// values of both. Returns the number of packed bytes of the source. Both addresses are those
    /// of displacement 0 of the first instance, as in MPI.
    ///
    /// If the two memory areas overlap, all data is read into a buffer before any is written. This
    /// buffer has the size of the whole message.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(3, 1, 4, &Datatype::of::<u8>())?)?;
    /// let row = ddtc::commit(&Datatype::contiguous(3, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..12).collect();
    /// let mut line = [0; 3];
    /// // SAFETY: the column lies inside `matrix` and has the 3 bytes of the line.
    /// unsafe { column.direct(&row)?.copy_raw(matrix.as_ptr(), 1, line.as_mut_ptr(), 1)? };
    /// assert_eq!(line, [0, 4, 8]);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Class `Count` if a count is too large, and `Truncate` if the target has no room for all
    /// instances of the source. Class `Type`, with the first element whose basic type differs on
    /// the other side. `MPI_BYTE` and `MPI_PACKED` match any type: if one of them is the first
    /// element that differs, the elements after it are not compared. Class `Arg` if values are
    /// combined and the bytes of the source end inside a value of the target. Class `NoMem` if
    /// overlapping areas or [`Config::check`](crate::Config::check) need a buffer of the size of
    /// the whole message and there is no memory for this buffer. Nothing is written after an error.
    ///
    /// # Safety
    /// All bytes that the instances at `src` contain must be readable, and the bytes of the
    /// elements at `dst` that receive data must be writable. If values are combined, these bytes of
    /// the target must be readable, too. During the call, nothing else may write to the source or
    /// access these bytes of the target.
    pub unsafe fn copy_raw(
        &self,
        src: *const u8,
        from_count: u64,
        dst: *mut u8,
        to_count: u64,
    ) -> Result<u64> {
        let bytes = self.bytes(from_count, to_count)?;
        // SAFETY: the memory is as the caller promises, and the method `bytes` has checked that
        // both packed streams have at least this number of bytes.
        unsafe { self.bytes_raw(src, from_count, dst, to_count, bytes)? };
        Ok(bytes)
    }

    /// Copies or combines the first `bytes` packed bytes of the source, without a check of the
    /// counts and signatures.
    ///
    /// # Errors
    /// Returns class `NoMem`, with nothing written, if overlapping memories or check mode need a
    /// buffer of `bytes` bytes and there is no memory for it. Returns class `Arg`, with nothing
    /// written, if values are combined and `bytes` ends inside a value of the target. All other
    /// errors are faults of ddtc.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must hold, and the packed streams of `from_count`
    /// and `to_count` instances must both have at least `bytes` bytes.
    pub(crate) unsafe fn bytes_raw(
        &self,
        src: *const u8,
        from_count: u64,
        dst: *mut u8,
        to_count: u64,
        bytes: u64,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // A source of `MPI_BYTE` matches every target, and may end inside a value.
        let whole = self.whole_values(to_count, 0..bytes)?.end;
        if whole != bytes {
            let rule = format!("must end between two values of the target, as {whole} does");
            return Err(Error::new(ErrorClass::Arg, "copy", "packed bytes", bytes, rule));
        }
        if calls::counting() {
            calls::count_copy(bytes);
        }
        // If the spans of the two memories overlap, a write could change data that has not been
        // read yet. All bytes are then read into a buffer before any is written.
        let ends = Ends { src, from_count, dst, to_count };
        if overlap(hull(&self.0.from, src as usize, from_count), hull(&self.0.to, dst as usize, to_count)) {
            let mut all: Vec<u8> = try_with_capacity("copy", bytes as usize)?;
            // SAFETY: the memory is as the caller promises, and both streams have `bytes` bytes. If
            // values are combined, the `bytes` bytes end between two values, as checked above. The
            // buffer is new and holds the whole range, so that everything is read before anything
            // is written.
            return unsafe { self.staged(ends, 0..bytes, (all.as_mut_ptr(), bytes)) };
        }
        // A reduction overwrites the values that it has read, so check mode would have nothing to
        // compare its result with.
        let checked = self.0.from.0.engine.config().check && matches!(self.0.way, Way::Copied(_));
        // Allocate the packed stream for the comparison before anything is written, so that a lack
        // of memory leaves the target as it was.
        let mut stream: Vec<u8> =
            if checked { try_with_capacity("copy", bytes as usize)? } else { Vec::new() };
        // Copy whole joint periods by the kernel, and the rest through a small buffer.
        //
        // SAFETY: the memories are as the caller promises and do not overlap, as just checked, and
        // both streams have `bytes` bytes. If values are combined, `bytes` bytes end between two
        // values, as checked above, and so do the `done` bytes, which are whole joint periods. Both
        // buffers are new. `stream` has a capacity of `bytes` bytes if `checked` is true, and is
        // used only then.
        unsafe {
            let done = self.move_whole_periods(src, dst, bytes);
            if done < bytes {
                let mut piece = [MaybeUninit::<u8>::uninit(); BUFFER as usize];
                self.staged(ends, done..bytes, (piece.as_mut_ptr().cast(), BUFFER))?;
            }
            if done > 0 && checked {
                self.check(ends, bytes, stream.as_mut_ptr());
            }
        }
        Ok(())
    }

    /// Returns `range` of the packed bytes of `to_count` instances of the target, shortened so that
    /// it ends between two values if values are combined.
    ///
    /// # Errors
    /// Returns the errors of [`CommittedOperation::whole_values`] if values are combined.
    #[cfg_attr(not(feature = "operations"), allow(unused_variables))]
    fn whole_values(&self, to_count: u64, range: Range<u64>) -> Result<Range<u64>> {
        match &self.0.way {
            Way::Copied(_) => Ok(range),
            #[cfg(feature = "operations")]
            Way::Combined { to, .. } => to.whole_values(to_count, range.start, range.end - range.start),
        }
    }

    /// Compiles the kernel, if the mode compiles, and returns the packed bytes in one joint period.
    /// Returns none if there is no kernel, or if this copy combines values.
    #[cfg(any(test, feature = "internal"))]
    pub(super) fn kernel_made(&self) -> Option<u64> {
        let Way::Copied(fused) = &self.0.way else { return None };
        let layouts = [&self.0.from.0.layout, &self.0.to.0.layout];
        let (nest, tier) = self.0.from.0.engine.serve_fused_copy(layouts, fused, None)?;
        tier.kernel().map(|_| nest.period)
    }

    /// Copies `count` instances with the kernel alone, and returns true if that copied all of them.
    /// It returns false if this copy combines values, the packed size overflows, the memories
    /// overlap, there are bytes to copy but no kernel, or the instances are not a whole number of
    /// joint periods. In the last case, some of the bytes may have been copied.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must hold for `count` instances on both sides, and
    /// both datatypes must have the same size.
    #[cfg(any(test, feature = "internal"))]
    pub(super) unsafe fn whole_raw(&self, src: *const u8, dst: *mut u8, count: u64) -> bool {
        let Inner { from, to, way, .. } = &*self.0;
        let (Ok(bytes), Way::Copied(_)) = (from.packed_size(count), way) else { return false };
        if overlap(hull(from, src as usize, count), hull(to, dst as usize, count)) {
            return false;
        }
        if calls::counting() {
            calls::count_copy(bytes);
        }
        // SAFETY: the memories are as the caller promises and do not overlap, as just checked. The
        // datatypes have the same size, so `count` instances of either have `bytes` packed bytes.
        unsafe { self.move_whole_periods(src, dst, bytes) == bytes }
    }

    /// Compares the result of a call of `bytes` bytes with the definition. A difference is counted
    /// and logged, and the target is corrected.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must still hold just after the call, and both
    /// packed streams must have at least `bytes` bytes. The memories must not overlap. The `bytes`
    /// bytes at `stream` must be writable and belong to nothing else.
    unsafe fn check(&self, ends: Ends, bytes: u64, stream: *mut u8) {
        let call = |direction, user, count| Call { direction, user, packed: stream, count, range: 0..bytes };
        let read = call(Direction::Pack, ends.src.cast_mut(), ends.from_count);
        let written = call(Direction::Unpack, ends.dst, ends.to_count);
        // SAFETY: the memories are as the caller promises, and the range lies inside the streams of
        // both. `define` fills the `bytes` bytes at `stream` that `compare` reads.
        unsafe {
            self.0.from.0.define(&read);
            self.0.to.0.compare(&written);
        }
    }

    /// Copies `from_count` instances in `src` to the `to_count` instances in `dst`. Each buffer
    /// argument is followed by its origin, which is the index of displacement 0 of the first
    /// instance in that buffer. Returns the number of bytes that were copied.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(3, 1, 4, &Datatype::of::<u8>())?)?;
    /// let row = ddtc::commit(&Datatype::contiguous(3, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..12).collect();
    /// let mut line = [0; 3];
    /// let copied = column.direct(&row)?.copy(&matrix, 3, 1, &mut line, 0, 1)?;
    /// assert_eq!((copied, line), (3, [3, 7, 11]));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`LayoutCopy::copy_raw`]; also class `Buffer` if an instance has bytes outside of its
    /// slice.
    pub fn copy(
        &self,
        src: &[u8],
        from_origin: usize,
        from_count: u64,
        dst: &mut [u8],
        to_origin: usize,
        to_count: u64,
    ) -> Result<u64> {
        self.0.from.span("copy", ("src", src.len()), from_origin, from_count)?;
        self.0.to.span("copy", ("dst", dst.len()), to_origin, to_count)?;
        let (from, to) = (src.as_ptr().wrapping_add(from_origin), dst.as_mut_ptr().wrapping_add(to_origin));
        // SAFETY: both calls of `span` have checked that all instances lie inside the slices. The
        // borrows keep the slices apart.
        unsafe { self.copy_raw(from, from_count, to, to_count) }
    }

    /// Checks both counts and the signatures, and returns the number of bytes to copy.
    ///
    /// # Errors
    /// Returns class `Count` if a packed size overflows, `Truncate` if the target has too few
    /// instances, and the errors of [`LayoutCopy::compare`], which checks the basic types of the
    /// elements.
    fn bytes(&self, from_count: u64, to_count: u64) -> Result<u64> {
        let Inner { from, to, signatures_agree, .. } = &*self.0;
        let (bytes, capacity) = (from.packed_size(from_count)?, to.packed_size(to_count)?);
        // If nothing is copied, there are no elements that could differ.
        if bytes > 0 && !signatures_agree {
            self.compare(from_count, to_count)?;
        }
        if bytes > capacity {
            let rule = format!("instances of the target must have room for the {bytes} bytes of the source");
            return Err(Error::new(ErrorClass::Truncate, "copy", "to_count", to_count, rule));
        }
        Ok(bytes)
    }

    /// Checks that the elements of the source have the same basic types as those of the target. If
    /// the first element that differs is `MPI_BYTE` or `MPI_PACKED` on one side, the check
    /// succeeds, and the elements after it are not compared.
    ///
    /// # Errors
    /// Returns class `Type` for the first element whose type differs, unless that element is
    /// `MPI_BYTE` or `MPI_PACKED` on one side.
    #[cold]
    fn compare(&self, from_count: u64, to_count: u64) -> Result<()> {
        let (a, b) = (self.0.from.datatype(), self.0.to.datatype());
        let Match::Mismatch { index } = compare_signatures(from_count as i64, a, to_count as i64, b)? else {
            return Ok(());
        };
        let named = |t| element(t, index).map_or("nothing", Named::mpi_name);
        let value = format!("{index} ({} to {})", named(a), named(b));
        let rule = "source and target must have the same basic types in the same order";
        Err(Error::new(ErrorClass::Type, "copy", "element", value, rule))
    }

    /// Copies or combines all whole joint periods in `bytes` bytes with the kernel, if there is
    /// one. Returns the number of bytes that were copied or combined, which may be 0.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must hold, and the memories must not overlap. The
    /// packed streams of the instances on both sides must have at least `bytes` bytes.
    unsafe fn move_whole_periods(&self, src: *const u8, dst: *mut u8, bytes: u64) -> u64 {
        let Inner { from, to, way, .. } = &*self.0;
        // SAFETY: the memories and streams are as the caller promises. `fused` was made for these
        // two layouts. Adding the origins gives the addresses at which their nests begin.
        unsafe {
            match way {
                Way::Copied(fused) => {
                    let places = (src.wrapping_offset(from.0.origin), dst.wrapping_offset(to.0.origin));
                    self.periods([&from.0.layout, &to.0.layout], fused, places, bytes)
                }
                #[cfg(feature = "operations")]
                Way::Combined { from, to, fused, .. } => {
                    let places =
                        (src.wrapping_offset(from.origin as isize), dst.wrapping_offset(to.origin()));
                    self.periods([&from.layout, to.layout()], fused, places, bytes)
                }
            }
        }
    }

    /// Moves all whole joint periods in `bytes` bytes for one kind of leaf, and returns the bytes
    /// moved. `src` and `dst` are the addresses at which the nests of the layouts begin.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::move_whole_periods`] must hold, `fused` must be the fused copy
    /// of `layouts`, and `src` and `dst` must be the addresses that are described above.
    unsafe fn periods<L: Fusible>(
        &self,
        layouts: [&Arc<CompiledLayout<L>>; 2],
        fused: &FusedCopy<L>,
        (src, dst): (*const u8, *mut u8),
        bytes: u64,
    ) -> u64 {
        let engine = &self.0.from.0.engine;
        let Some((nest, tier)) = engine.serve_fused_copy(layouts, fused, Some(bytes)) else { return 0 };
        let (periods, Some(kernel)) = (bytes / nest.period, tier.kernel()) else { return 0 };
        // If all periods lie at the same places in memory, a copy needs only one period. Values,
        // however, must be combined once for each period, so they go through the buffer.
        if periods == 0 || nest.still && !L::IDEMPOTENT {
            return 0;
        }
        let [of_from, of_to] = nest.origins;
        let src = src.cast_mut().wrapping_offset(of_from as isize);
        let dst = dst.wrapping_offset(of_to as isize);
        let (user, packed) = if nest.direction == Direction::Pack { (src, dst) } else { (dst, src) };
        // SAFETY: the kernel was made for the fused nest of both layouts, whose instances are joint
        // periods. It touches only bytes of the first `periods` periods. These lie within the first
        // `bytes` packed bytes, which both streams have and which are valid, as the caller
        // promises.
        unsafe { kernel.call(user, packed, if nest.still { 1 } else { periods }) };
        periods * nest.period
    }

    /// Copies or combines the packed bytes `range` through a buffer, which is given by its address
    /// and its length in bytes. A range that is longer than the buffer is cut into pieces.
    ///
    /// # Errors
    /// Returns only errors that are faults of ddtc.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must hold, and `range` must lie inside the packed
    /// streams of both sides. If values are combined, it must begin and end between two values of
    /// the target. The buffer must be writable for its whole length and belong to nothing else. The
    /// memories must not overlap unless the buffer holds the whole range.
    unsafe fn staged(&self, ends: Ends, range: Range<u64>, (buffer, len): (*mut u8, u64)) -> Result<()> {
        let Ends { src, from_count, dst, to_count } = ends;
        let mut at = range.start;
        while at < range.end {
            // Values cannot be cut, so the piece ends after a whole value. It is not empty, since
            // every value is shorter than the buffer, and the range ends between two values.
            let piece = self.whole_values(to_count, at..range.end.min(at + len))?;
            at = piece.end;
            // SAFETY: the piece fits into the buffer, and lies inside the packed streams of both
            // sides, since `range` does. The first call fills the bytes of the buffer that the
            // second one reads. The user memory is as the caller promises.
            unsafe {
                self.0.from.range_raw(Direction::Pack, src.cast_mut(), from_count, buffer, piece.clone());
                match &self.0.way {
                    Way::Copied(_) => self.0.to.range_raw(Direction::Unpack, dst, to_count, buffer, piece),
                    #[cfg(feature = "operations")]
                    Way::Combined { to, .. } => {
                        to.range_raw(Direction::Unpack, dst, to_count, buffer, piece)?
                    }
                }
            }
        }
        Ok(())
    }
}

/// Source and target of a call: the addresses of displacement 0, and the numbers of instances.
#[derive(Clone, Copy)]
struct Ends {
    src: *const u8,
    from_count: u64,
    dst: *mut u8,
    to_count: u64,
}

/// Returns the first address of `count` instances at `address`, and the address after their last
/// byte.
fn hull(committed: &Committed, address: usize, count: u64) -> (i128, i128) {
    let t = committed.datatype();
    let last = (i128::from(count) - 1) * i128::from(t.extent());
    let address = address as i128;
    (address + i128::from(t.true_lb()) + last.min(0), address + i128::from(t.true_ub()) + last.max(0))
}

fn overlap(a: (i128, i128), b: (i128, i128)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<LayoutCopy>();
};

#[cfg(test)]
mod tests;
