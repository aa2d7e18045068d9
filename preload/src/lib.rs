//! `libddtc_preload.so`, which packs and unpacks the messages of an unmodified MPI program by
//! compiled code, above an unmodified MPI library.
//!
//! This preload library is loaded by `LD_PRELOAD`. It wraps functions of the MPI library that the
//! process uses, whichever that is: `MPI_Type_commit`, `MPI_Type_free`, `MPI_Type_dup`, `MPI_Pack`,
//! `MPI_Unpack`, point-to-point messages, collective calls, reads and writes of files, one-sided
//! operations, calls that complete requests, initialization, finalization and others. It decodes
//! committed types from the envelope and contents that the MPI library returns, compiles them, and
//! packs and unpacks by the compiled code.
//!
//! Invariant: a correct program never sees a wrong byte, a changed result or a new failure. A call
//! is handed to the MPI library unchanged unless its conversion is known to be right.
//! docs/CALLS.md says which functions are wrapped and which are not.
#![allow(missing_docs, unreachable_pub, reason = "exported symbols are MPI's, nothing else is public")]

mod atomic_ref;
mod bindings;
mod call_memory;
mod calls;
mod canary;
mod check;
mod comms;
mod completing;
mod conversions;
mod convert;
mod convertor_hook;
mod counted;
mod counting;
mod cuts;
mod deciding;
mod decision;
mod element_type;
mod eligible;
mod epoch;
#[cfg(debug_assertions)]
mod fences;
mod files;
mod forms;
mod fortran;
mod fortran_bridge;
mod fortran_types;
mod gapped;
mod gpu;
mod group;
mod guard;
mod handlers;
mod handles;
mod hook;
mod hooks;
mod host;
mod hotness;
mod introspect;
mod keyval;
mod known;
mod layers;
mod loader;
mod measured;
mod messages;
mod named_range;
mod neighbours;
mod numbers;
mod objects;
mod outcome;
mod overhead_budget;
mod own_types;
mod partial_element;
mod parts;
mod perf;
mod policy;
mod pool;
mod profile_cache;
mod proof;
mod reentrancy;
mod relative;
mod report;
mod reproducer;
mod requests;
mod reserve;
mod retired;
mod run;
mod scopes;
mod served;
mod settings;
mod signatures;
mod similar;
mod slots;
mod slow_path;
mod spawned;
mod stack;
mod staged;
mod status;
mod substitute;
mod table;
mod timed;
mod times;
mod timing;
mod tool;
mod types;
mod use_kind;
mod user_buffer;
mod users;
mod version;
mod warn;
mod windows;
mod wire_type;
mod worth;
mod wrap;
mod wrong_map;
