//! The matrix of MPI libraries: programs on each release and each transport, with the preload
//! library on all ranks, on the even ranks and on the odd ranks, compared with the same programs
//! without it. Only kinds of calls that are right are converted. `hosts/src/tried.txt` has the
//! verdicts, and docs/LIBRARIES.md says how to add a library.
//!
//! These environment variables select what runs:
//!
//! * `DDTC_MATRIX`: the libraries, which are folders of wheels.txt, or `FAMILY=ROOT` for a library
//!   that is installed in ROOT, or `all`. Without the variable, one library is tried, which
//!   `DDTC_ROTATION` selects.
//! * `DDTC_TRANSPORTS`: the transports, by default `shared`. Others are `tcp`, `ucx`, and `nodes`,
//!   which makes two nodes out of one machine and needs root and `two-nodes up`.
//! * `DDTC_BLESS`: the verdicts are written into `hosts/src/tried.txt`. Without the variable, each
//!   kind of calls that is converted must be right.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddtc_hosts::policy::Library;
use ddtc_hosts::transport::Transport as Way;
use ddtc_hosts::tried::{Kind, Standing, Verdict};

use crate::setup::{Host, Run, compiled_by, lossy, package, release, report, reports, scratch, sources};
use crate::truncation;

/// Time limit of one program without the preload library, in seconds. The slowest program takes a
/// few seconds on a quiet machine, and ten times as long if other tests run at the same time.
const SECONDS: u32 = 120;
/// Time limit of a program with the preload library, in seconds, after the program has ended within
/// the first limit without it. It is longer, so that a busy machine is not taken for a hang.
const CONVERTED_SECONDS: u32 = 240;

/// The wheels that are tried: the folder, the folder whose compiler wrapper and headers compile the
/// programs, and the family. Intel's wheels have neither wrapper nor headers. MPICH 3.4 implements
/// MPI 3.1, as Intel MPI does up to 2021.11. From 2021.12 on Intel MPI has large counts and
/// persistent collective calls, and from 2021.15 on exchanges under one request.
const WHEELS: [(&str, &str, Host); 21] = [
    ("mpich343", "mpich343", Host::Mpich),
    ("mpich403", "mpich403", Host::Mpich),
    ("mpich413", "mpich413", Host::Mpich),
    ("mpich423", "mpich423", Host::Mpich),
    ("mpich431", "mpich431", Host::Mpich),
    ("mpich432", "mpich432", Host::Mpich),
    ("mpich501", "mpich501", Host::Mpich),
    ("mpich", "mpich", Host::Mpich),
    ("impi202109", "mpich343", Host::Intel),
    ("impi202110", "mpich343", Host::Intel),
    ("impi202111", "mpich343", Host::Intel),
    ("impi202112", "mpich403", Host::Intel),
    ("impi202113", "mpich403", Host::Intel),
    ("impi202114", "mpich403", Host::Intel),
    ("impi202115", "mpich", Host::Intel),
    ("impi202116", "mpich", Host::Intel),
    ("impi202117", "mpich", Host::Intel),
    ("impi202118", "mpich", Host::Intel),
    ("impi", "mpich", Host::Intel),
    ("openmpi5010", "openmpi5010", Host::OpenMpi),
    ("openmpi", "openmpi", Host::OpenMpi),
];

/// An MPI library that is tried.
struct Subject {
    host: Host,
    root: PathBuf,
    compiler: PathBuf,
}

impl Subject {
    fn of(word: &str) -> Subject {
        if let Some((family, root)) = word.split_once('=') {
            let host = match family {
                "mpich" => Host::Mpich,
                "openmpi" => Host::OpenMpi,
                "openmpi4" => Host::OpenMpi4,
                other => panic!("DDTC_MATRIX: {other}: must be mpich, openmpi or openmpi4"),
            };
            let root = PathBuf::from(root);
            return Subject { host, compiler: root.join("bin/mpicc"), root };
        }
        let wheel = WHEELS.iter().find(|(folder, ..)| *folder == word);
        let &(folder, headers, host) =
            wheel.unwrap_or_else(|| panic!("DDTC_MATRIX: {word}: no wheel of the matrix"));
        Subject { host, root: release(folder), compiler: release(headers).join("bin/mpicc") }
    }

