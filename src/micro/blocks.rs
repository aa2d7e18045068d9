//! Family `blocks` of micro-kernels: copies `n` blocks whose lengths, whose offsets in user memory
//! and whose offsets in the packed stream are listed in three tables.
//!
//! This family moves layouts without any pattern. Lengths differ from block to block. The processor
//! learns a branch on the length if a short list is used again and again, but mispredicts this
//! branch if the list is long. For long lists, AVX-512 moves blocks of up to 64 bytes under a mask,
//! without such a branch. Blocks of 1 to 8 doubles on Sapphire Rapids: 1000 blocks reach 20 GB/s
//! with branches and 10 to 18 with masks; 100,000 blocks reach 5 GB/s with branches and 8 GB/s with
//! masks.

use std::marker::PhantomData;

use super::cursor::Offset;
use super::functions::functions;
use super::isa::{Code, Isa, with_code};
use super::rows::ends;
use super::run;
use super::{Argument, Call, Direction, Family, Micro, Role, TableIndex, Width, block};
use crate::column::Column;
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

functions! {
    /// Copies block `i` of `lens[i]` bytes between `user + users[i]` and `packed + packeds[i]`, in
    /// order. `users`, `packeds` and `lens` are columns: tables of `n` integers of the width, 4 or
    /// 8 bytes, for which the function is made. No length is negative.
    pub type Function = unsafe extern "C" fn(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        users: *const u8,
        packeds: *const u8,
        lens: *const u8,
    );
}

/// Widths of the entries of the three tables that a call of a micro-kernel of this family reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Widths {
    /// Width of the user offsets.
    pub user: Width,
    /// Width of the packed offsets.
    pub packed: Width,
    /// Width of the lengths.
    pub len: Width,
}

impl Widths {
    /// Returns the widths of the entries of three columns, which are tables of user offsets, packed
    /// offsets and lengths.
    pub fn from_columns([user, packed, len]: [&Column; 3]) -> Widths {
        Widths {
            user: Width::from_column(user),
            packed: Width::from_column(packed),
            len: Width::from_column(len),
        }
    }

    /// Returns the number that encodes the three widths in the identity of a micro-kernel (its
    /// variant), with one bit for each table.
    pub(super) fn number(self) -> u8 {
        self.user as u8 | (self.packed as u8) << 1 | (self.len as u8) << 2
    }

    fn of_number(number: u8) -> Widths {
        let [user, packed, len] = [0, 1, 2].map(|bit| Width::of_number(number >> bit));
        Widths { user, packed, len }
    }
}

/// Roles that the three columns (tables of offsets or lengths) have in a call, in the order of the
/// parameters.
const COLUMNS: [Role; 3] = [Role::UserOffsets, Role::PackedOffsets, Role::Lengths];

/// Returns the call of a micro-kernel that moves the blocks whose user offsets, packed offsets and
/// lengths the three `columns` list. In the plan to which the call belongs, the columns are the
/// tables with the indices `tables`.
pub fn call(direction: Direction, level: Level, columns: [&Column; 3], tables: [TableIndex; 3]) -> Call {
    let rows = (Role::Iterations, Argument::Number(Quantity::fixed(columns[0].len() as u64)));
    let arguments = COLUMNS.into_iter().zip(tables.map(Argument::Table));
    Call::new(micro(Widths::from_columns(columns), direction, level), arguments.chain([rows]))
}

