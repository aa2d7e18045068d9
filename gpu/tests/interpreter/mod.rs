//! Interpreter of the subset of PTX that ddtc prints, from its text alone: it shares no code with
//! the printer.
//!
//! A module that contains anything else is refused ([`Module::parse`]). A run is refused at the
//! first access outside of the regions of [`Memory`], access whose address is not a multiple of its
//! width, read of a register that was not set, shift of 32 bits and more, and byte that two threads
//! write ([`Module::run`]).
//!
//! Source: PTX ISA 7.0, sections 5 (state spaces), 9.7.1 (integer arithmetic), 9.7.8 (data
//! movement).

mod execute;
mod memory;
mod parse;

pub(crate) use memory::Memory;
pub(crate) use parse::Module;
