//! Tests of Open MPI's convertor hook under other releases of Open MPI, and together with other
//! tools that change functions of the MPI library. If the hook does not know the internal
//! structures of the library, it must move nothing, and a line of the report must say why.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::convertor_hook::after;
use crate::setup::{Host, Wheel, library, release, reports, scratch};

const HOSTS: [Host; 2] = [Host::OpenMpi, Host::OpenMpi4];

/// Runs the program `convertors`, which judges its own results, on two ranks with the given
/// libraries preloaded. Returns the text on standard error, the report of rank 0, and the counters
/// of both ranks.
fn run_with_preloaded(
    host: Host,
    name: &str,
    libraries: &[&Path],
) -> (String, String, Vec<HashMap<String, u64>>) {
    let program = host.compile("convertors", &["-DCONFUSES_PAIRS", "-Wno-unused-function", "-ldl"]);
    let folder = scratch(&format!("strangers-{name}-{host:?}"));
    let loaded: Vec<String> = libraries.iter().map(|library| library.display().to_string()).collect();
    let run = host.ranks(2, program).arg("messages").arg("120").env("DDTC_POLICY", "none");
    // One of the preloaded libraries may be a copy of the MPI library. The copy is in another
    // folder than the libraries that it needs, so this variable names their folder.
    let lib = host.root().join("lib").display().to_string();
    let run = run.env("LD_LIBRARY_PATH", format!("{lib}:{lib}/openmpi"));
    let run = run.env("LD_PRELOAD", loaded.join(":")).env("DDTC_REPORT", folder.join("report%r.json"));
    let (text, errors) = run.text();
    assert_eq!(text.trim(), "wrong 0", "{host:?} {name}\n{errors}");
    let (report, said) = (fs::read_to_string(folder.join("report0.json")).unwrap(), reports(&folder, 2));
    fs::remove_dir_all(folder).unwrap();
    (errors, report, said)
}

/// Checks that the program `convertors` moves nothing inside the MPI library with these libraries
/// preloaded, and that the report says why with the words `why`.
fn assert_hook_disabled(host: Host, name: &str, libraries: &[&Path], why: &str) {
    let (_, report, said) = run_with_preloaded(host, name, libraries);
    let note = report.lines().find(|line| line.contains("\"nothing is moved inside the MPI library: "));
    assert!(note.is_some_and(|note| note.contains(why)), "{host:?} {name}\n{report}");
    for said in said {
        let inside = [said["hook_bytes_packed"], said["hook_bytes_unpacked"], said["hook_bytes_copied"]];
        assert_eq!((inside, said["panics"]), ([0; 3], 0), "{host:?} {name} {said:?}");
    }
}

fn shared(host: Host, flag: &str) -> PathBuf {
    host.compile("stranger", &["-shared", "-fPIC", flag, "-ldl"])
}

