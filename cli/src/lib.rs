//! The command `ddtc`, as two programs that share this crate. The program that is installed has the
//! subcommands that users of MPI programs need: `explain`, `check`, `draw`, `report`, `preload`,
//! `doctor` and `tune`. A checkout of the sources builds a program that also has subcommands for
//! people who work on the compiler. `bench` measures, and `lower`, `refine`, `normalize`,
//! `schedule`, `legalize` and `emit` each print the result of one stage of the compiler for a
//! datatype. The others are `corpus`, `segments` and `wire`.
#![deny(unsafe_code)]

mod check;
mod corpus;
mod doctor;
mod draw;
mod explain;
#[cfg(test)]
mod generate;
mod gpu;
mod output;
mod preload;
mod rank_reports;
mod report;
mod segments;
mod tree;
mod tune;
mod wire;

use std::error::Error;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// The derived datatype compiler: MPI derived datatypes compiled to native pack and unpack code.
#[derive(Parser, Debug)]
#[command(name = "ddtc", version, about, max_term_width = 110)]
struct Cli<V: Subcommand> {
    /// Log each compilation, on standard error; give this option twice to log stages and calls, too
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    verb: Option<V>,
}

/// Subcommands of one of the two programs.
trait Verbs: Subcommand + Send {
    /// Text after the list of subcommands in the help.
    const AFTER_HELP: &str;

    /// Returns true for subcommands that may initialize an MPI library, which must be done by the
    /// program's main thread.
    fn needs_main_thread(&self) -> bool;

    /// Runs the subcommand. Some subcommands have different exit statuses for findings and for
    /// errors.
    ///
    /// # Errors
    /// If the subcommand fails. The error is a message for the user.
    fn run(self) -> Result<ExitCode, Box<dyn Error>>;
}

/// Subcommands of the program that is installed.
#[derive(Subcommand, Debug)]
enum Installed {
    /// Show a datatype after every stage: tree with bounds, nest, plan, machine code, times
    Explain(explain::Args),
    /// Test ddtc or an MPI library with random datatypes, by comparing its results with those of
    /// the reference interpreter
    Check(check::Args),
    #[command(hide = true)]
    HuntWorker(ddtc_hunt::worker::Args),
    /// Draw the memory of a datatype: blocks in packed order, gaps, bounds, instances
    Draw(draw::Args),
    /// Write the findings of `ddtc check --mpi` as an HTML page and as a JSON document
    Report(report::Args),
    /// Run an MPI program under its own MPI library and the preload library, which packs and
    /// unpacks by compiled code
    Preload(preload::Args),
    /// Examine the installation, find out whether the preload library packs and unpacks messages,
    /// and say how to fix problems
    Doctor(doctor::Args),
    /// Measure which messages are faster under the preload library, and write its policy table
    Tune(tune::Args),
}

impl Verbs for Installed {
    const AFTER_HELP: &str = "A TYPE is a datatype in text notation (MPI's constructor without \
its prefix, arguments in the standard's order, datatypes last) or the name of an entry of the corpus.\n\n\
Example:\n  \
    ddtc explain 'vector(count=34, blocklength=10, stride=64, double)'\n\n\
Environment: DDTC_TARGET=baseline|avx2|avx512|neon is the CPU level if no option names one.\n\n\
A checkout of ddtc has more subcommands, such as bench: cargo run --release -- --help";

