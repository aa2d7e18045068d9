//! Tests of the figures in the documents: each table between a mark and `<!-- end -->` must show
//! the figures of the records that the mark names.
//!
//! * `<!-- figures: FILE -->` and `<!-- rates: FILE -->` are for the record FILE.
//! * `<!-- break-even: STEM HOST.. -->` and `<!-- applications: STEM HOST.. -->` are for the
//!   records STEM-HOST.csv, one per MPI library. The table of a break-even shows the first record
//!   in full.
//! * `<!-- runtime: FILE -->` and `<!-- runtime-ratios: FILE -->` are for the record FILE, which
//!   was measured with an MPICH that uses ddtc as its datatype engine.

use std::fmt::Write as _;

use crate::text::{hold, read};

/// A line of a benchmark record: the figures of one layout in one direction.
struct Line {
    name: String,
    direction: String,
    payload: f64,
    fields: Vec<Option<f64>>,
}

/// Reads a benchmark record and returns the names of its figures and its lines.
fn record(file: &str) -> (Vec<String>, Vec<Line>) {
    let text = read(file);
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let names: Vec<String> = lines.next().unwrap().split(',').skip(3).map(str::to_owned).collect();
    let lines = lines.map(|line| {
        let mut fields = line.split(',');
        let mut next = || fields.next().unwrap().to_owned();
        let (name, payload, direction) = (next(), next().parse().unwrap(), next());
        // The last field of a line is text that may contain commas, so it is left out.
        let fields = fields.take(names.len() - 1).map(|f| f.parse().ok()).collect();
        Line { name, direction, payload, fields }
    });
    let lines = lines.collect();
    (names, lines)
}

fn figure(names: &[String], line: &Line, name: &str) -> Option<f64> {
    line.fields[names.iter().position(|n| n == name).unwrap()]
}

/// Returns the document with new tables between its marks, and the number of tables. Each mark has
/// a key and names a record; `table` returns the text of the table for this key and record.
fn with_tables(document: &str, table: impl Fn(&str, &str) -> String) -> (String, usize) {
    let (mut out, mut inside, mut tables) = (String::new(), false, 0);
    for line in document.lines() {
        if line == "<!-- end -->" {
            inside = false;
        }
        if !inside {
            out += line;
            out.push('\n');
        }
        let mark = line.strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->"));
        if let Some((key, file)) = mark.and_then(|m| m.split_once(": ")) {
            out += &table(key, file);
            (inside, tables) = (true, tables + 1);
        }
    }
    assert!(!inside, "a table without an end");
    (out, tables)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// Reads the record `file` and returns, for each layout, the numbers of calls after which a commit
/// has paid off. They are from the columns `packs`, `unpacks` and `known_packs`. A number is
/// infinite if the record has `never` in its place.
fn break_evens(file: &str) -> Vec<(String, [f64; 3])> {
    let text = read(file);
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields[names.iter().position(|n| *n == name).unwrap()];
        let calls = |name| match field(name) {
            "never" => f64::INFINITY,
            number => number.parse().unwrap(),
        };
        (field("name").to_owned(), ["packs", "unpacks", "known_packs"].map(calls))
    };
    lines.map(row).collect()
}

/// Returns two tables about the number of calls after which a commit has paid off under each MPI
/// library: one with medians, and one with all layouts.
fn break_even(records: &str) -> String {
    let mut words = records.split(' ');
    let stem = words.next().unwrap();
    let libraries: Vec<&str> = words.collect();
    let name = library_name;
    let rows: Vec<Vec<(String, [f64; 3])>> =
        libraries.iter().map(|library| break_evens(&format!("{stem}-{library}.csv"))).collect();
    let calls = |n: f64| if n.is_finite() { format!("{n:.0}") } else { "never".to_owned() };
    let mut out = String::from(
        "| Calls until the commit is paid: median, within 50, never | pack | unpack | pack, shape known |\n|---|---|---|---|\n",
    );
    for (library, rows) in libraries.iter().zip(&rows) {
        let _ = write!(out, "| {}, {} layouts |", name(library), rows.len());
        for column in 0..3 {
            let mut all: Vec<f64> = rows.iter().map(|(_, n)| n[column]).collect();
            all.sort_by(f64::total_cmp);
            let middle = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
            let within = all.iter().filter(|n| **n <= 50.0).count();
            let never = all.iter().filter(|n| n.is_infinite()).count();
            let _ = write!(out, " **{}**, {within}, {never} |", calls(middle));
        }
        out.push('\n');
    }
    // Show all three columns for the first MPI library, and only the column for packing for the
    // remaining libraries.
    let mut columns = vec![(0, 0, "pack"), (0, 1, "unpack"), (0, 2, "pack, shape known")];
    columns.extend((1..libraries.len()).map(|library| (library, 0, "pack")));
    out += "\n| Layout, S / L |";
    for (library, _, what) in &columns {
        let _ = write!(out, " {} {what} |", name(libraries[*library]));
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(columns.len()));
    let calls_of = |library: usize, name: &str, column: usize| {
        calls(rows[library].iter().find(|(other, _)| other == name).unwrap().1[column])
    };
    for (name, _) in &rows[0] {
        let Some(layout) = name.strip_suffix(".S") else { continue };
        let _ = write!(out, "| {layout} |");
        for &(library, column, _) in &columns {
            let both = ["S", "L"].map(|size| calls_of(library, &format!("{layout}.{size}"), column));
            let _ = write!(out, " {} |", both.join(" / "));
        }
        out.push('\n');
    }
    out
}

