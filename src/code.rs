//! Machine code of plans: its generation ([`emit`]), the memory that holds it ([`arena`]), its
//! placement in that memory ([`load`]), and the callable result ([`kernel`]).

pub mod arena;
pub mod emit;
pub mod kernel;
pub mod load;
