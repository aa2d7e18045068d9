//! Moves a range `[from, to)` of the packed bytes of a nest, in O(depth + log rows) and without any
//! state between calls.
//!
//! In each loop that it touches, the range consists of a head, whole iterations and a tail, each of
//! which may be empty. The head is a part of the first iteration and usually reaches to its end;
//! the tail is the first part of a later one. Head, whole iterations and tail are moved in this
//! order, which is the order of the type map. [`Parts`] offers whole iterations to kernels.
//! Entering the iteration of the head or of the tail costs one multiplication per loop
//! ([`Descent`]). In the functions below, the positions `from` and `to` are relative to the packed
//! offset `at` of the node or body, so that no function compares a position with the ends of the
//! whole range. `i` is the index of a node in the nest. If a range cuts more than `MAX_DEPTH`
//! levels, the interpreter of nests moves the rest from there.
//!
//! A range of 4 KiB takes less than 100 ns, so code that runs once per range is written for few
//! instructions and few stores: after a kernel has filled the store buffer of the processor, each
//! further store waits.

use std::ops::Range;

use super::interpret_body;
use crate::column::Column;
use crate::interval::Interval;
use crate::micro::Buffers;
use crate::nest::{
    Body, Descent, EqualPieces, LoopNest, MAX_SCANNED_BLOCKS, Node, NodeKind, Normal, Offsets,
};

/// Faster ways to move whole parts of a range than the interpreter of nests.
pub trait Parts {
    /// Moves the whole iterations `range` of node `i`, a loop or table whose iteration 0 is at
    /// `at`. Returns false if it moved nothing; the interpreter of nests then moves these
    /// iterations.
    fn run(&self, memory: &Buffers, i: usize, at: Offsets, range: Range<u64>) -> bool;

    /// Returns the columns (offsets and lengths of rows) by which whole rows of node `i`, a
    /// `Blocks` node, are moved: its own columns, or rearranged ones that are faster. `bytes` is
    /// the number of bytes of this node that the range contains.
    fn rows(&self, i: usize, bytes: u64) -> Rows<'_>;

    /// Returns the [`Descent`] of node `i`, if it has been computed already. A descent has what is
    /// needed to find a packed byte inside a node.
    #[inline(always)]
    fn descent(&self, _: usize) -> Option<&Descent> {
        None
    }
}

/// Columns (offsets and lengths of rows) by which the rows of a `Blocks` node are moved.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// The columns of the `Blocks` node itself, which list the rows in the order of the packed
    /// stream.
    Listed,
    /// Groups of pieces of equal length, into which the rows have been cut. Together, the groups
    /// cover all rows.
    Pieces(&'a [EqualPieces]),
    /// Columns in another order, and the number of rows in a bucket. The columns are the user
    /// offsets, packed offsets and lengths of the rows. A bucket is a group of consecutive rows of
    /// the node; within each bucket, the rows are sorted by the power of two that covers their
    /// length.
    Buckets([&'a Column; 3], usize),
}

/// An implementation of [`Parts`] that leaves everything to the interpreter of nests.
pub struct Plain;

impl Parts for Plain {
    fn run(&self, _: &Buffers, _: usize, _: Offsets, _: Range<u64>) -> bool {
        false
    }

    fn rows(&self, _: usize, _: u64) -> Rows<'_> {
        Rows::Listed
    }
}

/// Maximum depth of the recursion that follows a range into the nest. The interpreter of nests
/// moves what lies deeper.
const MAX_DEPTH: u32 = 16;

/// Moves the packed bytes `range` of `count` instances of `nest` in the direction of `memory`.
/// Whole iterations and rows are offered to `parts` first.
///
/// Bytes outside `range` are touched on neither side. The range must lie inside the stream, and may
/// begin and end inside an element.
#[inline]
pub fn range(nest: &LoopNest<Normal>, memory: &Buffers, count: u64, range: Range<u64>, parts: &impl Parts) {
    // The positions fit in `i64`, because a stream has less than 2^63 bytes.
    let (from, to) = (range.start as i64, range.end as i64);
    if from < to {
        Driver { nest, memory, count, parts }.body(nest.root(), Offsets::ZERO, from, to, 0);
    }
}

/// Place of a range of packed bytes that all lie in one loop around a single copy.
pub struct Strip<'a> {
    node: &'a Descent,
    at: Offsets,
    from: i64,
    to: i64,
}

