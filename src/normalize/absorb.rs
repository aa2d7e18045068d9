//! `loop k step s at a B; X`  -->  `loop k+1 step s at a B`, where `X` equals `B` and is at the
//! offset that iteration `k` would have. This rewrite also absorbs an `X` that stands before the
//! loop, unless `X` is itself a loop with a constant trip. It also joins two loops if the second
//! continues the first.
//!
//! Condition: the trips are constant, the strides are equal, and `X` has the required offset on
//! both sides. In addition, either `B` is a single node, or both neighbours are loops over the same
//! body. This rewrite merges copies across the boundary of a loop without peeling an iteration.

use super::Normalizer;
use crate::column::try_with_capacity;
use crate::error::Result;
use crate::nest::{Leaf, Node, Offsets, Quantity};

/// Absorbs neighbours into loops, going through the list from left to right.
pub(super) fn rewrite<L: Leaf>(n: &mut Normalizer<L>, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
    if list.len() < 2 || !list.iter().any(|node| matches!(node, Node::Loop { .. })) {
        return Ok(list);
    }
    let mut out: Vec<Node<L>> = try_with_capacity("normalize", list.len())?;
    for node in list {
        match out.last().and_then(|last| joined(n, last, &node)) {
            Some(both) => {
                out.pop();
                n.simplify(both, &mut out)?;
            }
            None => out.push(node),
        }
    }
    Ok(out)
}

/// Returns one loop that moves what `a` and then `b` move, or `None` if there is no such loop.
fn joined<L: Leaf>(n: &Normalizer<L>, a: &Node<L>, b: &Node<L>) -> Option<Node<L>> {
    match (a, b) {
        (
            Node::Loop { at, trip, step, body },
            Node::Loop { at: at2, trip: trip2, step: step2, body: body2 },
        ) if body == body2 && step == step2 && !trip.per_count && !trip2.per_count => {
            (*at2 == at.step(*step, trip.k as i64)).then(|| extended(*at, trip.k + trip2.k, *step, *body))
        }
        (Node::Loop { at, trip, step, body }, x) if !trip.per_count => {
            let one = only_node(n, *body, x)?;
            (x.offsets() == at.step(*step, trip.k as i64) + one)
                .then(|| extended(*at, trip.k + 1, *step, *body))
        }
        (x, Node::Loop { at, trip, step, body }) if !trip.per_count => {
            let one = only_node(n, *body, x)?;
            let before = at.step(*step, -1);
            (x.offsets() == before + one).then(|| extended(before, trip.k + 1, *step, *body))
        }
        _ => None,
    }
}

fn extended<L: Leaf>(at: Offsets, k: u64, step: Offsets, body: crate::nest::Body) -> Node<L> {
    Node::Loop { at, trip: Quantity::fixed(k), step, body }
}

/// Returns the offset of the only node of `body`, if that node equals `x` apart from its offset.
fn only_node<L: Leaf>(n: &Normalizer<L>, body: crate::nest::Body, x: &Node<L>) -> Option<Offsets> {
    match n.body(body) {
        [only] if only.equal_except_offset(x) => Some(only.offsets()),
        _ => None,
    }
}
