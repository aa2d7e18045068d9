//! `ddtc check --mpi`: random datatypes in a real MPI library, compared with the definition and with compiled code.
//!
//! Workers load the library and go through cases; the hunter hands out numbers, shrinks what they find, names causes, writes programs and asks them.
//! A library that dies or hangs ends a worker, which is a finding, and the run goes on. What is found is written at once.

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
mod subject;
pub(crate) mod worker;

use std::error::Error;
use std::path::{Path, PathBuf};

pub(crate) use difference::Check;
pub(crate) use run::run;

/// What a hunt is told.
#[derive(Clone, Debug)]
pub(crate) struct Hunt {
    pub(crate) mpi: PathBuf,
    /// Most cases; none: until the time is over.
    pub(crate) cases: Option<u64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) seed: u64,
    pub(crate) only: Vec<Check>,
    pub(crate) jobs: usize,
    pub(crate) out: PathBuf,
    pub(crate) include: Option<PathBuf>,
    /// Makes the page of the folder when the hunt is over, and says which file it is.
    pub(crate) page: fn(&Path) -> Result<PathBuf, Box<dyn Error>>,
}

/// What a hunt came to, for the exit status: bugs that programs have shown, or that no program could be asked about.
pub(crate) type Outcome = Result<u64, Box<dyn Error>>;
