//! Calls that copy one run of bytes.

use crate::nest::{LoopNest, Node, Normal, Offsets, Quantity};

/// How many instances are one run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// Not even one.
    None,
    /// One alone, such as a plane or a row of an array.
    One,
    /// Any number.
    Any,
}

impl Run {
    /// Returns what `nest` says.
    pub(super) fn from_nest(nest: &LoopNest<Normal>) -> Run {
        match nest.body(nest.root()) {
            [Node::Copy { at: Offsets::ZERO, n: Quantity { per_count: true, .. }, .. }] => Run::Any,
            [Node::Loop { at: Offsets::ZERO, trip: Quantity { k: 1, per_count: true }, body, .. }]
                if matches!(nest.body(*body), [Node::Copy { at: Offsets::ZERO, .. }]) =>
            {
                Run::One
            }
            _ => Run::None,
        }
    }

    /// Says whether so many instances are.
    #[inline(always)]
    pub(super) fn covers(self, count: u64) -> bool {
        // Of most types neither: one comparison.
        self != Run::None && (self == Run::Any || count == 1)
    }
}
