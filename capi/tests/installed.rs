//! Tests that compile and run C, C++ and Fortran programs with the installed library, as a user
//! would.
//!
//! install.sh builds the library and installs it into a directory of this test. The programs under
//! tests/ are compiled with the system's compilers. The tests of the package capi link these
//! programs with the shared library. The package e2e includes this file, too. Its tests link the
//! programs with the static library and under AddressSanitizer, and also run the programs in C++
//! and Fortran. A missing compiler or file makes a test fail.

#[path = "../../gpu/tests/standin/build.rs"]
mod standin;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ddtc::internal::datatype::Datatype;
use ddtc::internal::datatype::c::{self, HostBounds};
use ddtc::internal::methods::*;

/// Directory of the package capi. The path is right both if capi and if e2e compiles this file.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/install.sh");

/// Runs a command and returns its output. Panics with the output if the command fails.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the path of a directory for this test in `<target>/tmp`. Cargo creates `<target>/tmp`.
fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("installed")
}

/// Returns the directory of the build profile, which holds the libraries. Tests run from
/// `<target>/<profile>/deps`.
fn libs() -> PathBuf {
    let exe = std::env::current_exe().expect("path of this test");
    exe.parent().and_then(Path::parent).expect("profile directory").to_owned()
}

/// Returns a command that installs the C library under `prefix`.
fn install(prefix: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg(SCRIPT).args(["--only", "capi", "--static", "--no-debug", "--prefix"]).arg(prefix);
    command.env("CARGO", env!("CARGO")).env_remove("DESTDIR").env_remove("INSTALL_BUILT");
    command
}

/// Returns the prefix under which the library is installed. The first call in a run installs it.
fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let libs = libs();
        let profile = match libs.file_name().and_then(|n| n.to_str()).expect("profile") {
            "debug" => "dev",
            other => other,
        };
        // Cargo builds no cdylib for the tests of the same package, so install.sh builds it. It
        // uses the profile and target directory of this test, where `cargo test` has already
        // compiled the other crates.
        let target = libs.parent().expect("target directory");
        let prefix = scratch().join("prefix");
        let _ = std::fs::remove_dir_all(scratch());
        run(install(&prefix).args(["--profile", profile]).env("CARGO_TARGET_DIR", target));
        prefix
    })
}

/// Returns the words that follow `which` in the line of ddtc.pc that begins with `which`. The
/// installed directories replace the variables `${libdir}` and `${includedir}` in these words.
fn pkg_config(which: &str) -> Vec<String> {
    let pc = std::fs::read_to_string(installed().join("lib/pkgconfig/ddtc.pc")).expect("ddtc.pc");
    let line = pc.lines().find_map(|l| l.strip_prefix(which)).expect("a line of ddtc.pc");
    let prefix = installed().display().to_string();
    line.replace("${libdir}", &format!("{prefix}/lib"))
        .replace("${includedir}", &format!("{prefix}/include"))
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// The way in which a program is linked with the library.
#[derive(Clone, Copy, PartialEq)]
enum Link {
    Shared,
    Static,
    /// With the shared library, and with two sanitizers: AddressSanitizer with its leak check, and
    /// UndefinedBehaviorSanitizer.
    Sanitized,
}

/// Compiles `source`, which is a file under tests/ or an absolute path, and returns the program.
///
/// Each call writes a file of its own, because tests run concurrently, and a program cannot be
/// written while another test runs it ("Text file busy").
fn compile(compiler: &str, source: &str, link: Link, extra: &[&str]) -> PathBuf {
    let name = Path::new(source).file_stem().and_then(|s| s.to_str()).expect("name");
    let suffix = match link {
        Link::Shared => "shared",
        Link::Static => "static",
        Link::Sanitized => "asan",
    };
    let lib = installed().join("lib");
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let program = scratch().join(format!("{name}-{compiler}-{suffix}-{call}"));
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror"]);
    command.args(pkg_config("Cflags:")).args(extra);
    if link == Link::Sanitized {
        command.args([
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-fno-omit-frame-pointer",
        ]);
    }
    command.arg(Path::new(HERE).join("tests").join(source)).arg("-o").arg(&program).arg("-pthread");
    match link {
        Link::Static => {
            command.arg(lib.join("libddtc.a")).args(pkg_config("Libs.private:"));
        }
        _ => {
            command.args(pkg_config("Libs:")).arg(format!("-Wl,-rpath,{}", lib.display()));
        }
    }
    run(&mut command);
    program
}

/// Ways in which the programs are linked: one in the fast tier, and the other two in e2e.
const LINKS: &[Link] = if cfg!(e2e) { &[Link::Static, Link::Sanitized] } else { &[Link::Shared] };

fn runs(program: &Path) -> String {
    text(&run(Command::new(program)
        .env("ASAN_OPTIONS", "detect_leaks=1")
        .env("UBSAN_OPTIONS", "print_stacktrace=1")))
}

/// Compiles and runs a C program once for each way of linking in `LINKS`.
fn c(source: &str) {
    for &link in LINKS {
        runs(&compile("cc", source, link, &["-std=gnu11"]));
    }
}

macro_rules! c_programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            c(concat!("c/", stringify!($name), ".c"));
        }
    )*};
}

