//! Verification of nests. Invariants, in order:
//!
//! 1. a body lies before the node that uses it, inside the vector;
//! 2. the root body is empty or has one node, and only that node has a trip or length that is a
//!    multiple of the instance count;
//! 3. the columns of a `Blocks` node are equally long, and the lengths of its rows are positive;
//! 4. the packed bytes of one instance add up to `size`;
//! 5. phase `Normal`: there is no empty node, no body that consists of a unit loop (a loop with the
//!    constant trip 1), and no loop over a copy that could be folded into one copy; rows start at
//!    offset (0, 0), and so do all bodies except the root body;
//! 6. phase `Normal`: if the packed side is a stream, the packed step of a unit loop is the number
//!    of packed bytes of its body. Unit loops remain in a normal nest where inlining them would
//!    cost too much.
//!
//! An error of the verifier is a fault of ddtc, unless its class is `NoMem`.

use super::{Body, Leaf, LoopNest, Node, Normal, Offsets, Phase, Side, Stream};
use crate::column::{Column, try_with_capacity};
use crate::error::{Error, Result};

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    /// Checks invariants 1 to 4 of the list at the top of this file, and for normal nests also 5
    /// and 6.
    ///
    /// # Errors
    /// The error names a broken invariant and the index of the first node that breaks an invariant.
    /// The index is the number of nodes if the root body lies outside the nest, or if the packed
    /// bytes do not add up to `size`. The class is `NoMem` if there is no memory for the check.
    pub fn verify(&self) -> Result<()> {
        let (root, end) = (self.root(), self.nodes().len());
        if root.range().end > end {
            return broken(end, "root body lies outside the nest");
        }
        if root.len > 1 {
            return broken(root.start as usize, "the root body has more than one node");
        }
        // Number of packed bytes of each node, in one iteration of the node that contains it and
        // for one instance.
        let mut sizes: Vec<i128> = try_with_capacity("verify nest", end)?;
        for (i, node) in self.nodes().iter().enumerate() {
            if node.carries_count() != root.range().contains(&i) {
                return broken(i, "the root node alone carries the instance count");
            }
            if let Some(body) = node.body() {
                self.verify_body(i, body)?;
            }
            let size = verified_size(i, node, &sizes)?;
            if P::NAME == Normal::NAME {
                self.verify_normal(i, node, &sizes)?;
            }
            sizes.push(size);
        }
        let total = sizes[root.range()].iter().sum::<i128>();
        if total != i128::from(self.size()) {
            return broken(end, &format!("one instance moves {total} bytes, its size is {}", self.size()));
        }
        Ok(())
    }

    /// Verifies the body of node `i`.
    fn verify_body(&self, i: usize, body: Body) -> Result<()> {
        let normal = P::NAME == Normal::NAME;
        if body.range().end > i {
            return broken(i, "its body does not lie before it");
        }
        if normal && body.len == 0 {
            return broken(i, "empty body in a normal nest");
        }
        if normal && self.body(body)[0].offsets() != Offsets::ZERO {
            return broken(i, "its body does not start at offset 0");
        }
        if normal && matches!(self.body(body), [Node::Loop { trip, .. }] if trip.is(1)) {
            return broken(i, "its body is a unit loop");
        }
        Ok(())
    }

    /// Verifies node `i` for phase `Normal`. `sizes` has the number of packed bytes of each node
    /// before node `i`.
    fn verify_normal(&self, i: usize, node: &Node<L>, sizes: &[i128]) -> Result<()> {
        let moved = |column: &Column| column.iter().next().is_some_and(|first| first != 0);
        match node {
            Node::Loop { trip, .. } if trip.k == 0 => broken(i, "loop of trip 0"),
            Node::Loop { trip, step, body, .. }
                if S::NAME == Stream::NAME
                    && trip.is(1)
                    && i128::from(step.packed) != sizes[body.range()].iter().sum::<i128>() =>
            {
                broken(i, "unit loop that does not cover its body")
            }
            Node::Loop { step, body, .. } if self.foldable(*step, *body) => {
                broken(i, "dense copy not folded")
            }
            Node::Table { displacements, .. } if moved(displacements) => {
                broken(i, "its rows do not start at offset 0")
            }
            Node::Table { displacements, .. } if displacements.len() < 2 => {
                broken(i, "table of fewer than two rows")
            }
            Node::Blocks { user, packed, .. } if moved(user) || moved(packed) => {
                broken(i, "its rows do not start at offset 0")
            }
            Node::Blocks { len, .. } if len.len() < 2 => broken(i, "blocks of fewer than two rows"),
            Node::Copy { n, .. } if n.k == 0 => broken(i, "copy of nothing"),
            _ => Ok(()),
        }
    }

    fn foldable(&self, step: Offsets, body: Body) -> bool {
        match self.body(body) {
            [Node::Copy { n, unit, .. }] => !n.per_count && unit.bytes(n.k) == Some(step),
            _ => false,
        }
    }
}

/// Returns the error for node `i`.
fn broken<T>(i: usize, what: &str) -> Result<T> {
    Err(Error::internal("verify nest", format!("node {i}: {what}")))
}

/// Checks the columns of node `i`, and returns the number of its packed bytes in one iteration of
/// the node that contains it. `sizes` has the number of packed bytes of each node before node `i`.
fn verified_size<L: Leaf>(i: usize, node: &Node<L>, sizes: &[i128]) -> Result<i128> {
    let inner = |body: &Body| sizes[body.range()].iter().sum::<i128>();
    Ok(match node {
        Node::Loop { trip, body, .. } => i128::from(trip.k) * inner(body),
        Node::Table { displacements, body, .. } => displacements.len() as i128 * inner(body),
        Node::Blocks { user, packed, len, .. } if user.len() != len.len() || packed.len() != len.len() => {
            return broken(i, "columns of different length");
        }
        Node::Blocks { len, .. } if len.iter().any(|l| l <= 0) => {
            return broken(i, "row that is not positive");
        }
        Node::Blocks { len, unit, .. } => {
            len.iter().map(i128::from).sum::<i128>() * i128::from(unit.packed())
        }
        Node::Copy { n, unit, .. } => i128::from(n.k) * i128::from(unit.packed()),
    })
}
