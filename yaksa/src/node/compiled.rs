//! Engine's part of a type that calls move bytes by: the committed type that packs and unpacks it, and a handle for each operation that it was reduced by. It hangs on the
//! node, so that all numbers of a node share it; `compile.rs` fills it.

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::kind::Op;
use ddtc::internal::process::{Mutex, Once};

/// Results of the calls of one type.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) committed: Once<Committed>,
    pub(crate) reductions: Mutex<Vec<Reduction>>,
}

/// Combines by an operation: a stream with instances, or with another stream.
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
