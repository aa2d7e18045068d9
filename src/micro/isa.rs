//! Instruction sets: what each has for the loops of the micro-kernels, said in the file of the instruction set and nowhere else.
//!
//! The loops are written once, over a type that stands for an instruction set and has no values. [`Isa`] is what any machine may
//! ask of it, since a plan is made for machines other than this one: its [`Registers`], and for which blocks it has code. [`Code`] is that code, and
//! exists on machines of its architecture only; what an instruction set leaves out is done in pieces of its widest register, by the primitives
//! below: `block`, `cursor`, `units`, the pieces of `transpose`.
//! A new instruction set is a level of the target, its own file, and a line in each of the three lists below.
//!
//! Invariant: where an instruction set says that it has no code for blocks, the one below it serves, and the baseline has code
//! for all. Functions of [`Code`] may run only on a machine that has the instructions.

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

/// Evaluates an expression with a type alias for one instruction set.
macro_rules! with {
    ($name:ident, $isa:ident => $then:expr) => {{
        type $isa = $crate::micro::isa::$name;
        $then
    }};
}

/// Evaluates an expression with a type alias for the instruction set of a level, on any machine.
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

/// Expands a body with the instruction sets that this architecture has code for; the baseline serves the levels of others.
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

/// Calls a macro with the type of every instruction set that this architecture has code for, the attribute of functions that use its instructions,
/// and what else it is to be given.
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

/// The blocks that an instruction set has code of its own for.
#[derive(Clone, Copy)]
pub(super) struct MadeFor {
    /// Blocks at constant strides.
    pub(super) strided: Lengths,
    /// Blocks at listed offsets.
    pub(super) rows: Lengths,
    /// Elements of a matrix that is transposed.
    pub(super) transposed: Lengths,
}

/// Blocks of one length in bytes, by how they lie; a length of 0 stands for any.
#[derive(Clone, Copy)]
pub(super) enum OneLength {
    /// At constant strides.
    Strided(usize),
    /// At listed offsets.
    Rows(usize),
    /// As elements of a matrix that is transposed.
    Transposed(usize),
}

impl OneLength {
    /// Says whether an instruction set has code of its own for them.
    pub(super) const fn has_code(self, made_for: &MadeFor) -> bool {
        match self {
            OneLength::Strided(len) => has(made_for.strided, len),
            OneLength::Rows(len) => has(made_for.rows, len),
            OneLength::Transposed(len) => has(made_for.transposed, len),
        }
    }

    /// Returns the level whose code serves them where `level` is asked for.
    pub(super) fn serving(self, level: Level) -> Level {
        let (made_for, below) = with_isa!(level, I => (I::MADE_FOR, <<I as Isa>::Below as Isa>::LEVEL));
        if self.has_code(&made_for) { level } else { self.serving(below) }
    }
}

/// How an instruction set permutes the instances of a small layout: [`super::Permutation`].
#[derive(Clone, Copy)]
pub(super) struct Permuting {
    /// Bytes of the user's buffer that are permuted at once.
    pub(super) vector: u64,
    /// Loads and stores touch the mapped lanes alone. Else vectors are read whole, gaps included, and there is no unpacking.
    pub(super) masked: bool,
}

/// Abilities of an instruction set.
pub(super) trait Isa: Registers {
    /// Its level.
    const LEVEL: Level;
    /// The instruction set whose code serves where this one has none that is better.
    type Below: Isa;
    /// The blocks that it has code of its own for.
    const MADE_FOR: MadeFor;
    /// How many blocks make full vectors to be stored, where packing gains from that.
    const GATHERED: ByLength = &[];
    /// Alignment in bytes of those stores that is worth moving up to three blocks by themselves for.
    const ALIGNED: ByLength = &[];
    /// How many blocks are loaded as full vectors, where unpacking gains from that.
    const SCATTERED: ByLength = &[];
    /// Blocks that take two plain stores, but one under a mask.
    const MASKED: Lengths = &[];
    /// Longest block in bytes that is loaded and stored under a mask whatever its length; 0 where none is.
    const MASKED_UP_TO: usize = 0;
    /// How small layouts are permuted, if they are.
    const PERMUTATION: Option<Permuting> = None;
}

/// The code of an instruction set, which may run where the machine has the instructions.
pub(super) trait Code: Isa + Reverse {
    /// Copies as many blocks as [`Isa::GATHERED`] says, which names `LEN`, to a dense destination.
    ///
    /// # Safety
    /// So many blocks of `LEN` bytes remain in `src`, readable, and are writable at `dst`, without overlap.
    #[inline(always)]
    unsafe fn gather<const LEN: usize>(dst: *mut u8, src: &impl Cursor) {
        for u in 0..by_length(Self::GATHERED, LEN) {
            // SAFETY: block `u` of those.
            unsafe { block::constant::<Self, LEN>(dst.add(u * LEN), src.at(u)) }
        }
    }

