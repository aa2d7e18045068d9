//! `copy n at a; copy m at a + n`  -->  `copy n+m at a`, over every run of leaves (neighbours in
//! one list that have the same unit).
//!
//! The leaves of a run are `copy` and `blocks`. A `table` over one copy is a run by itself: its
//! rows are merged with each other, but not with those of its neighbours. A run is split into rows,
//! and adjacent rows are merged. The merged rows are stored in their canonical form: one row
//! becomes a copy; rows with a period become a loop; rows of one length at constant packed distance
//! become a table; all other rows become blocks. Struct, hindexed and indexed_block types with the
//! same blocks thus have the same nest.
//!
//! Condition: all leaves have the same unit, and their lengths are constant. Two rows are adjacent
//! only if, on both sides, the second begins where the first ends.

use super::{Normalizer, period};
use crate::column::{Column, try_reserve, try_with_capacity};
use crate::error::Result;
use crate::nest::rows::{Merged, Row, RowVisitor, Rows, Sequence, chunks};
use crate::nest::{Leaf, Node, Offsets, Quantity};

/// State while the rows of neighbouring leaves are merged and appended to `sink`. All these leaves
/// have the same unit.
struct Merging<K> {
    /// The last row, which may still grow, and whether `sink` contains this row already.
    last: Option<(Row, bool)>,
    sink: K,
    /// Bytes of one unit on both sides.
    unit: Offsets,
}

/// Destination of merged rows.
trait RowSink {
    /// Appends a row. A sink may store all later rows relative to the first row that it gets.
    fn row(&mut self, row: Row);

    /// Appends all rows of a sequence, which must not be empty.
    fn rows<S: Sequence>(&mut self, rows: S);

    /// Removes the last row, because a neighbour is about to be merged into it. The merged row is
    /// appended later.
    fn pop(&mut self);
}

impl RowSink for Vec<Row> {
    fn row(&mut self, row: Row) {
        self.push(row);
    }

    fn rows<S: Sequence>(&mut self, rows: S) {
        self.extend((0..rows.count()).map(|i| rows.row(i)));
    }

    fn pop(&mut self) {
        Vec::pop(self);
    }
}

/// Iterator over a run of neighbouring leaves. It returns the rows of each leaf in order, and
/// `None` as the item for a node that has no rows.
type Run<'a, 'r> = &'a mut dyn Iterator<Item = Option<Rows<'r>>>;

impl<K: RowSink> Merging<K> {
    /// Merges all rows of `run` into `sink` and returns the sink, or `None` if a node of `run` has
    /// no rows.
    fn merge(run: Run<'_, '_>, unit: Offsets, sink: K) -> Option<K> {
        let mut merging = Merging { last: None, sink, unit };
        for rows in run {
            merging = rows?.visit(merging);
        }
        let Merging { last, mut sink, .. } = merging;
        if let Some((last, false)) = last {
            sink.row(last);
        }
        Some(sink)
    }

    /// Appends or merges the rows of a chunk one by one. The chunk is one in which rows may merge,
    /// or whose first row merges with the last row before the chunk. The row that may still grow is
    /// a local variable, so that the loop keeps this row in registers.
    fn one_by_one<S: Sequence>(&mut self, rows: S) {
        let Merging { last, sink, unit } = self;
        let (mut row, begin) = match *last {
            Some((row, kept)) => {
                if kept {
                    sink.pop();
                }
                (row, 0)
            }
            None => (rows.row(0), 1),
        };
        for i in begin..rows.count() {
            let next = rows.row(i);
            if row.end(*unit) == next.at {
                row.len += next.len;
            } else {
                sink.row(row);
                row = next;
            }
        }
        *last = Some((row, false));
    }
}

impl<K: RowSink> RowVisitor for Merging<K> {
    type Out = Self;

    fn rows<S: Sequence>(mut self, rows: S) -> Self {
        for part in chunks(rows, 0) {
            let joins = self.last.is_some_and(|(last, _)| last.end(self.unit) == part.offsets(0));
            if joins || part.may_merge(self.unit) {
                self.one_by_one(part);
                continue;
            }
            if let Some((last, false)) = self.last {
                self.sink.row(last);
            }
            self.sink.rows(part);
            self.last = Some((part.row(part.count() - 1), true));
        }
        self
    }
}

/// Returns the length and the unit if the body is one copy of constant length.
pub(super) fn copied<L: Leaf>(body: &[Node<L>]) -> Option<(i64, L)> {
    match body {
        [Node::Copy { n: Quantity { k, per_count: false }, unit, .. }] => Some((*k as i64, *unit)),
        _ => None,
    }
}

