//! The matrix of MPI libraries: programs that run under each release of each MPI library and over
//! each transport. Each program runs with the preload library on all ranks, on the even ranks and
//! on the odd ranks, and is compared with the same program without the preload library. The result
//! for each kind of calls is a verdict in `hosts/src/tried.txt`. ddtc converts only the kinds of
//! calls whose verdict is right. docs/LIBRARIES.md says how to add an MPI library.
//!
//! These environment variables select what runs:
//!
//! * `DDTC_MATRIX`: the libraries, which are folders of wheels.txt, or `FAMILY=ROOT` for a library
//!   that is installed in ROOT, or `all`. Without the variable, one library is tried, which
//!   `DDTC_ROTATION` selects.
//! * `DDTC_TRANSPORTS`: the transports, by default `shared`. Others are `tcp`, `ucx`, `ucx-shared`
//!   (MPICH alone), `libfabric` (Open MPI alone; MPICH and Intel MPI use libfabric with `tcp`), and
//!   `nodes`, which makes two nodes out of one machine and needs root and `two-nodes up`.
//! * `DDTC_BLESS`: the verdicts are written into `hosts/src/tried.txt`. Without the variable, each
//!   kind of calls that ddtc converts must be right.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddtc_hosts::policy::Library;
use ddtc_hosts::profile::Profile;
use ddtc_hosts::transport::Transport as Way;
use ddtc_hosts::tried::{Kind, TrialStatus, Verdict, rows};

use crate::setup::{Host, Run, compiled_by, lossy, package, release, report, reports, scratch, sources};
use crate::{suite, truncation};

/// Time limit, in seconds, of a program that runs without the preload library. The slowest program
/// takes a few seconds on a quiet machine, and ten times as long if other tests run at the same
/// time.
const SECONDS: u32 = 120;
/// Time limit, in seconds, of a program that runs with the preload library. Such a run comes after
/// a run without the preload library that has ended within [`SECONDS`]. The limit is longer than
/// that one, so that a run on a busy machine is not taken for one that hangs.
const CONVERTED_SECONDS: u32 = 240;

/// The wheels of the MPI libraries that are tried: the folder of the wheel, the folder of the wheel
/// whose compiler wrapper and headers compile the programs, and the family of the library. Two
/// folders are necessary because Intel's wheels have neither wrapper nor headers. MPICH 3.4
/// implements MPI 3.1, as Intel MPI does up to 2021.11. From 2021.12 on Intel MPI has large counts
/// and persistent collective calls, and from 2021.15 on exchanges under one request.
const WHEELS: [(&str, &str, Host); 22] = [
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
    ("openmpi4", "openmpi4", Host::OpenMpi4),
    ("openmpi5010", "openmpi5010", Host::OpenMpi),
    ("openmpi", "openmpi", Host::OpenMpi),
];

/// An MPI library that is tried, with the folder in which it is installed and the compiler wrapper
/// for the programs.
struct Subject {
    host: Host,
    root: PathBuf,
    compiler: PathBuf,
}

impl Subject {
    fn from_word(word: &str) -> Subject {
        if let Some((family, root)) = word.split_once('=') {
            let host = match family {
                "mpich" => Host::Mpich,
                "intel" => Host::Intel,
                "openmpi" => Host::OpenMpi,
                "openmpi4" => Host::OpenMpi4,
                other => panic!("DDTC_MATRIX: {other}: must be mpich, intel, openmpi or openmpi4"),
            };
            let root = PathBuf::from(root);
            // A call that the headers of MPICH have and this Intel MPI lacks is found when the
            // programs run.
            let compiler = if host == Host::Intel { host.compiler() } else { root.join("bin/mpicc") };
            return Subject { host, compiler, root };
        }
        let wheel = WHEELS.iter().find(|(folder, ..)| *folder == word);
        let &(folder, headers, host) =
            wheel.unwrap_or_else(|| panic!("DDTC_MATRIX: {word}: no wheel of the matrix"));
        Subject { host, root: release(folder), compiler: release(headers).join("bin/mpicc") }
    }

