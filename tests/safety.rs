//! Tests that docs/SAFETY.md lists exactly the files that allow unsafe code, and that threads of
//! the library share state only by means that survive a fork.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Collects all Rust files in `dir` and its subfolders in `found`, with paths relative to `root`.
fn sources(root: &Path, dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(root, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

/// Source folders of the crates that deny unsafe code, except in the files that docs/SAFETY.md
/// lists.
const SAFE: [&str; 6] = ["src", "hosts/src", "bench/src", "gpu/src", "hunt/src", "cli/src"];

#[test]
fn the_ledger_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in SAFE {
        sources(root, &root.join(folder), &mut files);
    }
    let unsafe_files: BTreeSet<String> = files
        .iter()
        .filter(|f| std::fs::read_to_string(root.join(f)).unwrap().contains("allow(unsafe_code)"))
        .map(|f| f.to_str().unwrap().to_owned())
        .collect();
    let ledger = std::fs::read_to_string(root.join("docs/SAFETY.md")).unwrap();
    let listed: BTreeSet<String> = ledger
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .map(|l| l.split('`').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        unsafe_files, listed,
        "files that allow unsafe code (left) and rows of docs/SAFETY.md (right)"
    );
    for root_file in [
        "src/lib.rs",
        "hosts/src/lib.rs",
        "bench/src/lib.rs",
        "gpu/src/lib.rs",
        "hunt/src/lib.rs",
        "cli/src/lib.rs",
    ] {
        let text = std::fs::read_to_string(root.join(root_file)).unwrap();
        assert!(text.contains("#![deny(unsafe_code)]"), "{root_file}");
    }
}

/// Returns the names of items of `std::sync` that a source text uses in imports and paths.
fn std_sync(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("std::sync::") {
        let rest = &text[at + "std::sync::".len()..];
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or(""),
            None => rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(""),
        };
        found.extend(list.split(|c: char| !c.is_alphanumeric()).filter(|name| !name.is_empty()));
    }
    found
}

/// Tests that what threads share goes through `src/process.rs`, because a forked child must never
/// find a lock taken or a value half made.
#[test]
fn what_is_shared_survives_a_fork() {
    const LOCKS: [&str; 8] =
        ["Mutex", "RwLock", "Once", "OnceLock", "LazyLock", "Condvar", "Barrier", "ReentrantLock"];
    // These files do not run in programs that embed or preload the library: they are test
    // equipment, the program that judges kernels on a GPU, and modules that only the command line
    // uses to load or find MPI libraries.
    const APART: [&str; 4] =
        ["src/fuzzing/", "gpu/src/judge/", "hosts/src/loaded.rs", "hosts/src/library.rs"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "hosts/src", "capi/src", "gpu/src", "preload/src", "yaksa/src"] {
        sources(root, &root.join(folder), &mut files);
    }
    let mut users = BTreeSet::new();
    for file in &files {
        let name = file.to_str().unwrap();
        if APART.iter().any(|a| name.starts_with(a)) || name.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        if std_sync(text).iter().any(|name| LOCKS.contains(name)) {
            users.insert(name.to_owned());
        }
        // The standard library has a lock for its standard streams. A child could inherit this lock
        // held, so the library must not print by these means.
        for print in ["eprint!", "eprintln!", "print!", "println!", "stderr()", "stdout()", "dbg!"] {
            assert!(!text.contains(print) || name == "src/process/limit.rs", "{name}: {print}");
        }
    }
    assert_eq!(users, BTreeSet::from(["src/process/lock.rs".to_owned()]));
}

#[test]
fn uses_of_std_sync_are_found() {
    let text = "use std::sync::{Arc, Mutex};\nstd::sync::OnceLock::new(); use std::sync::atomic::{AtomicU8, Ordering};";
    assert_eq!(std_sync(text), ["Arc", "Mutex", "OnceLock", "atomic"]);
}

/// Tests the rule under "kernel" in docs/ARCHITECTURE.md: the compiler library turns addresses into
/// functions only in the module of kernels. Besides this module, the list has files that load
/// libraries: for the benchmarks, the doctor, GPUs, `ddtc check --mpi` and the fuzzer of MPI
/// libraries.
#[test]
fn addresses_become_functions_in_listed_files_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in SAFE {
        sources(root, &root.join(folder), &mut files);
    }
    let mut found: Vec<String> = files.iter().map(|f| f.to_str().unwrap().to_owned()).collect();
    found.retain(|f| std::fs::read_to_string(root.join(f)).unwrap().contains("transmute"));
    found.sort();
    let listed = [
        "bench/src/native.rs",
        "cli/src/doctor/rank.rs",
        "gpu/src/driver.rs",
        "gpu/src/judge/cuda.rs",
        "hosts/src/loaded.rs",
        "hunt/src/library/functions.rs",
        "src/code/kernel.rs",
        "src/code/kernel/precompiled.rs",
    ];
    assert_eq!(found, listed);
}
