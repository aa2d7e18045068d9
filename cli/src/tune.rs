//! `ddtc tune`: measures on this machine which messages, collective calls, calls on files and
//! one-sided operations are faster if compiled code packs and unpacks their data. Writes the policy
//! table of the preload library.
//!
//! The user's `mpicc` compiles the programs that measure: a ping-pong, collective calls of two
//! ranks, reads and writes of a file by each rank and, with `--windows`, one-sided operations. For
//! each layout class and payload size, these programs time the preload library, the unmodified MPI
//! library and packing by hand, in interleaved rounds of one run. The table lists the payloads for
//! which the calls of the preload library were faster than those of the unmodified MPI library, by
//! more than 5 % plus twice the noise. The preload library converts these, that is, it lets
//! compiled code pack and unpack their data. Under Open MPI, the table also lists the messages for
//! which compiled code inside the library was faster than conversion.
//!
//! Under an MPI library that the developers of ddtc have not tried, `ddtc tune` first finds out
//! which calls give right results if they are converted (`prove`). It measures only if jobs like
//! the one that it launches convert messages.

mod abi;
mod prove;

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args as ClapArgs;
use ddtc::internal::files;
use ddtc_hosts::policy::{Call, Class, Family, Library, Policy, file};

use ddtc_bench::machine::{self, Machine};
use ddtc_hosts::library;

use crate::output::{out, outln};
use crate::rank_reports::folder_for_ranks;

/// Programs that are always compiled and run: the name and the C source of each. All of them
/// include [`HEADER`].
const PROGRAMS: [(&str, &str); 3] = [
    ("pingpong", include_str!("tune/pingpong.c")),
    ("collectives", include_str!("tune/collectives.c")),
    ("files", include_str!("tune/files.c")),
];
/// Program that is compiled and run if `--windows` is given: its name and its C source.
const WINDOWS: (&str, &str) = ("windows", include_str!("tune/windows.c"));
const HEADER: &str = include_str!("tune/tune.h");

/// Arguments of `ddtc tune`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Example:\n  ddtc tune --mpicc mpicc -- mpiexec -n 2")]
pub(crate) struct Args {
    /// Compiler command of the MPI library
    #[arg(long, default_value = "mpicc")]
    mpicc: OsString,
    /// Number of rounds for each payload
    #[arg(long, default_value_t = 15)]
    rounds: u32,
    /// Duration of a round in milliseconds
    #[arg(long, default_value_t = 2.0)]
    budget: f64,
    /// File to which the policy table is written [default: ddtc/policy in the user's configuration
    /// folder]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder in which files are written and read for measurements [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Measure one-sided operations, too
    #[arg(long)]
    windows: bool,
    /// File for proofs: records of the calls that gave right results in tests under an MPI library
    /// that the developers of ddtc have not tried [default: ddtc/proofs in the user's configuration
    /// folder]
    #[arg(long, value_name = "FILE")]
    proofs: Option<PathBuf>,
    /// Only test calls under an MPI library that the developers of ddtc have not tried, and write
    /// the proof; measure nothing
    #[arg(long)]
    only_prove: bool,
    /// Seconds after which a message counts as lost, when calls are tested under an MPI library
    /// that the developers of ddtc have not tried
    #[arg(long, default_value_t = 20)]
    deadline: u32,
    /// Use this preload library [default: the one next to this program or in ../lib]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Command that launches the ranks, after `--`: two ranks, or at least eight to test collective
    /// calls, too, under an MPI library that the developers of ddtc have not tried; only two ranks
    /// measure
    #[arg(last = true, default_values = ["mpiexec", "-n", "2"])]
    launch: Vec<OsString>,
}

