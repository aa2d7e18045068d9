//! Break-even: the number of packs after which a commit through the preload library has paid for
//! itself. Such a commit compiles code, so it takes longer than a commit by the unmodified MPI
//! library, and each pack by this code saves time over `MPI_Pack` of that library.
//!
//! A C program that builds the layouts with the user's own MPI library is run once for each layout
//! and kind of commit. So each commit is the first of its layout in a process that has seen nothing
//! like it. Bytes are compared before anything is timed. `break_even.c` describes what is timed.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddtc::internal::corpus::{self, CorpusEntry};
use ddtc::internal::datatype::c::literal;
use ddtc::internal::engine::Mode;
use ddtc::internal::methods::*;
use ddtc::internal::target::Level;
use ddtc_hosts::policy::{Family, Library};
use indicatif::ProgressBar;

use crate::measure::median;
use crate::mpi_source::{self, Numbers};

const PROGRAM: &str = include_str!("break_even.c");

/// Target of the project: the maximum number of packs after which the commit of the median layout
/// has paid for itself on MPICH.
const TARGET_PACKS: f64 = 50.0;

/// How the C program `break_even.c`, which measures one layout, is compiled and run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The compiler wrapper of the MPI library.
    pub(crate) mpicc: OsString,
    /// The preload library.
    pub(crate) library: PathBuf,
    /// Command that launches one process. Empty if the MPI library runs processes without a
    /// launcher.
    pub(crate) launch: Vec<OsString>,
    /// CPU level of compiled code.
    pub(crate) level: Level,
    /// Number of processes for each layout and kind of commit.
    pub(crate) runs: u32,
    /// Whether to measure in few and short rounds.
    pub(crate) quick: bool,
}

/// The record for one MPI library.
pub(crate) struct Record {
    /// Version line of the MPI library.
    pub(crate) version: String,
    /// Short name of the MPI library in file names.
    pub(crate) library: &'static str,
    /// The record in CSV, one line for each layout.
    pub(crate) csv: String,
}

/// Measures the break-even of all `entries` under one MPI library, prints a table and returns the
/// record.
///
/// # Errors
/// Returns an error if the C program that measures does not compile or run, if the preload library
/// does not convert its calls, or if the MPI library and the preload library move different bytes.
pub(crate) fn run(entries: &[CorpusEntry], setting: &Setting) -> Result<Record, Box<dyn Error>> {
    let layouts = with_others(entries);
    let folder = ddtc::internal::files::temporary_folder("ddtc-break-even")?;
    let measured = Program::build(&folder, &layouts, setting).and_then(|program| {
        let bar = ProgressBar::new(entries.len() as u64 * (1 + u64::from(setting.runs)));
        let rows = program.measure(entries.len(), &bar);
        bar.finish_and_clear();
        rows
    });
    let (version, rows) = measured?;
    print!("{}{}", table(&rows), summary(&rows));
    let library = match Library::from_version_text(&version).family {
        Family::Mpich => "mpich",
        Family::Intel => "impi",
        Family::OpenMpi => "openmpi",
        Family::Other => "other",
    };
    Ok(Record { version, library, csv: csv(&rows) })
}

/// A layout that the C program measures, and the index of the other size of the same layout, which
/// is likely to have the same shape of plan. `other` is `None` if there is no such layout.
struct Layout {
    entry: CorpusEntry,
    other: Option<usize>,
}

/// Returns a layout for each entry, with the index of the layout that has the same name except for
/// its size (such as `vec_8B.S` and `vec_8B.L`). If only one of the two sizes is among the entries,
/// the other one is taken from the corpus and appended.
fn with_others(entries: &[CorpusEntry]) -> Vec<Layout> {
    let mut all = entries.to_vec();
    let known = corpus::application();
    let mut others = Vec::new();
    for entry in entries {
        let related = |e: &&CorpusEntry| e.family() == entry.family() && e.name != entry.name;
        let place = all.iter().position(|e| related(&e)).or_else(|| {
            all.push(known.iter().find(related)?.clone());
            Some(all.len() - 1)
        });
        others.push(place);
    }
    others.resize(all.len(), None);
    all.into_iter().zip(others).map(|(entry, other)| Layout { entry, other }).collect()
}

