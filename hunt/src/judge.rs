//! The judge of differences, which are deviations of a library from the definition. It shrinks each
//! difference to a small datatype that still shows it, and records causes that are new.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ddtc::internal::datatype::Datatype;

use crate::cause::{AFTER_OTHERS, SHAPELESS, shape};
use crate::coverage::features;
use crate::difference::{Class, Difference};
use crate::prober::{BEFORE, Prober, Shrunk, of_death};
use crate::process::{Death, How};
use crate::protocol::Avoid;
use crate::shared::{Shared, locked};

/// A difference that a case showed.
pub(super) struct Found {
    pub(super) case: u64,
    pub(super) datatype: String,
    pub(super) count: u64,
    pub(super) difference: Difference,
}

/// Divisor that limits the time for examining differences that end processes. Such differences are
/// postponed once the time spent on them reaches [`ALWAYS`] plus one `SHARE`th of the run so far.
/// The time is limited because starting a library again takes as long as thousands of cases.
const SHARE: u32 = 3;
/// Time that may always be spent on examining differences that end processes, however short the run
/// has been so far.
const ALWAYS: Duration = Duration::from_secs(4);

/// The judge of one job.
pub(super) struct Judge<'s> {
    shared: &'s Shared<'s>,
    pub(super) prober: Prober<'s>,
    /// Differences that end processes. They are kept here until there is time to shrink them.
    later: VecDeque<Found>,
    /// Time spent on differences that end processes.
    spent: Duration,
}

