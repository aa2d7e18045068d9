//! Irregular blocks as equal pieces, or in buckets.
//!
//! Normalization merges neighbours, so an indexed type of many small equal elements arrives as blocks of varying multiples.
//! A row of varying length costs a mispredicted branch; a few equal pieces, of a common divisor, cost less. Order is kept, so overlap
//! is no matter. Where there is no such divisor, rows of a length follow each other within a bucket: order matters then.

use crate::column::{Column, try_with_capacity};
use crate::error::Result;
use crate::interval::gcd;
use crate::nest::rows;
use crate::target::cost;

/// Pieces of a row that are written at once.
const TOGETHER: usize = 8;

/// Equal pieces of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Bytes of each.
    pub(super) len: u64,
    /// How many there are.
    number: u64,
}

/// Returns the pieces that beat rows of varying length, if the packed side is dense and there are such.
pub(super) fn dense(packed: &Column, len: &Column) -> Option<Pieces> {
    let (divisor, total) = match (packed, len) {
        (Column::I32(packed), Column::I32(len)) => narrow_divisor(packed, len),
        _ => divisor(packed.iter().zip(len.iter())),
    }?;
    better(divisor, total, len.len())
}

/// Returns the longest pieces that all lengths are multiples of, for layouts of which neither side is dense.
pub(super) fn common(len: &Column) -> Option<Pieces> {
    let total = len.iter().fold(0, |sum, l| sum + l as u64);
    let divisor = len.iter().fold(0, |divisor, l| gcd(divisor, l as u64));
    if divisor >= cost::MIN_PIECE { better(divisor, total, len.len()) } else { None }
}

/// Pieces of `divisor` bytes, if rows of `total` bytes in all are better moved so.
fn better(divisor: u64, total: u64, rows: usize) -> Option<Pieces> {
    let (rows, number) = (rows as u64, total / divisor);
    let few = number <= rows * cost::MAX_PIECES;
    let pays = few && number * cost::table_row(divisor) < rows * cost::IRREGULAR_ROW;
    pays.then_some(Pieces { len: divisor, number })
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
        divisor = refined(divisor, l as u64)?;
    }
    (divisor > 0).then_some((divisor, total))
}

/// The greatest common divisor of `divisor` and the length `len`, if it is long enough for a piece.
#[inline(always)]
fn refined(divisor: u64, len: u64) -> Option<u64> {
    // It soon stays what it is, and mostly is a power of two: a mask costs less than a division.
    if divisor.is_power_of_two() && len & (divisor - 1) == 0 {
        return Some(divisor);
    }
    let divisor = gcd(len, divisor);
    (divisor >= cost::MIN_PIECE).then_some(divisor)
}

/// As [`divisor`], of narrow columns: rows that are dense and multiples of a power of two are told by vectors, many at a time.
fn narrow_divisor(packed: &[i32], len: &[i32]) -> Option<(u64, u64)> {
    let (mut divisor, mut total) = (0_u64, 0_u64);
    for (packed, len) in packed.chunks(rows::TOGETHER).zip(len.chunks(rows::TOGETHER)) {
        if packed[0] as u64 != total {
            return None;
        }
        // Where no offset is negative, the low word of an end that is another offset is all of it.
        let ends = packed.iter().zip(len).map(|(&p, &l)| p.wrapping_add(l));
        let gaps = packed[1..].iter().zip(ends).fold(0, |gaps, (&p, end)| gaps | (p ^ end));
        if gaps != 0 || packed.iter().fold(0, |signs, &p| signs | p) < 0 {
            return None;
        }
        let (bits, others) = len.iter().fold((0, 0), |(bits, others), &l| (bits | l, others | (l ^ len[0])));
        if !divisor.is_power_of_two() || bits as u64 & (divisor - 1) != 0 {
            let different = if others == 0 { &len[..1] } else { len };
            divisor = different.iter().try_fold(divisor, |divisor, &l| refined(divisor, l as u64))?;
        }
        let last = len.len() - 1;
        total = packed[last] as u64 + len[last] as u64;
    }
    (divisor > 0).then_some((divisor, total))
}

