//! A run of the fuzzer. Its jobs hand out cases to workers and handle the differences that the
//! workers find.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ddtc::internal::files::{self, TemporaryFolder};
use ddtc_hosts::policy::{Family, Library};
use indicatif::{ProgressBar, ProgressStyle};

use crate::confirm::Compiler;
use crate::difference::Check;
use crate::document;
use crate::finding::{About, Ledger};
use crate::judge::{Found, Judge};
use crate::library::MISUSES;
use crate::prober::{Prober, ended};
use crate::process::{Death, NoWorker, Start, Worker};
use crate::protocol::{Reply, Request};
use crate::shared::{Shared, Totals, locked};
use crate::{Hunt, Outcome};

/// Number of cases in the first request of a job. The number of cases in later requests is chosen
/// so that a request takes about [`BATCH`] seconds.
const FIRST: u64 = 8;
const BATCH: f64 = 0.5;
/// Maximum number of workers that may die in a row without a finished request between them. After
/// that a job gives up.
const MAX_DEATHS: u64 = 1000;
/// Maximum number of differences that are examined among those that the cases of one request show.
const MAX_FOUND: usize = 64;
/// Beginning of the name of the folder for temporary files: those of the workers and the compiled
/// programs.
const TEMPORARY: &str = ".ddtc-check";

/// Runs the fuzzer, prints what it found, and returns the number of bugs.
///
/// # Errors
/// Returns an error if the library cannot be used, the folder or one of the files in it cannot be
/// written, or a job fails.
pub fn run(hunt: &Hunt) -> Outcome {
    let refused = |error: std::io::Error| format!("--out {}: {error}", hunt.out.display());
    std::fs::create_dir_all(&hunt.out).map_err(refused)?;
    // Temporary files of the run are in a new folder inside `--out`, which is removed when this
    // function returns. In `--out` itself they could have the names of the user's own files.
    let temporary = TemporaryFolder::from(files::private_folder(&hunt.out, TEMPORARY).map_err(refused)?);
    let ledger = Ledger::new(&hunt.out).map_err(refused)?;
    let start = Start {
        mpi: hunt.mpi.clone(),
        seed: hunt.seed,
        checks: hunt.only.clone(),
        folder: temporary.to_path_buf(),
    };
    // A first worker shows whether the library can be used, and says which library it is. If it
    // cannot be used, no files are left in `--out`.
    let about = match Worker::start(&start, 0) {
        Ok(first) => first.about.clone(),
        Err(why) => {
            ledger.discard();
            return Err(why.to_string().into());
        }
    };
    let library = named(&about.version, &about.flavour, &hunt.mpi);
    let compiler = Compiler::find(&hunt.mpi, hunt.include.as_deref(), &about.flavour, &temporary);
    let About { name, version, flavour, .. } = &library;
    (hunt.print)(format_args!("{name} {version} ({flavour}), seed {}\n", hunt.seed))?;
    if let Err(why) = &compiler {
        (hunt.print)(format_args!("The programs of findings are not compiled and run: {why}\n"))?;
    }
    let shared = Shared {
        hunt,
        start,
        library,
        compiler,
        began: Instant::now(),
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        totals: Mutex::new(Totals::default()),
        ledger: Mutex::new(ledger),
        unsaved: Mutex::new(Vec::new()),
        avoid: Mutex::new(Vec::new()),
    };
    // Each job has a thread of its own. The first job that fails stops the others. The thread that
    // called `run` shows the progress until all jobs are done.
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..hunt.jobs)
            .map(|number| {
                let (shared, failed) = (&shared, &failed);
                scope.spawn(move || {
                    if let Err(error) = shared.job(number) {
                        shared.stop.store(true, Ordering::Relaxed);
                        *locked(failed) = Some(error.to_string());
                    }
                })
            })
            .collect();
        shared.watch(&|| jobs.iter().all(std::thread::ScopedJoinHandle::is_finished));
    });
    // The files of the run are completed even if a job failed. In that case the error of the job is
    // returned, and an error about the files is only printed.
    let finished = shared.finish();
    match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => {
            if let Err(also) = finished {
                eprintln!("error: {also}");
            }
            Err(error.into())
        }
        None => {
            finished.map(|()| locked(&shared.ledger).findings.iter().filter(|f| f.is_bug()).count() as u64)
        }
    }
}

/// Returns the name and the version of a library. Both come from the text in which the library
/// describes itself.
fn named(said: &str, flavour: &str, path: &Path) -> About {
    let name = match Library::from_version_text(said).family {
        // MPI libraries that are derived from MPICH begin the text in which they describe
        // themselves with their own name.
        Family::Other => said.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase(),
        family => family.name().to_owned(),
    };
    About {
        name,
        version: Library::release(said).unwrap_or(said).to_owned(),
        path: path.display().to_string(),
        flavour: flavour.to_owned(),
    }
}

