//! ddtc, the derived datatype compiler, compiles MPI derived datatypes to native pack and unpack
//! code when they are committed.
//!
//! ```
//! fn main() -> ddtc::Result<()> {
//!     // One column of an 8 x 8 matrix of doubles: 8 blocks of 1 element, 8 elements apart.
//!     let double = ddtc::Datatype::of::<f64>();
//!     let column = ddtc::commit(&ddtc::Datatype::vector(8, 1, 8, &double)?)?;
//!     let matrix: Vec<u8> = (0..=255).cycle().take(8 * 8 * 8).collect();
//!     let mut packed = vec![0; column.packed_size(1)? as usize];
//!     column.pack(&matrix, 0, 1, &mut packed)?;
//!     let mut copy = vec![0; matrix.len()];
//!     column.unpack(&packed, 0, 1, &mut copy)?;
//!     assert!((packed.len() == 64) && (copy[64..72] == matrix[64..72]) && (copy[72..128] == [0; 56]));
//!     Ok(())
//! }
//! ```
//!
//! A datatype says which bytes of a buffer belong together: a column of a matrix, the halo of a
//! grid, or some fields of a structure. Packing copies these bytes to a contiguous buffer, which a
//! program sends or stores. Unpacking copies them back to their places, and does not change the
//! bytes in between.
//!
//! This crate needs no MPI library, and starts no thread unless [`Config::threads`] asks for some.
//! It generates code at run time, on 64-bit Linux. Building it needs Rust 1.95 or newer.
//!
//! # Pack a subarray
//!
//! 1. Describe the bytes by a [`Datatype`]. Its constructors are those of MPI:
//!    [`contiguous`](Datatype::contiguous), [`vector`](Datatype::vector),
//!    [`indexed`](Datatype::indexed), [`structure`](Datatype::structure),
//!    [`subarray`](Datatype::subarray) and others. They start from a basic type, which
//!    [`Datatype::of`] returns.
//! 2. Commit the datatype once with [`commit`], which compiles it. Equal layouts share their code.
//! 3. Call [`pack`](Committed::pack) and [`unpack`](Committed::unpack) as often as needed. Once the
//!    code exists, a call takes no lock and allocates no memory.
//!
//! ```
//! use ddtc::{Datatype, Order};
//!
//! # fn main() -> ddtc::Result<()> {
//! // A grid of 6 x 8 doubles, and in it the box of rows 1 to 4 and columns 6 to 7.
//! let (sizes, subsizes, starts) = ([6, 8], [4, 2], [1, 6]);
//! let part = Datatype::subarray(&sizes, &subsizes, &starts, Order::C, &Datatype::of::<f64>())?;
//! let part = ddtc::commit(&part)?;
//!
//! let grid: Vec<f64> = (0..48).map(f64::from).collect();
//! // Buffers are bytes. Crates such as bytemuck view numbers as bytes without copying them:
//! // `bytemuck::cast_slice(&grid)`, and `cast_slice_mut` for a grid that is unpacked to.
//! let user: Vec<u8> = grid.iter().flat_map(|x| x.to_ne_bytes()).collect();
//!
//! let mut packed = vec![0; part.packed_size(1)? as usize];
//! part.pack(&user, 0, 1, &mut packed)?;
//! let values: Vec<f64> = packed.chunks(8).map(|x| f64::from_ne_bytes(x.try_into().unwrap())).collect();
//! assert_eq!(values, [14.0, 15.0, 22.0, 23.0, 30.0, 31.0, 38.0, 39.0]);
//!
//! let mut copy = vec![0; user.len()];
//! part.unpack(&packed, 0, 1, &mut copy)?;
//! assert_eq!(copy[14 * 8..16 * 8], user[14 * 8..16 * 8]);
//! # Ok(())
//! # }
//! ```
//!
//! # Arguments
//!
//! Packing and unpacking take their arguments in the same order: source, origin, count,
//! destination.
//!
//! * **Origin** is the index in bytes, in the user's buffer, of displacement 0 of the first
//!   instance. It is 0 if the buffer begins where the datatype begins. So it is 0 for a subarray of
//!   the array in the buffer, whose starts are part of the datatype. It is not 0 if the datatype
//!   has negative displacements, or if it describes one of several equal parts of the buffer: the
//!   columns of a matrix of doubles are one datatype, and column `j` has the origin `8 * j`.
//! * **Count** is the number of instances of the datatype, which are [`extent`](Datatype::extent)
//!   bytes apart.
//! * The packed buffer may be longer than the packed bytes. What follows them is neither read nor
//!   written.
//! * The bounds of slices are checked: a call that would access bytes outside of a slice returns an
//!   [`Error`] and writes nothing. The methods whose names end in `_raw` take pointers, as MPI
//!   does, and leave the check to the caller.
//!
//! # More than pack and unpack
//!
//! | What | Where |
//! |---|---|
//! | Parts of a packed stream, in any order and from any thread | [`Committed::pack_range`], [`Committed::unpack_range`] |
//! | Copies from one layout to another without a packed buffer | [`Committed::direct`], [`LayoutCopy`] |
//! | The list of contiguous pieces, for `writev` or a network card | [`Committed::segments`], [`Segments`] |
//! | The portable representation external32 | [`Committed::for_operation`] with [`Operation::External32`] |
//! | Sums and other reductions while unpacking | [`Committed::for_operation`] with [`Operation::Reduce`], [`Committed::direct_reduce`] |
//! | A datatype as text or as portable bytes | [`Datatype`], [`Datatype::to_wire`] |
//! | Deferred compilation, limits of memory, several threads | [`Engine`], [`Config`] |
//!
//! # Features
//!
//! * `cranelift` (default): the general code generator. x86-64 has a generator of its own and works
//!   without this feature; on other architectures every layout would be interpreted without it, so
//!   the crate does not build.
//! * `copies` (default): copies from one layout to another, [`LayoutCopy`].
//! * `operations` (default): the representation external32 and reductions, [`Operation`]. Copies
//!   that reduce, [`Committed::direct_reduce`], need both features.
//! * `internal`, and the other features, are for this crate's own workspace. What they make public
//!   may change in any release.
//!
//! While the major version is 0, a new minor version may change the interface. The changelog lists
//! the changes.
// Unsafe code is denied here. The modules that docs/SAFETY.md lists allow it.
#![deny(unsafe_code)]
// The modules are private. Most of their items are used only by other members of the workspace,
// through the module `internal`. Without the feature `internal` these items are unused.
#![cfg_attr(not(feature = "internal"), allow(dead_code, unreachable_pub, unused_imports))]

