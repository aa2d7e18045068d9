//! Is any byte of a side written twice? Asked by schedules that want another order than that of the type map.
//!
//! Source: interval nesting by sorted stride. A set of byte ranges repeated at a stride no smaller than the set's width does
//! not overlap itself; applied from the smallest stride to the largest it decides perfectly nested loops in any order.

use super::{Leaf, LoopNest, Node, Offsets, Phase, Quantity, Side, Stream};
use crate::column::try_with_capacity;
use crate::error::Result;
use crate::kind::Direction;

/// Knowledge about overlap of the bytes of a nest on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disjoint {
    /// No two entries share a byte, for every instance count up to this one.
    UpTo(u64),
    /// Some byte certainly belongs to two entries (already at one instance, or at two).
    No,
    /// Neither could be shown.
    Unknown,
}

impl Disjoint {
    /// Says whether disjointness holds for `count` instances.
    pub fn holds(self, count: u64) -> bool {
        matches!(self, Disjoint::UpTo(max) if count <= max)
    }
}

/// Bytes that one iteration of a node or body touches: `[lo, hi)`, at least one, and the loops above it whose order is still free.
#[derive(Clone, Debug)]
struct Shape {
    lo: i128,
    hi: i128,
    /// Whether the entries inside `[lo, hi)` are known disjoint (`Some(false)`: known to overlap).
    inner: Option<bool>,
    /// Perfectly nested loops around them: stride, and trip of at least 2, or none where the instance count is a factor.
    loops: Vec<(i128, Option<u64>)>,
}

impl Shape {
    /// The shape of a loop at `at` around it.
    fn repeat(&mut self, at: i128, step: i64, trip: Quantity) {
        self.lo += at;
        self.hi += at;
        if !trip.is(1) {
            self.loops.push((i128::from(step), (!trip.per_count).then_some(trip.k)));
        }
    }
}

/// The side that is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressSpace {
    User,
    Packed,
}

impl AddressSpace {
    fn select(self, at: Offsets) -> i64 {
        match self {
            AddressSpace::User => at.user,
            AddressSpace::Packed => at.packed,
        }
    }
}

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    /// Says whether the user bytes of `count` instances are pairwise disjoint, and up to which count.
    ///
    /// Cost: O(nodes), O(rows log rows) for tables. Unknown where there is no memory for sorting rows.
    pub fn disjoint(&self) -> Disjoint {
        self.disjoint_on(AddressSpace::User)
    }

    /// Says whether the bytes that a transfer in `direction` writes are disjoint. A stream has every byte once.
    pub fn disjoint_when(&self, direction: Direction) -> Disjoint {
        match direction {
            Direction::Unpack => self.disjoint(),
            Direction::Pack if S::NAME == Stream::NAME => Disjoint::UpTo(u64::MAX),
            Direction::Pack => self.disjoint_on(AddressSpace::Packed),
        }
    }

    fn disjoint_on(&self, space: AddressSpace) -> Disjoint {
        self.shapes(space).map_or(Disjoint::Unknown, |shapes| self.decide_root(&shapes))
    }

    /// The shape of every node. What moves nothing has none: it overlaps nothing, wherever it lies and however often it is repeated.
    fn shapes(&self, space: AddressSpace) -> Result<Vec<Option<Shape>>> {
        let mut shapes = try_with_capacity("disjoint", self.nodes().len())?;
        for node in self.nodes() {
            let shape = self.node_shape(space, node, &shapes)?;
            shapes.push(shape);
        }
        Ok(shapes)
    }

    /// Judges by the shapes of all nodes.
    fn decide_root(&self, shapes: &[Option<Shape>]) -> Disjoint {
        let Some(shape) = body_shape(&shapes[self.root().range()]) else { return Disjoint::UpTo(u64::MAX) };
        match (decide(&shape), self.body(self.root())) {
            // `k * count` iterations: the limit is one on iterations.
            (Disjoint::UpTo(max), [Node::Loop { trip, .. }]) if max < u64::MAX => {
                Disjoint::UpTo(max / trip.k)
            }
            (known, _) => known,
        }
    }

    fn node_shape(
        &self,
        space: AddressSpace,
        node: &Node<L>,
        shapes: &[Option<Shape>],
    ) -> Result<Option<Shape>> {
        let at = i128::from(space.select(node.at()));
        Ok(match node {
            Node::Copy { n, unit, .. } => {
                // A dense run of any count never overlaps itself: the count is inside the run.
                let width = i128::from(n.k) * i128::from(space.select(unit.span(1)));
                (width > 0).then(|| Shape { lo: at, hi: at + width, inner: Some(true), loops: Vec::new() })
            }
            Node::Blocks { user, packed, len, unit, .. } => {
                let width = i128::from(space.select(unit.span(1)));
                let end = |u: i64, l: i64| i128::from(u) + i128::from(l) * width;
                let places = if space == AddressSpace::User { user } else { packed };
                let rows = places.iter().zip(len.iter()).map(|(u, l)| (i128::from(u), end(u, l)));
                ranges(at, rows)?
            }
            Node::Table { displacements, packed, body, .. } if space == AddressSpace::Packed => {
                let Some(mut b) = body_shape(&shapes[body.range()]).filter(|_| !displacements.is_empty())
                else {
                    return Ok(None);
                };
                b.repeat(at, *packed, Quantity::fixed(displacements.len() as u64));
                Some(b)
            }
            Node::Table { displacements, body, .. } => {
                let Some(leaf) = body_shape(&shapes[body.range()]).as_ref().map(hull) else {
                    return Ok(None);
                };
                let rows = displacements.iter().map(|d| (i128::from(d) + leaf.lo, i128::from(d) + leaf.hi));
                let Some(mut s) = ranges(at, rows)? else { return Ok(None) };
                // Overlapping hulls prove overlap only when the body fills its hull.
                let filled = matches!(self.body(*body), [Node::Copy { .. }]);
                s.inner = match (s.inner, leaf.inner) {
                    (Some(true), Some(true)) => Some(true),
                    (_, Some(false)) => Some(false),
                    (Some(false), _) if filled => Some(false),
                    _ => None,
                };
                Some(s)
            }
            Node::Loop { trip, step, body, .. } => {
                let Some(mut b) = body_shape(&shapes[body.range()]).filter(|_| trip.k > 0) else {
                    return Ok(None);
                };
                b.repeat(at, space.select(*step), *trip);
                Some(b)
            }
        })
    }
}

