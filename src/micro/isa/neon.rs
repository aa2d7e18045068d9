//! aarch64 with Advanced SIMD, which every such machine has.

use super::{Baseline, Isa, MadeFor, Permuting};
use crate::micro::registers::{ALL, ByLength, Lengths, Registers};
use crate::target::Level;

#[cfg(target_arch = "aarch64")]
mod code;
#[cfg(target_arch = "aarch64")]
mod permute;
#[cfg(target_arch = "aarch64")]
mod transpose;

/// NEON.
pub(in crate::micro) struct Neon;

/// Blocks at listed offsets: pairs of blocks, or pairs of registers in one. At other lengths the portable code is the same
/// instructions.
const ROWS: Lengths = &[0..=0, 4..=4, 8..=8, 16..=16, 32..=u16::MAX];

/// Elements of matrices: for squares, and for those that are pairs of registers.
const TRANSPOSED: Lengths = &[4..=4, 8..=8, 16..=16, 32..=32, 64..=64];

impl Registers for Neon {
    // `ldp` and `stp` of two registers, which the compiler makes of one copy of 32 bytes but not of two of 16, whose stores might be
    // what is loaded next.
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