/// Returns the unit of a leaf whose rows can be merged with those of neighbouring leaves of the
/// same unit. The result is `None` for all other nodes.
fn leaf_unit<L: Leaf>(node: &Node<L>) -> Option<L> {
    match node {
        Node::Copy { n: Quantity { per_count: false, .. }, unit, .. } | Node::Blocks { unit, .. } => {
            Some(*unit)
        }
        _ => None,
    }
}

/// Merges the rows of each maximal run of neighbouring leaves that have the same unit. For a table
/// over one copy, only the rows of that table are merged with each other.
pub(super) fn rewrite<L: Leaf>(n: &mut Normalizer<L>, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
    let mut out = try_with_capacity("normalize", list.len())?;
    let mut nodes = list.into_iter().peekable();
    while let Some(node) = nodes.next() {
        // Only copies, blocks and tables over one copy have rows. For a table, `element` is the
        // length and the unit of its copy.
        let element = match &node {
            Node::Table { body, .. } => copied(n.body(*body)),
            _ => None,
        };
        let table = element.is_some();
        let Some(unit) = element.map_or_else(|| leaf_unit(&node), |(_, unit)| Some(unit)) else {
            out.push(node);
            continue;
        };
        let element = element.map(|(len, _)| len);
        let joins_run = |node: &Node<L>| leaf_unit(node) == Some(unit);
        let lone = table || !nodes.peek().is_some_and(joins_run);
        if lone && matches!(node, Node::Copy { .. }) {
            out.push(node);
            continue;
        }
        // A single leaf may have 10^6 rows. If no two of them merge, compute the canonical form
        // without copying the rows.
        if lone
            && let Some(rows) = Rows::from_node(&node, element)
            && let Some(form) = rows.visit(ToCanonicalUnlessMerging(rows, unit.span(1)))
        {
            out.extend(form?.nodes(n, unit, Some(&node))?);
            continue;
        }
        // Otherwise collect the following leaves of the same unit, and merge the rows of all of
        // them.
        let mut run = vec![node];
        while !table && let Some(next) = nodes.next_if(joins_run) {
            try_reserve("normalize", &mut run, 1)?;
            run.push(next);
        }
        out.extend(merged(n, unit, &run, element)?);
    }
    Ok(out)
}

/// Merges the neighbouring rows of a run of leaves, and returns the canonical nodes for the result.
/// The rows are first merged into columns of 4-byte entries, which the result then uses. If a value
/// does not fit in 4 bytes, the rows are merged once more, now with 8-byte values.
fn merged<L: Leaf>(
    n: &mut Normalizer<L>,
    unit: L,
    run: &[Node<L>],
    element: Option<i64>,
) -> Result<Vec<Node<L>>> {
    let rows = || run.iter().map(|node| Rows::from_node(node, element));
    let (count, span) = (rows().flatten().map(Rows::count).sum(), unit.span(1));
    if let Some(narrow) = Merging::merge(&mut rows(), span, NarrowColumns::new(count)?)
        && let Some(node) = narrow.node(unit)
        && let Some(rows) = Rows::from_node(&node, None)
    {
        return rows.visit(ToCanonical(rows))?.nodes(n, unit, Some(&node));
    }
    match Merging::merge(&mut rows(), span, try_with_capacity("normalize", count)?) {
        Some(rows) if count > 0 => canonical(Merged(&rows), None)?.nodes(n, unit, None),
        // If a node has no rows, or there are no rows at all, there is nothing to merge.
        _ => Ok(run.to_vec()),
    }
}

/// Rows as columns with 4 bytes per entry, relative to the first row.
struct NarrowColumns {
    /// Offset of the first row, which the columns are relative to.
    at: Offsets,
    columns: [Vec<i32>; 3],
    /// A number other than 0 if a value did not fit in 4 bytes.
    overflow: i64,
}

impl NarrowColumns {
    /// Makes columns with room for `count` rows.
    fn new(count: usize) -> Result<NarrowColumns> {
        let column = || try_with_capacity("normalize", count);
        Ok(NarrowColumns { at: Offsets::ZERO, columns: [column()?, column()?, column()?], overflow: 0 })
    }

    /// Returns the rows as one node, or `None` if a value did not fit in 4 bytes or there are no
    /// rows.
    fn node<L: Leaf>(self, unit: L) -> Option<Node<L>> {
        let NarrowColumns { at, columns, overflow } = self;
        if columns[0].is_empty() || overflow != 0 {
            return None;
        }
        let [user, packed, len] = columns.map(Column::from);
        Some(Node::Blocks { at, user, packed, len, unit })
    }
}

impl RowSink for NarrowColumns {
    #[inline(always)]
    fn row(&mut self, row: Row) {
        if self.columns[0].is_empty() {
            self.at = row.at;
        }
        let at = row.at - self.at;
        for (column, value) in self.columns.iter_mut().zip([at.user, at.packed, row.len]) {
            self.overflow |= value ^ i64::from(value as i32);
            column.push(value as i32);
        }
    }

