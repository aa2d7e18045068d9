//! Tests, under an MPI library that the developers of ddtc have not tried, which calls give right
//! results if the preload library converts them. `ddtc tune` does this before it measures.
//!
//! To convert a call means to have compiled code pack or unpack its buffer. A C program, `prove.c`,
//! makes calls with and without conversion, one kind of calls after the other. The tests of one
//! kind, such as nonblocking messages, are a [`Step`]. The outcomes of all steps are recorded in a
//! [`Proof`], which is stored in a file. The proof permits the preload library to convert the kinds
//! of calls whose results were right ([`ddtc_hosts::proof`]).
//!
//! A step may crash or hang the job, or end this process. Therefore the file is rewritten whenever
//! the program begins or ends a step. The next run of `ddtc tune` treats a step that has begun and
//! not ended like a step with wrong results: both are called refused, and calls of that kind are
//! not converted.
//!
//! Once one of the three steps that test messages (blocking, nonblocking and persistent ones) is
//! refused, no further step is tested. If the program ends early for another reason, it is launched
//! again for the remaining steps.

use std::error::Error;
use std::ffi::OsString;
use std::fs::TryLockError;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ddtc::internal::files;
use ddtc_bench::machine;
use ddtc_hosts::policy::Library;
use ddtc_hosts::profile::Profile;
use ddtc_hosts::proof::{self, Grant, Key, Outcome, Proof, Step};
use ddtc_hosts::transport::Transport;
use ddtc_hosts::tried::{Kind, TrialStatus};

use super::{Args, abi, compile};
use crate::output::outln;

/// The program that tests calls with and without conversion: its name and its C source.
const PROGRAM: (&str, &str) = ("prove", include_str!("prove.c"));
/// Beginning of the lines that the program prints for this module. Lines without it, which
/// launchers and libraries may print, are ignored.
const MARK: &str = "ddtc-prove ";
/// Maximum duration of one launch of the program that tests calls. The program has shorter
/// deadlines of its own. This limit is for a launcher that does not end although its ranks have
/// ended.
const LAUNCH: Duration = Duration::from_secs(1800);

/// A line that the program prints for this module: a fact about the job, the outcome of a step, or
/// the end. A step is the test of one kind of calls.
#[derive(Debug)]
enum Line {
    Key(String),
    Nodes(u32),
    Ranks(u32),
    Converts(bool),
    File(String),
    Flavour(u32),
    Abi(String),
    Outcome(Step, Outcome),
    Done,
}

impl Line {
    /// Parses a line of output. Returns `None` if the line was not printed by the program.
    fn parse(line: &str) -> Option<Line> {
        // A launcher may put a prefix, such as the rank, in front of each line that a rank prints.
        let (_, line) = line.split_once(MARK)?;
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (step, why) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(match head {
            "key" => Line::Key(rest.to_owned()),
            "nodes" => Line::Nodes(rest.parse().ok()?),
            "ranks" => Line::Ranks(rest.parse().ok()?),
            "file" => Line::File(rest.to_owned()),
            "flavour" => Line::Flavour(rest.parse().ok()?),
            "abi" => Line::Abi(rest.to_owned()),
            "converts" => Line::Converts(rest.parse::<u8>().ok()? != 0),
            "begun" => Line::Outcome(Step::find(step)?, Outcome::Begun),
            "proven" => Line::Outcome(Step::find(step)?, Outcome::Proven),
            "refused" => Line::Outcome(Step::find(step)?, Outcome::Refused(why.to_owned())),
            "unproven" => Line::Outcome(Step::find(step)?, Outcome::Unproven(why.to_owned())),
            "done" => Line::Done,
            _ => return None,
        })
    }
}

