//! `copy n at a; copy m at a + n`  -->  `copy n+m at a`, over every run of neighbouring leaves.
//!
//! A run is taken apart into rows (`copy`, `blocks`, and `table` over one copy), adjacent rows are merged, and what is left is
//! written in its one canonical form: one row is a copy; rows with a period are a loop; rows of one length at constant packed
//! distance are a table; all others are blocks. So struct, hindexed, indexed_block and their mixtures meet here.
//!
//! Condition: one unit and constant lengths; adjacent means adjacent on both sides.

use super::{Normalizer, period};
use crate::column::{Column, try_reserve, try_with_capacity};
use crate::error::Result;
use crate::nest::{Leaf, Node, Offsets, Quantity};

/// A row: offsets in bytes, length in units.
#[derive(Clone, Copy)]
pub(super) struct Row {
    at: Offsets,
    len: i64,
}

/// Rows of a run of leaves of one unit on their way to `keep`, neighbours merged.
struct Merging<L, K> {
    /// The row that may grow: in hand rather than where rows are kept.
    last: Option<Row>,
    keep: K,
    unit: L,
}

/// Where merged rows go.
trait Keep {
    /// A row that does not grow any more; the first one begins where the run does.
    fn row(&mut self, row: Row);
}

impl Keep for Vec<Row> {
    fn row(&mut self, row: Row) {
        self.push(row);
    }
}

impl<L: Leaf, K: Keep> Merging<L, K> {
    /// All rows of `run`, merged, in `keep`; none where a node has no rows.
    fn all(run: &[Node<L>], element: Option<i64>, unit: L, keep: K) -> Option<K> {
        let merging = Merging { last: None, keep, unit };
        let Merging { last, mut keep, .. } =
            run.iter().try_fold(merging, |merging, node| each(node, element, merging))?;
        last.into_iter().for_each(|last| keep.row(last));
        Some(keep)
    }
}

/// By value, so that the loop has in registers what it goes by.
impl<L: Leaf, K: Keep> Visit for Merging<L, K> {
    type Out = Self;

    fn rows<S: Sequence>(self, rows: S) -> Self {
        let Merging { last, mut keep, unit } = self;
        if rows.count() == 0 {
            return Merging { last, keep, unit };
        }
        let (mut last, begin) = match last {
            Some(last) => (last, 0),
            None => (Row { at: rows.at(0), len: rows.len(0) }, 1),
        };
        for i in begin..rows.count() {
            let (at, len) = (rows.at(i), rows.len(i));
            if last.at + unit.span(last.len) == at {
                last.len += len;
            } else {
                keep.row(last);
                last = Row { at, len };
            }
        }
        Merging { last: Some(last), keep, unit }
    }
}

/// A sequence of rows where it is stored. Generic, so that each kind of storage gets its own loop over 10^6 rows.
trait Sequence: Copy {
    fn count(self) -> usize;
    fn at(self, i: usize) -> Offsets;
    fn len(self, i: usize) -> i64;
    /// The first `count` rows.
    fn first(self, count: usize) -> Self;

    /// Whether two neighbours are adjacent on both sides.
    fn merges(self, unit: impl Leaf) -> bool {
        (1..self.count()).any(|i| self.at(i - 1) + unit.span(self.len(i - 1)) == self.at(i))
    }
}

/// A merged run.
#[derive(Clone, Copy)]
struct Merged<'a>(&'a [Row]);

impl Sequence for Merged<'_> {
    fn count(self) -> usize {
        self.0.len()
    }
    fn at(self, i: usize) -> Offsets {
        self.0[i].at
    }
    fn len(self, i: usize) -> i64 {
        self.0[i].len
    }
    fn first(self, count: usize) -> Self {
        Merged(&self.0[..count])
    }
}

/// A table over one copy.
#[derive(Clone, Copy)]
struct Displaced<'a, T> {
    at: Offsets,
    displacements: &'a [T],
    packed: i64,
    len: i64,
}

impl<T: Copy + Into<i64>> Sequence for Displaced<'_, T> {
    fn count(self) -> usize {
        self.displacements.len()
    }
    fn at(self, i: usize) -> Offsets {
        self.at + Offsets::new(self.displacements[i].into(), self.packed.wrapping_mul(i as i64))
    }
    fn len(self, _: usize) -> i64 {
        self.len
    }
    fn first(mut self, count: usize) -> Self {
        self.displacements = &self.displacements[..count];
        self
    }
}

/// Blocks, columns of one width.
#[derive(Clone, Copy)]
struct Listed<'a, T> {
    at: Offsets,
    columns: [&'a [T]; 3],
}

