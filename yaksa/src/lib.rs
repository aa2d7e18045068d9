//! ddtc with the interface of yaksa. Loaded in place of `libyaksa.so.0`, this library packs, lists,
//! flattens and reduces for an MPI library that was built with an external yaksa (MPICH 4.0 to
//! 5.0). docs/YAKSA.md says what is the same as in yaksa, what differs, and how to exchange the
//! libraries.
//!
//! Types, operations and requests are 64-bit numbers, which are never used as addresses. Info
//! objects have a pointer type in C, but are never used as addresses either. A type is stored as
//! the arguments of its constructor and a few numbers. It is converted to a tree of ddtc when a
//! call needs that tree, and its code is compiled after enough bytes went through its layout.
//! Before the first call the library does nothing, apart from what the loader does, and it reads
//! nothing from the environment.
#![allow(clippy::missing_safety_doc)] // The contracts are those of the interface: docs/YAKSA.md.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("intptr_t is 64-bit here");

mod abi;
mod arrays;
mod builtin;
mod by_pieces;
mod call;
mod compile;
mod construct;
mod convert;
mod flatten;
mod info;
mod iov;
mod list;
mod moves;
mod node;
mod query;
mod received;
mod recent;
mod reduce;
mod request;
mod reshape;
mod startup;
mod table;
