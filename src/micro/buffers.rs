//! Buffers: the two sides of one pack or unpack, as a handle that code without `unsafe` can move bytes through.
//!
//! Making a handle is unsafe and states the whole contract once: it is used only for blocks that are valid. The methods are
//! then calls of micro-kernels by offset.

use super::blocks::{self, Widths};
use super::resize::{Blocks, Conversion};
use super::{Direction, Width, block, reduce, resize, rows, run, stream, strided, swap, transpose};
use crate::column::Column;
use crate::kind::Op;
use crate::nest::{Leaf, Offsets, Value};
use crate::target::Level;

/// Longest block in bytes that [`Buffers::copy`] moves in line; longer ones go by [`run`].
const INLINE: usize = 64;

/// Fewest bytes that are streamed: shorter runs end in as many half lines as whole ones.
const STREAMED: u64 = 4 << 10;

/// Most bytes of a value that [`Buffers::convert`] moves.
pub const LONGEST_VALUE: usize = 16;

/// Most bytes of a value that [`Buffers::combine`] combines.
const LONGEST_COMBINED: usize = 64;

/// Blocks of values that are combined with those in user memory: block `i` of `n` at `at + i * step`, of `units` values that lie one after the
/// other.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// The operation.
    pub op: Op,
    /// The value.
    pub value: Value,
    /// Of the first block.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// From one block to the next.
    pub step: Offsets,
    /// Values of a block.
    pub units: u64,
    /// Bytes of a value on the packed side: without padding inside in a stream, as in user memory in a second layout.
    pub packed: i64,
}

/// Blocks of values that are handed to somebody: block `i` of `n` at `at + i * step`, of `units` values one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    /// The value.
    pub value: Value,
    /// Of the first block.
    pub at: Offsets,
    /// Number of blocks.
    pub n: u64,
    /// From one block to the next.
    pub step: Offsets,
    /// Values of a block.
    pub units: u64,
}

/// The element of an array as a compiler has it, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// From one element to the next.
    pub extent: usize,
    /// Its alignment, at most 16.
    pub alignment: usize,
}

/// Bytes of a row of elements that is copied to where it is aligned.
const STAGE: usize = 4096;

/// As any element is aligned.
#[repr(align(64))]
struct Stage([u8; STAGE]);

impl Stage {
    /// One for each side.
    fn two() -> (Stage, Stage) {
        (Stage([0; STAGE]), Stage([0; STAGE]))
    }
}

