//! Intervals of the packed stream, and how much of a node of a nest lies inside an interval. A nest
//! is the tree of loops and copies that says what a datatype moves.
//!
//! The packed stream has the order of the type map. Every node of a nest for packing or unpacking
//! therefore covers one interval of the stream, and the iterations of a loop cover pieces of equal
//! length. A position is found by division among iterations, by binary search among rows and by
//! linear search among the nodes of one body, but never by counting iterations or rows.

use crate::nest::{Leaf, LoopNest, Node, Normal, Offsets};

/// A range `[from, to)` of the packed stream, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Offset of the first byte.
    pub from: i64,
    /// Offset one past the last byte.
    pub to: i64,
}

/// Returns the greatest common divisor of two lengths, which is the greatest length of which both
/// are multiples. If one of them is 0, returns the other.
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// How much of one interval of the stream lies inside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// No byte of the interval is inside.
    None,
    /// All bytes of the interval are inside.
    All,
    /// Some bytes of the interval are inside and others are not.
    Part,
}

impl Interval {
    /// Returns how much of the `len` bytes from packed offset `start` on lies inside this interval.
    #[inline]
    pub fn cover(self, start: i64, len: i64) -> Cover {
        let end = start + len;
        if start >= self.from && end <= self.to {
            Cover::All
        } else if end <= self.from || start >= self.to {
            Cover::None
        } else {
            Cover::Part
        }
    }

    /// Clips the `len` bytes that begin at the offsets `at` to this interval of the packed stream.
    /// Returns the offsets and the length of the part inside. The length is 0 if no byte is inside.
    pub fn clip(self, at: Offsets, len: i64) -> (Offsets, i64) {
        let skip = (self.from - at.packed).max(0);
        let end = (self.to - at.packed).min(len);
        (at + Offsets::new(skip, skip), (end - skip).max(0))
    }

    /// Returns the indices of the pieces of which at least one byte lies in this interval. There
    /// are `n` adjacent pieces of `piece` bytes each, the first of which has packed offset `start`.
    /// For an empty interval inside a piece, returns the index of this piece.
    pub fn pieces(self, start: i64, piece: i64, n: u64) -> std::ops::Range<u64> {
        let first = (self.from - start).max(0) / piece;
        let end = self.to - start;
        let last = if end <= 0 { 0 } else { (end - 1) / piece + 1 };
        (first as u64).min(n)..(last as u64).min(n)
    }
}

/// Rounds `position` in the packed stream of `count` instances of `nest` down to the start of a
/// unit. Units are the bytes or values that the leaves of the nest move as a whole. A position
/// above `i64::MAX` is treated as `i64::MAX`, and a position past the last unit is returned as it
/// is.
pub fn boundary<L: Leaf>(nest: &LoopNest<Normal, L>, count: u64, position: u64) -> u64 {
    let position = i64::try_from(position).unwrap_or(i64::MAX);
    let byte = Interval { from: position, to: position.saturating_add(1) };
    // Descend to the unit that contains the byte at `position`. `at` is the packed offset of the
    // current iteration of `body`. At each level, find the node that contains the byte, and then
    // its iteration by a division or its row by binary search.
    let (mut body, mut at) = (nest.root(), 0);
    loop {
        let inside =
            |node: &&Node<L>| byte.cover(at + node.offsets().packed, node.packed_bytes(count)) != Cover::None;
        // If no node contains the byte, it lies past the end of the stream.
        let Some(node) = nest.body(body).iter().find(inside) else { return position as u64 };
        at += node.offsets().packed;
        let leaf = |start: i64, unit: &L| (position - (position - start) % unit.packed()) as u64;
        let (step, inner) = match node {
            Node::Copy { unit, .. } => return leaf(at, unit),
            Node::Blocks { packed, unit, .. } => {
                let row = packed.partition_point(|start| start <= position - at).saturating_sub(1);
                return leaf(at + packed.get(row), unit);
            }
            Node::Loop { step, body, .. } => (step.packed, *body),
            Node::Table { packed, body, .. } => (*packed, *body),
        };
        at += (position - at) / step * step;
        body = inner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;
    use crate::lower::{External32, lower};
    use crate::normalize::normalize;

    #[test]
    fn pieces_are_those_touched() {
        let s = Interval { from: 10, to: 25 };
        assert_eq!(s.pieces(0, 8, 100), 1..4);
        assert_eq!(s.pieces(10, 5, 3), 0..3);
        assert_eq!(s.pieces(30, 5, 3), 0..0);
        assert_eq!(s.pieces(0, 5, 2), 2..2);
        // A piece that begins where the interval ends, or ends where it begins, is not inside. No
        // index is beyond the last piece.
        assert_eq!(s.pieces(10, 5, 100), 0..3);
        assert_eq!(s.pieces(25, 5, 3), 0..0);
        assert_eq!(s.pieces(0, 1, 3), 3..3);
    }

    #[test]
    fn clipping_keeps_the_inside() {
        let s = Interval { from: 10, to: 25 };
        assert_eq!(s.clip(Offsets::new(100, 8), 8), (Offsets::new(102, 10), 6));
        assert_eq!(s.clip(Offsets::new(0, 20), 100), (Offsets::new(0, 20), 5));
        assert_eq!(s.cover(10, 15), Cover::All);
        assert_eq!(s.cover(0, 10), Cover::None);
        assert_eq!(s.cover(0, 11), Cover::Part);
        assert_eq!(s.cover(24, 9), Cover::Part);
        assert_eq!(s.cover(25, 9), Cover::None);
        // Bytes that lie outside, on either side, are clipped to nothing.
        assert_eq!(s.clip(Offsets::new(0, 0), 8).1, 0);
        assert_eq!(s.clip(Offsets::new(0, 30), 8).1, 0);
    }

    /// Checks every position in two instances of a struct of a char and two ints: it is rounded
    /// down to the first byte of the value that contains it. Positions past the end stay unchanged.
    #[test]
    fn boundaries_are_those_of_values() {
        let t: Datatype = "struct([1, 2], [0, 4], [char, int])".parse().unwrap();
        let nest = normalize(&lower(&t, External32).unwrap(), t.arguments()).unwrap().nest;
        let found: Vec<u64> = (0..20).map(|position| boundary(&nest, 2, position)).collect();
        assert_eq!(found, [0, 1, 1, 1, 1, 5, 5, 5, 5, 9, 10, 10, 10, 10, 14, 14, 14, 14, 18, 19]);
    }
}
