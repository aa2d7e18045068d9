//! Buffers: a handle on the two sides of one pack or unpack, through which code without `unsafe`
//! can move bytes.
//!
//! Making a handle is unsafe, and its contract covers all later uses: the handle is used only for
//! valid blocks. The methods take offsets and call micro-kernels.

use super::blocks::{self, Widths};
use super::resize::{Blocks, Conversion};
use super::{Direction, Width, block, reduce, resize, rows, run, stream, strided, swap, transpose};
use crate::column::Column;
use crate::kind::Op;
use crate::nest::{Leaf, Offsets, Value};
use crate::target::Level;

/// Length in bytes up to which [`Buffers::copy`] moves a block in line; longer blocks are moved by
/// [`run`].
const INLINE: usize = 64;

/// Minimum number of bytes that one call streams. The bytes before the first and after the last
/// whole cache line are not streamed, and they are a larger part of a short run.
const STREAMED: u64 = 4 << 10;

/// Maximum number of bytes of a value on each side for [`Buffers::convert`].
pub const LONGEST_VALUE: usize = 16;

/// Maximum number of bytes of a value that [`Buffers::combine`] combines without a micro-kernel.
const LONGEST_COMBINED: usize = 64;

/// Blocks of values to be combined with those in user memory. Block `i` of `n` lies at
/// `at + i * step` and has `units` values, which follow each other directly.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// Operation by which the values are combined.
    pub op: Op,
    /// Class of the values.
    pub value: Value,
    /// Offsets of the first block on both sides.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// Distance from one block to the next on both sides.
    pub step: Offsets,
    /// Number of values in a block.
    pub units: u64,
    /// Number of bytes of a value on the packed side. In a stream a value has no padding inside; in
    /// a second layout it has the same form as in user memory.
    pub packed: i64,
}

/// Blocks of values to be passed to a function of the caller. Block `i` of `n` lies at
/// `at + i * step` and has `units` values, which follow each other directly.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    /// Class of the values.
    pub value: Value,
    /// Offsets of the first block on both sides.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// Distance from one block to the next on both sides.
    pub step: Offsets,
    /// Number of values in a block.
    pub units: u64,
}

/// Element of an array as a compiler lays it out. Both numbers are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Distance from one element to the next.
    pub extent: usize,
    /// Alignment of the element, at most 16.
    pub alignment: usize,
}

/// Bytes of a stage: one side of a row of values is copied into it when the values in memory are
/// not an aligned array of elements.
const STAGE: usize = 4096;

/// Staging memory whose alignment suffices for any element.
#[repr(align(64))]
struct Stage([u8; STAGE]);

impl Stage {
    /// Returns two stages, one for each side.
    fn two() -> (Stage, Stage) {
        (Stage([0; STAGE]), Stage([0; STAGE]))
    }
}

/// The user buffer and the packed buffer of one call, and the direction in which bytes move.
///
/// Offsets are in bytes. User offsets count from the buffer address of the call (displacement 0 of
/// instance 0), packed offsets from the first packed byte.
#[derive(Debug)]
pub struct Buffers {
    user: *mut u8,
    packed: *mut u8,
    direction: Direction,
    level: Level,
    streaming: bool,
}

impl Buffers {
    /// Returns a handle on `user` and `packed`.
    ///
    /// # Safety
    /// As long as the handle is used, every block that its methods are given must be valid:
    /// readable on the source side of `direction` and writable on its destination side, not
    /// accessed by anybody else at the same time, and without overlap between the sides. `combine`
    /// and `hand_on` read and write the user side and read the packed side, whatever the direction.
    /// The machine must run `level`. Whoever passes the handle to safe code vouches that this code
    /// moves only blocks of the layout and the packed range for which the caller's buffers were
    /// made.
    pub unsafe fn new(user: *mut u8, packed: *mut u8, direction: Direction, level: Level) -> Buffers {
        Buffers { user, packed, direction, level, streaming: false }
    }

    /// Returns the same buffers with streaming stores, which bypass the caches, switched on or off.
    /// They are used only for packing, and only where one call moves at least 4 KiB.
    pub fn streaming(self, on: bool) -> Buffers {
        Buffers { streaming: on && self.direction == Direction::Pack, ..self }
    }

    /// Returns the direction in which bytes move.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the addresses that belong to a user offset and a packed offset.
    pub fn at(&self, user: i64, packed: i64) -> (*mut u8, *mut u8) {
        (self.user(user), self.packed(packed))
    }

