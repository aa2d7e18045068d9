//! Folds memory into rows of equal length, which are drawn one below the other. This module chooses
//! the number of bytes in a row, the columns of each row that are shown, the rows that are left
//! out, and the rows that share a line of the picture.

use ddtc::internal::datatype::{Combiner, Datatype, Order};
use ddtc::internal::methods::*;

use super::map::Map;

/// Maximum number of breaks in a picture. A break is a line that stands for several rows of memory
/// without data, which are left out.
const MAX_BREAKS: usize = 6;
/// Decides whether a picture shows only a part of each row. If the columns that contain data span
/// less than 1 / `SPARSE` of a row, the picture shows this span, with a margin on both sides,
/// instead of the whole row.
const SPARSE: i128 = 200;
/// Maximum number of rows for each column of a picture whose row is as long as a stride of the
/// type. A stride that would give more rows is too short to be the length of a row. A column is as
/// wide as the smallest element.
const NARROW: i128 = 64;
/// Maximum number of nodes of a datatype's tree that are searched for strides. A stride may become
/// the length of a row.
const MAX_NODES: usize = 200;

/// A line of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Rows `first .. first + rows` of memory.
    Rows { first: i128, rows: i128 },
    /// Place where `rows` rows without data are left out.
    Break { rows: i128 },
}

/// Memory as rows of equal length. Row 0 begins at displacement `origin`.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// Length of a row in bytes.
    pub(crate) width: i128,
    pub(crate) origin: i128,
    /// Columns of each row that are shown, in bytes: `[from, to)`.
    pub(crate) from: i128,
    pub(crate) to: i128,
    /// Lines of the picture, from low to high displacements.
    pub(crate) lines: Vec<Line>,
    /// Maximum number of rows of memory that one line of the picture shows.
    pub(crate) rows_per_line: i128,
}

impl Fold {
    /// Arranges the memory of `map` in rows, and the rows in about `max_lines` lines or less. Rows
    /// have `width` bytes. If `width` is `None`, a width is chosen that shows the structure of the
    /// type.
    pub(crate) fn new(map: &Map, width: Option<u64>, max_lines: usize) -> Fold {
        let (width, origin) = match width {
            Some(width) => (i128::from(width.max(1)), 0),
            None => choose_width(map),
        };
        let mut fold = Fold { width, origin, from: 0, to: width, lines: Vec::new(), rows_per_line: 1 };
        let (from, to) = fold.used(map);
        if (to - from) * SPARSE < width {
            // Show some columns without data on both sides, so that it is visible where the blocks
            // end.
            fold.from = (from - (to - from) / 2).max(0);
            fold.to = (to + (to - from) / 2).min(width);
        }
        fold.lines(map, max_lines);
        fold
    }

    /// Returns the row of memory that contains displacement `at`.
    pub(crate) fn row(&self, at: i128) -> i128 {
        (at - self.origin).div_euclid(self.width)
    }

    /// Returns the offset of displacement `at` in its row, in bytes.
    pub(crate) fn column(&self, at: i128) -> i128 {
        (at - self.origin).rem_euclid(self.width)
    }

    /// Returns the displacement of the first byte of `row`.
    pub(crate) fn start(&self, row: i128) -> i128 {
        self.origin + row * self.width
    }

    /// Returns the range of memory that a line of the picture covers: its first displacement, and
    /// the displacement after its last byte. Returns `None` for a break, which stands for rows that
    /// are left out.
    pub(crate) fn memory(&self, line: usize) -> Option<(i128, i128)> {
        match self.lines.get(line)? {
            Line::Rows { first, rows } => Some((self.start(*first), self.start(first + rows))),
            Line::Break { .. } => None,
        }
    }

    /// Returns the line that contains displacement `at`, or else the first line after it.
    pub(crate) fn line(&self, at: i128) -> usize {
        let row = self.row(at);
        let mut next = i128::MIN;
        let passed = self.lines.iter().take_while(|line| {
            next = match line {
                Line::Rows { first, rows } => first + rows,
                Line::Break { rows } => next + rows,
            };
            next <= row
        });
        passed.count()
    }