/// Launches the program to test the calls of `steps`, with the variables `variables` in the
/// environment of the ranks. Passes each line that it prints for this
/// module, except the last one, to `take` as soon as the line is printed. Returns whether the
/// program has printed its last line, and a description of how it ended.
fn launch(
    args: &Args,
    library: &Path,
    folder: &Path,
    variables: &[&str],
    steps: &[Step],
    mut take: impl FnMut(Line) -> Result<(), Box<dyn Error>>,
) -> Result<(bool, String), Box<dyn Error>> {
    let (launcher, arguments) = args.launch.split_first().ok_or("a launcher is needed after --")?;
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(library);
    // Let the preload library write a report, because it counts conversions only for a report or a
    // record (messages also while it checks them or shows them to a profiler). The program asks for
    // these counts.
    let mut report = OsString::from("DDTC_REPORT=");
    report.push(folder.join("prove-report%r"));
    let errors = folder.join("prove-errors");
    let mut child = Command::new(launcher)
        .args(arguments)
        .arg("env")
        .args([preload, report])
        .args(variables)
        .args(["DDTC_MODE=commit", "DDTC_HOOK=off", "DDTC_RECORD="])
        .arg(folder.join(PROGRAM.0))
        .arg(args.deadline.to_string())
        .args(steps.iter().map(|step| step.name()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&errors)?)
        .spawn()
        .map_err(|e| format!("{}: {e}", launcher.to_string_lossy()))?;
    let output = child.stdout.take();
    let (sender, received) = channel();
    let reader = std::thread::spawn(move || {
        let read = output.map(|output| BufReader::new(output).split(b'\n')).into_iter().flatten();
        for line in read.map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let (end, mut is_done) = (Instant::now() + LAUNCH, false);
    let how = loop {
        match received.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => match Line::parse(&line) {
                Some(Line::Done) => is_done = true,
                Some(line) => {
                    if let Err(error) = take(line) {
                        end_launcher(&mut child, Duration::from_secs(10))?;
                        return Err(error);
                    }
                }
                None => {}
            },
            Err(RecvTimeoutError::Disconnected) => break child.wait()?.to_string(),
            Err(RecvTimeoutError::Timeout) => {
                end_launcher(&mut child, Duration::from_secs(10))?;
                // Do not join the thread that reads the output: it runs until the last rank has
                // ended, and ranks may outlive a launcher that had to be killed. Such ranks end by
                // their own deadlines.
                return Ok((is_done, format!("the launcher has not ended for {} seconds", LAUNCH.as_secs())));
            }
        }
    };
    let _ = reader.join();
    let errors = std::fs::read(&errors).unwrap_or_default();
    let errors = String::from_utf8_lossy(&errors);
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
    Ok((is_done, format!("{how}; {last}").trim_end_matches("; ").to_owned()))
}

/// Ends a launcher and its ranks. The launcher gets the signal TERM, at which launchers end their
/// ranks. If it has not ended after `patience`, it is killed. A launcher that is killed at once may
/// leave its ranks behind: those of Open MPI 5.0 go on, each in a process group of its own, so a
/// signal to the group of the launcher would not reach them.
fn end_launcher(launcher: &mut Child, patience: Duration) -> std::io::Result<()> {
    // If the system has no program `kill`, the launcher is killed after the wait.
    let id = launcher.id().to_string();
    let _ = Command::new("kill").args(["-TERM", "--", &id]).stderr(Stdio::null()).status();
    let end = Instant::now() + patience;
    while launcher.try_wait()?.is_none() {
        if Instant::now() > end {
            launcher.kill()?;
            launcher.wait()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns the proofs of earlier runs that a file contains. If the file does not exist, there are
/// none.
fn read(file: &Path) -> Result<Vec<Proof>, Box<dyn Error>> {
    match files::read_own(file) {
        Ok(text) => Ok(proof::parse(&text).map_err(|e| format!("{}: {e}", file.display()))?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(format!("{}: {error}; remove it, then run `ddtc tune` again", file.display()).into())
        }
    }
}

fn is_same(one: &Proof, other: &Proof) -> bool {
    one.key == other.key && one.nodes == other.nodes && one.ranks == other.ranks
}

/// Writes `new` into the file of proofs. A proof records which kinds of calls gave right results
/// when `ddtc tune` tested them under one MPI library. If the file has a proof with the same key
/// and the same numbers of nodes and ranks, `new` replaces it. All other proofs stay in the file.
fn save(file: &Path, new: &Proof) -> Result<(), Box<dyn Error>> {
    let mut proofs = read(file)?;
    proofs.retain(|old| !is_same(old, new));
    proofs.push(new.clone());
    Ok(files::publish(file, proof::written(&proofs))?)
}

/// Reason that a proof gives for a step during which `ddtc tune` was interrupted. A step is the
/// test of one kind of calls. Until it is tested again, calls of this kind are not converted.
const INTERRUPTED: &str = "the run that tried them has not ended";

/// Returns the proof with which this run of `ddtc tune` starts. A proof records, for each kind of
/// calls (a step), whether the calls gave right results. `old` has the proofs of earlier runs. If
/// none of them has the same key and numbers of nodes and ranks as `new`, the result is `new`.
/// Otherwise some outcomes of the earlier run are kept:
///
/// If a step of `new` is refused already, the result is `new` too.
///
/// - A step in which a fault was found stays refused: it is not tested again, and its calls are not
///   converted. A fault may show only in some runs, and must not be forgotten after a run in which
///   it does not show.
/// - If the earlier run was interrupted, the outcomes of all its completed steps are kept.
/// - The step during which it was interrupted counts as refused in this run. If this run is
///   completed, the next run tests the step again.
fn begun(new: Proof, old: &[Proof]) -> Proof {
    let Some(old) = old.iter().find(|old| is_same(old, &new)) else { return new };
    if !new.refused().is_empty() {
        return new;
    }
    let outcomes = old.outcomes.clone().map(|outcome| match outcome {
        Some(Outcome::Begun) => Some(Outcome::Refused(INTERRUPTED.to_owned())),
        Some(Outcome::Proven | Outcome::Unproven(_)) if old.is_finished => None,
        Some(Outcome::Refused(why)) if old.is_finished && why == INTERRUPTED => None,
        other => other,
    });
    Proof { outcomes, ..new }
}

/// Prints the kinds of calls (steps) that an earlier run has refused, and how to test them again.
/// They are not tested in this run. The earlier run has found a fault in them, or was interrupted
/// during them.
fn print_refusals(proof: &Proof, file: &Path) -> std::io::Result<()> {
    for step in Step::ALL {
        if let Some(Outcome::Refused(why)) = proof.outcome(step) {
            outln!(
                "{}: refused by an earlier run: {why}; to try again, remove {}",
                step.name(),
                file.display()
            )?;
        }
    }
    Ok(())
}

/// Locks a file of proofs, so that only one process at a time tests calls and writes the outcomes
/// into the file. The lock is held until the returned file is closed. If the file system has no
/// locks, which may be so on a cluster, the file is not locked.
fn locked(file: &Path) -> Result<std::fs::File, Box<dyn Error>> {
    let lock = file.with_extension("lock");
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let open = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
    let open = open.map_err(|e| format!("{}: {e}", lock.display()))?;
    match open.try_lock() {
        Ok(()) => Ok(open),
        Err(TryLockError::WouldBlock) => {
            Err(format!("{}: another `ddtc tune` is proving: wait until it has ended", lock.display()).into())
        }
        Err(TryLockError::Error(_)) => Ok(open),
    }
}

/// What the ranks of a job say before any call is tested.
struct Job {
    /// A proof of this job in which no step has begun. Its key names the MPI library, the transport
    /// and the version of ddtc.
    proof: Proof,
    /// True if the preload library may convert messages in every rank.
    converts: bool,
    /// File of the MPI library.
    file: String,
    /// How the MPI library's header differs from the ABI that the preload library has found.
    difference: Option<String>,
}

/// Launches the program without testing calls, to learn what the ranks say. Their environment is
/// that of a usual job, except that `DDTC_POLICY=all` does not count.
fn ask(args: &Args, library: &Path, folder: &Path) -> Result<Job, Box<dyn Error>> {
    let (mut key, mut nodes, mut ranks, mut converts) = (String::new(), None, None, false);
    let (mut file, mut flavour, mut constants) = (String::new(), 0, Vec::new());
    let (is_done, how) = launch(args, library, folder, &["DDTC_POLICY=table"], &[], |line| {
        match line {
            Line::Key(line) => key = format!("{key}{line}\n"),
            Line::Nodes(n) => nodes = Some(n),
            Line::Ranks(n) => ranks = Some(n),
            Line::Converts(is_so) => converts = is_so,
            Line::File(name) => file = name,
            Line::Flavour(number) => flavour = number,
            Line::Abi(line) => constants.push(line),
            Line::Outcome(..) | Line::Done => {}
        }
        Ok(())
    })?;
    match (Key::parse(&key), nodes, ranks) {
        (Some(key), Some(nodes), Some(ranks)) if is_done => {
            let difference = match abi::of_number(flavour) {
                Some(abi) => abi::difference(abi, &constants),
                None => Some(format!("unknown ABI {flavour}")),
            };
            Ok(Job { proof: Proof::new(key, &machine::today(), nodes, ranks), converts, file, difference })
        }
        _ => Err(format!("{}: {how}", PROGRAM.0).into()),
    }
}

/// Returns true if it is known from the matrix which calls are right under the MPI library and with
/// the transport of this key, or if messages are never converted under the library. Otherwise there
/// is something to prove.
fn is_known(key: &Key) -> bool {
    let tested = Library::from_version_text(&key.library);
    let transport = Transport::ALL.into_iter().find(|transport| key.transport.starts_with(transport.name()));
    matches!(TrialStatus::find(&tested, transport), TrialStatus::Tried { .. })
        || !Profile::find(&tested).stages
}

/// Returns the reason why there is nothing to prove under the MPI library of this key.
fn reason(key: &Key) -> &'static str {
    if Profile::find(&Library::from_version_text(&key.library)).stages {
        "it is known which of its calls are right"
    } else {
        "no release like this one has its messages packed outside of the library"
    }
}

/// Number of ranks of the programs that measure.
const MEASURED_RANKS: u32 = 2;

/// Proves what can be proven ([`prove`]). Returns true if `ddtc tune` is to measure after that. If
/// it is not, prints the reason, unless `--only-prove` was given.
///
/// The policy table must not be measured in jobs that convert no messages: both times of each row
/// would be those of the unmodified library, and the noise between them would decide.
///
/// # Errors
/// Those of [`prove`]. Also if there is nothing to prove, and the job does not have the number of
/// ranks that measuring needs.
pub(super) fn prove_first(args: &Args, library: &Path, folder: &Path) -> Result<bool, Box<dyn Error>> {
    std::fs::write(folder.join("abi.h"), abi::header())?;
    compile(args, PROGRAM.0, PROGRAM.1, folder)?;
    let mut job = ask(args, library, folder)?;
    let (name, ranks) = (job.proof.key.library.clone(), job.proof.ranks);
    let known = is_known(&job.proof.key);
    if known && args.only_prove {
        outln!("{name}: nothing is left to prove, because {}", reason(&job.proof.key))?;
    }
    if !known {
        if let Some(difference) = &job.difference {
            job.proof.outcomes[Step::Blocking as usize] = Some(Outcome::Refused(difference.clone()));
        }
        prove(args, library, folder, job.proof, &job.file)?;
    }
    if args.only_prove {
        return Ok(false);
    }
    if !known {
        // Ask again, because only the ranks know whether they find the proof and whether it is
        // valid for their job.
        job = ask(args, library, folder)?;
    }
    match obstacle(job.converts, known, ranks)? {
        None => Ok(true),
        Some(why) => {
            outln!("{name}: nothing is measured, and the policy table stays as it is: {why}")?;
            Ok(false)
        }
    }
}

/// Returns the reason for which jobs of `ranks` ranks are not measured; `None` if they are.
/// `converts` is true if they convert messages. If `known` is false, their calls were proven just
/// now.
///
/// # Errors
/// Nothing was proven, and the job does not have the number of ranks that measuring needs.
fn obstacle(converts: bool, known: bool, ranks: u32) -> Result<Option<String>, String> {
    let two = format!("measuring needs {MEASURED_RANKS} ranks, and this job has {ranks}");
    match (converts, known) {
        (true, _) if ranks == MEASURED_RANKS => Ok(None),
        (true, true) => Err(two),
        (true, false) => Ok(Some(two)),
        (false, true) => Ok(Some("jobs like this one convert no messages under this MPI library".to_owned())),
        (false, false) => Ok(Some("jobs like this one find no proof that permits messages. They look for `ddtc-proofs` in the folder of the MPI library and for `ddtc/proofs` in the user's configuration folder, and must learn from their launcher on how many nodes they run".to_owned())),
    }
}

/// Tests which kinds of calls give right results if the preload library converts them, that is, if
/// compiled code packs and unpacks their buffers. Writes the outcomes, the proof, to a file from
/// which the preload library later reads which kinds of calls it may convert.
///
/// `new` is the proof in which no step has begun, or one in which a step is refused already. `mpi`
/// is the file of the MPI library.
///
/// # Errors
/// - If the program does not run.
/// - If the file of proofs cannot be read, written or locked.
/// - If messages are refused: in this run or an earlier one, they gave wrong results when they were
///   converted, or the run ended during their test.
/// - If too few messages were converted to prove anything.
/// - If `--proofs` was not given and the user's configuration folder is not known.
fn prove(args: &Args, library: &Path, folder: &Path, new: Proof, mpi: &str) -> Result<(), Box<dyn Error>> {
    let variable = |name| std::env::var(name).ok();
    let (config, home) = (variable("XDG_CONFIG_HOME"), variable("HOME"));
    let file: PathBuf = match &args.proofs {
        Some(file) => file.clone(),
        None => proof::of_user(config.as_deref(), home.as_deref())
            .ok_or("neither XDG_CONFIG_HOME nor HOME is a folder: name a file with --proofs")?,
    };
    let _lock = locked(&file)?;
    outln!("{} was not tried: its calls are proven first", new.key.library)?;
    if let Some(Outcome::Refused(why)) = new.outcome(Step::Blocking) {
        outln!("{}: refused: {why}", Step::Blocking.name())?;
    }
    // Do not write the proof yet. It is written whenever the C program begins or ends a step, and
    // at the end of this function.
    let is_open = new.refused().is_empty();
    let mut proof = begun(new, &read(&file)?);
    if is_open {
        print_refusals(&proof, &file)?;
    }
    loop {
        // Stop once one of the three steps with messages is refused. Calls of all kinds are then
        // refused, whatever the remaining steps would show, because the calls of the last step,
        // collective calls, consist of messages, too.
        let is_open = |step: &Step| proof.outcome(*step).is_none();
        let open: Vec<Step> = Step::ALL.into_iter().filter(is_open).collect();
        if open.is_empty() || proof.refused().has(Kind::Messages) {
            break;
        }
        let all = ["DDTC_UNPROVEN=1", "DDTC_POLICY=all"];
        let (is_done, how) = launch(args, library, folder, &all, &open, |line| {
            if let Line::Outcome(step, outcome) = line
                // Several ranks may report wrong results that have the same cause. Keep the reason
                // that arrives first.
                && !matches!(proof.outcome(step), Some(Outcome::Refused(_)))
            {
                match &outcome {
                    Outcome::Begun => {}
                    Outcome::Proven => outln!("{}: right", step.name())?,
                    Outcome::Refused(why) => outln!("{}: refused: {why}", step.name())?,
                    Outcome::Unproven(why) => outln!("{}: not proven: {why}", step.name())?,
                }
                proof.outcomes[step as usize] = Some(outcome);
                save(&file, &proof)?;
            }
            Ok(())
        })?;
        let mut is_new = false;
        for step in open {
            if proof.outcome(step) == Some(&Outcome::Begun) {
                outln!("{}: refused: {how}", step.name())?;
                proof.outcomes[step as usize] = Some(Outcome::Refused(how.clone()));
            }
            is_new |= proof.outcome(step).is_some();
        }
        if !is_new {
            return Err(format!("{}: {how}", PROGRAM.0).into());
        }
        if is_done {
            break;
        }
    }
    proof.is_finished = true;
    save(&file, &proof)?;
    judge(&proof, file, proof::existing_files(mpi, config.as_deref(), home.as_deref()))
}

/// Prints what a proof that is finished permits, together with all other proofs that the preload
/// library reads. `file` has the proof. `others` are the files in which the preload library looks
/// for proofs, which may have `file` among them. A refusal in any of them outweighs a permission.
///
/// # Errors
/// If messages are not permitted, or if a file cannot be read.
fn judge(proof: &Proof, file: PathBuf, mut others: Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    let is_file = |other: &PathBuf| std::fs::canonicalize(other).ok() == std::fs::canonicalize(&file).ok();
    others.retain(|other| !is_file(other));
    let shown = file.display().to_string();
    let mut all = Vec::new();
    for (is_first, file) in std::iter::once((true, file)).chain(others.into_iter().map(|f| (false, f))) {
        let mut proofs = read(&file)?;
        proofs.retain(|other| other.key == proof.key);
        let is_new = |other: &Proof| is_first && is_same(other, proof);
        for other in proofs.iter().filter(|other| !is_new(other) && !other.refused().is_empty()) {
            let (refused, ranks) = (other.refused(), other.ranks);
            outln!(
                "{}: the proof with {ranks} ranks refuses {refused}; to try again, remove this file",
                file.display()
            )?;
        }
        all.extend(proofs);
    }
    let grant = Grant::from_proofs(&all, &proof.key, Some(proof.nodes));
    outln!(
        "{shown}: proof of {}, on {}: {}",
        proof.key.library,
        proof::nodes_in_words(proof.nodes),
        grant.permitted
    )?;
    if grant.permitted.has(Kind::Messages) {
        return Ok(());
    }
    Err(if grant.refused.has(Kind::Messages) {
        "messages are not right if they are converted: they are left to this MPI library".into()
    } else {
        "too few messages were converted to prove something: they are left to this MPI library".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_found_among_others() {
        let parsed = |line: &str| Line::parse(line).map(|line| format!("{line:?}"));
        assert_eq!(parsed("ddtc-prove converts 1").as_deref(), Some("Converts(true)"));
        assert_eq!(parsed("[0] ddtc-prove nodes 2").as_deref(), Some("Nodes(2)"));
        assert_eq!(parsed("ddtc-prove file /a b/libmpi.so").as_deref(), Some("File(\"/a b/libmpi.so\")"));
        assert_eq!(parsed("ddtc-prove begun blocking").as_deref(), Some("Outcome(Blocking, Begun)"));
        let refused = parsed("ddtc-prove refused persistent wrong bytes: x");
        assert_eq!(refused.as_deref(), Some("Outcome(Persistent, Refused(\"wrong bytes: x\"))"));
        let unproven = parsed("ddtc-prove unproven blocking too few");
        assert_eq!(unproven.as_deref(), Some("Outcome(Blocking, Unproven(\"too few\"))"));
        assert_eq!(parsed("ddtc-prove key library MPICH 1").as_deref(), Some("Key(\"library MPICH 1\")"));
        for other in ["", "begun blocking", "ddtc-prove begun", "ddtc-prove begun all", "ddtc-prove nodes x"]
        {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_known_depends_on_the_transport() {
        let known = |library: &str, transport: &str| is_known(&Key::new(library, "", transport));
        // Two releases of the series were run. Over UCX, messages were wrong in both of them.
        assert!(known("MPICH Version: 4.3.0, device ch4:ucx,ofi", "shared memory FI_PROVIDER=tcp"));
        assert!(!known("MPICH Version: 4.3.0, device ch4:ucx,ofi", "UCX"));
        assert!(known("MPICH Version: 4.3.2, device ch4:ucx,ofi", "UCX"));
        assert!(!known("MPICH Version: 4.0.1, device ch4:ofi,ucx", "shared memory"));
        assert!(!known("MPICH Version: 4.0.1, device ch4:ofi,ucx", "libfabric"));
        assert!(!known("MPICH Version: 4.3.2rc1, device ch4:ucx,ofi", "shared memory"));
        assert!(known("Open MPI v4.1.8, package: x", "not known"));
        assert!(!known("MVAPICH Version: 4.0", "not known"));
    }

    #[test]
    fn a_refusal_by_other_ranks_or_in_another_file_counts() {
        let folder = files::temporary_folder("ddtc-tune-test").unwrap();
        let [own, beside] = ["own", "beside"].map(|name| folder.join(name));
        let proven = Proof {
            outcomes: [const { Some(Outcome::Proven) }; 4],
            is_finished: true,
            ..Proof::new(Key::new("MVAPICH Version: 4.0", "", "unknown"), "2026-11-29", 1, 8)
        };
        let mut refused = Proof { ranks: 2, ..proven.clone() };
        refused.outcomes[1] = Some(Outcome::Refused("wrong bytes".to_owned()));
        let judged = |own_proofs: &[Proof], beside_proofs: &[Proof]| {
            files::publish(&own, proof::written(own_proofs)).unwrap();
            files::publish(&beside, proof::written(beside_proofs)).unwrap();
            let result = judge(&proven, own.clone(), vec![beside.clone(), own.clone()]);
            result.map_err(|error| error.to_string())
        };
        let ours = || proven.clone();
        assert_eq!(judged(&[ours()], &[]), Ok(()));
        for error in [judged(&[ours(), refused.clone()], &[]), judged(&[ours()], &[refused.clone()])] {
            assert!(error.unwrap_err().starts_with("messages are not right"));
        }
        let same = Proof { ranks: 8, ..refused.clone() };
        assert!(judged(&[ours()], &[same]).unwrap_err().starts_with("messages are not right"));
        let other = Proof { key: Key::new("MVAPICH Version: 4.1", "", "unknown"), ..refused };
        assert_eq!(judged(&[ours()], &[other]), Ok(()));
        std::fs::write(&beside, "damaged").unwrap();
        assert!(judge(&proven, own, vec![beside]).unwrap_err().to_string().contains("remove it"));
    }

    #[test]
    fn only_two_ranks_that_convert_are_measured() {
        assert_eq!(obstacle(true, true, 2), Ok(None));
        assert_eq!(obstacle(true, false, 2), Ok(None));
        let said = |converts, known, ranks| obstacle(converts, known, ranks).unwrap().unwrap();
        assert_eq!(said(true, false, 8), "measuring needs 2 ranks, and this job has 8");
        assert!(obstacle(true, true, 8).unwrap_err().ends_with("this job has 8"));
        assert!(said(false, true, 2).contains("convert no messages"));
        assert!(said(false, false, 8).contains("find no proof"));
    }

    #[test]
    fn a_launcher_can_end_its_ranks_before_it_is_killed() {
        let folder = files::temporary_folder("ddtc-tune-test").unwrap();
        let file = folder.join("ended");
        // The first launcher writes a file when it is asked to end, as others end their ranks then.
        // The second one does not end by itself.
        let trap = format!("echo > {}; exit", file.display());
        for (trap, ends) in [(trap.as_str(), true), ("", false)] {
            let script = format!("trap '{trap}' TERM; echo ready; while :; do sleep 0.01; done");
            let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            end_launcher(&mut child, if ends { LAUNCH } else { Duration::from_millis(50) }).unwrap();
            assert!(child.try_wait().unwrap().is_some());
            assert_eq!(file.exists(), ends);
            let _ = std::fs::remove_file(&file);
        }
    }

    #[test]
    fn a_step_that_was_begun_is_refused_by_the_next_run() {
        let new = || Proof::new(Key::new("MVAPICH Version: 4.0", "", "unknown"), "2026-11-29", 1, 2);
        let mut old = new();
        old.outcomes[0] = Some(Outcome::Proven);
        old.outcomes[1] = Some(Outcome::Begun);
        let next = begun(new(), &[old.clone()]);
        assert_eq!(next.outcome(Step::Blocking), Some(&Outcome::Proven));
        assert!(matches!(next.outcome(Step::Nonblocking), Some(Outcome::Refused(_))));
        assert_eq!(next.outcome(Step::Persistent), None);
        // If the earlier run was completed, the next run keeps only the steps with a fault, which
        // stay refused. It tests the other steps again.
        let mut finished = Proof { is_finished: true, ..old.clone() };
        finished.outcomes[1] = Some(Outcome::Refused("wrong bytes".to_owned()));
        let next = begun(new(), &[finished.clone()]);
        assert_eq!(next.outcome(Step::Blocking), None);
        assert_eq!(next.outcome(Step::Nonblocking), finished.outcome(Step::Nonblocking));
        assert!(!next.is_finished);
        // A step may be refused only because a run was interrupted in it, and not because of a
        // fault. After a run that was completed, such a step is tested again.
        let mut interrupted = finished.clone();
        interrupted.outcomes[1] = Some(Outcome::Refused(INTERRUPTED.to_owned()));
        assert_eq!(begun(new(), &[interrupted]).outcome(Step::Nonblocking), None);
        // Proofs of a run with another number of ranks or nodes or another transport have no
        // effect.
        let others = [
            Proof { ranks: 8, ..old.clone() },
            Proof { nodes: 2, ..old.clone() },
            Proof { key: Key::new("MVAPICH Version: 4.0", "", "UCX"), ..old },
        ];
        assert_eq!(begun(new(), &others), new());
        let [other_ranks, ..] = others;
        assert!(is_same(&finished, &new()) && !is_same(&other_ranks, &new()));
    }
}
