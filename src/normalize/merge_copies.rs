//! `copy n at a; copy m at a + n`  -->  `copy n+m at a`, over every run of neighbouring leaves.
//!
//! A run is taken apart into rows (`copy`, `blocks`, and `table` over one copy), adjacent rows are merged, and what is left is
//! written in its one canonical form: one row is a copy; rows with a period are a loop; rows of one length at constant packed
//! distance are a table; all others are blocks. So struct, hindexed, indexed_block and their mixtures meet here.
//!
//! Condition: byte units and constant lengths; adjacent means adjacent on both sides.

use super::{Normalizer, period};
use crate::column::Column;
use crate::error::Result;
use crate::nest::{At, Node, Trip, Unit};

/// Rows of a run of leaves, merged: offsets and lengths in bytes.
#[derive(Default)]
struct Rows {
    user: Vec<i64>,
    packed: Vec<i64>,
    len: Vec<i64>,
}

impl Rows {
    fn push(&mut self, at: At, len: i64) {
        if let (Some(&user), Some(&packed), Some(n)) =
            (self.user.last(), self.packed.last(), self.len.last_mut())
            && At::new(user + *n, packed + *n) == at
        {
            *n += len;
            return;
        }
        self.user.push(at.user);
        self.packed.push(at.packed);
        self.len.push(len);
    }

    fn extend(&mut self, n: &Normalizer, node: &Node) {
        let at = node.at();
        match node {
            Node::Copy { n, .. } => self.push(at, n.k as i64),
            Node::Blocks { user, packed, len, .. } => {
                for column in [&mut self.user, &mut self.packed, &mut self.len] {
                    column.reserve(len.len());
                }
                for i in 0..len.len() {
                    self.push(at + At::new(user.get(i), packed.get(i)), len.get(i));
                }
            }
            Node::Table { displacements, packed, body, .. } => {
                let Some(len) = copy_bytes(n.body(*body)) else { return };
                for (i, d) in displacements.iter().enumerate() {
                    self.push(at + At::new(d, packed * i as i64), len);
                }
            }
            Node::Loop { .. } => {}
        }
    }
}

/// A sequence of rows where it is stored. Generic, so that each kind of storage gets its own loop over 10^6 rows.
trait Sequence: Copy {
    fn count(self) -> usize;
    fn at(self, i: usize) -> At;
    fn len(self, i: usize) -> i64;
    /// The first `count` rows.
    fn first(self, count: usize) -> Self;

    /// Whether two neighbours are adjacent on both sides.
    fn merges(self) -> bool {
        (1..self.count()).any(|i| {
            let len = self.len(i - 1);
            self.at(i - 1) + At::new(len, len) == self.at(i)
        })
    }
}

/// A merged run.
#[derive(Clone, Copy)]
struct Merged<'a>(&'a [i64], &'a [i64], &'a [i64]);

impl Sequence for Merged<'_> {
    fn count(self) -> usize {
        self.0.len()
    }
    fn at(self, i: usize) -> At {
        At::new(self.0[i], self.1[i])
    }
    fn len(self, i: usize) -> i64 {
        self.2[i]
    }
    fn first(self, count: usize) -> Self {
        Merged(&self.0[..count], &self.1[..count], &self.2[..count])
    }
}

/// A table over one copy.
#[derive(Clone, Copy)]
struct Displaced<'a, T> {
    at: At,
    displacements: &'a [T],
    packed: i64,
    len: i64,
}

impl<T: Copy + Into<i64>> Sequence for Displaced<'_, T> {
    fn count(self) -> usize {
        self.displacements.len()
    }
    fn at(self, i: usize) -> At {
        self.at + At::new(self.displacements[i].into(), self.packed.wrapping_mul(i as i64))
    }
    fn len(self, _: usize) -> i64 {
        self.len
    }
    fn first(mut self, count: usize) -> Self {
        self.displacements = &self.displacements[..count];
        self
    }
}

/// Blocks; columns of one width, or looked up entry by entry.
#[derive(Clone, Copy)]
struct Listed<'a, T> {
    at: At,
    columns: [&'a [T]; 3],
}

impl<T: Copy + Into<i64>> Sequence for Listed<'_, T> {
    fn count(self) -> usize {
        self.columns[2].len()
    }
    fn at(self, i: usize) -> At {
        self.at + At::new(self.columns[0][i].into(), self.columns[1][i].into())
    }
    fn len(self, i: usize) -> i64 {
        self.columns[2][i].into()
    }
    fn first(self, count: usize) -> Self {
        Listed { at: self.at, columns: self.columns.map(|c| &c[..count]) }
    }
}