/// Family that copies blocks of listed lengths at listed offsets. Three columns, which are tables
/// of integers, list the user offsets, packed offsets and lengths, as for the node `blocks` of a
/// nest, which is the tree of loops and tables that describes a datatype. The number of the variant
/// encodes the widths of the columns.
pub static FAMILY: Family = Family {
    name: "blocks",
    directed: true,
    parameters: |_| {
        &[Role::User, Role::Packed, Role::Iterations, Role::UserOffsets, Role::PackedOffsets, Role::Lengths]
    },
    variant: |number, f| {
        let Widths { user, packed, len } = Widths::of_number(number);
        write!(f, ".{user}.{packed}.{len}")
    },
    transform: Family::copied,
    address: |micro| function(Widths::of_number(micro.variant()), micro.direction(), micro.level()) as usize,
    check: |call| {
        let columns = COLUMNS.map(|role| call.column(role));
        if columns.iter().any(|c| c.len() as u64 != call.number(Role::Iterations)) {
            return Err("columns of different length");
        }
        if Widths::from_columns(columns).number() != call.callee().variant() {
            return Err("micro-kernel made for columns of other widths");
        }
        Ok(())
    },
    blocks: |call, f| {
        let [user, packed, len] = COLUMNS.map(|role| call.column(role));
        for i in 0..len.len() {
            f(Offsets::new(user.get(i), packed.get(i)), len.get(i) as u64);
        }
    },
    takes: Family::nothing,
};

/// Returns the micro-kernel that reads the offsets and lengths of blocks from three tables, whose
/// entries have the widths `widths`.
pub fn micro(widths: Widths, direction: Direction, level: Level) -> Micro {
    Micro::new(&FAMILY, direction, level).with_variant(widths.number())
}

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies the
/// bytes one by one.
///
/// # Safety
/// Each of the columns (user offsets, packed offsets, lengths) must have `n` entries of its width.
/// Every byte of every block must be readable on the source side and writable on the destination
/// side. The sides must not overlap.
pub unsafe fn scalar_reference(
    direction: Direction,
    widths: Widths,
    (user, packed): (*mut u8, *mut u8),
    n: u64,
    columns: [*const u8; 3],
) {
    let entry = |width: Width, column: *const u8, i: usize| {
        // SAFETY: all callers below pass an `i` less than `n`, and the width that belongs to the
        // column; the caller of `scalar_reference` promises `n` entries.
        unsafe {
            match width {
                Width::I32 => i32::load(column, i),
                Width::I64 => i64::load(column, i),
            }
        }
    };
    for i in 0..n as usize {
        let u = user.wrapping_offset(entry(widths.user, columns[0], i));
        let p = packed.wrapping_offset(entry(widths.packed, columns[1], i));
        for k in 0..entry(widths.len, columns[2], i) {
            let (u, p) = (u.wrapping_offset(k), p.wrapping_offset(k));
            // SAFETY: `u` and `p` are byte `k` of block `i` on both sides, which the caller
            // promises.
            unsafe {
                match direction {
                    Direction::Pack => p.write(u.read()),
                    Direction::Unpack => u.write(p.read()),
                }
            }
        }
    }
}

/// Copies all `n` blocks that the three columns list, in order. `copy` gets the destination, the
/// source and the length of one block, and copies it.
///
/// # Safety
/// The columns must have `n` entries each: user offsets of the type `U`, packed offsets of the type
/// `P` and lengths of the type `L`. Every byte of every block must be readable on the source side
/// and writable on the destination side. The sides must not overlap. `copy` must write exactly the
/// bytes of the block that it gets.
#[inline(always)]
unsafe fn all<const PACK: bool, U: Offset, P: Offset, L: Offset>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    [users, packeds, lens]: [*const u8; 3],
    copy: impl Fn(*mut u8, *const u8, usize),
) {
    for i in 0..n {
        // SAFETY: `i` is less than `n`, and the caller promises `n` entries of these types in each
        // column.
        let (u, p, len) = unsafe { (U::load(users, i), P::load(packeds, i), L::load(lens, i) as usize) };
        let (dst, src) = ends::<PACK>(user.wrapping_offset(u), packed.wrapping_offset(p));
        copy(dst, src, len);
    }
}

/// Maximum number of blocks in a list that is copied with branches on the length of each block. The
/// processor does not learn the branches of a longer list, so the blocks of a longer list are
/// copied by masked loads and stores.
const LEARNT: u64 = 4096;

/// Marker type. Its [`Body`] is the code of the functions that copy blocks in one direction,
/// generic over the instruction set. The columns of user offsets, packed offsets and lengths have
/// entries of the types `U`, `P` and `L`.
struct Columns<const PACK: bool, U, P, L>(PhantomData<(U, P, L)>);

