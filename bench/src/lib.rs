//! `ddtc bench`: compiled code in comparison with the interpreter of nests, the reference
//! interpreter, hand-written C loops and memcpy.
//!
//! For each layout and size, the variants are interleaved in one process that is pinned to a core,
//! and the medians of their batches are reported. Each variant's bytes are first checked against
//! the reference interpreter. `csource.rs` describes the hand-written loops.
#![deny(unsafe_code)]

mod assembly;
mod bound;
mod break_even;
mod bytes;
mod called;
mod charts;
mod commit;
mod compare;
mod compile;
mod csource;
mod direct;
mod external;
mod growth;
mod hand;
mod huge;
mod instructions;
mod kinds;
mod layouts;
mod loops;
pub mod machine;
mod measure;
mod mpi_source;
mod native;
mod overview;
mod pieces;
mod places;
mod reductions;
mod result;
mod segments;
mod strides;
pub mod svg;
mod sweep;
mod table;
mod tables;
mod wire;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ddtc::internal::corpus::{self, CorpusEntry, Size};
use ddtc::internal::datatype::Named;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::target::{Family, Level};
use indicatif::{ProgressBar, ProgressStyle};

use bound::{Footprint, Roof};
use csource::Style;
use layouts::{Row, Sizes};
use machine::Machine;
use measure::Effort;
use native::{HandLoop, Subject};
use result::{Column, Measured, Times};

pub use table::bytes as bytes_in_words;

/// Arguments of `ddtc bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc bench --quick                    all layouts, a look\n  \
    ddtc bench WRF_x_vec vec_8B.L         some layouts\n  \
    ddtc bench --sweep --svg sweep.svg    every layout from 256 B to 16 MiB, as one picture\n  \
    ddtc bench --strides                  blocks of many lengths at many strides\n  \
    ddtc bench 'vector(100, 3, 7, int)'   a type of your own (no hand-written loop)\n  \
    ddtc bench --runs 5 --record          medians of five runs, recorded below benches/record\n  \
    ddtc bench --compare A.csv B.csv      rows of two records that differ by more than noise\n  \
    ddtc bench --segments --mpicc mpicc   lists of segments, compared with MPICH's own\n  \
    ddtc bench --break-even --mpicc mpicc when compiling pays under this MPI library")]
