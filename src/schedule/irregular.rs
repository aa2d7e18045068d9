//! Plans for irregular blocks, which are cut into equal pieces, or sorted within buckets by the
//! power of two that covers their length.
//!
//! Normalization merges neighbours, so an indexed type of many small equal elements arrives here as
//! blocks whose lengths are various multiples of the element. Moving rows of varying length costs a
//! mispredicted branch for each row. It is cheaper to cut each row into a few equal pieces, whose
//! length is a common divisor of the lengths of the rows. Pieces keep the order of the entries, so
//! entries may overlap. If the members of a struct are such lists, each list gets its own divisor,
//! and lists that repeat the same rows at another place share one table.
//!
//! If there is no such divisor, the rows within each bucket are sorted, so that rows of similar
//! length follow each other. This changes the order of the entries, so the entries must not overlap
//! on the side that is written.

use std::ops::Range;

use crate::column::{Column, try_with_capacity};
use crate::error::Result;
use crate::interval::gcd;
use crate::micro::rows::LENGTHS;
use crate::nest::{Offsets, rows};
use crate::target::cost;

/// Number of table entries that are stored at once while a row is cut into pieces.
const PIECES_PER_STORE: usize = 8;

/// Maximum number of calls of micro-kernels for all stretches of one node. A stretch is a group of
/// consecutive rows that are cut into pieces of one length.
const MAX_STRETCH_CALLS: usize = 8;

/// Length and number of the equal pieces of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Bytes of each piece.
    pub(super) len: u64,
    /// Number of pieces in the rows.
    number: u64,
}

/// Consecutive rows that are cut into pieces of one length. If several members of a struct are
/// lists, they arrive as one list. Each member is then a stretch with its own length of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) rows: Range<usize>,
    pub(super) pieces: Pieces,
    /// User offsets in bytes of the repetitions of `rows`, relative to `rows`. A repetition moves
    /// the same rows at another user offset, and its packed bytes follow directly in the stream. A
    /// list that is used for several arrays thus needs only one table.
    pub(super) repeats: Vec<i64>,
}

impl Stretch {
    /// Returns the offsets of the calls of the micro-kernel, relative to the first call. There is
    /// one call for `rows`, and then one for each repetition.
    pub(super) fn calls(&self) -> impl Iterator<Item = Offsets> {
        let bytes = (self.pieces.number * self.pieces.len) as i64;
        let user = [0].into_iter().chain(self.repeats.iter().copied());
        user.zip(0..).map(move |(user, k)| Offsets::new(user, k * bytes))
    }

    /// Returns the stretch with repetitions, if it consists of the same rows several times at
    /// different user offsets; otherwise returns it unchanged. Only the first occurrence of the
    /// rows is kept, and the others are listed as repetitions. There may be at most `most` calls,
    /// and each call must have at least [`cost::STRETCH_ROWS`] rows. If several divisions are
    /// possible, the one with the maximum number of repetitions is chosen.
    fn folded(mut self, [user, len]: [&Column; 2], most: usize) -> Stretch {
        let Range { start, end } = self.rows;
        let rows = end - start;
        let times = (2..=most.min(rows / cost::STRETCH_ROWS)).rev().filter(|n| rows.is_multiple_of(*n));
        for times in times {
            let each = rows / times;
            let further = |i: usize| user.get(start + i + each).wrapping_sub(user.get(start + i));
            // Compare a few rows first, which excludes most numbers of repetitions.
            if (1..4).any(|i| further(i) != further(0)) {
                continue;
            }
            let by = |k: usize| user.get(start + k * each).wrapping_sub(user.get(start));
            // If every row is one piece, all lengths are equal and need not be compared.
            let whole = self.pieces.number == rows as u64;
            let same = |k: usize| {
                let [first, other] = [start, start + k * each].map(|from| from..from + each);
                user.repeats(first.clone(), other.clone(), by(k)) && (whole || len.repeats(first, other, 0))
            };
            if (1..times).all(same) {
                self.repeats = (1..times).map(by).collect();
                self.rows.end = start + each;
                self.pieces.number /= times as u64;
                break;
            }
        }
        self
    }
}

