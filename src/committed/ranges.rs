//! Pack and unpack of ranges of the packed stream. A range is checked once, and then moved by the
//! fastest of the executors that can serve it.

use std::ops::Range;

use super::definition::Call;
use super::{Committed, Inner};
use crate::calls;
use crate::engine::{Engine, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::Direction;
use crate::micro::run;

impl Committed {
    /// Moves the packed bytes `range` of `count` instances in `direction`. `packed` is the address
    /// of packed byte `range.start`.
    ///
    /// # Safety
    /// The promises of [`Committed::pack_raw`] or [`Committed::unpack_raw`] must hold for the
    /// mapped bytes inside the range, and `range` must lie inside the packed stream.
    #[inline]
    pub(crate) unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        let whole = range.start == 0 && self.packed_size(count) == Ok(range.end);
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.part_raw(direction, user, count, packed, range, whole) }
    }

    /// Moves a range like [`Committed::range_raw`]. `whole` says whether the range is the whole
    /// stream.
    ///
    /// # Safety
    /// The promises of [`Committed::range_raw`] must hold, and `whole` must be true only if the
    /// range is the whole stream.
    #[inline(always)]
    unsafe fn part_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
        whole: bool,
    ) {
        let inner = &*self.0;
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe {
            if whole {
                inner.run_whole(direction, user, packed, count);
            } else if !inner.plain || calls::counting() {
                inner.range_slow(direction, user, count, packed, range);
            } else if inner.run.covers(count) {
                inner.range_run(direction, user, packed, range);
            } else if inner.layout.has_strips() {
                inner.range_strip(direction, user, count, packed, range);
            } else {
                inner.range_cut(direction, user, count, packed, range);
            }
        }
    }

    /// Packs a part of the packed stream of `count` instances into `dst`. The part begins with byte
    /// `offset` of the stream, and is as long as `dst` or ends with the stream.
    ///
    /// A part may begin and end inside an element. Parts may be packed in any order and from any
    /// thread. Returns the number of bytes written.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let matrix: Vec<u8> = (0..32).collect();
    /// // The stream of one column in pieces of 3 bytes.
    /// let mut piece = [0; 3];
    /// assert_eq!(column.pack_range(&matrix, 0, 1, 0, &mut piece)?, 3);
    /// assert_eq!(piece, [0, 8, 16]);
    /// assert_eq!(column.pack_range(&matrix, 0, 1, 3, &mut piece)?, 1);
    /// assert_eq!(piece[0], 24);
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Committed::pack`] concerning `src` and the packed size; also class `Arg` if
    /// `offset` is past the end of the stream.
    pub fn pack_range(
        &self,
        src: &[u8],
        origin: usize,
        count: u64,
        offset: u64,
        dst: &mut [u8],
    ) -> Result<usize> {
        let (range, whole) =
            self.range("pack_range", ("src", src.len()), origin, count, offset, dst.len())?;
        let n = (range.end - range.start) as usize;
        let user = src.as_ptr().wrapping_add(origin).cast_mut();
        // SAFETY: `range` has checked that all instances lie inside `src`, and has cut the range to
        // the length of `dst`. Packing only reads `src`, so the cast to a mutable pointer is
        // harmless.
        unsafe { self.part_raw(Direction::Pack, user, count, dst.as_mut_ptr(), range, whole) };
        Ok(n)
    }

    /// Unpacks `src` into `dst`. The bytes in `src` are the part of the packed stream of `count`
    /// instances that begins with byte `offset`. Returns the number of bytes read.
    ///
    /// ```
    /// use ddtc::Datatype;
    ///
    /// let column = ddtc::commit(&Datatype::vector(4, 1, 8, &Datatype::of::<u8>())?)?;
    /// let mut matrix = [0; 32];
    /// // The last two bytes of the stream of one column.
    /// assert_eq!(column.unpack_range(&[3, 4], 0, 1, 2, &mut matrix)?, 2);
    /// assert_eq!((matrix[16], matrix[24]), (3, 4));
    /// # Ok::<(), ddtc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Committed::pack_range`], with `src` and `dst` exchanged.
    pub fn unpack_range(
        &self,
        src: &[u8],
        origin: usize,
        count: u64,
        offset: u64,
        dst: &mut [u8],
    ) -> Result<usize> {
        let (range, whole) =
            self.range("unpack_range", ("dst", dst.len()), origin, count, offset, src.len())?;
        let n = (range.end - range.start) as usize;
        let user = dst.as_mut_ptr().wrapping_add(origin);
        // SAFETY: `range` has checked that all instances lie inside `dst`, and has cut the range to
        // the length of `src`. Unpacking only reads `src`, so the cast to a mutable pointer is
        // harmless.
        unsafe { self.part_raw(Direction::Unpack, user, count, src.as_ptr().cast_mut(), range, whole) };
        Ok(n)
    }

    /// Checks the arguments of a call for a range. Returns the range of the packed stream to move,
    /// and whether that is the whole stream.
    #[inline(always)]
    fn range(
        &self,
        operation: &'static str,
        user: (&'static str, usize),
        origin: usize,
        count: u64,
        offset: u64,
        max_bytes: usize,
    ) -> Result<(Range<u64>, bool)> {
        if self.plainly_inside(user.1, origin, count) {
            // `plainly_inside` has shown that the datatype has small bounds and that the count is
            // below 2^31, so this product is below 2^62.
            let total = u64::from(self.0.small) * count;
            if offset <= total {
                return Ok(part(total, offset, max_bytes));
            }
        }
        self.range_anywhere(operation, user, origin, count, offset, max_bytes)
    }

    /// Does the work of [`Committed::range`] when the fast checks do not suffice.
    ///
    /// # Errors
    /// Returns class `Buffer` if an instance leaves the user slice, `Count` if the packed size
    /// overflows, and `Arg` if `offset` lies past the end of the stream.
    #[inline(never)]
    fn range_anywhere(
        &self,
        operation: &'static str,
        user: (&'static str, usize),
        origin: usize,
        count: u64,
        offset: u64,
        max_bytes: usize,
    ) -> Result<(Range<u64>, bool)> {
        self.span(operation, user, origin, count)?;
        let total = self.packed_size(count)?;
        if offset > total {
            let rule = format!("must not lie past the {total} packed bytes of {count} instances");
            return Err(Error::new(ErrorClass::Arg, operation, "offset", offset, rule));
        }
        Ok(part(total, offset, max_bytes))
    }
}

impl Inner {
    /// Moves a range of instances that are one contiguous run of bytes, by one copy.
    ///
    /// # Safety
    /// The promises of [`Committed::range_raw`] must hold, and `run` must cover the number of
    /// instances.
    #[inline(never)]
    unsafe fn range_run(&self, direction: Direction, user: *mut u8, packed: *mut u8, range: Range<u64>) {
        let user = user.wrapping_offset(self.origin).wrapping_add(range.start as usize);
        let (src, dst) = match direction {
            Direction::Pack => (user, packed),
            Direction::Unpack => (packed, user),
        };
        // SAFETY: the instances are one run of bytes on both sides, so the range is contiguous in
        // both memories. The caller promises that its bytes are valid and do not overlap.
        unsafe { run::copy(dst, src, (range.end - range.start) as usize) }
    }

    /// Moves a range of a layout that contains loops over single copies. If the whole range lies in
    /// one such loop, which is usual, the loop is executed directly. The call is neither counted
    /// nor compared with the definition.
    ///
    /// # Safety
    /// The promises of [`Committed::range_raw`] must hold.
    #[inline(never)]
    unsafe fn range_strip(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        // SAFETY: both branches move only bytes of this layout inside the range. The caller
        // promises that these are valid, do not overlap, and are free of data races.
        unsafe {
            if let Some(strip) = Engine::strip(&self.layout, range.clone()) {
                strip.run(&self.buffers(direction, user, packed.wrapping_sub(range.start as usize)));
            } else {
                self.range_cut(direction, user, count, packed, range);
            }
        }
    }

    /// Moves any range, with kernels for the whole iterations inside it. The call is neither
    /// counted nor compared with the definition.
    ///
    /// # Safety
    /// The promises of [`Committed::range_raw`] must hold.
    #[inline(never)]
    unsafe fn range_cut(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        // SAFETY: only bytes of this layout inside the range are moved. The caller promises that
        // these are valid, do not overlap, and are free of data races.
        let memory = unsafe { self.buffers(direction, user, packed.wrapping_sub(range.start as usize)) };
        self.engine.range_compiled(&self.layout, &memory, count, range);
    }

    /// Moves any range in any mode and configuration. It counts the call if calls are counted, and
    /// compares the result with the definition in check mode.
    ///
    /// # Safety
    /// The promises of [`Committed::range_raw`] must hold.
    #[cold]
    unsafe fn range_slow(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        if calls::counting() {
            calls::count(direction.into(), range.end - range.start);
        }
        let config = self.engine.config();
        let call = Call { direction, user, packed, count, range: range.clone() };
        // SAFETY: the interpreter, the kernels that it calls for whole iterations, and the
        // definition move only bytes of the layout inside the range. The caller promises that these
        // are valid, do not overlap, and are free of data races.
        unsafe {
            if config.mode == Mode::Off {
                self.define(&call);
            } else {
                self.interpret(direction, user, packed.wrapping_sub(range.start as usize), count, range);
            }
            if config.check {
                self.compare(&call);
            }
        }
    }
}

/// Returns the range of at most `max_bytes` bytes from `offset` on in a stream of `total` bytes,
/// and whether that is the whole stream. `offset` must not exceed `total`.
#[inline(always)]
fn part(total: u64, offset: u64, max_bytes: usize) -> (Range<u64>, bool) {
    let left = total - offset;
    (offset..offset + left.min(max_bytes as u64), offset == 0 && left <= max_bytes as u64)
}
