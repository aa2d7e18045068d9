//! The picture of the README. Its upper part has the time to pack with ddtc over that of the best
//! hand-written loop and over that of two MPI libraries, for ten layouts. Its lower part has the
//! time of applications' messages with the preload library over the time without it
//! ([`applications`]). All is drawn from records of one machine.
//!
//! `STEM.csv` has the times of loops (`ddtc bench --record`). `STEM-break-even-MPI.csv` has the
//! times of `MPI_Pack` by the unmodified MPI library and through the preload library.

mod applications;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use crate::svg::Document;
use crate::{charts, table};

/// Layouts of the benchmark in the order of the picture, each with its description.
const LAYOUTS: [(&str, &str); 10] = [
    ("struct_i_d_f3.L", "array of structs: int, double, float[3]"),
    ("FFT2D_scatter.S", "transpose of complex numbers"),
    ("transpose_1024x16B.S", "transpose of 16-byte elements"),
    ("indexed_1to8.L", "irregular blocks of 1 to 8 doubles"),
    ("LAMMPS_full.S", "particles of LAMMPS"),
    ("SPECFEM3D_mt.S", "faces of SPECFEM3D"),
    ("WRF_y_vec.S", "halo of WRF"),
    ("MILC_su3_zd.S", "face of a lattice of MILC"),
    ("vec_8B.L", "every other double"),
    ("NAS_LU_x.S", "contiguous bytes of NAS LU"),
];
/// The ways to pack that ddtc is compared with. Each has a name, the suffix of the file names of
/// its records, and the columns of a record that give the ratio. The colour (Okabe and Ito, 2008)
/// and the shape are those of its mark in the picture.
const OVER: [(&str, &str, Figures, &str, Shape); 3] = [
    ("best hand loop", ".csv", Figures::Ratio("ratio_to_best_loop"), "#d55e00", Shape::Circle),
    ("MPICH", "-break-even-mpich.csv", Figures::Pair("pack_ns", "host_pack_ns"), "#0072b2", Shape::Square),
    (
        "Open MPI",
        "-break-even-openmpi.csv",
        Figures::Pair("pack_ns", "host_pack_ns"),
        "#009e73",
        Shape::Diamond,
    ),
];

/// The columns of a record that give the ratio of two times: one column that has the ratio, or two
/// columns with the times.
#[derive(Clone, Copy)]
enum Figures {
    Ratio(&'static str),
    Pair(&'static str, &'static str),
}

#[derive(Clone, Copy)]
enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

const WIDTH: f64 = 900.0;
const NAMES: f64 = 322.0;
/// Horizontal position at which the chart ends and the numbers to the right of it begin.
const RIGHT: f64 = 656.0;
const TOP: f64 = 84.0;
const ROW: f64 = 26.0;
/// Smallest and largest ratio on the axis, as exponents of 2.
const ENDS: (i32, i32) = (-6, 1);

/// Returns the picture of the README. It is drawn from the records of layouts whose file names
/// begin with `stem`, and from those of applications whose file names begin with `applications`.
///
/// # Errors
/// Returns an error if a record cannot be read or parsed, or lacks a layout or an application.
pub(crate) fn picture(stem: &str, applications: &str) -> Result<String, Box<dyn Error>> {
    let mut columns = Vec::new();
    for (_, end, figures, ..) in OVER {
        columns.push(ratios(&format!("{stem}{end}"), figures)?);
    }
    let bottom = TOP + ROW * LAYOUTS.len() as f64;
    let height = bottom + 8.0 + applications::HEIGHT + 46.0;
    let mut out =
        Document::new(WIDTH, height, "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\"");
    out.element("rect", "width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#ffffff\"");
    // The title is also the legend: it has the mark and the name of everything that ddtc is
    // compared with. The same names stand above the columns of numbers.
    words(&mut out, (16.0, 28.0), "start", "#222222", "Time to pack with ddtc, over that of");
    for (i, (name, _, _, colour, shape)) in OVER.into_iter().enumerate() {
        let x = 268.0 + 140.0 * i as f64;
        mark(&mut out, (x, 23.5), colour, shape);
        words(&mut out, (x + 10.0, 28.0), "start", colour, name);
        words(
            &mut out,
            (RIGHT + 76.0 * (i + 1) as f64, TOP - 16.0),
            "end",
            colour,
            name.trim_start_matches("best hand "),
        );
    }
    axis(&mut out, (TOP, bottom));
    // Each layout has a line: a mark and a number for each comparison, and the description of the
    // layout with its payload.
    for (row, (layout, name)) in LAYOUTS.into_iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let mut bytes = 0;
        for (i, (column, (.., colour, shape))) in columns.iter().zip(OVER).enumerate() {
            let &(of, ratio) = column.get(layout).ok_or_else(|| format!("{stem}: no record of {layout}"))?;
            bytes = of;
            mark(&mut out, (position(ratio), y), colour, shape);
            words(&mut out, (RIGHT + 76.0 * (i + 1) as f64, y + 4.5), "end", colour, &format!("{ratio:.2}"));
        }
        words(
            &mut out,
            (NAMES - 16.0, y + 4.5),
            "end",
            "#222222",
            &format!("{name}, {}", table::bytes(bytes)),
        );
    }
    applications::draw(&mut out, applications, bottom + 8.0)?;
    words(&mut out, (position(0.5), height - 24.0), "middle", "#222222", "left of 1: ddtc is faster");
    Ok(out.finish())
}

