//! Rows that interleave a few arithmetic sequences, for example an array of structs that is packed
//! as a struct of arrays.
//!
//! Row `k` of every group of `p` rows lies at a constant step from row `k` of the group before it.
//! The steps of the `p` sequences are not all equal, because normalization would otherwise have
//! made the rows a loop around `p` rows. The sequences become strided loops, which are executed one
//! after the other. This changes the order of the entries, so the entries must be disjoint on the
//! side that is written.

use super::Refusal;
use crate::column::Column;
use crate::nest::Offsets;

/// Maximum number of sequences. The sequences are interleaved, so the call for each of them passes
/// through the memory of all sequences once more.
const MAX_LANES: usize = 16;

/// Minimum number of rows in a sequence. With fewer rows, the cost of a call (about 5 ns) would be
/// too large.
const MIN_LANE_ROWS: usize = 8;

/// One arithmetic sequence: `trip` blocks of `len` bytes. The first block is at `at`, and each
/// further block is at distance `step` from the block before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) at: Offsets,
    pub(super) trip: u64,
    pub(super) step: Offsets,
    pub(super) len: u64,
}

/// Returns the arithmetic sequences that the rows consist of, with the smallest possible number of
/// sequences. The result is `None` if the rows do not consist of such sequences.
pub(super) fn lanes(user: &Column, packed: &Column, len: &Column) -> Option<Vec<Lane>> {
    let rows = len.len();
    let place = |i: usize| Offsets::new(user.get(i), packed.get(i));
    let most = MAX_LANES.min(rows / MIN_LANE_ROWS);
    (1..=most).filter(|p| rows.is_multiple_of(*p)).find_map(|p| {
        let follows = |i: usize| {
            // Row `i` continues its sequence if it is as long as row `i - p`, and as far from row
            // `i - p` as that row is from row `i - 2 * p`.
            len.get(i) == len.get(i - p) && place(i) - place(i - p) == place(i - p) - place(i - 2 * p)
        };
        let same = (p..2 * p).all(|i| len.get(i) == len.get(i - p)) && (2 * p..rows).all(follows);
        let lane = |k: usize| Lane {
            at: place(k),
            trip: (rows / p) as u64,
            step: place(k + p) - place(k),
            len: len.get(k) as u64,
        };
        same.then(|| (0..p).map(lane).collect())
    })
}

/// Divides the rows into ranges whose packed side is dense. Returns these ranges if there are so
/// few that each can have its own call. Returns `None` if there are more, or if all rows form one
/// range.
pub(super) fn dense_ranges(packed: &Column, len: &Column) -> Option<Vec<std::ops::Range<usize>>> {
    let rows = len.len();
    let breaks = |i: &usize| packed.get(*i) != packed.get(i - 1) + len.get(i - 1);
    let most = rows / (2 * MIN_LANE_ROWS);
    let starts: Vec<usize> = (1..rows).filter(breaks).take(most + 1).collect();
    if starts.is_empty() || starts.len() > most {
        return None;
    }
    let ends = starts.iter().copied().chain([rows]);
    Some([0].into_iter().chain(starts.iter().copied()).zip(ends).map(|(from, to)| from..to).collect())
}

/// Returns some rows of a column, with `base` subtracted.
///
/// # Errors
/// If there is no memory.
pub(super) fn rebased(column: &Column, rows: std::ops::Range<usize>, base: i64) -> Result<Column, Refusal> {
    Ok(Column::build(rows.map(|i| column.get(i) - base))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(rows: &[[i64; 3]]) -> [Column; 3] {
        [0, 1, 2].map(|k| Column::from(rows.iter().map(|row| row[k]).collect::<Vec<_>>()))
    }

    #[test]
    fn an_array_of_structs_is_three_sequences() {
        let rows: Vec<[i64; 3]> = (0..16)
            .flat_map(|i| [[32 * i, 4 * i, 4], [32 * i + 8, 64 + 8 * i, 8], [32 * i + 16, 192 + 12 * i, 12]])
            .collect();
        let [user, packed, len] = columns(&rows);
        let found = lanes(&user, &packed, &len).unwrap();
        let lane = |user, at, step, len| Lane {
            at: Offsets::new(user, at),
            trip: 16,
            step: Offsets::new(32, step),
            len,
        };
        assert_eq!(found, [lane(0, 0, 4, 4), lane(8, 64, 8, 8), lane(16, 192, 12, 12)]);
        // If one row lies at another place or has another length, the rows are no longer arithmetic
        // sequences.
        for k in 0..3 {
            let mut other = rows.clone();
            other[31][k] += 1;
            let [user, packed, len] = columns(&other);
            assert_eq!(lanes(&user, &packed, &len), None, "column {k}");
        }
    }

    #[test]
    fn few_breaks_cut_rows_into_dense_ones() {
        let rows: Vec<[i64; 3]> =
            (0..40).map(|i| [100 * i, 8 * i + if i < 25 { 0 } else { 1000 }, 8]).collect();
        let [_, packed, len] = columns(&rows);
        assert_eq!(dense_ranges(&packed, &len), Some(vec![0..25, 25..40]));
        let apart: Vec<[i64; 3]> = (0..40).map(|i| [100 * i, 9 * i, 8]).collect();
        let [_, packed, len] = columns(&apart);
        assert_eq!(dense_ranges(&packed, &len), None);
    }
}
