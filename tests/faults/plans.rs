//! Faulty plans: one number of an operation, or one row of a column, changed.

use ddtc::column::Column;
use ddtc::plan::{At, Op, Phase, Plan, Trip};

use super::COUNT;
use super::nests::{Faulty, entry, more};

/// Moves an operation.
fn moved(op: &mut Op, by: At) {
    match op {
        Op::Loop { at, .. }
        | Op::Table { at, .. }
        | Op::Move { at, .. }
        | Op::Strided { at, .. }
        | Op::Rows { at, .. }
        | Op::Blocks { at, .. }
        | Op::Pattern { at, .. }
        | Op::Transpose { at, .. } => *at = *at + by,
        Op::Guard { .. } => {}
    }
}

/// Operations with one number changed. Not the unrolling, which evaluation does not see, nor what a single block does not use.
fn op_faults(op: &Op) -> Faulty<Op> {
    let mut out: Faulty<Op> = Vec::new();
    macro_rules! change {
        ($what:literal, $kind:ident, $field:ident, $change:expr) => {{
            let mut op = op.clone();
            if let Op::$kind { $field, .. } = &mut op {
                $change($field);
            }
            out.push(($what.to_owned(), op));
        }};
    }
    if !matches!(op, Op::Guard { .. }) {
        for by in [At::new(1, 0), At::new(0, 1), At::new(-1, 0)] {
            let mut op = op.clone();
            moved(&mut op, by);
            out.push(("offset".to_owned(), op));
        }
    }
    for by in [1, -1_i64] {
        let count = |trip: &mut Trip| *trip = more(*trip, by);
        let user_side = |step: &mut At| step.user += by;
        let packed_side = |step: &mut At| step.packed += by;
        let length = |len: &mut u64| *len = len.saturating_add_signed(by);
        match op {
            Op::Loop { .. } => {
                change!("trip", Loop, trip, count);
                change!("user stride", Loop, step, user_side);
                change!("packed stride", Loop, step, packed_side);
            }
            Op::Table { .. } => change!("packed stride", Table, packed, |p: &mut i64| *p += by),
            Op::Move { .. } => {
                change!("length", Move, len, |len: &mut u32| *len = len.saturating_add_signed(by as i32));
            }
            Op::Strided { n, .. } => {
                change!("length", Strided, len, count);
                if n.is(1) {
                    continue;
                }
                change!("blocks", Strided, n, count);
                change!("user stride", Strided, step, user_side);
                change!("packed stride", Strided, step, packed_side);
            }
            Op::Rows { .. } => {
                change!("length", Rows, len, length);
                change!("packed stride", Rows, packed, |p: &mut i64| *p += by);
            }
            Op::Blocks { .. } if by > 0 => {
                change!("user and packed column", Blocks, slots, |slots: &mut [u32; 3]| slots.swap(0, 1));
            }
            Op::Blocks { .. } => {
                change!("packed column and lengths", Blocks, slots, |slots: &mut [u32; 3]| slots.swap(1, 2));
            }
            Op::Pattern { .. } => {
                change!("instances", Pattern, n, count);
                change!("user stride", Pattern, step, user_side);
                change!("packed stride", Pattern, step, packed_side);
            }
            Op::Transpose { .. } => {
                for i in [0, 1] {
                    change!("trip", Transpose, trips, |trips: &mut [Trip; 2]| count(&mut trips[i]));
                    change!("user stride", Transpose, steps, |steps: &mut [At; 2]| user_side(&mut steps[i]));
                    change!("packed stride", Transpose, steps, |steps: &mut [At; 2]| packed_side(
                        &mut steps[i]
                    ));
                }
                change!("length", Transpose, len, length);
            }
            Op::Guard { .. } => {}
        }
    }
    out
}

pub(crate) fn plan_faults<P: Phase>(plan: &Plan<P>) -> Faulty<Plan<P>> {
    let mut out = Vec::new();
    let rebuilt = |ops: Vec<Op>, columns: Vec<Column>| {
        Plan::new(ops, plan.root(), columns, plan.direction(), plan.target())
    };
    // Behind a guard only one side runs at this count.
    let dead: Vec<std::ops::Range<usize>> = plan
        .ops()
        .iter()
        .filter_map(|op| match op {
            Op::Guard { limit, then, otherwise } => Some(if COUNT <= *limit { *otherwise } else { *then }),
            _ => None,
        })
        .flat_map(|body| {
            let inner = plan.body(body).iter().filter_map(Op::body).map(|b| b.range());
            inner.chain([body.range()]).collect::<Vec<_>>()
        })
        .collect();
    for (i, op) in plan.ops().iter().enumerate() {
        if dead.iter().any(|range| range.contains(&i)) {
            continue;
        }
        for (what, op) in op_faults(op) {
            let mut ops = plan.ops().to_vec();
            ops[i] = op;
            out.push((format!("{what} of operation {i}"), rebuilt(ops, plan.columns().to_vec())));
        }
    }
    // The columns of patterns are tables for the code, without meaning for evaluation.
    let tables: Vec<usize> = plan
        .ops()
        .iter()
        .filter_map(|op| match op {
            Op::Pattern { slot, .. } => Some(*slot as usize),
            _ => None,
        })
        .collect();
    for slot in (0..plan.columns().len()).filter(|s| !tables.contains(s)) {
        let mut columns = plan.columns().to_vec();
        columns[slot] = entry(&columns[slot], columns[slot].len() - 1, 1);
        out.push((format!("last row of column {slot}"), rebuilt(plan.ops().to_vec(), columns)));
    }
    out
}
