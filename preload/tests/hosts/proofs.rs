//! Tests that `ddtc tune` proves MPI libraries that nobody has tried. A test makes a known MPI
//! library claim another version, and `ddtc tune` proves this library. Calls must then be converted
//! as far as the proof permits. If a fault is planted in the library, `ddtc tune` must refuse the
//! calls that have the fault.
//!
//! With `DDTC_PROOFS=whole` all faults are planted, and eight ranks prove collective calls. Without
//! it, one fault is planted, which `DDTC_ROTATION` selects, and two ranks run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ddtc_hosts::policy::{Class, Library};
use ddtc_hosts::proof::{self, Outcome, Proof, Step};

use crate::doctor::doctor;
use crate::matrix::renamed;
use crate::setup::{Host, Run, command_line, compiled_by, library, lossy, release, reports, scratch, sorted};

const HOST: Host = Host::Mpich;

/// Returns true if `DDTC_PROOFS` asks for all planted faults and for proofs on eight ranks, which
/// take some minutes.
fn is_whole() -> bool {
    std::env::var("DDTC_PROOFS").is_ok_and(|value| value == "whole")
}

/// MPICH 4.2.3, changed in such a way that it looks like an MPI library that nobody has tried.
struct Hidden {
    root: PathBuf,
    /// Folder for everything that a run writes: the user's configuration with the file of proofs,
    /// and reports.
    folder: PathBuf,
    /// Value of `LD_LIBRARY_PATH`: the folders of the MPI library and of the libraries that it
    /// needs.
    paths: String,
    /// A library that is loaded before MPICH and answers some calls in its place, or `None` if
    /// MPICH answers all calls itself.
    before: Option<PathBuf>,
    /// Compiler that `ddtc tune` uses.
    mpicc: PathBuf,
    /// Words in front of the program that `ddtc tune` starts on each rank.
    words: &'static [&'static str],
}

/// Writes policy tables of the user for MPICH 4.2.3 and for the library that it claims to be. They
/// convert messages of every layout class and every length, as far as the MPI library permits it.
/// `folder` is the configuration folder.
fn write_tables(folder: &Path, claimed: &str) {
    let rows: String = Class::ALL.iter().map(|class| format!("{} 1-\n", class.name())).collect();
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    let tables = format!("library mpich-4.2.3\n{rows}library {claimed}\n{rows}");
    fs::write(folder.join("ddtc/policy"), tables).unwrap();
}

/// Variables with which every run of a program converts the same messages: no times decide, and
/// types are compiled when they are committed.
const ALIKE: [(&str, &str); 2] = [("DDTC_POLICY", "table"), ("DDTC_MODE", "commit")];

impl Hidden {
    /// Makes a copy of MPICH 4.2.3 that claims to be MPICH 4.9.3.
    fn renamed(name: &str) -> Hidden {
        let (root, folder) = (release("mpich423"), scratch(name));
        fs::create_dir_all(folder.join("lib")).unwrap();
        renamed(&root, b"4.2.3\0", b"4.9.3\0", &folder.join("lib"));
        write_tables(&folder, "mpich-4.9.3");
        let lib = root.join("lib");
        let paths =
            format!("{}:{}:{}", folder.join("lib").display(), lib.display(), lib.join("mpich").display());
        Hidden { mpicc: root.join("bin/mpicc"), root, folder, paths, before: None, words: &[] }
    }

    /// Prepares MPICH 4.2.3 with a small library that is loaded in front of it. The small library
    /// answers queries of the version with `version`, and plants faults.
    fn with_library_in_front(name: &str, version: &str) -> Hidden {
        let (root, folder) = (release("mpich423"), scratch(name));
        let claimed = Library::from_version_text(version).to_string();
        let version = format!("-DVERSION=\"{version}\"");
        let before = compiled_by(&root.join("bin/mpicc"), "hidden", &["-shared", "-fPIC", &version, "-ldl"]);
        write_tables(&folder, &claimed);
        let paths = root.join("lib").display().to_string();
        let mpicc = root.join("bin/mpicc");
        Hidden { mpicc, root, folder, paths, before: Some(before), words: &[] }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("ddtc/proofs")
    }

    fn prepared(&self, run: Run) -> Run {
        let run = run.env("XDG_CONFIG_HOME", &self.folder).env("LD_LIBRARY_PATH", &self.paths);
        run.env("DDTC_FENCES", "0")
    }

    /// Runs `ddtc tune` on `ranks` ranks to prove the library, and to do nothing else, with the
    /// planted fault `fault` if this name is not empty. Returns whether the command succeeded, and
    /// its output.
    fn prove(&self, ranks: u32, fault: &str) -> (bool, String) {
        self.tune(ranks, fault, &["--only-prove"])
    }

