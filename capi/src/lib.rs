//! The C ABI of ddtc: MPI's object model over datatypes for a runtime to embed. `include/ddtc.h` is its documentation, and
//! `include/ddtc_cuda.h` that of packing in device memory.
//!
//! Every export checks its arguments, catches panics and returns an MPI error class; the message is kept per thread for
//! `ddtc_error_string`. Nothing happens before the first call: no constructor, no thread, no environment variable.
//! Datatypes live in `ddtc::internal::object`, tool variables in `ddtc::internal::tool`. What a program of MPI needs beside them lives here: info
//! objects (`info`), error handlers (`handlers`), error codes of its own (`codes`), operations of its own (`reduce`).
#![allow(clippy::missing_safety_doc)] // The contracts stand in the headers, function by function.

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
