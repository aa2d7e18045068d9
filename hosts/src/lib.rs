//! Knowledge about MPI libraries: differences between their C interfaces, known faults, costs, and
//! which of their messages get faster if they are packed by compiled code first.
//!
//! The preload library, the command-line tool and the fuzzer of MPI libraries (`hunt`) share these
//! tables and look-ups. No module of the library `ddtc` imports them, because `ddtc` does not
//! depend on any MPI library.
//!
//! | Module | Contents |
//! |---|---|
//! | [`abi`] | handles, statuses, constants and combiners of MPICH, Open MPI and MPI 5.0 |
//! | [`counted_calls`] | table of the wrapped functions that have a form with `MPI_Count` |
//! | [`policy`] | table of the messages that get faster if they are packed first |
//! | [`faults`] | table of datatypes whose bytes an MPI library is known to move wrongly |
//! | [`fenced`] | memory between two inaccessible pages |
//! | [`pieces`] | mean number of bytes that MPICH moves with one call in a message in pieces |
//! | [`places`] | comparison of the bytes that an MPI library moves with the type map |
//! | [`layer`] | groups of functions that a PMPI layer takes together |
//! | [`bypass`] | reasons why the preload library bypasses a call, in words |
//! | [`report`] | report of the preload library about one program: data, text of one screen, JSON |
//! | [`variables`] | environment variables that have new names |
//! | [`loaded`] | an MPI library that this process loads by its file name |
//! | [`mpi_functions`] | table of the functions that concern requests, and their treatment |
//! | [`profile`] | properties of each MPI library: packed form, treatment of errors, costs |
//! | [`tried`] | kinds of calls that are right when converted, for each release that was tried |
//! | [`proof`] | permissions of `ddtc tune` for MPI libraries that were not tried |
//! | [`transport`] | transport between the ranks of a job, by the variables that choose it |
//! | [`library`] | search for the file of the preload library |
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
pub mod pieces;
pub mod places;
pub mod policy;
pub mod profile;
pub mod proof;
pub mod report;
pub mod transport;
pub mod tried;
pub mod variables;
