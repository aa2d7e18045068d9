//! Results as text: the table on the terminal, and the CSV record.

use std::fmt::Write as _;

use ddtc::internal::kind::Direction;

use crate::result::{Column, Measured, Verdict, mean_ratio};

/// Returns a number of bytes as text with a binary unit.
pub fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.digits$}"))
}

/// Returns the table for the terminal: one line for each layout, with bandwidths in GB/s and the
/// ratio to the best C loop in both directions.
pub(crate) fn table(rows: &[Measured]) -> String {
    let width = rows.iter().map(|m| m.name.len()).max().unwrap_or(0).max(6);
    let mut out = String::new();
    let sides: Vec<String> = Direction::BOTH
        .iter()
        .map(|d| format!(" | {:^34} {:>5}", format!("{} GB/s", d.name()), "time"))
        .collect();
    let _ = writeln!(out, "{:width$} {:>9} {:>9} {:>7}{}", "", "", "commit", "pays", sides.concat());
    let columns = format!(
        " | {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}",
        "code", "walk", "C loop", "memcpy", "bound", "ratio"
    );
    let _ = writeln!(
        out,
        "{:width$} {:>9} {:>9} {:>7}{columns}{columns} | schedule",
        "layout", "payload", "us", "after"
    );
    for m in rows {
        let pays = m.break_even().map_or_else(|| "never".into(), |n| format!("{n:.0}"));
        let _ = write!(out, "{:width$} {:>9} {:>9} {pays:>7}", m.name, bytes(m.payload), figure(m.commit, 1));
        for direction in Direction::BOTH {
            let rate = |column| figure(m.bandwidth(direction, column), 1);
            let best = figure(m.times_of(direction).best_loop().map(|t| m.payload as f64 / t), 1);
            let _ = write!(
                out,
                " | {:>6} {:>6} {best:>6} {:>6} {:>6} {:>5}",
                rate(Column::Compiled),
                rate(Column::Walk),
                rate(Column::Memcpy),
                rate(Column::Bound),
                figure(m.times_of(direction).ratio(), 2)
            );
        }
        let _ = writeln!(out, " | {}", m.schedule);
    }
    out
}

/// Returns the lines below the table: geometric means of the ratios to the best C loop, the five
/// highest ratios, and the rows in which compiled code is slower than this loop at all places of
/// the buffers.
pub(crate) fn summary(rows: &[Measured]) -> String {
    let mut out = String::from(
        "\ntime of compiled code over that of the best C loop of constant extents (below 1: compiled code is faster)\n",
    );
    let compared = rows.iter().filter(|m| m.times_of(Direction::Pack).ratio().is_some()).count();
    if compared == 0 {
        out = String::from("\nno layout has a hand-written loop to compare with\n");
    }
    // For each direction, the geometric means over all rows and over the rows of each size come
    // first, and then the rows with the highest ratios.
    for direction in Direction::BOTH.into_iter().filter(|_| compared > 0) {
        let _ = write!(
            out,
            "  {:6} geometric mean of {compared:>3} rows {:.3}",
            direction.name(),
            mean_ratio(rows, direction)
        );
        for size in ["S", "M", "L"] {
            let of_size: Vec<&Measured> =
                rows.iter().filter(|m| m.name.ends_with(&format!(".{size}"))).collect();
            if !of_size.is_empty() {
                let _ = write!(out, "; {size} {:.3}", mean_ratio(of_size, direction));
            }
        }
        out.push('\n');
        let mut worst: Vec<(&Measured, f64)> =
            rows.iter().filter_map(|m| Some((m, m.times_of(direction).ratio()?))).collect();
        worst.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = |(m, r): &(&Measured, f64)| format!("{} {r:.2}", m.name);
        let highest: Vec<String> = worst.iter().take(5).map(named).collect();
        let _ = writeln!(out, "         highest: {}", highest.join(", "));
        let verdict = |m: &Measured| m.times_of(direction).verdict();
        if rows.iter().any(|m| verdict(m).is_some()) {
            let slower: Vec<String> =
                worst.iter().filter(|(m, _)| verdict(m) == Some(Verdict::Behind)).map(named).collect();
            let slower = if slower.is_empty() { "none".to_owned() } else { slower.join(", ") };
            let _ = writeln!(out, "         small, and behind wherever the buffers lie: {slower}");
        }
    }
    let over: Vec<String> = Direction::BOTH
        .into_iter()
        .map(|d| {
            let ratios = rows.iter().filter_map(|m| m.times_of(d).over_compiled(Column::Walk));
            format!("{} {:.2}", d.name(), super::measure::geometric_mean(ratios))
        })
        .collect();
    let _ = writeln!(out, "time of walk over that of compiled code, geometric mean: {}", over.join(", "));
    out
}

