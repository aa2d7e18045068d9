//! The causes of differences: what distinguishes one fault of an MPI library from another, and
//! which differences a known fault explains.
//!
//! The shape of a fault consists of the features that identify it, such as a constructor or a
//! stride of -1. They are taken from the smallest datatype that shows the fault. A known fault
//! explains exactly what it predicts. It explains a wrong byte if three conditions hold:
//!
//! * The nodes above the byte in the datatype tree have all features of the shape.
//! * The fault spoils bytes at the position that the byte has within its element. This condition is
//!   left out for faults that have no such positions.
//! * The effect on the byte (kept, flipped, or moved from elsewhere) was seen with this fault
//!   before.
//!
//! A known fault explains a wrong number if it made the same number wrong in a datatype of the same
//! shape. A single wrong byte that no known fault predicts is enough for a difference to be
//! examined. Wrong bytes that known faults explain are ignored while a difference is shrunk. A
//! datatype is never shrunk to one that has a feature which may be a cause on its own
//! ([`suspicious`]) and which it did not have before.

use std::collections::{BTreeMap, BTreeSet};

use ddtc::internal::datatype::Datatype;
use serde::{Deserialize, Serialize};

use crate::coverage::{CONSTRUCTORS, features};
use crate::difference::{Check, Class, Difference};

/// Compares a text that states the expected result with one that states what the library did, and
/// returns the names of the numbers that differ. The name of a number is its index among the words
/// of the text, for example "number 3". If the texts differ in more than their numbers, returns the
/// words of `got` that are not numbers instead.
pub(crate) fn of_texts(expected: &str, got: &str) -> BTreeSet<String> {
    let parts = |text: &str| {
        let is_number = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let words = text.split(|c| !is_number(c)).filter(|w| !w.is_empty()).map(str::to_owned);
        words.collect::<Vec<String>>()
    };
    let is_number = |w: &String| w.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let (expected, got) = (parts(expected), parts(got));
    let shape =
        |words: &[String]| words.iter().map(|w| (!is_number(w)).then(|| w.clone())).collect::<Vec<_>>();
    if shape(&expected) != shape(&got) {
        let words: Vec<String> = got.into_iter().filter(|w| !is_number(w)).collect();
        return BTreeSet::from([words.join(" ")]);
    }
    let pairs = expected.iter().zip(&got).enumerate();
    pairs.filter(|(_, (e, g))| e != g).map(|(i, _)| format!("number {i}")).collect()
}

/// Returns the cause of the end of a process. `how` says how the process ended, and `said` is what
/// it printed.
///
/// For an assertion that failed, the cause is the text of the assertion. For a message of the
/// allocator and for an access to a bad address, the cause is "memory", because spoiled memory can
/// show in either way. For all other ends, the cause is `how`.
pub(crate) fn of_end(how: &str, said: &str) -> BTreeSet<String> {
    const MEMORY: [&str; 8] =
        ["SIGSEGV", "SIGBUS", "malloc", "free()", "realloc", "corrupted", "munmap_chunk", "double free"];
    let text = format!("{how}: {said}");
    let end = match text.find("ssert") {
        Some(at) => text[at..].to_owned(),
        None if MEMORY.iter().any(|word| text.contains(word)) => "memory".to_owned(),
        None => how.to_owned(),
    };
    BTreeSet::from([end])
}

/// A cause that was found, with what is needed to decide which other differences it explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) name: String,
    /// Fingerprint of the cause, which is a text made from its family and its shape (see
    /// [`fingerprint`]). The field `name` begins with this text. If an earlier cause has the same
    /// fingerprint, `name` continues with the effects of this cause or a number.
    base: String,
    family: String,
    shape: BTreeSet<String>,
    effects: BTreeSet<String>,
    /// Positions of wrong bytes, as byte offsets within their basic element. `None` if a feature in
    /// `shape` is not a property of single elements ([`ELEMENTS`]), if bytes were converted to
    /// external32, or if no such position is known.
    lanes: Option<BTreeSet<i64>>,
    /// Whether this cause shows on datatypes of any shape, so that `shape` does not matter (see
    /// [`is_shapeless`]).
    shapeless: bool,
}

impl Known {
    /// Makes the record of a new cause from a difference that was shrunk to a small datatype.
    /// `name` is the name of the cause.
    fn from_difference(shrunk: &Difference, name: String) -> Known {
        let shape: BTreeSet<String> =
            shrunk.datatype.parse().map(|t| owned(&self::shape(&t))).unwrap_or_default();
        // Conversion to external32 reverses the bytes of an element and may change their number. So
        // in the check `external32` the positions of wrong bytes within an element cannot
        // distinguish causes.
        let converts = shrunk.check == Check::External32;
        let of_element = !converts && shape.iter().all(|f| ELEMENTS.contains(&f.as_str()));
        Known {
            name,
            base: fingerprint(shrunk),
            family: family(shrunk.check, &shrunk.kind),
            effects: shrunk.mark.effects.clone(),
            lanes: (of_element && !shrunk.mark.lanes.is_empty()).then(|| shrunk.mark.lanes.clone()),
            shapeless: is_shapeless(shrunk),
            shape,
        }
    }

