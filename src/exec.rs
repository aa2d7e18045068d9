//! Executors: code that moves bytes directly by a description of a layout, without machine code
//! generated for that layout. [`nest_interpreter`] executes nests of bytes and [`apply`] nests of
//! values. [`interp`] executes datatypes by the definitions of MPI and judges everything else.

#[cfg(feature = "operations")]
pub mod apply;
pub mod interp;
pub mod nest_interpreter;
