//! Family `pairs` of micro-kernels: copies `n` blocks of `len` bytes whose offsets in the source
//! and in the destination are listed in two tables.
//!
//! Such blocks arise when bytes go directly from one layout to another and the tables of the two
//! layouts have no common pattern. As in [`super::rows`], the loop is limited by the latency of its
//! loads. All blocks have the same length, so the loop has no branch on the length. The loop of
//! [`super::blocks`] has such a branch, which the processor mispredicts.

use super::cursor::{Listed, Offset};
use super::functions::functions;
use super::isa::{OneLength, with_code};
use super::{
    Argument, Call, Direction, Family, Micro, Role, TableIndex, Width, constant_length, run_time_length,
};
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

functions! {
    /// Copies block `i` of `len` bytes from `src + src_rows[i]` to `dst + dst_rows[i]`, in order.
    /// The columns `dst_rows` and `src_rows` are tables of `n` offsets of 4 bytes. A function that
    /// is made for one length does not read `len`.
    pub type Function = unsafe extern "C" fn(
        dst: *mut u8,
        src: *const u8,
        n: u64,
        dst_rows: *const u8,
        src_rows: *const u8,
        len: u64,
    );
}

/// Family that copies blocks of equal length between listed offsets in the user's buffer and listed
/// offsets in the packed stream. Two columns, which are tables of offsets of 4 bytes, list the
/// blocks. The offset of block `i` in the user's buffer is entry `i` of the column of user offsets,
/// and its offset in the packed stream is entry `i` of the column of packed offsets. Both are
/// relative to the addresses of the call. Blocks are moved in order.
pub static FAMILY: Family = Family {
    name: "pairs",
    directed: false,
    parameters: |direction| {
        use Role::{Iterations, Length, Packed, PackedOffsets, User, UserOffsets};
        match direction {
            Direction::Pack => &[Packed, User, Iterations, PackedOffsets, UserOffsets, Length],
            Direction::Unpack => &[User, Packed, Iterations, UserOffsets, PackedOffsets, Length],
        }
    },
    variant: Family::plain,
    transform: Family::copied,
    address: |micro| get(micro.made_for().unwrap_or(0) as u16, micro.level()) as usize,
    check: |call| {
        let columns = [Role::UserOffsets, Role::PackedOffsets].map(|role| call.column(role));
        if columns.iter().any(|c| c.len() as u64 != call.number(Role::Iterations)) {
            return Err("another number of rows than its columns have");
        }
        if columns.iter().any(|c| Width::from_column(c) != Width::I32) {
            return Err("micro-kernel made for columns of another width");
        }
        Ok(())
    },
    blocks: |call, f| {
        let [user, packed] = [Role::UserOffsets, Role::PackedOffsets].map(|role| call.column(role));
        for (user, packed) in user.iter().zip(packed.iter()) {
            f(Offsets::new(user, packed), call.number(Role::Length));
        }
    },
    takes: Family::nothing,
};

/// Returns the call of a micro-kernel that moves `n` blocks of `len` bytes. Two tables of the plan
/// list the blocks: `tables[0]` is the index of the table of user offsets, and `tables[1]` that of
/// the table of packed offsets. Both tables have `n` entries of 4 bytes.
pub fn call(direction: Direction, level: Level, n: usize, tables: [TableIndex; 2], len: u64) -> Call {
    let (made_for, level) = choose(len, level);
    let arguments = [
        (Role::Iterations, Argument::Number(Quantity::fixed(n as u64))),
        (Role::UserOffsets, Argument::Table(tables[0])),
        (Role::PackedOffsets, Argument::Table(tables[1])),
        (Role::Length, Argument::Number(Quantity::fixed(len))),
    ];
    Call::new(Micro::new(&FAMILY, direction, level).with_length(made_for), arguments)
}

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies the
/// bytes one by one.
///
/// # Safety
/// Both columns of offsets must have `n` entries of 4 bytes. Every byte of every block must be
/// readable at its source and writable at its destination. The sides must not overlap.
pub unsafe extern "C" fn scalar_reference(
    dst: *mut u8,
    src: *const u8,
    n: u64,
    dst_rows: *const u8,
    src_rows: *const u8,
    len: u64,
) {
    for i in 0..n as usize {
        // SAFETY: the caller promises entry `i` of `n` in both columns, and byte `k` of block `i`
        // on both sides.
        unsafe {
            let (to, from) = (i32::load(dst_rows, i), i32::load(src_rows, i));
            for k in 0..len as isize {
                dst.wrapping_offset(to + k).write(src.wrapping_offset(from + k).read());
            }
        }
    }
}

