//! Registers: what the primitives ask of an instruction set, on any machine.
//!
//! The primitives (`block`, `units`, the pieces of `transpose`) stand below the instruction sets, which are made of them.

use std::ops::RangeInclusive;

/// The registers of an instruction set.
pub(super) trait Registers: Sized {
    /// Bytes of the widest piece of a block that is moved at once: 16, 32 or 64.
    const WIDE: usize;
    /// Side in elements of the square of a matrix that is transposed in registers.
    const SQUARES: ByLength = &[];
}

/// Lengths of blocks in bytes. 0 stands for a length known at run time.
pub(super) type Lengths = &'static [RangeInclusive<u16>];

/// Every length.
pub(super) const ALL: Lengths = &[0..=u16::MAX];

/// Says whether `len` is among `lengths`.
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

/// A number for each of some lengths of blocks in bytes.
pub(super) type ByLength = &'static [(usize, usize)];

/// Returns the number for `len`; 0 where there is none.
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
