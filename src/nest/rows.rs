//! Rows of leaves in the form in which a nest stores them: copies, tables over one copy, and
//! blocks.
//!
//! A node may have 10^6 rows. Code that examines rows is therefore generic over [`Sequence`], a
//! trait that each kind of storage implements, so that the compiler makes a separate loop for each
//! kind. Conditions on many rows at once are written so that the compiler vectorizes them.

use std::ops::Range;

use super::{Leaf, Node, Offsets};
use crate::column::Column;

/// Number of rows that are examined together. If no two neighbours among them merge, all of them
/// are appended column by column instead of row by row.
pub(crate) const CHUNK_ROWS: usize = 64;

/// A row: offsets in bytes on both sides, and a length in units.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) at: Offsets,
    pub(crate) len: i64,
}

/// Splits rows into chunks of at most [`CHUNK_ROWS`]. Each chunk except the first is preceded by up
/// to `before` rows from the end of the chunk before it.
pub(crate) fn chunks<S: Sequence>(rows: S, before: usize) -> impl Iterator<Item = S> {
    let count = rows.count();
    let begins = (0..count).step_by(CHUNK_ROWS);
    begins.map(move |i| rows.part(i.saturating_sub(before)..count.min(i + CHUNK_ROWS)))
}

impl Row {
    /// Returns the offset of the first byte after the row, on both sides. `unit` has the number of
    /// bytes of one unit on each side.
    pub(crate) fn end(self, unit: Offsets) -> Offsets {
        self.at.step(unit, self.len)
    }
}

/// A sequence of rows in one kind of storage. Code that examines rows is generic over this trait,
/// so that the compiler makes a separate loop for each kind of storage.
pub(crate) trait Sequence: Copy {
    fn count(self) -> usize;
    fn offsets(self, i: usize) -> Offsets;
    fn len(self, i: usize) -> i64;
    /// Returns the rows in a range of indices.
    fn part(self, rows: Range<usize>) -> Self;

    fn row(self, i: usize) -> Row {
        Row { at: self.offsets(i), len: self.len(i) }
    }

    /// Appends the rows to columns whose offsets are relative to `base`. Returns a number other
    /// than 0 if a value did not fit in 32 bits.
    fn append(self, base: Offsets, [user, packed, len]: &mut [Vec<i32>; 3]) -> i64 {
        append(user, self.user_offsets().map(|place| place.wrapping_sub(base.user)))
            | append(packed, self.packed_offsets().map(|place| place.wrapping_sub(base.packed)))
            | append(len, self.lengths())
    }

    /// Returns the user offset of every row.
    fn user_offsets(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        (0..self.count()).map(move |i| self.offsets(i).user)
    }

    /// Returns the packed offset of every row.
    fn packed_offsets(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        (0..self.count()).map(move |i| self.offsets(i).packed)
    }

    /// Returns the length of every row in units.
    fn lengths(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        (0..self.count()).map(move |i| self.len(i))
    }

    /// Returns true if two neighbouring rows are adjacent on both sides. Some implementations
    /// compare only the low 32 bits of the offsets, for the sake of SIMD, so the result may also be
    /// true for rows that are not adjacent. After a result of true, the caller has to examine every
    /// row, so it should call this method for few rows at a time.
    fn may_merge(self, unit: Offsets) -> bool {
        (1..self.count()).any(|i| self.row(i - 1).end(unit) == self.offsets(i))
    }

    /// Returns true if two neighbouring rows are adjacent on both sides.
    fn merges(self, unit: Offsets) -> bool {
        let adjacent = |part: Self| (1..part.count()).any(|i| part.row(i - 1).end(unit) == part.offsets(i));
        chunks(self, 1).any(|part| part.may_merge(unit) && adjacent(part))
    }
}

/// Returns the low 32 bits of an offset or length.
#[inline(always)]
fn low(value: impl Into<i64>) -> i32 {
    value.into() as i32
}

/// Type of the entries of a column, with an operation on many entries at once.
pub(crate) trait Entry: Copy + Into<i64> {
    /// Appends `entries` to `column`, each with `by` bytes added. Returns a positive or negative
    /// number if a sum did not fit in 32 bits, and 0 otherwise.
    fn append(column: &mut Vec<i32>, entries: &[Self], by: i64) -> i64 {
        append(column, entries.iter().map(|&entry| by.wrapping_add(entry.into())))
    }
}

impl Entry for i64 {}

