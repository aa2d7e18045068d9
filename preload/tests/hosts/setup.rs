//! The MPI libraries that tests run under: pinned wheels in virtual environments below the target folder, made once.
//!
//! What cannot be prepared is an error that says what to do, never a test that is left out.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::build::build;

/// An MPI library with the ABI that programs are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Mpich,
    MpichStandard,
    Intel,
    IntelStandard,
    OpenMpi,
    /// The release before, for what its insides are asked about.
    OpenMpi4,
}

/// Seconds after which a program hangs. Not a measure of time: a loaded machine may take many times what a quiet one does, so
/// that whoever waits for it waits for nothing.
pub(crate) const HANGS: u32 = 3600;

/// The pinned wheels.
const WHEELS: &str = include_str!("wheels.txt");

/// A wheel: folder, package, version, and the SHA-256 of its files.
pub(crate) struct Wheel {
    folder: &'static str,
    package: &'static str,
    pub(crate) version: &'static str,
    hashes: Vec<&'static str>,
}

impl Wheel {
    pub(crate) fn of(folder: &'static str) -> Wheel {
        let mut rows = WHEELS.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let row = rows.find(|row| row[0] == folder).expect("a row of wheels.txt");
        Wheel { folder, package: row[1], version: row[2], hashes: row[3..].to_vec() }
    }

    fn pinned(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }
}

impl Host {
    pub(crate) const ALL: [Host; 5] =
        [Host::Mpich, Host::MpichStandard, Host::Intel, Host::IntelStandard, Host::OpenMpi];

    /// Whether the host has the large-count functions.
    pub(crate) fn has_large_counts(self) -> bool {
        !matches!(self, Host::OpenMpi | Host::OpenMpi4)
    }

    fn wheel(self) -> Wheel {
        let folder = match self {
            Host::Mpich | Host::MpichStandard => "mpich",
            Host::Intel | Host::IntelStandard => "impi",
            Host::OpenMpi => "openmpi",
            Host::OpenMpi4 => "openmpi4",
        };
        Wheel::of(folder)
    }

    /// Its virtual environment, prepared when it is first asked for.
    pub(crate) fn root(self) -> PathBuf {
        prepared(self.wheel())
    }

    /// Package and version of its wheel.
    pub(crate) fn release(self) -> (&'static str, &'static str) {
        let wheel = self.wheel();
        (wheel.package, wheel.version)
    }

    /// The compiler wrapper. Intel's wheel has none: programs of MPICH's ABI are compiled by MPICH's.
    pub(crate) fn compiler(self) -> PathBuf {
        match self {
            Host::Mpich | Host::Intel => Host::Mpich.root().join("bin/mpicc"),
            Host::MpichStandard | Host::IntelStandard => Host::Mpich.root().join("bin/mpicc_abi"),
            Host::OpenMpi | Host::OpenMpi4 => self.root().join("bin/mpicc"),
        }
    }

    /// Compiles `tests/c/NAME.c` for the host, or `tests/c/NAME.cpp` if there is one, once per source.
    pub(crate) fn compile(self, name: &str, flags: &[&str]) -> PathBuf {
        compiled_by(&self.compiler(), name, flags)
    }

