//! The state of a run that its jobs share: case numbers, totals, and findings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ddtc::internal::files;
use ddtc::internal::methods::*;

use crate::confirm::Compiler;
use crate::coverage::{CONSTRUCTORS, FEATURES};
use crate::difference::{Check, Class, Difference};
use crate::document;
use crate::finding::{About, Finding, Ledger, RuleName};
use crate::library::MISUSES;
use crate::process::Start;
use crate::protocol::{Avoid, Done};
use crate::record::{Run, Workers};
use crate::{Hunt, program};

/// State that the jobs share.
pub(crate) struct Shared<'h> {
    pub(crate) hunt: &'h Hunt,
    pub(crate) start: Start,
    pub(crate) library: About,
    pub(crate) compiler: Result<Compiler, String>,
    pub(crate) began: Instant,
    pub(crate) next: AtomicU64,
    pub(crate) stop: AtomicBool,
    pub(crate) totals: Mutex<Totals>,
    pub(crate) ledger: Mutex<Ledger>,
    /// Texts of the programs that could not be written, with the paths to write them to.
    pub(crate) unsaved: Mutex<Vec<(PathBuf, String)>>,
    pub(crate) avoid: Mutex<Vec<Avoid>>,
}

#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) cases: u64,
    pub(crate) unbuilt: u64,
    pub(crate) avoided: u64,
    pub(crate) compiled: u64,
    pub(crate) unseen: u64,
    /// Seconds in which workers ran cases, summed over all jobs.
    pub(crate) busy: f64,
    pub(crate) features: BTreeMap<String, u64>,
    pub(crate) workers: Workers,
}

