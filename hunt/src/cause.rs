//! Causes: what of a difference tells one fault from another, and what a known fault explains.
//!
//! A known fault explains what it predicts and nothing beside it: of bytes, those that lie below its shape, at the places in their elements that it
//! spoils, and that it spoils in the same way (kept, flipped, moved from elsewhere); of numbers, the same ones of the same node. One wrong byte that
//! no known fault predicts is a difference of its own. A difference is shrunk without those bytes, and without shapes that it did not have.

use std::collections::{BTreeMap, BTreeSet};

use ddtc::internal::datatype::Datatype;
use serde::{Deserialize, Serialize};

use crate::coverage::{CONSTRUCTORS, features};
use crate::difference::{Check, Class, Difference};

/// Returns which numbers of two texts differ, by their places; the words of `got` where the texts are not alike.
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

/// Returns the end of a process: a message of the allocator and a bad access are both memory that was spoiled, which shows here or there.
pub(crate) fn of_end(how: &str, said: &str) -> BTreeSet<String> {
    const MEMORY: [&str; 8] =
        ["SIGSEGV", "SIGBUS", "malloc", "free()", "realloc", "corrupted", "munmap_chunk", "double free"];
    let text = format!("{how}: {said}");
    let of = match text.find("ssert") {
        Some(at) => text[at..].to_owned(),
        None if MEMORY.iter().any(|word| text.contains(word)) => "memory".to_owned(),
        None => how.to_owned(),
    };
    BTreeSet::from([of])
}

/// A cause that was found, as far as it explains others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) name: String,
    /// The name without what tells it from others of the same shape.
    base: String,
    family: String,
    shape: BTreeSet<String>,
    effects: BTreeSet<String>,
    /// Where the shape is that of an element: the places in it that are wrong.
    lanes: Option<BTreeSet<i64>>,
    open: bool,
}

impl Known {
    /// Makes the known cause for which a shrunk difference stands.
    fn of(shrunk: &Difference, name: String) -> Known {
        let shape: BTreeSet<String> =
            shrunk.datatype.parse().map(|t| owned(&self::shape(&t))).unwrap_or_default();
        // A conversion turns the bytes of an element around and changes their number: their places say nothing.
        let converts = shrunk.check == Check::External32;
        let of_element = !converts && shape.iter().all(|f| ELEMENTS.contains(&f.as_str()));
        Known {
            name,
            base: fingerprint(shrunk),
            family: family(shrunk.check, &shrunk.kind),
            effects: shrunk.mark.effects.clone(),
            lanes: (of_element && !shrunk.mark.lanes.is_empty()).then(|| shrunk.mark.lanes.clone()),
            open: is_open(shrunk),
            shape,
        }
    }

    /// Says whether it predicts a wrong byte: what became of it, the features above it, and its place in its element.
    pub(crate) fn predicts(&self, family: &str, effect: &str, below: &BTreeSet<&str>, lane: i64) -> bool {
        self.family == family
            && (self.open
                || self.effects.contains(effect)
                    && self.shape.iter().all(|f| below.contains(f.as_str()))
                    && self.lanes.as_ref().is_none_or(|lanes| lanes.contains(&lane)))
    }

    /// Whether both are one cause for who reads the report: the same shape, bytes that did not go where they belong or stayed away, at the same
    /// places of elements, or other numbers. Which of these shows is a matter of the call and of what lies around. A byte that was changed on its
    /// way is another cause, and so is another end of a process.
    fn is_kin(&self, other: &Known) -> bool {
        let is_apart =
            |k: &Known| k.effects.contains("flipped") || APART.iter().any(|end| k.family.ends_with(end));
        let lanes = match (&self.lanes, &other.lanes) {
            (Some(own), Some(lanes)) => lanes.is_subset(own),
            _ => true,
        };
        self.base == other.base && !is_apart(self) && !is_apart(other) && lanes
    }

    /// Whether it predicts all of a difference.
    fn covers(&self, d: &Difference) -> bool {
        self.family == family(d.check, &d.kind)
            && (self.open
                || d.mark.effects.is_subset(&self.effects)
                    && self.shape.is_subset(&d.mark.below)
                    && self.lanes.as_ref().is_none_or(|lanes| d.mark.lanes.is_subset(lanes)))
    }
}

/// All causes so far.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    known: Vec<(Known, u64)>,
}

impl Causes {
    /// For workers, who leave out what these predict.
    pub(crate) fn list(&self) -> Vec<Known> {
        self.known.iter().map(|(known, _)| known.clone()).collect()
    }

    /// Says whether a difference shows nothing but causes that are known. Now and then one is looked at all the same, since a cause may hide
    /// behind another.
    pub(crate) fn explain(&mut self, found: &Difference) -> bool {
        let explains =
            |k: &Known| found.mark.explained.as_ref().is_some_and(|name| *name == k.name) || k.covers(found);
        let Some((known, hits)) = self.known.iter_mut().find(|(k, _)| explains(k)) else { return false };
        *hits += 1;
        // Doubling intervals.
        known.open || !hits.is_power_of_two()
    }

