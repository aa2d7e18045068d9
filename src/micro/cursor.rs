//! Block cursors: where the blocks of one side of a copy lie, as the loops ask for it.
//!
//! A loop takes up to eight blocks an iteration. What it needs is eight addresses that do not depend on one another: with
//! plain pointer arithmetic the optimizer turns `p + 3 * s` into a chain of additions through all eight, and the chain, not the
//! memory, bounds the loop (8 B blocks: 31 instead of 48 GB/s; Sapphire Rapids).

/// The blocks of one side that are still to be copied.
pub(super) trait Cursor: Copy {
    /// Address of the block `u < 8` blocks ahead.
    ///
    /// # Safety
    /// At least `u + 1` blocks remain.
    unsafe fn at(&self, u: usize) -> *mut u8;

    /// Moves on by 1, 2, 4 or 8 blocks.
    fn advance(&mut self, blocks: usize);
}

/// Blocks of `LEN` bytes one after the other.
#[derive(Clone, Copy)]
pub(super) struct Dense<const LEN: usize>(pub(super) *mut u8);

impl<const LEN: usize> Cursor for Dense<LEN> {
    #[inline(always)]
    unsafe fn at(&self, u: usize) -> *mut u8 {
        self.0.wrapping_add(u * LEN)
    }

    #[inline(always)]
    fn advance(&mut self, blocks: usize) {
        self.0 = self.0.wrapping_add(blocks * LEN);
    }
}

/// Blocks at a constant stride.
#[derive(Clone, Copy)]
pub(super) struct Strided {
    next: *mut u8,
    by_1: isize,
    by_3: isize,
    by_4: isize,
}

impl Strided {
    /// Blocks from `start` on, `stride` bytes apart.
    #[inline(always)]
    pub(super) fn new(start: *mut u8, stride: isize) -> Strided {
        let times = |k: isize| opaque(stride.wrapping_mul(k));
        Strided { next: start, by_1: times(1), by_3: times(3), by_4: times(4) }
    }
}

impl Cursor for Strided {
    #[inline(always)]
    unsafe fn at(&self, u: usize) -> *mut u8 {
        // x86 adds a register once or twice to another in the address itself; three and four times are kept in registers.
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

/// One offset, or one length, of a column.
pub(super) trait Offset: Copy {
    /// Entry `i` of `column`, in bytes.
    ///
    /// # Safety
    /// `column` has more than `i` entries of this type.
    unsafe fn load(column: *const u8, i: usize) -> isize;
}

impl Offset for i32 {
    #[inline(always)]
    unsafe fn load(column: *const u8, i: usize) -> isize {
        // SAFETY: as promised by the caller.
        unsafe { column.cast::<i32>().add(i).read_unaligned() as isize }
    }
}

impl Offset for i64 {
    #[inline(always)]
    unsafe fn load(column: *const u8, i: usize) -> isize {
        // SAFETY: as promised by the caller.
        unsafe { column.cast::<i64>().add(i).read_unaligned() as isize }
    }
}

/// Blocks at the offsets of a column.
#[derive(Clone, Copy)]
pub(super) struct Listed<O> {
    /// Address to which the offsets are relative.
    pub(super) base: *mut u8,
    /// The offset of the next block.
    pub(super) next: *const O,
}

impl<O: Offset> Cursor for Listed<O> {
    #[inline(always)]
    unsafe fn at(&self, u: usize) -> *mut u8 {
        // SAFETY: a remaining block has its offset.
        self.base.wrapping_offset(unsafe { O::load(self.next.cast(), u) })
    }

    #[inline(always)]
    fn advance(&mut self, blocks: usize) {
        self.next = self.next.wrapping_add(blocks);
    }
}

/// `x`, of which the optimizer knows nothing.
#[inline(always)]
pub(super) fn opaque(x: isize) -> isize {
    #[cfg(not(miri))]
    {
        let mut x = x;
        // SAFETY: no instruction at all; the comment keeps the operand in use.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
        }
        x
    }
    #[cfg(miri)]
    x
}