/// Returns stretches of equal pieces for all rows, if the packed side is dense and the pieces are
/// expected to be faster than rows of varying length.
pub(super) fn equal_pieces([user, packed, len]: [&Column; 3]) -> Option<Vec<Stretch>> {
    let found = match (packed, len) {
        (Column::I32(packed), Column::I32(len)) => narrow(packed, len),
        _ => wide(packed, len),
    }?;
    let found = found.finish(len.len())?;
    let mut spare = MAX_STRETCH_CALLS.saturating_sub(found.len());
    let fold = |stretch: Stretch| {
        let stretch = stretch.folded([user, len], 1 + spare);
        spare -= stretch.repeats.len();
        stretch
    };
    Some(found.into_iter().map(fold).collect())
}

/// Returns pieces whose length is the greatest common divisor of all lengths, if that is at least
/// [`cost::MIN_PIECE`] bytes and [`if_cheaper`] accepts the pieces. This function is for layouts
/// that are dense on neither side.
pub(super) fn common_pieces(len: &Column) -> Option<Pieces> {
    let total = len.iter().fold(0, |sum, l| sum + l as u64);
    let divisor = len.iter().fold(0, |divisor, l| gcd(divisor, l as u64));
    if divisor >= cost::MIN_PIECE { if_cheaper(divisor, total, len.len()) } else { None }
}

/// Returns pieces of `divisor` bytes for `rows` rows with `total` bytes, if they cost less than
/// rows of varying length and there are at most [`cost::MAX_PIECES`] pieces per row on average.
fn if_cheaper(divisor: u64, total: u64, rows: usize) -> Option<Pieces> {
    let (rows, number) = (rows as u64, total / divisor);
    let few = number <= rows * cost::MAX_PIECES;
    let pays = few && number * cost::table_row(divisor) < rows * cost::IRREGULAR_ROW;
    pays.then_some(Pieces { len: divisor, number })
}

/// Returns true if there is a micro-kernel for rows of `len` bytes, so that such rows should not be
/// cut into shorter pieces for the sake of other rows. Three pieces of 8 B take as long as one
/// piece of 24 B in the first-level cache, but need three times the table (packing six lists of
/// 16384 rows took 101 us against 92 us on Emerald Rapids).
fn has_own_kernel(len: u64) -> bool {
    u16::try_from(len).is_ok_and(|len| LENGTHS.binary_search(&len).is_ok())
}

/// Search for stretches, in one pass over the rows.
#[derive(Default)]
struct Stretches {
    found: Vec<Stretch>,
    /// First row of the last stretch, and the number of packed bytes before this row.
    start: usize,
    before: u64,
    /// Greatest common divisor of the lengths in the last stretch so far.
    divisor: u64,
    /// Number of packed bytes of all rows so far.
    total: u64,
}

impl Stretches {
    /// Adds a chunk of rows that begins with row `first`. `bits` is the bitwise OR of the lengths
    /// of these rows, and `same` is true if all their lengths are equal. Returns `None` if the
    /// pieces would become too short.
    #[inline(always)]
    fn take(
        &mut self,
        first: usize,
        (bits, same): (u64, bool),
        mut lens: impl ExactSizeIterator<Item = u64>,
    ) -> Option<()> {
        const { assert!(cost::STRETCH_ROWS <= rows::CHUNK_ROWS, "a chunk must have as many rows") };
        if self.divisor.is_power_of_two() && bits & (self.divisor - 1) == 0 && !same {
            return Some(());
        }
        let many = lens.len() >= cost::STRETCH_ROWS;
        if same {
            let len = lens.next()?;
            // If there are many equal rows, longer than the pieces so far, the last stretch ends
            // here. These rows then begin a new stretch, whose pieces are as long as the rows.
            if many && len > self.divisor && self.divisor > 0 && has_own_kernel(len) && self.may_end() {
                self.end(first, self.total);
                self.divisor = len;
            }
            return self.row(first, len, self.total);
        }
        let mut total = self.total;
        lens.zip(first..).try_for_each(|(len, i)| {
            self.row(i, len, total)?;
            total += len;
            Some(())
        })
    }

