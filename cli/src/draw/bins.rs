//! Divides the lines of a picture into cells of equal width, and counts the packed bytes in each
//! cell.

use super::fold::{Fold, Line, ceil};
use super::map::{Map, Piece};

/// Number of additions after which the packed bytes in the cells of a picture are counted only
/// roughly, to limit the time that the counting takes. Up to then, the bytes of a piece that is
/// contiguous in memory are added to each cell in which they lie. After that, all bytes of each
/// further piece are added to the cell in which the piece begins.
const MAX_VISITS: u64 = 1 << 26;

/// Packed bytes in one cell of a picture, which is a range of columns in one line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// Number of packed bytes.
    pub(crate) bytes: i128,
    /// Sum of the positions, in the packed stream, of the packed bytes of the cell.
    sum: f64,
    /// Number of blocks that have bytes in the cell. If the line of the cell has several rows, a
    /// block may be counted up to three times: for the end of a row, for whole rows, and for the
    /// beginning of a row.
    pub(crate) blocks: u64,
    /// Displacement of the cell's byte that is packed first, and the position of this byte in the
    /// packed stream.
    pub(crate) first: (i128, i128),
    /// Whether several entries of the type map share bytes of the cell.
    pub(crate) shared: bool,
}

impl Cell {
    /// Returns the mean position of the cell's bytes in the packed stream.
    pub(crate) fn mean(&self) -> f64 {
        self.sum / (self.bytes as f64).max(1.0)
    }
}

/// The cells of a picture, line by line, with the packed bytes that lie in them.
pub(crate) struct Bins {
    /// Width of a cell in bytes.
    pub(crate) width: i128,
    pub(crate) columns: usize,
    cells: Vec<Cell>,
    /// Whether every byte is counted in the cell where it lies. Otherwise some bytes are counted in
    /// a cell nearby.
    pub(crate) exact: bool,
}

impl Bins {
    /// Divides the lines of `fold` into at most `columns` cells each, and counts the packed bytes
    /// of `map` that lie in each cell.
    pub(crate) fn new(map: &Map, fold: &Fold, columns: usize) -> Bins {
        let shown = fold.to - fold.from;
        let min_width = ceil(shown, columns as i128);
        // Choose the width of a cell. If a width of up to 1.5 times the minimum divides the shown
        // part of a row evenly, take it. With any other width, the last cell of each row is
        // narrower than the others, which would look like a structure of the type.
        let divisor = (min_width..=min_width + min_width / 2).take(4096).find(|width| shown % width == 0);
        let width = divisor.unwrap_or(min_width).max(1);
        let columns = ceil(shown, width) as usize;
        // Add the bytes of the pieces to the cells in which they lie. If there are very many
        // blocks, a piece is a range of the packed stream instead of a block, and then the counts
        // are not exact. They are not exact either if the number of additions reaches `MAX_VISITS`.
        let cells = vec![Cell::default(); columns * fold.lines.len()];
        let mut bins = Bins { width, columns, cells, exact: map.listed };
        let mut visits = 0;
        for piece in &map.pieces {
            let whole = piece.exact && visits < MAX_VISITS;
            bins.exact &= whole;
            visits += bins.put(fold, piece, whole);
        }
        // Mark the cells that contain bytes which several entries of the type map share. The limit
        // `MAX_VISITS` holds for this loop, too. Once it is reached, only the cell with the first
        // byte of each further range is marked.
        let mut visits = 0;
        for &(from, to) in &map.shared {
            let to = if visits < MAX_VISITS { to } else { from + 1 };
            spread(fold, width, from, to, &mut |line, column, _, _, _| {
                visits += 1;
                bins.cells[line * columns + column].shared = true;
            });
        }
        // A cell that has more packed bytes than bytes of memory contains shared bytes, even if the
        // previous loop has not marked it.
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

    /// Returns the number of bytes of memory that the cell at `column` of `line` covers.
    pub(crate) fn memory(&self, fold: &Fold, line: usize, column: usize) -> i128 {
        let from = fold.from + column as i128 * self.width;
        let rows = match fold.lines[line] {
            Line::Rows { rows, .. } => rows,
            Line::Break { .. } => 0,
        };
        (self.width.min(fold.to - from)) * rows
    }

    /// Adds the bytes of `piece` to the counts of cells. If `whole` is true, each cell gets the
    /// bytes that lie in it. Otherwise the cell in which the piece begins gets all of them.
    ///
    /// Returns the number of times that bytes were added to a cell. The caller adds up the results
    /// for all pieces. Once the sum has reached [`MAX_VISITS`], the caller passes false as `whole`.
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

/// Calls `visit` for each cell that contains bytes of the range `[at, end)` of memory. The
/// arguments of `visit` are:
///
/// - the line and the column of the cell,
/// - the first displacement of the bytes of the range that lie in the cell,
/// - the number of these bytes,
/// - their mean displacement.
///
/// A cell whose line has several rows may be passed to `visit` more than once.
fn spread(
    fold: &Fold,
    width: i128,
    at: i128,
    end: i128,
    visit: &mut impl FnMut(usize, usize, i128, i128, f64),
) {
    // Calls `visit` for the cells that contain bytes of the range `[lo, hi)`, which lies in one
    // row. The same columns of the next `rows - 1` rows lie in the same cells, and their bytes are
    // counted too.
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
    // In each line of the picture, the range `[at, end)` consists of at most three parts: the end
    // of one row, some whole rows, and the beginning of another row. The whole rows are passed to
    // `visit` together, so the time does not depend on their number.
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
        // Bytes 6 to 25 in rows of 8 bytes, which have two cells of 4 bytes each.
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
        // Column 0 of a matrix of 8 rows of 8 bytes; each line of the picture has two rows.
        let (_, fold, bins) = bins("vector(8, 1, 8, byte)", 1, 8, 4, 8);
        assert_eq!((fold.lines.len(), fold.rows_per_line), (4, 2));
        let cell = bins.cell(1, 0);
        assert_eq!((cell.bytes, cell.blocks, cell.mean(), bins.memory(&fold, 1, 0)), (2, 2, 3.0, 2));
        // 64 contiguous bytes: every cell is full, and the means grow row by row.
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