c_programs! {
    constructors decode badinput attributes windows addresses embed allocator threads tool kinds status external reduce environment
    exchange segments copy
}

/// Runs forks.c without sanitizers, because with gcc 12 the sanitizer's own allocator may be locked
/// in the child of a process with threads.
#[test]
fn forks() {
    for &link in LINKS.iter().filter(|&&link| link != Link::Sanitized) {
        runs(&compile("cc", "c/forks.c", link, &["-std=gnu11"]));
    }
}

/// Calls the functions of ddtc_cuda.h with the stand-in for NVIDIA's driver, and without a driver.
#[test]
fn device_memory() {
    installed();
    let (with, without) = (scratch().join("driver"), scratch().join("no-driver"));
    standin::standin(&with);
    // A file that has the driver's name but is no library hides a driver that the machine may have.
    std::fs::create_dir_all(&without).expect("a folder");
    std::fs::write(without.join("libcuda.so.1"), "no library").expect("a file");
    // Compile the example of docs/GPU.md.
    let page = Path::new(HERE).parent().expect("workspace").join("docs/GPU.md");
    let page = std::fs::read_to_string(page).expect("GPU.md");
    let example = page.split("```c\n").nth(1).and_then(|rest| rest.split_once("```")).expect("an example").0;
    let source = scratch().join("example.c");
    std::fs::write(&source, format!("{example}\nint main(void) {{ return 0; }}\n")).expect("example.c");
    runs(&compile("cc", source.to_str().expect("UTF-8"), LINKS[0], &["-std=gnu11"]));
    for &link in LINKS {
        let program = compile("cc", "c/cuda.c", link, &["-std=gnu11"]);
        run(Command::new(&program).arg("driver").env("LD_LIBRARY_PATH", &with));
        run(Command::new(&program).arg("none").env("LD_LIBRARY_PATH", &without));
    }
}

/// Checks the functions of ddtc_mpi.h with each pointer and handle null in turn. tests/table
/// generates the calls.
#[test]
fn null_pointers_are_refused() {
    installed();
    let calls = scratch().join("calls.inc");
    std::fs::write(&calls, table::null_calls()).expect("calls");
    let defined = format!("-DCALLS=\"{}\"", calls.display());
    let link = if cfg!(e2e) { Link::Sanitized } else { Link::Shared };
    let program = compile("cc", "table/nulls.c", link, &["-std=gnu11", "-O0", &mpi_h(), &defined]);
    // The calls do not free the objects that they create, so the leak check is off.
    let output = Command::new(program).env("ASAN_OPTIONS", "detect_leaks=0").output().expect("program");
    let (said, failed) = (text(&output), String::from_utf8_lossy(&output.stderr));
    let last = said.lines().last().unwrap_or_default();
    assert!(output.status.success(), "{}, in or after: {last}\n{failed}", output.status);
    assert!(said.lines().count() > 600, "{} calls", said.lines().count());
}

