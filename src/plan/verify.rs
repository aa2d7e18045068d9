//! Verification of plans. Invariants, in order:
//!
//! 1. a body lies before the operation that uses it, inside the vector;
//! 2. slots name existing columns, and the columns of one `Blocks` have one length;
//! 3. unroll factors are at least 1; loops and calls of a constant trip have one;
//! 4. at most [`MAX_MOVES`](super::MAX_MOVES) straight-line moves in the whole plan, and as many legal ones as those can become;
//! 5. phase `Legal`: every move is a power of two of at most 64 bytes;
//! 6. a micro-kernel moves blocks of the length that it is made for, reads columns of its widths, and goes the plan's way;
//! 7. the instances of a pattern are dense in the packed stream.

use super::{Legal, MAX_MOVED, MAX_MOVES, Op, Phase, Plan};
use crate::error::{Error, Result};
use crate::micro::{Family, Micro, Width, Widths};

impl<P: Phase> Plan<P> {
    /// Checks the invariants above.
    ///
    /// # Errors
    /// The first broken invariant, with the operation's index.
    pub fn verify(&self) -> Result<()> {
        let fail =
            |i: usize, what: &str| Err(Error::internal("verify plan", format!("operation {i}: {what}")));
        let legal = P::NAME == Legal::NAME;
        if self.root().range().end > self.ops().len() {
            return fail(self.ops().len(), "root body lies outside the plan");
        }
        let mut moves = 0;
        for (i, op) in self.ops().iter().enumerate() {
            if op.body().is_some_and(|b| b.range().end > i) {
                return fail(i, "its body does not lie before it");
            }
            let has = |slot: u32| (slot as usize) < self.columns().len();
            match op {
                Op::Loop { unroll, trip, .. } => {
                    if *unroll == 0 || trip.k == 0 {
                        return fail(i, "loop of unroll 0 or trip 0");
                    }
                }
                Op::Guard { then, otherwise, .. } => {
                    if then.range().end > i || otherwise.range().end > i {
                        return fail(i, "its bodies do not lie before it");
                    }
                }
                Op::Transpose { trips, .. } => {
                    if trips.iter().any(|t| t.k == 0) || trips.iter().filter(|t| t.per_count).count() > 1 {
                        return fail(i, "transpose of nothing, or that carries the instance count twice");
                    }
                }
                Op::Move { len, .. } => {
                    moves += 1;
                    if *len == 0 || (legal && !(len.is_power_of_two() && *len <= 64)) {
                        return fail(i, "move of a width that the target does not have");
                    }
                }
                Op::Strided { n, len, .. } => {
                    if n.k == 0 || len.k == 0 {
                        return fail(i, "call that moves nothing");
                    }
                    if n.per_count && len.per_count {
                        return fail(i, "call that carries the instance count twice");
                    }
                }
                Op::Table { slot, .. } | Op::Rows { slot, .. } => {
                    if !has(*slot) {
                        return fail(i, "slot without a column");
                    }
                }
                Op::Pattern { parts, step, slot, .. } => {
                    if !has(*slot) {
                        return fail(i, "slot without a column");
                    }
                    let mut dense = 0;
                    for part in parts.iter() {
                        dense += if part.packed == dense {
                            part.len
                        } else {
                            return fail(i, "parts that are not dense");
                        };
                    }
                    if i64::try_from(dense) != Ok(step.packed) {
                        return fail(i, "instances that are not dense in the packed stream");
                    }
                }
                Op::Blocks { slots, .. } => {
                    if !slots.iter().all(|&s| has(s)) {
                        return fail(i, "slot without a column");
                    }
                    let [a, b, c] = slots.map(|s| &self.columns()[s as usize]);
                    if a.len() != b.len() || b.len() != c.len() {
                        return fail(i, "columns of different length");
                    }
                }
            }
        }
        if let Some(i) = self.ops().iter().position(|op| !self.fits(op)) {
            return fail(i, "micro-kernel made for another length, column or direction");
        }
        // A move becomes one access a word at most, and three for what is left of it.
        if moves > if legal { MAX_MOVED as usize / 8 + 3 * MAX_MOVES } else { MAX_MOVES } {
            return fail(self.ops().len(), "too many straight-line moves");
        }
        Ok(())
    }

    /// Invariant 6.
    fn fits(&self, op: &Op) -> bool {
        let made = |micro: &Micro, len: u64| micro.made_for().is_none_or(|made| made == len);
        let width = |slot: u32| Width::of(&self.columns()[slot as usize]);
        let direction = self.direction();
        match op {
            Op::Strided { micro, len, .. } => {
                matches!(micro.family(), Family::Strided | Family::Stream) && made(micro, len.k)
            }
            Op::Rows { micro, len, slot, .. } => {
                micro.family() == Family::Rows(width(*slot), direction) && made(micro, *len)
            }
            Op::Blocks { micro, slots: [user, packed, len], .. } => {
                let widths = Widths { user: width(*user), packed: width(*packed), len: width(*len) };
                micro.family() == Family::Blocks(widths, direction)
            }
            Op::Pattern { micro, .. } => {
                matches!(micro.family(), Family::Pattern(_, way) if way == direction)
            }
            Op::Transpose { micro, len, .. } => micro.family() == Family::Transpose && made(micro, *len),
            Op::Loop { .. } | Op::Table { .. } | Op::Move { .. } | Op::Guard { .. } => true,
        }
    }
}
