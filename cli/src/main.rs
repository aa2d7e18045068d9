//! The command `ddtc`. Each stage of the compiler has a subcommand, which prints the result of the
//! stage for a datatype. The other subcommands are `bench`, `check`, `corpus`, `doctor`, `draw`,
//! `explain`, `preload`, `report`, `segments`, `tune` and `wire`.
#![deny(unsafe_code)]

mod check;
mod corpus;
mod doctor;
mod draw;
mod explain;
mod generate;
mod preload;
mod rank_reports;
mod report;
mod segments;
mod tree;
mod tune;
mod wire;

use std::error::Error;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The derived datatype compiler: MPI derived datatypes compiled to native pack and unpack code.
#[derive(Parser, Debug)]
#[command(
    name = "ddtc",
    version,
    about,
    max_term_width = 110,
    after_help = "A TYPE is a datatype in text notation (MPI's constructor without \
its prefix, arguments in the standard's order, datatypes last) or the name of an entry of the corpus.\n\n\
Examples:\n  \
    ddtc explain 'vector(count=34, blocklength=10, stride=64, double)'\n  \
    ddtc bench --quick\n\n\
Environment: DDTC_TARGET=baseline|avx2|avx512|neon is the CPU level where none is given; \
DDTC_FAMILY=zen3|rapids|other is the family of processors for which `bench` compiles, if it is not that of this machine."
)]
struct Cli {
    /// Log what the compiler does to standard error; give it twice for more details
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show a datatype after every stage: tree with bounds, nest, plan, machine code, times
    Explain(explain::Args),
    /// Print the loop nest that a datatype is lowered to
    Lower(explain::StageArgs),
    /// Print the loop nest that copies directly from a datatype to another one
    Refine(explain::StageArgs),
    /// Print the canonical loop nest of a datatype
    Normalize(explain::StageArgs),
    /// Print the plan that the schedule chooses for a datatype
    Schedule(explain::StageArgs),
    /// Print the plan of a datatype after operations that the target lacks were replaced
    Legalize(explain::StageArgs),
    /// Print the machine code of a datatype
    Emit(explain::StageArgs),
    /// Measure pack and unpack against hand-written C loops and memcpy
    Bench(ddtc_bench::Args),
    /// Compare compiled and interpreted code, or an MPI library, with the reference interpreter, on
    /// random datatypes
    Check(check::Args),
    #[command(hide = true)]
    HuntWorker(ddtc_hunt::worker::Args),
    /// List or print the entries of the corpus
    Corpus(corpus::Args),
    /// Draw the memory of a datatype: blocks in packed order, gaps, bounds, instances
    Draw(draw::Args),
    /// Write a page and a document about the findings of `ddtc check --mpi`
    Report(report::Args),
    /// List the contiguous pieces of memory that a datatype consists of
    Segments(segments::Args),
    /// Run an MPI program under its own MPI library and the preload library, which packs and
    /// unpacks by compiled code
    Preload(preload::Args),
    /// Examine the installation, find out whether messages are converted, and say how to fix
    /// problems
    Doctor(doctor::Args),
    /// Measure which messages are faster under the preload library, and write its policy table
    Tune(tune::Args),
    /// Write the wire form of a datatype into a file, or read a datatype from one
    Wire(wire::Args),
    /// Write manual pages, completions and the shipped policy tables into a folder, for
    /// installation
    #[command(hide = true)]
    Generate(generate::Args),
}

/// Size in bytes of the stack on which most subcommands run, whatever the system's limit is. Pages
/// of the stack that are not used cost nothing.
const STACK: usize = 64 << 20;
/// Exit status after a panic. It is the exit status of any Rust program whose main thread panics.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    let Some(cli) = on_large_stack(Cli::parse) else { return PANICKED.into() };
    match cli.verb {
        // These subcommands may initialize an MPI library, which must be done by the program's main
        // thread.
        Some(Verb::HuntWorker(_) | Verb::Doctor(_)) => execute(cli),
        _ => on_large_stack(|| execute(cli)).unwrap_or(PANICKED.into()),
    }
}

/// Runs `f` on a thread with a stack of [`STACK`] bytes. Returns `None` if there is no memory for
/// the stack, or if `f` panicked. In both cases a message has been printed to standard error.
fn on_large_stack<T: Send>(f: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("main".into()).stack_size(STACK);
        match thread.spawn_scoped(scope, f) {
            Ok(thread) => thread.join().ok(),
            Err(error) => {
                eprintln!("error: no memory for a stack: {error}");
                None
            }
        }
    })
}

fn execute(cli: Cli) -> ExitCode {
    let max = match cli.verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt().with_max_level(max).with_writer(std::io::stderr).without_time().init();
    match run(cli.verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Option<Verb>) -> Result<ExitCode, Box<dyn Error>> {
    let Some(verb) = verb else {
        Cli::command().print_help()?;
        return Ok(ExitCode::SUCCESS);
    };
    match verb {
        // For continuous integration, the exit status of `check` distinguishes findings from
        // errors.
        Verb::Check(args) => return check::run(&args),
        // The exit status is that of the program that `preload` runs.
        Verb::Preload(args) => return preload::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Lower(args) => explain::stage("lower", &args),
        Verb::Refine(args) => explain::stage("refine", &args),
        Verb::Normalize(args) => explain::stage("normalize", &args),
        Verb::Schedule(args) => explain::stage("schedule", &args),
        Verb::Legalize(args) => explain::stage("legalize", &args),
        Verb::Emit(args) => explain::stage("emit", &args),
        Verb::Bench(args) => ddtc_bench::run(&args),
        Verb::HuntWorker(args) => ddtc_hunt::worker::run(&args),
        Verb::Corpus(args) => corpus::run(&args),
        Verb::Draw(args) => draw::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Segments(args) => segments::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Tune(args) => tune::run(&args),
        Verb::Wire(args) => wire::run(&args),
        Verb::Generate(args) => generate::run(&args, Cli::command()),
    }
    .map(|()| ExitCode::SUCCESS)
}
