//! Modules of the library for the members of the workspace, the integration tests and the benchmarks, which use more than its interface.
//!
//! The feature `internal` makes this module public. Nothing in it belongs to the interface: it may change in any release, and a program
//! outside this workspace that names it has nothing to rely on. docs/ARCHITECTURE.md describes the modules.
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
//! A room is a module of the library. It is of one kind: data, machine, state, pass, executor, pipeline, surface or support, and
//! imports only the kinds that docs/ARCHITECTURE.md names for it. Only [`engine`] imports passes and executors. A stage has one name: module, log line, timing label, filetest command, CLI verb.
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

pub mod methods;

/// Declares public modules of the names of private ones, with all that these declare as public.
macro_rules! reexport {
    ($($(#[$attribute:meta])* $module:ident)*) => {
        $($(#[$attribute])* pub mod $module { pub use crate::$module::*; })*
    };
}

reexport! {
    cache calls code column committed corpus count datatype
    decode engine error exec files filled interval kind
    layout legalize lexer lower micro nest normalize object
    plan process refine schedule segments target tool
}
#[cfg(any(test, feature = "fuzzing"))]
reexport! { fuzzing }
