//! Walking: executes the normal nest directly, from any packed byte to any other.
//!
//! The production fallback, the tier before a lazy compile, and what a range has no kernel for. It keeps its place on an
//! explicit stack, allocates only for nests deeper than `INLINE_DEPTH`, and hands innermost loops to the same
//! micro-kernels that compiled code calls. `range` goes through a nest by the ends of a range, with the walker for the rest.
//!
//! A loop over a few leaves runs leaf by leaf over a chunk of iterations: one call per leaf instead of one copy per row. For
//! unpack that needs iterations that do not overlap; inside one iteration the order of leaves is kept either way. Two loops around a small element
//! go as a transpose where none overlaps another.

mod range;

use std::ops::Range;

use smallvec::SmallVec;

use crate::column::Column;
use crate::interval::{Cover, Interval};
use crate::kind::Direction;
use crate::micro::{Buffers, transpose};
use crate::nest::{Body, LoopNest, Node, Normal, Offsets, Quantity};

pub use range::{Parts, Plain, Rows, Strip, range};

/// Frames kept without allocating.
const INLINE_DEPTH: usize = 16;
/// Most leaves of a loop body that is run leaf by leaf.
const MAX_LANES: usize = 16;
/// Packed bytes of one chunk of iterations: both sides of a chunk stay in the first-level cache.
const CHUNK_BYTES: u64 = 8 << 10;
/// Longest row in packed bytes that is run leaf by leaf (1000 rows of 8 blocks of 40 B take 20.6 us so, row by row 13.6, of 4 blocks 8.0 and 9.0; Emerald Rapids).
const SHORT_ROW: u64 = 64;
/// Rows of blocks that are looked at together.
const LISTED: usize = 32;
/// Fewest iterations of a chunk, and for which lanes pay.
const MIN_TRIP: u64 = 4;

