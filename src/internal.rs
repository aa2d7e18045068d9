//! The modules of the library, for the members of the workspace, the integration tests and the
//! benchmarks, which use more than the public interface.
//!
//! The feature `internal` makes this module public. Nothing in this module belongs to the public
//! interface, and everything may change in any release. docs/ARCHITECTURE.md describes the modules.
//!
//! # From a datatype to code
//!
//! ```text
//! MPI_Datatype (envelope, contents) | constructors | text
//!   [decode]     -> Datatype             combiner tree: exactly the constructor arguments
//!   [lower]      -> LoopNest<Lowered>    loops and tables over copies, with user and packed offsets
//!   [refine]     -> LoopNest<Lowered, MemorySide>   two normal nests joined, for direct copies
//!   [normalize]  -> LoopNest<Normal>     canonical form; with the operation, the cache's key
//!   [schedule]   -> Plan<Scheduled>      a plan for each direction and CPU level: order,
//!                                        unrolling, micro-kernels; the only cost model
//!   [legalize]   -> Plan<Legal>          only memory accesses that the target has
//!   [emit]       -> CompiledCode         by templates on x86-64, by Cranelift elsewhere
//!   [load]       -> Kernel               code in executable memory, with the context that it reads
//!   cache        -> Committed            what packs and unpacks
//!
//! without compiled code:
//!   Datatype [interp] -> bytes                  reference interpreter, by the type map
//!   nest, plan .eval() -> bytes                 evaluators of every phase, for tests
//!   LoopNest<Normal, Value> [apply] -> values   interpreter for operations on values
//!   LoopNest<Normal> [nest_interpreter] -> bytes   interpreter of nests, for any range of the
//!                                                  packed stream
//! ```
//!
//! # Modules
//!
//! Each module is of one kind: data, machine, state, pass, executor, pipeline, surface or support.
//! A module imports only modules of the kinds that docs/ARCHITECTURE.md allows for its own kind;
//! only [`engine`] imports passes and executors. A stage of the compiler has the same name
//! everywhere: as a module, in log lines, timings and filetests, and as a subcommand of `ddtc`.
//! docs/ARCHITECTURE.md has a paragraph about each module. Modules for generated code are in
//! [`code`](mod@code), modules that move bytes without generated code in [`exec`].
//!
//! | Module | Kind | What it contains |
//! |---|---|---|
//! | [`error`] | data | Errors: which call refused which argument, and by which rule |
//! | [`process`] | state | Locks that a fork waits for, so that only a child marked as inconsistent may inherit a held one; limits on the size of files |
//! | [`datatype`] | data | MPI datatypes, independent of any MPI library |
//! | [`column`](mod@column) | data | Immutable tables of integers |
//! | [`filled`] | data | Borrowed arrays that are filled from their start |
//! | [`count`] | data | Counts in both forms of C, `int` and `MPI_Count` |
//! | [`kind`] | data | Kinds of kernels: direction and operation |
//! | [`target`] | data | CPU levels, and the constants of the cost model |
//! | [`nest`] | data | Loop nests: which bytes move |
//! | [`interval`] | data | Ranges of the packed stream |
//! | [`segments`] | data | Contiguous pieces of user memory |
//! | [`plan`] | machine | Plans: how the bytes move |
//! | [`micro`], [`arena`](code::arena), [`kernel`](code::kernel) | machine, unsafe | Precompiled inner loops; executable memory; code with its context |
//! | [`decode`], [`lower`], [`refine`], [`normalize`], [`schedule`], [`legalize`], [`emit`](code::emit), [`load`](code::load) | pass | The stages, in order |
//! | [`nest_interpreter`](exec::nest_interpreter) | executor | Interpreter of nests, used without a kernel and for ranges |
//! | [`apply`](exec::apply) | executor | Interpreter for operations on values |
//! | [`interp`](exec::interp) | executor | Reference interpreter of datatypes |
//! | [`layout`] | state | A nest with its kernels |
//! | [`cache`] | state | Cache of layouts; equal layouts are stored once |
//! | [`engine`] | pipeline | The compiler, with one line per stage |
//! | [`committed`], [`object`], [`tool`] | surface | Packing and unpacking; MPI's objects; variables of MPI_T |
//! | [`calls`] | state | Counters of pack and unpack calls, per thread, kept only while somebody asks for them |
//! | [`files`] | state | Files that the environment names, opened so that nobody can substitute another |
//! | [`lexer`] | data | Words, integers and punctuation of all text forms |
//! | [`corpus`] | data | Named datatypes in text notation |

pub mod methods;

/// Declares a public module for each private module, with the same name and with all public items
/// of the private module.
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