    fn compiled(&self, name: &str, flags: &[&str]) -> PathBuf {
        // `-w` disables warnings. A warning about the MPI library's own headers is no fault of a
        // program.
        compiled_by(&self.compiler, name, &[&["-w"], flags].concat())
    }

    /// Returns compiler flags that leave out of a program the calls for which the algorithms of
    /// this MPI library give wrong results.
    fn own_faults(&self, library: &Library) -> &'static [&'static str] {
        match self.host {
            Host::OpenMpi | Host::OpenMpi4 => &["-DCONFUSES_PAIRS"],
            Host::Mpich if library.version >= [5, 0, 2] => &["-DCUTS_SEGMENTS"],
            Host::Mpich if library.version >= [4, 2, 0] => &["-DCUTS_SEGMENTS", "-DCONFUSES_EDGES"],
            _ => &["-DCUTS_SEGMENTS", "-DCONFUSES_EDGES", "-DCONFUSES_PAIRS", "-DKEEPS_REQUESTS"],
        }
    }

    /// Returns the Python interpreter that runs mpi4py's tests. A library from a wheel has one in
    /// its own environment. For a library that is installed in a folder, the interpreter is taken
    /// from the environment of the wheel of the same family.
    fn python(&self) -> PathBuf {
        let own = self.root.join("bin/python");
        if own.exists() { own } else { self.host.root().join("bin/python") }
    }

    /// Returns the path of the MPI library's file, which mpi4py is told to load. A file whose name
    /// has no number may be a script for the linker, so it is not taken. The snapshot of Open MPI
    /// 6.0 has the number 0.
    fn library(&self) -> PathBuf {
        let names =
            ["libmpi.so.12", "libmpi.so.40", "libmpi.so.0"].map(|name| self.root.join("lib").join(name));
        names.into_iter().find(|file| file.exists()).expect("a library of MPI")
    }

    /// Returns the version text of the MPI library, which the program `library_version` prints.
    fn version(&self) -> String {
        let program = self.compiled("library_version", &[]);
        self.host.limited_ranks_of(&self.root, 1, SECONDS, program).text().0
    }

    /// Returns true if the headers of the MPI library have persistent collective calls and
    /// exchanges under one request (`MPI_Isendrecv`).
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

    /// Returns the transports that the MPI library has, among those that the environment variable
    /// `DDTC_TRANSPORTS` asks for. `device` is the text in which MPICH describes its device.
    fn transports(&self, device: &str) -> Vec<Transport> {
        const fn transport(
            name: &'static str,
            variables: &'static [(&'static str, &'static str)],
        ) -> Transport {
            Transport { name, variables, flags: &[] }
        }
        let all = match self.host {
            // MPICH has the device ch4 or the device ch3. The text of ch4 names its network
            // modules. A library whose text does not contain `ch4` has ch3, whose only network is
            // TCP.
            Host::Mpich | Host::MpichStandard if !device.contains("ch4") => {
                vec![transport("tcp", &[("MPIR_CVAR_NOLOCAL", "1")]), transport("nodes", &[])]
            }
            Host::Mpich | Host::MpichStandard => vec![
                transport("tcp", &[NO_LOCAL, ("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "tcp")]),
                // Over UCX, the unmodified library waits forever for a message that is too long for
                // its receive. The flag leaves such messages out of the programs.
                Transport { flags: &["-DNO_ERRORS"], ..transport("ucx", &OVER_UCX) },
                Transport { flags: &["-DNO_ERRORS"], ..transport("ucx-shared", &OVER_UCX_IN_MEMORY) },
                transport("nodes", &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("FI_PROVIDER", "sockets")]),
            ],
            Host::Intel | Host::IntelStandard => vec![
                transport("tcp", &[("I_MPI_FABRICS", "ofi"), ("FI_PROVIDER", "tcp")]),
                transport("nodes", &[("I_MPI_FABRICS", "shm:ofi"), ("FI_PROVIDER", "tcp")]),
            ],
            Host::OpenMpi | Host::OpenMpi4 => vec![
                transport("tcp", &[("OMPI_MCA_btl", "tcp,self")]),
                transport("ucx", &OPEN_MPI_OVER_UCX),
                transport("libfabric", &OPEN_MPI_OVER_LIBFABRIC),
                // The component for shared memory had another name before Open MPI 5.0.
                match self.host {
                    Host::OpenMpi4 => transport("nodes", &[("OMPI_MCA_btl", "tcp,vader,self")]),
                    _ => transport("nodes", &[("OMPI_MCA_btl", "tcp,sm,self")]),
                },
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

    /// Returns the run of a program on `ranks` ranks over a transport, with a time limit of
    /// `seconds`.
    fn launched(&self, transport: &Transport, ranks: u32, seconds: u32, program: &Path) -> Run {
        let run = match transport.name {
            "nodes" => self.host.ranks_of_two_nodes(&self.root, ranks, seconds, program),
            _ => self.host.limited_ranks_of(&self.root, ranks, seconds, program),
        };
        transport.variables.iter().fold(run, |run, (name, value)| run.env(name, value))
    }
}

/// A transport between ranks, with the environment variables that make the MPI library use it.
struct Transport {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Compiler flags that leave out of the programs what the unmodified MPI library does not do
    /// over this transport.
    flags: &'static [&'static str],
}

/// With this variable, MPICH uses the network between ranks of one machine too.
const NO_LOCAL: (&str, &str) = ("MPIR_CVAR_NOLOCAL", "1");
/// With these variables, MPICH sends messages by UCX over sockets.
const OVER_UCX: [(&str, &str); 3] = [NO_LOCAL, ("MPIR_CVAR_CH4_NETMOD", "ucx"), ("UCX_TLS", "tcp,self")];
/// With these variables, MPICH sends messages by UCX through memory that the ranks share.
const OVER_UCX_IN_MEMORY: [(&str, &str); 3] =
    [NO_LOCAL, ("MPIR_CVAR_CH4_NETMOD", "ucx"), ("UCX_TLS", "sm,self")];
/// With these variables, Open MPI sends messages by UCX over sockets (its component `ucx` of the
/// framework `pml`). By default the component refuses sockets.
const OPEN_MPI_OVER_UCX: [(&str, &str); 4] = [
    ("OMPI_MCA_pml", "ucx"),
    ("OMPI_MCA_pml_ucx_tls", "any"),
    ("OMPI_MCA_pml_ucx_devices", "any"),
    ("UCX_TLS", "tcp,self"),
];
/// With these variables, Open MPI sends messages by libfabric over sockets (its components `cm` of
/// the framework `pml` and `ofi` of the framework `mtl`). By default the component refuses sockets.
const OPEN_MPI_OVER_LIBFABRIC: [(&str, &str); 3] =
    [("OMPI_MCA_pml", "cm"), ("OMPI_MCA_mtl", "ofi"), ("OMPI_MCA_mtl_ofi_provider_include", "tcp")];

/// The way in which the output of a program of the matrix is judged.
#[derive(Clone, Copy)]
enum Judge {
    /// The program's output must be the same as without the preload library.
    Text,
    /// The program judges itself, and the first line of its output must be `wrong 0`.
    Itself,
    /// The program's output is judged as with [`Judge::Text`]. In addition, the program judges
    /// itself, and must not print `WRONG`.
    Both,
    /// The program prints a line for each wrong message. With the preload library, no message may
    /// be wrong that is right without it.
    Lines,
    /// The program prints results of receives that are too short for their messages. They are
    /// compared by [`truncation::difference`], which knows the results that MPI libraries may give
    /// for such a receive.
    Truncated,
    /// The output has the outcomes of tests of mpi4py on all ranks, in the form that
    /// [`suite::logs`] returns. Each test that passes without the preload library must pass with
    /// it.
    Suite,
}

impl Judge {
    /// Returns true if `text`, the output of the program under the unmodified library, is right, so
    /// that the outputs of other runs can be compared with it.
    fn accepts(self, text: &str) -> bool {
        match self {
            Judge::Text | Judge::Truncated => !text.is_empty(),
            // The program sends about 250 messages and prints a line for each wrong one. Its output
            // is accepted if less than 100 lines are printed.
            Judge::Lines => text.contains("wrong ") && text.lines().count() < 100,
            Judge::Itself => text.lines().next() == Some("wrong 0"),
            Judge::Both => !text.is_empty() && !text.contains("WRONG"),
            Judge::Suite => suite::Outcome::from_logs(text).came_to_its_end(),
        }
    }

    /// Returns a description of what is wrong with `text`, the output of a run with the preload
    /// library, or `None` if it is right. `unmodified` is the output of a run without the preload
    /// library. If `judges_counts` is true, the statuses of receives that fail must have the same
    /// number of bytes in both runs.
    fn difference(self, host: Host, text: &str, unmodified: &str, judges_counts: bool) -> Option<String> {
        match self {
            Judge::Itself if self.accepts(text) => None,
            Judge::Itself => Some(text.lines().next().unwrap_or("no text").to_owned()),
            Judge::Truncated => truncation::difference(host, text, unmodified, judges_counts),
            Judge::Suite => {
                let [unmodified, with] = [unmodified, text].map(suite::Outcome::from_logs);
                suite::differences(&unmodified, &with).pop_first()
            }
            Judge::Lines => {
                let what = |line: &str| line.rsplit_once(": code").map(|(what, _)| what.to_owned());
                let known: Vec<String> = unmodified.lines().filter_map(what).collect();
                let ended = text.contains("wrong ");
                let new = || text.lines().filter_map(what).find(|line| !known.contains(line));
                if ended { new() } else { Some("no end".to_owned()) }
            }
            Judge::Text | Judge::Both => {
                let said = |line| if judges_counts { (line, "") } else { without_counts(line) };
                let differs = text.lines().zip(unmodified.lines()).find(|(a, b)| said(a) != said(b));
                let line = differs.map(|(a, b)| format!("{a}\nwithout the library:\n{b}"));
                let differs = text.lines().count() != unmodified.lines().count();
                line.or_else(|| differs.then(|| "texts of different length".to_owned()))
            }
        }
    }
}

/// Splits a line of the program `ragged` about a receive that failed: returns the parts before and
/// after the numbers of bytes in the status. Returns every other line whole, with an empty second
/// part.
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
    if !text.contains(REMARK) {
        return text.to_owned();
    }
    text.replace(REMARK, "").lines().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

/// A program that tries one kind of calls, with the way in which its output is judged.
struct Trial {
    kind: Kind,
    program: &'static str,
    flags: &'static [&'static str],
    ranks: u32,
    arguments: &'static [&'static str],
    judge: Judge,
}

/// The name of the program that runs tests of mpi4py. Its argument is a pattern that mpi4py
/// searches in the names of its files of tests.
const MPI4PY: &str = "mpi4py";

/// The programs of the matrix, each with the kind of calls that it tries, its number of ranks, its
/// arguments and the way in which it is judged. The argument `FILE` stands for the path of a file
/// in a folder of the run.
const TRIALS: [Trial; 21] = {
    const fn trial(
        kind: Kind,
        program: &'static str,
        ranks: u32,
        arguments: &'static [&'static str],
        judge: Judge,
    ) -> Trial {
        Trial { kind, program, flags: &[], ranks, arguments, judge }
    }
    const fn suite(kind: Kind, modules: &'static [&'static str]) -> Trial {
        trial(kind, MPI4PY, 2, modules, Judge::Suite)
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
        suite(Kind::Messages, &[r"^test_(p2p_buf(_matched)?|msgspec|pack|request)\.py$"]),
        suite(Kind::Collectives, &[r"^test_cco_(nb_)?(buf|vec)\.py$"]),
        suite(Kind::Neighbors, &[r"^test_cco_(nb_)?ngh_buf\.py$"]),
        suite(Kind::Persistent, &[r"^test_cco_pr_((ngh_)?buf|vec)\.py$"]),
        suite(Kind::Windows, &[r"^test_rma(_nb)?\.py$"]),
        suite(Kind::Files, &[r"^test_io\.py$"]),
    ]
};