pub struct Args {
    /// Layouts to measure: each argument is the name of a layout, a name without its size, a part
    /// of names, or a datatype in text notation [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Measure in few and short batches: checks the bytes of everything and gives rough figures in
    /// less than a minute
    #[arg(long)]
    quick: bool,
    /// Measure every layout at payloads from 256 B to 16 MiB; the picture of --svg then shows the
    /// time of compiled code relative to that of the best C loop, over the payload
    #[arg(long, conflicts_with = "corpus")]
    sweep: bool,
    /// Instead of the application layouts, measure blocks of many lengths at many strides, with few
    /// and with many blocks
    #[arg(long, conflicts_with_all = ["corpus", "sweep", "svg"])]
    strides: bool,
    /// Repeat the whole measurement N times and report the median of each figure
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// CPU level of compiled code: baseline, avx2, avx512 or neon [default: DDTC_TARGET, or the
    /// highest of this machine]
    #[arg(long)]
    level: Option<Level>,
    /// Measure the entries of a corpus file instead of the application layouts
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Measure the latency of commits instead of pack and unpack
    #[arg(long, conflicts_with_all = ["names", "sweep", "corpus", "svg"])]
    commit: bool,
    /// Compare commits of types with long lists of arguments with memcpy of these lists and with
    /// the work that no commit can avoid, and count the page faults of each
    #[arg(long, conflicts_with_all = ["sweep", "corpus", "svg", "commit", "growth"])]
    tables: bool,
    /// Measure how much time and memory a commit takes for each constructor argument, as datatypes
    /// grow
    #[arg(long, conflicts_with_all = ["names", "sweep", "corpus", "svg", "commit"])]
    growth: bool,
    /// Compare packing in external32 with packing without conversion and with memcpy, direct copies
    /// with pack and unpack, and reductions with C loops; with --mpicc, compare only external32,
    /// with MPI_Pack_external of the MPI library
    #[arg(long, group = "mpi", conflicts_with_all = ["names", "sweep", "corpus", "svg", "commit", "growth", "pieces"])]
    kinds: bool,
    /// Measure how fast wire forms (datatypes as bytes for another process) are written and read,
    /// signatures compared, and the elements of truncated messages counted
    #[arg(long, conflicts_with_all = ["names", "sweep", "corpus", "svg", "commit", "growth"])]
    wire: bool,
    /// Compare packing and unpacking a message in pieces of 64 KiB and of 4 KiB, in order and
    /// shuffled, with packing and unpacking the whole message
    #[arg(long, conflicts_with_all = ["sweep", "svg", "commit", "growth"])]
    pieces: bool,
    /// Measure a lower bound for the time of short calls: the best C loop, called after reading as
    /// many cache lines as a call through a committed type reads
    #[arg(long, conflicts_with_all = ["sweep", "corpus", "svg", "commit", "growth", "pieces"])]
    called: bool,
    /// Compare compiled code with the fastest of several loops in x86-64 assembly for each layout,
    /// which shows whether the machine bounds the time of a layout
    #[arg(long, conflicts_with_all = ["sweep", "corpus", "svg", "commit", "growth", "pieces", "called"])]
    assembly: bool,
    /// Measure packs of 256 MiB by one thread and by two threads, with plain and with streaming
    /// stores
    #[arg(long, conflicts_with_all = ["names", "sweep", "corpus", "svg", "commit"])]
    huge: bool,
    /// Measure how fast ddtc counts, finds and lists segments; if --mpicc names the compiler of an
    /// MPICH, measure the functions of MPICH for this too
    #[arg(long, group = "mpi", conflicts_with_all = ["names", "sweep", "corpus", "svg", "commit", "growth", "pieces", "huge"])]
    segments: bool,
    /// Find the number of packs after which a commit by the preload library has paid off, compared
    /// with commit and packs by the unmodified MPI library
    #[arg(long, group = "mpi", conflicts_with_all = ["sweep", "svg", "commit", "huge", "instructions"])]
    break_even: bool,
    /// Compiler of the MPI library for --break-even [default there: mpicc], --segments and --kinds
    #[arg(long, requires = "mpi")]
    mpicc: Option<OsString>,
    /// Path of the preload library for --break-even, if it is not next to this program or in ../lib
    #[arg(long, value_name = "FILE", requires = "break_even")]
    library: Option<PathBuf>,
    /// Instead of measuring time, count the instructions of one call of each of a few kernels,
    /// under valgrind
    #[arg(long, conflicts_with_all = ["sweep", "corpus", "svg", "commit"])]
    instructions: bool,
    /// Measure nothing, but write layouts.h into this folder: functions that build the layouts by
    /// MPI calls, and C loops that move their bytes, for programs that measure an MPI library
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["names", "sweep", "corpus", "svg", "csv", "record"])]
    mpi_source: Option<PathBuf>,
    /// Instead of measuring, draw the picture of the README into the file of --svg, from the
    /// records whose file names begin with this text
    #[arg(long, value_name = "STEM", requires_all = ["svg", "applications"], conflicts_with_all = ["names", "csv", "record"])]
    overview: Option<String>,
    /// For --overview: the text with which the file names of the records of applications begin
    #[arg(long, value_name = "STEM", requires = "overview")]
    applications: Option<String>,
    /// Instead of measuring, compare two records of one machine, and print the rows that differ by
    /// more than noise
    #[arg(long, num_args = 2, value_names = ["BEFORE.csv", "AFTER.csv"], conflicts_with_all = ["names", "csv", "svg", "record"])]
    compare: Vec<PathBuf>,
    /// Write the measured figures into this file, as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the results into this file: bandwidth over payload, and a heat map of times relative to
    /// compiled code
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the CSV and SVG files below benches/record/MACHINE/, with names that begin with
    /// DATE-COMMIT; run this in the source tree
    #[arg(long)]
    record: bool,
    /// Only time the first commit of this process (used by --commit, which starts processes for it)
    #[arg(long, hide = true)]
    first_commit: bool,
    /// Only call the kernel of the one named layout this many times (used by --instructions, which
    /// starts processes for it)
    #[arg(long, hide = true, value_name = "N")]
    calls: Option<u32>,
    /// The direction of --calls
    #[arg(long, hide = true, default_value = "pack")]
    calls_of: String,
    /// Command that launches one process of --break-even, after `--`, if the MPI library needs a
    /// launcher
    #[arg(last = true, requires = "break_even")]
    launch: Vec<OsString>,
}

