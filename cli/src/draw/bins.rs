//! Memory in cells: equal pieces of the columns of every line, and what lies in each.

use super::fold::{Fold, Line, ceil};
use super::map::{Map, Piece};

/// Most cells that are visited piece by piece; what is left counts where it begins.
const MAX_VISITS: u64 = 1 << 26;

/// Contents of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// Packed bytes.
    pub(crate) bytes: i128,
    /// The sum of the places of these bytes in the packed stream.
    sum: f64,
    /// Pieces that have bytes in it, and the first one's displacement and packed byte.
    pub(crate) blocks: u64,
    pub(crate) first: (i128, i128),
    /// Whether several entries share bytes of it.
    pub(crate) shared: bool,
}

impl Cell {
    /// Returns the mean place of its bytes in the packed stream.
    pub(crate) fn mean(&self) -> f64 {
        self.sum / (self.bytes as f64).max(1.0)
    }
}

/// The cells of a folded map, line by line.
pub(crate) struct Bins {
    /// Bytes of a row that a cell spans.
    pub(crate) width: i128,
    pub(crate) columns: usize,
    cells: Vec<Cell>,
    /// Whether all bytes are where they lie; else some count close by.
    pub(crate) exact: bool,
}

impl Bins {
    /// `map` in at most `columns` cells a line.
    pub(crate) fn new(map: &Map, fold: &Fold, columns: usize) -> Bins {
        let shown = fold.to - fold.from;
        let min_width = ceil(shown, columns as i128);
        // Cells that divide a row, if there are any of about that size: no structure appears that is not there.
        let divisor = (min_width..=min_width + min_width / 2).take(4096).find(|width| shown % width == 0);
        let width = divisor.unwrap_or(min_width).max(1);
        let columns = ceil(shown, width) as usize;
        let cells = vec![Cell::default(); columns * fold.lines.len()];
        let mut bins = Bins { width, columns, cells, exact: map.listed };
        let mut visits = 0;
        for piece in &map.pieces {
            let whole = piece.exact && visits < MAX_VISITS;
            bins.exact &= whole;
            visits += bins.put(fold, piece, whole);
        }
        let mut visits = 0;
        for &(from, to) in &map.shared {
            let to = if visits < MAX_VISITS { to } else { from + 1 };
            spread(fold, width, from, to, &mut |line, column, _, _, _| {
                visits += 1;
                bins.cells[line * columns + column].shared = true;
            });
        }
        // Certain without a look at the pieces: more bytes than there is room for.
        for line in 0..fold.lines.len() {
            for column in 0..columns {
                let room = bins.memory(fold, line, column);
                let cell = &mut bins.cells[line * columns + column];
                cell.shared |= map.listed && cell.bytes > room;
            }
        }
        bins
    }

    /// Returns the cell at `column` of `line`.
    pub(crate) fn cell(&self, line: usize, column: usize) -> Cell {
        self.cells[line * self.columns + column]
    }

    /// Returns the bytes of memory that the cell at `column` of `line` stands for.
    pub(crate) fn memory(&self, fold: &Fold, line: usize, column: usize) -> i128 {
        let from = fold.from + column as i128 * self.width;
        let rows = match fold.lines[line] {
            Line::Rows { rows, .. } => rows,
            Line::Break { .. } => 0,
        };
        (self.width.min(fold.to - from)) * rows
    }

    /// Counts `piece`, where its bytes lie if `whole`; gives back how many cells that were.
    fn put(&mut self, fold: &Fold, piece: &Piece, whole: bool) -> u64 {
        let (columns, width) = (self.columns, self.width);
        let mut visits = 0;
        let end = if whole { piece.at + piece.len } else { piece.at + 1 };
        spread(fold, width, piece.at, end, &mut |line, column, at, bytes, middle| {
            visits += 1;
            let cell = &mut self.cells[line * columns + column];
            let (bytes, place) = match whole {
                true => (bytes, piece.packed as f64 + middle - piece.at as f64),
                false => (piece.len, (piece.packed + piece.len / 2) as f64),
            };
            if cell.bytes == 0 {
                cell.first = (at, piece.packed + if whole { at - piece.at } else { 0 });
            }
            cell.bytes += bytes;
            cell.sum += place * bytes as f64;
            cell.blocks += piece.blocks;
        });
        visits
    }
}