    /// Runs `ddtc tune` as [`Hidden::prove`] does, with these options.
    fn tune(&self, ranks: u32, fault: &str, options: &[&str]) -> (bool, String) {
        let run = HOST.run(command_line()).arg("tune");
        let run = options.iter().fold(run, |run, option| run.arg(option)).arg("--deadline");
        let run = run.arg(if fault == "hangs" { "30" } else { "120" });
        let run = run.arg("--mpicc").arg(&self.mpicc).arg("--");
        let mut run = run.arg(self.root.join("bin/mpiexec")).arg("-n").arg(ranks.to_string());
        if let Some(before) = &self.before {
            // `ddtc tune` starts the ranks by `env LD_PRELOAD=...`. This script takes the place of
            // the first word of that command and adds the library that plants faults to the
            // variable.
            let script = self.folder.join("with");
            let text = format!(
                "#!/bin/sh\nfirst=$1 preload=$2\nshift 2\nexec {} \"$first\" \"$preload:{}\" \"$@\"\n",
                self.words.join(" "),
                before.display()
            );
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
            run = run.arg(script);
        }
        // `ddtc tune` makes a folder in the working folder.
        run.command.current_dir(&self.folder);
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

    /// Runs the program `messages` on two ranks, without and with the preload library, and asserts
    /// that the output is the same. Returns the number of packed messages, the report of rank 0,
    /// and the text on standard error. If `words` is not empty, it is a command that starts the
    /// program on each rank.
    fn messages(&self, words: &[&str], variables: &[(&str, &str)]) -> (u64, String, String) {
        let unmodified = sorted(&self.launched(2, "messages", words, variables).text().0);
        let mut preload = library().display().to_string();
        if let Some(before) = &self.before {
            preload += &format!(":{}", before.display());
        }
        let run = self.launched(2, "messages", words, variables).env("LD_PRELOAD", preload);
        let (text, errors) = run.env("DDTC_REPORT", self.folder.join("report%r.json")).text();
        assert_eq!(sorted(&text), unmodified, "{words:?} {variables:?}");
        let report = fs::read_to_string(self.folder.join("report0.json")).unwrap();
        let packed = reports(&self.folder, 2).iter().map(|said| said["messages_packed"]).sum();
        (packed, report, errors)
    }

    /// Checks that no message of the program `messages` is converted, that the report gives the
    /// reason `why`, and that `lines` lines of standard error come from ddtc. These lines are one
    /// from each rank if the file of proofs cannot be used, and otherwise none.
    fn is_bypassed(&self, words: &[&str], variables: &[(&str, &str)], why: &str, lines: usize) {
        let (packed, report, errors) = self.messages(words, variables);
        assert!(packed == 0 && report.contains(why), "{why}: {packed}\n{report}\n{errors}");
        assert_eq!(
            errors.lines().filter(|line| line.starts_with("ddtc: ")).count(),
            lines,
            "{why}\n{errors}"
        );
    }

    /// Checks that as many messages of the program `messages` are converted as under MPICH 4.2.3
    /// without any change, and that the report says that a proof permits it. `permitted` has the
    /// kinds of calls that the proof permits, as the report names them.
    fn is_converted(&self, permitted: &str) {
        let known = Hidden {
            mpicc: self.mpicc.clone(),
            root: self.root.clone(),
            folder: self.folder.clone(),
            paths: self.root.join("lib").display().to_string(),
            before: None,
            words: &[],
        };
        let (wanted, report, _) = known.messages(&[], &ALIKE);
        assert!(wanted > 1000 && !report.contains("proven here"), "{wanted}\n{report}");
        let (packed, report, errors) = self.messages(&[], &ALIKE);
        let note = format!("{permitted}: proven here by `ddtc tune` on ");
        assert!(packed == wanted && report.contains(&note), "{packed} {wanted}\n{report}\n{errors}");
        assert!(!errors.contains("ddtc"), "{errors}");
    }
}

#[test]
fn an_unknown_release_is_converted_as_far_as_it_is_proven() {
    let hidden = Hidden::renamed("proofs-renamed");
    hidden.is_bypassed(&[], &[], "mpich-4.9.3 was not tried; `ddtc tune` finds out", 0);
    // If the proof is where the ranks do not look for it, they convert nothing, so nothing must be
    // measured, and the table of the user must stay as it is.
    let table = fs::read_to_string(hidden.folder.join("ddtc/policy")).unwrap();
    let elsewhere = hidden.folder.join("elsewhere");
    let (well, text) = hidden.tune(2, "", &["--proofs", &elsewhere.display().to_string()]);
    assert!(well && text.contains("nothing is measured, and the policy table stays as it is"), "{text}");
    assert!(text.contains("find no proof that permits messages"), "{text}");
    assert_eq!(fs::read_to_string(hidden.folder.join("ddtc/policy")).unwrap(), table);
    hidden.is_bypassed(&[], &[], "mpich-4.9.3 was not tried; `ddtc tune` finds out", 0);
    fs::rename(elsewhere, hidden.file()).unwrap();
    for step in Step::ALL {
        assert!(text.contains(&format!("{}: right\n", step.name())), "{text}");
    }
    let file = hidden.file();
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o644);
    // This proof permits only messages to be converted, because a proof of collective calls needs
    // eight ranks and this one was made by two.
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

