//! The cost of a commit as a datatype grows: chains, DAGs, wide structures and deep nests. A cost
//! that is not linear in the number of constructor arguments is a bug.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::corpus;
use ddtc::internal::fuzzing::{self, Cost};

/// Families of generated types (`src/corpus/types.rs`): the name of the family, the text of its
/// types with `N` in place of the size, and the sizes that are measured.
const FAMILIES: [(&str, &str, [i64; 4]); 6] = [
    ("chain of structs", "@chain(N)", [1_000, 8_000, 24_000, 200_000]),
    ("DAG, interleaved", "@tangle(N)", [10, 20, 40, 58]),
    ("DAG, side by side", "@dag(N)", [10, 20, 40, 56]),
    ("struct of one indexed type of 1000 rows", "@wide(N, 1000)", [100, 1_000, 10_000, 1_000_000]),
    ("all constructors inside each other", "@deep(N)", [1_000, 8_000, 24_000, 200_000]),
    ("struct of different vectors", "@children(N)", [100, 1_000, 10_000, 100_000]),
];

/// Measures all families, prints a table and returns the record.
///
/// # Errors
/// Returns an error if a commit fails, if the growth of the process cannot be measured, or if a
/// bound is exceeded: on the time of a commit, the bytes of its nest or the growth of the process.
pub(crate) fn run() -> Result<String, Box<dyn Error>> {
    let mut csv = String::from("family,size,arguments,commit_us,ns_per_argument,nest_bytes,peak_bytes\n");
    println!(
        "{:40} {:>8} {:>9} {:>11} {:>12} {:>11} {:>9}",
        "family", "size", "arguments", "commit us", "ns/argument", "nest KiB", "peak KiB"
    );
    for (family, form, sizes) in FAMILIES {
        for size in sizes {
            let t = corpus::datatype(&form.replace('N', &size.to_string()))?;
            let mut costs: Vec<Cost> = (0..3)
                .map(|_| fuzzing::check_growth(&t, true).map_err(|m| m.to_string()))
                .collect::<Result<_, _>>()?;
            costs.sort_by_key(|cost| cost.time);
            let Cost { arguments, time, nest, peak } = costs[1];
            let (us, each) = (time.as_secs_f64() * 1e6, time.as_secs_f64() * 1e9 / arguments.max(1) as f64);
            println!(
                "{family:40} {size:>8} {arguments:>9} {us:>11.1} {each:>12.1} {:>11} {:>9}",
                nest >> 10,
                peak >> 10
            );
            let _ = writeln!(csv, "{family},{size},{arguments},{us:.1},{each:.1},{nest},{peak}");
        }
    }
    Ok(csv)
}
