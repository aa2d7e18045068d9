//! Legalization: replaces every move by loads and stores that the target has.
//!
//! A move of `len` bytes becomes accesses of 64, 32, 16, 8, 4, 2, 1 bytes. Where possible, one
//! access covers the rest of the move and overlaps the access before it. The overlapped bytes
//! belong to the same block and are written twice with the same value, so no byte outside the block
//! is written. An access of 64 bytes (a whole cache line) never overlaps another in this way,
//! because it would be misaligned and cross two lines.
//!
//! If the emitter has permutations, 64 packed bytes whose words lie near each other in user memory
//! may become one permutation. They do so if the permutation replaces enough stores. This is the
//! only decision of legalization that depends on costs.

use smallvec::SmallVec;

use crate::error::Result;
use crate::kind::Direction;
use crate::plan::{Body, Legal, Offsets, Plan, PlanOp, Scheduled, Words};
use crate::target::{Accesses, cost};

/// Splits the moves of `plan` into `accesses`, and joins moves into permutations.
///
/// # Errors
/// None at present, because every move can be split.
pub fn legalize(plan: &Plan<Scheduled>, accesses: impl Into<Accesses>) -> Result<Plan<Legal>> {
    let accesses = accesses.into();
    let mut ops: Vec<PlanOp> = Vec::with_capacity(plan.ops().len() + 8);
    // Maps the index of each old operation to the index of the first new operation that it becomes.
    // Moves that are legalized together form a run. All moves of a run are mapped to the first new
    // operation of that run, which is harmless because no body begins or ends inside a run. The
    // order of the operations is kept, so the operations of a body remain consecutive.
    let mut starts: Vec<u32> = Vec::with_capacity(plan.ops().len() + 1);
    let moved = |body: Body, starts: &[u32], end: u32| {
        let range = body.range();
        let start = starts.get(range.start).copied().unwrap_or(end);
        let stop = starts.get(range.end).copied().unwrap_or(end);
        Body { start, len: stop - start }
    };
    let BodyFacts { is_boundary, repeated } = BodyFacts::new(plan);
    let mut run: Vec<Move> = Vec::new();
    // Moves that follow each other in one body are collected and legalized together. All other
    // operations are copied, and the indices of their bodies are updated.
    for (i, op) in plan.ops().iter().enumerate() {
        if let PlanOp::Move { at, len } = op {
            starts.push(ops.len() as u32);
            if run.is_empty() {
                run.reserve(plan.ops().len() - i);
            }
            run.push(Move { at: *at, len: *len });
            let goes_on = matches!(plan.ops().get(i + 1), Some(PlanOp::Move { .. })) && !is_boundary[i + 1];
            if !goes_on {
                legalize_run(
                    &run,
                    RunContext { accesses, direction: plan.direction(), repeated: repeated[i] },
                    &mut ops,
                );
                run.clear();
            }
            continue;
        }
        let end = ops.len() as u32;
        starts.push(end);
        match op {
            PlanOp::Loop { .. } | PlanOp::Table { .. } => {
                let mut op = op.clone();
                if let PlanOp::Loop { body, .. } | PlanOp::Table { body, .. } = &mut op {
                    *body = moved(*body, &starts, end);
                }
                ops.push(op);
            }
            PlanOp::Guard { limit, then, otherwise } => {
                let [then, otherwise] = [then, otherwise].map(|b| moved(*b, &starts, end));
                ops.push(PlanOp::Guard { limit: *limit, then, otherwise });
            }
            _ => ops.push(op.clone()),
        }
    }
    let end = ops.len() as u32;
    let root = moved(plan.root(), &starts, end);
    Ok(Plan::new(ops, root, plan.tables().to_vec(), plan.kind(), plan.target()))
}

/// Facts about each operation of a plan that depend on which body contains the operation.
struct BodyFacts {
    /// Whether a body begins with the operation or ends just before it.
    is_boundary: Vec<bool>,
    /// Whether the operation lies directly in the body of a loop that has a constant trip of 2 or
    /// more. Such a loop repeats the operation for any instance count.
    repeated: Vec<bool>,
}