/// What is wrong with a run in which all ranks should convert everything, and none converted
/// anything.
const NOTHING: &str = "nothing was converted";

/// The ways to run a program with the preload library. Each has a name; the parity of the ranks
/// that have the preload library, or `None` if all ranks have it; and the policy.
const WAYS: [(&str, Option<u32>, &str); 4] = [
    ("all ranks", None, "all"),
    ("even ranks", Some(0), "all"),
    ("odd ranks", Some(1), "all"),
    ("all ranks by the table", None, "table"),
];

impl Trial {
    /// Returns true if the program is erroneous: its messages are longer than their receives, or
    /// end inside an element. If the unmodified library does not survive such a program, nothing
    /// can be compared, and the other programs decide the verdict for the kind of calls.
    fn is_erroneous(&self) -> bool {
        matches!(self.program, "truncated" | "ragged")
    }

    /// Returns true if the program is the tests of mpi4py. These tests can show that a kind of
    /// calls is wrong, but not that it is right: an older library lacks functions that they call,
    /// and most of their messages are of basic types, which are never converted. That a kind is
    /// right is shown by the other programs.
    fn is_suite(&self) -> bool {
        matches!(self.judge, Judge::Suite)
    }

    /// Returns the program, which is compiled if that has not been done.
    fn executable(&self, subject: &Subject, library: &Library, transport: &Transport) -> PathBuf {
        if self.is_suite() {
            return subject.python();
        }
        let flags = [subject.own_faults(library), transport.flags, self.flags].concat();
        subject.compiled(self.program, &flags)
    }

