//! What a fault of a library did to the bytes that are wrong, called the effects of the fault.
//!
//! A check that shows wrong bytes is repeated with other patterns. A byte that in every run still
//! has its value from before the call was *kept*, a byte that differs by the same bits in every run
//! was *flipped*, and a byte that equals one byte of the moved data in every run was *moved* from
//! there. A byte may meet one of these conditions by chance in one run, but hardly in all four.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ddtc::internal::datatype::Datatype;

use crate::cause::{Known, family, owned};
use crate::coverage::{Way, features, way};
use crate::difference::Difference;
use crate::difference::Mark;
use crate::subject::Map;

/// Number of times that a check is repeated, with other patterns, after its first run showed wrong
/// bytes.
pub(super) const RUNS: u64 = 3;
/// Maximum number of byte positions in an instance for which the path from the root of the datatype
/// tree to the byte is computed, when the wrong bytes of a difference are examined. Once this
/// number is exceeded, the remaining wrong bytes are ignored.
const MAX_POSITIONS: usize = 1 << 14;

/// The bytes of one comparison that showed a difference, in one run of a check.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) kind: String,
    want: Vec<u8>,
    /// The bytes that the library gave. Bytes that are not compared are replaced by the expected
    /// ones, so that they do not count as wrong.
    got: Vec<u8>,
    before: Vec<u8>,
    source: Vec<u8>,
    places: Vec<Place>,
}

/// The place in the datatype to which a compared byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Gap,
    /// The element of the byte is not known, so the byte gets the features of the whole datatype.
    Whole,
    /// The byte has this index in the packed stream of all instances.
    At(usize),
}

/// Order in which the compared bytes are stored.
pub(super) enum Order<'m> {
    /// The packed stream of `len` bytes, one or more times in a row. The compared bytes before
    /// index `from` do not belong to the stream.
    Stream { from: usize, len: usize },
    /// A packed stream in external32, in which elements have other sizes than in memory.
    Converted,
    /// User memory, from the lowest displacement of the map on.
    Memory(&'m Map),
}

/// The bytes that a check expected and the bytes that it got. `before` has the bytes that were in
/// the same memory before the call, and `source` has the data that the call read.
pub(super) struct Compared<'b> {
    pub(super) want: &'b [u8],
    pub(super) got: &'b [u8],
    pub(super) before: &'b [u8],
    pub(super) source: &'b [u8],
    pub(super) order: Order<'b>,
}

impl Seen {
    pub(super) fn from_comparison(
        kind: &str,
        compared: &Compared<'_>,
        matters: impl Fn(usize) -> bool,
    ) -> Seen {
        let Compared { want, got, before, source, order } = compared;
        let len = want.len().min(got.len());
        let got = (0..len).map(|i| if matters(i) { got[i] } else { want[i] }).collect();
        let places = match order {
            Order::Stream { from, len: stream } => {
                let place = |i: usize| i.checked_sub(*from).map(|i| Place::At(i % (*stream).max(1)));
                (0..len).map(|i| place(i).unwrap_or(Place::Gap)).collect()
            }
            Order::Converted => vec![Place::Whole; len],
            Order::Memory(map) => {
                let mut places = vec![Place::Gap; len];
                let mut next = 0;
                for &(at, bytes, _) in &map.entries {
                    let at = (at - map.low) as usize;
                    (0..bytes).for_each(|i| places[at + i] = Place::At(next + i));
                    next += bytes;
                }
                places
            }
        };
        let before = before.iter().copied().chain(std::iter::repeat(0xee)).take(len).collect();
        Seen {
            kind: kind.to_owned(),
            want: want[..len].to_vec(),
            got,
            before,
            source: source.to_vec(),
            places,
        }
    }
}