/// Returns a field of a CSV file, in quotes if it needs them (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Returns the fields of a line whose fields were written by [`quoted`].
pub(crate) fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    // A quote inside a quoted field is written twice. This loop takes the first of the two as the
    // end of the quoted part. The second one begins a new quoted part, and since it directly
    // follows a quote, it is also added to the field.
    let (mut inside, mut before) = (false, ' ');
    for c in line.chars() {
        let field = fields.last_mut();
        match (c, inside, field) {
            ('"', false, Some(field)) => {
                if before == '"' {
                    field.push('"');
                }
                inside = true;
            }
            ('"', true, _) => inside = false,
            (',', false, _) => fields.push(String::new()),
            (c, _, Some(field)) => field.push(c),
            (_, _, None) => {}
        }
        before = c;
    }
    fields
}

/// Returns the record: comment lines, a head line, and one line for each layout and direction, with
/// nanoseconds by column.
pub(crate) fn csv(comments: &[String], rows: &[Measured]) -> String {
    let mut out = String::new();
    for comment in comments {
        let _ = writeln!(out, "# {comment}");
    }
    let columns: Vec<String> = Column::ALL.iter().map(|c| format!("{}_ns", c.name())).collect();
    let _ = writeln!(
        out,
        "name,payload_bytes,direction,{},ratio_to_best_loop,compiled_low_ns,compiled_high_ns,loop_low_ns,loop_high_ns,verdict,\
         commit_us,pays_after_packs,schedule",
        columns.join(",")
    );
    for m in rows {
        for direction in Direction::BOTH {
            let times = m.times_of(direction);
            let number = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:.4}"));
            let fields: Vec<String> = Column::ALL.iter().map(|&c| number(times.get(c))).collect();
            // `spread` returns two fields of the record: the lowest and the highest time of a
            // column over the places of the buffers. They are empty if there is no verdict, for
            // example because the buffers had only one place.
            let spread = |column: Option<Column>| {
                let spread = times.verdict().and_then(|_| times.over_places(column?));
                format!("{},{}", number(spread.map(|s| s.low)), number(spread.map(|s| s.high)))
            };
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{}",
                quoted(&m.name),
                m.payload,
                direction.name(),
                fields.join(","),
                number(times.ratio()),
                spread(Some(Column::Compiled)),
                spread(times.best_column()),
                times.verdict().map_or("", Verdict::name),
                number(m.commit),
                m.break_even().map_or(String::new(), |n| format!("{n:.0}")),
                quoted(&m.schedule)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Spread;
    use crate::result::tests::sample;

    #[test]
    fn sizes_in_words() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(16 << 20), "16.0 MiB");
        assert_eq!(bytes(1 << 60), "1.0 EiB");
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        for all in [vec!["a", "", "b c"], vec!["a,b", "say \"no\"", "\"", ""], vec![""]] {
            let line: Vec<String> = all.iter().map(|f| quoted(f)).collect();
            assert_eq!(fields(&line.join(",")), all, "{}", line.join(","));
        }
    }

    #[test]
    fn a_record_by_hand() {
        let mut row = sample("a.S");
        row.times[0].spread(Column::Compiled, Spread { low: 90.0, middle: 100.0, high: 110.0 });
        row.times[0].spread(Column::Blocks, Spread { low: 120.0, middle: 125.0, high: 130.0 });
        let text = csv(&["machine".into()], &[row]);
        let expected = "# machine\n\
            name,payload_bytes,direction,compiled_ns,walk_ns,interp_ns,loop_const_ns,loop_runtime_ns,loop_memcpy_ns,memcpy_ns,\
            bound_ns,ratio_to_best_loop,compiled_low_ns,compiled_high_ns,loop_low_ns,loop_high_ns,verdict,commit_us,pays_after_packs,schedule\n\
            a.S,1000,pack,100.0000,200.0000,,150.0000,,125.0000,,,0.8000,90.0000,110.0000,120.0000,130.0000,ahead,10.0000,100,\"s, t\"\n\
            a.S,1000,unpack,100.0000,200.0000,,150.0000,,125.0000,,,0.8000,,,,,,10.0000,100,\"s, t\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_table_has_a_line_per_row_and_the_summary_its_means() {
        let rows = [sample("a.S"), sample("b.L")];
        assert_eq!(table(&rows).lines().count(), 4);
        assert!(!summary(&rows).contains("wherever"));
        let mut behind = sample("c.S");
        behind.times[1].spread(Column::Compiled, Spread { low: 140.0, middle: 150.0, high: 160.0 });
        behind.times[1].spread(Column::Blocks, Spread { low: 120.0, middle: 125.0, high: 130.0 });
        assert!(summary(&[behind]).contains("behind wherever the buffers lie: c.S 1.20\n"));
        let mut alone = sample("c");
        alone.times = Default::default();
        assert!(summary(&[alone]).contains("no layout has a hand-written loop"));
        let text = summary(&rows);
        assert!(text.contains("pack   geometric mean of   2 rows 0.800; S 0.800; L 0.800"), "{text}");
        assert!(text.contains("pack 2.00, unpack 2.00"), "{text}");
    }
}
