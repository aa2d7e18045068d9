//! Listing of segments: writes the runs `[lo, hi)` of a nest to an array of the caller. The runs of
//! a whole nest are its segments. The code descends the nest once to the first and once to the last
//! of these runs, and does not search for the runs between them.
//!
//! At every node, the runs to list are the end of one iteration (the head), then whole iterations,
//! and then the beginning of one iteration (the tail). Whole iterations of a loop have the same
//! runs at a constant distance, so the code lists only two of them and makes the others by copying.
//! The number of runs is known in advance, so no check for the end of the array is needed while
//! listing. Besides, `Filled` cannot be written past its end.

use std::ops::Range;

use smallvec::SmallVec;

use super::runs::{Boundaries, NodeRuns, Runs, iterations};
use super::{Segment, Segments};
use crate::column::Column;
use crate::error::{Error, ErrorClass, Result};
use crate::filled::Filled;
use crate::nest::{Body, LoopNest, Node, Normal};

/// Maximum number of entries that the stack of steps holds without allocating memory.
const INLINE_STEPS: usize = 16;

/// A part of the nest that has not been listed yet. On the stack of steps, the part that is listed
/// next is on top.
#[derive(Clone, Copy)]
enum Step {
    /// Runs `[lo, hi)` of one iteration of `body`, which is at user offset `at`.
    Part { body: Body, at: i64, lo: u64, hi: u64 },
    /// Whole iterations `[from, to)` of node `i`, whose iteration 0 is at user offset `at`.
    Whole { i: usize, at: i64, from: u64, to: u64 },
    /// `times` more iterations after two iterations that have been listed. Each iteration adds
    /// `runs` segments, which lie `step` bytes after the segments of the iteration before.
    /// `touching` is true if each iteration begins where the iteration before it ends.
    Repeat { times: u64, runs: u64, step: i64, touching: bool },
}

/// State of a list under construction.
struct List<'a, 'o> {
    nest: &'a LoopNest<Normal>,
    runs: &'a Runs,
    count: u64,
    /// The segments listed so far. The last segment may still grow.
    out: &'a mut Filled<'o, Segment>,
    steps: SmallVec<[Step; INLINE_STEPS]>,
}

/// Fills `out` with the segments from `lo` on. `out` must be empty. It must have room for at least
/// one segment, and not for more segments than there are from `lo` on.
pub(super) fn list(segments: &Segments<'_>, lo: u64, out: &mut Filled<'_, Segment>) -> Result<()> {
    let Segments { nest, runs, count, base, .. } = *segments;
    let hi = lo + out.room() as u64;
    let mut list = List { nest, runs, count, out, steps: SmallVec::new() };
    list.part(nest.root(), base, lo, hi)?;
    while let Some(step) = list.steps.pop() {
        match step {
            Step::Part { body, at, lo, hi } => list.part(body, at, lo, hi)?,
            Step::Whole { i, at, from, to } => list.whole(i, at, from, to)?,
            Step::Repeat { times, runs, step, touching } => list.repeat_last(times, runs, step, touching),
        }
    }
    Ok(())
}

impl List<'_, '_> {
    /// Puts a step on the stack for later.
    #[inline]
    fn defer(&mut self, step: Step) -> Result<()> {
        if self.steps.len() == self.steps.capacity() {
            self.steps.try_reserve(1).map_err(|_| {
                let rule = "there must be memory for the levels of the datatype";
                Error::new(ErrorClass::NoMem, "segments", "levels", self.steps.len(), rule)
            })?;
        }
        self.steps.push(step);
        Ok(())
    }