impl<'a> Strip<'a> {
    /// Returns the place of the packed bytes `range` of `nest`, if all of them lie in one loop
    /// around a single copy that can be found without a search: no body on the way has more than
    /// [`MAX_SCANNED_BLOCKS`] nodes, and the [`Descent`] of each node on the way has been computed.
    /// Returns none otherwise, and for an empty range.
    ///
    /// The values that this function needs fit in registers, so that it can run without stores.
    /// That matters directly after a kernel: the kernel has filled the store buffer of the
    /// processor, so a further store would wait as long as one of the kernel.
    #[inline(always)]
    pub fn find(
        nest: &'a LoopNest<Normal>,
        range: Range<u64>,
        descent: impl Fn(usize) -> Option<&'a Descent>,
    ) -> Option<Strip<'a>> {
        let (mut body, mut at) = (nest.root(), Offsets::ZERO);
        let (mut from, mut to) = (range.start as i64, range.end as i64);
        loop {
            let mut i = body.start as usize;
            let mut node = descent(i).filter(|_| body.len as usize <= MAX_SCANNED_BLOCKS && from < to)?;
            if body.len != 1 {
                // Find the last node of the body that begins at or before the first byte of the
                // range. All bytes of the range must lie before the next node.
                for next in body.range().skip(1) {
                    let other = descent(next)?;
                    if other.at.packed >= to {
                        break;
                    }
                    if other.at.packed > from {
                        return None;
                    }
                    (i, node) = (next, other);
                }
                (from, to) = (from - node.at.packed, to - node.at.packed);
            }
            at = at + node.at;
            match node.kind {
                NodeKind::Strips => return Some(Strip { node, at, from, to }),
                NodeKind::Loop | NodeKind::Table => {}
                NodeKind::Structures | NodeKind::Leaf => return None,
            }
            // The range is inside one node. If it also lies in one iteration of that node, continue
            // with the body of the iteration.
            let cut = Cut::new(node, from, to);
            if cut.skip + cut.len > cut.piece {
                return None;
            }
            at = match node.kind {
                NodeKind::Table => nest.nodes()[i].iteration(at, cut.first as u64),
                _ => at.step(node.step, cut.first),
            };
            body = node.body;
            (from, to) = (cut.skip, cut.skip + cut.len);
        }
    }

    /// Moves the bytes of the range.
    #[inline(always)]
    pub fn run(&self, memory: &Buffers) {
        strips(memory, self.node, self.at, self.from, self.to);
    }
}

/// The values that stay the same during one call of [`range`].
struct Driver<'a, P> {
    nest: &'a LoopNest<Normal>,
    memory: &'a Buffers,
    count: u64,
    parts: &'a P,
}

