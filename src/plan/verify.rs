//! Verification of plans. Invariants, in order:
//!
//! 1. a body lies before the operation that uses it, inside the vector;
//! 2. a loop over the rows of a table names a column (a table of integers) of the plan;
//! 3. unroll factors and trips are at least 1, and the step of a loop is not 0 on both sides;
//! 4. straight-line moves occur only in plans that move bytes; a plan in phase `Scheduled` has at
//!    most [`MAX_MOVES`] of them, and a plan in phase `Legal` has at most the number of accesses
//!    into which legalization can split [`MAX_MOVES`] moves;
//! 5. phase `Legal`: the length of every move is a power of two of at most 64 bytes; permutations
//!    occur in this phase only, for targets with AVX-512;
//! 6. a call has the plan's direction, and it copies bytes or treats values as the plan's operation
//!    says. The level of its micro-kernel is included in the target. The arguments suit the
//!    micro-kernel (`Call::verify`): each argument has the kind that its role demands; there is
//!    something to move; at most one argument is a multiple of the instance count; the length is
//!    the one for which the micro-kernel is made; and the conditions of its family hold.

use super::{Legal, MAX_MOVED, MAX_MOVES, Moving, Phase, Plan, PlanOp};
use crate::error::{Error, Result};
use crate::kind::Operation;
use crate::target::Level;

impl<P: Phase> Plan<P> {
    /// Checks the invariants that are listed at the top of this file.
    ///
    /// # Errors
    /// The error names a broken invariant and the index of the first operation that breaks an
    /// invariant. The index is the number of operations if the root body lies outside the plan, or
    /// if there are too many straight-line moves.
    pub fn verify(&self) -> Result<()> {
        let fail =
            |i: usize, what: &str| Err(Error::internal("verify plan", format!("operation {i}: {what}")));
        let legal = P::NAME == Legal::NAME;
        if self.root().range().end > self.ops().len() {
            return fail(self.ops().len(), "root body lies outside the plan");
        }
        // Check each operation separately, and count the straight-line moves and permutations.
        let mut moves = 0;
        for (i, op) in self.ops().iter().enumerate() {
            if op.body().is_some_and(|b| b.range().end > i) {
                return fail(i, "its body does not lie before it");
            }
            match op {
                PlanOp::Loop { unroll, trip, step, .. } => {
                    if *unroll == 0 || trip.k == 0 {
                        return fail(i, "loop of unroll 0 or trip 0");
                    }
                    if Moving::from_step(*step).is_none() {
                        return fail(i, "loop that moves on neither side");
                    }
                }
                PlanOp::Guard { then, otherwise, .. } => {
                    if then.range().end > i || otherwise.range().end > i {
                        return fail(i, "its bodies do not lie before it");
                    }
                }
                PlanOp::Move { len, .. } => {
                    moves += 1;
                    if self.kind().operation != Operation::Bytes {
                        return fail(i, "move of bytes in a plan of values");
                    }
                    if *len == 0 || (legal && !(len.is_power_of_two() && *len <= 64)) {
                        return fail(i, "move of a width that the target does not have");
                    }
                }
                PlanOp::Permute { .. } => {
                    moves += 1;
                    if self.kind().operation != Operation::Bytes {
                        return fail(i, "permutation of bytes in a plan of values");
                    }
                    if !legal || !self.target().includes(Level::Avx512) {
                        return fail(i, "permutation that the target does not have, or that is too early");
                    }
                }
                PlanOp::Table { table, .. } => {
                    if self.column(*table).is_none() {
                        return fail(i, "loop over a table that is no column");
                    }
                }
                PlanOp::Call { call, .. } => {
                    if call.callee().direction() != self.direction() {
                        return fail(i, "micro-kernel of the other direction");
                    }
                    if !call.callee().transform().serves(self.kind().operation) {
                        return fail(i, "micro-kernel of another operation");
                    }
                    if !self.target().includes(call.callee().level()) {
                        return fail(i, "micro-kernel of a level that the target does not have");
                    }
                    if let Err(what) = call.verify(self.tables()) {
                        return fail(i, what);
                    }
                }
            }
        }
        // Legalization splits a move into at most one access for each 8 bytes and three more for
        // the remaining bytes.
        if moves > if legal { MAX_MOVED as usize / 8 + 3 * MAX_MOVES } else { MAX_MOVES } {
            return fail(self.ops().len(), "too many straight-line moves");
        }
        Ok(())
    }
}
