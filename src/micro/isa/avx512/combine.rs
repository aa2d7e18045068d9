//! Short blocks of values that are near to each other, combined in place under masks, several of them to a vector.
//!
//! Values between the blocks are neither loaded nor stored. 2048 doubles by 16 B take 0.83 of the time of gcc's permutes and scalar stores, of
//! scalar code 1.6 times as much (Zen 5).

use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_mask_storeu_epi32, _mm512_maskz_loadu_epi32, _mm512_permutexvar_epi32,
};

use crate::micro::reduce::vector::Vector;

/// Longest stride in bytes by which several blocks are taken to a vector: half of one.
const NEAR: isize = 32;

/// [`crate::micro::isa::Code::combine_near`].
///
/// # Safety
/// As there, on a machine of this instruction set.
#[inline(always)]
pub(super) unsafe fn near<V: Vector>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (ds, ss): (isize, isize),
    len: usize,
) -> usize {
    let size = V::SIZE as isize;
    // SAFETY: as promised by the caller; blocks of a vector are apart, and those of the source lie one after the other.
    unsafe {
        if ss == len as isize && ss < ds && ds <= NEAR && ds % size == 0 {
            return several::<V>(dst, src, n, ds, len);
        }
    }
    0
}

/// Where the words of dense blocks come to in a vector whose blocks lie `ds` bytes apart.
struct Places {
    /// For each word of 4 bytes of the vector the one of the source.
    places: [u32; 16],
    /// Which words of the vector are of a block.
    mask: u16,
    /// Which words of the source there are.
    dense: u16,
    /// Number of blocks.
    blocks: usize,
}

impl Places {
    /// Once for all operations.
    #[inline(never)]
    fn of(ds: usize, len: usize) -> Places {
        let blocks = (64 - len) / ds + 1;
        let (mut places, mut mask) = ([0; 16], 0);
        for block in 0..blocks {
            for word in 0..len / 4 {
                let at = (block * ds / 4 + word) % 16;
                places[at] = (block * len / 4 + word) as u32;
                mask |= 1 << at;
            }
        }
        Places { places, mask, dense: ((1_u32 << (blocks * len / 4)) - 1) as u16, blocks }
    }
}

/// As many blocks to a vector as it holds.
///
/// # Safety
/// As [`near`]; the source is dense, and `len < ds <= NEAR`, both multiples of the size.
#[inline(always)]
unsafe fn several<V: Vector>(mut dst: *mut u8, mut src: *const u8, n: usize, ds: isize, len: usize) -> usize {
    let Places { places, mask, dense, blocks } = Places::of(ds as usize, len);
    let ds = ds as usize;
    // SAFETY: masks name the blocks' own words, `blocks` of which remain; a word of one is a whole word of a value.
    unsafe {
        let places = _mm512_loadu_si512(places.as_ptr().cast());
        for _ in 0..n / blocks {
            let new = _mm512_permutexvar_epi32(places, _mm512_maskz_loadu_epi32(dense, src.cast()));
            let old = _mm512_maskz_loadu_epi32(mask, dst.cast());
            _mm512_mask_storeu_epi32(dst.cast(), mask, combined::<V>(new, old));
            dst = dst.wrapping_add(blocks * ds);
            src = src.wrapping_add(blocks * len);
        }
    }
    n / blocks * blocks
}

#[inline(always)]
fn combined<V: Vector>(new: __m512i, old: __m512i) -> __m512i {
    // SAFETY: a vector is 64 bytes, and any 64 bytes are one.
    unsafe {
        let bytes = |v: __m512i| (&raw const v).cast::<[u8; 64]>().read();
        _mm512_loadu_si512(V::combine(bytes(new), bytes(old)).as_ptr().cast())
    }
}
