//! `ddtc check`: random datatypes through every stage's evaluator, the walker and compiled code, against the interpreter.
//! Thin over [`ddtc::fuzzing`], where generator, oracle and shrinking live.

use std::error::Error;

use ddtc::fuzzing::{self, Choices, Cost, Failure, Oracle};
use ddtc::target::Level;
use indicatif::{ProgressBar, ProgressStyle};

/// Arguments of `ddtc check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc check                              a thousand random datatypes\n  \
    ddtc check --cases 100000 --seed 7\n  \
    ddtc check 'vector(3, 2, 4, int)' --count 5\n  \
    ddtc check overlap.vector\n\n\
A failure is shrunk and printed as a filetest and as a C program; the exit code is 1 then.")]
pub(crate) struct Args {
    /// Check this datatype (text notation or an entry of the corpus) instead of random ones
    #[arg(value_name = "TYPE", conflicts_with_all = ["cases", "seed"])]
    datatype: Option<String>,
    /// Instances of TYPE [default: that of the corpus, or 3]
    #[arg(long, value_name = "N", requires = "datatype")]
    count: Option<u64>,
    /// Random datatypes
    #[arg(long, default_value_t = 1000, value_name = "N")]
    cases: u64,
    /// Where the random numbers start: equal seeds give equal datatypes
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
}

/// Runs the verb.
///
/// # Errors
/// The first failure, shrunk; a type that cannot be read.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let Some(text) = &args.datatype {
        return one(text, args.count);
    }
    let bar = ProgressBar::new(args.cases);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
    let summary =
        fuzzing::check_random(args.cases, args.seed, &mut |progress| bar.set_position(progress.done));
    bar.finish_and_clear();
    let summary = summary?;
    println!(
        "{} random datatypes of seed {}: {} kernels compiled and {} refused by design, {} packed bytes, up to {} nodes: no \
         difference to the interpreter",
        summary.cases, args.seed, summary.kernels, summary.refusals, summary.bytes, summary.nodes
    );
    let growing = args.cases / 10;
    let arguments = fuzzing::check_growths(growing, args.seed, true)?;
    println!(
        "{growing} chains and DAGs of {arguments} arguments: commits within {} bytes of nest, {} bytes at most and {:?} of time an \
         argument, bytes as above",
        Cost::nest_bound(1) - Cost::nest_bound(0),
        Cost::peak_bound(1) - Cost::peak_bound(0),
        Cost::time_bound(1) - Cost::time_bound(0),
    );
    Ok(())
}

fn one(text: &str, count: Option<u64>) -> Result<(), Box<dyn Error>> {
    let (t, own) = crate::datatype(text)?;
    let count = count.unwrap_or(if text.contains('(') { 3 } else { own });
    let levels: Vec<Level> = Level::available().collect();
    match Oracle::new(&levels).check(&t, count, &mut Choices::from_seed(1)) {
        Ok(verdict) => {
            let (kernels, refusals) = (verdict.kernels, verdict.refusals);
            println!(
                "{kernels} kernels compiled and {refusals} refused by design: no difference to the interpreter"
            );
            Ok(())
        }
        Err(mismatch) => Err(Box::new(Failure::shrunk(&t, count, mismatch, &levels))),
    }
}