/// Runs the subcommand `ddtc tune`.
///
/// # Errors
/// If a program does not compile or run, if something is wrong with what is proven first
/// ([`prove::prove_first`]), or if the table cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let library = library::find(args.library.as_deref())?;
    let variable = |name| std::env::var(name).ok();
    let output = match &args.output {
        Some(output) => output.clone(),
        None => file(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref())
            .ok_or("neither XDG_CONFIG_HOME nor HOME is a folder: name a file with --output")?,
    };
    if !args.only_prove {
        // Find out before the long measurement whether the table can be read and written.
        read(&output)?;
        files::check_replace(&output)?;
    }
    let folder = folder_for_ranks(".ddtc-tune")?;
    if !prove::prove_first(args, &library, &folder)? {
        return Ok(());
    }
    let text = measure(args, &library, &folder)?;
    let (name, policy, comments) = decide(&text)?;
    // Under Open MPI, the preload library passes packed bytes with a datatype that has a gap before
    // its last bytes (docs/CALLS.md, "Truncation"). Open MPI then uses different protocols, so
    // tables that were measured by older releases of ddtc, without this gap, are no longer valid.
    // Newer tables contain the comment `staged bytes have a gap`. The test of the shipped policy
    // (hosts/tests/docs/policies.rs) ignores records of Open MPI without it.
    let staged = if name.starts_with("openmpi") { "# staged bytes have a gap\n" } else { "" };
    let comments = format!("# {}, {}\n{staged}{comments}", Machine::read(None), machine::today());
    let table = format!("library {name}\n{comments}{policy}");
    let saved = read(&output).and_then(|old| Ok(files::save(&output, replace(&old, &name, &table))?));
    if saved.is_err() {
        // The measurement is not lost: the user can put the table into the file.
        let _ = outln!("{table}");
    }
    saved?;
    outln!("{}: table of {name}\n{policy}", output.display())?;
    Ok(())
}

/// Returns the text of the policy file, or an empty text if the file does not exist. Creates the
/// folder of the file if it does not exist.
fn read(output: &Path) -> Result<String, Box<dyn Error>> {
    if let Some(parent) = output.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    }
    match files::read(output) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", output.display()))?,
        old => Ok(old.unwrap_or_default()),
    }
}

fn measure(args: &Args, library: &Path, folder: &Path) -> Result<String, Box<dyn Error>> {
    std::fs::write(folder.join("tune.h"), HEADER)?;
    // Compile everything first, so that an error of the compiler appears before the long
    // measurement.
    let programs: Vec<_> = PROGRAMS.into_iter().chain(args.windows.then_some(WINDOWS)).collect();
    for (name, source) in &programs {
        compile(args, name, source, folder)?;
    }
    let mut text = String::new();
    for (i, (name, _)) in programs.iter().enumerate() {
        text += &launch(args, name, library, folder, Baseline::Unmodified)?;
        // Under Open MPI, run the ping-pong a second time, with ddtc's hook in Open MPI's
        // convertor. The convertor is the part of Open MPI that packs and unpacks derived types. In
        // the first run, the messages that the preload library does not convert are packed by Open
        // MPI's own code. In the second run, they are packed inside Open MPI by code that ddtc has
        // compiled. The two runs thus compare converted messages with both alternatives. The second
        // run comes before the programs that write files, because the system goes on writing to
        // disk for a while after them.
        if i == 0 && library_and_lines(&text).is_ok_and(|(_, library)| library.family == Family::OpenMpi) {
            text += &launch(args, name, library, folder, Baseline::Hook)?;
        }
    }
    Ok(text)
}

