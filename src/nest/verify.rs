//! Verification of nests. Invariants, in order:
//!
//! 1. a body lies before the node that uses it, inside the vector;
//! 2. the root body is empty or has one node, and that node alone carries the instance count;
//! 3. trips, lengths and tables are not negative; columns of one `Blocks` have one length; rows are not empty;
//! 4. the packed bytes of one instance add up to `size`;
//! 5. phase `Normal`: no empty node, no unit loop alone in a body, no foldable copy, bodies and rows start at offset (0, 0);
//! 6. phase `Normal`: a unit loop (left where inlining would cost too much) covers in a packed stream what its body does.
//!
//! A verifier error is always a fault of ddtc.

use super::{Body, Leaf, LoopNest, Node, Normal, Offsets, Phase, Side, Stream};
use crate::column::{Column, try_with_capacity};
use crate::error::{Error, Result};

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    /// Checks invariants 1 to 4, and 5 and 6 for normal nests.
    ///
    /// # Errors
    /// The first broken invariant, with the node's index.
    pub fn verify(&self) -> Result<()> {
        let fail = |i: usize, what: &str| Err(Error::internal("verify nest", format!("node {i}: {what}")));
        if self.root().range().end > self.nodes().len() {
            return fail(self.nodes().len(), "root body lies outside the nest");
        }
        if self.root().len > 1 {
            return fail(self.root().start as usize, "the root body has more than one node");
        }
        let normal = P::NAME == Normal::NAME;
        // Packed bytes of each node for one iteration of what contains it (and one instance).
        let mut sizes: Vec<i128> = try_with_capacity("verify nest", self.nodes().len())?;
        let moved = |column: &Column| column.iter().next().is_some_and(|first| first != 0);
        let body_size = |sizes: &[i128], b: Body| sizes[b.range()].iter().sum::<i128>();
        for (i, node) in self.nodes().iter().enumerate() {
            let is_root = self.root().range().contains(&i);
            if node.carries_count() != is_root {
                return fail(i, "the root node alone carries the instance count");
            }
            if let Some(b) = node.body() {
                if b.range().end > i {
                    return fail(i, "its body does not lie before it");
                }
                if normal && b.len == 0 {
                    return fail(i, "empty body in a normal nest");
                }
                if normal && self.body(b)[0].at() != Offsets::ZERO {
                    return fail(i, "its body does not start at offset 0");
                }
                if normal && matches!(self.body(b), [Node::Loop { trip, .. }] if trip.is(1)) {
                    return fail(i, "its body is a unit loop");
                }
            }
            let size = match node {
                Node::Loop { trip, step, body, .. } => {
                    let inner = body_size(&sizes, *body);
                    if normal && trip.k == 0 {
                        return fail(i, "loop of trip 0");
                    }
                    if normal && S::NAME == Stream::NAME && trip.is(1) && i128::from(step.packed) != inner {
                        return fail(i, "unit loop that does not cover its body");
                    }
                    if normal && self.foldable(*step, *body) {
                        return fail(i, "dense copy not folded");
                    }
                    i128::from(trip.k) * inner
                }
                Node::Table { displacements, body, .. } => {
                    if normal && moved(displacements) {
                        return fail(i, "its rows do not start at offset 0");
                    }
                    if normal && displacements.len() < 2 {
                        return fail(i, "table of fewer than two rows");
                    }
                    displacements.len() as i128 * body_size(&sizes, *body)
                }
                Node::Blocks { user, packed, len, unit, .. } => {
                    if user.len() != len.len() || packed.len() != len.len() {
                        return fail(i, "columns of different length");
                    }
                    if len.iter().any(|l| l <= 0) {
                        return fail(i, "row that is not positive");
                    }
                    if normal && (moved(user) || moved(packed)) {
                        return fail(i, "its rows do not start at offset 0");
                    }
                    if normal && len.len() < 2 {
                        return fail(i, "blocks of fewer than two rows");
                    }
                    len.iter().map(i128::from).sum::<i128>() * i128::from(unit.packed())
                }
                Node::Copy { n, unit, .. } => {
                    if normal && n.k == 0 {
                        return fail(i, "copy of nothing");
                    }
                    i128::from(n.k) * i128::from(unit.packed())
                }
            };
            sizes.push(size);
        }
        let total = body_size(&sizes, self.root());
        if total != i128::from(self.size()) {
            return fail(
                self.nodes().len(),
                &format!("one instance moves {total} bytes, its size is {}", self.size()),
            );
        }
        Ok(())
    }

    fn foldable(&self, step: Offsets, body: Body) -> bool {
        match self.body(body) {
            [Node::Copy { n, unit, .. }] => !n.per_count && unit.bytes(n.k) == Some(step),
            _ => false,
        }
    }
}
