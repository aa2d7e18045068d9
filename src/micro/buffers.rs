//! Buffers: a handle on the two sides of one pack or unpack, through which code without `unsafe`
//! can move bytes.
//!
//! Making a handle is unsafe, and its contract covers all later uses: the handle is used only for
//! valid blocks. The methods take offsets and call micro-kernels.

#[cfg(feature = "operations")]
mod values;

use super::blocks::{self, Widths};
use super::{Direction, Width, block, rows, run, stream, strided, swap, transpose};
use crate::column::Column;
use crate::nest::Offsets;
use crate::target::Level;

#[cfg(feature = "operations")]
pub use values::{Combined, Element, Handed, LONGEST_VALUE};

/// Length in bytes up to which [`Buffers::copy`] moves a block in line; longer blocks are moved by
/// [`run`].
const INLINE: usize = 64;

/// Minimum number of bytes that one call streams. The bytes before the first and after the last
/// whole cache line are not streamed, and they are a larger part of a short run.
const STREAMED: u64 = 4 << 10;

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

    /// Moves the blocks of `len` bytes of two nested loops, in order. The first of the two loops is
    /// the outer one. The micro-kernel is looked up only once.
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

    /// Moves the elements of `len` bytes of two nested loops, in any order, and returns true. The
    /// first of the two loops is the outer one. The function returns false and moves nothing if
    /// there is no transpose for this length, or if streaming is on. The elements must not overlap
    /// each other on the side that is written.
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