/// Returns cursors over the blocks of the destination and of the source. A cursor yields the
/// addresses of the blocks of one side.
fn sides(
    (dst, src): (*mut u8, *const u8),
    (dst_rows, src_rows): (*const u8, *const u8),
) -> (Listed<i32>, Listed<i32>) {
    // The source is only read. Its pointer is cast to `*mut u8` because the cursors of both sides
    // have the same type. The loops write only through the cursor of the destination.
    (Listed { base: dst, next: dst_rows.cast() }, Listed { base: src.cast_mut(), next: src_rows.cast() })
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of `LEN` bytes, generic over
/// the instruction set.
struct OfLength<const LEN: usize>;

impl<const LEN: usize> Body for OfLength<LEN> {
    const ONE_LENGTH: Option<OneLength> = Some(OneLength::Rows(LEN));

    #[inline(always)]
    unsafe fn run<I: Functions>(
        dst: *mut u8,
        src: *const u8,
        n: u64,
        dst_rows: *const u8,
        src_rows: *const u8,
        _len: u64,
    ) {
        let (dst, src) = sides((dst, src), (dst_rows, src_rows));
        // SAFETY: the caller promises `n` entries in both columns and `n` blocks of `LEN` bytes,
        // without overlap between the sides, and a machine with the instructions of `I`.
        unsafe { constant_length::copy_blocks::<I, LEN>(dst, src, n as usize) }
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
        dst_rows: *const u8,
        src_rows: *const u8,
        len: u64,
    ) {
        let (dst, src) = sides((dst, src), (dst_rows, src_rows));
        // SAFETY: the caller promises `n` entries in both columns and `n` blocks of `len` bytes,
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
        fn lookup<I: Functions>(len: u16) -> Function {
            match len {
                $($len => I::function::<OfLength<$len>>(),)*
                _ => I::function::<OfAnyLength>(),
            }
        }
    };
}

lengths! { 4 8 12 16 24 32 48 64 }

/// Returns the function for blocks of `len` bytes (0 for any length), compiled for `level` or for a
/// lower level whose code is as good.
fn get(len: u16, level: Level) -> Function {
    with_code!(level, I => lookup::<I>(len))
}

/// Returns which function moves blocks of `len` bytes on a target of `level`: the block length (0
/// for any length) and the level for which this function is made.
fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    (made_for, OneLength::Rows(made_for.into()).serving(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::micro::testing::{Guarded, check};

    #[test]
    fn three_blocks_by_hand() {
        let (to, from): (Column, Column) = (vec![4, 0, 2].into(), vec![0, 6, 1].into());
        for level in Level::available() {
            let (mut dst, src) = ([0_u8; 6], *b"abcdefgh");
            // SAFETY: all blocks of 2 bytes lie within the 6 bytes of `dst` and the 8 bytes of
            // `src`; both columns have 3 entries.
            unsafe { get(0, level)(dst.as_mut_ptr(), src.as_ptr(), 3, to.as_ptr(), from.as_ptr(), 2) };
            assert_eq!(&dst, b"ghbcab", "{level}");
        }
    }

    #[test]
    fn the_last_of_overlapping_blocks_wins() {
        let (to, from): (Column, Column) = (vec![0, 2, 0].into(), vec![0, 8, 16].into());
        for level in Level::available() {
            let (mut dst, src) = ([0_u8; 10], std::array::from_fn::<u8, 24, _>(|i| i as u8));
            // SAFETY: all blocks of 8 bytes lie within the 10 bytes of `dst` and the 24 bytes of
            // `src`; both columns have 3 entries.
            unsafe { get(8, level)(dst.as_mut_ptr(), src.as_ptr(), 3, to.as_ptr(), from.as_ptr(), 8) };
            assert_eq!(dst, [16, 17, 18, 19, 20, 21, 22, 23, 14, 15], "{level}");
        }
    }

    #[test]
    fn every_length_between_guard_pages() {
        let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
        for level in Level::available() {
            for len in 0..=300_u64 {
                for n in [0_usize, 1, 2, 7, 9, 17] {
                    let room = n * (len as usize + 3);
                    let column = |factor: usize| -> Column {
                        (0..n).map(|i| (i * factor % n.max(1) * (len as usize + 3)) as i64).collect()
                    };
                    let (to, from) = (column(5), column(11));
                    let (made_for, _) = choose(len, level);
                    let span = room.max(3) - 3;
                    check(
                        &mut areas,
                        (span, span),
                        // SAFETY: both areas contain all blocks, and both columns have `n` entries.
                        |dst, src| unsafe {
                            get(made_for, level)(dst, src, n as u64, to.as_ptr(), from.as_ptr(), len)
                        },
                        // SAFETY: both areas contain all blocks, and both columns have `n` entries.
                        |dst, src| unsafe {
                            scalar_reference(dst, src, n as u64, to.as_ptr(), from.as_ptr(), len)
                        },
                        || format!("{level}: {n} blocks of {len}"),
                    );
                }
            }
        }
    }
}