    fn compiled(&self, name: &str, flags: &[&str]) -> PathBuf {
        // Warnings about the library's own headers are no faults of the programs.
        compiled_by(&self.compiler, name, &[&["-w"], flags].concat())
    }

    /// Returns flags that leave out of a program what the library's own algorithms do wrong.
    fn own_faults(&self, library: &Library) -> &'static [&'static str] {
        match self.host {
            Host::OpenMpi | Host::OpenMpi4 => &["-DCONFUSES_PAIRS"],
            Host::Mpich if library.version >= [5, 0, 2] => &["-DCUTS_SEGMENTS"],
            Host::Mpich if library.version >= [4, 2, 0] => &["-DCUTS_SEGMENTS", "-DCONFUSES_EDGES"],
            _ => &["-DCUTS_SEGMENTS", "-DCONFUSES_EDGES", "-DCONFUSES_PAIRS", "-DKEEPS_REQUESTS"],
        }
    }

    /// Returns the version text of the library.
    fn version(&self) -> String {
        let program = self.compiled("library_version", &[]);
        self.host.limited_ranks_of(&self.root, 1, SECONDS, program).text().0
    }

    /// Returns true if the headers have persistent collective calls and exchanges under one
    /// request.
    fn has_mpi_4(&self) -> bool {
        let folder = scratch("matrix-headers");
        let file = folder.join("asked.c");
        fs::write(&file, "#include \"versions.h\"\nHAS_MPI_4\n").unwrap();
        let out = Command::new(&self.compiler)
            .args(["-w", "-E", "-P", "-I"])
            .arg(sources())
            .arg(&file)
            .output()
            .unwrap();
        fs::remove_dir_all(folder).unwrap();
        lossy(&out.stdout).trim_end().ends_with("\n1")
    }

    /// Returns the transports that the library has, among those that the environment asks for.
    fn transports(&self, device: &str) -> Vec<Transport> {
        const fn transport(
            name: &'static str,
            variables: &'static [(&'static str, &'static str)],
        ) -> Transport {
            Transport { name, variables, flags: &[] }
        }
        let all = match self.host {
            // A library without a network module in the text of its device is ch3, whose only
            // network is TCP.
            Host::Mpich | Host::MpichStandard if !device.contains("ch4") => {
                vec![transport("tcp", &[("MPIR_CVAR_NOLOCAL", "1")]), transport("nodes", &[])]
            }
            Host::Mpich | Host::MpichStandard => vec![
                transport("tcp", &[NO_LOCAL, ("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp")]),
                // The unmodified library waits forever for a message that is too long for its
                // receive.
                Transport { flags: &["-DNO_ERRORS"], ..transport("ucx", &OVER_UCX) },
                transport("nodes", &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "sockets")]),
            ],
            Host::Intel | Host::IntelStandard => vec![
                transport("tcp", &[("I_MPI_FABRICS", "ofi"), ("FI_PROVIDER", "tcp")]),
                transport("nodes", &[("I_MPI_FABRICS", "shm:ofi"), ("FI_PROVIDER", "tcp")]),
            ],
            Host::OpenMpi | Host::OpenMpi4 => vec![
                transport("tcp", &[("OMPI_MCA_btl", "tcp,self")]),
                transport("nodes", &[("OMPI_MCA_btl", "tcp,sm,self")]),
            ],
        };
        let asked = std::env::var("DDTC_TRANSPORTS").unwrap_or("shared".to_owned());
        let is_there = |transport: &Transport| match transport
            .variables
            .iter()
            .find(|v| v.0 == "MPIR_CVAR_CH4_NETMOD")
        {
            Some((_, module)) => device.contains(module),
            None => true,
        };
        let all = std::iter::once(transport("shared", &[])).chain(all).filter(is_there);
        all.filter(|transport| asked.split(' ').any(|name| name == transport.name)).collect()
    }

    /// Returns the launch of a program on `ranks` ranks over a transport, with a time limit.
    fn launched(&self, transport: &Transport, ranks: u32, seconds: u32, program: &Path) -> Run {
        let run = match transport.name {
            "nodes" => self.host.ranks_of_two_nodes(&self.root, ranks, seconds, program),
            _ => self.host.limited_ranks_of(&self.root, ranks, seconds, program),
        };
        transport.variables.iter().fold(run, |run, (name, value)| run.env(name, value))
    }
}