/// Returns the option `-I` for the directory with the mpi.h that includes ddtc_mpi.h.
fn mpi_h() -> String {
    format!("-I{}", installed().join("include/ddtc").display())
}

/// Checks the C statements that `datatype::c` prints for a datatype, for example in reproducers.
/// The statements must build an equal datatype.
#[test]
fn printed_constructors_build_the_type() {
    // C has no constructors for the combiners of MPI-1's Fortran binding, so the printed statements
    // build such types with the ordinary combiners. Bounds that an MPI library reported for a type
    // are printed as `resized`.
    let plain = |text: &str| {
        let text = ["hvector", "hindexed", "struct"].iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("{name}_integer("), &format!("{name}("))
        });
        text.replace("bounds(", "resized(").parse::<Datatype>().unwrap()
    };
    let large =
        "let a = indexed([4000000000,1],[-7,5000000000],byte); struct([1,2],[0,-9000000000000000000],[a,a])";
    let mut types: Vec<Datatype> = vec![large.parse().unwrap()];
    types.extend(
        ddtc::internal::corpus::corner().into_iter().map(|e| e.datatype).filter(|t| t.arguments() < 500),
    );
    let (mut functions, mut calls) = (String::new(), String::new());
    for (i, t) in types.iter().enumerate() {
        let mut body = String::new();
        let root = c::constructors(t, HostBounds::Resized, &mut body);
        functions += &format!("static MPI_Datatype make_{i}(void)\n{{\n{body}    return {root};\n}}\n");
        calls += &format!("    print(make_{i}());\n");
    }
    installed();
    let source = scratch().join("printed.c");
    let print = "static void print(MPI_Datatype t)\n{\n    ddtc_count length = 0;\n    ddtc_type_print(t, NULL, &length);\n\
                 \u{20}   char *text = malloc(length);\n    ddtc_type_print(t, text, &length);\n    puts(text);\n    free(text);\n}\n";
    let program = format!(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n{print}{functions}int main(void)\n{{\n{calls}    return 0;\n}}\n"
    );
    std::fs::write(&source, program).expect("printed.c");
    let built =
        runs(&compile("cc", source.to_str().expect("UTF-8"), Link::Shared, &["-std=gnu11", &mpi_h()]));
    assert_eq!(built.lines().count(), types.len());
    for (built, t) in built.lines().zip(&types) {
        assert_eq!(built.parse::<Datatype>().unwrap(), plain(&t.to_string()), "{t}");
    }
    assert!(types.len() > 50, "{} types", types.len());
}

/// Checks the output of the examples in the section of MPI-2.0 on decoding. The example with LARGE
/// = 1000 must abort for a datatype with more arguments.
#[test]
fn examples_of_the_decoding_section() {
    const EXPECTED: &str = "\
Datatype is struct containing 2 datatypes:
blocklength 1, displacement 0, type:
Datatype is struct containing 2 datatypes:
blocklength 1, displacement 0, type:
Datatype is named:MPI_INT
blocklength 4, displacement 8, type:
Datatype is vector: 3 1 2 of
Datatype is named:MPI_DOUBLE
blocklength 4, displacement 1024, type:
Datatype is named:MPI_CHAR
Datatype is named:MPI_INT
large: 3 2 2 110, 2 1
large: 999 0 1 106, 499 1
";
    for &link in LINKS {
        let standard = match link {
            Link::Shared => "-std=c99",
            Link::Static => "-std=gnu17",
            Link::Sanitized => "-std=c11",
        };
        let program = compile("cc", "c/printdatatype.c", link, &[standard, &mpi_h()]);
        assert_eq!(runs(&program), EXPECTED);
    }
    let program = compile("cc", "c/printdatatype.c", Link::Shared, &["-std=c99", &mpi_h()]);
    let stopped = Command::new(program).arg("too large").output().expect("program");
    assert_eq!(stopped.status.code(), Some(99));
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(
        said.contains(
            "ni, na, or nd = 1001 0 1 returned by MPI_Type_get_envelope is larger than LARGE = 1000"
        )
    );
}

