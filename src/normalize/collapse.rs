//! `loop k1 step s1 at a { loop k2 step s2 B }`  -->  `loop k1*k2 step s2 at a B`.
//!
//! Condition: the inner loop is the only node of the outer loop's body, and `s1 = k2 * s2` on both
//! sides. `k1` may be `k * count`. The inner loop is always at offset zero, because the first node
//! of every body is at offset zero.

use super::Normalizer;
use crate::nest::{Leaf, Node, Offsets};

/// Collapses two perfectly nested loops into one if each iteration of the outer loop begins where
/// the next iteration of the inner loop would be.
pub(super) fn rewrite<L: Leaf>(n: &Normalizer<L>, node: Node<L>) -> Node<L> {
    if let Node::Loop { at, trip, step, body } = &node
        && let [Node::Loop { at: inner_at, trip: inner, step: inner_step, body: inner_body }] = n.body(*body)
        && !inner.per_count
        && let Ok(k) = i64::try_from(inner.k)
        && inner_step.user.checked_mul(k) == Some(step.user)
        && inner_step.packed.checked_mul(k) == Some(step.packed)
        && let Some(total) = trip.times(*inner)
    {
        debug_assert_eq!(*inner_at, Offsets::ZERO);
        return Node::Loop { at: *at, trip: total, step: *inner_step, body: *inner_body };
    }
    node
}