/// Returns the table of application benchmarks under each MPI library. It has, for each case, the
/// time with the preload library relative to the time without the preload library. Its last two
/// rows count the cases in which this ratio is above a limit, and those in which the time relative
/// to the faster of two alternatives, the unmodified library and packing by hand, is above a limit.
fn applications(records: &str) -> String {
    let mut words = records.split(' ');
    let stem = words.next().unwrap();
    let libraries: Vec<&str> = words.collect();
    // Read the lines of the record of each MPI library. A line has the name of the case, the
    // payload in bytes, the time relative to the unmodified library, and the time relative to the
    // better alternative.
    let rows: Vec<Vec<(String, [f64; 3])>> = libraries
        .iter()
        .map(|library| {
            let text = read(&format!("{stem}-{library}.csv"));
            let mut lines = text.lines().filter(|l| !l.starts_with('#'));
            let names: Vec<&str> = lines.next().unwrap().split(',').collect();
            let places = ["bytes", "preloaded_over_bare", "preloaded_over_better"]
                .map(|name| names.iter().position(|n| *n == name).unwrap());
            let row = |line: &str| {
                let fields: Vec<&str> = line.split(',').collect();
                (fields[0].to_owned(), places.map(|place| fields[place].parse::<f64>().unwrap()))
            };
            lines.map(row).collect()
        })
        .collect();
    let mut out = format!(
        "| Time relative to the unmodified library, minimum to maximum |{}\n|---|",
        libraries.iter().fold(String::new(), |s, h| s + " " + library_name(h) + " |")
    );
    out += &"---|".repeat(libraries.len());
    out.push('\n');
    let span = |values: Vec<f64>| {
        let (min, max) = values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &v| (a.min(v), b.max(v)));
        if values.len() == 1 { format!("{min:.2}") } else { format!("{min:.2} to {max:.2}") }
    };
    let mut cases: Vec<&str> = Vec::new();
    for (case, _) in &rows[0] {
        if !cases.contains(&case.as_str()) {
            cases.push(case);
        }
    }
    for case in cases {
        let _ = write!(out, "| {case} |");
        for library in &rows {
            let values = library.iter().filter(|(name, _)| name == case).map(|(_, v)| v[1]);
            let _ = write!(out, " {} |", span(values.collect()));
        }
        out.push('\n');
    }
    let mut line = |what: &str, count: &dyn Fn(&[f64; 3]) -> Option<f64>, limit: f64| {
        let _ = write!(out, "| {what} |");
        for library in &rows {
            let all: Vec<f64> = library.iter().filter_map(|(_, v)| count(v)).collect();
            let above = all.iter().filter(|v| **v > limit).count();
            let max = all.iter().copied().fold(0.0, f64::max);
            let _ = write!(out, " {above} of {}, {max:.2} at most |", all.len());
        }
        out.push('\n');
    };
    line("**rows above 1.05 of the unmodified library**", &|v| Some(v[1]), 1.05);
    line(
        "**rows from 4 KiB on above 1.15 of the better of unmodified and packed by hand**",
        &|v| (v[0] >= 4096.0).then_some(v[2]),
        1.15,
    );
    out
}

fn library_name(library: &str) -> &str {
    match library {
        "mpich" => "MPICH",
        "impi" => "Intel MPI",
        "openmpi" => "Open MPI",
        other => panic!("no such MPI library: {other}"),
    }
}

fn ratio(names: &[String], lines: &[Line], name: &str, direction: &str) -> Option<f64> {
    let line = lines.iter().find(|l| l.name == name && l.direction == direction)?;
    figure(names, line, "ratio_to_best_loop")
}