#[test]
fn other_releases_are_as_these() {
    let (host, folder) = (Host::OpenMpi, scratch("strangers-releases"));
    let program = host.compile("convertors", &["-DCONFUSES_PAIRS", "-Wno-unused-function", "-ldl"]);
    for name in ["openmpi508", "openmpi509", "openmpi5010"] {
        let root = release(name);
        let one = host.run(&program).preload().env("LD_LIBRARY_PATH", root.join("lib"));
        let (text, errors) = one.arg("movers").arg("3000").arg("5").env("DDTC_POLICY", "none").text();
        assert!(text.contains("wrong 0") && text.contains("served 2"), "{name}\n{text}\n{errors}");
        let ranks = host.ranks_of(&root, 2, &program).preload().arg("messages").arg("80");
        let ranks = ranks.env("DDTC_POLICY", "none").env("DDTC_REPORT", folder.join("report%r.json"));
        assert_eq!(ranks.text().0.trim(), "wrong 0", "{name}");
        let report = fs::read_to_string(folder.join("report0.json")).unwrap();
        let version = Wheel::from_folder(name).version;
        assert!(report.contains(&format!("\"Open MPI v{version},")), "{name}\n{report}");
        for said in reports(&folder, 2) {
            assert!(said["hook_bytes_packed"] > 1 << 20 && said["panics"] == 0, "{name} {said:?}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

pub(crate) fn disguised(host: Host, version: &str) -> PathBuf {
    shared(host, &format!("-DDISGUISE=\"Open MPI v{version}, ident: {version}\""))
}

#[test]
fn another_version_is_left_alone() {
    for (host, version) in [(Host::OpenMpi4, "4.0.7"), (Host::OpenMpi, "5.1.0a1"), (Host::OpenMpi, "7.0.0")] {
        assert_hook_disabled(
            host,
            version,
            &[&library(), &disguised(host, version)],
            "its structures are not known",
        );
    }
    // The convertor hook moves bytes inside Open MPI by compiled code. It knows the functions of
    // Open MPI 6.0. Here, an older release claims to be 6.0.0 but lacks some of these functions, so
    // the hook must move no bytes.
    for host in HOSTS {
        assert_hook_disabled(
            host,
            "6.0.0",
            &[&library(), &disguised(host, "6.0.0")],
            "a function of convertors is missing",
        );
    }
}

/// Checks the convertor hook with convertors of Open MPI 6.0. This release is not built here. The
/// library `since6.c` implements its convertors on top of those of the installed release.
#[test]
fn convertors_of_6_0_are_moved() {
    for host in HOSTS {
        let replacement = host.compile("since6", &["-shared", "-fPIC", "-ldl"]);
        let program =
            host.compile("convertors", &["-DSINCE_6", "-DCONFUSES_PAIRS", "-Wno-unused-function", "-ldl"]);
        let loaded = [library(), disguised(host, "6.0.0"), replacement.clone()];
        let loaded = loaded.map(|library| library.display().to_string()).join(":");
        let run = |arguments: &[&str]| {
            let run = host.run(&program).env("LD_PRELOAD", &loaded).env("DDTC_POLICY", "none");
            let run = run.env("DDTC_REPLACEMENT", &replacement);
            arguments.iter().fold(run, |run, word| run.arg(word)).text()
        };
        let (text, errors) = run(&["planted"]);
        assert_eq!(text.matches("right: enabled").count(), 2, "{host:?}\n{text}\n{errors}");
        let (disabled, tried) = (after(&text, "disabled"), after(&text, " of "));
        assert!(disabled == tried && tried > 100, "{host:?}\n{text}");
        for seed in ["1", "2"] {
            let (text, errors) = run(&["movers", "6000", seed]);
            assert!(text.contains("wrong 0"), "{host:?} {seed}\n{text}\n{errors}");
            assert!(after(&text, "served") * 10 > after(&text, " of ") * 8, "{text}");
            assert!(after(&text, " of ") > 4000, "{text}");
        }
    }
}

#[test]
fn a_tool_that_replaces_movers_keeps_its_own() {
    for host in HOSTS {
        let tool = shared(host, "-DTOOL");
        // If the tool comes after the preload library in the order of the loader, it changes the
        // function that Open MPI stores in a convertor for moving bytes (the mover). The hook does
        // not find the mover that it knows, and must move nothing.
        assert_hook_disabled(host, "tool", &[&library(), &tool], "the mover is");
        // If the tool comes before the preload library, its movers call those of the preload
        // library, so that compiled code moves the bytes.
        let (errors, _, said) = run_with_preloaded(host, "before", &[&tool, &library()]);
        // The tool is loaded into the processes of the launcher too, where it reports 0 bytes.
        // These lines do not count.
        let moved =
            errors.lines().filter(|line| line.starts_with("the tool moved ") && !line.contains(" 0 bytes"));
        assert_eq!(moved.count(), 2, "{errors}");
        assert!(said.iter().all(|said| said["hook_bytes_packed"] > 1 << 20), "{host:?} {said:?}");
    }
}

/// Writes a copy of Open MPI's library `libopen-pal` in which the symbol `symbol` is hidden, and
/// returns the path of the copy. A test loads the copy in place of the original.
fn with_hidden(host: Host, symbol: &str, folder: &Path) -> PathBuf {
    let name = if host == Host::OpenMpi { "libopen-pal.so.80" } else { "libopen-pal.so.40" };
    let mut bytes = fs::read(host.root().join("lib").join(name)).unwrap();
    let number = |bytes: &[u8], at: usize, n: usize| {
        bytes[at..at + n].iter().rev().fold(0usize, |number, &byte| number << 8 | usize::from(byte))
    };
    let (sections, each, count) = (number(&bytes, 40, 8), number(&bytes, 58, 2), number(&bytes, 60, 2));
    let section = |i: usize| sections + i * each;
    // Find the section of the dynamic symbols in the ELF file (type 11) with its offset and length,
    // and the section that contains the names of the symbols.
    let symbols = (0..count).map(section).find(|&s| number(&bytes, s + 4, 4) == 11).unwrap();
    let (offset, length) = (number(&bytes, symbols + 24, 8), number(&bytes, symbols + 32, 8));
    let names = number(&bytes, section(number(&bytes, symbols + 40, 4)) + 24, 8);
    let is_it = |&at: &usize| {
        let name = &bytes[names + number(&bytes, at, 4)..];
        name.starts_with(symbol.as_bytes()) && name[symbol.len()] == 0
    };
    let at = (offset..offset + length).step_by(24).find(is_it).unwrap();
    // Set the visibility of the symbol to hidden (2) in its entry of the symbol table.
    bytes[at + 5] = 2;
    fs::create_dir_all(folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn hidden_symbols_are_missed_or_not_needed() {
    for host in HOSTS {
        let folder = scratch(&format!("strangers-hidden-{host:?}"));
        let sizes = with_hidden(host, "opal_datatype_local_sizes", &folder.join("sizes"));
        assert_hook_disabled(host, "sizes", &[&library(), &sizes], "a fact about datatypes is hidden");
        // The hook recognizes movers by their addresses, which it finds in convertors. It does not
        // need the symbols of movers, so it must work although one of them is hidden.
        let movers = with_hidden(host, "opal_generic_simple_pack", &folder.join("movers"));
        let (_, report, said) = run_with_preloaded(host, "movers", &[&library(), &movers]);
        assert!(!report.contains("\"nothing is moved"), "{report}");
        assert!(said.iter().all(|said| said["hook_bytes_packed"] > 1 << 20), "{host:?} {said:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
