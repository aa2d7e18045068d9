//! Report of the preload library: what it converted, what it bypassed and why, and what that
//! gained.
//!
//! The preload library fills a [`Report`] in each rank, and `ddtc preload --report` sums those of
//! all ranks. [`Report::text`] has what fits one screen, [`Report::json`] has everything. The first
//! sentence of both is computed from the totals ([`Report::summary`]), so that it cannot contradict
//! them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write as _;

use crate::bypass::Bypass;

/// Version of the JSON format. A reader refuses other versions.
pub const FORMAT: u64 = 1;
/// Maximum number of columns of the text.
pub const WIDTH: usize = 100;
/// Maximum number of lines of the text.
pub const LINES: usize = 24;
/// Width in columns of the left part of a line, which has the heading of a section or is blank.
const INDENT: usize = 11;
/// Maximum number of bypass reasons in the text.
const MAX_REASONS: usize = 4;
/// Number of lines of the text that are reserved for types and their heading, even if there are
/// many notes.
const MIN_TYPE_LINES: usize = 4;

/// Record of what was done in one rank, or the sum over several ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of ranks.
    pub ranks: u64,
    /// Number of ranks that wrote their report before they had finalized MPI.
    pub unfinished: u64,
    /// Rank and process number, if this is the report of one rank.
    pub process: String,
    /// MPI libraries with their ABI: several only if ranks have different ones.
    pub libraries: Vec<String>,
    /// Values of `DDTC_MODE`: several only if ranks have different ones.
    pub modes: Vec<String>,
    /// Levels of instruction sets of the compiled code: several only if ranks have different ones.
    pub targets: Vec<String>,
    /// Counters with their names. Bypass reasons ([`Bypass::name`]) are among them only if their
    /// counter is not 0.
    pub totals: Vec<(Cow<'static, str>, u64)>,
    /// Remarks for the user that no counter expresses.
    pub notes: Vec<String>,
    /// Datatypes of the program, those with the most bytes first.
    pub types: Vec<TypeRow>,
}

/// Record of what was done with one datatype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeRow {
    /// The type as text, which may be cut.
    pub name: String,
    /// Size of the type: the number of packed bytes of an instance.
    pub size: i64,
    /// Bytes from the first to the last byte of an instance.
    pub true_extent: i64,
    /// Layout class of the policy.
    pub class: String,
    /// Hash of the type, which distinguishes types whose texts are cut and equal.
    pub hash: String,
    /// Counters, byte counts and times of the type, in the order of their names in [`COUNTS`].
    pub counts: [u64; COUNTS.len()],
    /// How compiled code moves the bytes of the type: for each direction (pack or unpack) in which
    /// it was used, one line that sums up the plan of the code.
    pub schedules: Vec<String>,
    /// Results of timing the type, and what follows from them.
    pub timings: Vec<String>,
}

/// Names of the counters, byte counts and times of a type, in the order of `TypeRow::counts`.
pub const COUNTS: [&str; 9] = [
    "commits",
    "packs",
    "unpacks",
    "bytes_packed",
    "bytes_unpacked",
    "pack_us",
    "unpack_us",
    "hook_bytes_packed",
    "hook_bytes_unpacked",
];

impl TypeRow {
    /// Returns the number of bytes that were packed and the number of bytes that were unpacked.
    /// Both include the bytes that compiled code moved inside the MPI library.
    fn moved(&self) -> [u64; 2] {
        let [_, _, _, packed, unpacked, _, _, hook_packed, hook_unpacked] = self.counts;
        [packed + hook_packed, unpacked + hook_unpacked]
    }
}

impl Report {
    /// Returns a total by its name, 0 if there is none of that name.
    #[inline(never)] // A copy for each name would make the preload library several KiB larger.
    pub fn total(&self, name: &str) -> u64 {
        self.totals.iter().find(|(known, _)| known == name).map_or(0, |&(_, n)| n)
    }

    /// Sorts the types by the bytes that were moved, most bytes first.
    pub fn sort_types(&mut self) {
        self.types.sort_by_key(|row| Reverse(row.moved().iter().sum::<u64>()));
    }

    /// Returns the number of bytes that compiled code moved inside the MPI library.
    #[inline(never)]
    fn hook_bytes(&self) -> u64 {
        ["hook_bytes_packed", "hook_bytes_unpacked", "hook_bytes_copied"].iter().map(|n| self.total(n)).sum()
    }

