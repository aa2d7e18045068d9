//! One long run of bytes: the C library's `memcpy`, or a loop where that may be slow by far.
//!
//! glibc copies runs of more than 2 KiB by `rep movsb` where a processor says that this is fast. Zen 3 says so, and where the destination lies 1 to 31 bytes behind the
//! source, whole pages left out, it takes thirty times as long: 2200 bytes 750 ns instead of 36, 256 KiB 86 us instead of 6. The loop takes 22 ns and 6 us
//! wherever buffers lie (glibc 2.36; docs/records/performance.md, "Long runs").

use std::ptr;

/// Copies `len` bytes.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller; the loop is chosen on machines that have its instructions.
    unsafe {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if x86::prefers_loop(len) {
            return x86::by_loop(dst, src, len);
        }
        ptr::copy_nonoverlapping(src, dst, len);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    use super::super::block;

    /// Bytes up to which `memcpy` uses vectors everywhere.
    pub(super) const SHORT: usize = 2048;
    /// Bytes from which stores that bypass the caches pay, which `memcpy` has.
    const LARGE: usize = 16 << 20;

    const UNKNOWN: u8 = 0;
    const MEMCPY: u8 = 1;
    const LOOP: u8 = 2;

    /// Says whether this machine is one whose `rep movsb` may be slow, and a run one for which the C library may use it.
    #[inline]
    pub(super) fn prefers_loop(len: usize) -> bool {
        len > SHORT && len < LARGE && is_slow()
    }

    #[inline]
    fn is_slow() -> bool {
        static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);
        match CHOICE.load(Relaxed) {
            UNKNOWN => {
                let choice = find();
                CHOICE.store(if choice { LOOP } else { MEMCPY }, Relaxed);
                choice
            }
            choice => choice == LOOP,
        }
    }

    /// AMD's family 25 (Zen 3 and 4), where it announces fast string operations (ERMS).
    #[cold]
    fn find() -> bool {
        let name = __cpuid(0);
        let is_amd = [name.ebx, name.edx, name.ecx]
            == [b"Auth", b"enti", b"cAMD"].map(|part| u32::from_le_bytes(*part));
        // Its base, 15 from then on, and what that leaves.
        let version = __cpuid(1).eax;
        let family = (version >> 8 & 15) + (version >> 20 & 255);
        let is_announced = || name.eax >= 7 && __cpuid_count(7, 0).ebx >> 9 & 1 != 0;
        is_amd && family == 25 && is_announced() && std::is_x86_feature_detected!("avx2")
    }

    /// Copies more than 192 bytes in pieces of 32, stores aligned.
    ///
    /// # Safety
    /// As [`super::copy`]; the machine has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn by_loop(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: as promised by the caller.
        unsafe { block::aligned(dst, src, len) }
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
                    check(&|dst, src| unsafe { x86::by_loop(dst, src, len) });
                }
            }
        }
    }
}
