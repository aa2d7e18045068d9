//! Runs the inputs in `fuzz/regressions/<target>/` through the functions of the library that the
//! fuzz targets call. The inputs are those for which fuzzing found an error, and seeds of every
//! target.

use std::collections::BTreeSet;
use std::path::Path;

use ddtc::internal::fuzzing::targets::TARGETS;

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let read = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut entries: Vec<_> = read.map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn every_regression_passes() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for (name, target) in TARGETS {
        let inputs = entries(&fuzz.join("regressions").join(name));
        assert!(!inputs.is_empty(), "no input for {name}");
        for input in inputs {
            println!("{}", input.display());
            target(&std::fs::read(&input).unwrap());
        }
    }
}

#[test]
fn targets_folders_and_binaries_are_the_same() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names: BTreeSet<String> = TARGETS.iter().map(|t| t.0.to_owned()).collect();
    let stems = |folder: &str| -> BTreeSet<String> {
        entries(&fuzz.join(folder))
            .iter()
            .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(stems("regressions"), names);
    assert_eq!(stems("fuzz_targets"), names);
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in &names {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} in fuzz/Cargo.toml"
        );
    }
}