    /// Lists the runs `[lo, hi)` of one iteration of a body at user offset `at`. There must be at
    /// least one run.
    #[inline]
    fn part(&mut self, mut body: Body, mut at: i64, mut lo: u64, mut hi: u64) -> Result<()> {
        loop {
            // Find the first node that contains a part of run `lo`.
            let i = self.runs.first_node(self.nest, body, lo);
            let (node, runs) = (&self.nest.nodes()[i], self.runs.node(i));
            let n = iterations(node, self.count);
            let (before, gaps) = (self.runs.before(body, i), runs.gaps(n));
            // Split off the runs that belong to later nodes of the body, if there are any. These
            // runs begin at run 0 of the later nodes.
            let mut rest = None;
            if i + 1 < body.range().end {
                let first = self.runs.before(body, i + 1);
                if first < hi {
                    let body = Body { start: i as u32 + 1, len: body.range().end as u32 - i as u32 - 1 };
                    rest = Some((body, at, 0, hi - first));
                }
                hi = hi.min(before + gaps + 1);
            }
            (lo, hi) = (lo - before, hi - before);
            at = at.wrapping_add(node.offsets().user);
            // If the node has no gap at all, it is one piece. If it has gaps between its iterations
            // or rows but not inside them, list its iterations or rows in one loop. In both cases,
            // continue with the later nodes.
            if gaps == 0 {
                self.push(at, node.packed_bytes(self.count) as u64);
            } else if runs.inner == 0 {
                self.rows_of(node, runs, at, lo..hi);
            }
            if gaps == 0 || runs.inner == 0 {
                let Some(rest) = rest else { return Ok(()) };
                (body, at, lo, hi) = rest;
                continue;
            }
            // This node has gaps inside its iterations. Put the later nodes on the stack, and find
            // the first iteration that contains a part of run `lo`.
            if let Some((body, at, lo, hi)) = rest {
                self.defer(Step::Part { body, at, lo, hi })?;
            }
            let Some(inside) = node.body() else { return Ok(()) };
            let a = runs.first_iteration(n, lo);
            let before = runs.before(a);
            (lo, hi) = (lo - before, hi - before);
            // If the runs reach beyond iteration `a`, there may be whole iterations and a tail
            // after it. Put both on the stack. If all runs of iteration `a` are to be listed, it is
            // put on the stack together with the whole iterations, and nothing else is left to do
            // here.
            let all = runs.inner + 1;
            if a + 1 < n && hi > runs.before(a + 1) - before {
                let b = runs.last_iteration(n, hi + before);
                let tail = hi + before - runs.before(b);
                let (from, to) = (a + u64::from(lo > 0), b + u64::from(tail >= all));
                if tail < all {
                    self.defer(Step::Part { body: inside, at: iteration(node, at, b), lo: 0, hi: tail })?;
                }
                if from < to {
                    self.defer(Step::Whole { i, at, from, to })?;
                }
                if lo == 0 {
                    return Ok(());
                }
            }
            (body, at, hi) = (inside, iteration(node, at, a), hi.min(all));
        }
    }

    /// Lists the runs `[lo, hi)` of a node at user offset `at` whose iterations or rows have no
    /// gap inside.
    #[inline]
    fn rows_of(&mut self, node: &Node, runs: &NodeRuns, at: i64, Range { start: lo, end: hi }: Range<u64>) {
        let apart = matches!(runs.boundaries, Boundaries::Apart);
        match node {
            Node::Loop { step, .. } => {
                let first = at.wrapping_add(step.user.wrapping_mul(lo as i64));
                self.strided(first, step.user, step.packed as u64, hi - lo);
            }
            Node::Table { displacements, packed, .. } if apart => {
                self.rows(at, displacements, |_| *packed as u64, lo..hi);
            }
            Node::Blocks { user, len, .. } if apart => self.rows(at, user, |i| len.get(i) as u64, lo..hi),
            Node::Table { displacements: user, .. } | Node::Blocks { user, .. } => {
                let n = user.len() as u64;
                for i in runs.first_iteration(n, lo)..=runs.last_iteration(n, hi) {
                    let bytes = match node {
                        Node::Blocks { len, .. } => len.get(i as usize),
                        Node::Table { packed, .. } => *packed,
                        Node::Loop { .. } | Node::Copy { .. } => return,
                    };
                    self.push(at.wrapping_add(user.get(i as usize)), bytes as u64);
                }
            }
            Node::Copy { .. } => {}
        }
    }

    /// Lists all runs of the iterations `[from, to)` of a node. The node has gaps inside its
    /// iterations.
    fn whole(&mut self, i: usize, at: i64, from: u64, to: u64) -> Result<()> {
        let (node, runs) = (&self.nest.nodes()[i], self.runs.node(i));
        let Some(body) = node.body() else { return Ok(()) };
        match node {
            Node::Loop { step, .. } if to - from > 2 => {
                let touching = matches!(runs.boundaries, Boundaries::Touching);
                let each = runs.inner + u64::from(!touching);
                self.defer(Step::Repeat { times: to - from - 2, runs: each, step: step.user, touching })?;
                let at = iteration(node, at, from + 1);
                self.defer(Step::Part { body, at, lo: 0, hi: runs.inner + 1 })?;
            }
            _ if to - from > 1 => self.defer(Step::Whole { i, at, from: from + 1, to })?,
            _ => {}
        }
        self.part(body, iteration(node, at, from), 0, runs.inner + 1)
    }

