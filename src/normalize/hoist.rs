//! `{ X at a; Y at b; .. }`  -->  moved by `a`: `{ X; Y at b - a; .. }`.
//!
//! Every body starts at offset zero, its users carry the offset, and the root's offset leaves the nest altogether: translated
//! and absolute layouts (MPI_BOTTOM, MPI 5.0, 5.1.12) share one key and one kernel.

use crate::nest::{Leaf, Node, Offsets};

/// Moves the list so that its first node is at zero; returns the offset taken out.
pub(super) fn rewrite<L: Leaf>(list: &mut [Node<L>]) -> Offsets {
    let base = list.first().map_or(Offsets::ZERO, Node::at);
    for node in list.iter_mut() {
        let at = node.at_mut();
        *at = *at - base;
    }
    base
}
