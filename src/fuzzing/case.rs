//! One datatype, one count, and the bytes that packing and unpacking must give.
//!
//! The type map decides, through `interp`. What a stage made is judged by the functions of [`Case`], so a test may hand them a
//! stage's output with a fault in it.

use std::fmt;
use std::ops::Range;

use super::guard::{Edge, Rig, Run, Subject};
use super::panics::caught;
use crate::committed::Committed;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::exec::interp;
use crate::kind::Direction;
use crate::nest::{self, LoopNest};
use crate::plan::{self, Plan};
use crate::target::Level;

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The stage or engine that is wrong, by its one name, or the property that does not hold.
    pub stage: &'static str,
    /// Direction, if it matters.
    pub direction: Option<Direction>,
    /// CPU level, if it matters.
    pub level: Option<Level>,
    /// Result and expectation, with the text of the stage.
    pub detail: String,
}

impl Mismatch {
    pub(super) fn new(stage: &'static str, detail: impl Into<String>) -> Mismatch {
        Mismatch { stage, direction: None, level: None, detail: detail.into() }
    }

    pub(super) fn error(stage: &'static str) -> impl Fn(Error) -> Mismatch {
        move |e| Mismatch::new(stage, e.to_string())
    }

    pub(super) fn at(mut self, direction: Direction, level: Option<Level>) -> Mismatch {
        self.direction = Some(direction);
        self.level = level;
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stage)?;
        if let Some(direction) = self.direction {
            write!(f, " {direction}")?;
        }
        if let Some(level) = self.level {
            write!(f, " on {level}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

pub(super) type Check<T = ()> = std::result::Result<T, Mismatch>;

/// Fails with `detail` unless `ok`.
pub(super) fn ensure(ok: bool, stage: &'static str, detail: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err(Mismatch::new(stage, detail())) }
}

/// Bytes `8 * i ..` of the pattern with that seed.
fn word(seed: u64, i: u64) -> u64 {
    let mixed = (i + 1).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Byte `i` of the pattern with that seed: bytes next to each other, and at the same place under other seeds, differ.
pub fn pattern(seed: u64, i: usize) -> u8 {
    word(seed, i as u64 / 8).to_le_bytes()[i % 8]
}

/// Appends bytes `from .. from + len` of the pattern; `from` is a multiple of 8.
pub(super) fn append_pattern(seed: u64, from: usize, len: usize, to: &mut Vec<u8>) {
    let end = to.len() + len;
    let words = from as u64 / 8..(from + len).div_ceil(8) as u64;
    to.extend(words.flat_map(|i| word(seed, i).to_le_bytes()));
    to.truncate(end);
}

pub(super) fn patterned(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    append_pattern(seed, 0, len, &mut bytes);
    bytes
}

/// Seeds of the patterns of a [`Case`]: user memory that is packed, packed bytes that are unpacked, and what lies in either
/// destination before.
pub mod seeds {
    /// User memory before a pack.
    pub const USER: u64 = 1;
    /// The packed stream before an unpack.
    pub const PACKED: u64 = 2;
    /// The destination, whichever it is.
    pub const BEFORE: u64 = 3;
}

/// A datatype, a count, and what packing and unpacking are by definition.
///
/// User images hold the bytes from the first mapped one to the last, so whatever else a stage touches is outside of them.
#[derive(Clone, Debug)]
pub struct Case {
    datatype: Datatype,
    count: u64,
    /// Displacement of the first byte of the user images.
    low: i64,
    /// Which bytes of the user images are mapped.
    mapped: Vec<bool>,
    /// Whether some byte is mapped twice.
    overlaps: bool,
    /// User memory before a pack, and the stream after it.
    source: Vec<u8>,
    packed: Vec<u8>,
    /// The stream before an unpack, and user memory before and after it.
    stream: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Largest span of user memory in bytes that a [`Case`] holds images of.
const MAX_SPAN: i64 = 256 << 20;

/// Bytes of memory for each entry of the type map while a [`Case`] is made: its place and length, in a list that doubles when it
/// grows.
const ENTRY: u64 = 48;
/// Images of the span, and of the packed stream, that are held at the same time: those of the [`Case`], copies that a stage works on,
/// and the buffers of the rig.
const IMAGES: u64 = 10;
/// What the process itself takes, with the engines of all levels.
const PROCESS: u64 = 16 << 20;

impl Case {
    /// Returns an upper estimate, in bytes, of the memory that the checks of a case of `count` instances of `t` take. It is computed
    /// from the bounds alone. None if the span of the instances is too large for a case.
    pub fn memory(t: &Datatype, count: u64) -> Option<u64> {
        let last = i128::from(t.extent()).abs() * (i128::from(count) - 1).max(0);
        let span = i128::from(t.true_ub()) - i128::from(t.true_lb()) + last;
        if span > i128::from(MAX_SPAN) {
            return None;
        }
        let of = |n: i64| (n as u64).saturating_mul(count);
        let entries = of(t.signature().length()).saturating_mul(ENTRY);
        let images = of(t.size()).saturating_add(span as u64).saturating_mul(IMAGES);
        Some(entries.saturating_add(images).saturating_add(PROCESS))
    }

    /// Returns the case of `count` instances of `t`, by the type map.
    ///
    /// # Errors
    /// When the type map contradicts the size, the true bounds or the signature of `t`, and for spans above 256 MiB.
    pub fn new(t: &Datatype, count: u64) -> Check<Case> {
        let entries = i128::from(t.signature().length()) * i128::from(count);
        // What is said of the length is checked below; until then it buys no more than a little room.
        let mut map: Vec<(i64, usize)> = Vec::with_capacity(entries.clamp(0, 4096) as usize);
        let listed = interp::for_each(t, count, &mut |at, len, _| map.push((at, len)));
        listed.map_err(Mismatch::error("interp"))?;
        let low = map.iter().map(|e| e.0).min().unwrap_or(0);
        let high = map.iter().map(|e| e.0 + e.1 as i64).max().unwrap_or(0);
        let size: usize = map.iter().map(|e| e.1).sum();
        ensure(size as i128 == i128::from(t.size()) * i128::from(count), "typemap", || {
            format!("{count} instances map {size} bytes, the size is {}", t.size())
        })?;
        ensure(map.len() as i128 == entries, "signature", || {
            let length = t.signature().length();
            format!("{count} instances map {} entries, the length is {length}", map.len())
        })?;
        if count == 1 {
            ensure((low, high) == (t.true_lb(), t.true_ub()), "bounds", || {
                format!("data from {low} to {high}, true bounds {} and {}", t.true_lb(), t.true_ub())
            })?;
        }
        ensure(high - low <= MAX_SPAN, "case", || format!("a span of {} bytes is too large", high - low))?;
        let span = (high - low) as usize;
        let (source, stream) = (patterned(seeds::USER, span), patterned(seeds::PACKED, size));
        let before = patterned(seeds::BEFORE, span);
        let (mut mapped, mut overlaps) = (vec![false; span], false);
        let (mut packed, mut after) = (Vec::with_capacity(size), before.clone());
        for (at, len) in map {
            let at = (at - low) as usize;
            for byte in &mut mapped[at..at + len] {
                overlaps |= std::mem::replace(byte, true);
            }
            // By definition: in type-map order, the last of overlapping entries wins.
            after[at..at + len].copy_from_slice(&stream[packed.len()..packed.len() + len]);
            packed.extend_from_slice(&source[at..at + len]);
        }
        let datatype = t.clone();
        Ok(Case { datatype, count, low, mapped, overlaps, source, packed, stream, before, after })
    }

    /// Returns the datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Returns the number of instances.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Says whether some user byte is mapped twice.
    pub fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// Packed bytes of all instances.
    pub fn packed_len(&self) -> usize {
        self.packed.len()
    }

    /// Which bytes of the user images are mapped.
    pub(super) fn mapped(&self) -> &[bool] {
        &self.mapped
    }

    /// Displacement of the first byte of the user images.
    pub fn low(&self) -> i64 {
        self.low
    }

    /// User memory and packed stream `[before, after]` by definition.
    pub fn images(&self, direction: Direction) -> [[&[u8]; 2]; 2] {
        match direction {
            Direction::Pack => [[&self.source, &self.stream], [&self.source, &self.packed]],
            Direction::Unpack => [[&self.before, &self.stream], [&self.after, &self.stream]],
        }
    }

    /// Runs `f(user, packed)` on copies of the images and compares them with the definition.
    fn run(
        &self,
        stage: &'static str,
        direction: Direction,
        shown: &dyn fmt::Display,
        f: impl FnOnce(&mut [u8], &mut [u8]),
    ) -> Check {
        let [[user, packed], want] = self.images(direction);
        let (mut user, mut packed) = (user.to_vec(), packed.to_vec());
        caught(|| f(&mut user, &mut packed))
            .map_err(|panic| Mismatch::new(stage, format!("panic: {panic}\n{shown}")).at(direction, None))?;
        self.compare(stage, direction, shown, [&user, &packed], want)
    }

    fn compare(
        &self,
        stage: &'static str,
        direction: Direction,
        shown: &dyn fmt::Display,
        [user, packed]: [&[u8]; 2],
        [want_user, want_packed]: [&[u8]; 2],
    ) -> Check {
        let fail = |what: String| Err(Mismatch::new(stage, format!("{what}\n{shown}")).at(direction, None));
        if user == want_user && packed == want_packed {
            return Ok(());
        }
        if let Some(i) = (0..packed.len()).find(|&i| packed[i] != want_packed[i]) {
            return fail(format!(
                "packed byte {i} of {} is {:#04x}, must be {:#04x}",
                packed.len(),
                packed[i],
                want_packed[i]
            ));
        }
        if let Some(i) = (0..user.len()).find(|&i| user[i] != want_user[i]) {
            let at = self.low + i as i64;
            let kind = if self.mapped[i] { "mapped byte" } else { "gap byte" };
            let (got, want) = (user[i], want_user[i]);
            return fail(format!("{kind} at displacement {at} is {got:#04x}, must be {want:#04x}"));
        }
        Ok(())
    }

    /// Judges a nest: its bytes in both directions, evaluated one at a time. `moved` is the user offset that is not in the nest.
    ///
    /// # Errors
    /// The first difference.
    pub fn nest<P: nest::Phase>(&self, stage: &'static str, nest: &LoopNest<P>, moved: i64) -> Check {
        let origin = self.index(moved);
        Direction::BOTH.into_iter().try_for_each(|d| {
            self.run(stage, d, nest, |user, packed| nest.eval(d, self.count, user, origin, packed))
        })
    }

    /// Judges a plan: its bytes in its direction, evaluated one operation at a time.
    ///
    /// # Errors
    /// The first difference.
    pub fn plan<P: plan::Phase>(&self, stage: &'static str, plan: &Plan<P>, moved: i64) -> Check {
        let origin = self.index(moved);
        self.run(stage, plan.direction(), plan, |user, packed| plan.eval(self.count, user, origin, packed))
            .map_err(|m| Mismatch { level: Some(plan.target().level()), ..m })
    }

    /// The index of displacement `moved` in the user images: outside of them it wraps, as the addition of offsets does.
    fn index(&self, moved: i64) -> usize {
        moved.wrapping_sub(self.low) as usize
    }

    /// Judges a committed datatype: whole calls in both directions, buffers between guards at both edges.
    ///
    /// # Errors
    /// The first difference. A byte touched where none is mapped ends the process.
    pub fn committed(&self, stage: &'static str, committed: &Committed, rig: &mut Rig) -> Check {
        Edge::BOTH.into_iter().try_for_each(|edge| self.whole(stage, committed, rig, edge))
    }

    /// Checks a committed type with buffers between guards at one edge.
    ///
    /// # Errors
    /// As [`Case::committed`].
    pub fn whole(&self, stage: &'static str, committed: &Committed, rig: &mut Rig, edge: Edge) -> Check {
        Direction::BOTH.into_iter().try_for_each(|direction| {
            self.guarded(stage, Subject::Committed(committed), rig, direction, edge, None)
        })
    }

    /// Judges ranges of a committed datatype: `pieces` of the packed stream, moved in that order. What is in none of them must stay.
    ///
    /// # Errors
    /// As [`Case::committed`].
    pub fn ranges(&self, committed: &Committed, rig: &mut Rig, pieces: &[Range<usize>], edge: Edge) -> Check {
        Direction::BOTH.into_iter().try_for_each(|d| {
            self.guarded("range", Subject::Committed(committed), rig, d, edge, Some(pieces))
        })
    }

    /// Judges what moves bytes: one whole call, or calls of `pieces` in their order, with buffers between guards at one edge.
    ///
    /// # Errors
    /// As [`Case::committed`].
    pub fn guarded(
        &self,
        stage: &'static str,
        subject: Subject<'_>,
        rig: &mut Rig,
        direction: Direction,
        edge: Edge,
        pieces: Option<&[Range<usize>]>,
    ) -> Check {
        let [[user, packed], [mut want_user, mut want_packed]] = self.images(direction);
        let replayed;
        match (pieces, direction) {
            (Some(pieces), Direction::Unpack) if self.overlaps || !self.covered(pieces) => {
                replayed = self.replayed(pieces)?;
                want_user = &replayed;
            }
            (Some(pieces), Direction::Pack) if !self.covered(pieces) => {
                let mut some = self.stream.clone();
                pieces.iter().for_each(|p| some[p.clone()].copy_from_slice(&self.packed[p.clone()]));
                replayed = some;
                want_packed = &replayed;
            }
            _ => {}
        }
        let run = Run {
            direction,
            count: self.count,
            user,
            low: self.low,
            mapped: &self.mapped,
            packed,
            pieces,
            edge,
        };
        let (user, packed) = rig.run(subject, &run);
        let shown = Shown(subject, direction, pieces);
        self.compare(stage, direction, &shown, [&user, &packed], [want_user, want_packed])
            .map_err(|m| Mismatch { level: subject.level(), ..m })
    }

    /// Whether `pieces` are the whole stream, each byte once.
    fn covered(&self, pieces: &[Range<usize>]) -> bool {
        let mut sorted: Vec<&Range<usize>> = pieces.iter().filter(|p| !p.is_empty()).collect();
        sorted.sort_unstable_by_key(|p| p.start);
        let end = sorted.into_iter().try_fold(0, |end, p| (p.start == end).then_some(p.end));
        end == Some(self.packed.len())
    }

    /// User memory after `pieces` of the stream are unpacked in that order: where entries overlap, the order of the pieces decides.
    fn replayed(&self, pieces: &[Range<usize>]) -> Check<Vec<u8>> {
        let mut user = self.before.clone();
        for piece in pieces {
            let mut put = |to: i64, at: usize, len: usize| {
                let (to, from) = ((to - self.low) as usize, piece.start + at);
                user[to..to + len].copy_from_slice(&self.stream[from..from + len]);
                Ok(())
            };
            interp::pieces(&self.datatype, self.count, piece.start as u64, piece.len(), &mut put)
                .map_err(Mismatch::error("interp"))?;
        }
        Ok(user)
    }

    /// The safe slice methods: a buffer one byte too short is refused and nothing is written.
    pub(super) fn slices(&self, committed: &Committed) -> Check {
        if self.packed.is_empty() || self.low > MAX_SPAN {
            return Ok(());
        }
        let refused = |what: &str, refused: bool, untouched: bool| {
            ensure(refused && untouched, "slices", || {
                format!("{what}: refused {refused}, destination untouched {untouched}")
            })
        };
        // Slices start at displacement 0 or at the first byte, whichever is lower.
        let (origin, ahead) = ((-self.low).max(0) as usize, vec![0; self.low.max(0) as usize]);
        let source = [&ahead[..], &self.source].concat();
        let before = [&ahead[..], &self.before].concat();
        let (n, len) = (self.packed.len(), source.len());
        let mut dst = vec![0; n];
        let short = committed.pack(&source, origin, self.count, &mut dst[..n - 1]).is_err();
        refused("packed buffer one byte short", short, dst.iter().all(|&b| b == 0))?;
        let mut user = before.clone();
        let short = committed.unpack(&self.stream[..n - 1], origin, self.count, &mut user).is_err();
        refused("packed source one byte short", short, user == before)?;
        if len > origin {
            let short = committed.pack(&source[..len - 1], origin, self.count, &mut dst).is_err();
            refused("user buffer one byte short", short, dst.iter().all(|&b| b == 0))?;
        }
        if self.low < 0 {
            let short = committed.unpack(&self.stream, origin - 1, self.count, &mut user).is_err();
            refused("origin one byte too low", short, user == before)?;
        }
        let done = committed.pack(&source, origin, self.count, &mut dst);
        ensure(done == Ok(n) && dst == self.packed, "slices", || format!("pack returned {done:?}"))?;
        let mut user = before.clone();
        let done = committed.unpack(&self.stream, origin, self.count, &mut user);
        ensure(done == Ok(n) && user[ahead.len()..] == self.after, "slices", || {
            format!("unpack returned {done:?}")
        })?;
        // From the start, from inside, the last byte, nothing; as much room as there is left, less and more.
        for (from, room) in [(0, n - 1), (n / 2, n), (n / 3, n / 3), (n - 1, 1), (n - 1, 9), (n, 9)] {
            let moved = room.min(n - from);
            let what = |done| format!("from {from} of {n}, room for {room}: returned {done:?}, not {moved}");
            let mut part = vec![0; room];
            let done = committed.pack_range(&source, origin, self.count, from as u64, &mut part);
            let same =
                part[..moved] == self.packed[from..from + moved] && part[moved..].iter().all(|&b| b == 0);
            ensure(done == Ok(moved) && same, "slices", || what(done))?;
            let stream = [&self.stream[from..from + moved], &vec![0; room - moved]].concat();
            let mut user = before.clone();
            let done = committed.unpack_range(&stream, origin, self.count, from as u64, &mut user);
            let want = self.replayed(std::slice::from_ref(&(from..from + moved)))?;
            ensure(done == Ok(moved) && user[ahead.len()..] == want, "slices", || what(done))?;
        }
        let past = committed.pack_range(&source, origin, self.count, n as u64 + 1, &mut dst).is_err();
        let read = committed.unpack_range(&self.stream, origin, self.count, n as u64 + 1, &mut user).is_err();
        ensure(past && read, "slices", || format!("from {}: not refused", n + 1))
    }
}

/// Describes for a report what a subject runs.
struct Shown<'a>(Subject<'a>, Direction, Option<&'a [Range<usize>]>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pieces) = self.2 {
            writeln!(f, "pieces {pieces:?}")?;
        }
        match self.0 {
            Subject::Committed(c) => {
                write!(f, "served by: {}", c.schedule(self.1))?;
                match c.engine().explain(c.datatype(), self.1, c.engine().target()) {
                    Ok(e) => e.stages.iter().try_for_each(|s| write!(f, "\n{}:\n{}", s.name, s.text)),
                    Err(e) => write!(f, "\n{e}"),
                }
            }
            Subject::Applied(a) => write!(f, "{a:?}"),
            Subject::Kernel(k, moved) => write!(f, "origin {moved}, {k:?}"),
            Subject::Walk(nest, moved, _) => write!(f, "origin {moved}\n{nest}"),
        }
    }
}
