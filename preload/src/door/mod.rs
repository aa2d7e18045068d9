//! The door into Open MPI's convertors: its requests move their bytes by our kernels, wherever in the library they are made.
//!
//! Open MPI chooses for each request which function moves its bytes, in `opal_convertor_prepare_for_send` and `_recv`, and stores its address in the
//! request's convertor. Both are exported, so this library stands before them ([`entrance`]): where the host has chosen its generic mover and the type is
//! ready ([`crate::served`], [`ready`]), ours is stored instead ([`mover`]). The host's structures are used by offsets ([`layout`]) that were measured in this process
//! before the first use ([`proof`]). Where an element of the host's description ends, by which what is sent is cut, says [`crate::cuts`]. `DDTC_INSIDE=check` sends
//! each piece by the host's mover too ([`shadow`]).
//! The rest of the library knows it as a [`hook`] alone. docs/SAFETY.md, "Inside Open MPI".

mod commits;
mod described;
mod description;
mod entrance;
mod first;
mod functions;
mod hook;
mod host;
mod layout;
mod lists;
mod mover;
mod nearness;
#[cfg(debug_assertions)]
mod planted;
mod proof;
mod ready;
mod shadow;
mod standing;
mod unseen;

pub(crate) const OPEN_MPI: hook::Door = hook::Door;
