//! The loop-nest IR, which says what a datatype moves: loops and tables over copies. Every node has
//! two addresses, user and packed.
//!
//! A nest is a flat vector of nodes. The body of a node is a run of consecutive nodes *before* it,
//! so the vector is a DAG in topological order: bodies can be shared, and cycles cannot be written.
//! Most passes go through the vector without recursion; `schedule` and `refine` recurse, and refuse
//! nests that are too deep. Every node has an offset ([`Offsets`]), relative to the iteration that
//! contains the node ([`Node::offsets`]).
//!
//! The root body has at most one node. The instance count `count` is a factor of the trip or length
//! of this node, and of no other trip or length. All rewrites can apply to the root node too.
//!
//! Phases are sealed marker types: [`Lowered`] (straight from the constructors) and [`Normal`]
//! (canonical; the cache key). The two other type parameters are sealed marker types as well: the
//! leaf ([`Byte`], or a [`Value`] of a class) and the packed side (a [`Stream`], or a second layout
//! in memory, [`MemorySide`]). Source: docs/IR.md, section "Nest".

mod descent;
mod disjoint;
mod divisor;
mod eval;
pub(crate) mod keys;
mod leaf;
mod near;
mod part;
pub(crate) mod rows;
mod text;
mod verify;

use std::fmt;
use std::marker::PhantomData;

use crate::column::{Column, try_reserve};
use crate::error::{Error, ErrorClass, Result};

pub use descent::{Descent, MAX_SCANNED_BLOCKS, NodeKind};
pub use disjoint::Disjoint;
pub use eval::Visit;
pub use leaf::{Byte, Leaf, MemorySide, Number, Side, Stream, Value, ValueClass};
pub use near::MIN_OBJECT_DISTANCE;
pub use part::EqualPieces;

mod sealed {
    pub trait Sealed {}
}

/// Phase of a nest, as a marker type.
pub trait Phase: sealed::Sealed + Copy + fmt::Debug + 'static {
    /// Name of the phase in the text form.
    const NAME: &'static str;
}

/// The phase that `lower` produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lowered;
/// The phase that `normalize` produces, in which nests are canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Normal;

impl sealed::Sealed for Lowered {}
impl sealed::Sealed for Normal {}
impl Phase for Lowered {
    const NAME: &'static str = "lowered";
}
impl Phase for Normal {
    const NAME: &'static str = "normal";
}

/// A pair of byte offsets (or strides): one in user memory, one in the packed stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offsets {
    /// Bytes in user memory.
    pub user: i64,
    /// Bytes in the packed stream.
    pub packed: i64,
}

impl Offsets {
    /// Offset zero on both sides.
    pub const ZERO: Offsets = Offsets { user: 0, packed: 0 };

    /// Returns the offset of `user` bytes in user memory and `packed` bytes in the packed stream.
    pub fn new(user: i64, packed: i64) -> Offsets {
        Offsets { user, packed }
    }

    /// Returns this offset advanced by `i` steps. The sum wraps on overflow. Overflow cannot happen
    /// for an offset at which data is moved, because the constructors have checked the
    /// displacements of all data.
    pub fn step(self, step: Offsets, i: i64) -> Offsets {
        Offsets {
            user: self.user.wrapping_add(step.user.wrapping_mul(i)),
            packed: self.packed.wrapping_add(step.packed.wrapping_mul(i)),
        }
    }
}

impl std::ops::Add for Offsets {
    type Output = Offsets;
    fn add(self, o: Offsets) -> Offsets {
        Offsets { user: self.user.wrapping_add(o.user), packed: self.packed.wrapping_add(o.packed) }
    }
}

impl std::ops::Sub for Offsets {
    type Output = Offsets;
    fn sub(self, o: Offsets) -> Offsets {
        Offsets { user: self.user.wrapping_sub(o.user), packed: self.packed.wrapping_sub(o.packed) }
    }
}

/// A trip count or a length: the constant `k`, or `k * count`, where `count` is the instance count
/// at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    /// The constant factor.
    pub k: u64,
    /// Whether the instance count is a factor too.
    pub per_count: bool,
}

