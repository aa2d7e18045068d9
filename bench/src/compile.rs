//! Compilation of C sources: runs the C compiler, and keeps the shared libraries that it built.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::datatype::c::{HostBounds, constructors};

use crate::native::Library;

/// Flags of the C compiler, as a user who wants speed would pass them.
pub(crate) const C_FLAGS: &[&str] = &["-std=gnu11", "-O3", "-march=native", "-shared", "-fPIC"];

/// Returns the C compiler: `$CC`, or `cc`.
pub(crate) fn compiler() -> String {
    env::var("CC").unwrap_or_else(|_| "cc".into())
}

/// Returns the first line that the C compiler prints with `--version`.
///
/// # Errors
/// Returns an error that says what to do if the C compiler cannot be run.
pub(crate) fn compiler_version() -> Result<String, Box<dyn Error>> {
    let output = Command::new(compiler()).arg("--version").output().map_err(missing)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or("unknown C compiler").to_owned())
}

fn missing(error: std::io::Error) -> Box<dyn Error> {
    let cc = compiler();
    format!(
        "C compiler '{cc}' cannot be run ({error}): install one (Debian, Ubuntu: apt-get install gcc libc6-dev) or name one \
         in the environment variable CC"
    )
    .into()
}

/// Compiles `source` and loads the library. The library is kept below the target directory of cargo
/// in which the running program is. If the program is in none, the library is built in a temporary
/// folder.
///
/// # Errors
/// Returns an error if there is no C compiler, if the compiler refuses the source, if a file cannot
/// be written, or if the library cannot be loaded.
pub(crate) fn load(source: &str) -> Result<Rc<Library>, Box<dyn Error>> {
    let program = env::current_exe()?;
    let Some(target) = program.ancestors().find(|a| a.join("CACHEDIR.TAG").is_file()) else {
        return Library::open(&build(source, &ddtc::internal::files::temporary_folder("ddtc-bench")?)?);
    };
    let directory = target.join("ddtc-bench");
    fs::create_dir_all(&directory)?;
    Library::open(&build(source, &directory)?)
}

/// Compiles `source` unless the same source was compiled before, and returns the path of the shared
/// library in `directory`.
fn build(source: &str, directory: &Path) -> Result<PathBuf, Box<dyn Error>> {
    // The name of the shared library is a hash of everything on which its code depends: source,
    // compiler, flags, and the CPU of this machine, to which `-march=native` refers.
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.split("\n\n").next().unwrap_or_default();
    let cpu: Vec<&str> = cpu.lines().filter(|l| !l.contains("MHz")).collect();
    let key = format!("{} {C_FLAGS:?} {cpu:?} {source}", compiler_version()?);
    let name = format!("loops-{:032x}", xxhash_rust::xxh3::xxh3_128(key.as_bytes()));
    let library = directory.join(format!("{name}.so"));
    if library.is_file() {
        return Ok(library);
    }
    let own = format!("{name}.{}", std::process::id());
    let (c_file, unfinished) = (directory.join(format!("{own}.c")), directory.join(format!("{own}.so")));
    fs::write(&c_file, source)?;
    let output = Command::new(compiler())
        .args(C_FLAGS)
        .arg("-o")
        .arg(&unfinished)
        .arg(&c_file)
        .output()
        .map_err(missing)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = text.lines().take(12).collect();
        return Err(format!("{} refuses {}:\n{}", compiler(), c_file.display(), lines.join("\n")).into());
    }
    // The finished file gets its final name only now, so that another process that looks for the
    // library sees it as a whole or not at all.
    fs::rename(&unfinished, &library)?;
    fs::rename(&c_file, directory.join(format!("{name}.c")))?;
    Ok(library)
}

/// Compiles the C program `text` with `mpicc`, the compiler of an MPI library, and returns its path
/// in `folder`, where it is called `name`. The program includes `layouts.h`, which is generated and
/// in which `make[i]()` builds the `i`th of `types`.
///
/// # Errors
/// Returns an error if there is no such compiler or the compiler fails, with its messages, or if a
/// file cannot be written.
pub(crate) fn mpi_program<'t>(
    mpicc: &OsStr,
    types: impl IntoIterator<Item = &'t Datatype>,
    folder: &Path,
    (name, text): (&str, &str),
) -> Result<PathBuf, Box<dyn Error>> {
    let (mut out, mut rows) = (String::new(), String::new());
    for (i, t) in types.into_iter().enumerate() {
        let _ = writeln!(out, "static MPI_Datatype make_{i}(void) {{");
        let root = constructors(t, HostBounds::Resized, &mut out);
        let _ = writeln!(out, "    return {root};\n}}");
        let _ = write!(rows, "make_{i}, ");
    }
    let _ = writeln!(out, "static MPI_Datatype (*const make[])(void) = {{{rows}}};");
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&source, text)?;
    fs::write(folder.join("layouts.h"), out)?;
    let made = Command::new(mpicc).args(["-O2", "-o"]).arg(&program).arg(&source).output();
    let shown = mpicc.to_string_lossy();
    let made = made.map_err(|e| format!("{shown}: {e}: name the MPI library's compiler with --mpicc"))?;
    if !made.status.success() {
        return Err(format!("{shown}: {}\n{}", made.status, String::from_utf8_lossy(&made.stderr)).into());
    }
    Ok(program)
}
