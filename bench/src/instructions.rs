//! The number of instructions of one call, counted by callgrind. These numbers do not vary from run
//! to run.
//!
//! The program starts itself under valgrind twice for each direction, with few and with many calls
//! of a kernel. The difference is the cost of the calls. Valgrind does not know AVX-512, so the
//! level is AVX2 at most.

use std::error::Error;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::kind::Direction;
use ddtc::internal::target::Level;

use crate::layouts::{self, Sizes};
use crate::native::Subject;
use crate::result::Column;

/// The layouts for whose kernels instructions are counted. They differ in the way in which their
/// bytes are moved, so that together they show each family of generated code.
const LAYOUTS: [&str; 8] = [
    "NAS_LU_x.S",
    "WRF_x_vec.S",
    "FFT2D_scatter.S",
    "vec_8B.S",
    "vec_64B.S",
    "idxblk_8B.S",
    "indexed_1to8.S",
    "struct_i_d_f3.S",
];

/// Numbers of calls in the two runs of a kernel. The number of instructions of one call, without
/// the start of the program, is the difference of the two counts of instructions divided by the
/// difference of the two numbers of calls.
const FEW_CALLS: u32 = 1;
const MANY_CALLS: u32 = 201;

/// Calls the pack or unpack kernel of the layout `name` `calls` times, and does nothing else.
/// Valgrind runs this program so that it does only this.
///
/// # Errors
/// Returns an error if the name is unknown or the commit fails.
pub(crate) fn call(name: &str, direction: Direction, calls: u32, level: Level) -> Result<(), Box<dyn Error>> {
    let row = layouts::rows(Sizes::Corpus).into_iter().find(|r| r.name == name).ok_or("no such layout")?;
    let mut subject = Subject::new(&row.entry()?)?;
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    subject.add_engine(Column::Compiled, &engine)?;
    subject.run(0, direction, calls);
    Ok(())
}

/// Counts the instructions of one call for all of [`LAYOUTS`], prints a table and returns the
/// record.
///
/// # Errors
/// Returns an error that says what to do if valgrind cannot be run, or with valgrind's messages if
/// it fails.
pub(crate) fn run(level: Level) -> Result<String, Box<dyn Error>> {
    let level = if level.includes(Level::Avx2) { Level::Avx2 } else { level };
    println!("{:18} {:>12} {:>12}   instructions of one call, level {level}", "layout", "pack", "unpack");
    let mut csv = String::from("name,level,pack_instructions,unpack_instructions\n");
    for name in LAYOUTS {
        let mut counts = [0; 2];
        for direction in Direction::BOTH {
            let few = total(name, direction, FEW_CALLS, level)?;
            let many = total(name, direction, MANY_CALLS, level)?;
            counts[direction as usize] = many.saturating_sub(few) / u64::from(MANY_CALLS - FEW_CALLS);
        }
        let [pack, unpack] = counts;
        println!("{name:18} {pack:>12} {unpack:>12}");
        let _ = writeln!(csv, "{name},{level},{pack},{unpack}");
    }
    Ok(csv)
}

/// Returns the number of instructions of a whole process, from its start to its end, that calls the
/// kernel of layout `name` `calls` times.
fn total(name: &str, direction: Direction, calls: u32, level: Level) -> Result<u64, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    // ddtc writes new code to memory that had other code before, so valgrind must look for changed
    // code everywhere (`--smc-check=all`).
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--smc-check=all", "--callgrind-out-file=/dev/null"]);
    command.arg(program).args(["bench", "--level", level.name(), name]);
    command.args(["--calls", &calls.to_string(), "--calls-of", direction.name()]);
    let output = command.stdin(Stdio::null()).output().map_err(|e| {
        format!("valgrind cannot be run ({e}): install it (Debian, Ubuntu: apt-get install valgrind)")
    })?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected =
        text.lines().find_map(|l| l.split_once("Collected :")?.1.split_whitespace().next()?.parse().ok());
    collected.filter(|_| output.status.success()).ok_or_else(|| format!("valgrind failed:\n{text}").into())
}