    /// Counts a shrunk difference: its name if its cause is new.
    pub(crate) fn name(&mut self, shrunk: &Difference) -> Option<String> {
        let base = fingerprint(shrunk);
        let same = |k: &Known| k.base == base && (k.open || k.covers(shrunk));
        if let Some((_, hits)) = self.known.iter_mut().find(|(k, _)| same(k)) {
            *hits += 1;
            return None;
        }
        let own = Known::of(shrunk, base.clone());
        if let Some(name) = self.known.iter().find(|(k, _)| k.is_kin(&own)).map(|(k, _)| k.name.clone()) {
            // Another effect of a cause that was reported: it explains from now on what has that effect, too.
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
        self.known.push((Known::of(shrunk, name.clone()), 1));
        Some(name)
    }

    /// Returns how often each was seen.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (known, hits) in &self.known {
            *sums.entry(known.name.clone()).or_default() += hits;
        }
        sums
    }
}

/// A reading of the standard is one, wherever it shows; and so is what has one cause whatever the datatype.
fn is_open(d: &Difference) -> bool {
    d.class != Class::Bug || SHAPELESS.contains(&d.kind.as_str())
}

/// Returns the name of the cause behind a difference that was shrunk. Wrong bytes are one cause whichever call moves them.
pub(crate) fn fingerprint(shrunk: &Difference) -> String {
    let family = family(shrunk.check, &shrunk.kind);
    // What does not show alone is no matter of its datatype.
    if is_open(shrunk) || shrunk.kind.ends_with(AFTER_OTHERS) {
        return family;
    }
    let shape = shrunk.datatype.parse().map(|t| shape(&t)).unwrap_or_default();
    let words: Vec<String> = shape.iter().map(|f| f.replace(' ', "-").replace(['^', '+'], "")).collect();
    let large = if shrunk.large { ".large" } else { "" };
    format!("{family}.{}{large}", words.join("+"))
}

/// Kinds of one cause.
pub(crate) fn family(check: Check, kind: &str) -> String {
    // What a check of moved bytes sees when they are not those that were to be moved.
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

/// End of the kinds of differences that take what other cases left behind.
pub(crate) const AFTER_OTHERS: &str = "-after-others";

/// Kinds that have one cause whatever the datatype.
pub(crate) const SHAPELESS: [&str; 4] = ["fresh-name", "name", "beyond-contiguous", "aborts"];

/// Shapes, the most telling first: a cause is named by the first that its shrunk datatype has, beside one that says where.
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

/// Shapes that tell causes apart beside constructors.
const SHAPES: [&str; 5] = ["zero blocklength", "stride -1", "stride 0", "backwards", "misaligned"];

/// Ends of families whose effects are causes of their own.
const APART: [&str; 2] = [".dies", ".hangs"];

/// Shapes that are a matter of single elements, all of one size.
const ELEMENTS: [&str; 7] = ["32-byte", "16-byte", "8-byte", "4-byte", "2-byte", "1-byte", "long double"];

/// Returns the parts of a shrunk datatype that tell its cause: the most telling shape, or else the constructors.
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

/// Returns the features of a datatype that may be a cause of its own: shrinking brings in none of them.
pub(crate) fn suspicious(t: &Datatype) -> BTreeSet<&'static str> {
    let mut found = features(t);
    found.retain(|f| TELLING.contains(f) || SHAPES.contains(f));
    found
}

/// Features as the hunter and its workers write them to each other.
pub(crate) fn owned(features: &BTreeSet<&str>) -> BTreeSet<String> {
    features.iter().map(|f| (*f).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::{Mark, rule};

    fn difference(t: &str, effects: &[&str], lanes: &[i64]) -> Difference {
        let parsed: Datatype = t.parse().unwrap();
        Difference {
            check: Check::Pack,
            kind: "packed".to_owned(),
            class: Class::Bug,
            rule: rule("packed"),
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
        let host = difference("vector(2,1,-1,byte)", &["moved"], &[0]);
        assert_eq!(causes.name(&host).as_deref(), Some("bytes.byte-stride--1"));
        let again = "indexed([1,1],[0,9],vector(8,1,-1,char))";
        causes.explain(&difference(again, &["moved"], &[0]));
        assert!(causes.explain(&difference(again, &["moved"], &[0])));
        // The same shape and another effect, and the same effect elsewhere.
        assert!(!causes.explain(&difference(again, &["flipped"], &[0])));
        assert!(!causes.explain(&difference("indexed([1,1],[0,9],int)", &["moved"], &[0])));
        // What goes astray otherwise is no other finding, and explained from now on.
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
    fn numbers_and_ends_are_told_apart() {
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