/// A transport between two ranks, with the environment variables that select it.
struct Transport {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Flags for programs that leave out what the unmodified library does not do over this
    /// transport.
    flags: &'static [&'static str],
}

/// With this variable, ranks of one machine use the network too.
const NO_LOCAL: (&str, &str) = ("MPIR_CVAR_NOLOCAL", "1");
/// Variables that select UCX over sockets.
const OVER_UCX: [(&str, &str); 3] = [NO_LOCAL, ("MPIR_CVAR_CH4_NETMOD", "ucx"), ("UCX_TLS", "tcp,self")];

/// The way in which the output of a program is judged.
#[derive(Clone, Copy)]
enum Judge {
    /// The text must be that of the program without the preload library.
    Text,
    /// The program judges itself, and prints `wrong 0` first.
    Itself,
    /// As [`Judge::Text`], and the program, which also judges itself, must not print `WRONG`.
    Both,
    /// The program prints a line for each wrong message. No message may be wrong that is right
    /// without the preload library.
    Lines,
    /// The text is judged by what a program may see of a message that is longer than the receive.
    Truncated,
}

impl Judge {
    /// Returns true if the text of the unmodified library is right, so that others can be compared
    /// with it.
    fn accepts(self, text: &str) -> bool {
        match self {
            Judge::Text | Judge::Truncated => !text.is_empty(),
            // The program sends about 250 messages.
            Judge::Lines => text.contains("wrong ") && text.lines().count() < 100,
            Judge::Itself => text.lines().next() == Some("wrong 0"),
            Judge::Both => !text.is_empty() && !text.contains("WRONG"),
        }
    }

    /// Returns what is wrong with the text of a run with the preload library, or `None`. `bare` is
    /// the text of a run without it. If `judges_counts` is true, the statuses of receives that fail
    /// must have the same number of bytes.
    fn difference(self, host: Host, text: &str, bare: &str, judges_counts: bool) -> Option<String> {
        match self {
            Judge::Itself if self.accepts(text) => None,
            Judge::Itself => Some(text.lines().next().unwrap_or("no text").to_owned()),
            Judge::Truncated => truncation::difference(host, text, bare, judges_counts),
            Judge::Lines => {
                let what = |line: &str| line.rsplit_once(": code").map(|(what, _)| what.to_owned());
                let known: Vec<String> = bare.lines().filter_map(what).collect();
                let ended = text.contains("wrong ");
                let new = || text.lines().filter_map(what).find(|line| !known.contains(line));
                if ended { new() } else { Some("no end".to_owned()) }
            }
            Judge::Text | Judge::Both => {
                let said = |line| if judges_counts { (line, "") } else { without_counts(line) };
                let differs = text.lines().zip(bare.lines()).find(|(a, b)| said(a) != said(b));
                let line = differs.map(|(a, b)| format!("{a}\nwithout the library:\n{b}"));
                let differs = text.lines().count() != bare.lines().count();
                line.or_else(|| differs.then(|| "texts of different length".to_owned()))
            }
        }
    }
}

/// Returns the parts before and after the counts in a line of `ragged` about a receive that failed,
/// and other lines whole.
fn without_counts(line: &str) -> (&str, &str) {
    let counts = line.find(" count ").zip(line.find(" null ")).filter(|_| !line.contains(": code 0 "));
    counts.map_or((line, ""), |(from, to)| (&line[..from], &line[to..]))
}

