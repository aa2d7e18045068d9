//! Finds MPI: launchers in PATH, and libraries near them, in LD_LIBRARY_PATH and where the dynamic
//! loader looks.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ddtc_hosts::policy::Family;

/// An MPI library that the dynamic loader might load for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Library {
    pub(super) path: PathBuf,
    /// Text for the output that says where the library was found.
    pub(super) how: &'static str,
}

/// Returns the executable files that `command` may name: the file itself if `command` is a path,
/// otherwise all files of that name in the folders of `path`. Each file is listed once, even if
/// several links lead to it.
pub(super) fn programs(command: &OsStr, path: Option<&OsString>) -> Vec<PathBuf> {
    let candidates: Vec<PathBuf> = if Path::new(command).components().count() > 1 {
        vec![PathBuf::from(command)]
    } else {
        path.iter().flat_map(|p| std::env::split_paths(p)).map(|folder| folder.join(command)).collect()
    };
    let mut found: Vec<PathBuf> = Vec::new();
    for file in candidates.into_iter().filter(|f| executable(f)) {
        let same = |other: &PathBuf| other.canonicalize().ok() == file.canonicalize().ok();
        if !found.iter().any(same) {
            found.push(file);
        }
    }
    found
}

fn executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Sonames of the C libraries of MPI, in order of preference: those of each MPI implementation,
/// then those of the standard ABI.
const NAMES: [&str; 6] =
    ["libmpi.so.12", "libmpi.so.40", "libmpich.so.12", "libmpi.so", "libmpi_abi.so.1", "libmpi_abi.so.0"];

/// Returns the MPI libraries in the folders `lib` and `lib64` of a launcher's installation prefix,
/// followed by those in the folders of LD_LIBRARY_PATH. Each file is listed once.
pub(super) fn libraries(launcher: Option<&Path>, library_path: Option<&OsString>) -> Vec<Library> {
    let mut folders: Vec<(PathBuf, &'static str)> = Vec::new();
    // The launcher may be a link to a file in another prefix. Look in both prefixes.
    for program in launcher.into_iter().flat_map(|l| [Some(l.to_owned()), l.canonicalize().ok()]).flatten() {
        if let Some(prefix) = program.parent().and_then(Path::parent) {
            for name in ["lib", "lib64"] {
                folders.push((prefix.join(name), "next to the launcher"));
            }
        }
    }
    let path = library_path.iter().flat_map(|p| std::env::split_paths(p));
    folders.extend(path.filter(|p| p.is_absolute()).map(|folder| (folder, "in LD_LIBRARY_PATH")));
    let mut found: Vec<Library> = Vec::new();
    for (folder, how) in folders {
        for path in NAMES.iter().map(|name| folder.join(name)).filter(|p| p.is_file()) {
            let same = |l: &Library| l.path.canonicalize().ok() == path.canonicalize().ok();
            if !found.iter().any(same) {
                found.push(Library { path, how });
            }
        }
    }
    found
}

/// Returns the sonames of [`NAMES`] as MPI libraries. Their paths have no folder, so the dynamic
/// loader searches for them. Try these libraries after the files that [`libraries`] returns.
pub(super) fn by_the_loader() -> impl Iterator<Item = Library> {
    NAMES.iter().map(|name| Library { path: PathBuf::from(name), how: "in the loader's search path" })
}

/// Returns the MPI implementation that a launcher belongs to, judging by the output of its
/// `--version`.
pub(super) fn launcher_family(says: &str) -> Family {
    if says.contains("Intel(R) MPI") {
        Family::Intel
    } else if says.contains("HYDRA") {
        Family::Mpich
    } else if ["Open MPI", "OpenRTE", "PRTE", "prterun"].iter().any(|name| says.contains(name)) {
        Family::OpenMpi
    } else {
        Family::Other
    }
}

/// Returns whether a launcher of one MPI implementation can start ranks that use the library of
/// another implementation. The launchers of MPICH and Intel MPI can start each other's ranks. An
/// unknown implementation counts as compatible with every other.
pub(super) fn fit(launcher: Family, library: Family) -> bool {
    let side = |family| match family {
        Family::Mpich | Family::Intel => Some(0),
        Family::OpenMpi => Some(1),
        Family::Other => None,
    };
    match (side(launcher), side(library)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

/// Returns the name of an MPI implementation as the output shows it.
pub(super) fn name(family: Family) -> &'static str {
    match family {
        Family::Mpich => "MPICH",
        Family::Intel => "Intel MPI",
        Family::OpenMpi => "Open MPI",
        Family::Other => "an unknown MPI",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_apart() {
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626";
        for (says, family) in [
            ("HYDRA build details:\n    Version: 5.0.2", Family::Mpich),
            (intel, Family::Intel),
            ("mpiexec (Open MPI) 5.0.11", Family::OpenMpi),
            ("mpiexec (OpenRTE) 4.1.4", Family::OpenMpi),
            ("slurm 23.02.6", Family::Other),
        ] {
            assert_eq!(launcher_family(says), family, "{says}");
        }
        assert!(fit(Family::Mpich, Family::Intel) && fit(Family::Other, Family::OpenMpi));
        assert!(!fit(Family::OpenMpi, Family::Mpich) && !fit(Family::Intel, Family::OpenMpi));
    }
}
