//! Selection of the kernel, or of the copy by the driver, that moves the bytes of a committed
//! layout.

use ddtc::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::nest::{LoopNest, Node, Normal};

use crate::strided::{Loop, Strided};

/// Maximum number of divisions in the index arithmetic of a kernel. The outermost loop, which is
/// the loop over the instances, needs no division. Inside of it there are at most four loops, which
/// need one division each. A run of bytes that consists of several words needs one division too.
pub const MAX_DIVISIONS: usize = 5;

/// Maximum number of packed bytes in one iteration of the outermost loop of a layout. With this
/// limit, one iteration has at most half as many words as [`MAX_WORD`](crate::index::MAX_WORD),
/// even if a word has only 1 byte.
pub const MAX_ITERATION: u64 = 1 << 30;

/// The means by which the bytes of a layout are moved.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Nothing is moved, because no instance has a byte.
    Nothing,
    /// The driver copies the bytes. All instances together are one run of contiguous bytes, which
    /// begins `start` bytes after the address of the user's buffer.
    Run {
        /// Offset of the first byte of the run from the address of the buffer, in bytes.
        start: i64,
    },
    /// The kernel `strided` moves the bytes.
    Strided(Strided),
}

fn refuse(operation: &'static str, t: &Committed, rule: &'static str) -> Error {
    Error::new(ErrorClass::Unsupported, operation, "committed", t.datatype(), rule)
}

/// Selects the kernel or the copy that moves the bytes of the layout `committed`.
///
/// # Errors
/// The class of the error is `Unsupported` if neither a kernel nor a copy can move the bytes of the
/// layout. The error names `operation` as the call that failed.
pub fn select(operation: &'static str, committed: &Committed) -> Result<Selection> {
    let nest: &LoopNest<Normal> = committed.nest();
    let mut start = committed.origin() as i64;
    let mut loops = Vec::new();
    let mut body = nest.root();
    loop {
        let node = match nest.body(body) {
            [] => return Ok(Selection::Nothing),
            [node] => node,
            _ => return Err(refuse(operation, committed, MUST_BE_LOOPS)),
        };
        start = start.wrapping_add(node.offsets().user);
        match node {
            Node::Loop { trip, step, body: inner, .. } => {
                if !trip.is(1) {
                    // `Strided` ignores the trip count of the outermost loop. So the outermost
                    // loop, and no other loop, must be the loop over the instances.
                    debug_assert_eq!(
                        trip.per_count,
                        loops.is_empty(),
                        "the outermost loop is that per count"
                    );
                    loops.push(Loop { trip: trip.k, stride: step.user });
                }
                body = *inner;
            }
            Node::Copy { n, .. } if n.per_count => return Ok(Selection::Run { start }),
            Node::Copy { n, .. } => {
                // The loops were found from the outermost to the innermost. `Strided` needs the
                // opposite order, from the innermost to the outermost.
                loops.reverse();
                return strided(operation, committed, start, n.k, loops).map(Selection::Strided);
            }
            Node::Table { .. } | Node::Blocks { .. } => {
                return Err(refuse(operation, committed, MUST_BE_LOOPS));
            }
        }
    }
}

const MUST_BE_LOOPS: &str = "must be one run of bytes in loops: lists of blocks and structures of several runs are not served in device memory";

fn strided(
    operation: &'static str,
    committed: &Committed,
    start: i64,
    run: u64,
    loops: Vec<Loop>,
) -> Result<Strided> {
    // Each loop except the outermost needs one division, and a run that consists of several words
    // needs one division too. So the number of loops must not exceed the maximum number of
    // divisions.
    if loops.len() > MAX_DIVISIONS {
        let rule = "must have at most 5 loops, the instance count included, to be served in device memory";
        return Err(refuse(operation, committed, rule));
    }
    let inner = loops.split_last().map_or(&loops[..], |(_, inner)| inner);
    let iteration = inner.iter().try_fold(run, |bytes, l| bytes.checked_mul(l.trip));
    if iteration.is_none_or(|bytes| bytes > MAX_ITERATION) {
        let rule =
            "must have at most 1 GiB in one iteration of the outermost loop to be served in device memory";
        return Err(refuse(operation, committed, rule));
    }
    Ok(Strided::new(start, run, loops, committed.nest().disjoint()))
}
