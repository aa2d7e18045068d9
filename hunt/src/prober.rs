//! The prober. It lets a worker run a check on one datatype at a time, to find the smallest
//! datatype that still shows a difference.

use std::time::{Duration, Instant};

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::fuzzing::{rebuilt, shrink};
use ddtc::internal::methods::*;

use crate::cause::{Known, of_end, owned, suspicious};
use crate::coverage::features;
use crate::difference::{Check, Class, Difference, Mark};
use crate::process::{Death, How, NoWorker, Start, Worker, kept_waiting_here};
use crate::protocol::{Reply, Request};

/// The prober of one job, with a worker that runs checks on single datatypes. The worker is started
/// when the first request is sent.
pub(crate) struct Prober<'s> {
    start: &'s Start,
    number: usize,
    worker: Option<Worker>,
    /// Numbers of workers that ended while they ran a check for this prober. `deaths` is the number
    /// of all of them, and `hangs` of those that were killed because they hung.
    pub(crate) deaths: u64,
    pub(crate) hangs: u64,
    /// Time at which the search in progress must end: the shrinking of a difference, or the search
    /// for an earlier case that is to blame.
    until: Instant,
    /// Known causes of differences, which each request contains. The worker ignores wrong bytes
    /// that these causes predict.
    pub(crate) known: Vec<Known>,
    /// End of the run, after which nothing is shrunk.
    end: Option<Instant>,
}

/// Result of shrinking a difference.
pub(crate) enum Shrunk {
    Alone(Box<Difference>),
    /// Known causes explain the whole difference.
    Explained,
    /// The difference does not show in a new process, in which no other case ran before.
    NotAlone,
}

/// Maximum numbers of deaths and of hangs of the library while one difference is shrunk. Starting
/// the library again takes up to half a second, and waiting for a hang takes several seconds.
const DEATHS: u64 = 60;
const HANGS: u64 = 2;

/// Maximum time for shrinking one difference, and maximum time for finding the earlier case that is
/// to blame for the end of a process, for example because it spoiled the heap.
const SHRINKS: Duration = Duration::from_secs(20);
const CULPRIT: Duration = Duration::from_secs(8);

/// Number of times that one request runs a check if the difference in question is that the process
/// ends. A single run may not end the process, because a spoiled heap often shows only later.
const TIMES: u32 = 20;
/// Maximum number of earlier cases that are run again after a case ended a worker. One of these
/// cases may be to blame, for example because it spoiled the heap.
pub(crate) const BEFORE: u64 = 6;

/// Returns the clause that says how a process ended and what it printed.
pub(crate) fn ended(how: How, said: &str) -> String {
    match said {
        "" => how.to_string(),
        said => format!("{how} and prints `{}`", said.replace('`', "'")),
    }
}

/// Returns the difference that says that a worker died or hung during `check` on `count` instances
/// of the datatype `t`.
pub(crate) fn of_death(
    how: How,
    said: &str,
    check: Check,
    (t, large): (&str, bool),
    count: u64,
) -> Difference {
    // If a process exits in the check `truncation` without a failed assertion, the library ended it
    // instead of returning an error. That depends on the error handler, and not on the datatype.
    let aborts = check == Check::Truncation && matches!(how, How::Exit(_)) && !said.contains("ssert");
    let kind = match how {
        How::Hang => "hangs",
        _ if aborts => "aborts",
        _ => "dies",
    };
    // A library that lists 2^31 blocks needs much time, and no rule of the standard forbids that.
    // So a hang on such a large datatype is not classified as a bug.
    let huge = t.parse().is_ok_and(|t| features(&t).contains("past 2^31"));
    let class = if how == How::Hang && huge { Class::Quality } else { Class::Bug };
    // The call of the check `truncation` is erroneous. It must return nevertheless, because the
    // error handler is MPI_ERRORS_RETURN.
    let rule = if check == Check::Truncation { "handler" } else { "legal" };
    let got = ended(how, said);
    let below = t.parse().map(|t| owned(&features(&t))).unwrap_or_default();
    Difference {
        check,
        kind: kind.to_owned(),
        class,
        rule: rule.to_owned(),
        datatype: t.to_owned(),
        judged: t.to_owned(),
        count,
        large,
        expected: "every call returns".to_owned(),
        got,
        mark: Mark { effects: of_end(&how.to_string(), said), below, ..Mark::default() },
    }
}