/// The nodes of a body as one shape: one node keeps its loops free, several are apart or unknown.
fn body_shape(shapes: &[Option<Shape>]) -> Option<Shape> {
    let mut moving = shapes.iter().flatten();
    let first = moving.next()?;
    let mut folded: Vec<Shape> = moving.map(hull).collect();
    if folded.is_empty() {
        return Some(first.clone());
    }
    folded.push(hull(first));
    folded.sort_by_key(|s| s.lo);
    let apart = folded.windows(2).all(|w| w[0].hi <= w[1].lo);
    let inner = if folded.iter().any(|s| s.inner == Some(false)) {
        Some(false)
    } else if apart && folded.iter().all(|s| s.inner == Some(true)) {
        Some(true)
    } else {
        None
    };
    let hi = folded.iter().map(|s| s.hi).max()?;
    Some(Shape { lo: folded[0].lo, hi, inner, loops: Vec::new() })
}

/// Rows as one shape: disjoint exactly when sorted neighbours are.
fn ranges(at: i128, all: impl ExactSizeIterator<Item = (i128, i128)>) -> Result<Option<Shape>> {
    let mut rows = try_with_capacity("disjoint", all.len())?;
    rows.extend(all);
    rows.sort_unstable();
    let inner = Some(rows.windows(2).all(|w| w[0].1 <= w[1].0));
    let hi = rows.iter().map(|r| r.1).max();
    Ok(rows.first().zip(hi).map(|(first, hi)| Shape {
        lo: at + first.0,
        hi: at + hi,
        inner,
        loops: Vec::new(),
    }))
}

/// The shape with its (count-free) loops folded into the hull.
fn hull(shape: &Shape) -> Shape {
    let inner = match decide(shape) {
        Disjoint::UpTo(_) => Some(true),
        Disjoint::No => Some(false),
        Disjoint::Unknown => None,
    };
    let (mut lo, mut hi) = (shape.lo, shape.hi);
    for &(stride, trip) in &shape.loops {
        let last = stride * (i128::from(trip.unwrap_or(1)) - 1);
        lo += last.min(0);
        hi += last.max(0);
    }
    Shape { lo, hi, inner, loops: Vec::new() }
}

/// Decides a shape: its inside, and its loops from the smallest stride up.
fn decide(shape: &Shape) -> Disjoint {
    let mut loops: Vec<(i128, Option<u64>)> = shape.loops.iter().map(|&(s, t)| (s.abs(), t)).collect();
    loops.sort_by_key(|l| l.0);
    // Twice in one place: two iterations of a loop that stays there, or one of an inside that does so.
    if shape.inner == Some(false) || loops.first().is_some_and(|l| l.0 == 0) {
        return Disjoint::No;
    }
    if shape.inner.is_none() {
        return Disjoint::Unknown;
    }
    let mut span = shape.hi - shape.lo;
    let mut limit = u64::MAX;
    for (i, &(stride, trip)) in loops.iter().enumerate() {
        if stride < span {
            return Disjoint::Unknown;
        }
        let trip = trip.unwrap_or_else(|| {
            // The count: the largest one whose span still fits below the next larger stride: span + stride * (count - 1) <= next.
            if let Some(&(next, _)) = loops.get(i + 1) {
                limit = u64::try_from((next - span) / stride + 1).unwrap_or(u64::MAX);
            }
            limit
        });
        span = span.saturating_add(stride.saturating_mul(i128::from(trip) - 1));
    }
    Disjoint::UpTo(limit)
}

#[cfg(test)]
mod tests;