impl<const PACK: bool, U: Offset, P: Offset, L: Offset> Body for Columns<PACK, U, P, L> {
    #[inline(always)]
    unsafe fn run<I: Functions>(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        users: *const u8,
        packeds: *const u8,
        lens: *const u8,
    ) {
        let columns = [users, packeds, lens];
        // SAFETY: the caller promises `n` entries in each column, valid blocks, and a machine with
        // the instructions of `I`. Each block that a closure gets is one of these blocks. The
        // function of the instruction set below gets the same arguments.
        unsafe {
            if const { I::MASKED_UP_TO == 0 } {
                all::<PACK, U, P, L>(user, packed, n as usize, columns, |d, s, len| {
                    by_length::<I, L>(d, s, len)
                });
            } else if n <= LEARNT {
                I::below::<Self>()(user, packed, n, users, packeds, lens);
            } else {
                all::<PACK, U, P, L>(user, packed, n as usize, columns, |d, s, len| {
                    masked::<I, L>(d, s, len)
                });
            }
        }
    }
}

/// Copies a block: in line if the column of lengths has entries of 4 bytes, or else by a call of
/// [`run::copy`]. Entries of 8 bytes exist for lengths of 2 GiB and more, for which the call is
/// best. If a column with entries of 8 bytes also lists shorter blocks, the smaller code of the
/// call is good enough for the shorter blocks.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
unsafe fn by_length<I: Isa, L: Offset>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the conditions of both functions are those of this one.
    unsafe {
        if const { size_of::<L>() == 8 } {
            run::copy(dst, src, len);
        } else {
            block::run_time_by::<I>(dst, src, len);
        }
    }
}

/// Copies a block of `len` bytes: by a masked load and a masked store if it has at most
/// `MASKED_UP_TO` bytes. A longer block is copied by the code of the next lower instruction set,
/// which also copies the blocks of short lists.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap. The
/// machine must have the instructions of `I`.
#[inline(always)]
unsafe fn masked<I: Code, L: Offset>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller promises the block and the instructions of `I`, which include those of the
    // instruction set below. `copy_masked` gets at most `MASKED_UP_TO` bytes.
    unsafe {
        if len <= I::MASKED_UP_TO {
            I::copy_masked(dst, src, len);
        } else {
            by_length::<I::Below, L>(dst, src, len);
        }
    }
}

/// Returns the function of the instruction set `I` that reads the offsets and lengths of blocks
/// from three tables, whose entries have the widths `widths`.
fn lookup<I: Functions, const PACK: bool>(widths: Widths) -> Function {
    use Width::{I32, I64};
    match (widths.user, widths.packed, widths.len) {
        (I32, I32, I32) => I::function::<Columns<PACK, i32, i32, i32>>(),
        (I32, I32, I64) => I::function::<Columns<PACK, i32, i32, i64>>(),
        (I32, I64, I32) => I::function::<Columns<PACK, i32, i64, i32>>(),
        (I32, I64, I64) => I::function::<Columns<PACK, i32, i64, i64>>(),
        (I64, I32, I32) => I::function::<Columns<PACK, i64, i32, i32>>(),
        (I64, I32, I64) => I::function::<Columns<PACK, i64, i32, i64>>(),
        (I64, I64, I32) => I::function::<Columns<PACK, i64, i64, i32>>(),
        (I64, I64, I64) => I::function::<Columns<PACK, i64, i64, i64>>(),
    }
}

/// Returns the function that reads the offsets and lengths of blocks from three tables, whose
/// entries have the widths `widths`, and copies the blocks.
pub fn function(widths: Widths, direction: Direction, level: Level) -> Function {
    with_code!(level, I => match direction {
        Direction::Pack => lookup::<I, true>(widths),
        Direction::Unpack => lookup::<I, false>(widths),
    })
}

#[cfg(test)]
mod tests;
