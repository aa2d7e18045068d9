//! Descents: what finding a packed byte below a node needs, in one place, with the division by its packed step made ahead.

use super::divisor::Divisor;
use super::{Body, Byte, LoopNest, Node, Normal, Offsets};

/// Most blocks of which all are looked at, which is sooner done than a search.
pub const MAX_SCANNED_BLOCKS: usize = 8;

/// Says what a descent does at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A loop over anything but one copy.
    Loop,
    /// A loop over one copy, which is as long as the packed step: the packed side is one run.
    Strips,
    /// A loop over one node of few blocks, as a structure is.
    Structures,
    /// A table.
    Table,
    /// Blocks or a copy: nothing is below.
    Leaf,
}

/// A node as a descent reads it: in one cache line.
#[derive(Clone, Copy, Debug)]
pub struct Descent {
    /// Kind of the node.
    pub level: Level,
    /// Offset of iteration 0, or of a leaf, in bytes.
    pub at: Offsets,
    /// Step of a loop in bytes; a table steps on the packed side.
    pub step: Offsets,
    /// Body of one iteration.
    pub body: Body,
    piece: Divisor,
}

const _: () = assert!(size_of::<Descent>() <= 64);

impl Descent {
    /// Returns that of node `i` of `nest`.
    pub fn new(nest: &LoopNest<Normal, Byte>, i: usize) -> Descent {
        let node = &nest.nodes()[i];
        let (level, step, body) = match node {
            Node::Loop { step, body, .. } => {
                let level = match nest.body(*body) {
                    [Node::Copy { .. }] => Level::Strips,
                    [Node::Blocks { len, .. }] if len.len() <= MAX_SCANNED_BLOCKS => Level::Structures,
                    _ => Level::Loop,
                };
                (level, *step, *body)
            }
            Node::Table { packed, body, .. } => (Level::Table, Offsets::new(0, *packed), *body),
            Node::Blocks { .. } | Node::Copy { .. } => (Level::Leaf, Offsets::ZERO, Body::default()),
        };
        let piece = Divisor::new(step.packed.max(1) as u64);
        Descent { level, at: node.at(), step, body, piece }
    }

    /// Returns how many whole iterations `bytes` packed bytes are, which are not negative.
    #[inline(always)]
    pub fn iterations(&self, bytes: i64) -> i64 {
        self.piece.quotient(bytes as u64) as i64
    }
}
