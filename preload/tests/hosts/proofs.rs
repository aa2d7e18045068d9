//! `ddtc tune` proves MPI libraries that nobody has tried. A known one hides behind another version, is proven, and is converted as far as the proof goes;
//! one with a planted fault is refused for the calls that the fault is in.
//!
//! With `DDTC_PROOFS=whole` all faults are planted, and eight ranks prove collective calls. Without it there is one fault, by `DDTC_ROTATION`, and two ranks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ddtc_hosts::policy::Class;
use ddtc_hosts::proof::{self, Outcome, Proof, Step};

use crate::doctor::doctor;
use crate::matrix::renamed;
use crate::setup::{Host, Run, command_line, compiled_by, library, lossy, release, reports, scratch, sorted};

const HOST: Host = Host::Mpich;

/// Whether everything is tried, which takes some minutes.
fn is_whole() -> bool {
    std::env::var("DDTC_PROOFS").is_ok_and(|value| value == "whole")
}

/// MPICH 4.2.3 in disguise.
struct Hidden {
    root: PathBuf,
    /// With everything that is written: the user's configuration, reports.
    folder: PathBuf,
    /// Where the library and what it needs is found.
    paths: String,
    /// A library that stands before it.
    before: Option<PathBuf>,
}

impl Hidden {
    /// A copy of the library that calls itself 4.9.3.
    fn renamed(name: &str) -> Hidden {
        let (root, folder) = (release("mpich423"), scratch(name));
        fs::create_dir_all(folder.join("lib")).unwrap();
        renamed(&root, b"4.2.3\0", b"4.9.3\0", &folder.join("lib"));
        // The user's table converts everything that may be converted.
        let rows: String = Class::ALL.iter().map(|class| format!("{} 1-\n", class.name())).collect();
        fs::create_dir_all(folder.join("ddtc")).unwrap();
        fs::write(folder.join("ddtc/policy"), format!("library mpich-4.9.3\n{rows}")).unwrap();
        let lib = root.join("lib");
        let paths =
            format!("{}:{}:{}", folder.join("lib").display(), lib.display(), lib.join("mpich").display());
        Hidden { root, folder, paths, before: None }
    }

    /// The library behind one that answers for its version, and plants faults.
    fn behind(name: &str, version: &str) -> Hidden {
        let (root, folder) = (release("mpich423"), scratch(name));
        let version = format!("-DVERSION=\"{version}\"");
        let before = compiled_by(&root.join("bin/mpicc"), "hidden", &["-shared", "-fPIC", &version, "-ldl"]);
        let paths = root.join("lib").display().to_string();
        Hidden { root, folder, paths, before: Some(before) }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("ddtc/proofs")
    }

    fn prepared(&self, run: Run) -> Run {
        let run = run.env("XDG_CONFIG_HOME", &self.folder).env("LD_LIBRARY_PATH", &self.paths);
        run.env("DDTC_FENCES", "0")
    }

    /// Proves it, with a fault if `fault` is not empty: whether that succeeds, and what is said.
    fn prove(&self, ranks: u32, fault: &str) -> (bool, String) {
        let run = HOST.run(command_line()).arg("tune").arg("--only-prove").arg("--deadline");
        let run = run.arg(if fault == "hangs" { "30" } else { "120" });
        let run = run.arg("--mpicc").arg(self.root.join("bin/mpicc")).arg("--");
        let mut run = run.arg(self.root.join("bin/mpiexec")).arg("-n").arg(ranks.to_string());
        if let Some(before) = &self.before {
            // The command gives the ranks `env LD_PRELOAD=...`: the other library is added.
            let script = self.folder.join("with");
            let text = format!(
                "#!/bin/sh\nfirst=$1 preload=$2\nshift 2\nexec \"$first\" \"$preload:{}\" \"$@\"\n",
                before.display()
            );
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            run = run.arg(script);
        }
        let out = self.prepared(run).env("FAULT", fault).output();
        (out.status.success(), format!("{}\n{}", lossy(&out.stdout), lossy(&out.stderr)))
    }

