//! Family `strided` of micro-kernels: copies `n` blocks of `len` bytes, at one constant stride in
//! the source and another one in the destination.
//!
//! A side is dense if its blocks follow each other directly. Packing has a dense destination,
//! unpacking a dense source, and a direct copy between two layouts has neither. The code for each
//! length has loops for a dense side, where a single pointer and constant offsets suffice, and
//! another loop for arbitrary strides.

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
    /// Copies block `i` of `len` bytes from `src + i * src_stride` to `dst + i * dst_stride`, in
    /// order. Strides are in bytes; they may be negative, zero or less than `len`. A function that
    /// is made for one length does not read `len`.
    pub type Function =
        unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: u64, dst_stride: i64, src_stride: i64, len: u64);
}

/// Family that copies blocks of equal length at constant steps. A call has an address and a step in
/// the user's buffer, and an address and a step in the packed stream. Block `i` lies `i` steps
/// after the address, in both. Blocks are moved in order.
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

/// Returns the micro-kernel that copies blocks of `len` bytes: the one that is made for this length
/// if it exists, or else the one for any length.
pub fn micro(len: u64, direction: Direction, level: Level) -> Micro {
    let (len, level) = choose(len, level);
    Micro::new(&FAMILY, direction, level).with_length(len)
}

/// Returns the call of a micro-kernel that moves all blocks of a loop over equal blocks. The
/// micro-kernel belongs to the first family whose `takes` accepts the loop, or else to the family
/// `strided`.
pub fn repeated(blocks: &Repeated) -> Call {
    let Repeated { direction, level, n, step, len } = *blocks;
    let taken = FAMILIES.iter().find_map(|family| (family.takes)(blocks));
    taken.unwrap_or_else(|| call(direction, level, n, step, len))
}

/// Returns the call of a micro-kernel that moves `n` blocks of `len` bytes. `step` has the
/// distances from one block to the next in user memory and on the packed side.
pub fn call(direction: Direction, level: Level, n: Quantity, step: Offsets, len: Quantity) -> Call {
    let made_for = if len.per_count { u64::MAX } else { len.k };
    with(micro(made_for, direction, level), n, step, len)
}

/// Returns the call that moves one long block of `len` bytes by the micro-kernel for blocks of any
/// length.
pub fn any_length(direction: Direction, level: Level, len: Quantity) -> Call {
    with(micro(u64::MAX, direction, level), Quantity::fixed(1), Offsets::ZERO, len)
}

/// Returns a call of the micro-kernel `callee`, whose family must have the same parameters as the
/// family `strided`.
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

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies the
/// bytes one by one.
///
/// # Safety
/// Every byte of every source block must be readable, and every byte of every destination block
/// writable. The two sides must not overlap.
pub unsafe extern "C" fn scalar_reference(
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
            // SAFETY: `s` and `d` are byte `k` of block `i` on both sides, with `i < n` and
            // `k < len`, which the caller promises.
            unsafe { d.write(s.read()) }
        }
    }
}

/// Copies `n` blocks of `LEN` bytes. If the blocks follow each other directly in the destination or
/// in the source, a loop for this case is used.
///
/// # Safety
/// `n` blocks of `LEN` bytes must be readable from `src` on at the stride `ss`, and writable from
/// `dst` on at the stride `ds`. The two sides must not overlap. The machine must have the
/// instructions of `I`.
#[inline(always)]
unsafe fn made_for<I: Code, const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, ds: isize, ss: isize) {
    // SAFETY: the conditions of `copy_near` are those of this function, and it copies only blocks
    // among the `n`.
    let done = unsafe { I::copy_near::<LEN>(dst, src, n, (ds, ss)) };
    if done == n {
        // Calls with few blocks end here, before registers are saved for the loops below.
        return;
    }
    let (dst, n) = (dst.wrapping_offset((done as isize).wrapping_mul(ds)), n - done);
    // The source is only read. Its pointer is cast to `*mut u8` because the cursors of both sides
    // have the same type. The loops write only through the cursor of the destination.
    let src = src.wrapping_offset((done as isize).wrapping_mul(ss)).cast_mut();
    // SAFETY: in all three cases these are the `n` blocks after the first `done` ones of those that
    // the caller promises. `pack` gets a destination and `unpack` a source whose stride is `LEN`.
    unsafe {
        if const { constant_length::has_pack::<I>(LEN) } && ds == LEN as isize && !(LEN <= 16 && far(ss)) {
            constant_length::pack::<I, LEN>(dst, Strided::new(src, ss), n);
        } else if const { constant_length::has_unpack::<I>(LEN) } && ss == LEN as isize {
            constant_length::unpack::<I, LEN>(Strided::new(dst, ds), src, n, masks_pay::<LEN>(dst, ds));
        } else {
            constant_length::copy_blocks::<I, LEN>(Strided::new(dst, ds), Strided::new(src, ss), n);
        }
    }
}

