//! Copies of one long run of bytes: by the C library's `memcpy`, or by a loop where `memcpy` is
//! slower.
//!
//! glibc copies runs of more than 2 KiB by `rep movsb` if the processor announces that this
//! instruction is fast. How fast it really is depends on the family of processors:
//!
//! * Zen 3 announces that `rep movsb` is fast. If the distance from the source to the destination,
//!   modulo the page size, is 1 to 31 bytes, `rep movsb` takes up to thirty times as long as with
//!   other distances: 750 instead of 36 ns for 2200 bytes, 86 instead of 6 us for 256 KiB. The loop of
//!   this file takes 22 ns and 6 us wherever the buffers lie (glibc 2.36).
//! * On Emerald Rapids, the start of `rep movsb` costs some 20 cycles. With `rep movsb`, runs of
//!   2.5 to 4 KiB at a stride of twice their length pack from L1 at 119 to 157 GB/s if they are
//!   aligned and at 105 to 117 GB/s if they are not. The loop reaches 180 GB/s if they are aligned
//!   and 135 GB/s if they are not. For aligned runs, `memcpy` is as good as the loop from 12 KiB
//!   on. For misaligned runs, `memcpy` is as good as the loop at no length: runs of 12 KiB in L1
//!   reach 119 GB/s by `memcpy` and 142 GB/s by the loop, and in L2 they reach 34 GB/s by `memcpy`
//!   and 38 GB/s by the loop. For data that exceeds L2, `memcpy` is better by up to 5 % (1 MiB of
//!   runs of 4 KiB).
//!
//! The measurements are in docs/history/performance.md, "Long runs".

use std::ptr;

/// Function that copies a run, which is `len` contiguous bytes, from `src` to `dst`.
pub(super) type Function = unsafe fn(dst: *mut u8, src: *const u8, len: usize);

/// Returns a function that copies runs of `len` bytes in a loop, or `None` if `memcpy` is the best
/// choice for them. All runs together have `total` bytes, and the first run goes to `dst`.
#[inline(always)]
#[cfg_attr(any(not(target_arch = "x86_64"), miri), expect(unused_variables))]
pub(super) fn by_loop(dst: *mut u8, len: usize, total: usize) -> Option<Function> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len > x86::SHORT {
        return x86::by_loop(dst, len, total);
    }
    None
}

/// Copies a run of `len` bytes by a loop of this file or by `memcpy`, depending on the processor
/// and on the length.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller promises `len` bytes on both sides without overlap. `by_loop` returns a
    // loop only for runs of more than 2048 bytes, and `Family::host` names only families whose
    // instructions this machine has.
    unsafe {
        match by_loop(dst, len, len) {
            Some(copy) => copy(dst, src, len),
            None => ptr::copy_nonoverlapping(src, dst, len),
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use super::super::piece;
    use crate::target::Family;

    /// Maximum length in bytes of runs (contiguous bytes) that `memcpy` copies with vectors, and
    /// not by `rep movsb`, on every processor.
    pub(super) const SHORT: usize = 2048;
    /// Minimum length in bytes of runs for which stores that bypass the caches pay. `memcpy` uses
    /// such stores, and the loops of this file do not.
    const LARGE: usize = 16 << 20;
    /// Maximum length in bytes of runs that are copied in a loop with vectors of 64 bytes. The
    /// first constant is for runs whose destination is aligned to 64 bytes, the second for other
    /// runs.
    const ALIGNED: usize = 8 << 10;
    const MISALIGNED: usize = 24 << 10;
    /// Maximum number of bytes that all runs of a copy may have together if they are copied in a
    /// loop with vectors of 64 bytes. Source and destination must both fit into the second-level
    /// cache.
    const CACHED: usize = 512 << 10;

    #[inline]
    pub(super) fn by_loop(dst: *mut u8, len: usize, total: usize) -> Option<super::Function> {
        match Family::host() {
            Family::Zen3 => (len < LARGE).then_some(by_avx2),
            Family::Rapids => {
                let most = if dst.addr().is_multiple_of(64) { ALIGNED } else { MISALIGNED };
                (len <= most && total <= CACHED).then_some(by_avx512)
            }
            Family::Other => None,
        }
    }

    /// Copies a run of more than 192 bytes in pieces of 32 bytes with aligned stores.
    ///
    /// # Safety
    /// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
    /// `len` must be greater than 192, and the machine must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn by_avx2(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller promises the bytes on both sides and `len > 192`.
        unsafe { piece::aligned::<32>(dst, src, len) }
    }

    /// Copies a run of more than 192 bytes in pieces of 64 bytes with aligned stores.
    ///
    /// # Safety
    /// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
    /// `len` must be greater than 192, and the machine must have AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn by_avx512(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller promises the bytes on both sides and `len > 192`.
        unsafe { piece::aligned::<64>(dst, src, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of the run is copied and no byte outside the run is written, at many alignments
    /// of source and destination and for many lengths.
    #[test]
    fn copies_the_run_alone() {
        let source: Vec<u8> = (0..9000u32).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [1, 2047, 2048, 2049, 2050, 2111, 2112, 2113, 2175, 2176, 2239, 4096, 4097, 8191] {
            for (d, s) in (0..64).step_by(3).flat_map(|d| [0, 1, 8, 33].map(|s| (d, s))) {
                let check = |copy: &dyn Fn(*mut u8, *const u8)| {
                    let mut target = vec![0xa5; len + 256];
                    copy(target[d + 64..].as_mut_ptr(), source[s..].as_ptr());
                    assert_eq!(target[d + 64..d + 64 + len], source[s..s + len], "{len} bytes, {d} {s}");
                    let around = target[..d + 64].iter().chain(&target[d + 64 + len..]);
                    assert!(around.copied().all(|byte| byte == 0xa5), "{len} bytes, {d} {s}");
                };
                // SAFETY: from `d + 64` and from `s` on, both buffers have at least `len` bytes.
                check(&|dst, src| unsafe { copy(dst, src, len) });
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if len > x86::SHORT && std::is_x86_feature_detected!("avx2") {
                    // SAFETY: as above; `len` exceeds 2048 and the machine has AVX2.
                    check(&|dst, src| unsafe { x86::by_avx2(dst, src, len) });
                }
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if len > x86::SHORT && std::is_x86_feature_detected!("avx512f") {
                    // SAFETY: as above; `len` exceeds 2048 and the machine has AVX-512 F.
                    check(&|dst, src| unsafe { x86::by_avx512(dst, src, len) });
                }
            }
        }
    }
}
