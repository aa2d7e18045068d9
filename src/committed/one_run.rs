//! Recognition of calls that copy one contiguous run of bytes.

use crate::nest::{LoopNest, Node, Normal, Offsets, Quantity};

/// The numbers of instances whose bytes, in packing order, form one contiguous run in user memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// Not even one instance is a run, or calls need more than one copy.
    None,
    /// A single instance is a run, such as a plane or a row of an array, but several instances
    /// together are not.
    One,
    /// Any number of instances is a run.
    Any,
}

impl Run {
    /// Returns the numbers of instances of `nest` that form one run of bytes from offset 0 of the
    /// nest on.
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

    /// Returns true if `count` instances are one run of bytes. For [`Run::One`], returns false if
    /// `count` is 0.
    #[inline(always)]
    pub(super) fn covers(self, count: u64) -> bool {
        // Most types are `Run::None`, for which the first comparison suffices.
        self != Run::None && (self == Run::Any || count == 1)
    }
}
