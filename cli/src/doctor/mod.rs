//! `ddtc doctor`: examines the machine, the environment, the preload library and the MPI library,
//! and finds out whether messages are converted. Users who report a problem should send the output
//! of this subcommand with it.
//!
//! The subcommand changes nothing. Without a launcher it starts no MPI program. With a launcher
//! (`-- mpiexec -n 2`) it launches this program as an MPI program twice, once under the preload
//! library and once without it. Each problem is printed with a remedy, and the exit status says
//! whether there are any problems.

pub(crate) mod elf;
mod environment;
mod find;
mod layers;
mod messages;
mod rank;
mod stacks;

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args as ClapArgs;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::exec::interp;
use ddtc::internal::methods::*;
use ddtc::internal::target::{Level, Target};
use ddtc_hosts::policy::{Call, Class, Family, Library, Policy, file, payloads};
use ddtc_hosts::profile::Profile;
use ddtc_hosts::proof;
use ddtc_hosts::transport::{Transport, Transports};
use ddtc_hosts::tried::{Kinds, TrialStatus};

use crate::output::{out, outln};
use ddtc_bench::machine::Machine;
use ddtc_hosts::library;
use elf::Elf;
use find::{by_the_loader, fit, launcher_family, libraries, name, programs};

/// Arguments of `ddtc doctor`.
#[derive(ClapArgs, Debug)]
#[command(after_help = "Examples:\n  ddtc doctor\n  ddtc doctor --program ./app -- mpiexec -n 2")]
pub(crate) struct Args {
    /// Also examine whether the preload library can be loaded into the program FILE
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Use this MPI library [default: the first one that fits the launcher, searched next to the
    /// launcher, then in LD_LIBRARY_PATH, then in the loader's search path]
    #[arg(long, value_name = "FILE")]
    mpi: Option<PathBuf>,
    /// Use this preload library [default: the one next to this program or in ../lib]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Time limit in seconds for each command that the doctor starts
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Run as a rank of the MPI program that `ddtc doctor` launches
    #[arg(long, value_name = "FILE", hide = true)]
    rank: Option<PathBuf>,
    /// Load the MPI library, and print its version
    #[arg(long, value_name = "FILE", hide = true)]
    load: Option<PathBuf>,
    /// Command that launches two ranks, after `--`
    #[arg(last = true)]
    launch: Vec<OsString>,
}

/// Datatype that the self-test packs and that the launched ranks send. An instance has an extent of
/// 32 bytes. Its data are 16 bytes in three runs with gaps between them.
const TYPE: &str = "resized(0, 32, indexed([1,2,1], [0,2,5], int))";

/// Output of the doctor so far.
#[derive(Debug, Default)]
struct Findings {
    text: String,
    /// Problems, each with a remedy.
    problems: Vec<(String, String)>,
}

impl Findings {
    fn add_lines(&mut self, what: &str, text: &str) {
        for (i, line) in text.lines().enumerate() {
            let _ = writeln!(self.text, "{:<16} {line}", if i == 0 { what } else { "" });
        }
    }

    fn add_problem(&mut self, what: &str, remedy: &str) {
        if !self.problems.iter().any(|(known, _)| known == what) {
            self.problems.push((what.to_owned(), remedy.to_owned()));
        }
    }
}

/// Runs the subcommand `ddtc doctor`. With one of the hidden options `--load` and `--rank`, this
/// process is a helper that another run of `ddtc doctor` has started.
///
/// # Errors
/// If a problem was found, or standard output cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let Some(library) = &args.load {
        return Ok(rank::load(library)?);
    }
    if let Some(library) = &args.rank {
        return Ok(rank::run(library)?);
    }
    // First examine what needs no MPI: this program, the environment, the preload library, and a
    // program of the user's.
    let mut findings = Findings::default();
    let variables: Vec<_> = std::env::vars_os().collect();
    program_and_machine(&mut findings);
    self_test(&mut findings);
    environment::look(&mut findings, &variables);
    let library = preload_library(&mut findings, args.library.as_deref());
    if let Some(program) = &args.program {
        look_at_program(&mut findings, program);
    }
    if let Some(library) = &library {
        layers::look(&mut findings, args.program.as_deref(), library, args.seconds);
    }
    // Then find an MPI library. If both it and the preload library can be used, report which calls
    // would be converted under it. If a launcher was given, also launch two ranks to find out
    // whether messages really are converted.
    let mpi = mpi(&mut findings, args, library.as_deref());
    if let (Some(library), Some((mpi, version))) = (&library, &mpi) {
        let conversions = Conversions::new(version, mpi);
        findings.add_lines("conversions", &conversions.lines.join("\n"));
        let policy = policy(&mut findings, version);
        if args.launch.is_empty() {
            findings.add_lines(
                "messages",
                "not tried: to let two ranks exchange messages, name the command that launches them: ddtc doctor -- mpiexec -n 2",
            );
        } else {
            messages::run(
                &mut findings,
                args,
                library,
                mpi,
                policy,
                conversions.untried.then_some(&conversions.lines[0]),
            );
        }
    }
    // Print the problems last, so that the user sees them at the end of the output.
    out!("{}", findings.text)?;
    for (what, remedy) in &findings.problems {
        outln!("problem          {what}\n  to do          {remedy}")?;
    }
    match findings.problems.len() {
        0 => outln!("problems         none")?,
        n => Err(format!("{n} problem(s) found: see `problem` and `to do` above"))?,
    }
    Ok(())
}

