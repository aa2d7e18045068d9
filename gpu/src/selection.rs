//! Selection: which kernel serves a committed layout.

use ddtc::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::nest::{LoopNest, Node, Normal};

use crate::strided::{Loop, Strided};

/// Maximum number of divisions of a kernel. The loop over the instances needs none. The at most
/// four loops inside of it need one each, and so does a run of several words.
pub const MAX_DIVISIONS: usize = 5;

/// Maximum number of packed bytes of one iteration of the outermost loop. So one iteration has at
/// most half as many words as [`MAX_WORD`](crate::index::MAX_WORD), whatever their width.
pub const MAX_ITERATION: u64 = 1 << 30;

/// What moves the bytes of a layout.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Nothing: no instance has a byte.
    Nothing,
    /// A copy by the driver. All instances are one run, which begins `start` bytes after the
    /// address of the buffer.
    Run {
        /// Offset of the first byte.
        start: i64,
    },
    /// The kernel `strided`.
    Strided(Strided),
}

fn refuse(operation: &'static str, t: &Committed, rule: &'static str) -> Error {
    Error::new(ErrorClass::Unsupported, operation, "committed", t.datatype(), rule)
}

/// Selects the kernel or the copy that moves the bytes of `committed`.
///
/// # Errors
/// Class `Unsupported` if no kernel can move the layout. The error names `operation` as the call
/// that failed.
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
        start = start.wrapping_add(node.at().user);
        match node {
            Node::Loop { trip, step, body: inner, .. } => {
                if !trip.is(1) {
                    // `Strided` ignores the trip count of the outermost loop. So this loop, and no
                    // other, must be the one over the instances.
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
                // From the innermost to the outermost.
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
    // Every loop but the outermost needs a division, and so does a run of several words.
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