impl Shared<'_> {
    // Runs cases until all case numbers are handed out or the time is over.
    fn job(&self, number: usize) -> Result<(), Box<dyn Error>> {
        // Workers with even numbers run cases. Those with odd numbers run single checks, by which
        // the judge shrinks differences.
        let end = self.hunt.seconds.map(|s| self.began + Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        let mut judge = Judge::new(self, Prober::new(&self.start, 2 * number + 1, end));
        let mut worker = None;
        if number == 0 && self.hunt.only.contains(&Check::Commit) {
            self.misuses(2 * number)?;
        }
        let (mut batch, mut deaths) = (FIRST, 0);
        // One request may need several workers. If a worker dies, the next one continues after the
        // case at which it died.
        while let Some(numbers) = self.take(batch) {
            let mut from = numbers.start;
            while from < numbers.end && !self.is_over() {
                let running = match &mut worker {
                    Some(worker) => worker,
                    none => none.insert(self.started(2 * number)?),
                };
                let avoid = locked(&self.avoid).clone();
                let asked = Instant::now();
                let known = locked(&self.ledger).causes.list();
                running.ask(&Request::Run { from, to: numbers.end, avoid, known });
                let ended = self.batch(running, &mut from);
                match ended {
                    Ok(found) => {
                        let rate =
                            (numbers.end - numbers.start) as f64 / asked.elapsed().as_secs_f64().max(1e-6);
                        batch = ((rate * BATCH) as u64).clamp(8, 1 << 20);
                        deaths = 0;
                        judge.judge(found);
                    }
                    Err((death, found)) => {
                        worker = None;
                        deaths += 1;
                        if deaths > MAX_DEATHS {
                            return Err(format!("{deaths} workers in a row died: {}", death.said).into());
                        }
                        from = judge.died(&death, from, found);
                    }
                }
                judge.go_on(false);
            }
        }
        // At the end of the job, the differences that were postponed are examined or, if the time
        // is over, only recorded.
        judge.go_on(true);
        let mut totals = locked(&self.totals);
        totals.workers.died += judge.prober.deaths - judge.prober.hangs;
        totals.workers.hung += judge.prober.hangs;
        Ok(())
    }

    /// Starts a worker and returns it. The library has already started in an earlier worker, so up
    /// to five attempts are made if it does not start now.
    fn started(&self, number: usize) -> Result<Worker, Box<dyn Error>> {
        let mut last = None;
        for _ in 0..5 {
            match Worker::start(&self.start, number) {
                Ok(worker) => return Ok(worker),
                Err(NoWorker::Refused(reason)) => return Err(reason.into()),
                Err(other) => last = Some(other.to_string()),
            }
        }
        Err(last.unwrap_or_default().into())
    }

    /// Receives the replies to a request to run cases, and returns the differences that the cases
    /// show. `from` is set to the number after the cases that were counted.
    fn batch(&self, worker: &mut Worker, from: &mut u64) -> Result<Vec<Found>, (Death, Vec<Found>)> {
        let mut found = Vec::new();
        loop {
            match worker.reply() {
                Ok(Reply::Found { case, datatype, count, large: _, differences }) => {
                    // Differences that a known cause explains are dropped, and so are differences
                    // beyond the maximum number [`MAX_FOUND`].
                    for difference in differences {
                        if found.len() < MAX_FOUND && !locked(&self.ledger).causes.explain(&difference) {
                            found.push(Found { case, datatype: datatype.clone(), count, difference });
                        }
                    }
                }
                Ok(Reply::Some(done)) => {
                    *from = done.to;
                    self.count(&done);
                }
                Ok(Reply::Done(done)) => {
                    *from = done.to;
                    self.count(&done);
                    return Ok(found);
                }
                Ok(_) => {}
                Err(death) => return Err((death, found)),
            }
        }
    }

    /// Lets workers make the calls with forbidden arguments, and records each call that is not
    /// refused. If a call ends its worker, a new worker continues with the next call.
    fn misuses(&self, number: usize) -> Result<(), Box<dyn Error>> {
        let mut from = 0;
        while from < MISUSES.len() {
            let mut worker = self.started(number)?;
            worker.ask(&Request::Misuse { from });
            match worker.reply() {
                Ok(Reply::Taken { which }) => {
                    which.into_iter().for_each(|i| self.misuse(i, "the call returns MPI_SUCCESS"));
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(death) => {
                    let at = death.at.map_or(from, |at| at.case as usize).clamp(from, MISUSES.len() - 1);
                    self.misuse(at, &ended(death.how, &death.said));
                    from = at + 1;
                }
            }
        }
        Ok(())
    }

    /// Shows progress and writes run.json every three seconds until all jobs are done.
    fn watch(&self, done: &dyn Fn() -> bool) {
        let bar = match (self.hunt.cases, self.hunt.seconds) {
            (Some(cases), None) => ProgressBar::new(cases),
            (_, seconds) => ProgressBar::new(seconds.unwrap_or(0.0).ceil() as u64),
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        let (mut written, mut said) = (Instant::now(), false);
        while !done() {
            std::thread::sleep(Duration::from_millis(50));
            let run = self.record(false);
            bar.set_position(match self.hunt.seconds {
                Some(_) => run.seconds as u64,
                None => run.cases,
            });
            let found: Vec<String> = run.found.iter().map(|(class, n)| format!("{n} {class}")).collect();
            bar.set_message(format!("{} cases, {:.0}/s, {}", run.cases, run.rate, found.join(", ")));
            if written.elapsed() > Duration::from_secs(3) {
                written = Instant::now();
                if let Err(error) = run.write(&self.hunt.out)
                    && !std::mem::replace(&mut said, true)
                {
                    bar.suspend(|| eprintln!("ddtc: {error}; the run goes on"));
                }
            }
        }
        bar.finish_and_clear();
    }

    /// Completes the files of the run, and prints the findings.
    fn finish(&self) -> Result<(), Box<dyn Error>> {
        let run = self.record(true);
        let mut ledger = locked(&self.ledger);
        // If the disk was full before, there may be room now for the lines and programs that could
        // not be written.
        let mut troubles: Vec<String> = Vec::new();
        if let Err(error) = ledger.write() {
            let (unwritten, path) = (ledger.unwritten(), self.hunt.out.join("findings.jsonl"));
            troubles.push(format!(
                "{}: {error}; {unwritten} findings are not in it and stand above",
                path.display()
            ));
        }
        for (path, text) in locked(&self.unsaved).iter() {
            troubles.extend(files::save(path, text).err().map(|e| e.to_string()));
        }
        let folder = &self.hunt.out;
        troubles.extend(run.write(folder).err().map(|e| e.to_string()));
        troubles.extend(document::save(folder, &run, &ledger.findings).err().map(|e| e.to_string()));
        let page = (self.hunt.page)(folder);
        let mut text = String::new();
        // Each finding is printed with its class, its datatype, the rule, and the expected and the
        // actual result. After that come the totals, the features that were never tried, and the
        // paths of the files.
        for f in &ledger.findings {
            let mark = match (f.class, f.confirmed) {
                (_, Some(false)) => " (its program does not show it)",
                (_, None) => " (its program was not run)",
                _ => "",
            };
            let _ = writeln!(text, "\n{} {}{mark}, after {:.1} s", f.class.name(), f.fingerprint, f.seconds);
            let _ = writeln!(text, "    {} of {}", f.count, f.datatype);
            let rule = f.rule();
            let _ = writeln!(text, "    MPI 5.0, section {}: {}", rule.section, rule.text);
            let _ = writeln!(text, "    Expected: {}. Instead: {}.", f.expected, f.got);
        }
        let unseen = locked(&self.totals).unseen;
        if unseen > 0 {
            let _ = writeln!(text, "\n{unseen} differences were not looked at: the time was over");
        }
        let never: Vec<&str> =
            run.coverage.iter().filter(|(_, n)| **n == 0).map(|(f, _)| f.as_str()).collect();
        let _ = writeln!(
            text,
            "\n{} cases in {:.1} s ({:.0} a second of one worker), {} workers died, {} hung",
            run.cases, run.seconds, run.rate_of_one, run.workers.died, run.workers.hung
        );
        let _ = writeln!(
            text,
            "coverage: {} features tried; never: {}",
            run.coverage.len() - never.len(),
            none_or(&never)
        );
        let found: Vec<String> = run.found.iter().map(|(class, n)| format!("{n} {class}")).collect();
        let _ = writeln!(text, "found: {}; {}", found.join(", "), folder.join("findings.jsonl").display());
        match page {
            Ok(file) => _ = writeln!(text, "report: {}", file.display()),
            Err(error) => troubles.push(error.to_string()),
        }
        let printed = (self.hunt.print)(format_args!("{text}"));
        if troubles.is_empty() {
            Ok(printed?)
        } else {
            Err(format!("--out: {}", troubles.join("\nerror: --out: ")).into())
        }
    }
}

fn none_or(list: &[&str]) -> String {
    if list.is_empty() { "nothing".to_owned() } else { list.join(", ") }
}
