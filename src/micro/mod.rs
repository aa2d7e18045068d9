//! Micro-kernels: precompiled inner loops, chosen by what they move and called once per innermost loop.
//!
//! Cranelift has no vector wider than 16 bytes; these loops are Rust with the instruction set of their [`Level`], the block
//! length const-generic where that pays. Compiled code reaches one by its address (`iconst`, `call_indirect`: no
//! relocation), so every family has one C signature. Each family has a byte-loop twin that is its meaning.
//!
//! Invariants of every micro-kernel:
//! * no byte outside the blocks is written, not even with its old value;
//! * no byte is read outside the blocks, except gap bytes between two mapped bytes less than 4096 bytes apart;
//! * destination blocks that overlap end up as if the blocks were copied one after the other (a transpose and an unpacked
//!   pattern are for disjoint destinations only);
//! * source and destination do not overlap (MPI 5.0, section 4.1: a buffer is not both).
#![allow(unsafe_code)] // Copies through raw pointers and instruction sets chosen at run time.

mod block;
pub mod blocks;
mod constant_length;
mod cursor;
mod isa;
pub mod memory;
pub mod pattern;
pub mod rows;
mod run_time_length;
pub mod stream;
pub mod strided;
#[cfg(test)]
mod testing;
pub mod transpose;

use std::fmt;

use crate::column::Column;
pub use crate::kind::Direction;
use crate::target::Level;

pub(crate) use block::run_time as copy;
pub use blocks::Widths;
pub use memory::Memory;
pub use pattern::{Granule, Pattern};

/// Width of the entries of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 4 bytes, signed.
    I32,
    /// 8 bytes, signed.
    I64,
}

impl Width {
    /// The width that `column` is stored in.
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

/// What a micro-kernel moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Equal blocks at a constant stride on both sides: [`strided::Function`].
    Strided,
    /// Equal blocks at listed user offsets: [`rows::Function`].
    Rows(Width, Direction),
    /// Blocks of listed lengths at listed offsets: [`blocks::Function`].
    Blocks(Widths, Direction),
    /// Instances of one small layout: [`pattern::Function`].
    Pattern(Granule, Direction),
    /// A matrix whose rows become columns: [`transpose::Function`].
    Transpose,
    /// Equal blocks at a constant stride, packed past the caches: [`stream::Function`].
    Stream,
}

/// A micro-kernel by identity: plain data that plans, keys and logs can hold.
///
/// Prints as `strided<8>.avx2`; without a length where the length is an argument: `strided.baseline`, `rows<24>.i32.pack.avx2`,
/// `blocks.i32.i32.i32.unpack.avx512`, `pattern.byte.pack.avx512`, `transpose<16>.avx2`, `stream.avx512`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Micro {
    family: Family,
    /// Block length in bytes that the code is made for; 0 where it is an argument.
    len: u16,
    /// The level that the code is made for, which may be lower than the one asked for.
    level: Level,
}

impl Micro {
    /// The micro-kernel for blocks of `len` bytes at constant strides: made for that length where there is one.
    pub fn strided(len: u64, level: Level) -> Micro {
        let (len, level) = strided::choose(len, level);
        Micro { family: Family::Strided, len, level }
    }

    /// The micro-kernel for blocks of `len` bytes at user offsets listed in a column of `width`.
    pub fn rows(len: u64, width: Width, direction: Direction, level: Level) -> Micro {
        let (len, level) = rows::choose(len, level);
        Micro { family: Family::Rows(width, direction), len, level }
    }

    /// The micro-kernel for blocks whose offsets and lengths are listed in columns of `widths`.
    pub fn blocks(widths: Widths, direction: Direction, level: Level) -> Micro {
        Micro { family: Family::Blocks(widths, direction), len: 0, level }
    }

    /// The micro-kernel for instances of `pattern`.
    ///
    /// # Panics
    /// To unpack, if the pattern has overlapping parts.
    pub fn pattern(pattern: &Pattern, direction: Direction) -> Micro {
        assert!(
            direction == Direction::Pack || pattern.unpacks(),
            "a mask has no order for overlapping parts"
        );
        Micro { family: Family::Pattern(pattern.granule(), direction), len: 0, level: pattern.level() }
    }

    /// The micro-kernel for transposing elements of `len` bytes, if one is made for that length. Only for destinations whose
    /// elements do not overlap.
    pub fn transpose(len: u64, level: Level) -> Option<Micro> {
        let (len, level) = transpose::choose(len, level)?;
        Some(Micro { family: Family::Transpose, len, level })
    }

    /// The micro-kernel that packs blocks of any length, at a constant stride, past the caches.
    pub fn stream(level: Level) -> Micro {
        Micro { family: Family::Stream, len: 0, level }
    }

    /// What it moves.
    pub fn family(self) -> Family {
        self.family
    }

    /// Block length in bytes that the code is made for; none where the length is an argument.
    pub fn made_for(self) -> Option<u64> {
        (self.len > 0).then_some(u64::from(self.len))
    }

    /// The level that the code is made for.
    pub fn level(self) -> Level {
        self.level
    }

    /// Address of the code, of the C signature of its family; the same for the life of the process.
    pub fn address(self) -> usize {
        match self.family {
            Family::Strided => strided::get(self.len, self.level) as usize,
            Family::Rows(width, direction) => rows::get(self.len, width, direction, self.level) as usize,
            Family::Blocks(widths, direction) => blocks::function(widths, direction, self.level) as usize,
            Family::Stream => stream::function(self.level) as usize,
            // A pattern or a transpose exists only where its code does.
            Family::Transpose => transpose::get(self.len, self.level).map_or(0, |f| f as usize),
            Family::Pattern(granule, direction) => {
                pattern::function(granule, direction, self.level).map_or(0, |f| f as usize)
            }
        }
    }
}

impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.family {
            Family::Strided => "strided",
            Family::Rows(..) => "rows",
            Family::Blocks(..) => "blocks",
            Family::Pattern(..) => "pattern",
            Family::Transpose => "transpose",
            Family::Stream => "stream",
        })?;
        if let Some(len) = self.made_for() {
            write!(f, "<{len}>")?;
        }
        match self.family {
            Family::Strided | Family::Transpose | Family::Stream => {}
            Family::Rows(width, direction) => write!(f, ".{width}.{direction}")?,
            Family::Pattern(granule, direction) => write!(f, ".{granule}.{direction}")?,
            Family::Blocks(w, direction) => write!(f, ".{}.{}.{}.{direction}", w.user, w.packed, w.len)?,
        }
        write!(f, ".{}", self.level)
    }
}
