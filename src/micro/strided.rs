//! Strided copy: `n` blocks of `len` bytes, a constant stride on each side.
//!
//! Pack has a dense destination, unpack a dense source; a direct copy has neither. Each instance has a loop for a dense side,
//! where one pointer and constant offsets serve, and a general one.

use super::cursor::Strided;
use super::functions::functions;
use super::isa::{Code, OneLength, with_code};
use super::{
    Actual, Argument, Call, Direction, FAMILIES, Family, Micro, Repeated, Role, constant_length,
    run_time_length,
};
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

functions! {
    /// Copies block `i` of `len` bytes from `src + i * src_stride` to `dst + i * dst_stride`, in order. Strides are in bytes and may be negative, zero
    /// or less than `len`. An instance made for one length does not read the argument.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Equal blocks at a constant step on both sides: block `i` of `trip` at `a + i * steps`, in order.
pub static FAMILY: Family = Family {
    name: "strided",
    directed: false,
    parameters,
    variant: Family::plain,
    transform: Family::copied,
    address: |micro| get(micro.made_for().unwrap_or(0) as u16, micro.level()) as usize,
    check: Family::anything,
    blocks,
    takes: Family::nothing,
};

/// Returns the micro-kernel for blocks of `len` bytes: made for that length where there is one.
pub fn micro(len: u64, direction: Direction, level: Level) -> Micro {
    let (len, level) = choose(len, level);
    Micro::new(&FAMILY, direction, level).with_length(len)
}

/// Returns the call that moves a loop over equal blocks: of the first family that takes it, else of this one.
pub fn repeated(blocks: &Repeated) -> Call {
    let Repeated { direction, level, n, step, len } = *blocks;
    let taken = FAMILIES.iter().find_map(|family| (family.takes)(blocks));
    taken.unwrap_or_else(|| call(direction, level, n, step, len))
}

/// Returns the call that moves `n` blocks of `len` bytes, the one `step` from the other.
pub fn call(direction: Direction, level: Level, n: Quantity, step: Offsets, len: Quantity) -> Call {
    let made_for = if len.per_count { u64::MAX } else { len.k };
    with(micro(made_for, direction, level), n, step, len)
}

/// Returns the call that moves one long block of `len` bytes, by the code for any length.
pub fn any_length(direction: Direction, level: Level, len: Quantity) -> Call {
    with(micro(u64::MAX, direction, level), Quantity::fixed(1), Offsets::ZERO, len)
}

/// Returns a call of `callee`, which takes what this family takes.
pub(super) fn with(callee: Micro, n: Quantity, step: Offsets, len: Quantity) -> Call {
    let arguments = [
        (Role::Iterations, Argument::Number(n)),
        (Role::UserStep, Argument::Step(step.user)),
        (Role::PackedStep, Argument::Step(step.packed)),
        (Role::Length, Argument::Number(len)),
    ];
    Call::new(callee, arguments)
}

pub(super) fn parameters(direction: Direction) -> &'static [Role] {
    use Role::{Iterations, Length, Packed, PackedStep, User, UserStep};
    match direction {
        Direction::Pack => &[Packed, User, Iterations, PackedStep, UserStep, Length],
        Direction::Unpack => &[User, Packed, Iterations, UserStep, PackedStep, Length],
    }
}

