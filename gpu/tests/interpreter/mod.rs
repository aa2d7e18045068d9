//! Interpreter of the subset of PTX that ddtc prints, from its text alone: it shares no code with
//! the printer.
//!
//! A module that contains anything else is refused ([`Module::parse`]). A run ([`Module::run`]) is
//! refused as soon as it
//!
//! * accesses memory outside of the regions of [`Memory`],
//! * accesses an address that is not a multiple of the width of the access,
//! * reads a register that was not set,
//! * shifts by 32 bits or more, or
//! * writes a byte that another thread has written.
//!
//! Source: PTX ISA 7.0, sections 5 (state spaces), 9.7.1 (integer arithmetic), 9.7.8 (data
//! movement).

mod execute;
mod memory;
mod parse;

pub(crate) use memory::Memory;
pub(crate) use parse::Module;
