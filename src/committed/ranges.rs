//! Ranges of the packed stream: checked once, and moved by the shortest way that a call may take.

use std::ops::Range;

use super::definition::Call;
use super::{Committed, Inner};
use crate::calls;
use crate::engine::{Engine, Mode};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::Direction;
use crate::micro::run;

impl Committed {
    /// Moves the packed bytes `range` of `count` instances in `direction`; `packed` points to byte `range.start`.
    ///
    /// # Safety
    /// As [`Committed::pack_raw`] and [`Committed::unpack_raw`], for the mapped bytes inside the range; `range` must lie inside
    /// the packed stream.
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
        // SAFETY: as the caller promises.
        unsafe { self.part_raw(direction, user, count, packed, range, whole) }
    }

    /// As [`Committed::range_raw`]; `whole` says whether the range is the stream.
    ///
    /// # Safety
    /// As [`Committed::range_raw`].
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
        // SAFETY: as the caller promises.
        unsafe {
            if whole {
                inner.run_whole(direction, user, packed, count);
            } else if !inner.plain || calls::counting() {
                inner.range_slow(direction, user, count, packed, range);
            } else if inner.run.is_of(count) {
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
    /// As for [`Committed::pack`] concerning `src`; also if `offset` is past the end of the stream.
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
        // SAFETY: all instances lie inside `src` and the range inside `dst`, as just checked; packing only reads `src`.
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
        // SAFETY: as in `pack_range`, with the sides exchanged; unpacking only reads `src`.
        unsafe { self.part_raw(Direction::Unpack, user, count, src.as_ptr().cast_mut(), range, whole) };
        Ok(n)
    }

    /// Checks a call of a part and returns that part, and whether it is all.
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
            // A plain size times a plain count.
            let total = u64::from(self.0.small) * count;
            if offset <= total {
                return Ok(part(total, offset, max_bytes));
            }
        }
        self.range_anywhere(operation, user, origin, count, offset, max_bytes)
    }

    /// As [`Committed::range`], where it does not show at once.
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
    /// A part of the stream of instances that are one run of bytes.
    ///
    /// # Safety
    /// As [`Committed::range_raw`].
    #[inline(never)]
    unsafe fn range_run(&self, direction: Direction, user: *mut u8, packed: *mut u8, range: Range<u64>) {
        let user = user.wrapping_offset(self.origin).wrapping_add(range.start as usize);
        let (src, dst) = match direction {
            Direction::Pack => (user, packed),
            Direction::Unpack => (packed, user),
        };
        // SAFETY: instances are one run of bytes on either side, one behind the other, and their memory is as the caller promises.
        unsafe { run::copy(dst, src, (range.end - range.start) as usize) }
    }

    /// A part of the stream, which mostly lies in one loop of copies, where calls need nothing more than to be moved.
    ///
    /// # Safety
    /// As [`Committed::range_raw`].
    #[inline(never)]
    unsafe fn range_strip(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        // SAFETY: as the caller promises, in both ways; only bytes of this layout inside the range are moved.
        unsafe {
            if let Some(strip) = Engine::strip(&self.layout, range.clone()) {
                strip.run(&self.buffers(direction, user, packed.wrapping_sub(range.start as usize)));
            } else {
                self.range_cut(direction, user, count, packed, range);
            }
        }
    }

    /// As [`Inner::range_strip`], of a part that lies anywhere.
    ///
    /// # Safety
    /// As [`Committed::range_raw`].
    #[inline(never)]
    unsafe fn range_cut(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        // SAFETY: only bytes of this layout inside the range are moved, which the caller vouches for.
        let memory = unsafe { self.buffers(direction, user, packed.wrapping_sub(range.start as usize)) };
        self.engine.range_compiled(&self.layout, &memory, count, range);
    }

    /// # Safety
    /// As [`Committed::range_raw`].
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
        // SAFETY: the walker and the definition move only bytes of the layout inside the range, which the caller vouches for.
        unsafe {
            if config.mode == Mode::Off {
                self.define(&call);
            } else {
                self.walk(direction, user, packed.wrapping_sub(range.start as usize), count, range);
            }
            if config.check {
                self.compare(&call);
            }
        }
    }
}

/// At most `max_bytes` bytes of a stream of `total` bytes, from `offset` on, and whether that is all of it.
#[inline(always)]
fn part(total: u64, offset: u64, max_bytes: usize) -> (Range<u64>, bool) {
    let left = total - offset;
    (offset..offset + left.min(max_bytes as u64), offset == 0 && left <= max_bytes as u64)
}
