//! Ranges: packed bytes `[from, to)` of a nest, in O(depth + log rows) and without any state.
//!
//! At every loop the range has a head, whole iterations, and a tail, done in this order, which is the type map's. Whole iterations are
//! offered to [`Parts`], which is how kernels move them; the others are a descent, one division a loop. Nodes are entered at
//! positions of their own, so nothing is compared with the ends of the range on the way. Nests deeper than [`MAX_DEPTH`] are walked from there.

use std::ops::Range;

use super::{iteration, walk_body};
use crate::column::Column;
use crate::micro::Buffers;
use crate::nest::{Body, LoopNest, Node, Normal, Offsets};
use crate::segment::Segment;

/// What moves whole parts of a range faster than the walker does.
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
        // While all lies inside one iteration, there is nothing to come back to.
        while body.len == 1 && depth <= MAX_DEPTH {
            let node = &self.nest.nodes()[body.start as usize];
            let Some((inner, piece)) = repeated(node) else { break };
            let i = quotient(from, piece);
            let skip = from - i as i64 * piece;
            if skip + (to - from) > piece || (skip == 0 && to - from == piece) {
                break;
            }
            (body, at) = (inner, iteration(node, at + node.at(), i));
            (from, to) = (skip, skip + (to - from));
            depth += 1;
        }
        let start = body.start as usize;
        if depth > MAX_DEPTH {
            let segment = Segment { from: at.packed.wrapping_add(from), to: at.packed.wrapping_add(to) };
            return walk_body(self.nest, self.memory, self.count, (body, at), segment);
        }
        if body.len == 1 {
            return self.node(start, at, from, to, depth);
        }
        // Nodes of a body cover the stream one after the other.
        let nodes = self.nest.body(body);
        let first = nodes.partition_point(|node| node.at().packed <= from) - 1;
        for (k, node) in nodes.iter().enumerate().skip(first) {
            let begin = node.at().packed;
            if begin >= to {
                break;
            }
            let end = nodes.get(k + 1).map_or(to, |next| next.at().packed.min(to));
            self.node(start + k, at, (from - begin).max(0), end - begin, depth);
        }
    }

    /// Packed bytes `[from, to)` of node `i`, in an iteration at `at`.
    #[inline]
    fn node(&self, i: usize, at: Offsets, from: i64, to: i64, depth: u32) {
        let node = &self.nest.nodes()[i];
        let at = at + node.at();
        let Some((body, piece)) = repeated(node) else {
            return match node {
                Node::Blocks { user, packed, len, .. } => self.blocks(i, [user, packed, len], at, from, to),
                _ => self.memory.copy(at.user + from, at.packed + from, (to - from) as u64),
            };
        };
        let mut next = quotient(from, piece);
        let skip = from - next as i64 * piece;
        let part = |i: u64, from: i64, to: i64| self.body(body, iteration(node, at, i), from, to, depth + 1);
        let mut rest = to - from;
        if skip > 0 {
            let head = rest.min(piece - skip);
            part(next, skip, skip + head);
            rest -= head;
            next += 1;
        }
        if rest >= piece {
            let whole = quotient(rest, piece);
            self.iterations(i, node, body, at, next..next + whole);
            rest -= whole as i64 * piece;
            next += whole;
        }
        if rest > 0 {
            part(next, 0, rest);
        }
    }

    /// Whole iterations of node `i`, whose iteration 0 is at `at`.
    fn iterations(&self, i: usize, node: &Node, body: Body, at: Offsets, range: Range<u64>) {
        let n = range.end - range.start;
        match (node, self.nest.body(body)) {
            (Node::Loop { step, .. }, [Node::Copy { n: len, .. }]) => {
                let first = at.step(*step, range.start as i64);
                if n == 1 {
                    return self.memory.copy(first.user, first.packed, len.k);
                }
                self.memory.strided(first.user, first.packed, n, (step.user, step.packed), len.k);
            }
            (Node::Table { displacements, packed, .. }, [Node::Copy { n: len, .. }]) => {
                let first = at.packed.wrapping_add(packed.wrapping_mul(range.start as i64));
                let rows = (displacements, range.start as usize, n as usize);
                self.memory.rows(at.user, first, rows, *packed, len.k);
            }
            _ if self.parts.run(self.memory, i, at, range.clone()) => {}
            _ => {
                let piece = repeated(node).map_or(0, |(_, piece)| piece);
                let packed = |k: u64| at.packed.wrapping_add(piece.wrapping_mul(k as i64));
                let segment = Segment { from: packed(range.start), to: packed(range.end) };
                let only = Body { start: i as u32, len: 1 };
                walk_body(self.nest, self.memory, self.count, (only, at - node.at()), segment);
            }
        }
    }

    /// Packed bytes `[from, to)` of blocks `i`.
    fn blocks(&self, i: usize, columns: [&Column; 3], at: Offsets, from: i64, to: i64) {
        match self.parts.rows(i, (to - from) as u64) {
            Rows::Listed => self.rows(columns, None, at, from, to),
            Rows::Buckets(sorted, bucket) => self.rows(columns, Some((sorted, bucket)), at, from, to),
            Rows::Pieces(displacements, piece) => {
                let piece = piece as i64;
                let mut next = quotient(from, piece);
                let skip = from - next as i64 * piece;
                let copy = |i: u64, from: i64, len: i64| {
                    let user = at.user + displacements.get(i as usize) + from;
                    self.memory.copy(user, at.packed + i as i64 * piece + from, len as u64);
                };
                let mut rest = to - from;
                if skip > 0 {
                    let head = rest.min(piece - skip);
                    copy(next, skip, head);
                    rest -= head;
                    next += 1;
                }
                let whole = quotient(rest, piece);
                if whole > 0 {
                    let rows = (displacements, next as usize, whole as usize);
                    self.memory.rows(at.user, at.packed + next as i64 * piece, rows, piece, piece as u64);
                    rest -= whole as i64 * piece;
                    next += whole;
                }
                if rest > 0 {
                    copy(next, 0, rest);
                }
            }
        }
    }

    /// The same by rows of their own lengths: those that are cut by themselves, whole buckets by their columns, the others as listed.
    fn rows(
        &self,
        columns: [&Column; 3],
        buckets: Option<([&Column; 3], usize)>,
        at: Offsets,
        from: i64,
        to: i64,
    ) {
        let [user, packed, len] = columns;
        let cut = |i: usize, from: i64, to: i64| {
            let row = at + Offsets::new(user.get(i), packed.get(i));
            self.memory.copy(row.user + from, row.packed + from, (to - from) as u64);
        };
        let whole = |columns: [&Column; 3], range: Range<usize>| {
            if !range.is_empty() {
                self.memory.blocks(at.user, at.packed, columns, (range.start, range.len()));
            }
        };
        // The row that holds byte `from`, and the first one that begins at or after `to`.
        let mut first = partition(packed, |start| start <= from) - 1;
        let mut end = partition(packed, |start| start < to);
        let skip = from - packed.get(first);
        if skip > 0 {
            cut(first, skip, len.get(first).min(to - packed.get(first)));
            first += 1;
        }
        let tail = if first < end { to - packed.get(end - 1) } else { 0 };
        let is_cut = first < end && tail < len.get(end - 1);
        end -= usize::from(is_cut);
        if let Some((sorted, bucket)) = buckets {
            let (inner, outer) = (first.next_multiple_of(bucket), end / bucket * bucket);
            // The last bucket is whole where it ends with the rows.
            let outer = if end == len.len() { end } else { outer };
            if inner < outer {
                whole(columns, first..inner);
                whole(sorted, inner..outer);
                first = outer;
            }
        }
        whole(columns, first..end);
        if is_cut {
            cut(end, 0, tail);
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

/// The body of a loop or table, and the packed bytes of one of its iterations.
#[inline]
fn repeated(node: &Node) -> Option<(Body, i64)> {
    match node {
        Node::Loop { step, body, .. } => Some((*body, step.packed)),
        Node::Table { packed, body, .. } => Some((*body, *packed)),
        Node::Blocks { .. } | Node::Copy { .. } => None,
    }
}

/// The number of leading entries of an ascending column for which `before` holds.
fn partition(column: &Column, before: impl Fn(i64) -> bool) -> usize {
    match column {
        Column::I32(entries) => entries.partition_point(|&entry| before(entry.into())),
        Column::I64(entries) => entries.partition_point(|&entry| before(entry)),
    }
}
