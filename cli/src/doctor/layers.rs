//! Finds PMPI layers. A PMPI layer is a library that defines some MPI functions, or a program that
//! does. It gets the calls of these functions in place of the MPI library, and passes them on.
//! Whether it gets them before or after the preload library depends on the order in which the
//! dynamic loader searches the files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddtc_hosts::layer::Group;
use ddtc_hosts::library::NAME;

use super::Findings;
use super::elf::{Elf, functions};
use super::messages::ended;
use super::stacks;

/// Examines the files that the dynamic loader would load for `program` together with the preload
/// library. If `program` is `None`, examines those for the command `ddtc` itself. A file that
/// defines some MPI functions is a PMPI layer. If the loader finds it before the preload library,
/// the preload library does not see the calls of these functions. This is reported as a problem.
pub(super) fn look(findings: &mut Findings, program: Option<&Path>, library: &Path, seconds: u64) {
    let this = std::env::current_exe();
    let Some(program) = program.or(this.as_deref().ok()) else { return };
    let (Ok(ours), Some(objects)) = (functions(library), loaded(program, library, seconds)) else { return };
    stacks::look(findings, &objects);
    let file = |path: &Path| path.file_name().map(OsString::from);
    let place = objects.iter().position(|object| file(object).is_some_and(|name| name == NAME));
    for (i, object) in objects.iter().enumerate().filter(|&(i, _)| Some(i) != place) {
        let Some(taken) = functions(object).ok().and_then(|theirs| Taken::new(&ours, &theirs)) else {
            continue;
        };
        let shown = object.display();
        if place.is_some_and(|place| i < place) {
            let remedy = if i == 0 {
                "link the layer as a shared library, so that it comes after the preload library"
            } else {
                "name the preload library first in LD_PRELOAD"
            };
            let what = format!(
                "{shown} takes {} before the preload library, which does not see these calls",
                taken.functions
            );
            findings.add_problem(&what, remedy);
        } else {
            findings.add_lines(
                "PMPI layer",
                &format!("{shown} has {} and gets these calls{}", taken.functions, taken.not_converted),
            );
        }
    }
}

/// MPI functions that a PMPI layer defines.
struct Taken {
    functions: String,
    /// Last clause of a sentence of the output. The clause begins with a comma. It names the groups
    /// of calls that ddtc does not convert, because the layer defines functions of these groups.
    /// Empty if there are no such groups.
    not_converted: String,
}

impl Taken {
    /// Compares the names of the preload library's functions with those of another file. Returns
    /// `None` if the other file is not a layer. An MPI library is not a layer: it defines the PMPI
    /// name of each function, too.
    fn new(ours: &BTreeSet<String>, theirs: &BTreeSet<String>) -> Option<Taken> {
        // Only the C names of MPI functions are counted. They begin with MPI_ and contain small
        // letters. Fortran names, such as MPI_SEND, belong to no group of calls.
        let is_c = |name: &str| name.starts_with("MPI_") && name.contains(char::is_lowercase);
        let is_layers = |name: &&String| is_c(name) && !theirs.contains(format!("P{name}").as_str());
        let taken: Vec<&String> = ours.intersection(theirs).filter(is_layers).collect();
        let functions = match taken[..] {
            [] => return None,
            [one] => one.clone(),
            [first, _] => format!("{first} and another function"),
            [first, ..] => format!("{first} and {} other functions", taken.len() - 1),
        };
        let groups: BTreeSet<Group> = taken.iter().filter_map(|name| Group::of_function(name)).collect();
        let names: Vec<&str> = groups.into_iter().map(Group::name).collect();
        let not_converted = match names[..] {
            [] => String::new(),
            _ => format!(", so ddtc converts no calls of these groups: {}", names.join(", ")),
        };
        Some(Taken { functions, not_converted })
    }
}

/// Returns the files of a program and of the libraries that are loaded with it, in the order of the
/// dynamic loader, or `None` if the loader does not list them. No code of the program runs.
fn loaded(program: &Path, library: &Path, seconds: u64) -> Option<Vec<PathBuf>> {
    let loader = Elf::read(program, "").ok()?.loader?;
    let preloads = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let preloads = if preloads.to_string_lossy().contains(NAME) {
        preloads
    } else {
        // Put the preload library first, as `ddtc preload` does.
        let mut all = library.as_os_str().to_owned();
        all.push(":");
        all.push(preloads);
        all
    };
    let mut command = Command::new(loader);
    command.arg("--list").arg(program).env("LD_PRELOAD", preloads);
    let (_, out, _) = ended(&mut command, seconds).ok()?;
    let others = out.lines().filter_map(|line| {
        let line = line.trim().rsplit("=> ").next()?;
        let path = line.rsplit_once(" (").map_or(line, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    });
    Some(std::iter::once(program.to_path_buf()).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn what_a_layer_takes_is_named() {
        let ours = set(&["MPI_Send", "MPI_Recv", "MPI_File_open", "MPI_Finalize", "other"]);
        let taken = |theirs: &[&str]| {
            Taken::new(&ours, &set(theirs)).map(|taken| format!("{}{}", taken.functions, taken.not_converted))
        };
        assert_eq!(taken(&["main", "other"]), None);
        assert_eq!(taken(&["MPI_Send", "PMPI_Send"]), None);
        assert_eq!(taken(&["MPI_Probe"]), None);
        assert_eq!(taken(&["MPI_Finalize", "MPI_Init"]).as_deref(), Some("MPI_Finalize"));
        assert_eq!(
            taken(&["MPI_File_open", "MPI_Finalize"]).as_deref(),
            Some("MPI_File_open and another function, so ddtc converts no calls of these groups: files")
        );
        assert_eq!(
            taken(&["MPI_Send", "MPI_Recv", "MPI_File_open"]).as_deref(),
            Some(
                "MPI_File_open and 2 other functions, so ddtc converts no calls of these groups: messages, files"
            )
        );
    }

    #[test]
    fn the_loader_says_what_it_loads() {
        let program = std::env::current_exe().unwrap();
        let objects = loaded(&program, Path::new("/no/such/library.so"), 60).unwrap();
        assert_eq!(objects[0], program);
        let is_libc = |object: &PathBuf| object.to_string_lossy().contains("libc.so");
        assert!(objects.iter().any(is_libc), "{objects:?}");
        assert!(functions(objects.iter().find(|o| is_libc(o)).unwrap()).unwrap().contains("malloc"));
    }
}