/// Returns the text of a program without the remarks of the MPI library, which may stand before a
/// line of the program. Intel MPI 2021.10 prints a remark on standard output if a job with more
/// ranks than processors uses libfabric. Its line end may be separate, so empty lines are left out.
fn without_remarks(text: &str) -> String {
    const REMARK: &str = "MPI startup(): I_MPI_WAITMODE is supported only with psm3 provider \
                          please set FI_PROVIDER=psm3 to use wait mode";
    text.replace(REMARK, "").lines().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

/// A program that tries one kind of calls.
struct Trial {
    kind: Kind,
    program: &'static str,
    flags: &'static [&'static str],
    ranks: u32,
    arguments: &'static [&'static str],
    judge: Judge,
}

/// The programs of the matrix. The argument `FILE` stands for a file in a folder of the run.
const TRIALS: [Trial; 15] = {
    const fn trial(
        kind: Kind,
        program: &'static str,
        ranks: u32,
        arguments: &'static [&'static str],
        judge: Judge,
    ) -> Trial {
        Trial { kind, program, flags: &[], ranks, arguments, judge }
    }
    const AT_ONCE: &[&str] = &["-DMODES_TRIED=2"];
    const PERSISTENT: &[&str] = &["-DALL_PERSISTENT"];
    [
        trial(Kind::Messages, "messages", 2, &[], Judge::Text),
        trial(Kind::Messages, "messages", 4, &[], Judge::Text),
        trial(Kind::Messages, "exchanges", 2, &["buffered"], Judge::Text),
        trial(Kind::Messages, "segments", 2, &[], Judge::Lines),
        trial(Kind::Messages, "truncated", 2, &["150", "7"], Judge::Truncated),
        trial(Kind::Messages, "ragged", 2, &["return"], Judge::Text),
        trial(Kind::Exchanges, "exchanges", 2, &["exchanges"], Judge::Text),
        Trial {
            flags: AT_ONCE,
            ..trial(Kind::Collectives, "collectives", 3, &["120", "3", "2000"], Judge::Itself)
        },
        Trial {
            flags: AT_ONCE,
            ..trial(Kind::Collectives, "collectives", 8, &["60", "8", "2000"], Judge::Itself)
        },
        Trial {
            flags: AT_ONCE,
            ..trial(Kind::Neighbors, "neighbours", 4, &["120", "4", "2000"], Judge::Itself)
        },
        Trial {
            flags: PERSISTENT,
            ..trial(Kind::Persistent, "collectives", 4, &["80", "5", "2000"], Judge::Itself)
        },
        Trial {
            flags: PERSISTENT,
            ..trial(Kind::Persistent, "neighbours", 4, &["80", "6", "2000"], Judge::Itself)
        },
        trial(Kind::Windows, "windows", 2, &["40", "2", "600", "apart"], Judge::Both),
        trial(Kind::Files, "files", 1, &["FILE", "40", "1", "1000"], Judge::Text),
        trial(Kind::Files, "files", 3, &["FILE", "40", "3", "1000"], Judge::Text),
    ]
};

/// What is wrong with a run in which all ranks should convert everything, and none converted anything.
const NOTHING: &str = "nothing was converted";

/// The ways to run a program: name, parity of the ranks that have the preload library (`None` for
/// all ranks), and policy.
const WAYS: [(&str, Option<u32>, &str); 4] = [
    ("all ranks", None, "all"),
    ("even ranks", Some(0), "all"),
    ("odd ranks", Some(1), "all"),
    ("all ranks by the table", None, "table"),
];

impl Trial {
    /// Returns true if no correct program does what this program does: a message is longer than the
    /// receive, or ends inside an element. If the unmodified library does not survive that, nothing
    /// can be compared, and the kind of calls is judged by other programs.
    fn is_erroneous(&self) -> bool {
        matches!(self.program, "truncated" | "ragged")
    }

