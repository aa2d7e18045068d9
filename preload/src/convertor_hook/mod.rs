//! Open MPI's convertor hook: compiled code moves the bytes of Open MPI's requests, wherever in the
//! library they are made.
//!
//! Open MPI has a *convertor* for each request, a structure with the address of the function that
//! moves the request's bytes, its *mover*. Two exported functions,
//! `opal_convertor_prepare_for_send` and `_recv`, choose the mover. This library defines functions
//! of the same names, which are found before Open MPI's ([`entrance`]). If Open MPI has chosen its
//! generic mover, which handles any non-contiguous type, and the type is ready ([`crate::served`],
//! [`ready`]), they store ddtc's mover instead ([`mover`]). Convertors are read and written at
//! offsets ([`layout`]) that are checked in every process before their first use ([`proof`]). A
//! sender may end a piece of a message only where an element of Open MPI's description of the type
//! ends; [`crate::cuts`] finds these places. With `DDTC_HOOK=check` Open MPI's mover also moves
//! each piece, and the bytes are compared ([`shadow`]).
//!
//! The rest of the library uses only the [`hook`]. docs/SAFETY.md, "Inside Open MPI", has the rules
//! that make this sound.

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