/// Runs the subcommand.
///
/// # Errors
/// Returns an error for unknown names, for a wrong setting of the CPU level or of the family of
/// processors, if there is no C compiler, if bytes differ, or if a file cannot be read or written.
pub fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let (Some(stem), Some(applications), Some(path)) = (&args.overview, &args.applications, &args.svg) {
        return Ok(ddtc::internal::files::save(path, overview::picture(stem, applications)?)?);
    }
    if let [before, after] = args.compare.as_slice() {
        print!("{}", compare::records(before, after)?);
        return Ok(());
    }
    // Most of what follows depends on the CPU level and the family of processors, so a wrong
    // setting of either is reported here. The hidden options serve processes that the benchmark
    // itself starts.
    let level = Level::asked(args.level)?;
    Family::asked()?;
    if args.first_commit {
        println!("{}", commit::first(level)?.as_nanos());
        return Ok(());
    }
    if let (Some(calls), [name]) = (args.calls, args.names.as_slice()) {
        let direction = if args.calls_of == "unpack" { Direction::Unpack } else { Direction::Pack };
        return instructions::call(name, direction, calls, level);
    }
    if let Some(folder) = &args.mpi_source {
        let path = folder.join("layouts.h");
        let text = mpi_source::with_loops(&layouts::rows(Sizes::Corpus))?;
        return Ok(fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?);
    }
    if args.record && !Path::new("benches/record").is_dir() {
        return Err("there is no directory benches/record here: run --record in the source tree".into());
    }
    // The process is pinned to one core, except for the measurement that uses two threads.
    let machine = Machine::read(if args.huge { None } else { native::pin() });
    println!("machine: {machine}; level {level}");
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build, so its figures mean nothing; bytes are checked nevertheless");
    }
    match alone(args, &machine, level)? {
        Some((suffix, text)) => write(args, &machine, suffix, &text, None),
        None => corpus(args, &machine, level),
    }
}

/// Runs a measurement that needs no entries of the corpus, such as that of commits, if the
/// arguments ask for one. Returns the suffix of the file name of its record, and the text of the
/// record.
fn alone(
    args: &Args,
    machine: &Machine,
    level: Level,
) -> Result<Option<(&'static str, String)>, Box<dyn Error>> {
    if args.commit {
        let text = commit::run(level, args.quick)?;
        return Ok(Some(("-commit", text)));
    }
    if args.tables {
        let text = tables::run(level, args.quick, &args.names)?;
        return Ok(Some(("-tables", text)));
    }
    if args.growth {
        let text = growth::run()?;
        return Ok(Some(("-growth", text)));
    }
    if args.wire {
        let text = wire::run(args.quick)?;
        return Ok(Some(("-wire", text)));
    }
    if args.segments {
        let text = segments::run(args.mpicc.as_deref(), args.quick)?;
        let text = format!("# {machine}\n# {} {}\n{text}", machine::today(), machine::commit());
        return Ok(Some(("-segments", text)));
    }
    if args.huge {
        let text = huge::run(level, args.quick)?;
        return Ok(Some(("-huge", text)));
    }
    if args.instructions {
        let text = instructions::run(level)?;
        return Ok(Some(("-instructions", text)));
    }
    Ok(None)
}

