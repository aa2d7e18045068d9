//! Does unpacking write any user byte twice? Asked by schedules that want to reorder an unpack.
//!
//! Source: interval nesting by sorted stride. A set of byte ranges repeated at a stride no smaller than the set's width does
//! not overlap itself; applied from the smallest stride to the largest it decides perfectly nested loops in any order.

use super::{LoopNest, Node, Phase};
use crate::column::room;
use crate::error::Result;

/// What is known about overlap of the user bytes of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disjoint {
    /// No two entries share a user byte, for every instance count up to this one.
    UpTo(u64),
    /// Some user byte certainly belongs to two entries (already at one instance, or at two).
    No,
    /// Neither could be shown.
    Unknown,
}

impl Disjoint {
    /// Whether disjointness holds for `count` instances.
    pub fn holds(self, count: u64) -> bool {
        matches!(self, Disjoint::UpTo(max) if count <= max)
    }
}

/// What one iteration of a node or body touches: bytes `[lo, hi)`, and the loops above it whose order is still free.
#[derive(Clone, Debug)]
struct Shape {
    lo: i128,
    hi: i128,
    /// Whether the entries inside `[lo, hi)` are known disjoint (`Some(false)`: known to overlap).
    inner: Option<bool>,
    /// Perfectly nested loops around the leaf: (stride, trip; 0 stands for the instance count).
    loops: Vec<(i128, u64)>,
}

impl<P: Phase> LoopNest<P> {
    /// Whether the user bytes of `count` instances are pairwise disjoint, and up to which count.
    ///
    /// Cost: O(nodes), O(rows log rows) for tables. Unknown where there is no memory for sorting rows.
    pub fn disjoint(&self) -> Disjoint {
        self.decided().unwrap_or(Disjoint::Unknown)
    }

    fn decided(&self) -> Result<Disjoint> {
        let mut shapes: Vec<Shape> = room("disjoint", self.nodes().len())?;
        for node in self.nodes() {
            let shape = self.node_shape(node, &shapes)?;
            shapes.push(shape);
        }
        Ok(self.judged(&shapes))
    }

    /// What the shapes of all nodes say.
    fn judged(&self, shapes: &[Shape]) -> Disjoint {
        let Some(root) = self.root().range().next() else { return Disjoint::UpTo(u64::MAX) };
        let shape = &shapes[root];
        match shape.inner {
            Some(true) => {}
            Some(false) => return Disjoint::No,
            None => return Disjoint::Unknown,
        }
        match (close(shape), &self.nodes()[root]) {
            // `k * count` iterations: the limit is one on iterations.
            (Disjoint::UpTo(max), Node::Loop { trip, .. }) if max < u64::MAX => {
                Disjoint::UpTo(max / trip.k.max(1))
            }
            (known, _) => known,
        }
    }

    fn node_shape(&self, node: &Node, shapes: &[Shape]) -> Result<Shape> {
        let at = i128::from(node.at().user);
        Ok(match node {
            Node::Copy { n, unit, .. } => {
                let width = i128::from(n.k) * i128::from(unit.user());
                // A dense run of any count never overlaps itself: the count is inside the run.
                Shape { lo: at, hi: at + width, inner: Some(true), loops: Vec::new() }
            }
            Node::Blocks { user, len, .. } => {
                let rows =
                    user.iter().zip(len.iter()).map(|(u, l)| (i128::from(u), i128::from(u) + i128::from(l)));
                ranges(at, rows)?
            }
            Node::Table { displacements, body, .. } => {
                let b = self.body_shape(&shapes[body.range()]);
                let leaf = fold(&b);
                let rows = displacements.iter().map(|d| (i128::from(d) + leaf.lo, i128::from(d) + leaf.hi));
                let mut s = ranges(at, rows)?;
                // Overlapping hulls prove overlap only when the body fills its hull.
                let filled = matches!(self.body(*body), [Node::Copy { .. }]);
                s.inner = match (s.inner, leaf.inner) {
                    (Some(true), Some(true)) => Some(true),
                    (_, Some(false)) => Some(false),
                    (Some(false), _) if filled => Some(false),
                    _ => None,
                };
                s
            }
            Node::Loop { trip, step, body, .. } => {
                let mut b = self.body_shape(&shapes[body.range()]);
                b.lo += at;
                b.hi += at;
                let k = if trip.per_count { 0 } else { trip.k };
                if k != 1 {
                    b.loops.push((i128::from(step.user), k));
                }
                b
            }
        })
    }

