//! Storage, in a node, for the committed type and the reduction handles of the type. A call that
//! moves bytes by ddtc's interpreter or by compiled code needs at least one of these objects. The
//! committed type packs and unpacks. Each reduction handle combines data by one reduction
//! operation. `compile.rs` makes these objects, and all type handles of the node share them.

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
