//! ddtc behind the interface of yaksa: put in the place of `libyaksa.so.0`, it packs, lists, flattens and reduces for an MPI library that was built
//! with an external yaksa (MPICH 4.0 to 5.0). docs/YAKSA.md says what is as there, what is not, and how to swap.
//!
//! Types, operations and requests are 64-bit numbers and are never followed; so are info objects, though C calls them pointers. A type is its
//! arguments and a few numbers; it becomes a tree of ddtc by its first call that moves bytes, and is compiled once enough bytes went through its layout.
//! Nothing happens before the first call but what the loader does, and nothing is read from the environment.
#![allow(clippy::missing_safety_doc)] // The contracts are those of the interface, function by function in docs/YAKSA.md.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("intptr_t is 64-bit here");

mod abi;
mod arrays;
mod builtin;
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
