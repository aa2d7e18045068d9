//! Selection of the kernel, or of the copy by the driver, that moves the bytes of a committed
//! layout.

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

/// Maximum number of loops around a table of blocks, including the loop over the instances. Loops
/// inside of these become blocks of the table.
pub const MAX_OUTER_LOOPS: usize = 4;

/// Maximum number of entries in the table of a layout whose blocks have different lengths, if the
/// kernel `list` moves it. For this kernel the blocks are cut into pieces that have the same
/// length. With more entries, the kernel `pieces` moves the layout. The number is a guess: a table
/// of this size, 4 KiB, stays in the fastest cache of a GPU. It has not been measured whether
/// another number is better.
pub const MAX_CUT_ENTRIES: u64 = 1024;

/// Maximum number of bytes of user memory in which the blocks of a table may lie, since the table
/// has offsets of 32 bits.
const MAX_SPAN: u64 = 1 << 32;

/// The means by which the bytes of a layout are moved.
#[derive(Debug)]
pub enum Selection {
    /// Nothing is moved, because no instance has a byte.
    Nothing,
    /// The driver copies the bytes. All instances together are one run of contiguous bytes, which
    /// begins `start` bytes after the address of the user's buffer.
    Run {
        /// Offset of the first byte of the run from the address of the buffer, in bytes.
        start: i64,
    },
    /// Kernels move the bytes.
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

/// Selects the kernel or the copy that moves the bytes of the layout `committed`.
///
/// # Errors
/// The class of the error is `Unsupported` if neither a kernel nor a copy can move the bytes of the
/// layout, and `NoMem` if there is no memory for a list of its blocks. The error names `operation`
/// as the call that failed.
pub fn select(operation: &'static str, committed: &Committed) -> Result<Selection> {
    let nest = committed.nest();
    let mut start = committed.origin() as i64;
    // Go from the outermost loop inwards, as long as a loop has nothing but another loop in it. For
    // each loop, keep what it repeats: a body, and the place at which the first iteration executes
    // the body.
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
    // What the loops repeat is no run of bytes, or there are too many loops. So the outer loops
    // stay loops, and what they repeat becomes a table of blocks.
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
