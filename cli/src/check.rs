//! `ddtc check`: tests ddtc with random datatypes. The bytes of a datatype are moved by compiled
//! code, by the interpreter of nests, and by evaluating the result of each stage of the compiler.
//! In all cases, the bytes must be those that the reference interpreter moves.
//!
//! [`ddtc::internal::fuzzing`] generates the datatypes and compares the results. A datatype for
//! which the results differ is shrunk. With `--mpi`, [`ddtc_hunt`] compares an MPI library with the
//! reference interpreter instead.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ddtc::Datatype;
use ddtc::internal::fuzzing::{self, Choices, Cost, Failure, Oracle};
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;
use ddtc_hunt::{Check, Hunt};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

use crate::output::{self, outln};
use crate::report;

/// Arguments of `ddtc check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc check                              a thousand random datatypes\n  \
    ddtc check --cases 100000 --seed 7\n  \
    ddtc check 'vector(3, 2, 4, int)' --count 5\n  \
    ddtc check overlap.vector\n  \
    ddtc check --mpi /usr/lib/libmpi.so --seconds 60 --out findings\n\n\
A failure is shrunk and printed as a filetest and as a C program, and the exit code is 1.\n\
With --mpi, findings.jsonl, run.json and a C program for each finding are written to DIR during the run, and findings.md, report.html and report.json \
at its end. A DIR with the findings of another run is refused. The exit code is 0 if no bug was found, 1 if some were, and 2 if the library or DIR \
cannot be used.")]
pub(crate) struct Args {
    /// Check this datatype (text notation or an entry of the corpus) instead of random ones
    #[arg(value_name = "TYPE", conflicts_with_all = ["cases", "seed"])]
    datatype: Option<String>,
    /// Number of instances of TYPE [default: 3 if TYPE is written with constructors, that is, with
    /// parentheses; the count of the entry if TYPE names an entry of the corpus; 1 if TYPE is a
    /// basic type]
    #[arg(long, value_name = "N", requires = "datatype")]
    count: Option<u64>,
    /// Number of random datatypes [default: 1000; with --mpi, as many as the time allows]
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// Seed of the random numbers: equal seeds give equal datatypes
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Compare this MPI library with the reference interpreter, in separate processes, so that a
    /// crash or a hang of the library is a finding, too
    #[arg(long, value_name = "LIBRARY", conflicts_with = "datatype")]
    mpi: Option<PathBuf>,
    /// With --mpi, time limit in seconds. When it is reached, no further case begins, and failing
    /// datatypes are not shrunk any further. Calls that hang are still waited for, up to 10
    /// seconds, and the C programs that reproduce the last findings are still run [default: 60, or
    /// none if --cases is given]
    #[arg(long, value_name = "T", requires = "mpi")]
    seconds: Option<f64>,
    /// With --mpi, run only the named checks, separated by commas: bounds, pack, unpack, decode,
    /// elements, external32, attributes, messages, collectives, commit, truncation [default: all of
    /// them]
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', requires = "mpi")]
    only: Vec<Check>,
    /// With --mpi, number of processes that run at the same time [default: one for each processor]
    #[arg(long, value_name = "N", requires = "mpi", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    /// With --mpi, folder for the findings
    #[arg(long, value_name = "DIR", requires = "mpi", default_value = "ddtc-findings")]
    out: PathBuf,
    /// With --mpi, folder that contains the library's mpi.h. The C programs that are written to
    /// reproduce the findings include this file [default: searched near the library]
    #[arg(short = 'I', long, value_name = "DIR", requires = "mpi")]
    include: Option<PathBuf>,
}

/// Maximum number of bytes of memory that the check of one type may need without announcing it. A
/// check that needs more first prints its expected time and memory. A check that needs less takes
/// only a few seconds.
const QUIET: u64 = 64 << 20;

/// Number of basic elements that are checked per second. The time of a check is estimated from it.
const ELEMENTS_PER_SECOND: u64 = 100_000;

/// Number of bytes of memory that the steps of a check by ranges read or write per second. The time
/// of such a check is estimated from it.
const BYTES_PER_SECOND: u64 = 2_000_000_000;

