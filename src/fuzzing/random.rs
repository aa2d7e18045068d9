//! Random tests: checks many generated datatypes, and shrinks and describes the first failure.

use std::fmt;

use super::{Budget, Choices, Mismatch, Oracle, c_program, datatype, instances, shrink};
use crate::datatype::Datatype;
use crate::target::Level;

/// Progress of [`check_random`].
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Number of cases that have been checked.
    pub done: u64,
    /// Number of cases to check.
    pub cases: u64,
    /// Summary of the cases so far.
    pub summary: &'a Summary,
}

/// Counts of a run of random tests in which no check failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of datatypes that were checked.
    pub cases: u64,
    /// Number of kernels that were compiled and compared, summed over CPU levels and directions.
    pub kernels: u64,
    /// Number of schedules that were refused by design. Such nests are interpreted.
    pub refusals: u64,
    /// Number of packed bytes of all datatypes that were checked.
    pub bytes: u64,
    /// Number of constructors of the largest datatype.
    pub nodes: u64,
}

/// A datatype that fails a check, after shrinking.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The shrunk datatype.
    pub datatype: Datatype,
    /// Number of instances with which the check fails.
    pub count: u64,
    /// Check that fails for the shrunk datatype.
    pub mismatch: Mismatch,
    /// The datatype as it was generated.
    pub generated: Datatype,
    /// Seed of the run and number of the case, from 0, if the datatype was generated from these.
    /// Together they make the datatype again.
    pub origin: Option<(u64, u64)>,
}

impl Failure {
    /// Shrinks `t`, for which a check fails with `mismatch` for `count` instances at `levels`. If
    /// the failure does not occur again, nothing is shrunk.
    pub fn shrunk(t: &Datatype, count: u64, mismatch: Mismatch, levels: &[Level]) -> Failure {
        let mut failure =
            Failure { datatype: t.clone(), count, mismatch, generated: t.clone(), origin: None };
        // Use new engines, so that the result does not depend on what an earlier candidate has left
        // in a cache.
        let check = |t: &Datatype, count: u64| {
            let mut cuts = Choices::from_seed(t.structural_hash() as u64 ^ count);
            Oracle::new(levels).check(t, count, &mut cuts).err()
        };
        for count in (0..count).filter(|&n| n < 4 || n == count / 2) {
            if let Some(mismatch) = check(t, count) {
                (failure.count, failure.mismatch) = (count, mismatch);
                break;
            }
        }
        let count = failure.count;
        let mut last = None;
        failure.datatype = shrink(t, |t| {
            let found = check(t, count);
            let fails = found.is_some();
            last = found.or(last.take());
            fails
        });
        if let Some(mismatch) = check(&failure.datatype, count).or(last) {
            failure.mismatch = mismatch;
        }
        failure
    }

    /// Returns the text of a filetest that fails as long as this failure exists. It belongs in
    /// `tests/filetests/engines/`.
    pub fn filetest(&self) -> String {
        format!("; test engines\n; counts {}\n{}\n", self.count, self.datatype)
    }

    /// Returns a C program that checks an MPI library with the shrunk datatype.
    pub fn c_program(&self) -> String {
        c_program(&self.datatype, self.count)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((seed, case)) = self.origin {
            write!(f, "case {case} of seed {seed}: ")?;
        }
        writeln!(f, "{} of {}", self.count, self.datatype)?;
        writeln!(f, "{}", self.mismatch)?;
        if self.generated != self.datatype {
            writeln!(f, "\nshrunk from: {}", self.generated)?;
        }
        writeln!(f, "\nas a filetest, tests/filetests/engines/NAME.ddt:\n{}", self.filetest())?;
        writeln!(f, "as a C program:\n{}", self.c_program())
    }
}

impl std::error::Error for Failure {}

/// Checks `cases` random datatypes at every CPU level of this machine. The same seed gives the same
/// datatypes. `progress` is called after every case that passes.
///
/// # Errors
/// The first failure, shrunk.
pub fn check_random(
    cases: u64,
    seed: u64,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<Summary, Box<Failure>> {
    let levels: Vec<Level> = Level::available().collect();
    let mut oracle = Oracle::new(&levels);
    let mut summary = Summary::default();
    for case in 0..cases {
        // Each case has choices of its own, so that a single case can be repeated without the
        // others.
        let mut c = Choices::from_seed(
            seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ case.wrapping_mul(0x9e6c_63d0_876a_68ed),
        );
        let budget = if c.chance(64) { Budget::default() } else { Budget::small() };
        let t = datatype(&mut c, &budget);
        let mut count = instances(&mut c);
        // Many instances of a large datatype would take time and find nothing more.
        if t.size().max(t.extent().abs()) > 4 << 10 {
            count = count.min(3);
        }
        match oracle.check(&t, count, &mut c) {
            Ok(verdict) => {
                summary.cases += 1;
                summary.kernels += verdict.kernels;
                summary.refusals += verdict.refusals;
                summary.bytes += t.size() as u64 * count;
                summary.nodes = summary.nodes.max(t.nodes().count() as u64);
            }
            Err(mismatch) => {
                let mut failure = Failure::shrunk(&t, count, mismatch, &levels);
                failure.origin = Some((seed, case));
                return Err(Box::new(failure));
            }
        }
        progress(&Progress { done: case + 1, cases, summary: &summary });
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_random_datatypes() {
        let mut calls = 0;
        let summary = check_random(300, 1, &mut |p| calls += u64::from(p.cases == 300))
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((calls, summary.cases), (300, 300));
        assert!(summary.kernels > 6 * summary.refusals, "{summary:?}");
    }

    #[test]
    fn a_failure_prints_itself() {
        let t: Datatype = "contiguous(3,vector(2,1,3,int))".parse().unwrap();
        let mismatch =
            Mismatch { stage: "normalize", direction: None, level: None, detail: "made up".to_owned() };
        // Nothing fails here, so nothing is shrunk.
        let failure = Failure::shrunk(&t, 5, mismatch, &[Level::Baseline]);
        assert_eq!((&failure.datatype, failure.count), (&t, 5));
        let text = failure.to_string();
        for part in
            ["normalize: made up", "; test engines\n; counts 5\ncontiguous(3,", "MPI_Type_contiguous(3, t"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