/// Hands the cells that `[at, end)` has bytes in to `visit`: line, column, the first displacement, bytes, mean displacement.
fn spread(
    fold: &Fold,
    width: i128,
    at: i128,
    end: i128,
    visit: &mut impl FnMut(usize, usize, i128, i128, f64),
) {
    // Bytes `[lo, hi)` of one row, and the same of `rows - 1` rows behind it.
    let mut row = |line: usize, lo: i128, hi: i128, rows: i128| {
        let start = lo - fold.column(lo);
        let mut from = fold.column(lo).max(fold.from);
        let to = (hi - start).min(fold.to);
        while from < to {
            let column = (from - fold.from) / width;
            let next = (fold.from + (column + 1) * width).min(to);
            let middle =
                (start + from) as f64 + (next - from) as f64 / 2.0 + ((rows - 1) * fold.width) as f64 / 2.0;
            visit(line, column as usize, start + from, (next - from) * rows, middle);
            from = next;
        }
    };
    for line in fold.line(at)..fold.lines.len() {
        let Some((start, stop)) = fold.memory(line) else { continue };
        let (lo, hi) = (at.max(start), end.min(stop));
        if lo >= hi {
            break;
        }
        let (first, last) = (fold.row(lo), fold.row(hi - 1));
        if first == last {
            row(line, lo, hi, 1);
            continue;
        }
        let head = fold.column(lo) > 0;
        let tail = fold.start(last) + fold.width > hi;
        let (whole, rows) =
            (first + i128::from(head), last + 1 - i128::from(tail) - first - i128::from(head));
        if head {
            row(line, lo, fold.start(first + 1), 1);
        }
        if rows > 0 {
            row(line, fold.start(whole), fold.start(whole + 1), rows);
        }
        if tail {
            row(line, fold.start(last), hi, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(text: &str, count: u64, width: u64, lines: usize, columns: usize) -> (Map, Fold, Bins) {
        let map = Map::new(&ddtc::internal::corpus::datatype(text).unwrap(), count).unwrap();
        let fold = Fold::new(&map, Some(width), lines);
        let bins = Bins::new(&map, &fold, columns);
        (map, fold, bins)
    }

    fn total(fold: &Fold, bins: &Bins) -> i128 {
        (0..fold.lines.len())
            .flat_map(|l| (0..bins.columns).map(move |c| (l, c)))
            .map(|(l, c)| bins.cell(l, c).bytes)
            .sum()
    }

    #[test]
    fn a_block_over_three_rows_by_hand() {
        // Bytes 6 to 26 in rows of 8, cells of 4.
        let (_, fold, bins) = bins("hindexed([20], [6], byte)", 1, 8, 48, 2);
        assert_eq!((bins.width, bins.columns, fold.lines.len()), (4, 2, 4));
        let cells: Vec<i128> = (0..8).map(|i| bins.cell(i / 2, i % 2).bytes).collect();
        assert_eq!(cells, [0, 2, 4, 4, 4, 4, 2, 0]);
        let means: Vec<f64> = (1..7).map(|i| bins.cell(i / 2, i % 2).mean()).collect();
        assert_eq!(means, [1.0, 4.0, 8.0, 12.0, 16.0, 19.0]);
        assert_eq!(bins.cell(1, 1).first, (12, 6));
    }

    #[test]
    fn rows_that_share_a_line_add_up() {
        // Column 0 of a matrix of 8 rows of 8, two rows a line.
        let (_, fold, bins) = bins("vector(8, 1, 8, byte)", 1, 8, 4, 8);
        assert_eq!((fold.lines.len(), fold.rows_per_line), (4, 2));
        let cell = bins.cell(1, 0);
        assert_eq!((cell.bytes, cell.blocks, cell.mean(), bins.memory(&fold, 1, 0)), (2, 2, 3.0, 2));
        // 64 bytes in one piece: every cell full, means by rows.
        let (_, fold, bins) = bins_of_bytes();
        assert_eq!((total(&fold, &bins), bins.cell(0, 0).bytes, bins.cell(0, 0).mean()), (64, 4, 5.0));
    }

    fn bins_of_bytes() -> (Map, Fold, Bins) {
        bins("contiguous(64, byte)", 1, 8, 4, 4)
    }

    #[test]
    fn entries_that_share_bytes_are_marked() {
        let (_, _, bins) = bins("hindexed([4,4,4], [0,2,12], byte)", 1, 16, 4, 8);
        let shared: Vec<bool> = (0..8).map(|c| bins.cell(0, c).shared).collect();
        assert_eq!(shared, [false, true, false, false, false, false, false, false]);
    }

    #[test]
    fn cells_hold_every_byte() {
        for (text, count) in [
            ("indexed_1to8.S", 1),
            ("vector(100, 3, 7, int)", 5),
            ("hindexed([8,80000], [-4096,1000000], double)", 2),
            ("vector(2147483648, 1, 2, byte)", 1),
            ("contiguous(4611686018427387904, byte)", 1),
            ("@dag(40)", 1),
        ] {
            let (t, _) = ddtc::internal::corpus::asked(text).unwrap();
            let map = Map::new(&t, count).unwrap();
            let fold = Fold::new(&map, None, 40);
            let bins = Bins::new(&map, &fold, 72);
            assert_eq!(total(&fold, &bins), map.bytes, "{text}");
        }
    }
}
