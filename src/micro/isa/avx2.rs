//! AVX2 with BMI1, BMI2 and FMA: x86-64-v3.

use super::{Baseline, Isa, MadeFor, Permuting};
use crate::micro::registers::{ALL, ByLength, Lengths, Registers};
use crate::target::Level;

#[cfg(target_arch = "x86_64")]
mod code;
#[cfg(target_arch = "x86_64")]
mod transpose;

/// The instruction set AVX2.
pub(in crate::micro) struct Avx2;

/// Block lengths in bytes for which this instruction set has code that moves blocks whose offsets
/// are listed in a table. Code for blocks of one to three bytes would make no use of vectors.
const ROWS: Lengths = &[0..=0, 4..=64];

/// Lengths of matrix elements for which this instruction set has code: elements that are transposed
/// in squares, and elements that are one or two registers long.
const TRANSPOSED: Lengths = &[4..=4, 8..=8, 16..=16, 32..=32, 64..=64];

impl Registers for Avx2 {
    const WIDE: usize = 32;
    const SQUARES: ByLength = &[(4, 8), (8, 8), (16, 4)];
}

impl Isa for Avx2 {
    const LEVEL: Level = Level::Avx2;
    type Below = Baseline;
    const MADE_FOR: MadeFor = MadeFor { strided: ALL, rows: ROWS, transposed: TRANSPOSED };
    const GATHERED: ByLength = &[(4, 8), (8, 8), (12, 4), (16, 4), (24, 4), (40, 4), (48, 2)];
    const ALIGNED: ByLength = &[(4, 16), (8, 32), (16, 64), (24, 32), (40, 32), (48, 32)];
    const SCATTERED: ByLength = &[(8, 4), (16, 4)];
    const PERMUTATION: Option<Permuting> = Some(Permuting { vector: 32, masked: true });
}
