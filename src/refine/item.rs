//! Items: the nodes, and parts of nodes, of one of two nests that are being joined. Each item has
//! an offset in the memory of its nest.

use std::ops::Range;

use crate::column::Column;
use crate::nest::{Body, Leaf, LoopNest, Node, Normal};

/// A node of a normal nest over a stream, or some whole iterations, rows or units of a node.
#[derive(Clone, Debug)]
pub(super) enum Item<'n, L> {
    /// `n` adjacent units at `at`.
    Run { at: i64, n: u64, unit: L },
    /// `trip` iterations of `body`, each `step` bytes after the iteration before it in memory. Each
    /// iteration covers `bytes` bytes of the stream.
    Loop { at: i64, trip: u64, step: i64, bytes: u64, body: Body },
    /// `body`, executed once for each row in `rows`, at `at` plus the displacement of the row. Each
    /// row covers `bytes` bytes of the stream.
    Table { at: i64, displacements: &'n Column, rows: Range<usize>, bytes: u64, body: Body },
    /// The rows of a `Blocks` node that have the indices `rows`.
    Blocks { at: i64, columns: [&'n Column; 3], rows: Range<usize>, unit: L },
}

/// Key of a chunk of one side, which is a piece of the stream. The key does not depend on the
/// offset of the chunk in memory, so equal chunks at different offsets find the same body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key<L> {
    Body(Body),
    Run(u64, L),
    Loop(Body, u64, i64),
}

impl<'n, L: Leaf> Item<'n, L> {
    /// Makes the item for `node`, in a body at offset `base`. A loop gets `n` iterations, and a
    /// copy `n` units.
    pub(super) fn from_node(node: &'n Node<L>, base: i64, n: u64) -> Item<'n, L> {
        let at = base.wrapping_add(node.offsets().user);
        match node {
            Node::Copy { unit, .. } => Item::Run { at, n, unit: *unit },
            Node::Loop { step, body, .. } => {
                Item::Loop { at, trip: n, step: step.user, bytes: step.packed as u64, body: *body }
            }
            Node::Table { displacements, packed, body, .. } => Item::Table {
                at,
                displacements,
                rows: 0..displacements.len(),
                bytes: *packed as u64,
                body: *body,
            },
            Node::Blocks { user, packed, len, unit, .. } => {
                Item::Blocks { at, columns: [user, packed, len], rows: 0..len.len(), unit: *unit }
            }
        }
    }

    /// Returns the nodes of `body` as items, in a body at offset `base`. The last node comes first.
    pub(super) fn body(nest: &'n LoopNest<Normal, L>, body: Body, base: i64) -> Vec<Item<'n, L>> {
        let whole = |node: &Node<L>| match node {
            Node::Copy { n, .. } => n.k,
            Node::Loop { trip, .. } => trip.k,
            Node::Table { .. } | Node::Blocks { .. } => 0,
        };
        nest.body(body).iter().rev().map(|node| Item::from_node(node, base, whole(node))).collect()
    }

    /// Returns the number of bytes of the stream that the item covers.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Item::Run { n, unit, .. } => n * unit.packed() as u64,
            Item::Loop { trip, bytes, .. } => trip * bytes,
            Item::Table { rows, bytes, .. } => rows.len() as u64 * bytes,
            Item::Blocks { columns: [_, packed, len], rows, unit, .. } => {
                if rows.is_empty() {
                    return 0;
                }
                let last = rows.end - 1;
                let end = packed.get(last) + len.get(last) * unit.packed();
                (end - packed.get(rows.start)) as u64
            }
        }
    }

    /// Returns the granule of the item. The granule is a number of bytes of the stream, and the
    /// item can be cut after every multiple of this number. The result is 0 if the parts of the
    /// item have different lengths.
    pub(super) fn granule(&self) -> u64 {
        match self {
            Item::Run { unit, .. } => unit.packed() as u64,
            Item::Loop { bytes, .. } | Item::Table { bytes, .. } => *bytes,
            Item::Blocks { .. } => 0,
        }
    }

    /// Returns the distance in memory from one granule to the next, or `None` for rows, which have
    /// no constant distance.
    pub(super) fn step(&self) -> Option<i64> {
        match self {
            Item::Run { unit, .. } => Some(unit.user()),
            Item::Loop { step, .. } => Some(*step),
            Item::Table { .. } | Item::Blocks { .. } => None,
        }
    }

    /// Cuts the item after `k` granules, or after `k` rows of blocks, which have no granule.
    /// Returns both parts.
    pub(super) fn cut(self, k: u64) -> (Item<'n, L>, Item<'n, L>) {
        let mut rest = self.clone();
        let mut head = self;
        match (&mut head, &mut rest) {
            (Item::Run { n: first, .. }, Item::Run { at, n, unit }) => {
                (*first, *n) = (k, *n - k);
                *at = at.wrapping_add((k as i64).wrapping_mul(unit.user()));
            }
            (Item::Loop { trip: first, .. }, Item::Loop { at, trip, step, .. }) => {
                (*first, *trip) = (k, *trip - k);
                *at = at.wrapping_add((k as i64).wrapping_mul(*step));
            }
            (Item::Table { rows: first, .. }, Item::Table { rows, .. })
            | (Item::Blocks { rows: first, .. }, Item::Blocks { rows, .. }) => {
                first.end = first.start + k as usize;
                rows.start = first.end;
            }
            _ => {}
        }
        (head, rest)
    }

    /// Puts the item on `stack`, with its first iteration or row replaced by the items inside that
    /// iteration or row. A run is put on `stack` unchanged.
    pub(super) fn unfold_first(self, nest: &'n LoopNest<Normal, L>, stack: &mut Vec<Item<'n, L>>) {
        if let Item::Run { .. } = self {
            return stack.push(self);
        }
        let (first, rest) = self.cut(1);
        stack.extend((rest.bytes() > 0).then_some(rest));
        match first {
            Item::Loop { at, body, .. } => stack.extend(Item::body(nest, body, at)),
            Item::Table { at, displacements, rows, body, .. } => {
                stack.extend(Item::body(nest, body, at.wrapping_add(displacements.get(rows.start))));
            }
            Item::Blocks { at, columns: [user, _, len], rows, unit } => {
                let at = at.wrapping_add(user.get(rows.start));
                stack.push(Item::Run { at, n: len.get(rows.start) as u64, unit });
            }
            Item::Run { .. } => {}
        }
    }

    /// Returns the offset of the item in memory. For rows, this is the offset that their
    /// displacements are relative to.
    pub(super) fn offset(&self) -> i64 {
        match self {
            Item::Run { at, .. }
            | Item::Loop { at, .. }
            | Item::Table { at, .. }
            | Item::Blocks { at, .. } => *at,
        }
    }

    /// Returns the item, moved to offset 0, and a key that identifies the moved item. Rows have no
    /// key.
    pub(super) fn moved_to_zero(mut self) -> (Item<'n, L>, Option<Key<L>>) {
        let key = match &self {
            Item::Run { n, unit, .. } => Some(Key::Run(*n, *unit)),
            Item::Loop { trip, step, body, .. } => Some(Key::Loop(*body, *trip, *step)),
            Item::Table { .. } | Item::Blocks { .. } => None,
        };
        let (Item::Run { at, .. } | Item::Loop { at, .. } | Item::Table { at, .. } | Item::Blocks { at, .. }) =
            &mut self;
        *at = 0;
        (self, key)
    }
}