#[test]
fn mpi_1_programs() {
    for &link in LINKS {
        runs(&compile("cc", "c/mpi1.c", link, &["-std=c99", &mpi_h()]));
    }
    // The second way to compile the program: -include adds the header, and mpi.h is an empty file.
    let empty = scratch().join("empty");
    std::fs::create_dir_all(&empty).expect("directory");
    std::fs::write(empty.join("mpi.h"), "").expect("mpi.h");
    let include = format!("-I{}", empty.display());
    let program = compile("cc", "c/mpi1.c", Link::Shared, &["-std=c99", "-include", "ddtc_mpi.h", &include]);
    runs(&program);
    // With MPI_ERRORS_ARE_FATAL, an error ends the program with a message.
    let fatal = Command::new(program).arg("fatal").output().expect("program");
    assert_eq!(fatal.status.code(), Some(2));
    let said = String::from_utf8_lossy(&fatal.stderr).into_owned();
    assert!(said.contains("MPI_Type_contiguous: error 2") && said.contains("count = -1"), "{said}");
}

#[cfg(e2e)]
#[test]
fn cxx_programs() {
    for link in [Link::Shared, Link::Static, Link::Sanitized] {
        runs(&compile("c++", "cxx/modern.cc", link, &["-std=c++17", &mpi_h()]));
    }
}

/// Compiles a Fortran program with the installed modules and returns the program.
#[cfg(e2e)]
fn fortran(source: &str) -> PathBuf {
    let name = Path::new(source).file_stem().and_then(|s| s.to_str()).expect("name");
    let lib = installed().join("lib");
    let work = scratch().join(format!("fortran-{name}"));
    std::fs::create_dir_all(&work).expect("directory");
    let program = work.join(name);
    run(Command::new("gfortran")
        .args(["-g", "-O1", "-Wall", "-fcheck=all", "-J"])
        .arg(&work)
        .args(["ddtc_c.f90", "ddtc_mpi.f90"].map(|f| installed().join("share/ddtc").join(f)))
        .arg(Path::new(HERE).join("tests").join(source))
        .arg("-o")
        .arg(&program)
        .args(pkg_config("Libs:"))
        .arg(format!("-Wl,-rpath,{}", lib.display())));
    program
}

#[cfg(e2e)]
#[test]
fn fortran_example_of_the_decoding_section() {
    const EXPECTED: &str = "\
envelope 3 2 2 110
integers 2 1 4
addresses 0 8
named T
derived 104
envelope 3 2 2 20110
integers 2 1 4
addresses 0 8
named T
derived 104
envelope 2 1 1 20105
integers 5 2
addresses 64
named T
envelope 3 2 1 20107
integers 2 1 4
addresses 0 8
named T
envelope 999 0 1 106
integers 499 1 1
addresses
named T
";
    let program = fortran("fortran/large.f90");
    assert_eq!(runs(&program), EXPECTED);
    let stopped = Command::new(program).arg("too large").output().expect("program");
    assert_eq!(stopped.status.code(), Some(99));
    assert!(text(&stopped).contains("IS LARGER THAN LARGE"), "{}", text(&stopped));
}

#[cfg(e2e)]
#[test]
fn fortran_objects() {
    assert_eq!(runs(&fortran("fortran/objects.f90")), "done\n");
}

#[cfg(e2e)]
#[test]
fn fortran_environment() {
    assert_eq!(runs(&fortran("fortran/environment.f90")), "done\n");
}

/// Writes a source file and returns its path.
fn written(name: &str, code: &str) -> String {
    installed();
    let path = scratch().join(name);
    std::fs::write(&path, code).expect("source");
    path.display().to_string()
}

