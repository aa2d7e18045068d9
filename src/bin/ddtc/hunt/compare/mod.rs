//! The comparisons: what a library says and does about a datatype, with the definition and with compiled code. One file a check.

mod attributes;
mod bounds;
mod collectives;
mod commit;
mod decode;
mod elements;
mod external32;
mod messages;
mod pack;
mod partner;
pub(crate) mod values;

use ddtc::datatype::Datatype;
use ddtc::engine::Engine;

use super::difference::{Check, Class, Difference, rule};
use super::library::{ABSENT, Library, Refusal};
use super::subject::{Map, Node, Subject};

/// What the checks of a worker share.
pub(crate) struct Context<'l> {
    pub(crate) library: &'l Library,
    pub(crate) engine: Engine,
    /// Packs that compiled code did.
    pub(crate) compiled: u64,
    /// Whether checks that are dear run on every case, not on some.
    pub(crate) thorough: bool,
}

/// Where differences of one subject go.
pub(crate) struct Report<'s> {
    pub(crate) subject: &'s Subject,
    check: Check,
    pub(crate) found: Vec<Difference>,
}

impl Report<'_> {
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
        self.found.push(Difference {
            check,
            kind: kind.to_owned(),
            class,
            rule: rule(rule_name),
            datatype: plain.to_string(),
            judged: judged.to_string(),
            count,
            large: is_large(plain),
            expected: expected.to_string(),
            got: got.to_string(),
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

/// What a case came to.
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
    let mut report = Report { subject: &subject, check: Check::Bounds, found: Vec::new() };
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
        match check {
            Check::Bounds => bounds::run(context, &mut report),
            Check::Decode => decode::run(context, &mut report),
            Check::Attributes => attributes::run(context, &mut report),
            Check::Commit => commit::run(context, &mut report),
            _ => {
                let Some(map) = subject.map().filter(|m| m.size > 0) else { continue };
                match check {
                    Check::Pack => pack::pack(context, &mut report, map),
                    Check::Unpack => pack::unpack(context, &mut report, map),
                    Check::Elements => elements::run(context, &mut report, map),
                    Check::External32 => external32::run(context, &mut report, map),
                    Check::Messages => messages::run(context, &mut report, map),
                    _ => collectives::run(context, &mut report, map),
                }
            }
        }
    }
    let found = report.found;
    subject.free(library);
    Outcome { found, built: true }
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