    /// Runs the program in the given way, or without the preload library if `way` is `None`.
    /// Returns its output, or an error that says how the program ended.
    fn text(
        &self,
        subject: &Subject,
        library: &Library,
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
        // Where nothing is staged, the run is as in a user's process: compiled code moves messages
        // inside the MPI library, and all calls are left to it.
        let unproven = if Profile::find(library).stages { "1" } else { "0" };
        let run =
            run.env("DDTC_POLICY", policy).env("DDTC_UNPROVEN", unproven).env("XDG_CONFIG_HOME", &folder);
        let run = run.env("DDTC_REPORT", folder.join("report%r.json"));
        let log = folder.join("log");
        let run = if self.is_suite() {
            suite::with_tests(run, &log, None).arg("-i").env("MPI4PY_LIBMPI", subject.library())
        } else {
            run
        };
        let run = self.arguments.iter().fold(run, |run: Run, argument| match *argument {
            "FILE" => run.arg(folder.join("file")),
            // With the argument `apart`, the program `windows` makes no window of shared memory. It
            // is passed only for ranks that share no memory, which are those on different nodes or
            // over a network.
            "apart" if transport.name == "shared" => run,
            argument => run.arg(argument),
        });
        let out = run.output();
        if !out.status.success() {
            end_all(program);
        }
        // If all ranks convert everything, the ranks must have converted some messages. This is not
        // demanded of the other ways: the shipped policy may convert no message, and in some
        // programs only the odd ranks have derived types.
        let counts = matches!(way, Some((None, "all"))) && out.status.success();
        let converted = counts.then(|| converted(library, &folder));
        let text = if self.is_suite() {
            suite::logs(&log, self.ranks)
        } else {
            without_remarks(&lossy(&out.stdout))
        };
        fs::remove_dir_all(folder).unwrap();
        let errors = lossy(&out.stderr);
        let last: Vec<&str> = errors.lines().rev().take(3).collect();
        match out.status.success() {
            _ if errors.contains("undefined symbol") => Err("undefined symbol".to_owned()),
            false => Err(format!("{}: {}", out.status, last.join(" / "))),
            true if converted == Some(0) && !self.is_suite() => Err(NOTHING.to_owned()),
            true => Ok(text),
        }
    }