/// Returns the text of `layouts.h`: functions that build the datatypes, and the table of all
/// layouts.
///
/// # Errors
/// Returns an error if a layout is empty or does not fit the `int` arguments of `MPI_Pack`.
fn header(layouts: &[Layout]) -> Result<String, Box<dyn Error>> {
    let mut out = String::new();
    let mut rows = String::new();
    for (i, Layout { entry, .. }) in layouts.iter().enumerate() {
        let Numbers { count, low, high, payload } = mpi_source::maker(i, entry, &mut out)?;
        let _ = writeln!(
            rows,
            "    {{make_{i}, {count}, {}, {high}, {payload}}}, /* {} */",
            literal(low),
            entry.name
        );
    }
    let _ = writeln!(out, "static const struct layout layouts[] = {{\n{rows}}};");
    Ok(out)
}

/// The times of one layout. Each is the median over the processes that measured it.
struct Row {
    name: String,
    payload: u64,
    /// Microseconds of a commit. `unmodified` is a commit by the MPI library. The others go through
    /// the preload library: `pack` compiles the code for packing, `both` the code for packing and
    /// unpacking, and `known` is as `pack`, but after the other size of the layout was committed.
    unmodified: f64,
    pack: f64,
    both: f64,
    known: f64,
    /// Nanoseconds of a call, in this order: packing by the MPI library, packing by the preload
    /// library, unpacking by the MPI library, unpacking by the preload library.
    calls: [f64; 4],
    /// The noise of the four call times in percent: for each call, the median absolute deviation
    /// relative to the median. The largest of the four counts.
    noise: f64,
}

impl Row {
    /// Returns the number of packs after which a commit through the preload library has paid for
    /// itself: together these packs save as much time as this commit took longer than one by the
    /// MPI library.
    fn packs(&self) -> Option<f64> {
        break_even(self.pack - self.unmodified, self.calls[0] - self.calls[1])
    }

    /// Returns the number of unpacks after which a commit that compiles both directions has paid
    /// for itself: together these unpacks save as much time as this commit took longer than one by
    /// the MPI library. This is the break-even of a program that only unpacks.
    fn unpacks(&self) -> Option<f64> {
        break_even(self.both - self.unmodified, self.calls[2] - self.calls[3])
    }

    /// Returns the number of packs after which a commit has paid for itself if the process has
    /// committed the other size of the same layout before. Usually such a commit can use the code
    /// of the other size.
    fn known_packs(&self) -> Option<f64> {
        break_even(self.known - self.unmodified, self.calls[0] - self.calls[1])
    }
}

/// Returns the number of calls that together save `extra` microseconds if each saves `saved`
/// nanoseconds: 0 if `extra` is not positive, and `None` if the calls save nothing. Returns NaN if
/// `extra` was not measured.
fn break_even(extra: f64, saved: f64) -> Option<f64> {
    if extra.is_nan() {
        Some(f64::NAN)
    } else if extra <= 0.0 {
        Some(0.0)
    } else {
        (saved > 0.0).then(|| extra * 1e3 / saved)
    }
}

/// The compiled program.
struct Program<'a> {
    path: PathBuf,
    layouts: &'a [Layout],
    setting: &'a Setting,
    /// File into which the preload library writes its report.
    report: PathBuf,
}

