//! Generators of datatypes and checks of everything about them, shared by property tests, fuzz
//! targets and `ddtc check`.
//!
//! [`datatype`] makes datatypes from a stream of [`Choices`], and [`Oracle`] checks everything
//! about a datatype. If a check fails, [`shrink()`] finds a smaller datatype that fails too, and a
//! [`Failure`] prints it as a filetest and as a C program. The expected bytes come from the type
//! map, through `interp`, which shares no code with what it judges.
//!
//! This module is test equipment: it exists under the feature `fuzzing` and in tests. Like the
//! engine, it imports every stage.

mod c_program;
mod case;
mod choices;
mod concurrent;
mod direct;
mod emitters;
mod generate;
mod growth;
pub mod guard;
mod hostile;
mod oracle;
mod panics;
mod random;
mod reductions;
mod reserved;
mod segments;
mod shrink;
mod stages;
mod streams;
mod surfaces;
pub mod targets;
mod values;
mod wire;

pub use c_program::c_program;
pub use case::{Case, Mismatch, pattern, seeds};
pub use choices::Choices;
pub use concurrent::check_cache;
pub use generate::{Budget, datatype, instances};
pub use growth::{Cost, check_growth, check_growths, growing};
pub use hostile::check_hostile;
pub use oracle::{Oracle, Verdict, check_datatype};
pub use random::{Failure, Progress, Summary, check_random};
pub use reserved::RangeCase;
pub use shrink::{rebuilt, shrink};
pub use stages::{Compilers, check_stages};
pub use surfaces::check_text;
pub use wire::check_wire;