    /// Returns one sentence that says how much was converted.
    pub fn summary(&self) -> String {
        let [converted, bypassed] = ["calls_converted", "calls_bypassed"].map(|name| self.total(name));
        let buffers = self.total("packs") + self.total("unpacks");
        let all = counted(converted + bypassed, "call");
        let moved = match self.hook_bytes() {
            0 => String::new(),
            bytes => format!(", and moved {} inside the MPI library", size(bytes)),
        };
        match (converted, buffers, bypassed) {
            _ if self.ranks == 0 => {
                "No rank has reported: the library was not loaded, or the ranks ended too early.".to_owned()
            }
            (0, 0, _) if self.modes == ["off"] && moved.is_empty() => {
                "ddtc converted nothing: DDTC_MODE is off.".to_owned()
            }
            (0, 0, 0) if moved.is_empty() => {
                "ddtc converted nothing: no call had a derived datatype.".to_owned()
            }
            (0, 0, 0) => {
                let bytes = size(self.hook_bytes());
                format!("ddtc moved {bytes} inside the MPI library, and saw no call with a derived datatype.")
            }
            (0, 0, _) => format!("ddtc converted none of {all} with derived datatypes{moved}."),
            // A buffer is counted when it is packed or unpacked, and a call only when it has
            // succeeded. So if there are buffers and no calls, the calls failed or are under way.
            (0, _, _) => format!(
                "ddtc converted calls that failed or are under way, and none of {all} with derived datatypes{moved}."
            ),
            _ => format!("ddtc converted {converted} of {all} with derived datatypes{moved}."),
        }
    }

    /// Returns the text of the report: at most [`LINES`] lines of at most [`WIDTH`] columns.
    pub fn text(&self) -> String {
        let mut screen = Screen::default();
        screen.line(&self.summary());
        if self.ranks > 0 {
            screen.line(&format!(
                "{}: {}; mode {}, target {}",
                if self.process.is_empty() { counted(self.ranks, "rank") } else { self.process.clone() },
                self.libraries.join(" and "),
                self.modes.join(" and "),
                self.targets.join(" and "),
            ));
            self.write_converted(&mut screen);
            self.write_bypassed(&mut screen);
            self.write_gain(&mut screen);
        }
        // The remaining lines are for types and notes. Notes may be long, so they leave
        // `MIN_TYPE_LINES` lines for the types, if there are that many. The types get all lines
        // that the notes do not need.
        let room = LINES - 1 - screen.lines;
        let moved: Vec<&TypeRow> = self.types.iter().filter(|row| row.moved() != [0; 2]).collect();
        let wanted = if moved.is_empty() { 0 } else { 1 + moved.len() };
        let notes = self.note_lines(room - wanted.min(MIN_TYPE_LINES));
        write_types(&mut screen, &moved, room - notes.len());
        for (i, note) in notes.iter().enumerate() {
            screen.item(if i == 0 { "Notes" } else { "" }, note);
        }
        screen.line("All numbers, types and timings: --report FILE.json, or DDTC_REPORT=FILE.json.");
        screen.text
    }

    /// Writes how much was converted: by all calls, of these by staging buffers, and inside the MPI
    /// library.
    fn write_converted(&self, screen: &mut Screen) {
        let [packs, unpacks] = ["packs", "unpacks"].map(|name| self.total(name));
        if packs + unpacks > 0 {
            screen.item(
                "Converted",
                &format!(
                    "{}: {} of {} in {}, {} of {} in {}",
                    counted(self.total("calls_converted"), "call"),
                    counted(packs, "pack"),
                    size(self.total("bytes_packed")),
                    time(self.total("pack_us")),
                    counted(unpacks, "unpack"),
                    size(self.total("bytes_unpacked")),
                    time(self.total("unpack_us")),
                ),
            );
            let [packed, unpacked] = ["messages_packed", "messages_unpacked"].map(|name| self.total(name));
            if packed + unpacked > 0 {
                let packed = counted(packed, "pack");
                let text =
                    format!("of these {packed} and {} by staging buffers", counted(unpacked, "unpack"));
                screen.item("", &text);
            }
        }
        if self.hook_bytes() > 0 {
            let [packed, unpacked, copied] =
                ["hook_bytes_packed", "hook_bytes_unpacked", "hook_bytes_copied"]
                    .map(|n| size(self.total(n)));
            let head = if packs + unpacks > 0 { "" } else { "Converted" };
            let text =
                format!("inside the MPI library: {packed} packed, {unpacked} unpacked, {copied} copied");
            screen.item(head, &text);
        }
    }