/// Runs the subcommand `ddtc check`.
///
/// # Errors
/// If the type cannot be read, or if a check without `--mpi` fails. In the latter case the error
/// describes the first failure, with the datatype shrunk.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(mpi) = &args.mpi {
        return Ok(library(mpi, args));
    }
    match &args.datatype {
        Some(text) => one(text, args.count)?,
        None => random(args.cases.unwrap_or(1000), args.seed)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks an MPI library and returns the exit status: 0 if no bug was found, 1 if some were, 2
/// after an error, which is printed to standard error.
fn library(mpi: &std::path::Path, args: &Args) -> ExitCode {
    let mut only = args.only.clone();
    only.sort_unstable();
    only.dedup();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let hunt = Hunt {
        mpi: mpi.to_path_buf(),
        cases: args.cases,
        seconds: args.seconds.or(if args.cases.is_none() { Some(60.0) } else { None }),
        seed: args.seed,
        only: if only.is_empty() { Check::ALL.to_vec() } else { only },
        jobs: args.jobs.map_or(cores, |n| n as usize),
        out: args.out.clone(),
        include: args.include.clone(),
        page: |folder| Ok(report::write(folder)?.html),
        print: output::print,
    };
    match ddtc_hunt::run(&hunt) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn random(cases: u64, seed: u64) -> Result<(), Box<dyn Error>> {
    let bar = ProgressBar::new(cases);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    let summary = fuzzing::check_random(cases, seed, &mut |progress| bar.set_position(progress.done));
    bar.finish_and_clear();
    let summary = summary?;
    outln!(
        "{} random datatypes of seed {}: {} kernels compiled and {} refused by design, {} packed bytes, up to {} nodes: no \
         difference from the interpreter",
        summary.cases,
        seed,
        summary.kernels,
        summary.refusals,
        summary.bytes,
        summary.nodes
    )?;
    let growing = cases / 10;
    let arguments = fuzzing::check_growths(growing, seed, true)?;
    outln!(
        "{growing} chains and DAGs with {arguments} arguments: commits stayed within {} bytes of nest, {} bytes of memory and {:?} \
         for each argument, and no difference from the interpreter",
        Cost::nest_bound(1) - Cost::nest_bound(0),
        Cost::peak_bound(1) - Cost::peak_bound(0),
        Cost::time_bound(1) - Cost::time_bound(0),
    )?;
    Ok(())
}

fn one(text: &str, count: Option<u64>) -> Result<(), Box<dyn Error>> {
    let (t, own) = ddtc::internal::corpus::asked(text)?;
    let count = count.unwrap_or(if text.contains('(') { 3 } else { own });
    let levels: Vec<Level> = Level::available().collect();
    let mut oracle = Oracle::new(&levels);
    let Some(memory) = fuzzing::Case::memory(&t, count) else {
        return ranges(oracle, &t, count);
    };
    if memory > QUIET {
        let elements = (t.signature().length() as u64).saturating_mul(count);
        let packed = (t.size() as u64).saturating_mul(count);
        eprintln!(
            "{count} instances: {elements} basic elements and {packed} packed bytes, {}",
            estimate(elements / ELEMENTS_PER_SECOND, memory)
        );
        oracle = announced(oracle, memory)?;
    }
    match oracle.check(&t, count, &mut Choices::from_seed(1)) {
        Ok(verdict) => {
            let (kernels, refusals) = (verdict.kernels, verdict.refusals);
            outln!(
                "{kernels} kernels compiled and {refusals} refused by design: no difference from the interpreter"
            )?;
            Ok(())
        }
        Err(mismatch) => Err(Box::new(Failure::shrunk(&t, count, mismatch, &levels))),
    }
}

/// Returns the words with which a check announces its time and its memory, in bytes.
fn estimate(seconds: u64, memory: u64) -> String {
    format!("about {} s and up to {} MiB of memory", 1 + seconds, memory >> 20)
}

/// Returns `oracle` with a progress bar for a check that needs `memory` bytes.
///
/// # Errors
/// If the system does not have the memory.
fn announced(oracle: Oracle, memory: u64) -> Result<Oracle, Box<dyn Error>> {
    if !has_memory(memory) {
        let rule = "more than this process can get; check fewer instances with --count, or a smaller type of the same form";
        return Err(format!("the check needs up to {} MiB of memory, {rule}", memory >> 20).into());
    }
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({elapsed})")?);
    bar.enable_steady_tick(Duration::from_secs(1));
    Ok(oracle.watched(move |what, done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    }))
}

/// Checks a type whose instances span too much memory for a complete check, which needs copies of
/// that memory. Compares compiled code and the interpreter of nests with the type map, on ranges of
/// the packed stream. The stages of the compiler are not checked.
///
/// # Errors
/// If a difference is found, or if the memory or the address space is too small for the instances.
fn ranges(mut oracle: Oracle, t: &Datatype, count: u64) -> Result<(), Box<dyn Error>> {
    let (memory, touched) = oracle.large(t, count).map_err(|mismatch| mismatch.to_string())?;
    eprintln!(
        "{count} instances span more than 256 MiB: code and interpreter are compared on ranges of the packed stream; the other stages \
         are not checked; {}",
        estimate(touched / BYTES_PER_SECOND, memory)
    );
    oracle = announced(oracle, memory)?;
    match oracle.check_large(t, count) {
        Ok(true) => {
            outln!("ranges of the packed stream: no difference from the interpreter")?;
            Ok(())
        }
        Ok(false) => Err(
            "the instances need more address space than this system gives a process: check fewer with --count"
                .into(),
        ),
        Err(mismatch) => Err(mismatch.to_string().into()),
    }
}

/// Returns whether the system has `bytes` bytes of memory for this process. Returns false if less
/// is available according to `/proc/meminfo`, or if the system refuses to reserve the bytes.
fn has_memory(bytes: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let reserved = usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
    kib.is_none_or(|kib| bytes >> 10 <= kib) && reserved
}