    /// Runs the program, without the preload library if `way` is `None`. Returns the text, or as an
    /// error how the program ended.
    fn text(
        &self,
        subject: &Subject,
        program: &Path,
        transport: &Transport,
        way: Option<(Option<u32>, &str)>,
    ) -> Result<String, String> {
        let folder = scratch("matrix");
        let seconds = match way {
            Some(_) => CONVERTED_SECONDS,
            None if self.is_erroneous() => SECONDS / 3,
            None => SECONDS,
        };
        let launched = |what: &Path| subject.launched(transport, self.ranks, seconds, what);
        let run = match way {
            None => launched(program),
            Some((None, _)) => launched(program).preload(),
            Some((Some(parity), _)) => launched(Path::new("sh")).with_some(parity, program),
        };
        let policy = way.map_or("none", |(_, policy)| policy);
        let run = run.env("DDTC_POLICY", policy).env("DDTC_UNPROVEN", "1").env("XDG_CONFIG_HOME", &folder);
        let run = run.env("DDTC_REPORT", folder.join("report%r.json"));
        let run = self.arguments.iter().fold(run, |run: Run, argument| match *argument {
            "FILE" => run.arg(folder.join("file")),
            // Ranks on different nodes or over a network share no memory and cannot have a window
            // of shared memory. The argument applies to them only.
            "apart" if transport.name == "shared" => run,
            argument => run.arg(argument),
        });
        let out = run.output();
        if !out.status.success() {
            end_all(program);
        }
        // Only the runs where all ranks convert everything must have converted messages. The
        // shipped policy may convert none, and in some programs only the odd ranks have derived
        // types.
        let counts = matches!(way, Some((None, "all"))) && out.status.success();
        let converted = counts.then(|| converted(&folder));
        fs::remove_dir_all(folder).unwrap();
        let (text, errors) = (without_remarks(&lossy(&out.stdout)), lossy(&out.stderr));
        let last: Vec<&str> = errors.lines().rev().take(3).collect();
        match out.status.success() {
            _ if errors.contains("undefined symbol") => Err("undefined symbol".to_owned()),
            false => Err(format!("{}: {}", out.status, last.join(" / "))),
            true if converted == Some(0) => Err(NOTHING.to_owned()),
            true => Ok(text),
        }
    }

    /// Returns the verdict, and appends to `wrong` what is wrong.
    fn verdict(
        &self,
        subject: &Subject,
        library: &Library,
        transport: &Transport,
        wrong: &mut String,
    ) -> Verdict {
        let program = subject
            .compiled(self.program, &[subject.own_faults(library), transport.flags, self.flags].concat());
        let what = format!("{} {:?} of {} ranks", self.program, self.arguments, self.ranks);
        let bare = match self.text(subject, &program, transport, None) {
            Ok(bare) if self.judge.accepts(&bare) => bare,
            Ok(bare) => {
                let line = bare.lines().next().unwrap_or("no text");
                let _ = writeln!(wrong, "{what}, without the preload library: {line}");
                return Verdict::OwnFault;
            }
            // The headers declare a function that the library does not have.
            Err(how) if how.contains("undefined symbol") => return Verdict::Absent,
            Err(how) => {
                let _ = writeln!(wrong, "{what}, without the preload library: {how}");
                return Verdict::OwnFault;
            }
        };
        // For a receive that failed, MPICH before 5.0 returns the number of bytes that arrived
        // before the error, which depends on the form of the message.
        let judges_counts = subject.host != Host::Mpich || library.version >= [5, 0, 0];
        for (name, parity, policy) in WAYS {
            let is_same =
                self.ranks == 1 && parity.is_some() || self.kind != Kind::Messages && policy == "table";
            if is_same {
                continue;
            }
            let differs = match self.text(subject, &program, transport, Some((parity, policy))) {
                Ok(text) => self.judge.difference(subject.host, &text, &bare, judges_counts),
                Err(how) => Some(how),
            };
            if let Some(differs) = differs {
                let _ = writeln!(wrong, "{what}, {name}: {differs}");
                return if differs == NOTHING { Verdict::Untried } else { Verdict::Wrong };
            }
        }
        Verdict::Right
    }
}

