//! Test of the programs in docs/findings, each of which shows a fault of an MPI library. For each
//! program, its document must name an MPI library on which the program passes, or must say how the
//! program fails on every library.
//!
//! With `DDTC_BLESS=1` the test runs each program on one library after another until it passes, and
//! writes the result into the documents.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::setup::{Host, lossy, scratch};

const HOSTS: [(Host, &str); 3] =
    [(Host::Mpich, "MPICH 5.0.2"), (Host::OpenMpi, "Open MPI 5.0.11"), (Host::Intel, "Intel MPI 2021.18.1")];

/// Beginning of that line in a program's section of a document which names the MPI library on which
/// the program passes.
const RIGHT: &str = "* Right on ";
const NONE: &str = "none: ";

/// Time limit, in seconds, of a program on one MPI library while `DDTC_BLESS=1` writes the results
/// into the documents. A program that takes longer counts as failed on that library.
const ASKED: &str = "120";

/// A program that shows a fault, with the place at which its document says where it passes.
struct Program {
    document: PathBuf,
    /// Link to the program in its section of the document, relative to the folder of the document.
    link: String,
    /// The text after [`RIGHT`] in the program's section of the document, or `None` if the section
    /// has no such line.
    said: Option<String>,
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings")
}

fn programs() -> Vec<Program> {
    let entries = std::fs::read_dir(documents()).unwrap().map(|entry| entry.unwrap().path());
    let mut list = Vec::new();
    for document in entries.filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(&document).unwrap();
        for section in text.split("\n### ").skip(1) {
            let line = |start: &str| section.lines().find_map(|l| l.strip_prefix(start));
            let link =
                line("* Program: [").and_then(|l| l.split_once("](")).and_then(|l| l.1.split(')').next());
            let Some(link) = link.map(str::to_owned) else { continue };
            list.push(Program { document: document.clone(), link, said: line(RIGHT).map(str::to_owned) });
        }
    }
    list
}

/// Compiles and runs a program under an MPI library. Returns whether the program passes, and the
/// most informative line of its output: the first line that names what was expected or, without
/// such a line, the first line that is not empty.
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
    let telling =
        text.lines().find(|l| l.contains("expected") || l.contains("written") || l.contains("ssertion"));
    let said = telling.or(text.lines().find(|l| !l.trim().is_empty())).unwrap_or("").trim();
    let said = match output.status.code() {
        Some(124) => "the call does not return".to_owned(),
        // If the program printed nothing, it ended by a signal, which `timeout` passes on.
        _ if said.is_empty() => "the process ends by a signal".to_owned(),
        _ => said.chars().take(160).collect(),
    };
    (output.status.success(), said)
}

/// Runs the program `source` on one MPI library after another until it passes. Returns the text
/// that its section of the document must have after [`RIGHT`]: the name of that library, or how the
/// program fails on every library.
fn line(source: &Path, folder: &Path) -> String {
    let mut none = NONE.to_owned();
    for (host, name) in HOSTS {
        match asked(host, source, folder, Some(ASKED)) {
            (true, _) => return format!("{name}."),
            (false, said) => {
                let _ = write!(none, "{name} (`{}`), ", said.replace('`', "'"));
            }
        }
    }
    format!("{}.", none.trim_end_matches(", "))
}

/// Checks the line of a program that names the MPI library on which it passes. Returns as an error
/// what is wrong with the line. If `bless` is true, returns the text that the line must have
/// instead of checking it.
fn judged(program: &Program, folder: &Path, bless: bool) -> Result<Option<String>, String> {
    let source = documents().join(&program.link);
    if bless {
        return Ok(Some(line(&source, folder)));
    }
    let said = program.said.as_deref().ok_or_else(|| format!("{}: no line \"{RIGHT}\"", program.link))?;
    if let Some(why) = said.strip_prefix(NONE) {
        let all = HOSTS.iter().all(|(_, name)| why.contains(&format!("{name} (`")));
        return all.then_some(None).ok_or_else(|| format!("{}: a host is missing: {why}", program.link));
    }
    let host = HOSTS.iter().find(|(_, name)| said == format!("{name}."));
    let (host, name) = host.ok_or_else(|| format!("{}: no host: {said}", program.link))?;
    match asked(*host, &source, folder, None) {
        (true, _) => Ok(None),
        (false, said) => Err(format!("{} is not right on {name}: {said}", program.link)),
    }
}

#[test]
fn published_programs_are_right_on_another_host_or_the_document_says_why_not() {
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
    for (program, line) in results.iter().filter_map(|(p, r)| Some((p, r.as_ref().ok()?.as_ref()?))) {
        let text = std::fs::read_to_string(&program.document).unwrap();
        let at = text.find(&format!("]({})", program.link)).unwrap();
        let end = at + text[at..].find('\n').unwrap() + 1;
        let rest = match text[end..].starts_with(RIGHT) {
            true => text[end..].split_once('\n').unwrap().1,
            false => &text[end..],
        };
        std::fs::write(&program.document, format!("{}{RIGHT}{line}\n{rest}", &text[..end])).unwrap();
    }
}