    fn launched(&self, ranks: u32, name: &str, words: &[&str], variables: &[(&str, &str)]) -> Run {
        let program = compiled_by(&self.root.join("bin/mpicc"), name, &["-w"]);
        let run = self.prepared(HOST.ranks_of(
            &self.root,
            ranks,
            words.first().map_or(program.as_path(), Path::new),
        ));
        let run = words.iter().skip(1).fold(run, |run, word| run.arg(word));
        let run = if words.is_empty() { run } else { run.arg(program) };
        variables.iter().fold(run, |run, (name, value)| run.env(name, value))
    }

    /// Messages of two ranks with the preload library: how many are packed, a report, and standard error. `words`: a program that starts the ranks.
    fn messages(&self, words: &[&str], variables: &[(&str, &str)]) -> (u64, String, String) {
        let bare = sorted(&self.launched(2, "messages", words, variables).text().0);
        let mut preload = library().display().to_string();
        if let Some(before) = &self.before {
            preload += &format!(":{}", before.display());
        }
        let run = self.launched(2, "messages", words, variables).env("LD_PRELOAD", preload);
        let (text, errors) = run.env("DDTC_REPORT", self.folder.join("report%r.json")).text();
        assert_eq!(sorted(&text), bare, "{words:?} {variables:?}");
        let report = fs::read_to_string(self.folder.join("report0.json")).unwrap();
        let packed = reports(&self.folder, 2).iter().map(|said| said["messages_packed"]).sum();
        (packed, report, errors)
    }

    /// That nothing is converted, why the report says so, and that standard error has a line about the file from each rank, or none.
    fn is_left(&self, words: &[&str], variables: &[(&str, &str)], why: &str, lines: usize) {
        let (packed, report, errors) = self.messages(words, variables);
        assert!(packed == 0 && report.contains(why), "{why}: {packed}\n{report}\n{errors}");
        assert_eq!(
            errors.lines().filter(|line| line.starts_with("ddtc: ")).count(),
            lines,
            "{why}\n{errors}"
        );
    }

    /// That messages are converted, by a proof.
    fn is_converted(&self, permitted: &str) {
        let (packed, report, errors) = self.messages(&[], &[]);
        let note = format!("{permitted}: proven here by `ddtc tune` on ");
        assert!(packed > 1000 && report.contains(&note), "{packed}\n{report}\n{errors}");
        assert!(!errors.contains("ddtc"), "{errors}");
    }
}

#[test]
fn an_unknown_release_is_converted_as_far_as_it_is_proven() {
    let hidden = Hidden::renamed("proofs-renamed");
    hidden.is_left(&[], &[], "mpich-4.9.3 was not tried; `ddtc tune` finds out", 0);
    let (well, text) = hidden.prove(2, "");
    assert!(well, "{text}");
    for step in Step::ALL {
        assert!(text.contains(&format!("{}: right\n", step.name())), "{text}");
    }
    let file = hidden.file();
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o644);
    // Collective calls are proven by eight ranks.
    hidden.is_converted("messages");
    let says = doctor(&format!("{}:/usr/bin:/bin", hidden.root.join("bin").display()))
        .env("XDG_CONFIG_HOME", &hidden.folder)
        .env("LD_LIBRARY_PATH", &hidden.paths)
        .env("DDTC_POLICY", "table")
        .arg("--mpi")
        .arg(hidden.folder.join("lib/libmpi.so.12"))
        .args(["--", "mpiexec", "-n", "2"])
        .output()
        .unwrap();
    let says = lossy(&says.stdout) + &lossy(&says.stderr);
    assert!(says.contains("messages: proven by `ddtc tune` of ddtc "), "{says}");
    assert!(says.contains("note: messages: proven here by `ddtc tune` on "), "{says}");

    // Another transport, and a file that cannot be used.
    hidden.is_left(
        &[],
        &[("MPIR_CVAR_NOLOCAL", "1"), ("FI_PROVIDER", "tcp")],
        "no proof is of this library with this transport",
        0,
    );
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("nodes 1", "nodes 7", 1)).unwrap();
    hidden.is_left(&[], &[], "must be as `ddtc tune` has written it", 2);
    let (well, said) = hidden.prove(2, "");
    assert!(!well && said.contains("remove it, then run `ddtc tune` again"), "{said}");
    fs::write(&file, text.replacen("proofs 1", "proofs 2", 1)).unwrap();
    hidden.is_left(&[], &[], "must not be of a newer version", 2);
    fs::write(&file, &text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
    hidden.is_left(&[], &[], "must be writable by its owner alone", 2);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();

    // Next to the library it holds too, and a refusal of the user outweighs it, and the other way round.
    let beside = hidden.folder.join("lib/ddtc-proofs");
    fs::rename(&file, &beside).unwrap();
    hidden.is_converted("messages");
    let proven = proof::parse(&text).unwrap();
    let refused = |outcome| {
        let mut proof = proven[0].clone();
        proof.outcomes[Step::Nonblocking as usize] = Some(outcome);
        proof::written(&[proof])
    };
    fs::write(&file, refused(Outcome::Begun)).unwrap();
    hidden.is_left(&[], &[], "`ddtc tune` has refused nonblocking", 0);
    fs::write(&file, &text).unwrap();
    fs::write(&beside, refused(Outcome::Refused("wrong bytes".to_owned()))).unwrap();
    hidden.is_left(&[], &[("DDTC_POLICY", "all")], "has refused nonblocking: wrong bytes", 0);

    // Proofs of another ddtc and of another library are none.
    fs::remove_file(&beside).unwrap();
    let mut others = [proven[0].clone(), proven[0].clone()];
    others[0].key.ddtc = "0.0.1".to_owned();
    others[1].key.objects += "0";
    fs::write(&file, proof::written(&others)).unwrap();
    hidden.is_left(&[], &[], "no proof is of this library", 0);
    fs::remove_dir_all(&hidden.folder).unwrap();
}

