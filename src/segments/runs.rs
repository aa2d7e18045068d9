//! Facts about every node of a nest that are needed to count and find segments.
//!
//! There is a **gap** between two neighbouring bytes of the packed stream if the second does not
//! directly follow the first in user memory. A new segment begins after each gap. Neighbours at
//! descending addresses have a gap between them too. Whether two neighbours have a gap between them
//! depends on these two alone. The numbers of gaps therefore add up over the nodes of a body, the
//! iterations of a loop, and the rows of a table. The **runs** of a node are the pieces into which
//! its gaps cut the node, so it has one run more than it has gaps. The first run of a node may
//! continue the memory before the node, and the memory after the node may continue its last run.

use super::partition_point;
use crate::column::{Column, try_with_capacity};
use crate::error::Result;
use crate::nest::{Body, LoopNest, Node, Normal};

/// Classification of the boundaries between neighbouring iterations or rows of a node. At each
/// boundary there either is a gap or is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Boundaries {
    /// There is a gap at every boundary.
    Apart,
    /// No boundary has a gap: each iteration begins where the iteration before it ends.
    Touching,
    /// Some boundaries have a gap, and others have none. Entry `i` of the column is the number of
    /// gaps at the boundaries before row `i`.
    Mixed(Column),
}

impl Boundaries {
    /// Returns the number of gaps at the boundaries before iteration `i`. Gaps inside iterations
    /// are not counted.
    #[inline]
    fn before(&self, i: u64) -> u64 {
        match self {
            Boundaries::Apart => i,
            Boundaries::Touching => 0,
            Boundaries::Mixed(before) => before.get(i as usize) as u64,
        }
    }
}

/// Runs of one node. The first byte of the node is at the node's own offset, because bodies and
/// columns of normal nests begin at offset 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeRuns {
    /// Number of gaps before the first byte of the node, as a prefix sum over the nodes of the
    /// nest. Only the difference between the sums of two nodes of one body has a meaning. The sums
    /// may wrap, because they also cover bodies that never occur together.
    before: u64,
    /// Number of gaps inside one iteration or row.
    pub(super) inner: u64,
    /// Boundaries between the iterations or rows.
    pub(super) boundaries: Boundaries,
}

/// End of a node: the user offset at which the node ends, and the number of gaps before this end,
/// as a prefix sum like `NodeRuns::before`.
#[derive(Clone, Copy)]
struct End {
    at: i64,
    last: u64,
}

impl NodeRuns {
    /// Returns the number of gaps from the start of the node to the start of iteration `i`,
    /// including a gap directly before iteration `i`.
    #[inline]
    pub(super) fn before(&self, i: u64) -> u64 {
        // The result is smaller than the number of bytes in the stream, so it does not wrap.
        i.wrapping_mul(self.inner).wrapping_add(self.boundaries.before(i))
    }

    /// Returns the number of gaps inside the node if it has `n` iterations. This number is also the
    /// index of the last run of the node.
    #[inline]
    pub(super) fn gaps(&self, n: u64) -> u64 {
        self.before(n.wrapping_sub(1)).wrapping_add(self.inner)
    }

    /// Returns the index of the first of `n` iterations that contains a part of run `run`.
    #[inline]
    pub(super) fn first_iteration(&self, n: u64, run: u64) -> u64 {
        match &self.boundaries {
            Boundaries::Apart if self.inner == 0 => run,
            Boundaries::Apart => run / (self.inner + 1),
            // Run 0 begins in iteration 0. This case is separate because a node without gaps has
            // only run 0, and the next case would divide by its `inner`, which is 0.
            Boundaries::Touching if run == 0 => 0,
            Boundaries::Touching => (run - 1) / self.inner,
            Boundaries::Mixed(_) => partition_point(n, |i| self.before(i) + self.inner < run),
        }
    }

    /// Returns the index of the last of `n` iterations that contains a part of any of the runs
    /// `0..run`. `run` must be at least 1.
    #[inline]
    pub(super) fn last_iteration(&self, n: u64, run: u64) -> u64 {
        match &self.boundaries {
            Boundaries::Apart if self.inner == 0 => run - 1,
            Boundaries::Apart => (run - 1) / (self.inner + 1),
            Boundaries::Touching => ((run - 1) / self.inner).min(n - 1),
            Boundaries::Mixed(_) => partition_point(n, |i| self.before(i) < run) - 1,
        }
    }
}

/// Runs of all nodes of a nest. The runs depend neither on the number of instances nor on the
/// address of the instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs(Vec<NodeRuns>);

