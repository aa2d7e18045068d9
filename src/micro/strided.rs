//! Strided copy: `n` blocks of `len` bytes, a constant stride on each side.
//!
//! Pack has a dense destination, unpack a dense source; a direct copy has neither. Each instance has a loop for a dense side,
//! where one pointer and constant offsets serve, and a general one.

use super::side::Strided;
#[cfg(target_arch = "x86_64")]
use super::windows;
use super::{Actual, Argument, Call, Direction, Family, Micro, Role, lengths, turns};
use crate::nest::{At, Trip};
use crate::target::Level;

/// `(dst, src, n, dst_stride, src_stride, len)`: block `i` of `len` bytes goes from `src + i * src_stride` to
/// `dst + i * dst_stride`, in order. Strides are in bytes and may be negative, zero or less than `len`. An instance made for
/// one length does not read the argument.
pub type Function = unsafe extern "C" fn(*mut u8, *const u8, u64, i64, i64, u64);

/// Equal blocks at a constant step on both sides.
pub static FAMILY: Family = Family {
    name: "strided",
    directed: false,
    parameters,
    variant: Family::plain,
    address: |micro| get(micro.made_for().unwrap_or(0) as u16, micro.level()) as usize,
    check: Family::anything,
    blocks,
};

/// The call that moves `n` blocks of `len` bytes, the one `step` from the other.
pub fn call(direction: Direction, level: Level, n: Trip, step: At, len: Trip) -> Call {
    let made_for = if len.per_count { u64::MAX } else { len.k };
    with(Micro::strided(made_for, direction, level), n, step, len)
}

/// The call that moves one long block of `len` bytes, by the code for any length.
pub fn any_length(direction: Direction, level: Level, len: Trip) -> Call {
    with(Micro::strided(u64::MAX, direction, level), Trip::fixed(1), At::ZERO, len)
}

fn with(callee: Micro, n: Trip, step: At, len: Trip) -> Call {
    let arguments = [
        (Role::Trip, Argument::Number(n)),
        (Role::UserStep, Argument::Step(step.user)),
        (Role::PackedStep, Argument::Step(step.packed)),
        (Role::Length, Argument::Number(len)),
    ];
    Call::new(callee, arguments)
}

pub(super) fn parameters(direction: Direction) -> &'static [Role] {
    use Role::{Length, Packed, PackedStep, Trip, User, UserStep};
    match direction {
        Direction::Pack => &[Packed, User, Trip, PackedStep, UserStep, Length],
        Direction::Unpack => &[User, Packed, Trip, UserStep, PackedStep, Length],
    }
}

pub(super) fn blocks(call: &Actual<'_>, f: &mut dyn FnMut(At, u64)) {
    let step = call.steps(Role::UserStep, Role::PackedStep);
    for i in 0..call.number(Role::Trip) as i64 {
        f(At::ZERO.step(step, i), call.number(Role::Length));
    }
}

/// The meaning: the same bytes one by one.
///
/// # Safety
/// Every byte of every source block is readable, of every destination block writable; the two sides do not overlap.
pub unsafe extern "C" fn twin(
    dst: *mut u8,
    src: *const u8,
    n: u64,
    dst_stride: i64,
    src_stride: i64,
    len: u64,
) {
    for i in 0..n as i64 {
        for k in 0..len as isize {
            let d = dst.wrapping_offset((i * dst_stride) as isize + k);
            let s = src.wrapping_offset((i * src_stride) as isize + k);
            // SAFETY: byte `k` of block `i`, which the caller promises.
            unsafe { d.write(s.read()) }
        }
    }
}

