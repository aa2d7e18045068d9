//! Asks a worker about one datatype at a time, and finds the least one that still shows a difference.

use std::time::{Duration, Instant};

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::fuzzing::{rebuilt, shrink};
use ddtc::internal::methods::*;

use crate::cause::{Known, of_end, owned, suspicious};
use crate::coverage::features;
use crate::difference::{Check, Class, Difference, Mark, rule};
use crate::process::{Death, How, NoWorker, Start, Worker, kept_waiting_here};
use crate::protocol::{Reply, Request};

/// A worker for questions, started when there is one.
pub(crate) struct Prober<'s> {
    start: &'s Start,
    number: usize,
    worker: Option<Worker>,
    /// Workers that it cost.
    pub(crate) deaths: u64,
    pub(crate) hangs: u64,
    /// When the question under way has to be answered.
    until: Instant,
    /// Known causes, whose predictions are no part of an answer.
    pub(crate) known: Vec<Known>,
    /// The end of the run, after which nothing is shrunk.
    end: Option<Instant>,
}

/// Result of shrinking.
pub(crate) enum Shrunk {
    Alone(Box<Difference>),
    /// Known causes explain all of it.
    Explained,
    /// It does not show in a new process, which no other case was in before.
    NotAlone,
}

/// Datatypes that may end or hang the library while one is shrunk. Starting it again takes up to half a second, and a hang ten.
const DEATHS: u64 = 60;
const HANGS: u64 = 2;

/// Time to shrink one difference, and to find what spoiled the heap.
const SHRINKS: Duration = Duration::from_secs(20);
const CULPRIT: Duration = Duration::from_secs(8);

/// How often a question is asked that is to end a process.
const TIMES: u32 = 20;
/// Cases before one that ended a worker which may be to blame, and most that are asked.
pub(crate) const BEFORE: u64 = 6;

/// Returns the difference of a worker that ended.
pub(crate) fn of_death(
    how: How,
    said: &str,
    check: Check,
    (t, large): (&str, bool),
    count: u64,
) -> Difference {
    // An error that is to be returned and ends the process instead is a matter of the error handler, and of no datatype.
    let aborts = check == Check::Truncation && matches!(how, How::Exit(_)) && !said.contains("ssert");
    let kind = match how {
        How::Hang => "hangs",
        _ if aborts => "aborts",
        _ => "dies",
    };
    // A library that lists 2^31 blocks takes its time, which no rule forbids.
    let huge = t.parse().is_ok_and(|t| features(&t).contains("past 2^31"));
    let class = if how == How::Hang && huge { Class::Quality } else { Class::Bug };
    let got = if said.is_empty() { how.to_string() } else { format!("{how}: {said}") };
    let below = t.parse().map(|t| owned(&features(&t))).unwrap_or_default();
    Difference {
        check,
        kind: kind.to_owned(),
        class,
        rule: rule("legal"),
        datatype: t.to_owned(),
        judged: t.to_owned(),
        count,
        large,
        expected: "the calls return".to_owned(),
        got,
        mark: Mark { effects: of_end(&how.to_string(), said), below, ..Mark::default() },
    }
}

impl<'s> Prober<'s> {
    pub(crate) fn new(start: &'s Start, number: usize, end: Option<Instant>) -> Prober<'s> {
        let until = Instant::now();
        Prober { start, number, worker: None, deaths: 0, hangs: 0, until, known: Vec::new(), end }
    }

    /// Whether the time of the question, or of the run, is over.
    fn is_late(&self) -> bool {
        let now = Instant::now();
        now > self.until || self.end.is_some_and(|end| now > end)
    }

    /// The worker's reply. What worker or prober were kept waiting by the machine is no time of the question's.
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

    /// Runs a check on `count` instances of a datatype and returns what it shows.
    ///
    /// # Errors
    /// A library that does not start any more.
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

    /// Datatype, count and form of constructors of a case.
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

    /// Returns the difference that shows the same as `like`, if it is there.
    fn again(&mut self, like: &Difference, t: &Datatype, large: bool, count: u64) -> Option<Difference> {
        let times = if like.is_deadly() { TIMES } else { 1 };
        let found = self.ask((&t.to_string(), large), count, like.check, times).ok()?;
        // An empty mark asks for nothing.
        let any = like.mark.effects.is_empty();
        found.into_iter().find(|d| {
            let effects = &d.mark.effects;
            let same = any || !effects.is_empty() && effects.is_subset(&like.mark.effects);
            d.kind == like.kind && d.class == like.class && d.mark.explained.is_none() && same
        })
    }

    /// Finds the case among some that ends a process, each by each of the checks: one that spoiled the heap for another.
    pub(crate) fn culprit(
        &mut self,
        cases: std::ops::RangeInclusive<u64>,
        checks: &[Check],
    ) -> Option<(u64, Difference)> {
        self.until = Instant::now() + CULPRIT;
        for case in cases.rev() {
            let (t, count, large) = self.show(case)?;
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

    /// Returns the least datatype and count that show what `found` is: the same call with the same effect on bytes that no known cause predicts, and no
    /// shape that may be a cause and was not there before.
    pub(crate) fn shrunk(&mut self, found: &Difference, whole: (&str, u64)) -> Shrunk {
        // What other cases left behind must not decide.
        self.worker = None;
        self.until = Instant::now() + SHRINKS;
        let (deaths, hangs) = (self.deaths, self.hangs);
        let candidates = [(found.datatype.as_str(), found.count), whole];
        let times = if found.is_deadly() { TIMES } else { 1 };
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
            // Every try takes as long as a hang, and what is found breaks no rule.
            return Shrunk::Alone(Box::new(best));
        }
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
        // Once more alone, with the node that it blames.
        Shrunk::Alone(Box::new(best))
    }
}

/// Puts common constructors and types in the place of others as long as `shows` holds, so that one cause has one datatype.
fn canonical(mut t: Datatype, shows: &mut dyn FnMut(&Datatype) -> bool) {
    // What a deep tree shows often takes its depth alone: all constructors at once before one after the other.
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

/// Rank of a constructor; a node is replaced by those of lower rank only.
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

/// Named types by how usual they are.
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

/// Lists the simpler datatypes that may stand for a node.
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