impl Entry for i32 {
    fn append(column: &mut Vec<i32>, entries: &[i32], by: i64) -> i64 {
        let Ok(by) = i32::try_from(by) else {
            return append(column, entries.iter().map(|&entry| by.wrapping_add(entry.into())));
        };
        // Add in 32 bits, because a vector register holds twice as many words of 32 bits as of 64.
        // If two numbers have the same sign and their sum has the other sign, the sum did not fit.
        let mut signs = 0;
        column.extend(entries.iter().map(|&entry| {
            let sum = entry.wrapping_add(by);
            signs |= (entry ^ sum) & (by ^ sum);
            sum
        }));
        i64::from(signs < 0)
    }
}

/// Rows in a slice, for example the rows that result from merging neighbours.
#[derive(Clone, Copy)]
pub(crate) struct Merged<'a>(pub(crate) &'a [Row]);

impl Sequence for Merged<'_> {
    fn count(self) -> usize {
        self.0.len()
    }
    fn offsets(self, i: usize) -> Offsets {
        self.0[i].at
    }
    fn len(self, i: usize) -> i64 {
        self.0[i].len
    }
    fn part(self, rows: Range<usize>) -> Self {
        Merged(&self.0[rows])
    }
}

/// Rows of a table over one copy.
#[derive(Clone, Copy)]
pub(crate) struct Displaced<'a, T> {
    at: Offsets,
    displacements: &'a [T],
    packed: i64,
    len: i64,
}

impl<T: Entry> Sequence for Displaced<'_, T> {
    fn count(self) -> usize {
        self.displacements.len()
    }
    fn offsets(self, i: usize) -> Offsets {
        self.at + Offsets::new(self.displacements[i].into(), self.packed.wrapping_mul(i as i64))
    }
    fn len(self, _: usize) -> i64 {
        self.len
    }
    fn part(mut self, rows: Range<usize>) -> Self {
        self.at.packed = self.at.packed.wrapping_add(self.packed.wrapping_mul(rows.start as i64));
        self.displacements = &self.displacements[rows];
        self
    }
    fn user_offsets(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        self.displacements.iter().map(move |&d| self.at.user.wrapping_add(d.into()))
    }
    fn append(self, base: Offsets, [user, packed, len]: &mut [Vec<i32>; 3]) -> i64 {
        T::append(user, self.displacements, self.at.user.wrapping_sub(base.user))
            | append(packed, self.packed_offsets().map(|place| place.wrapping_sub(base.packed)))
            | append(len, self.lengths())
    }
    fn may_merge(self, unit: Offsets) -> bool {
        let span = Offsets::ZERO.step(unit, self.len);
        if self.packed != span.packed || self.displacements.is_empty() {
            return false;
        }
        let next = &self.displacements[1..];
        let steps = next.iter().zip(self.displacements).map(|(&next, &d)| low(next).wrapping_sub(low(d)));
        steps.fold(0, |any, step| any | i32::from(step == low(span.user))) != 0
    }
}

/// Rows of blocks whose three columns have entries of one width.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a, T> {
    at: Offsets,
    columns: [&'a [T]; 3],
}

impl<T: Entry> Sequence for Listed<'_, T> {
    fn count(self) -> usize {
        self.columns[2].len()
    }
    fn offsets(self, i: usize) -> Offsets {
        self.at + Offsets::new(self.columns[0][i].into(), self.columns[1][i].into())
    }
    fn len(self, i: usize) -> i64 {
        self.columns[2][i].into()
    }
    fn part(self, rows: Range<usize>) -> Self {
        Listed { at: self.at, columns: self.columns.map(|c| &c[rows.clone()]) }
    }
    fn user_offsets(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        self.columns[0].iter().map(move |&u| self.at.user.wrapping_add(u.into()))
    }
    fn packed_offsets(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        self.columns[1].iter().map(move |&p| self.at.packed.wrapping_add(p.into()))
    }
    fn lengths(self) -> impl ExactSizeIterator<Item = i64> + Clone {
        self.columns[2].iter().map(|&l| l.into())
    }
    fn append(self, base: Offsets, [user, packed, len]: &mut [Vec<i32>; 3]) -> i64 {
        T::append(user, self.columns[0], self.at.user.wrapping_sub(base.user))
            | T::append(packed, self.columns[1], self.at.packed.wrapping_sub(base.packed))
            | T::append(len, self.columns[2], 0)
    }
    fn may_merge(self, unit: Offsets) -> bool {
        if unit == Offsets::new(1, 1) {
            return self.may_have_adjacent(|len| [len; 2]);
        }
        self.may_have_adjacent(|len| [unit.user, unit.packed].map(|each| len.wrapping_mul(low(each))))
    }
}

