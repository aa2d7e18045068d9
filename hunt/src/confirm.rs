//! Confirmation of findings: the C program of a finding is compiled with the library's header,
//! linked with the library, and run.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ddtc_hosts::abi::{MPICH, OPEN_MPI, STANDARD};

use crate::process::{Clock, surroundings};

/// What is needed to compile C programs for the MPI library under test.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    cc: String,
    include: PathBuf,
    mpi: PathBuf,
    /// Folder for temporary files: the compiled programs, and [`GUARD`].
    folder: PathBuf,
}

/// Name of a header that every program includes first. Its static assertion fails if the `mpi.h`
/// belongs to another ABI than the library.
const GUARD: &str = "abi.h";

/// Time after which the program of a finding counts as hanging. Time in which the program waited
/// for a processor is not counted.
const HANGS: Duration = Duration::from_secs(30);

impl Compiler {
    /// Finds what is needed to compile programs for the MPI library `mpi`. The compiler is `CC`
    /// from the environment, or `cc`. The header `mpi.h` is in the folder `include`, or else in a
    /// usual place near the library. Temporary files are written into `folder`, in which the caller
    /// has no other files.
    ///
    /// # Errors
    /// Returns a text that says what is wrong, and names the option that concerns it. Possible
    /// reasons are a library path that does not resolve, a missing `mpi.h`, an ABI with an unknown
    /// name, a file in `folder` that cannot be written, or a trial program that does not compile
    /// and link.
    pub(crate) fn find(
        mpi: &Path,
        include: Option<&Path>,
        flavour: &str,
        folder: &Path,
    ) -> Result<Compiler, String> {
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mpi = mpi.canonicalize().map_err(|e| format!("{}: {e}", mpi.display()))?;
        let near = || {
            // The usual places of `mpi.h` are LIB/../include, where LIB is the library's folder,
            // and those of Debian: LIB/TRIPLET/openmpi/include and include/TRIPLET/mpich.
            let lib = mpi.parent()?;
            let debian = lib.file_name()?;
            let places = [
                lib.parent()?.join("include"),
                lib.join("openmpi/include"),
                lib.join("../include"),
                lib.parent()?.parent()?.join("include").join(debian).join("mpich"),
            ];
            places.into_iter().find(|p| p.join("mpi.h").is_file())
        };
        let include = match include {
            Some(folder) => Some(folder.to_path_buf()),
            None => near(),
        };
        let include = include.ok_or("no mpi.h near the library: -I names the folder of its header")?;
        let abi = [&MPICH, &OPEN_MPI, &STANDARD].into_iter().find(|a| a.name == flavour);
        let abi = abi.ok_or_else(|| format!("no ABI of the name {flavour}"))?;
        // The header [`GUARD`] checks sizes that differ between the ABIs. An empty program is then
        // compiled with this header. So a wrong `mpi.h` or a compiler that fails is noticed here,
        // and not only at the first finding.
        let guard = folder.join(GUARD);
        let standard = if flavour == STANDARD.name && include.join("mpi_abi.h").is_file() {
            // MPICH installs the header of the standard ABI next to its own one. A program selects
            // the header of the standard ABI by defining MPI_ABI.
            "#define MPI_ABI 1\n"
        } else {
            ""
        };
        let text = format!(
            "{standard}#include <mpi.h>\n_Static_assert(sizeof(MPI_Datatype) == {} && sizeof(MPI_Status) == {}, \
             \"this mpi.h is that of another library\");\n",
            abi.handle_bytes, abi.status_bytes
        );
        std::fs::write(&guard, text).map_err(|e| format!("{}: {e}", guard.display()))?;
        let compiler = Compiler { cc, include, mpi, folder: folder.to_path_buf() };
        let probe = folder.join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").map_err(|e| e.to_string())?;
        compiler.compile(&probe, &folder.join("probe"))?;
        Ok(compiler)
    }

