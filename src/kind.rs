//! Kernel kinds: what a kernel does with the bytes a nest names, and where it enters.
//!
//! A kind is a leaf operation times an entry. Today: pack and unpack, over whole instances. Swap, combine and user-to-user
//! leaves and window entries are the same nests under another kind (docs/IR.md shows each on one example).

use std::fmt;

/// Leaf operation of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// User memory to the packed stream.
    Pack,
    /// Packed stream to user memory.
    Unpack,
}

impl Direction {
    /// Both directions, pack first.
    pub const BOTH: [Direction; 2] = [Direction::Pack, Direction::Unpack];

    /// `pack` or `unpack`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Pack => "pack",
            Direction::Unpack => "unpack",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
