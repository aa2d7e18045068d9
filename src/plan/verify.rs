//! Verification of plans. Invariants, in order:
//!
//! 1. a body lies before the operation that uses it, inside the vector;
//! 2. table loops name columns;
//! 3. unroll factors and trips are at least 1, and a loop moves on one side at least;
//! 4. straight-line moves are of bytes, and at most [`MAX_MOVES`] of them are in the whole plan, and as many legal ones
//!    as those can become;
//! 5. phase `Legal`: every move is a power of two of at most 64 bytes; permutations are in that phase only, for targets with AVX-512;
//! 6. a call goes the plan's way, copies or does what the plan's operation does to a value, by a micro-kernel of a level that the target
//!    includes, with the arguments that it takes
//!    (`Call::verify`): each of its role's kind, something to move, the count in one of them at most, the length that it is made for, and
//!    what its family asks.

use super::{Legal, MAX_MOVED, MAX_MOVES, Moving, Op, Phase, Plan};
use crate::error::{Error, Result};
use crate::kind::Operation;
use crate::target::Level;

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
            match op {
                Op::Loop { unroll, trip, step, .. } => {
                    if *unroll == 0 || trip.k == 0 {
                        return fail(i, "loop of unroll 0 or trip 0");
                    }
                    if Moving::of(*step).is_none() {
                        return fail(i, "loop that moves on neither side");
                    }
                }
                Op::Guard { then, otherwise, .. } => {
                    if then.range().end > i || otherwise.range().end > i {
                        return fail(i, "its bodies do not lie before it");
                    }
                }
                Op::Move { len, .. } => {
                    moves += 1;
                    if self.kind().operation != Operation::Bytes {
                        return fail(i, "move of bytes in a plan of values");
                    }
                    if *len == 0 || (legal && !(len.is_power_of_two() && *len <= 64)) {
                        return fail(i, "move of a width that the target does not have");
                    }
                }
                Op::Permute { .. } => {
                    moves += 1;
                    if self.kind().operation != Operation::Bytes {
                        return fail(i, "permutation of bytes in a plan of values");
                    }
                    if !legal || !self.target().includes(Level::Avx512) {
                        return fail(i, "permutation that the target does not have, or that is too early");
                    }
                }
                Op::Table { table, .. } => {
                    if self.column(*table).is_none() {
                        return fail(i, "loop over a table that is no column");
                    }
                }
                Op::Call { call, .. } => {
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
        // A move becomes one access a word at most, and three for what is left of it.
        if moves > if legal { MAX_MOVED as usize / 8 + 3 * MAX_MOVES } else { MAX_MOVES } {
            return fail(self.ops().len(), "too many straight-line moves");
        }
        Ok(())
    }
}