    fn compile(&self, source: &Path, out: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.cc);
        command.args(["-O1", "-w", "-I"]).arg(&self.include).arg("-include").arg(self.folder.join(GUARD));
        // Undefined symbols in the MPI library are permitted, because its dependencies are found
        // when the program runs. If the library wraps another MPI library, some functions of the
        // program come from the wrapped library, so the dependencies are linked too.
        // `--no-as-needed` makes the program load the library even if it uses none of the functions
        // that the library itself defines.
        command.args(["-Wl,--allow-shlib-undefined", "-Wl,--copy-dt-needed-entries"]);
        command.arg("-o").arg(out).arg(source).arg("-Wl,--no-as-needed").arg(&self.mpi);
        if let Some(folder) = self.mpi.parent() {
            command.arg(format!("-Wl,-rpath,{}", folder.display()));
        }
        let output = command.output().map_err(|e| format!("{}: {e}", self.cc))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(said
            .lines()
            .find(|l| l.contains("rror") || l.contains("failed"))
            .unwrap_or("the compiler fails")
            .to_owned())
    }

    /// Compiles and runs the program of a finding. Returns true if the program shows the finding,
    /// that is, if it exits with a status other than 0, is ended by a signal, or hangs. The
    /// compiled program is removed afterwards.
    ///
    /// # Errors
    /// Returns an error if the program does not compile or start, or cannot be waited for.
    pub(crate) fn confirms(&self, source: &Path) -> Result<bool, String> {
        let name = source.file_stem().ok_or("the program has no name")?;
        let program = self.folder.join(name);
        self.compile(source, &program)?;
        let mut command = Command::new(&program);
        surroundings(&mut command, &self.mpi);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let clock = Clock::start(child.id());
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if clock.elapsed() > HANGS => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(error.to_string()),
            }
        };
        let _ = std::fs::remove_file(&program);
        Ok(status.is_none_or(|s| s.signal().is_some() || s.code() != Some(0)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Compiles a C text in a folder and returns the path of the result.
    fn cc(folder: &Path, name: &str, text: &str, arguments: &[&str]) -> PathBuf {
        let (source, out) = (folder.join(format!("{name}.c")), folder.join(name));
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new("cc");
        let status = command.current_dir(folder).arg("-o").arg(&out).arg(&source).args(arguments).status();
        assert!(status.expect("a C compiler (cc) is needed: install gcc").success());
        out
    }

    #[test]
    fn a_library_before_another_is_asked_also_where_the_program_names_nothing_of_it() {
        let folder = std::env::temp_dir().join(format!("ddtc-confirm-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        cc(&folder, "libsecond.so", "int second(void) { return 3; }\n", &["-shared", "-fPIC"]);
        let before = "int second(void);\nint before(void) { return second(); }\n";
        let shared = ["-shared", "-fPIC", "-L.", "-l:libsecond.so", "-Wl,-rpath,$ORIGIN"];
        let mpi = cc(&folder, "libbefore.so", before, &shared);
        // Some distributions configure their compilers to pass `--as-needed`.
        let strict = folder.join("strict");
        std::fs::write(&strict, "#!/bin/sh\nexec cc -Wl,--as-needed \"$@\"\n").unwrap();
        std::fs::set_permissions(&strict, std::fs::Permissions::from_mode(0o755)).unwrap();
        let temporary = folder.join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        std::fs::write(temporary.join(GUARD), "int second(void);\n").unwrap();
        let cc = strict.to_str().unwrap().to_owned();
        let compiler = Compiler { cc, include: folder.clone(), mpi, folder: temporary.clone() };
        let program = folder.join("program.c");
        // A file of the user's whose name is that of the program without its ending.
        std::fs::write(folder.join("program"), "own").unwrap();
        for (text, shown) in [("return second() == 3;", true), ("return second() != 3;", false)] {
            std::fs::write(&program, format!("int main(void) {{ {text} }}\n")).unwrap();
            assert_eq!(compiler.confirms(&program), Ok(shown), "{text}");
        }
        assert_eq!(std::fs::read_to_string(folder.join("program")).unwrap(), "own");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