pub(super) fn blocks(call: &Actual<'_>, f: &mut dyn FnMut(Offsets, u64)) {
    let step = call.steps(Role::UserStep, Role::PackedStep);
    for i in 0..call.number(Role::Iterations) as i64 {
        f(Offsets::ZERO.step(step, i), call.number(Role::Length));
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
/// As [`twin`] with `len = LEN`; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn made_for<I: Code, const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, ds: isize, ss: isize) {
    // SAFETY: the first of the same blocks.
    let done = unsafe { I::copy_near::<LEN>(dst, src, n, (ds, ss)) };
    if done == n {
        // Short calls end here, before registers are saved for the loops below.
        return;
    }
    let (dst, n) = (dst.wrapping_offset((done as isize).wrapping_mul(ds)), n - done);
    // Only read: a cursor is an address, the loops know which one they write.
    let src = src.wrapping_offset((done as isize).wrapping_mul(ss)).cast_mut();
    // SAFETY: the same blocks in every case.
    unsafe {
        if const { constant_length::has_pack::<I>(LEN) } && ds == LEN as isize && !(LEN <= 16 && far(ss)) {
            constant_length::pack::<I, LEN>(dst, Strided::new(src, ss), n);
        } else if const { constant_length::has_unpack::<I>(LEN) } && ss == LEN as isize {
            constant_length::unpack::<I, LEN>(Strided::new(dst, ds), src, n, masks_pay::<LEN>(dst, ds));
        } else {
            constant_length::each::<I, LEN>(Strided::new(dst, ds), Strided::new(src, ss), n);
        }
    }
}

/// Whether short blocks at this stride are so far apart that, if there are many, the page tables are walked for most. Packing 8 B one by one takes 0.82 to
/// 0.95 of the time there that groups of eight take (4096 to 32,768 blocks by 2056 to 6152), and as long in cache to 1.08. One load instruction for all,
/// whose stride a prefetcher learns, is as good at 32,768 blocks and takes 1.25 to three times as long with fewer pages: 256 blocks by 264 in 187
/// instead of 56 ns (Emerald Rapids).
fn far(stride: isize) -> bool {
    stride.unsigned_abs() >= 2048
}

/// Whether a store under a mask is better than two plain ones: when its 32 bytes do not cross lines, or when the blocks are so
/// far apart that the page tables are looked up for every store. A masked store across lines costs some 3 cycles more;
/// at 12 bytes few do.
fn masks_pay<const LEN: usize>(dst: *mut u8, stride: isize) -> bool {
    let footprint = LEN.next_power_of_two();
    LEN == 12 || stride.unsigned_abs() >= 1024 || (dst as usize | stride as usize).is_multiple_of(footprint)
}

/// Blocks of `LEN` bytes.
struct OfLength<const LEN: usize>;

impl<const LEN: usize> Body for OfLength<LEN> {
    const ONE_LENGTH: Option<OneLength> = Some(OneLength::Strided(LEN));

    #[inline(always)]
    unsafe fn run<I: Functions>(
        dst: *mut u8,
        src: *const u8,
        n: u64,
        dst_stride: i64,
        src_stride: i64,
        _len: u64,
    ) {
        // SAFETY: as promised by the caller.
        unsafe { made_for::<I, LEN>(dst, src, n as usize, dst_stride as isize, src_stride as isize) }
    }
}

/// Blocks of any length.
struct OfAnyLength;

impl Body for OfAnyLength {
    #[inline(always)]
    unsafe fn run<I: Functions>(
        dst: *mut u8,
        src: *const u8,
        n: u64,
        dst_stride: i64,
        src_stride: i64,
        len: u64,
    ) {
        let dst = Strided::new(dst, dst_stride as isize);
        // Only read: a cursor is an address, the loops know which one they write.
        let src = Strided::new(src.cast_mut(), src_stride as isize);
        // SAFETY: as promised by the caller.
        unsafe { run_time_length::any::<I>(dst, src, n as usize, len as usize) }
    }
}

/// The lengths with an instance of their own, and the lookup of it.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Lengths in bytes that have an instance of their own, ascending.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// The function for `len` (0: for any length).
        #[inline]
        fn lookup<I: Functions>(len: u16) -> Function {
            match len {
                $($len => I::of::<OfLength<$len>>(),)*
                _ => I::of::<OfAnyLength>(),
            }
        }
    };
}

lengths! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 24 28 32 36 40 44 48 52 56 60 64 72 80 88 96 104 112 120 128 160 192 224 256
}

/// Returns the function made for `len` (0: for any length) at `level`, or below it where that is as good.
#[inline]
pub(super) fn get(len: u16, level: Level) -> Function {
    with_code!(level, I => lookup::<I>(len))
}

/// The instance for blocks of `len` bytes at `level`: the length it is made for (0: any) and the level it is made for.
fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    (made_for, OneLength::Strided(made_for.into()).serving(level))
}

/// Returns the function for blocks of `len` bytes.
#[inline]
pub fn function(len: u64, level: Level) -> Function {
    // By the tables of `get` alone: callers with many short runs ask every time.
    get(u16::try_from(len).unwrap_or(0), level)
}

#[cfg(test)]
mod tests;
