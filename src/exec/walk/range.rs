//! Ranges: packed bytes `[from, to)` of a nest, in O(depth + log rows) and without any state.
//!
//! At every loop the range has a head, whole iterations, and a tail, done in this order, which is the type map's. Whole iterations are
//! offered to [`Parts`], which is how kernels move them; the others are a descent, one division a loop. Nodes are entered at
//! positions of their own, so nothing is compared with the ends of the range on the way. Nests deeper than [`MAX_DEPTH`] are walked from there.

use std::ops::Range;

use super::walk_body;
use crate::column::Column;
use crate::interval::Interval;
use crate::micro::Buffers;
use crate::nest::{Body, LoopNest, Node, Normal, Offsets};

/// Moves whole parts of a range faster than the walker does.
pub trait Parts {
    /// Moves whole iterations `range` of node `i`, a loop or table whose iteration 0 is at `at`; false if it leaves that to the walker.
    fn run(&self, memory: &Buffers, i: usize, at: Offsets, range: Range<u64>) -> bool;

    /// By which columns whole rows of blocks `i` are moved, for a range of `bytes` in them.
    fn rows(&self, i: usize, bytes: u64) -> Rows<'_>;
}

/// How rows of blocks are moved.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// As the nest lists them.
    Listed,
    /// As equal pieces of so many bytes, at these displacements.
    Pieces(&'a Column, u64),
    /// In another order within every run of so many rows: user offsets, packed offsets, lengths.
    Buckets([&'a Column; 3], usize),
}

/// Everything is walked.
pub struct Plain;

impl Parts for Plain {
    fn run(&self, _: &Buffers, _: usize, _: Offsets, _: Range<u64>) -> bool {
        false
    }

    fn rows(&self, _: usize, _: u64) -> Rows<'_> {
        Rows::Listed
    }
}

/// Deepest level that is entered by recursion.
const MAX_DEPTH: u32 = 16;

/// Moves the packed bytes `range` of `count` instances of `nest` in the direction of `memory`; `parts` is asked first for what is whole.
///
/// Bytes outside `range` are touched on neither side. The range may start and end inside an element; it lies inside the stream.
#[inline]
pub fn range(nest: &LoopNest<Normal>, memory: &Buffers, count: u64, range: Range<u64>, parts: &impl Parts) {
    // A stream has less than 2^63 bytes.
    let (from, to) = (range.start as i64, range.end as i64);
    if from < to {
        Driver { nest, memory, count, parts }.body(nest.root(), Offsets::ZERO, from, to, 0);
    }
}

struct Driver<'a, P> {
    nest: &'a LoopNest<Normal>,
    memory: &'a Buffers,
    count: u64,
    parts: &'a P,
}

impl<P: Parts> Driver<'_, P> {
    /// Packed bytes `[from, to)` of one iteration of `body`, which is at `at`.
    fn body(&self, mut body: Body, mut at: Offsets, mut from: i64, mut to: i64, mut depth: u32) {
        loop {
            if depth > MAX_DEPTH {
                let interval =
                    Interval { from: at.packed.wrapping_add(from), to: at.packed.wrapping_add(to) };
                return walk_body(self.nest, self.memory, self.count, (body, at), interval);
            }
            if body.len != 1 {
                return self.members(body, at, from, to, depth);
            }
            let i = body.start as usize;
            let node = &self.nest.nodes()[i];
            at = at + node.at();
            let (inner, piece) = match node {
                Node::Loop { step, body, .. } => (*body, step.packed),
                Node::Table { packed, body, .. } => (*body, *packed),
                Node::Blocks { user, packed, len, .. } => {
                    return self.blocks(i, [user, packed, len], at, from, to);
                }
                Node::Copy { .. } => return copy(self.memory, at, from, to),
            };
            let cut = Cut::new(from, to, piece);
            if !cut.is_one() {
                let part = |i, from, to| self.body(inner, node.iteration(at, i), from, to, depth + 1);
                return cut.each(part, |range| self.iterations(i, node, (inner, piece), at, range));
            }
            // All lies inside one iteration: there is nothing to come back to.
            (body, at) = (inner, node.iteration(at, cut.first));
            (from, to) = (cut.skip, cut.skip + cut.len);
            depth += 1;
        }
    }

    /// Walks a body of several nodes, which cover the stream one after the other.
    fn members(&self, body: Body, at: Offsets, from: i64, to: i64, depth: u32) {
        let nodes = self.nest.body(body);
        let first = nodes.partition_point(|node| node.at().packed <= from) - 1;
        for (k, node) in nodes.iter().enumerate().skip(first) {
            let begin = node.at().packed;
            if begin >= to {
                break;
            }
            let end = nodes.get(k + 1).map_or(to, |next| next.at().packed.min(to));
            let only = Body { start: body.start + k as u32, len: 1 };
            self.body(only, at, (from - begin).max(0), end - begin, depth);
        }
    }

    /// Whole iterations of node `i`, of `piece` packed bytes each, whose iteration 0 is at `at`.
    fn iterations(&self, i: usize, node: &Node, (body, piece): (Body, i64), at: Offsets, range: Range<u64>) {
        let n = range.end - range.start;
        let start = |k: u64| at.packed.wrapping_add(piece.wrapping_mul(k as i64));
        match (node, self.nest.body(body)) {
            (Node::Loop { step, .. }, [Node::Copy { n: len, .. }]) => {
                let first = at.step(*step, range.start as i64);
                if n == 1 {
                    // One block needs no micro-kernel to be looked up.
                    return self.memory.copy(first.user, first.packed, len.k);
                }
                self.memory.strided(first.user, first.packed, n, (step.user, piece), len.k);
            }
            (Node::Table { displacements, .. }, [Node::Copy { n: len, .. }]) => {
                let rows = (displacements, range.start as usize, n as usize);
                self.memory.rows(at.user, start(range.start), rows, piece, len.k);
            }
            _ if self.parts.run(self.memory, i, at, range.clone()) => {}
            _ => {
                let interval = Interval { from: start(range.start), to: start(range.end) };
                let only = Body { start: i as u32, len: 1 };
                walk_body(self.nest, self.memory, self.count, (only, at - node.at()), interval);
            }
        }
    }

    /// Packed bytes `[from, to)` of blocks `i`.
    fn blocks(&self, i: usize, columns: [&Column; 3], at: Offsets, from: i64, to: i64) {
        match self.parts.rows(i, (to - from) as u64) {
            Rows::Listed => rows(self.memory, columns, None, at, from, to),
            Rows::Buckets(sorted, bucket) => {
                rows(self.memory, columns, Some((sorted, bucket)), at, from, to);
            }
            Rows::Pieces(displacements, piece) => {
                let packed = |i: u64| piece as i64 * i as i64;
                let part = |i, from, to| {
                    let piece = at + Offsets::new(displacements.get(i as usize), packed(i));
                    copy(self.memory, piece, from, to);
                };
                let whole = |range: Range<u64>| {
                    let rows = (displacements, range.start as usize, (range.end - range.start) as usize);
                    let start = at.packed.wrapping_add(packed(range.start));
                    self.memory.rows(at.user, start, rows, piece as i64, piece);
                };
                Cut::new(from, to, piece as i64).each(part, whole);
            }
        }
    }
}