impl Quantity {
    /// Returns the constant `k`.
    pub const fn fixed(k: u64) -> Quantity {
        Quantity { k, per_count: false }
    }

    /// Returns `k` times the instance count.
    pub const fn counted(k: u64) -> Quantity {
        Quantity { k, per_count: true }
    }

    /// Returns the value for `count` instances. The product saturates, because no memory holds a
    /// stream that long.
    pub fn for_count(self, count: u64) -> u64 {
        if self.per_count { self.k.saturating_mul(count) } else { self.k }
    }

    /// Returns the product of two quantities, or `None` if the product does not fit in 63 bits or
    /// the instance count is a factor of both.
    pub fn times(self, factor: Quantity) -> Option<Quantity> {
        if self.per_count && factor.per_count {
            return None;
        }
        let k = self.k.checked_mul(factor.k).filter(|&k| k <= i64::MAX as u64)?;
        Some(Quantity { k, per_count: self.per_count || factor.per_count })
    }

    /// Returns true if this is the constant `k`.
    pub fn is(self, k: u64) -> bool {
        self == Quantity::fixed(k)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.per_count, self.k) {
            (false, k) => write!(f, "{k}"),
            (true, 1) => f.write_str("count"),
            (true, k) => write!(f, "{k}*count"),
        }
    }
}

/// A run of consecutive nodes: the body of a loop or table, in type-map order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Body {
    /// Index of the first node.
    pub start: u32,
    /// Number of nodes.
    pub len: u32,
}

impl Body {
    /// Returns the index range of the body's nodes.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// One node of a nest, with leaves that count in units of type `L`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node<L = Byte> {
    /// Repeats `body` `trip` times; iteration `i` is at `at + i * step`.
    Loop {
        /// Offset of iteration 0.
        at: Offsets,
        /// Number of iterations.
        trip: Quantity,
        /// Strides in bytes.
        step: Offsets,
        /// Body of one iteration.
        body: Body,
    },
    /// Executes `body` once for each displacement: iteration `i` is at user offset `at.user +
    /// displacements[i]` and at packed offset `at.packed + i * packed`.
    Table {
        /// Offset added to every iteration.
        at: Offsets,
        /// User displacements in bytes.
        displacements: Column,
        /// Packed stride in bytes.
        packed: i64,
        /// Body of one iteration.
        body: Body,
    },
    /// Copies rows in order. Each row has its own length: row `i` moves `len[i]` units between user
    /// offset `at.user + user[i]` and packed offset `at.packed + packed[i]`.
    Blocks {
        /// Offset added to every row.
        at: Offsets,
        /// User offsets in bytes.
        user: Column,
        /// Packed offsets in bytes.
        packed: Column,
        /// Lengths in units, all positive.
        len: Column,
        /// Unit in which the lengths count.
        unit: L,
    },
    /// Copies `n` units that are adjacent on both sides.
    Copy {
        /// Offset of the first unit.
        at: Offsets,
        /// Number of units.
        n: Quantity,
        /// Unit in which `n` counts.
        unit: L,
    },
}

impl Node {
    /// Returns a byte copy of constant length.
    pub fn bytes(at: Offsets, n: u64) -> Node {
        Node::units(at, n, Byte)
    }
}

impl<L: Leaf> Node<L> {
    /// Returns a copy of a constant number of units.
    pub fn units(at: Offsets, n: u64, unit: L) -> Node<L> {
        Node::Copy { at, n: Quantity::fixed(n), unit }
    }

    /// Returns the offset of the node, relative to the iteration that contains it. This is the
    /// offset of iteration 0 of a loop, and of the first unit of a copy. For a table or blocks, it
    /// is the offset that the displacements or rows are relative to.
    pub fn offsets(&self) -> Offsets {
        match self {
            Node::Loop { at, .. }
            | Node::Table { at, .. }
            | Node::Blocks { at, .. }
            | Node::Copy { at, .. } => *at,
        }
    }