#[test]
fn a_library_of_no_known_family_is_proven_with_all_precautions() {
    let hidden = Hidden::behind("proofs-family", "MVAPICH Version:      4.0");
    hidden.is_left(&[], &[("DDTC_POLICY", "all")], "no release of this MPI library was tried", 0);
    let (ranks, permitted) = if is_whole() { (8, "messages, collectives") } else { (2, "messages") };
    let (well, text) = hidden.prove(ranks, "");
    assert!(well && text.contains(&format!(": {permitted}\n")), "{text}");
    let proofs: Vec<Proof> = proof::parse(&fs::read_to_string(hidden.file()).unwrap()).unwrap();
    assert_eq!((proofs.len(), proofs[0].nodes, proofs[0].ranks), (1, 1, ranks));
    let (packed, report, errors) = hidden.messages(&[], &[("DDTC_POLICY", "all")]);
    assert!(packed > 1000 && report.contains(&format!("\"{permitted}: proven here")), "{report}\n{errors}");
    // Where the launcher does not say that all ranks are on one node, that is not assumed.
    let without = ["env", "-u", "MPI_LOCALNRANKS"];
    let why = "which runs on a number of nodes that is not known";
    hidden.is_left(&without, &[("DDTC_POLICY", "all")], why, 0);
    fs::remove_dir_all(&hidden.folder).unwrap();
}

#[test]
fn planted_faults_are_refused() {
    let faults = [
        ("swaps", Step::Blocking, "wrong bytes: "),
        ("truncates", Step::Blocking, "a message that is too long gives class 0"),
        ("hangs", Step::Nonblocking, "no answer for 30 seconds"),
        ("crashes", Step::Nonblocking, ""),
        ("pending", Step::Nonblocking, "a receive gives class "),
    ];
    let first = std::env::var("DDTC_ROTATION").map_or(0, |n| n.parse().expect("DDTC_ROTATION is a number"));
    let tried = if is_whole() { &faults[..] } else { &faults[first % faults.len()..][..1] };
    for &(fault, step, why) in tried {
        let hidden = Hidden::behind(&format!("proofs-{fault}"), "MPICH Version:      4.9.3");
        let (well, text) = hidden.prove(2, fault);
        let line = format!("{}: refused: ", step.name());
        let said =
            text.lines().find(|said| said.starts_with(&line)).unwrap_or_else(|| panic!("{fault}\n{text}"));
        assert!(!well && (said.contains(why) || said.contains("a send gives class ")), "{fault}: {said}");
        for before in Step::ALL.into_iter().take_while(|before| *before != step) {
            assert!(text.contains(&format!("{}: right\n", before.name())), "{fault}\n{text}");
        }
        hidden.is_left(
            &[],
            &[("DDTC_POLICY", "all")],
            &format!("`ddtc tune` has refused {}: ", step.name()),
            0,
        );
        fs::remove_dir_all(&hidden.folder).unwrap();
    }
}