    /// Returns true if this cause predicts a wrong byte. `family` is the family of the difference,
    /// and `effect` is the effect on the byte. `below` has the features of the nodes above the byte
    /// in the datatype tree, and `lane` is the position of the byte in its element.
    pub(crate) fn predicts(&self, family: &str, effect: &str, below: &BTreeSet<&str>, lane: i64) -> bool {
        self.family == family
            && (self.shapeless
                || self.effects.contains(effect)
                    && self.shape.iter().all(|f| below.contains(f.as_str()))
                    && self.lanes.as_ref().is_none_or(|lanes| lanes.contains(&lane)))
    }

    /// Returns true if `other` is only another effect of this cause, so that the report must not
    /// list it separately.
    ///
    /// This is so if three conditions hold. The causes have the same fingerprint. Neither of them
    /// flips bits, or ends or hangs a process. If both have positions within elements, those of
    /// `other` are among those of `self`.
    ///
    /// Whether bytes go to a wrong place, are not written, or come from elsewhere depends on the
    /// call and on the surrounding memory, so these effects count as one cause. A byte with flipped
    /// bits is a separate cause, and so is each way in which a process ended.
    fn absorbs(&self, other: &Known) -> bool {
        let is_apart =
            |k: &Known| k.effects.contains("flipped") || APART.iter().any(|end| k.family.ends_with(end));
        let lanes = match (&self.lanes, &other.lanes) {
            (Some(own), Some(lanes)) => lanes.is_subset(own),
            _ => true,
        };
        self.base == other.base && !is_apart(self) && !is_apart(other) && lanes
    }

    /// Returns true if this cause predicts a difference completely: its family, its effects, and
    /// the positions and the common features of its wrong bytes.
    fn covers(&self, d: &Difference) -> bool {
        self.family == family(d.check, &d.kind)
            && (self.shapeless
                || d.mark.effects.is_subset(&self.effects)
                    && self.shape.is_subset(&d.mark.below)
                    && self.lanes.as_ref().is_none_or(|lanes| d.mark.lanes.is_subset(lanes)))
    }
}

/// All causes found so far, with the number of differences seen of each.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    known: Vec<(Known, u64)>,
}

impl Causes {
    /// Returns the known causes. Workers get this list, and leave wrong bytes that these
    /// causes explain out of their differences.
    pub(crate) fn list(&self) -> Vec<Known> {
        self.known.iter().map(|(known, _)| known.clone()).collect()
    }

    /// Returns true if the difference `found` need not be examined, because a known cause explains
    /// it. Counts the difference as seen if a known cause explains it.
    ///
    /// One cause may hide another. So even an explained difference is examined each time the count
    /// of its cause reaches a power of two. A difference that a `shapeless` cause explains, that
    /// is, one that does not depend on the datatype's shape, is never examined.
    pub(crate) fn explain(&mut self, found: &Difference) -> bool {
        let explains =
            |k: &Known| found.mark.explained.as_ref().is_some_and(|name| *name == k.name) || k.covers(found);
        let Some((known, hits)) = self.known.iter_mut().find(|(k, _)| explains(k)) else { return false };
        *hits += 1;
        // A difference is examined only if the count of its cause is now a power of two, so
        // examinations of one cause become rarer the more often it is seen.
        known.shapeless || !hits.is_power_of_two()
    }

    /// Counts a difference that was shrunk to a small datatype under its cause. If the cause is
    /// new, adds it to the known causes and returns its name. Otherwise returns none.
    pub(crate) fn name(&mut self, shrunk: &Difference) -> Option<String> {
        let base = fingerprint(shrunk);
        let same = |k: &Known| k.base == base && (k.shapeless || k.covers(shrunk));
        if let Some((_, hits)) = self.known.iter_mut().find(|(k, _)| same(k)) {
            *hits += 1;
            return None;
        }
        let own = Known::from_difference(shrunk, base.clone());
        if let Some(name) = self.known.iter().find(|(k, _)| k.absorbs(&own)).map(|(k, _)| k.name.clone()) {
            // This is another effect of a cause that was already reported. From now on that cause
            // explains differences with this effect too.
            self.known.push((Known { name, ..own }, 1));
            return None;
        }
        let name = match self.known.iter().filter(|(k, _)| k.base == base).count() {
            0 => base,
            n => {
                let effects: Vec<&str> = shrunk.mark.effects.iter().map(String::as_str).collect();
                let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let mut words: String = effects.join("+").chars().map(word).take(40).collect();
                if words.is_empty() || self.known.iter().any(|(k, _)| k.name == format!("{base}.{words}")) {
                    words = format!("{words}-{}", n + 1);
                }
                format!("{base}.{words}")
            }
        };
        self.known.push((Known::from_difference(shrunk, name.clone()), 1));
        Some(name)
    }

