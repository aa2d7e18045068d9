//! Instruction set of aarch64 with Advanced SIMD (NEON), which every machine of the architecture
//! has.

use super::{Baseline, Isa, MadeFor, Permuting};
use crate::micro::registers::{ALL, ByLength, Lengths, Registers};
use crate::target::Level;

#[cfg(target_arch = "aarch64")]
mod code;
#[cfg(target_arch = "aarch64")]
mod permute;
#[cfg(target_arch = "aarch64")]
mod transpose;

/// The instruction set NEON.
pub(in crate::micro) struct Neon;

/// Block lengths in bytes for which this instruction set has code that moves blocks whose offsets
/// are listed in a table: short blocks, which are moved in pairs of blocks, and long blocks, which
/// are moved in pairs of registers. For other lengths, portable code compiles to the same
/// instructions.
const ROWS: Lengths = &[0..=0, 4..=4, 8..=8, 16..=16, 32..=u16::MAX];

/// Lengths of matrix elements for which this instruction set has code: elements that are transposed
/// in squares, and elements that are one or two pairs of registers.
const TRANSPOSED: Lengths = &[4..=4, 8..=8, 16..=16, 32..=32, 64..=64];

impl Registers for Neon {
    // A piece of 32 bytes is loaded by one `ldp` into two registers, and stored by one `stp`. The
    // compiler makes these two instructions from one copy of 32 bytes, but not from two copies of 16
    // bytes, because the first store could change what the second load reads.
    const WIDE: usize = 32;
    const SQUARES: ByLength = &[(4, 8), (8, 4), (16, 4)];
}

impl Isa for Neon {
    const LEVEL: Level = Level::Neon;
    type Below = Baseline;
    const MADE_FOR: MadeFor = MadeFor { strided: ALL, rows: ROWS, transposed: TRANSPOSED };
    const GATHERED: ByLength = &[(4, 8), (8, 8), (16, 8)];
    const ALIGNED: ByLength = &[(4, 16), (8, 32), (16, 64)];
    const SCATTERED: ByLength = &[(4, 8), (8, 8), (16, 8)];
    const PERMUTATION: Option<Permuting> = Some(Permuting { vector: 64, masked: false });
}