    fn needs_main_thread(&self) -> bool {
        matches!(self, Installed::HuntWorker(_) | Installed::Doctor(_))
    }

    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Installed::Check(args) => return check::run(&args),
            // The exit status is that of the command that `ddtc preload` runs.
            Installed::Preload(args) => return preload::run(&args),
            Installed::Explain(args) => explain::run(&args),
            Installed::HuntWorker(args) => ddtc_hunt::worker::run(&args),
            Installed::Draw(args) => draw::run(&args),
            Installed::Report(args) => report::run(&args),
            Installed::Doctor(args) => doctor::run(&args),
            Installed::Tune(args) => tune::run(&args),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// Subcommands of the program that a checkout of the sources builds: those of the installed
/// program, and those for people who work on the compiler.
#[derive(Subcommand, Debug)]
enum Checkout {
    #[command(flatten)]
    Installed(Installed),
    /// Print the loop nest that a datatype is lowered to
    Lower(explain::StageArgs),
    /// Print the loop nest that copies the data of one datatype to the places of another, without
    /// packing them
    Refine(explain::StageArgs),
    /// Print the canonical loop nest of a datatype
    Normalize(explain::StageArgs),
    /// Print the plan for a datatype, which is the result of the stage `schedule`
    Schedule(explain::StageArgs),
    /// Print the plan of a datatype after operations that the target lacks were replaced
    Legalize(explain::StageArgs),
    /// Print the machine code of a datatype
    Emit(explain::StageArgs),
    /// Measure pack and unpack against hand-written C loops and memcpy
    Bench(ddtc_bench::Args),
    /// List or print the entries of the corpus
    Corpus(corpus::Args),
    /// List the contiguous pieces of memory that a datatype consists of
    Segments(segments::Args),
    /// Write the wire form of a datatype, which is its portable representation in bytes, into a
    /// file, or read a datatype from one
    Wire(wire::Args),
}

impl Verbs for Checkout {
    const AFTER_HELP: &str = "A TYPE is a datatype in text notation (MPI's constructor without \
its prefix, arguments in the standard's order, datatypes last) or the name of an entry of the corpus.\n\n\
Examples:\n  \
    ddtc explain 'vector(count=34, blocklength=10, stride=64, double)'\n  \
    ddtc bench --quick\n\n\
Environment: DDTC_TARGET=baseline|avx2|avx512|neon is the CPU level if no option names one; \
DDTC_FAMILY=zen3|rapids|other is the family of processors for which `bench` compiles, if it is not that of this machine.";

    fn needs_main_thread(&self) -> bool {
        matches!(self, Checkout::Installed(verb) if verb.needs_main_thread())
    }

    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Checkout::Installed(verb) => return verb.run(),
            Checkout::Lower(args) => explain::stage("lower", &args),
            Checkout::Refine(args) => explain::stage("refine", &args),
            Checkout::Normalize(args) => explain::stage("normalize", &args),
            Checkout::Schedule(args) => explain::stage("schedule", &args),
            Checkout::Legalize(args) => explain::stage("legalize", &args),
            Checkout::Emit(args) => explain::stage("emit", &args),
            Checkout::Bench(args) => ddtc_bench::run(&args),
            Checkout::Corpus(args) => corpus::run(&args),
            Checkout::Segments(args) => segments::run(&args),
            Checkout::Wire(args) => wire::run(&args),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// Size in bytes of the stack on which most subcommands run, whatever the system's limit is. Pages
/// of the stack that are not used cost nothing.
const STACK: usize = 64 << 20;
/// Exit status after a panic. It is the exit status of any Rust program whose main thread panics.
const PANICKED: u8 = 101;

/// Runs the program that is installed.
pub fn installed() -> ExitCode {
    program::<Installed>()
}

/// Runs the program that a checkout of the sources builds. It has all subcommands.
pub fn checkout() -> ExitCode {
    program::<Checkout>()
}

fn command<V: Verbs>() -> clap::Command {
    Cli::<V>::command().after_help(V::AFTER_HELP)
}

fn program<V: Verbs>() -> ExitCode {
    let parsed = || {
        Cli::<V>::from_arg_matches(&command::<V>().get_matches())
            .unwrap_or_else(|error| error.format(&mut command::<V>()).exit())
    };
    let Some(cli) = on_large_stack(parsed) else { return PANICKED.into() };
    match &cli.verb {
        Some(verb) if verb.needs_main_thread() => execute(cli),
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
                eprintln!(
                    "error: the stack of 64 MiB on which the command runs cannot be allocated: {error}; raise the limit on memory (ulimit -v)"
                );
                None
            }
        }
    })
}

fn execute<V: Verbs>(cli: Cli<V>) -> ExitCode {
    let max = match cli.verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt().with_max_level(max).with_writer(std::io::stderr).without_time().init();
    let done = match cli.verb {
        Some(verb) => verb.run(),
        None => command::<V>().print_help().map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
