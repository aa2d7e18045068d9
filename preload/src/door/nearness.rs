//! Where the machine runs ahead of any loop, the host's too.

use ddtc::nest::{LoopNest, Node, Normal};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Whether blocks that follow each other in the packed stream lie in one page, more or less: there the machine runs ahead of any loop. Transposes do not.
pub(crate) fn is_near(nest: &LoopNest<Normal>) -> bool {
    let steps = nest.nodes().iter().filter_map(|node| match node {
        Node::Loop { step, .. } => Some(step),
        _ => None,
    });
    steps.min_by_key(|step| step.packed.unsigned_abs()).is_some_and(|step| step.user.unsigned_abs() < PAGE)
}
