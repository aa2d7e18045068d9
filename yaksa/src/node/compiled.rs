//! Parts of a type that the engine makes, by which calls move bytes: the committed type that packs
//! and unpacks it, and a handle for each operation by which it was reduced. They are stored in the
//! node, so that all numbers of a node share them. `compile.rs` makes them.

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::kind::Op;
use ddtc::internal::process::{Mutex, Once};

/// What the engine has made for the calls of one type.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) committed: Once<Committed>,
    pub(crate) reductions: Mutex<Vec<Reduction>>,
}

/// Handle that combines a packed stream by `op` with instances or, if `streams` is true, with
/// another packed stream.
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
