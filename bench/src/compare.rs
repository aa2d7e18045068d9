//! A comparison of two records of one machine: which rows changed by more than noise.
//!
//! The compared number is the time of compiled code over that of the best C loop in the same run,
//! since the machine need not have the same speed in both runs. A row that was measured at several
//! places of the buffers has changed if it differs by more than noise and the ranges of its ratios
//! do not overlap. Any other row has changed if it differs by more than noise.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::measure::geometric_mean;
use crate::table;

/// Relative difference up to which two rows count as equal (docs/PERFORMANCE.md, "Method").
const NOISE: f64 = 0.05;

/// The ratio in one row of a record, which is the time of compiled code over that of the best C
/// loop, and the range of this ratio over the places of the buffers, if there were several.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    middle: f64,
    spread: Option<(f64, f64)>,
}

/// Rows by name and direction.
type Rows = BTreeMap<(String, String), Ratio>;

/// Returns the comparison of the records in two files as text.
///
/// # Errors
/// Returns an error if a file cannot be read or is no record of layouts.
pub(crate) fn records(before: &Path, after: &Path) -> Result<String, Box<dyn Error>> {
    let read = |path: &Path| -> Result<Rows, Box<dyn Error>> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(rows(&text).map_err(|e| format!("{}: {e}", path.display()))?)
    };
    Ok(compared(&read(before)?, &read(after)?))
}

/// Returns the rows of a record.
fn rows(text: &str) -> Result<Rows, String> {
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let names = table::fields(lines.next().unwrap_or(""));
    let column = |name: &str| names.iter().position(|n| n == name);
    let needed = |name: &str| column(name).ok_or_else(|| format!("no column {name}: no record of layouts"));
    let (name, direction, ratio) = (needed("name")?, needed("direction")?, needed("ratio_to_best_loop")?);
    let ends = ["compiled_low_ns", "compiled_high_ns", "loop_low_ns", "loop_high_ns"].map(column);
    let mut rows = Rows::new();
    for line in lines {
        let fields = table::fields(line);
        let number = |at: Option<usize>| -> Option<f64> { fields.get(at?)?.parse().ok() };
        let text = |at: usize| fields.get(at).cloned().unwrap_or_default();
        // Layouts without a hand-written loop have no ratio.
        let Some(middle) = number(Some(ratio)) else { continue };
        let spread = match ends.map(number) {
            [Some(low), Some(high), Some(loop_low), Some(loop_high)] => {
                Some((low / loop_high, high / loop_low))
            }
            _ => None,
        };
        rows.insert((text(name), text(direction)), Ratio { middle, spread });
    }
    Ok(rows)
}

/// Returns true if a row has changed by more than noise.
fn changed(before: Ratio, after: Ratio) -> bool {
    let far = (after.middle / before.middle - 1.0).abs() > NOISE;
    match (before.spread, after.spread) {
        (Some((low, high)), Some((new_low, new_high))) => far && (new_high < low || new_low > high),
        _ => far,
    }
}

// Returns the text of the comparison: the changed rows, those that became slower first, the mean
// change, and the rows that only one record has.
fn compared(before: &Rows, after: &Rows) -> String {
    let mut out = String::new();
    let both = || before.iter().filter_map(|(row, &old)| Some((row, old, *after.get(row)?)));
    let mut named: Vec<_> = both().filter(|&(_, old, new)| changed(old, new)).collect();
    named.sort_by(|a, b| (b.2.middle / b.1.middle).total_cmp(&(a.2.middle / a.1.middle)));
    let shown = |r: Ratio| {
        let spread = r.spread.map(|(low, high)| format!(" ({low:.2} to {high:.2})"));
        format!("{:.2}{}", r.middle, spread.unwrap_or_default())
    };
    let _ = writeln!(
        out,
        "time over that of the best C loop of constant extents, before and after, by more than noise:"
    );
    for ((name, direction), old, new) in &named {
        let word = if new.middle > old.middle { "slower" } else { "faster" };
        let _ = writeln!(out, "  {word} {name} {direction}: {} -> {}", shown(*old), shown(*new));
    }
    if named.is_empty() {
        out.push_str("  none\n");
    }
    let mean = geometric_mean(both().map(|(_, old, new)| new.middle / old.middle));
    let _ = writeln!(out, "{} rows in both; after over before, geometric mean {mean:.3}", both().count());
    for (rows, others, which) in [(before, after, "before"), (after, before, "after")] {
        let alone: Vec<String> =
            rows.keys().filter(|row| !others.contains_key(*row)).map(|(n, d)| format!("{n} {d}")).collect();
        if !alone.is_empty() {
            let _ = writeln!(out, "only {which}: {}", alone.join(", "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# a machine\nname,payload_bytes,direction,ratio_to_best_loop,compiled_low_ns,compiled_high_ns,loop_low_ns,loop_high_ns";

    fn record(lines: &[&str]) -> Rows {
        rows(&format!("{HEAD}\n{}\n", lines.join("\n"))).unwrap()
    }

    #[test]
    fn what_changed_is_named_by_hand() {
        let before = record(&[
            "a.S,8,pack,1.00,90,110,95,105",
            "b.L,8,pack,1.00,,,,",
            "c.L,8,pack,1.00,,,,",
            "d,8,pack,,,,,",
        ]);
        // The first row became slower by more than noise, but its range over the places of the
        // buffers overlaps the range in the earlier record. The second row has no range and differs
        // by more than noise. The third row differs by less.
        let after = record(&[
            "a.S,8,pack,1.10,100,120,95,105",
            "b.L,8,pack,1.06,,,,",
            "c.L,8,pack,0.96,,,,",
            "\"e,f\",8,pack,1,,,,",
        ]);
        let text = compared(&before, &after);
        assert!(text.contains("\n  slower b.L pack: 1.00 -> 1.06\n3 rows in both"), "{text}");
        assert!(text.ends_with("only after: e,f pack\n"), "{text}");
        let apart = record(&["a.S,8,pack,0.70,60,70,95,105"]);
        let text = compared(&before, &apart);
        assert!(text.contains("\n  faster a.S pack: 1.00 (0.86 to 1.16) -> 0.70 (0.57 to 0.74)\n"), "{text}");
        assert!(compared(&before, &before).contains("  none\n"));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(rows("pair,gb_per_s\na,1\n").unwrap_err().contains("no column name"));
        assert!(
            records(Path::new("nowhere.csv"), Path::new("nowhere.csv"))
                .unwrap_err()
                .to_string()
                .starts_with("nowhere.csv: ")
        );
    }
}