    /// Writes why calls were bypassed, the most frequent reasons first.
    fn write_bypassed(&self, screen: &mut Screen) {
        // Reasons with equal counts keep the order of `Bypass::ALL`, because the sort is stable.
        let mut reasons: Vec<(u64, Bypass)> =
            Bypass::ALL.iter().map(|&why| (self.total(why.name()), why)).filter(|&(n, _)| n > 0).collect();
        reasons.sort_by_key(|&(n, _)| Reverse(n));
        for (i, &(n, why)) in reasons.iter().take(MAX_REASONS).enumerate() {
            let phrase = match why.phrase().strip_prefix("were ") {
                Some(rest) if n == 1 => format!("was {rest}"),
                _ => why.phrase().to_owned(),
            };
            screen.item(if i == 0 { "Bypassed" } else { "" }, &format!("{} {phrase}", counted(n, "call")));
        }
        if let Some(others) = reasons.get(MAX_REASONS..).filter(|others| !others.is_empty()) {
            let n = others.iter().map(|&(n, _)| n).sum();
            screen.item("", &format!("{} for other reasons", counted(n, "call")));
        }
    }

    /// Writes the time that was gained and spent, the number of comparisons and of differences that
    /// they found, and the faults of ddtc.
    fn write_gain(&self, screen: &mut Screen) {
        let [saved, spent] = ["saved_us", "overhead_us"].map(|name| self.total(name));
        if saved > 0 {
            screen.item("Gain", &format!("{} saved, as estimated", time(saved)));
        }
        if spent > 0 {
            screen.item("Overhead", &format!("{} for decoding, compiling and timing types", time(spent)));
        }
        if self.total("checks") > 0 {
            let [checks, known, other] =
                ["checks", "known_faults_of_mpi", "other_differences_of_mpi"].map(|name| self.total(name));
            let checks = counted(checks, "comparison");
            screen.item("Checks", &format!("{checks}: {known} known and {other} other differences of MPI"));
        }
        let faults = ["faults_of_ddtc", "fallbacks", "panics"].map(|name| (self.total(name), name));
        let faults: Vec<String> =
            faults.iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{name} {n}")).collect();
        if !faults.is_empty() {
            let faults = faults.join(", ");
            screen.item(
                "Faults",
                &format!("{faults}: the program's bytes are right nevertheless; please report it"),
            );
        }
    }

    /// Returns the lines of the notes, at most `room`.
    fn note_lines(&self, room: usize) -> Vec<String> {
        let unfinished = match self.unfinished {
            0 => None,
            _ if self.ranks == 1 => Some("MPI was not finalized when this was written.".to_owned()),
            n => Some(format!(
                "{n} of {} wrote this before they had finalized MPI.",
                counted(self.ranks, "rank")
            )),
        };
        let mut lines = Vec::new();
        for note in unfinished.iter().chain(&self.notes) {
            wrap(note, WIDTH - INDENT, &mut lines);
        }
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push(format!("... ({} in all)", counted(self.notes.len() as u64, "note")));
        }
        lines
    }

    /// Returns the whole report as JSON. Each total stands on a line of its own, and so does each
    /// type.
    pub fn json(&self) -> String {
        // First come the fields of the whole report: numbers, texts and lists of texts.
        let mut out = format!("{{\n  \"ddtc_report\": {FORMAT},\n  \"summary\": ");
        write_string(&mut out, &self.summary());
        let _ = write!(out, ",\n  \"ranks\": {},\n  \"unfinished\": {}", self.ranks, self.unfinished);
        out.push_str(",\n  \"process\": ");
        write_string(&mut out, &self.process);
        for (name, texts) in [
            ("libraries", &self.libraries),
            ("modes", &self.modes),
            ("targets", &self.targets),
            ("notes", &self.notes),
        ] {
            let _ = write!(out, ",\n  \"{name}\": ");
            write_list(&mut out, texts, ["\n    ", "\n  "]);
        }
        // The totals are one object, whose names are those of the counters. The types are a list of
        // objects with the numbers, schedules and timings of one type each.
        out.push_str(",\n  \"totals\": {");
        for (i, (name, n)) in self.totals.iter().enumerate() {
            let _ = write!(out, "{}\n    \"{name}\": {n}", if i == 0 { "" } else { "," });
        }
        out.push_str("\n  },\n  \"types\": [");
        for (i, row) in self.types.iter().enumerate() {
            out.push_str(if i == 0 { "\n    {\"type\": " } else { ",\n    {\"type\": " });
            write_string(&mut out, &row.name);
            let _ = write!(out, ", \"size\": {}, \"true_extent\": {}", row.size, row.true_extent);
            for (name, text) in [("class", &row.class), ("hash", &row.hash)] {
                let _ = write!(out, ", \"{name}\": ");
                write_string(&mut out, text);
            }
            for (name, n) in COUNTS.iter().zip(row.counts) {
                let _ = write!(out, ", \"{name}\": {n}");
            }
            for (name, texts) in [("schedules", &row.schedules), ("timings", &row.timings)] {
                let _ = write!(out, ", \"{name}\": ");
                write_list(&mut out, texts, ["", ""]);
            }
            out.push('}');
        }
        out.push_str("\n  ]\n}\n");
        out
    }
}