    fn body_shape(&self, shapes: &[Shape]) -> Shape {
        match shapes {
            [one] => one.clone(),
            many => {
                let mut folded: Vec<Shape> = many.iter().map(fold).collect();
                folded.sort_by_key(|s| s.lo);
                let apart = folded.windows(2).all(|w| w[0].hi <= w[1].lo);
                let inner = if folded.iter().any(|s| s.inner == Some(false)) {
                    Some(false)
                } else if apart && folded.iter().all(|s| s.inner == Some(true)) {
                    Some(true)
                } else {
                    None
                };
                Shape {
                    lo: folded.iter().map(|s| s.lo).min().unwrap_or(0),
                    hi: folded.iter().map(|s| s.hi).max().unwrap_or(0),
                    inner,
                    loops: Vec::new(),
                }
            }
        }
    }
}

/// Rows as one shape: disjoint exactly when sorted neighbours are.
fn ranges(at: i128, all: impl ExactSizeIterator<Item = (i128, i128)>) -> Result<Shape> {
    let mut rows = room("disjoint", all.len())?;
    rows.extend(all);
    rows.sort_unstable();
    let inner = Some(rows.windows(2).all(|w| w[0].1 <= w[1].0));
    let lo = rows.first().map_or(0, |r| r.0);
    let hi = rows.iter().map(|r| r.1).max().unwrap_or(0);
    Ok(Shape { lo: at + lo, hi: at + hi, inner, loops: Vec::new() })
}

/// The shape with its (count-free) loops folded into the hull.
fn fold(shape: &Shape) -> Shape {
    let ok = match close(shape) {
        Disjoint::UpTo(_) => shape.inner,
        Disjoint::No => Some(false),
        Disjoint::Unknown => shape.inner.filter(|&b| !b),
    };
    let (mut lo, mut hi) = (shape.lo, shape.hi);
    for &(stride, trip) in &shape.loops {
        let last = stride * (i128::from(trip.max(1)) - 1);
        lo += last.min(0);
        hi += last.max(0);
    }
    Shape { lo, hi, inner: ok, loops: Vec::new() }
}

/// Decides the loops of `shape` from the smallest stride up, given that its inside is disjoint.
fn close(shape: &Shape) -> Disjoint {
    let mut loops = shape.loops.clone();
    loops.sort_by_key(|&(s, _)| s.abs());
    let mut span = shape.hi - shape.lo;
    let mut limit = u64::MAX;
    for (i, &(stride, trip)) in loops.iter().enumerate() {
        let stride = stride.abs();
        if stride < span {
            let lone = i == 0 && shape.loops.len() == 1 && shape.inner == Some(true);
            // One loop around a gapless leaf that moves less than its width certainly overlaps; else it is open.
            let gapless = lone && stride == 0 && (trip != 1);
            return if gapless { Disjoint::No } else { Disjoint::Unknown };
        }
        if trip == 0 {
            // The count: the largest one whose span still fits below every larger stride.
            let next = loops[i + 1..].iter().map(|l| l.0.abs()).min();
            if let Some(next) = next {
                if stride == 0 {
                    return Disjoint::Unknown;
                }
                // span + stride * (count - 1) <= next
                let max = (next - span) / stride + 1;
                limit = limit.min(u64::try_from(max).unwrap_or(u64::MAX));
            }
        }
        let trip = if trip == 0 { i128::from(limit.min(1 << 40)) } else { i128::from(trip) };
        span = span.saturating_add(stride.saturating_mul(trip - 1));
    }
    Disjoint::UpTo(limit)
}