    /// Copies as many blocks as [`Isa::SCATTERED`] says, which names `LEN`, from a dense source.
    ///
    /// # Safety
    /// So many blocks of `LEN` bytes remain in `dst`, writable, and are readable at `src`, without overlap.
    #[inline(always)]
    unsafe fn scatter<const LEN: usize>(dst: &impl Cursor, src: *const u8) {
        for u in 0..by_length(Self::SCATTERED, LEN) {
            // SAFETY: block `u` of those.
            unsafe { block::constant::<Self, LEN>(dst.at(u), src.add(u * LEN)) }
        }
    }

    /// Copies a block of one of the lengths of [`Isa::MASKED`] by one store.
    ///
    /// # Safety
    /// `LEN` bytes rounded up to a power of two are readable at `src`, `LEN` bytes writable at `dst`, without overlap.
    #[inline(always)]
    unsafe fn store_masked<const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: as promised by the caller.
        unsafe { block::constant::<Self, LEN>(dst, src) }
    }

    /// Copies a block of at most [`Isa::MASKED_UP_TO`] bytes without a branch on its length.
    ///
    /// # Safety
    /// `len` bytes are readable at `src`, writable at `dst`, without overlap.
    #[inline(always)]
    unsafe fn copy_masked(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: as promised by the caller.
        unsafe { block::run_time_by::<Self>(dst, src, len) }
    }

    /// Copies the first of `n` blocks that are so short and so near to each other that a vector holds several; returns how
    /// many. `strides` are of the destination and of the source.
    ///
    /// # Safety
    /// `n` blocks of `LEN` bytes readable from `src` on, writable from `dst` on, without overlap between the sides.
    #[inline(always)]
    unsafe fn copy_near<const LEN: usize>(
        _dst: *mut u8,
        _src: *const u8,
        _n: usize,
        _strides: (isize, isize),
    ) -> usize {
        0
    }

    /// Combines the first of `n` blocks of values that are so short and so near to each other that a vector holds several; returns how many.
    /// `strides` are of the destination and of the source.
    ///
    /// # Safety
    /// `n` blocks of `len` bytes of whole values readable from `src` on and from `dst` on, writable from `dst` on, without overlap between the
    /// sides.
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

    /// Transposes one block of a matrix of the shape of [`pieces::shape`], whose steps are dense.
    ///
    /// # Safety
    /// The elements of `LEN` bytes are valid at `dst` by rows of `dst_row` bytes and at `src` by rows of `src_row`, without
    /// overlap.
    #[inline(always)]
    unsafe fn transpose<const LEN: usize>(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        // SAFETY: as promised by the caller.
        unsafe { pieces::in_pieces::<Self, LEN>(dst, src, dst_row, src_row) }
    }

    /// Copies lines of 64 bytes past the caches.
    ///
    /// # Safety
    /// That many lines are readable at `src` and writable at `dst`, which starts a line, without overlap.
    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        // SAFETY: as promised by the caller.
        unsafe { Baseline::stream(dst, src, lines) }
    }

    /// Swaps eight units of `UNIT` bytes to a dense destination.
    ///
    /// # Safety
    /// Eight blocks of `UNIT` bytes remain in `src`, readable, and are writable at `dst`, without overlap.
    #[inline(always)]
    unsafe fn gather_reversed<const UNIT: usize>(dst: *mut u8, src: &impl Cursor) {
        for u in 0..8 {
            // SAFETY: unit `u` of those.
            unsafe { units::by_units::<UNIT, UNIT>(dst.add(u * UNIT), src.at(u)) }
        }
    }

    /// Swaps eight units of `UNIT` bytes from a dense source.
    ///
    /// # Safety
    /// Eight blocks of `UNIT` bytes remain in `dst`, writable, and are readable at `src`, without overlap.
    #[inline(always)]
    unsafe fn scatter_reversed<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: as promised by the caller.
        unsafe { units::scatter::<UNIT>(dst, src) }
    }

    /// Swaps the first of `n` blocks of `len` bytes, units of `UNIT`, that are so short and so near to each other that a vector holds several;
    /// returns how many. `strides` are of the destination and of the source.
    ///
    /// # Safety
    /// As [`Code::copy_near`] with blocks of `len` bytes, a multiple of the unit.
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

    /// Orders the streamed lines before whatever is stored next.
    #[inline(always)]
    fn fence() {
        Baseline::fence()
    }

    /// Asks for the line at `address`, to be read or to be written; nothing happens where it is no address.
    #[inline(always)]
    fn prefetch<const WRITE: bool>(address: *const u8) {
        Baseline::prefetch::<WRITE>(address)
    }

    /// The function for permutations of `granule`, in which units are reversed or not, if there is one.
    fn permute(_granule: Granule, _swaps: bool, _direction: Direction) -> Option<Function> {
        None
    }
}

#[cfg(test)]
mod tests;
