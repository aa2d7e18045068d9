//! AVX-512 F, BW, DQ and VL: x86-64-v4. Permutations of bytes need VBMI, which the level does not
//! include; code that uses VBMI asks first whether the machine has it.

use super::{Avx2, Isa, MadeFor, Permuting};
use crate::micro::registers::{ByLength, Lengths, Registers};
use crate::target::Level;

#[cfg(target_arch = "x86_64")]
mod code;
#[cfg(all(feature = "operations", target_arch = "x86_64"))]
mod combine;
#[cfg(target_arch = "x86_64")]
mod lines;
#[cfg(target_arch = "x86_64")]
mod permute;
#[cfg(target_arch = "x86_64")]
mod transpose;
#[cfg(target_arch = "x86_64")]
mod words;

/// The instruction set AVX-512.
pub(in crate::micro) struct Avx512;

/// Block lengths in bytes for which this instruction set has code that moves blocks at constant
/// strides: short blocks, which are moved by masked loads and stores and by permutations; blocks
/// that are as long as one or several registers; and other blocks, which are packed in whole
/// registers. For other lengths the code of AVX2 is as good.
const STRIDED: Lengths =
    &[0..=32, 48..=48, 64..=64, 72..=88, 104..=104, 120..=120, 128..=128, 192..=192, 256..=256];

/// Block lengths in bytes for which this instruction set has code that moves blocks whose offsets
/// are listed in a table. For blocks of less than 64 bytes the code of AVX2 is the best. Masked
/// stores that cross cache lines cost more than they save if the offsets of the blocks are random
/// (12 B: 14 against 32 GB/s), and a masked load costs no less than two plain loads (24 B: 57
/// against 67 GB/s; Sapphire Rapids, L1).
const ROWS: Lengths = &[0..=0, 64..=64];

/// Lengths of matrix elements for which this instruction set has code: only elements that are
/// transposed in squares.
const TRANSPOSED: Lengths = &[4..=4, 8..=8, 16..=16];

impl Registers for Avx512 {
    // With pieces (one load and one store each) of this width, 65 blocks of 64 B at a stride of 128
    // pack at 199 GB/s instead of 165 (Sapphire Rapids, L1).
    const WIDE: usize = 64;
    const SQUARES: ByLength = &[(4, 16), (8, 8), (16, 4)];
}

impl Isa for Avx512 {
    const LEVEL: Level = Level::Avx512;
    type Below = Avx2;
    const MADE_FOR: MadeFor = MadeFor { strided: STRIDED, rows: ROWS, transposed: TRANSPOSED };
    const GATHERED: ByLength =
        &[(4, 8), (8, 8), (12, 4), (16, 4), (20, 4), (24, 4), (28, 4), (40, 4), (48, 2)];
    const ALIGNED: ByLength = Avx2::ALIGNED;
    const SCATTERED: ByLength = Avx2::SCATTERED;
    const MASKED: Lengths = &[9..=15, 17..=31];
    const MASKED_UP_TO: usize = 64;
    const PERMUTATION: Option<Permuting> = Some(Permuting { vector: 64, masked: true });
}

/// Returns true if this machine has permutations of bytes (VBMI). Code that also works without such
/// permutations calls this function, so that this code may run on any machine of the level AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline]
fn permutes_bytes() -> bool {
    std::is_x86_feature_detected!("avx512vbmi")
}