fn compile(args: &Args, name: &str, text: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let source = folder.join(name).with_extension("c");
    std::fs::write(&source, text)?;
    let shown = args.mpicc.to_string_lossy();
    let out = Command::new(&args.mpicc)
        .args(["-O3", "-o"])
        .arg(folder.join(name))
        .arg(&source)
        .arg("-ldl")
        .output();
    let out = out.map_err(|e| format!("{shown}: {e}: name the MPI library's compiler with --mpicc"))?;
    if !out.status.success() {
        return Err(format!("{shown}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)).into());
    }
    Ok(())
}

/// What moves the bytes of calls that are not converted. The time of converted calls is compared
/// with the time of these calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Baseline {
    /// The unmodified MPI library.
    Unmodified,
    /// Code that ddtc compiles and that runs inside Open MPI, through a hook in its convertor.
    Hook,
}

fn launch(
    args: &Args,
    name: &str,
    library: &Path,
    folder: &Path,
    baseline: Baseline,
) -> Result<String, Box<dyn Error>> {
    let (launcher, arguments) = args
        .launch
        .split_first()
        .ok_or("the command that launches two ranks must follow --, as in: ddtc tune -- mpiexec -n 2")?;
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(library);
    let temporary = files::temporary_folder("ddtc-tune-files")?;
    // `env` sets the variables for the ranks alone: the launcher itself needs no preload library.
    let out = Command::new(launcher)
        .args(arguments)
        .arg("env")
        .arg(preload)
        .arg("DDTC_POLICY=all")
        // Compile at commit, so that every call is converted from the first one on. With mode
        // `lazy` the MPI library would serve some of the calls that are timed.
        .arg("DDTC_MODE=commit")
        .arg(if baseline == Baseline::Unmodified { "DDTC_HOOK=off" } else { "DDTC_HOOK=on" })
        .arg(folder.join(name))
        .args([args.rounds.to_string(), args.budget.to_string()])
        .arg(args.files.as_deref().unwrap_or(&temporary))
        .args((baseline == Baseline::Hook).then_some("inside"))
        .output()
        .map_err(|e| format!("{}: {e}", launcher.to_string_lossy()))?;
    if !out.status.success() {
        return Err(format!("{name}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)).into());
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    out!("{text}")?;
    Ok(text)
}

/// Minimum gain of conversion in percent of the time of a converted call. A smaller gain does not
/// count, because the time of a message varies with what else runs on the machine.
const MIN_GAIN_PERCENT: f64 = 5.0;

/// Finds the line that names the MPI library. Returns the lines after it, and the library.
fn library_and_lines(text: &str) -> Result<(impl Iterator<Item = &str>, Library), Box<dyn Error>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("library "));
    let rule = "the measuring program did not print the name of the MPI library: check that the command after -- passes on the output of rank 0";
    let version = lines.next().and_then(|l| l.strip_prefix("library ")).ok_or(rule)?;
    let words: Vec<&str> = version.split_whitespace().collect();
    Ok((lines, Library::from_version_text(&words.join(" "))))
}

/// Derives a policy from the output of the programs. Returns the library's name, the policy, and
/// the measurements as comment lines.
fn decide(text: &str) -> Result<(String, Policy, String), Box<dyn Error>> {
    let (lines, library) = library_and_lines(text)?;
    let mut comments = String::from(
        "# Columns: call (left out for messages), class, bytes; microseconds of converted calls, of the unmodified library and of\n\
         # packing by hand; noise in percent. For `inside`: microseconds with compiled code inside the library, of converted calls and\n\
         # of packing by hand; noise.\n",
    );
    // Maps each call and layout class to one result for each power of two `2^bit`, with `bit` as
    // the key. The result covers all measured payloads of `2^bit` to `2^(bit + 1) - 1` bytes. It is
    // true if, for every measured payload in this range, the calls that the preload library
    // converted were faster than those of the unmodified MPI library. (A call is converted if
    // compiled code packs or unpacks its buffer.) The gain must exceed `MIN_GAIN_PERCENT` plus
    // twice the noise. For `Call::Inside`, the result is true if messages that compiled code packs
    // inside the MPI library were faster than converted messages.
    let mut gains_by_bit: BTreeMap<(Call, Class), BTreeMap<u32, bool>> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let call = Call::ALL.into_iter().find(|c| *c != Call::Message && fields.first() == Some(&c.name()));
        let row = if call.is_some() { &fields[1..] } else { &fields[..] };
        let (call, [class, bytes, numbers @ ..]) = (call.unwrap_or(Call::Message), row) else { continue };
        let Some(class) = Class::ALL.into_iter().find(|c| c.name() == *class) else { continue };
        let bytes: u64 = bytes.parse()?;
        let numbers: Vec<f64> = numbers.iter().map(|n| n.parse()).collect::<Result<_, _>>()?;
        let [converted, unmodified, _, noise] = numbers[..] else {
            return Err(format!(
                "the measuring program printed a line that does not have 4 numbers: '{line}'"
            )
            .into());
        };
        let _ = writeln!(comments, "# {line}");
        let gains = unmodified > converted * (1.0 + (MIN_GAIN_PERCENT + 2.0 * noise) / 100.0);
        let of_bit =
            gains_by_bit.entry((call, class)).or_default().entry(bytes.max(1).ilog2()).or_insert(true);
        *of_bit &= gains;
    }
    if gains_by_bit.is_empty() {
        let rule = "the measuring program printed no measurement: check that the command after -- launches two ranks and passes on the output of rank 0";
        return Err(rule.into());
    }
    let mut policy = Policy::NONE;
    for ((call, class), bits) in gains_by_bit {
        let mut set = 0;
        for (&bit, _) in bits.iter().filter(|(_, gains)| **gains) {
            // The result for `bit` holds up to the next power of two that was measured. The result
            // for the largest power of two holds for all larger payloads.
            let end = bits.range(bit + 1..).next().map_or(64, |(&next, _)| next);
            set |= u64::MAX << bit & u64::MAX >> (64 - end);
        }
        policy = policy.with_call(call, class, set);
    }
    Ok((library.to_string(), policy, comments))
}

/// Returns the text `old` of a policy file without its table of the library `name`, if it has one,
/// and with `table` appended.
fn replace(old: &str, name: &str, table: &str) -> String {
    let (mut out, mut keep) = (String::new(), true);
    for line in old.lines() {
        if let Some(library) = line.strip_prefix("library ") {
            keep = library.trim() != name;
        }
        if keep {
            let _ = writeln!(out, "{line}");
        }
    }
    if out.is_empty() {
        out.push_str("# Written by `ddtc tune`: which messages the preload library converts.\n");
    }
    out + table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_beyond_the_noise_are_converted() {
        let text = "noise of a launcher\nlibrary Open MPI v5.0.11, package: x\nstrided-short,256,10,12,9,5\nstrided-short,1024,10,11,9,5\n\
                    strided-short,4096,10,30,9,5\ntable-long,1024,10,30,9,1\ntable-long,4096,10,9,9,1\n\
                    strided-long,4096,10,30,9,1\nstrided-long,12288,10,30,9,1\nstrided-long,16320,10,9,9,1\nstrided-long,16384,10,30,9,1\n\
                    bcast,blocks-short,256,10,30,9,1\ngather,blocks-short,256,10,10,9,1\n\
                    file-write,table-long,1024,10,30,9,1\nput,blocks-long,4096,10,30,9,1\nget,blocks-long,4096,10,10,9,1\n\
                    library Open MPI v5.0.11, package: x\ninside,table-short,65536,10,30,9,1\ninside,table-long,65536,10,9,9,1\n";
        let (name, policy, comments) = decide(text).unwrap();
        assert_eq!(name, "openmpi-5.0.11");
        assert_eq!(policy.set(Class::StridedShort), 0b11 << 8 | u64::MAX << 12);
        assert_eq!(policy.set(Class::TableLong), 0b11 << 10);
        // The payloads 12288 and 16320 lie between the same two powers of two, so they have one
        // result. It is false, because conversion gains only for the first of them.
        assert_eq!(policy.set(Class::StridedLong), 1 << 12 | u64::MAX << 14);
        assert_eq!(policy.set(Class::BlocksLong), 0);
        assert_eq!(policy.set(Class::BlocksShort), 0);
        assert_eq!(policy.payloads(Call::Bcast, Class::BlocksShort), u64::MAX << 8);
        assert_eq!(policy.payloads(Call::FileWrite, Class::TableLong), u64::MAX << 10);
        assert_eq!(policy.payloads(Call::Put, Class::BlocksLong), u64::MAX << 12);
        assert_eq!(policy.payloads(Call::Inside, Class::TableShort), u64::MAX << 16);
        assert_eq!(policy.payloads(Call::Inside, Class::TableLong), 0);
        assert!(!policy.any(Call::Gather) && !policy.any(Call::FileRead) && !policy.any(Call::Get));
        let file = replace("", &name, &format!("library {name}\n{comments}{policy}"));
        let file = replace(&file, "mpich-5.0.2", "library mpich-5.0.2\nstrided-long 64-\n");
        let again = replace(&file, &name, &format!("library {name}\n{policy}"));
        assert_eq!(Policy::parse(&again, &name), Ok(Some(policy)));
        let other = Policy::parse(&again, "mpich-5.0.2").unwrap().unwrap();
        assert_eq!(other.set(Class::StridedLong), u64::MAX << 6);
        assert!(decide("library x\n").is_err() && decide("").is_err());
    }
}