/// Checks that the header has all names of the tables, and that names.txt has all functions of the
/// header.
#[test]
fn the_names_that_a_program_may_mention_are_there() {
    let constants: Vec<String> = table::constants().map(str::to_owned).collect();
    let mentions = written("mentions.c", &table::c_mentions(&constants));
    compile("cc", &mentions, Link::Shared, &["-std=c99", "-Wpedantic", &mpi_h()]);
    let header =
        run(Command::new("cc").args(["-E", "-P", &mpi_h()]).args(pkg_config("Cflags:")).arg(&mentions));
    let listed = table::functions();
    let mut defined = 0;
    for definition in text(&header).split("static inline ").skip(1) {
        let name = definition.split('(').next().and_then(|d| d.split([' ', '*']).next_back()).expect("name");
        if name.starts_with("MPI_") {
            defined += 1;
            assert!(listed.iter().any(|f| f.name == name), "{name} is not in names.txt");
        }
    }
    assert_eq!(defined, listed.len());
}

/// Checks that the header compiles without the warnings that are enabled here. It is compiled as
/// C11 and as C89, which requires declarations before statements.
#[test]
fn the_header_is_quiet() {
    let quiet = written("quiet.c", "#include <mpi.h>\nint main(void)\n{\n    return MPI_SUCCESS;\n}\n");
    for standard in ["-std=gnu89", "-std=c11"] {
        let warnings = [
            "-Wdeclaration-after-statement",
            "-Wconversion",
            "-Wshadow",
            "-Wcast-qual",
            "-Wstrict-prototypes",
        ];
        compile("cc", &quiet, Link::Shared, &[&[standard, &mpi_h()], &warnings[..]].concat());
    }
}

/// Checks that the Fortran module has every name of the tables.
#[cfg(e2e)]
#[test]
fn the_names_that_a_fortran_program_may_mention_are_there() {
    runs(&fortran(&written("mentions.f90", &table::fortran_mentions(&table::fortran_constants()))));
}

/// Checks that the sanitizers report a leak, and that they report a write by the library past the
/// end of a buffer.
#[cfg(e2e)]
#[test]
fn the_sanitizer_sees() {
    for (name, bug, expected) in [
        (
            "leak",
            "for (int i = 0; i < 10; i++) place = malloc(77); place = NULL;",
            "LeakSanitizer: detected memory leaks",
        ),
        (
            "overrun",
            "int n; place = malloc(4); ddtc_type_get_name(DDTC_TYPE_DOUBLE, place, &n); free(place);",
            "AddressSanitizer: heap-buffer-overflow",
        ),
    ] {
        installed();
        let source = scratch().join(format!("{name}.c"));
        let code = format!(
            "#include <ddtc.h>\n#include <stdlib.h>\nvoid *volatile place;\nint main(int argc, char **argv) {{ (void)argc; (void)argv; {bug} return 0; }}\n"
        );
        std::fs::write(&source, code).expect("source");
        let program = compile("cc", source.to_str().expect("path"), Link::Sanitized, &[]);
        let output = Command::new(program).env("ASAN_OPTIONS", "detect_leaks=1").output().expect("program");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{name}: {said}");
    }
}

/// Returns the names that a library exports, as nm lists them.
fn names(arguments: &[&str], library: &str) -> Vec<String> {
    let output = run(Command::new("nm").args(arguments).arg(installed().join("lib").join(library)));
    text(&output).lines().filter_map(|l| l.split_whitespace().nth(2).map(str::to_owned)).collect()
}