/// Measures entries of the corpus.
fn corpus(args: &Args, machine: &Machine, level: Level) -> Result<(), Box<dyn Error>> {
    let tasks = select(args)?;
    // Each of the options `--kinds`, `--called`, `--assembly`, `--pieces` and `--break-even`
    // replaces the measurement of pack and unpack by another one, which has records of its own.
    if args.kinds {
        if let Some(mpicc) = &args.mpicc {
            let text = external::run(level, args.quick, mpicc)?;
            return write(args, machine, "-external32", &text, None);
        }
        let text = kinds::run(level, args.quick)?;
        write(args, machine, "-kinds", &text, None)?;
        let text = direct::run(level, args.quick)?;
        write(args, machine, "-direct", &text, None)?;
        let text = reductions::run(level, args.quick)?;
        return write(args, machine, "-reductions", &text, None);
    }
    if args.called {
        let rows: Vec<Row> = tasks.iter().filter_map(|t| t.row.clone()).collect();
        let mut loops = hand::build(&rows)?;
        let text = called::run(tasks.iter().map(|t| &t.entry), &mut loops, level, args.quick)?;
        return write(args, machine, "-called", &text, None);
    }
    if args.assembly {
        let rows: Vec<Row> = tasks.iter().filter_map(|t| t.row.clone()).collect();
        let text = assembly::run(&rows, &mut hand::build(&rows)?, level, args.quick)?;
        return write(args, machine, "-assembly", &text, None);
    }
    if args.pieces {
        let text = pieces::run(tasks.iter().map(|t| &t.entry), level, args.quick)?;
        return write(args, machine, "-pieces", &text, None);
    }
    if args.break_even {
        return even(args, machine, level, &tasks);
    }
    // Without such an option, pack and unpack of all selected layouts are measured once for each
    // run, and bytes are checked only in the first run. Each number in the record is the median of
    // the runs.
    let bench = Bench::new(&tasks, args, level);
    let mut runs = Vec::new();
    for run in 0..args.runs {
        runs.push(bench.all(&tasks, run == 0)?);
    }
    let rows = result::median_of_runs(runs);
    print!("{}{}", table::table(&rows), table::summary(&rows));
    let what = format!("{} run(s){}; level {level}", args.runs, if args.quick { ", quick" } else { "" });
    let comments = [machine.to_string(), what, format!("{} {}", machine::today(), machine::commit())];
    let draw = if args.sweep { sweep::picture } else { charts::picture };
    let drawn = args.svg.is_some() || args.record && !args.strides;
    let picture = drawn.then(|| draw(&machine.to_string(), &rows));
    let suffix = match (args.sweep, args.strides) {
        (true, _) => "-sweep",
        (_, true) => "-strides",
        _ => "",
    };
    write(args, machine, suffix, &table::csv(&comments, &rows), picture.as_deref())
}

/// Runs `--break-even`.
fn even(args: &Args, machine: &Machine, level: Level, tasks: &[Task]) -> Result<(), Box<dyn Error>> {
    let entries: Vec<CorpusEntry> = tasks.iter().map(|t| t.entry.clone()).collect();
    let setting = break_even::Setting {
        mpicc: args.mpicc.clone().unwrap_or_else(|| "mpicc".into()),
        library: ddtc_hosts::library::find(args.library.as_deref())?,
        launch: args.launch.clone(),
        level,
        runs: args.runs,
        quick: args.quick,
    };
    let break_even::Record { version, library, csv } = break_even::run(&entries, &setting)?;
    let what =
        format!("{version}; {} run(s){}; level {level}", args.runs, if args.quick { ", quick" } else { "" });
    let csv = format!("# {machine}\n# {what}\n# {} {}\n{csv}", machine::today(), machine::commit());
    write(args, machine, &format!("-break-even-{library}"), &csv, None)
}

