//! Scheduling: decides how the bytes of a normal nest are moved for one target, in one direction.
//! This module has the only cost model of plans, except for the permutations that `legalize` makes.
//!
//! The choices are made from the inside out: small bodies become straight-line moves, an innermost
//! loop becomes one call of a micro-kernel, and the loops and tables around them become loops that
//! advance two pointers. Most constants are in [`cost`], which says where they come from. A nest
//! that is too deep or too large for a kernel is refused and interpreted instead, so that the size
//! of generated code is bounded for any type.

mod irregular;
mod lanes;
mod near;
#[cfg(feature = "operations")]
mod values;

use std::cell::OnceCell;
use std::sync::Arc;

use crate::column::Column;
use crate::error::Error;
use crate::kind::{Direction, Kind};
use crate::micro::permute::{Part, Permutation};
use crate::micro::transpose::Repeat;
use crate::micro::{
    Call, Repeated, Table, TableIndex, Width, blocks, pairs, permute, rows, strided, transpose,
};
use crate::nest::{Body, Byte, Disjoint, Leaf, LoopNest, Node, Normal, Offsets, Quantity, Side, Stream};
use crate::plan::{MAX_MOVED, MAX_MOVES, Plan, PlanOp, Scheduled};
use crate::target::{Level, Target, cost};

/// Maximum nesting depth of the bodies that are planned, where the root body has depth 0. The body
/// of a loop over one copy does not count, so the loops of a kernel can be nested one level deeper
/// than this. Deeper nests are interpreted.
const MAX_DEPTH: usize = 16;
/// Maximum number of operations in a kernel, including calls and loops (about 60 bytes of code
/// each, so about 5.6 KiB). Two kinds of operations are not counted: those inside a guard, and the
/// call inside a loop that was exchanged with another loop.
const MAX_OPS: usize = 96;

/// Reason why a nest has no kernel. This is not a failure: such nests are interpreted by design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason, for reports.
    pub reason: &'static str,
}

impl From<Error> for Refusal {
    /// Planning returns an [`Error`] only if there is no memory for tables.
    fn from(_: Error) -> Refusal {
        Refusal { reason: "no memory for the tables of a kernel" }
    }
}

/// Types of leaves for which [`schedule`] can make plans. `S` is the type of the nest's packed
/// side: a stream, or a second layout in memory.
pub trait Planned<S = Stream>: Leaf {
    /// Makes the plan for a nest with leaves of this type. [`schedule`] calls this.
    ///
    /// # Errors
    /// The errors are those of [`schedule`].
    fn plan(nest: &LoopNest<Normal, Self, S>, kind: Kind, target: Target)
    -> Result<Plan<Scheduled>, Refusal>;
}

/// Makes the plan that moves `nest` for `kind` on `target`.
///
/// # Errors
/// A [`Refusal`] if the nest is too deep or too large for one kernel, if it has leaves that no
/// micro-kernel moves, or if there is no memory for the tables. Three kinds of work are refused
/// too: conversion to external32 between two layouts, packing under a reduction, and a loop that
/// combines values repeatedly at the same place.
pub fn schedule<L: Planned<S>, S>(
    nest: &LoopNest<Normal, L, S>,
    kind: impl Into<Kind>,
    target: Target,
) -> Result<Plan<Scheduled>, Refusal> {
    L::plan(nest, kind.into(), target)
}

impl<S: Side> Planned<S> for Byte {
    fn plan(
        nest: &LoopNest<Normal, Byte, S>,
        kind: Kind,
        target: Target,
    ) -> Result<Plan<Scheduled>, Refusal> {
        schedule_bytes(nest, kind.direction, target)
    }
}