    /// The environment that programs of this host need.
    fn surroundings(self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.root().join("lib"));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command.env("TMPDIR", sessions());
        // Singletons and ranks of one machine: no network to look for.
        let shared = if self == Host::OpenMpi4 { "self,vader" } else { "self,sm" };
        command.env("OMPI_MCA_btl", shared).env("I_MPI_FABRICS", "shm");
        if self == Host::OpenMpi4 {
            // It looks for its launcher where it was built.
            command.env("OPAL_PREFIX", self.root());
            // Its mpiexec looks for ssh at once, which a machine may lack; no rank is on another one.
            command.env("OMPI_MCA_plm", "isolated");
        }
        for name in std::env::vars().map(|(name, _)| name).filter(|n| n.starts_with("DDTC_")) {
            command.env_remove(name);
        }
        // Staging buffers of the library stand between inaccessible pages, and types are taken over when they are first used.
        command.env("DDTC_FENCES", "1").env("DDTC_LAZY_THRESHOLD", "0");
        // What is converted is not for this machine to say.
        command.env("DDTC_POLICY", "table").env("DDTC_PROFILE_CACHE", "0");
    }

    /// A command to run a program of the host as one process.
    pub(crate) fn run(self, program: impl AsRef<Path>) -> Run {
        let mut command = Command::new("timeout");
        command.arg(HANGS.to_string()).arg(program.as_ref());
        self.surroundings(&mut command);
        Run { command }
    }

    /// A command to run a program of the host as `n` ranks of one machine.
    pub(crate) fn ranks(self, n: u32, program: impl AsRef<Path>) -> Run {
        self.ranks_of(&self.root(), n, program)
    }

    /// Runs the program on `n` ranks under a release of the host that lies elsewhere.
    pub(crate) fn ranks_of(self, root: &Path, n: u32, program: impl AsRef<Path>) -> Run {
        self.launched(root, n, &[], HANGS, program)
    }

    /// As [`Host::ranks_of`] for a program that may hang without the preload library: it ends after so many seconds.
    pub(crate) fn limited_ranks_of(
        self,
        root: &Path,
        n: u32,
        seconds: u32,
        program: impl AsRef<Path>,
    ) -> Run {
        self.launched(root, n, &[], seconds, program)
    }

    /// As [`Host::limited_ranks_of`] on the two hosts that `two-nodes up` makes, one rank here and the next there.
    pub(crate) fn ranks_of_two_nodes(
        self,
        root: &Path,
        n: u32,
        seconds: u32,
        program: impl AsRef<Path>,
    ) -> Run {
        let script = package().join("tests/two-nodes");
        let ssh = package().join("tests/two-nodes-ssh");
        let mut command = Command::new("timeout");
        command.arg(seconds.to_string()).arg(script).args(["on", "nodea"]);
        command.arg(root.join("bin/mpiexec")).args(["-n", &n.to_string()]);
        match self {
            Host::OpenMpi | Host::OpenMpi4 => {
                let agent: &[&str] = match self {
                    Host::OpenMpi => &["--prtemca", "plm_ssh_agent"],
                    _ => &["--mca", "plm_rsh_agent"],
                };
                command.args(agent).arg(ssh).args(["--host", "nodea:40,nodeb:40", "--map-by", "node"]);
                command.args(["--bind-to", "none", "-x", "LD_LIBRARY_PATH"]);
            }
            _ => {
                command.args(["-launcher", "ssh", "-launcher-exec"]).arg(ssh);
                command.args(["-hosts", "nodea,nodeb", "-ppn", "1"]);
            }
        }
        self.prepared(command, root, program)
    }

    /// As [`Host::ranks`] under Open MPI, whose ranks go on when one of them dies.
    pub(crate) fn tolerant_ranks(self, n: u32, program: impl AsRef<Path>) -> Run {
        self.launched(&self.root(), n, &["--with-ft", "ulfm"], HANGS, program)
    }

    /// Runs the program on `n` ranks by a launcher with these options, for at most so many seconds.
    fn launched(self, root: &Path, n: u32, options: &[&str], seconds: u32, program: impl AsRef<Path>) -> Run {
        let mut command = Command::new("timeout");
        command.arg(seconds.to_string()).arg(root.join("bin/mpiexec")).args(["-n", &n.to_string()]);
        if matches!(self, Host::OpenMpi | Host::OpenMpi4) {
            command.args(["--oversubscribe", "--bind-to", "none", "-x", "LD_LIBRARY_PATH"]);
        }
        command.args(options);
        self.prepared(command, root, program)
    }

    /// What every launcher gets.
    fn prepared(self, mut command: Command, root: &Path, program: impl AsRef<Path>) -> Run {
        self.surroundings(&mut command);
        command.env("LD_LIBRARY_PATH", root.join("lib"));
        // The launcher's own processes need no preload library: `env` sets it for the ranks.
        command.arg("env").arg("DDTC_RANKS=1").arg(program.as_ref());
        Run { command }
    }
}