impl Program<'_> {
    // Writes and compiles the program in `folder`.
    fn build<'a>(
        folder: &Path,
        layouts: &'a [Layout],
        setting: &'a Setting,
    ) -> Result<Program<'a>, Box<dyn Error>> {
        let (source, path) = (folder.join("break_even.c"), folder.join("break_even"));
        fs::write(&source, PROGRAM)?;
        fs::write(folder.join("layouts.h"), header(layouts)?)?;
        let shown = setting.mpicc.to_string_lossy();
        let out = Command::new(&setting.mpicc).args(["-O2", "-o"]).arg(&path).arg(&source).output();
        let out = out.map_err(|e| format!("{shown}: {e}: name the MPI library's compiler with --mpicc"))?;
        if !out.status.success() {
            return Err(format!("{shown}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)).into());
        }
        Ok(Program { path, layouts, setting, report: folder.join("report.json") })
    }

    /// Measures the first `n` layouts. Returns the version of the MPI library, and a row with the
    /// times of each layout.
    fn measure(&self, n: usize, bar: &ProgressBar) -> Result<(String, Vec<Row>), Box<dyn Error>> {
        let mut version = String::new();
        for i in 0..n {
            version = self.check(i)?;
            bar.inc(1);
        }
        let mut samples: Vec<Samples> = (0..n).map(|_| Samples::default()).collect();
        // All layouts are measured in each run before the next run begins, so that a drift of the
        // machine affects all layouts equally.
        for _ in 0..self.setting.runs {
            for (i, samples) in samples.iter_mut().enumerate() {
                for kind in Samples::KINDS {
                    samples.add(kind, &self.output(kind, i)?).map_err(|e| self.error(i, &e))?;
                }
                bar.inc(1);
            }
        }
        let rows = samples.into_iter().zip(self.layouts).map(|(s, layout)| s.row(&layout.entry)).collect();
        Ok((version, rows))
    }

    /// Checks that the preload library packs and unpacks the same bytes of layout `i` as the MPI
    /// library. Returns the version of the MPI library.
    fn check(&self, i: usize) -> Result<String, Box<dyn Error>> {
        let _ = fs::remove_file(&self.report);
        let text = self.output("check", i)?;
        let report = fs::read_to_string(&self.report).unwrap_or_default();
        // The preload library writes its report as JSON text, in which each total, such as the
        // number of packs, has a line of its own.
        let said = |name: &str| {
            let mut found = report.lines().filter_map(|line| line.trim().strip_prefix(name));
            found.find_map(|number| number.trim_end_matches(',').parse::<u64>().ok())
        };
        let counted = ["\"packs\": ", "\"unpacks\": ", "\"fallbacks\": "].map(said);
        // If the preload library was not loaded or did not convert the calls, the program has
        // compared the MPI library with itself.
        if counted != [Some(1), Some(1), Some(0)] {
            return Err(self.error(i, &format!("the library did not convert it\n{report}")));
        }
        let version = text.lines().find_map(|l| l.strip_prefix("library "));
        Ok(version.ok_or("the program names no MPI library")?.to_owned())
    }

    fn error(&self, i: usize, what: &dyn std::fmt::Display) -> Box<dyn Error> {
        format!("{}: {what}", self.layouts[i].entry.name).into()
    }

    /// Runs the C program on layout `i` in a new process and returns its standard output. `kind` is
    /// `check` or the kind of commit to measure.
    fn output(&self, kind: &str, i: usize) -> Result<String, Box<dyn Error>> {
        let mut words = self.setting.launch.iter().cloned();
        let mut command = Command::new(words.next().unwrap_or_else(|| "env".into()));
        command.args(words);
        if !self.setting.launch.is_empty() {
            command.arg("env");
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DDTC_")) {
            command.env_remove(name);
        }
        // The command `env` sets the variables only in the process that is measured. If the
        // launcher inherited them, its own processes would load the preload library too, which they
        // do not need.
        let mut set = |name: &str, value: &std::ffi::OsStr| {
            let mut word = OsString::from(format!("{name}="));
            word.push(value);
            command.arg(word);
        };
        set("LD_PRELOAD", self.setting.library.as_os_str());
        // In the mode `commit` every commit compiles code, and the time of such a commit is to be
        // measured. In other modes a layout is compiled after some uses or not at all.
        set("DDTC_MODE", Mode::Commit.name().as_ref());
        set("DDTC_TARGET", self.setting.level.name().as_ref());
        if kind == "check" {
            set("DDTC_REPORT", self.report.as_os_str());
        }
        let other = self.layouts[i].other.map_or("-1".into(), |o| o.to_string());
        let (rounds, budget) = if self.setting.quick { ("3", "20") } else { ("9", "200") };
        command.arg(&self.path).args([kind, &i.to_string(), &other, rounds, budget]);
        let out = command.output().map_err(|e| self.error(i, &format!("{command:?}: {e}")))?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            return Err(self.error(i, &format!("{kind}: {}\n{said}", out.status)));
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}

/// The times of one layout, as printed by the processes that measured it.
#[derive(Default)]
struct Samples {
    /// Nanoseconds of commits. The key is the kind of commit, which is one of [`Samples::KINDS`],
    /// or `known` for commits that came after a commit of the other size of the same layout.
    commits: HashMap<&'static str, Vec<f64>>,
    calls: [Vec<f64>; 4],
}

impl Samples {
    const KINDS: [&str; 3] = ["unmodified", "pack", "both"];

    // Adds the times that one process printed. `text` is its output, and `kind` the kind of commit
    // that it measured.
    fn add(&mut self, kind: &'static str, text: &str) -> Result<(), String> {
        for line in text.lines() {
            let Some((what, numbers)) = line.split_once(' ') else { continue };
            let kind = match what {
                "commit" => Some(kind),
                "known" => Some("known"),
                "packs" => None,
                // Text of a launcher.
                _ => continue,
            };
            let numbers = numbers.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
            match (kind, numbers.as_deref()) {
                (Some(kind), Ok(&[n])) => self.commits.entry(kind).or_default().push(n),
                (None, Ok(n)) if n.len() == 4 => {
                    self.calls.iter_mut().zip(n).for_each(|(calls, &n)| calls.push(n))
                }
                _ => return Err(format!("'{line}'?")),
            }
        }
        Ok(())
    }

    // Returns the medians of the samples.
    fn row(mut self, entry: &CorpusEntry) -> Row {
        let mut commit = |kind| self.commits.get_mut(kind).map_or(f64::NAN, |v| median(v)) / 1e3;
        let mut noise = 0f64;
        let mut calls = [0.0; 4];
        for (call, samples) in calls.iter_mut().zip(&mut self.calls) {
            *call = median(samples);
            let mut deviations: Vec<f64> = samples.iter().map(|s| (s - *call).abs()).collect();
            noise = noise.max(100.0 * median(&mut deviations) / *call);
        }
        Row {
            name: entry.name.clone(),
            payload: entry.payload().unwrap_or_default(),
            unmodified: commit("unmodified"),
            pack: commit("pack"),
            both: commit("both"),
            known: commit("known"),
            calls,
            noise,
        }
    }
}

fn number(n: Option<f64>, digits: usize) -> String {
    match n {
        None => "never".into(),
        Some(n) if n.is_nan() => "-".into(),
        Some(n) => format!("{n:.digits$}"),
    }
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|m| m.name.len()).max().unwrap_or(0).max(6);
    let mut out = format!(
        "{:width$} {:>9} | {:^31} | {:^19} | {:^19} | {:^23}\n{:width$} {:>9} | {:>7} {:>7} {:>7} {:>7} | {:>9} {:>9} | {:>9} {:>9} | \
         {:>7} {:>7} {:>7}\n",
        "",
        "",
        "commit us",
        "pack ns",
        "unpack ns",
        "pays after",
        "layout",
        "payload",
        "host",
        "pack",
        "both",
        "known",
        "host",
        "library",
        "host",
        "library",
        "packs",
        "unpacks",
        "known"
    );
    // Below the two header lines of the table, each layout has a line with the times of commits,
    // the times of calls, and the numbers of calls after which a commit has paid for itself.
    for r in rows {
        let [hp, p, hu, u] = r.calls;
        let commits = [r.unmodified, r.pack, r.both, r.known].map(|n| number(Some(n), 1));
        let [packs, unpacks, known] = [r.packs(), r.unpacks(), r.known_packs()].map(|n| number(n, 0));
        let _ = writeln!(
            out,
            "{:width$} {:>9} | {:>7} {:>7} {:>7} {:>7} | {hp:>9.0} {p:>9.0} | {hu:>9.0} {u:>9.0} | {packs:>7} {unpacks:>7} {known:>7}",
            r.name,
            super::bytes_in_words(r.payload),
            commits[0],
            commits[1],
            commits[2],
            commits[3],
        );
    }
    out
}