    #[inline(always)]
    fn user(&self, offset: i64) -> *mut u8 {
        self.user.wrapping_offset(offset as isize)
    }

    #[inline(always)]
    fn packed(&self, offset: i64) -> *mut u8 {
        self.packed.wrapping_offset(offset as isize)
    }

    /// Moves one block of `len` bytes. If streaming is on and the block is long enough, the stores
    /// bypass the caches.
    #[inline(always)]
    pub fn copy(&self, user: i64, packed: i64, len: u64) {
        let (dst, src) = self.towards(user, packed);
        // SAFETY: `dst` and `src` are the two sides of the block. By the contract of `new`, its
        // `len` bytes are readable, writable and without overlap, and the machine runs
        // `self.level`.
        unsafe {
            if self.streaming && len >= STREAMED {
                stream::function(self.level)(dst, src, 1, len as i64, 0, len);
            } else {
                one(dst, src, len as usize);
            }
        }
    }

    /// Moves one block of `len` bytes by a call and without streaming. It is for places where the
    /// inlined code of [`Buffers::copy`] would be too long.
    #[inline(always)]
    pub fn block(&self, user: i64, packed: i64, len: u64) {
        let (dst, src) = self.towards(user, packed);
        // SAFETY: `dst` and `src` are the two sides of the block. By the contract of `new`, its
        // `len` bytes are readable, writable and without overlap.
        unsafe { one_by_call(dst, src, len as usize) }
    }

    /// Returns the destination and the source that belong to a user offset and a packed offset.
    #[inline(always)]
    fn towards(&self, user: i64, packed: i64) -> (*mut u8, *const u8) {
        let (user, packed) = self.at(user, packed);
        match self.direction {
            Direction::Pack => (packed, user.cast_const()),
            Direction::Unpack => (user, packed.cast_const()),
        }
    }

    /// Moves `n` blocks of `len` bytes, in order. Block `i` lies at `user + i * user_stride` and at
    /// `packed + i * packed_stride`.
    #[inline(always)]
    pub fn strided(
        &self,
        user: i64,
        packed: i64,
        n: u64,
        (user_stride, packed_stride): (i64, i64),
        len: u64,
    ) {
        let row = (n, Offsets::new(user_stride, packed_stride));
        self.rows_of_strided(Offsets::new(user, packed), [(1, Offsets::ZERO), row], len);
    }

    /// Moves the blocks of `len` bytes of two nested loops, the outer one given first, in order.
    /// The micro-kernel is looked up only once.
    #[inline(always)]
    pub fn rows_of_strided(&self, at: Offsets, [(rows, row), (n, step)]: [(u64, Offsets); 2], len: u64) {
        let streamed = self.streaming && n.saturating_mul(len) >= STREAMED;
        let f = if streamed { stream::function(self.level) } else { strided::function(len, self.level) };
        for i in 0..rows as i64 {
            let at = at.step(row, i);
            let (user, packed) = self.at(at.user, at.packed);
            // SAFETY: these are the blocks of iteration `i` of the outer loop. By the contract of
            // `new`, all blocks are valid and the machine runs `self.level`, for which `f` was
            // looked up.
            unsafe {
                match self.direction {
                    Direction::Pack => f(packed, user, n, step.packed, step.user, len),
                    Direction::Unpack => f(user, packed, n, step.user, step.packed, len),
                }
            }
        }
    }

    /// Moves the elements of `len` bytes of two nested loops, the outer one given first, in any
    /// order, and returns true. Returns false and moves nothing if there is no transpose for this
    /// length, or if streaming is on. The elements must not overlap each other on the side that is
    /// written.
    pub fn transposed(&self, at: Offsets, [outer, inner]: [(u64, Offsets); 2], len: u64) -> bool {
        let Some(f) = transpose::function(len, self.level).filter(|_| !self.streaming) else { return false };
        let ((outer, o), (inner, i)) = (outer, inner);
        let (user, packed) = self.at(at.user, at.packed);
        // SAFETY: by the contract of `new`, the elements are valid and the machine runs
        // `self.level`, for which `f` was looked up. This function's contract excludes overlapping
        // destinations.
        unsafe {
            match self.direction {
                Direction::Pack => f(packed, user, inner, outer, o.packed, i.user, i.packed, o.user),
                Direction::Unpack => f(user, packed, outer, inner, i.user, o.packed, o.user, i.packed),
            }
        }
        true
    }