impl<P: Parts> Driver<'_, P> {
    /// Moves the packed bytes `[from, to)` of one iteration of `body`, which is at `at`. `depth` is
    /// the number of levels above this body that were entered by recursion.
    fn body(&self, mut body: Body, mut at: Offsets, mut from: i64, mut to: i64, depth: u32) {
        loop {
            if body.len != 1 {
                return self.members(body, at, from, to, depth);
            }
            let i = body.start as usize;
            let Some(node) = self.parts.descent(i) else {
                return self.unmade(body, at, from, to, depth);
            };
            at = at + node.at;
            match node.kind {
                NodeKind::Strips => return self.strips(node, at, from, to),
                NodeKind::Structures => return self.structures(i, node, at, from, to),
                NodeKind::Leaf => return self.leaf(i, at, from, to),
                NodeKind::Loop | NodeKind::Table => {}
            }
            let cut = Cut::new(node, from, to);
            if !cut.is_one() {
                return self.cut(i, node, at, from, to, depth);
            }
            // All bytes lie inside one iteration of the node. Continue with the body of that
            // iteration in the next round, without recursion: nothing else in this node is left to
            // move.
            (body, at) = (node.body, self.iteration(i, node, at, cut.first));
            (from, to) = (cut.skip, cut.skip + cut.len);
        }
    }

    /// Does the same as `Driver::body` for a body of one node whose [`Descent`] has not been
    /// computed before. It is computed here and not kept.
    #[cold]
    fn unmade(&self, body: Body, at: Offsets, from: i64, to: i64, depth: u32) {
        let i = body.start as usize;
        let node = Descent::new(self.nest, i);
        let at = at + node.at;
        if depth == MAX_DEPTH {
            let start = at.packed;
            return self.interpret(body, at - node.at, start.wrapping_add(from), start.wrapping_add(to));
        }
        match node.kind {
            NodeKind::Strips => self.strips(&node, at, from, to),
            NodeKind::Structures => self.structures(i, &node, at, from, to),
            NodeKind::Leaf => self.leaf(i, at, from, to),
            NodeKind::Loop | NodeKind::Table => self.cut(i, &node, at, from, to, depth),
        }
    }

    /// Returns the offset of iteration `k` of node `i`, whose iteration 0 is at `at`.
    #[inline(always)]
    fn iteration(&self, i: usize, node: &Descent, at: Offsets, k: i64) -> Offsets {
        match node.kind {
            NodeKind::Table => self.entry(i, at, k),
            NodeKind::Loop | NodeKind::Strips | NodeKind::Structures | NodeKind::Leaf => {
                at.step(node.step, k)
            }
        }
    }

    /// Returns the offset of row `k` of table `i`. The displacements of the rows are relative to
    /// `at`.
    #[inline(never)]
    fn entry(&self, i: usize, at: Offsets, k: i64) -> Offsets {
        self.nest.nodes()[i].iteration(at, k as u64)
    }

    /// Moves the packed bytes `[from, to)` of a loop or table `i`: the parts of iterations at both
    /// ends, and the whole iterations between them.
    #[inline(never)]
    fn cut(&self, i: usize, node: &Descent, at: Offsets, from: i64, to: i64, depth: u32) {
        let cut = Cut::new(node, from, to);
        if depth == MAX_DEPTH {
            let only = Body { start: i as u32, len: 1 };
            return self.interpret(
                only,
                at - node.at,
                at.packed.wrapping_add(from),
                at.packed.wrapping_add(to),
            );
        }
        let part = |k, from, to| self.body(node.body, self.iteration(i, node, at, k), from, to, depth + 1);
        cut.for_each_piece(
            |bytes| node.iterations(bytes),
            part,
            |first, n| self.iterations(i, node, at, first, n),
        );
    }

    /// Lets the interpreter of nests move those bytes of `body`, which is at `at`, that have the
    /// packed positions `[from, to)`. Here, unlike in the other functions, `from` and `to` are
    /// counted from the start of the stream.
    #[cold]
    fn interpret(&self, body: Body, at: Offsets, from: i64, to: i64) {
        interpret_body(self.nest, self.memory, self.count, (body, at), Interval { from, to });
    }

    /// Moves the packed bytes `[from, to)` of a loop around one copy.
    #[inline(never)]
    fn strips(&self, node: &Descent, at: Offsets, from: i64, to: i64) {
        strips(self.memory, node, at, from, to);
    }

    /// Moves the packed bytes `[from, to)` of node `i`, a loop around one `Blocks` node with few
    /// rows.
    #[inline(never)]
    fn structures(&self, i: usize, node: &Descent, at: Offsets, from: i64, to: i64) {
        let Node::Blocks { at: inner, user, packed, len, .. } = &self.nest.nodes()[node.body.start as usize]
        else {
            return;
        };
        let columns = [user, packed, len];
        let part = |k, from, to| few(self.memory, columns, at.step(node.step, k) + *inner, from, to);
        let whole = |first, n| self.iterations(i, node, at, first, n);
        Cut::new(node, from, to).for_each_piece(|bytes| node.iterations(bytes), part, whole);
    }

    /// Moves the packed bytes `[from, to)` of a body with several nodes. The nodes follow each
    /// other on the packed side without gaps.
    #[inline(never)]
    fn members(&self, body: Body, at: Offsets, from: i64, to: i64, depth: u32) {
        if depth == MAX_DEPTH {
            return self.interpret(body, at, at.packed.wrapping_add(from), at.packed.wrapping_add(to));
        }
        let nodes = self.nest.body(body);
        let first = nodes.partition_point(|node| node.offsets().packed <= from) - 1;
        for (k, node) in nodes.iter().enumerate().skip(first) {
            let begin = node.offsets().packed;
            if begin >= to {
                break;
            }
            let end = nodes.get(k + 1).map_or(to, |next| next.offsets().packed.min(to));
            let only = Body { start: body.start + k as u32, len: 1 };
            self.body(only, at, (from - begin).max(0), end - begin, depth + 1);
        }
    }

    /// Moves whole iterations `[first, first + n)` of node `i`, whose iteration 0 is at `at`.
    fn iterations(&self, i: usize, node: &Descent, at: Offsets, first: i64, n: i64) {
        let piece = node.step.packed;
        let start = |k: i64| at.packed.wrapping_add(piece.wrapping_mul(k));
        if let (Node::Table { displacements, .. }, [Node::Copy { n: len, .. }]) =
            (&self.nest.nodes()[i], self.nest.body(node.body))
        {
            let rows = (displacements, first as usize, n as usize);
            return self.memory.rows(at.user, start(first), rows, piece, len.k);
        }
        if !self.parts.run(self.memory, i, at, first as u64..(first + n) as u64) {
            let only = Body { start: i as u32, len: 1 };
            self.interpret(only, at - node.at, start(first), start(first + n));
        }
    }

    /// Moves the packed bytes `[from, to)` of leaf `i`.
    #[inline(never)]
    fn leaf(&self, i: usize, at: Offsets, from: i64, to: i64) {
        match &self.nest.nodes()[i] {
            Node::Blocks { user, packed, len, .. } => self.blocks(i, [user, packed, len], at, from, to),
            _ => copy(self.memory, at, from, to),
        }
    }

    /// Moves the packed bytes `[from, to)` of the blocks `i`.
    fn blocks(&self, i: usize, columns: [&Column; 3], at: Offsets, from: i64, to: i64) {
        if columns[0].len() <= MAX_SCANNED_BLOCKS {
            return few(self.memory, columns, at, from, to);
        }
        match self.parts.rows(i, (to - from) as u64) {
            Rows::Listed => rows(self.memory, columns, None, at, from, to),
            Rows::Buckets(sorted, bucket) => {
                rows(self.memory, columns, Some((sorted, bucket)), at, from, to);
            }
            Rows::Pieces(all) => {
                // The rows have been cut into few groups of equal pieces, usually into one group.
                // Move the bytes of each group that lie in the range.
                for pieces in all.iter().filter(|pieces| from < pieces.end() && pieces.at.packed < to) {
                    let start = pieces.at.packed;
                    let (from, to) = (from.max(start), to.min(pieces.end()));
                    self.pieces(pieces, at + pieces.at, from - start, to - start);
                }
            }
        }
    }

    /// Moves the packed bytes `[from, to)` of a group of equal pieces.
    #[inline(always)]
    fn pieces(&self, EqualPieces { user, len, .. }: &EqualPieces, at: Offsets, from: i64, to: i64) {
        let piece = *len as i64;
        let part = |i: i64, from, to| {
            let piece = at + Offsets::new(user.get(i as usize), piece * i);
            copy(self.memory, piece, from, to);
        };
        let whole = |first: i64, n: i64| {
            let rows = (user, first as usize, n as usize);
            self.memory.rows(at.user, at.packed.wrapping_add(piece * first), rows, piece, *len);
        };
        let first = quotient(from, piece);
        let cut = Cut { first, skip: from - first * piece, len: to - from, piece };
        cut.for_each_piece(|bytes| quotient(bytes, piece), part, whole);
    }
}

