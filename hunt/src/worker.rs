//! A worker: a process that loads the library and makes the calls that the main process requests.
//! If the library ends or hangs this process, this is a finding, and the run goes on.
//!
//! The main process writes requests to the worker's standard input. The replies go to the standard
//! output with which the worker was started. Everything that the library prints goes to standard
//! error.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::methods::*;

use crate::compare::{self, Context};
use crate::coverage::features;
use crate::difference::Check;
use crate::generate::{Means, case};
use crate::library::{Library, MISUSES};
use crate::protocol::{At, Avoid, Done, Place, Reply, Request};

/// Arguments of the hidden verb `hunt-worker`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The library
    #[arg(long)]
    mpi: PathBuf,
    /// Where the random numbers start
    #[arg(long)]
    seed: u64,
    /// Checks of every case
    #[arg(long, value_delimiter = ',')]
    only: Vec<Check>,
    /// File for the case in progress
    #[arg(long)]
    place: PathBuf,
}

/// Serves requests until there are no more.
///
/// # Errors
/// Returns an error if the main process has gone, a request cannot be read, or the file for the
/// current case cannot be opened. If the library cannot be used, this is not an error: the worker
/// sends a reply that says so.
pub fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    // Replies go to a copy of standard output, since standard output itself is redirected, so that
    // nothing that the library prints is taken for a reply.
    let mut replies = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    super::library::silence()?;
    let place = Place(File::options().read(true).write(true).create(true).truncate(false).open(&args.place)?);
    let library = match Library::open(&args.mpi) {
        Ok(library) => library,
        Err(reason) => {
            say(&mut replies, &Reply::Refused { reason: reason.to_string() })?;
            return Ok(());
        }
    };
    let flavour = library.abi().name.to_owned();
    say(&mut replies, &Reply::Ready { version: library.version().to_owned(), flavour })?;
    let mut worker = Worker {
        context: Context {
            library: &library,
            engine: Engine::new(Config::default()),
            compiled: 0,
            thorough: false,
            known: Vec::new(),
        },
        place,
        mark: 0,
        replies,
        tried: BTreeSet::new(),
    };
    // The loop ends when the main process closes the standard input of this worker. The library is
    // finalized after that.
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Request::Run { from, to, avoid, known } => {
                worker.context.known = known;
                worker.cases(args, from..to, &avoid)?;
            }
            Request::Try { datatype, large, count, check, times, known } => {
                worker.context.known = known;
                worker.one((&datatype, large), count, check, times)?;
            }
            Request::Show { case: number } => {
                let shown = case(Means { library: &library }, args.seed, number)
                    .map(|(t, count)| (t.to_string(), count, t.nodes().any(Datatype::is_large_count)));
                say(&mut worker.replies, &Reply::Shown { case: shown })?;
            }
            Request::Misuse { from } => {
                let taken = (from..MISUSES.len()).filter(|&i| {
                    worker.mark += 1;
                    let at = At { case: i as u64, check: Check::Commit, mark: worker.mark };
                    worker.place.set(at).is_ok() && MISUSES[i].is_taken(&library)
                });
                let which = taken.collect();
                say(&mut worker.replies, &Reply::Taken { which })?;
            }
        }
    }
    library.finalize();
    Ok(())
}

fn say(to: &mut File, reply: &Reply) -> Result<(), Box<dyn Error>> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    to.write_all(&line)?;
    Ok(())
}

/// Minimum time between two reports of a worker about the cases that it has finished. If the worker
/// dies, it has not reported the cases that it ran since its last report.
const OFTEN: Duration = Duration::from_millis(50);
/// Number of cases at the beginning of a run whose features are all computed, to find those that
/// were not seen before.
const RARE: u64 = 1 << 13;
/// Every case whose number is a multiple of `BOLD` also runs the checks that are avoided in other
/// cases because they ended the library.
const BOLD: u64 = 4096;

/// Counts of the cases that a worker has run since its last report.
struct Sum {
    started: Instant,
    done: Done,
    features: BTreeMap<&'static str, u64>,
    compiled: u64,
}

impl Sum {
    fn new(context: &Context<'_>) -> Sum {
        let compiled = context.compiled;
        Sum { started: Instant::now(), done: Done::default(), features: BTreeMap::new(), compiled }
    }

    // Returns the counts since the last report and starts counting from 0 again. `to` is the number
    // of the last finished case, plus one.
    fn take(&mut self, to: u64, context: &Context<'_>) -> Box<Done> {
        let sum = std::mem::replace(self, Sum::new(context));
        let mut done = sum.done;
        done.to = to;
        done.compiled = context.compiled - sum.compiled;
        done.seconds = sum.started.elapsed().as_secs_f64();
        done.features = sum.features.into_iter().map(|(f, n)| (f.to_owned(), n)).collect();
        Box::new(done)
    }
}