/// Chooses the loop by which side is dense.
///
/// # Safety
/// As [`twin`] with `len = LEN`; the machine runs `LEVEL`.
#[inline(always)]
unsafe fn sides<const LEN: usize, const LEVEL: u8>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ds: isize,
    ss: isize,
) {
    // SAFETY: the first of the same blocks.
    let done = unsafe { dense::<LEN, LEVEL>(dst, src, n, ds, ss) };
    let (dst, n) = (dst.wrapping_offset((done as isize).wrapping_mul(ds)), n - done);
    // Only read: a side is an address, the loops know which one they write.
    let src = src.wrapping_offset((done as isize).wrapping_mul(ss)).cast_mut();
    // SAFETY: the same blocks in every case.
    unsafe {
        if LEN <= 16 && far(ss) && n > FEW {
            turns::rolled::<LEN, LEVEL, _, _>(Strided::new(dst, ds), Strided::new(src, ss), n);
        } else if turns::has_pack(LEN, LEVEL) && ds == LEN as isize {
            turns::pack::<LEN, LEVEL, _>(dst, Strided::new(src, ss), n);
        } else if turns::has_unpack(LEN, LEVEL) && ss == LEN as isize {
            turns::unpack::<LEN, LEVEL, _>(Strided::new(dst, ds), src, n, masks_pay::<LEN>(dst, ds));
        } else {
            turns::each::<LEN, LEVEL, _, _>(Strided::new(dst, ds), Strided::new(src, ss), n);
        }
    }
}

/// Whether every short block at this stride is a miss that only a prefetcher could hide: it learns the stride of one instruction,
/// so there must be one, not eight that each take eight times the stride (of the C loop's time 1.00 instead of 1.09 at 8 B by 512 in L2,
/// 1.04 instead of 1.08 at 8 B by 4112; Sapphire Rapids).
fn far(stride: isize) -> bool {
    stride.unsigned_abs() >= 256
}

/// So few blocks teach a prefetcher nothing: 16 rows of 16 blocks of 8 B by 272 in L1 pack in 0.74 of the time that one load
/// instruction takes, and unpack in 0.92 (Sapphire Rapids).
const FEW: usize = 16;

/// Copies as many blocks as whole vectors serve, where blocks and strides are so short that a vector holds many; returns how
/// many.
///
/// # Safety
/// As [`sides`].
#[inline(always)]
unsafe fn dense<const LEN: usize, const LEVEL: u8>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ds: isize,
    ss: isize,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as promised by the caller; a dense side is what each function asks for.
    unsafe {
        match const { if LEN <= 32 { 1000 * LEVEL as usize + LEN } else { 0 } } {
            1004 if ds == 4 && ss == 8 => super::avx2::pack_halves::<4>(dst, src, n),
            1008 if ds == 8 && ss == 16 => super::avx2::pack_halves::<8>(dst, src, n),
            2004 if ds == 4 && ss == 8 => {
                super::avx512::pack_halves::<4>(dst, src, n);
                n
            }
            2008 if ds == 8 && ss == 16 => {
                super::avx512::pack_halves::<8>(dst, src, n);
                n
            }
            2016 if ds == 16 && ss == 32 => {
                super::avx512::pack_halves::<16>(dst, src, n);
                n
            }
            2032 if ds == 32 && ss == 64 => {
                super::avx512::pack_halves::<32>(dst, src, n);
                n
            }
            2001..=2015 if ds == LEN as isize && (LEN as isize..windows::SHORT).contains(&ss) => {
                windows::pack(dst, src, n, LEN, ss)
            }
            2001..=2015 if ss == LEN as isize && (LEN as isize..windows::SHORT).contains(&ds) => {
                windows::unpack(dst, src, n, LEN, ds)
            }
            _ => 0,
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        if const { LEVEL != turns::NEON || LEN > 31 } || ds != LEN as isize || !(ds..64).contains(&ss) {
            return 0;
        }
        super::neon::pack_near::<LEN>(dst, src, n, ss as usize)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (dst, src, n, ds, ss);
        0
    }
}

/// Whether a store under a mask is better than two plain ones: when its 32 bytes do not cross lines, or when the blocks are so
/// far apart that the page tables are looked up for every store. A masked store across lines costs some 3 cycles more;
/// at 12 bytes few do.
fn masks_pay<const LEN: usize>(dst: *mut u8, stride: isize) -> bool {
    let footprint = LEN.next_power_of_two();
    LEN == 12 || stride.unsigned_abs() >= 1024 || (dst as usize | stride as usize).is_multiple_of(footprint)
}

