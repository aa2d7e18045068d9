//! The checks. Each compares what an MPI library reports and does for a datatype with what the
//! definition of the datatype gives. The check `pack` also compares compiled code of ddtc with the
//! definition. Each check has a file of its own, except that `pack` and `unpack` share one.

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
use crate::difference::{Check, Class, Difference, Mark};
use crate::library::{ABSENT, Library, Refusal};
use crate::subject::{Map, Node, Subject};
use effect::{Compared, Order, RUNS, Seen};
pub(crate) use truncation::RECEIVE_SIZES;

/// State that the checks of one worker share.
pub(crate) struct Context<'l> {
    pub(crate) library: &'l Library,
    pub(crate) engine: Engine,
    /// Number of times that code compiled by ddtc packed the datatype of a case.
    pub(crate) compiled: u64,
    /// Whether expensive checks run on every case (true), or only on some cases (false).
    pub(crate) thorough: bool,
    /// Causes of differences that were found earlier. Wrong bytes that these causes predict are not
    /// counted in new differences.
    pub(crate) known: Vec<Known>,
}

/// Collector of the differences that checks find on one subject, which is a datatype that was built
/// in the library.
pub(crate) struct Report<'s> {
    pub(crate) subject: &'s Subject,
    check: Check,
    pub(crate) found: Vec<Difference>,
    /// For each reported difference between bytes, the bytes that were compared.
    seen: Vec<Seen>,
}

impl<'s> Report<'s> {
    fn new(subject: &'s Subject, check: Check) -> Report<'s> {
        Report { subject, check, found: Vec::new(), seen: Vec::new() }
    }

    /// Adds a difference between bytes. The texts of the difference name the first byte that
    /// differs. `matters` returns true for the bytes that must be compared.
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
            self.seen.push(Seen::from_comparison(kind, compared, matters));
        }
    }

    /// Adds a difference that concerns the whole datatype.
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

    /// Adds a difference for bytes that were written where the call must not write: outside the
    /// memory of the datatype, or in a gap.
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

    /// Adds a difference that concerns one node of the datatype tree.
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
        // One difference of each kind is sufficient, so later ones of the same check and kind are
        // dropped.
        if self.found.iter().any(|d| d.check == check && d.kind == kind) {
            return;
        }
        let (expected, got) = (expected.to_string(), got.to_string());
        let (effects, below) = (of_texts(&expected, &got), owned(&features(plain)));
        self.found.push(Difference {
            check,
            kind: kind.to_owned(),
            class,
            rule: rule_name.to_owned(),
            datatype: plain.to_string(),
            judged: judged.to_string(),
            count,
            large: is_large(plain),
            expected,
            got,
            mark: Mark { effects, below, ..Mark::default() },
        });
    }

    /// Adds a difference for a legal call that the library refuses. Nothing is added for a call
    /// that the library does not have.
    fn refused(&mut self, refusal: Refusal) {
        if refusal.class != ABSENT {
            let kind = format!("refused-{}", refusal.call.trim_start_matches("MPI_").to_lowercase());
            self.add(&kind, Class::Bug, "legal", refusal.refuted(), refusal);
        }
    }
}

/// Result of running checks on one case, which is a datatype with a number of instances.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) found: Vec<Difference>,
    /// Whether the library could build the datatype.
    pub(crate) built: bool,
}

/// Runs `checks` on `count` instances of `t`. Calls `begin` with the first check before `t` is
/// built, and with each check before that check runs.
pub(crate) fn run(
    context: &mut Context<'_>,
    t: &Datatype,
    count: u64,
    checks: &[Check],
    begin: &mut dyn FnMut(Check),
) -> Outcome {
    // Every check needs the datatype to be built. If the library dies while it builds the datatype,
    // this is reported under the first check.
    begin(checks.first().copied().unwrap_or(Check::Bounds));
    let library = context.library;
    let subject = match Subject::build(library, t, count) {
        Ok(subject) => subject,
        Err((node, refusal)) => return Outcome { found: unbuilt(&node, refusal, checks), built: false },
    };
    let mut report = Report::new(&subject, Check::Bounds);
    // If a datatype is too large for its bytes to be moved, only the check `commit` commits it,
    // since libraries list every block of a datatype when they commit it.
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
        mark_differences(context, &mut report, first);
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

/// Repeats the check of `report` [`RUNS`] times with other patterns, if it found a bug in moved
/// bytes, to determine what the fault did to these bytes. Stores the result as the mark of the
/// difference. Only differences from index `first` of `report.found` on are considered.
fn mark_differences(context: &mut Context<'_>, report: &mut Report<'_>, first: usize) {
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

/// Returns true if a large-count constructor built at least one node of a datatype, even if no
/// number of the datatype requires a large-count constructor.
fn is_large(t: &Datatype) -> bool {
    t.nodes().any(Datatype::is_large_count)
}

/// Returns the difference for a constructor that the library refuses. Returns no difference if the
/// library does not have the constructor, or if the library's bounds lead to numbers that do not
/// fit in 64 bits, so that nothing can be judged.
fn unbuilt(node: &Datatype, refusal: Refusal, checks: &[Check]) -> Vec<Difference> {
    if refusal.class == ABSENT || refusal.class == 0 {
        return Vec::new();
    }
    // A library has good reasons to refuse numbers that do not fit in an int, or sums that do not
    // fit in 64 bits. So the refusal of such a datatype is classified as open.
    let large = node.is_large_count() || node.size() > i64::from(i32::MAX) || node.true_extent() > 1 << 31;
    let mark = Mark {
        effects: of_texts(&refusal.refuted(), &refusal.to_string()),
        below: owned(&features(node)),
        ..Mark::default()
    };
    vec![Difference {
        check: checks.first().copied().unwrap_or(Check::Bounds),
        kind: format!("refused-{}", refusal.call.trim_start_matches("MPI_").to_lowercase()),
        class: if large { Class::Open } else { Class::Bug },
        rule: "legal".to_owned(),
        datatype: node.to_string(),
        judged: node.to_string(),
        count: 1,
        large: is_large(node),
        expected: refusal.refuted(),
        got: refusal.to_string(),
        mark,
    }]
}

/// Returns the first index at which two slices differ and for which `matters` returns true. Bytes
/// after the end of the shorter slice are not compared.
fn first_difference(got: &[u8], want: &[u8], matters: impl Fn(usize) -> bool) -> Option<usize> {
    if got == want {
        return None;
    }
    (0..want.len().min(got.len())).find(|&i| got[i] != want[i] && matters(i))
}

fn byte(what: &str, at: i64, value: u8) -> String {
    format!("{what} {at} is {value:#04x}")
}

/// Returns true if every mapped byte belongs to a value, and none is padding inside a value, so
/// that every byte can be compared.
fn plain_bytes(map: &Map) -> bool {
    !map.any(values::has_padding)
}
