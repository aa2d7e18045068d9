//! Faults in plans of reductions, and the two ways in which a loop that is right for copies is
//! wrong for reductions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::exec::interp::reduce;
use ddtc::internal::kind::{Direction, Kind, Op, Operation};
use ddtc::internal::lower::{Reduced, lower};
use ddtc::internal::methods::*;
use ddtc::internal::micro::strided;
use ddtc::internal::nest::Offsets;
use ddtc::internal::normalize::{Normalized, normalize};
use ddtc::internal::plan::{self, Plan, Quantity, Scheduled};
use ddtc::internal::schedule::schedule;
use ddtc::internal::target::{Level, Target};

use super::plans::plan_faults;
use super::{COUNT, parse};

/// Returns `len` bytes, of which none is zero, so that adding them changes a sum.
fn numbers(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (1 + (i * 37 + seed * 11) % 127) as u8).collect()
}

/// Returns three images: the packed stream, and the user memory before and after the stream is
/// unpacked into it by a reduction. The stream has `COUNT` instances, which begin at displacement
/// 0.
fn images(op: Op, t: &Datatype) -> [Vec<u8>; 3] {
    let span = (t.true_ub() + (COUNT as i64 - 1) * t.extent()).max(t.true_ub()) as usize;
    let (stream, before) = (numbers(COUNT as usize * t.size() as usize, 1), numbers(span, 2));
    let mut after = before.clone();
    reduce::unpack(op, t, COUNT, &stream, &mut after, 0);
    [stream, before, after]
}

/// Tests that faults in plans of reductions are caught: a changed number, a copy in place of a
/// combination, and the call of another operation.
#[test]
fn plans_of_reductions() {
    let mut n = 0;
    for (text, op) in [
        ("resized(0, 40, struct([1, 3, 2], [0, 8, 24], [int, short, long]))", Op::Sum),
        ("hvector(4, 1, 300, vector(5, 3, 7, double))", Op::Sum),
        ("indexed_block(2, [0, 5, 9, 30, 33, 60, 100], unsigned)", Op::Max),
        ("vector(4, 3, 5, double_int)", Op::Minloc),
    ] {
        let t = parse(text);
        let Normalized { nest, origin, .. } =
            normalize(&lower(&t, Reduced(op)).unwrap(), t.arguments()).unwrap();
        let [stream, before, after] = images(op, &t);
        let kind = Kind { direction: Direction::Unpack, operation: Operation::Reduce(op) };
        let plan: Plan<Scheduled> = schedule(&nest, kind, Target::new(Level::Baseline)).unwrap();
        plan.verify().unwrap();
        let right = |plan: &Plan<_>| {
            let (mut user, mut packed) = (before.clone(), stream.clone());
            plan.eval(COUNT, &mut user, origin as usize, &mut packed);
            user == after && packed == stream
        };
        assert!(right(&plan), "{text}\n{plan}");
        for (what, faulty) in plan_faults(&plan) {
            let caught = faulty.verify().is_err()
                || catch_unwind(AssertUnwindSafe(|| !right(&faulty))).unwrap_or(true);
            assert!(caught, "{text}: {what}\n{faulty}");
            n += 1;
        }
        // The verifier must refuse the same calls in a plan whose kind is bytes or another
        // operation. It must also refuse a call that copies in a plan of a reduction.
        let remade = |ops: Vec<plan::PlanOp>, kind: Kind| {
            Plan::<Scheduled>::new(ops, plan.root(), plan.tables().to_vec(), kind, plan.target())
        };
        for other in [Operation::Bytes, Operation::External32, Operation::Reduce(Op::Prod)] {
            let other = remade(plan.ops().to_vec(), Kind { operation: other, ..kind });
            assert!(other.verify().unwrap_err().to_string().contains("another operation"), "{other}");
        }
        let call = strided::call(
            kind.direction,
            Level::Baseline,
            Quantity::fixed(1),
            Offsets::ZERO,
            Quantity::fixed(4),
        );
        let mut ops = plan.ops().to_vec();
        ops[0] = plan::PlanOp::Call { at: Offsets::ZERO, call };
        let copied = remade(ops, kind);
        assert!(copied.verify().unwrap_err().to_string().contains("another operation"), "{copied}");
    }
    assert!(n > 40, "{n} faults");
}

/// Adds the integers of `stream` to those at `places` in `before`, and returns the result. The
/// function works like a loop that loads `at_once` integers before it stores any of them, and that
/// handles the last `again` integers a second time.
fn looped(stream: &[u8], before: &[u8], places: &[usize], at_once: usize, again: usize) -> Vec<u8> {
    let mut user = before.to_vec();
    let number = |bytes: &[u8], at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let all: Vec<(usize, usize)> = places.iter().copied().enumerate().collect();
    let tail = &all[all.len() - again..];
    for group in all.chunks(at_once).chain([tail]) {
        let made: Vec<i32> =
            group.iter().map(|&(i, at)| number(stream, 4 * i).wrapping_add(number(&user, at))).collect();
        for (&(_, at), made) in group.iter().zip(made) {
            user[at..at + 4].copy_from_slice(&made.to_ne_bytes());
        }
    }
    user
}

/// Tests that the oracle notices two wrong loops. A loop that loads ahead of its stores loses sums
/// if entries overlap. A tail that starts before the end of the loop counts values twice.
#[test]
fn loops_that_lose_sums() {
    for (text, overlaps) in [
        ("vector(4, 3, 0, int)", true),
        ("vector(4, 3, 1, int)", true),
        ("resized(0, 4, contiguous(3, int))", true),
        ("vector(5, 3, 4, int)", false),
    ] {
        let t = parse(text);
        let [stream, before, after] = images(Op::Sum, &t);
        let places: Vec<usize> = TypeMap::instances(&t, COUNT).map(|(_, at)| at as usize).collect();
        assert!(looped(&stream, &before, &places, 1, 0) == after, "{text}: one by one");
        assert_eq!(looped(&stream, &before, &places, 8, 0) == after, !overlaps, "{text}: loads ahead");
        assert!(looped(&stream, &before, &places, 1, 2) != after, "{text}: a tail that reaches back");
    }
}
