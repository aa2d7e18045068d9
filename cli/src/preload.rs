//! `ddtc preload -- mpiexec -n 4 ./app`: runs a command with the preload library, and adds up the
//! reports of its ranks.
//!
//! The preload library is configured only by environment variables. This subcommand finds the
//! library, sets the variables, and adds up the reports. Each rank writes its report to a file of
//! its own; ranks do not communicate for this.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use clap::Args as ClapArgs;
use ddtc::internal::engine::Mode;
use ddtc::internal::files;
use ddtc::internal::target::Level;
use ddtc_hosts::library;

use crate::doctor::elf::Elf;
use crate::output::outln;
use crate::rank_reports::{self, gather};

/// Arguments of `ddtc preload`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// When datatypes are compiled: never (off or interpret), usually after enough bytes were moved
    /// (lazy), or for packing at commit and for unpacking at the first unpack (commit)
    #[arg(long)]
    mode: Option<Mode>,
    /// CPU level of the compiled code: baseline, avx2, avx512 or neon
    #[arg(long)]
    target: Option<Level>,
    /// Write a report of what was converted to this file, or to standard error if FILE is `-`. The
    /// report is JSON if the name ends in .json, and text otherwise
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Record the datatypes that the program commits, in the format of a corpus file, one file per
    /// rank
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Compare every pack and unpack with the interpreter and with the MPI library
    #[arg(long)]
    check: bool,
    /// Write the names of compiled functions to /tmp/perf-PID.map, for the profiler perf
    #[arg(long)]
    perf_map: bool,
    /// Use this preload library [default: the one next to this program or in ../lib]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Print the environment and the command instead of running it
    #[arg(long)]
    dry_run: bool,
    /// Command to run, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the user's command with the preload library. Then ends this process in the same way as the
/// command ended: with its exit status, or by the signal that ended it.
///
/// Without a report, the command replaces this process. If the command cannot be started, the exit
/// status is the one that `env` would return: 127 if the command is not found, otherwise 126.
///
/// If the report cannot be written after the command has ended, this function prints why, and
/// leaves the reports of the ranks in their folder.
///
/// # Errors
/// If the library is not found, or if the file for the report cannot be written before the command
/// is started. In both cases the command is not started.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    // Translate the options into environment variables of the preload library.
    let library = library::find(args.library.as_deref())?;
    let preloaded = preloads(&library, std::env::var_os("LD_PRELOAD"));
    warn_of_sanitizer(&args.command, &preloaded);
    let mut environment = vec![("LD_PRELOAD", preloaded)];
    let mut set = |name, value: &dyn ToString| environment.push((name, OsString::from(value.to_string())));
    if let Some(mode) = args.mode {
        set("DDTC_MODE", &mode);
    }
    if let Some(level) = args.target {
        set("DDTC_TARGET", &level.name());
    }
    if args.check {
        set("DDTC_CHECK", &1);
    }
    if args.perf_map {
        set("DDTC_PERF_MAP", &1);
    }
    if let Some(record) = &args.record {
        environment.push(("DDTC_RECORD", std::path::absolute(record)?.into()));
    }
    // If a report is wanted, each rank writes its own report into a folder. This process reads the
    // folder and removes it after the command has ended.
    let folder = match &args.report {
        Some(file) => {
            let parent = reports_parent(file)?;
            // The folder is private, so that no other user can place files in it before the ranks
            // do.
            let folder = if args.dry_run {
                parent.join(format!("{REPORTS}-{}", std::process::id()))
            } else {
                if file.as_os_str() != "-" {
                    files::check_replace(file)?;
                }
                files::private_folder(&parent, REPORTS).map_err(|e| format!("{}: {e}", parent.display()))?
            };
            environment.push(("DDTC_REPORT", folder.join(rank_reports::NAME).into()));
            Some(folder)
        }
        None => None,
    };
    if args.dry_run {
        outln!("{}", shown(&environment, &args.command))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or("the command to run must follow --, as in: ddtc preload -- mpiexec -n 2 ./app")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(environment);
    // Without a report, this process has nothing to do after the command, so the command can
    // replace it.
    let (Some(folder), Some(file)) = (folder, &args.report) else {
        return Ok(not_started(program, &command.exec()));
    };
    let outcome = command.status();
    let saved = if outcome.is_ok() { save_report(&folder, file) } else { Ok(()) };
    if let Err(error) = saved {
        eprintln!("error: {error}; the reports of the ranks are left in {}", folder.display());
    } else if let Err(error) = std::fs::remove_dir_all(&folder) {
        eprintln!("warning: {} cannot be removed: {error}", folder.display());
    }
    match outcome {
        Ok(status) => Ok(end_as(status)),
        Err(error) => Ok(not_started(program, &error)),
    }
}

