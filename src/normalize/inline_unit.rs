//! `loop 1 step _ at a { B }`  -->  `B` moved by `a`;  `table [d] at a { B }`  -->  `B` moved by `a + d`.
//!
//! Condition: the trip is the constant 1, and `B` is one node or the budget pays for the copy (a shared body of a DAG would
//! otherwise unfold exponentially). Where the node is all that a body has, that body is `B`, and nothing is copied.

use super::Normalizer;
use crate::nest::{At, Body, Node, Trip};

/// The body that `node` runs once: where, its packed stride, and the body.
pub(super) fn once(node: &Node) -> Option<(At, i64, Body)> {
    match node {
        Node::Loop { at, trip, step, body } if trip.is(1) => Some((*at, step.packed, *body)),
        Node::Table { at, displacements, packed, body } if displacements.len() == 1 => {
            Some((*at + At::new(displacements.get(0), 0), *packed, *body))
        }
        _ => None,
    }
}

/// Appends the inlined body to `out`, or gives the node back.
pub(super) fn rewrite(n: &mut Normalizer, node: Node, out: &mut Vec<Node>) -> Option<Node> {
    let Some((at, packed, body)) = once(&node) else { return Some(node) };
    if body.len > 1 && !n.spend(body.len as usize) {
        // Canonical spelling of "once": a unit loop without a user stride. Its packed stride is what it covers of the stream.
        return Some(Node::Loop { at, trip: Trip::fixed(1), step: At::new(0, packed), body });
    }
    out.extend(n.body(body).iter().map(|inner| inner.placed(inner.at() + at)));
    None
}
