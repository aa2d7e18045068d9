//! The lower part of the picture of the README: the time of applications' messages with the preload
//! library over the time without it, under each MPI library. The numbers come from records of
//! `benches/applications.py`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use super::{NAMES, RIGHT, ROW, Shape, axis, mark, position, words};
use crate::svg::Document;

/// Applications in the order of the picture: the beginning of the names of their rows, and a
/// description.
const CASES: [(&str, &str); 7] = [
    ("WRF_", "WRF, halos of many arrays"),
    ("MILC_", "MILC, face of a lattice"),
    ("NAS_LU_", "NAS LU, faces"),
    ("NAS_MG_", "NAS MG, faces"),
    ("LAMMPS_", "LAMMPS, listed particles"),
    ("SPECFEM3D_", "SPECFEM3D, listed points"),
    ("FFT2", "FFT, transpose of blocks"),
];
/// The MPI libraries under which applications were measured: name, suffix of the record's name,
/// colour (Okabe and Ito, 2008), and shape of the mark.
const MPI_LIBRARIES: [(&str, &str, &str, Shape); 3] = [
    ("MPICH", "-mpich.csv", "#0072b2", Shape::Square),
    ("Intel MPI", "-impi.csv", "#cc79a7", Shape::Triangle),
    ("Open MPI", "-openmpi.csv", "#009e73", Shape::Diamond),
];

/// Height of this part of the picture.
pub(super) const HEIGHT: f64 = 84.0 + ROW * CASES.len() as f64;

/// Minimum, median and maximum of the ratios in the rows of one application.
type Span = [f64; 3];

/// Draws the ratios of all applications below the height `top`, from the records whose file names
/// begin with `stem`.
///
/// # Errors
/// Returns an error if a record cannot be read or parsed, or lacks an application.
pub(super) fn draw(out: &mut Document, stem: &str, top: f64) -> Result<(), Box<dyn Error>> {
    let mut columns = Vec::new();
    for (_, end, ..) in MPI_LIBRARIES {
        columns.push(spans(&format!("{stem}{end}"))?);
    }
    words(
        out,
        (16.0, top + 28.0),
        "start",
        "#222222",
        "Messages of applications, two ranks: time with ddtc below an MPI library, over that without",
    );
    let first = top + 84.0;
    for (i, (name, _, colour, _)) in MPI_LIBRARIES.into_iter().enumerate() {
        words(out, (RIGHT + 76.0 * (i + 1) as f64, first - 16.0), "end", colour, name);
    }
    axis(out, (first, first + ROW * CASES.len() as f64));
    for (row, (case, name)) in CASES.into_iter().enumerate() {
        let y = first + ROW * (row as f64 + 0.5);
        words(out, (NAMES - 16.0, y + 4.5), "end", "#222222", name);
        for (i, (column, (.., colour, shape))) in columns.iter().zip(MPI_LIBRARIES).enumerate() {
            let [low, middle, high] = column[case];
            let own = y + 7.0 * (i as f64 - 1.0);
            let (from, to) = (position(low), position(high));
            let line = format!(
                "x1=\"{from:.1}\" y1=\"{own:.1}\" x2=\"{to:.1}\" y2=\"{own:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\""
            );
            out.element("line", line);
            mark(out, (position(middle), own), colour, shape);
            words(out, (RIGHT + 76.0 * (i + 1) as f64, y + 4.5), "end", colour, &format!("{middle:.2}"));
        }
    }
    Ok(())
}

/// Returns the minimum, median and maximum of the ratios in the rows of each application in a
/// record.
fn spans(file: &str) -> Result<BTreeMap<&'static str, Span>, Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let place = names.iter().position(|n| *n == "preloaded_over_bare");
    let place = place.ok_or_else(|| format!("{file}: no column preloaded_over_bare"))?;
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let Some((case, _)) = CASES.iter().find(|(case, _)| line.starts_with(case)) else { continue };
        let text = fields.get(place).ok_or_else(|| format!("{file}: a short line: {line}"))?;
        found.entry(case).or_default().push(text.parse().map_err(|e| format!("{file}: {text}: {e}"))?);
    }
    let mut spans = BTreeMap::new();
    for (case, _) in CASES {
        let mut ratios = found.remove(case).ok_or_else(|| format!("{file}: no row {case}"))?;
        ratios.sort_by(f64::total_cmp);
        spans.insert(case, [ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]]);
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_an_application_are_one() {
        let folder = ddtc::internal::files::temporary_folder("ddtc-applications").unwrap();
        let file = folder.join("r.csv").display().to_string();
        let rows =
            |rows: &str| fs::write(&file, format!("# machine\ncase,preloaded_over_bare\n{rows}")).unwrap();
        rows("WRF_x,0.5\n");
        assert!(spans(&file).unwrap_err().to_string().contains("no row MILC_"));
        let others = "MILC_a,1\nNAS_LU_x,1\nNAS_MG_x,1\nLAMMPS_full,1\nSPECFEM3D_oc,1\nFFT2,1\n";
        rows(&format!("WRF_x,0.5\nWRF_y,1.5\nWRF_y,0.25\n{others}"));
        assert_eq!(spans(&file).unwrap()["WRF_"], [0.25, 0.5, 1.5]);
        rows(&format!("WRF_x,half\n{others}"));
        assert!(spans(&file).unwrap_err().to_string().contains("half"));
    }
}