    /// Returns a mutable reference to the offset that [`Node::offsets`] returns.
    pub fn at_mut(&mut self) -> &mut Offsets {
        match self {
            Node::Loop { at, .. }
            | Node::Table { at, .. }
            | Node::Blocks { at, .. }
            | Node::Copy { at, .. } => at,
        }
    }

    /// Returns the node with its offset replaced.
    pub fn placed(&self, at: Offsets) -> Node<L> {
        let mut node = self.clone();
        *node.at_mut() = at;
        node
    }

    /// Returns true if the nodes are equal apart from their offsets.
    pub fn equal_except_offset(&self, other: &Node<L>) -> bool {
        match (self, other) {
            (
                Node::Loop { trip, step, body, .. },
                Node::Loop { trip: trip2, step: step2, body: body2, .. },
            ) => (trip, step, body) == (trip2, step2, body2),
            (
                Node::Table { displacements, packed, body, .. },
                Node::Table { displacements: displacements2, packed: packed2, body: body2, .. },
            ) => (packed, body, displacements) == (packed2, body2, displacements2),
            (
                Node::Blocks { user, packed, len, unit, .. },
                Node::Blocks { user: user2, packed: packed2, len: len2, unit: unit2, .. },
            ) => (unit, user, packed, len) == (unit2, user2, packed2, len2),
            (Node::Copy { n, unit, .. }, Node::Copy { n: n2, unit: unit2, .. }) => (n, unit) == (n2, unit2),
            _ => false,
        }
    }

    /// Returns the offset of iteration `i`. For a loop, `at` is the offset of iteration 0; for a
    /// table, it is the offset that the displacements are relative to. For other nodes the result
    /// is `at`.
    #[inline]
    pub fn iteration(&self, at: Offsets, i: u64) -> Offsets {
        match self {
            Node::Loop { step, .. } => at.step(*step, i as i64),
            Node::Table { displacements, packed, .. } => {
                at + Offsets::new(displacements.get(i as usize), packed.wrapping_mul(i as i64))
            }
            Node::Blocks { .. } | Node::Copy { .. } => at,
        }
    }

    /// Returns the number of packed bytes of the whole node for `count` instances. The result is
    /// right only if the packed side is a stream, since iterations and rows have no gaps between
    /// them in a stream.
    #[inline]
    pub fn packed_bytes(&self, count: u64) -> i64 {
        match self {
            Node::Loop { trip, step, .. } => (trip.for_count(count) as i64).wrapping_mul(step.packed),
            Node::Table { displacements, packed, .. } => displacements.len() as i64 * packed,
            Node::Blocks { packed, len, unit, .. } => match len.len() {
                0 => 0,
                n => packed.get(n - 1) + len.get(n - 1).wrapping_mul(unit.packed()),
            },
            Node::Copy { n, unit, .. } => (n.for_count(count) as i64).wrapping_mul(unit.packed()),
        }
    }

    /// Returns the number of rows in the node's own columns.
    pub fn rows(&self) -> usize {
        match self {
            Node::Table { displacements, .. } => displacements.len(),
            Node::Blocks { len, .. } => len.len(),
            Node::Loop { .. } | Node::Copy { .. } => 0,
        }
    }

    /// Returns the body of a loop or table.
    pub fn body(&self) -> Option<Body> {
        match self {
            Node::Loop { body, .. } | Node::Table { body, .. } => Some(*body),
            Node::Blocks { .. } | Node::Copy { .. } => None,
        }
    }

    /// Returns true if the trip or length of the node is a multiple of the instance count.
    pub fn carries_count(&self) -> bool {
        match self {
            Node::Loop { trip, .. } => trip.per_count,
            Node::Copy { n, .. } => n.per_count,
            Node::Table { .. } | Node::Blocks { .. } => false,
        }
    }