/// Writes a record, and its picture if there is one, to the files that the arguments ask for.
fn write(
    args: &Args,
    machine: &Machine,
    suffix: &str,
    csv: &str,
    svg: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    if let Some(path) = &args.csv {
        files.push((path.clone(), csv));
    }
    if let (Some(path), Some(svg)) = (&args.svg, svg) {
        files.push((path.clone(), svg));
    }
    if args.record {
        let directory = Path::new("benches/record").join(machine.slug());
        fs::create_dir_all(&directory)?;
        let stem = format!("{}-{}{suffix}", machine::today(), machine::commit().replace('+', "-changed"));
        files.push((directory.join(format!("{stem}.csv")), csv));
        if let Some(svg) = svg {
            files.push((directory.join(format!("{stem}.svg")), svg));
        }
    }
    for (path, text) in files {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// A layout to be measured, with its hand-written loops if there are any.
struct Task {
    entry: CorpusEntry,
    row: Option<Row>,
}

// Returns the layouts that the arguments select: all layouts of a corpus file or of the built-in
// ones, or those of them that match the given names. Datatypes given as text come after them.
fn select(args: &Args) -> Result<Vec<Task>, Box<dyn Error>> {
    let all: Vec<Task> = match &args.corpus {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            let entries = corpus::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            entries.into_iter().map(|entry| Task { entry, row: None }).collect()
        }
        None => {
            let rows = if args.strides {
                strides::rows()
            } else {
                layouts::rows(if args.sweep { Sizes::Sweep } else { Sizes::Corpus })
            };
            let task = |row: Row| Ok(Task { entry: row.entry()?, row: Some(row) });
            rows.into_iter().map(task).collect::<ddtc::Result<_>>()?
        }
    };
    if args.names.is_empty() {
        return Ok(all);
    }
    // A name selects the layouts with exactly this name or family if there are any, and otherwise
    // all layouts whose names contain it. A name with a parenthesis, or the name of a basic type,
    // is a datatype.
    let mut wanted = vec![false; all.len()];
    let mut own = Vec::new();
    for name in &args.names {
        if name.contains('(') || Named::from_name(name).is_some() {
            own.push(Task { entry: own_type(name)?, row: None });
            continue;
        }
        let exact = |t: &Task| t.entry.name == *name || t.entry.family() == name;
        let part = |t: &Task| t.entry.name.contains(name.as_str());
        let matches: Vec<usize> = if all.iter().any(exact) {
            (0..all.len()).filter(|&i| exact(&all[i])).collect()
        } else {
            (0..all.len()).filter(|&i| part(&all[i])).collect()
        };
        if matches.is_empty() {
            return Err(format!("no layout is called '{name}': `ddtc corpus` lists them").into());
        }
        matches.into_iter().for_each(|i| wanted[i] = true);
    }
    let mut keep = wanted.into_iter();
    let mut tasks: Vec<Task> = all.into_iter().filter(|_| keep.next() == Some(true)).collect();
    tasks.append(&mut own);
    Ok(tasks)
}

/// Returns an entry for a datatype from the command line.
fn own_type(text: &str) -> ddtc::Result<CorpusEntry> {
    let datatype = corpus::datatype(text)?;
    let name: String = text.chars().take(40).collect();
    let (text, comment) = (text.to_owned(), String::new());
    Ok(CorpusEntry {
        name,
        size: Size::Other,
        text,
        datatype,
        count: 1,
        comment,
        bounds: None,
        expected: None,
    })
}

/// Maximum payload in bytes of a small row, if a sweep or a grid of strides is measured. The
/// buffers of small rows are placed at as many addresses as those of rows of size S. The value is
/// somewhat more than the first-level cache holds.
const SMALL: usize = 64 << 10;

/// State that all measurements share.
struct Bench {
    effort: Effort,
    /// Whether rows count as small if their payload has at most [`SMALL`] bytes. Rows of size S
    /// always count as small.
    sized: bool,
    level: Level,
    roof: Roof,
}

impl Bench {
    fn new(tasks: &[Task], args: &Args, level: Level) -> Bench {
        let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
        let footprint = |t: &Task| {
            Subject::fits(&t.entry).map_or(0, |((low, high), payload)| (high - low) as u64 + payload as u64)
        };
        let largest = tasks.iter().map(footprint).max().unwrap_or(0);
        Bench { effort, sized: args.sweep || args.strides, level, roof: Roof::measure(effort, largest) }
    }

    /// Measures all tasks once, and checks bytes if `check` is true, which it is in the first run.
    fn all(&self, tasks: &[Task], check: bool) -> Result<Vec<Measured>, Box<dyn Error>> {
        let bar = ProgressBar::new(tasks.len() as u64 + 1);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")?);
        bar.set_message("cc");
        let rows: Vec<Row> = tasks.iter().filter_map(|t| t.row.clone()).collect();
        let mut loops = hand::build(&rows)?;
        bar.inc(1);
        let mut measured = Vec::new();
        for task in tasks {
            bar.set_message(task.entry.name.clone());
            let hand = loops.remove(&task.entry.name).unwrap_or_default();
            bar.inc(1);
            if let (Err(reason), None) = (Subject::fits(&task.entry), &task.row) {
                if check {
                    bar.suspend(|| println!("{} is not measured: {reason}", task.entry.name));
                }
                continue;
            }
            let row = self.one(&task.entry, hand, check);
            measured.push(row.map_err(|e| format!("{}: {e}", task.entry.name))?);
        }
        bar.finish_and_clear();
        Ok(measured)
    }

    // Measures one layout: checks the bytes of all variants, times them, and adds the model's bound
    // and the latency of a commit.
    fn one(
        &self,
        entry: &CorpusEntry,
        hand: Vec<(Style, HandLoop)>,
        check: bool,
    ) -> Result<Measured, Box<dyn Error>> {
        let engines = Engines::new(self.level);
        let mut subject = Subject::new(entry)?;
        let schedule = subject.add_engine(Column::Compiled, &engines.compiled)?;
        subject.add_engine(Column::Walk, &engines.walk)?;
        subject.add_engine(Column::Interp, &engines.off)?;
        for (style, hand) in hand {
            subject.add_loops(style.column(), hand)?;
        }
        subject.add_memcpy();
        if engines.compiled.counters().fallbacks > 0 {
            return Err("interpreted: the compile failed".into());
        }
        if check {
            bytes::check(&mut subject, Column::Interp)?;
        }
        // The reference interpreter is slow, and ddtc does not compete with it. It is timed only at
        // size S, to show what interpreting costs.
        let columns = subject.columns();
        let timed: Vec<usize> =
            (0..columns.len()).filter(|&v| columns[v] != Column::Interp || entry.size == Size::S).collect();
        let small = entry.size == Size::S || self.sized && subject.payload() <= SMALL;
        let mut times = self.times(&mut subject, &timed, small);
        let footprint = Footprint::from_entry(entry, Subject::fits(entry)?.0)?;
        for direction in Direction::BOTH {
            times[direction as usize].set(Column::Bound, self.roof.bound(&footprint, direction));
        }
        let commit = Some(commit::one(&entry.datatype, self.level, self.effort.commits)?.as_secs_f64() * 1e6);
        Ok(Measured { name: entry.name.clone(), payload: subject.payload() as u64, schedule, commit, times })
    }

    /// Returns the times of the variants `timed` of `subject` for pack and unpack, at several
    /// places of its buffers. The time for few bytes depends on which lines of the first-level
    /// cache the buffers share, and the time for many bytes on the pages that hold them.
    fn times(&self, subject: &mut Subject, timed: &[usize], small: bool) -> [Times; 2] {
        let columns = subject.columns();
        let places = self.effort.places_for(small, subject.bytes());
        places::over_places(subject, timed, places, self.effort).map(|spreads| {
            let mut times = Times::default();
            timed.iter().zip(spreads).for_each(|(&v, spread)| times.spread(columns[v], spread));
            times
        })
    }
}

/// The engines whose columns are measured.
struct Engines {
    compiled: Engine,
    walk: Engine,
    off: Engine,
}

impl Engines {
    fn new(level: Level) -> Engines {
        let engine = |mode| Engine::new(Config { mode, level, both_directions: true, ..Config::default() });
        Engines { compiled: engine(Mode::Commit), walk: engine(Mode::Interpret), off: engine(Mode::Off) }
    }
}
