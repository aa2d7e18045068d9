//! Geometry of a picture: where each line of memory is drawn, and which parts of which lines a
//! range of memory covers.

use super::fold::Fold;

/// Width of a line of memory, in units of the picture.
pub(crate) const PLOT: f64 = 720.0;

/// Coordinates of the lines of memory in a picture.
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    /// Height of a line.
    pub(crate) high: f64,
    /// Distance from the top of a line to the top of the next line.
    pub(crate) step: f64,
    /// Columns of a row that are shown, in bytes: `[from, to)`.
    pub(crate) from: i128,
    pub(crate) to: i128,
}

impl Frame {
    /// Returns the x coordinate of `column`, limited to the columns that are shown.
    pub(crate) fn x(&self, column: i128) -> f64 {
        let part =
            (column.clamp(self.from, self.to) - self.from) as f64 / (self.to - self.from).max(1) as f64;
        self.left + PLOT * part
    }

    pub(crate) fn right(&self) -> f64 {
        self.left + PLOT
    }

    pub(crate) fn y(&self, line: usize) -> f64 {
        self.top + line as f64 * self.step
    }
}

/// Part of a range of memory that lies in one line: the line, the first column of the part, and the
/// column after the last column of the part.
pub(crate) type Part = (usize, i128, i128);

/// Returns the parts of the range `[at, end)` of memory, one for each line of `fold` that contains
/// bytes of it. Each line of `fold` must show only one row of memory.
pub(crate) fn parts(fold: &Fold, at: i128, end: i128) -> Vec<Part> {
    let mut all = Vec::new();
    for line in fold.line(at)..fold.lines.len() {
        let Some((start, stop)) = fold.memory(line) else { continue };
        let (lo, hi) = (at.max(start), end.min(stop));
        if lo >= hi {
            break;
        }
        all.push((line, fold.column(lo), fold.column(lo) + (hi - lo).min(fold.width)));
    }
    all
}
