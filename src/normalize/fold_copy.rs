//! `loop k step (u, p) at a { copy n }`  -->  `copy k*n at a`.
//!
//! Condition: the copy is `u` bytes long in user memory and `p` bytes in the packed stream. The
//! trip may be `k * count`.

use super::Normalizer;
use crate::nest::{Leaf, Node, Quantity};

/// Folds a loop over a dense copy into one copy.
pub(super) fn rewrite<L: Leaf>(n: &Normalizer<L>, node: Node<L>) -> Node<L> {
    if let Node::Loop { at, trip, step, body } = &node
        && let [Node::Copy { n: Quantity { k, per_count: false }, unit, .. }] = n.body(*body)
        && unit.bytes(*k) == Some(*step)
        && let Some(total) = trip.times(Quantity::fixed(*k))
    {
        return Node::Copy { at: *at, n: total, unit: *unit };
    }
    node
}
