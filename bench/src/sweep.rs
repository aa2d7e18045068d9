//! The picture of a sweep: the time of compiled code over that of the best C loop, plotted over the
//! payload, with a line for each class of layouts.

use std::collections::BTreeMap;

use ddtc::internal::kind::Direction;

use crate::charts::{Axis, words};
use crate::layouts::PAYLOADS;
use crate::measure::{geometric_mean, median};
use crate::result::Measured;
use crate::svg::Document;
use crate::table;

/// Width and height of the chart of one direction.
const CHART: (f64, f64) = (720.0, 360.0);
const MARGIN: (f64, f64) = (70.0, 60.0);
/// Width of the legend to the right of a chart.
const LEGEND: f64 = 250.0;
/// Range of the ratios that the chart shows. Ratios outside of it are drawn at its edge.
const RATIOS: Axis = Axis { low: 0.125, high: 2.0 };
/// Colours of the lines, one for each class of layouts. They can be distinguished with impaired
/// colour vision.
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6d3b", "#7f7f7f"];

/// Colour of the dots that show, for each payload, the layout with the highest ratio.
const WORST: &str = "#b2182b";

/// Returns the class of layouts, such as transposes, to which a layout belongs. `family` is its
/// name without the payload.
fn class(family: &str) -> &'static str {
    match family {
        "NAS_LU_x" | "LAMMPS_full_rx" => "runs of bytes",
        "FFT2D_scatter" | "transpose_1024x16B" => "transposes",
        "LAMMPS_full" | "LAMMPS_atomic" | "SPECFEM3D_oc" | "SPECFEM3D_cm" | "idxblk_8B" => {
            "lists of equal blocks"
        }
        "indexed_1to8" => "irregular blocks",
        "struct_i_d_f3" => "structures",
        _ if family.starts_with("WRF") => "halos of several arrays",
        _ if family.starts_with("face") || family.starts_with("NAS") || family == "MILC_su3_zd" => {
            "faces of grids"
        }
        _ => "vectors",
    }
}

/// The ratios of all layouts at one payload in one direction: the time of compiled code over that
/// of the best C loop.
struct Point<'a> {
    payload: f64,
    ratios: Vec<(&'a str, f64)>,
}

impl Point<'_> {
    fn median(&self) -> f64 {
        median(&mut self.ratios.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>())
    }

    /// Returns the layout with the highest ratio, and that ratio.
    fn worst(&self) -> Option<(&str, f64)> {
        self.ratios.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Returns the ratios of `rows` as one point for each payload. Rows without a hand-written loop
/// have no ratio and are left out.
fn points(rows: &[Measured], direction: Direction) -> Vec<Point<'_>> {
    let point = |(payload, suffix): (i64, &str)| {
        let ratio = |m: &Measured| m.times_of(direction).ratio();
        let has_suffix = |m: &&Measured| m.name.rsplit_once('.').is_some_and(|(_, s)| s == suffix);
        let ratios = rows.iter().filter(has_suffix).filter_map(|m| Some((m.family(), ratio(m)?))).collect();
        Point { payload: payload as f64, ratios }
    };
    PAYLOADS.into_iter().map(point).filter(|p| !p.ratios.is_empty()).collect()
}

/// Returns the whole picture, with packing above and unpacking below.
pub(crate) fn picture(machine: &str, rows: &[Measured]) -> String {
    let width = MARGIN.0 + CHART.0 + LEGEND;
    let height = 50.0 + 2.0 * (CHART.1 + 2.0 * MARGIN.1);
    let mut out = Document::new(width, height, "font-family=\"sans-serif\" font-size=\"11\"");
    out.element("rect", "width=\"100%\" height=\"100%\" fill=\"white\"");
    words(&mut out, (MARGIN.0, 22.0), "start", 15.0, "ddtc bench --sweep");
    let short: String = machine.chars().take(150).collect();
    words(&mut out, (MARGIN.0, 38.0), "start", 9.0, &short);
    for direction in Direction::BOTH {
        let top = 50.0 + MARGIN.1 + direction as usize as f64 * (CHART.1 + 2.0 * MARGIN.1);
        chart(&mut out, (MARGIN.0, top), direction, &points(rows, direction));
    }
    out.finish()
}