/// Returns the name of what a fault did to byte `i`, such as "kept" or "flipped". `runs` has the
/// comparisons of all runs of the check. `moved` says of a byte whether its values in these runs
/// were those of one byte of the source.
fn effect(runs: &[&Seen], i: usize, moved: &dyn Fn(usize) -> bool) -> &'static str {
    let all = |holds: &dyn Fn(&Seen) -> bool| runs.iter().all(|run| holds(run));
    let bits = runs[0].want[i] ^ runs[0].got[i];
    // A byte that has the same value in all runs may match by chance, because values contain many
    // zeros. So a byte counts as flipped only if the expected byte differs between runs, and as
    // moved only if the actual byte does.
    let differs = |of: &dyn Fn(&Seen) -> u8| runs.iter().any(|run| of(run) != of(runs[0]));
    let (wanted, got) = (differs(&|run| run.want[i]), differs(&|run| run.got[i]));
    if runs[0].places[i] == Place::Gap {
        "in a gap"
    } else if all(&|run| run.got[i] == run.before[i]) {
        "kept"
    } else if wanted && all(&|run| run.want[i] ^ run.got[i] == bits) {
        "flipped"
    } else if got && moved(i) {
        "moved"
    } else {
        "other"
    }
}

/// Returns the mark of the difference `d`, which distinguishes its cause from other causes. `runs`
/// has, for each run of the check, the comparison that showed the difference. Bytes that known
/// causes predict do not contribute to the mark. Returns none if `runs` is empty.
pub(super) fn mark(d: &Difference, judged: &Datatype, runs: &[&Seen], known: &[Known]) -> Option<Mark> {
    let len = runs.iter().map(|run| run.want.len()).min()?;
    let sources = runs.iter().map(|run| run.source.len()).min()?;
    let vector = |of: &dyn Fn(&Seen) -> u8| runs.iter().map(|run| of(run)).collect::<Vec<u8>>();
    // A byte is wrong if it differs from the expected byte in at least one run. If one byte of the
    // source had the same value as the wrong byte in every run, the wrong byte was moved from
    // there.
    let wrong: Vec<usize> = (0..len).filter(|&i| runs.iter().any(|run| run.want[i] != run.got[i])).collect();
    let there: BTreeSet<Vec<u8>> = match wrong.is_empty() {
        true => BTreeSet::new(),
        false => (0..sources).map(|i| vector(&|run| run.source[i])).collect(),
    };
    let moved = |i: usize| there.contains(&vector(&|run| run.got[i]));
    let family = family(d.check, &d.kind);
    let known: Vec<&Known> = known.iter().collect();
    let whole = Way { features: features(judged), lane: 0, element: 1 };
    let (mut ways, mut mark) = (HashMap::new(), Mark::default());
    let (mut below, mut explained): (Option<BTreeSet<&str>>, BTreeMap<String, usize>) =
        (None, BTreeMap::new());
    // Each wrong byte that no known cause predicts adds its effect and its position in the element
    // to the mark. `below` keeps only the features that are above all of these bytes in the
    // datatype tree.
    for &i in &wrong {
        let (start, way) = match runs[0].places[i] {
            Place::Gap | Place::Whole => (0, &whole),
            Place::At(place) => {
                let at = place as i64 % judged.size().max(1);
                if ways.len() > MAX_POSITIONS {
                    break;
                }
                // The way, which is the path from the root of the datatype tree to the byte, is
                // computed once for each byte position of an instance and shared by all instances.
                let way = ways.entry(at).or_insert_with(|| way(judged, at).unwrap_or(whole.clone()));
                (way.lane, &*way)
            }
        };
        let effect = effect(runs, i, &moved);
        if let Some(k) = known.iter().find(|k| k.predicts(&family, effect, &way.features, start)) {
            *explained.entry(k.name.clone()).or_default() += 1;
            continue;
        }
        mark.effects.insert(effect.to_owned());
        mark.lanes.insert(start);
        below = Some(match below {
            None => way.features.clone(),
            Some(before) => before.intersection(&way.features).copied().collect(),
        });
    }
    // If known causes predict all wrong bytes, the mark names the cause that predicts most of them.
    match below {
        Some(below) => mark.below = owned(&below),
        None => {
            mark.below = owned(&whole.features);
            mark.explained = explained.into_iter().max_by_key(|(_, n)| *n).map(|(name, _)| name);
        }
    }
    Some(mark)
}
