//! Overlap analysis: whether a transfer writes any byte of a side twice. The scheduler needs this
//! result before it chooses an order different from that of the type map.
//!
//! Method: interval nesting by sorted stride. If a set of byte ranges is repeated at a stride that
//! is not smaller than the width of the set, the repetitions do not overlap. Perfectly nested loops
//! are examined from the smallest stride to the largest, whatever the order of nesting is. This
//! condition is sufficient but not necessary. Loops that do not meet it may still be disjoint, so
//! their result is `Unknown`. The exception is a loop with stride 0, which certainly repeats its
//! bytes.

use std::collections::HashMap;

use super::{Body, Leaf, LoopNest, Node, Offsets, Phase, Quantity, Side, Stream};
use crate::column::try_with_capacity;
use crate::error::Result;
use crate::kind::Direction;

/// Result of the overlap analysis of a nest, for one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disjoint {
    /// No two entries share a byte, for any instance count up to this one.
    UpTo(u64),
    /// Some byte certainly belongs to two entries of two instances, or even to two entries of one
    /// instance.
    No,
    /// The analysis could not show whether entries overlap.
    Unknown,
}

impl Disjoint {
    /// Returns true if the entries of `count` instances are known to be disjoint.
    pub fn holds(self, count: u64) -> bool {
        matches!(self, Disjoint::UpTo(max) if count <= max)
    }
}

/// The range of bytes `[lo, hi)`, never empty, that one iteration of a node or body touches, and
/// the loops around this range. The loops are kept in a list, and are not folded into the range at
/// once, so that they can be sorted by stride later.
#[derive(Clone, Debug)]
struct Shape {
    lo: i128,
    hi: i128,
    /// `Some(true)` if the entries inside `[lo, hi)` are known to be disjoint, `Some(false)` if
    /// they are known to overlap, and `None` if neither is known.
    inner: Option<bool>,
    /// Perfectly nested loops around the range. Each has a stride and a trip count of at least 2;
    /// the trip count is `None` if it is a multiple of the instance count.
    loops: Vec<(i128, Option<u64>)>,
}

impl Shape {
    /// Puts the shape into a loop whose iteration 0 is at `at`.
    fn repeat(&mut self, at: i128, step: i64, trip: Quantity) {
        self.lo += at;
        self.hi += at;
        if !trip.is(1) {
            self.loops.push((i128::from(step), (!trip.per_count).then_some(trip.k)));
        }
    }
}