/// The user buffer and the packed buffer of one call, and which way bytes go.
///
/// Offsets are in bytes: user offsets from the buffer address of the call (displacement 0 of instance 0), packed offsets
/// from the first packed byte.
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
    /// As long as the handle is used, every block that its methods are given must be valid: readable on the source side and
    /// writable on the destination side of `direction`, by nobody else at the same time, without overlap between the sides.
    /// `level` must be one that this machine runs. Whoever hands the handle to safe code vouches that this code moves only
    /// blocks of the layout and the packed range that the caller's buffers were made for.
    pub unsafe fn new(user: *mut u8, packed: *mut u8, direction: Direction, level: Level) -> Buffers {
        Buffers { user, packed, direction, level, streaming: false }
    }

    /// Returns buffers that pack past the caches where enough bytes go at once.
    pub fn streaming(self, on: bool) -> Buffers {
        Buffers { streaming: on && self.direction == Direction::Pack, ..self }
    }

    /// Returns which way bytes go.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the addresses at a user and a packed offset.
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

    /// Moves one block of `len` bytes.
    #[inline(always)]
    pub fn copy(&self, user: i64, packed: i64, len: u64) {
        let (dst, src) = self.towards(user, packed);
        // SAFETY: the block is valid by the contract of `new`.
        unsafe {
            if self.streaming && len >= STREAMED {
                stream::function(self.level)(dst, src, 1, len as i64, 0, len);
            } else {
                one(dst, src, len as usize);
            }
        }
    }

    /// Moves one block of `len` bytes by a call, and not past the caches: for places where code in line would be too long.
    #[inline(always)]
    pub fn block(&self, user: i64, packed: i64, len: u64) {
        let (dst, src) = self.towards(user, packed);
        // SAFETY: the block is valid by the contract of `new`.
        unsafe { one_by_call(dst, src, len as usize) }
    }

    /// Where bytes go, and where they come from.
    #[inline(always)]
    fn towards(&self, user: i64, packed: i64) -> (*mut u8, *const u8) {
        let (user, packed) = self.at(user, packed);
        match self.direction {
            Direction::Pack => (packed, user.cast_const()),
            Direction::Unpack => (user, packed.cast_const()),
        }
    }

    /// Moves `n` blocks of `len` bytes, in order: block `i` lies at `user + i * user_stride` and at
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

    /// Moves the blocks of `len` bytes of two loops, an outer one and an inner one, in order: the micro-kernel is looked up once.
    #[inline(always)]
    pub fn rows_of_strided(&self, at: Offsets, [(rows, row), (n, step)]: [(u64, Offsets); 2], len: u64) {
        let streamed = self.streaming && n.saturating_mul(len) >= STREAMED;
        let f = if streamed { stream::function(self.level) } else { strided::function(len, self.level) };
        for i in 0..rows as i64 {
            let at = at.step(row, i);
            let (user, packed) = self.at(at.user, at.packed);
            // SAFETY: the blocks are valid by the contract of `new`, and so is the level.
            unsafe {
                match self.direction {
                    Direction::Pack => f(packed, user, n, step.packed, step.user, len),
                    Direction::Unpack => f(user, packed, n, step.user, step.packed, len),
                }
            }
        }
    }

    /// Moves the elements of `len` bytes of two loops, an outer one and an inner one, in any order, if there is code for that and stores are not streamed; else says so and moves none. No element
    /// may overlap another where it is written.
    pub fn transposed(&self, at: Offsets, [outer, inner]: [(u64, Offsets); 2], len: u64) -> bool {
        let Some(f) = transpose::function(len, self.level).filter(|_| !self.streaming) else { return false };
        let ((outer, o), (inner, i)) = (outer, inner);
        let (user, packed) = self.at(at.user, at.packed);
        // SAFETY: the elements are valid by the contract of `new`, and so is the level.
        unsafe {
            match self.direction {
                Direction::Pack => f(packed, user, inner, outer, o.packed, i.user, i.packed, o.user),
                Direction::Unpack => f(user, packed, outer, inner, i.user, o.packed, o.user, i.packed),
            }
        }
        true
    }

    /// Moves `n` blocks of `len` bytes, in order, as [`Buffers::strided`] does, and reverses the bytes of every `unit` of them.
    ///
    /// # Panics
    /// If `len` is not a multiple of `unit`, or there is no micro-kernel for such units ([`swap::UNITS`]).
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
        // SAFETY: the blocks are valid by the contract of `new`, and so is the level.
        unsafe {
            match self.direction {
                Direction::Pack => f(packed, user, n, packed_stride, user_stride, len),
                Direction::Unpack => f(user, packed, n, user_stride, packed_stride, len),
            }
        }
    }

    /// Moves `n` blocks of `units` values, in order, each converted, up to the first that does not fit: how many those are.
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
        // SAFETY: the blocks are valid by the contract of `new`, and so is the level.
        unsafe { resize::function::<C>(self.level)(&blocks) }
    }

    /// Moves one value of so many bytes on each side, as `convert` makes the bytes of the one side from those of the other; nothing is
    /// moved where it fails.
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
        // SAFETY: a block of the source, valid by the contract of `new`; it fits, and nobody else has the array.
        unsafe { std::ptr::copy_nonoverlapping(src, old.as_mut_ptr(), from) };
        convert(old, new)?;
        // SAFETY: a block of the destination, in the same way.
        unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), dst, to) };
        Ok(())
    }

    /// Combines values of the packed side with those in user memory, in order, whatever the direction of the handle says.
    pub fn combine(&self, run: &Combined) {
        let Combined { op, value, at, n, step, units, packed } = *run;
        // A pair comes alone, and what has padding on one side has no runs.
        let alone = value.user() != value.packed() || reduce::is_pair(value);
        let inner = Offsets::new(value.user(), packed);
        match reduce::function(op, value, self.level) {
            Some(f) if !alone => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: the blocks are valid by the contract of `new`, and so is the level.
                unsafe { f(user, src, n, step.user, step.packed, units * packed as u64) };
            }
            Some(f) if units == 1 => {
                let (user, src) = (self.user(at.user), self.packed(at.packed));
                // SAFETY: the same.
                unsafe { f(user, src, n, step.user, step.packed, packed as u64) };
            }
            Some(f) => {
                for i in 0..n as i64 {
                    let at = at.step(step, i);
                    let (user, src) = (self.user(at.user), self.packed(at.packed));
                    // SAFETY: the same.
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

    /// Combines one value by the meaning of the operation.
    fn combine_one(&self, op: Op, value: Value, at: Offsets, packed: i64) {
        let (mut new, mut old) = ([0; LONGEST_COMBINED], [0; LONGEST_COMBINED]);
        let (new, old) = (&mut new[..packed as usize], &mut old[..value.user() as usize]);
        let (user, src) = (self.user(at.user), self.packed(at.packed));
        // SAFETY: one value on both sides, valid by the contract of `new`; it fits, and nobody else has the arrays.
        unsafe {
            std::ptr::copy_nonoverlapping(src, new.as_mut_ptr(), new.len());
            std::ptr::copy_nonoverlapping(user, old.as_mut_ptr(), old.len());
        }
        reduce::meaning::combine(op, value, new, old);
        for (start, end) in reduce::meaning::written(op, value) {
            // SAFETY: bytes of the value in user memory, padding left out.
            unsafe {
                std::ptr::copy_nonoverlapping(old[start..end].as_ptr(), user.wrapping_add(start), end - start)
            };
        }
    }

    /// Calls `f(packed values, user values, number)` for rows of values, in order. Both are arrays of elements: where they lie so in memory, aligned,
    /// those themselves, else copies; what `f` makes of the user's values is written back, but for padding.
    ///
    /// # Panics
    /// If an element has more than a few dozen bytes.
    pub fn hand_on(&self, run: &Handed, element: Element, f: &mut dyn FnMut(*const u8, *mut u8, u64)) {
        let Handed { value, at, n, step, units } = *run;
        let Element { extent, alignment } = element;
        let (user_len, packed_len) = (value.user() as usize, value.packed() as usize);
        let in_place = user_len == extent && packed_len == extent;
        let aligned = |p: *mut u8| p.addr().is_multiple_of(alignment);
        // Room that the first row asks for which needs it.
        let mut stages: Option<(Stage, Stage)> = None;
        for i in 0..n as i64 {
            let block = at.step(step, i);
            let (user, packed) = (self.user(block.user), self.packed(block.packed));
            if in_place && aligned(user) && aligned(packed) {
                f(packed, user, units);
                continue;
            }
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
                    // SAFETY: one value on both sides, valid by the contract of `new`, goes to an element of its own; the index of a pair to
                    // where it lies in memory.
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
                        // SAFETY: bytes of the value in user memory, padding left out.
                        unsafe {
                            std::ptr::copy_nonoverlapping(made.as_ptr(), user.wrapping_add(start), made.len())
                        };
                    }
                }
                first += m;
            }
        }
    }

    /// Moves blocks of `len` bytes, in order: for every entry `first + i` below `first + n` of `column`, the block at
    /// `user + column[first + i]` and at `packed + i * packed_stride`.
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
        // SAFETY: the entries exist; the blocks are valid by the contract of `new`, and so is the level.
        unsafe {
            f(self.user(user), self.packed(packed), n as u64, entries(column, first, n), packed_stride, len);
        }
    }

    /// Moves blocks of listed lengths, in order: for every entry `i` of `first..first + n`, `lens[i]` bytes at
    /// `user + users[i]` and at `packed + packeds[i]`.
    ///
    /// # Panics
    /// If a column has fewer than `first + n` entries.
    #[inline]
    pub fn blocks(&self, user: i64, packed: i64, columns: [&Column; 3], (first, n): (usize, usize)) {
        let widths = Widths::of(columns);
        let [users, packeds, lens] = columns.map(|c| entries(c, first, n));
        let f = blocks::function(widths, self.direction, self.level);
        // SAFETY: the entries exist; the blocks are valid by the contract of `new`, and so is the level.
        unsafe { f(self.user(user), self.packed(packed), n as u64, users, packeds, lens) }
    }
}

/// Copies a block.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
unsafe fn one(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe { if len <= INLINE { block::run_time::<16>(dst, src, len) } else { run::copy(dst, src, len) } }
}

/// As [`one`].
///
/// # Safety
/// As [`one`].
#[inline(never)]
unsafe fn one_by_call(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe { one(dst, src, len) }
}

/// Address of entry `first` of `column`, which has `n` entries from there.
#[inline(always)]
fn entries(column: &Column, first: usize, n: usize) -> *const u8 {
    assert!(first <= column.len() && n <= column.len() - first, "rows beyond the end of their column");
    column.as_ptr().wrapping_add(first * column.width())
}

#[cfg(test)]
mod tests;
