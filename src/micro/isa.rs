//! Instruction sets: what each of them provides for the loops of the micro-kernels. Each
//! instruction set declares what it provides in its own file, which may have a folder for the code.
//!
//! The loops are written once, generic over a type that has no values and stands for an instruction
//! set. [`Isa`] has the properties of an instruction set: its [`Registers`], and the blocks for
//! which it has code. These properties are available on any machine, because plans are also made
//! for machines other than this one. [`Code`] has the code of an instruction set, and exists only
//! on machines of its architecture. Copies for which an instruction set defines no function are
//! done in pieces of its widest register, by the primitives of the layer below: `block`, `cursor`,
//! `units` and the pieces of `transpose`.
//!
//! To add an instruction set, add a level of the target, a file for it, and a line in each of the
//! three lists of instruction sets below (`with_isa`, `with_code` and `for_each_code`).
//!
//! Invariants: if an instruction set declares that it has no code for certain blocks, the next
//! lower instruction set serves these blocks, and the baseline has code for all blocks. Functions
//! of [`Code`] may run only on a machine that has the instructions of the instruction set.

use super::cursor::Cursor;
use super::permute::table::{Function, Granule};
#[cfg(feature = "operations")]
use super::reduce::vector::Vector;
use super::registers::{ByLength, Lengths, Registers, by_length, has};
use super::transpose::pieces;
use super::units::{self, Reverse};
use super::{Direction, block};
use crate::target::Level;

mod avx2;
mod avx512;
mod baseline;
mod neon;

pub(super) use avx2::Avx2;
pub(super) use avx512::Avx512;
pub(super) use baseline::Baseline;
pub(super) use neon::Neon;

/// Evaluates the expression `$then`, in which the type alias `$isa` stands for the instruction set
/// with the name `$name`.
macro_rules! with {
    ($name:ident, $isa:ident => $then:expr) => {{
        type $isa = $crate::micro::isa::$name;
        $then
    }};
}

/// Evaluates the expression `$then`, in which the type alias `$isa` stands for the instruction set
/// of a level. This macro works on any machine.
macro_rules! with_isa {
    ($level:expr, $isa:ident => $then:expr) => {
        match $level {
            $crate::target::Level::Baseline => $crate::micro::isa::with!(Baseline, $isa => $then),
            $crate::target::Level::Avx2 => $crate::micro::isa::with!(Avx2, $isa => $then),
            $crate::target::Level::Avx512 => $crate::micro::isa::with!(Avx512, $isa => $then),
            $crate::target::Level::Neon => $crate::micro::isa::with!(Neon, $isa => $then),
        }
    };
}

/// Evaluates the expression `$then`, in which the type alias `$isa` stands for the instruction set
/// of a level, if this architecture has code for this level. For other levels, the alias stands for
/// the baseline.
macro_rules! with_code {
    ($level:expr, $isa:ident => $then:expr) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            $crate::target::Level::Avx2 => $crate::micro::isa::with!(Avx2, $isa => $then),
            #[cfg(target_arch = "x86_64")]
            $crate::target::Level::Avx512 => $crate::micro::isa::with!(Avx512, $isa => $then),
            #[cfg(target_arch = "aarch64")]
            $crate::target::Level::Neon => $crate::micro::isa::with!(Neon, $isa => $then),
            _ => $crate::micro::isa::with!(Baseline, $isa => $then),
        }
    };
}

