//! Interpreter of the subset of PTX that ddtc prints. It uses only the text of a kernel, and shares
//! no code with the printer.
//!
//! If a module contains anything outside of this subset, [`Module::parse`] returns an error. A run
//! of the kernel ([`Module::run`]) ends with an error as soon as a thread
//!
//! * accesses global memory outside of the regions of [`Memory`], or shared memory outside of the
//!   declared array,
//! * accesses an address that is not a multiple of the width of the access,
//! * reads a register that was not set,
//! * shifts by 32 bits or more,
//! * divides by zero,
//! * writes a byte that another thread of the same grid has written,
//! * uses `ld.global.nc`, which reads through the cache for read-only data, for a byte that a
//!   thread of the same grid has written,
//! * reads a byte of shared memory that was not set,
//! * accesses a byte of shared memory that another thread of the block has accessed since the last
//!   barrier, unless both accesses are reads, or
//! * skips a barrier.
//!
//! Source: PTX ISA 7.0, sections 5 (state spaces), 9.7.1 (integer arithmetic), 9.7.8 (data
//! movement).

mod execute;
mod memory;
mod parse;
mod shared;

pub(crate) use memory::Memory;
pub(crate) use parse::Module;