/// Moves the packed bytes `[from, to)` of a loop around one copy. `from` and `to` are relative to
/// the packed offset of iteration 0.
#[inline(always)]
fn strips(memory: &Buffers, node: &Descent, at: Offsets, from: i64, to: i64) {
    let Offsets { user: step, packed: piece } = node.step;
    let first = node.iterations(from);
    let (mut user, mut packed) =
        (at.user.wrapping_add(step.wrapping_mul(first)), at.packed.wrapping_add(from));
    // If the range begins or ends inside the first block, move the bytes of that block that lie in
    // the range.
    let (skip, mut rest) = (from - first * piece, to - from);
    if skip > 0 || rest < piece {
        let head = rest.min(piece - skip);
        memory.block(user.wrapping_add(skip), packed, head as u64);
        rest -= head;
        if rest == 0 {
            return;
        }
        (user, packed) = (user.wrapping_add(step), packed.wrapping_add(head));
    }
    let n = node.iterations(rest);
    // Now the range begins at the start of a block. Move the whole blocks together, and then the
    // part of the last block that lies in the range.
    let tail = rest - n * piece;
    if n == 1 {
        // A single block is copied directly, since looking up a micro-kernel costs more.
        memory.block(user, packed, piece as u64);
    } else if n > 0 {
        memory.strided(user, packed, n as u64, (step, piece), piece as u64);
    }
    if tail > 0 {
        let packed = packed.wrapping_add(n * piece);
        memory.block(user.wrapping_add(step.wrapping_mul(n)), packed, tail as u64);
    }
}

