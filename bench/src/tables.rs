//! Commits of types with long tables, in comparison with work that no commit can avoid.
//!
//! Most of the cost of such commits is new memory: touching a page for the first time takes longer
//! than filling it. So constructor and commit together are compared with two other kinds of work.
//! One is a memcpy of the arguments. The other, a function, does only what no commit can avoid: it
//! copies the arguments, hashes them, and writes as many bytes as the nest and the kernel of the
//! layout keep. The three kinds of work take turns. Their results are kept until all cases are
//! measured, so that no work gets the memory of an earlier result. Page faults are counted too,
//! since they show whether memory was new. Short lists may get memory that was used before.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use ddtc::internal::column::Column;
use ddtc::internal::committed::Committed;
use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::nest::Node;
use ddtc::internal::target::Level;
use xxhash_rust::xxh3::xxh3_128;

use crate::commit::engine;
use crate::measure::median;

/// A list of arguments.
type List = Vec<i64>;

/// A datatype to be measured: its name, the lists of arguments that its constructors take, and the
/// function that builds it from these lists.
struct Case {
    name: &'static str,
    lists: Vec<List>,
    build: fn(&[List]) -> ddtc::Result<Datatype>,
}

// Returns the datatypes to be measured: two indexed types of 10^5 blocks, and a struct of the six
// index lists of one LAMMPS exchange from the corpus.
fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let list = ddtc::internal::corpus::list;
    let entry = ddtc::internal::corpus::application().into_iter().find(|e| e.name == "LAMMPS_full.L");
    let mut lammps = Vec::new();
    let t = entry.ok_or("no LAMMPS_full.L in the corpus")?.datatype;
    if let Combiner::Struct { types, .. } = t.combiner() {
        // Each member of the corpus entry has indexed blocks of equal length. The list of its
        // arguments has the displacements, followed by the block length.
        for t in types.iter() {
            if let Combiner::IndexedBlock { displacements, blocklength, .. } = t.combiner() {
                lammps.push(displacements.iter().copied().chain([*blocklength]).collect());
            }
        }
    }
    Ok(vec![
        Case {
            name: "100000 blocks of 1 to 8 doubles",
            lists: vec![
                list("@uniform(100000, 1, 8, 65)")?,
                list("@sum(@uniform(100000, 1, 8, 65), @uniform(100000, 1, 8, 66))")?,
            ],
            build: |lists| Datatype::indexed(&lists[0], &lists[1], &"double".parse()?),
        },
        Case {
            name: "100000 doubles at places of their own",
            lists: vec![list("@sum(@uniform(100000, 2, 6, 91))")?],
            build: |lists| Datatype::indexed_block(1, &lists[0], &"double".parse()?),
        },
        Case {
            name: "LAMMPS_full.L: six lists of 3062 particles",
            lists: lammps,
            build: |lists| {
                let double: Datatype = "double".parse()?;
                let member = |list: &List| match list.split_last() {
                    Some((&n, places)) => Datatype::indexed_block(n, places, &double),
                    None => Datatype::contiguous(0, &double),
                };
                let members = lists.iter().map(member).collect::<ddtc::Result<Vec<_>>>()?;
                let places: List = (0..members.len() as i64).map(|i| i << 20).collect();
                Datatype::structure(&vec![1; members.len()], &places, &members)
            },
        },
    ])
}

/// Returns the number of page faults of this process so far that needed no device (minor faults),
/// or 0 if the system does not say.
fn faults() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process may contain spaces, so fields are counted after the parenthesis that
    // ends it: state, ppid, and so on. The eighth of them is minflt.
    let fields = text.rsplit_once(") ").map_or("", |(_, after_name)| after_name);
    fields.split(' ').nth(7).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The time in microseconds and the number of page faults of each repetition so far of one kind of
/// work.
#[derive(Default)]
struct Timed([Vec<f64>; 2]);

impl Timed {
    // Runs `what` and records its time and page faults.
    fn time<T>(&mut self, what: impl FnOnce() -> T) -> T {
        let (before, start) = (faults(), Instant::now());
        let done = what();
        self.0[0].push(start.elapsed().as_secs_f64() * 1e6);
        self.0[1].push((faults() - before) as f64);
        done
    }

    fn medians(mut self) -> (f64, f64) {
        let [times, faults] = self.0.each_mut().map(|samples| median(samples));
        (times, faults)
    }
}