/// Draws the chart of one direction. Its upper left corner is at `(x, y)`.
fn chart(out: &mut Document, (x, y): (f64, f64), direction: Direction, points: &[Point<'_>]) {
    let title =
        format!("{}: time over that of the best C loop of constant extents, by payload", direction.name());
    words(out, (x, y - 28.0), "start", 13.0, &title);
    let across = Axis { low: PAYLOADS[0].0 as f64, high: PAYLOADS[PAYLOADS.len() - 1].0 as f64 };
    let right = |payload: f64| x + CHART.0 * across.position(payload);
    let down = |ratio: f64| y + CHART.1 * (1.0 - RATIOS.position(ratio).clamp(0.0, 1.0));
    for (payload, _) in PAYLOADS {
        let at = right(payload as f64);
        let bottom = y + CHART.1;
        out.element("path", format_args!("d=\"M{at:.1} {y:.1}V{bottom:.1}\" stroke=\"#eeeeee\""));
        words(out, (at, y + CHART.1 + 14.0), "middle", 9.0, &table::bytes(payload as u64));
    }
    for ratio in [0.125, 0.25, 0.5, 0.75, 1.0, 1.05, 1.25, 1.5, 2.0] {
        let (at, colour) = (down(ratio), if ratio == 1.0 { "#555555" } else { "#eeeeee" });
        let end = x + CHART.0;
        out.element("path", format_args!("d=\"M{x:.1} {at:.1}H{end:.1}\" stroke=\"{colour}\""));
        // The grid line at 1.05, which is the target of the project for the ratio, is too close to
        // the line at 1 for a label of its own.
        if ratio != 1.05 {
            words(out, (x - 6.0, at + 3.0), "end", 9.0, &format!("{ratio}"));
        }
    }
    // The chart has a line for each class of layouts. For each payload, it has a point at the
    // geometric mean of the ratios of the layouts in the class.
    let mut classes: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        let mut by_class: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        point
            .ratios
            .iter()
            .for_each(|(family, ratio)| by_class.entry(class(family)).or_default().push(*ratio));
        for (class, ratios) in by_class {
            classes.entry(class).or_default().push((point.payload, geometric_mean(ratios)));
        }
    }
    // Each line of the chart gets an entry in the legend, which grows downwards from `key`.
    let legend = x + CHART.0 + 40.0;
    let mut key = y + 10.0;
    let mut line = |out: &mut Document, name: &str, colour: &str, thick: f64, points: &[(f64, f64)]| {
        let places: Vec<String> = points
            .iter()
            .map(|&(payload, ratio)| format!("{:.1},{:.1}", right(payload), down(ratio)))
            .collect();
        let looks = format!("stroke=\"{colour}\" stroke-width=\"{thick}\"");
        out.element("polyline", format_args!("points=\"{}\" fill=\"none\" {looks}", places.join(" ")));
        let (from, to) = (legend - 26.0, legend - 6.0);
        out.element("path", format_args!("d=\"M{from:.1} {key:.1}H{to:.1}\" {looks}"));
        words(out, (legend, key + 4.0), "start", 11.0, name);
        key += 18.0;
    };
    for ((name, points), colour) in classes.iter().zip(COLOURS.iter().cycle()) {
        line(out, name, colour, 1.4, points);
    }
    let medians: Vec<(f64, f64)> = points.iter().map(|p| (p.payload, p.median())).collect();
    line(out, "median of all layouts", "#000000", 2.6, &medians);
    let dot = |out: &mut Document, cx: f64, cy: f64| {
        out.element("circle", format_args!("cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.2\" fill=\"{WORST}\""));
    };
    dot(out, legend - 16.0, key);
    words(out, (legend, key + 4.0), "start", 11.0, "the worst, by name");
    // The worst layout of each payload is a dot with its name. The name at the highest payload ends
    // near the dot, so that it stays inside the chart.
    for point in points {
        let Some((family, ratio)) = point.worst() else { continue };
        let (cx, cy) = (right(point.payload), down(ratio));
        dot(out, cx, cy);
        let (anchor, x) = if point.payload < across.high { ("middle", cx) } else { ("end", cx + 8.0) };
        words(out, (x, cy - 7.0), anchor, 8.5, &format!("{family} {ratio:.2}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::{Sizes, rows};
    use crate::result::tests::sample;

    #[test]
    fn medians_and_worst_rows_are_in_the_picture() {
        let measured: Vec<Measured> = ["vec_8B.1KiB", "face_x.1KiB", "struct_i_d_f3.4KiB"].map(sample).into();
        let of = points(&measured, Direction::Pack);
        assert_eq!(of.iter().map(|p| p.ratios.len()).collect::<Vec<_>>(), [2, 1]);
        let text = picture("a < b", &measured);
        assert!(
            text.contains("a &lt; b")
                && text.contains(">median of all layouts<")
                && text.contains("struct_i_d_f3 ")
        );
        assert_eq!(text.matches("<svg ").count(), text.matches("</svg>").count());
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn every_class_has_layouts() {
        let mut classes: Vec<&str> =
            rows(Sizes::Corpus).iter().filter_map(|row| Some(class(row.name.rsplit_once('.')?.0))).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), COLOURS.len());
    }
}