/// Returns the table of ddtc's times relative to the best C loop, for all layouts.
fn ratios(names: &[String], lines: &[Line]) -> String {
    let mut out = String::from("| Layout | pack S | unpack S | pack L | unpack L |\n|---|---|---|---|---|\n");
    for line in lines.iter().filter(|l| l.direction == "pack") {
        let Some(layout) = line.name.strip_suffix(".S") else { continue };
        let _ = write!(out, "| {layout} |");
        for (size, direction) in [("S", "pack"), ("S", "unpack"), ("L", "pack"), ("L", "unpack")] {
            let r = ratio(names, lines, &format!("{layout}.{size}"), direction).unwrap();
            let _ = write!(out, " {r:.2} |");
        }
        out.push('\n');
    }
    out += "| **geometric mean** |";
    for (size, direction) in [(".S", "pack"), (".S", "unpack"), (".L", "pack"), (".L", "unpack")] {
        let of = lines.iter().filter(|l| l.name.ends_with(size) && l.direction == direction);
        let m = mean(of.filter_map(|l| figure(names, l, "ratio_to_best_loop")));
        let _ = write!(out, " **{m:.2}** |");
    }
    out.push('\n');
    out
}

/// Returns the table of the rates at which a few layouts are packed, in GB/s.
fn rates(names: &[String], lines: &[Line]) -> String {
    let chosen = [
        ("struct_i_d_f3.S", "128 structs of int, double, float[3]"),
        ("FFT2D_scatter.S", "256 KiB of a transpose of complex numbers"),
        ("indexed_1to8.L", "100,000 irregular blocks of 1 to 8 doubles"),
        ("NAS_LU_y.L", "1020 blocks of 40 B"),
        ("vec_8B.L", "4 MiB of doubles, every other one"),
        ("face_y.L", "a face of a cube of 256^3 doubles"),
        ("vec_64B.S", "256 blocks of 64 B by 128"),
    ];
    let mut out =
        String::from("| Layout, packing | ddtc | C loop | memcpy of the payload |\n|---|---|---|---|\n");
    for (name, words) in chosen {
        let line = lines.iter().find(|l| l.name == name && l.direction == "pack").unwrap();
        let rate = |time: Option<f64>| line.payload / time.unwrap();
        let best = [figure(names, line, "loop_const_ns"), figure(names, line, "loop_memcpy_ns")];
        let best = best.into_iter().flatten().min_by(f64::total_cmp);
        let own = rate(figure(names, line, "compiled_ns"));
        let (best, memcpy) = (rate(best), rate(figure(names, line, "memcpy_ns")));
        let _ = writeln!(out, "| {words} | {own:.1} | {best:.1} | {memcpy:.1} |");
    }
    out
}

/// Returns the lines of a record of `tests/runtime.sh --bench`. Each line has a name and three
/// times in nanoseconds: with the original yaksa (MPICH's datatype engine), with ddtc in its place,
/// and with packing by hand.
fn runtime_rows(file: &str) -> Vec<(String, f64, f64, Option<f64>)> {
    let text = read(file);
    let lines = text.lines().filter(|l| !l.starts_with('#')).skip(1);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[0].to_owned(), fields[1].parse().unwrap(), fields[2].parse().unwrap(), fields[3].parse().ok())
    };
    lines.map(row).collect()
}

/// Returns the table of the times of a few calls inside MPICH, in microseconds. `file` is a record
/// of `tests/runtime.sh --bench`.
fn runtime(file: &str) -> String {
    let chosen = [
        ("pack struct_i_d_f3.L", "`MPI_Pack` of an array of structs of int, double, float[3]"),
        ("pack indexed_1to8.L", "`MPI_Pack` of 100,000 irregular blocks of 1 to 8 doubles"),
        ("message struct_i_d_f3.S", "a message of 128 structs"),
        ("message struct_i_d_f3.L", "a message of the array of structs"),
        ("message FFT2D_scatter.S", "a message of 256 KiB of a transpose of complex numbers"),
        ("message face_z.L", "a message of a face of a cube of 256^3 doubles"),
        ("alltoallw subarrays 1 MiB", "`MPI_Alltoallw` of subarrays, 1 MiB a rank"),
        ("bcast structs 64 KiB", "`MPI_Bcast` of 64 KiB of structs"),
        ("allgather structs 64 KiB", "`MPI_Allgather` of 64 KiB of structs a rank"),
        ("put created 64 B by 128 64 KiB", "`MPI_Put` of 64 KiB to blocks of 64 B by 128, with two fences"),
        (
            "accumulate created 8 B by 16 64 KiB",
            "`MPI_Accumulate` of 64 KiB to doubles by 16 B, with two fences",
        ),
    ];
    // The name of a row of a message says between `message` and the layout how MPICH moved it.
    let is_of = |row: &str, name: &str| match name.strip_prefix("message ") {
        Some(layout) => {
            row.contains("message ") && !row.contains("without CMA") && row.ends_with(&format!(" {layout}"))
        }
        None => row == name,
    };
    let rows = runtime_rows(file);
    let mut out = String::from(
        "| Microseconds in MPICH 5.0.1 | stock yaksa | ours | packed by hand |\n|---|---|---|---|\n",
    );
    for (name, words) in chosen {
        let (_, stock, ours, hand) = rows.iter().find(|(row, ..)| is_of(row, name)).unwrap();
        let [stock, ours, hand] = [*stock, *ours, hand.unwrap()].map(|ns| match ns / 1e3 {
            us if us < 10.0 => format!("{us:.2}"),
            us if us < 100.0 => format!("{us:.1}"),
            us => format!("{us:.0}"),
        });
        let _ = writeln!(out, "| {words} | {stock} | {ours} | {hand} |");
    }
    out
}

