//! The file run.json, which has the state of a run.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::finding::About;
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
    /// Cases per second of one worker, counting only the time in which workers ran cases.
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
    /// Number of times that code compiled by ddtc packed the datatype of a case.
    pub(crate) compiled: u64,
    pub(crate) workers: Workers,
    /// Number of findings of each class.
    pub(crate) found: BTreeMap<&'static str, u64>,
    /// Number of times that each cause was seen.
    pub(crate) hits: BTreeMap<String, u64>,
    pub(crate) finished: bool,
}

/// Numbers of workers that ended.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
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
