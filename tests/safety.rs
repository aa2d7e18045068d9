//! docs/SAFETY.md lists exactly the rooms that allow unsafe code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All Rust files below `dir`, relative to `root`.
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

#[test]
fn the_ledger_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(root, &root.join("src"), &mut files);
    let rooms: BTreeSet<String> = files
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
    assert_eq!(rooms, listed, "rooms that allow unsafe code (left) and rows of docs/SAFETY.md (right)");
    assert!(std::fs::read_to_string(root.join("src/lib.rs")).unwrap().contains("#![deny(unsafe_code)]"));
}
