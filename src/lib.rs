//! ddtc, the derived datatype compiler: an MPI derived datatype becomes native pack and unpack code when it is committed.
//!
//! ```
//! fn main() -> ddtc::Result<()> {
//!     // One column of an 8 x 8 matrix of doubles: 8 blocks of 1 element, 8 elements apart.
//!     let double = ddtc::Datatype::named(ddtc::Named::Double);
//!     let column = ddtc::commit(&ddtc::Datatype::vector(8, 1, 8, &double)?)?;
//!     let matrix: Vec<u8> = (0..=255).cycle().take(8 * 8 * 8).collect();
//!     let mut packed = vec![0; column.packed_size(1)? as usize];
//!     column.pack(&matrix, 0, 1, &mut packed)?;
//!     let mut copy = vec![0; matrix.len()];
//!     column.unpack(&packed, &mut copy, 0, 1)?;
//!     assert!((packed.len() == 64) && (copy[64..72] == matrix[64..72]) && (copy[72..128] == [0; 56]));
//!     Ok(())
//! }
//! ```
//!
//! # The flow
//!
//! ```text
//! MPI_Datatype (envelope, contents) | constructors | text
//!   [decode]     -> Datatype             combiner tree: exactly the constructor arguments
//!   [lower]      -> LoopNest<Lowered>    loops and tables over copies; every node has a user and a packed address
//!   [refine]     -> LoopNest<Lowered, MemorySide>   two normal nests as one: from layout to layout without a stream between
//!   [normalize]  -> LoopNest<Normal>     canonical meaning; with the kernel kind it is the cache key
//!   [schedule]   -> Plan<Scheduled>      per direction and CPU level: order, unrolling, micro-kernels; the only cost model
//!   [legalize]   -> Plan<Legal>          only accesses that the target has
//!   [emit]       -> CompiledCode         machine code, by templates on x86-64, through Cranelift elsewhere
//!   [load]       -> Kernel               code in the arena, and the context that it reads
//!   cache        -> Committed            what packs and unpacks
//! beside it:  Datatype [interp] -> bytes   by the definition of the type map: the oracle
//!             nest, plan .eval() -> bytes  any phase can be evaluated
//!             LoopNest<Normal, Value> [apply] -> values   what a leaf operation does, where there is no kernel
//!             LoopNest<Normal> [walk] -> bytes   from any packed byte to any other: fallback, lazy tier, ends of ranges
//! ```
//!
//! # Rooms
//!
//! A room is of one kind: data, machine, state, pass, executor, pipeline, surface or support, and imports only the kinds that docs/ARCHITECTURE.md names for
//! it. Only [`engine`] imports passes and executors. A stage has one name: module, log line, timing label, filetest command, CLI verb.
//! docs/ARCHITECTURE.md has a paragraph per room. What has to do with code lies in [`code`](mod@code), what moves bytes without code of its own in [`exec`].
//!
//! | Room | What |
//! |---|---|
//! | [`error`] | what was called, which argument broke which rule |
//! | [`process`] | state: forks and limits: locks that a child never finds taken |
//! | [`datatype`] | data: the MPI type, free of any MPI library |
//! | [`column`](mod@column), [`filled`], [`count`], [`kind`], [`target`] | data: integer tables; borrowed arrays that are filled; counts in both forms of C; kernel kinds; CPU levels and cost constants |
//! | [`nest`], [`interval`], [`segments`] | data: what moves; which part of the stream; where it lies in memory |
//! | [`plan`] | machine: how it moves |
//! | [`micro`], [`arena`](code::arena), [`kernel`](code::kernel) | machine, unsafe: precompiled inner loops; executable memory; code with its context |
//! | [`decode`], [`lower`], [`refine`], [`normalize`], [`schedule`], [`legalize`], [`emit`](code::emit), [`load`](code::load) | passes: the stages, in order |
//! | [`walk`](exec::walk), [`apply`](exec::apply), [`interp`](exec::interp) | executors: production fallback and ranges; leaf operations on values; oracle |
//! | [`layout`], [`cache`], [`engine`] | state: a nest with its kernels; equal layouts are one; the pipeline, one line per stage |
//! | [`committed`], [`object`], [`tool`] | surfaces: pack and unpack; MPI objects; MPI_T's variables |
//! | [`calls`] | state: counters of pack and unpack calls, per thread, and only while one is asked for |
//! | [`files`] | state: files that the environment names, opened so that nobody can put another there |
//! | [`lexer`] | data: words, integers and punctuation of all text forms |
//! | [`corpus`] | named datatypes in the text notation |
//!
//! # Stability
//!
//! What is re-exported at the root is the interface. The rooms are public for the members of the workspace, tests, benchmarks
//! and people who look inside; they may change in any release.
//!
//! Unsafe code is denied here and allowed by name in the rooms of docs/SAFETY.md.
#![deny(unsafe_code)]

#[cfg(not(any(feature = "cranelift", target_arch = "x86_64")))]
compile_error!(
    "this architecture has no templates: switch on the feature `cranelift`, or every layout is walked"
);

pub mod cache;
pub mod calls;
pub mod code;
pub mod column;
pub mod committed;
pub mod corpus;
pub mod count;
pub mod datatype;
pub mod decode;
pub mod engine;
pub mod error;
pub mod exec;
pub mod files;
pub mod filled;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod interval;
pub mod kind;
pub mod layout;
pub mod legalize;
pub mod lexer;
pub mod lower;
pub mod micro;
pub mod nest;
pub mod normalize;
pub mod object;
pub mod plan;
pub mod process;
pub mod refine;
pub mod schedule;
pub mod segments;
pub mod target;
pub mod tool;

pub use code::kernel::{Entry, Kernel};
pub use committed::{Committed, CommittedOperation, LayoutCopy};
pub use datatype::{Combiner, Datatype, Distribution, Named, Order};
pub use engine::{Config, Counters, Engine, Mode};
pub use error::{Error, ErrorClass, Result};
pub use kind::{Direction, Kind, Operation};
pub use target::Level;

/// Compiles `t` in the default engine ([`Engine::global`]) and returns what packs and unpacks it (MPI 5.0, 5.1.9,
/// `MPI_Type_commit`).
///
/// # Errors
/// Only faults of ddtc: a datatype that exists can be committed, and what cannot be compiled is walked.
pub fn commit(t: &Datatype) -> Result<Committed> {
    Engine::global().commit(t)
}

/// The example of README.md, run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
