//! A hash that is equal for layouts that differ only in the distances between objects.
//!
//! A datatype of absolute addresses (`MPI_BOTTOM`; MPI 5.0, 5.1.12) contains the places where the
//! objects of the program happen to lie. Another allocation or another run of the program gives
//! another layout, although the same members of the same objects are moved.

use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::Xxh3Default;

use super::{Leaf, LoopNest, Node, Phase, Side};
use crate::column::Column;

/// Minimum distance in bytes at which two places are assumed to be in different objects. Places at
/// a smaller distance may be in one object.
pub const MIN_OBJECT_DISTANCE: i64 = 64 << 10;

/// Maximum number of rows of a nest that is hashed. A datatype of addresses has one row per object.
const MAX_HASHED_ROWS: usize = 4096;

/// Returns true if a distance is so large that its two ends are assumed to lie in different
/// objects.
fn is_far(distance: i64) -> bool {
    distance.unsigned_abs() >= MIN_OBJECT_DISTANCE.unsigned_abs()
}

/// Returns the distance if it may lie within an object.
fn within_object(distance: i64) -> Option<i64> {
    (!is_far(distance)).then_some(distance)
}

/// Returns the distance of each row from the row before it. For the first row it is the distance
/// from 0.
fn distances(rows: &Column) -> impl Iterator<Item = i64> + '_ {
    rows.iter().scan(0, |row, next| Some(next.wrapping_sub(std::mem::replace(row, next))))
}

/// Returns true if one of the [`distances`] is far, as [`is_far`] defines it.
fn has_far(rows: &Column) -> bool {
    // The loop has no early exit, so that the compiler can vectorize it.
    fn any_far<T: Copy + Into<i64>>(rows: &[T]) -> bool {
        let pairs = rows.iter().zip(rows.iter().skip(1));
        pairs.fold(false, |far, (&a, &b)| far | is_far(b.into().wrapping_sub(a.into())))
    }
    let first = rows.iter().next().is_some_and(is_far);
    first
        || match rows {
            Column::I32(rows) => any_far(rows),
            Column::I64(rows) => any_far(rows),
        }
}

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    /// Returns a hash of the nest in which all user distances of at least [`MIN_OBJECT_DISTANCE`]
    /// bytes count as equal; `None` if there is no such distance, or if there are too many rows.
    ///
    /// Nests with equal hashes may move different bytes, so the hash must not select a layout. The
    /// engine adds up the bytes that layouts with equal hashes have moved, and compiles a layout
    /// when the sum is large enough.
    pub fn near_hash(&self) -> Option<u64> {
        if self.nodes.iter().map(Node::rows).sum::<usize>() > MAX_HASHED_ROWS || !self.has_far_distance() {
            return None;
        }
        // For each node, hash its user distance from the node before it, and then the distances
        // within the node. Each distance is hashed together with its packed offsets. Then hash the
        // structure of the node: trips, bodies and units.
        let mut hash = Xxh3Default::new();
        let mut before = 0;
        for node in &self.nodes {
            let mut put = |distance: i64, rest: (i64, i64)| (within_object(distance), rest).hash(&mut hash);
            put(node.offsets().user.wrapping_sub(before), (node.offsets().packed, node.rows() as i64));
            before = node.offsets().user;
            match node {
                Node::Loop { step, .. } => put(step.user, (step.packed, 0)),
                Node::Table { displacements, packed, .. } => {
                    distances(displacements).for_each(|distance| put(distance, (*packed, 0)));
                }
                Node::Blocks { user, packed, len, .. } => {
                    let others = packed.iter().zip(len.iter());
                    distances(user).zip(others).for_each(|(distance, other)| put(distance, other));
                }
                Node::Copy { .. } => {}
            }
            match node {
                Node::Loop { trip, body, .. } => (0, trip, Some(body)).hash(&mut hash),
                Node::Table { body, .. } => (1, Some(body)).hash(&mut hash),
                Node::Blocks { unit, .. } => (2, unit).hash(&mut hash),
                Node::Copy { n, unit, .. } => (3, n, unit).hash(&mut hash),
            }
        }
        Some(hash.finish())
    }

    /// Returns true if the nest has a distance in user memory that is far, as [`is_far`] defines
    /// it. Most nests have none and are not hashed.
    fn has_far_distance(&self) -> bool {
        let mut before = 0;
        self.nodes.iter().any(|node| {
            let distance =
                node.offsets().user.wrapping_sub(std::mem::replace(&mut before, node.offsets().user));
            is_far(distance)
                || match node {
                    Node::Loop { step, .. } => is_far(step.user),
                    Node::Table { displacements: user, .. } | Node::Blocks { user, .. } => has_far(user),
                    Node::Copy { .. } => false,
                }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::datatype::Datatype;
    use crate::lower::{Bytes, lower};
    use crate::normalize::normalize;

    fn near_hash(text: &str) -> Option<u64> {
        let t: Datatype = text.parse().unwrap();
        normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap().nest.near_hash()
    }

    #[test]
    fn objects_elsewhere_are_the_same_objects() {
        let objects = |a: i64, b: i64, n: i64| {
            near_hash(&format!("struct([1,1,{n}],[{a},{},{b}],[double,int,float])", a + 16))
                .expect("far apart")
        };
        let one = objects(0x5555_0000_0000, 0x5555_0100_0000, 5);
        assert_eq!(one, objects(0x7fff_0000_0010, 0x5555_0700_0000, 5));
        assert_ne!(one, objects(0x5555_0000_0000, 0x5555_0100_0000, 6));
        // Tables whose rows lie at different far distances also have the same hash.
        let rows = |a: i64, b: i64, c: i64| {
            near_hash(&format!("hindexed_block(3,[{a},{b},{c},{}],int)", c + 100)).expect("far apart")
        };
        assert_eq!(rows(1 << 40, 3 << 40, 5 << 30), rows(7 << 20, 9 << 30, 1 << 50));
        // A distance that may lie within one object is hashed, so a change of it changes the hash.
        assert_ne!(
            objects(1 << 40, 3 << 40, 5),
            near_hash("struct([1,1,5],[0,24,1000000],[double,int,float])").unwrap()
        );
    }

    #[test]
    fn layouts_of_one_object_have_none() {
        for t in ["vector(4,1,2,double)", "hindexed([1,1],[0,65532],char)", "contiguous(10,int)"] {
            assert_eq!(near_hash(t), None, "{t}");
        }
    }
}
