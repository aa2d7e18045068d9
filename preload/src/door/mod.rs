//! The door into Open MPI's convertors: its requests move their bytes by our kernels, wherever in the library they are made.
//!
//! Open MPI chooses for each request which function moves its bytes, in `opal_convertor_prepare_for_send` and `_recv`, and stores its address in the
//! request's convertor. Both are exported, so this library stands before them ([`entrance`]): where the host has chosen its generic mover and the type is
//! ready ([`crate::served`], [`ready`]), ours is stored instead ([`mover`]). The host's structures are used by offsets ([`layout`]) that were measured in this process
//! before the first use ([`proof`]). Where an element of the host's description ends, by which what is sent is cut, says [`crate::cuts`]. `DDTC_INSIDE=check` sends
//! each piece by the host's mover too ([`shadow`]).
//! docs/SAFETY.md, "Inside Open MPI".

pub(crate) mod commits;
pub(crate) mod described;
mod description;
pub(crate) mod entrance;
mod first;
pub(crate) mod functions;
pub(crate) mod host;
pub(crate) mod layout;
mod lists;
pub(crate) mod mover;
mod nearness;
#[cfg(debug_assertions)]
mod planted;
pub(crate) mod proof;
pub(crate) mod ready;
pub(crate) mod shadow;
mod standing;
pub(crate) mod unseen;
