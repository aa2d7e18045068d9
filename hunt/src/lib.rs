//! `ddtc check --mpi`: a fuzzer of MPI libraries. It builds random datatypes in a real library and
//! compares what the library does with the definition and with compiled code.
//!
//! Workers are processes that load the library and run cases. The main process hands out case
//! numbers, shrinks the differences that workers report, names their causes, and writes a C program
//! for each finding, which it compiles and runs. If the library crashes or hangs, only a worker
//! process ends. This is a finding, and the run goes on. Findings are written immediately.
#![deny(unsafe_code)]

mod cause;
mod compare;
mod confirm;
mod coverage;
mod difference;
mod document;
mod finding;
mod generate;
mod judge;
mod library;
mod prober;
mod process;
mod program;
mod protocol;
mod record;
mod rules;
mod run;
mod shared;
mod subject;
mod wording;
pub mod worker;

use std::error::Error;
use std::fmt::Arguments;
use std::io;
use std::path::{Path, PathBuf};

pub use difference::Check;
pub use document::publish;
pub use program::{alone, shared};
pub use rules::{Rule, rule};
pub use run::run;

/// Settings of a run of the fuzzer.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// File of the MPI library.
    pub mpi: PathBuf,
    /// Maximum number of cases. If none, the run ends after `seconds`.
    pub cases: Option<u64>,
    /// Maximum time of the run in seconds. If none, the run ends after `cases`.
    pub seconds: Option<f64>,
    /// Seed of the random datatypes.
    pub seed: u64,
    /// The checks that are made.
    pub only: Vec<Check>,
    /// Number of jobs. Each job has one worker at a time for running cases and one for shrinking.
    pub jobs: usize,
    /// The folder for findings and their programs.
    pub out: PathBuf,
    /// The folder of the library's `mpi.h`, if the header is not in a usual place near the library.
    pub include: Option<PathBuf>,
    /// Function that writes the report for the folder when the run is over, and returns the path of
    /// the report.
    pub page: fn(&Path) -> Result<PathBuf, Box<dyn Error>>,
    /// Function that writes text to standard output.
    pub print: fn(Arguments<'_>) -> io::Result<()>,
}

/// Result of a run: the number of bugs, on which the exit status depends. A bug does not count if
/// its program ran and did not show it.
pub type Outcome = Result<u64, Box<dyn Error>>;
