//! Decides how the bytes of a committed layout are moved: by one of the kernels, or by a plain copy
//! of the driver.

use ddtc::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::nest::{Body, Node};

use crate::kernel::Mover;
use crate::list::List;
use crate::loops::Loop;
use crate::pieces::Pieces;
use crate::rows::{self, Rows};
use crate::strided::{MAX_DIVISIONS, Strided};
use crate::tile::Tile;

/// Maximum number of nested loops around a table of blocks, including the loop over the instances.
/// Loops that are nested more deeply are unrolled into blocks of the table.
pub const MAX_OUTER_LOOPS: usize = 4;

/// Maximum number of entries in a table for the kernel `list`, if the blocks of the layout have
/// different lengths. The kernel `list` needs blocks of equal lengths, so the blocks are cut into
/// sections whose length is the greatest common divisor of all lengths. If this yields more entries
/// than the maximum, the kernel `pieces` moves the layout instead. The number is a guess: a table
/// of this size, 4 KiB, stays in the fastest cache of a GPU. No measurement has shown whether
/// another number is better.
pub const MAX_CUT_ENTRIES: u64 = 1024;

/// Maximum number of bytes from the lowest byte of all blocks of a table to the end of the highest
/// block. The table stores the offsets of the blocks in 32 bits.
const MAX_SPAN: u64 = 1 << 32;

/// How the bytes of a layout are moved.
#[derive(Debug)]
pub enum Selection {
    /// Nothing is moved, because the instances have no bytes.
    Nothing,
    /// A copy by the driver moves the bytes, because all instances together are one run of
    /// contiguous bytes.
    Run {
        /// Offset of the first byte of the run from the address of the user's buffer, in bytes.
        start: i64,
    },
    /// Launches of GPU kernels move the bytes.
    Kernels(Box<dyn Mover>),
}

fn refuse(operation: &'static str, t: &Committed, rule: &'static str) -> Error {
    Error::new(ErrorClass::Unsupported, operation, "committed", t.datatype(), rule)
}

const TOO_LONG: &str =
    "must have at most 1 GiB in one iteration of the outermost loop to be served in device memory";
const TOO_MANY: &str =
    "must have at most 16777216 blocks to be served in device memory, if its blocks are irregular";
const TOO_FAR: &str =
    "must have its blocks within 4 GiB to be served in device memory, if they are irregular";

/// Decides whether a kernel or a copy by the driver moves the bytes of the layout `committed`, and
/// chooses the kernel.
///
/// # Errors
/// The class of the error is `Unsupported` if neither a kernel nor a copy can move the bytes of the
/// layout, and `NoMem` if there is not enough host memory for a list of its blocks. The error names
/// `operation` as the call that failed.
pub fn select(operation: &'static str, committed: &Committed) -> Result<Selection> {
    let nest = committed.nest();
    let mut start = committed.origin() as i64;
    // Go from the outermost loop inwards, as long as the body of a loop is a single node. For each
    // loop whose trip count is not 1, push its trip count and stride to `loops`, and push to
    // `repeated` its body and the offset in user memory at which the first iteration executes this
    // body.
    let mut loops = Vec::new();
    let mut repeated: Vec<(Body, i64)> = Vec::new();
    let mut body = nest.root();
    while let [node] = nest.body(body) {
        let inside = start.wrapping_add(node.offsets().user);
        match node {
            Node::Loop { trip, step, body: inner, .. } => {
                start = inside;
                body = *inner;
                if !trip.is(1) {
                    // Kernels do not use the trip count of the outermost loop. So the outermost
                    // loop, and no other loop, must be the loop over the instances.
                    debug_assert_eq!(
                        trip.per_count,
                        loops.is_empty(),
                        "the outermost loop is that per count"
                    );
                    loops.push(Loop { trip: trip.k, stride: step.user });
                    repeated.push((body, start));
                }
            }
            Node::Copy { n, .. } if n.per_count => return Ok(Selection::Run { start: inside }),
            Node::Copy { n, .. } if loops.len() <= MAX_DIVISIONS => {
                loops.reverse();
                let strided = Strided::new(inside, n.k, loops, nest.disjoint());
                let strided = strided.ok_or_else(|| refuse(operation, committed, TOO_LONG))?;
                return Ok(Selection::Kernels(match Tile::new(&strided) {
                    Some(tile) => Box::new(tile),
                    None => Box::new(strided),
                }));
            }
            Node::Copy { .. } | Node::Table { .. } | Node::Blocks { .. } => break,
        }
    }
    // Here the body of the innermost loop in `loops` is not a single run of bytes, or there are too
    // many loops. The outer loops stay loops of the kernel, and the body of the last of them
    // becomes a table of blocks.
    loops.truncate(MAX_OUTER_LOOPS);
    let Some(&(body, start)) = loops.len().checked_sub(1).map(|last| &repeated[last]) else {
        return Ok(Selection::Nothing);
    };
    loops.reverse();
    let count = rows::count(nest, body).ok_or_else(|| refuse(operation, committed, TOO_MANY))?;
    let rows = Rows::new(nest, body, count).ok_or_else(|| {
        let rule = "there must be memory for a list of its blocks";
        Error::new(ErrorClass::NoMem, operation, "committed", committed.datatype(), rule)
    })?;
    if rows.span() > MAX_SPAN {
        return Err(refuse(operation, committed, TOO_FAR));
    }
    let start = start.wrapping_add(rows.lowest());
    let entries = rows.bytes() / rows.common_length();
    let mover = if entries == rows.len() || entries <= MAX_CUT_ENTRIES {
        List::new(start, &rows, loops, nest.disjoint()).map(|list| Box::new(list) as Box<dyn Mover>)
    } else {
        Pieces::new(start, &rows, loops, nest.disjoint()).map(|pieces| Box::new(pieces) as Box<dyn Mover>)
    };
    mover.map(Selection::Kernels).ok_or_else(|| refuse(operation, committed, TOO_LONG))
}
