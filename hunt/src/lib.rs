//! `ddtc check --mpi`: random datatypes in a real MPI library, compared with the definition and with compiled code.
//!
//! Workers load the library and go through cases; the hunter hands out numbers, shrinks what they find, names causes, writes programs and asks them.
//! A library that dies or hangs ends a worker, which is a finding, and the run goes on. What is found is written at once.
#![deny(unsafe_code)]

mod cause;
mod compare;
mod confirm;
mod coverage;
mod difference;
mod finding;
mod generate;
mod judge;
mod library;
mod prober;
mod process;
mod program;
mod protocol;
mod record;
mod run;
mod shared;
mod subject;
pub mod worker;

use std::error::Error;
use std::path::{Path, PathBuf};

pub use difference::Check;
pub use program::{alone, shared};
pub use run::run;

/// Settings of a hunt.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The MPI library.
    pub mpi: PathBuf,
    /// Most cases; none: until the time is over.
    pub cases: Option<u64>,
    /// Most seconds; none: until the cases are through.
    pub seconds: Option<f64>,
    /// Seed of the random datatypes.
    pub seed: u64,
    /// The checks that are made.
    pub only: Vec<Check>,
    /// Workers at a time.
    pub jobs: usize,
    /// The folder of what is found.
    pub out: PathBuf,
    /// The folder of its `mpi.h`, if that is not found from the library.
    pub include: Option<PathBuf>,
    /// Makes the page of the folder when the hunt is over, and says which file it is.
    pub page: fn(&Path) -> Result<PathBuf, Box<dyn Error>>,
}

/// Result of a hunt, for the exit status: number of bugs that programs have shown, or that no program could be asked about.
pub type Outcome = Result<u64, Box<dyn Error>>;