impl Runs {
    /// Computes the runs of `nest`, in O(nodes + rows).
    ///
    /// # Errors
    /// Class `NoMem`.
    pub fn new(nest: &LoopNest<Normal>) -> Result<Runs> {
        let n = nest.nodes().len();
        let (mut runs, mut ends): (_, Vec<End>) =
            (Runs(try_with_capacity("segments", n)?), try_with_capacity("segments", n)?);
        for node in nest.nodes() {
            // There is a gap before a node if it does not begin where the node before it ends. The
            // prefix sum in `last` also counts a gap before the first node of a body. That gap has
            // no effect, because only differences within a body are used.
            let at = node.offsets().user;
            let before = ends.last().map_or(0, |left| left.last.wrapping_add((left.at != at).into()));
            // Now compute the facts about the node itself: the number of gaps inside one iteration,
            // the boundaries, the number of iterations, and the end of the last iteration. If the
            // trip of the node is a multiple of the instance count, 1 is used as the number of
            // iterations. Sums may wrap if they are not the displacement of any byte.
            let (inner, boundaries, n, end) = match node {
                Node::Copy { n, .. } => (0, Boundaries::Apart, 1, n.k as i64),
                Node::Loop { trip, step, body, .. } => {
                    let (inner, end) = runs.body(*body, &ends);
                    let boundaries = if step.user == end { Boundaries::Touching } else { Boundaries::Apart };
                    let n = if trip.per_count { 1 } else { trip.k };
                    (inner, boundaries, n, end.wrapping_add(step.user.wrapping_mul(n.wrapping_sub(1) as i64)))
                }
                Node::Table { displacements, body, .. } => {
                    let (inner, end) = runs.body(*body, &ends);
                    let n = displacements.len();
                    let boundaries = match displacements {
                        Column::I32(rows) => equal_rows(rows, end)?,
                        Column::I64(rows) => equal_rows(rows, end)?,
                    };
                    (inner, boundaries, n as u64, displacements.get(n - 1).wrapping_add(end))
                }
                Node::Blocks { user, len, .. } => {
                    let n = len.len();
                    let boundaries = match (user, len) {
                        (Column::I32(rows), Column::I32(len)) => rows_with_lengths(rows, len)?,
                        (Column::I32(rows), Column::I64(len)) => rows_with_lengths(rows, len)?,
                        (Column::I64(rows), Column::I32(len)) => rows_with_lengths(rows, len)?,
                        (Column::I64(rows), Column::I64(len)) => rows_with_lengths(rows, len)?,
                    };
                    (0, boundaries, n as u64, user.get(n - 1).wrapping_add(len.get(n - 1)))
                }
            };
            let made = NodeRuns { before, inner, boundaries };
            ends.push(End { at: at.wrapping_add(end), last: before.wrapping_add(made.gaps(n)) });
            runs.0.push(made);
        }
        Ok(runs)
    }

    /// Returns the number of gaps inside a body, and the user offset of its end.
    #[inline]
    fn body(&self, body: Body, ends: &[End]) -> (u64, i64) {
        let end = ends[body.range().end - 1];
        (end.last.wrapping_sub(self.0[body.start as usize].before), end.at)
    }

    /// Returns the number of bytes that the runs occupy.
    pub fn bytes_stored(&self) -> usize {
        let columns = self.0.iter().map(|runs| match &runs.boundaries {
            Boundaries::Mixed(before) => before.bytes(),
            Boundaries::Apart | Boundaries::Touching => 0,
        });
        size_of_val(&*self.0) + columns.sum::<usize>()
    }

    /// Returns the runs of node `i`.
    #[inline]
    pub(super) fn node(&self, i: usize) -> &NodeRuns {
        &self.0[i]
    }

    /// Returns the number of gaps in a body before its node `i`.
    #[inline]
    pub(super) fn before(&self, body: Body, i: usize) -> u64 {
        self.0[i].before.wrapping_sub(self.0[body.start as usize].before)
    }

    /// Returns the index of the first node of a body of `nest` that contains a part of run `run`.
    #[inline]
    pub(super) fn first_node(&self, nest: &LoopNest<Normal>, body: Body, run: u64) -> usize {
        let start = body.start as usize;
        if body.len == 1 || run == 0 {
            return start;
        }
        let i = start
            + partition_point(body.len.into(), |k| self.before(body, start + k as usize) < run) as usize
            - 1;
        // In a body of several nodes, no trip or length is a multiple of the instance count, so the
        // instance count 1 gives the same result as any other.
        let last = self.before(body, i) + self.node(i).gaps(iterations(&nest.nodes()[i], 1));
        i + usize::from(last < run)
    }
}

/// Returns the number of iterations or rows of a node.
#[inline]
pub(super) fn iterations(node: &Node, count: u64) -> u64 {
    match node {
        Node::Loop { trip, .. } => trip.for_count(count),
        Node::Table { displacements, .. } => displacements.len() as u64,
        Node::Blocks { len, .. } => len.len() as u64,
        Node::Copy { .. } => 1,
    }
}

/// Classifies the boundaries between neighbouring rows. Each row ends `end` bytes after its
/// displacement in `rows`.
fn equal_rows<T: Copy + Into<i64>>(rows: &[T], end: i64) -> Result<Boundaries> {
    classify(rows.windows(2).map(|pair| pair[0].into().wrapping_add(end) != pair[1].into()))
}

/// Classifies the boundaries between neighbouring rows, where row `i` has `len[i]` bytes.
fn rows_with_lengths<T: Copy + Into<i64>, L: Copy + Into<i64>>(rows: &[T], len: &[L]) -> Result<Boundaries> {
    classify(
        rows.windows(2)
            .zip(len)
            .map(|(pair, &len)| pair[0].into().wrapping_add(len.into()) != pair[1].into()),
    )
}

/// Classifies the boundaries between neighbouring rows: all boundaries have a gap, no boundary has
/// a gap, or only some have a gap. `gaps` has an item for each boundary, in order, which is true if
/// the boundary has a gap. If only some boundaries have a gap, the result contains the number of
/// gaps before each row.
fn classify(gaps: impl ExactSizeIterator<Item = bool> + Clone) -> Result<Boundaries> {
    let n = gaps.len();
    let number: usize = gaps.clone().map(usize::from).sum();
    if number == n {
        return Ok(Boundaries::Apart);
    }
    if number == 0 {
        return Ok(Boundaries::Touching);
    }
    let (mut gaps, mut before) = (gaps, 0);
    let column = Column::build((0..n + 1).map(move |i| {
        before += i64::from(i > 0 && gaps.next() == Some(true));
        before
    }))?;
    Ok(Boundaries::Mixed(column))
}