    /// Moves `n` blocks of `len` bytes, in order, like [`Buffers::strided`], and reverses the bytes
    /// of every unit of `unit` bytes in them.
    ///
    /// # Panics
    /// If `len` is not a multiple of `unit`, or if there is no micro-kernel for such units
    /// ([`swap::UNITS`]).
    pub fn swapped(
        &self,
        (user, packed): (i64, i64),
        n: u64,
        (user_stride, packed_stride): (i64, i64),
        len: u64,
        unit: u64,
    ) {
        assert!(len.is_multiple_of(unit), "blocks that are not whole units");
        let f = swap::function(unit, self.level).expect("a micro-kernel for the unit");
        let (user, packed) = (self.user(user), self.packed(packed));
        // SAFETY: by the contract of `new`, the blocks are valid and the machine runs `self.level`,
        // for which `f` was looked up. `len` is a multiple of the unit, as asserted above.
        unsafe {
            match self.direction {
                Direction::Pack => f(packed, user, n, packed_stride, user_stride, len),
                Direction::Unpack => f(user, packed, n, user_stride, packed_stride, len),
            }
        }
    }

    /// Moves `n` blocks of `units` values, in order, and converts each value. Stops before the
    /// first value that does not fit, and returns the number of values before it.
    pub fn resized<C: Conversion>(
        &self,
        (user, packed): (i64, i64),
        n: u64,
        (user_stride, packed_stride): (i64, i64),
        units: u64,
    ) -> u64 {
        let (user, packed) = (self.user(user), self.packed(packed));
        let ((dst, dst_stride), (src, src_stride)) = match self.direction {
            Direction::Pack => ((packed, packed_stride), (user, user_stride)),
            Direction::Unpack => ((user, user_stride), (packed, packed_stride)),
        };
        let blocks = Blocks { dst, src, n, dst_stride, src_stride, units };
        // SAFETY: by the contract of `new`, the blocks are valid and the machine runs `self.level`,
        // for which the function is looked up.
        unsafe { resize::function::<C>(self.level)(&blocks) }
    }