/// The C functions of one level: `made_for::<LEN>`, and one for any length.
macro_rules! level {
    ($name:ident, $level:path, $(#[$feature:meta])?) => {
        mod $name {
            /// # Safety
            /// As [`super::twin`] with `len = LEN`, on a machine of this level.
            $(#[$feature])?
            pub(super) unsafe extern "C" fn made_for<const LEN: usize>(
                dst: *mut u8,
                src: *const u8,
                n: u64,
                dst_stride: i64,
                src_stride: i64,
                _len: u64,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { super::sides::<LEN, { $level }>(dst, src, n as usize, dst_stride as isize, src_stride as isize) }
            }

            /// # Safety
            /// As [`super::twin`], on a machine of this level.
            $(#[$feature])?
            pub(super) unsafe extern "C" fn any(
                dst: *mut u8,
                src: *const u8,
                n: u64,
                dst_stride: i64,
                src_stride: i64,
                len: u64,
            ) {
                let dst = super::Strided::new(dst, dst_stride as isize);
                // Only read: a side is an address, the loops know which one they write.
                let src = super::Strided::new(src.cast_mut(), src_stride as isize);
                // SAFETY: as promised by the caller.
                unsafe { super::lengths::any::<{ $level }, _, _>(dst, src, n as usize, len as usize) }
            }
        }
    };
}

level!(baseline, super::turns::BASELINE,);
#[cfg(target_arch = "aarch64")]
level!(neon, super::turns::NEON,);
#[cfg(target_arch = "x86_64")]
level!(avx2, super::turns::AVX2, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
#[cfg(target_arch = "x86_64")]
level!(
    avx512,
    super::turns::AVX512,
    #[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
);

/// `len` where it has code of its own at AVX-512, else one length for all, so that unused instances are not compiled.
#[cfg(target_arch = "x86_64")]
const fn own(len: u16) -> usize {
    if has_avx512(len) { len as usize } else { 16 }
}

/// Whether `len` has code of its own at AVX-512; elsewhere the code of AVX2 is as good.
const fn has_avx512(len: u16) -> bool {
    len <= 32 || len.is_multiple_of(64)
}

/// The lengths with an instance of their own, and the lookup of it.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Lengths in bytes that have an instance of their own, ascending.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// The function made for `len` (0: for any length) at exactly `level`.
        #[inline]
        pub(super) fn get(len: u16, level: Level) -> Function {
            match (level, len) {
                $(
                    #[cfg(target_arch = "x86_64")]
                    (Level::Avx512, $len) if const { has_avx512($len) } => avx512::made_for::<{ own($len) }>,
                    #[cfg(target_arch = "x86_64")]
                    (Level::Avx2 | Level::Avx512, $len) => avx2::made_for::<$len>,
                    #[cfg(target_arch = "aarch64")]
                    (Level::Neon, $len) => neon::made_for::<$len>,
                    (Level::Baseline, $len) => baseline::made_for::<$len>,
                )*
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, _) => avx512::any,
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, _) => avx2::any,
                #[cfg(target_arch = "aarch64")]
                (Level::Neon, _) => neon::any,
                _ => baseline::any,
            }
        }
    };
}

lengths! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 24 28 32 36 40 44 48 52 56 60 64 72 80 88 96 104 112 120 128 160 192 224 256
}

/// The instance for blocks of `len` bytes at `level`: the length it is made for (0: any) and the level it is made for.
pub(super) fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    let level = match level {
        Level::Avx512 if !has_avx512(made_for) => Level::Avx2,
        level => level,
    };
    (made_for, level)
}

/// The function for blocks of `len` bytes.
#[inline]
pub fn function(len: u64, level: Level) -> Function {
    // By the tables of `get` alone: callers with many short runs ask every time.
    get(u16::try_from(len).unwrap_or(0), level)
}

#[cfg(test)]
mod tests;