impl<T: Entry> Listed<'_, T> {
    /// Returns true if, according to the low 32 bits of their offsets, two neighbouring rows are
    /// adjacent on both sides. `spans` returns the numbers of user bytes and packed bytes of a row
    /// from its length in units.
    #[inline(always)]
    fn may_have_adjacent(self, spans: impl Fn(i32) -> [i32; 2]) -> bool {
        let [user, packed, len] = self.columns;
        let Some(pairs) = len.len().checked_sub(1) else { return false };
        let (user, next_user) = (&user[..pairs], &user[1..=pairs]);
        let (packed, next_packed) = (&packed[..pairs], &packed[1..=pairs]);
        let gap = |place: T, span: i32, next: T| low(place).wrapping_add(span) ^ low(next);
        let rows = user.iter().zip(next_user).zip(packed.iter().zip(next_packed)).zip(len);
        let any = rows.fold(0, |any, (((&user, &next_user), (&packed, &next_packed)), &len)| {
            let [in_user, in_packed] = spans(low(len));
            any | i32::from(gap(user, in_user, next_user) | gap(packed, in_packed, next_packed) == 0)
        });
        any != 0
    }
}

/// Rows of blocks whose columns have entries of different widths. The entries are looked up one by
/// one.
#[derive(Clone, Copy)]
pub(crate) struct Mixed<'a> {
    at: Offsets,
    columns: [&'a Column; 3],
    first: usize,
    count: usize,
}

impl Sequence for Mixed<'_> {
    fn count(self) -> usize {
        self.count
    }
    fn offsets(self, i: usize) -> Offsets {
        let row = self.first + i;
        self.at + Offsets::new(self.columns[0].get(row), self.columns[1].get(row))
    }
    fn len(self, i: usize) -> i64 {
        self.columns[2].get(self.first + i)
    }
    fn part(self, rows: Range<usize>) -> Self {
        Mixed { first: self.first + rows.start, count: rows.len(), ..self }
    }
}

/// A function over rows, which is compiled separately for each kind of storage.
pub(crate) trait RowVisitor {
    type Out;
    fn rows<S: Sequence>(self, rows: S) -> Self::Out;
}

/// Rows of a leaf, or of a table over one copy, as their node stores them. The unit in which
/// lengths count is not part of this type.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// The only row of a copy.
    Single(Row),
    /// Rows of a table over one copy of `len` units.
    Table { at: Offsets, displacements: &'a Column, packed: i64, len: i64 },
    /// Rows of blocks, with columns for user offsets, packed offsets and lengths.
    Blocks { at: Offsets, columns: [&'a Column; 3] },
}

impl<'a> Rows<'a> {
    /// Returns the rows of a leaf, or of a table over one copy of `element` units. Returns none for
    /// a loop, and for a table if `element` is `None`.
    pub(crate) fn from_node<L: Leaf>(node: &'a Node<L>, element: Option<i64>) -> Option<Rows<'a>> {
        Some(match node {
            Node::Copy { at, n, .. } => Rows::Single(Row { at: *at, len: n.k as i64 }),
            Node::Table { at, displacements, packed, .. } => {
                Rows::Table { at: *at, displacements, packed: *packed, len: element? }
            }
            Node::Blocks { at, user, packed, len, .. } => {
                Rows::Blocks { at: *at, columns: [user, packed, len] }
            }
            Node::Loop { .. } => return None,
        })
    }

    /// Returns the number of rows.
    pub(crate) fn count(self) -> usize {
        match self {
            Rows::Single(_) => 1,
            Rows::Table { displacements, .. } => displacements.len(),
            Rows::Blocks { columns, .. } => columns[2].len(),
        }
    }

    /// Calls `visit` with the rows as the [`Sequence`] that fits their storage.
    pub(crate) fn visit<V: RowVisitor>(self, visit: V) -> V::Out {
        match self {
            Rows::Single(row) => visit.rows(Merged(&[row])),
            Rows::Table { at, displacements, packed, len } => match displacements {
                Column::I32(d) => visit.rows(Displaced { at, displacements: d, packed, len }),
                Column::I64(d) => visit.rows(Displaced { at, displacements: d, packed, len }),
            },
            Rows::Blocks { at, columns } => match columns {
                [Column::I32(u), Column::I32(p), Column::I32(l)] => {
                    visit.rows(Listed { at, columns: [u, p, l] })
                }
                [Column::I64(u), Column::I64(p), Column::I64(l)] => {
                    visit.rows(Listed { at, columns: [u, p, l] })
                }
                _ => visit.rows(Mixed { at, columns, first: 0, count: columns[2].len() }),
            },
        }
    }
}

/// Appends `values` to `column`. Returns a number other than 0 if a value did not fit in 32 bits.
fn append(column: &mut Vec<i32>, values: impl Iterator<Item = i64>) -> i64 {
    let mut lost = 0;
    column.extend(values.map(|value| {
        lost |= value ^ i64::from(value as i32);
        value as i32
    }));
    lost
}
