//! Finds libraries of user-level threads. The stacks of user-level threads may be too small for MPI
//! calls under the preload library.

use std::path::{Path, PathBuf};

use super::Findings;

/// For each library of user-level threads: the beginning of its file name, its name, and how to
/// make the stacks of its threads larger. The default of Argobots is 16 KiB for a thread.
const LIBRARIES: [(&str, &str, &str); 4] = [
    ("libabt.so", "Argobots", "set ABT_THREAD_STACKSIZE=32768"),
    ("libqthread.so", "Qthreads", LARGER),
    ("libmyth.so", "MassiveThreads", LARGER),
    ("libpth.so", "GNU Pth", LARGER),
];

const LARGER: &str = "make them larger";

/// Reports which of a program's files are libraries of user-level threads.
pub(super) fn look(findings: &mut Findings, objects: &[PathBuf]) {
    for object in objects {
        if let Some(warning) = warning(object) {
            findings.add_lines("stacks", &warning);
        }
    }
}

fn warning(object: &Path) -> Option<String> {
    let file = object.file_name()?.to_str()?;
    let (_, name, remedy) = LIBRARIES.iter().find(|(start, ..)| file.starts_with(start))?;
    Some(format!(
        "{} provides the user-level threads of {name}: with the preload library, a thread that calls MPI needs \
         up to 12 KiB more stack; if the stacks of these threads are smaller than 32 KiB, {remedy}",
        object.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_files() {
        let of = |path: &str| warning(Path::new(path)).unwrap_or_default();
        assert!(
            of("/opt/lib/libabt.so.1")
                .contains("/opt/lib/libabt.so.1 provides the user-level threads of Argobots")
        );
        assert!(of("/opt/lib/libmyth.so").contains("MassiveThreads"));
        assert_eq!((of("/lib/libabtest.so"), of("/libabt.so/libc.so.6")), (String::new(), String::new()));
    }
}
