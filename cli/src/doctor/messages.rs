//! Finds out whether messages are converted, by launching two ranks with and without the preload
//! library.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ddtc::internal::files;
use ddtc_hosts::policy::{Class, Policy};

use super::{Args, Findings, TYPE, rank, sent};
use crate::rank_reports::{self, folder_for_ranks, gather};

/// Runs a command, and returns its status, standard output and standard error. If the command does
/// not end in time, its whole process group is ended.
///
/// # Errors
/// If the command does not start, or does not end within `seconds`.
pub(super) fn ended(command: &mut Command, seconds: u64) -> Result<(ExitStatus, String, String), String> {
    // Redirect to files instead of pipes: a process that outlives the command would keep a pipe
    // open.
    let folder = files::temporary_folder("ddtc-doctor").map_err(|e| format!("the temporary folder: {e}"))?;
    let file = |name: &str| File::create(folder.join(name)).map_err(|e| e.to_string());
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    // None if the clock cannot represent the end of the time limit.
    let end = Instant::now().checked_add(Duration::from_secs(seconds));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break Some(status);
        }
        if end.is_some_and(|end| Instant::now() > end) {
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |name: &str| {
        std::fs::read(folder.join(name))
            .map_or_else(|e| e.to_string(), |b| String::from_utf8_lossy(&b).into_owned())
    };
    match status {
        Some(status) => Ok((status, read("out"), read("err"))),
        None => {
            end_group(&mut child);
            Err(format!("no end after {seconds} s; its last lines: {}", last_lines(&read("err"), 3)))
        }
    }
}

/// Ends a command that was started in a process group of its own, with all processes of the group.
fn end_group(child: &mut Child) {
    // Send TERM first, because a launcher that gets it ends its ranks. A second later, send KILL.
    let group = format!("-{}", child.id());
    for signal in ["-TERM", "-KILL"] {
        let _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
        std::thread::sleep(Duration::from_secs(1));
    }
    // If the system has no program `kill`, no process has been ended so far. In that case end at
    // least the command itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the last `n` lines of a text that are not blank, joined by slashes.
pub(super) fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    if lines.is_empty() { "nothing".into() } else { lines[lines.len().saturating_sub(n)..].join(" / ") }
}

/// Output of the ranks that `ddtc doctor` has launched.
struct RankOutput {
    size: Vec<u64>,
    us: Option<f64>,
    wrong: Option<u64>,
}

fn parse_output(out: &str) -> RankOutput {
    let mut said = RankOutput { size: Vec::new(), us: None, wrong: None };
    for line in out.lines().filter_map(|l| l.split_once(rank::MARK).map(|(_, rest)| rest)) {
        match line.split_once(' ') {
            Some(("size", n)) => said.size.extend(n.parse::<u64>()),
            Some(("us", us)) => said.us = us.parse().ok(),
            Some(("wrong", n)) => said.wrong = n.parse().ok(),
            _ => {}
        }
    }
    said
}

/// Returns a remedy for a launcher that failed, judging by its output.
fn launcher_remedy(words: &str) -> &'static str {
    // The texts of PRRTE and ORTE, the launchers of Open MPI, may have line breaks anywhere.
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.contains("OMPI_ALLOW_RUN_AS_ROOT") || words.contains("as root") {
        return "run it as another user, or set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, both, as \
                Open MPI asks of root in a container";
    }
    "this is the output of the launcher or the library: check whether it runs any other program"
}

/// Launches the ranks with some variables added to their environment. Returns what they printed and
/// their standard error, or else a problem and its remedy.
fn launch(
    args: &Args,
    mpi: &Path,
    environment: &[(&str, OsString)],
) -> Result<(RankOutput, String), (String, String)> {
    let program = std::env::current_exe().map_err(|e| (e.to_string(), "report this output".to_owned()))?;
    let Some((launcher, rest)) = args.launch.split_first() else {
        return Err((String::new(), String::new()));
    };
    let mut command = Command::new(launcher);
    // `env` sets the variables for the ranks alone: the launcher itself needs no preload library.
    command.args(rest).arg("env");
    for (name, value) in environment {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        command.arg(word);
    }
    command.arg(program).args(["doctor", "--rank"]).arg(mpi);
    let (status, out, err) = ended(&mut command, args.seconds).map_err(|e| {
        (
            format!("the ranks: {e}"),
            "try the launcher with another program, such as `hostname`; --seconds waits longer".to_owned(),
        )
    })?;
    if !status.success() {
        let text = if err.trim().is_empty() { &out } else { &err };
        return Err((
            format!("the ranks: {status}: {}", last_lines(text, 8)),
            launcher_remedy(&format!("{out}{err}")).to_owned(),
        ));
    }
    // The ranks ended without an error. For each MPI world there is one line with its size. Several
    // such lines mean that each process was started as a world of its own, because launcher and
    // library do not belong together.
    let said = parse_output(&out);
    match said.size[..] {
        [n] if n >= 2 => Ok((said, err)),
        [1] => Err((
            "one rank was started: messages need two".into(),
            "launch two: ddtc doctor -- mpiexec -n 2".into(),
        )),
        [] => Err((
            format!("the ranks printed nothing: {}", last_lines(&err, 3)),
            "check whether the launcher passes on what its ranks print".into(),
        )),
        _ => Err((
            format!("{} processes were started, each a world of its own", said.size.len()),
            "the launcher is of another MPI than the library: use the one that belongs to it".into(),
        )),
    }
}

