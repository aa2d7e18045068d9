//! `ddtc preload -- mpiexec -n 4 ./app`: runs a command with the preload library and sums what its ranks report.
//!
//! The library has no options of its own but environment variables; this verb finds the library, sets them, and adds up the
//! reports that the ranks wrote to files of their own (they never talk to each other about it).

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io;
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
use crate::rank_reports::{self, gather};

/// Arguments of `ddtc preload`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Mode of commits: off, interpret, lazy or commit
    #[arg(long)]
    mode: Option<Mode>,
    /// CPU level of the compiled code: baseline, avx2, avx512 or neon
    #[arg(long)]
    target: Option<Level>,
    /// Write what was converted to a file, or to standard error with `-`: text, or JSON if the name
    /// ends in .json
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Record the types that the program commits as a corpus, one file per rank
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Compare every pack and unpack with the interpreter and with the host's own
    #[arg(long)]
    check: bool,
    /// Name compiled code for perf in /tmp/perf-PID.map
    #[arg(long)]
    perf_map: bool,
    /// The preload library, if it is not next to this program or in ../lib
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Print the environment and the command instead of running it
    #[arg(long)]
    dry_run: bool,
    /// The command, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command and ends as it ends: with its exit status, or by the signal that ended it.
///
/// Without a report this process becomes the command. A command that cannot be started gives the
/// status of `env`: 127 if it is not found, else 126.
///
/// # Errors
/// If the library is not found, or a report cannot be written.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
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
    let folder = match &args.report {
        Some(file) => {
            let parent = reports_parent(file)?;
            // Nobody else may write there before the ranks do.
            let folder = if args.dry_run {
                parent.join(format!("{REPORTS}-{}", std::process::id()))
            } else {
                files::private_folder(&parent, REPORTS).map_err(|e| format!("{}: {e}", parent.display()))?
            };
            environment.push(("DDTC_REPORT", folder.join(rank_reports::NAME).into()));
            Some(folder)
        }
        None => None,
    };
    if args.dry_run {
        println!("{}", shown(&environment, &args.command));
        return Ok(ExitCode::SUCCESS);
    }
    let (program, arguments) = args.command.split_first().ok_or("a command is needed after --")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(environment);
    let (Some(folder), Some(file)) = (folder, &args.report) else {
        return Ok(not_started(program, &command.exec()));
    };
    let outcome = command.status();
    let report = gather(&folder)?;
    std::fs::remove_dir_all(&folder)?;
    let status = match outcome {
        Ok(status) => status,
        Err(error) => return Ok(not_started(program, &error)),
    };
    if file.as_os_str() == "-" {
        eprint!("{}", report.text());
    } else {
        let is_json = file.extension().is_some_and(|ending| ending == "json");
        files::save(file, if is_json { report.json() } else { report.text() })?;
    }
    Ok(end_as(status))
}

/// Says why the command was not started, and returns the exit status for that.
fn not_started(program: &OsStr, error: &io::Error) -> ExitCode {
    eprintln!("error: {}: {error}", program.to_string_lossy());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Returns the exit status of a command that exited. A command that was ended by a signal ends this
/// process by the same signal.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // This process becomes a shell that sends itself the signal: sending one from here needs
        // unsafe code. The command has written a core file already if one was wanted.
        let script = format!("ulimit -c 0; kill -{signal} $$");
        let error = Command::new("sh").args(["-c", &script]).exec();
        eprintln!("error: the command ended with {status}; sh: {error}");
        // What a shell says of a command that was ended by a signal.
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// `LD_PRELOAD` with the library in front of what is there, but after runtimes of AddressSanitizer.
fn preloads(library: &Path, already: Option<OsString>) -> OsString {
    let already = already.unwrap_or_default();
    let words = already.as_encoded_bytes().split(|&byte| byte == b':' || byte == b' ');
    let words = words.filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let (runtimes, others): (Vec<_>, Vec<_>) = words.partition(|word| is_sanitizer(Path::new(word)));
    runtimes.into_iter().chain([library.as_os_str()]).chain(others).collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Says whether a library is the runtime of AddressSanitizer, by its name.
fn is_sanitizer(library: &Path) -> bool {
    let name = library.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

/// Names a program of the command that is built with AddressSanitizer, unless its runtime is preloaded
/// first: the runtime ends a program in which another library was loaded before it.
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

/// Where the ranks write: beside the report, which all nodes of a job can see if they share the working folder.
fn reports_parent(report: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if report.as_os_str() == "-" {
        return Ok(std::env::current_dir()?);
    }
    let file = std::path::absolute(report)?;
    Ok(file.parent().unwrap_or(Path::new("/")).to_path_buf())
}

/// How the folder of the ranks' reports is called.
const REPORTS: &str = ".ddtc-report";

/// The command as a shell would take it.
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
