//! The interpreter of nests: executes a normal nest of bytes directly, without compiled code, for
//! any range of the packed stream.
//!
//! In production it moves the bytes wherever there is no kernel: if a layout cannot be compiled,
//! before a lazily compiled layout has its kernel, and in parts of a range that have no kernel of
//! their own. It keeps its position on an explicit stack, allocates only for nests deeper than
//! `INLINE_DEPTH`, and passes innermost loops to the same micro-kernels that compiled code calls.
//! The submodule `range` moves a range with the help of kernels and calls the interpreter for the
//! rest.
//!
//! A loop over a few leaves is executed leaf by leaf over a chunk of iterations, which takes one
//! call per leaf and chunk instead of one copy per leaf and iteration. When unpacking, this is done
//! only if iterations do not overlap in user memory; inside one iteration the order of the leaves
//! is kept in any case. Two loops around a small element are executed as a transpose if no element
//! overlaps another.

mod range;

use std::ops::Range;

use smallvec::SmallVec;

use crate::column::Column;
use crate::interval::{Cover, Interval};
use crate::kind::Direction;
use crate::micro::{Buffers, transpose};
use crate::nest::{Body, LoopNest, Node, Normal, Offsets, Quantity};

pub use range::{Parts, Plain, Rows, Strip, range};

/// Number of frames of the explicit stack that need no allocation. It is also the depth to which
/// the interpreter recurses before it uses that stack.
const INLINE_DEPTH: usize = 16;
/// Maximum number of leaves of a loop body that is executed leaf by leaf.
const MAX_LANES: usize = 16;
/// Number of packed bytes of a chunk, that is, of the iterations that are executed leaf by leaf
/// together. The size is chosen so that both sides of a chunk stay in the first-level cache.
const CHUNK_BYTES: u64 = 8 << 10;
/// Maximum number of packed bytes of a row of strided blocks for which rows are moved leaf by leaf:
/// the first block of all rows, then the second block of all rows, and so on. It is faster to move
/// longer rows one after the other: 1000 rows of 8 blocks of 40 bytes took 20.6 us leaf by leaf and
/// 13.6 us row by row. For rows of 4 blocks of 40 bytes, leaf by leaf took 8.0 us and row by row
/// 9.0 us (Emerald Rapids, 2026-11-27).
const SHORT_ROW: u64 = 64;
/// Number of consecutive rows of a `Blocks` node whose lengths are compared as a group. If all of
/// them are equal, one call moves the group without reading the lengths again.
const LISTED: usize = 32;
/// Minimum number of iterations of a chunk, and of a loop that is executed leaf by leaf.
const MIN_TRIP: u64 = 4;

