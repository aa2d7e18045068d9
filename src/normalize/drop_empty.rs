//! `loop 0 {..}`, `table [] {..}`, `blocks []`, `copy 0`, and loops over an empty body  -->
//! (nothing).
//!
//! Condition: none. An empty repetition generates no entry of the type map (MPI 5.0, 5.1.2).

use crate::nest::{Leaf, Node};

/// Returns true if the node moves nothing, whatever the instance count is.
pub(super) fn applies<L: Leaf>(node: &Node<L>) -> bool {
    match node {
        Node::Loop { trip, body, .. } => trip.k == 0 || body.len == 0,
        Node::Table { displacements, body, .. } => displacements.is_empty() || body.len == 0,
        Node::Blocks { len, .. } => len.is_empty(),
        Node::Copy { n, .. } => n.k == 0,
    }
}