impl<'s> Judge<'s> {
    pub(super) fn new(shared: &'s Shared<'s>, prober: Prober<'s>) -> Judge<'s> {
        Judge { shared, prober, later: VecDeque::new(), spent: Duration::ZERO }
    }

    /// Records the end of a worker as a difference of the case that was running, and judges the
    /// differences that the worker had reported before. Returns the number of the case with which
    /// to continue.
    pub(super) fn died(&mut self, death: &Death, from: u64, found: Vec<Found>) -> u64 {
        self.shared.ended(death.how == How::Hang);
        let at = death.at.filter(|at| at.case >= from);
        if let Some(at) = at {
            self.shared.passed(at.case + 1 - from);
        }
        self.judge(found);
        let Some(at) = at else { return from };
        if let Some((datatype, count, large)) = self.prober.show(at.case) {
            let difference = of_death(death.how, &death.said, at.check, (&datatype, large), count);
            let found = Found { case: at.case, datatype, count, difference };
            // The difference is examined at once if there is time for that. Otherwise workers avoid
            // such cases until it is examined.
            if self.has_time() {
                self.deadly(found);
            } else {
                self.avoid(provisional(&found.difference));
                self.later.push_back(found);
            }
        }
        at.case + 1
    }

    // Returns true if a difference that ends processes may be examined now, because the time spent
    // on such differences has not reached the limit that [`SHARE`] describes.
    fn has_time(&self) -> bool {
        self.spent < ALWAYS + self.shared.elapsed() / SHARE
    }

    /// Examines the differences that were postponed because they end processes, as long as there is
    /// time for them. At the end of the run (`end`) it examines or records all of them.
    pub(super) fn go_on(&mut self, end: bool) {
        while end || self.has_time() {
            let Some(found) = self.later.pop_front() else { return };
            if self.shared.is_over() {
                // The time of the run is over, so the difference is recorded without being shrunk.
                // In this way no difference that ended a process is lost.
                self.written(&found.difference, &found);
            } else {
                self.deadly(found);
            }
        }
    }

    // Shrinks a difference that ended a process, makes workers avoid such cases, and records the
    // difference. If a new process does not end in the same way, looks for an earlier case that is
    // to blame.
    fn deadly(&mut self, found: Found) {
        let began = Instant::now();
        if let Some(avoided) = provisional(&found.difference) {
            locked(&self.shared.avoid).retain(|a| *a != avoided);
        }
        if found.difference.class == Class::Quality {
            // A hang of the class `Quality` breaks no rule, and each attempt to shrink it would
            // take as long as a hang, so it is not shrunk.
            self.avoid(exactly(&found.difference));
            return self.written(&found.difference, &found);
        }
        let shrunk = self.shrunk(&found);
        let d = match shrunk {
            Shrunk::Alone(d) => *d,
            _ => {
                let cases = found.case.saturating_sub(BEFORE)..=found.case;
                let culprit = self.prober.culprit(cases, self.shared.checks());
                match culprit.map(|(_, d)| (self.prober.shrunk(&d, (&d.datatype, d.count)), d)) {
                    Some((Shrunk::Alone(d), _)) => *d,
                    _ => after_others(&found.difference),
                }
            }
        };
        self.avoid(exactly(&d));
        self.written(&d, &found);
        self.spent += began.elapsed();
    }

    /// Shrinks differences and records those with new causes. Once the time of the run is over, the
    /// remaining differences are only counted.
    pub(super) fn judge(&mut self, mut found: Vec<Found>) {
        // Bugs come first, because the time may not suffice for all differences.
        found.sort_by_key(|f| f.difference.class);
        let mut remaining = found.into_iter();
        while let Some(found) = remaining.next() {
            if self.shared.is_over() {
                return self.shared.unseen(1 + remaining.len() as u64);
            }
            // Another job, or the examination of the previous difference, may have found the cause
            // of this difference in the meantime.
            if locked(&self.shared.ledger).causes.explain(&found.difference) {
                continue;
            }
            match self.shrunk(&found) {
                Shrunk::Alone(d) if d.is_deadly() => {
                    self.avoid(exactly(&d));
                    self.written(&d, &found);
                }
                Shrunk::Alone(d) => self.written(&d, &found),
                Shrunk::Explained => {}
                Shrunk::NotAlone => self.written(&after_others(&found.difference), &found),
            }
        }
    }

    fn shrunk(&mut self, found: &Found) -> Shrunk {
        // While a difference is shrunk, wrong bytes that known causes predict are ignored. A
        // difference that a known cause explains as a whole is sometimes examined nevertheless,
        // because it may also show another cause. All its wrong bytes would be ignored, so it is
        // shrunk without the list of known causes.
        self.prober.known = match found.difference.mark.explained {
            Some(_) => Vec::new(),
            None => locked(&self.shared.ledger).causes.list(),
        };
        self.prober.shrunk(&found.difference, (&found.datatype, found.count))
    }

    fn written(&self, d: &Difference, found: &Found) {
        let name = locked(&self.shared.ledger).causes.name(d);
        if let Some(name) = name {
            self.shared.found(d, name, &found.datatype, found.case);
        }
    }

    /// Adds `new` to the list of what workers must avoid, unless it is there already. It is a
    /// check, with the features of the datatypes for which the check must be skipped.
    fn avoid(&self, new: Option<Avoid>) {
        let mut avoid = locked(&self.shared.avoid);
        let new = new.filter(|new| !avoid.contains(new));
        avoid.extend(new);
    }
}

/// Returns what workers must avoid because of a shrunk difference. This is the check of the
/// difference, for all datatypes that have the features of its shape. If the kind of the difference
/// does not depend on a datatype, the check is avoided for all datatypes.
fn exactly(d: &Difference) -> Option<Avoid> {
    if SHAPELESS.contains(&d.kind.as_str()) {
        return Some(Avoid { check: d.check, features: Vec::new() });
    }
    let t: Datatype = d.datatype.parse().ok()?;
    Some(Avoid { check: d.check, features: shape(&t).into_iter().map(str::to_owned).collect() })
}

/// Returns what workers must avoid because of a difference that is not shrunk yet. If the tree is
/// deep, it is not known which depth is to blame, so all trees of depth 8 and more are avoided.
fn provisional(d: &Difference) -> Option<Avoid> {
    let t: Datatype = d.datatype.parse().ok()?;
    let deep = features(&t).contains("depth 8") && !SHAPELESS.contains(&d.kind.as_str());
    if deep { Some(Avoid { check: d.check, features: vec!["depth 8".to_owned()] }) } else { exactly(d) }
}

/// Returns the difference with a suffix in its kind, which says that the difference shows only
/// after other cases ran in the same process.
fn after_others(d: &Difference) -> Difference {
    let mut d = d.clone();
    d.kind += AFTER_OTHERS;
    d
}