    /// Runs the program without and with the preload library and returns the verdict for the kind
    /// of calls. Appends a description of what is wrong to `wrong`.
    fn verdict(
        &self,
        subject: &Subject,
        library: &Library,
        transport: &Transport,
        wrong: &mut String,
    ) -> Verdict {
        let program = self.executable(subject, library, transport);
        let what = format!("{} {:?} of {} ranks", self.program, self.arguments, self.ranks);
        let unmodified = match self.text(subject, library, &program, transport, None) {
            Ok(unmodified) if self.judge.accepts(&unmodified) => unmodified,
            Ok(unmodified) => {
                let line = unmodified.lines().next().unwrap_or("no text");
                let _ = writeln!(wrong, "{what}, without the preload library: {line}");
                return Verdict::OwnFault;
            }
            // The headers declare a function that the MPI library does not have, so the program
            // cannot run.
            Err(how) if how.contains("undefined symbol") => return Verdict::Absent,
            Err(how) => {
                let _ = writeln!(wrong, "{what}, without the preload library: {how}");
                return Verdict::OwnFault;
            }
        };
        // The number of bytes in the status of a receive that failed is not compared under MPICH
        // before 5.0. This MPICH returns the number of bytes that arrived before the error, which
        // depends on the form of the message.
        let judges_counts = subject.host != Host::Mpich || library.version >= [5, 0, 0];
        for (name, parity, policy) in WAYS {
            let is_same =
                self.ranks == 1 && parity.is_some() || self.kind != Kind::Messages && policy == "table";
            if is_same {
                continue;
            }
            let run = || match self.text(subject, library, &program, transport, Some((parity, policy))) {
                Ok(text) => self.judge.difference(subject.host, &text, &unmodified, judges_counts),
                Err(how) => Some(how),
            };
            // Some tests of mpi4py fail now and then by themselves. So a difference in these tests
            // counts only if each of three runs shows one, in whichever tests.
            let runs = if self.is_suite() { 3 } else { 1 };
            let differs = (0..runs).try_fold(None, |_, _| run().map(Some)).flatten();
            if let Some(differs) = differs {
                let _ = writeln!(wrong, "{what}, {name}: {differs}");
                return if differs == NOTHING { Verdict::Untried } else { Verdict::Wrong };
            }
        }
        Verdict::Right
    }
}