/// Reports the version and the path of this program, the machine and the C library.
fn program_and_machine(findings: &mut Findings) {
    let program = std::env::current_exe().map_or_else(|e| e.to_string(), |p| p.display().to_string());
    findings.add_lines("ddtc", &format!("{}, {program}", env!("CARGO_PKG_VERSION")));
    findings.add_lines("machine", &Machine::read(None).to_string());
    let level = Level::detect();
    findings
        .add_lines("CPU level", &format!("{} ({level} is the highest that it runs)", Target::host(level)));
    let libc = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let libc = libc
        .ok()
        .filter(|o| o.status.success())
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    findings.add_lines(
        "C library",
        libc.as_deref().unwrap_or("unknown, because getconf GNU_LIBC_VERSION failed"),
    );
}

/// Commits, packs and unpacks [`TYPE`] in this process, and compares the bytes with those of the
/// reference interpreter.
fn self_test(findings: &mut Findings) {
    const COUNT: u64 = rank::COUNT as u64;
    let outcome = (|| -> ddtc::Result<String> {
        // Commit and pack in a separate engine, so that the engine's counters show only what this
        // test did. The printed time is the shortest of 100 packs.
        let t: Datatype = TYPE.parse()?;
        let engine = Engine::new(Config { mode: Mode::Commit, ..Config::default() });
        let start = Instant::now();
        let committed = engine.commit(&t)?;
        let commit_us = start.elapsed().as_secs_f64() * 1e6;
        let user: Vec<u8> = (0..32 * COUNT).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut packed = vec![0; committed.packed_size(COUNT)? as usize];
        let mut wanted = packed.clone();
        committed.pack(&user, 0, COUNT, &mut packed)?;
        let mut us = f64::INFINITY;
        for _ in 0..100 {
            let start = Instant::now();
            committed.pack(&user, 0, COUNT, &mut packed)?;
            us = us.min(start.elapsed().as_secs_f64() * 1e6);
        }
        // Compare with the reference interpreter: the packed bytes, and the memory after unpacking
        // them.
        interp::pack(&t, COUNT, &user, 0, &mut wanted)?;
        let mut copy = vec![0; user.len()];
        committed.unpack(&packed, 0, COUNT, &mut copy)?;
        let mut right = vec![0; user.len()];
        interp::unpack(&t, COUNT, &wanted, &mut right, 0)?;
        let counters = engine.counters();
        let how = if counters.fallbacks > 0 || counters.compiles == 0 { "interpreted" } else { "compiled" };
        let same = packed == wanted && copy == right;
        Ok(format!(
            "{} of {TYPE}, {COUNT} times: {how} in {commit_us:.1} us, packed {} B in {us:.2} us",
            if same { "right bytes" } else { "WRONG BYTES" },
            packed.len()
        ))
    })();
    match outcome {
        Ok(text) => {
            findings.add_lines("self-test", &text);
            if text.contains("WRONG") {
                findings.add_problem(
                    "compiled code packs or unpacks wrong bytes on this machine",
                    "this is a fault of ddtc: please report it with this output",
                );
            }
            if text.contains(" interpreted ") {
                let rule = "`ddtc explain -v -v int` shows why: the system may refuse executable memory (SELinux, memfd, noexec). \
                            The bytes are right, but packing is slow";
                findings.add_problem("ddtc cannot compile layouts on this machine", rule);
            }
        }
        Err(error) => findings
            .add_problem(&format!("the self-test failed: {error}"), "please report it with this output"),
    }
}