/// Writes the types with the most bytes, in at most `room` lines.
fn write_types(screen: &mut Screen, types: &[&TypeRow], room: usize) {
    let Some(rows) = room.checked_sub(1).filter(|&rows| rows > 0 && !types.is_empty()) else { return };
    // If there are more types than lines, the last line says how many types are not shown.
    let shown = if types.len() > rows { rows - 1 } else { types.len() };
    screen.item("Types", &format!("{:>9} {:>9}", "packed", "unpacked"));
    for row in &types[..shown] {
        let [packed, unpacked] = row.moved().map(size);
        screen.item("", &format!("{packed:>9} {unpacked:>9}  {}", row.name));
    }
    if types.len() > shown {
        screen.item("", &format!("and {}", counted((types.len() - shown) as u64, "other type")));
    }
}

/// Lines of text that are cut to the width of a screen.
#[derive(Default)]
struct Screen {
    text: String,
    lines: usize,
}

impl Screen {
    fn line(&mut self, line: &str) {
        match line.char_indices().nth(WIDTH) {
            Some(_) => {
                let end = line.char_indices().nth(WIDTH - 3).map_or(line.len(), |(at, _)| at);
                let _ = writeln!(self.text, "{}...", &line[..end]);
            }
            None => {
                let _ = writeln!(self.text, "{line}");
            }
        }
        self.lines += 1;
    }

    /// Writes a line of a section. `head` is the heading of the section in its first line, and
    /// empty in the others.
    #[inline(never)]
    fn item(&mut self, head: &str, text: &str) {
        self.line(&format!("{head:<INDENT$}{text}"));
    }
}

/// Breaks a text into lines and adds these to `lines`. A line has at most `width` columns, unless
/// it is a single longer word.
#[inline(never)]
fn wrap(text: &str, width: usize, lines: &mut Vec<String>) {
    let before = lines.len();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines[before..].last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
}

/// Returns a number with its noun, in the plural unless the number is 1.
#[inline(never)]
fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Returns a number of bytes in the largest unit that is not larger than the number, with one
/// decimal that is rounded down.
#[inline(never)]
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(bits, _)| bytes >> bits > 0) {
        // The decimal is computed with integers, because formatting of floating-point numbers would
        // make the preload library larger.
        Some((bits, unit)) => format!("{}.{} {unit}", bytes >> bits, (bytes % (1 << bits) * 10) >> bits),
        None => format!("{bytes} B"),
    }
}