/// The length of a body that is one constant byte copy.
pub(super) fn copy_bytes(body: &[Node]) -> Option<i64> {
    match body {
        [Node::Copy { n: Trip { k, per_count: false }, unit: Unit::Byte, .. }] => Some(*k as i64),
        _ => None,
    }
}

/// Leaves that join a run whatever their length is.
fn joins(node: &Node) -> bool {
    matches!(
        node,
        Node::Copy { n: Trip { per_count: false, .. }, unit: Unit::Byte, .. } | Node::Blocks { .. }
    )
}

/// Merges every maximal run of leaves of the list; a table over one copy is a run of its own.
pub(super) fn rewrite(n: &mut Normalizer, list: Vec<Node>) -> Result<Vec<Node>> {
    let mut out = Vec::with_capacity(list.len());
    let mut nodes = list.into_iter().peekable();
    while let Some(node) = nodes.next() {
        let table = matches!(&node, Node::Table { body, .. } if copy_bytes(n.body(*body)).is_some());
        if !table && !joins(&node) {
            out.push(node);
            continue;
        }
        let lone = table || !nodes.peek().is_some_and(joins);
        if lone && matches!(node, Node::Copy { .. }) {
            out.push(node);
            continue;
        }
        // A leaf that stands alone and has nothing to merge is looked at where it is: 10^6 rows are not copied.
        if lone && let Some(done) = in_place(n, &node) {
            out.extend(done?);
            continue;
        }
        let mut rows = Rows::default();
        rows.extend(n, &node);
        if !table {
            while let Some(next) = nodes.next_if(joins) {
                rows.extend(n, &next);
            }
        }
        out.extend(canonical(n, Merged(&rows.user, &rows.packed, &rows.len), None)?);
    }
    Ok(out)
}

/// The canonical nodes of a table over one copy, or of blocks, unless neighbours merge.
fn in_place(n: &mut Normalizer, node: &Node) -> Option<Result<Vec<Node>>> {
    fn go<S: Sequence>(n: &mut Normalizer, rows: S, node: &Node) -> Option<Result<Vec<Node>>> {
        (!rows.merges()).then(|| canonical(n, rows, Some(node)))
    }
    match node {
        Node::Table { at, displacements, packed, body } => {
            let (at, packed, len) = (*at, *packed, copy_bytes(n.body(*body))?);
            match displacements {
                Column::I32(d) => go(n, Displaced { at, displacements: d, packed, len }, node),
                Column::I64(d) => go(n, Displaced { at, displacements: d, packed, len }, node),
            }
        }
        Node::Blocks { at, user: Column::I32(u), packed: Column::I32(p), len: Column::I32(l) } => {
            go(n, Listed { at: *at, columns: [u, p, l] }, node)
        }
        Node::Blocks { at, user: Column::I64(u), packed: Column::I64(p), len: Column::I64(l) } => {
            go(n, Listed { at: *at, columns: [u, p, l] }, node)
        }
        Node::Blocks { .. } | Node::Loop { .. } | Node::Copy { .. } => None,
    }
}

/// The canonical nodes for merged rows; `node` is what they come from, if they are all of it.
fn canonical<S: Sequence>(n: &mut Normalizer, rows: S, node: Option<&Node>) -> Result<Vec<Node>> {
    let count = rows.count();
    let (at, length) = (rows.at(0), rows.len(0));
    if count == 1 {
        return Ok(vec![Node::bytes(at, length as u64)]);
    }
    if let Some((p, step)) = period::of(count, |i| rows.at(i), |i, j| rows.len(i) == rows.len(j)) {
        let list = canonical(n, rows.first(p), None)?;
        return Ok(n.looped((count / p) as u64, step, list));
    }
    // Columns start at zero: the first row's place is the node's.
    if let Some(node) = node.filter(|node| node.at() == at) {
        match node {
            Node::Table { .. } => return Ok(vec![node.clone()]),
            Node::Blocks { len, .. } if len.iter().any(|l| l != length) => return Ok(vec![node.clone()]),
            _ => {}
        }
    }
    let indices = 0..count;
    let user = Column::build(indices.clone().map(|i| rows.at(i).user.wrapping_sub(at.user)));
    let stride = rows.at(1).packed - at.packed;
    let even =
        (1..count).all(|i| rows.len(i) == length && rows.at(i).packed - rows.at(i - 1).packed == stride);
    if even {
        let body = n.close(vec![Node::bytes(At::ZERO, length as u64)]).body;
        return Ok(vec![Node::Table { at, displacements: user, packed: stride, body }]);
    }
    let packed = Column::build(indices.clone().map(|i| rows.at(i).packed - at.packed));
    let len = Column::build(indices.map(|i| rows.len(i)));
    Ok(vec![Node::Blocks { at, user, packed, len }])
}