/// Finds the preload library, and returns its path if it can be used on this machine.
fn preload_library(findings: &mut Findings, given: Option<&Path>) -> Option<PathBuf> {
    let path = match library::find(given) {
        Ok(path) => path,
        Err(error) => {
            findings.add_problem(
                &error.to_string(),
                "install with packaging/install.sh or the wheel, which put the library where this program looks",
            );
            return None;
        }
    };
    let elf = match Elf::read(&path, "DDTC_PRELOAD_VERSION") {
        Ok(elf) => elf,
        Err(error) => {
            findings
                .add_problem(&format!("{}: {error}", path.display()), "install the preload library again");
            return None;
        }
    };
    let version = elf.symbol.clone().unwrap_or_else(|| "of an unknown version".into());
    findings.add_lines("preload library", &format!("{version}, {}", path.display()));
    if let Some((what, remedy)) = elf.unfit() {
        findings.add_problem(&format!("{} {what}", path.display()), remedy);
        return None;
    }
    if version != env!("CARGO_PKG_VERSION") {
        let what = format!("{} is {version}, this program is {}", path.display(), env!("CARGO_PKG_VERSION"));
        findings.add_problem(&what, "install both from one release");
    }
    Some(path)
}

/// Examines whether the preload library can be loaded into a program.
fn look_at_program(findings: &mut Findings, program: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let shown = program.display();
    let elf = match Elf::read(program, "") {
        Ok(elf) => elf,
        Err(error) if !program.is_file() => {
            findings.add_problem(&format!("{shown}: {error}"), "name a file that exists with --program");
            return;
        }
        Err(error) => {
            let text = format!(
                "{shown}: {error}; if it is a script, name the program that it starts instead: a 64-bit program that loads MPI as a shared library"
            );
            findings.add_lines("program", &text);
            return;
        }
    };
    let mpi: Vec<&str> = elf.needed.iter().map(String::as_str).filter(|n| n.starts_with("libmpi")).collect();
    let linked = if mpi.is_empty() { "no MPI library directly".to_owned() } else { mpi.join(", ") };
    findings.add_lines("program", &format!("{shown}: {} bit, needs {linked}", elf.bits));
    if let Some((what, remedy)) = elf.unfit() {
        findings.add_problem(&format!("{shown} {what}"), remedy);
    }
    if elf.is_static() {
        let remedy = "nothing can be preloaded into such a program: link it with MPI's shared library";
        findings.add_problem(&format!("{shown} is linked statically"), remedy);
    }
    if std::fs::metadata(program).is_ok_and(|m| m.permissions().mode() & 0o6000 != 0) {
        let remedy = "the loader ignores LD_PRELOAD for such programs: run a copy without these bits";
        findings.add_problem(&format!("{shown} runs as another user or group (setuid or setgid)"), remedy);
    }
}

/// Report of a helper process that has loaded an MPI library.
#[derive(Default)]
struct Loaded {
    version: String,
    preloaded: bool,
    files: Vec<String>,
    errors: String,
}

/// Loads an MPI library in a separate process, together with the preload library if there is one.
fn load(library: &Path, preload: Option<&Path>, seconds: u64) -> Result<Loaded, String> {
    let mut command = std::process::Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
    command.args(["doctor", "--load"]).arg(library).env_remove("DDTC_REPORT").env_remove("DDTC_RECORD");
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    let (status, out, err) = messages::ended(&mut command, seconds)?;
    if !status.success() {
        return Err(messages::last_lines(&err, 3));
    }
    let mut loaded = Loaded { errors: err, ..Loaded::default() };
    for line in out.lines().filter_map(|l| l.strip_prefix(rank::MARK)) {
        match line.split_once(' ') {
            Some(("version", version)) => loaded.version = version.to_owned(),
            Some(("preloaded", value)) => loaded.preloaded = value == "true",
            Some(("file", file)) => loaded.files.push(file.to_owned()),
            _ => {}
        }
    }
    Ok(loaded)
}

