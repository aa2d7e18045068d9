//! The latency of commits in several cases: new code, new layouts, equal layouts, the first commit
//! of a process, and a type with a million blocks.
//!
//! In the case "new code", each commit emits code for its layout, in an engine that has emitted
//! other code before. Layouts of one shape would share code, so these layouts differ in the length
//! of their blocks. The case "new layout" is what a program typically commits: layouts of the same
//! shape were committed before it, and the commit may use precompiled code.

use std::error::Error;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::target::Level;

use crate::measure::median;

/// Returns the `i`th of many layouts that have single doubles in `loops` nested loops and differ in
/// strides and numbers of iterations.
fn layout(loops: u32, i: i64) -> ddtc::Result<Datatype> {
    layout_of("double", loops, i)
}

/// Returns the `i`th of many layouts that have blocks of one `element` in `loops` nested loops and
/// differ in strides and numbers of iterations.
fn layout_of(element: &str, loops: u32, i: i64) -> ddtc::Result<Datatype> {
    let element: Datatype = element.parse()?;
    // The strides differ from layout to layout, and none is so small that blocks touch. So no two
    // loops are merged into one. The innermost loop has too many blocks to be written out as single
    // moves, so the code depends only on the shape.
    let mut t = Datatype::vector(200 + i % 5, 1, 3 + i, &element)?;
    for level in 1..loops {
        let distance =
            t.extent().checked_mul(2).and_then(|d| d.checked_add(8 * i64::from(level))).unwrap_or(0);
        t = Datatype::hvector(30 + i % 7, 1, distance, &t)?;
    }
    Ok(t)
}

/// Returns an engine that has already made its first commit. Its later commits use precompiled code
/// and code shared by shape, as those of ordinary engines do. If `emitted` is true, precompiled
/// code is not used, so that a new shape needs newly emitted code.
pub(crate) fn engine(level: Level, both_directions: bool, emitted: bool) -> ddtc::Result<Engine> {
    let config = Config { level, both_directions, ..Config::default() };
    let engine = Engine::new(Config { precompiled: config.precompiled && !emitted, ..config });
    // The first compile of an engine sets up the instruction set and maps the arena for code. This
    // time must not count for later commits, so an unrelated type is committed first. No layout
    // that is measured has the shape of this type.
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

/// Returns the median time of a commit of `t` that compiles both directions. Each of the `samples`
/// commits goes to a new engine, which has not seen `t`.
///
/// # Errors
/// Those of [`Engine::commit`]: class `NoMem` if there is not enough memory for the layout. Any
/// other error is a fault of ddtc.
pub(crate) fn one(t: &Datatype, level: Level, samples: usize) -> ddtc::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..samples {
        times.push(time(&engine(level, true, false)?, t)?.as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(&mut times)))
}

/// Returns the time of the first commit in this process, including the creation of its engine. Only
/// the first call of this function in a process measures that, so each sample needs a process of
/// its own.
///
/// # Errors
/// Those of [`Engine::commit`]: class `NoMem` if there is not enough memory for the layout. Any
/// other error is a fault of ddtc.
pub(crate) fn first(level: Level) -> ddtc::Result<Duration> {
    let t = layout(2, 1)?;
    let start = Instant::now();
    let engine = Engine::new(Config { level, ..Config::default() });
    let committed = engine.commit(&t)?;
    let time = start.elapsed();
    drop(committed);
    Ok(time)
}

/// The record in CSV, with a line for each measured case. Each case is also printed when it is
/// added.
struct Record(String);

impl Record {
    /// Adds a case to the record and prints it. `times` are its samples in microseconds.
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
/// Returns the errors of commits, or an error if this program cannot be started again.
pub(crate) fn run(level: Level, quick: bool) -> Result<String, Box<dyn Error>> {
    let samples = if quick { 25 } else { 200 };
    let mut record = Record(String::from("case,samples,median_us,p10_us,p90_us\n"));
    println!("{:44} {:>7} {:>9} {:>9} {:>9}", "commit", "samples", "median us", "10 %", "90 %");

    // The first commit of a process can be measured only once in each process, so this program
    // starts itself.
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

/// Returns the times in microseconds of commits for which new code must be emitted, of layouts with
/// `loops` loops.
fn new_code(level: Level, loops: u32, both: bool, samples: i64) -> Result<Vec<f64>, Box<dyn Error>> {
    // Blocks of different lengths have different inner loops, so no two layouts of a round share
    // code. Each round uses a new engine, which has no code of the rounds before.
    let lengths = [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96];
    let mut times = Vec::new();
    for round in 0..samples / lengths.len() as i64 {
        let engine = engine(level, both, true)?;
        let compiles = |i: usize| {
            let t = layout_of(&format!("contiguous({}, char)", lengths[i]), loops, round)?;
            let start = Instant::now();
            Ok((engine.commit(&t)?, micros(start.elapsed())))
        };
        // The committed types are kept, since the engine may evict code that no committed type
        // uses.
        let done: Vec<_> = (0..lengths.len()).map(compiles).collect::<ddtc::Result<_>>()?;
        times.extend(done.iter().map(|(_, time)| *time));
    }
    Ok(times)
}

/// Returns two lists of times in microseconds: of commits of layouts that are new to the engine,
/// although it has code that fits them, and of committing the same layouts once more. For the
/// second commit the types are built again: equal types, but different objects.
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

/// Returns three lists of times in microseconds, all for an indexed type with a million blocks: of
/// its constructor, of the first commit to a new engine, and of the commit of an equal type to an
/// engine that has the layout.
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
