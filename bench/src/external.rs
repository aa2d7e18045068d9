//! external32 in comparison with `MPI_Pack_external` and `MPI_Unpack_external` of an MPI library:
//! both sides get the same layouts and the same memory contents, and their batches take turns.
//!
//! The MPI library's calls are made by a separate program (`external.c`), which waits on the same
//! core while a batch of ddtc runs, and ddtc waits while a batch of the program runs. Bytes are
//! compared first. If the MPI library's bytes in one direction differ from those of the reference
//! interpreter, that direction is shown as wrong and the MPI library is not timed in it.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine};
use ddtc::internal::exec::interp::external32;
use ddtc::internal::kind::{Direction, Operation};
use ddtc::internal::target::Level;

use crate::compile::mpi_program;
use crate::kinds::{layouts, values};
use crate::measure::{Effort, median};

const PROGRAM: &str = include_str!("external.c");

/// Measures all layouts, prints a table and returns the record.
///
/// # Errors
/// Returns the errors of commits, of the C compiler and of the C program that calls the MPI
/// library, or an error if ddtc's bytes differ from those of the reference interpreter.
pub(crate) fn run(level: Level, quick: bool, mpicc: &OsStr) -> Result<String, Box<dyn Error>> {
    let layouts = layouts();
    let types: Vec<Datatype> = layouts.iter().map(|(_, text)| text.parse()).collect::<ddtc::Result<_>>()?;
    let folder = ddtc::internal::files::temporary_folder("ddtc-external")?;
    measure(level, quick, mpicc, &layouts, &types, &folder)
}

fn measure(
    level: Level,
    quick: bool,
    mpicc: &OsStr,
    layouts: &[(String, String)],
    types: &[Datatype],
    folder: &Path,
) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let program = mpi_program(mpicc, types, folder, ("external", PROGRAM))?;
    let engine = Engine::new(Config { level, both_directions: true, ..Config::default() });
    let mut csv = String::from("layout,direction,payload_bytes,ns,host_ns,host_over_ours\n");
    println!("external32: ns a call, of the MPI library, its time over ours");
    for (i, ((name, _), t)) in layouts.iter().zip(types).enumerate() {
        let applied = engine.commit(t)?.for_operation(Operation::External32)?;
        let payload = t.size();
        // The reference interpreter gives the expected stream and the expected memory. ddtc and the
        // MPI library both start from the same memory and stream.
        let mut user = values(t);
        let (mut stream, fit) = external32::pack(t, 1, &user, 0);
        let mut wanted = user.clone();
        fit.and(external32::unpack(t, 1, &stream, &mut wanted, 0))
            .map_err(|i| format!("{name}: value {i} does not fit"))?;
        let mut process = MpiProcess::start(&program, folder, i, &user, &stream)?;
        let right = [process.right("packed", &stream)?, process.right("unpacked", &wanted)?];
        let expected = stream.clone();
        applied.pack(&user, 0, 1, &mut stream)?;
        let packed = stream == expected;
        applied.unpack(&expected, 0, 1, &mut user)?;
        if !packed || user != wanted {
            return Err(format!("{name}: bytes differ").into());
        }
        // Batches of ddtc and of the MPI library take turns. A batch repeats the call until about
        // half of the intended time has passed.
        for (direction, right) in Direction::BOTH.into_iter().zip(right) {
            let mut call = || match direction {
                Direction::Pack => applied.pack(black_box(&user), 0, 1, &mut stream),
                Direction::Unpack => applied.unpack(black_box(&expected), 0, 1, &mut user),
            };
            let mut repeats = 1u32;
            let mut batch = || -> Result<f64, Box<dyn Error>> {
                loop {
                    let start = Instant::now();
                    for _ in 0..repeats {
                        call()?;
                    }
                    let time = start.elapsed();
                    if time * 2 >= effort.batch || repeats >= 1 << 24 {
                        return Ok(time.as_secs_f64() * 1e9 / f64::from(repeats));
                    }
                    repeats *= 2;
                }
            };
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..effort.rounds {
                ours.push(batch()?);
                if right.is_ok() {
                    theirs.push(process.batch(direction)?);
                }
            }
            let (ours, theirs) = (median(&mut ours), median(&mut theirs));
            let plain = name.replace(',', "");
            match right {
                Ok(()) => {
                    let ratio = theirs / ours;
                    println!("{name:26} {:>6} {ours:>12.1} {theirs:>12.1} {ratio:>8.2}", direction.name());
                    let _ = writeln!(csv, "{plain},{direction},{payload},{ours:.2},{theirs:.2},{ratio:.3}");
                }
                Err(what) => {
                    println!("{name:26} {:>6} {ours:>12.1} {what:>12}", direction.name());
                    let _ = writeln!(csv, "{plain},{direction},{payload},{ours:.2},{what},");
                }
            }
        }
    }
    Ok(csv)
}

/// A running process of the program `external.c`, which packs and unpacks one layout by the MPI
/// library.
struct MpiProcess {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    folder: PathBuf,
    /// Return codes of `MPI_Pack_external` and of `MPI_Unpack_external`, in this order.
    codes: [i32; 2],
}

impl MpiProcess {
    fn start(
        program: &Path,
        folder: &Path,
        layout: usize,
        user: &[u8],
        stream: &[u8],
    ) -> Result<MpiProcess, Box<dyn Error>> {
        fs::write(folder.join("user"), user)?;
        fs::write(folder.join("stream"), stream)?;
        let mut child = Command::new(program)
            .arg(layout.to_string())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (to, from) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        let mut process =
            MpiProcess { child, to, from: BufReader::new(from), folder: folder.to_owned(), codes: [0; 2] };
        let line = process.line()?;
        let codes: Vec<i32> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        process.codes = codes
            .try_into()
            .map_err(|_| format!("layout {layout}: the MPI library's program said {line:?}"))?;
        Ok(process)
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Returns success if the call that wrote `file` succeeded and the file has the bytes `wanted`.
    /// Otherwise returns what went wrong.
    fn right(&self, file: &str, wanted: &[u8]) -> Result<Result<(), &'static str>, Box<dyn Error>> {
        let code = self.codes[usize::from(file == "unpacked")];
        let bytes = fs::read(self.folder.join(file))?;
        Ok(match (code, bytes == wanted) {
            (0, true) => Ok(()),
            (0, false) => Err("wrong bytes"),
            _ => Err("refused"),
        })
    }

    /// Lets the process run one batch of calls, and returns the nanoseconds of one call.
    fn batch(&mut self, direction: Direction) -> Result<f64, Box<dyn Error>> {
        self.to.write_all(if direction == Direction::Pack { b"p\n" } else { b"u\n" })?;
        let line = self.line()?;
        line.parse().map_err(|_| format!("the MPI library's program said {line:?}").into())
    }
}

impl Drop for MpiProcess {
    fn drop(&mut self) {
        // Kill the process of `external.c`, which would otherwise wait for more input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