impl BodyFacts {
    fn new(plan: &Plan<Scheduled>) -> BodyFacts {
        let none = vec![false; plan.ops().len() + 1];
        let mut bodies = BodyFacts { is_boundary: none.clone(), repeated: none };
        for op in plan.ops() {
            match op {
                PlanOp::Guard { then, otherwise, .. } => {
                    [then, otherwise].into_iter().for_each(|body| bodies.mark_ends(*body))
                }
                op => op.body().into_iter().for_each(|body| bodies.mark_ends(body)),
            }
            if let PlanOp::Loop { trip, body, .. } = op
                && !trip.per_count
                && trip.k > 1
            {
                bodies.repeated[body.range()].fill(true);
            }
        }
        bodies.mark_ends(plan.root());
        bodies
    }

    fn mark_ends(&mut self, body: Body) {
        let range = body.range();
        self.is_boundary[range.start] = true;
        self.is_boundary[range.end] = true;
    }
}

/// A move of the scheduled plan, or what is left of such a move.
#[derive(Clone, Copy)]
struct Move {
    at: Offsets,
    len: u32,
}

impl Move {
    /// Returns the part of the move after its first `bytes` bytes.
    fn rest(self, bytes: u32) -> Move {
        Move { at: self.at + Offsets::new(bytes.into(), bytes.into()), len: self.len - bytes }
    }
}

/// Facts about consecutive moves that decide which operations they become.
#[derive(Clone, Copy)]
struct RunContext {
    accesses: Accesses,
    direction: Direction,
    /// Whether the moves lie directly in the body of a loop with a constant trip of at least 2, so
    /// that the indices and masks of a permutation are computed once and used several times.
    repeated: bool,
}

/// Appends the legal operations for consecutive moves to `ops`, in the order of the moves.
fn legalize_run(moves: &[Move], context: RunContext, ops: &mut Vec<PlanOp>) {
    let mut rest = moves;
    // Number of bytes at the start of the first remaining move that an earlier permutation has
    // already moved.
    let mut consumed = 0;
    let mut last = None;
    while let [first, others @ ..] = rest {
        let first = first.rest(consumed);
        match permutation(first, others, context, last) {
            Some(Permuted { at, words, moves, bytes }) => {
                ops.push(PlanOp::Permute { at, words });
                last = Some(words);
                rest = &rest[moves..];
                consumed = if moves == 0 { consumed + bytes } else { bytes };
            }
            None => {
                accesses(first.len, context.accesses.widest, |offset, len| {
                    ops.push(PlanOp::Move { at: first.at + Offsets::new(offset.into(), offset.into()), len })
                });
                rest = others;
                consumed = 0;
            }
        }
    }
}

/// A permutation that replaces moves. `moves` is the number of moves that it replaces completely,
/// and `bytes` is the number of bytes of the next move that it also moves.
struct Permuted {
    at: Offsets,
    words: Words,
    moves: usize,
    bytes: u32,
}

/// Returns one permutation that moves the first 64 packed bytes of `first` and `others`, if that
/// replaces enough stores. The permutation has words of 8 bytes if possible, else of 4 bytes.
/// `last` has the words of the permutation that was made last for the same run of moves, if any.
fn permutation(first: Move, others: &[Move], context: RunContext, last: Option<Words>) -> Option<Permuted> {
    if !context.accesses.permutes || !within_span(first, others) {
        return None;
    }
    let gathered = |unit| {
        let mut offsets: SmallVec<[i64; 16]> = SmallVec::new();
        let mut left = Words::BYTES;
        let mut stores = Stores { direction: context.direction, number: 0, single: false };
        let mut done = (0, 0);
        // Collect the user offsets of all words in the 64 packed bytes, and count the stores that
        // plain moves of these bytes would need.
        for (i, part) in [first].iter().chain(others).enumerate() {
            let taken = part.len.min(left);
            if !taken.is_multiple_of(unit) {
                return None;
            }
            let from = part.at.user.wrapping_sub(first.at.user);
            offsets.extend((0..i64::from(taken / unit)).map(|k| from.wrapping_add(k * i64::from(unit))));
            stores.add(taken);
            left -= taken;
            done = if taken == part.len { (i + 1, 0) } else { (i, taken) };
            if left == 0 {
                break;
            }
        }
        let (lowest, words) = Words::new(unit, &offsets)?;
        // Unpacking words of 4 bytes needs indices and masks. If only this permutation uses them,
        // it must replace more stores to be worth its cost.
        let min_stores = match context.direction {
            Direction::Pack => cost::PERMUTED_PACK,
            Direction::Unpack if unit == 8 || context.repeated || last == Some(words) => {
                cost::PERMUTED_UNPACK
            }
            Direction::Unpack => cost::PERMUTED_UNPACK + cost::PERMUTED_FORM,
        };
        let at = first.at + Offsets::new(lowest, 0);
        (stores.number >= min_stores).then_some(Permuted { at, words, moves: done.0, bytes: done.1 })
    };
    gathered(8).or_else(|| gathered(4))
}