    /// Adds row `i` of `len` bytes. The rows before row `i` have `total` packed bytes.
    #[inline(always)]
    fn row(&mut self, i: usize, len: u64, total: u64) -> Option<()> {
        // The divisor soon stops changing, so first test two cases in which it stays the same. In
        // the first case, the divisor is a power of two, as is usual, and the length is a multiple
        // of it; a mask tests this at less cost than a division. In the second case, the length
        // equals the divisor.
        if self.divisor.is_power_of_two() && len & (self.divisor - 1) == 0 || len == self.divisor {
            return Some(());
        }
        let divisor = gcd(len, self.divisor);
        if divisor < self.divisor
            && i - self.start >= cost::STRETCH_ROWS
            && has_own_kernel(self.divisor)
            && self.may_end()
        {
            self.end(i, total);
            self.divisor = len;
        } else {
            self.divisor = divisor;
        }
        (self.divisor >= cost::MIN_PIECE).then_some(())
    }

    fn may_end(&self) -> bool {
        self.found.len() + 1 < MAX_STRETCH_CALLS
    }

    /// Ends the last stretch just before row `i`. The rows before row `i` have `total` packed
    /// bytes.
    fn end(&mut self, i: usize, total: u64) {
        let pieces = Pieces { len: self.divisor, number: (total - self.before) / self.divisor };
        self.found.push(Stretch { rows: self.start..i, pieces, repeats: Vec::new() });
        (self.start, self.before) = (i, total);
    }

    /// Returns all stretches if each of them costs less than rows of varying length. Otherwise
    /// returns one stretch of all `rows` rows with their common divisor, if that stretch costs less
    /// than rows of varying length. Returns `None` if neither costs less.
    fn finish(mut self, rows: usize) -> Option<Vec<Stretch>> {
        if self.divisor == 0 {
            return None;
        }
        self.end(rows, self.total);
        let pays =
            |s: &Stretch| if_cheaper(s.pieces.len, s.pieces.len * s.pieces.number, s.rows.len()).is_some();
        if self.found.iter().all(pays) {
            return Some(self.found);
        }
        let divisor = self.found.iter().fold(0, |divisor, s| gcd(divisor, s.pieces.len));
        let pieces =
            if divisor >= cost::MIN_PIECE { if_cheaper(divisor, self.total, rows)? } else { return None };
        Some(vec![Stretch { rows: 0..rows, pieces, repeats: Vec::new() }])
    }
}

/// Returns the stretches of rows whose columns have entries of any width. The result is `None` if
/// the packed side is not dense, or if the pieces would become too short.
fn wide(packed: &Column, len: &Column) -> Option<Stretches> {
    let mut found = Stretches::default();
    for first in (0..len.len()).step_by(rows::CHUNK_ROWS) {
        let part = first..len.len().min(first + rows::CHUNK_ROWS);
        let lens = part.clone().map(|i| len.get(i) as u64);
        let end = part
            .clone()
            .try_fold(found.total, |end, i| (packed.get(i) as u64 == end).then(|| end + len.get(i) as u64))?;
        let bits = lens.clone().fold(0, |bits, l| bits | l);
        let same = lens.clone().all(|l| l == len.get(first) as u64);
        found.take(first, (bits, same), lens)?;
        found.total = end;
    }
    Some(found)
}

