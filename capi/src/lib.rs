//! The C ABI of ddtc: MPI's object model for datatypes, which an MPI library or another runtime can
//! embed. `include/ddtc.h` documents the functions, and `include/ddtc_cuda.h` those that pack
//! and unpack in device memory.
//!
//! The macro `arguments::export` defines nearly all exports. Such an export checks its arguments,
//! catches panics, and returns 0, an MPI error class, or the code that an attribute callback of the
//! program returned. The message of the last error is kept per thread for `ddtc_error_string`. A
//! test in `guard` lists the exports that are defined without the macro.
//!
//! Loading the library has no effect. Before the first call, no constructor of the library runs, no
//! thread is started and no environment variable is read.
//!
//! `ddtc::internal::object` holds the datatypes, and `ddtc::internal::tool` the variables of the
//! tool interface. This crate holds the other objects that an MPI program makes: info objects
//! (`info`), error handlers (`handlers`), error codes (`codes`) and reduction operations
//! (`reduce`).
#![allow(clippy::missing_safety_doc)] // The headers document the contract of each function.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles, MPI_Aint and MPI_Count are 64-bit here");

mod alloc;
mod arguments;
mod attributes;
mod classes;
mod codes;
mod config;
mod construct;
mod copy;
mod cuda;
mod decode;
mod embed;
mod errors;
mod exchange;
mod external;
mod fortran;
mod guard;
mod handlers;
mod info;
mod introspect;
mod numbered;
mod pack;
mod query;
mod reduce;
mod segments;
mod tool;