/// Address space in which the analysis looks for overlaps.
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
    /// Returns whether the user bytes of all entries are pairwise disjoint, and the maximum
    /// instance count for which this is known.
    ///
    /// Tables and blocks cost O(rows log rows), because their rows are sorted. A body of n nodes
    /// costs O(n log n) once, however many nodes use it. A chain of perfectly nested loops costs
    /// O(depth^2), because each loop copies the list of the loops inside it. The result is
    /// `Unknown` if there is no memory for sorting the rows.
    pub fn disjoint(&self) -> Disjoint {
        self.disjoint_on(AddressSpace::User)
    }

    /// Returns whether the bytes that a transfer in `direction` writes are disjoint. Packing into a
    /// stream writes every byte once.
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

    /// Computes the shape of every node. A node that moves nothing has no shape: it overlaps
    /// nothing, wherever it lies and however often it is repeated.
    fn shapes(&self, space: AddressSpace) -> Result<Vec<Option<Shape>>> {
        let mut shapes: Vec<Option<Shape>> = try_with_capacity("disjoint", self.nodes().len())?;
        // Shapes of the bodies of several nodes that have been used. Such a body may be long, and
        // many nodes may use it.
        let mut folded: HashMap<Body, Option<Shape>> = HashMap::new();
        for node in self.nodes() {
            let body = match node.body() {
                Some(body) if body.len > 1 => {
                    folded.entry(body).or_insert_with(|| body_shape(&shapes[body.range()])).clone()
                }
                Some(body) => body_shape(&shapes[body.range()]),
                None => None,
            };
            shapes.push(self.node_shape(space, node, body)?);
        }
        Ok(shapes)
    }

    /// Decides whether the entries of the whole nest are disjoint, from the shapes of all nodes.
    fn decide_root(&self, shapes: &[Option<Shape>]) -> Disjoint {
        let Some(shape) = body_shape(&shapes[self.root().range()]) else { return Disjoint::UpTo(u64::MAX) };
        match (decide(&shape), self.body(self.root())) {
            // The root loop has `k * count` iterations. `max` limits these iterations, so it limits
            // the instance count to `max / k`.
            (Disjoint::UpTo(max), [Node::Loop { trip, .. }]) if max < u64::MAX => {
                Disjoint::UpTo(max / trip.k)
            }
            (known, _) => known,
        }
    }

    /// Computes the shape of `node`, whose body has the shape `inner`.
    fn node_shape(&self, space: AddressSpace, node: &Node<L>, inner: Option<Shape>) -> Result<Option<Shape>> {
        // A leaf gives the byte ranges of its rows. A loop adds its stride to the loops of its
        // body's shape, and so does a table in the packed space. The rows of a table in user space
        // have no stride, so they are compared one by one.
        let at = i128::from(space.select(node.offsets()));
        Ok(match node {
            Node::Copy { n, unit, .. } => {
                // A copy is a dense run of bytes, which never overlaps itself. If the length is a
                // multiple of the instance count, more instances only make the run longer.
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
            Node::Table { displacements, packed, .. } if space == AddressSpace::Packed => {
                let Some(mut b) = inner.filter(|_| !displacements.is_empty()) else {
                    return Ok(None);
                };
                b.repeat(at, *packed, Quantity::fixed(displacements.len() as u64));
                Some(b)
            }
            Node::Table { displacements, body, .. } => {
                let Some(leaf) = inner.as_ref().map(hull) else {
                    return Ok(None);
                };
                let rows = displacements.iter().map(|d| (i128::from(d) + leaf.lo, i128::from(d) + leaf.hi));
                let Some(mut s) = ranges(at, rows)? else { return Ok(None) };
                // Even if the ranges of two rows overlap, the rows certainly share a byte only if
                // the body has no gap. That is known only for a body that is a single copy.
                let filled = matches!(self.body(*body), [Node::Copy { .. }]);
                s.inner = match (s.inner, leaf.inner) {
                    (Some(true), Some(true)) => Some(true),
                    (_, Some(false)) => Some(false),
                    (Some(false), _) if filled => Some(false),
                    _ => None,
                };
                Some(s)
            }
            Node::Loop { trip, step, .. } => {
                let Some(mut b) = inner.filter(|_| trip.k > 0) else {
                    return Ok(None);
                };
                b.repeat(at, space.select(*step), *trip);
                Some(b)
            }
        })
    }
}

/// Combines the shapes of the nodes of a body into one. A single node keeps its loops. The loops of
/// several nodes are folded into their ranges `[lo, hi)`, and these ranges are compared. If no two
/// ranges overlap, and each node is disjoint in itself, the body is disjoint. If the ranges of two
/// nodes overlap, the result is unknown, because the ranges may have gaps and the nodes may still
/// share no byte.
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

/// Combines the byte ranges of rows into one shape. The rows are sorted by address; they are
/// disjoint exactly if no row overlaps the next one in this order.
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

/// Returns the shape with its loops folded into the range `[lo, hi)`. No trip count of these loops
/// may be a multiple of the instance count.
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

/// Decides whether a shape is disjoint: first the inside of its range, then its loops by ascending
/// stride.
fn decide(shape: &Shape) -> Disjoint {
    let mut loops: Vec<(i128, Option<u64>)> = shape.loops.iter().map(|&(s, t)| (s.abs(), t)).collect();
    loops.sort_by_key(|l| l.0);
    // If this condition holds, some byte is touched twice: either inside the range `[lo, hi)`
    // itself, or by two iterations of a loop with stride 0.
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
            // Only the trip count of this loop is a multiple of the instance count. Take the
            // largest trip count whose span still fits below the next larger stride:
            // `span + stride * (trip - 1) <= next`.
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
