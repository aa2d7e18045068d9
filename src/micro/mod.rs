//! Micro-kernels: precompiled inner loops. The shape of the data that an innermost loop moves
//! decides which micro-kernel it calls, once for all of its iterations.
//!
//! Cranelift has no vector wider than 16 bytes. These loops are therefore written in Rust and
//! compiled with the instruction set of their [`Level`], such as AVX2; where that pays, the block
//! length is a const generic. Code that Cranelift makes reads the address of a micro-kernel from
//! its context, a table of constants and addresses. The micro-kernels with one meaning and one C
//! signature are a [`Family`], which lists the role of each parameter. A scalar reference, mostly a
//! loop over bytes named `scalar_reference`, defines what the micro-kernels of a family do. The
//! tests compare the micro-kernels with the scalar reference.
//!
//! Invariants of every micro-kernel:
//! * no byte outside the blocks is written, not even with its old value;
//! * no byte is read outside the blocks, except bytes of a gap between two bytes of blocks that are
//!   less than 4096 bytes apart, as such a gap lies on the pages of these two bytes;
//! * destination blocks that overlap hold at the end what they would hold if the blocks had been
//!   copied one after the other (only transposes, and permutations that unpack, need destination
//!   blocks that do not overlap);
//! * source and destination do not overlap, which callers ensure (MPI 5.0, section 4.1: a buffer is
//!   not both).
// The unsafe code copies through raw pointers, with instruction sets that are chosen at run time.
#![allow(unsafe_code)]

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
    /// Entries of 4 bytes, signed.
    I32 = 0,
    /// Entries of 8 bytes, signed.
    I64 = 1,
}

impl Width {
    /// Returns the width of entries that the lowest bit of `number` encodes.
    pub(crate) fn of_number(number: u8) -> Width {
        if number & 1 == 0 { Width::I32 } else { Width::I64 }
    }

    /// Returns the width of the entries of `column`.
    pub fn from_column(column: &Column) -> Width {
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

/// All families of micro-kernels.
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

/// Identity of a micro-kernel, which is a precompiled inner loop: plain data that plans, keys and
/// logs can hold.
///
/// The text form is for example `strided<8>.avx2` for blocks of 8 bytes. If the block length is an
/// argument of the C function, the text form has no length, as in `strided.baseline`. Further
/// examples: `rows<24>.i32.pack.avx2`, `blocks.i32.i32.i32.unpack.avx512`,
/// `permute.byte.pack.avx512`, `transpose<16>.avx2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Micro {
    family: &'static Family,
    /// Block length in bytes for which the code is made; 0 if the length is an argument of the C
    /// function.
    len: u16,
    /// Number of the variant for which the code is made. Each family of micro-kernels defines its
    /// own variants, for example the width of its offsets.
    variant: u8,
    direction: Direction,
    /// Level of instruction sets, such as AVX2, for which the code is made. It may be lower than
    /// the level that the caller asked for.
    level: Level,
}

impl Micro {
    /// Returns the micro-kernel of `family` for blocks of any length, with variant 0. This function
    /// does not check that such code exists; each family has a function of its own that chooses
    /// among the existing code.
    pub(super) fn new(family: &'static Family, direction: Direction, level: Level) -> Micro {
        Micro { family, len: 0, variant: 0, direction, level }
    }

    /// Returns `self` with another block length: the micro-kernel for blocks of `len` bytes, or for
    /// blocks of any length if `len` is 0.
    pub(super) fn with_length(self, len: u16) -> Micro {
        Micro { len, ..self }
    }

    /// Returns `self` with another variant: the micro-kernel for `variant`, a number whose meaning
    /// its family defines.
    pub(super) fn with_variant(self, variant: u8) -> Micro {
        Micro { variant, ..self }
    }

    /// Returns the family of the micro-kernel. All micro-kernels of a family have the same
    /// algorithm.
    pub fn family(self) -> &'static Family {
        self.family
    }

    /// Returns the roles of the parameters of the micro-kernel's C function, in the order of the
    /// parameters.
    pub fn parameters(self) -> &'static [Role] {
        (self.family.parameters)(self.direction)
    }

    /// Returns the block length in bytes for which the code is made, or `None` if the length is an
    /// argument of the C function.
    pub fn made_for(self) -> Option<u64> {
        (self.len > 0).then_some(u64::from(self.len))
    }

    /// Returns the number of the variant for which the code is made. The family of the micro-kernel
    /// defines what the number means.
    pub(crate) fn variant(self) -> u8 {
        self.variant
    }

    /// Returns what the micro-kernel does with the bytes of a block: it copies, reverses or
    /// combines them.
    pub fn transform(self) -> Transform {
        (self.family.transform)(self.variant)
    }

    /// Returns the direction in which bytes are moved.
    pub fn direction(self) -> Direction {
        self.direction
    }

    /// Returns the level of instruction sets, such as AVX2, for which the code is made.
    pub fn level(self) -> Level {
        self.level
    }

    /// Returns the address of the micro-kernel's code, whose C signature is that of its family. The
    /// address is the same for the life of the process; it is 0 if the architecture of this build
    /// has no such code.
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