    // The proof must not hold for another transport. After that, the file of proofs cannot be used
    // for three reasons in turn: its contents were changed, it is of a newer version, and others
    // than its owner can write to it.
    hidden.is_bypassed(
        &[],
        &[("MPIR_CVAR_NOLOCAL", "1"), ("FI_PROVIDER", "tcp")],
        "no proof is of this library with this transport",
        0,
    );
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("nodes 1", "nodes 7", 1)).unwrap();
    hidden.is_bypassed(&[], &[], "must be as `ddtc tune` has written it", 2);
    let (well, said) = hidden.prove(2, "");
    assert!(!well && said.contains("remove it, then run `ddtc tune` again"), "{said}");
    fs::write(&file, text.replacen("proofs 1", "proofs 2", 1)).unwrap();
    hidden.is_bypassed(&[], &[], "must not be of a newer version", 2);
    fs::write(&file, &text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
    hidden.is_bypassed(&[], &[], "must be writable by its owner alone", 2);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();

    // A file of proofs in the folder of the MPI library permits conversion too. If one of the two
    // files of proofs says that `ddtc tune` has refused a step of the proof, nothing is converted,
    // whatever the other file says.
    let next_to_library = hidden.folder.join("lib/ddtc-proofs");
    fs::rename(&file, &next_to_library).unwrap();
    hidden.is_converted("messages");
    let proven = proof::parse(&text).unwrap();
    let refused = |outcome| {
        let mut proof = proven[0].clone();
        proof.outcomes[Step::Nonblocking as usize] = Some(outcome);
        proof::written(&[proof])
    };
    fs::write(&file, refused(Outcome::Begun)).unwrap();
    hidden.is_bypassed(&[], &[], "`ddtc tune` has refused nonblocking", 0);
    fs::write(&file, &text).unwrap();
    fs::write(&next_to_library, refused(Outcome::Refused("wrong bytes".to_owned()))).unwrap();
    hidden.is_bypassed(&[], &[("DDTC_POLICY", "all")], "has refused nonblocking: wrong bytes", 0);

    // Proofs that were made by another version of ddtc, or for another MPI library, must have no
    // effect.
    fs::remove_file(&next_to_library).unwrap();
    let mut others = [proven[0].clone(), proven[0].clone()];
    others[0].key.ddtc = "0.0.1".to_owned();
    others[1].key.objects += "0";
    fs::write(&file, proof::written(&others)).unwrap();
    hidden.is_bypassed(&[], &[], "no proof is of this library", 0);
    fs::remove_dir_all(&hidden.folder).unwrap();
}

#[test]
fn a_library_of_no_known_family_is_proven_with_all_precautions() {
    let hidden = Hidden::with_library_in_front("proofs-family", "MVAPICH Version:      4.0");
    hidden.is_bypassed(&[], &[], "no release of this MPI library was tried", 0);
    // With `DDTC_POLICY=all`, messages are converted without a proof, and each rank says so.
    let (packed, report, errors) = hidden.messages(&[], &[("DDTC_POLICY", "all")]);
    let why = "no release of this MPI library was tried; messages, collectives are converted because";
    let lines = errors.lines().filter(|line| line.contains(why)).count();
    assert!(packed > 1000 && lines == 2 && report.contains(why), "{packed}\n{report}\n{errors}");
    // With more than two ranks, everything is proven and nothing is measured.
    let (ranks, permitted) = if is_whole() { (8, "messages, collectives") } else { (2, "messages") };
    let (well, text) = hidden.tune(ranks, "", if is_whole() { &[] } else { &["--only-prove"] });
    assert!(well && text.contains(&format!(": {permitted}\n")), "{text}");
    assert_eq!(text.contains("measuring needs 2 ranks, and this job has 8"), is_whole(), "{text}");
    let proofs: Vec<Proof> = proof::parse(&fs::read_to_string(hidden.file()).unwrap()).unwrap();
    assert_eq!((proofs.len(), proofs[0].nodes, proofs[0].ranks), (1, 1, ranks));
    hidden.is_converted(permitted);
    // If the launcher does not tell the ranks that all of them are on one node (`MPI_LOCALNRANKS`),
    // the preload library must not assume it, and must convert nothing.
    let without = ["env", "-u", "MPI_LOCALNRANKS"];
    hidden.is_bypassed(&without, &[], "which runs on a number of nodes that is not known", 0);
    fs::remove_dir_all(&hidden.folder).unwrap();
}

