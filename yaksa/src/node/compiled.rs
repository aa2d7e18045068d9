//! Storage of what calls use to move the bytes of one type with ddtc's interpreter or with compiled
//! code: the committed type, which packs and unpacks, and one reduction handle for each reduction
//! operation that was used with the type. Both are stored in the node, so that all type handles of
//! a node share them. `compile.rs` makes them.

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::kind::Op;
use ddtc::internal::process::{Mutex, Once};

/// What ddtc has made so far to move the bytes of one type: the committed type, if a call has
/// needed it, and the handles for reductions.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) committed: Once<Committed>,
    pub(crate) reductions: Mutex<Vec<Reduction>>,
}

/// Handle that unpacks with the reduction `op`. It combines packed data with instances of the type
/// or, if `streams` is true, packed data with other packed data.
#[derive(Debug)]
pub(crate) struct Reduction {
    pub(crate) op: Op,
    pub(crate) streams: bool,
    pub(crate) applied: CommittedOperation,
}

impl Compiled {
    pub(crate) const fn new() -> Compiled {
        Compiled { committed: Once::new(), reductions: Mutex::new(Vec::new()) }
    }
}