    /// Returns the number of times that each cause was seen. The keys are the names of the causes.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (known, hits) in &self.known {
            *sums.entry(known.name.clone()).or_default() += hits;
        }
        sums
    }
}

/// Returns true if the cause of a difference does not depend on its datatype. That is so if the
/// difference is not classified as a bug, for example because the library reads the standard in
/// another way, and for the kinds in `SHAPELESS`.
fn is_shapeless(d: &Difference) -> bool {
    d.class != Class::Bug || SHAPELESS.contains(&d.kind.as_str())
}

/// Returns the name of the cause of a difference that was shrunk. Most calls that move bytes belong
/// to one family (see [`family`]), so wrong bytes get the same name whichever of these calls moved
/// them.
pub(crate) fn fingerprint(shrunk: &Difference) -> String {
    let family = family(shrunk.check, &shrunk.kind);
    // If a difference shows only after other cases ran in the same process, its datatype may not be
    // to blame. So the name then has no features of the datatype.
    if is_shapeless(shrunk) || shrunk.kind.ends_with(AFTER_OTHERS) {
        return family;
    }
    let shape = shrunk.datatype.parse().map(|t| shape(&t)).unwrap_or_default();
    let words: Vec<String> = shape.iter().map(|f| f.replace(' ', "-").replace(['^', '+'], "")).collect();
    let large = if shrunk.large { ".large" } else { "" };
    format!("{family}.{}{large}", words.join("+"))
}

/// Returns the name of the family of a difference, which follows from its check and its kind.
/// Differences of one family can have the same cause, those of different families cannot.
pub(crate) fn family(check: Check, kind: &str) -> String {
    // Kinds of differences in moved bytes: a call moved wrong bytes, or wrote to places that it
    // must not change.
    const BYTES: [&str; 14] = [
        "packed",
        "packed-at-position",
        "unpacked",
        "received",
        "sent",
        "sent-to-itself",
        "allgather",
        "gather",
        "scatter",
        "alltoallw",
        "put",
        "get",
        "gap",
        "outside",
    ];
    let moves = !matches!(check, Check::External32 | Check::Commit | Check::Truncation);
    match kind {
        "gap" if check == Check::Truncation => "bytes".to_owned(),
        "padding" => "padding".to_owned(),
        _ if moves && BYTES.contains(&kind) => "bytes".to_owned(),
        _ => format!("{check}.{kind}"),
    }
}

/// Suffix of the kinds of differences that show only after other cases ran in the same process.
pub(crate) const AFTER_OTHERS: &str = "-after-others";

/// Kinds of differences whose cause does not depend on the datatype.
pub(crate) const SHAPELESS: [&str; 4] = ["fresh-name", "name", "beyond-contiguous", "aborts"];

/// Features of datatypes by which a cause is named, the most significant first. A cause is named
/// after the first feature in this list that its shrunk datatype has.
const TELLING: [&str; 20] = [
    "empty member",
    "byte stride -1",
    "depth 32",
    "depth 16",
    "depth 8",
    "past 2^31",
    "f90_real",
    "f90_complex",
    "f90_integer",
    "value_index",
    "32-byte",
    "16-byte",
    "long double",
    "pair",
    "mixed",
    "long table",
    "negative extent",
    "zero extent",
    "overlap of copies",
    "nothing",
];

/// Features by which a cause is named if its shrunk datatype has no feature of `TELLING`. The name
/// then consists of these features and of the constructors of the datatype.
const SHAPES: [&str; 5] = ["zero blocklength", "stride -1", "stride 0", "backwards", "misaligned"];

/// Suffixes of the families of differences in which a process ended or hung. In such a family,
/// differences with different effects always have separate causes.
const APART: [&str; 2] = [".dies", ".hangs"];

/// Features that are properties of a single basic element, such as its size. If all features of a
/// cause's shape are in this list, the cause also records at which positions within an element
/// bytes are wrong.
const ELEMENTS: [&str; 7] = ["32-byte", "16-byte", "8-byte", "4-byte", "2-byte", "1-byte", "long double"];

