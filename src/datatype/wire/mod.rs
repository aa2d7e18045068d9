//! The wire form: a datatype as bytes that any machine can read, for the target of one-sided
//! operations or for a file.
//!
//! ```text
//! header     "ddtw", version (2 bytes), 0 (2), length of the whole form (8), structural hash of the root (16)
//! nodes      their number, then each once, children before parents, the root last
//! checksum   XXH3-64 of all before it
//! ```
//!
//! Everything is little-endian. A node consists of its tag, with [`LARGE`] added if a large-count
//! constructor made it; its children, each as the distance back in the list of nodes; and its
//! arguments. A number is a varint of 7 bits per byte, low bits first; a signed one has its sign in
//! the lowest bit. An array of numbers is a column: a byte with the width, then all entries in 1,
//! 2, 4 or 8 bytes each, the smallest width that holds all of them. The length of the columns is
//! written once per node. A named type is written as its size, alignment and name, so that a reader
//! whose type of this name is different refuses the form. An f90 type has the named type that it
//! stands for as a child, for the same reason.
//!
//! Whatever is equal at the writer is equal at the reader: combiners, arguments, bounds that an MPI
//! library decided, sharing, and which constructors were large-count ones. A reader checks every
//! number before it allocates anything for it, so time and memory are linear in the length of the
//! form (docs/IR.md, "Wire form").
//!
//! Invariant: equal numbers are equal bytes, since a varint has no zero byte at its end. `read` and
//! `write` go through the arguments in the same order.

mod read;
mod write;

/// First bytes of every wire form.
const MAGIC: [u8; 4] = *b"ddtw";
/// Version of the format that is written, and the only one that is read.
const VERSION: u16 = 1;
/// Number of bytes before the nodes.
const HEADER: usize = 32;
/// Number of bytes after the nodes.
const CHECKSUM: usize = 8;
/// Added to the tag of a node that was made by a large-count constructor.
const LARGE: u8 = 0x80;

/// Tags of nodes. A number that was given to a constructor is never changed or used for another
/// one. The numbers are not part of any other interface.
mod tag {
    pub(super) const NAMED: u8 = 1;
    pub(super) const DUP: u8 = 2;
    pub(super) const CONTIGUOUS: u8 = 3;
    pub(super) const VECTOR: u8 = 4;
    pub(super) const HVECTOR: u8 = 5;
    pub(super) const HVECTOR_INTEGER: u8 = 6;
    pub(super) const INDEXED: u8 = 7;
    pub(super) const HINDEXED: u8 = 8;
    pub(super) const HINDEXED_INTEGER: u8 = 9;
    pub(super) const INDEXED_BLOCK: u8 = 10;
    pub(super) const HINDEXED_BLOCK: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const STRUCT_INTEGER: u8 = 13;
    pub(super) const SUBARRAY: u8 = 14;
    pub(super) const DARRAY: u8 = 15;
    pub(super) const F90_REAL: u8 = 16;
    pub(super) const F90_COMPLEX: u8 = 17;
    pub(super) const F90_INTEGER: u8 = 18;
    pub(super) const RESIZED: u8 = 19;
    pub(super) const BOUNDS: u8 = 20;
    pub(super) const VALUE_INDEX: u8 = 21;
}

#[cfg(test)]
mod tests;
