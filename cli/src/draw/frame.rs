//! Where the lines of memory stand in a picture, and the parts of a range in them.

use super::fold::Fold;

/// Width of the memory.
pub(crate) const PLOT: f64 = 720.0;

/// Where the lines of a picture stand.
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    /// Height of a line, and from one line to the next.
    pub(crate) high: f64,
    pub(crate) step: f64,
    /// Columns shown, in bytes.
    pub(crate) from: i128,
    pub(crate) to: i128,
}

impl Frame {
    /// Returns the horizontal place of column `column`, cut to what is shown.
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

/// Part of a range of memory in one line: line, columns from and to.
pub(crate) type Part = (usize, i128, i128);

/// Returns the parts of `[at, end)` in the lines of `fold`, of which each has one row.
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
