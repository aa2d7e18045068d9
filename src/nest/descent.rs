//! Descents. The descent of a node has all facts about the node that are needed to find a given
//! packed byte inside it. The division by the node's packed step is prepared in advance.

use super::divisor::Divisor;
use super::{Body, Byte, LoopNest, Node, Normal, Offsets};

/// Maximum number of blocks for which a linear scan finds the block of a packed byte. For so few
/// blocks, a linear scan is faster than the search that is used for more blocks.
pub const MAX_SCANNED_BLOCKS: usize = 8;

/// Kind of a node, which decides how the search for a packed byte continues below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Any loop that is neither [`NodeKind::Strips`] nor [`NodeKind::Structures`].
    Loop,
    /// A loop over one copy whose length is the packed step, so that the packed bytes of all
    /// iterations are contiguous.
    Strips,
    /// A loop over one `Blocks` node with at most [`MAX_SCANNED_BLOCKS`] rows, as a structure has.
    Structures,
    /// A table, whatever its body is.
    Table,
    /// Blocks or a copy, which have no nodes below them.
    Leaf,
}

/// The facts about one node that are needed to find a packed byte inside it. They fit in one cache
/// line of 64 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Descent {
    /// Kind of the node, which decides how the search continues below it.
    pub kind: NodeKind,
    /// Offset of iteration 0, or of a leaf, in bytes.
    pub at: Offsets,
    /// Step of a loop in bytes; for a table only the packed side is set.
    pub step: Offsets,
    /// Body of one iteration.
    pub body: Body,
    piece: Divisor,
}

const _: () = assert!(size_of::<Descent>() <= 64);

impl Descent {
    /// Returns the descent for node `i` of `nest`.
    pub fn new(nest: &LoopNest<Normal, Byte>, i: usize) -> Descent {
        let node = &nest.nodes()[i];
        let (kind, step, body) = match node {
            Node::Loop { step, body, .. } => {
                let kind = match nest.body(*body) {
                    [Node::Copy { .. }] => NodeKind::Strips,
                    [Node::Blocks { len, .. }] if len.len() <= MAX_SCANNED_BLOCKS => NodeKind::Structures,
                    _ => NodeKind::Loop,
                };
                (kind, *step, *body)
            }
            Node::Table { packed, body, .. } => (NodeKind::Table, Offsets::new(0, *packed), *body),
            Node::Blocks { .. } | Node::Copy { .. } => (NodeKind::Leaf, Offsets::ZERO, Body::default()),
        };
        let piece = Divisor::new(step.packed.max(1) as u64);
        Descent { kind, at: node.offsets(), step, body, piece }
    }

    /// Returns the number of whole iterations in `bytes` packed bytes; `bytes` must not be
    /// negative.
    #[inline(always)]
    pub fn iterations(&self, bytes: i64) -> i64 {
        self.piece.quotient(bytes as u64) as i64
    }
}