/// Does the same as [`wide`] for columns with 4-byte entries. Code that the compiler vectorizes
/// decides, for many rows at a time, whether the rows are dense and whether their lengths are
/// multiples of a power of two.
fn narrow(packed: &[i32], len: &[i32]) -> Option<Stretches> {
    let mut found = Stretches::default();
    for (k, (packed, len)) in packed.chunks(rows::CHUNK_ROWS).zip(len.chunks(rows::CHUNK_ROWS)).enumerate() {
        if packed[0] as u64 != found.total {
            return None;
        }
        // The ends of rows are computed in 32 bits and may overflow. Offsets and lengths are less
        // than 2^31, so an end that overflowed is negative. If no offset is negative, an end that
        // equals the next offset has therefore not overflowed.
        let ends = packed.iter().zip(len).map(|(&p, &l)| p.wrapping_add(l));
        let gaps = packed[1..].iter().zip(ends).fold(0, |gaps, (&p, end)| gaps | (p ^ end));
        if gaps != 0 || packed.iter().fold(0, |signs, &p| signs | p) < 0 {
            return None;
        }
        let (bits, others) = len.iter().fold((0, 0), |(bits, others), &l| (bits | l, others | (l ^ len[0])));
        let lens = len.iter().map(|&l| l as u64);
        found.take(k * rows::CHUNK_ROWS, (bits as u64, others == 0), lens)?;
        let last = len.len() - 1;
        found.total = packed[last] as u64 + len[last] as u64;
    }
    Some(found)
}

/// Returns the displacements of the pieces of the given rows, in order. The displacements are on
/// the side whose row offsets are in `user`.
///
/// # Errors
/// Class `NoMem`.
pub(super) fn cut(
    user: &Column,
    len: &Column,
    rows: Range<usize>,
    Pieces { len: piece, number }: Pieces,
) -> Result<Column> {
    if let (Column::I32(user), Column::I32(len), Ok(piece)) = (user, len, i32::try_from(piece)) {
        let (user, len) = (&user[rows.clone()], &len[rows.clone()]);
        // Most lengths of pieces are powers of two, and a shift costs less than a division.
        let narrow = match (piece as u32).is_power_of_two() {
            true => cut_narrow(user, len, piece, number, |l| l >> piece.trailing_zeros()),
            false => cut_narrow(user, len, piece, number, |l| l / piece as u32),
        }?;
        if let Some(narrow) = narrow {
            return Ok(Column::from(narrow));
        }
    }
    let mut out = try_with_capacity("schedule", number as usize)?;
    for (u, l) in rows.map(|i| (user.get(i), len.get(i))) {
        out.extend((0..l).step_by(piece as usize).map(|i| u + i));
    }
    Column::build(out.into_iter())
}

/// Cuts rows whose columns have 4-byte entries into `number` pieces of `piece` bytes. `pieces`
/// returns the number of pieces in a length. The result is `None` if an offset needs more than 4
/// bytes.
///
/// Every offset is stored directly in its final place. For 10^6 pieces, most of the time goes into
/// touching memory for the first time, so a temporary copy would be expensive.
///
/// # Errors
/// Class `NoMem`.
#[inline(always)]
fn cut_narrow(
    user: &[i32],
    len: &[i32],
    piece: i32,
    number: u64,
    pieces: impl Fn(u32) -> u32,
) -> Result<Option<Vec<i32>>> {
    let mut cells: Vec<i32> = try_with_capacity("schedule", number as usize)?;
    // The last piece of a row has the largest offset, so only its offset is checked for overflow.
    let mut signs = 0;
    let steps: [i32; PIECES_PER_STORE] = std::array::from_fn(|k| piece.wrapping_mul(k as i32));
    for (user, len) in user.chunks(rows::CHUNK_ROWS).zip(len.chunks(rows::CHUNK_ROWS)) {
        // If every row of a chunk is exactly one piece, copy the offsets of all rows of the chunk
        // at once. This is frequent: a member of a struct may be a list of single elements.
        if len.iter().fold(0, |others, &l| others | (l ^ piece)) == 0 {
            cells.extend_from_slice(user);
            continue;
        }
        for (&u, &l) in user.iter().zip(len) {
            let (n, at) = (pieces(l as u32) as usize, cells.len());
            signs |= !u & u.wrapping_add(l - piece);
            // The number of pieces varies, and a branch on this number would be mispredicted. So
            // always store `PIECES_PER_STORE` offsets; the next row overwrites those that are not
            // needed.
            if n <= PIECES_PER_STORE && cells.capacity() - at >= PIECES_PER_STORE {
                cells.extend_from_slice(&steps.map(|step| u.wrapping_add(step)));
                cells.truncate(at + n);
            } else {
                cells.extend((0..n as i32).map(|k| u.wrapping_add(k.wrapping_mul(piece))));
            }
        }
    }
    Ok((signs >= 0).then_some(cells))
}