/// Returns true if short blocks at this stride are so far apart that, if there are many of them,
/// most accesses miss the TLB. In this case, packing blocks of 8 B one by one takes 0.82 to 0.95 of
/// the time that groups of eight take (4096 to 32,768 blocks at strides of 2056 to 6152). If the
/// blocks are in a cache, packing them one by one takes 1 to 1.08 of the time that groups take.
///
/// For 32,768 blocks, a loop with one load instruction for all blocks, whose stride a prefetcher
/// learns, is as good as packing the blocks one by one. If the blocks lie in fewer pages, such a
/// loop takes 1.25 to three times as long: 256 blocks at a stride of 264 take 187 instead of 56 ns
/// (Emerald Rapids).
fn far(stride: isize) -> bool {
    stride.unsigned_abs() >= 2048
}

/// Returns true if one masked store of a block of `LEN` bytes is better than two plain stores. This
/// is so if the 16 or 32 bytes of the masked store do not cross a cache line, or if the blocks are
/// so far apart that page tables are looked up for every store. A masked store that crosses a cache
/// line costs some 3 cycles more. Stores of blocks of 12 bytes rarely cross one.
fn masks_pay<const LEN: usize>(dst: *mut u8, stride: isize) -> bool {
    let footprint = LEN.next_power_of_two();
    LEN == 12 || stride.unsigned_abs() >= 1024 || (dst as usize | stride as usize).is_multiple_of(footprint)
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of `LEN` bytes, generic over
/// the instruction set.
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
        // SAFETY: the conditions of `made_for` are those of this function, for the length of the
        // body.
        unsafe { made_for::<I, LEN>(dst, src, n as usize, dst_stride as isize, src_stride as isize) }
    }
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of any length, generic over
/// the instruction set.
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
        // The source is only read. Its pointer is cast to `*mut u8` because the cursors of both
        // sides have the same type. The loop writes only through the cursor of the destination.
        let src = Strided::new(src.cast_mut(), src_stride as isize);
        // SAFETY: the caller promises `n` blocks of `len` bytes at these addresses and strides,
        // without overlap between the sides, and a machine with the instructions of `I`.
        unsafe { run_time_length::any::<I>(dst, src, n as usize, len as usize) }
    }
}

/// Declares `LENGTHS`, the block lengths for which functions are made, and `lookup`, which finds
/// the function for a length.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Block lengths in bytes for which functions are made, in ascending order.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// Returns the function for blocks of `len` bytes. If `len` is 0 or no function is made for
        /// this length, the function for blocks of any length is returned.
        #[inline]
        fn lookup<I: Functions>(len: u16) -> Function {
            match len {
                $($len => I::function::<OfLength<$len>>(),)*
                _ => I::function::<OfAnyLength>(),
            }
        }
    };
}

lengths! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 24 28 32 36 40 44 48 52 56 60 64 72 80 88 96 104 112 120 128 160 192 224 256
}

/// Returns the function for blocks of `len` bytes (0 for any length), compiled for `level` or for a
/// lower level whose code is as good.
#[inline]
pub(super) fn get(len: u16, level: Level) -> Function {
    with_code!(level, I => lookup::<I>(len))
}

/// Returns which function moves blocks of `len` bytes on a target of `level`: the block length (0
/// for any length) and the level for which this function is made.
fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    (made_for, OneLength::Strided(made_for.into()).serving(level))
}

/// Returns the function that copies strided blocks of `len` bytes on a machine of `level`.
#[inline]
pub fn function(len: u64, level: Level) -> Function {
    // `get`, which is only a `match` on the length, is used here, and not `choose`, which searches
    // a list: callers with many short runs of bytes look up a function for each run.
    get(u16::try_from(len).unwrap_or(0), level)
}

#[cfg(test)]
mod tests;
