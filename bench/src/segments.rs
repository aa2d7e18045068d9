//! Segments: how many of them are listed in a second, what counting them costs once a type is
//! committed, and what it costs to start a list at any place.
//!
//! The program `segments.c` times the MPI library, and its comment says which calls are timed. It
//! runs before and after the measurement of the same layout by ddtc, and the better of its two
//! times counts.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ddtc::internal::committed::Committed;
use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::fuzzing::Choices;
use ddtc::internal::methods::*;
use ddtc::internal::segments::{Segment, Segments};

use crate::compile::mpi_program;
use crate::measure::{Effort, interleaved, median};

const PROGRAM: &str = include_str!("segments.c");

/// Number of segments in the array into which each part of a list is written.
const ARRAY: usize = 1024;
/// Number of segments that are looked up one by one, at random places.
const PLACES: usize = 1024;

/// Maximum number of segments of a layout that are listed.
const MAX_LISTED: u64 = 1 << 20;

/// Name and text of each layout. One instance of each is measured.
const LAYOUTS: [(&str, &str); 12] = [
    ("vector", "vector(1000000, 1, 2, double)"),
    ("table", "indexed_block(2, @sum(@uniform(100000, 3, 9, 1)), int)"),
    (
        "blocks",
        "indexed(@uniform(100000, 1, 8, 2), @sum(@uniform(100000, 1, 8, 2), @uniform(100000, 1, 5, 3)), double)",
    ),
    ("structs", "contiguous(100000, resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float])))"),
    ("structs that touch", "contiguous(100000, struct([1, 1], [0, 8], [int, double]))"),
    ("two loops", "hvector(1000, 1, 65536, vector(100, 1, 3, double))"),
    (
        "four loops",
        "hvector(10, 1, 100000000, hvector(10, 1, 1000000, hvector(10, 1, 10000, vector(100, 1, 3, double))))",
    ),
    ("table of 1000 rows", "indexed_block(1, @sum(@uniform(1000, 2, 9, 4)), double)"),
    (
        "table of structs",
        "hindexed_block(1, @scale(@sum(@uniform(10000, 4, 20, 5)), 8), struct([1, 1, 3], [0, 8, 20], [int, double, float]))",
    ),
    ("inside of a cube", "subarray([256, 256, 256], [254, 254, 254], [1, 1, 1], C, double)"),
    ("2^40 bytes", "hvector(1048576, 1, 2147483648, vector(131072, 1, 2, double))"),
    ("2^40 leaves", "@dag(40)"),
];

/// Times of a layout, in nanoseconds.
struct Row {
    segments: u64,
    /// The time of the first count of segments after a commit (`first`), and that of a later count
    /// (`count`).
    first: f64,
    count: f64,
    /// The time for each listed segment: if the list is written into arrays (`list`), and if a
    /// cursor returns the segments one by one (`cursor`).
    list: f64,
    cursor: f64,
    /// The time to get one segment by its index (`at`), and the time to find the index of the
    /// segment that contains a given packed byte (`find`), both at random places.
    at: f64,
    find: f64,
}

/// Times of the MPI library in nanoseconds: of counting the segments, for each segment of a list,
/// and of getting one segment from the middle.
#[derive(Clone, Copy, Debug)]
struct MpiTimes {
    segments: u64,
    count: f64,
    list: f64,
    at: f64,
}

impl MpiTimes {
    /// Joins the results of two runs: each time is the shorter one of the two. The number of
    /// segments is the same in both runs.
    fn minimum(self, other: MpiTimes) -> MpiTimes {
        MpiTimes {
            segments: self.segments,
            count: self.count.min(other.count),
            list: self.list.min(other.list),
            at: self.at.min(other.at),
        }
    }
}

/// Measures how fast ddtc counts, lists and finds the segments of all layouts, which are their
/// contiguous pieces of user memory. Measures the MPI library too if `mpicc` is given. Prints a
/// table and returns the record.
///
/// # Errors
/// Returns the errors of commits and of the compiler. Also returns an error if the sum of the
/// lengths of the listed segments differs from the number of packed bytes between the start of the
/// first and the end of the last of them.
pub(crate) fn run(mpicc: Option<&OsStr>, quick: bool) -> Result<String, Box<dyn Error>> {
    let types = layouts()?;
    let folder = ddtc::internal::files::temporary_folder("ddtc-segments")?;
    measure(&types, mpicc, quick, &folder)
}