/// Returns the features of a shrunk datatype that identify its cause: the most significant feature
/// of `TELLING`, or else the constructors together with the features of `SHAPES`, or else all
/// features.
pub(crate) fn shape(t: &Datatype) -> BTreeSet<&'static str> {
    let found = features(t);
    if let Some(first) = TELLING.into_iter().find(|f| found.contains(f)) {
        return BTreeSet::from([first]);
    }
    let constructors = found.iter().copied().filter(|f| CONSTRUCTORS.contains(f));
    let constructors: BTreeSet<&str> =
        constructors.chain(SHAPES.into_iter().filter(|s| found.contains(s))).collect();
    if constructors.is_empty() { found } else { constructors }
}

/// Returns the features of a datatype that may be a cause on their own. Shrinking must not add any
/// of these features.
pub(crate) fn suspicious(t: &Datatype) -> BTreeSet<&'static str> {
    let mut found = features(t);
    found.retain(|f| TELLING.contains(f) || SHAPES.contains(f));
    found
}

/// Returns features as owned strings, as the messages between the fuzzer and its workers need them.
pub(crate) fn owned(features: &BTreeSet<&str>) -> BTreeSet<String> {
    features.iter().map(|f| (*f).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::Mark;

    fn difference(t: &str, effects: &[&str], lanes: &[i64]) -> Difference {
        let parsed: Datatype = t.parse().unwrap();
        Difference {
            check: Check::Pack,
            kind: "packed".to_owned(),
            class: Class::Bug,
            rule: "packed".to_owned(),
            datatype: t.to_owned(),
            judged: t.to_owned(),
            count: 1,
            large: false,
            expected: String::new(),
            got: String::new(),
            mark: Mark {
                effects: effects.iter().map(|e| (*e).to_owned()).collect(),
                lanes: lanes.iter().copied().collect(),
                below: owned(&features(&parsed)),
                explained: None,
            },
        }
    }

    #[test]
    fn a_known_cause_explains_what_it_predicts_alone() {
        let mut causes = Causes::default();
        let first = difference("vector(2,1,-1,byte)", &["moved"], &[0]);
        assert_eq!(causes.name(&first).as_deref(), Some("bytes.byte-stride--1"));
        let again = "indexed([1,1],[0,9],vector(8,1,-1,char))";
        causes.explain(&difference(again, &["moved"], &[0]));
        assert!(causes.explain(&difference(again, &["moved"], &[0])));
        // A difference of the same shape with another effect is not explained. Neither is a
        // difference of another shape with the same effect.
        assert!(!causes.explain(&difference(again, &["flipped"], &[0])));
        assert!(!causes.explain(&difference("indexed([1,1],[0,9],int)", &["moved"], &[0])));
        // Bytes that were not written (`kept`) have the same cause as bytes that came from a wrong
        // place (`moved`). From now on the cause explains both.
        assert_eq!(causes.name(&difference("vector(2,1,-1,byte)", &["kept"], &[0])), None);
        assert!(
            causes.explain(&difference(again, &["kept"], &[0]))
                || causes.explain(&difference(again, &["kept"], &[0]))
        );
        let planted = difference("vector(2,1,-1,byte)", &["flipped"], &[0]);
        assert_eq!(causes.name(&planted).as_deref(), Some("bytes.byte-stride--1.flipped"));
        assert_eq!(causes.name(&planted), None);
    }

    #[test]
    fn a_cause_in_an_element_explains_its_places_alone() {
        let mut causes = Causes::default();
        assert!(
            causes.name(&difference("vector(2,1,2,real16)", &["kept"], &[10, 11, 12, 13, 14, 15])).is_some()
        );
        let t = "hindexed([2],[0],real16)";
        causes.explain(&difference(t, &["kept"], &[12]));
        assert!(causes.explain(&difference(t, &["kept"], &[10, 15])));
        assert!(!causes.explain(&difference(t, &["kept"], &[0, 10])));
    }

    #[test]
    fn numbers_and_ends_are_distinguished() {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<BTreeSet<String>>();
        assert_eq!(of_texts("lb -1 extent 2", "lb 0 extent 2"), words(&["number 1"]));
        assert_eq!(of_texts("lb -1 extent 2", "lb 0 extent 7"), words(&["number 1", "number 3"]));
        assert_eq!(
            of_texts("5 elements", "MPI_UNDEFINED after 5 elements"),
            words(&["MPI_UNDEFINED after elements"])
        );
        assert_eq!(of_end("the process ends by SIGABRT", "free(): invalid size"), words(&["memory"]));
        assert_eq!(of_end("the process ends by SIGSEGV", ""), words(&["memory"]));
        assert_eq!(of_end("the process ends by SIGABRT", ""), words(&["the process ends by SIGABRT"]));
        assert_eq!(
            of_end("x", "Assertion failed in file a.c at line 3"),
            words(&["ssertion failed in file a.c at line 3"])
        );
    }
}