#[test]
fn only_the_abi_is_exported() {
    let shared = names(&["-D", "--defined-only"], "libddtc.so");
    let archive = names(&["-g", "--defined-only"], "libddtc.a");
    for (library, names) in [("libddtc.so", &shared), ("libddtc.a", &archive)] {
        let foreign: Vec<_> = names.iter().filter(|n| !n.starts_with("ddtc_")).collect();
        assert!(foreign.is_empty(), "{library} exports {foreign:?}");
    }
    // The libraries export exactly the functions that the headers declare.
    let functions = |file: &str| {
        let header = std::fs::read_to_string(format!("{HERE}/include/{file}")).expect(file);
        table::Declarations::parse(&header).functions.into_keys()
    };
    let mut declared: Vec<String> = functions("ddtc.h").chain(functions("ddtc_cuda.h")).collect();
    declared.sort();
    for mut exported in [shared, archive] {
        exported.sort();
        assert_eq!(exported, declared);
    }
}

#[test]
fn the_layout_is_that_of_cargo_c() {
    let lib = installed().join("lib");
    let version = env!("CARGO_PKG_VERSION");
    let short = version.rsplit_once('.').expect("version").0;
    for file in ["libddtc.so", "libddtc.a", &format!("libddtc.so.{short}"), &format!("libddtc.so.{version}")]
    {
        assert!(lib.join(file).exists(), "{file}");
    }
    for file in [
        "include/ddtc.h",
        "include/ddtc_cuda.h",
        "include/ddtc_mpi.h",
        "include/ddtc/mpi.h",
        "share/ddtc/ddtc_mpi.f90",
    ] {
        assert!(installed().join(file).exists(), "{file}");
    }
    let dynamic = text(&run(Command::new("readelf").arg("-d").arg(lib.join("libddtc.so"))));
    assert!(dynamic.contains(&format!("soname: [libddtc.so.{short}]")), "{dynamic}");
    let pc = std::fs::read_to_string(lib.join("pkgconfig/ddtc.pc")).expect("ddtc.pc");
    assert!(pc.contains(&format!("Version: {version}")));
    // The library has no global constructor of its own, starts no thread and reads no environment
    // variable when it is loaded: the only entries of .init_array are those of the C runtime and of
    // Rust's standard library, which stores argc and argv. None of this is checked here. The lines
    // below check the version in the header.
    let header = std::fs::read_to_string(format!("{HERE}/include/ddtc.h")).expect("ddtc.h");
    let parts: Vec<&str> = version.split('.').collect();
    for (name, value) in ["MAJOR", "MINOR", "PATCH"].iter().zip(parts) {
        assert!(header.contains(&format!("#define DDTC_VERSION_{name} {value}\n")), "{name}");
    }
}

/// Checks that install.sh can install libraries that are already built, and does not change them.
#[test]
fn built_libraries_are_installed() {
    installed();
    let prefix = scratch().join("built");
    run(install(&prefix).arg("--built").arg(libs()));
    let version = env!("CARGO_PKG_VERSION");
    let installed_bytes =
        |prefix: &Path| std::fs::read(prefix.join(format!("lib/libddtc.so.{version}"))).expect("libddtc.so");
    assert!(installed_bytes(&prefix) == installed_bytes(installed()));
    assert!(prefix.join("lib/libddtc.a").exists() && prefix.join("lib/pkgconfig/ddtc.pc").exists());
    // Messages about wrong arguments name the argument.
    for (arguments, said) in
        [(&["--profil", "dev"][..], "unknown argument --profil"), (&[], "--prefix DIR is needed")]
    {
        let output = Command::new("sh").arg(SCRIPT).args(arguments).output().expect("sh");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    }
}

