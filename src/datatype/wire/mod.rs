//! The wire form: a datatype as bytes that any machine can read. It serves to send a datatype to
//! the target of one-sided operations or to store it in a file.
//!
//! ```text
//! header     "ddtw", version (2 bytes), 0 (2), length of the whole form (8), structural hash of the root (16)
//! nodes      their number, then each once, children before parents, the root last
//! checksum   XXH3-64 of all before it
//! ```
//!
//! Everything is little-endian. A node consists of three parts: its tag, with [`LARGE`] added if
//! the node is a large-count one; its children, each as the distance back in the list of nodes; and
//! its arguments. (Only in a struct are the children after the other arguments, and their distances
//! are written as a column.) A number is a varint of 7 bits per byte, low bits first; a signed
//! number has its sign in the lowest bit. An array of numbers is written as a column: a byte with
//! the width of an entry, and then all entries in 1, 2, 4 or 8 bytes each, the smallest width that
//! holds all of them. The number of entries of the columns is written once per node. A named type
//! is written as its size, alignment and name, so that a reader whose type of this name is
//! different refuses the form. An f90 type has the named type that it stands for as a child, for
//! the same reason.
//!
//! The reader gets a datatype that is equal to the writer's in every respect: combiners, arguments,
//! bounds that an MPI library decided, sharing, and which nodes are large-count ones. A reader
//! checks every number before it allocates anything for it, so time and memory are linear in the
//! length of the form (docs/IR.md, "Wire form").
//!
//! Invariant: equal numbers are written as equal bytes, because a varint of several bytes never
//! ends with a zero byte. `read` and `write` go through the arguments in the same order.

mod read;
mod write;

/// First bytes of every wire form.
const MAGIC: [u8; 4] = *b"ddtw";
/// Version of the format. It is the only version that is written or read.
const VERSION: u16 = 1;
/// Number of bytes of a form before its nodes.
const HEADER: usize = 32;
/// Number of bytes of a form after its nodes.
const CHECKSUM: usize = 8;
/// Number that is added to the tag of a large-count node: a node that a large-count constructor
/// made, or in which a count (or the size, rank or grid of a darray) does not fit in an int.
const LARGE: u8 = 0x80;

/// Tags of nodes. A number that is the tag of a constructor is never changed, and never used for
/// another constructor. The numbers are not part of any other interface.
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