fn csv(rows: &[Row]) -> String {
    let mut out = String::from(
        "name,bytes,host_commit_us,commit_us,commit_both_us,known_commit_us,host_pack_ns,pack_ns,host_unpack_ns,unpack_ns,\
         noise_percent,packs,unpacks,known_packs\n",
    );
    for r in rows {
        let commits = [r.unmodified, r.pack, r.both, r.known].map(|n| number(Some(n), 2)).join(",");
        let calls = r.calls.map(|n| format!("{n:.1}")).join(",");
        let even = [r.packs(), r.unpacks(), r.known_packs()].map(|n| number(n, 1)).join(",");
        let _ = writeln!(out, "{},{},{commits},{calls},{:.1},{even}", r.name, r.payload, r.noise);
    }
    out
}

/// A method of [`Row`] that returns the number of calls after which a commit has paid for itself,
/// such as [`Row::packs`].
type Calls = fn(&Row) -> Option<f64>;

/// Returns the lines below the table. For each kind of break-even they have its median, the number
/// of layouts whose commit has paid for itself after at most [`TARGET_PACKS`] calls, and the number
/// of layouts whose commit never pays for itself.
fn summary(rows: &[Row]) -> String {
    let mut out = String::from("\ncalls until the library's commit has paid for itself\n");
    let what: [(&str, Calls); 3] = [
        ("pack", Row::packs),
        ("unpack, by a program that only unpacks", Row::unpacks),
        ("pack, after the other size of the layout", Row::known_packs),
    ];
    for (name, calls) in what {
        let mut counts: Vec<f64> =
            rows.iter().map(|r| calls(r).unwrap_or(f64::INFINITY)).filter(|n| !n.is_nan()).collect();
        let (soon, never) = (
            counts.iter().filter(|n| **n <= TARGET_PACKS).count(),
            counts.iter().filter(|n| n.is_infinite()).count(),
        );
        let n = counts.len();
        let middle = median(&mut counts);
        let middle = number(Some(middle).filter(|m| m.is_finite() || m.is_nan()), 1);
        let _ = writeln!(
            out,
            "  {name:41} median of {n:>2} layouts {middle:>7}; {soon} within {TARGET_PACKS}, {never} never"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &[(&'static str, &str)]) -> Row {
        let mut samples = Samples::default();
        text.iter().for_each(|(kind, text)| samples.add(kind, text).unwrap());
        samples.row(&corpus::application()[0])
    }

    #[test]
    fn calls_pay_for_a_commit() {
        let r = row(&[
            ("unmodified", "noise of a launcher\ncommit 1000\nknown 3000\npacks 200 100 300 250\n"),
            ("unmodified", "commit 1200\nknown 3200\npacks 200 100 300 250\n"),
            ("unmodified", "commit 800\nknown 2800\npacks 220 110 330 275\n"),
            ("pack", "commit 51000\npacks 200 100 300 250\n"),
            ("both", "commit 101000\npacks 200 100 300 250\n"),
        ]);
        assert_eq!((r.packs(), r.unpacks(), r.known_packs()), (Some(500.0), Some(2000.0), Some(20.0)));
        assert_eq!((r.calls, r.noise), ([200.0, 100.0, 300.0, 250.0], 0.0));
        let free = row(&[
            ("unmodified", "commit 5\npacks 1 2 2 1"),
            ("pack", "commit 5\n"),
            ("both", "commit 900\n"),
        ]);
        assert_eq!((free.packs(), free.unpacks()), (Some(0.0), Some(895.0)));
        let slow = row(&[("unmodified", "commit 5\npacks 1 2 2 1"), ("pack", "commit 6\n")]);
        assert_eq!(slow.packs(), None);
        assert!(slow.known_packs().is_some_and(f64::is_nan));
        assert!(Samples::default().add("unmodified", "packs 1 2 3\n").is_err());
        let (csv, text) = (csv(&[slow]), summary(&[r, free]));
        assert!(csv.ends_with(",never,-,-\n"), "{csv}");
        assert!(text.contains("median of  2 layouts   250.0; 1 within 50, 0 never"), "{text}");
    }

    #[test]
    fn every_layout_is_built_in_c() {
        let entries = corpus::application();
        let layouts = with_others(&entries);
        assert_eq!(layouts.len(), entries.len());
        assert!(layouts.iter().all(|l| l.other.is_some()));
        let text = header(&layouts).unwrap();
        assert_eq!(text.matches("static MPI_Datatype make_").count(), entries.len());
        assert!(text.contains("MPI_Type_vector(2048, 1, 2, MPI_DOUBLE, &t"), "{}", &text[..2000]);
        assert!(text.contains(", 1, 0, 32760, 16384}, /* vec_8B.S */"));
        // If the entries have only one size of a layout, the other size is added from the corpus.
        let one = with_others(&entries[..1]);
        assert_eq!((one.len(), one[0].other, one[1].other), (2, Some(1), None));
        let huge = corpus::parse("huge = 3000000 of contiguous(1000, double)\n").unwrap();
        assert!(header(&with_others(&huge)).is_err());
    }
}
