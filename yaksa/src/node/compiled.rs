//! Objects of ddtc's engine with which calls move the bytes of one type: the committed type, which
//! packs and unpacks, and one handle per reduction operation that was used with the type. These
//! objects are stored in the node, so that all type numbers of a node share them. `compile.rs`
//! makes them.

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::kind::Op;
use ddtc::internal::process::{Mutex, Once};

/// Objects that the engine has made so far for one type.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) committed: Once<Committed>,
    pub(crate) reductions: Mutex<Vec<Reduction>>,
}

/// Handle that applies the reduction `op` to a packed stream and to instances or, if `streams` is
/// true, to two packed streams.
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
