//! Reference evaluation of a plan. It executes the operations in order, and executes a call of a
//! micro-kernel by the definition of that micro-kernel.
//!
//! The tests use this evaluation to check the results of schedule and legalize. The evaluation
//! shares no code with the emitters. With the micro-kernels it shares only the product of complex
//! numbers (`micro::reduce::real`). Which blocks a call moves follows from its family and from the
//! roles of its arguments, never from their order. If a plan for unpacking writes to a gap, or a
//! plan for packing reads outside the user's data, either a bounds check of a slice fails or the
//! caller finds a difference.

use super::{Offsets, Phase, Plan, PlanOp};
use crate::kind::{self, Direction};
use crate::micro::Transform;
use crate::micro::reduce::meaning;
use crate::nest::{Leaf, Value, ValueClass};

struct Machine<'a> {
    direction: Direction,
    user: &'a mut [u8],
    origin: i64,
    packed: &'a mut [u8],
    packed_origin: i64,
}

impl Machine<'_> {
    /// Moves `len` bytes as one access: all bytes are loaded before the first byte is stored.
    fn block(&mut self, at: Offsets, len: u64, transform: Transform) {
        // An empty block may lie outside the slices, so do not index the slices for an empty block.
        if len == 0 {
            return;
        }
        if let Transform::Combined(op, value) = transform {
            return self.combine(at, len, op, value);
        }
        let u = usize::try_from(self.origin + at.user).expect("user offset inside the slice");
        let p = usize::try_from(self.packed_origin + at.packed).expect("packed offset inside the slice");
        let (u, p) = (u..u + len as usize, p..p + len as usize);
        let (from, to) = match self.direction {
            Direction::Pack => (&self.user[u], &mut self.packed[p]),
            Direction::Unpack => (&self.packed[p], &mut self.user[u]),
        };
        to.copy_from_slice(from);
        match transform {
            // For combinations, the function has returned above.
            Transform::Copied | Transform::Combined(..) => {}
            Transform::Reversed(unit) => to.chunks_exact_mut(unit.into()).for_each(<[u8]>::reverse),
            Transform::Mirrored => to.reverse(),
        }
    }
}

impl Machine<'_> {
    /// Combines `len` packed bytes of values with the values in user memory, one after the other.
    fn combine(&mut self, at: Offsets, len: u64, op: kind::Op, value: Value) {
        // A block of pairs is one pair. Its length includes the padding if the packed side is a
        // second layout.
        let unit = if matches!(value.class(), ValueClass::Pair(_)) { len as i64 } else { value.packed() };
        for k in 0..len as i64 / unit {
            let at = at + value.span(k);
            let user = usize::try_from(self.origin + at.user).expect("user offset inside the slice");
            let packed =
                usize::try_from(self.packed_origin + at.packed).expect("packed offset inside the slice");
            let new = &self.packed[packed..packed + unit as usize];
            meaning::combine(op, value, new, &mut self.user[user..user + value.user() as usize]);
        }
    }
}

