//! The loops of patterns, for three instruction sets.

use std::arch::x86_64::{
    __m256i, __m512i, _bzhi_u64, _mm_storeu_si128, _mm256_and_si256, _mm256_cmpeq_epi32, _mm256_loadu_si256,
    _mm256_maskload_epi32, _mm256_maskstore_epi32, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_storeu_si256, _mm512_castsi512_si256, _mm512_extracti32x4_epi32,
    _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_mask_storeu_epi32, _mm512_maskz_loadu_epi8,
    _mm512_maskz_loadu_epi32, _mm512_permutexvar_epi8, _mm512_permutexvar_epi32, _mm512_storeu_si512,
};

use super::{Direction, Function, Granule, Level, Table};

/// One instruction set: how a window is loaded, permuted and stored. Masks have one bit per lane.
trait Lanes {
    /// Bytes of a window.
    const WINDOW: usize;
    /// Bytes of a lane.
    const UNIT: u32;
    /// A window.
    type Vector: Copy;

    /// # Safety
    /// The machine has the instructions; `p` has the lanes of the table.
    unsafe fn lanes(p: &[u8; 64]) -> Self::Vector;
    /// # Safety
    /// The machine has the instructions; lanes in `mask` are readable at `p`.
    unsafe fn load(p: *const u8, mask: u64) -> Self::Vector;
    /// # Safety
    /// The machine has the instructions; lanes in `mask` are writable at `p`.
    unsafe fn store(p: *mut u8, mask: u64, v: Self::Vector);
    /// # Safety
    /// The machine has the instructions; a window is readable at `p`.
    unsafe fn load_all(p: *const u8) -> Self::Vector;
    /// # Safety
    /// The machine has the instructions; a window is writable at `p`.
    unsafe fn store_all(p: *mut u8, v: Self::Vector);
    /// Stores the first 32 bytes at least.
    ///
    /// # Safety
    /// As [`Lanes::store_all`].
    unsafe fn store_half(p: *mut u8, v: Self::Vector);
    /// Stores the first 48 bytes at least, of a window that has more than 32.
    ///
    /// # Safety
    /// As [`Lanes::store_all`].
    unsafe fn store_three_quarters(p: *mut u8, v: Self::Vector);
    /// # Safety
    /// The machine has the instructions.
    unsafe fn permute(v: Self::Vector, lanes: Self::Vector) -> Self::Vector;
}

struct Bytes512;
struct Words512;
struct Words256;

// SAFETY of all implementations: the callers promise the instructions, and masked accesses touch only lanes in the mask.
impl Lanes for Bytes512 {
    const WINDOW: usize = 64;
    const UNIT: u32 = 1;
    type Vector = __m512i;

    #[inline(always)]
    unsafe fn lanes(p: &[u8; 64]) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(p.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8, mask: u64) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_epi8(mask, p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, mask: u64, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi8(p.cast(), mask, v) }
    }
    #[inline(always)]
    unsafe fn load_all(p: *const u8) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_half(p: *mut u8, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_castsi512_si256(v)) }
    }
    #[inline(always)]
    unsafe fn store_three_quarters(p: *mut u8, v: __m512i) {
        // SAFETY: as above.
        unsafe {
            _mm256_storeu_si256(p.cast(), _mm512_castsi512_si256(v));
            _mm_storeu_si128(p.add(32).cast(), _mm512_extracti32x4_epi32::<2>(v));
        }
    }
    #[inline(always)]
    unsafe fn store_all(p: *mut u8, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn permute(v: __m512i, lanes: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_permutexvar_epi8(lanes, v) }
    }
}

impl Lanes for Words512 {
    const WINDOW: usize = 64;
    const UNIT: u32 = 4;
    type Vector = __m512i;

    #[inline(always)]
    unsafe fn lanes(p: &[u8; 64]) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(p.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8, mask: u64) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_epi32(mask as u16, p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, mask: u64, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_mask_storeu_epi32(p.cast(), mask as u16, v) }
    }
    #[inline(always)]
    unsafe fn load_all(p: *const u8) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_half(p: *mut u8, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_castsi512_si256(v)) }
    }
    #[inline(always)]
    unsafe fn store_three_quarters(p: *mut u8, v: __m512i) {
        // SAFETY: as above.
        unsafe {
            _mm256_storeu_si256(p.cast(), _mm512_castsi512_si256(v));
            _mm_storeu_si128(p.add(32).cast(), _mm512_extracti32x4_epi32::<2>(v));
        }
    }
    #[inline(always)]
    unsafe fn store_all(p: *mut u8, v: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn permute(v: __m512i, lanes: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_permutexvar_epi32(lanes, v) }
    }
}

/// The sign bits of eight lanes from eight bits.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(mask: u64) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
}

impl Lanes for Words256 {
    const WINDOW: usize = 32;
    const UNIT: u32 = 4;
    type Vector = __m256i;

    #[inline(always)]
    unsafe fn lanes(p: &[u8; 64]) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(p.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn load(p: *const u8, mask: u64) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_maskload_epi32(p.cast(), spread(mask)) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, mask: u64, v: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_maskstore_epi32(p.cast(), spread(mask), v) }
    }
    #[inline(always)]
    unsafe fn load_all(p: *const u8) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_half(p: *mut u8, v: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn store_three_quarters(p: *mut u8, v: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn store_all(p: *mut u8, v: __m256i) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn permute(v: __m256i, lanes: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_permutevar8x32_epi32(v, lanes) }
    }
}

