//! Buffers: the two sides of one pack or unpack, as a handle that code without `unsafe` can move bytes through.
//!
//! Making a handle is unsafe and states the whole contract once: it is used only for blocks that are valid. The methods are
//! then calls of micro-kernels by offset.

#[cfg(feature = "operations")]
mod values;

use super::blocks::{self, Widths};
use super::{Direction, Width, block, rows, run, stream, strided, swap, transpose};
use crate::column::Column;
use crate::nest::Offsets;
use crate::target::Level;

#[cfg(feature = "operations")]
pub use values::{Combined, Element, Handed, LONGEST_VALUE};

/// Longest block in bytes that [`Buffers::copy`] moves in line; longer ones go by [`run`].
const INLINE: usize = 64;

/// Fewest bytes that are streamed: shorter runs end in as many half lines as whole ones.
const STREAMED: u64 = 4 << 10;

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
