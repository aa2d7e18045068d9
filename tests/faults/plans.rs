//! Makes faulty plans for tests: in each of them one number of an operation or one row of a column
//! is changed, or two words or two tables of an operation are exchanged.

use ddtc::internal::micro::{Argument, Call, Role, Table};
use ddtc::internal::plan::{Offsets, Phase, Plan, PlanOp, Quantity, Words};

use super::COUNT;
use super::nests::{Faulty, entry, more};

/// Adds `by` to the two offsets of an operation. A guard has no offsets and stays as it is.
fn moved(op: &mut PlanOp, by: Offsets) {
    match op {
        PlanOp::Loop { at, .. }
        | PlanOp::Table { at, .. }
        | PlanOp::Move { at, .. }
        | PlanOp::Permute { at, .. }
        | PlanOp::Call { at, .. } => *at = *at + by,
        PlanOp::Guard { .. } => {}
    }
}

/// Returns copies of an operation with one number changed. Two kinds of numbers are not changed,
/// because their change would have no effect: the unrolling of a loop, which evaluation ignores,
/// and steps that an operation with a single block does not use.
fn op_faults(op: &PlanOp) -> Faulty<PlanOp> {
    let mut out: Faulty<PlanOp> = Vec::new();
    macro_rules! change {
        ($what:literal, $kind:ident, $field:ident, $change:expr) => {{
            let mut op = op.clone();
            if let PlanOp::$kind { $field, .. } = &mut op {
                $change($field);
            }
            out.push(($what.to_owned(), op));
        }};
    }
    // Operations of all kinds except guards have an offset in user memory and one on the packed
    // side. Change both of them.
    if !matches!(op, PlanOp::Guard { .. }) {
        for by in [Offsets::new(1, 0), Offsets::new(0, 1), Offsets::new(-1, 0)] {
            let mut op = op.clone();
            moved(&mut op, by);
            out.push(("offset".to_owned(), op));
        }
    }
    // Increase and decrease by 1 each number that only operations of this kind have.
    for by in [1, -1_i64] {
        let count = |trip: &mut Quantity| *trip = more(*trip, by);
        let user_side = |step: &mut Offsets| step.user += by;
        let packed_side = |step: &mut Offsets| step.packed += by;
        match op {
            PlanOp::Loop { .. } => {
                change!("trip", Loop, trip, count);
                change!("user stride", Loop, step, user_side);
                change!("packed stride", Loop, step, packed_side);
            }
            PlanOp::Table { .. } => change!("packed stride", Table, packed, |p: &mut i64| *p += by),
            PlanOp::Move { .. } => {
                change!("length", Move, len, |len: &mut u32| *len = len.saturating_add_signed(by as i32));
            }
            PlanOp::Permute { at, words } => out.push(("words".to_owned(), exchanged(*at, words, by))),
            PlanOp::Call { at, call } => out.extend(
                call_faults(call, by).into_iter().map(|(what, call)| (what, PlanOp::Call { at: *at, call })),
            ),
            PlanOp::Guard { .. } => {}
        }
    }
    out
}

/// Returns a permutation like `words`, but with two neighbouring words exchanged. These are the
/// first two words if `by` is positive, and otherwise the last two.
fn exchanged(at: Offsets, words: &Words, by: i64) -> PlanOp {
    let unit = words.unit();
    let mut offsets: Vec<i64> =
        words.places().iter().map(|&place| i64::from(place) * i64::from(unit)).collect();
    let first = if by > 0 { 0 } else { offsets.len() - 2 };
    offsets.swap(first, first + 1);
    PlanOp::Permute { at, words: Words::new(unit, &offsets).unwrap().1 }
}

/// Returns copies of a call in which one number or step is changed by `by`. If `by` is positive,
/// there are also copies in which two different tables are exchanged.
fn call_faults(call: &Call, by: i64) -> Faulty<Call> {
    let single = call.argument(Role::Iterations) == Some(Argument::Number(Quantity::fixed(1)));
    let mut out: Faulty<Call> = Vec::new();
    let arguments = call.arguments();
    let mut changed = |what: Role, list: Vec<(Role, Argument)>| {
        let what = if what == Role::Length { "length".to_owned() } else { what.name().to_owned() };
        out.push((what, Call::new(call.callee(), list)));
    };
    for (i, &(role, argument)) in arguments.iter().enumerate() {
        let mut list = arguments.to_vec();
        match argument {
            // A call with one iteration does not use its step, and its number of iterations is not
            // changed either.
            Argument::Number(_) if role == Role::Iterations && single => continue,
            Argument::Step(_) if single => continue,
            Argument::Number(n) => list[i].1 = Argument::Number(more(n, by)),
            Argument::Step(k) => list[i].1 = Argument::Step(k + by),
            Argument::Table(table) => {
                let other =
                    arguments[i + 1..].iter().position(|a| matches!(a.1, Argument::Table(t) if t != table));
                let Some(other) = other.filter(|_| by > 0) else { continue };
                list[i].1 = arguments[i + 1 + other].1;
                list[i + 1 + other].1 = argument;
            }
        }
        changed(role, list);
    }
    out
}

pub(crate) fn plan_faults<P: Phase>(plan: &Plan<P>) -> Faulty<Plan<P>> {
    let mut out = Vec::new();
    let rebuilt = |ops: Vec<PlanOp>, tables: Vec<Table>| {
        Plan::new(ops, plan.root(), tables, plan.kind(), plan.target())
    };
    // Of the two sides of a guard only one runs for `COUNT` instances. Collect the operations of
    // the side that does not run, because faults in them have no effect.
    let dead: Vec<std::ops::Range<usize>> = plan
        .ops()
        .iter()
        .filter_map(|op| match op {
            PlanOp::Guard { limit, then, otherwise } => {
                Some(if COUNT <= *limit { *otherwise } else { *then })
            }
            _ => None,
        })
        .flat_map(|body| {
            let inner = plan.body(body).iter().filter_map(PlanOp::body).map(|b| b.range());
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
            out.push((format!("{what} of operation {i}"), rebuilt(ops, plan.tables().to_vec())));
        }
    }
    for (i, table) in plan.tables().iter().enumerate() {
        // Tables that are permutations are tested elsewhere.
        let Some(column) = table.column() else { continue };
        let mut tables = plan.tables().to_vec();
        tables[i] = Table::Column(entry(column, column.len() - 1, 1));
        out.push((format!("last row of table {i}"), rebuilt(plan.ops().to_vec(), tables)));
    }
    out
}
