//! `{ X at a; Y at b; .. }`  -->  moved by `a`: `{ X; Y at b - a; .. }`.
//!
//! Every body starts at offset zero, and the offset that it had is added to the nodes that use the
//! body. The offset of the root body is taken out of the nest. Layouts that differ only in this
//! offset therefore share one key and one kernel. Among them are layouts with absolute addresses
//! (MPI_BOTTOM, MPI 5.0, 5.1.12).

use crate::nest::{Leaf, Node, Offsets};

/// Moves the list so that its first node is at offset zero, and returns the old offset of that
/// node.
pub(super) fn rewrite<L: Leaf>(list: &mut [Node<L>]) -> Offsets {
    let base = list.first().map_or(Offsets::ZERO, Node::offsets);
    for node in list.iter_mut() {
        let at = node.at_mut();
        *at = *at - base;
    }
    base
}