/// Locks a mutex, even if a thread panicked while it held the lock. The data behind the mutex, such
/// as the totals, are still right in that case.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared<'_> {
    /// Returns true if the run is over, so that no new case and no new shrinking may begin.
    pub(crate) fn is_over(&self) -> bool {
        let time = self.hunt.seconds.is_some_and(|s| self.began.elapsed().as_secs_f64() >= s);
        time || self.stop.load(Ordering::Relaxed)
    }

    /// Returns the time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the checks that each case runs.
    pub(crate) fn checks(&self) -> &[Check] {
        &self.hunt.only
    }

    /// Counts a worker that ended.
    pub(crate) fn ended(&self, hung: bool) {
        let workers = &mut locked(&self.totals).workers;
        *(if hung { &mut workers.hung } else { &mut workers.died }) += 1;
    }

    /// Adds to the totals the cases that a worker ran but did not report, because it ended before
    /// its next report.
    pub(crate) fn passed(&self, cases: u64) {
        locked(&self.totals).cases += cases;
    }

    /// Counts differences that were not examined, because the time was over.
    pub(crate) fn unseen(&self, differences: u64) {
        locked(&self.totals).unseen += differences;
    }

    /// Returns the next `n` case numbers, or fewer at the end. Returns none if all numbers were
    /// handed out or the run is over.
    pub(crate) fn take(&self, n: u64) -> Option<std::ops::Range<u64>> {
        let end = self.hunt.cases.unwrap_or(u64::MAX);
        let from = self.next.fetch_add(n, Ordering::Relaxed);
        (from < end && !self.is_over()).then(|| from..end.min(from.saturating_add(n)))
    }

    // Adds the results of some cases to the totals.
    pub(crate) fn count(&self, done: &Done) {
        let mut totals = locked(&self.totals);
        totals.cases += done.cases;
        totals.unbuilt += done.unbuilt;
        totals.avoided += done.avoided;
        totals.compiled += done.compiled;
        totals.busy += done.seconds;
        for (feature, n) in &done.features {
            *totals.features.entry(feature.clone()).or_default() += n;
        }
    }

    // Records the finding for `d`, a difference with a new cause called `name`. Writes a C program
    // that shows the difference, and runs that program to confirm the finding.
    pub(crate) fn found(&self, d: &Difference, name: String, original: &str, case: u64) {
        let t: Option<ddtc::internal::datatype::Datatype> = d.datatype.parse().ok();
        let constructors = t.map_or(0, |t| t.nodes().filter(|n| n.basic().is_none()).count());
        let finding = Finding {
            fingerprint: name,
            class: d.class,
            check: d.check,
            kind: d.kind.clone(),
            library: self.library.clone(),
            rule: RuleName { name: d.rule.clone() },
            datatype: d.datatype.clone(),
            original: Some(original.to_owned()),
            count: d.count,
            constructors: constructors as u32,
            expected: d.expected.clone(),
            got: d.got.clone(),
            effects: d.mark.effects.clone(),
            program: None,
            confirmed: None,
            seed: Some(self.hunt.seed),
            case: Some(case),
            seconds: 0.0,
            elsewhere: Vec::new(),
        };
        let text = program::program(d, &document::head(&finding));
        self.write(finding, text);
    }

    // Saves the program of a finding, compiles and runs it if there is a compiler, and adds the
    // finding to the ledger.
    fn write(&self, mut finding: Finding, text: Option<String>) {
        // A program that cannot be saved now is kept, and saved at the end of the run. Such a
        // program is never run, so its finding is neither confirmed nor refuted.
        if let Some(text) = text {
            let file = format!("{}.c", finding.fingerprint.replace(['/', ' '], "-"));
            let path = self.hunt.out.join(&file);
            match files::save(&path, &text) {
                Err(error) => {
                    eprintln!("ddtc: {error}; the program is kept in memory and tried again at the end");
                    locked(&self.unsaved).push((path, text));
                }
                Ok(()) => {
                    finding.confirmed =
                        self.compiler.as_ref().ok().and_then(|compiler| match compiler.confirms(&path) {
                            Ok(shown) => Some(shown),
                            Err(why) => {
                                eprintln!("ddtc: {file}: {why}");
                                None
                            }
                        });
                }
            }
            finding.program = Some(file);
        }
        finding.seconds = self.began.elapsed().as_secs_f64();
        locked(&self.ledger).record(finding);
    }

    // Records a forbidden call that the library accepted, or that ended the process.
    pub(crate) fn misuse(&self, which: usize, got: &str) {
        let name = format!("misuse.{}", MISUSES[which].name);
        let finding = Finding {
            fingerprint: name.clone(),
            class: Class::Quality,
            check: Check::Commit,
            kind: "misuse".to_owned(),
            library: self.library.clone(),
            rule: RuleName { name },
            datatype: "int".to_owned(),
            original: Some("int".to_owned()),
            count: 1,
            constructors: 0,
            expected: "the call returns an error class".to_owned(),
            got: got.to_owned(),
            effects: BTreeSet::new(),
            program: None,
            confirmed: None,
            seed: Some(self.hunt.seed),
            case: Some(which as u64),
            seconds: 0.0,
            elsewhere: Vec::new(),
        };
        let text = program::of_misuse(which, &document::head(&finding));
        self.write(finding, Some(text));
    }

    // Returns the present contents of run.json.
    pub(crate) fn record(&self, finished: bool) -> Run {
        let seconds = self.began.elapsed().as_secs_f64();
        let (totals, ledger) = (locked(&self.totals), locked(&self.ledger));
        let mut found = BTreeMap::from([("bug", 0), ("quality", 0), ("open", 0)]);
        for finding in &ledger.findings {
            *found.entry(finding.class.name()).or_default() += 1;
        }
        let all = FEATURES.iter().chain(&CONSTRUCTORS);
        let coverage = all.map(|&f| (f.to_owned(), totals.features.get(f).copied().unwrap_or(0))).collect();
        Run {
            library: self.library.clone(),
            seed: self.hunt.seed,
            cases: totals.cases,
            seconds,
            rate: totals.cases as f64 / seconds.max(1e-9),
            rate_of_one: totals.cases as f64 / totals.busy.max(1e-9),
            jobs: self.hunt.jobs,
            checks: self.hunt.only.iter().map(|c| c.name()).collect(),
            coverage,
            unbuilt: totals.unbuilt,
            avoided: totals.avoided,
            avoid: locked(&self.avoid).clone(),
            compiled: totals.compiled,
            workers: totals.workers,
            found,
            hits: ledger.hits(),
            finished,
        }
    }
}
