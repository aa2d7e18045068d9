//! One datatype with a number of instances, and the bytes that packing and unpacking must produce
//! according to the type map.
//!
//! The expected bytes come from `interp`. The output of a stage is checked by the methods of
//! [`Case`], so that a test may also pass output with a fault in it and see whether the check finds
//! the fault.

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

/// Report of a check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Name of the stage or engine that is wrong, or of the property that does not hold.
    pub stage: &'static str,
    /// Direction in which the check failed, if that matters.
    pub direction: Option<Direction>,
    /// CPU level for which the check failed, if that matters.
    pub level: Option<Level>,
    /// Result and expectation, with the text of the stage's output.
    pub detail: String,
}

impl Mismatch {
    pub(super) fn new(stage: &'static str, detail: impl Into<String>) -> Mismatch {
        Mismatch { stage, direction: None, level: None, detail: detail.into() }
    }

    pub(super) fn error(stage: &'static str) -> impl Fn(Error) -> Mismatch {
        move |e| Mismatch::new(stage, e.to_string())
    }

    pub(super) fn with_direction(mut self, direction: Direction, level: Option<Level>) -> Mismatch {
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

/// Returns a mismatch with `detail` unless `ok` is true.
pub(super) fn ensure(ok: bool, stage: &'static str, detail: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err(Mismatch::new(stage, detail())) }
}

/// Returns, as one integer, bytes `8 * i` to `8 * i + 7` of the pattern of bytes that `seed`
/// selects.
fn word(seed: u64, i: u64) -> u64 {
    let mixed = (i + 1).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Returns byte `i` of the pattern of bytes that `seed` selects. The pattern is mixed so that
/// neighbouring bytes, and bytes at the same position of different patterns, mostly differ.
pub fn pattern(seed: u64, i: usize) -> u8 {
    word(seed, i as u64 / 8).to_le_bytes()[i % 8]
}

/// Appends bytes `from .. from + len` of the pattern to `to`. `from` must be a multiple of 8.
pub(super) fn append_pattern(seed: u64, from: usize, len: usize, to: &mut Vec<u8>) {
    let end = to.len() + len;
    let words = from as u64 / 8..(from + len).div_ceil(8) as u64;
    to.extend(words.flat_map(|i| word(seed, i).to_le_bytes()));
    to.truncate(end);
}

/// Returns the first `len` bytes of the pattern of bytes that `seed` selects.
pub(super) fn patterned(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    append_pattern(seed, 0, len, &mut bytes);
    bytes
}

/// Seeds of the patterns of bytes with which a [`Case`] fills user memory and the packed stream.
pub mod seeds {
    /// Seed for the user memory that is packed.
    pub const USER: u64 = 1;
    /// Seed for the packed stream that is unpacked, and for the previous contents of the stream of
    /// a pack.
    pub const PACKED: u64 = 2;
    /// Seed for the contents that user memory has before an unpack writes to it.
    pub const BEFORE: u64 = 3;
}

/// A datatype, a number of instances, and the results of packing and unpacking by definition.
///
/// An image is the contents of user memory or of the packed stream at one time. An image of user
/// memory extends from the first mapped byte to the last one.
#[derive(Clone, Debug)]
pub struct Case {
    datatype: Datatype,
    count: u64,
    /// Displacement of the first byte of the images of user memory, which is the first mapped byte.
    low: i64,
    /// For each byte of user memory from the first mapped one to the last one, whether it is
    /// mapped.
    mapped: Vec<bool>,
    /// Whether some byte is mapped more than once.
    overlaps: bool,
    /// `source` is user memory before a pack, and `packed` is the packed stream after the pack.
    source: Vec<u8>,
    packed: Vec<u8>,
    /// `stream` is the packed stream before an unpack; `before` and `after` are user memory before
    /// and after the unpack.
    stream: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Maximum span of user memory, in bytes, for which a [`Case`] is made.
const MAX_SPAN: i64 = 256 << 20;

/// Number of bytes of memory for each entry of the type map while a [`Case`] is made. An entry,
/// which is an offset and a length, takes 16 bytes. Three times as much is counted, because the
/// list of entries doubles when it grows, and the old list and the new one then exist at the same
/// time.
const ENTRY: u64 = 48;

/// Number of copies of user memory, and of the packed stream, that exist at the same time: those in
/// the [`Case`], the copies on which a stage works, and the buffers of the [`Rig`], which lie next
/// to inaccessible pages.
const IMAGES: u64 = 10;
/// Number of bytes of memory that the process takes in addition to the case, with the engines of
/// all levels.
pub(super) const PROCESS: u64 = 16 << 20;

impl Case {
    /// Returns an upper estimate of the memory, in bytes, that the checks of a case of `count`
    /// instances of `t` need. It is computed from the bounds, the size and the signature of `t`.
    /// The result is none if the span of the instances is too large for a case.
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

    /// Returns the case of `count` instances of `t`, according to the type map.
    ///
    /// # Errors
    /// If the type map contradicts the size or the signature of `t`, or, for one instance, its true
    /// bounds; for spans above 256 MiB, and for displacements that do not fit in 64 bits.
    pub fn new(t: &Datatype, count: u64) -> Check<Case> {
        let entries = i128::from(t.signature().length()) * i128::from(count);
        // The number of entries comes from the signature, which may be wrong, since it is checked
        // only below. So reserve memory for at most 4096 entries now.
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
            // By definition, entries are assigned in the order of the type map, so the last of
            // several overlapping entries wins.
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

    /// Returns whether some byte of user memory is mapped more than once.
    pub fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// Returns the number of packed bytes of all instances.
    pub fn packed_len(&self) -> usize {
        self.packed.len()
    }

    /// Returns, for each byte of the images of user memory, whether it is mapped.
    pub(super) fn mapped(&self) -> &[bool] {
        &self.mapped
    }

    /// Returns the displacement of the first byte of the images of user memory.
    pub fn low(&self) -> i64 {
        self.low
    }

    /// Returns the contents of `[user memory, packed stream]` before a pack or unpack
    /// (`direction`), and the contents that they must have after it according to the type map.
    pub fn images(&self, direction: Direction) -> [[&[u8]; 2]; 2] {
        match direction {
            Direction::Pack => [[&self.source, &self.stream], [&self.source, &self.packed]],
            Direction::Unpack => [[&self.before, &self.stream], [&self.after, &self.stream]],
        }
    }

    /// Runs `f(user, packed)` on copies of user memory and of the packed stream, as they are before
    /// a pack or unpack. Afterwards compares them with what the type map requires. A panic of `f`
    /// is reported as a mismatch.
    fn run(
        &self,
        stage: &'static str,
        direction: Direction,
        shown: &dyn fmt::Display,
        f: impl FnOnce(&mut [u8], &mut [u8]),
    ) -> Check {
        let [[user, packed], want] = self.images(direction);
        let (mut user, mut packed) = (user.to_vec(), packed.to_vec());
        caught(|| f(&mut user, &mut packed)).map_err(|panic| {
            Mismatch::new(stage, format!("panic: {panic}\n{shown}")).with_direction(direction, None)
        })?;
        self.compare(stage, direction, shown, [&user, &packed], want)
    }

    /// Compares user memory and packed stream with what they must be, and reports the first wrong
    /// byte.
    fn compare(
        &self,
        stage: &'static str,
        direction: Direction,
        shown: &dyn fmt::Display,
        [user, packed]: [&[u8]; 2],
        [want_user, want_packed]: [&[u8]; 2],
    ) -> Check {
        let fail = |what: String| {
            Err(Mismatch::new(stage, format!("{what}\n{shown}")).with_direction(direction, None))
        };
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

    /// Evaluates a nest byte by byte in both directions, and checks the result. `moved` is the
    /// displacement at which user offset 0 of the nest lies.
    ///
    /// # Errors
    /// The first difference.
    pub fn nest<P: nest::Phase>(&self, stage: &'static str, nest: &LoopNest<P>, moved: i64) -> Check {
        let origin = self.index(moved);
        Direction::BOTH.into_iter().try_for_each(|d| {
            self.run(stage, d, nest, |user, packed| nest.eval(d, self.count, user, origin, packed))
        })
    }

    /// Evaluates a plan one operation at a time in its direction, and checks the result. `moved` is
    /// the displacement at which user offset 0 of the plan lies.
    ///
    /// # Errors
    /// The first difference.
    pub fn plan<P: plan::Phase>(&self, stage: &'static str, plan: &Plan<P>, moved: i64) -> Check {
        let origin = self.index(moved);
        self.run(stage, plan.direction(), plan, |user, packed| plan.eval(self.count, user, origin, packed))
            .map_err(|m| Mismatch { level: Some(plan.target().level()), ..m })
    }

    /// Returns the index of displacement `moved` in the images of user memory. If `moved` lies
    /// outside of the images, the index wraps around, as the addition of offsets does.
    fn index(&self, moved: i64) -> usize {
        moved.wrapping_sub(self.low) as usize
    }

    /// Checks a committed datatype by whole calls in both directions, first with an inaccessible
    /// page directly before the user buffer and the packed buffer, and then with one directly after
    /// them.
    ///
    /// # Errors
    /// The first difference. An access outside of a buffer that meets an inaccessible page ends the
    /// process.
    pub fn committed(&self, stage: &'static str, committed: &Committed, rig: &mut Rig) -> Check {
        Edge::BOTH.into_iter().try_for_each(|edge| self.whole(stage, committed, rig, edge))
    }

    /// Checks a committed datatype by whole calls in both directions. The inaccessible page lies
    /// before or after the buffers, as `edge` selects.
    ///
    /// # Errors
    /// As [`Case::committed`].
    pub fn whole(&self, stage: &'static str, committed: &Committed, rig: &mut Rig, edge: Edge) -> Check {
        Direction::BOTH.into_iter().try_for_each(|direction| {
            self.guarded(stage, Subject::Committed(committed), rig, direction, edge, None)
        })
    }

    /// Checks ranges of a committed datatype: `pieces` of the packed stream are moved in their
    /// order. Bytes that are in none of the pieces must stay unchanged.
    ///
    /// # Errors
    /// As [`Case::committed`].
    pub fn ranges(&self, committed: &Committed, rig: &mut Rig, pieces: &[Range<usize>], edge: Edge) -> Check {
        Direction::BOTH.into_iter().try_for_each(|d| {
            self.guarded("range", Subject::Committed(committed), rig, d, edge, Some(pieces))
        })
    }

    /// Checks a [`Subject`], which is anything that moves bytes, by one whole call or by calls for
    /// `pieces` in their order. The buffers have an inaccessible page at `edge`.
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
        // If the pieces leave bytes out, only some bytes of the destination change. If entries
        // overlap, the order of the pieces decides which entry wins. In these cases compute the
        // expected image again from the pieces.
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

    /// Returns whether `pieces`, taken together, contain each byte of the stream exactly once.
    fn covered(&self, pieces: &[Range<usize>]) -> bool {
        let mut sorted: Vec<&Range<usize>> = pieces.iter().filter(|p| !p.is_empty()).collect();
        sorted.sort_unstable_by_key(|p| p.start);
        let end = sorted.into_iter().try_fold(0, |end, p| (p.start == end).then_some(p.end));
        end == Some(self.packed.len())
    }

    /// Returns user memory after `pieces` of the stream have been unpacked in that order. Where
    /// entries overlap, the order of the pieces decides.
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

    /// Checks the safe methods of a committed type, which take slices: a buffer that is one byte
    /// too short is refused and nothing is written, and buffers of the right length give the right
    /// bytes.
    pub(super) fn slices(&self, committed: &Committed) -> Check {
        if self.packed.is_empty() || self.low > MAX_SPAN {
            return Ok(());
        }
        let refused = |what: &str, refused: bool, untouched: bool| {
            ensure(refused && untouched, "slices", || {
                format!("{what}: refused {refused}, destination untouched {untouched}")
            })
        };
        // The slices begin at displacement 0 or at the first mapped byte, whichever is lower.
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
        // Buffers of exactly the right length must work.
        let done = committed.pack(&source, origin, self.count, &mut dst);
        ensure(done == Ok(n) && dst == self.packed, "slices", || format!("pack returned {done:?}"))?;
        let mut user = before.clone();
        let done = committed.unpack(&self.stream, origin, self.count, &mut user);
        ensure(done == Ok(n) && user[ahead.len()..] == self.after, "slices", || {
            format!("unpack returned {done:?}")
        })?;
        // Check ranges that begin at the start of the stream, inside it, at its last byte and at
        // its end, where nothing is left. The buffer `part` has as many bytes as are left of the
        // stream, fewer, or more.
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
        // A range that begins after the end of the stream must be refused.
        let past = committed.pack_range(&source, origin, self.count, n as u64 + 1, &mut dst).is_err();
        let read = committed.unpack_range(&self.stream, origin, self.count, n as u64 + 1, &mut user).is_err();
        ensure(past && read, "slices", || format!("from {}: not refused", n + 1))
    }
}

/// Text about the [`Subject`] that moved the bytes, and about what it ran, for the report of a
/// failure.
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
            Subject::Nest(nest, moved, _) => write!(f, "origin {moved}\n{nest}"),
        }
    }
}
