//! Latency of commits: new code, new layouts, equal ones, the first of a process, a million blocks.
//!
//! New code is emitted for its layout alone, in an engine that has emitted other code before: layouts of one shape would share it,
//! so these differ in the length of their blocks. A new layout is what a program commits: others of its shape came before it, and
//! precompiled code may serve it.

use std::error::Error;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::target::Level;

use crate::measure::median;

/// The `i`th layout of blocks of 8 bytes.
fn layout(loops: u32, i: i64) -> ddtc::Result<Datatype> {
    layout_of("double", loops, i)
}

/// The `i`th layout of blocks of one `element`: `loops` loops around them.
fn layout_of(element: &str, loops: u32, i: i64) -> ddtc::Result<Datatype> {
    let element: Datatype = element.parse()?;
    // Every stride differs from layout to layout and none is dense, so nothing collapses; rows are too long to be written out, so
    // code depends on the shape alone.
    let mut t = Datatype::vector(200 + i % 5, 1, 3 + i, &element)?;
    for level in 1..loops {
        let distance =
            t.extent().checked_mul(2).and_then(|d| d.checked_add(8 * i64::from(level))).unwrap_or(0);
        t = Datatype::hvector(30 + i % 7, 1, distance, &t)?;
    }
    Ok(t)
}

/// Makes an engine whose commits use precompiled code and code shared by shape, as ordinary ones do; `emitted` leaves precompiled code out.
pub(crate) fn engine(level: Level, both_directions: bool, emitted: bool) -> ddtc::Result<Engine> {
    let config = Config { level, both_directions, ..Config::default() };
    let engine = Engine::new(Config { precompiled: config.precompiled && !emitted, ..config });
    // The first compile of an engine makes the ISA and maps the arena: not what the others cost. This shape is no other's.
    let first: Datatype = "struct([1,3,1], [0,100,300], [int,char,double])".parse()?;
    engine.commit(&first)?;
    Ok(engine)
}

fn time(engine: &Engine, t: &Datatype) -> ddtc::Result<Duration> {
    let start = Instant::now();
    let committed = engine.commit(t)?;
    let time = start.elapsed();
    drop(committed);
    Ok(time)
}

/// Returns the median time of committing `t` in both directions to an engine that has not seen it.
///
/// # Errors
/// Those of the commit.
pub(crate) fn one(t: &Datatype, level: Level, samples: usize) -> ddtc::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..samples {
        times.push(time(&engine(level, true, false)?, t)?.as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(&mut times)))
}

/// Returns the time of the first commit, the making of its engine included. Only meaningful once in a process.
///
/// # Errors
/// Those of the commit.
pub(crate) fn first(level: Level) -> ddtc::Result<Duration> {
    let t = layout(2, 1)?;
    let start = Instant::now();
    let engine = Engine::new(Config { level, ..Config::default() });
    let committed = engine.commit(&t)?;
    let time = start.elapsed();
    drop(committed);
    Ok(time)
}

/// The record of cases, printed as they are done.
struct Record(String);