    fn rows<S: Sequence>(&mut self, rows: S) {
        if self.columns[0].is_empty() {
            self.at = rows.offsets(0);
        }
        self.overflow |= rows.append(self.at, &mut self.columns);
    }

    fn pop(&mut self) {
        for column in &mut self.columns {
            column.pop();
        }
    }
}

/// Visitor that computes the canonical form of the rows of one node, if it is known that no two
/// neighbouring rows merge.
struct ToCanonical<'a>(Rows<'a>);

impl RowVisitor for ToCanonical<'_> {
    type Out = Result<CanonicalRows>;

    fn rows<S: Sequence>(self, rows: S) -> Self::Out {
        canonical(rows, Some(self.0))
    }
}

/// Visitor that computes the canonical form of the rows of one node, or returns `None` if
/// neighbouring rows merge. The second field has the number of bytes of one unit on each side.
struct ToCanonicalUnlessMerging<'a>(Rows<'a>, Offsets);

impl RowVisitor for ToCanonicalUnlessMerging<'_> {
    type Out = Option<Result<CanonicalRows>>;

    fn rows<S: Sequence>(self, rows: S) -> Self::Out {
        (!rows.merges(self.1)).then(|| canonical(rows, Some(self.0)))
    }
}

/// Canonical form of rows, without their unit.
enum CanonicalRows {
    /// The node whose rows these are, unchanged.
    Whole,
    /// A single row, which becomes a copy.
    Single(Row),
    Loop {
        trip: u64,
        step: Offsets,
        body: Box<CanonicalRows>,
    },
    /// A table over one copy of `len` units.
    Table {
        at: Offsets,
        displacements: Column,
        packed: i64,
        len: i64,
    },
    /// Blocks, with columns for user offsets, packed offsets and lengths.
    Blocks {
        at: Offsets,
        columns: [Column; 3],
    },
}

impl CanonicalRows {
    /// Returns the nodes of this canonical form. If the rows are exactly the rows of one node,
    /// `node` must be that node.
    fn nodes<L: Leaf>(self, n: &mut Normalizer<L>, unit: L, node: Option<&Node<L>>) -> Result<Vec<Node<L>>> {
        Ok(match self {
            CanonicalRows::Whole => node.cloned().into_iter().collect(),
            CanonicalRows::Single(row) => vec![Node::units(row.at, row.len as u64, unit)],
            CanonicalRows::Loop { trip, step, body } => {
                let list = body.nodes(n, unit, None)?;
                n.loop_over_list(trip, step, list)?
            }
            CanonicalRows::Table { at, displacements, packed, len } => {
                let body = n.intern(vec![Node::units(Offsets::ZERO, len as u64, unit)])?.body;
                vec![Node::Table { at, displacements, packed, body }]
            }
            CanonicalRows::Blocks { at, columns: [user, packed, len] } => {
                vec![Node::Blocks { at, user, packed, len, unit }]
            }
        })
    }
}