struct Worker<'l> {
    context: Context<'l>,
    place: Place,
    mark: u64,
    replies: File,
    /// Features that occurred in this worker. When the features of a case are counted, those that
    /// are not yet in this set are always included, so that no feature that occurred is listed as
    /// never tried.
    tried: BTreeSet<&'static str>,
}

impl Worker<'_> {
    // Runs checks on a datatype, and writes the current case and check to the file of the worker
    // before each check.
    fn check(&mut self, case: u64, t: &Datatype, count: u64, checks: &[Check]) -> compare::Outcome {
        let (place, mark) = (&self.place, &mut self.mark);
        compare::run(&mut self.context, t, count, checks, &mut |check| {
            *mark += 1;
            // An error, for example because the disk is full, is ignored here, since the main
            // process reports a full disk. If the worker then ends, its current case is unknown.
            let _ = place.set(At { case, check, mark: *mark });
        })
    }

    /// Counts the features of a case: all features in every eighth case, and in other cases only
    /// features that this worker has not seen before.
    fn count(&mut self, sum: &mut Sum, shown: &BTreeSet<&'static str>, number: u64) {
        for f in shown.iter().filter(|f| number.is_multiple_of(8) || !self.tried.contains(*f)) {
            *sum.features.entry(f).or_default() += 1;
        }
        self.tried.extend(shown);
    }

    // Runs the cases with the given numbers, and reports counts and differences.
    fn cases(
        &mut self,
        args: &Args,
        numbers: std::ops::Range<u64>,
        avoid: &[Avoid],
    ) -> Result<(), Box<dyn Error>> {
        self.context.thorough = false;
        let mut sum = Sum::new(&self.context);
        let mut checks = Vec::new();
        for number in numbers.clone() {
            if sum.started.elapsed() > OFTEN {
                let done = sum.take(number, &self.context);
                say(&mut self.replies, &Reply::Some(done))?;
            }
            sum.done.cases += 1;
            let means = Means { library: self.context.library };
            let Some((t, count)) = case(means, args.seed, number) else {
                sum.done.unbuilt += 1;
                continue;
            };
            // Computing the features takes as long as checking the bounds. After the usual features
            // have occurred, it is sufficient to count the features of every eighth case.
            let counted = number < RARE || number.is_multiple_of(8);
            let shown = (!avoid.is_empty() || counted).then(|| features(&t));
            if let Some(shown) = shown.as_ref().filter(|_| counted) {
                self.count(&mut sum, shown, number);
            }
            // Checks that are known to end the library for datatypes with the features of this case
            // are left out, except in one of [`BOLD`] cases.
            checks.clear();
            checks.extend_from_slice(&args.only);
            if let Some(shown) = shown.filter(|_| !number.is_multiple_of(BOLD)) {
                let avoided = |a: &Avoid| a.features.iter().all(|f| shown.contains(f.as_str()));
                checks.retain(|c| !avoid.iter().any(|a| a.check == *c && avoided(a)));
                sum.done.avoided += (args.only.len() - checks.len()) as u64;
            }
            let outcome = self.check(number, &t, count, &checks);
            sum.done.unbuilt += u64::from(!outcome.built);
            if !outcome.found.is_empty() {
                if !counted {
                    // The features of a case that shows a difference are always counted, so that a
                    // feature of a finding is never reported as not tried.
                    self.count(&mut sum, &features(&t), number);
                }
                let large = t.nodes().any(Datatype::is_large_count);
                let (datatype, differences) = (t.to_string(), outcome.found);
                say(&mut self.replies, &Reply::Found { case: number, datatype, count, large, differences })?;
            }
        }
        let done = sum.take(numbers.end, &self.context);
        say(&mut self.replies, &Reply::Done(done))
    }

    // Runs one check on one datatype, `times` times in a row. Only the differences of the last time
    // are reported.
    fn one(
        &mut self,
        (text, large): (&str, bool),
        count: u64,
        check: Check,
        times: u32,
    ) -> Result<(), Box<dyn Error>> {
        let parsed: Option<Datatype> = text.parse().ok();
        let means = Means { library: self.context.library };
        let t = parsed.and_then(|t| means.buildable(&t)).and_then(|t| means.flagged(&t, large));
        self.context.thorough = true;
        let differences = match &t {
            Some(t) => {
                for _ in 1..times {
                    self.check(0, t, count, &[check]);
                }
                self.check(0, t, count, &[check]).found
            }
            None => Vec::new(),
        };
        say(&mut self.replies, &Reply::Tried { datatype: t.map(|t| t.to_string()), differences })
    }
}