/// Returns true if the moves have 64 adjacent packed bytes, and the user bytes of these lie within
/// the span that a permutation can cover. This check does not depend on the length of the words.
fn within_span(first: Move, others: &[Move]) -> bool {
    let (mut left, mut low, mut high) = (Words::BYTES, 0, 0);
    for part in [first].iter().chain(others) {
        let taken = part.len.min(left);
        let packed = first.at.packed.wrapping_add((Words::BYTES - left).into());
        let from = part.at.user.wrapping_sub(first.at.user);
        (low, high) = (from.min(low), from.saturating_add(taken.into()).max(high));
        if part.at.packed != packed || high.saturating_sub(low) > Words::MAX_SPAN.into() {
            return false;
        }
        left -= taken;
        if left == 0 {
            return true;
        }
    }
    false
}

/// Counter of the stores that moves would need without a permutation.
struct Stores {
    direction: Direction,
    number: u32,
    /// Whether the last store has a single word of 8 bytes, so that the next word of 8 bytes can be
    /// combined with it into one store.
    single: bool,
}

impl Stores {
    /// Adds the stores for a move of `len` bytes. Packing combines two words of 8 bytes into one
    /// store.
    fn add(&mut self, len: u32) {
        let joined = self.direction == Direction::Pack && len == 8 && self.single;
        self.single = len == 8 && !joined;
        if !joined {
            accesses(len, Words::BYTES, |_, _| self.number += 1);
        }
    }
}

/// Splits `len` bytes into accesses of at most `widest` bytes, and calls `f(offset, width)` for
/// each access.
fn accesses(len: u32, widest: u32, mut f: impl FnMut(u32, u32)) {
    let mut offset = 0;
    while offset < len {
        let rest = len - offset;
        let width = (1 << rest.ilog2()).min(widest);
        // Use the smallest access that covers the rest, if the bytes before the rest that it also
        // covers all belong to this block.
        let cover = rest.next_power_of_two();
        if cover <= widest.min(32) && cover != rest && offset + rest >= cover {
            f(len - cover, cover);
            return;
        }
        f(offset, width);
        offset += width;
    }
}

#[cfg(test)]
mod tests {
    use super::accesses;

    fn split(len: u32, widest: u32) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        accesses(len, widest, |o, w| out.push((o, w)));
        out
    }

    #[test]
    fn tails_overlap_inside_the_block() {
        assert_eq!(split(1, 16), [(0, 1)]);
        assert_eq!(split(3, 16), [(0, 2), (2, 1)]);
        assert_eq!(split(7, 16), [(0, 4), (3, 4)]);
        assert_eq!(split(12, 16), [(0, 8), (8, 4)]);
        assert_eq!(split(20, 16), [(0, 16), (16, 4)]);
        assert_eq!(split(24, 16), [(0, 16), (16, 8)]);
        assert_eq!(split(27, 16), [(0, 16), (11, 16)]);
        assert_eq!(split(24, 8), [(0, 8), (8, 8), (16, 8)]);
        assert_eq!(split(40, 32), [(0, 32), (32, 8)]);
        assert_eq!(split(60, 32), [(0, 32), (28, 32)]);
        assert_eq!(split(120, 64), [(0, 64), (64, 32), (88, 32)]);
    }

    #[test]
    fn every_length_is_covered_and_nothing_else() {
        for widest in [8, 16, 32, 64] {
            for len in 1..200_u32 {
                let mut hit = vec![false; len as usize];
                for (o, w) in split(len, widest) {
                    assert!(o + w <= len && w <= widest && w.is_power_of_two());
                    hit[o as usize..(o + w) as usize].fill(true);
                }
                assert!(hit.into_iter().all(|h| h), "length {len}");
            }
        }
    }
}