impl<T: Copy + Into<i64>> Sequence for Listed<'_, T> {
    fn count(self) -> usize {
        self.columns[2].len()
    }
    fn at(self, i: usize) -> Offsets {
        self.at + Offsets::new(self.columns[0][i].into(), self.columns[1][i].into())
    }
    fn len(self, i: usize) -> i64 {
        self.columns[2][i].into()
    }
    fn first(self, count: usize) -> Self {
        Listed { at: self.at, columns: self.columns.map(|c| &c[..count]) }
    }
}

/// Blocks whose columns differ in width: looked up entry by entry.
#[derive(Clone, Copy)]
struct Mixed<'a> {
    at: Offsets,
    columns: [&'a Column; 3],
    count: usize,
}

impl Sequence for Mixed<'_> {
    fn count(self) -> usize {
        self.count
    }
    fn at(self, i: usize) -> Offsets {
        self.at + Offsets::new(self.columns[0].get(i), self.columns[1].get(i))
    }
    fn len(self, i: usize) -> i64 {
        self.columns[2].get(i)
    }
    fn first(mut self, count: usize) -> Self {
        self.count = count;
        self
    }
}

/// Visits the rows of a node.
trait Visit {
    type Out;
    fn rows<S: Sequence>(self, rows: S) -> Self::Out;
}

/// Visits the rows of a leaf, or of a table over one copy of `element` units, where they are stored; nothing else has rows.
fn each<L: Leaf, V: Visit>(node: &Node<L>, element: Option<i64>, visit: V) -> Option<V::Out> {
    Some(match node {
        Node::Copy { at, n, .. } => visit.rows(Merged(&[Row { at: *at, len: n.k as i64 }])),
        Node::Table { at, displacements, packed, .. } => {
            let (at, packed, len) = (*at, *packed, element?);
            match displacements {
                Column::I32(d) => visit.rows(Displaced { at, displacements: d, packed, len }),
                Column::I64(d) => visit.rows(Displaced { at, displacements: d, packed, len }),
            }
        }
        Node::Blocks { at, user, packed, len, .. } => match (user, packed, len) {
            (Column::I32(u), Column::I32(p), Column::I32(l)) => {
                visit.rows(Listed { at: *at, columns: [u, p, l] })
            }
            (Column::I64(u), Column::I64(p), Column::I64(l)) => {
                visit.rows(Listed { at: *at, columns: [u, p, l] })
            }
            _ => visit.rows(Mixed { at: *at, columns: [user, packed, len], count: len.len() }),
        },
        Node::Loop { .. } => return None,
    })
}

/// Returns the length and unit of a body that is one constant copy.
pub(super) fn copied<L: Leaf>(body: &[Node<L>]) -> Option<(i64, L)> {
    match body {
        [Node::Copy { n: Quantity { k, per_count: false }, unit, .. }] => Some((*k as i64, *unit)),
        _ => None,
    }
}

/// The unit of a leaf that joins a run of that unit whatever its length is.
fn joins<L: Leaf>(node: &Node<L>) -> Option<L> {
    match node {
        Node::Copy { n: Quantity { per_count: false, .. }, unit, .. } | Node::Blocks { unit, .. } => {
            Some(*unit)
        }
        _ => None,
    }
}

/// Merges every maximal run of leaves of the list; a table over one copy is a run of its own.
pub(super) fn rewrite<L: Leaf>(n: &mut Normalizer<L>, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
    let mut out = try_with_capacity("normalize", list.len())?;
    let mut nodes = list.into_iter().peekable();
    while let Some(node) = nodes.next() {
        let element = match &node {
            Node::Table { body, .. } => copied(n.body(*body)),
            _ => None,
        };
        let table = element.is_some();
        let Some(unit) = element.map_or_else(|| joins(&node), |(_, unit)| Some(unit)) else {
            out.push(node);
            continue;
        };
        let element = element.map(|(len, _)| len);
        let joins = |node: &Node<L>| joins(node) == Some(unit);
        let lone = table || !nodes.peek().is_some_and(joins);
        if lone && matches!(node, Node::Copy { .. }) {
            out.push(node);
            continue;
        }
        // A leaf that stands alone and has nothing to merge is looked at where it is: 10^6 rows are not copied.
        if lone && let Some(done) = each(&node, element, InPlace(n, &node, unit)).flatten() {
            out.extend(done?);
            continue;
        }
        let mut run = vec![node];
        while !table && let Some(next) = nodes.next_if(joins) {
            try_reserve("normalize", &mut run, 1)?;
            run.push(next);
        }
        out.extend(merged(n, unit, &run, element)?);
    }
    Ok(out)
}