/// Adds up the reports of the ranks in `folder`, and writes the sum to `file`, or to standard error
/// if `file` is `-`.
///
/// # Errors
/// If the folder cannot be read, or the report cannot be written.
fn save_report(folder: &Path, file: &Path) -> io::Result<()> {
    let report =
        gather(folder).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", folder.display())))?;
    if file.as_os_str() == "-" {
        return io::stderr().write_all(report.text().as_bytes());
    }
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    files::save(file, if is_json { report.json() } else { report.text() })
}

/// Prints why the user's command was not started, and returns the exit status for this case.
fn not_started(program: &OsStr, error: &io::Error) -> ExitCode {
    eprintln!("error: {}: {error}", program.to_string_lossy());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Makes this process end in the same way as the user's command. `status` is the exit status of the
/// command. If the command exited, returns its exit code, which `main` then returns too. If a
/// signal ended the command, this function ends the process by the same signal and does not return.
/// If that fails, it returns 128 plus the number of the signal.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // Replace this process by a shell that sends itself the signal, because sending a signal
        // from here would need unsafe code. The limit of 0 prevents a second core file: the command
        // has already written its own if one was wanted.
        let script = format!("ulimit -c 0; kill -{signal} $$");
        let error = Command::new("sh").args(["-c", &script]).exec();
        eprintln!("error: the command ended with {status}; sh: {error}");
        // Shells return 128 plus the number of the signal for a command that was ended by a signal.
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns the value of `LD_PRELOAD` for the user's command. `already` is the value so far. The
/// result names the runtimes of AddressSanitizer in `already`, then `library`, then the other
/// libraries of `already`.
fn preloads(library: &Path, already: Option<OsString>) -> OsString {
    let already = already.unwrap_or_default();
    let words = already.as_encoded_bytes().split(|&byte| byte == b':' || byte == b' ');
    let words = words.filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let (runtimes, others): (Vec<_>, Vec<_>) = words.partition(|word| is_sanitizer(Path::new(word)));
    runtimes.into_iter().chain([library.as_os_str()]).chain(others).collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Returns whether a library is a runtime of AddressSanitizer, judging by its file name.
fn is_sanitizer(library: &Path) -> bool {
    let name = library.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

/// Prints a warning if the user's command names a program that is built with AddressSanitizer. The
/// runtime of AddressSanitizer ends such a program if another library is loaded before the runtime.
/// So no warning is printed if the runtime is the first preloaded library.
fn warn_of_sanitizer(command: &[OsString], preloaded: &OsStr) {
    let first = preloaded.as_encoded_bytes().split(|&byte| byte == b':').next().unwrap_or_default();
    if is_sanitizer(Path::new(OsStr::from_bytes(first))) {
        return;
    }
    let files = command.iter().map(Path::new).filter(|word| word.components().count() > 1 && word.is_file());
    for program in files {
        let needed = Elf::read(program, "").map(|elf| elf.needed).unwrap_or_default();
        if let Some(runtime) = needed.iter().find(|name| is_sanitizer(Path::new(name))) {
            eprintln!(
                "ddtc: {} is built with AddressSanitizer, which ends a program whose first library is another one: \
                 set LD_PRELOAD to the path of {runtime} before this command",
                program.display()
            );
        }
    }
}

/// Returns the folder in which the folder for the ranks' reports is created: the folder of the file
/// `report`, or the working folder if `report` is `-`. The ranks on all nodes write their reports
/// there, so the nodes should share this folder.
fn reports_parent(report: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if report.as_os_str() == "-" {
        return Ok(std::env::current_dir()?);
    }
    let file = std::path::absolute(report)?;
    Ok(file.parent().unwrap_or(Path::new("/")).to_path_buf())
}

/// Beginning of the name of the temporary folder into which the ranks write their reports.
const REPORTS: &str = ".ddtc-report";

/// Returns the line that `--dry-run` prints: the environment and the command, as they can be typed
/// into a shell.
fn shown(environment: &[(&str, OsString)], command: &[OsString]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    let quote = |word: &OsStr| {
        let word = word.to_string_lossy();
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words = environment.iter().map(|(name, value)| format!("{name}={}", quote(value)));
    words.chain(command.iter().map(|word| quote(word))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_a_shell_takes_them() {
        let command = ["mpiexec", "-n", "4", "./my app", "it's"].map(OsString::from);
        let environment = [("LD_PRELOAD", preloads(Path::new("/a/b.so"), Some("/c.so".into())))];
        assert_eq!(
            shown(&environment, &command),
            r"LD_PRELOAD=/a/b.so:/c.so mpiexec -n 4 './my app' 'it'\''s'"
        );
        let preloaded = |already: &str| preloads(Path::new("/a/b.so"), Some(already.into()));
        assert_eq!(preloaded(""), "/a/b.so");
        assert_eq!(preloaded("/c.so /x/libasan.so.8:d.so"), "/x/libasan.so.8:/a/b.so:/c.so:d.so");
    }
}
