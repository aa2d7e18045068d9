//! The test whether the blocks of a layout lie so near each other that the processor's prefetching
//! keeps ahead of any loop, Open MPI's included.

use ddtc::nest::{LoopNest, Node, Normal};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Returns true if blocks that follow each other in the packed stream start less than a page apart
/// in memory, judged by the loop with the smallest step in the stream. There the hardware
/// prefetches ahead of any loop, so Open MPI's loop is as fast as compiled code. The transpose of a
/// matrix with rows of a page or more is not near, because the step of that loop in memory is a
/// whole row.
pub(crate) fn is_near(nest: &LoopNest<Normal>) -> bool {
    let steps = nest.nodes().iter().filter_map(|node| match node {
        Node::Loop { step, .. } => Some(step),
        _ => None,
    });
    steps.min_by_key(|step| step.packed.unsigned_abs()).is_some_and(|step| step.user.unsigned_abs() < PAGE)
}
