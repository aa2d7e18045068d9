//! Buffers: a handle on the user's buffer and the packed buffer of one pack or unpack, through
//! which code without `unsafe` can move bytes.
//!
//! The function that makes a handle is unsafe: its caller promises that the handle is used only for
//! valid blocks. The methods are therefore safe. They take offsets and call micro-kernels.

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
/// the module [`run`], which copies long runs of bytes.
const INLINE: usize = 64;

/// Minimum number of bytes of a call that uses streaming stores, which bypass the caches. The bytes
/// before the first and after the last whole cache line are stored without streaming, and they are
/// a larger part of a short run of bytes.
const STREAMED: u64 = 4 << 10;

/// The user buffer and the packed buffer of one call, and the direction in which bytes move between
/// them.
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
    /// accessed by anybody else at the same time, and without overlap between the sides. The
    /// methods `combine` and `hand_on` read and write the user side and read the packed side,
    /// whatever the direction. The machine must have the instructions of `level`. Whoever passes
    /// the handle to safe code promises that this code moves only blocks of the layout that `user`
    /// has, and only packed bytes of the range that begins at `packed`.
    pub unsafe fn new(user: *mut u8, packed: *mut u8, direction: Direction, level: Level) -> Buffers {
        Buffers { user, packed, direction, level, streaming: false }
    }

    /// Returns the same buffers with streaming stores, which bypass the caches, switched on or off.
    /// Streaming stores are used only for packing, and only where one call moves at least 4 KiB.
    pub fn streaming(self, on: bool) -> Buffers {
        Buffers { streaming: on && self.direction == Direction::Pack, ..self }
    }

    /// Returns the direction in which bytes move.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the address in the user's buffer at the offset `user`, and the address in the packed
    /// buffer at the offset `packed`.
    pub fn addresses(&self, user: i64, packed: i64) -> (*mut u8, *mut u8) {
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

    /// Moves one block of `len` bytes between the user offset `user` and the packed offset
    /// `packed`. If streaming is on and the block is long enough, the stores bypass the caches.
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

    /// Moves one block of `len` bytes by a call, and without stores that bypass the caches. This
    /// method is for places where the inlined code of [`Buffers::copy`] would be too long.
    #[inline(always)]
    pub fn block(&self, user: i64, packed: i64, len: u64) {
        let (dst, src) = self.towards(user, packed);
        // SAFETY: `dst` and `src` are the two sides of the block. By the contract of `new`, its
        // `len` bytes are readable, writable and without overlap.
        unsafe { one_by_call(dst, src, len as usize) }
    }

    /// Returns the addresses of the destination and of the source of a move between the user offset
    /// `user` and the packed offset `packed`.
    #[inline(always)]
    fn towards(&self, user: i64, packed: i64) -> (*mut u8, *const u8) {
        let (user, packed) = self.addresses(user, packed);
        match self.direction {
            Direction::Pack => (packed, user.cast_const()),
            Direction::Unpack => (user, packed.cast_const()),
        }
    }

    /// Moves `n` blocks of `len` bytes, in order. Block `i` lies at the user offset `user + i *
    /// user_stride` and at the packed offset `packed + i * packed_stride`.
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

    /// Moves one block of `len` bytes in every iteration of two nested loops, in order. Each loop
    /// is given by its number of iterations and its steps in user memory and in packed memory, the
    /// outer loop first. The micro-kernel for the inner loop is looked up only once.
    #[inline(always)]
    pub fn rows_of_strided(&self, at: Offsets, [(rows, row), (n, step)]: [(u64, Offsets); 2], len: u64) {
        let streamed = self.streaming && n.saturating_mul(len) >= STREAMED;
        let f = if streamed { stream::function(self.level) } else { strided::function(len, self.level) };
        for i in 0..rows as i64 {
            let at = at.step(row, i);
            let (user, packed) = self.addresses(at.user, at.packed);
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

    /// Moves one element of `len` bytes in every iteration of two nested loops, in any order, and
    /// returns true. Each loop is given by its number of iterations and its steps in user memory
    /// and in packed memory, the outer loop first. The function returns false and moves nothing if
    /// there is no transpose for this length, or if streaming is on. The elements must not overlap
    /// each other on the side that is written.
    pub fn transposed(&self, at: Offsets, [outer, inner]: [(u64, Offsets); 2], len: u64) -> bool {
        let Some(f) = transpose::function(len, self.level).filter(|_| !self.streaming) else { return false };
        let ((outer, o), (inner, i)) = (outer, inner);
        let (user, packed) = self.addresses(at.user, at.packed);
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

    /// Moves `n` blocks of `len` bytes, in order, and reverses the bytes of every unit of `unit`
    /// bytes in these blocks. As in [`Buffers::strided`], block `i` lies at the user offset `user +
    /// i * user_stride` and at the packed offset `packed + i * packed_stride`.
    ///
    /// # Panics
    /// If `len` is not a multiple of `unit`, or if there is no micro-kernel for units of this size
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

    /// Moves `n` blocks of `len` bytes, in order. Block `i` lies at the user offset `user` plus
    /// entry `first + i` of `column`, which is a table of offsets, and at the packed offset `packed
    /// + i * packed_stride`.
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
        let f = rows::function(len, Width::from_column(column), self.direction, self.level);
        // SAFETY: `entries` has checked that `n` entries of the column follow `first`, and `f` is
        // made for their width. By the contract of `new`, the blocks are valid and the machine runs
        // `self.level`.
        unsafe {
            f(self.user(user), self.packed(packed), n as u64, entries(column, first, n), packed_stride, len);
        }
    }

    /// Moves `n` blocks whose places and lengths are listed in `columns`, in order. The columns are
    /// the user offsets `users`, the packed offsets `packeds` and the lengths `lens`. For every `i`
    /// in `first..first + n`, the block of `lens[i]` bytes at the user offset `user + users[i]` and
    /// at the packed offset `packed + packeds[i]` is moved.
    ///
    /// # Panics
    /// If a column has fewer than `first + n` entries.
    #[inline]
    pub fn blocks(&self, user: i64, packed: i64, columns: [&Column; 3], (first, n): (usize, usize)) {
        let widths = Widths::from_columns(columns);
        let [users, packeds, lens] = columns.map(|c| entries(c, first, n));
        let f = blocks::function(widths, self.direction, self.level);
        // SAFETY: `entries` has checked that `n` entries of each column follow `first`, and `f` is
        // made for their widths. By the contract of `new`, the blocks are valid and the machine
        // runs `self.level`.
        unsafe { f(self.user(user), self.packed(packed), n as u64, users, packeds, lens) }
    }
}

/// Copies a block of `len` bytes: in line if it is short, or else by [`run::copy`].
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
unsafe fn one(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: both copies need `len` readable bytes at `src` and `len` writable bytes at `dst`
    // without overlap, which the caller promises.
    unsafe { if len <= INLINE { block::run_time::<16>(dst, src, len) } else { run::copy(dst, src, len) } }
}

/// Copies a block of `len` bytes like the function [`one`], but is never inlined.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(never)]
unsafe fn one_by_call(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the conditions of `one` are those of this function.
    unsafe { one(dst, src, len) }
}

/// Returns the address of entry `first` of the table `column`. Panics if the table has fewer than
/// `first + n` entries.
#[inline(always)]
fn entries(column: &Column, first: usize, n: usize) -> *const u8 {
    assert!(first <= column.len() && n <= column.len() - first, "rows beyond the end of their column");
    column.as_ptr().wrapping_add(first * column.width())
}

#[cfg(test)]
mod tests;