/// Compiles `tests/c/NAME.c` by a compiler wrapper of an MPI library, or `tests/c/NAME.cpp` if there is one, once per source.
pub(crate) fn compiled_by(compiler: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let plus = sources().join(format!("{name}.cpp"));
    let is_plus = plus.exists();
    let source = if is_plus { plus } else { sources().join(format!("{name}.c")) };
    let text = fs::read(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let mut hash = DefaultHasher::new();
    let shared = ["versions.h", "layouts.h", "told.h", "ddtbench.h", "flat.h", "resident.h", "convertors.h"]
        .map(|header| fs::read(sources().join(header)).unwrap());
    (text, shared, flags, NAMED.get(), compiler).hash(&mut hash);
    let out = hosts().join("bin").join(format!("{name}-{:016x}", hash.finish()));
    let _lock = Lock::take("compile");
    if !out.exists() {
        let part = out.with_extension("part");
        let mut command = Command::new(compiler);
        command.args(["-O1", "-g", "-Wall", "-Wno-unused-result", "-pthread", "-I"]).arg(hosts().join("bin"));
        command.arg("-o").arg(&part).arg(&source).args(flags);
        if is_plus {
            command.arg("-lstdc++");
        }
        succeed(&mut command, "a C compiler (cc) is needed, and one of C++ for .cpp: install gcc, g++");
        fs::rename(&part, &out).unwrap();
    }
    out
}

/// Another release of a host, by its folder in the list of wheels, prepared when it is first asked for.
pub(crate) fn release(folder: &'static str) -> PathBuf {
    prepared(Wheel::of(folder))
}

/// The virtual environment of a wheel.
fn prepared(wheel: Wheel) -> PathBuf {
    static READY: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let root = hosts().join(wheel.folder);
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    if !ready.contains(wheel.folder) {
        let _lock = Lock::take("setup");
        prepare(&root, &wheel);
        ready.insert(wheel.folder);
    }
    root
}

/// A program to be run.
pub(crate) struct Run {
    pub(crate) command: Command,
}

impl Run {
    pub(crate) fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Run {
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// Of a launcher of `sh`: runs the program with the preload library on the ranks of one parity only.
    pub(crate) fn with_some(self, parity: u32, program: &Path) -> Run {
        let script = format!(
            "rank=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}; [ $((rank % 2)) = {parity} ] && export LD_PRELOAD={}; exec \"$@\"",
            library().display()
        );
        self.arg("-c").arg(script).arg("sh").arg(program)
    }

    /// With the preload library.
    pub(crate) fn preload(self) -> Run {
        let library = library();
        self.env("LD_PRELOAD", library)
    }

    pub(crate) fn output(mut self) -> Output {
        self.command.output().unwrap_or_else(|e| panic!("{:?}: {e}", self.command))
    }

    /// Standard output of a program that must succeed, with what it said on standard error.
    pub(crate) fn text(mut self) -> (String, String) {
        let out = self.command.output().unwrap_or_else(|e| panic!("{:?}: {e}", self.command));
        let (text, errors) = (lossy(&out.stdout), lossy(&out.stderr));
        assert!(out.status.success(), "{:?}: {}\n{text}\n{errors}", self.command, out.status);
        (text, errors)
    }
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The package of the library, whichever compiles these tests: itself, or the one of the other tiers.
pub(crate) fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace").join("preload")
}

pub(crate) fn sources() -> PathBuf {
    package().join("tests/c")
}

/// Where cargo put this test: `target/PROFILE/deps`.
fn deps() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// The library under test, in the profile of the test.
pub(crate) fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("ddtc-preload").join("libddtc_preload.so")).clone()
}

/// The command line, next to the library.
pub(crate) fn command_line() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    library();
    PROGRAM.get_or_init(|| build("ddtc-cli").join("ddtc")).clone()
}

/// The folder with everything that is installed.
pub(crate) fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    command_line();
    let build_all = || {
        if package().join("../yaksa").is_dir() {
            build("ddtc-yaksa");
        }
        build("ddtc-capi")
    };
    BUILT.get_or_init(build_all).clone()
}

/// A folder for files of one test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = hosts().join("scratch").join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder for launchers' sessions. Open MPI names a session by the launcher's process number alone, and a launcher that finds what an aborted one of its number left
/// behind does not start ("The PMIx server's listener thread failed to start"): in the machine's folder of temporary files that is anybody's.
pub(crate) fn sessions() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = scratch("sessions");
        fs::remove_dir_all(&folder).unwrap();
        scratch("sessions")
    })
}

