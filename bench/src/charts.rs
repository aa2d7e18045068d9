//! The results of a benchmark as one SVG picture: bandwidth over payload (one panel for each
//! layout, logarithmic axes, all variants), and a heat map of the times of the other variants
//! relative to compiled code.

use ddtc::internal::kind::Direction;

use crate::result::{Column, Measured};
use crate::svg::Document;
use crate::table;

const PANEL: (f64, f64) = (220.0, 150.0);
const GAP: (f64, f64) = (46.0, 44.0);
const ACROSS: usize = 5;
const MARGIN: f64 = 50.0;
const CELL: (f64, f64) = (82.0, 16.0);
const NAMES: f64 = 170.0;
// The heat map must not be wider than the panels. In each direction it has all columns except that
// of compiled code.
const _: () = assert!(
    NAMES + 2.0 * (Column::ALL.len() - 1) as f64 * CELL.0 < ACROSS as f64 * (PANEL.0 + GAP.0) + MARGIN
);

/// Returns the colour, width and dash pattern of a column's line. The colours can be distinguished
/// with impaired colour vision (Okabe and Ito, 2008).
fn style(column: Column) -> (&'static str, f64, &'static str) {
    match column {
        Column::Compiled => ("#d55e00", 2.6, ""),
        Column::Walk => ("#e69f00", 1.4, ""),
        Column::Interp => ("#999999", 1.4, ""),
        Column::Constant => ("#0072b2", 1.8, ""),
        Column::Runtime => ("#56b4e9", 1.4, ""),
        Column::Blocks => ("#009e73", 1.4, ""),
        Column::Memcpy => ("#000000", 1.2, "4 3"),
        Column::Bound => ("#cc79a7", 1.2, "1 3"),
    }
}

/// Returns the whole picture.
pub(crate) fn picture(machine: &str, rows: &[Measured]) -> String {
    let mut families: Vec<&str> = rows.iter().map(Measured::family).collect();
    families.dedup();
    let lines = families.len().div_ceil(ACROSS).max(1) as f64;
    let chart_height = 40.0 + lines * (PANEL.1 + GAP.1);
    let heat_height = 90.0 + rows.len() as f64 * CELL.1;
    let width = 2.0 * MARGIN + ACROSS as f64 * (PANEL.0 + GAP.0);
    let height = 120.0 + 2.0 * chart_height + heat_height;
    let mut out = Document::new(width, height, "font-family=\"sans-serif\" font-size=\"11\"");
    out.element("rect", "width=\"100%\" height=\"100%\" fill=\"white\"");
    words(&mut out, (MARGIN, 24.0), "start", 15.0, "ddtc bench");
    for (i, line) in wrapped(machine, 240).iter().enumerate() {
        words(&mut out, (MARGIN, 42.0 + 12.0 * i as f64), "start", 9.0, line);
    }
    legend(&mut out, (MARGIN, 82.0));
    let mut top = 100.0;
    for direction in Direction::BOTH {
        let title = format!("{}: GB/s over payload, both logarithmic", direction.name());
        words(&mut out, (MARGIN, top + 14.0), "start", 13.0, &title);
        for (i, family) in families.iter().enumerate() {
            let x = MARGIN + (i % ACROSS) as f64 * (PANEL.0 + GAP.0);
            let y = top + 40.0 + (i / ACROSS) as f64 * (PANEL.1 + GAP.1);
            let of_family: Vec<&Measured> = rows.iter().filter(|m| m.family() == *family).collect();
            panel(&mut out, (x, y), family, &of_family, direction);
        }
        top += chart_height;
    }
    heat_map(&mut out, top + 14.0, rows);
    out.finish()
}

/// Returns `text` in lines of about `width` characters, broken at spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut().filter(|l| l.is_empty() || l.len() + word.len() < width) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

// Writes a text with the given anchor and font size.
pub(crate) fn words(out: &mut Document, (x, y): (f64, f64), anchor: &str, size: f64, text: &str) {
    let attributes = format!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\"");
    out.text("text", attributes, text);
}

