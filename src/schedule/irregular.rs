//! Irregular blocks as equal pieces, or in buckets.
//!
//! Normalization merges neighbours, so an indexed type of many small equal elements arrives as blocks of varying multiples.
//! A row of varying length costs a mispredicted branch; a few equal pieces, of a common divisor, cost less. Order is kept, so overlap
//! is no matter. Where there is no such divisor, rows of a length follow each other within a bucket: order matters then.

use crate::column::{Column, try_with_capacity};
use crate::error::Result;
use crate::interval::gcd;
use crate::target::cost;

/// Pieces of a row that are written at once.
const TOGETHER: usize = 8;

/// Returns the piece length in bytes that beats rows of varying length, if the packed side is dense and there is one.
pub(super) fn piece(packed: &Column, len: &Column) -> Option<u64> {
    let (divisor, total) = match (packed, len) {
        (Column::I32(packed), Column::I32(len)) => {
            divisor(packed.iter().zip(len.iter()).map(|(&p, &l)| (p.into(), l.into())))
        }
        _ => divisor(packed.iter().zip(len.iter())),
    }?;
    pays(divisor, total, len.len()).then_some(divisor)
}

/// Returns the longest piece that all lengths are multiples of, for layouts of which neither side is dense.
pub(super) fn common(len: &Column) -> Option<u64> {
    let total = len.iter().fold(0, |sum, l| sum + l as u64);
    let divisor = len.iter().fold(0, |divisor, l| gcd(divisor, l as u64));
    (divisor >= cost::MIN_PIECE && pays(divisor, total, len.len())).then_some(divisor)
}

/// Whether rows of `total` bytes in all are better moved in pieces of `divisor` bytes.
fn pays(divisor: u64, total: u64, rows: usize) -> bool {
    let (rows, pieces) = (rows as u64, total / divisor);
    pieces <= rows * cost::MAX_PIECES && pieces * cost::table_row(divisor) < rows * cost::IRREGULAR_ROW
}

/// The greatest common divisor of all lengths of `rows` (packed offset, length) if it is long enough for a piece, and their sum; `None` also if the packed side has
/// gaps.
fn divisor(rows: impl Iterator<Item = (i64, i64)>) -> Option<(u64, u64)> {
    let (mut divisor, mut total) = (0_u64, 0_u64);
    for (p, l) in rows {
        if p as u64 != total {
            return None;
        }
        total += l as u64;
        // It soon stays what it is, and mostly is a power of two: a mask costs less than a division.
        if !divisor.is_power_of_two() || l as u64 & (divisor - 1) != 0 {
            divisor = gcd(l as u64, divisor);
            if divisor < cost::MIN_PIECE {
                return None;
            }
        }
    }
    (divisor > 0).then_some((divisor, total))
}

/// User displacements of the pieces, in order.
///
/// # Errors
/// Class `NoMem`, here and below.
pub(super) fn pieces(user: &Column, len: &Column, piece: u64) -> Result<Column> {
    if let (Column::I32(user), Column::I32(len), Ok(piece)) = (user, len, i32::try_from(piece)) {
        // Of a row the last piece is the furthest, so 4 bytes hold every piece if they hold these. A row as long as the longest at the furthest place tells so
        // mostly, and is found by vectors.
        let most = |column: &[i32]| i64::from(column.iter().copied().fold(i32::MIN, i32::max));
        let last = user.iter().zip(len.iter()).map(|(&u, &l)| i64::from(u) + i64::from(l - piece));
        let far = i64::from(i32::MAX);
        if most(user) + most(len) <= far || last.fold(i64::MIN, i64::max) <= far {
            return Ok(Column::from(cut(user, len, piece)?));
        }
    }
    let total = len.iter().fold(0, |sum, l| sum + l as u64 / piece);
    let mut out = try_with_capacity("schedule", total as usize)?;
    for (u, l) in user.iter().zip(len.iter()) {
        out.extend((0..l).step_by(piece as usize).map(|i| u + i));
    }
    Column::build(out.into_iter())
}

/// Cuts narrow columns into pieces. Written in place: most of the cost of 10^6 pieces is touching memory for the first time.
fn cut(user: &[i32], len: &[i32], piece: i32) -> Result<Vec<i32>> {
    // Most are powers of two: a shift costs less than a division.
    match (piece as u32).is_power_of_two() {
        true => cut_by(user, len, piece, |l| l >> piece.trailing_zeros()),
        false => cut_by(user, len, piece, |l| l / piece as u32),
    }
}

/// As [`cut`], with the function that tells how many pieces a length is.
#[inline(always)]
fn cut_by(user: &[i32], len: &[i32], piece: i32, pieces: impl Fn(u32) -> u32) -> Result<Vec<i32>> {
    let total: i64 = len.iter().map(|&l| i64::from(l)).sum();
    let total = (total / i64::from(piece)) as usize;
    let mut cells: Vec<i32> = try_with_capacity("schedule", total)?;
    cells.resize(total, 0);
    let steps: [i32; TOGETHER] = std::array::from_fn(|k| piece.wrapping_mul(k as i32));
    let mut at = 0;
    for (&u, &l) in user.iter().zip(len) {
        let n = pieces(l as u32) as usize;
        // The number of pieces varies, and a branch on it is mispredicted: what is written too much, the next row overwrites.
        if n <= TOGETHER
            && let Some(window) = cells.get_mut(at..at + TOGETHER)
        {
            window.iter_mut().zip(steps).for_each(|(cell, step)| *cell = u.wrapping_add(step));
        } else {
            let row = cells[at..at + n].iter_mut().zip(0..);
            row.for_each(|(cell, k)| *cell = u + k * piece);
        }
        at += n;
    }
    Ok(cells)
}

/// Rows in another order: within every [`cost::BUCKET`] by the power of two that covers their length, else as they were.
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

    /// Rows of one length or a few times that go in pieces; a long one among short ones would be too many.
    #[test]
    fn common_pieces_are_few() {
        let piece = |lengths: &[i64]| common(&Column::from(lengths.to_vec()));
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
            // By class, and within a class in their old order, which is that of their places.
            was.sort();
            assert_eq!(is, was);
        }
    }

    #[test]
    fn multiples_become_pieces() {
        let user = Column::from(vec![0_i64, 100, 50]);
        let len = Column::from(vec![24_i64, 72, 48]);
        let packed = Column::from(vec![0_i64, 24, 96]);
        assert_eq!(piece(&packed, &len), Some(24));
        assert_eq!(pieces(&user, &len, 24).unwrap(), Column::from(vec![0_i64, 100, 124, 148, 50, 74]));
    }

    #[test]
    fn many_pieces_and_wide_ones() {
        // Rows of 1 to 20 pieces, so shorter and longer ones than are written at once, up to the last cell.
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
            assert_eq!(pieces(&user, &len, 12).unwrap(), Column::from(expected), "{far}");
        }
        let starts = lengths.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + l)));
        let packed = Column::from(starts.collect::<Vec<_>>());
        let rows = packed.iter().zip(lengths.iter().copied());
        assert_eq!(divisor(rows), Some((12, lengths.iter().sum::<i64>() as u64)));
    }

    #[test]
    fn odd_lengths_and_gaps_in_the_packed_side_stay() {
        let packed = Column::from(vec![0_i64, 24, 96]);
        assert_eq!(piece(&packed, &Column::from(vec![24_i64, 72, 47])), None);
        assert_eq!(piece(&Column::from(vec![0_i64, 30, 96]), &Column::from(vec![24_i64, 72, 48])), None);
    }
}