#[cfg(not(any(feature = "cranelift", target_arch = "x86_64")))]
compile_error!(
    "this architecture has no templates: switch on the feature `cranelift`, or every layout is interpreted"
);

mod cache;
mod calls;
mod code;
mod column;
mod committed;
mod corpus;
mod count;
mod datatype;
mod decode;
mod engine;
mod error;
mod exec;
mod files;
mod filled;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzzing;
#[cfg(feature = "internal")]
#[doc(hidden)]
pub mod internal;
mod interval;
mod kind;
mod layout;
mod legalize;
mod lexer;
mod lower;
mod micro;
mod nest;
mod normalize;
#[cfg(any(test, feature = "internal"))]
mod object;
mod plan;
mod process;
#[cfg(feature = "copies")]
mod refine;
mod schedule;
mod segments;
mod target;
#[cfg(any(test, feature = "internal"))]
mod tool;

pub use committed::Committed;
#[cfg(feature = "operations")]
pub use committed::CommittedOperation;
#[cfg(feature = "copies")]
pub use committed::LayoutCopy;
pub use datatype::{Datatype, Distribution, Order, Scalar};
pub use engine::{Config, Engine, Mode};
pub use error::{Error, ErrorClass, Result};
#[cfg(feature = "operations")]
pub use kind::{Op, Operation};
pub use segments::{Segment, Segments};

/// Commits a datatype in the engine of the process, [`Engine::global`] (MPI 5.0, 5.1.9,
/// `MPI_Type_commit`). The result packs and unpacks instances of the datatype.
///
/// ```
/// use ddtc::Datatype;
///
/// let rows = ddtc::commit(&Datatype::vector(3, 2, 5, &Datatype::of::<i32>())?)?;
/// assert_eq!(rows.packed_size(1)?, 24);
/// # Ok::<(), ddtc::Error>(())
/// ```
///
/// # Errors
/// Class `NoMem` if there is not enough memory for the layout. Any other error is a fault in ddtc
/// itself: every datatype can be committed, and one that cannot be compiled is interpreted.
pub fn commit(t: &Datatype) -> Result<Committed> {
    Engine::global().commit(t)
}

/// Runs the example of README.md as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