/// An entry of the explicit stack: work that is still to be done.
enum Pending<'a> {
    /// The remaining nodes of one iteration of a body, and the offset of that iteration.
    Nodes { nodes: &'a [Node], at: Offsets },
    /// Iterations `[next, end)` of a loop or table, and the offset of its iteration 0.
    Iterate { node: &'a Node, next: u64, end: u64, at: Offsets },
    /// Iterations `[from, to)` of a loop or table that lie completely inside the range and have not
    /// begun, so that a single call of a micro-kernel may still move all of them.
    Whole { node: &'a Node, from: u64, to: u64, at: Offsets },
}

/// One leaf of a loop body: its offsets relative to the iteration, and its length in bytes.
#[derive(Clone, Copy)]
struct Lane {
    at: Offsets,
    len: i64,
}

/// Moves the packed bytes `range` of `count` instances of `nest` in the direction of `memory`.
///
/// Bytes outside `range` are touched on neither side. The range may begin and end inside an
/// element.
pub fn interpret(nest: &LoopNest<Normal>, memory: &Buffers, count: u64, range: Range<u64>) {
    let interval = Interval {
        from: i64::try_from(range.start).unwrap_or(i64::MAX),
        to: i64::try_from(range.end).unwrap_or(i64::MAX),
    };
    interpret_body(nest, memory, count, (nest.root(), Offsets::ZERO), interval);
}

/// Moves all packed bytes of `count` instances of `nest` in the direction of `memory`.
pub fn interpret_whole(nest: &LoopNest<Normal>, memory: &Buffers, count: u64) {
    let interval = Interval { from: 0, to: i64::MAX };
    Interpreter { nest, memory, count, interval }.all(nest.root(), Offsets::ZERO, 0);
}

/// Moves those bytes of one iteration of a body that lie in `interval`, a range of the packed
/// stream. The iteration is at the offset `at`.
fn interpret_body(
    nest: &LoopNest<Normal>,
    memory: &Buffers,
    count: u64,
    (body, at): (Body, Offsets),
    interval: Interval,
) {
    let mut stack: SmallVec<[Pending<'_>; INLINE_DEPTH]> = SmallVec::new();
    stack.push(Pending::Nodes { nodes: nest.body(body), at });
    let interpreter = Interpreter { nest, memory, count, interval };
    // The top of the stack is the current position. Each round takes the next node of a body and
    // moves it or puts its iterations on the stack, or begins the next iteration of a loop or
    // table.
    while let Some(top) = stack.last_mut() {
        match top {
            Pending::Nodes { nodes, at } => {
                let Some((node, rest)) = nodes.split_first() else {
                    stack.pop();
                    continue;
                };
                let at = *at + node.offsets();
                *nodes = rest;
                if rest.is_empty() {
                    // This frame has no more nodes. Pop it before the node pushes frames of its
                    // own, so that the stack stays as short as the nest is deep.
                    stack.pop();
                }
                match interval.cover(at.packed, node.packed_bytes(count)) {
                    Cover::None => {}
                    Cover::All => interpreter.whole(node, at, &mut stack),
                    Cover::Part => interpreter.part(node, at, &mut stack),
                }
            }
            Pending::Whole { node, from, to, at } => {
                let (node, range, at) = (*node, *from..*to, *at);
                stack.pop();
                interpreter.iterations(node, at, range, &mut stack);
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

/// The values that stay the same during one call of the interpreter.
struct Interpreter<'a> {
    nest: &'a LoopNest<Normal>,
    memory: &'a Buffers,
    count: u64,
    interval: Interval,
}

impl<'a> Interpreter<'a> {
    /// Moves a node that lies completely inside the range to be moved. If it is a loop or table
    /// that a few calls of micro-kernels cannot move, pushes its iterations on the stack instead.
    fn whole(&self, node: &'a Node, at: Offsets, stack: &mut SmallVec<[Pending<'a>; INLINE_DEPTH]>) {
        if let Some((n, _)) = self.leaf(node, at) {
            self.iterations(node, at, 0..n, stack);
        }
    }

    /// Moves the node and returns none, if it is a copy or blocks. For a loop or table, moves
    /// nothing and returns the number of iterations and their body.
    #[inline(always)]
    fn leaf(&self, node: &Node, at: Offsets) -> Option<(u64, Body)> {
        match node {
            Node::Copy { n, .. } => self.memory.copy(at.user, at.packed, n.for_count(self.count)),
            Node::Blocks { user, packed, len, .. } => self.listed(at, [user, packed, len]),
            Node::Loop { trip, body, .. } => return Some((trip.for_count(self.count), *body)),
            Node::Table { displacements, body, .. } => return Some((displacements.len() as u64, *body)),
        }
        None
    }

    /// Moves the rows of a `Blocks` node that is at `at`. In most nests, many consecutive rows have
    /// the same length. The lengths of such a run are compared first, and then one call moves the
    /// run without reading the lengths again.
    #[inline(never)]
    fn listed(&self, at: Offsets, columns: [&Column; 3]) {
        let [user, packed, len] = columns;
        let rows = len.len();
        // Returns the length of the `LISTED` rows from `first` on, if all of them have the same
        // length, and none if they differ or if there are fewer rows. If lengths differ, this is
        // usually found at the second row already.
        let length = |first: usize| {
            let it = len.get(first);
            let same = |end| (first + 1..end).all(|i| len.get(i) == it);
            (rows - first).checked_sub(LISTED).filter(|_| same(first + LISTED)).map(|_| it)
        };
        let mut from = 0;
        while from < rows {
            // Extend the run by groups of `LISTED` rows, as long as `length` returns the same for
            // each group as for the first one: the same length, or none. The last group may have
            // fewer rows.
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

    /// Moves one whole iteration of a body, which is at `at`, by recursion. `depth` is the current
    /// depth of the recursion. At depth `INLINE_DEPTH` it ends, and the explicit stack is used
    /// instead.
    fn all(&self, body: Body, at: Offsets, depth: usize) {
        if depth == INLINE_DEPTH {
            return interpret_body(self.nest, self.memory, self.count, (body, at), self.interval);
        }
        for node in self.nest.body(body) {
            let at = at + node.offsets();
            let Some((n, inner)) = self.leaf(node, at) else { continue };
            if n == 1 {
                self.all(inner, node.iteration(at, 0), depth + 1);
            } else if !self.at_once(node, at, 0..n) {
                (0..n).for_each(|i| self.all(inner, node.iteration(at, i), depth + 1));
            }
        }
    }

    /// Moves the whole iterations `range` of a loop or table at `at`. If a few calls of
    /// micro-kernels cannot move them, pushes them on the stack instead.
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

    /// Moves the whole iterations `range` of a loop or table at `at`, if a few calls of
    /// micro-kernels can do so. Otherwise moves nothing and returns false.
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
                let trip = trip.for_count(self.count);
                let loops = [(n, *step), (trip, *inner)];
                // Short rows are moved leaf by leaf: one call moves the first block of all rows of
                // a chunk, the next call the second block, and so on. That takes fewer calls than
                // one per row. But a cache line of user memory that has several blocks of a row is
                // accessed once for each of these blocks, so it does not pay for longer rows.
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

    /// Moves two loops around one element as a transpose, if they have that form and no element
    /// overlaps another in user memory. Otherwise moves nothing and returns false.
    #[inline(never)]
    fn transposed(&self, at: Offsets, [outer, inner]: [(u64, Offsets); 2], len: u64) -> bool {
        let fixed = |(trip, step)| (Quantity::fixed(trip), step);
        let Some(loops) = transpose::suited([fixed(outer), fixed(inner)], len) else { return false };
        let [(short, n), (long, _)] = loops.map(|(trip, step)| (step.user.unsigned_abs(), trip.k));
        // `suited` has ordered the two loops: the outer one has the shorter step in user memory.
        // Its elements do not overlap each other if this step is at least the length of an element.
        // Different passes of the outer loop do not overlap if the step of the inner loop is at
        // least as long as the memory that one pass spans.
        let apart = short >= len && long >= short.saturating_mul(n - 1).saturating_add(len);
        apart && self.memory.transposed(at, loops.map(|(trip, step)| (trip.k, step)), len)
    }

    /// Executes iterations leaf by leaf, if the body has few leaves and if doing the leaves of
    /// different iterations in another order gives the same result. Otherwise moves nothing and
    /// returns false.
    #[inline(never)]
    fn lanes(&self, body: &[Node], step: Offsets, at: Offsets, range: &Range<u64>) -> bool {
        let mut lanes: SmallVec<[Lane; MAX_LANES]> = SmallVec::new();
        let few = self.collect(body, Offsets::ZERO, &mut lanes);
        let chunk = (CHUNK_BYTES / step.packed.unsigned_abs().max(1)).max(MIN_TRIP);
        if !few || 2 * lanes.len() as u64 > chunk.min(range.end - range.start) {
            return false;
        }
        // If iterations overlap in user memory, the last assignment of the type map has to win,
        // which another order of the leaves would break. So when unpacking, refuse a loop whose
        // step is shorter than the memory that one iteration spans.
        if self.memory.direction() == Direction::Unpack {
            let lo = lanes.iter().map(|l| l.at.user).min().unwrap_or(0);
            let hi = lanes.iter().map(|l| l.at.user.saturating_add(l.len)).max().unwrap_or(0);
            if hi.abs_diff(lo) > step.user.unsigned_abs() {
                return false;
            }
        }
        // Divide the iterations into chunks. In each chunk, make one call per leaf, which moves
        // this leaf in all iterations of the chunk.
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

    /// Collects the leaves of a body in order. Returns false if there are more than `MAX_LANES`, or
    /// if a node is not a copy of fixed length, blocks, or a loop around one copy with a fixed
    /// number of iterations.
    fn collect(&self, body: &[Node], at: Offsets, lanes: &mut SmallVec<[Lane; MAX_LANES]>) -> bool {
        let mut push = |at: Offsets, len: i64| {
            let room = lanes.len() < MAX_LANES;
            if room {
                lanes.push(Lane { at, len });
            }
            room
        };
        body.iter().all(|node| {
            let at = at + node.offsets();
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

    /// Handles a node of which only a part lies in the range to be moved: moves the part, or pushes
    /// it on the stack as work to be done. Of the iterations of a loop or table that the range
    /// touches, it may cut the first and the last one; those between them are whole.
    fn part(&self, node: &'a Node, at: Offsets, stack: &mut SmallVec<[Pending<'a>; INLINE_DEPTH]>) {
        match node {
            Node::Copy { n, .. } => self.clipped(at, n.for_count(self.count) as i64),
            Node::Blocks { user, packed, len, .. } => {
                let from = (self.interval.from - at.packed).max(0);
                let to = (self.interval.to - at.packed).min(node.packed_bytes(1));
                range::rows(self.memory, [user, packed, len], None, at, from, to);
            }
            Node::Loop { .. } | Node::Table { .. } => {
                let Some(body) = node.body() else { return };
                let (n, piece) = match node {
                    Node::Loop { trip, step, .. } => (trip.for_count(self.count), step.packed),
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
                // The stack is processed from its top, so push the tail first and the head last.
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

    /// Moves those bytes of a copy that lie in the range to be moved. The copy has `len` bytes and
    /// is at `at`.
    fn clipped(&self, at: Offsets, len: i64) {
        let (at, len) = self.interval.clip(at, len);
        self.memory.copy(at.user, at.packed, len as u64);
    }
}
