//! Keeps beside a nest, per node, where segments begin, so that they can be counted and found.
//!
//! A **break** is a packed byte that does not lie just behind the one before it in user memory: there a new segment begins. Whether two
//! neighbours of the stream touch depends on both of them alone, so breaks add up: over the nodes of a body, over the iterations of a loop,
//! over the rows of a table. The runs of a node are the pieces that its breaks cut it into, one more than those; the first may go on with what
//! stands before the node, the last with what stands behind it.

use super::partition_point;
use crate::column::{Column, try_with_capacity};
use crate::error::Result;
use crate::nest::{Body, LoopNest, Node, Normal};

/// Which neighbouring iterations or rows of a node have a break between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Boundaries {
    /// All.
    Apart,
    /// None: each begins where the one before it ends.
    Touching,
    /// Some: how many lie before each row.
    Mixed(Column),
}

impl Boundaries {
    /// Breaks between the first `i` iterations and iteration `i` that lie at no place inside an iteration.
    #[inline]
    fn before(&self, i: u64) -> u64 {
        match self {
            Boundaries::Apart => i,
            Boundaries::Touching => 0,
            Boundaries::Mixed(before) => before.get(i as usize) as u64,
        }
    }
}

/// The runs of one node. Its first byte is at its own offset: bodies and columns of normal nests begin at offset 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeRuns {
    /// Breaks before its first byte, added up over the nodes of the nest: differences count within a body. They wrap, since bodies
    /// that no iteration has together add up too.
    before: u64,
    /// Breaks inside one iteration or row.
    pub(super) inner: u64,
    /// Boundaries between its iterations or rows.
    pub(super) boundaries: Boundaries,
}

/// Where a node ends: user offset, and breaks before that, added up as those before its first byte.
#[derive(Clone, Copy)]
struct End {
    at: i64,
    last: u64,
}

impl NodeRuns {
    /// Breaks before iteration `i`, those between it and the one before it included.
    #[inline]
    pub(super) fn before(&self, i: u64) -> u64 {
        // Below the bytes of a stream.
        i.wrapping_mul(self.inner).wrapping_add(self.boundaries.before(i))
    }

    /// Breaks inside all of `n` iterations: the number of the last run.
    #[inline]
    pub(super) fn breaks(&self, n: u64) -> u64 {
        self.before(n.wrapping_sub(1)).wrapping_add(self.inner)
    }

    /// Returns the first of `n` iterations that has a part of run `run`.
    #[inline]
    pub(super) fn first_iteration(&self, n: u64, run: u64) -> u64 {
        match &self.boundaries {
            Boundaries::Apart if self.inner == 0 => run,
            Boundaries::Apart => run / (self.inner + 1),
            // A node without a break has one run, 0.
            Boundaries::Touching if run == 0 => 0,
            Boundaries::Touching => (run - 1) / self.inner,
            Boundaries::Mixed(_) => partition_point(n, |i| self.before(i) + self.inner < run),
        }
    }

    /// Returns the last of `n` iterations that has a part of a run before `run`, which is at least 1.
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

/// The runs of all nodes of a nest: what depends on neither the number of instances nor their address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs(Vec<NodeRuns>);

impl Runs {
    /// Returns those of `nest`, in O(nodes + rows).
    ///
    /// # Errors
    /// Class `NoMem`.
    pub fn new(nest: &LoopNest<Normal>) -> Result<Runs> {
        let n = nest.nodes().len();
        let (mut runs, mut ends): (_, Vec<End>) =
            (Runs(try_with_capacity("segments", n)?), try_with_capacity("segments", n)?);
        for node in nest.nodes() {
            let at = node.at().user;
            let before = ends.last().map_or(0, |left| left.last.wrapping_add((left.at != at).into()));
            // Sums are reachable displacements; what is no byte's may wrap. Of one iteration, where a node carries the count.
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
            ends.push(End { at: at.wrapping_add(end), last: before.wrapping_add(made.breaks(n)) });
            runs.0.push(made);
        }
        Ok(runs)
    }

    /// Breaks inside a body, and the user offset of its end.
    #[inline]
    fn body(&self, body: Body, ends: &[End]) -> (u64, i64) {
        let end = ends[body.range().end - 1];
        (end.last.wrapping_sub(self.0[body.start as usize].before), end.at)
    }

    /// Returns the bytes that they take.
    pub fn bytes_stored(&self) -> usize {
        let columns = self.0.iter().map(|runs| match &runs.boundaries {
            Boundaries::Mixed(before) => before.bytes(),
            Boundaries::Apart | Boundaries::Touching => 0,
        });
        size_of_val(&*self.0) + columns.sum::<usize>()
    }

    /// Returns those of node `i`.
    #[inline]
    pub(super) fn node(&self, i: usize) -> &NodeRuns {
        &self.0[i]
    }

    /// Breaks of a body before its node `i`.
    #[inline]
    pub(super) fn before(&self, body: Body, i: usize) -> u64 {
        self.0[i].before.wrapping_sub(self.0[body.start as usize].before)
    }

    /// Returns the first node of a body of `nest` that has a part of run `run`.
    #[inline]
    pub(super) fn first_node(&self, nest: &LoopNest<Normal>, body: Body, run: u64) -> usize {
        let start = body.start as usize;
        if body.len == 1 || run == 0 {
            return start;
        }
        let i = start
            + partition_point(body.len.into(), |k| self.before(body, start + k as usize) < run) as usize
            - 1;
        // Of several nodes, none carries the count.
        let last = self.before(body, i) + self.node(i).breaks(iterations(&nest.nodes()[i], 1));
        i + usize::from(last < run)
    }
}

/// Iterations or rows of a node.
#[inline]
pub(super) fn iterations(node: &Node, count: u64) -> u64 {
    match node {
        Node::Loop { trip, .. } => trip.at(count),
        Node::Table { displacements, .. } => displacements.len() as u64,
        Node::Blocks { len, .. } => len.len() as u64,
        Node::Copy { .. } => 1,
    }
}

/// The boundaries of rows of which each ends `end` bytes behind its displacement.
fn equal_rows<T: Copy + Into<i64>>(rows: &[T], end: i64) -> Result<Boundaries> {
    classify(rows.windows(2).map(|pair| pair[0].into().wrapping_add(end) != pair[1].into()))
}

/// The boundaries of rows of their own lengths.
fn rows_with_lengths<T: Copy + Into<i64>, L: Copy + Into<i64>>(rows: &[T], len: &[L]) -> Result<Boundaries> {
    classify(
        rows.windows(2)
            .zip(len)
            .map(|(pair, &len)| pair[0].into().wrapping_add(len.into()) != pair[1].into()),
    )
}

/// The boundaries that are breaks where `gaps` says so, between neighbours in order.
fn classify(gaps: impl ExactSizeIterator<Item = bool> + Clone) -> Result<Boundaries> {
    let n = gaps.len();
    let breaks: usize = gaps.clone().map(usize::from).sum();
    if breaks == n {
        return Ok(Boundaries::Apart);
    }
    if breaks == 0 {
        return Ok(Boundaries::Touching);
    }
    let (mut gaps, mut before) = (gaps, 0);
    let column = Column::build((0..n + 1).map(move |i| {
        before += i64::from(i > 0 && gaps.next() == Some(true));
        before
    }))?;
    Ok(Boundaries::Mixed(column))
}