enum Pending<'a> {
    /// The nodes of one iteration, at the offset of that iteration.
    Nodes { nodes: &'a [Node], at: Offsets },
    /// Iterations `[next, end)` of a loop or table, at the offset of its iteration 0.
    Iterate { node: &'a Node, next: u64, end: u64, at: Offsets },
    /// Iterations that are all inside the range and not begun: still free to be one call.
    Whole { node: &'a Node, from: u64, to: u64, at: Offsets },
}

/// One leaf of a loop body: offsets and length in bytes.
#[derive(Clone, Copy)]
struct Lane {
    at: Offsets,
    len: i64,
}

/// Moves all packed bytes `range` of `count` instances of `nest` in the direction of `memory`.
///
/// Bytes outside `range` are touched on neither side. The range may start and end inside an element.
pub fn walk(nest: &LoopNest<Normal>, memory: &Buffers, count: u64, range: Range<u64>) {
    let interval = Interval {
        from: i64::try_from(range.start).unwrap_or(i64::MAX),
        to: i64::try_from(range.end).unwrap_or(i64::MAX),
    };
    walk_body(nest, memory, count, (nest.root(), Offsets::ZERO), interval);
}

/// Moves all packed bytes of `count` instances of `nest` in the direction of `memory`.
pub fn whole(nest: &LoopNest<Normal>, memory: &Buffers, count: u64) {
    let interval = Interval { from: 0, to: i64::MAX };
    Walker { nest, memory, count, interval }.all(nest.root(), Offsets::ZERO, 0);
}

/// Moves what lies in `interval` of one iteration of a body, which is at the given offset.
fn walk_body(
    nest: &LoopNest<Normal>,
    memory: &Buffers,
    count: u64,
    (body, at): (Body, Offsets),
    interval: Interval,
) {
    let mut stack: SmallVec<[Pending<'_>; INLINE_DEPTH]> = SmallVec::new();
    stack.push(Pending::Nodes { nodes: nest.body(body), at });
    let walker = Walker { nest, memory, count, interval };
    while let Some(top) = stack.last_mut() {
        match top {
            Pending::Nodes { nodes, at } => {
                let Some((node, rest)) = nodes.split_first() else {
                    stack.pop();
                    continue;
                };
                let at = *at + node.at();
                *nodes = rest;
                if rest.is_empty() {
                    // Nothing will be left of this frame.
                    stack.pop();
                }
                match interval.cover(at.packed, node.packed_bytes(count)) {
                    Cover::None => {}
                    Cover::All => walker.whole(node, at, &mut stack),
                    Cover::Part => walker.part(node, at, &mut stack),
                }
            }
            Pending::Whole { node, from, to, at } => {
                let (node, range, at) = (*node, *from..*to, *at);
                stack.pop();
                walker.iterations(node, at, range, &mut stack);
            }
            Pending::Iterate { node, next, end, at } => {
                if next == end {
                    stack.pop();
                    continue;
                }
                let here = node.iteration(*at, *next);
                *next += 1;
                let Some(body) = node.body() else { continue };
                stack.push(Pending::Nodes { nodes: nest.body(body), at: here });
            }
        }
    }
}

struct Walker<'a> {
    nest: &'a LoopNest<Normal>,
    memory: &'a Buffers,
    count: u64,
    interval: Interval,
}

impl<'a> Walker<'a> {
    /// A node that lies inside the range.
    fn whole(&self, node: &'a Node, at: Offsets, stack: &mut SmallVec<[Pending<'a>; INLINE_DEPTH]>) {
        if let Some((n, _)) = self.leaf(node, at) {
            self.iterations(node, at, 0..n, stack);
        }
    }

    /// Moves a leaf; of a loop or table it returns the number of iterations and their body.
    #[inline(always)]
    fn leaf(&self, node: &Node, at: Offsets) -> Option<(u64, Body)> {
        match node {
            Node::Copy { n, .. } => self.memory.copy(at.user, at.packed, n.at(self.count)),
            Node::Blocks { user, packed, len, .. } => self.listed(at, [user, packed, len]),
            Node::Loop { trip, body, .. } => return Some((trip.at(self.count), *body)),
            Node::Table { displacements, body, .. } => return Some((displacements.len() as u64, *body)),
        }
        None
    }

    /// Rows of blocks at `at`: long runs of one length, as most lists have, without their lengths.
    #[inline(never)]
    fn listed(&self, at: Offsets, columns: [&Column; 3]) {
        let [user, packed, len] = columns;
        let rows = len.len();
        // The length of the rows from `first` on, if as many as are looked at together have one: at the second of most others it is known.
        let length = |first: usize| {
            let it = len.get(first);
            let same = |end| (first + 1..end).all(|i| len.get(i) == it);
            (rows - first).checked_sub(LISTED).filter(|_| same(first + LISTED)).map(|_| it)
        };
        let mut from = 0;
        while from < rows {
            let one = length(from);
            let mut to = from + LISTED;
            while to < rows && length(to) == one {
                to += LISTED;
            }
            to = to.min(rows);
            match one {
                Some(it) => {
                    let first = at.packed.wrapping_add(packed.get(from));
                    self.memory.rows(at.user, first, (user, from, to - from), it, it as u64);
                }
                None => self.memory.blocks(at.user, at.packed, columns, (from, to - from)),
            }
            from = to;
        }
    }

    /// All of one iteration of a body at `at`, below `depth` others.
    fn all(&self, body: Body, at: Offsets, depth: usize) {
        if depth == INLINE_DEPTH {
            return walk_body(self.nest, self.memory, self.count, (body, at), self.interval);
        }
        for node in self.nest.body(body) {
            let at = at + node.at();
            let Some((n, inner)) = self.leaf(node, at) else { continue };
            if n == 1 {
                self.all(inner, node.iteration(at, 0), depth + 1);
            } else if !self.at_once(node, at, 0..n) {
                (0..n).for_each(|i| self.all(inner, node.iteration(at, i), depth + 1));
            }
        }
    }

    /// Whole iterations `range` of a loop or table at `at`.
    fn iterations(
        &self,
        node: &'a Node,
        at: Offsets,
        range: Range<u64>,
        stack: &mut SmallVec<[Pending<'a>; INLINE_DEPTH]>,
    ) {
        if !self.at_once(node, at, range.clone()) {
            stack.push(Pending::Iterate { node, next: range.start, end: range.end, at });
        }
    }

    /// Whole iterations `range` of a loop or table at `at`, if they are few calls of micro-kernels; else says so and moves nothing.
    fn at_once(&self, node: &Node, at: Offsets, range: Range<u64>) -> bool {
        let Some(body) = node.body().filter(|_| !range.is_empty()) else { return true };
        let body = self.nest.body(body);
        let n = range.end - range.start;
        match (node, body) {
            (Node::Loop { step, .. }, [Node::Copy { n: len, .. }]) => {
                let first = at.step(*step, range.start as i64);
                self.memory.strided(first.user, first.packed, n, (step.user, step.packed), len.k);
                true
            }
            (Node::Table { displacements, packed, .. }, [Node::Copy { n: len, .. }]) => {
                let first = at.packed.wrapping_add(packed.wrapping_mul(range.start as i64));
                let rows = (displacements, range.start as usize, n as usize);
                self.memory.rows(at.user, first, rows, *packed, len.k);
                true
            }
            (Node::Loop { step, .. }, [Node::Loop { at: inside, trip, step: inner, body: blocks }])
                if let [Node::Copy { n: len, .. }] = self.nest.body(*blocks) =>
            {
                let first = at.step(*step, range.start as i64) + *inside;
                let trip = trip.at(self.count);
                let loops = [(n, *step), (trip, *inner)];
                // Leaf by leaf is as many calls as a row has blocks, but reads a line of the user's once for each.
                let short = trip <= n / 2 && trip.saturating_mul(len.k) <= SHORT_ROW;
                let done =
                    self.transposed(first, loops, len.k) || short && self.lanes(body, *step, at, &range);
                if !done {
                    self.memory.rows_of_strided(first, loops, len.k);
                }
                true
            }
            (Node::Loop { step, .. }, body) => n >= MIN_TRIP && self.lanes(body, *step, at, &range),
            _ => false,
        }
    }

    /// Two loops around one element as a transpose, if they are one and no element overlaps another.
    #[inline(never)]
    fn transposed(&self, at: Offsets, [outer, inner]: [(u64, Offsets); 2], len: u64) -> bool {
        let fixed = |(trip, step)| (Quantity::fixed(trip), step);
        let Some(loops) = transpose::suited([fixed(outer), fixed(inner)], len) else { return false };
        let [(short, n), (long, _)] = loops.map(|(trip, step)| (step.user.unsigned_abs(), trip.k));
        // The outer one of a transpose has the shorter step in user memory.
        let apart = short >= len && long >= short.saturating_mul(n - 1).saturating_add(len);
        apart && self.memory.transposed(at, loops.map(|(trip, step)| (trip.k, step)), len)
    }

    /// Runs iterations leaf by leaf, if the body has few leaves and the order is free.
    #[inline(never)]
    fn lanes(&self, body: &[Node], step: Offsets, at: Offsets, range: &Range<u64>) -> bool {
        let mut lanes: SmallVec<[Lane; MAX_LANES]> = SmallVec::new();
        let few = self.collect(body, Offsets::ZERO, &mut lanes);
        let chunk = (CHUNK_BYTES / step.packed.unsigned_abs().max(1)).max(MIN_TRIP);
        if !few || 2 * lanes.len() as u64 > chunk.min(range.end - range.start) {
            return false;
        }
        if self.memory.direction() == Direction::Unpack {
            let lo = lanes.iter().map(|l| l.at.user).min().unwrap_or(0);
            let hi = lanes.iter().map(|l| l.at.user.saturating_add(l.len)).max().unwrap_or(0);
            if hi.abs_diff(lo) > step.user.unsigned_abs() {
                return false;
            }
        }
        let mut next = range.start;
        while next < range.end {
            let n = chunk.min(range.end - next);
            let first = at.step(step, next as i64);
            for lane in &lanes {
                let at = first + lane.at;
                self.memory.strided(at.user, at.packed, n, (step.user, step.packed), lane.len as u64);
            }
            next += n;
        }
        true
    }

    /// The leaves of a body in order; false when there are too many or one of them is not plain.
    fn collect(&self, body: &[Node], at: Offsets, lanes: &mut SmallVec<[Lane; MAX_LANES]>) -> bool {
        let mut push = |at: Offsets, len: i64| {
            let room = lanes.len() < MAX_LANES;
            if room {
                lanes.push(Lane { at, len });
            }
            room
        };
        body.iter().all(|node| {
            let at = at + node.at();
            match node {
                Node::Copy { n: Quantity { k, per_count: false }, .. } => push(at, *k as i64),
                Node::Blocks { user, packed, len, .. } => {
                    (0..len.len()).all(|i| push(at + Offsets::new(user.get(i), packed.get(i)), len.get(i)))
                }
                Node::Loop { trip: Quantity { k, per_count: false }, step, body, .. } => {
                    match self.nest.body(*body) {
                        [Node::Copy { n, .. }] => (0..*k as i64).all(|i| push(at.step(*step, i), n.k as i64)),
                        _ => false,
                    }
                }
                _ => false,
            }
        })
    }

    /// A node that lies partly inside the range: cut pieces at its ends, whole pieces between them.
    fn part(&self, node: &'a Node, at: Offsets, stack: &mut SmallVec<[Pending<'a>; INLINE_DEPTH]>) {
        match node {
            Node::Copy { n, .. } => self.clipped(at, n.at(self.count) as i64),
            Node::Blocks { user, packed, len, .. } => {
                let from = (self.interval.from - at.packed).max(0);
                let to = (self.interval.to - at.packed).min(node.packed_bytes(1));
                range::rows(self.memory, [user, packed, len], None, at, from, to);
            }
            Node::Loop { .. } | Node::Table { .. } => {
                let Some(body) = node.body() else { return };
                let (n, piece) = match node {
                    Node::Loop { trip, step, .. } => (trip.at(self.count), step.packed),
                    Node::Table { displacements, packed, .. } => (displacements.len() as u64, *packed),
                    Node::Blocks { .. } | Node::Copy { .. } => return,
                };
                let touched = self.interval.pieces(at.packed, piece, n);
                let cut = |i: u64| {
                    self.interval.cover(at.packed.wrapping_add(piece.wrapping_mul(i as i64)), piece)
                        != Cover::All
                };
                let nodes = self.nest.body(body);
                let (mut from, mut to) = (touched.start, touched.end);
                let head = (from < to && cut(from)).then_some(from);
                from += u64::from(head.is_some());
                let tail = (from < to && cut(to - 1)).then(|| to - 1);
                to -= u64::from(tail.is_some());
                // The stack runs backwards: tail, middle, head.
                if let Some(i) = tail {
                    stack.push(Pending::Nodes { nodes, at: node.iteration(at, i) });
                }
                if from < to {
                    stack.push(Pending::Whole { node, from, to, at });
                }
                if let Some(i) = head {
                    stack.push(Pending::Nodes { nodes, at: node.iteration(at, i) });
                }
            }
        }
    }

    fn clipped(&self, at: Offsets, len: i64) {
        let (at, len) = self.interval.clip(at, len);
        self.memory.copy(at.user, at.packed, len as u64);
    }
}
