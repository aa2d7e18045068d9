//! The files run.json, which has the state of a run, and findings.md, which lists its findings for
//! people.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::difference::Class;
use crate::finding::{About, Finding};
use crate::protocol::Avoid;

/// Contents of run.json.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) library: About,
    pub(crate) seed: u64,
    pub(crate) cases: u64,
    pub(crate) seconds: f64,
    /// Cases per second of all jobs together, averaged over the whole run.
    pub(crate) rate: f64,
    /// Cases a second of one worker, over the time in which it runs cases.
    pub(crate) rate_of_one: f64,
    pub(crate) jobs: usize,
    pub(crate) checks: Vec<&'static str>,
    /// Number of cases with each feature. A worker counts all features of every eighth case. In any
    /// other case it counts only features that it has not seen before, and only if the case is one
    /// of the first 8192 or showed a difference.
    pub(crate) coverage: BTreeMap<String, u64>,
    /// Number of cases that the library could not build.
    pub(crate) unbuilt: u64,
    /// `avoid` has the checks that ended the library, each with the features of the datatypes for
    /// which this happened. `avoided` is the number of checks that were skipped for this reason.
    pub(crate) avoid: Vec<Avoid>,
    pub(crate) avoided: u64,
    /// Number of times that compiled code packed for comparison with the library.
    pub(crate) compiled: u64,
    pub(crate) workers: Workers,
    /// Number of findings of each class.
    pub(crate) found: BTreeMap<&'static str, u64>,
    /// Number of times that each cause was seen.
    pub(crate) hits: BTreeMap<String, u64>,
    pub(crate) finished: bool,
}

/// Title in findings.md for findings whose programs do not show them.
const UNCONFIRMED: &str = "Not shown by their programs";

/// Numbers of workers that ended.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Workers {
    pub(crate) died: u64,
    pub(crate) hung: u64,
}

impl Run {
    /// Writes run.json, either as a whole or not at all.
    ///
    /// # Errors
    /// Returns an error that names the file and the system's error.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        Ok(ddtc::internal::files::save(&folder.join("run.json"), serde_json::to_vec_pretty(self)?)?)
    }
}

/// Writes findings.md, either as a whole or not at all.
///
/// # Errors
/// Returns an error that names the file and the system's error.
pub(crate) fn markdown(folder: &Path, run: &Run, findings: &[Finding]) -> Result<(), Box<dyn Error>> {
    let library = &run.library;
    let mut out = format!("# {} {}\n\n", library.name, library.version);
    let checks = run.checks.join(", ");
    let _ = writeln!(
        out,
        "Findings of `ddtc check --mpi` on {} ({}): {} cases of seed {}, checks {checks}.\nWorkers that died: {}, that hung: {}.\n",
        library.version, library.flavour, run.cases, run.seed, run.workers.died, run.workers.hung
    );
    if findings.is_empty() {
        out.push_str("Nothing found.\n");
    }
    for (class, title) in
        [("bug", "Bugs"), ("quality", "Quality"), ("open", "Left open by the standard"), ("", UNCONFIRMED)]
    {
        // A bug is listed under a separate title if its program does not show it.
        let belongs = |f: &&Finding| match (f.class, f.confirmed) {
            (Class::Bug, Some(false)) => class.is_empty(),
            _ => f.class.name() == class,
        };
        let of_class: Vec<&Finding> = findings.iter().filter(belongs).collect();
        if of_class.is_empty() {
            continue;
        }
        let _ = writeln!(out, "## {title}\n");
        for f in of_class {
            section(&mut out, folder, f);
        }
    }
    Ok(ddtc::internal::files::save(&folder.join("findings.md"), out)?)
}

fn section(out: &mut String, folder: &Path, f: &Finding) {
    let _ = writeln!(out, "### {}\n", f.fingerprint);
    let _ = writeln!(out, "    {} of {}\n", f.count, f.datatype);
    let _ = writeln!(out, "* Rule (MPI 5.0, {}): {}.", f.rule.section, f.rule.text);
    let _ = writeln!(out, "* Check: {}. Expected: {}. Got: {}.", f.check, f.expected, f.got);
    let confirmed = match f.confirmed {
        Some(true) => "it shows the finding",
        Some(false) => "unconfirmed: it does not show the finding",
        None => "there was no compiler or header to ask it",
    };
    let program = match folder.join(&f.program).is_file() {
        true => format!("Program: [{0}]({0}); {confirmed}", f.program),
        false => "No program".to_owned(),
    };
    let _ = writeln!(out, "* {program}. Seed {}, case {}.\n", f.seed, f.case);
}