/// Returns the number of messages that were packed or unpacked, summed over all ranks whose reports
/// are in the folder. For a library under which nothing is staged, returns the number of bytes that
/// compiled code moved inside it.
fn converted(library: &Library, folder: &Path) -> u64 {
    let counters = if Profile::find(library).stages {
        ["messages_packed", "messages_unpacked"]
    } else {
        ["hook_bytes_packed", "hook_bytes_unpacked"]
    };
    let files = fs::read_dir(folder).unwrap().filter_map(Result::ok).map(|file| file.path());
    let reports = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
    reports
        .map(|file| report(&fs::read_to_string(file).unwrap()))
        .map(|said| said[counters[0]] + said[counters[1]])
        .sum()
}

/// Kills the processes of a program that has failed. After one rank has crashed, other ranks may
/// wait for it forever, whichever launcher has started them.
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

/// Runs the programs of the matrix for an MPI library over a transport. Returns a verdict for each
/// kind of calls, and a text that describes what is wrong.
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
        // If the unmodified library fails in an erroneous program or in mpi4py's tests, the trial
        // counts as right here, so that the fault of the library does not hide what is wrong in
        // another program of the same kind.
        let verdict = |trial: &Trial| match trial.verdict(subject, library, transport, &mut wrong) {
            Verdict::OwnFault if trial.is_erroneous() || trial.is_suite() => Verdict::Right,
            Verdict::Absent if trial.is_suite() => Verdict::Right,
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

/// Returns the row of `tried.txt` for an MPI library, its device and a transport, with the date and
/// the verdicts.
fn row(library: &Library, device: &str, transport: &str, date: &str, verdicts: &[Verdict]) -> String {
    let [major, minor, patch] = library.version;
    let words: Vec<&str> = verdicts.iter().map(|verdict| verdict.name()).collect();
    let family = library.family.name();
    format!("{family} {major}.{minor}.{patch} {device} {transport} {date} {}", words.join(" "))
}

/// Writes the rows `new` into `tried.txt`. Each row replaces the row with the same library, device
/// and transport, if there is one.
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
        let subject = Subject::from_word(&word);
        let version = subject.version();
        let line = version.lines().find_map(|line| line.strip_prefix("MPICH Device:"));
        let device = line.map_or("-".to_owned(), |line| line.trim().replace(char::is_whitespace, ","));
        let library = Library::from_version_text(&format!(
            "{}, device {device}",
            version.lines().next().unwrap_or_default()
        ));
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
            let permitted = TrialStatus::find(&library, way).kinds(false);
            let known = rows().find(|row| row.library == library && row.transport == transport);
            for (i, (kind, now)) in Kind::ALL.into_iter().zip(verdicts).enumerate() {
                let must_be_right = permitted.has(kind)
                    || known.as_ref().is_some_and(|row| row.verdicts[i] == Verdict::Right);
                // Where nothing is staged, no verdict permits anything, and compiled code may move
                // the messages of all calls inside the library.
                let may_be_wrong = Profile::find(&library).stages;
                if must_be_right && now != Verdict::Right || now == Verdict::Wrong && !may_be_wrong {
                    differences.push(format!("{library} {transport} {}: {}", kind.name(), now.name()));
                }
            }
            new.push(row);
            // A transport may take minutes, so the rows are written after each transport, and not
            // only at the end.
            if blessed {
                bless(&new);
            }
        }
    }
    assert!(blessed || differences.is_empty(), "{}", differences.join("\n"));
}

/// Copies the library file of an MPICH, `libmpi.so.12`, into `folder`. In the copy, the release
/// `old` is replaced by `new`, so that the library claims to be a release that nobody has tried.
pub(crate) fn renamed(root: &Path, old: &[u8; 6], new: &[u8; 6], folder: &Path) {
    replaced(&root.join("lib/libmpi.so.12"), old, new, &folder.join("libmpi.so.12"));
}

/// Copies a file. In the copy, the bytes `old` are replaced by `new`, which are as many.
pub(crate) fn replaced(file: &Path, old: &[u8], new: &[u8], copy: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let places: Vec<usize> =
        bytes.windows(old.len()).enumerate().filter(|(_, w)| *w == old).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "{}: {}", file.display(), lossy(old));
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    fs::write(copy, bytes).unwrap();
}

#[test]
fn a_release_that_was_not_tried_is_left_alone_unless_the_user_asks() {
    let (host, folder) = (Host::Mpich, scratch("untried"));
    renamed(&host.root(), b"5.0.2\0", b"5.9.2\0", &folder);
    let program = host.compile("messages", &[]);
    // `folder` has only the copy of `libmpi.so.12`. The libraries that this copy needs are found in
    // the folder of the original.
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