/// Returns the number of messages that were packed or unpacked by all ranks with a report in the
/// folder.
fn converted(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap().filter_map(Result::ok).map(|file| file.path());
    let reports = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
    reports
        .map(|file| report(&fs::read_to_string(file).unwrap()))
        .map(|said| said["messages_packed"] + said["messages_unpacked"])
        .sum()
}

/// Kills what is left of a program. After one rank has crashed, others may wait for it forever,
/// whoever launched them.
fn end_all(program: &Path) {
    for process in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let is_left = fs::read_link(process.path().join("exe")).is_ok_and(|file| file == program);
        if is_left && let Some(number) = process.file_name().to_str().and_then(|name| name.parse().ok()) {
            // SAFETY: `kill` takes two integers and accesses no memory of this process. The process
            // number was read from an entry of /proc whose executable is `program`, which was
            // compiled for these tests and which nothing else runs.
            unsafe { libc::kill(number, libc::SIGKILL) };
        }
    }
}

/// Returns the verdicts for a library over a transport, and a text with what is wrong.
fn verdicts(
    subject: &Subject,
    library: &Library,
    transport: &Transport,
) -> ([Verdict; Kind::ALL.len()], String) {
    let (has_mpi_4, mut wrong) = (subject.has_mpi_4(), String::new());
    let verdicts = Kind::ALL.map(|kind| {
        let began = std::time::Instant::now();
        if !has_mpi_4 && matches!(kind, Kind::Exchanges | Kind::Persistent) {
            return Verdict::Absent;
        }
        let trials = TRIALS.iter().filter(|trial| trial.kind == kind);
        // A fault of the library in an erroneous program must not hide what is wrong in another
        // program.
        let verdict = |trial: &Trial| match trial.verdict(subject, library, transport, &mut wrong) {
            Verdict::OwnFault if trial.is_erroneous() => Verdict::Right,
            verdict => verdict,
        };
        let all: Vec<Verdict> = trials.map(verdict).collect();
        let bad = [Verdict::Wrong, Verdict::OwnFault, Verdict::Absent, Verdict::Untried]
            .into_iter()
            .find(|bad| all.contains(bad));
        println!("{} {transport}: {} s", kind.name(), began.elapsed().as_secs(), transport = transport.name);
        bad.unwrap_or(Verdict::Right)
    });
    (verdicts, wrong)
}

/// Returns a row of `tried.txt`.
fn row(library: &Library, device: &str, transport: &str, date: &str, verdicts: &[Verdict]) -> String {
    let [major, minor, patch] = library.version;
    let words: Vec<&str> = verdicts.iter().map(|verdict| verdict.name()).collect();
    let family = library.family.name();
    format!("{family} {major}.{minor}.{patch} {device} {transport} {date} {}", words.join(" "))
}

/// Writes rows into `tried.txt`. Each replaces the row with the same library, device and transport.
fn bless(new: &[String]) {
    let path = package().join("../hosts/src/tried.txt");
    let text = fs::read_to_string(&path).unwrap();
    let key = |line: &str| line.split(' ').take(4).map(str::to_owned).collect::<Vec<_>>();
    let (head, old): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
    let kept = old.into_iter().filter(|line| !new.iter().any(|row| key(row) == key(line)));
    let mut lines: Vec<String> = kept.map(str::to_owned).chain(new.iter().cloned()).collect();
    lines.sort_by_key(|line| {
        let words = key(line);
        let family = ["mpich", "intel", "openmpi"].iter().position(|name| *name == words[0]);
        let version: Vec<u32> = words[1].split('.').map(|part| part.parse().unwrap()).collect();
        (family, version, words)
    });
    fs::write(path, format!("{}\n{}\n", head.join("\n"), lines.join("\n"))).unwrap();
}

fn chosen() -> Vec<String> {
    let all = || WHEELS.iter().map(|(folder, ..)| (*folder).to_owned()).collect::<Vec<_>>();
    match std::env::var("DDTC_MATRIX") {
        Ok(words) if words == "all" => all(),
        Ok(words) => words.split(' ').map(str::to_owned).collect(),
        Err(_) => {
            let number =
                std::env::var("DDTC_ROTATION").map_or(0, |n| n.parse().expect("DDTC_ROTATION is a number"));
            vec![all().swap_remove(number % WHEELS.len())]
        }
    }
}

