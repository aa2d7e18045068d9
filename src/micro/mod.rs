//! Micro-kernels: precompiled inner loops, chosen by what they move and called once per innermost loop.
//!
//! Cranelift has no vector wider than 16 bytes; these loops are Rust with the instruction set of their [`Level`], the block
//! length const-generic where that pays. Compiled code finds the address of one in its context, so every family has one C signature, whose
//! parameters its [`Family`] lists by role. Each family has a byte-loop twin that is its meaning.
//!
//! Invariants of every micro-kernel:
//! * no byte outside the blocks is written, not even with its old value;
//! * no byte is read outside the blocks, except gap bytes between two mapped bytes less than 4096 bytes apart;
//! * destination blocks that overlap end up as if the blocks were copied one after the other (a transpose and an unpacked
//!   permutation are for disjoint destinations only);
//! * source and destination do not overlap (MPI 5.0, section 4.1: a buffer is not both).
#![allow(unsafe_code)] // Copies through raw pointers and instruction sets chosen at run time.

mod block;
pub mod blocks;
pub mod buffers;
mod constant_length;
mod cursor;
mod family;
mod functions;
mod isa;
pub mod pairs;
pub mod permute;
mod piece;
#[cfg(feature = "operations")]
pub mod reduce;
mod registers;
#[cfg(feature = "operations")]
pub mod resize;
pub mod rows;
pub(crate) mod run;
mod run_time_length;
pub mod stream;
pub mod strided;
pub mod swap;
#[cfg(test)]
mod testing;
pub mod transpose;
mod units;

use std::fmt;

use crate::column::Column;
pub use crate::kind::Direction;
use crate::target::Level;

pub(crate) use block::run_time as copy;
pub use blocks::Widths;
pub use buffers::Buffers;
pub use family::{Actual, Argument, Call, Family, Repeated, Role, Table, TableIndex, Transform};
pub use permute::{Granule, Permutation};

/// Width of the entries of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 4 bytes, signed.
    I32 = 0,
    /// 8 bytes, signed.
    I64 = 1,
}

impl Width {
    /// Returns the width of a number that `as u8` gave.
    pub(crate) fn of_number(number: u8) -> Width {
        if number & 1 == 0 { Width::I32 } else { Width::I64 }
    }

    /// Returns the width that `column` is stored in.
    pub fn of(column: &Column) -> Width {
        match column {
            Column::I32(_) => Width::I32,
            Column::I64(_) => Width::I64,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Width::I32 => "i32",
            Width::I64 => "i64",
        })
    }
}

/// All families.
pub const FAMILIES: &[&Family] = &[
    &strided::FAMILY,
    &rows::FAMILY,
    &pairs::FAMILY,
    &blocks::FAMILY,
    &permute::FAMILY,
    &transpose::FAMILY,
    &swap::FAMILY,
    #[cfg(feature = "operations")]
    &reduce::FAMILY,
];

/// A micro-kernel by identity: plain data that plans, keys and logs can hold.
///
/// Prints as `strided<8>.avx2`; without a length where the length is an argument: `strided.baseline`, `rows<24>.i32.pack.avx2`,
/// `blocks.i32.i32.i32.unpack.avx512`, `permute.byte.pack.avx512`, `transpose<16>.avx2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Micro {
    family: &'static Family,
    /// Block length in bytes that the code is made for; 0 where it is an argument.
    len: u16,
    /// Variant that the code is made for beyond that, in the numbers of its family.
    variant: u8,
    direction: Direction,
    /// The level that the code is made for, which may be lower than the one asked for.
    level: Level,
}

impl Micro {
    /// Returns the micro-kernel of `family`, made for any length. Each family has a function of its own that says which there is.
    pub(super) fn new(family: &'static Family, direction: Direction, level: Level) -> Micro {
        Micro { family, len: 0, variant: 0, direction, level }
    }

    /// Returns the micro-kernel for blocks of `len` bytes; of any length if that is 0.
    pub(super) fn with_length(self, len: u16) -> Micro {
        Micro { len, ..self }
    }

    /// Returns the micro-kernel for `variant`, in the numbers of its family.
    pub(super) fn with_variant(self, variant: u8) -> Micro {
        Micro { variant, ..self }
    }

    /// Returns the algorithm.
    pub fn family(self) -> &'static Family {
        self.family
    }

    /// Returns the parameters of its C function, in order.
    pub fn parameters(self) -> &'static [Role] {
        (self.family.parameters)(self.direction)
    }

    /// Block length in bytes that the code is made for; none where the length is an argument.
    pub fn made_for(self) -> Option<u64> {
        (self.len > 0).then_some(u64::from(self.len))
    }

    /// Returns the variant that the code is made for beyond its length, in the numbers of its family.
    pub(crate) fn variant(self) -> u8 {
        self.variant
    }

    /// Transform of a block's bytes on their way.
    pub fn transform(self) -> Transform {
        (self.family.transform)(self.variant)
    }

    /// Returns which way it goes.
    pub fn direction(self) -> Direction {
        self.direction
    }

    /// Returns the level that the code is made for.
    pub fn level(self) -> Level {
        self.level
    }

    /// Returns the address of the code, of the C signature of its family; the same for the life of the process.
    pub fn address(self) -> usize {
        (self.family.address)(self)
    }
}

impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.name)?;
        if let Some(len) = self.made_for() {
            write!(f, "<{len}>")?;
        }
        (self.family.variant)(self.variant, f)?;
        if self.family.directed {
            write!(f, ".{}", self.direction)?;
        }
        write!(f, ".{}", self.level)
    }
}
