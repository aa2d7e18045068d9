//! Test whether the blocks of a layout are so near each other in memory that the processor
//! prefetches them early enough for any loop, Open MPI's included.

use ddtc::internal::nest::{LoopNest, Node, Normal};

/// Bytes of a page of memory.
const PAGE: u64 = 4096;

/// Returns true if blocks that follow each other in the packed stream start less than a page apart
/// in memory. This is judged by one loop of the nest, the loop with the smallest step in the
/// stream. If the blocks are that near, the hardware prefetches them ahead of any loop, so Open
/// MPI's loop is as fast as compiled code. The transpose of a matrix with rows of a page or more is
/// not near, because one step of that loop skips a whole row in memory.
pub(crate) fn is_near(nest: &LoopNest<Normal>) -> bool {
    let steps = nest.nodes().iter().filter_map(|node| match node {
        Node::Loop { step, .. } => Some(step),
        _ => None,
    });
    steps.min_by_key(|step| step.packed.unsigned_abs()).is_some_and(|step| step.user.unsigned_abs() < PAGE)
}