/// The lowest `bytes` bytes as lanes.
#[inline(always)]
fn below<L: Lanes>(bytes: u64) -> u64 {
    let lanes = bytes / u64::from(L::UNIT);
    // SAFETY: levels with patterns have BMI2.
    unsafe { _bzhi_u64(u64::MAX, lanes.min(64) as u32) }
}

/// Moves `n` instances.
///
/// # Safety
/// `table` has the words of a pattern made for these lanes and for `stride`, disjoint to unpack; all instances are valid on both
/// sides, which do not overlap; the machine has the instructions.
#[inline(always)]
unsafe fn all<const PACK: bool, L: Lanes>(
    user: *mut u8,
    packed: *mut u8,
    n: u64,
    stride: isize,
    table: *const u64,
) {
    // SAFETY: `words` of a pattern is a table, word by word. A copy, which no store can be thought to change.
    let table = unsafe { table.cast::<Table>().read() };
    // SAFETY: the instructions are there.
    let lanes = unsafe { L::lanes(if PACK { &table.pack } else { &table.unpack }) };
    let step = table.instances * table.size;
    let window = L::WINDOW as u64;
    // Steps before which a window of packed bytes is left: the packed side is loaded or stored whole, and what a store writes in
    // excess is written again by what follows.
    let whole = if n * table.size >= window { (n * table.size - window) / step + 1 } else { 0 };
    let steps = n / table.instances;
    let mut at = Place {
        user: user.wrapping_offset(table.lowest as isize),
        packed,
        user_step: stride.wrapping_mul(table.instances as isize),
        packed_step: step as usize,
    };
    let packed_mask = below::<L>(step);
    // SAFETY: in every step `instances` instances remain. The masks have the lanes of their bytes and no others, and in a
    // whole step a window remains on the packed side.
    unsafe {
        if PACK {
            // The narrower the store, the fewer cross lines.
            match step {
                0..=32 => at.run(whole.min(steps), |u, p| {
                    L::store_half(p, L::permute(L::load(u, table.mapped), lanes));
                }),
                33..=48 => at.run(whole.min(steps), |u, p| {
                    L::store_three_quarters(p, L::permute(L::load(u, table.mapped), lanes));
                }),
                _ => at.run(whole.min(steps), |u, p| {
                    L::store_all(p, L::permute(L::load(u, table.mapped), lanes));
                }),
            }
            at.run(steps.saturating_sub(whole), |u, p| {
                L::store(p, packed_mask, L::permute(L::load(u, table.mapped), lanes));
            });
        } else {
            at.run(whole.min(steps), |u, p| {
                L::store(u, table.mapped, L::permute(L::load_all(p), lanes));
            });
            at.run(steps.saturating_sub(whole), |u, p| {
                L::store(u, table.mapped, L::permute(L::load(p, packed_mask), lanes));
            });
        }
    }
    let left = n - steps * table.instances;
    if left > 0 {
        // Instances of one window lie one after the other, so the first `left` of them are the lowest lanes.
        let mapped = table.mapped & below::<L>((left - 1) * stride as u64 + table.span);
        let packed_mask = below::<L>(left * table.size);
        // SAFETY: `left` instances remain, and the masks have their bytes and no others.
        unsafe {
            if PACK {
                L::store(at.packed, packed_mask, L::permute(L::load(at.user, mapped), lanes));
            } else {
                L::store(at.user, mapped, L::permute(L::load(at.packed, packed_mask), lanes));
            }
        }
    }
}

/// The next step on either side.
struct Place {
    user: *mut u8,
    packed: *mut u8,
    user_step: isize,
    packed_step: usize,
}

impl Place {
    /// Runs `n` steps.
    #[inline(always)]
    fn run(&mut self, n: u64, step: impl Fn(*mut u8, *mut u8)) {
        for _ in 0..n {
            step(self.user, self.packed);
            self.user = self.user.wrapping_offset(self.user_step);
            self.packed = self.packed.wrapping_add(self.packed_step);
        }
    }
}

macro_rules! functions {
    ($name:ident, $lanes:ident, $feature:literal) => {
        /// # Safety
        /// As [`all`].
        #[target_feature(enable = $feature)]
        unsafe extern "C" fn $name<const PACK: bool>(
            user: *mut u8,
            packed: *mut u8,
            n: u64,
            stride: i64,
            table: *const u64,
        ) {
            // SAFETY: as promised by the caller.
            unsafe { all::<PACK, $lanes>(user, packed, n, stride as isize, table) }
        }
    };
}

functions!(bytes_512, Bytes512, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi");
functions!(words_512, Words512, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl");
functions!(words_256, Words256, "avx2,bmi1,bmi2");

/// The function for patterns of `granule` at `level`; none where there is none.
pub(super) fn function(granule: Granule, direction: Direction, level: Level) -> Option<Function> {
    Some(match (level, granule, direction) {
        (Level::Avx512, Granule::Byte, Direction::Pack) => bytes_512::<true>,
        (Level::Avx512, Granule::Byte, Direction::Unpack) => bytes_512::<false>,
        (Level::Avx512, Granule::Word, Direction::Pack) => words_512::<true>,
        (Level::Avx512, Granule::Word, Direction::Unpack) => words_512::<false>,
        (Level::Avx2, Granule::Word, Direction::Pack) => words_256::<true>,
        (Level::Avx2, Granule::Word, Direction::Unpack) => words_256::<false>,
        _ => return None,
    })
}