impl Record {
    /// Adds a case, of which the samples took `times` in microseconds.
    fn add(&mut self, case: &str, mut times: Vec<f64>) {
        times.sort_by(f64::total_cmp);
        let quantile = |q: usize| times.get(times.len() * q / 100).copied().unwrap_or(f64::NAN);
        let (low, high, n) = (quantile(10), quantile(90), times.len());
        let middle = median(&mut times);
        println!("{case:44} {n:>7} {middle:>9.2} {low:>9.2} {high:>9.2}");
        let _ = writeln!(self.0, "{case},{n},{middle:.3},{low:.3},{high:.3}");
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Measures all cases, prints a table and returns the record.
///
/// # Errors
/// Those of commits; if this program cannot be started again.
pub(crate) fn run(level: Level, quick: bool) -> Result<String, Box<dyn Error>> {
    let samples = if quick { 25 } else { 200 };
    let mut record = Record(String::from("case,samples,median_us,p10_us,p90_us\n"));
    println!("{:44} {:>7} {:>9} {:>9} {:>9}", "commit", "samples", "median us", "10 %", "90 %");

    let program = std::env::current_exe()?;
    let mut times = Vec::new();
    for _ in 0..if quick { 5 } else { 21 } {
        let flags = ["bench", "--first-commit", "--level", level.name()];
        let output = Command::new(&program).args(flags).output()?;
        let nanos: f64 = String::from_utf8_lossy(&output.stdout).trim().parse()?;
        times.push(nanos / 1e3);
    }
    record.add("first in a process: 2 loops, pack", times);

    for (loops, both, case) in [
        (2, false, "new code: 2 loops, pack"),
        (2, true, "new code: 2 loops, pack and unpack"),
        (3, false, "new code: 3 loops, pack"),
        (3, true, "new code: 3 loops, pack and unpack"),
    ] {
        record.add(case, new_code(level, loops, both, samples)?);
    }
    for (loops, both, case) in [
        (2, false, "new layout: 2 loops, pack"),
        (2, true, "new layout: 2 loops, pack and unpack"),
        (3, false, "new layout: 3 loops, pack"),
        (3, true, "new layout: 3 loops, pack and unpack"),
    ] {
        let [new, again] = new_layouts(level, loops, both, samples)?;
        record.add(case, new);
        if both {
            record.add(&format!("equal layout again: {loops} loops"), again);
        }
    }
    let [building, new, again] = a_million_blocks(level, if quick { 3 } else { 11 })?;
    record.add("constructor: a million blocks", building);
    record.add("new layout: a million blocks, pack", new);
    record.add("equal layout again: a million blocks", again);
    Ok(record.0)
}

/// Times of commits that make new code.
fn new_code(level: Level, loops: u32, both: bool, samples: i64) -> Result<Vec<f64>, Box<dyn Error>> {
    // Each of these lengths has its own inner loop, so no two share code; after them another engine starts.
    let lengths = [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96];
    let mut times = Vec::new();
    for round in 0..samples / lengths.len() as i64 {
        let engine = engine(level, both, true)?;
        let compiles = |i: usize| {
            let t = layout_of(&format!("contiguous({}, char)", lengths[i]), loops, round)?;
            let start = Instant::now();
            Ok((engine.commit(&t)?, micros(start.elapsed())))
        };
        // Kept: code that nobody holds may be evicted.
        let done: Vec<_> = (0..lengths.len()).map(compiles).collect::<ddtc::Result<_>>()?;
        times.extend(done.iter().map(|(_, time)| *time));
    }
    Ok(times)
}

/// Times of commits of new layouts whose code there is, and of the same layouts once more, built again: equal types, other objects.
fn new_layouts(level: Level, loops: u32, both: bool, samples: i64) -> Result<[Vec<f64>; 2], Box<dyn Error>> {
    let engine = engine(level, both, false)?;
    let types = || (0..samples).map(|i| layout(loops, i)).collect::<Result<Vec<Datatype>, _>>();
    let mut times = Vec::new();
    let mut kept = Vec::new();
    for t in &types()? {
        let start = Instant::now();
        let committed = engine.commit(t)?;
        times.push(micros(start.elapsed()));
        kept.push(committed);
    }
    let again = types()?.iter().map(|t| time(&engine, t).map(micros)).collect::<Result<_, _>>()?;
    Ok([times, again])
}

/// Times of a constructor of a million blocks, of the first commit of what it makes, and of another one.
fn a_million_blocks(level: Level, times: usize) -> Result<[Vec<f64>; 3], Box<dyn Error>> {
    let lengths = vec![1i64; 1_000_000];
    let places = ddtc::internal::corpus::list("@sum(@uniform(1000000, 2, 6, 91))")?;
    let int: Datatype = "int".parse()?;
    let blocks = || Datatype::indexed(&lengths, &places, &int);
    let (mut building, mut new) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let start = Instant::now();
        let t = blocks()?;
        building.push(micros(start.elapsed()));
        new.push(micros(time(&engine(level, false, false)?, &t)?));
    }
    let engine = engine(level, false, false)?;
    let kept = engine.commit(&blocks()?)?;
    let again = (0..11).map(|_| time(&engine, &blocks()?).map(micros)).collect::<Result<_, _>>()?;
    drop(kept);
    Ok([building, new, again])
}
