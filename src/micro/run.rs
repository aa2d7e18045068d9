//! One long run of bytes: the C library's `memcpy`, or a loop where that is slower.
//!
//! glibc copies runs of more than 2 KiB by `rep movsb` where a processor announces that this is fast. What that is worth depends on the family of processors:
//!
//! * Zen 3 announces it, and where the destination lies 1 to 31 bytes behind the source, whole pages left out, it takes thirty times as long: 2200 bytes 750 ns
//!   instead of 36, 256 KiB 86 us instead of 6. The loop takes 22 ns and 6 us wherever buffers lie (glibc 2.36).
//! * On Emerald Rapids its start costs some 20 cycles: runs of 2.5 to 4 KiB by twice their length pack from L1 at 119 to 157 GB/s, 105 to 117 where they are
//!   misaligned, by the loop at 180 and 135. Aligned it is as good from 12 KiB on, misaligned at no length: 12 KiB 119 and 142 GB/s in L1, 34 and 38 in L2.
//!   Past that cache `memcpy` is the better one by up to 5 in a hundred: 1 MiB of runs of 4 KiB.
//!
//! docs/records/performance.md, "Long runs".

use std::ptr;

/// Copies a run of bytes.
pub(super) type Function = unsafe fn(dst: *mut u8, src: *const u8, len: usize);

/// Returns the loop for runs of `len` bytes, `total` in all, the first of which goes to `dst`; none where `memcpy` serves best.
#[inline(always)]
#[cfg_attr(any(not(target_arch = "x86_64"), miri), expect(unused_variables))]
pub(super) fn by_loop(dst: *mut u8, len: usize, total: usize) -> Option<Function> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len > x86::SHORT {
        return x86::by_loop(dst, len, total);
    }
    None
}

/// Copies `len` bytes.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller; the loop is one whose instructions this machine has.
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

    /// Bytes up to which `memcpy` uses vectors everywhere.
    pub(super) const SHORT: usize = 2048;
    /// Bytes from which stores that bypass the caches pay, which `memcpy` has.
    const LARGE: usize = 16 << 20;
    /// Longest runs that go by vectors of 64 bytes where their destinations are aligned, and where they are not.
    const ALIGNED: usize = 8 << 10;
    const MISALIGNED: usize = 24 << 10;
    /// Most bytes of all runs that do: what both sides have in the second-level cache.
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

    /// Copies more than 192 bytes in pieces of 32, stores aligned.
    ///
    /// # Safety
    /// As [`super::copy`]; the machine has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn by_avx2(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: as promised by the caller.
        unsafe { piece::aligned::<32>(dst, src, len) }
    }

    /// Copies more than 192 bytes in pieces of 64, stores aligned.
    ///
    /// # Safety
    /// As [`super::copy`]; the machine has AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn by_avx512(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: as promised by the caller.
        unsafe { piece::aligned::<64>(dst, src, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of the run and none beside it, wherever both sides lie and however the run ends.
    #[test]
    fn copies_the_run_alone() {
        let source: Vec<u8> = (0..9000u32).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [1, 2047, 2048, 2049, 2050, 2111, 2112, 2113, 2175, 2176, 2239, 4096, 4097, 8191] {
            for (d, s) in (0..64).step_by(3).flat_map(|d| [0, 1, 8, 33].map(|s| (d, s))) {
                let check = |copy: &dyn Fn(*mut u8, *const u8)| {
                    let mut target = vec![0xa5; len + 256];
                    copy(target[d + 64..].as_mut_ptr(), source[s..].as_ptr());
                    assert_eq!(target[d + 64..d + 64 + len], source[s..s + len], "{len} bytes, {d} {s}");
                    let beside = target[..d + 64].iter().chain(&target[d + 64 + len..]);
                    assert!(beside.copied().all(|byte| byte == 0xa5), "{len} bytes, {d} {s}");
                };
                // SAFETY: both sides have that many bytes.
                check(&|dst, src| unsafe { copy(dst, src, len) });
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if len > x86::SHORT && std::is_x86_feature_detected!("avx2") {
                    // SAFETY: as above, on a machine that has the instructions.
                    check(&|dst, src| unsafe { x86::by_avx2(dst, src, len) });
                }
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if len > x86::SHORT && std::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the same.
                    check(&|dst, src| unsafe { x86::by_avx512(dst, src, len) });
                }
            }
        }
    }
}
