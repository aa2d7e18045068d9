//! Decides how the bytes of a committed layout are moved: by one of the kernels, or by a plain copy
//! of the driver.

use ddtc::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::nest::{Body, Node};

use crate::kernel::{Kernel, Mover, WIDTHS};
use crate::list::{self, List};
use crate::loops::{Loop, MAX_ITERATION};
use crate::pieces::{self, Offsets, Pieces};
use crate::rows::{self, MAX_ROWS, MAX_SPAN, Rows};
use crate::strided::{self, MAX_DIVISIONS, Strided};
use crate::tile::{self, Tile};

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

const TOO_MANY: &str = "must have at most 268435456 blocks to be served in device memory, if its blocks are irregular (a block of more than 512 bytes counts once for every 512 bytes)";

/// Decides whether a kernel or a copy by the driver moves the bytes of the layout `committed`, and
/// chooses the kernel.
///
/// # Errors
/// The class of the error is `Unsupported` if a list of the layout's blocks would have more than
/// 2^28 entries (`MAX_ROWS`), and `NoMem` if there is not enough host memory for this list. The
/// error names `operation` as the call that failed.
pub fn select(operation: &'static str, committed: &Committed) -> Result<Selection> {
    let nest = committed.nest();
    let mut start = committed.origin() as i64;
    // Go from the outermost loop inwards, as long as the body of a loop is a single node. Each loop
    // whose trip count is not 1 gets an entry in `loops` and one in `repeated`. The entry in
    // `loops` has the trip count and the stride. The entry in `repeated` has the body of the loop,
    // and the offset in user memory at which the first iteration executes this body.
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
                    // The trip count of the loop over the instances is known only in a call.
                    // Kernels use the trip counts of all loops except the outermost. So the
                    // outermost loop must be the loop over the instances.
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
    let count = rows::count(nest, body);
    // The text of the datatype may need as much memory as the list that is refused. So the errors
    // do not contain this text.
    let refused = |class, what, rule| Error::new(class, operation, "committed", what, rule);
    let a_list = || format!("a datatype with a list of {count} blocks");
    let no_memory =
        || refused(ErrorClass::NoMem, a_list(), "must be small enough for the memory of the host");
    if count > MAX_ROWS {
        return Err(refused(ErrorClass::Unsupported, a_list(), TOO_MANY));
    }
    let rows = Rows::new(nest, body, count).ok_or_else(no_memory)?;
    let start = start.wrapping_add(rows.lowest());
    let entries = rows.bytes() / rows.common_length();
    let fits_list = rows.span() <= MAX_SPAN && rows.bytes() <= MAX_ITERATION;
    let mover: Option<Box<dyn Mover>> = if fits_list && (entries == count || entries <= MAX_CUT_ENTRIES) {
        List::new(start, &rows, loops, nest.disjoint()).map(|list| Box::new(list) as _)
    } else if Pieces::number(&rows) <= MAX_ROWS {
        Pieces::new(start, &rows, loops, nest.disjoint()).map(|pieces| Box::new(pieces) as _)
    } else {
        let what = format!("a datatype with a list that counts as {} blocks", Pieces::number(&rows));
        return Err(refused(ErrorClass::Unsupported, what, TOO_MANY));
    };
    mover.map(Selection::Kernels).ok_or_else(no_memory)
}

/// Returns every kernel that may move the bytes of a layout, for both directions.
pub fn all_kernels() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    let both_sums = [false, true];
    for (width, direction) in WIDTHS.into_iter().flat_map(|w| Direction::BOTH.map(|d| (w, d))) {
        kernels.push(tile::kernel(width, direction));
        for (wide, divisions) in both_sums.into_iter().flat_map(|w| (0..=MAX_DIVISIONS).map(move |d| (w, d)))
        {
            kernels.push(strided::Shape { width, divisions, wide }.kernel(direction));
        }
        for divisions in 0..MAX_OUTER_LOOPS {
            for offsets in [Offsets::Narrow, Offsets::Wide, Offsets::Far] {
                kernels.push(pieces::Shape { width, divisions, offsets }.kernel(direction));
            }
            for (wide, several) in both_sums.into_iter().flat_map(|w| [false, true].map(|s| (w, s))) {
                kernels.push(list::Shape { width, several, divisions, wide }.kernel(direction));
            }
        }
    }
    kernels
}