/// Launches the ranks with and without the preload library, and reports the results. `untried` is
/// the reason why no call is converted under this MPI library, if the results of trials forbid it,
/// for example that this library was not tried. `None` does not promise that messages are
/// converted.
pub(super) fn run(
    findings: &mut Findings,
    args: &Args,
    library: &Path,
    mpi: &Path,
    policy: Policy,
    untried: Option<&String>,
) {
    let folder = match folder_for_ranks(".ddtc-doctor") {
        Ok(folder) => folder,
        Err(error) => {
            return findings
                .add_problem(&format!("no folder for reports: {error}"), "run it in a folder of your own");
        }
    };
    with_reports(findings, args, library, mpi, (policy, untried), &folder);
}

fn with_reports(
    findings: &mut Findings,
    args: &Args,
    library: &Path,
    mpi: &Path,
    (policy, untried): (Policy, Option<&String>),
    folder: &Path,
) {
    let reports_in = [
        ("LD_PRELOAD", library.into()),
        ("DDTC_REPORT", folder.join(rank_reports::NAME).into()),
        // Compile each layout at its first use, so that the result does not depend on the number of
        // messages.
        ("DDTC_LAZY_THRESHOLD", "0".into()),
        ("DDTC_RECORD", "".into()),
    ];
    // Run the ranks with the preload library, and add up their reports.
    let (converted, errors) = match launch(args, mpi, &reports_in) {
        Ok(outcome) => outcome,
        Err((what, remedy)) => return findings.add_problem(&what, &remedy),
    };
    let times = |us: Option<f64>| us.map_or("?".to_owned(), |us| format!("{us:.1}"));
    let report = gather(folder).unwrap_or_default();
    let mut timed: Vec<&String> = report.types.iter().flat_map(|row| &row.timings).collect();
    timed.sort();
    timed.dedup();
    let sum = |name: &str| report.total(name);
    let (packed, unpacked) = (sum("messages_packed"), sum("messages_unpacked"));
    let (class, bytes) = match sent() {
        Ok(sent) => sent,
        Err(error) => return findings.add_problem(&error, "report this output"),
    };
    // Run the ranks again without the preload library, to compare times and, if wrong bytes have
    // arrived, to find out whether the preload library is the cause.
    let unmodified = launch(args, mpi, &[("LD_PRELOAD", "".into())]);
    let unmodified_us = unmodified.as_ref().ok().and_then(|(said, _)| said.us);
    findings.add_lines(
        "messages",
        &format!(
            "{bytes} B of {TYPE} ({}): {packed} packed, {unpacked} unpacked by ddtc\n{} us one way, {} us without the preload library",
            class.name(),
            times(converted.us),
            times(unmodified_us),
        ),
    );
    for note in &report.notes {
        findings.add_lines("", &format!("note: {note}"));
    }
    let inside = sum("hook_bytes_packed") + sum("hook_bytes_unpacked");
    if inside > 0 {
        findings.add_lines("", &format!("{inside} bytes moved by ddtc inside this library"));
    }
    for line in &timed {
        findings.add_lines("", &format!("timed: {line}"));
    }
    if converted.wrong.is_none_or(|n| n > 0) {
        let what = format!("{} wrong bytes arrived", converted.wrong.unwrap_or(0));
        let unmodified = unmodified.as_ref().ok().and_then(|(said, _)| said.wrong);
        let remedy = match unmodified {
            Some(0) => "set DDTC_MODE=off and report this output: it is a fault of ddtc",
            _ => {
                "without the preload library they are wrong, too, or the ranks fail: this is a fault of the MPI library or of the network"
            }
        };
        findings.add_problem(&what, remedy);
    }
    // Return if messages were converted. Also return if the ranks have chosen not to convert them:
    // each rank times packing by the MPI library and by ddtc, and if conversion gains nothing, it
    // does not convert further messages of this layout and size class.
    if packed > 0 && unpacked > 0
        || inside > 0
        || converted.wrong == Some(0) && timed.iter().any(|l| l.contains(": bypassed;"))
    {
        return;
    }
    // Messages were not converted, and no timing explains this. Add a problem that states the
    // reason.
    let (why, remedy) = if report.ranks == 0 {
        let said = last_lines(&errors, 2);
        (
            format!("the ranks wrote no report: the preload library was not loaded there ({said})"),
            "check whether the launcher passes LD_PRELOAD on to the ranks: see \"Limits\" in docs/PRELOAD.md",
        )
    } else {
        why_not((policy, untried), (class, bytes), &errors, [packed, unpacked])
    };
    findings.add_problem(&format!("messages are not converted: {why}"), remedy);
}

/// Returns why messages of `bytes` bytes were not converted although the preload library was
/// loaded, and a remedy. The reasons are tried in order, the most obvious one first.
fn why_not(
    (policy, untried): (Policy, Option<&String>),
    (class, bytes): (Class, u64),
    errors: &str,
    [packed, unpacked]: [u64; 2],
) -> (String, &'static str) {
    let mode = std::env::var("DDTC_MODE").unwrap_or_default();
    if mode == "off" {
        ("DDTC_MODE=off".to_owned(), "unset DDTC_MODE")
    } else if let Some(untried) = untried {
        (
            untried.clone(),
            "docs/LIBRARIES.md lists the releases that were tried, and says how to try another one",
        )
    } else if !Policy::has(policy.set(class), bytes) {
        (
            format!("the policy in force leaves {} of {bytes} B to the library", class.name()),
            "`ddtc tune` measures what gains here; DDTC_POLICY=all converts everything",
        )
    } else if errors.contains("ddtc") {
        let lines: Vec<&str> = errors.lines().filter(|l| l.contains("ddtc")).collect();
        (lines.join(" / "), "this is the output of the preload library: see docs/PRELOAD.md")
    } else if packed != unpacked {
        (format!("{packed} packed, {unpacked} unpacked"), "report this output")
    } else {
        ("no reason is known".to_owned(), "report this output")
    }
}