/// Returns the table of ratios of all lines of a record of `tests/runtime.sh --bench`. The lines
/// are grouped by the MPI call that they measure.
fn runtime_ratios(file: &str) -> String {
    let groups = [
        ("pack ", "`MPI_Pack`"),
        ("unpack ", "`MPI_Unpack`"),
        ("short message ", "messages below 8 KiB"),
        ("message by CMA ", "messages by CMA"),
        ("message in cells ", "messages in cells"),
        ("message by different protocols ", "messages for which the two lead to different protocols"),
        ("contiguous message ", "contiguous messages of at least 8 KiB"),
        ("message without CMA ", "messages of at least 8 KiB, CMA switched off"),
        ("first pack ", "first `MPI_Pack` of a type"),
        ("second pack ", "second `MPI_Pack`"),
        ("third pack ", "third `MPI_Pack`"),
        ("alltoallw ", "`MPI_Alltoallw`"),
        ("bcast ", "`MPI_Bcast`"),
        ("allgather ", "`MPI_Allgather`"),
        ("put created ", "`MPI_Put`, window created"),
        ("put shared ", "`MPI_Put`, window allocated"),
        ("accumulate created ", "`MPI_Accumulate`, window created"),
        ("accumulate shared ", "`MPI_Accumulate`, window allocated"),
        ("create and pack once ", "type made, packed once, freed"),
        ("create ", "type made and freed"),
        ("memory of a live type", "memory of a live type"),
    ];
    let rows = runtime_rows(file);
    let mut out = String::from(
        "| | rows | ours over stock | slowest of them | slower by more than 5 % | ours over hand-packed |\n|---|---|---|---|---|---|\n",
    );
    let mut seen = 0;
    for (start, words) in groups {
        let others = |name: &str| start == "create " && name.starts_with("create and ");
        if !rows.iter().any(|(name, ..)| name.starts_with(start)) {
            continue;
        }
        let group = || rows.iter().filter(move |(name, ..)| name.starts_with(start) && !others(name));
        let over = || group().map(|(_, stock, ours, _)| ours / stock);
        let worst = over().fold(0.0, f64::max);
        let hand: Vec<f64> = group().filter_map(|(_, _, ours, hand)| Some(ours / (*hand)?)).collect();
        let hand = if hand.is_empty() { String::new() } else { format!("{:.2}", mean(hand.into_iter())) };
        let (n, slower) = (group().count(), over().filter(|r| *r > 1.05).count());
        let _ = writeln!(out, "| {words} | {n} | {:.2} | {worst:.2} | {slower} | {hand} |", mean(over()));
        seen += n;
    }
    assert_eq!(seen, rows.len(), "rows of {file} that no group has");
    out
}

#[test]
fn performance_has_the_figures_of_its_records() {
    let table = |key: &str, file: &str| match key {
        "figures" => {
            let (names, lines) = record(file);
            ratios(&names, &lines)
        }
        "rates" => {
            let (names, lines) = record(file);
            rates(&names, &lines)
        }
        "break-even" => break_even(file),
        "applications" => applications(file),
        _ => panic!("no such table: {key}"),
    };
    let (wanted, tables) = with_tables(&read("docs/PERFORMANCE.md"), table);
    assert_eq!(tables, 4);
    hold("docs/PERFORMANCE.md", &wanted);
}

#[test]
fn the_page_on_yaksa_has_the_ratios_of_its_record() {
    let table = |key: &str, file: &str| match key {
        "runtime" => runtime(file),
        "runtime-ratios" => runtime_ratios(file),
        _ => panic!("no such table: {key}"),
    };
    let (wanted, tables) = with_tables(&read("docs/YAKSA.md"), table);
    assert_eq!(tables, 2);
    hold("docs/YAKSA.md", &wanted);
}