fn schedule_bytes<S: Side>(
    nest: &LoopNest<Normal, Byte, S>,
    direction: Direction,
    target: Target,
) -> Result<Plan<Scheduled>, Refusal> {
    let mut s = Scheduler {
        nest,
        direction,
        target,
        level: target.level(),
        ops: Vec::new(),
        tables: Vec::new(),
        written: Weight::default(),
        budget: MAX_OPS,
        disjoint: OnceCell::new(),
    };
    let list = s.body(nest.root(), Offsets::ZERO, 0)?;
    let root = s.seal(list);
    Ok(Plan::new(s.ops, root, s.tables, direction, target))
}

struct Scheduler<'a, S> {
    nest: &'a LoopNest<Normal, Byte, S>,
    direction: Direction,
    target: Target,
    level: Level,
    ops: Vec<PlanOp>,
    tables: Vec<Table>,
    written: Weight,
    budget: usize,
    /// Result of the overlap analysis, once it was needed.
    disjoint: OnceCell<Disjoint>,
}

impl<S: Side> Scheduler<'_, S> {
    fn seal(&mut self, list: Vec<PlanOp>) -> Body {
        let body = Body { start: self.ops.len() as u32, len: list.len() as u32 };
        self.ops.extend(list);
        body
    }

    /// Returns whether the entries are disjoint on the side that is written. The first call
    /// analyses the nest, which takes as long as sorting all of its rows.
    fn disjoint(&self) -> Disjoint {
        *self.disjoint.get_or_init(|| self.nest.disjoint_when(self.direction))
    }

    /// Returns the index of `table` in the plan. Equal tables are stored once.
    fn table(&mut self, table: Table) -> TableIndex {
        if let Some(i) = self.tables.iter().position(|t| *t == table) {
            return TableIndex::new(i);
        }
        self.tables.push(table);
        TableIndex::new(self.tables.len() - 1)
    }

    fn column(&mut self, column: &Column) -> TableIndex {
        self.table(Table::Column(column.clone()))
    }

    /// Returns the call that moves `n` blocks of `len` bytes, each at distance `step` from the
    /// block before it.
    fn strided(&self, n: Quantity, step: Offsets, len: Quantity) -> Call {
        strided::repeated(&Repeated { direction: self.direction, level: self.level, n, step, len })
    }

    /// Returns the call that moves one block of `len` bytes for every row of `column`.
    fn rows(&mut self, column: &Column, packed_step: i64, len: u64) -> Call {
        let table = self.column(column);
        rows::call(self.direction, self.level, (column, table), packed_step, len)
    }

    fn push(&mut self, out: &mut Vec<PlanOp>, op: PlanOp) -> Result<(), Refusal> {
        if let PlanOp::Move { len, .. } = op {
            self.written += Weight::of_copy(u64::from(len), self.level);
            if !self.written.fits(Weight::MAX) {
                return Err(Refusal { reason: "more straight-line moves than a kernel may have" });
            }
        }
        if self.budget == 0 {
            return Err(Refusal { reason: "more operations than a kernel may have" });
        }
        self.budget -= 1;
        out.push(op);
        Ok(())
    }

    fn body(&mut self, body: Body, at: Offsets, depth: usize) -> Result<Vec<PlanOp>, Refusal> {
        let mut out = Vec::new();
        self.list(body, at, depth, &mut out)?;
        Ok(out)
    }

    fn list(&mut self, body: Body, at: Offsets, depth: usize, out: &mut Vec<PlanOp>) -> Result<(), Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal { reason: "loops nested deeper than a kernel may have" });
        }
        let nest = self.nest;
        nest.body(body).iter().try_for_each(|node| self.node(node, at, depth, out))
    }

    fn node(&mut self, node: &Node, at: Offsets, depth: usize, out: &mut Vec<PlanOp>) -> Result<(), Refusal> {
        let nest = self.nest;
        let here = at + node.offsets();
        // Three choices come first, because each of them handles a whole node, which would
        // otherwise be split into its parts. The first is one permutation for a loop over a small
        // body. The second is another order for two nested loops. The third is moves without a
        // loop, for any node that is small enough.
        if let Some(op) = self.permuted(node, here) {
            return self.push(out, op);
        }
        if self.reordered(node, here, out)? {
            return Ok(());
        }
        if self.straight(node, self.straight_line_limit()) {
            return self.unrolled(node, at, out);
        }
        // At this point the node cannot be written out as moves under the usual limit. It has more
        // moves or bytes than the limit or the rest of the kernel allows, has a copy that is too
        // long to be a move, is nested too deeply, or depends on the instance count. Leaves become
        // calls, except for `Blocks` nodes below a higher limit. Loops and tables are planned
        // around their bodies.
        match node {
            Node::Copy { n, .. } => {
                let call = strided::any_length(self.direction, self.level, *n);
                self.push(out, PlanOp::Call { at: here, call })
            }
            Node::Blocks { user, packed, len, .. } => {
                // Write the rows out as moves if there are at most `STRAIGHT_ROWS` of them and the
                // kernel has room. Otherwise the rows become calls.
                if self.straight(node, Weight { moves: cost::STRAIGHT_ROWS, bytes: u64::MAX }) {
                    return self.unrolled(node, at, out);
                }
                if len.len() <= cost::LONG_ROWS && len.iter().all(|l| l as u64 > cost::INLINE_BYTES) {
                    return self.long_rows(here, [user, packed, len], out);
                }
                self.irregular(here, [user, packed, len], out)
            }
            Node::Table { displacements, packed, body, .. } => {
                if let [Node::Copy { n: Quantity { k, per_count: false }, .. }] = nest.body(*body) {
                    let call = self.rows(displacements, *packed, *k);
                    return self.push(out, PlanOp::Call { at: here, call });
                }
                let table = self.column(displacements);
                let list = self.body(*body, Offsets::ZERO, depth + 1)?;
                let body = self.seal(list);
                self.push(out, PlanOp::Table { at: here, table, packed: *packed, body })
            }
            // This loop has one iteration. The budget of normalization did not suffice to inline
            // its body, so the body is inlined here, if the kernel has room.
            Node::Loop { trip, body, .. } if trip.is(1) => self.list(*body, here, depth + 1, out),
            // This loop has step 0 on both sides, which occurs only between two layouts. All its
            // iterations move the same bytes to the same place, so one iteration is enough.
            Node::Loop { trip, step: Offsets::ZERO, body, .. } if !trip.per_count => {
                self.list(*body, here, depth + 1, out)
            }
            Node::Loop { trip, step, body, .. } => {
                // A loop over one copy is an innermost loop. Near blocks (short blocks at short
                // steps) are written out as moves that legalization turns into permutations. Short
                // loops become loops of moves. All other loops become the call of a micro-kernel.
                if let [Node::Copy { n, .. }] = nest.body(*body) {
                    if self.fits_permutations(*trip, *step, *n) {
                        return self.near_blocks(here, trip.k, *step, n.k as u32, out);
                    }
                    if self.written_loop(*trip, *n)
                        || self.in_rows(depth) && self.written_row(*trip, *step, *n)
                    {
                        let mut list = Vec::new();
                        self.push(&mut list, PlanOp::Move { at: Offsets::ZERO, len: n.k as u32 })?;
                        let unroll = unroll(&list, *trip);
                        let body = self.seal(list);
                        return self
                            .push(out, PlanOp::Loop { at: here, trip: *trip, step: *step, unroll, body });
                    }
                    let call = self.strided(*trip, *step, *n);
                    return self.push(out, PlanOp::Call { at: here, call });
                }
                let list = self.body(*body, Offsets::ZERO, depth + 1)?;
                let unroll = unroll(&list, *trip);
                let body = self.seal(list);
                self.push(out, PlanOp::Loop { at: here, trip: *trip, step: *step, unroll, body })
            }
        }
    }

    /// Plans long rows. Rows of one length that follow each other at a constant step share one
    /// call.
    fn long_rows(
        &mut self,
        at: Offsets,
        columns: [&Column; 3],
        out: &mut Vec<PlanOp>,
    ) -> Result<(), Refusal> {
        let [user, packed, len] = columns;
        let row = |i: usize| Offsets::new(user.get(i), packed.get(i));
        let mut first = 0;
        while first < len.len() {
            let regular = (first + 1..len.len()).take_while(|&i| {
                len.get(i) == len.get(first) && row(i) - row(i - 1) == row(first + 1) - row(first)
            });
            let rows = 1 + regular.count();
            let length = Quantity::fixed(len.get(first) as u64);
            let call = match rows {
                1 => strided::any_length(self.direction, self.level, length),
                _ => self.strided(Quantity::fixed(rows as u64), row(first + 1) - row(first), length),
            };
            self.push(out, PlanOp::Call { at: at + row(first), call })?;
            first += rows;
        }
        Ok(())
    }

    /// Plans blocks without a pattern that a nest can express, at offset `at`.
    fn irregular(
        &mut self,
        at: Offsets,
        columns: [&Column; 3],
        out: &mut Vec<PlanOp>,
    ) -> Result<(), Refusal> {
        let [user, packed, len] = columns;
        // If the rows interleave a few arithmetic sequences, plan a call for each sequence. This
        // changes the order of the entries, so the entries must be disjoint on the side that is
        // written.
        if let Some(lanes) = lanes::lanes(user, packed, len)
            && lanes.len() <= self.budget
            && self.disjoint().holds(1)
        {
            return lanes.into_iter().try_for_each(|lane| {
                let call = self.strided(Quantity::fixed(lane.trip), lane.step, Quantity::fixed(lane.len));
                self.push(out, PlanOp::Call { at: at + lane.at, call })
            });
        }
        if let Some(stretches) = irregular::equal_pieces(columns)
            && stretches.iter().map(|stretch| stretch.calls().count()).sum::<usize>() <= self.budget
        {
            return stretches.into_iter().try_for_each(|stretch| self.stretch(at, columns, &stretch, out));
        }
        // The packed side may have gaps only if it is a second layout. If it is a stream, it is
        // dense, and the code above has already planned rows that can be cut into equal pieces.
        if S::NAME != Stream::NAME && self.neither_side_dense(at, columns, out)? {
            return Ok(());
        }
        let columns = if self.sorts_rows(len.len()) {
            irregular::bucketed(user, packed, len)?
        } else {
            [user, packed, len].map(Column::clone)
        };
        let columns = columns.each_ref();
        let tables = columns.map(|column| self.column(column));
        let call = blocks::call(self.direction, self.level, columns, tables);
        self.push(out, PlanOp::Call { at, call })
    }

    /// Plans a stretch of rows that are cut into equal pieces. The plan gets one table, one call
    /// for the rows, and one more call with the same table for each repetition of the rows.
    fn stretch(
        &mut self,
        at: Offsets,
        [user, packed, len]: [&Column; 3],
        stretch: &irregular::Stretch,
        out: &mut Vec<PlanOp>,
    ) -> Result<(), Refusal> {
        let irregular::Stretch { rows, pieces, .. } = stretch;
        let at = at + Offsets::new(0, packed.get(rows.start));
        let call =
            self.rows(&irregular::cut(user, len, rows.clone(), *pieces)?, pieces.len as i64, pieces.len);
        stretch.calls().try_for_each(|of| self.push(out, PlanOp::Call { at: at + of, call: call.clone() }))
    }

    /// Plans blocks that are dense on neither side, in a better way than row by row. Returns false
    /// if there is no better way.
    fn neither_side_dense(
        &mut self,
        at: Offsets,
        columns: [&Column; 3],
        out: &mut Vec<PlanOp>,
    ) -> Result<bool, Refusal> {
        let [user, packed, len] = columns;
        if let Some(dense) = lanes::dense_ranges(packed, len).filter(|dense| dense.len() <= self.budget) {
            for rows in dense {
                let base = Offsets::new(user.get(rows.start), packed.get(rows.start));
                let user = lanes::rebased(user, rows.clone(), base.user)?;
                let packed = lanes::rebased(packed, rows.clone(), base.packed)?;
                let len = lanes::rebased(len, rows, 0)?;
                self.irregular(at + base, [&user, &packed, &len], out)?;
            }
            return Ok(true);
        }
        let Some(pieces) = irregular::common_pieces(len) else { return Ok(false) };
        let cut = |column: &Column| irregular::cut(column, len, 0..len.len(), pieces);
        let [user, packed] = [cut(user)?, cut(packed)?];
        let narrow = [&user, &packed].iter().all(|column| Width::from_column(column) == Width::I32);
        if narrow {
            let tables = [self.column(&user), self.column(&packed)];
            let call = pairs::call(self.direction, self.level, user.len(), tables, pieces.len);
            self.push(out, PlanOp::Call { at, call })?;
        }
        Ok(narrow)
    }

    /// Returns the weight that may still be written out in this kernel. A weight is a number of
    /// moves and their total bytes.
    fn remaining(&self) -> Weight {
        let Weight { moves, bytes } = self.written;
        Weight { moves: Weight::MAX.moves - moves, bytes: Weight::MAX.bytes - bytes }
    }

    /// Returns the maximum weight of a node that is written out as moves instead of becoming a
    /// call.
    fn straight_line_limit(&self) -> Weight {
        Weight { moves: MAX_MOVES, bytes: cost::STRAIGHT_MOVES * u64::from(self.level.widest_access()) }
    }

    /// Returns true if `node` may be written out within `limit` and the remaining weight of the
    /// kernel.
    fn straight(&self, node: &Node, limit: Weight) -> bool {
        weight(self.nest, node, self.level, limit.min(self.remaining()), 0).is_some()
    }

    /// Returns true if irregular rows are to be sorted by the power of two that covers their
    /// length. Unpacking in another order requires disjoint entries. It suffices that the entries
    /// of each single instance are disjoint, because instances are still moved in order.
    fn sorts_rows(&self, rows: usize) -> bool {
        // The overlap analysis is last, because it takes as long as sorting all rows.
        matches!(self.level, Level::Baseline | Level::Avx2)
            && rows >= cost::BUCKETED_ROWS
            && self.disjoint().holds(1)
    }

    /// Returns true if a loop over blocks becomes a loop of moves instead of a call. The loop must
    /// be short, its blocks must consist of whole vectors and be from 128 bytes to 8 vectors long,
    /// and the kernel must have room for one more move.
    fn written_loop(&self, trip: Quantity, len: Quantity) -> bool {
        let wide = u64::from(self.level.widest_access());
        let short = trip.k.checked_mul(len.k).is_some_and(|bytes| bytes <= cost::WRITTEN_LOOP);
        short && len.k.is_multiple_of(wide) && (128..=8 * wide).contains(&len.k) && self.one_move(trip, len)
    }

    /// Returns true if a loop at nesting depth `depth` is executed several times per instance, like
    /// the loop over a row of a matrix. This is so if another loop lies between it and the loop
    /// over instances, or if the root loop has several iterations per instance.
    fn in_rows(&self, depth: usize) -> bool {
        let several = |node: &Node| matches!(node, Node::Loop { trip, .. } if trip.k > 1);
        depth >= 2 || depth == 1 && self.nest.body(self.nest.root()).iter().all(several)
    }

    /// Returns true if a row of short blocks, inside the loop over rows, becomes a loop of moves
    /// instead of a call per row.
    fn written_row(&self, trip: Quantity, step: Offsets, len: Quantity) -> bool {
        let packs = self.direction == Direction::Pack;
        let longest = match len.k {
            0..=32 if packs && step.user.unsigned_abs() <= 2 * len.k => cost::DENSE_ROW,
            0..=16 => cost::ROW,
            33..=63 if packs => 0,
            17..=64 => cost::WIDE_ROW,
            _ => 0,
        };
        trip.k <= longest && self.one_move(trip, len)
    }

    /// Returns true if the trip and length are constants and the kernel has room for one more move.
    fn one_move(&self, trip: Quantity, len: Quantity) -> bool {
        !trip.per_count && !len.per_count && Weight::of_copy(len.k, self.level).fits(self.remaining())
    }

    /// Plans a loop over a small body of several rows as one call, which moves one or more
    /// instances by one permutation.
    fn permuted(&mut self, node: &Node, at: Offsets) -> Option<PlanOp> {
        let Node::Loop { trip, step, body, .. } = node else { return None };
        if !trip.per_count && trip.k < cost::PERMUTED_TRIP {
            return None;
        }
        let [Node::Blocks { user, packed, len, .. }] = self.nest.body(*body) else { return None };
        if len.len() > cost::PERMUTED_ROWS {
            return None;
        }
        let row =
            |i| Part { user: user.get(i), packed: packed.get(i) as u64, len: len.get(i) as u64, unit: 1 };
        let parts: Vec<Part> = (0..len.len()).map(row).collect();
        let permutation = Permutation::new(&parts, step.user, self.target)?;
        // With AVX2 and NEON, plain moves are faster unless one permutation moves several
        // instances.
        let pays = self.level == Level::Avx512 || permutation.instances() > 1;
        let legal = self.direction == Direction::Pack || permutation.unpacks();
        if !pays || !legal || permutation.size() as i64 != step.packed {
            return None;
        }
        let permutation = Arc::new(permutation);
        let table = self.table(Table::Permutation(Arc::clone(&permutation)));
        Some(PlanOp::Call { at, call: permute::call(self.direction, *trip, (&permutation, table)) })
    }

    /// Plans two nested loops around one element in another order than that of the nest. The loops
    /// become a transpose if one of them has short steps in user memory and the other on the packed
    /// side (see [`transpose::suited`]). Otherwise they are exchanged if the outer loop has the
    /// shorter step on both sides. Returns false if the two loops keep their order.
    ///
    /// A transpose or exchange changes the order of the entries, so the entries must be disjoint on
    /// the side that is written. If the entries are disjoint only up to some instance count, the
    /// plan checks the count at run time.
    fn reordered(&mut self, node: &Node, at: Offsets, out: &mut Vec<PlanOp>) -> Result<bool, Refusal> {
        let nest = self.nest;
        let Node::Loop { trip: outer, step: o, body, .. } = node else { return Ok(false) };
        let [Node::Loop { trip: inner, step: i, body: element, at: inside, .. }] = nest.body(*body) else {
            return Ok(false);
        };
        let [Node::Copy { n: len, .. }] = nest.body(*element) else { return Ok(false) };
        let (outer, inner) = ((*outer, *o), (*inner, *i));
        debug_assert_eq!(*inside, Offsets::ZERO);
        let transposed = self.transpose(outer, inner, len.k);
        // A small transpose costs more as a call than as moves in the order of its entries.
        if transposed.is_some() && self.straight(node, self.straight_line_limit()) {
            return Ok(false);
        }
        let Some(then) = transposed.or_else(|| self.exchange(outer, inner, *len)) else {
            return Ok(false);
        };
        let limit = match self.disjoint() {
            Disjoint::UpTo(limit) => limit,
            Disjoint::No | Disjoint::Unknown => 0,
        };
        // The new order is correct for up to `limit` instances. If there is no limit, the plan has
        // only the new order. Otherwise a guard compares the instance count with the limit at run
        // time, and chooses the new order or the old order of the loops.
        if limit == 0 {
            return Ok(false);
        }
        if limit == u64::MAX {
            let op = self.ordered(then, at);
            self.push(out, op)?;
            return Ok(true);
        }
        let row = PlanOp::Call { at: Offsets::ZERO, call: self.strided(inner.0, inner.1, *len) };
        let body = self.seal(vec![row]);
        let op = self.ordered(then, at);
        let then = self.seal(vec![op]);
        let otherwise = self.seal(vec![PlanOp::Loop { at, trip: outer.0, step: outer.1, unroll: 1, body }]);
        self.push(out, PlanOp::Guard { limit, then, otherwise })?;
        Ok(true)
    }

    /// Makes the operation that replaces two loops around an element, at offset `at`.
    fn ordered(&mut self, chosen: Reordered, at: Offsets) -> PlanOp {
        match chosen {
            Reordered::Transpose(call) => PlanOp::Call { at, call },
            Reordered::Exchanged { outer: (trip, step), row } => {
                let body = self.seal(vec![PlanOp::Call { at: Offsets::ZERO, call: row }]);
                PlanOp::Loop { at, trip, step, unroll: 1, body }
            }
        }
    }

    /// Returns the transpose that replaces two loops around an element, if the micro-kernel for
    /// transposes supports these loops.
    fn transpose(&self, outer: Repeat, inner: Repeat, len: u64) -> Option<Reordered> {
        let [outer, inner] = transpose::suited([outer, inner], len)?;
        transpose::call(self.direction, self.level, [outer.0, inner.0], [outer.1, inner.1], len)
            .map(Reordered::Transpose)
    }

    /// Exchanges two loops between layouts if the outer one has the shorter step on both sides, so
    /// that the new inner loop advances by the shorter steps in both memories.
    fn exchange(&self, outer: Repeat, inner: Repeat, len: Quantity) -> Option<Reordered> {
        let shorter = |side: fn(Offsets) -> i64| side(outer.1).unsigned_abs() < side(inner.1).unsigned_abs();
        if !shorter(|step| step.user) || !shorter(|step| step.packed) || len.per_count {
            return None;
        }
        let dense = outer.1 == Offsets::new(len.k as i64, len.k as i64);
        let row = match outer.0.times(len) {
            Some(len) if dense => strided::any_length(self.direction, self.level, len),
            _ => self.strided(outer.0, outer.1, len),
        };
        Some(Reordered::Exchanged { outer: inner, row })
    }

    /// Writes out every copy of `node` as a move.
    fn unrolled(&mut self, node: &Node, at: Offsets, out: &mut Vec<PlanOp>) -> Result<(), Refusal> {
        let nest = self.nest;
        let here = at + node.offsets();
        match node {
            Node::Copy { n, .. } => self.push(out, PlanOp::Move { at: here, len: n.k as u32 }),
            Node::Blocks { user, packed, len, .. } => {
                out.reserve(len.len());
                for i in 0..len.len() {
                    let at = here + Offsets::new(user.get(i), packed.get(i));
                    self.push(out, PlanOp::Move { at, len: len.get(i) as u32 })?;
                }
                Ok(())
            }
            Node::Table { displacements, packed, body, .. } => {
                out.reserve(displacements.len());
                for (i, d) in displacements.iter().enumerate() {
                    for inner in nest.body(*body) {
                        self.unrolled(inner, here + Offsets::new(d, packed * i as i64), out)?;
                    }
                }
                Ok(())
            }
            Node::Loop { trip, step, body, .. } => {
                out.reserve(trip.k as usize);
                for i in 0..trip.k as i64 {
                    for inner in nest.body(*body) {
                        self.unrolled(inner, here.step(*step, i), out)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Replacement for two loops around an element, in another order.
enum Reordered {
    /// One call that replaces both loops.
    Transpose(Call),
    /// A loop with the trip and step of the old inner loop. Its body is one call that executes the
    /// old outer loop.
    Exchanged { outer: Repeat, row: Call },
}

/// Weight of copies that are written out as moves: their number and their bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Weight {
    /// Number of copies.
    moves: usize,
    /// Total bytes of the copies. The length of each copy is rounded up to whole vectors of the CPU
    /// level.
    bytes: u64,
}

impl Weight {
    /// Maximum weight that is written out in one kernel.
    const MAX: Weight = Weight { moves: MAX_MOVES, bytes: MAX_MOVED };

    /// Returns the weight of one copy of `len` bytes.
    fn of_copy(len: u64, level: Level) -> Weight {
        Weight { moves: 1, bytes: len.next_multiple_of(level.widest_access().into()) }
    }

    fn fits(self, limit: Weight) -> bool {
        self.moves <= limit.moves && self.bytes <= limit.bytes
    }

    fn min(self, other: Weight) -> Weight {
        Weight { moves: self.moves.min(other.moves), bytes: self.bytes.min(other.bytes) }
    }

    fn times(self, n: usize) -> Weight {
        Weight { moves: self.moves.saturating_mul(n), bytes: self.bytes.saturating_mul(n as u64) }
    }
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.moves += other.moves;
        self.bytes += other.bytes;
    }
}

/// Returns the maximum length in bytes of a copy in a node that is written out as moves. The move
/// in a loop of moves may be longer (see `Scheduler::written_loop`).
fn max_inline_bytes(level: Level) -> u64 {
    cost::INLINE_MOVES * u64::from(level.widest_access())
}

/// Returns the weight of `node` if the node is written out as moves. Returns `None` if the weight
/// exceeds `limit`, if a copy is too long to be inline, if the node is nested too deeply, or if the
/// node depends on the instance count.
fn weight<S: Side>(
    nest: &LoopNest<Normal, Byte, S>,
    node: &Node,
    level: Level,
    limit: Weight,
    depth: usize,
) -> Option<Weight> {
    if depth > MAX_DEPTH {
        return None;
    }
    // The weights of a body add up, and those of a loop or table are multiplied by the number of
    // iterations. The summation stops as soon as the sum exceeds the limit.
    let inner = |body: Body| {
        let mut sum = Weight::default();
        for node in nest.body(body) {
            sum += weight(nest, node, level, limit, depth + 1)?;
            if !sum.fits(limit) {
                return None;
            }
        }
        Some(sum)
    };
    let one = |len: u64| (len <= max_inline_bytes(level)).then(|| Weight::of_copy(len, level));
    // Long columns and loops are refused because of their length, before anything is summed.
    let few = |n: u64| (n <= limit.moves as u64).then_some(n as usize);
    let sum = match node {
        Node::Copy { n, .. } if !n.per_count => one(n.k)?,
        Node::Copy { .. } => return None,
        Node::Blocks { len, .. } => {
            few(len.len() as u64)?;
            let mut sum = Weight::default();
            for l in len.iter() {
                sum += one(l as u64)?;
            }
            sum
        }
        Node::Table { displacements, body, .. } => inner(*body)?.times(few(displacements.len() as u64)?),
        Node::Loop { trip, body, .. } => {
            if trip.per_count {
                return None;
            }
            inner(*body)?.times(few(trip.k)?)
        }
    };
    sum.fits(limit).then_some(sum)
}

/// Returns the number of iterations of the loop that one turn of the emitted, unrolled loop
/// executes. Only loops over straight-line moves are unrolled.
fn unroll(list: &[PlanOp], trip: Quantity) -> u32 {
    let mut moves = 0;
    for op in list {
        match op {
            PlanOp::Move { len, .. } => moves += len.div_ceil(16),
            _ => return 1,
        }
    }
    let fit = (cost::UNROLLED_MOVES / moves.max(1)).clamp(1, 8);
    let fit = 1 << fit.ilog2();
    if trip.per_count { fit } else { fit.min(u32::try_from(trip.k).unwrap_or(u32::MAX)) }
}

#[cfg(test)]
mod tests;