/// Calls a macro once for every instruction set for which this architecture has code. The called
/// macro gets the type of the instruction set, the attribute of functions that use its
/// instructions, and the remaining arguments of this macro.
macro_rules! for_each_code {
    ($make:ident($($rest:tt)*)) => {
        $make!(@of ($crate::micro::isa::Baseline) () $($rest)*);
        #[cfg(target_arch = "x86_64")]
        $make!(@of ($crate::micro::isa::Avx2) (#[target_feature(enable = "avx2,bmi1,bmi2,fma")]) $($rest)*);
        #[cfg(target_arch = "x86_64")]
        $make!(@of ($crate::micro::isa::Avx512) (#[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]) $($rest)*);
        #[cfg(target_arch = "aarch64")]
        $make!(@of ($crate::micro::isa::Neon) (#[target_feature(enable = "neon")]) $($rest)*);
    };
}

pub(super) use {for_each_code, with, with_code, with_isa};

/// The blocks for which an instruction set has code of its own. Other blocks are moved by the code
/// of a lower instruction set.
#[derive(Clone, Copy)]
pub(super) struct MadeFor {
    /// Block lengths for which there is code that moves blocks at constant strides.
    pub(super) strided: Lengths,
    /// Block lengths for which there is code that moves blocks whose offsets are listed in a table.
    pub(super) rows: Lengths,
    /// Lengths of matrix elements for which there is code that transposes a matrix.
    pub(super) transposed: Lengths,
}

/// Blocks of one length in bytes, with the way in which they lie in memory. The length 0 stands for
/// blocks of any length.
#[derive(Clone, Copy)]
pub(super) enum OneLength {
    /// Blocks at constant strides.
    Strided(usize),
    /// Blocks at listed offsets.
    Rows(usize),
    /// Matrix elements that are transposed.
    Transposed(usize),
}

impl OneLength {
    /// Returns true if an instruction set that declares `made_for` has code of its own for these
    /// blocks.
    pub(super) const fn has_code(self, made_for: &MadeFor) -> bool {
        match self {
            OneLength::Strided(len) => has(made_for.strided, len),
            OneLength::Rows(len) => has(made_for.rows, len),
            OneLength::Transposed(len) => has(made_for.transposed, len),
        }
    }

    /// Returns the level whose code moves these blocks on a target of `level`: `level` itself if it
    /// has code of its own for these blocks, or else the next lower level that has such code.
    pub(super) fn serving(self, level: Level) -> Level {
        let (made_for, below) = with_isa!(level, I => (I::MADE_FOR, <<I as Isa>::Below as Isa>::LEVEL));
        if self.has_code(&made_for) { level } else { self.serving(below) }
    }
}

/// How an instruction set moves the instances of a small layout by permutations of vectors
/// ([`super::Permutation`]).
#[derive(Clone, Copy)]
pub(super) struct Permuting {
    /// Number of bytes of the user's buffer that are permuted at once.
    pub(super) vector: u64,
    /// Whether masked loads and stores access only those bytes or words of a vector that belong to
    /// blocks. Otherwise vectors are read whole, including the gaps between blocks, and unpacking
    /// is not possible.
    pub(super) masked: bool,
}

/// Properties of an instruction set, which are constants and therefore available on any machine.
pub(super) trait Isa: Registers {
    /// The level of the instruction set.
    const LEVEL: Level;
    /// The next lower instruction set, whose code is used for blocks for which this instruction set
    /// has no better code.
    type Below: Isa;
    /// The blocks for which the instruction set has code of its own.
    const MADE_FOR: MadeFor;
    /// Each entry has a block length in bytes and a number of blocks. Packing blocks of this length
    /// is faster if this number of blocks is combined into full vectors.
    const GATHERED: ByLength = &[];
    /// Each entry has a block length from [`Isa::GATHERED`] and an alignment, both in bytes.
    /// Packing blocks of this length is faster if up to three blocks are first copied separately,
    /// so that the stores of full vectors have this alignment.
    const ALIGNED: ByLength = &[];
    /// Each entry has a block length in bytes and a number of blocks. Unpacking blocks of this
    /// length is faster if this number of blocks is loaded together, as full vectors.
    const SCATTERED: ByLength = &[];
    /// Lengths in bytes of blocks that need two plain stores, but only one masked store.
    const MASKED: Lengths = &[];
    /// Maximum length in bytes of a block that is loaded and stored under a mask computed from its
    /// length; 0 if the instruction set has no masked loads and stores of bytes.
    const MASKED_UP_TO: usize = 0;
    /// How the instruction set moves the instances of a small layout by permutations of vectors, or
    /// `None` if it has no code for such permutations.
    const PERMUTATION: Option<Permuting> = None;
}

/// The code of an instruction set, which may run only on a machine that has the instructions.
pub(super) trait Code: Isa + Reverse {
    /// Copies a group of blocks of `LEN` bytes to a dense destination, where they follow each other
    /// directly. The number of blocks is the one that [`Isa::GATHERED`] lists for `LEN`, which must
    /// be in that list.
    ///
    /// # Safety
    /// All blocks of the group must remain in `src` and be readable. The memory from
    /// `dst` on must be writable for the sum of the lengths of all blocks. No source block may overlap the destination.
    #[inline(always)]
    unsafe fn gather<const LEN: usize>(dst: *mut u8, src: &impl Cursor) {
        for u in 0..by_length(Self::GATHERED, LEN) {
            // SAFETY: `u` is less than the number of blocks that the caller promises, in `src` and
            // one after the other at `dst`.
            unsafe { block::constant::<Self, LEN>(dst.add(u * LEN), src.address(u)) }
        }
    }

    /// Copies a group of blocks of `LEN` bytes from a dense source, where they follow each other
    /// directly. The number of blocks is the one that [`Isa::SCATTERED`] lists for `LEN`, which
    /// must be in that list.
    ///
    /// # Safety
    /// All blocks of the group must remain in `dst` and be writable. As many bytes as all blocks of
    /// the group have must be readable at `src`. No destination block may overlap the source.
    #[inline(always)]
    unsafe fn scatter<const LEN: usize>(dst: &impl Cursor, src: *const u8) {
        for u in 0..by_length(Self::SCATTERED, LEN) {
            // SAFETY: `u` is less than the number of blocks that the caller promises, in `dst` and
            // one after the other at `src`.
            unsafe { block::constant::<Self, LEN>(dst.address(u), src.add(u * LEN)) }
        }
    }

    /// Copies a block of `LEN` bytes, which is one of the lengths of [`Isa::MASKED`], by one masked
    /// store.
    ///
    /// # Safety
    /// `LEN` bytes, rounded up to a power of two, must be readable at `src`, and `LEN` bytes
    /// writable at `dst`. The source must not overlap the destination.
    #[inline(always)]
    unsafe fn store_masked<const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: the caller promises `LEN` bytes on both sides without overlap.
        unsafe { block::constant::<Self, LEN>(dst, src) }
    }

    /// Copies a block of at most [`Isa::MASKED_UP_TO`] bytes without a branch on its length.
    ///
    /// # Safety
    /// `len` bytes must be readable at `src` and writable at `dst`. The source must not overlap the
    /// destination.
    #[inline(always)]
    unsafe fn copy_masked(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller promises `len` bytes on both sides without overlap.
        unsafe { block::run_time_by::<Self>(dst, src, len) }
    }

    /// Copies some of `n` blocks of `LEN` bytes, from the first block on, if the blocks are so
    /// short and so near to each other that a vector holds several blocks. Returns the number of
    /// copied blocks, which may be 0. `strides` has the stride of the destination and the stride of
    /// the source.
    ///
    /// # Safety
    /// Blocks of `LEN` bytes, `n` in number, must be readable from `src` on and writable from `dst`
    /// on, at the given strides. No source block may overlap a destination block.
    #[inline(always)]
    unsafe fn copy_near<const LEN: usize>(
        _dst: *mut u8,
        _src: *const u8,
        _n: usize,
        _strides: (isize, isize),
    ) -> usize {
        0
    }

    /// Combines the values of some of `n` blocks, from the first block on, with the values at their
    /// destination, if the blocks are so short and so near to each other that a vector holds
    /// several blocks. Returns the number of combined blocks, which may be 0. `strides` has the
    /// stride of the destination and the stride of the source.
    ///
    /// # Safety
    /// Blocks of `len` bytes of whole values, `n` in number, must be readable from `src` on, and
    /// readable and writable from `dst` on, at the given strides. No source block may overlap a
    /// destination block.
    #[cfg(feature = "operations")]
    #[inline(always)]
    unsafe fn combine_near<V: Vector>(
        _dst: *mut u8,
        _src: *const u8,
        _n: usize,
        _strides: (isize, isize),
        _len: usize,
    ) -> usize {
        0
    }

    /// Transposes one block of a matrix whose elements follow each other directly in each row. The
    /// block has as many rows and columns as [`pieces::shape`] returns for elements of `LEN` bytes.
    ///
    /// # Safety
    /// The elements of `LEN` bytes must be readable at `src`, in rows that begin `src_row` bytes
    /// apart, and writable at `dst`, in rows that begin `dst_row` bytes apart. The source must not
    /// overlap the destination.
    #[inline(always)]
    unsafe fn transpose<const LEN: usize>(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        // SAFETY: the conditions of `in_pieces` are those of this function.
        unsafe { pieces::in_pieces::<Self, LEN>(dst, src, dst_row, src_row) }
    }

    /// Copies `lines` cache lines of 64 bytes with stores that bypass the caches, if the
    /// architecture has such stores.
    ///
    /// # Safety
    /// `lines` lines must be readable at `src` and writable at `dst`. The source must not overlap
    /// the destination. If `lines` is not 0, `dst` must be a multiple of 64.
    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        // SAFETY: the conditions of the baseline's function are those of this one.
        unsafe { Baseline::stream(dst, src, lines) }
    }

    /// Copies the next eight blocks of `src`, each of which is one unit of `UNIT` bytes, to a dense
    /// destination, where they follow each other directly. Reverses the bytes of each unit.
    ///
    /// # Safety
    /// Eight blocks of `UNIT` bytes must remain in `src` and be readable, and `8 * UNIT` bytes must
    /// be writable at `dst`. The source must not overlap the destination.
    #[inline(always)]
    unsafe fn gather_reversed<const UNIT: usize>(dst: *mut u8, src: &impl Cursor) {
        for u in 0..8 {
            // SAFETY: `u` is less than eight, the number of units that the caller promises in `src`
            // and one after the other at `dst`.
            unsafe { units::by_units::<UNIT, UNIT>(dst.add(u * UNIT), src.address(u)) }
        }
    }

    /// Copies eight units of `UNIT` bytes from a dense source, where they follow each other
    /// directly, to the next eight blocks of `dst`. Reverses the bytes of each unit.
    ///
    /// # Safety
    /// Eight blocks of `UNIT` bytes must remain in `dst` and be writable, and `8 * UNIT` bytes must
    /// be readable at `src`. The source must not overlap the destination.
    #[inline(always)]
    unsafe fn scatter_reversed<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: the conditions of `scatter` are those of this function.
        unsafe { units::scatter::<UNIT>(dst, src) }
    }

    /// Copies some of `n` blocks of `len` bytes, from the first block on, and reverses the bytes of
    /// each of their units of `UNIT` bytes, if the blocks are so short and so near to each other
    /// that a vector holds several blocks. Returns the number of copied blocks, which may be 0.
    /// `strides` has the stride of the destination and the stride of the source.
    ///
    /// # Safety
    /// Blocks of `len` bytes, `n` in number, must be readable from `src` on and writable from `dst`
    /// on, at the given strides. No source block may overlap a destination block. `len` must be a
    /// multiple of `UNIT`.
    #[inline(always)]
    unsafe fn reverse_near<const UNIT: usize>(
        _dst: *mut u8,
        _src: *const u8,
        _n: usize,
        _len: usize,
        _strides: (isize, isize),
    ) -> usize {
        0
    }

    /// Orders the stores of [`Code::stream`], which bypass the caches, before all stores that
    /// follow.
    #[inline(always)]
    fn fence() {
        Baseline::fence()
    }

    /// Prefetches the cache line at `address`, to be read or to be written. Nothing happens if no
    /// memory is mapped there.
    #[inline(always)]
    fn prefetch<const WRITE: bool>(address: *const u8) {
        Baseline::prefetch::<WRITE>(address)
    }

    /// Returns the function that packs or unpacks by permutations of bytes or of words (the
    /// granule), with or without units whose bytes are reversed. Returns `None` if the instruction
    /// set has no such function.
    fn permute(_granule: Granule, _swaps: bool, _direction: Direction) -> Option<Function> {
        None
    }
}

#[cfg(test)]
mod tests;