#[test]
fn what_is_converted_is_right_under_every_library() {
    let date = Command::new("date").arg("+%F").output().unwrap();
    let date = lossy(&date.stdout).trim().to_owned();
    let blessed = std::env::var_os("DDTC_BLESS").is_some();
    let mut differences = Vec::new();
    for word in chosen() {
        let subject = Subject::of(&word);
        let version = subject.version();
        let line = version.lines().find_map(|line| line.strip_prefix("MPICH Device:"));
        let device = line.map_or("-".to_owned(), |line| line.trim().replace(char::is_whitespace, ","));
        let library =
            Library::of(&format!("{}, device {device}", version.lines().next().unwrap_or_default()));
        let mut new = Vec::new();
        for transport in subject.transports(&device) {
            let (verdicts, wrong) = verdicts(&subject, &library, &transport);
            let transport = transport.name;
            let row = row(&library, &device, transport, &date, &verdicts);
            println!("{row}\n{wrong}");
            let way = match subject.host {
                Host::OpenMpi | Host::OpenMpi4 => None,
                _ => Way::ALL.into_iter().find(|way| way.is_of(transport)),
            };
            let permitted = Standing::of(&library, way).kinds(false);
            for (kind, now) in Kind::ALL.into_iter().zip(verdicts) {
                if permitted.has(kind) && now != Verdict::Right {
                    differences.push(format!("{library} {transport} {}: {}", kind.name(), now.name()));
                }
            }
            new.push(row);
            // A transport may take minutes, so the rows are written after each one.
            if blessed {
                bless(&new);
            }
        }
    }
    assert!(blessed || differences.is_empty(), "{}", differences.join("\n"));
}

/// Writes a copy of an MPICH library into `folder`. In the copy, the release `old` is replaced by
/// `new`, so that the library claims to be a release that nobody has tried.
pub(crate) fn renamed(root: &Path, old: &[u8; 6], new: &[u8; 6], folder: &Path) {
    let mut library = fs::read(root.join("lib/libmpi.so.12")).unwrap();
    let places: Vec<usize> =
        library.windows(old.len()).enumerate().filter(|(_, w)| *w == old).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the release in the library's text");
    for at in places {
        library[at..at + new.len()].copy_from_slice(new);
    }
    fs::write(folder.join("libmpi.so.12"), library).unwrap();
}

#[test]
fn a_release_that_was_not_tried_is_left_alone_unless_the_user_asks() {
    let (host, folder) = (Host::Mpich, scratch("untried"));
    renamed(&host.root(), b"5.0.2\0", b"5.9.2\0", &folder);
    let program = host.compile("messages", &[]);
    // Libraries that the copy needs are found in the folder of the original.
    let lib = host.root().join("lib");
    let paths = format!("{}:{}:{}", folder.display(), lib.display(), lib.join("mpich").display());
    let run = |policy: &str| {
        let run = host.ranks(2, &program).preload().env("LD_LIBRARY_PATH", &paths).env("DDTC_POLICY", policy);
        let (_, errors) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
        let report = fs::read_to_string(folder.join("report0.json")).unwrap();
        (reports(&folder, 2).iter().map(|said| said["messages_packed"]).sum::<u64>(), report, errors)
    };
    let (packed, report, errors) = run("table");
    let note = "only MPI_Pack and MPI_Unpack: mpich-5.9.2 was not tried";
    assert!(packed == 0 && report.contains(note) && !errors.contains("ddtc"), "{packed} {errors}\n{report}");
    assert!(report.contains("\"bypassed_untried_library\""), "{report}");
    let (packed, report, errors) = run("all");
    let line = "mpich-5.9.2 was not tried; its calls are converted as those of mpich-5.0.2";
    assert!(
        packed > 1000 && report.contains(line) && errors.contains(&format!("ddtc: {line}\n")),
        "{errors}"
    );
    fs::remove_dir_all(folder).unwrap();
}
