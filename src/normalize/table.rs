//! `table [d0 d1 ..] at a B`  -->  `table [0 d1-d0 ..] at a + d0 B`, and `table [0 s 2s ..] B`  -->
//! `loop step s B`.
//!
//! If the rows have a period `p`, the table becomes a loop over a table of `p` rows (see `period`).
//! This makes a vector from an indexed_block type whose blocks have a constant distance, whatever
//! its element is. The offset of a table becomes that of its first row.
//!
//! This rewrite applies to all tables except tables over one copy. The rows of tables over one copy
//! are treated by `merge_copies`, in the same way as the rows of leaves.

use super::{Inner, Normalizer, merge_copies, period};
use crate::column::Column;
use crate::error::Result;
use crate::nest::{Leaf, Node, Offsets};

/// If `node` is a table whose rows have a period, turns the table into loops, appends these to
/// `out` and returns `None`. Otherwise returns the node for the next rewrite; if that is a table,
/// its displacements begin at zero. A table over one copy is always returned unchanged.
pub(super) fn rewrite<L: Leaf>(
    n: &mut Normalizer<L>,
    node: Node<L>,
    out: &mut Vec<Node<L>>,
) -> Result<Option<Node<L>>> {
    let Node::Table { at, displacements, packed, body } = node else { return Ok(Some(node)) };
    if merge_copies::copied(n.body(body)).is_some() {
        return Ok(Some(Node::Table { at, displacements, packed, body }));
    }
    let n_rows = displacements.len();
    let row = |i: usize| Offsets::new(displacements.get(i), packed.wrapping_mul(i as i64));
    let first = row(0);
    if let Some((p, step)) = period::find(n_rows, row, |_, _| true) {
        let trip = (n_rows / p) as u64;
        if p == 1 {
            out.extend(n.loop_over_body(trip, step, Inner { body, base: at + first })?);
        } else {
            let mut few = Vec::with_capacity(1);
            let displacements = Column::build((0..p).map(|i| displacements.get(i)))?;
            n.simplify(Node::Table { at, displacements, packed, body }, &mut few)?;
            out.extend(n.loop_over_list(trip, step, few)?);
        }
        return Ok(None);
    }
    let displacements = match first.user {
        0 => displacements,
        d => Column::build(displacements.iter().map(|other| other.wrapping_sub(d)))?,
    };
    Ok(Some(Node::Table { at: at + first, displacements, packed, body }))
}
