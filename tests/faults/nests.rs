//! Makes faulty nests for tests: in each of them one stride, trip count, length, offset, row or
//! order is changed.

use ddtc::internal::column::Column;
use ddtc::internal::nest::{Byte, LoopNest, Node, Offsets, Phase, Quantity, Side};

/// Copies of a value that are faulty in one place, each with a description of the fault.
pub(crate) type Faulty<T> = Vec<(String, T)>;

pub(crate) fn more(trip: Quantity, by: i64) -> Quantity {
    Quantity { k: trip.k.saturating_add_signed(by), ..trip }
}

/// Returns a copy of a column in which the entry at index `at` is changed by `by`.
pub(crate) fn entry(column: &Column, at: usize, by: i64) -> Column {
    column.iter().enumerate().map(|(i, v)| if i == at { v + by } else { v }).collect()
}

/// Returns copies of a node of a nest. In each copy, one number or one order is changed.
fn node_faults(node: &Node) -> Faulty<Node> {
    let mut out = Vec::new();
    let mut put = |what: &str, node: Node| out.push((what.to_owned(), node));
    // For each kind of node, change the numbers that only nodes of this kind have.
    match node {
        Node::Loop { at, trip, step, body } => {
            let (at, trip, step, body) = (*at, *trip, *step, *body);
            for by in [1, -1, 4] {
                put("user stride", Node::Loop { at, trip, step: step + Offsets::new(by, 0), body });
                put("packed stride", Node::Loop { at, trip, step: step + Offsets::new(0, by), body });
            }
            put("trip", Node::Loop { at, trip: more(trip, 1), step, body });
            put("trip", Node::Loop { at, trip: more(trip, -1), step, body });
            let carried = Quantity { per_count: !trip.per_count, ..trip };
            put("count", Node::Loop { at, trip: carried, step, body });
        }
        Node::Table { at, displacements, packed, body } => {
            let (at, packed, body) = (*at, *packed, *body);
            for (row, by) in [(1, 1), (displacements.len() - 1, -1)] {
                let displacements = entry(displacements, row, by);
                put("row", Node::Table { at, displacements, packed, body });
            }
            let d = displacements.clone();
            put("packed stride", Node::Table { at, displacements: d, packed: packed + 1, body });
            let short = displacements.iter().skip(1).collect();
            put("rows", Node::Table { at, displacements: short, packed, body });
            let mut swapped: Vec<i64> = displacements.iter().collect();
            swapped.swap(0, 1);
            put("order", Node::Table { at, displacements: swapped.into(), packed, body });
        }
        Node::Blocks { at, user, packed, len, .. } => {
            let blocks = |user: &Column, packed: &Column, len: &Column| Node::Blocks {
                at: *at,
                user: user.clone(),
                packed: packed.clone(),
                len: len.clone(),
                unit: Byte,
            };
            let last = len.len() - 1;
            put("user row", blocks(&entry(user, last, 1), packed, len));
            put("packed row", blocks(user, &entry(packed, 1, 1), len));
            put("length", blocks(user, packed, &entry(len, 0, 1)));
            put("length", blocks(user, packed, &entry(len, last, 1)));
            let mut swapped: Vec<i64> = user.iter().collect();
            swapped.swap(0, 1);
            put("order", blocks(&swapped.into(), packed, len));
        }
        Node::Copy { at, n, unit } => {
            let (at, n, unit) = (*at, *n, *unit);
            put("length", Node::Copy { at, n: more(n, 1), unit });
            put("length", Node::Copy { at, n: more(n, -1), unit });
        }
    }
    // Nodes of all kinds have an offset in user memory and one on the packed side. Change both of
    // them.
    for by in [Offsets::new(1, 0), Offsets::new(0, 1)] {
        put("offset", node.placed(node.offsets() + by));
    }
    out
}

pub(crate) fn nest_faults<P: Phase, S: Side>(nest: &LoopNest<P, Byte, S>) -> Faulty<LoopNest<P, Byte, S>> {
    let rebuilt = |nodes| LoopNest::new(nodes, nest.root(), nest.size(), nest.extent());
    let mut out = Vec::new();
    for (i, node) in nest.nodes().iter().enumerate() {
        for (what, node) in node_faults(node) {
            let mut nodes = nest.nodes().to_vec();
            nodes[i] = node;
            out.push((format!("{what} of node {i}"), rebuilt(nodes)));
        }
    }
    for body in nest.nodes().iter().filter_map(Node::body).filter(|b| b.len > 1) {
        let mut nodes = nest.nodes().to_vec();
        let first = body.range().start;
        let (a, b) = (nodes[first].offsets().user, nodes[first + 1].offsets().user);
        nodes[first].at_mut().user = b;
        nodes[first + 1].at_mut().user = a;
        out.push((format!("order of nodes {first} and {}", first + 1), rebuilt(nodes)));
    }
    out
}

/// Returns the user offset and the packed offset of each byte that a nest moves for `COUNT`
/// instances, in the order of the moves. Two nests with equal results move the same bytes. So a
/// change of a nest that keeps this result is not a fault.
pub(crate) fn meaning<P: Phase, S: Side>(nest: &LoopNest<P, Byte, S>) -> Vec<(i64, i64)> {
    let mut out = Vec::new();
    nest.visit(super::COUNT, |v| out.extend((0..v.n as i64).map(|i| (v.at.user + i, v.at.packed + i))));
    out
}
