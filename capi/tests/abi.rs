//! Tests that the constants of the headers and of the Fortran module have the values of the MPI 5.0
//! standard ABI.
//!
//! The values in `abi.txt` come from another implementation's header of that ABI, so both sides of
//! the comparison have different sources.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Names of constants that have no value in the ABI: names of the proposal of 1996, the bound
/// markers of MPI-1, and combiners of constructors that only MPI-1's Fortran binding had.
const OURS: [&str; 12] = [
    "MPI_BASIC",
    "MPI_CONTIG",
    "MPI_VECTOR",
    "MPI_HVECTOR",
    "MPI_INDEXED",
    "MPI_HINDEXED",
    "MPI_STRUCT",
    "MPI_LB",
    "MPI_UB",
    "MPI_COMBINER_HVECTOR_INTEGER",
    "MPI_COMBINER_HINDEXED_INTEGER",
    "MPI_COMBINER_STRUCT_INTEGER",
];

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(HERE).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the names and values in abi.txt.
fn abi() -> BTreeMap<String, i64> {
    let text = read("tests/abi.txt");
    let rows = text.lines().filter(|l| !l.starts_with('#'));
    rows.map(|l| l.split_once(' ').map(|(n, v)| (n.to_owned(), v.parse().unwrap())).unwrap()).collect()
}

/// Returns the names of the constants with `prefix` that a header defines as macros or enumerators.
fn constants(header: &str, prefix: &str) -> Vec<String> {
    let is_constant = |name: &str| {
        let plain = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        name.starts_with(prefix) && plain
    };
    let mut found = Vec::new();
    for line in read(header).lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#define ") {
            found.extend(rest.split_once(' ').map(|(name, _)| name.to_owned()));
        } else {
            let words: Vec<&str> = line.split_whitespace().collect();
            found.extend(words.windows(2).filter(|w| w[1] == "=").map(|w| w[0].to_owned()));
        }
    }
    found.retain(|name| is_constant(name));
    found
}

/// Returns the values that `names` have in a C program that includes `header`.
fn values(header: &str, names: &[String]) -> BTreeMap<String, i64> {
    let mut source =
        format!("#include <stdint.h>\n#include <stdio.h>\n#include <{header}>\nint main(void)\n{{\n");
    for name in names {
        writeln!(source, "    printf(\"{name} %lld\\n\", (long long)(intptr_t){name});").unwrap();
    }
    source += "    return 0;\n}\n";
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("abi");
    std::fs::create_dir_all(&folder).unwrap();
    let (program, file) = (folder.join(header), folder.join(format!("{header}.c")));
    std::fs::write(&file, source).unwrap();
    let run = |command: &mut Command| {
        let output =
            command.output().unwrap_or_else(|e| panic!("{command:?}: {e}: a C compiler (cc) is needed"));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(Command::new("cc").arg("-I").arg(Path::new(HERE).join("include")).arg(&file).arg("-o").arg(&program));
    let printed = run(&mut Command::new(&program));
    printed
        .lines()
        .map(|l| l.split_once(' ').map(|(n, v)| (n.to_owned(), v.parse().unwrap())).unwrap())
        .collect()
}

#[test]
fn mpi_names_have_the_values_of_the_abi() {
    let abi = abi();
    let names = constants("include/ddtc_mpi.h", "MPI_");
    assert!(names.len() > 270, "{}", names.len());
    for (name, value) in values("ddtc_mpi.h", &names) {
        match abi.get(&name) {
            Some(&expected) => assert_eq!(value, expected, "{name}"),
            None => assert!(OURS.contains(&name.as_str()), "{name} is neither the ABI's nor ours"),
        }
    }
    // Conversely, the header must define all names of the table and of `OURS`.
    for name in abi.keys().map(String::as_str).chain(OURS) {
        assert!(names.iter().any(|n| n == name), "{name} is not defined");
    }
}

#[test]
fn names_of_our_own_have_the_values_of_the_abi() {
    let abi = abi();
    let names = constants("include/ddtc.h", "DDTC_");
    let mut compared = 0;
    for (name, value) in values("ddtc.h", &names) {
        let bare = name.strip_prefix("DDTC_").unwrap();
        let candidates = [bare, bare.strip_prefix("TYPE_").unwrap_or(bare), &format!("TYPE_{bare}")]
            .map(|n| format!("MPI_{n}"));
        let ours = candidates.iter().any(|n| OURS.contains(&n.as_str()));
        // The names of `OURS` are not compared. DDTC_VERSION_MAJOR, _MINOR and _PATCH are not
        // compared either: their values are the version of the library, and the ABI has no
        // constants of these names.
        if let Some(expected) = candidates.iter().find_map(|n| abi.get(n)).filter(|_| !ours) {
            assert_eq!(value, *expected, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 120, "{compared}");
}

#[test]
fn fortran_constants_have_the_values_of_the_abi() {
    let abi = abi();
    let module = read("fortran/ddtc_mpi.f90");
    let mut compared = 0;
    for line in module.lines() {
        let Some((name, value)) =
            line.trim().strip_prefix("integer, parameter :: ").and_then(|l| l.split_once(" = "))
        else {
            continue;
        };
        let Ok(value) = value.trim().parse::<i64>() else { continue };
        let (name, expected) = match name {
            "MPI_STATUS_SIZE" => ("MPI_F_STATUS_SIZE", value),
            // Indices begin with 1 in Fortran, and with 0 in the ABI.
            "MPI_SOURCE" => ("MPI_F_SOURCE", value - 1),
            "MPI_TAG" => ("MPI_F_TAG", value - 1),
            "MPI_ERROR" => ("MPI_F_ERROR", value - 1),
            // Strings in Fortran have no NUL, so their maximum length is smaller by 1.
            n if n.starts_with("MPI_MAX_") => (n, value + 1),
            n => (n, value),
        };
        match abi.get(name) {
            Some(&known) => {
                assert_eq!(expected, known, "{name}");
                compared += 1;
            }
            None => assert!(OURS.contains(&name), "{name} is neither the ABI's nor ours"),
        }
    }
    assert!(compared > 150, "{compared}");
}