    /// Returns the range of columns that contain data of `map`. Returns the whole row if a piece
    /// crosses the end of a row, or if there is no data.
    fn used(&self, map: &Map) -> (i128, i128) {
        let (mut from, mut to) = (self.width, 0);
        for piece in &map.pieces {
            let at = self.column(piece.at);
            let end = at + piece.end() - piece.at;
            if end > self.width {
                return (0, self.width);
            }
            (from, to) = (from.min(at), to.max(end));
        }
        if from < to { (from, to) } else { (0, self.width) }
    }

    fn lines(&mut self, map: &Map, max_lines: usize) {
        let (low, high) = map.range;
        let ends = [low, (high - 1).max(low)].map(|at| (self.row(at), self.row(at) + 1));
        let bounds =
            [map.datatype.lb(), map.datatype.ub() - i64::from(map.datatype.ub() > map.datatype.lb())];
        let mut used: Vec<(i128, i128)> = map
            .pieces
            .iter()
            .map(|p| (self.row(p.at), self.row(p.end() - 1) + 1))
            .chain(ends)
            .chain(bounds.map(|at| (self.row(at.into()), self.row(at.into()) + 1)))
            .collect();
        used.sort_unstable();
        used.dedup();
        // `used` now lists the rows that the picture must show, as ranges: the rows of the pieces,
        // of both ends of `map.range`, and of the bounds of the type. Join ranges that touch or
        // overlap. The resulting `runs` are separated by rows that may be left out.
        let mut runs: Vec<(i128, i128)> = Vec::new();
        for (from, to) in used {
            match runs.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => runs.push((from, to)),
            }
        }
        let mut total = runs.last().map_or(0, |r| r.1) - runs.first().map_or(0, |r| r.0);
        let mut gaps: Vec<(i128, i128)> = runs.windows(2).map(|w| (w[1].0 - w[0].1, w[0].1)).collect();
        gaps.sort_unstable_by(|a, b| b.cmp(a));
        // `gaps` has the rows between neighbouring runs, the largest gap first. Leave out up to
        // `MAX_BREAKS` gaps, until the remaining rows fit in `max_lines` lines. Stop before that at
        // a gap that is too small: one that has less than 4 rows, or less than a sixth of the
        // remaining rows.
        let mut breaks = Vec::new();
        for (rows, at) in gaps.into_iter().take(MAX_BREAKS) {
            if total <= max_lines as i128 || rows < 4 || rows * 6 < total {
                break;
            }
            total -= rows;
            breaks.push((at, rows));
        }
        breaks.sort_unstable();
        // If the remaining rows do not fit in `max_lines` lines, several rows share a line. Make
        // the lines in order of memory. Each entry of `breaks` is a gap that is left out: make the
        // lines of the rows before it, and then one line that stands for the gap.
        self.rows_per_line = ceil(total, max_lines as i128).max(1);
        let (mut row, end) = (runs.first().map_or(0, |r| r.0), runs.last().map_or(0, |r| r.1));
        for (at, skipped) in breaks.into_iter().chain([(end, 0)]) {
            while row < at {
                let rows = self.rows_per_line.min(at - row);
                self.lines.push(Line::Rows { first: row, rows });
                row += rows;
            }
            if skipped > 0 {
                self.lines.push(Line::Break { rows: skipped });
                row += skipped;
            }
        }
    }
}

/// Returns `a / b` rounded up, for positive `b`.
pub(crate) fn ceil(a: i128, b: i128) -> i128 {
    a / b + i128::from(a % b > 0)
}