/// User displacements of the pieces, in order.
///
/// # Errors
/// Class `NoMem`, here and below.
pub(super) fn cut(user: &Column, len: &Column, Pieces { len: piece, number }: Pieces) -> Result<Column> {
    if let (Column::I32(user), Column::I32(len), Ok(piece)) = (user, len, i32::try_from(piece)) {
        // Most are powers of two: a shift costs less than a division.
        let narrow = match (piece as u32).is_power_of_two() {
            true => cut_narrow(user, len, piece, number, |l| l >> piece.trailing_zeros()),
            false => cut_narrow(user, len, piece, number, |l| l / piece as u32),
        }?;
        if let Some(narrow) = narrow {
            return Ok(Column::from(narrow));
        }
    }
    let mut out = try_with_capacity("schedule", number as usize)?;
    for (u, l) in user.iter().zip(len.iter()) {
        out.extend((0..l).step_by(piece as usize).map(|i| u + i));
    }
    Column::build(out.into_iter())
}

/// Cuts narrow columns into `number` pieces of `piece` bytes, of which a length is as many as `pieces` tells; none where a piece needs more than 4 bytes.
/// Each cell is written where it stays: most of the cost of 10^6 pieces is touching memory for the first time.
#[inline(always)]
fn cut_narrow(
    user: &[i32],
    len: &[i32],
    piece: i32,
    number: u64,
    pieces: impl Fn(u32) -> u32,
) -> Result<Option<Vec<i32>>> {
    let mut cells: Vec<i32> = try_with_capacity("schedule", number as usize)?;
    // Of a row the last piece is the furthest.
    let mut signs = 0;
    let steps: [i32; TOGETHER] = std::array::from_fn(|k| piece.wrapping_mul(k as i32));
    for (user, len) in user.chunks(rows::TOGETHER).zip(len.chunks(rows::TOGETHER)) {
        // Rows of one piece follow each other often: members of a struct that are lists of single elements.
        if len.iter().fold(0, |others, &l| others | (l ^ piece)) == 0 {
            cells.extend_from_slice(user);
            continue;
        }
        for (&u, &l) in user.iter().zip(len) {
            let (n, at) = (pieces(l as u32) as usize, cells.len());
            signs |= !u & u.wrapping_add(l - piece);
            // The number of pieces varies, and a branch on it is mispredicted: what is written too much, the next row overwrites.
            if n <= TOGETHER && cells.capacity() - at >= TOGETHER {
                cells.extend_from_slice(&steps.map(|step| u.wrapping_add(step)));
                cells.truncate(at + n);
            } else {
                cells.extend((0..n as i32).map(|k| u.wrapping_add(k.wrapping_mul(piece))));
            }
        }
    }
    Ok((signs >= 0).then_some(cells))
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
        let piece = |lengths: &[i64]| common(&Column::from(lengths.to_vec())).map(|pieces| pieces.len);
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
        let pieces = Pieces { len: 24, number: 6 };
        assert_eq!(dense(&packed, &len), Some(pieces));
        assert_eq!(cut(&user, &len, pieces).unwrap(), Column::from(vec![0_i64, 100, 124, 148, 50, 74]));
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
            let pieces = Pieces { len: 12, number: expected.len() as u64 };
            assert_eq!(cut(&user, &len, pieces).unwrap(), Column::from(expected), "{far}");
        }
        let starts = lengths.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + l)));
        let packed = Column::from(starts.collect::<Vec<_>>());
        let rows = packed.iter().zip(lengths.iter().copied());
        assert_eq!(divisor(rows), Some((12, lengths.iter().sum::<i64>() as u64)));
    }

    #[test]
    fn odd_lengths_and_gaps_in_the_packed_side_stay() {
        let packed = Column::from(vec![0_i64, 24, 96]);
        assert_eq!(dense(&packed, &Column::from(vec![24_i64, 72, 47])), None);
        assert_eq!(dense(&Column::from(vec![0_i64, 30, 96]), &Column::from(vec![24_i64, 72, 48])), None);
    }

    /// Many rows at a time find what row after row does, wherever a gap, an odd length or an offset beyond 4 bytes is.
    #[test]
    fn narrow_rows_have_the_same_divisor() {
        let check = |packed: &[i32], len: &[i32]| {
            let rows = packed.iter().zip(len).map(|(&p, &l)| (p.into(), l.into()));
            assert_eq!(narrow_divisor(packed, len), divisor(rows), "{packed:?} {len:?}");
        };
        let starts = |len: &[i32]| -> Vec<i32> {
            len.iter().scan(0_i32, |at, &l| Some(std::mem::replace(at, at.wrapping_add(l)))).collect()
        };
        for n in [1, 2, rows::TOGETHER - 1, rows::TOGETHER, rows::TOGETHER + 1, 3 * rows::TOGETHER + 5] {
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