/// Finds the launcher. Returns its path, if there is one, and the MPI implementation that it
/// belongs to.
fn launcher(findings: &mut Findings, args: &Args) -> (Option<PathBuf>, Family) {
    let path = std::env::var_os("PATH");
    let command = args.launch.first().cloned().unwrap_or_else(|| "mpiexec".into());
    let launchers = programs(&command, path.as_ref());
    let Some((launcher, others)) = launchers.split_first() else {
        if args.launch.is_empty() {
            findings.add_lines("launcher", "no mpiexec in PATH");
        } else {
            findings.add_problem(
                &format!("{}: no such program in PATH", command.to_string_lossy()),
                "install an MPI (Debian: apt-get install mpich; Python: pip install mpich), or name its launcher with its path",
            );
        }
        return (None, Family::Other);
    };
    let says = messages::ended(std::process::Command::new(launcher).arg("--version"), args.seconds);
    let says = says.map(|(_, out, err)| out + &err).unwrap_or_default();
    let family = launcher_family(&says);
    findings.add_lines("launcher", &format!("{}, of {}", launcher.display(), name(family)));
    for other in others {
        findings.add_lines("", &format!("also in PATH, later: {}", other.display()));
    }
    (Some(launcher.clone()), family)
}

/// MPI libraries that were loaded without an error, each with its implementation, in the order in
/// which they were found.
type Families = Vec<(Family, PathBuf)>;

/// Adds a problem if MPI libraries were found of two implementations that need different launchers.
fn mixed(findings: &mut Findings, families: &Families) {
    if let Some((first, path)) = families.first()
        && let Some((other, second)) = families.iter().find(|(other, _)| !fit(*first, *other))
    {
        let what = format!(
            "two MPIs are mixed here: {} is of {}, {} of {}",
            path.display(),
            name(*first),
            second.display(),
            name(*other)
        );
        let remedy = "use one environment (module, virtual environment, prefix) for each: otherwise a program may get either of them";
        findings.add_problem(&what, remedy);
    }
}