/// Range of bytes in a sequence of pieces of equal length, for example in the iterations of a loop
/// on the packed side.
struct Cut {
    /// `first` is the index of the piece that contains the first byte of the range. `skip` is the
    /// number of bytes of this piece before that byte.
    first: i64,
    skip: i64,
    /// Number of bytes of the range.
    len: i64,
    piece: i64,
}

impl Cut {
    #[inline(always)]
    fn new(node: &Descent, from: i64, to: i64) -> Cut {
        let piece = node.step.packed;
        let first = node.iterations(from);
        Cut { first, skip: from - first * piece, len: to - from, piece }
    }

    /// Returns whether the range lies in a single piece and is shorter than that piece.
    #[inline(always)]
    fn is_one(&self) -> bool {
        self.skip + self.len <= self.piece && self.len < self.piece
    }

    /// Splits the range at the boundaries of pieces. Calls `part(piece, from, to)` for a piece that
    /// is only partly in the range, at most once at each end, and `whole(first, n)` for the whole
    /// pieces between them. The calls are in order. `divide` divides by the length of a piece.
    #[inline(always)]
    fn for_each_piece(
        &self,
        divide: impl Fn(i64) -> i64,
        part: impl Fn(i64, i64, i64),
        whole: impl FnOnce(i64, i64),
    ) {
        let Cut { mut first, skip, len: mut rest, piece } = *self;
        if skip > 0 {
            let head = rest.min(piece - skip);
            part(first, skip, skip + head);
            rest -= head;
            first += 1;
        }
        if rest >= piece {
            let n = divide(rest);
            whole(first, n);
            rest -= n * piece;
            first += n;
        }
        if rest > 0 {
            part(first, 0, rest);
        }
    }
}

/// Returns `a / b`; `a` must not be negative and `b` must be positive.
#[inline]
fn quotient(a: i64, b: i64) -> i64 {
    (a as u64 / b as u64) as i64
}

/// Copies the bytes `[from, to)` of a contiguous piece that lies at `at`.
#[inline]
fn copy(memory: &Buffers, at: Offsets, from: i64, to: i64) {
    memory.block(at.user.wrapping_add(from), at.packed.wrapping_add(from), (to - from) as u64);
}

/// Moves the packed bytes `[from, to)` of at most [`MAX_SCANNED_BLOCKS`] rows, with one copy per
/// row.
#[inline(never)]
fn few(memory: &Buffers, columns: [&Column; 3], at: Offsets, from: i64, to: i64) {
    let clip = |user: i64, begin: i64, len: i64| {
        let (from, to) = ((from - begin).max(0), (to - begin).min(len));
        if from < to {
            copy(memory, at + Offsets::new(user, begin), from, to);
        }
    };
    match columns {
        [Column::I32(user), Column::I32(packed), Column::I32(len)] => {
            for ((&user, &begin), &len) in user.iter().zip(packed.iter()).zip(len.iter()) {
                clip(user.into(), begin.into(), len.into());
            }
        }
        [user, packed, len] => (0..len.len()).for_each(|i| clip(user.get(i), packed.get(i), len.get(i))),
    }
}

/// Moves the packed bytes `[from, to)` of rows whose lengths may differ. A row that lies only
/// partly in the range is copied separately. If `buckets` is given, it has the columns of the rows
/// in another order, which differs from that of the nest only within groups of consecutive rows
/// (buckets), and the number of rows in a bucket. Rows of buckets that lie completely in the range
/// are then moved in this other order, and all other rows in the order of the nest.
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
    // Find the row that contains byte `from`, and the first row that begins at or after `to`. If
    // the range begins inside a row, copy the rest of that row.
    let mut first = packed.partition_point(|start| start <= from) - 1;
    let mut end = packed.partition_point(|start| start < to);
    let skip = from - packed.get(first);
    if skip > 0 {
        part(first, skip, len.get(first).min(to - packed.get(first)));
        first += 1;
    }
    // If the range ends inside a row, that row is copied last, after all whole rows, so that the
    // order of the rows is kept.
    let tail = if first < end { to - packed.get(end - 1) } else { 0 };
    let is_cut = first < end && tail < len.get(end - 1);
    end -= usize::from(is_cut);
    if let Some((sorted, bucket)) = buckets {
        let inner = first.next_multiple_of(bucket);
        // The last bucket may have fewer rows than the others. It ends with the last row, so it
        // ends inside the range if the range contains that row.
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
