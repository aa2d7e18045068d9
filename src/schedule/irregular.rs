//! Irregular blocks as equal pieces: lengths with a common divisor become one table of that length.
//!
//! Normalization merges neighbours, so an indexed type of many small equal elements arrives as blocks of varying multiples.
//! A row of varying length costs a mispredicted branch; a few equal pieces cost less. Order is kept, so overlap is no matter.

use crate::column::Column;
use crate::target::cost;

/// Most pieces per block on average: bounds the table.
const MAX_PIECES: u64 = 16;
/// Shortest piece in bytes.
const MIN_PIECE: u64 = 4;

/// The piece length in bytes that beats rows of varying length, if the packed side is dense and there is one.
pub(super) fn piece(packed: &Column, len: &Column) -> Option<u64> {
    let rows = len.len() as u64;
    let mut divisor = 0_u64;
    let mut total = 0_u64;
    for (l, p) in len.iter().zip(packed.iter()) {
        if p as u64 != total {
            return None;
        }
        total += l as u64;
        divisor = gcd(divisor, l as u64);
        if divisor < MIN_PIECE {
            return None;
        }
    }
    let pieces = total / divisor;
    (pieces <= rows * MAX_PIECES && pieces * cost::table_row(divisor) < rows * cost::IRREGULAR_ROW)
        .then_some(divisor)
}

/// User displacements of the pieces, in order.
pub(super) fn pieces(user: &Column, len: &Column, piece: u64) -> Column {
    let total: i64 = len.iter().sum();
    let mut out = Vec::with_capacity((total as u64 / piece) as usize);
    for (u, l) in user.iter().zip(len.iter()) {
        out.extend((0..l).step_by(piece as usize).map(|i| u + i));
    }
    out.into()
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_become_pieces() {
        let user = Column::from(vec![0, 100, 50]);
        let len = Column::from(vec![24, 72, 48]);
        let packed = Column::from(vec![0, 24, 96]);
        assert_eq!(piece(&packed, &len), Some(24));
        assert_eq!(pieces(&user, &len, 24), Column::from(vec![0, 100, 124, 148, 50, 74]));
    }

    #[test]
    fn odd_lengths_and_gaps_in_the_packed_side_stay() {
        let packed = Column::from(vec![0, 24, 96]);
        assert_eq!(piece(&packed, &Column::from(vec![24, 72, 47])), None);
        assert_eq!(piece(&Column::from(vec![0, 30, 96]), &Column::from(vec![24, 72, 48])), None);
    }
}