impl<'s> Prober<'s> {
    pub(crate) fn new(start: &'s Start, number: usize, end: Option<Instant>) -> Prober<'s> {
        let until = Instant::now();
        Prober { start, number, worker: None, deaths: 0, hangs: 0, until, known: Vec::new(), end }
    }

    /// Returns true if the time for the search in progress (`until`), or the time of the run, is
    /// over.
    fn is_late(&self) -> bool {
        let now = Instant::now();
        now > self.until || self.end.is_some_and(|end| now > end)
    }

    /// Sends a request to the worker and returns its reply. Starts a worker if there is none. The
    /// deadline `until` is postponed by the time in which the worker or this thread waited for a
    /// processor.
    fn reply(
        &mut self,
        request: &Request,
        read: fn(&mut Worker) -> Result<Reply, Death>,
    ) -> Result<Result<Reply, Death>, NoWorker> {
        let here = kept_waiting_here();
        let (worker, before) = match &mut self.worker {
            Some(worker) => {
                let before = worker.waited;
                (worker, before)
            }
            none => (none.insert(Worker::start(self.start, self.number)?), Duration::ZERO),
        };
        worker.ask(request);
        let reply = read(worker);
        self.until += worker.waited.saturating_sub(before) + kept_waiting_here().saturating_sub(here);
        Ok(reply)
    }

    /// Runs a check on `count` instances of a datatype and returns the differences that it shows.
    /// If the library ends or hangs the worker, returns one difference that says so.
    ///
    /// # Errors
    /// Returns an error if no new worker can be started.
    pub(crate) fn ask(
        &mut self,
        (t, large): (&str, bool),
        count: u64,
        check: Check,
        times: u32,
    ) -> Result<Vec<Difference>, NoWorker> {
        let known = self.known.clone();
        let request = Request::Try { datatype: t.to_owned(), large, count, check, times, known };
        match self.reply(&request, Worker::answer)? {
            Ok(Reply::Tried { differences, .. }) => Ok(differences),
            Ok(_) => Ok(Vec::new()),
            Err(death) => {
                self.worker = None;
                self.deaths += 1;
                self.hangs += u64::from(death.how == How::Hang);
                Ok(vec![of_death(death.how, &death.said, check, (t, large), count)])
            }
        }
    }

    /// Returns the datatype and the count of a case, and whether it uses the large-count
    /// constructors. Returns none if the library cannot build the case, or the worker ends.
    pub(crate) fn show(&mut self, case: u64) -> Option<(String, u64, bool)> {
        match self.reply(&Request::Show { case }, Worker::reply).ok()? {
            Ok(Reply::Shown { case }) => case,
            Ok(_) => None,
            Err(_) => {
                self.worker = None;
                None
            }
        }
    }

    /// Runs the check of `like` on another datatype and count. If the check shows a difference of
    /// the same kind and class as `like`, returns this difference. The difference must have no
    /// effects that `like` does not have, and no known cause may explain it.
    fn again(&mut self, like: &Difference, t: &Datatype, large: bool, count: u64) -> Option<Difference> {
        let times = if like.is_deadly() { TIMES } else { 1 };
        let found = self.ask((&t.to_string(), large), count, like.check, times).ok()?;
        // If no effects are recorded for `like`, any effects are accepted.
        let any = like.mark.effects.is_empty();
        found.into_iter().find(|d| {
            let effects = &d.mark.effects;
            let same = any || !effects.is_empty() && effects.is_subset(&like.mark.effects);
            d.kind == like.kind && d.class == like.class && d.mark.explained.is_none() && same
        })
    }

    /// Looks for the case that is to blame for the end of a process, which may be an earlier case
    /// that spoiled the heap. Runs the given cases again, beginning with the last, and returns the
    /// first that ends the process, together with this difference. Each case that the library can
    /// build is run with each of the checks. Returns none if no case ends the process or if the
    /// time is over.
    pub(crate) fn culprit(
        &mut self,
        cases: std::ops::RangeInclusive<u64>,
        checks: &[Check],
    ) -> Option<(u64, Difference)> {
        self.until = Instant::now() + CULPRIT;
        for case in cases.rev() {
            let Some((t, count, large)) = self.show(case) else { continue };
            for &check in checks {
                if self.is_late() {
                    return None;
                }
                let found = self.ask((&t, large), count, check, TIMES).ok()?;
                if let Some(deadly) = found.into_iter().find(Difference::is_deadly) {
                    return Some((case, deadly));
                }
            }
        }
        None
    }

    /// Shrinks a difference: finds the smallest datatype and count that show the same kind of
    /// difference with the same effects. Bytes that known causes predict are ignored. A datatype is
    /// never shrunk to one that has a feature which may be a cause on its own and which it did not
    /// have before.
    pub(crate) fn shrunk(&mut self, found: &Difference, whole: (&str, u64)) -> Shrunk {
        // Start with a new process, so that earlier cases have no influence.
        self.worker = None;
        self.until = Instant::now() + SHRINKS;
        let (deaths, hangs) = (self.deaths, self.hangs);
        let candidates = [(found.datatype.as_str(), found.count), whole];
        let times = if found.is_deadly() { TIMES } else { 1 };
        // There are two candidates: the node that is to blame, and then the whole datatype of the
        // case. The first of them that shows a difference that known causes do not explain is
        // shrunk.
        let (mut first, mut explained) = (None, false);
        for (text, count) in candidates {
            let Ok(t) = text.parse::<Datatype>() else { continue };
            let Ok(shown) = self.ask((text, found.large), count, found.check, times) else { break };
            let Some(d) = shown.into_iter().find(|d| d.kind == found.kind && d.class == found.class) else {
                continue;
            };
            explained |= d.mark.explained.is_some();
            if d.mark.explained.is_none() {
                first = Some((t, d));
                break;
            }
        }
        let Some((mut t, mut best)) = first else {
            return if explained { Shrunk::Explained } else { Shrunk::NotAlone };
        };
        // The simple reductions come first: constructors without large counts, and a smaller number
        // of instances.
        let (found, there) = (&best.clone(), suspicious(&t));
        let mut large = found.large;
        if large && let Some(smaller) = self.again(found, &t, false, best.count) {
            (large, best) = (false, smaller);
        }
        for count in [1, 2, 3].into_iter().filter(|&n| n < best.count) {
            if let Some(smaller) = self.again(found, &t, large, count) {
                best = smaller;
                break;
            }
        }
        if best.class == Class::Quality && best.kind == "hangs" {
            // A hang of the class `Quality` breaks no rule, and every attempt to shrink it would
            // take as long as a hang.
            return Shrunk::Alone(Box::new(best));
        }
        // Now the datatype itself is shrunk. A smaller datatype is accepted if it still shows the
        // difference. The number of processes that may end on the way, and the time, are limited.
        let count = best.count;
        let mut shows = |prober: &mut Prober<'_>, t: &Datatype| {
            let spent = prober.deaths - deaths > DEATHS || prober.hangs - hangs > HANGS;
            if spent || prober.is_late() || !suspicious(t).is_subset(&there) {
                return false;
            }
            prober.again(found, t, large, count).is_some_and(|d| {
                best = d;
                true
            })
        };
        t = shrink(&t, |t| shows(self, t));
        canonical(t, &mut |t| shows(self, t));
        // `best` is the difference that the last accepted datatype showed. It names that datatype,
        // or the node of it that is to blame.
        Shrunk::Alone(Box::new(best))
    }
}