    /// Moves one value, which has the given number of bytes on each side. `convert` makes the bytes
    /// of the destination from those of the source.
    ///
    /// # Errors
    /// Returns the error of `convert`; in this case nothing is moved.
    ///
    /// # Panics
    /// If a side has more than [`LONGEST_VALUE`] bytes.
    pub fn convert<E>(
        &self,
        (user, packed): (i64, i64),
        (user_len, packed_len): (usize, usize),
        convert: impl FnOnce(&[u8], &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (user, packed) = (self.user(user), self.packed(packed));
        let ((src, from), (dst, to)) = match self.direction {
            Direction::Pack => ((user, user_len), (packed, packed_len)),
            Direction::Unpack => ((packed, packed_len), (user, user_len)),
        };
        let (mut old, mut new) = ([0; LONGEST_VALUE], [0; LONGEST_VALUE]);
        let (old, new) = (&mut old[..from], &mut new[..to]);
        // SAFETY: `src` is a block of `from` bytes on the source side, readable by the contract of
        // `new`. `old` is a slice of `from` bytes of a local array, which overlaps nothing else.
        unsafe { std::ptr::copy_nonoverlapping(src, old.as_mut_ptr(), from) };
        convert(old, new)?;
        // SAFETY: `dst` is a block of `to` bytes on the destination side, writable by the contract
        // of `new`. `new` is a slice of `to` bytes of a local array, which overlaps nothing else.
        unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), dst, to) };
        Ok(())
    }

    /// Combines values of the packed side with those in user memory, in order. The user side is
    /// always the destination; the direction of the handle does not matter.
    ///
    /// # Panics
    /// If there is no micro-kernel for the operation and the value, and the value has more than 64
    /// bytes on one side.
    pub fn combine(&self, run: &Combined) {
        let Combined { op, value, at, n, step, units, packed } = *run;
        // Pairs, and values with padding on one side, are passed to the micro-kernel as blocks of a
        // single value each.
        let alone = value.user() != value.packed() || reduce::is_pair(value);
        let inner = Offsets::new(value.user(), packed);
        match reduce::function(op, value, self.level) {
            Some(f) if !alone => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: by the contract of `new`, the blocks are valid and the machine runs
                // `self.level`, for which `f` was looked up. A block has `units` whole values, of
                // the same number of bytes on both sides.
                unsafe { f(user, src, n, step.user, step.packed, units * packed as u64) };
            }
            Some(f) if units == 1 => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: by the contract of `new`, the blocks are valid and the machine runs
                // `self.level`, for which `f` was looked up. Each block is one value of `packed`
                // bytes on the packed side.
                unsafe { f(user, src, n, step.user, step.packed, packed as u64) };
            }
            Some(f) => {
                for i in 0..n as i64 {
                    let at = at.step(step, i);
                    let (user, src) = (self.user(at.user), self.packed(at.packed));
                    // SAFETY: by the contract of `new`, the blocks are valid and the machine runs
                    // `self.level`, for which `f` was looked up. The blocks of this call are the
                    // `units` values of block `i`, one value each.
                    unsafe { f(user, src, units, inner.user, inner.packed, packed as u64) };
                }
            }
            None => {
                for i in 0..n as i64 {
                    let at = at.step(step, i);
                    (0..units as i64).for_each(|k| self.combine_one(op, value, at.step(inner, k), packed));
                }
            }
        }
    }

    /// Combines one value by the scalar reference of the operation.
    fn combine_one(&self, op: Op, value: Value, at: Offsets, packed: i64) {
        let (mut new, mut old) = ([0; LONGEST_COMBINED], [0; LONGEST_COMBINED]);
        let (new, old) = (&mut new[..packed as usize], &mut old[..value.user() as usize]);
        let (user, src) = (self.user(at.user), self.packed(at.packed));
        // SAFETY: the value has `packed` bytes on the packed side and `value.user()` bytes on the
        // user side, which are readable by the contract of `new`. `new` and `old` are slices of
        // these lengths of two local arrays, which overlap nothing else.
        unsafe {
            std::ptr::copy_nonoverlapping(src, new.as_mut_ptr(), new.len());
            std::ptr::copy_nonoverlapping(user, old.as_mut_ptr(), old.len());
        }
        reduce::meaning::combine(op, value, new, old);
        for (start, end) in reduce::meaning::written(op, value) {
            // SAFETY: `start..end` are the bytes that the operation writes, inside the value in
            // user memory, which is writable by the contract of `new`. The source is a slice of a
            // local array.
            unsafe {
                std::ptr::copy_nonoverlapping(old[start..end].as_ptr(), user.wrapping_add(start), end - start)
            };
        }
    }

    /// Calls `f(packed values, user values, number)` for rows of values, in order. Both addresses
    /// are those of arrays of elements of the form `element`. If the values lie in memory as such
    /// arrays, and are aligned, `f` gets their own addresses. Otherwise it gets copies of a limited
    /// number of values at a time, and the bytes that it leaves in the user's copy are written
    /// back, except for padding.
    ///
    /// `element.extent` must be at least the size of a value on each side and at most 4096, the
    /// bytes of a stage.
    ///
    /// # Panics
    /// If values have to be copied and `element.extent` is 0.
    pub fn hand_on(&self, run: &Handed, element: Element, f: &mut dyn FnMut(*const u8, *mut u8, u64)) {
        let Handed { value, at, n, step, units } = *run;
        let Element { extent, alignment } = element;
        let (user_len, packed_len) = (value.user() as usize, value.packed() as usize);
        let in_place = user_len == extent && packed_len == extent;
        let aligned = |p: *mut u8| p.addr().is_multiple_of(alignment);
        // Staging memory for copies. The first block that needs it creates it.
        let mut stages: Option<(Stage, Stage)> = None;
        for i in 0..n as i64 {
            let block = at.step(step, i);
            let (user, packed) = (self.user(block.user), self.packed(block.packed));
            if in_place && aligned(user) && aligned(packed) {
                f(packed, user, units);
                continue;
            }
            // The values of this block are no aligned array of elements. Copy up to `at_once` of
            // them at a time from both sides into the stages, call `f` on the stages, and write the
            // user's values back.
            let (new, old) = stages.get_or_insert_with(Stage::two);
            let at_once = (STAGE / extent) as u64;
            let mut first = 0;
            while first < units {
                let m = at_once.min(units - first);
                let place = |k: u64| block + value.span((first + k) as i64);
                for k in 0..m {
                    let (from, to) = (place(k), k as usize * extent);
                    let (user, packed) = (self.user(from.user), self.packed(from.packed));
                    let tail = reduce::meaning::written(Op::Minloc, value)[1];
                    let index = tail.1 - tail.0;
                    // SAFETY: `new` and `old` begin at element `k` of their stages, `to` bytes from
                    // the start, where `extent` bytes follow that hold a value of either form. The
                    // value is readable on both sides by the contract of `new`. The index of a
                    // pair, its last `index` packed bytes, goes to where it lies in a pair in user
                    // memory.
                    unsafe {
                        let (new, old) = (new.0[to..].as_mut_ptr(), old.0[to..].as_mut_ptr());
                        std::ptr::copy_nonoverlapping(user, old, user_len);
                        std::ptr::copy_nonoverlapping(packed, new, packed_len - index);
                        let (source, target) = (packed.add(packed_len - index), new.add(user_len - index));
                        std::ptr::copy_nonoverlapping(source, target, index);
                    }
                }
                f(new.0.as_ptr(), old.0.as_mut_ptr(), m);
                for k in 0..m {
                    let (user, from) = (self.user(place(k).user), k as usize * extent);
                    for (start, end) in reduce::meaning::written(Op::Minloc, value) {
                        let made = &old.0[from + start..from + end];
                        // SAFETY: `start..end` are bytes of the value in user memory without its
                        // padding, writable by the contract of `new`. The source is a slice of the
                        // stage.
                        unsafe {
                            std::ptr::copy_nonoverlapping(made.as_ptr(), user.wrapping_add(start), made.len())
                        };
                    }
                }
                first += m;
            }
        }
    }

    /// Moves `n` blocks of `len` bytes, in order. Block `i` lies at `user + column[first + i]` and
    /// at `packed + i * packed_stride`.
    ///
    /// # Panics
    /// If the column has fewer than `first + n` entries.
    #[inline]
    pub fn rows(
        &self,
        user: i64,
        packed: i64,
        (column, first, n): (&Column, usize, usize),
        packed_stride: i64,
        len: u64,
    ) {
        let f = rows::function(len, Width::of(column), self.direction, self.level);
        // SAFETY: `entries` has checked that `n` entries of the column follow `first`, and `f` is
        // made for their width. By the contract of `new`, the blocks are valid and the machine runs
        // `self.level`.
        unsafe {
            f(self.user(user), self.packed(packed), n as u64, entries(column, first, n), packed_stride, len);
        }
    }

    /// Moves blocks of listed lengths, in order: for every entry `i` of `first..first + n`,
    /// `lens[i]` bytes at `user + users[i]` and at `packed + packeds[i]`.
    ///
    /// # Panics
    /// If a column has fewer than `first + n` entries.
    #[inline]
    pub fn blocks(&self, user: i64, packed: i64, columns: [&Column; 3], (first, n): (usize, usize)) {
        let widths = Widths::of(columns);
        let [users, packeds, lens] = columns.map(|c| entries(c, first, n));
        let f = blocks::function(widths, self.direction, self.level);
        // SAFETY: `entries` has checked that `n` entries of each column follow `first`, and `f` is
        // made for their widths. By the contract of `new`, the blocks are valid and the machine
        // runs `self.level`.
        unsafe { f(self.user(user), self.packed(packed), n as u64, users, packeds, lens) }
    }
}

/// Copies a block: short blocks in line, others by [`run::copy`].
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
unsafe fn one(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: both copies need `len` readable bytes at `src` and `len` writable bytes at `dst`
    // without overlap, which the caller promises.
    unsafe { if len <= INLINE { block::run_time::<16>(dst, src, len) } else { run::copy(dst, src, len) } }
}

/// Copies a block like [`one`], but is never inlined.
///
/// # Safety
/// The same as for [`one`].
#[inline(never)]
unsafe fn one_by_call(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the conditions of `one` are those of this function.
    unsafe { one(dst, src, len) }
}

/// Returns the address of entry `first` of `column`. Panics unless at least `n` entries follow from
/// there.
#[inline(always)]
fn entries(column: &Column, first: usize, n: usize) -> *const u8 {
    assert!(first <= column.len() && n <= column.len() - first, "rows beyond the end of their column");
    column.as_ptr().wrapping_add(first * column.width())
}

#[cfg(test)]
mod tests;