fn legend(out: &mut Document, (mut x, y): (f64, f64)) {
    for column in Column::ALL {
        let (colour, width, dashes) = style(column);
        let line = format!(
            "x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dashes}\"",
            x + 24.0
        );
        out.element("line", line);
        words(out, (x + 30.0, y + 4.0), "start", 11.0, column.title());
        x += 44.0 + 6.4 * column.title().len() as f64;
    }
}

/// A logarithmic axis from `low` to `high`, which are both positive.
#[derive(Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Axis {
    /// Returns an axis over `values` that begins and ends at whole powers of `base` and is at least
    /// one power wide.
    fn over(values: impl Iterator<Item = f64>, base: f64) -> Axis {
        let (low, high) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(l, h), v| (l.min(v), h.max(v)));
        let power = |v: f64, round: fn(f64) -> f64| base.powf(round(v.max(1e-9).log(base)));
        let low = power(low.min(high), f64::floor);
        Axis { low, high: power(high, f64::ceil).max(low * base) }
    }

    /// Returns the position of `value` between the ends of the axis: 0 at `low` and 1 at `high`.
    pub(crate) fn position(self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Returns the values from `low` to `high` at which the axis has a tick: each is `base` times
    /// the previous one.
    fn ticks(self, base: f64) -> impl Iterator<Item = f64> {
        let n = ((self.high / self.low).ln() / base.ln()).round() as i32;
        (0..=n).map(move |i| self.low * base.powi(i))
    }
}

// Draws the panel of one layout in one direction: the bandwidth of each variant at all sizes of the
// layout, over the payload.
fn panel(out: &mut Document, (x, y): (f64, f64), family: &str, rows: &[&Measured], direction: Direction) {
    let across = Axis::over(rows.iter().map(|m| m.payload.max(1) as f64), 4.0);
    let rates = rows.iter().flat_map(|m| Column::ALL.iter().filter_map(|&c| m.bandwidth(direction, c)));
    let up = Axis::over(rates.filter(|r| *r > 0.0), 4.0);
    let (width, height) = PANEL;
    let frame = format!(
        "x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#bbbbbb\""
    );
    out.element("rect", frame);
    words(out, (x, y - 5.0), "start", 11.0, family);
    // The grid lines are the powers of 4 on both axes. The payload is written only at the ends of
    // its axis.
    for tick in across.ticks(4.0) {
        let at = x + PANEL.0 * across.position(tick);
        let (top, bottom) = (y, y + PANEL.1);
        out.element("path", format_args!("d=\"M{at:.1} {top:.1}V{bottom:.1}\" stroke=\"#eeeeee\""));
    }
    let (first, last) = (table::bytes(across.low as u64), table::bytes(across.high as u64));
    words(out, (x, y + PANEL.1 + 12.0), "start", 9.0, &first);
    words(out, (x + PANEL.0, y + PANEL.1 + 12.0), "end", 9.0, &last);
    for tick in up.ticks(4.0) {
        let at = y + PANEL.1 * (1.0 - up.position(tick));
        let (left, right) = (x, x + PANEL.0);
        out.element("path", format_args!("d=\"M{left:.1} {at:.1}H{right:.1}\" stroke=\"#eeeeee\""));
        words(out, (x - 4.0, at + 3.0), "end", 9.0, &format!("{tick}"));
    }
    // Each column of the results, which is one way to move the bytes, is drawn as a line with a dot
    // for each size of the layout. Compiled code is drawn last, so that no other line covers its
    // line.
    for column in Column::ALL.into_iter().rev() {
        let (colour, width, dashes) = style(column);
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|m| {
                let rate = m.bandwidth(direction, column).filter(|r| *r > 0.0)?;
                let (right, above) = (across.position(m.payload.max(1) as f64), up.position(rate));
                Some((x + PANEL.0 * right, y + PANEL.1 * (1.0 - above)))
            })
            .collect();
        let line: Vec<String> = points.iter().map(|(px, py)| format!("{px:.1},{py:.1}")).collect();
        let line = format!(
            "points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"",
            line.join(" ")
        );
        out.element("polyline", line);
        for (px, py) in points {
            out.element(
                "circle",
                format_args!("cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"{width}\" fill=\"{colour}\""),
            );
        }
    }
}

