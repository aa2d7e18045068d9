//! Code: made of plans ([`emit`]), put into memory ([`arena`], [`load`]), and called ([`kernel`]).

pub mod arena;
pub mod emit;
pub mod kernel;
pub mod load;
