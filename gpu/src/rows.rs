//! Lists of blocks. The module unrolls the body of a loop into one list of blocks of contiguous
//! bytes, in the order of the packed stream. The body may consist of several nodes of the nest,
//! such as loops, tables and copies.

use ddtc::internal::interval::gcd;
use ddtc::internal::nest::{Body, LoopNest, Node, Normal};

use crate::loops::{Innermost, power};

/// Maximum number of blocks in a list, and of pieces into which these blocks are cut. The limit
/// bounds the memory and the time that opening a layout takes. While the layout is opened, the list
/// needs 16 bytes of host memory for each block. Until the layout is closed, its table needs 4, 8
/// or 12 bytes for each block, or for each piece of a block. The table exists twice: in host memory
/// and in device memory. The limit also ensures that the indices of the table's entries fit into 32
/// bits.
pub(crate) const MAX_ROWS: u64 = 1 << 28;

/// Maximum span of a list whose table has offsets of 32 bits. The span is the number of bytes of
/// user memory from the lowest byte of all blocks to the end of the highest block.
pub(crate) const MAX_SPAN: u64 = 1 << 32;

/// A block of contiguous bytes, or a section of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Offset in user memory of the first byte of the block. In a [`Rows`], it is counted from the
    /// lowest byte of all blocks.
    pub(crate) offset: u64,
    /// Number of bytes in the block.
    pub(crate) bytes: u64,
}

/// A list of at least two blocks of contiguous bytes.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The blocks, in the order of the packed stream.
    list: Vec<Row>,
    /// Offset in user memory of the lowest byte of all blocks, counted from the offset at which the
    /// body that contains the blocks is executed.
    lowest: i64,
}

/// Returns the number of blocks of contiguous bytes that one execution of `body` moves, or
/// `u64::MAX` if this number does not fit into 64 bits.
pub(crate) fn count(nest: &LoopNest<Normal>, body: Body) -> u64 {
    // In the list of nodes, the nodes of a body come before the node that has this body. So when a
    // node is reached, the numbers of blocks of the nodes in its body are already in `counts`.
    let mut counts: Vec<u64> = Vec::with_capacity(body.range().end);
    for node in &nest.nodes()[..body.range().end] {
        let inside = node.body().map_or(1, |body| sum(&counts[body.range()]));
        counts.push(match node {
            Node::Loop { trip, .. } => inside.saturating_mul(trip.k),
            Node::Table { .. } | Node::Blocks { .. } => inside.saturating_mul(node.rows() as u64),
            Node::Copy { .. } => 1,
        });
    }
    sum(&counts[body.range()])
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
}

impl Rows {
    /// Returns the list of the `count` blocks of `body`. Returns `None` if there is not enough host
    /// memory for the list.
    pub(crate) fn new(nest: &LoopNest<Normal>, body: Body, count: u64) -> Option<Rows> {
        let mut list = Vec::new();
        list.try_reserve_exact(count as usize).ok()?;
        // An offset may be negative until the lowest offset is subtracted below. It is stored as a
        // `u64` in two's complement.
        nest.visit_body(body, 1, |copy| list.push(Row { offset: copy.at.user as u64, bytes: copy.n }));
        debug_assert_eq!(list.len() as u64, count, "the number of blocks");
        let lowest = list.iter().map(|row| row.offset as i64).min().expect("a block");
        list.iter_mut().for_each(|row| row.offset = row.offset.wrapping_sub(lowest as u64));
        Some(Rows { list, lowest })
    }

    /// Returns the offset in user memory of the lowest byte of all blocks, counted from the offset
    /// at which the body that contains the blocks is executed.
    pub(crate) fn lowest(&self) -> i64 {
        self.lowest
    }

    /// Returns the number of bytes from the lowest byte of all blocks to the end of the highest
    /// block.
    pub(crate) fn span(&self) -> u64 {
        self.list.iter().map(|row| row.offset + row.bytes).max().expect("a block")
    }

    /// Returns the total number of bytes in all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.list.iter().map(|row| row.bytes).sum()
    }

    /// Describes the blocks of the list as the body of a layout's innermost loop.
    pub(crate) fn innermost(&self) -> Innermost {
        let unit = power(self.list.iter().fold(0, |bits, row| bits | row.offset | row.bytes));
        Innermost { bytes: self.bytes(), span: self.span(), unit }
    }

    /// Returns the number of pieces that [`Rows::pieces`] returns.
    pub(crate) fn number_of_pieces(&self, length: u64) -> u64 {
        self.list.iter().map(|row| row.bytes.div_ceil(length)).sum()
    }

    /// Returns the greatest common divisor of the lengths of all blocks, in bytes.
    pub(crate) fn common_length(&self) -> u64 {
        self.list.iter().fold(0, |length, row| gcd(row.bytes, length))
    }

    /// Cuts each block into pieces of `length` bytes, and returns the pieces in the order of the
    /// packed stream. The last piece of a block is shorter if `length` does not divide the length
    /// of the block.
    pub(crate) fn pieces(&self, length: u64) -> impl Iterator<Item = Row> {
        self.list.iter().flat_map(move |row| {
            (0..row.bytes)
                .step_by(length as usize)
                .map(move |from| Row { offset: row.offset + from, bytes: length.min(row.bytes - from) })
        })
    }
}