/// Checks that nothing is proven if a constant in the header of the MPI library is not that of the
/// ABI. The compiler gets a header with another number for an error class.
#[test]
fn a_header_of_another_abi_is_refused() {
    let hidden = Hidden::renamed("proofs-header");
    let (include, mpicc) = (hidden.folder.join("include"), hidden.folder.join("mpicc"));
    fs::create_dir_all(&include).unwrap();
    let header = "#include_next <mpi.h>\n#undef MPI_ERR_TRUNCATE\n#define MPI_ERR_TRUNCATE 13\n";
    fs::write(include.join("mpi.h"), header).unwrap();
    let compiler = hidden.root.join("bin/mpicc");
    let script = format!("#!/bin/sh\nexec {} -I {} \"$@\"\n", compiler.display(), include.display());
    fs::write(&mpicc, script).unwrap();
    fs::set_permissions(&mpicc, fs::Permissions::from_mode(0o755)).unwrap();
    let hidden = Hidden { mpicc, ..hidden };
    let (well, text) = hidden.prove(2, "");
    assert!(!well && text.contains("MPI_ERR_TRUNCATE is 13 in mpi.h, and 14 in the MPICH ABI"), "{text}");
    let why = "`ddtc tune` has refused blocking: MPI_ERR_TRUNCATE";
    hidden.is_bypassed(&[], &[("DDTC_POLICY", "all")], why, 0);
    fs::remove_dir_all(&hidden.folder).unwrap();
}

/// Checks a proof for two nodes. Each rank has a host name of its own, and the variables of Slurm
/// say that the ranks are on two nodes.
#[test]
fn a_proof_on_two_nodes_holds_for_jobs_on_two_nodes() {
    let mut hidden = Hidden::with_library_in_front("proofs-nodes", "MPICH Version:      4.9.3");
    let on_nodes =
        |nodes: &'static str| ["env", "-uMPI_LOCALNRANKS", "NODES=1", "SLURM_STEP_NUM_TASKS=2", nodes];
    hidden.words = &["env", "-uMPI_LOCALNRANKS", "NODES=1", "SLURM_STEP_NUM_TASKS=2"];
    let (well, text) = hidden.prove(2, "");
    assert!(well && text.contains(", on 2 nodes: messages\n"), "{text}");
    let (packed, report, errors) = hidden.messages(&on_nodes("SLURM_STEP_NUM_NODES=2"), &ALIKE);
    let note = "messages: proven here by `ddtc tune` on ";
    assert!(packed > 1000 && report.contains(note), "{packed}\n{report}\n{errors}");
    assert!(report.contains("with 2 ranks on 2 nodes"), "{report}");
    hidden.is_bypassed(&on_nodes("SLURM_STEP_NUM_NODES=3"), &[], "which runs on 3 nodes", 0);
    // On one node the transport is another one, so the proof has another key.
    hidden.is_bypassed(&on_nodes("SLURM_STEP_NUM_NODES=1"), &[], "with this transport", 0);
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
        ("starts", Step::Persistent, "a send gives class "),
        ("broadcasts", Step::Collectives, "wrong bytes: "),
    ];
    let first = std::env::var("DDTC_ROTATION").map_or(0, |n| n.parse().expect("DDTC_ROTATION is a number"));
    let tried = if is_whole() { &faults[..] } else { &faults[first % faults.len()..][..1] };
    for &(fault, step, why) in tried {
        let hidden = Hidden::with_library_in_front(&format!("proofs-{fault}"), "MPICH Version:      4.9.3");
        let (well, text) = hidden.prove(2, fault);
        let line = format!("{}: refused: ", step.name());
        let said =
            text.lines().find(|said| said.starts_with(&line)).unwrap_or_else(|| panic!("{fault}\n{text}"));
        assert!(said.contains(why) || said.contains("a send gives class "), "{fault}: {said}");
        // Messages stay permitted if only collective calls are refused.
        let has_messages = step == Step::Collectives;
        assert_eq!(well, has_messages, "{fault}\n{text}");
        for before in Step::ALL.into_iter().take_while(|before| *before != step) {
            assert!(text.contains(&format!("{}: right\n", before.name())), "{fault}\n{text}");
        }
        if has_messages {
            let (packed, report, errors) = hidden.messages(&[], &ALIKE);
            assert!(packed > 1000 && report.contains("; refused collectives: "), "{errors}\n{report}");
        } else {
            let why = format!("`ddtc tune` has refused {}: ", step.name());
            hidden.is_bypassed(&[], &[("DDTC_POLICY", "all")], &why, 0);
        }
        fs::remove_dir_all(&hidden.folder).unwrap();
    }
}