enum Pending<'a> {
    Ops { ops: &'a [PlanOp], at: Offsets },
    Iterate { op: &'a PlanOp, i: u64, at: Offsets },
}

impl<P: Phase> Plan<P> {
    /// Runs the plan for `count` instances; `origin` is the index in `user` of user offset 0.
    ///
    /// # Panics
    /// If the plan reads or writes a byte outside the slices.
    pub fn eval(&self, count: u64, user: &mut [u8], origin: usize, packed: &mut [u8]) {
        self.eval_between(count, (user, origin as i64), (packed, 0));
    }

    /// Runs the plan between two slices. Each slice is given together with the index of offset 0 in
    /// it, which may lie outside the slice.
    ///
    /// # Panics
    /// Panics under the same condition as [`Plan::eval`].
    pub fn eval_between(
        &self,
        count: u64,
        (user, origin): (&mut [u8], i64),
        (packed, packed_origin): (&mut [u8], i64),
    ) {
        let mut machine = Machine { direction: self.direction(), user, origin, packed, packed_origin };
        let mut stack = vec![Pending::Ops { ops: self.body(self.root()), at: Offsets::ZERO }];
        // The stack holds the parts of the plan that have not been executed yet, the innermost part
        // last. Such a part is the rest of a body, or the remaining iterations of a loop or table.
        while let Some(top) = stack.last_mut() {
            match top {
                Pending::Ops { ops, at } => {
                    let Some((op, rest)) = ops.split_first() else {
                        stack.pop();
                        continue;
                    };
                    *ops = rest;
                    let at = *at + op.offsets();
                    match op {
                        PlanOp::Loop { .. } | PlanOp::Table { .. } => {
                            stack.push(Pending::Iterate { op, i: 0, at })
                        }
                        PlanOp::Guard { limit, then, otherwise } => {
                            let body = if count <= *limit { then } else { otherwise };
                            stack.push(Pending::Ops { ops: self.body(*body), at });
                        }
                        PlanOp::Move { len, .. } => machine.block(at, u64::from(*len), Transform::Copied),
                        PlanOp::Permute { words, .. } => {
                            let unit = i64::from(words.unit());
                            for (k, &place) in words.places().iter().enumerate() {
                                let word = Offsets::new(i64::from(place) * unit, k as i64 * unit);
                                machine.block(at + word, unit as u64, Transform::Copied);
                            }
                        }
                        PlanOp::Call { call, .. } => {
                            let transform = call.callee().transform();
                            call.blocks(self.tables(), count, &mut |block, len| {
                                machine.block(at + block, len, transform)
                            });
                        }
                    }
                }
                Pending::Iterate { op, i, at } => {
                    // Find the number of iterations, `trip`, and the offset `here` at which
                    // iteration `i` begins. After the last iteration of a table, row `i` does not
                    // exist and must not be read. The lines below then pop the table from the
                    // stack.
                    let (trip, here) = match op {
                        PlanOp::Loop { trip, step, .. } => (trip.for_count(count), at.step(*step, *i as i64)),
                        PlanOp::Table { table, packed, .. } => {
                            let rows = self.column(*table).expect("a column");
                            let row = if (*i as usize) < rows.len() { rows.get(*i as usize) } else { 0 };
                            (rows.len() as u64, *at + Offsets::new(row, packed * *i as i64))
                        }
                        _ => (0, *at),
                    };
                    if *i == trip {
                        stack.pop();
                        continue;
                    }
                    *i += 1;
                    let ops = op.body().map_or(&[][..], |b| self.body(b));
                    stack.push(Pending::Ops { ops, at: here });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::micro::{Table, rows, strided, transpose};
    use crate::nest::Body;
    use crate::plan::{Legal, Quantity, Scheduled, Words};
    use crate::target::{Level, Target};

    /// Returns a plan that packs byte 0 and then byte 2 or byte 3. A guard inside a loop chooses
    /// between these two.
    fn guarded(limit: u64) -> Plan<Scheduled> {
        let moved = |user, packed| PlanOp::Move { at: Offsets::new(user, packed), len: 1 };
        let body = |start| Body { start, len: 1 };
        let guard = PlanOp::Guard { limit, then: body(0), otherwise: body(1) };
        let around = PlanOp::Loop {
            at: Offsets::new(2, 2),
            trip: Quantity::fixed(1),
            step: Offsets::new(1, 1),
            unroll: 1,
            body: body(2),
        };
        let ops = vec![moved(0, 0), moved(1, 0), guard, moved(0, 0), around];
        Plan::new(ops, Body { start: 3, len: 2 }, Vec::new(), Direction::Pack, Target::new(Level::Baseline))
    }

    #[test]
    fn a_guard_runs_one_of_its_sides() {
        for limit in [0, 1, 4] {
            let plan = guarded(limit);
            plan.verify().unwrap();
            for count in 0..8 {
                let mut packed = [0; 3];
                plan.eval(count, &mut [10, 11, 12, 13], 0, &mut packed);
                let side = if count <= limit { 12 } else { 13 };
                assert_eq!(packed, [10, 0, side], "limit {limit}, count {count}");
            }
        }
    }

    /// Runs one operation that unpacks from the packed bytes `0, 1, 2 ..` into eight user bytes,
    /// which have the value 99 before, and returns the user bytes.
    fn unpacked(op: PlanOp, tables: Vec<Table>, count: u64) -> [u8; 8] {
        let root = Body { start: 0, len: 1 };
        let plan: Plan<Scheduled> =
            Plan::new(vec![op], root, tables, Direction::Unpack, Target::new(Level::Baseline));
        plan.verify().unwrap();
        let (mut user, mut packed) = ([99; 8], std::array::from_fn::<u8, 16, _>(|i| i as u8));
        plan.eval(count, &mut user, 0, &mut packed);
        user
    }

    /// A transpose is evaluated in an order different from that of the type map: of two entries at
    /// one place, the first is written last. Tests therefore notice a transpose that was chosen
    /// although entries overlap.
    #[test]
    fn a_transpose_shows_overlap() {
        let transpose = |outer: i64, inner: i64| {
            let (trips, steps) = ([Quantity::fixed(2); 2], [Offsets::new(outer, 8), Offsets::new(inner, 4)]);
            let call = transpose::call(Direction::Unpack, Level::Baseline, trips, steps, 4).unwrap();
            PlanOp::Call { at: Offsets::ZERO, call }
        };
        assert_eq!(unpacked(transpose(0, 0), vec![], 1)[..4], [0, 1, 2, 3]);
        assert_eq!(unpacked(transpose(4, 0), vec![], 1), [0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(unpacked(transpose(0, 4), vec![], 1), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_permutation_moves_each_word_to_its_place() {
        // The first permutation moves every second word, in descending order of addresses. The
        // second moves the words between them, in ascending order.
        let words = |first: i64, by: i64| {
            let offsets: Vec<i64> = (0..8).map(|i| first + i * by).collect();
            Words::new(8, &offsets).unwrap()
        };
        let (ops, mut user) = ([words(112, -16), words(8, 16)], vec![0; 128]);
        let ops = ops
            .into_iter()
            .enumerate()
            .map(|(i, (lowest, words))| PlanOp::Permute { at: Offsets::new(lowest, 64 * i as i64), words });
        let plan: Plan<Legal> = Plan::new(
            ops.collect(),
            Body { start: 0, len: 2 },
            Vec::new(),
            Direction::Unpack,
            Target::new(Level::Avx512),
        );
        plan.verify().unwrap();
        let mut packed: Vec<u8> = (0..128).collect();
        plan.eval(1, &mut user, 0, &mut packed);
        let word = |k: usize| user[8 * k];
        assert_eq!([0, 2, 14].map(word), [56, 48, 0]);
        assert_eq!([1, 3, 15].map(word), [64, 72, 120]);
        assert_eq!(user[24..32], [72, 73, 74, 75, 76, 77, 78, 79]);
        // Permutations are valid only in the legal phase, for targets that have permutations, and
        // for plans that move bytes.
        let fails = |plan: Plan<Legal>| plan.verify().is_err();
        let ops = || plan.ops().to_vec();
        let early: Plan<Scheduled> = Plan::new(ops(), plan.root(), vec![], plan.kind(), plan.target());
        assert!(early.verify().is_err());
        assert!(fails(Plan::new(ops(), plan.root(), vec![], plan.kind(), Target::new(Level::Avx2))));
        let kind = kind::Kind { operation: kind::Operation::External32, ..plan.kind() };
        assert!(fails(Plan::new(ops(), plan.root(), vec![], kind, plan.target())));
    }

    #[test]
    fn rows_are_all_moved_in_order() {
        let column = Column::from(vec![5, 0, 1]);
        let call =
            rows::call(Direction::Unpack, Level::Baseline, (&column, crate::micro::TableIndex::new(0)), 3, 2);
        let rows = PlanOp::Call { at: Offsets::new(1, 0), call };
        assert_eq!(unpacked(rows, vec![Table::Column(column)], 1), [99, 3, 6, 7, 99, 99, 0, 1]);
    }

    #[test]
    fn blocks_are_moved_by_the_count() {
        let call = |n, len, user| {
            let call = strided::call(Direction::Unpack, Level::Baseline, n, Offsets::new(3, 2), len);
            PlanOp::Call { at: Offsets::new(user, 0), call }
        };
        let counted = call(Quantity::counted(1), Quantity::fixed(2), 1);
        assert_eq!(unpacked(counted, vec![], 2), [99, 0, 1, 99, 2, 3, 99, 99]);
        // An empty block is not moved, wherever it lies.
        for far in [-100, 100] {
            assert_eq!(unpacked(call(Quantity::fixed(1), Quantity::counted(4), far), vec![], 0), [99; 8]);
        }
    }
}