    /// Returns the number of bytes that the node occupies in the nest, including its columns.
    pub fn bytes_stored(&self) -> usize {
        size_of::<Node<L>>()
            + match self {
                Node::Table { displacements, .. } => displacements.bytes(),
                Node::Blocks { user, packed, len, .. } => user.bytes() + packed.bytes() + len.bytes(),
                Node::Loop { .. } | Node::Copy { .. } => 0,
            }
    }
}

/// Reserves room in `nodes`, the nodes of a nest that is being made, for those of `list`. The passes
/// that make nests from datatypes call this before they add nodes, so indices of nodes, and of the
/// rows of a node, fit in 32 bits.
///
/// # Errors
/// Class `NoMem` if there is no memory, or if the nest would have more than [`u32::MAX`] nodes or a
/// node has more rows than that.
pub(crate) fn reserve_nodes<L>(stage: &'static str, nodes: &mut Vec<Node<L>>, list: &[Node<L>]) -> Result<()>
where
    L: Leaf,
{
    let most = list.iter().map(Node::rows).fold(nodes.len().saturating_add(list.len()), usize::max);
    check_index(stage, most)?;
    try_reserve(stage, nodes, list.len())
}

/// Checks that `n` nodes or rows can be counted in 32 bits. The error is that of [`reserve_nodes`].
fn check_index(stage: &'static str, n: usize) -> Result<()> {
    if u32::try_from(n).is_ok() {
        return Ok(());
    }
    let rule = "must be at most 2^32 - 1 nodes, and as many rows in each";
    Err(Error::new(ErrorClass::NoMem, stage, "entries", n, rule))
}

/// A loop nest in phase `P`, with leaves of type `L` and packed side `S`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoopNest<P, L = Byte, S = Stream> {
    nodes: Vec<Node<L>>,
    root: Body,
    size: i64,
    extent: i64,
    phase: PhantomData<(P, S)>,
}

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    /// Makes a nest of its parts, with `size` packed bytes and `extent` user bytes per instance.
    /// This function checks nothing; [`LoopNest::verify`] checks a nest.
    pub fn new(nodes: Vec<Node<L>>, root: Body, size: i64, extent: i64) -> Self {
        Self { nodes, root, size, extent, phase: PhantomData }
    }

    /// Returns all nodes, bodies before the nodes that use them.
    pub fn nodes(&self) -> &[Node<L>] {
        &self.nodes
    }

    /// Returns the outermost body. It is empty, or it has one node, whose trip or length is a
    /// multiple of the instance count.
    pub fn root(&self) -> Body {
        self.root
    }

    /// Returns the nodes of `body`.
    pub fn body(&self, body: Body) -> &[Node<L>] {
        &self.nodes[body.range()]
    }

    /// Returns the number of packed bytes of one instance.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Returns the distance in user bytes from one instance to the next.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Returns the number of bytes that the nest occupies, including its columns. A shared column
    /// counts once for every node that has it.
    pub fn bytes_stored(&self) -> usize {
        self.nodes.iter().map(Node::bytes_stored).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_fit_in_32_bits() {
        assert_eq!(check_index("lower", u32::MAX as usize), Ok(()));
        let refused = check_index("lower", 1 << 32).unwrap_err();
        assert_eq!((refused.class(), refused.value()), (ErrorClass::NoMem, "4294967296"));
    }

    /// Tests that the size of a nest includes every node and the rows of the node's own columns.
    #[test]
    fn rows_are_stored_bytes() {
        let stored = |text: &str| text.parse::<LoopNest<Normal>>().unwrap().bytes_stored();
        let dense = stored("nest normal size 4 extent 4\ncopy 4*count");
        assert_eq!(dense, size_of::<Node>());
        let rows = "nest normal size 12 extent 60\nloop count step 60 12 {\ntable [0 20 36] packed 4 {\ncopy 4\n}\n}";
        assert_eq!(stored(rows), 3 * size_of::<Node>() + 3 * 4);
        let blocks = "nest normal size 14 extent 30\nloop count step 30 14 {\nblocks [0:0:2 5:2:12]\n}";
        assert_eq!(stored(blocks), 2 * size_of::<Node>() + 6 * 4);
    }
}
