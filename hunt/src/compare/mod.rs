//! The comparisons: what a library says and does about a datatype, with the definition and with compiled code. One file a check.

mod attributes;
mod bounds;
mod collectives;
mod commit;
mod decode;
mod effect;
mod elements;
mod external32;
mod messages;
mod pack;
mod partner;
mod truncation;
pub(crate) mod values;

use std::collections::BTreeSet;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::Engine;
use ddtc::internal::methods::*;

use crate::cause::{Known, of_texts, owned};
use crate::coverage::features;
use crate::difference::{Check, Class, Difference, Mark, rule};
use crate::library::{ABSENT, Library, Refusal};
use crate::subject::{Map, Node, Subject};
use effect::{Compared, Order, RUNS, Seen};
pub(crate) use truncation::ROOMS;

/// State that the checks of a worker share.
pub(crate) struct Context<'l> {
    pub(crate) library: &'l Library,
    pub(crate) engine: Engine,
    /// Packs that compiled code did.
    pub(crate) compiled: u64,
    /// Whether checks that are dear run on every case, not on some.
    pub(crate) thorough: bool,
    /// Causes whose bytes are left out.
    pub(crate) known: Vec<Known>,
}

/// Where differences of one subject go.
pub(crate) struct Report<'s> {
    pub(crate) subject: &'s Subject,
    check: Check,
    pub(crate) found: Vec<Difference>,
    /// The comparisons behind differences of bytes.
    seen: Vec<Seen>,
}

impl<'s> Report<'s> {
    fn new(subject: &'s Subject, check: Check) -> Report<'s> {
        Report { subject, check, found: Vec::new(), seen: Vec::new() }
    }

    /// A difference between bytes, in the words that name the first; `matters` says which bytes are compared.
    fn add_bytes(
        &mut self,
        what: (&str, Class, &str),
        (expected, got): (String, String),
        compared: &Compared<'_>,
        matters: impl Fn(usize) -> bool,
    ) {
        let (kind, class, rule_name) = what;
        let before = self.found.len();
        self.add(kind, class, rule_name, expected, got);
        if self.found.len() > before {
            self.seen.push(Seen::of(kind, compared, matters));
        }
    }

    /// A difference of the whole datatype.
    fn add(
        &mut self,
        kind: &str,
        class: Class,
        rule_name: &str,
        expected: impl ToString,
        got: impl ToString,
    ) {
        let node = self.subject.root();
        let (plain, judged, count) = (node.plain.clone(), node.judged.clone(), self.subject.count);
        self.add_of(&plain, &judged, count, (kind, class, rule_name), expected, got);
    }

    /// Something written where nothing may be: beyond an area, or in a gap.
    fn add_stray(
        &mut self,
        what: (&str, Class, &str),
        effect: &str,
        expected: impl ToString,
        got: impl ToString,
    ) {
        let before = self.found.len();
        self.add(what.0, what.1, what.2, expected, got);
        for d in &mut self.found[before..] {
            d.mark.effects = BTreeSet::from([effect.to_owned()]);
        }
    }

    /// A difference of one node.
    fn add_at(
        &mut self,
        node: &Node,
        what: (&str, Class, &str),
        expected: impl ToString,
        got: impl ToString,
    ) {
        self.add_of(&node.plain, &node.judged, 1, what, expected, got);
    }

    fn add_of(
        &mut self,
        plain: &Datatype,
        judged: &Datatype,
        count: u64,
        (kind, class, rule_name): (&str, Class, &str),
        expected: impl ToString,
        got: impl ToString,
    ) {
        let check = self.check;
        // One of a kind tells.
        if self.found.iter().any(|d| d.check == check && d.kind == kind) {
            return;
        }
        let (expected, got) = (expected.to_string(), got.to_string());
        let (effects, below) = (of_texts(&expected, &got), owned(&features(plain)));
        self.found.push(Difference {
            check,
            kind: kind.to_owned(),
            class,
            rule: rule(rule_name),
            datatype: plain.to_string(),
            judged: judged.to_string(),
            count,
            large: is_large(plain),
            expected,
            got,
            mark: Mark { effects, below, ..Mark::default() },
        });
    }

    /// A legal call that the library refuses. A call that it does not have is none.
    fn refused(&mut self, refusal: Refusal) {
        if refusal.class != ABSENT {
            let kind = format!("refused-{}", refusal.call.trim_start_matches("MPI_").to_lowercase());
            self.add(&kind, Class::Bug, "legal", "MPI_SUCCESS", refusal);
        }
    }
}

/// Result of a case.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) found: Vec<Difference>,
    /// Whether the library built the datatype.
    pub(crate) built: bool,
}