/// Checks that the C code in docs/EMBEDDING.md compiles, sends the packed bytes and returns errors.
#[test]
fn the_embedding_guide_runs() {
    let guide = Path::new(HERE).parent().expect("workspace").join("docs/EMBEDDING.md");
    let guide = std::fs::read_to_string(guide).expect("EMBEDDING.md");
    let blocks: Vec<&str> =
        guide.split("```c\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    assert_eq!(blocks.len(), 9);
    installed();
    // The program consists of before.c in tests/guide, the code of the guide, and after.c in
    // tests/guide.
    let part = |name| std::fs::read_to_string(format!("{HERE}/tests/guide/{name}.c")).expect(name);
    let source = scratch().join("embedding.c");
    std::fs::write(&source, part("before") + &blocks.concat() + &part("after")).expect("source");
    let link = if cfg!(e2e) { Link::Sanitized } else { Link::Shared };
    let headers = format!("-I{HERE}/tests/c");
    runs(&compile("cc", source.to_str().expect("a path"), link, &["-std=gnu11", &headers]));
}

/// Returns true if `name`, which docs/SEMANTICS.md or docs/records/requirements.md mentions, is the
/// name of a test. The test may be a program, a file, or a function in an integration or unit test.
/// It may belong to the main crate, to this package, to the preload library or to the drop-in for
/// yaksa.
fn is_test(name: &str) -> bool {
    let root = Path::new(HERE).parent().expect("workspace");
    let defines = |path: String, function: &str| {
        std::fs::read_to_string(root.join(path)).is_ok_and(|s| s.contains(&format!("fn {function}(")))
    };
    if let Some((language, program)) = name.split_once('/') {
        let ending = match language {
            "c" => "c",
            "cxx" => "cc",
            "fortran" => "f90",
            _ => return root.join(name).exists(),
        };
        let path = format!("tests/{language}/{program}.{ending}");
        return ["capi", "preload", "yaksa"].iter().any(|member| root.join(member).join(&path).exists());
    }
    let Some((module, function)) = name.rsplit_once("::") else {
        // A name without `::` is that of a test file of the main crate, or of a test function of
        // this package.
        let here = ["installed", "abi"].iter().any(|f| defines(format!("capi/tests/{f}.rs"), name));
        return here || root.join(format!("tests/{name}.rs")).exists();
    };
    let file = format!("src/{}", module.trim_end_matches("::tests").replace("::", "/"));
    match function {
        "tests" => ["src", "preload/src", "yaksa/src"]
            .iter()
            .any(|src| root.join(format!("{src}/{}.rs", module.replace("::", "/"))).exists()),
        _ if module.ends_with("::tests") => {
            ["/tests.rs", ".rs"].iter().any(|end| defines(format!("{file}{end}"), function))
        }
        _ => ["tests", "preload/tests/hosts", "yaksa/tests"]
            .iter()
            .any(|at| defines(format!("{at}/{module}.rs"), function)),
    }
}

/// Checks that docs/SEMANTICS.md and docs/records/requirements.md name a test for every decision
/// and requirement in their tables, and that all these tests exist.
#[test]
fn the_tests_named_in_the_semantics_exist() {
    let root = Path::new(HERE).parent().expect("workspace");
    let read = |name: &str| std::fs::read_to_string(root.join("docs").join(name)).expect(name);
    let semantics = read("SEMANTICS.md") + &read("records/requirements.md");
    let ticked =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let (mut rows, mut tests, mut in_table) = (0, 0, false);
    for line in semantics.lines() {
        let Some(row) = line.strip_prefix("| ") else {
            // A line that does not begin with `|` ends the table. Sentences outside of the table
            // may also name tests.
            in_table &= line.starts_with('|');
            for name in ticked(line).iter().filter(|n| n.starts_with("datatype_")) {
                assert!(is_test(name), "{name} in: {line}");
            }
            continue;
        };
        let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        if last == "Test" || row.starts_with("Held by") {
            in_table = true;
        } else if in_table {
            rows += 1;
            // `tag_ub` is not a test. It is a variable of a C program, which holds a keyval of
            // communicators.
            let names: Vec<String> = ticked(last).into_iter().filter(|n| n != "tag_ub").collect();
            assert!(!names.is_empty(), "no test in: {line}");
            for name in names {
                tests += 1;
                assert!(is_test(&name), "{name} in: {line}");
            }
        }
    }
    assert!(rows > 60 && tests > 80, "{rows} rows, {tests} tests");
    for wrong in
        ["c/none", "datatype_typemap::none", "none", "object::tests::none", "none::tests", "tests/none.rs"]
    {
        assert!(!is_test(wrong), "{wrong}");
    }
}
