//! Plans for nests of values: the same loops as for bytes, around calls that apply the operation to
//! the values of a block.
//!
//! Small bodies are not written out. The code of a plan that has only calls contains no constants,
//! so all layouts whose plans have the same shape share that code. A loop over a few runs of values
//! becomes one call that permutes the bytes of small instances. If that is not possible and the
//! order of the entries does not matter, the loop becomes one call for each run.

use std::sync::Arc;

use super::{MAX_DEPTH, MAX_OPS, Planned, Refusal};
use crate::column::Column;
use crate::kind::{Direction, Kind, Op as Reduction, Operation};
use crate::micro::permute::{self, Part, Permutation};
use crate::micro::{Call, Table, TableIndex, reduce, strided, swap};
use crate::nest::{
    Body, Disjoint, Leaf, LoopNest, Node, Normal, Offsets, Quantity, Side, Stream, Value, ValueClass,
};
use crate::plan::{Plan, PlanOp, Scheduled};
use crate::target::{Target, cost};

impl<S: Side> Planned<S> for Value {
    fn plan(
        nest: &LoopNest<Normal, Value, S>,
        kind: Kind,
        target: Target,
    ) -> Result<Plan<Scheduled>, Refusal> {
        match kind {
            Kind { operation: Operation::External32, .. } if S::NAME != Stream::NAME => {
                return Err(Refusal { reason: "external32 is only the representation of a packed stream" });
            }
            Kind { direction: Direction::Pack, operation: Operation::Reduce(_) } => {
                return Err(Refusal { reason: "values are combined only while unpacking" });
            }
            Kind { operation: Operation::Reduce(Reduction::NoOp), .. } => {
                return Ok(Plan::new(Vec::new(), Body::default(), Vec::new(), kind, target));
            }
            _ => {}
        }
        let any_order = nest.disjoint_when(kind.direction) == Disjoint::UpTo(u64::MAX);
        let mut s =
            Scheduler { nest, kind, target, any_order, ops: Vec::new(), tables: Vec::new(), budget: MAX_OPS };
        let list = s.body(nest.root(), 0)?;
        let root = s.seal(list);
        Ok(Plan::new(s.ops, root, s.tables, kind, target))
    }
}

struct Scheduler<'a, S> {
    nest: &'a LoopNest<Normal, Value, S>,
    kind: Kind,
    target: Target,
    /// Whether the entries of any number of instances are disjoint, so that their order does not
    /// matter.
    any_order: bool,
    ops: Vec<PlanOp>,
    tables: Vec<Table>,
    budget: usize,
}

/// A run of `n` adjacent values.
struct Run {
    at: Offsets,
    n: Quantity,
    value: Value,
}