/// Chooses the length of a row in bytes, and the displacement at which row 0 begins. There are four
/// cases, which are tried in this order:
///
/// - If a stride of the type is long enough (see [`NARROW`]), it is the length. Of several such
///   strides, the one is taken that makes the numbers of rows and columns most similar. A column is
///   as wide as the smallest element.
/// - If the type has only shorter strides, the length is a multiple of the largest stride.
/// - If the type has no stride, and all memory has at most 64 elements, there is only one row.
/// - Otherwise the length grows with the square root of the span of memory. If the blocks are
///   listed one by one, a part of the large gaps is subtracted from the span.
fn choose_width(map: &Map) -> (i128, i128) {
    let (element, (low, high)) = (map.element(), map.range);
    let span = (high - low).max(1);
    let mut strides = strides(&map.datatype);
    let inside = strides.contains(&i128::from(map.datatype.extent().unsigned_abs()));
    let instances = (map.count > 1 && !inside).then(|| i128::from(map.datatype.extent().unsigned_abs()));
    strides.extend(instances);
    strides.retain(|stride| *stride > 0 && *stride < span);
    strides.sort_unstable_by(|a, b| b.cmp(a));
    strides.dedup();
    let shape = |width: i128| {
        let fold = Fold { width, origin: 0, from: 0, to: width, lines: Vec::new(), rows_per_line: 1 };
        let (from, to) = fold.used(map);
        let cut = if (to - from) * SPARSE < width { to - from } else { width };
        ((fold.row(high - 1) - fold.row(low) + 1), ceil(cut, element))
    };
    // Consider only the largest 12 strides, so that types with many strides do not take more time
    // than others.
    let shapes: Vec<(i128, i128, i128)> =
        strides.iter().take(12).map(|&w| (w, shape(w).0, shape(w).1)).collect();
    let off =
        |&(_, rows, columns): &(i128, i128, i128)| (rows.max(columns) as f64 / rows.min(columns) as f64).ln();
    let fits = |(width, rows, columns): &&(i128, i128, i128), own: bool| {
        *rows <= columns * NARROW && own == (Some(*width) != instances)
    };
    // The strides so far are of two kinds: strides inside the type, and the distance between
    // instances. If a stride inside the type fits, use one of these as the length of a row, because
    // the distance between instances says little about the type if instances are interleaved.
    let own = shapes.iter().any(|shape| fits(&shape, true));
    let fit = shapes.iter().filter(|shape| fits(shape, own));
    if let Some((width, ..)) = fit.min_by(|a, b| off(a).total_cmp(&off(b))) {
        return (*width, 0);
    }
    if let Some((width, rows, columns)) = shapes.first() {
        let wanted = (*rows as f64 / *columns as f64).sqrt();
        return (width * power_of_two(wanted), 0);
    }
    let elements = ceil(span, element);
    if elements <= 64 {
        return (elements * element, low);
    }
    // The type has no stride that could be the length of a row. So the number of elements in a row
    // is a power of two. It is at least 16, and about 1.5 times the square root of the number of
    // elements in the memory that the picture will show. Gaps are counted too. But the picture will
    // leave out large gaps. So if the blocks are listed one by one, a gap counts only up to the
    // length of eight average pieces, or of eight elements if the pieces are shorter.
    let mut shown = span;
    if map.listed && map.blocks > 0 {
        let mut ends: Vec<(i128, i128)> = map.pieces.iter().map(|p| (p.at, p.end())).collect();
        ends.sort_unstable();
        let max_gap = 8 * (map.bytes / i128::from(map.blocks)).max(element);
        let gaps: i128 = ends.windows(2).map(|w| (w[1].0 - w[0].1).clamp(0, max_gap)).sum();
        shown = shown.min(map.bytes + gaps + 2 * max_gap);
    }
    let wide = ((shown as f64 / element as f64).sqrt() * 1.5).max(16.0);
    (element * power_of_two(wide), 0)
}

/// Returns the power of two from 2^0 to 2^62 that is nearest to `x` on a logarithmic scale.
fn power_of_two(x: f64) -> i128 {
    1 << (x.log2().round().clamp(0.0, 62.0) as u32)
}

