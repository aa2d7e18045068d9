//! Executors, which move bytes without code of their own for a layout: nests of bytes ([`walk`]) and of values ([`apply`]), and the oracle ([`interp`]).

#[cfg(feature = "operations")]
pub mod apply;
pub mod interp;
pub mod walk;