/// Draws the axis of ratios: the numbers above the chart, and a vertical line for each power of two
/// between the heights `top` and `bottom`.
fn axis(out: &mut Document, (top, bottom): (f64, f64)) {
    for power in ENDS.0..=ENDS.1 {
        let (x, dark) = (position(f64::from(power).exp2()), power == 0);
        let colour = if dark { "#222222" } else { "#dddddd" };
        let y = top - 8.0;
        let line =
            format!("x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{colour}\"");
        out.element("line", line);
        let text = if power < 0 { format!("1/{}", 1 << -power) } else { (1 << power).to_string() };
        words(out, (x, top - 16.0), "middle", "#222222", &text);
    }
}

/// Returns the payload in bytes of each layout in a record, and the time of packing with ddtc over
/// that of what it is compared with.
fn ratios(file: &str, figures: Figures) -> Result<BTreeMap<String, (u64, f64)>, Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let column = |name: &str| {
        let place = names.iter().position(|n| *n == name);
        place.ok_or_else(|| format!("{file}: no column {name}"))
    };
    let direction = names.iter().position(|n| *n == "direction");
    let mut found = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |place: usize| -> Result<f64, Box<dyn Error>> {
            let text = fields.get(place).ok_or_else(|| format!("{file}: a short line: {line}"))?;
            Ok(text.parse().map_err(|e| format!("{file}: {text}: {e}"))?)
        };
        let wanted = LAYOUTS.iter().any(|(layout, _)| Some(layout) == fields.first());
        if !wanted || direction.is_some_and(|d| fields.get(d) != Some(&"pack")) {
            continue;
        }
        let ratio = match figures {
            Figures::Ratio(name) => number(column(name)?)?,
            Figures::Pair(ours, theirs) => number(column(ours)?)? / number(column(theirs)?)?,
        };
        // In all records that are read here, the second column is the payload, under different
        // names.
        found.insert(fields[0].to_owned(), (number(1)? as u64, ratio));
    }
    Ok(found)
}

/// Returns the horizontal position of a ratio. A ratio beyond an end of the axis is at that end.
fn position(ratio: f64) -> f64 {
    let (low, high) = (f64::from(ENDS.0), f64::from(ENDS.1));
    let fraction = (ratio.log2().clamp(low, high) - low) / (high - low);
    NAMES + fraction * (RIGHT - NAMES)
}

// Draws a mark of the given shape around a point.
fn mark(out: &mut Document, (x, y): (f64, f64), colour: &str, shape: Shape) {
    match shape {
        Shape::Circle => {
            out.element("circle", format_args!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\""));
        }
        Shape::Square => {
            let (x, y) = (x - 4.5, y - 4.5);
            let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"9\" height=\"9\" fill=\"{colour}\"");
            out.element("rect", place);
        }
        Shape::Diamond => {
            let y = y - 6.0;
            out.element("path", format_args!("d=\"M{x:.1} {y:.1} l6 6 l-6 6 l-6 -6 z\" fill=\"{colour}\""));
        }
        Shape::Triangle => {
            let y = y - 5.5;
            out.element("path", format_args!("d=\"M{x:.1} {y:.1} l5.5 10 l-11 0 z\" fill=\"{colour}\""));
        }
    }
}

fn words(out: &mut Document, at: (f64, f64), anchor: &str, colour: &str, text: &str) {
    out.group(format_args!("fill=\"{colour}\""), |out| charts::words(out, at, anchor, 13.0, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_lie_on_their_axis() {
        assert!(position(0.25) < position(0.5) && position(0.5) < position(1.0));
        assert!(
            (position(1.0) - position(0.5) - (position(0.5) - position(0.25))).abs() < 1e-9,
            "logarithmic"
        );
        assert!(position(0.0) == NAMES && position(1e9) == RIGHT, "at its ends where it is beyond");
    }

    #[test]
    fn records_that_lack_something_are_refused() {
        let error = |stem: &str| picture(stem, "/no/such/applications").unwrap_err().to_string();
        assert!(error("/no/such").contains("/no/such.csv"));
        let folder = ddtc::internal::files::temporary_folder("ddtc-overview").unwrap();
        let stem = folder.join("s").display().to_string();
        fs::write(format!("{stem}.csv"), "# machine\nname,payload_bytes,direction\nvec_8B.L,8,pack\n")
            .unwrap();
        assert!(error(&stem).contains("no column ratio_to_best_loop"));
        fs::write(
            format!("{stem}.csv"),
            "name,payload_bytes,direction,ratio_to_best_loop\nvec_8B.L,8,pack,one\n",
        )
        .unwrap();
        assert!(error(&stem).contains("one"));
    }
}
