//! Block cursors: the addresses of the blocks on one side of a copy, in the form in which the loops
//! need them.
//!
//! A loop moves up to eight blocks in one iteration and needs eight addresses that do not depend on
//! each other. With plain pointer arithmetic, the optimizer turns `p + 3 * s` into a chain of
//! additions through all eight addresses. The loop is then limited by the latency of this chain
//! instead of by memory (blocks of 8 B: 31 instead of 48 GB/s; Sapphire Rapids).

/// Cursor: it stands for the blocks of one side of a copy, the source or the destination, that are
/// still to be copied, and returns their addresses.
pub(super) trait Cursor: Copy {
    /// Returns the address of one of the remaining blocks: of the next block if `u` is 0, or else
    /// of the block `u` places after the next one. `u` is less than 8.
    ///
    /// # Safety
    /// At least `u + 1` blocks must remain in the cursor.
    unsafe fn address(&self, u: usize) -> *mut u8;

    /// Moves the cursor past the next `blocks` blocks: 1, 2, 4 or 8.
    fn advance(&mut self, blocks: usize);
}

/// Cursor over blocks of `LEN` bytes that follow each other directly in memory. It holds the
/// address of the next block.
#[derive(Clone, Copy)]
pub(super) struct Dense<const LEN: usize>(pub(super) *mut u8);

impl<const LEN: usize> Cursor for Dense<LEN> {
    #[inline(always)]
    unsafe fn address(&self, u: usize) -> *mut u8 {
        self.0.wrapping_add(u * LEN)
    }

    #[inline(always)]
    fn advance(&mut self, blocks: usize) {
        self.0 = self.0.wrapping_add(blocks * LEN);
    }
}

/// Cursor over blocks at a constant stride. It holds the address of the next block, and multiples
/// of the stride.
#[derive(Clone, Copy)]
pub(super) struct Strided {
    next: *mut u8,
    by_1: isize,
    by_3: isize,
    by_4: isize,
}

impl Strided {
    /// Returns a cursor over blocks at a constant stride: the first one begins at `start`, and each
    /// further block begins `stride` bytes after the block before it.
    #[inline(always)]
    pub(super) fn new(start: *mut u8, stride: isize) -> Strided {
        let times = |k: isize| opaque(stride.wrapping_mul(k));
        Strided { next: start, by_1: times(1), by_3: times(3), by_4: times(4) }
    }
}

impl Cursor for Strided {
    #[inline(always)]
    unsafe fn address(&self, u: usize) -> *mut u8 {
        // An address in x86 code can be the sum of a register and another register times one, two,
        // four or eight, but not times three. Three times the stride is therefore kept in a
        // register. Four times the stride is kept in a register too; for `u` from 5 on, another
        // multiple of the stride is added to it.
        let base = if u < 4 { self.next } else { self.next.wrapping_offset(self.by_4) };
        match u % 4 {
            0 => base,
            1 => base.wrapping_offset(self.by_1),
            2 => base.wrapping_offset(self.by_1.wrapping_mul(2)),
            _ => base.wrapping_offset(self.by_3),
        }
    }

    #[inline(always)]
    fn advance(&mut self, blocks: usize) {
        let bytes = match blocks {
            1 => self.by_1,
            2 => self.by_1.wrapping_mul(2),
            4 => self.by_4,
            _ => self.by_4.wrapping_mul(2),
        };
        self.next = self.next.wrapping_offset(bytes);
    }
}

/// Type of the entries of a column, which is a table of offsets or of lengths in bytes.
pub(super) trait Offset: Copy {
    /// Returns entry `i` of the table `column`, which is an offset or a length in bytes.
    ///
    /// # Safety
    /// `column` must be the address of a table of more than `i` entries of this type.
    unsafe fn load(column: *const u8, i: usize) -> isize;
}

impl Offset for i32 {
    #[inline(always)]
    unsafe fn load(column: *const u8, i: usize) -> isize {
        // SAFETY: the caller promises that entry `i` exists; the read needs no alignment.
        unsafe { column.cast::<i32>().add(i).read_unaligned() as isize }
    }
}

impl Offset for i64 {
    #[inline(always)]
    unsafe fn load(column: *const u8, i: usize) -> isize {
        // SAFETY: the caller promises that entry `i` exists; the read needs no alignment.
        unsafe { column.cast::<i64>().add(i).read_unaligned() as isize }
    }
}

/// Cursor over blocks whose offsets are the entries of a column, which is a table of integers.
#[derive(Clone, Copy)]
pub(super) struct Listed<O> {
    /// Address to which the offsets in the column are relative.
    pub(super) base: *mut u8,
    /// Address of the entry of the column that has the offset of the next block.
    pub(super) next: *const O,
}

impl<O: Offset> Cursor for Listed<O> {
    #[inline(always)]
    unsafe fn address(&self, u: usize) -> *mut u8 {
        // SAFETY: the caller promises that more than `u` blocks remain, and each of them has an
        // entry from `next` on.
        self.base.wrapping_offset(unsafe { O::load(self.next.cast(), u) })
    }

    #[inline(always)]
    fn advance(&mut self, blocks: usize) {
        self.next = self.next.wrapping_add(blocks);
    }
}

/// Returns `x`, but hides from the optimizer that the result is equal to `x`. Under Miri, the
/// function simply returns `x`.
#[inline(always)]
pub(super) fn opaque(x: isize) -> isize {
    #[cfg(not(miri))]
    {
        let mut x = x;
        // SAFETY: the assembly text is only a comment, so no instruction runs. It names the operand
        // to keep the register in use.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
        }
        x
    }
    #[cfg(miri)]
    x
}