/// Runs `checks` on `count` instances of `t`. `begin` is called before each.
pub(crate) fn run(
    context: &mut Context<'_>,
    t: &Datatype,
    count: u64,
    checks: &[Check],
    begin: &mut dyn FnMut(Check),
) -> Outcome {
    // Building is a part of every check; whoever dies in it dies in the first.
    begin(checks.first().copied().unwrap_or(Check::Bounds));
    let library = context.library;
    let subject = match Subject::build(library, t, count) {
        Ok(subject) => subject,
        Err((node, refusal)) => return Outcome { found: unbuilt(&node, refusal, checks), built: false },
    };
    let mut report = Report::new(&subject, Check::Bounds);
    // What is too large to be touched is committed by its own check alone: libraries list every block of it.
    let moves = checks.iter().any(|c| !matches!(c, Check::Bounds | Check::Decode));
    let commits = moves && (subject.map().is_some() || checks.contains(&Check::Commit));
    if commits && let Err(refusal) = subject.commit(library) {
        report.check = Check::Commit;
        report.refused(refusal);
    }
    for &check in checks {
        begin(check);
        report.check = check;
        let first = report.found.len();
        one(context, &mut report, check);
        told_apart(context, &mut report, first);
    }
    let found = report.found;
    subject.free(library);
    Outcome { found, built: true }
}

fn one(context: &mut Context<'_>, report: &mut Report<'_>, check: Check) {
    match check {
        Check::Bounds => return bounds::run(context, report),
        Check::Decode => return decode::run(context, report),
        Check::Attributes => return attributes::run(context, report),
        Check::Commit => return commit::run(context, report),
        _ => {}
    }
    let Some(map) = report.subject.map().filter(|m| m.size > 0) else { return };
    match check {
        Check::Pack => pack::pack(context, report, map),
        Check::Unpack => pack::unpack(context, report, map),
        Check::Elements => elements::run(context, report, map),
        Check::External32 => external32::run(context, report, map),
        Check::Messages => messages::run(context, report, map),
        Check::Truncation => truncation::run(context, report, map),
        _ => collectives::run(context, report, map),
    }
}

/// Gives the differences of bytes from `first` on their marks, after some more runs of their check with other patterns.
fn told_apart(context: &mut Context<'_>, report: &mut Report<'_>, first: usize) {
    let seen = std::mem::take(&mut report.seen);
    let is_bug = |d: &Difference| d.class == Class::Bug;
    if seen.is_empty() || !report.found[first..].iter().any(is_bug) {
        return;
    }
    let (subject, check) = (report.subject, report.check);
    let again: Vec<Vec<Seen>> = (1..=RUNS)
        .map(|salt| {
            let mut again = Report::new(subject, check);
            values::salted(salt, || one(context, &mut again, check));
            again.seen
        })
        .collect();
    for d in report.found[first..].iter_mut().filter(|d| is_bug(d)) {
        let of_kind = |list: &'_ [Seen]| list.iter().find(|s| s.kind == d.kind).cloned();
        let Some(own) = of_kind(&seen) else { continue };
        let others: Vec<Seen> = again.iter().filter_map(|list| of_kind(list)).collect();
        let runs: Vec<&Seen> = std::iter::once(&own).chain(&others).collect();
        if let Some(mark) = effect::mark(d, &subject.root().judged, &runs, &context.known) {
            d.mark = mark;
        }
    }
}

/// Whether a datatype was built by constructors of large counts, also where no number asks for them.
fn is_large(t: &Datatype) -> bool {
    t.nodes().any(Datatype::is_large_count)
}

/// A constructor that the library refuses.
fn unbuilt(node: &Datatype, refusal: Refusal, checks: &[Check]) -> Vec<Difference> {
    if refusal.class == ABSENT || refusal.class == 0 {
        return Vec::new();
    }
    // What needs more than an int or more than 64 bits in some sum is refused for good reasons.
    let large = node.is_large_count() || node.size() > i64::from(i32::MAX) || node.true_extent() > 1 << 31;
    let mark = Mark {
        effects: of_texts("MPI_SUCCESS", &refusal.to_string()),
        below: owned(&features(node)),
        ..Mark::default()
    };
    vec![Difference {
        check: checks.first().copied().unwrap_or(Check::Bounds),
        kind: format!("refused-{}", refusal.call.trim_start_matches("MPI_").to_lowercase()),
        class: if large { Class::Open } else { Class::Bug },
        rule: rule("legal"),
        datatype: node.to_string(),
        judged: node.to_string(),
        count: 1,
        large: is_large(node),
        expected: "MPI_SUCCESS".to_owned(),
        got: refusal.to_string(),
        mark,
    }]
}

/// The first place at which two slices differ where `matters`.
fn first_difference(got: &[u8], want: &[u8], matters: impl Fn(usize) -> bool) -> Option<usize> {
    if got == want {
        return None;
    }
    (0..want.len().min(got.len())).find(|&i| got[i] != want[i] && matters(i))
}

fn byte(what: &str, at: i64, value: u8) -> String {
    format!("{what} {at} is {value:#04x}")
}

/// Whether a comparison of `map` compares each byte.
fn plain_bytes(map: &Map) -> bool {
    !map.any(values::has_padding)
}