/// Returns [`LAYOUTS`] and a nest of 40 loops of two iterations each, that is, with 2^40 leaves.
/// Each loop repeats the datatype inside it, so there is only one node on each level.
fn layouts() -> ddtc::Result<Vec<(&'static str, Datatype)>> {
    let mut all: Vec<(&str, Datatype)> = LAYOUTS
        .iter()
        .map(|(name, text)| Ok((*name, corpus::datatype(text)?)))
        .collect::<ddtc::Result<_>>()?;
    // The distance between the two iterations differs from level to level, so that no two levels
    // can be merged into one loop.
    let nested = (0..40).try_fold(Datatype::named(Named::Int), |t, level| {
        Datatype::hvector(2, 1, t.extent() + 1 + level % 3, &t)
    })?;
    all.push(("40 loops", nested));
    Ok(all)
}

fn measure(
    types: &[(&'static str, Datatype)],
    mpicc: Option<&OsStr>,
    quick: bool,
    folder: &Path,
) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let program = |mpicc| mpi_program(mpicc, types.iter().map(|(_, t)| t), folder, ("segments", PROGRAM));
    let program = mpicc.map(program).transpose()?;
    let mut csv = String::from(
        "layout,segments,first_count_ns,count_ns,list_ns,cursor_ns,at_ns,find_ns,host_segments,host_count_ns,host_list_ns,host_at_ns\n",
    );
    println!("segments; those of the MPI library itself are right of the bar");
    println!(
        "{:18} {:>14} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} | {:>14} {:>12} {:>9} {:>12}",
        "layout",
        "segments",
        "1st count",
        "count",
        "list",
        "cursor",
        "at",
        "find",
        "segments",
        "count",
        "list",
        "at"
    );
    println!(
        "{:18} {:>14} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} | {:>14} {:>12} {:>9} {:>12}",
        "", "", "ns", "ns", "10^6/s", "10^6/s", "ns", "ns", "", "ns", "10^6/s", "ns"
    );
    // The C program that calls the MPI library runs before and after the measurement by ddtc, so
    // that a drift of the machine favours neither ddtc nor the MPI library.
    for (i, (name, t)) in types.iter().enumerate() {
        let run = |program: &PathBuf| run_mpi(program, i);
        let before = program.as_ref().map(run);
        let r = row(t, effort)?;
        let after = program.as_ref().map(run);
        print!(
            "{name:18} {:>14} {:>8.0} {:>8.1} {:>8.0} {:>8.0} {:>6.0} {:>6.0} |",
            r.segments,
            r.first,
            r.count,
            1e3 / r.list,
            1e3 / r.cursor,
            r.at,
            r.find
        );
        let _ = write!(
            csv,
            "{name},{},{:.0},{:.2},{:.3},{:.3},{:.1},{:.1}",
            r.segments, r.first, r.count, r.list, r.cursor, r.at, r.find
        );
        match before.zip(after).map(|(before, after)| Ok::<_, Box<dyn Error>>((before?, after?))) {
            None => {
                println!();
                csv += ",,,,\n";
            }
            Some(Err(error)) => {
                println!(" {error}");
                csv += ",failed,,,\n";
            }
            Some(Ok((a, b))) => {
                let mpi = a.minimum(b);
                println!(
                    " {:>14} {:>12.0} {:>9.2} {:>12.0}",
                    mpi.segments,
                    mpi.count,
                    1e3 / mpi.list,
                    mpi.at
                );
                let _ = writeln!(csv, ",{},{:.1},{:.3},{:.1}", mpi.segments, mpi.count, mpi.list, mpi.at);
            }
        }
    }
    Ok(csv)
}

/// Measures one layout.
fn row(t: &Datatype, effort: Effort) -> Result<Row, Box<dyn Error>> {
    let config = || Config { mode: Mode::Interpret, ..Config::default() };
    let mut first = Vec::new();
    for _ in 0..effort.rounds {
        let committed = Engine::new(config()).commit(t)?;
        let start = Instant::now();
        std::hint::black_box(committed.segments(1)?.len());
        first.push(start.elapsed().as_secs_f64() * 1e9);
    }
    // At most `MAX_LISTED` segments from the middle of the type are listed. Both ways to list them,
    // into arrays and by a cursor, must give as many bytes as lie between the packed positions at
    // which the list begins and ends.
    let committed = Engine::new(config()).commit(t)?;
    let segments = committed.segments(1)?;
    let (len, bytes) = (segments.len(), segments.bytes());
    let listed = len.min(MAX_LISTED);
    let from = (len - listed) / 2;
    let mut c = Choices::from_seed(1);
    let (mut indices, mut offsets) = (Vec::new(), Vec::new());
    for _ in 0..PLACES {
        indices.push(c.below(len));
        offsets.push(c.below(bytes));
    }
    let mut array = [Segment::default(); ARRAY];
    let mut sum = 0;
    list(&segments, from, listed, &mut array, |some| sum += some.iter().map(|s| s.len).sum::<u64>())?;
    let by_cursor =
        segments.cursor(from).take(listed as usize).try_fold(0, |sum, s| s.map(|s| sum + s.len))?;
    let expected = segments.start(from + listed)? - segments.start(from)?;
    if sum != expected || by_cursor != expected {
        return Err(format!("lists of {sum} and {by_cursor} bytes, not {expected}").into());
    }
    // The five variants take turns: listing into arrays, listing by a cursor, finding segments by
    // index, finding packed bytes, and counting.
    let mut failed = None;
    let times = interleaved(5, effort, |variant, times| {
        for _ in 0..times {
            let done = match variant {
                0 => list(&segments, from, listed, &mut array, |some| _ = std::hint::black_box(some))
                    .map(|()| 0),
                1 => segments
                    .cursor(from)
                    .take(listed as usize)
                    .try_fold(0, |sum, s| s.map(|s| sum + s.len as usize)),
                2 => indices.iter().try_fold(0, |sum, &i| Ok(sum + segments.fill(i, &mut array[..1])?)),
                3 => offsets.iter().try_fold(0, |sum, &b| Ok(sum + segments.find(b)?.0 as usize)),
                _ => count(&committed).map(|n| n as usize),
            };
            match done {
                Ok(sum) => drop(std::hint::black_box(sum)),
                Err(error) => failed = Some(error),
            }
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let (listed, places) = (listed as f64, PLACES as f64);
    Ok(Row {
        segments: len,
        first: median(&mut first),
        count: times[4] / places,
        list: times[0] / listed,
        cursor: times[1] / listed,
        at: times[2] / places,
        find: times[3] / places,
    })
}

/// Writes `n` segments, beginning with the one of index `from`, into `array`, as many at a time as
/// fit. Each time it calls `each` with the segments that it has just written.
fn list(
    segments: &Segments<'_>,
    from: u64,
    n: u64,
    array: &mut [Segment],
    mut each: impl FnMut(&[Segment]),
) -> ddtc::Result<()> {
    let mut at = from;
    while at < from + n {
        let room = array.len().min((from + n - at) as usize);
        let written = segments.fill(at, &mut array[..room])?;
        each(&array[..written]);
        at += written as u64;
    }
    Ok(())
}

/// Asks for the number of segments [`PLACES`] times, in turn for one instance and for two. Returns
/// the sum.
fn count(committed: &Committed) -> ddtc::Result<u64> {
    (0..PLACES).try_fold(0, |sum: u64, i| {
        let segments = std::hint::black_box(committed).segments(1 + (i as u64 & 1))?;
        Ok(sum.wrapping_add(segments.len()))
    })
}

/// Runs the program `segments.c` on layout `i` and returns the times that it prints.
fn run_mpi(program: &Path, i: usize) -> Result<MpiTimes, Box<dyn Error>> {
    // The time limit of 60 seconds is for an MPI library that would iterate over all 2^40 segments
    // of a layout.
    let out = Command::new("timeout").arg("60").arg(program).arg(i.to_string()).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("segments "));
    let numbers: Vec<f64> = line.unwrap_or_default().split(' ').filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [segments, _, count, list, at] if out.status.success() => {
            Ok(MpiTimes { segments: segments as u64, count, list, at })
        }
        _ => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.lines().find(|line| !line.is_empty()).unwrap_or("nothing within a minute");
            Err(format!("failed: {}: {said}", out.status).into())
        }
    }
}