impl<S: Side> Scheduler<'_, S> {
    fn seal(&mut self, list: Vec<PlanOp>) -> Body {
        let body = Body { start: self.ops.len() as u32, len: list.len() as u32 };
        self.ops.extend(list);
        body
    }

    fn push(&mut self, out: &mut Vec<PlanOp>, op: PlanOp) -> Result<(), Refusal> {
        if self.budget == 0 {
            return Err(Refusal { reason: "more operations than a kernel may have" });
        }
        self.budget -= 1;
        out.push(op);
        Ok(())
    }

    fn column(&mut self, column: &Column) -> TableIndex {
        self.table(Table::Column(column.clone()))
    }

    fn table(&mut self, table: Table) -> TableIndex {
        let known = self.tables.iter().position(|t| *t == table);
        TableIndex::new(known.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        }))
    }

    /// Returns the call that applies the operation to the values of `run` in each of `trip`
    /// iterations.
    fn call(&self, run: &Run, trip: Quantity, step: Offsets) -> Result<Call, Refusal> {
        let Run { n, value, .. } = *run;
        if let Operation::Reduce(op) = self.kind.operation {
            return self.combined(op, run, trip, step);
        }
        let reason = "values that change their size or meaning are converted one by one";
        let ValueClass::Swap = value.class() else { return Err(Refusal { reason }) };
        let unit = value.user();
        let k = n.k.checked_mul(unit as u64).ok_or(Refusal { reason: "a run beyond 64 bits" })?;
        let len = Quantity { k, ..n };
        let (direction, level) = (self.kind.direction, self.target.level());
        // A value of one byte has no byte order, so it is copied.
        let copied = || strided::call(direction, level, trip, step, len);
        match unit {
            1 => Ok(copied()),
            _ => swap::call(direction, level, trip, step, len, unit)
                .ok_or(Refusal { reason: "values of a size that no micro-kernel swaps" }),
        }
    }

    /// Returns the call that combines the values of a run in each iteration. The call processes the
    /// blocks in order, so the blocks may overlap.
    fn combined(&self, op: Reduction, run: &Run, trip: Quantity, step: Offsets) -> Result<Call, Refusal> {
        let Run { n, value, .. } = *run;
        if op == Reduction::Replace {
            let k = n.k.checked_mul(value.user() as u64).ok_or(Refusal { reason: "a run beyond 64 bits" })?;
            return Ok(strided::call(
                self.kind.direction,
                self.target.level(),
                trip,
                step,
                Quantity { k, ..n },
            ));
        }
        reduce::call(op, self.target.level(), trip, step, n, value)
            .ok_or(Refusal { reason: "values that no micro-kernel combines" })
    }

    /// Returns true if the call for a run needs a separate block for each value. This is so for a
    /// run of several pairs under MINLOC or MAXLOC, because a block of such a call is exactly one
    /// pair.
    fn needs_loop(&self, run: &Run) -> bool {
        let reduced = matches!(self.kind.operation, Operation::Reduce(op) if op.is_location());
        reduced && matches!(run.value.class(), ValueClass::Pair(_)) && !run.n.is(1)
    }

    /// Plans a run as one call that has a separate block for each value.
    fn loop_over_values(&mut self, run: &Run, out: &mut Vec<PlanOp>) -> Result<(), Refusal> {
        let one = Run { n: Quantity::fixed(1), ..*run };
        let call = self.call(&one, run.n, run.value.span(1))?;
        self.push(out, PlanOp::Call { at: run.at, call })
    }

    /// Plans a loop over a few runs of small values as one call. Each permutation in the call swaps
    /// the bytes of one or more iterations.
    fn permuted(&mut self, runs: &[Run], trip: Quantity, step: Offsets) -> Option<Call> {
        let small = runs.len() < 2 || !trip.per_count && trip.k < cost::PERMUTED_TRIP;
        if small || runs.iter().any(|run| run.n.per_count || run.value.class() != ValueClass::Swap) {
            return None;
        }
        let parts: Option<Vec<Part>> = runs
            .iter()
            .map(|Run { at, n, value }| {
                let (unit, packed) = (value.user(), u64::try_from(at.packed).ok()?);
                let len = n.k.checked_mul(unit as u64)?;
                Some(Part { user: at.user, packed, len, unit: unit as u8 })
            })
            .collect();
        let permutation = Permutation::new(&parts?, step.user, self.target)?;
        let legal = self.kind.direction == Direction::Pack || permutation.unpacks();
        if !legal || permutation.size() as i64 != step.packed {
            return None;
        }
        let permutation = Arc::new(permutation);
        let table = self.table(Table::Permutation(Arc::clone(&permutation)));
        Some(permute::call(self.kind.direction, trip, (&permutation, table)))
    }

    /// Returns the runs of values that a body consists of. Returns `None` if the body has many runs
    /// or contains anything but runs.
    fn runs(&self, body: Body) -> Option<Vec<Run>> {
        let mut runs = Vec::new();
        for node in self.nest.body(body) {
            match node {
                Node::Copy { at, n, unit } => runs.push(Run { at: *at, n: *n, value: *unit }),
                Node::Blocks { at, user, packed, len, unit } if len.len() <= cost::PERMUTED_ROWS => {
                    runs.extend((0..len.len()).map(|i| Run {
                        at: *at + Offsets::new(user.get(i), packed.get(i)),
                        n: Quantity::fixed(len.get(i) as u64),
                        value: *unit,
                    }));
                }
                _ => return None,
            }
        }
        (runs.len() <= cost::PERMUTED_ROWS).then_some(runs)
    }

    fn body(&mut self, body: Body, depth: usize) -> Result<Vec<PlanOp>, Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal { reason: "loops nested deeper than a kernel may have" });
        }
        let nest = self.nest;
        let mut out = Vec::new();
        for node in nest.body(body) {
            self.node(node, depth, &mut out)?;
        }
        Ok(out)
    }

    fn node(&mut self, node: &Node<Value>, depth: usize, out: &mut Vec<PlanOp>) -> Result<(), Refusal> {
        let at = node.offsets();
        let once = (Quantity::fixed(1), Offsets::ZERO);
        // Runs become calls, and tables and loops are planned around their bodies.
        match node {
            Node::Copy { n, unit, .. } => {
                let run = Run { at, n: *n, value: *unit };
                if self.needs_loop(&run) {
                    return self.loop_over_values(&run, out);
                }
                let call = self.call(&run, once.0, once.1)?;
                self.push(out, PlanOp::Call { at, call })
            }
            Node::Blocks { user, packed, len, unit, .. } => {
                if len.len() > self.budget {
                    return Err(Refusal { reason: "more irregular blocks of values than a kernel may have" });
                }
                for i in 0..len.len() {
                    let at = at + Offsets::new(user.get(i), packed.get(i));
                    let run = Run { at, n: Quantity::fixed(len.get(i) as u64), value: *unit };
                    if self.needs_loop(&run) {
                        self.loop_over_values(&run, out)?;
                        continue;
                    }
                    let call = self.call(&run, once.0, once.1)?;
                    self.push(out, PlanOp::Call { at, call })?;
                }
                Ok(())
            }
            Node::Table { displacements, packed, body, .. } => {
                let table = self.column(displacements);
                let list = self.body(*body, depth + 1)?;
                let body = self.seal(list);
                self.push(out, PlanOp::Table { at, table, packed: *packed, body })
            }
            // A loop can have step 0 on both sides only in a nest between two layouts. A compiled
            // loop stops when a pointer reaches its end address; with step 0, the loop would never
            // stop.
            Node::Loop { trip, step: Offsets::ZERO, .. } if !trip.is(1) => {
                Err(Refusal { reason: "values combined again and again in one place" })
            }
            Node::Loop { trip, step, body, .. } => {
                // A loop over a few runs needs no loop operation. Either one call with permutations
                // moves everything, or each run becomes one call that repeats the run for every
                // iteration. A call for each run changes the order of the entries if there are
                // several runs.
                let runs = self.runs(*body);
                if let Some(call) = runs.as_ref().and_then(|runs| self.permuted(runs, *trip, *step)) {
                    return self.push(out, PlanOp::Call { at, call });
                }
                let few =
                    |runs: &Vec<Run>| runs.len() == 1 || self.any_order && runs.len() <= cost::VALUE_RUNS;
                let runs = runs.filter(few).filter(|runs| !runs.iter().any(|run| self.needs_loop(run)));
                if let Some(runs) = runs
                    && !runs.iter().any(|run| run.n.per_count && trip.per_count)
                {
                    for run in &runs {
                        let call = self.call(run, *trip, *step)?;
                        self.push(out, PlanOp::Call { at: at + run.at, call })?;
                    }
                    return Ok(());
                }
                let list = self.body(*body, depth + 1)?;
                let body = self.seal(list);
                self.push(out, PlanOp::Loop { at, trip: *trip, step: *step, unroll: 1, body })
            }
        }
    }
}
