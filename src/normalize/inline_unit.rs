//! `loop 1 step _ at a { B }`  -->  `B` moved by `a`;  `table [d] at a { B }`  -->  `B` moved by `a
//! + d`.
//!
//! Condition: the trip is the constant 1, and the budget pays for the copy of `B`. The cost of the
//! copy is that of the nodes of `B`, if there are several, and that of its rows. Rows count because
//! the rows of blocks are merged with their neighbours wherever `B` is inlined, and the rows of a
//! table are read again. Without a budget, the inlining of shared bodies could take exponential
//! time and memory, and a node with many rows costs as much as many nodes. Either all unit loops
//! and one-row tables of a list are inlined, or only those that cost nothing. In the second case a
//! struct of equal members remains a table over one member. If the node is the only one in its
//! body, that body is replaced by `B`, and nothing is copied.
//!
//! If only one node uses a body, the body can also be inlined into that node before it is
//! rewritten. Nothing is then copied twice, so this costs nothing, and a chain of structs takes
//! linear time. It is done only if the budget did not suffice. Rewriting the body first is better,
//! because regular patterns inside the body are then found before its nodes are mixed with their
//! neighbours.

use super::{Bodies, Normalizer, drop_empty};
use crate::column::try_reserve;
use crate::error::Result;
use crate::nest::rows::Row;
use crate::nest::{Body, Leaf, LoopNest, Lowered, Node, Offsets, Quantity, Side};

/// If `node` is a unit loop or a table of one row, returns its body, which it executes exactly
/// once, with the offset of the body and the packed stride of `node`. Returns `None` for any other
/// node.
pub(super) fn unit_body<L: Leaf>(node: &Node<L>) -> Option<(Offsets, i64, Body)> {
    match node {
        Node::Loop { at, trip, step, body } if trip.is(1) => Some((*at, step.packed, *body)),
        Node::Table { at, displacements, packed, body } if displacements.len() == 1 => {
            Some((*at + Offsets::new(displacements.get(0), 0), *packed, *body))
        }
        _ => None,
    }
}

/// Returns the cost in bytes of one more copy of `node`. The rows of blocks are costly because they
/// are merged with the rows next to them. The rows of a table cost less: they stay as they are, but
/// are read again.
pub(super) fn copy_cost<L: Leaf>(node: &Node<L>) -> u64 {
    let row = if matches!(node, Node::Blocks { .. }) { size_of::<Row>() } else { size_of::<i32>() };
    (node.rows() * row) as u64
}

/// Returns the cost in bytes of inlining `node`. It is 0 if `node` is neither a unit loop nor a
/// table of one row.
fn inlining_cost<L: Leaf>(n: &Normalizer<L>, node: &Node<L>) -> u64 {
    unit_body(node).map_or(0, |(_, _, body)| {
        let nodes = if body.len > 1 { body.len as usize * size_of::<Node>() } else { 0 };
        n.body_copy_cost(body).saturating_add(nodes as u64)
    })
}

/// Inlines all unit loops and one-row tables of a list if the budget pays for all of them, and
/// otherwise only those that cost nothing. All other nodes are passed to `other`, which appends
/// their rewritten forms.
pub(super) fn rewrite<L: Leaf>(
    n: &mut Normalizer<L>,
    parts: Vec<Node<L>>,
    mut other: impl FnMut(&mut Normalizer<L>, Node<L>, &mut Vec<Node<L>>) -> Result<()>,
) -> Result<Vec<Node<L>>> {
    let all = parts.iter().map(|node| inlining_cost(n, node)).fold(0, u64::saturating_add);
    let paid = n.spend(all);
    let mut out = Vec::new();
    for node in parts {
        let Some((at, packed, body)) = unit_body(&node) else {
            try_reserve("normalize", &mut out, 1)?;
            other(n, node, &mut out)?;
            continue;
        };
        if paid || inlining_cost(n, &node) == 0 {
            try_reserve("normalize", &mut out, body.len as usize)?;
            out.extend(n.body(body).iter().map(|inner| inner.placed(inner.offsets() + at)));
        } else {
            // A body that is executed once and is not inlined has a canonical form: a unit loop
            // with user stride 0, whose packed stride is the number of bytes that it covers in the
            // stream.
            try_reserve("normalize", &mut out, 1)?;
            out.push(Node::Loop { at, trip: Quantity::fixed(1), step: Offsets::new(0, packed), body });
        }
    }
    Ok(out)
}

/// Returns the bodies of `nest` that only one node uses, if that node executes the body once.
pub(super) fn used_once<L: Leaf, S: Side>(nest: &LoopNest<Lowered, L, S>) -> Bodies<()> {
    let mut uses: Bodies<(u32, bool)> = Bodies::default();
    for node in nest.nodes().iter().filter(|node| !drop_empty::applies(node)) {
        if let Some(body) = node.body() {
            let (n, unit) = uses.entry(body).or_insert((0, true));
            *n = n.saturating_add(1);
            *unit &= unit_body(node).is_some();
        }
    }
    uses.into_iter().filter(|(_, used)| *used == (1, true)).map(|(body, _)| (body, ())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalize;

    /// Returns a nest that uses one body at `places` places. The body has two loops, and no rewrite
    /// can make it smaller.
    fn shared(places: usize) -> LoopNest<Lowered> {
        let each = (0..places).map(|i| format!("  loop 1 step 0 14 at {} {} b0\n", 100 * i * i, 14 * i));
        let (each, size) = (each.collect::<String>(), 14 * places);
        let loops = "  loop 2 step 8 4 {\n    copy 4\n  }\n  loop 3 step 7 2 at 40 8 {\n    copy 2\n  }\n";
        let text = format!(
            "nest lowered size {size} extent 8\nlet b0 = {{\n{loops}}}\nloop count step 8 {size} {{\n{each}}}\n"
        );
        text.parse().unwrap_or_else(|e| panic!("{e}"))
    }

    /// Tests that the nodes of a shared body have a cost even if they have no rows. Otherwise
    /// shared bodies inside shared bodies would be inlined without a limit.
    #[test]
    fn nodes_are_paid_for() {
        let affordable = (64 << 10) / (2 * size_of::<Node>());
        for (places, paid) in [(affordable, true), (affordable + 1, false)] {
            let normal = normalize(&shared(places), 0).unwrap();
            normal.nest.verify().unwrap();
            assert_eq!(normal.unique, paid, "{places}");
        }
    }
}
