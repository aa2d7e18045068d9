//! Code that packs blocks which are longer than one register of 64 bytes, but shorter than two, in
//! whole registers. A packed register whose bytes do not all lie in one block is merged, by a
//! permutation of two registers, from the end of one block and the start of the next.
//!
//! Every load lies within one block, so gaps between blocks are not read, and every store writes a
//! whole register. With pieces of 32 bytes, a block would take three or four stores, some of which
//! cross a cache line. 256 blocks of 72 B at a stride of 80 pack in 257 ns with pieces of 32 bytes
//! and in 210 ns with whole registers. A C loop with constants, whose loads are specialized for the
//! stride too, takes 122 ns. At a stride of 1032 the three times are 530, 332 and 293 ns (Emerald
//! Rapids). Blocks of 96 B are no faster in whole registers; blocks of 112 B were not tried.

use std::arch::x86_64::{_mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_storeu_si512};

use super::Avx2;
use crate::micro::constant_length;
use crate::micro::cursor::{Dense, Strided};

/// Number of words of 4 bytes in a register.
const WORDS: usize = 16;
/// Maximum number of registers of 64 bytes into which a group of blocks is packed.
const MAX_REGISTERS: usize = 15;

/// Marker type that stands for a group of blocks of `LEN` bytes (a multiple of 8 from 72 to 120),
/// which together fill whole registers of 64 bytes.
struct Group<const LEN: usize>;

/// Source of a register of packed bytes: the block from which it is loaded, and the permutation
/// that merges the next block into it.
#[derive(Clone, Copy)]
struct Source {
    /// The block from which the register is loaded, and the offset of the load in this block.
    block: usize,
    at: usize,
    /// Whether a permutation merges the start of the next block into the register. If so, `lanes`
    /// has the word indices of this permutation.
    merges: bool,
    lanes: [i32; WORDS],
}

impl<const LEN: usize> Group<LEN> {
    const BLOCKS: usize = 64 >> LEN.trailing_zeros();
    const PACKED: usize = LEN * Self::BLOCKS / 64;

    const SOURCES: [Source; MAX_REGISTERS] = {
        assert!(LEN > 64 && LEN < 128 && LEN.is_multiple_of(8));
        let mut sources = [Source { block: 0, at: 0, merges: false, lanes: [0; WORDS] }; MAX_REGISTERS];
        let mut register = 0;
        while register < Self::PACKED {
            let (block, at) = (64 * register / LEN, 64 * register % LEN);
            let source = &mut sources[register];
            source.block = block;
            source.merges = LEN - at < 64;
            source.at = if source.merges { LEN - 64 } else { at };
            let (mut lane, own) = (0, (LEN - at) / 4);
            while source.merges && lane < WORDS {
                source.lanes[lane] = if lane < own { WORDS - own + lane } else { WORDS + lane - own } as i32;
                lane += 1;
            }
            register += 1;
        }
        sources
    };
}

/// Packs `n` blocks of `LEN` bytes: groups of blocks by whole registers, and the blocks after the
/// last group separately. This code is a function of its own so that [`copy`], which calls it, need
/// not save registers for it.
///
/// # Safety
/// `n` blocks of `LEN` bytes must be readable from `src` on, `stride` bytes apart, and `n * LEN`
/// bytes writable at `dst`. The source must not overlap the destination.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f")]
unsafe fn pack<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
    let blocks = const { Group::<LEN>::BLOCKS };
    for group in 0..n / blocks {
        let d = dst.wrapping_add(group * blocks * LEN);
        let s = src.wrapping_offset(((group * blocks) as isize).wrapping_mul(stride));
        // SAFETY: `SOURCES` and the load of the next block's start only name blocks of the group
        // and offsets of at most `LEN - 64`. The caller promises these blocks.
        let load = |block: usize, at: usize| unsafe {
            let block = s.wrapping_offset((block as isize).wrapping_mul(stride));
            _mm512_loadu_si512(block.wrapping_add(at).cast())
        };
        let sources = const { &Group::<LEN>::SOURCES }.iter().take(const { Group::<LEN>::PACKED });
        for (register, source) in sources.enumerate() {
            let mut packed = load(source.block, source.at);
            if source.merges {
                // SAFETY: `lanes` has 64 bytes.
                let lanes = unsafe { _mm512_loadu_si512(source.lanes.as_ptr().cast()) };
                packed = _mm512_permutex2var_epi32(packed, lanes, load(source.block + 1, 0));
            }
            // SAFETY: the packed registers of a group are exactly the bytes of its blocks, which
            // the caller promises to be writable.
            unsafe { _mm512_storeu_si512(d.wrapping_add(64 * register).cast(), packed) };
        }
    }
    let done = n / blocks * blocks;
    let src = src.wrapping_offset((done as isize).wrapping_mul(stride)).cast_mut();
    let (dst, src) = (Dense::<LEN>(dst.wrapping_add(done * LEN)), Strided::new(src, stride));
    // SAFETY: these are the last `n - done` of the blocks that the caller promises. A machine with
    // AVX-512 has the instructions of AVX2.
    unsafe { constant_length::copy_blocks::<Avx2, LEN>(dst, src, n - done) };
}

/// Minimum number of blocks for which it pays to pack groups of blocks in whole registers. For only
/// 24 blocks of 72 or 80 B, groups take 1.2 to 1.35 times as long as blocks that are copied
/// separately.
const MIN_BLOCKS_FOR_GROUPS: usize = 64;

/// Copies all of `n` blocks of `LEN` bytes and returns `n`. If the blocks follow each other
/// directly in the destination and there are at least [`MIN_BLOCKS_FOR_GROUPS`], they are packed in
/// whole registers; otherwise each block is copied separately in pieces of 32 bytes.
///
/// # Safety
/// `n` blocks of `LEN` bytes must be readable at `src` and writable at `dst`, at the strides of the
/// source and of the destination, without overlap between the sides.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f")]
pub(super) unsafe fn copy<const LEN: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
) -> usize {
    // SAFETY: the caller promises the blocks. `pack` is called only if the destination is dense, as
    // it needs. The source is only read: its pointer is cast to `*mut u8` because a cursor serves
    // either side, and the loop writes only through the cursor of the destination.
    unsafe {
        if ds == LEN as isize && n >= MIN_BLOCKS_FOR_GROUPS {
            pack::<LEN>(dst, src, n, ss);
        } else {
            constant_length::copy_blocks::<Avx2, LEN>(
                Strided::new(dst, ds),
                Strided::new(src.cast_mut(), ss),
                n,
            );
        }
    }
    n
}