    /// Lists `times` more iterations of a loop after two that have been listed. Each iteration adds
    /// `runs` segments. Each new segment is a copy of the segment `runs` places before it in the
    /// list, moved by `step` bytes.
    ///
    /// If iterations touch, the last segment of each iteration extends into the next iteration,
    /// except for the very last iteration. The last segment of the list then has to grow, because
    /// an iteration now follows it: it gets the length of the last segment of the iteration before
    /// it. Nothing follows the very last iteration, so its last segment gets the length that the
    /// last segment of the list had before.
    fn repeat_last(&mut self, times: u64, runs: u64, step: i64, touching: bool) {
        let (n, runs) = (self.out.count(), runs as usize);
        let Some(open) = n.checked_sub(1).filter(|_| n > runs) else { return };
        let left = self.out.room();
        let more = usize::try_from(times).unwrap_or(left).saturating_mul(runs).min(left);
        let listed = self.out.entries();
        let end = listed[open].len;
        if touching {
            listed[open].len = listed[open - runs].len;
        }
        match runs {
            1 => repeat_group::<1>(self.out, more, step),
            2 => repeat_group::<2>(self.out, more, step),
            3 => repeat_group::<3>(self.out, more, step),
            4 => repeat_group::<4>(self.out, more, step),
            _ => self.out.extend_from_before(runs, more, |Segment { at, len }| Segment {
                at: at.wrapping_add(step),
                len,
            }),
        }
        if touching && let Some(last) = self.out.entries().last_mut() {
            last.len = end;
        }
    }

    /// Adds a piece of memory to the list. If the piece begins where the last segment ends, that
    /// segment grows.
    #[inline]
    fn push(&mut self, at: i64, len: u64) {
        if let Some(last) = self.out.entries().last_mut()
            && last.end() == at
        {
            last.len += len;
        } else {
            self.out.push(Segment { at, len });
        }
    }

    /// Adds `n` pieces, or fewer if the list has no more room. No piece may touch the piece before
    /// it.
    #[inline]
    fn extend(&mut self, n: u64, pieces: impl Iterator<Item = Segment>) {
        self.out.extend(usize::try_from(n).unwrap_or(usize::MAX), pieces);
    }

    /// Adds `n` pieces of `len` bytes, each `step` bytes after the piece before it. The pieces must
    /// not touch each other, and `n` must be at least 1.
    #[inline]
    fn strided(&mut self, first: i64, step: i64, len: u64, n: u64) {
        self.push(first, len);
        let pieces = (1..).map(|i| Segment { at: first.wrapping_add(step.wrapping_mul(i)), len });
        self.extend(n - 1, pieces);
    }

    /// Adds the rows in `range`, which must not be empty. The rows must not touch each other.
    #[inline]
    fn rows(&mut self, at: i64, rows: &Column, len: impl Fn(usize) -> u64, range: Range<u64>) {
        let (from, n) = (range.start as usize, range.end - range.start);
        self.push(at.wrapping_add(rows.get(from)), len(from));
        match rows {
            Column::I32(rows) => {
                let pieces = rows[from + 1..].iter().zip(from + 1..);
                self.extend(
                    n - 1,
                    pieces.map(|(&row, i)| Segment { at: at.wrapping_add(row.into()), len: len(i) }),
                );
            }
            Column::I64(rows) => {
                let pieces = rows[from + 1..].iter().zip(from + 1..);
                self.extend(n - 1, pieces.map(|(&row, i)| Segment { at: at.wrapping_add(row), len: len(i) }));
            }
        }
    }
}

/// Repeats the last `N` segments, moved by `step` bytes each time, until `n` segments have been
/// added to the list. The group of `N` segments is kept in registers. If the group were read from
/// the list, each segment would have to wait until the segment `N` places before it has been
/// stored.
fn repeat_group<const N: usize>(list: &mut Filled<'_, Segment>, n: usize, step: i64) {
    let Some(&last) = list.entries().last_chunk::<N>() else { return };
    let mut group = last;
    list.extend_by_groups(n, || {
        group.iter_mut().for_each(|segment| segment.at = segment.at.wrapping_add(step));
        group
    });
}

/// Returns the user offset of iteration `i` of a loop or table.
#[inline]
fn iteration(node: &Node, at: i64, i: u64) -> i64 {
    match node {
        Node::Loop { step, .. } => at.wrapping_add(step.user.wrapping_mul(i as i64)),
        Node::Table { displacements, .. } => at.wrapping_add(displacements.get(i as usize)),
        Node::Blocks { .. } | Node::Copy { .. } => at,
    }
}