/// Sorts the rows within every bucket of [`cost::BUCKET`] rows by the power of two that covers
/// their length. Rows of one power keep their order.
///
/// # Errors
/// Class `NoMem`.
pub(super) fn bucketed(user: &Column, packed: &Column, len: &Column) -> Result<[Column; 3]> {
    let mut order: Vec<u32> = try_with_capacity("schedule", len.len())?;
    order.extend(0..len.len() as u32);
    let class = |i: &u32| (len.get(*i as usize) as u64).next_power_of_two();
    order.chunks_mut(cost::BUCKET).for_each(|bucket| bucket.sort_by_key(class));
    let sorted = |column: &Column| Column::build(order.iter().map(|&i| column.get(i as usize)));
    Ok([sorted(user)?, sorted(packed)?, sorted(len)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stretches that `equal_pieces` finds for rows whose user offsets have no regular
    /// step.
    fn stretches_of(packed: &Column, len: &Column) -> Option<Vec<Stretch>> {
        let user: Vec<i64> = (0..len.len() as i64).map(|i| i * i * 1000).collect();
        equal_pieces([&Column::from(user), packed, len])
    }

    /// Tests that rows are cut only if they have few pieces. One long row among short ones would
    /// have too many pieces.
    #[test]
    fn common_pieces_are_few() {
        let piece = |lengths: &[i64]| common_pieces(&Column::from(lengths.to_vec())).map(|pieces| pieces.len);
        let one = cost::MIN_PIECE as i64;
        assert_eq!(piece(&[one, 2 * one, one, one]), Some(cost::MIN_PIECE));
        let many = one * (2 * cost::MAX_PIECES as i64 + 1);
        assert_eq!(piece(&[one, many]), None);
        assert_eq!(piece(&[one, 2 * one - 1]), None);
    }

    #[test]
    fn buckets_hold_the_same_rows() {
        let n = 3 * cost::BUCKET as i64 + 17;
        let lengths: Vec<i64> = (0..n).map(|i| 1 + i * 31 % 64).collect();
        let rows = [(0..n).map(|i| 100 * i).collect(), (0..n).map(|i| 64 * i).collect(), lengths];
        let columns = rows.clone().map(Column::from);
        let [user, packed, len] = bucketed(&columns[0], &columns[1], &columns[2]).unwrap();
        for bucket in (0..n as usize).step_by(cost::BUCKET) {
            let range = bucket..(bucket + cost::BUCKET).min(n as usize);
            let class = |l: i64| (l as u64).next_power_of_two();
            let (mut was, mut is) = (Vec::new(), Vec::new());
            for i in range.clone() {
                was.push((class(rows[2][i]), rows[0][i], rows[1][i], rows[2][i]));
                is.push((class(len.get(i)), user.get(i), packed.get(i), len.get(i)));
            }
            // The rows of a bucket must be sorted by the power of two that covers their length, and
            // rows with the same power must be in their old order. User offsets ascend in the old
            // order, so sorting the tuples gives the expected result.
            was.sort();
            assert_eq!(is, was);
        }
    }

    #[test]
    fn multiples_become_pieces() {
        let user = Column::from(vec![0_i64, 100, 50]);
        let len = Column::from(vec![24_i64, 72, 48]);
        let packed = Column::from(vec![0_i64, 24, 96]);
        let pieces = Pieces { len: 24, number: 6 };
        assert_eq!(
            stretches_of(&packed, &len),
            Some(vec![Stretch { rows: 0..3, pieces, repeats: Vec::new() }])
        );
        assert_eq!(cut(&user, &len, 0..3, pieces).unwrap(), Column::from(vec![0_i64, 100, 124, 148, 50, 74]));
    }

    /// Tests that lists that follow each other, as members of a struct do, get different lengths of
    /// pieces in either order of the lists. A short list gets the same length of pieces as its
    /// neighbours.
    #[test]
    fn lists_one_after_the_other_are_cut_apart() {
        let (one, many) = (cost::STRETCH_ROWS as i64, 5 * cost::STRETCH_ROWS as i64 + 3);
        let found = |lists: &[(i64, i64)]| {
            let lengths: Vec<i64> = lists.iter().flat_map(|&(n, l)| (0..n).map(move |_| l)).collect();
            let starts = lengths.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + l)));
            let (packed, len) = (Column::from(starts.collect::<Vec<_>>()), Column::from(lengths));
            let found = stretches_of(&packed, &len);
            assert_eq!(wide(&packed, &len).and_then(|found| found.finish(len.len())), found);
            Some(found?.into_iter().map(|s| (s.rows, s.pieces.len, s.pieces.number)).collect())
        };
        let stretches = |lists: &[(i64, i64)]| -> Vec<_> {
            let starts = lists.iter().scan(0, |at, (n, _)| Some(std::mem::replace(at, *at + n)));
            let rows = starts.zip(lists).map(|(at, (n, _))| at as usize..(at + n) as usize);
            rows.zip(lists).map(|(rows, &(n, l))| (rows, l as u64, n as u64)).collect()
        };
        // If a shorter row follows longer ones, `Stretches::row` begins a new stretch. If a chunk
        // of longer rows follows shorter ones, `Stretches::take` does so.
        for lists in [
            vec![(many, 24), (many, 8)],
            vec![(many, 24), (one, 16), (many, 8)],
            vec![(one, 8), (2 * one, 24)],
        ] {
            assert_eq!(found(&lists), Some(stretches(&lists)), "{lists:?}");
        }
        assert_eq!(found(&[(many, 1 << 24), (many, 8)]), None);
        // These lists are not cut apart, because one list is too short, or one length has no
        // micro-kernel.
        for lists in [[(one - 1, 24), (many, 8)], [(many, 56), (many, 8)]] {
            let all: i64 = lists.iter().map(|(n, l)| n * l / 8).sum();
            let rows = lists.iter().map(|&(n, _)| n as usize).sum();
            assert_eq!(found(&lists), Some(vec![(0..rows, 8, all as u64)]), "{lists:?}");
        }
        // The number of stretches does not exceed the maximum number of calls.
        let alternating: Vec<_> = (0..20).map(|i| (2 * one, if i % 2 == 0 { 24 } else { 8 })).collect();
        let found: Vec<_> = found(&alternating).unwrap();
        assert_eq!(found.len(), MAX_STRETCH_CALLS);
    }
    /// Tests that one list that is used for several arrays becomes one table, wherever the arrays
    /// lie. There is no common table if, in one of the arrays, a row has another offset or is
    /// longer.
    #[test]
    fn one_list_for_several_arrays_is_one_table() {
        let n = 2 * cost::STRETCH_ROWS;
        let arrays = [0, 1 << 20, -5000, 7 << 32, 9 << 20, 3 << 32, 5, 11 << 20];
        let check = |times: usize, moved: Option<usize>, longer: Option<usize>| {
            let entries = |of: &dyn Fn(usize) -> i64, other: Option<usize>| -> Vec<i64> {
                (0..times * n).map(|i| of(i) + if other == Some(i) { 8 } else { 0 }).collect()
            };
            let user = entries(&|i| arrays[i / n] + (i % n * (i % n) * 64) as i64, moved);
            let len = entries(&|i| 8 + (i % n % 2 * 8) as i64, longer);
            let starts = len.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + l)));
            let packed = Column::from(starts.collect::<Vec<i64>>());
            let bytes: i64 = len.iter().sum();
            let found = equal_pieces([&Column::from(user), &packed, &Column::from(len)]).unwrap();
            let [stretch] = &found[..] else { panic!("{found:?}") };
            let folds = if moved.or(longer).is_some() { 1 } else { times };
            assert_eq!(stretch.repeats, arrays[1..folds], "{times} {moved:?} {longer:?}");
            assert_eq!(stretch.rows, 0..times * n / folds);
            assert_eq!(stretch.pieces.number * folds as u64, bytes as u64 / 8);
            let calls = arrays[..folds].iter().zip(0..);
            let expected = calls.map(|(user, k)| Offsets::new(*user, k * bytes / folds as i64));
            assert!(stretch.calls().eq(expected));
        };
        (2..=MAX_STRETCH_CALLS).for_each(|times| check(times, None, None));
        for row in [n + 1, n + 70, 2 * n, 3 * n - 1] {
            check(3, Some(row), None);
            check(3, None, Some(row));
        }
    }

    #[test]
    fn many_pieces_and_wide_ones() {
        // Rows have 1 to 20 pieces. Some rows thus have fewer pieces than are stored at once, and
        // some have more, up to the end of the allocated memory.
        let lengths: Vec<i64> = (0..200).map(|i| 12 * (1 + i * 7 % 20)).collect();
        let places: Vec<i64> = (0..200).map(|i| 1000 * (i * 37 % 200) - 50_000).collect();
        for far in [0, i64::from(i32::MAX) - 149_000 - 240 + 12, i64::from(i32::MAX)] {
            let moved: Vec<i64> = places.iter().map(|p| p + far).collect();
            let expected: Vec<i64> = moved
                .iter()
                .zip(&lengths)
                .flat_map(|(&p, &l)| (0..l / 12).map(move |k| p + 12 * k))
                .collect();
            let (user, len) = (Column::from(moved), Column::from(lengths.clone()));
            let pieces = Pieces { len: 12, number: expected.len() as u64 };
            assert_eq!(cut(&user, &len, 0..200, pieces).unwrap(), Column::from(expected), "{far}");
        }
        let starts = lengths.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + l)));
        let packed = Column::from(starts.collect::<Vec<_>>());
        let pieces = Pieces { len: 12, number: lengths.iter().sum::<i64>() as u64 / 12 };
        let found = stretches_of(&packed, &Column::from(lengths));
        assert_eq!(found, Some(vec![Stretch { rows: 0..200, pieces, repeats: Vec::new() }]));
    }

    #[test]
    fn odd_lengths_and_gaps_in_the_packed_side_stay() {
        let packed = Column::from(vec![0_i64, 24, 96]);
        assert_eq!(stretches_of(&packed, &Column::from(vec![24_i64, 72, 47])), None);
        assert_eq!(
            stretches_of(&Column::from(vec![0_i64, 30, 96]), &Column::from(vec![24_i64, 72, 48])),
            None
        );
    }

    /// Tests that the vectorized search finds the same pieces as the search row by row, wherever
    /// there is a gap, an odd length, or an offset that needs more than 4 bytes.
    #[test]
    fn narrow_rows_have_the_same_pieces() {
        let check = |packed: &[i32], len: &[i32]| {
            let column = |entries: &[i32]| Column::from(entries.to_vec());
            let finished = |found: Option<Stretches>| found.and_then(|found| found.finish(len.len()));
            let others = finished(wide(&column(packed), &column(len)));
            assert_eq!(finished(narrow(packed, len)), others, "{packed:?} {len:?}");
        };
        let starts = |len: &[i32]| -> Vec<i32> {
            len.iter().scan(0_i32, |at, &l| Some(std::mem::replace(at, at.wrapping_add(l)))).collect()
        };
        for n in
            [1, 2, rows::CHUNK_ROWS - 1, rows::CHUNK_ROWS, rows::CHUNK_ROWS + 1, 3 * rows::CHUNK_ROWS + 5]
        {
            for unit in [8, 12, 24] {
                let len: Vec<i32> = (0..n as i32).map(|i| unit * (1 + i / 70 + i % 3)).collect();
                check(&starts(&len), &len);
                for i in [0, n / 2, n - 1] {
                    let (mut odd, mut gap) = (len.clone(), starts(&len));
                    odd[i] += 4;
                    gap[i] += 8;
                    check(&starts(&odd), &odd);
                    check(&gap, &len);
                }
            }
            let far = vec![1 << 30; n];
            check(&starts(&far), &far);
        }
    }
}
