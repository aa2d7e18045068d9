//! Tests that compile the C programs of `tests/c`, link them with this library in place of yaksa,
//! and run them. All programs except `gpu.c` run under sanitizers if the workspace member `e2e`
//! compiles these tests.
//!
//! If a tool is missing, for example the C compiler, the tests fail and are not skipped.

mod library;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use library::{installed, scratch};

/// Folder of the workspace member `yaksa`. The workspace member `e2e` also compiles these tests.
/// `CARGO_MANIFEST_DIR` is then the folder of `e2e`, next to the folder `yaksa`.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../yaksa");

/// Whether the C programs except `gpu.c` run under sanitizers: true if the workspace member `e2e`
/// compiles these tests, and false in an ordinary `cargo test`.
const SANITIZED: bool = cfg!(e2e);

/// Runs a command and returns its output. Fails the test if the command fails.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}: a C compiler (cc) is needed"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compiles a C program of `tests/c` and returns the path of the executable.
///
/// Each call writes a new file, because tests run in parallel, and an executable cannot be written
/// while another test runs it ("Text file busy").
fn compile(name: &str, sanitized: bool) -> PathBuf {
    let lib = installed();
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let program = scratch().join(format!("{name}-{}", CALLS.fetch_add(1, Ordering::Relaxed)));
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    if sanitized {
        command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    }
    command.arg(Path::new(HERE).join(format!("tests/c/{name}.c"))).arg("-o").arg(&program);
    command
        .arg(format!("-L{}", lib.display()))
        .arg("-l:libyaksa.so.0")
        .arg(format!("-Wl,-rpath,{}", lib.display()));
    run(&mut command);
    program
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            run(&mut Command::new(compile(stringify!($name), SANITIZED)));
        }
    )*};
}

programs! { constructors moves often first pieces flatten reduce life badinput slots threads restarts }

#[test]
fn a_gpu_runtime_is_mentioned_once() {
    let program = compile("gpu", false);
    let messages = |preload: Option<&Path>| {
        let mut command = Command::new(&program);
        if let Some(object) = preload {
            command.env("LD_PRELOAD", object);
        }
        String::from_utf8(run(&mut command).stderr).unwrap()
    };
    assert_eq!(messages(None), "");
    let source = scratch().join("nothing.c");
    std::fs::write(&source, "int nothing;\n").unwrap();
    for gpu in ["libcuda.so.1", "libamdhip64.so.6", "libze_loader.so.1"] {
        let object = scratch().join(gpu);
        run(Command::new("cc").args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&object));
        let said = messages(Some(&object));
        let stem = gpu.rsplit_once('.').unwrap().0;
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(stem) && said.contains("GPU buffers are not supported"), "{said}");
    }
}

/// Tests the warning about a version of MPICH for which the library is not made. A preloaded
/// library pretends to be MPICH, with one of three versions. The library is made for two of these
/// versions, but not for the third.
#[test]
fn an_unknown_mpich_is_mentioned_once() {
    let program = compile("gpu", false);
    for (version, expected) in [("5.0.1", None), ("4.0.2", None), ("6.1.0a1", Some("this is MPICH 6.1.0a1"))]
    {
        let (source, object) = (scratch().join("version.c"), scratch().join(format!("version-{version}.so")));
        let text = format!("MPICH Version:      {version}\\nMPICH ABI: 1:2:3");
        let code = format!(
            "#include <string.h>\nint PMPI_Get_library_version(char *t, int *n)\n{{ strcpy(t, \"{text}\"); *n = strlen(t); return 0; }}\n"
        );
        std::fs::write(&source, code).unwrap();
        run(Command::new("cc").args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&object));
        let said = String::from_utf8(run(Command::new(&program).env("LD_PRELOAD", &object)).stderr).unwrap();
        assert_eq!(said.lines().count(), usize::from(expected.is_some()), "{said}");
        assert!(said.contains(expected.unwrap_or("")), "{said}");
    }
}

/// The library must export the functions that the installed header declares, and no others.
#[test]
fn exactly_the_interface_is_exported() {
    let header = std::fs::read_to_string(format!("{HERE}/include/yaksa.h")).unwrap();
    let mut declared: Vec<&str> = header
        .lines()
        .filter_map(|l| l.strip_prefix("int "))
        .filter_map(|l| l.split_once('(').map(|(name, _)| name))
        .collect();
    declared.sort_unstable();
    assert_eq!(declared.len(), 34);
    let library = installed().join("libyaksa.so.0");
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut exported: Vec<&str> = listed.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    assert_eq!(exported, declared);
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(String::from_utf8(dynamic.stdout).unwrap().contains("Library soname: [libyaksa.so.0]"));
}
