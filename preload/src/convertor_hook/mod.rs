//! Open MPI's convertor hook, by which compiled code packs and unpacks the bytes of Open MPI's
//! requests, wherever in Open MPI they are made.
//!
//! Open MPI has a *convertor* for each request. It is a structure with the address of the request's
//! *mover*, the function that packs or unpacks the request's bytes. Two exported functions of Open
//! MPI, `opal_convertor_prepare_for_send` and `_recv`, choose the mover. ddtc defines functions of
//! these names, which are found before Open MPI's ([`interposed`]). Open MPI may have chosen its
//! generic mover, which handles any non-contiguous type. If it has, and if the type is ready
//! ([`crate::served`], [`ready`]), ddtc's functions store ddtc's mover instead ([`mover`]).
//! Convertors are read and written at offsets ([`layout`]) that are checked in every process before
//! their first use ([`proof`]). A sender may end a piece of a message only where an element of Open
//! MPI's description of the type ends; [`crate::cuts`] finds these places. With `DDTC_HOOK=check`
//! Open MPI's mover also moves each piece, and the bytes of both movers are compared ([`shadow`]).
//!
//! The rest of ddtc's preload library uses only the module [`hook`]. The section "Inside Open MPI"
//! of docs/SAFETY.md has the rules that make the hook sound.

mod commits;
mod described;
mod description;
mod first;
mod functions;
mod hook;
mod host;
mod interposed;
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

pub(crate) const OPEN_MPI: hook::OpenMpiHook = hook::OpenMpiHook;