/// Returns the canonical form of rows that have been merged. If the rows are exactly the rows of
/// one node, `node` must be the storage of these rows.
fn canonical<S: Sequence>(rows: S, node: Option<Rows<'_>>) -> Result<CanonicalRows> {
    // One row becomes a copy. Rows with a period become a loop over the rows of one period.
    let count = rows.count();
    let first = rows.row(0);
    let Row { at, len } = first;
    if count == 1 {
        return Ok(CanonicalRows::Single(first));
    }
    if let Some((p, step)) = period::find(count, |i| rows.offsets(i), |i, j| rows.len(i) == rows.len(j)) {
        let body = canonical(rows.part(0..p), None)?.into();
        return Ok(CanonicalRows::Loop { trip: (count / p) as u64, step, body });
    }
    // The columns of the result begin at zero, because the offset of the first row becomes the
    // offset of the node. If the old columns begin at zero already, the old node or its column is
    // used unchanged.
    let user = match node {
        Some(Rows::Table { at: begin, .. }) if begin == at => return Ok(CanonicalRows::Whole),
        Some(Rows::Blocks { at: begin, .. }) if begin == at && rows.lengths().any(|l| l != len) => {
            return Ok(CanonicalRows::Whole);
        }
        Some(Rows::Blocks { at: begin, columns }) if begin == at => columns[0].clone(),
        _ => Column::build(rows.user_offsets().map(|place| place.wrapping_sub(at.user)))?,
    };
    let stride = rows.offsets(1).packed - at.packed;
    // Rows of one length at constant packed distance become a table. All other rows become blocks.
    let even = (1..count)
        .all(|i| rows.len(i) == len && rows.offsets(i).packed - rows.offsets(i - 1).packed == stride);
    if even {
        return Ok(CanonicalRows::Table { at, displacements: user, packed: stride, len });
    }
    let packed = Column::build(rows.packed_offsets().map(|place| place - at.packed))?;
    Ok(CanonicalRows::Blocks { at, columns: [user, packed, Column::build(rows.lengths())?] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nest::Byte;
    use crate::nest::rows::CHUNK_ROWS;

    /// Number of bytes of one unit on each side if the unit is a byte.
    const BYTE: Offsets = Offsets { user: 1, packed: 1 };

    /// Returns rows of `lens` bytes that are adjacent on the packed side. In user memory, row `i`
    /// is adjacent to the row before it if `adjacent(i)` is true and `far` is 0.
    fn rows(lens: &[i64], far: i64, adjacent: impl Fn(usize) -> bool) -> Vec<Row> {
        let mut at = Offsets::ZERO;
        let each = lens.iter().enumerate().map(|(i, &len)| {
            at.user += if i > 0 && adjacent(i) { 0 } else { 8 };
            let row = Row { at, len };
            at = row.end(BYTE) + Offsets::new(far, 0);
            row
        });
        each.collect()
    }

    fn blocks(rows: &[Row], wide: bool) -> Node {
        let of = |value: fn(&Row) -> i64| {
            let values: Vec<i64> = rows.iter().map(value).collect();
            if wide { Column::I64(std::sync::Arc::new(values.into())) } else { Column::from(values) }
        };
        let [user, packed, len] = [of(|row| row.at.user), of(|row| row.at.packed), of(|row| row.len)];
        Node::Blocks { at: Offsets::new(3, 0), user, packed, len, unit: Byte }
    }

    fn plain(rows: &[Row]) -> Vec<[i64; 3]> {
        rows.iter().map(|row| [row.at.user, row.at.packed, row.len]).collect()
    }

    /// Merges one row after the other. The optimized code must give the same result.
    fn merged_plainly(rows: &[Row]) -> Vec<[i64; 3]> {
        let mut merged: Vec<Row> = Vec::new();
        for row in rows {
            match merged.last_mut() {
                Some(last) if last.end(BYTE) == row.at => last.len += row.len,
                _ => merged.push(*row),
            }
        }
        plain(&merged)
    }

    /// Tests that rows in chunks are merged in the same way as single rows. This must hold wherever
    /// the adjacent rows are, in columns of either width, and with other rows before the chunk.
    #[test]
    fn many_rows_at_a_time_merge_as_one_after_the_other() {
        let n = 3 * CHUNK_ROWS + 7;
        let lens: Vec<i64> = (0..n as i64).map(|i| 4 + i % 5).collect();
        let at = |places: &'static [usize]| move |i: usize| places.contains(&i);
        let t = CHUNK_ROWS;
        let few = [vec![], vec![1], vec![t - 1, t], vec![t], vec![t, t + 1, 2 * t], vec![n - 1]];
        let cases = few.map(|places| rows(&lens, 0, at(places.leak())));
        let all = [rows(&lens, 0, |_| true), rows(&lens, 0, |i| i % 3 == 0), rows(&lens, 1 << 26, |_| false)];
        for rows in cases.iter().chain(&all) {
            let expected = merged_plainly(rows);
            for (cut, wide) in
                [0, 1, t - 1, t, t + 1, n].into_iter().flat_map(|cut| [(cut, false), (cut, true)])
            {
                let run = [blocks(&rows[..cut], wide), blocks(&rows[cut..], false)];
                let moved = |merged: &[[i64; 3]]| -> Vec<[i64; 3]> {
                    merged.iter().map(|&[user, packed, len]| [user - 3, packed, len]).collect()
                };
                let stored = || run.iter().map(|node| Rows::from_node(node, None));
                let kept = Merging::merge(&mut stored(), BYTE, Vec::new()).unwrap();
                assert_eq!(moved(&plain(&kept)), expected, "{cut} {wide}");
                let narrow = Merging::merge(&mut stored(), BYTE, NarrowColumns::new(n).unwrap()).unwrap();
                let fits =
                    expected.iter().flatten().all(|&value| i32::try_from(value - expected[0][0]).is_ok());
                let Some(Node::Blocks { at, user, packed, len, .. }) = narrow.node(Byte) else {
                    assert!(!fits);
                    continue;
                };
                let row = |i| [at.user + user.get(i), at.packed + packed.get(i), len.get(i)];
                assert_eq!(moved(&(0..len.len()).map(row).collect::<Vec<_>>()), expected, "{cut} {wide}");
            }
        }
    }
}
