//! MPI libraries as ddtc meets them: what differs between their C interfaces, one that is loaded by its file, and which of their messages gain when
//! they are packed first.
//!
//! Data and look-ups that the preload library, the command and the hunter share. No room of the library `ddtc` imports them: it knows no host.
//!
//! | Module | What |
//! |---|---|
//! | [`abi`] | widths and values of handles, statuses, constants and combiners, of MPICH, Open MPI and the standard ABI |
//! | [`counted_calls`] | the wrapped functions that have a form with `MPI_Count`: names, completion and roles of arguments |
//! | [`policy`] | which messages gain when they are packed first: read by the preload library, written by `ddtc tune` |
//! | [`faults`] | datatypes whose bytes a library is known to move wrongly |
//! | [`fenced`] | memory between inaccessible pages |
//! | [`places`] | compares where a library moves the bytes of a datatype with the definition |
//! | [`layer`] | the groups of functions that a PMPI layer takes together |
//! | [`bypass`] | why the preload library bypassed a call, in words |
//! | [`report`] | what the preload library did for a program: data, text of one screen, JSON |
//! | [`variables`] | environment variables that have got new names |
//! | [`loaded`] | an MPI library that this process loads by its file |
//! | [`mpi_functions`] | wrapped functions and those that take a request, a status or a message, and what the preload library does about each |
//! | [`profile`] | what is known of each MPI library: which calls may be converted, form of packed bytes, costs |
//! | [`library`] | where the preload library is |
#![deny(unsafe_code)]

pub mod abi;
pub mod bypass;
pub mod counted_calls;
pub mod faults;
pub mod fenced;
pub mod layer;
pub mod library;
pub mod loaded;
pub mod mpi_functions;
pub mod places;
pub mod policy;
pub mod profile;
pub mod report;
pub mod variables;