/// Does only the work that no commit can avoid: copies `arguments`, hashes them, and writes `kept`
/// bytes.
fn minimum_work(arguments: &[u8], kept: usize) -> (Vec<u8>, u128, Vec<u8>) {
    let copy = arguments.to_vec();
    let hash = xxh3_128(&copy);
    (copy, hash, vec![1; kept])
}

/// Measures the cases whose names contain one of `names`, or all cases if there are no names,
/// prints a table and returns the record.
///
/// # Errors
/// Returns the errors of constructors and commits.
pub(crate) fn run(level: Level, quick: bool, names: &[String]) -> Result<String, Box<dyn Error>> {
    let rounds = if quick { 3 } else { 21 };
    let mut csv = String::from(
        "case,argument_bytes,constructor_us,commit_us,faults,memcpy_us,memcpy_faults,least_us,least_faults,over_memcpy,over_least\n",
    );
    println!(
        "\nlong tables: constructor and commit next to one memcpy of the arguments, and to the minimum that must be done; page faults of each"
    );
    println!(
        "{:42} {:>9} {:>11} {:>9} {:>6} {:>9} {:>6} {:>9} {:>6} {:>11} {:>10}",
        "case",
        "arguments",
        "constructor",
        "commit us",
        "faults",
        "memcpy",
        "faults",
        "least",
        "faults",
        "over memcpy",
        "over least"
    );
    // All committed types and copies are kept until all cases are done, since memory that one case
    // frees would not be new to the next one.
    let (mut kept, mut copies, mut minimum_outputs) = (Vec::new(), Vec::new(), Vec::new());
    let wanted = |case: &Case| names.is_empty() || names.iter().any(|name| case.name.contains(name));
    for Case { name, lists, build } in cases()?.into_iter().filter(wanted) {
        let arguments: Vec<u8> = lists.iter().flatten().flat_map(|n| n.to_ne_bytes()).collect();
        let bytes = arguments.len();
        let [mut constructors, mut commits, mut copying, mut minimum_works] =
            [(); 4].map(|()| Timed::default());
        for _ in 0..rounds {
            // Each round commits to a new engine, which has not seen the layout.
            let engine = engine(level, false, false)?;
            let t = constructors.time(|| build(&lists))?;
            let committed = commits.time(|| engine.commit(&t))?;
            copies.push(copying.time(|| black_box(arguments.clone())));
            let stored = stored(&committed);
            minimum_outputs.push(minimum_works.time(|| black_box(minimum_work(&arguments, stored))));
            kept.push(committed);
        }
        // The printed ratios are those of the time of constructor and commit together to the time
        // of the memcpy, and to that of the unavoidable work.
        let [(constructor, built), (commit, committed), (memcpy, copied), (minimum, done)] =
            [constructors, commits, copying, minimum_works].map(Timed::medians);
        let (faults, whole) = (built + committed, constructor + commit);
        let (over_memcpy, over_minimum) = (whole / memcpy, whole / minimum);
        println!(
            "{name:42} {bytes:>9} {constructor:>11.1} {commit:>9.1} {faults:>6.0} {memcpy:>9.1} {copied:>6.0} {minimum:>9.1} {done:>6.0} \
             {over_memcpy:>11.2} {over_minimum:>10.2}"
        );
        let _ = writeln!(
            csv,
            "{name},{bytes},{constructor:.1},{commit:.1},{faults:.0},{memcpy:.1},{copied:.0},{minimum:.1},{done:.0},{over_memcpy:.3},{over_minimum:.3}"
        );
    }
    Ok(csv)
}

/// Returns the number of bytes that a layout keeps: its nest, and what its kernel reads that is not
/// part of the nest.
fn stored(committed: &Committed) -> usize {
    let columns = committed.nest().nodes().iter().flat_map(|node| match node {
        Node::Table { displacements, .. } => vec![displacements],
        Node::Blocks { user, packed, len, .. } => vec![user, packed, len],
        Node::Loop { .. } | Node::Copy { .. } => Vec::new(),
    });
    let own = committed.kernel(Direction::Pack).map_or(0, |kernel| {
        let shared = columns.filter(|column| kernel.shared(column).is_some()).map(Column::bytes).sum();
        kernel.context_bytes().saturating_sub(shared)
    });
    committed.nest().bytes_stored() + own
}