/// Returns the distances in bytes at which parts of the type repeat. These are the strides of
/// vectors, the distances between the rows and between the planes of arrays, and the extents of
/// repeated elements.
fn strides(t: &Datatype) -> Vec<i128> {
    let mut all = Vec::new();
    let mut push = |n: i64, stride: i128| {
        if n > 1 {
            all.push(stride.abs());
        }
    };
    for node in t.nodes().take(MAX_NODES) {
        match node.combiner() {
            Combiner::Vector { count, stride, oldtype, .. } => {
                push(*count, i128::from(*stride) * i128::from(oldtype.extent()));
            }
            Combiner::Hvector { count, stride, .. } => push(*count, i128::from(*stride)),
            // Elements whose size equals their extent normally follow each other without gaps. Rows
            // as long as such an element would show no structure, so its extent is not added.
            Combiner::Contiguous { count, oldtype } if oldtype.size() != oldtype.extent() => {
                push(*count, oldtype.extent().into());
            }
            Combiner::Subarray { sizes, order, oldtype, .. }
            | Combiner::Darray { gsizes: sizes, order, oldtype, .. } => {
                let mut stride = i128::from(oldtype.extent());
                for i in 0..sizes.len().saturating_sub(1) {
                    let size = sizes[if *order == Order::C { sizes.len() - 1 - i } else { i }];
                    stride = stride.saturating_mul(size.into());
                    push(2, stride);
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str, count: u64) -> Fold {
        Fold::new(&Map::new(&ddtc::internal::corpus::datatype(text).unwrap(), count).unwrap(), None, 48)
    }

    #[test]
    fn rows_are_those_of_the_type() {
        for (text, count, width, lines) in [
            // The first two types are a column of a matrix, traversed from its first row or from
            // its last row. The next types are parts of arrays, and several instances of a
            // structure.
            ("vector(8, 1, 8, double)", 1, 64, 8),
            ("vector(8, 1, -8, double)", 1, 64, 8),
            ("subarray([24,19], [16,3], [4,9], C, float)", 1, 76, 24),
            ("subarray([24,19], [16,3], [4,9], Fortran, float)", 1, 96, 19),
            ("darray(4, 1, [16,16], [cyclic,cyclic], [2,2], [2,2], C, double)", 1, 128, 16),
            ("resized(0, 32, struct([1,1,3], [0,8,16], [int,double,float]))", 5, 32, 5),
            // Nothing in the type repeats, so there is one row, which begins with the first byte.
            ("struct([1,1,3], [8,16,24], [int,double,float])", 1, 32, 1),
            // This type has every second double of a span of 4095 doubles. The span is divided into
            // 64 rows of 64 doubles each (the last row has 63). Each line of the picture shows two
            // rows.
            ("vector(2048, 1, 2, double)", 1, 512, 32),
        ] {
            let f = fold(text, count);
            assert!(f.width == width && f.lines.len() == lines, "{text}: {} {}", f.width, f.lines.len());
        }
        let t = ddtc::internal::corpus::datatype("vector(8, 1, 8, double)").unwrap();
        assert_eq!(Fold::new(&Map::new(&t, 1).unwrap(), Some(100), 48).lines.len(), 5);
    }

    #[test]
    fn displacements_below_zero_have_rows() {
        let f = fold("vector(8, 1, -8, double)", 1);
        assert_eq!((f.row(-448), f.column(-448), f.row(-1), f.column(-1)), (-7, 0, -1, 63));
        assert_eq!((f.line(-448), f.line(0), f.memory(0)), (0, 7, Some((-448, -384))));
    }

    #[test]
    fn empty_memory_is_left_out() {
        let f = fold("hindexed([8,8], [0,1099511627776], double)", 1);
        let [Line::Rows { first: 0, .. }, Line::Break { rows }, Line::Rows { .. }] = f.lines[..] else {
            panic!("{:?}", f.lines)
        };
        assert_eq!(rows * f.width, (1 << 40) - f.width);
        // Two rows of 2^40 bytes each. The picture shows only the first 12 bytes of each row.
        let f = fold("vector(2, 1, 137438953472, double)", 1);
        assert_eq!((f.width, f.from, f.to, f.lines.len()), (1 << 40, 0, 12, 2));
        // The last plane but one of a cube. The rows before it are left out.
        let f = fold("subarray([256,256,256], [1,256,256], [254,0,0], C, double)", 1);
        assert!(f.lines.iter().any(|line| matches!(line, Line::Break { .. })), "{:?}", f.lines);
        assert!(f.lines.len() < 60);
    }

    #[test]
    fn every_displacement_has_its_line() {
        let f = fold("hindexed([8,80000], [-4096,1000000], double)", 2);
        for line in 0..f.lines.len() {
            if let Some((from, to)) = f.memory(line) {
                assert_eq!((f.line(from), f.line(to - 1)), (line, line));
            }
        }
    }
}
