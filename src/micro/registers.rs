//! Properties of an instruction set on which primitives, the simplest functions that copy blocks,
//! depend. The properties are constants, so they can be read on any machine.
//!
//! The primitives (`block`, `units`, the pieces of `transpose`) are a layer below the instruction
//! sets: the code of an instruction set is built from primitives.

use std::ops::RangeInclusive;

/// The registers of an instruction set.
pub(super) trait Registers: Sized {
    /// Number of bytes of the widest piece of a block that one load and one store move: 16, 32 or
    /// 64.
    const WIDE: usize;
    /// Square blocks of a matrix that the instruction set transposes in registers. Each entry has
    /// the length of a matrix element in bytes, and the number of rows of the square, which is also
    /// its number of columns.
    const SQUARES: ByLength = &[];
}

/// Ranges of block lengths in bytes. The length 0 stands for a length that is known only at run
/// time.
pub(super) type Lengths = &'static [RangeInclusive<u16>];

/// All block lengths up to 65535 bytes, and 0 for a length that is known only at run time.
pub(super) const ALL: Lengths = &[0..=u16::MAX];

/// Returns true if the block length `len` is in one of the ranges of `lengths`.
pub(super) const fn has(lengths: Lengths, len: usize) -> bool {
    let mut i = 0;
    while i < lengths.len() {
        if *lengths[i].start() as usize <= len && len <= *lengths[i].end() as usize {
            return true;
        }
        i += 1;
    }
    false
}

/// List that assigns a number to some block lengths. Each entry has a block length in bytes and the
/// number that is assigned to it.
pub(super) type ByLength = &'static [(usize, usize)];

/// Returns the number that `list` assigns to the block length `len`, or 0 if the list does not have
/// this length.
pub(super) const fn by_length(list: ByLength, len: usize) -> usize {
    let mut i = 0;
    while i < list.len() {
        if list[i].0 == len {
            return list[i].1;
        }
        i += 1;
    }
    0
}
