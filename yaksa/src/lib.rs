//! Replacement for yaksa, the library with which MPICH packs and unpacks datatypes. It has the C
//! interface of yaksa, and ddtc does the work. If MPICH was built with an external yaksa (MPICH 4.0
//! to 5.0), it can load this library in place of yaksa's `libyaksa.so.0`. This library packs and
//! unpacks data, with and without reductions, lists the contiguous pieces of the data, and
//! serializes datatypes. docs/YAKSA.md says what is the same as in yaksa, what differs, and how to
//! exchange the libraries.
//!
//! The handles of types and requests, and the codes of operations, are 64-bit numbers, which are
//! never used as addresses. Handles of info objects have a pointer type in C, but are never used as
//! addresses, either. A type is stored as the arguments of its constructor, its size and its
//! bounds. It is converted to a `Datatype` of ddtc when a call needs one, and its code is compiled
//! after enough bytes have been moved. Before the first call the library does nothing, apart from
//! what the loader does. It reads no environment variables.
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
