//! `table [d0 d1 ..] at a B`  -->  `table [0 d1-d0 ..] at a + d0 B`, and `table [0 s 2s ..] B`  -->  `loop step s B`.
//!
//! Rows with a period `p` become a loop over a table of `p` rows, as everywhere (`period`). So an indexed_block type at
//! constant distance is a vector, whatever its element is, and a table starts where its first row does.
//!
//! Condition: none. Tables over one copy are left to `merge_copies`, which does the same to rows of leaves.

use super::{Normalizer, merge_copies, period};
use crate::nest::{At, Node, Trip};

/// Appends what `node` becomes to `out`, or gives a node of another kind back.
pub(super) fn rewrite(n: &mut Normalizer, node: Node, out: &mut Vec<Node>) -> Option<Node> {
    let Node::Table { at, displacements, packed, body } = node else { return Some(node) };
    if merge_copies::copy_bytes(n.body(body)).is_some() {
        return Some(Node::Table { at, displacements, packed, body });
    }
    let n_rows = displacements.len();
    let row = |i: usize| At::new(displacements.get(i), packed.wrapping_mul(i as i64));
    let first = row(0);
    if let Some((p, step)) = period::of(n_rows, row, |_, _| true) {
        let trip = (n_rows / p) as u64;
        if p == 1 {
            n.simplify(Node::Loop { at: at + first, trip: Trip::fixed(trip), step, body }, out);
        } else {
            let mut few = Vec::with_capacity(1);
            let displacements = (0..p).map(|i| displacements.get(i)).collect();
            n.simplify(Node::Table { at, displacements, packed, body }, &mut few);
            out.extend(n.looped(trip, step, few));
        }
        return None;
    }
    let displacements = match first.user {
        0 => displacements,
        d => displacements.iter().map(|other| other.wrapping_sub(d)).collect(),
    };
    Some(Node::Table { at: at + first, displacements, packed, body })
}