/// Canonical nodes of the rows of a run, neighbours merged. They are written as the columns that they end in, which are narrow but for few.
fn merged<L: Leaf>(
    n: &mut Normalizer<L>,
    unit: L,
    run: &[Node<L>],
    element: Option<i64>,
) -> Result<Vec<Node<L>>> {
    let count = run.iter().filter_map(|node| each(node, element, Count)).sum();
    if let Some(narrow) = Merging::all(run, element, unit, Narrow::new(count)?)
        && let Some(node) = narrow.node(unit)
        && let Some(done) = each(&node, None, All(n, &node, unit))
    {
        return done;
    }
    match Merging::all(run, element, unit, try_with_capacity("normalize", count)?) {
        Some(rows) if count > 0 => canonical(n, unit, Merged(&rows), None),
        // Nothing to merge.
        _ => Ok(run.to_vec()),
    }
}

/// Rows as columns of 4 bytes an entry that begin at zero.
struct Narrow {
    /// Where the first row begins.
    at: Offsets,
    columns: [Vec<i32>; 3],
    /// Rows of the columns; behind them are zeros.
    rows: usize,
    /// Bits of values that do not fit.
    lost: i64,
}

impl Narrow {
    /// With room for so many rows.
    fn new(count: usize) -> Result<Narrow> {
        let column = || {
            let mut column = try_with_capacity("normalize", count)?;
            column.resize(count, 0);
            Ok(column)
        };
        Ok(Narrow { at: Offsets::ZERO, columns: [column()?, column()?, column()?], rows: 0, lost: 0 })
    }

    /// The rows as one node; none where a value did not fit, or there is no row.
    fn node<L: Leaf>(self, unit: L) -> Option<Node<L>> {
        let Narrow { at, columns, rows, lost } = self;
        let [user, packed, len] = columns.map(|mut column| {
            column.truncate(rows);
            Column::from(column)
        });
        if rows == 0 || lost != 0 {
            return None;
        }
        Some(Node::Blocks { at, user, packed, len, unit })
    }
}

impl Keep for Narrow {
    // Written in place, and in the loop over the rows: a push asks for room, three times a row.
    #[inline(always)]
    fn row(&mut self, row: Row) {
        if self.rows == 0 {
            self.at = row.at;
        }
        let at = row.at - self.at;
        for (column, value) in self.columns.iter_mut().zip([at.user, at.packed, row.len]) {
            self.lost |= value ^ i64::from(value as i32);
            column[self.rows] = value as i32;
        }
        self.rows += 1;
    }
}

/// Canonical nodes of all rows of one node, which do not merge.
struct All<'a, L>(&'a mut Normalizer<L>, &'a Node<L>, L);

impl<L: Leaf> Visit for All<'_, L> {
    type Out = Result<Vec<Node<L>>>;

    fn rows<S: Sequence>(self, rows: S) -> Self::Out {
        canonical(self.0, self.2, rows, Some(self.1))
    }
}

/// The number of rows.
struct Count;

impl Visit for Count {
    type Out = usize;

    fn rows<S: Sequence>(self, rows: S) -> usize {
        rows.count()
    }
}

/// Canonical nodes of the rows of one node, unless neighbours merge.
struct InPlace<'a, L>(&'a mut Normalizer<L>, &'a Node<L>, L);

impl<L: Leaf> Visit for InPlace<'_, L> {
    type Out = Option<Result<Vec<Node<L>>>>;

    fn rows<S: Sequence>(self, rows: S) -> Self::Out {
        (!rows.merges(self.2)).then(|| canonical(self.0, self.2, rows, Some(self.1)))
    }
}

/// The canonical nodes for merged rows; `node` is what they come from, if they are all of it.
fn canonical<L: Leaf, S: Sequence>(
    n: &mut Normalizer<L>,
    unit: L,
    rows: S,
    node: Option<&Node<L>>,
) -> Result<Vec<Node<L>>> {
    let count = rows.count();
    let (at, length) = (rows.at(0), rows.len(0));
    if count == 1 {
        return Ok(vec![Node::units(at, length as u64, unit)]);
    }
    if let Some((p, step)) = period::of(count, |i| rows.at(i), |i, j| rows.len(i) == rows.len(j)) {
        let list = canonical(n, unit, rows.first(p), None)?;
        return n.looped((count / p) as u64, step, list);
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
    let user = match node {
        Some(Node::Blocks { at: begin, user, .. }) if *begin == at => user.clone(),
        _ => Column::build(indices.clone().map(|i| rows.at(i).user.wrapping_sub(at.user)))?,
    };
    let stride = rows.at(1).packed - at.packed;
    let even =
        (1..count).all(|i| rows.len(i) == length && rows.at(i).packed - rows.at(i - 1).packed == stride);
    if even {
        let body = n.close(vec![Node::units(Offsets::ZERO, length as u64, unit)])?.body;
        return Ok(vec![Node::Table { at, displacements: user, packed: stride, body }]);
    }
    let packed = Column::build(indices.clone().map(|i| rows.at(i).packed - at.packed))?;
    let len = Column::build(indices.map(|i| rows.len(i)))?;
    Ok(vec![Node::Blocks { at, user, packed, len, unit }])
}
