//! Blocks of one to two registers, packed as full registers: what does not lie in one block is taken from the end of one and the start of the next by a
//! permutation of two.
//!
//! Every load is within a block, whatever lies between them, and every store is whole. Pieces of 32 bytes are three or four stores for a block, of which some go
//! to two lines: 256 blocks of 72 B by 80 pack in 257 ns in those, in 210 this way, by a C loop of constants, whose loads know the stride too, in 122; by 1032
//! 530 and 332, C 293 (Emerald Rapids). 96 B is no faster, 112 B was not tried.

use std::arch::x86_64::{_mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_storeu_si512};

use super::Avx2;
use crate::micro::constant_length;
use crate::micro::cursor::{Dense, Strided};

/// Words of 4 bytes in a register.
const WORDS: usize = 16;
/// Most registers that a group of blocks is packed to.
const MOST: usize = 15;

/// Blocks of `LEN` bytes, a multiple of 8 from 72 to 120: a group of them fills registers.
struct Group<const LEN: usize>;

/// Where a packed register comes from.
#[derive(Clone, Copy)]
struct Source {
    /// The block, and the place in it.
    block: usize,
    at: usize,
    /// Whether the next block's start is brought in, by these lanes.
    merges: bool,
    lanes: [i32; WORDS],
}

impl<const LEN: usize> Group<LEN> {
    const BLOCKS: usize = 64 >> LEN.trailing_zeros();
    const PACKED: usize = LEN * Self::BLOCKS / 64;

    const SOURCES: [Source; MOST] = {
        assert!(LEN > 64 && LEN < 128 && LEN.is_multiple_of(8));
        let mut sources = [Source { block: 0, at: 0, merges: false, lanes: [0; WORDS] }; MOST];
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

/// Packs `n` blocks of `LEN` bytes: groups of them by whole registers, and those that are left. Apart from [`copy`], which saves no registers for it.
///
/// # Safety
/// `n` blocks of `LEN` bytes readable from `src` on by `stride`, `n * LEN` bytes writable at `dst`, without overlap.
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f")]
unsafe fn pack<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
    let blocks = const { Group::<LEN>::BLOCKS };
    for group in 0..n / blocks {
        let d = dst.wrapping_add(group * blocks * LEN);
        let s = src.wrapping_offset(((group * blocks) as isize).wrapping_mul(stride));
        // SAFETY: 64 bytes within a block of the group.
        let load = |block: usize, at: usize| unsafe {
            let block = s.wrapping_offset((block as isize).wrapping_mul(stride));
            _mm512_loadu_si512(block.wrapping_add(at).cast())
        };
        let sources = const { &Group::<LEN>::SOURCES }.iter().take(const { Group::<LEN>::PACKED });
        for (register, source) in sources.enumerate() {
            let mut packed = load(source.block, source.at);
            if source.merges {
                // SAFETY: 64 bytes of lanes.
                let lanes = unsafe { _mm512_loadu_si512(source.lanes.as_ptr().cast()) };
                packed = _mm512_permutex2var_epi32(packed, lanes, load(source.block + 1, 0));
            }
            // SAFETY: the packed registers of a group are its blocks' bytes.
            unsafe { _mm512_storeu_si512(d.wrapping_add(64 * register).cast(), packed) };
        }
    }
    let done = n / blocks * blocks;
    let src = src.wrapping_offset((done as isize).wrapping_mul(stride)).cast_mut();
    let (dst, src) = (Dense::<LEN>(dst.wrapping_add(done * LEN)), Strided::new(src, stride));
    // SAFETY: the blocks that are left.
    unsafe { constant_length::each::<Avx2, LEN>(dst, src, n - done) };
}

/// Blocks from which on groups pay: 24 of 72 or 80 B take 1.2 to 1.35 of the time in them.
const MANY: usize = 64;

/// Copies all of `n` blocks of `LEN` bytes: many of them to a dense destination by whole registers, others each by itself in pieces of 32 bytes.
///
/// # Safety
/// `n` blocks of `LEN` bytes readable at `src` and writable at `dst` by the strides of destination and source, without overlap between the sides.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f")]
pub(super) unsafe fn copy<const LEN: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
) -> usize {
    // SAFETY: as the caller promises; a dense destination is what `pack` asks for. The source is only read: a cursor is an address, the loop knows which one
    // it writes.
    unsafe {
        if ds == LEN as isize && n >= MANY {
            pack::<LEN>(dst, src, n, ss);
        } else {
            constant_length::each::<Avx2, LEN>(Strided::new(dst, ds), Strided::new(src.cast_mut(), ss), n);
        }
    }
    n
}