/// A range of a sequence of equal pieces.
struct Cut {
    /// The piece that the first byte lies in, and the bytes of it before that.
    first: u64,
    skip: i64,
    /// Bytes of the range.
    len: i64,
    piece: i64,
}

impl Cut {
    #[inline]
    fn new(from: i64, to: i64, piece: i64) -> Cut {
        let first = quotient(from, piece);
        Cut { first, skip: from - first as i64 * piece, len: to - from, piece }
    }

    /// Whether it is a part of one piece.
    #[inline]
    fn is_one(&self) -> bool {
        self.skip + self.len <= self.piece && self.len < self.piece
    }

    /// Calls `part` for bytes `[from, to)` of a piece that is not whole, and `whole` for the whole ones between the two that may be.
    #[inline]
    fn each(self, part: impl Fn(u64, i64, i64), whole: impl FnOnce(Range<u64>)) {
        let Cut { mut first, skip, len: mut rest, piece } = self;
        if skip > 0 {
            let head = rest.min(piece - skip);
            part(first, skip, skip + head);
            rest -= head;
            first += 1;
        }
        let n = quotient(rest, piece);
        if n > 0 {
            whole(first..first + n);
            rest -= n as i64 * piece;
        }
        if rest > 0 {
            part(first + n, 0, rest);
        }
    }
}

/// `a / b`, of which neither is negative and `b` is not 0; most quotients here are 0 or 1.
#[inline]
fn quotient(a: i64, b: i64) -> u64 {
    if a < b {
        0
    } else if a - b < b {
        1
    } else {
        a as u64 / b as u64
    }
}

/// Bytes `[from, to)` of what lies at `at`.
#[inline]
fn copy(memory: &Buffers, at: Offsets, from: i64, to: i64) {
    let at = at + Offsets::new(from, from);
    memory.copy(at.user, at.packed, (to - from) as u64);
}

/// Packed bytes `[from, to)` of rows of their own lengths: those that are cut by themselves, whole buckets by their columns, the others as
/// listed.
pub(super) fn rows(
    memory: &Buffers,
    columns: [&Column; 3],
    buckets: Option<([&Column; 3], usize)>,
    at: Offsets,
    from: i64,
    to: i64,
) {
    let [user, packed, len] = columns;
    let part = |i: usize, from: i64, to: i64| {
        copy(memory, at + Offsets::new(user.get(i), packed.get(i)), from, to);
    };
    let whole = |columns: [&Column; 3], range: Range<usize>| {
        if !range.is_empty() {
            memory.blocks(at.user, at.packed, columns, (range.start, range.len()));
        }
    };
    // The row that holds byte `from`, and the first one that begins at or after `to`.
    let mut first = packed.partition_point(|start| start <= from) - 1;
    let mut end = packed.partition_point(|start| start < to);
    let skip = from - packed.get(first);
    if skip > 0 {
        part(first, skip, len.get(first).min(to - packed.get(first)));
        first += 1;
    }
    let tail = if first < end { to - packed.get(end - 1) } else { 0 };
    let is_cut = first < end && tail < len.get(end - 1);
    end -= usize::from(is_cut);
    if let Some((sorted, bucket)) = buckets {
        let inner = first.next_multiple_of(bucket);
        // The last bucket is whole where it ends with the rows.
        let outer = if end == len.len() { end } else { end / bucket * bucket };
        if inner < outer {
            whole(columns, first..inner);
            whole(sorted, inner..outer);
            first = outer;
        }
    }
    whole(columns, first..end);
    if is_cut {
        part(end, 0, tail);
    }
}