/// Adds a problem that says why no library was found that fits a launcher of `family`.
fn none_fits(
    findings: &mut Findings,
    family: Family,
    families: &Families,
    failures: Vec<(String, &'static str)>,
) {
    for (what, remedy) in failures {
        findings.add_problem(&what, remedy);
    }
    if let Some((own, path)) = families.first() {
        let what = format!(
            "the launcher belongs to {}, but {} belongs to {}",
            name(family),
            path.display(),
            name(*own)
        );
        findings
            .add_problem(&what, "put the launcher of the same MPI first in PATH, or name it with its path");
    } else {
        let remedy = "install one (Debian: apt-get install mpich; Python: pip install mpich), load its module, or name its file with --mpi";
        findings.add_problem("no MPI library was found that can be loaded", remedy);
    }
}

/// Finds the launcher and an MPI library that fits it. Returns the library's path and version text.
fn mpi(findings: &mut Findings, args: &Args, preload: Option<&Path>) -> Option<(PathBuf, String)> {
    let (launcher, family) = launcher(findings, args);
    let mut found = libraries(launcher.as_deref(), std::env::var_os("LD_LIBRARY_PATH").as_ref());
    if let Some(given) = &args.mpi {
        found = vec![find::Library { path: given.clone(), how: "named with --mpi" }];
    }
    // Load each candidate in a separate process, to learn its version and whether the preload
    // library loads together with it.
    let mut chosen: Option<(PathBuf, Loaded)> = None;
    let mut failures = Vec::new();
    let system = by_the_loader().filter(|_| args.mpi.is_none());
    let files = found.len();
    let mut families = Families::new();
    for (i, library) in found.into_iter().chain(system).enumerate() {
        // The libraries that the loader would find by name come last. They are loaded only if no
        // file was suitable.
        if i >= files && chosen.is_some() {
            break;
        }
        if i < files
            && let Some((what, remedy)) = Elf::read(&library.path, "").ok().and_then(|elf| elf.unfit())
        {
            findings.add_problem(&format!("{} ({}) {what}", library.path.display(), library.how), remedy);
            continue;
        }
        match load(&library.path, preload, args.seconds) {
            Ok(loaded) => {
                let place =
                    loaded.files.first().map_or_else(|| library.path.display().to_string(), String::clone);
                findings.add_lines("MPI library", &format!("{place}, {}: {}", library.how, loaded.version));
                let own = Library::from_version_text(&loaded.version).family;
                families.push((own, library.path.clone()));
                if chosen.is_none() && fit(family, own) {
                    // A name without a folder does not say where a file of proofs may lie.
                    let path = if library.path.is_absolute() { library.path } else { place.into() };
                    chosen = Some((path, loaded));
                }
            }
            Err(error) if i < files => {
                let remedy = "its own libraries may be missing: load its module, or set LD_LIBRARY_PATH as its documentation says";
                failures.push((format!("{}: {error}", library.path.display()), remedy));
            }
            Err(_) => {}
        }
    }
    // All candidates have been loaded now, and `chosen` is the first one that loads and fits the
    // launcher.
    mixed(findings, &families);
    let Some((path, loaded)) = chosen else {
        none_fits(findings, family, &families, failures);
        return None;
    };
    if preload.is_some() {
        findings.add_lines(
            "preloading",
            if loaded.preloaded { "the preload library loads together with it" } else { "FAILED" },
        );
        if !loaded.preloaded {
            let said = messages::last_lines(&loaded.errors, 2);
            findings.add_problem(
                &format!("the preload library is not loaded: {said}"),
                "remove the cause that this message of the dynamic loader names, then run `ddtc doctor` again",
            );
        }
    }
    Some((path, loaded.version))
}

/// Kinds of calls that the preload library may convert under an MPI library.
struct Conversions {
    /// True if ddtc converts no kind of calls over the transport that this environment selects. The
    /// usual reason is that this release of the MPI library was not tried.
    untried: bool,
    /// Lines for the output. The first line says what may be converted over the transport that this
    /// environment selects. A further line follows for each transport for which the answer differs.
    lines: Vec<String>,
}

impl Conversions {
    /// Finds out what may be converted under the MPI library whose version text is `version` and
    /// whose file is `mpi`.
    fn new(version: &str, mpi: &Path) -> Conversions {
        let library = Library::from_version_text(version);
        let is_set = |name: &str, value: &str| std::env::var(name).as_deref() == Ok(value);
        // Under a library of no known family with the standard ABI, nothing is converted, whatever
        // the user asks for (`Profile::find_untried`).
        let name = mpi.file_name().unwrap_or_default().to_string_lossy();
        let is_convertible = library.family != Family::Other || !name.starts_with("libmpi_abi");
        let asked = is_set("DDTC_POLICY", "all") && is_convertible;
        let all = |here: &str| Conversions { untried: false, lines: vec![here.to_owned()] };
        if is_set("DDTC_UNPROVEN", "1") {
            return all("all kinds of calls, tried or not, because DDTC_UNPROVEN is 1");
        }
        if !Profile::find(&library).stages {
            if !Profile::moves_inside(&library) {
                return Conversions { untried: true, lines: vec![Profile::NOTHING_MOVES.to_owned()] };
            }
            return all(
                "MPI_Pack and MPI_Unpack; messages are packed and unpacked only inside the MPI library, because staging buffers gain nothing",
            );
        }
        let status = |transport| TrialStatus::find(&library, transport);
        let here = status(Transports::determine(version, |name| std::env::var(name).ok()).inside);
        let others = Transport::all_of(version).map(|transport| (transport, status(Some(transport))));
        let differs = |other: &TrialStatus| other.kinds(asked) != here.kinds(asked);
        let others = others.filter(|(_, other)| differs(other)).map(|(transport, other)| {
            format!("over {}: {}", transport.name(), other.in_words(&library, other.kinds(asked)))
        });
        if !matches!(here, TrialStatus::Tried { .. })
            && let lines = proofs(version, mpi)
            && !lines.is_empty()
        {
            return Conversions { untried: false, lines };
        }
        Conversions {
            untried: here.kinds(asked).is_empty(),
            lines: std::iter::once(here.in_words(&library, here.kinds(asked))).chain(others).collect(),
        }
    }
}

/// Returns lines about the proofs for the MPI library whose version text is `version` and whose
/// file is `mpi`. A proof records which kinds of calls gave right results when `ddtc tune` tested
/// them. There is a line for each proof of this version of ddtc, and one for each file of proofs
/// that cannot be used. A proof refuses a kind of calls if they gave wrong results. The line of a
/// proof then leaves out the kinds that it refuses, and those that another proof with the same key
/// refuses, even if that proof is in another file. The key names the MPI library and its file, the
/// network libraries, the transport and the version of ddtc.
fn proofs(version: &str, mpi: &Path) -> Vec<String> {
    let variable = |name| std::env::var(name).ok();
    let (config, home) = (variable("XDG_CONFIG_HOME"), variable("HOME"));
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    for file in proof::files(&mpi.to_string_lossy(), config.as_deref(), home.as_deref()) {
        let read = match ddtc::internal::files::read_own(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            read => read.map_err(|error| error.to_string()).and_then(|text| proof::parse(&text)),
        };
        match read {
            Err(error) => {
                lines.push(format!(
                    "{}: {error}; the MPI library is treated as one that was not tried",
                    file.display()
                ));
            }
            Ok(proofs) => found.extend(proofs.into_iter().map(|proof| (file.clone(), proof))),
        }
    }
    found.retain(|(_, p)| p.key.library == version && p.key.ddtc == env!("CARGO_PKG_VERSION"));
    let of = |(file, p): &(PathBuf, proof::Proof)| {
        let same = found.iter().filter(|(_, other)| other.key == p.key);
        let refused = same.map(|(_, other)| other.refused()).fold(Kinds::NONE, Kinds::or);
        let here = if p.holds_on(Some(p.nodes)) { p.permitted().without(refused) } else { Kinds::NONE };
        format!(
            "{here}: proven by `ddtc tune` of ddtc {} on {}, with {} ranks on {}, transport {} ({}); the ranks find out whether this holds for them",
            p.key.ddtc,
            p.date,
            p.ranks,
            proof::nodes_in_words(p.nodes),
            p.key.transport,
            file.display()
        )
    };
    lines.extend(found.iter().map(of));
    lines
}

/// Reports and returns the policy that the preload library would use under an MPI library.
fn policy(findings: &mut Findings, version: &str) -> Policy {
    let library = Library::from_version_text(version);
    let choice = std::env::var("DDTC_POLICY").unwrap_or_default();
    let path = file(std::env::var("XDG_CONFIG_HOME").ok().as_deref(), std::env::var("HOME").ok().as_deref());
    let (from, policy) = match (choice.as_str(), path) {
        ("all", _) => ("DDTC_POLICY".to_owned(), Policy::ALL),
        ("none", _) => ("DDTC_POLICY".to_owned(), Policy::NONE),
        (_, Some(path)) => match ddtc::internal::files::read(&path)
            .map(|text| Policy::parse(&text, &library.to_string()))
        {
            Ok(Ok(Some(policy))) => (path.display().to_string(), policy),
            Ok(Ok(None)) => (
                format!("shipped; {} has no table of {library}", path.display()),
                Profile::find(&library).shipped_policy(),
            ),
            Ok(Err(error)) => {
                let remedy = "correct this line, or let `ddtc tune` measure a new table";
                findings
                    .add_problem(&format!("{}: {error}; the shipped policy is used", path.display()), remedy);
                (format!("shipped for {library}"), Profile::find(&library).shipped_policy())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (
                format!("shipped for {library}; there is no {}", path.display()),
                Profile::find(&library).shipped_policy(),
            ),
            Err(error) => {
                let remedy = "make it a regular file that belongs to you and that you can read";
                findings
                    .add_problem(&format!("{}: {error}; the shipped policy is used", path.display()), remedy);
                (format!("shipped for {library}"), Profile::find(&library).shipped_policy())
            }
        },
        (_, None) => (format!("shipped for {library}"), Profile::find(&library).shipped_policy()),
    };
    findings.add_lines("policy", &format!("{from}\n{}", in_words(&policy)));
    policy
}

/// Lists what a policy converts. A line has a call, a layout class, and the sizes of the data that
/// are converted. Anything that is not listed is not converted.
fn in_words(policy: &Policy) -> String {
    let mut text = String::new();
    for call in Call::ALL {
        for class in Class::ALL {
            let set = policy.payloads(call, class);
            if set != 0 {
                let _ = writeln!(text, "{:<18} {:<14} {}", call.name(), class.name(), payloads(set));
            }
        }
    }
    if text.is_empty() { "nothing is converted".to_owned() } else { text }
}

/// Returns the layout class of the messages that the ranks send, and their size in bytes.
fn sent() -> Result<(Class, u64), String> {
    let t: Datatype = TYPE.parse().map_err(|e: ddtc::Error| e.to_string())?;
    let committed = ddtc::commit(&t).map_err(|e| e.to_string())?;
    let bytes = committed.packed_size(rank::COUNT as u64).map_err(|e| e.to_string())?;
    Ok((Class::from_nest(committed.nest()), bytes))
}