/// Replaces constructors and types by more common ones as long as `shows` returns true. In this way
/// differences of one cause end, as far as possible, at the same datatype.
fn canonical(mut t: Datatype, shows: &mut dyn FnMut(&Datatype) -> bool) {
    // A difference of a deep tree often depends only on the depth. So the first attempt replaces
    // all constructors at once, and later attempts replace them one by one.
    let plain = rebuilt(&t, &mut |_, combiner| {
        let old = combiner.children().next().cloned();
        match old {
            Some(old) => Datatype::contiguous(1, &old).ok(),
            None => Datatype::new(combiner).ok(),
        }
    });
    if let Some(plain) = plain.filter(|plain| plain.depth() > 3 && plain.to_string() != t.to_string())
        && shows(&plain)
    {
        t = plain;
    }
    'again: loop {
        let nodes: Vec<Datatype> = t.nodes().cloned().collect();
        for node in &nodes {
            for simpler in simpler(node) {
                let candidate = rebuilt(&t, &mut |n, combiner| {
                    if n.id() == node.id() { Some(simpler.clone()) } else { Datatype::new(combiner).ok() }
                });
                if let Some(candidate) = candidate
                    && shows(&candidate)
                {
                    t = candidate;
                    continue 'again;
                }
            }
        }
        return;
    }
}

/// Returns the rank of the constructor or type of a node, which is lower the more common it is.
/// When a datatype is simplified, nodes are replaced only by nodes of lower rank.
fn rank(t: &Datatype) -> u32 {
    match t.combiner() {
        Combiner::Named(n) => LEAVES.iter().position(|l| l == n).map_or(100, |i| i as u32),
        Combiner::Contiguous { .. } => 1,
        Combiner::Vector { .. } => 2,
        Combiner::Hvector { .. } => 3,
        Combiner::Indexed { .. } => 4,
        Combiner::Resized { .. } => 5,
        Combiner::Struct { .. } => 6,
        _ => 7,
    }
}

/// Named types, the most common first.
const LEAVES: [Named; 9] = [
    Named::Byte,
    Named::Char,
    Named::Short,
    Named::Int,
    Named::Double,
    Named::DoubleComplex,
    Named::DoubleInt,
    Named::Real16,
    Named::LongDouble,
];

/// Returns the datatypes of lower rank that may take the place of a node while a difference is
/// simplified.
fn simpler(t: &Datatype) -> Vec<Datatype> {
    let own = rank(t);
    if let Combiner::Named(_) = t.combiner() {
        return LEAVES[..LEAVES.len().min(own as usize)].iter().map(|&n| Datatype::named(n)).collect();
    }
    let Some(old) = t.combiner().children().next() else { return Vec::new() };
    let made = [
        Datatype::contiguous(1, old),
        Datatype::contiguous(2, old),
        Datatype::vector(2, 1, 2, old),
        Datatype::vector(2, 1, -1, old),
        Datatype::hvector(2, 1, 2 * old.extent() + 1, old),
        Datatype::hvector(2, 1, -1, old),
        Datatype::resized(0, 2 * old.extent(), old),
    ];
    made.into_iter().flatten().filter(|t| rank(t) < own).collect()
}