/// An advisory lock among test processes that share the target folder.
struct Lock(#[allow(dead_code, reason = "closing the file unlocks it")] fs::File);

impl Lock {
    fn take(name: &str) -> Lock {
        static LOCAL: Mutex<()> = Mutex::new(());
        let _local = LOCAL.lock();
        let folder = deps().join("../../ddtc-hosts");
        fs::create_dir_all(&folder).unwrap();
        let file = fs::File::create(folder.join(format!("{name}.lock"))).unwrap();
        // SAFETY: a file descriptor that is open.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0);
        Lock(file)
    }
}

static NAMED: OnceLock<String> = OnceLock::new();

/// The folder of all that is prepared, with the header of the named types.
pub(crate) fn hosts() -> PathBuf {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    READY
        .get_or_init(|| {
            let _lock = Lock::take("setup");
            let folder = deps().join("../../ddtc-hosts").canonicalize().unwrap();
            fs::create_dir_all(folder.join("bin")).unwrap();
            let named = NAMED.get_or_init(named_header);
            fs::write(folder.join("bin/named.h"), named).unwrap();
            folder
        })
        .clone()
}

fn prepare(root: &Path, wheel: &Wheel) {
    let stamp = root.join(".ready");
    let hashes: String = wheel.hashes.iter().map(|h| format!(" --hash=sha256:{h}")).collect();
    let requirement = format!("{}{hashes}\n", wheel.pinned());
    let mpi4py = Wheel::of("mpi4py").pinned();
    let wanted = format!("{requirement}{mpi4py}");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return;
    }
    let _ = fs::remove_dir_all(root);
    let python =
        "python3 with venv and pip is needed to fetch MPI libraries (Debian: apt-get install python3-venv)";
    succeed(Command::new("python3").args(["-m", "venv"]).arg(root), python);
    let help = "pip could not install the pinned MPI wheels: see its message; PIP_INDEX_URL or PIP_FIND_LINKS say \
                where to look";
    let pip = || {
        let mut pip = Command::new(root.join("bin/pip"));
        pip.args(["install", "--quiet", "--no-deps"]);
        // What ./test.sh has fetched is there.
        if let Some(fetched) = root.parent().map(|folder| folder.join("wheels")).filter(|f| f.is_dir()) {
            pip.arg("--find-links").arg(fetched);
        }
        pip
    };
    // Hashes are read from a file alone.
    let file = root.join("requirements.txt");
    fs::write(&file, requirement).unwrap();
    succeed(pip().arg("--require-hashes").arg("-r").arg(file), help);
    succeed(pip().arg(mpi4py), help);
    fs::write(stamp, wanted).unwrap();
}

pub(crate) fn succeed(command: &mut Command, help: &str) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}\n{help}"));
    assert!(out.status.success(), "{command:?}\n{}{}\n{help}", lossy(&out.stdout), lossy(&out.stderr));
}

/// `named(name, &type)`: the named types that a host's header has.
fn named_header() -> String {
    let mut text = "static int named(const char *name, MPI_Datatype *t) {\n".to_owned();
    for name in ddtc::internal::datatype::Named::ALL.iter().map(|n| n.mpi_name()) {
        if !["MPI_LB", "MPI_UB"].contains(&name) {
            text += &format!(
                "#ifdef {name}\n  if (!strcmp(name, \"{name}\")) {{ *t = {name}; return 1; }}\n#endif\n"
            );
        }
    }
    text + "  return 0;\n}\n"
}

/// Returns the totals of a report in JSON, and how many of its ranks have not finalized MPI. Each
/// number stands on a line of its own.
pub(crate) fn report(text: &str) -> HashMap<String, u64> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.trim().strip_prefix('"')?.split_once("\": ")?;
            Some((name.to_owned(), value.trim_end_matches(',').parse().ok()?))
        })
        .collect()
}

/// Returns the numbers of the lines `name number` that a program prints.
pub(crate) fn numbers(text: &str) -> HashMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Returns a number of a type, by the line of the type in a report in JSON.
pub(crate) fn of_type(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\": ")).expect("a number of the type");
    rest[..rest.find([',', '}']).unwrap()].parse().unwrap()
}

/// Returns the first sentence of a report in JSON.
pub(crate) fn summary(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("\"summary\": \"")).unwrap_or_default();
    line.trim_end_matches(',').trim_end_matches('"')
}

/// A launcher for each rank: the library for ranks of one parity only.
pub(crate) fn on_some(host: Host, ranks: u32, program: &Path, parity: u32) -> Run {
    host.ranks(ranks, "sh").with_some(parity, program)
}

/// The lines of all ranks, whichever prints first.
pub(crate) fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Names the first line that differs.
pub(crate) fn same(what: &str, text: &str, bare: &str) {
    for (i, (a, b)) in text.lines().zip(bare.lines()).enumerate() {
        assert_eq!(a, b, "{what}, line {i}: with the library (left), without (right)");
    }
    assert_eq!(text.lines().count(), bare.lines().count(), "{what}");
}

/// Returns the report of each rank.
pub(crate) fn reports(folder: &Path, ranks: u32) -> Vec<HashMap<String, u64>> {
    let read = |rank| fs::read_to_string(folder.join(format!("report{rank}.json"))).unwrap();
    (0..ranks).map(|rank| report(&read(rank))).collect()
}
