//! Runs the programs of docs/findings on other MPI libraries. The record of a finding names one
//! library on which its program passes. If the program passes on none, the record has what it does
//! on each library.
//!
//! `DDTC_BLESS=1` runs the programs on all libraries, writes that part of the records anew, and
//! renders the documents.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::setup::{Host, command_line, lossy, scratch, succeed};

const HOSTS: [(Host, &str); 3] =
    [(Host::Mpich, "MPICH 5.0.2"), (Host::OpenMpi, "Open MPI 5.0.11"), (Host::Intel, "Intel MPI 2021.18.1")];

/// Time limit in seconds of a program on one library while `DDTC_BLESS=1` writes the records. A
/// program that takes longer counts as failed on that library.
const ASKED: &str = "120";

/// A program of a finding.
struct Program {
    /// The file of records that has the record of the finding, and the index of the record in this
    /// file.
    records: PathBuf,
    index: usize,
    source: PathBuf,
    /// The libraries in the record, each with what the program printed there. If there is no text,
    /// the program passes on that library.
    said: Vec<(String, Option<String>)>,
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings")
}

/// Reads the records of one library.
fn read(records: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(records).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn programs() -> Vec<Program> {
    let entries = std::fs::read_dir(documents()).unwrap().map(|entry| entry.unwrap().path());
    let mut list = Vec::new();
    for folder in entries.filter(|path| path.is_dir()) {
        let records = folder.join("findings.jsonl");
        for (index, finding) in read(&records).iter().enumerate() {
            let Some(program) = finding["program"].as_str() else { continue };
            let said =
                finding["elsewhere"].as_array().map_or(&[][..], Vec::as_slice).iter().map(|e| {
                    (e["library"].as_str().unwrap().to_owned(), e["said"].as_str().map(str::to_owned))
                });
            let (records, source, said) = (records.clone(), folder.join(program), said.collect());
            list.push(Program { records, index, source, said });
        }
    }
    list
}

/// Returns whether a program passes on an MPI library, and the most informative line of its output.
/// Lines that name what was expected come first.
fn asked(host: Host, source: &Path, folder: &Path, limit: Option<&str>) -> (bool, String) {
    let program = folder.join(format!("{host:?}"));
    let mut compiler = Command::new(host.compiler());
    let output = compiler.args(["-O1", "-w", "-o"]).arg(&program).arg(source).output().unwrap();
    if !output.status.success() {
        return (false, "it has not all functions of the program".to_owned());
    }
    let run = match limit {
        Some(limit) => host.run("timeout").arg(limit).arg(&program),
        None => host.run(&program),
    };
    let output = run.output();
    let text = lossy(&output.stdout) + &lossy(&output.stderr);
    let message =
        text.lines().find(|l| l.contains("expected") || l.contains("written") || l.contains("ssertion"));
    let said = message.or(text.lines().find(|l| !l.trim().is_empty())).unwrap_or("").trim();
    let said = match output.status.code() {
        Some(124) => "the call does not return".to_owned(),
        // A program that printed nothing was ended by a signal, which `timeout` passes on.
        _ if said.is_empty() => "the process ends by a signal".to_owned(),
        _ => said.chars().take(160).collect(),
    };
    (output.status.success(), said)
}

/// Returns what the record of a program must have: the first library on which it passes, or what it
/// does on each library.
fn elsewhere(source: &Path, folder: &Path) -> Value {
    let mut all = Vec::new();
    for (host, name) in HOSTS {
        match asked(host, source, folder, Some(ASKED)) {
            (true, _) => return json!([{ "library": name, "said": null }]),
            (false, said) => all.push(json!({ "library": name, "said": said.replace('`', "'") })),
        }
    }
    Value::Array(all)
}

/// Returns what is wrong with the record of a program as an error. With `bless`, returns what the
/// record must have.
fn judged(program: &Program, folder: &Path, bless: bool) -> Result<Option<Value>, String> {
    let shown = program.source.display();
    if bless {
        return Ok(Some(elsewhere(&program.source, folder)));
    }
    if let [(name, None)] = &program.said[..] {
        let host = HOSTS.iter().find(|(_, known)| known == name);
        let (host, _) = host.ok_or_else(|| format!("{shown}: no library of this test: {name}"))?;
        return match asked(*host, &program.source, folder, None) {
            (true, _) => Ok(None),
            (false, said) => Err(format!("{shown} fails on {name}: {said}")),
        };
    }
    let names = program.said.iter().filter(|(_, said)| said.is_some()).map(|(name, _)| name.as_str());
    let all = names.eq(HOSTS.iter().map(|(_, name)| *name));
    all.then_some(None)
        .ok_or_else(|| format!("{shown}: not what it does on each library: {:?}", program.said))
}

#[test]
fn published_programs_pass_on_another_host_or_the_document_says_what_each_host_does() {
    let (programs, bless) = (programs(), std::env::var_os("DDTC_BLESS").is_some());
    let next = AtomicUsize::new(0);
    let work = |number: usize| {
        let folder = scratch(&format!("published-{number}"));
        let mut results = Vec::new();
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.push((program, judged(program, &folder, bless)));
        }
        std::fs::remove_dir_all(folder).unwrap();
        results
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let wrong: Vec<&String> = results.iter().filter_map(|(_, r)| r.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(results.len() > 60, "{}", results.len());
    for (program, value) in results.iter().filter_map(|(p, r)| Some((p, r.as_ref().ok()?.as_ref()?))) {
        let mut all = read(&program.records);
        all[program.index]["elsewhere"] = value.clone();
        let text: String = all.iter().map(|finding| format!("{finding}\n")).collect();
        std::fs::write(&program.records, text).unwrap();
    }
    if bless {
        let mut command = Command::new(command_line());
        succeed(command.args(["report", "--findings"]).arg(documents()), "the documents of findings");
    }
}
