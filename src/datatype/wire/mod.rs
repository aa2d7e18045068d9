//! The wire form: a datatype as bytes that any machine reads, for a target of one-sided operations or a file.
//!
//! ```text
//! header     "ddtw", version (2 bytes), 0 (2), length of the whole form (8), structural hash of the root (16)
//! nodes      their number, then each once, children before parents, the root last
//! checksum   XXH3-64 of all before it
//! ```
//!
//! All is little-endian. A node is its tag, with [`LARGE`] for one of a large-count constructor; its children, each as the distance back in
//! the list of nodes; its arguments. A number is a varint of 7 bits a byte, low ones first, signed ones with the sign in the lowest bit. An
//! array of numbers is a column: a byte that says the width, then every entry in 1, 2, 4 or 8 bytes, the fewest that hold all; its length is said once
//! a node. A named type is its size, alignment and name, so that a reader whose type of that name is another one refuses the form. An
//! f90 type has the named type that it stands for as a child, for the same reason.
//!
//! What is equal here is equal there: combiners, arguments, host bounds, sharing, and which constructors were large-count ones. Reading checks
//! every number before anything is reserved for it: time is linear in the form's length, and so is memory (docs/IR.md, "Wire form").
//!
//! Invariant: equal numbers are equal bytes: a varint has no zero byte at its end. `read` and `write` go through arguments in the same order.

mod read;
mod write;

/// First bytes of a form.
const MAGIC: [u8; 4] = *b"ddtw";
/// The version that is written, and the only one that is read.
const VERSION: u16 = 1;
/// Bytes before the nodes.
const HEADER: usize = 32;
/// Bytes after them.
const CHECKSUM: usize = 8;
/// Added to the tag of a node that a large-count constructor made.
const LARGE: u8 = 0x80;

/// Tags of nodes. Numbers are given once and for all; they are no part of any other interface.
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