/// Returns the colour of a ratio: blue if compiled code is faster, red if it is slower, white for
/// equal times, and the full colour at a factor of 4.
fn shade(ratio: f64) -> String {
    let strength = (ratio.ln().abs() / 4f64.ln()).min(1.0);
    let fade = |to: f64| (255.0 + (to - 255.0) * strength) as u8;
    let (r, g, b) = if ratio >= 1.0 { (33.0, 102.0, 172.0) } else { (178.0, 24.0, 43.0) };
    format!("#{:02x}{:02x}{:02x}", fade(r), fade(g), fade(b))
}

// Draws the heat map of the times of other ways to move the bytes relative to compiled code. Each
// layout has a line, with a cell for each direction and each column other than compiled code.
fn heat_map(out: &mut Document, top: f64, rows: &[Measured]) {
    words(
        out,
        (MARGIN, top),
        "start",
        13.0,
        "time of the other variants over that of compiled code (blue: compiled is faster)",
    );
    let columns: Vec<(Direction, Column)> = Direction::BOTH
        .into_iter()
        .flat_map(|d| Column::ALL.into_iter().filter(|c| *c != Column::Compiled).map(move |c| (d, c)))
        .collect();
    for (i, (direction, column)) in columns.iter().enumerate() {
        let x = MARGIN + NAMES + (i as f64 + 0.5) * CELL.0;
        words(out, (x, top + 24.0), "middle", 9.0, direction.name());
        words(out, (x, top + 36.0), "middle", 9.0, column.name());
    }
    for (j, m) in rows.iter().enumerate() {
        let y = top + 44.0 + j as f64 * CELL.1;
        words(out, (MARGIN, y + 12.0), "start", 10.0, &m.name);
        for (i, &(direction, column)) in columns.iter().enumerate() {
            let Some(ratio) = m.times_of(direction).over_compiled(column) else { continue };
            let x = MARGIN + NAMES + i as f64 * CELL.0;
            let (width, height, fill) = (CELL.0 - 1.0, CELL.1 - 1.0, shade(ratio));
            let cell =
                format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"");
            out.element("rect", cell);
            // White text on dark colours.
            let pale = if ratio.ln().abs() > 3f64.ln() { "white" } else { "black" };
            out.group(format_args!("fill=\"{pale}\""), |out| {
                words(out, (x + CELL.0 / 2.0, y + 12.0), "middle", 9.0, &format!("{ratio:.2}"));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;

    #[test]
    fn shades_by_hand() {
        assert_eq!(shade(1.0), "#ffffff");
        assert_eq!(shade(4.0), "#2166ac");
        assert_eq!(shade(0.1), "#b2182b");
    }

    #[test]
    fn axes_hold_their_values() {
        let axis = Axis::over([3.0, 100.0].into_iter(), 4.0);
        assert_eq!((axis.low, axis.high), (1.0, 256.0));
        assert_eq!(axis.ticks(4.0).count(), 5);
        let one = Axis::over([4.0].into_iter(), 4.0);
        assert!(one.high > one.low && one.position(4.0) == 0.0);
    }

    #[test]
    fn every_element_is_closed_and_every_row_shown() {
        let text = picture("a < b & c", &[sample("vec_8B.S"), sample("vec_8B.L"), sample("face_x.S")]);
        for tag in ["svg", "text"] {
            let (open, close) =
                (text.matches(&format!("<{tag} ")).count(), text.matches(&format!("</{tag}>")).count());
            assert_eq!(open, close, "{tag}");
        }
        assert!(text.contains("a &lt; b &amp; c"));
        assert_eq!(text.matches(">face_x<").count(), 2);
        assert_eq!(text.matches(">vec_8B.L<").count(), 1);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