/// Returns a number of microseconds in a unit that suits it, with one decimal that is rounded down.
#[inline(never)]
fn time(us: u64) -> String {
    match us {
        0..1000 => format!("{us} us"),
        1000..1_000_000 => format!("{}.{} ms", us / 1000, us % 1000 / 100),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

/// Writes a list of strings as JSON. `before` is written before each string, and `end` before the
/// closing bracket of a list that is not empty.
fn write_list(out: &mut String, texts: &[String], [before, end]: [&str; 2]) {
    out.push('[');
    for (i, text) in texts.iter().enumerate() {
        if i > 0 {
            out.push_str(if before.is_empty() { ", " } else { "," });
        }
        out.push_str(before);
        write_string(out, text);
    }
    out.push_str(if texts.is_empty() { "" } else { end });
    out.push(']');
}

/// Writes a string as JSON (RFC 8259, section 7).
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(totals: &[(&'static str, u64)]) -> Report {
        let totals = totals.iter().map(|&(name, n)| (name.into(), n)).collect();
        Report { ranks: 1, modes: vec!["lazy".into()], totals, ..Report::default() }
    }

    #[test]
    fn the_summary_is_that_of_the_counters() {
        let cases: [(&[(&'static str, u64)], &str); 7] = [
            (&[], "ddtc converted nothing: no call had a derived datatype."),
            (&[("calls_bypassed", 1)], "ddtc converted none of 1 call with derived datatypes."),
            (
                &[("calls_converted", 2), ("calls_bypassed", 40), ("packs", 604), ("unpacks", 1)],
                "ddtc converted 2 of 42 calls with derived datatypes.",
            ),
            (
                &[("calls_bypassed", 7), ("hook_bytes_unpacked", 3 << 19)],
                "ddtc converted none of 7 calls with derived datatypes, and moved 1.5 MiB inside the MPI library.",
            ),
            (
                &[("calls_converted", 1), ("packs", 1), ("hook_bytes_copied", 10)],
                "ddtc converted 1 of 1 call with derived datatypes, and moved 10 B inside the MPI library.",
            ),
            (
                &[("hook_bytes_packed", 1 << 10)],
                "ddtc moved 1.0 KiB inside the MPI library, and saw no call with a derived datatype.",
            ),
            (
                &[("calls_bypassed", 3), ("packs", 9)],
                "ddtc converted calls that failed or are under way, and none of 3 calls with derived datatypes.",
            ),
        ];
        for (totals, summary) in cases {
            assert_eq!(report(totals).summary(), summary);
        }
        let off = Report { modes: vec!["off".into()], ..report(&[("calls_bypassed", 9)]) };
        assert_eq!(off.summary(), "ddtc converted nothing: DDTC_MODE is off.");
        assert!(Report::default().summary().starts_with("No rank has reported: "));
    }

    /// Returns a report with many entries of every kind, some of them longer than a line.
    fn long() -> Report {
        let mut long = report(&[
            ("calls_converted", 1),
            ("packs", 1),
            ("messages_unpacked", 1),
            ("hook_bytes_packed", 1),
            ("saved_us", 1_234_567),
            ("overhead_us", 12_345),
            ("checks", 1),
            ("panics", 1),
        ]);
        for (i, why) in Bypass::ALL.into_iter().enumerate() {
            long.totals.push((why.name().into(), i as u64 + 1));
        }
        long.unfinished = 1;
        long.libraries.push("Open MPI ".repeat(20));
        long.notes = (0..30).map(|i| format!("note {i} {}", "word ".repeat(50))).collect();
        for i in 0..20 {
            let mut counts = [0; COUNTS.len()];
            counts[3] = i;
            long.types.push(TypeRow { name: "ä".repeat(200), counts, ..TypeRow::default() });
        }
        long.sort_types();
        long
    }

    #[test]
    fn the_text_fits_a_screen() {
        let long = long();
        for (notes, types) in [(30, 20), (0, 20), (1, 20), (30, 0), (2, 1), (0, 0)] {
            let mut report = long.clone();
            report.notes.truncate(notes);
            report.types.truncate(types);
            let text = report.text();
            assert!(text.lines().count() <= LINES, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            assert!(text.starts_with(&report.summary()), "{text}");
            assert_eq!(text.contains("\nTypes  "), types > 0, "{text}");
            assert!(text.contains("\nNotes      MPI was not finalized when this was written."), "{text}");
            assert!(text.contains("\nGain       1.2 s saved, as estimated"), "{text}");
            assert!(text.contains("\nBypassed   19 calls were bypassed for"), "{text}");
        }
        assert_eq!(Report::default().text().lines().count(), 2);
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(
            [0, 1023, 1024, 1 << 20, 5 << 29].map(size),
            ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "2.5 GiB"]
        );
        assert_eq!([0, 999, 1500, 2_000_000].map(time), ["0 us", "999 us", "1.5 ms", "2.0 s"]);
    }

    #[test]
    fn json_has_everything() {
        let mut report = report(&[("packs", 2), ("panics", 0)]);
        report.notes = vec!["a \"b\"\\\n".into(), "ü".into()];
        report.types = vec![TypeRow {
            name: "vector(2,1,2,int)".into(),
            size: 8,
            true_extent: 12,
            class: "strided-short".into(),
            hash: "0a1b2c3d".into(),
            counts: [1, 2, 3, 4, 5, 6, 7, 8, 9],
            schedules: vec!["pack: x".into()],
            timings: Vec::new(),
        }];
        let json = report.json();
        for part in [
            "{\n  \"ddtc_report\": 1,\n  \"summary\": \"ddtc converted calls that failed",
            ",\n  \"ranks\": 1,\n  \"unfinished\": 0,\n  \"process\": \"\",\n  \"libraries\": [],\n",
            "  \"notes\": [\n    \"a \\\"b\\\"\\\\\\u000a\",\n    \"ü\"\n  ],\n",
            "  \"totals\": {\n    \"packs\": 2,\n    \"panics\": 0\n  },\n",
            "    {\"type\": \"vector(2,1,2,int)\", \"size\": 8, \"true_extent\": 12, \"class\": \"strided-short\", \
             \"hash\": \"0a1b2c3d\", \"commits\": 1, \"packs\": 2,",
            "\"hook_bytes_unpacked\": 9, \"schedules\": [\"pack: x\"], \"timings\": []}\n  ]\n}\n",
        ] {
            assert!(json.contains(part), "{part}\n{json}");
        }
    }
}
