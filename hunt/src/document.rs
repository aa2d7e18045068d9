//! Findings as texts for people: the document of a run, the documents of a folder of published
//! findings, and the comments at the head of C programs.
//!
//! Everything is rendered from the records `findings.jsonl` and `run.json`. The entries can be sent
//! to the maintainers of a library as they are.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ddtc::internal::files;
use ddtc_hosts::abi::MPICH;
use serde::Deserialize;

use crate::difference::Class;
use crate::finding::{About, Elsewhere, Finding};
use crate::record::{Run, Workers};
use crate::wording::{action, summary, why_open};

/// Maximum length of a line in columns. Only a line with a single word may be longer.
const COLUMNS: usize = 100;

/// The parts of `run.json`, the record of a run, that are needed for the document of the run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    library: About,
    seed: u64,
    cases: u64,
    checks: Vec<String>,
    workers: Workers,
}

/// Writes findings.md, the document of a run, either as a whole or not at all.
///
/// # Errors
/// Returns an error that names the file and the system's error.
pub(crate) fn save(folder: &Path, run: &Run, findings: &[Finding]) -> Result<(), Box<dyn Error>> {
    let summary = Summary {
        library: run.library.clone(),
        seed: run.seed,
        cases: run.cases,
        checks: run.checks.iter().map(|&c| c.to_owned()).collect(),
        workers: run.workers,
    };
    Ok(files::save(&folder.join("findings.md"), document(&summary, findings, None))?)
}

/// File name of the document that lists, for all published runs together, the differences that are
/// not bugs.
const DIFFERENCES: &str = "differences.md";

/// Returns the document of a run. For a published document, `published` is the name of the folder
/// of the programs, relative to the document. If the document is in the folder of the run,
/// `published` is none. A published document has only bugs, because the other differences are in a
/// document that all runs share.
fn document(run: &Summary, findings: &[Finding], published: Option<&str>) -> String {
    let library = &run.library;
    let mut out = format!("# {} ({})\n\n", library.title(), library.flavour);
    let intro = format!(
        "Differences between {} and the MPI standard, version 5.0. `ddtc check --mpi` found them, unless the \
         origin of an entry says otherwise. The run had {} cases with random datatypes from seed {}, and the \
         checks {}. {} of its worker processes died and {} hung. An entry gives the datatype as its constructors \
         with their arguments; the C program of the entry has the calls.",
        library.title(),
        run.cases,
        run.seed,
        run.checks.join(", "),
        run.workers.died,
        run.workers.hung
    );
    wrap(&mut out, &intro, "", "");
    if published.is_some() {
        out.push('\n');
        let how = format!(
            "To run a program, compile it in its folder with `{}`; it includes [finding.h](finding.h). \
             [README.md](README.md#programs) has the details.",
            library.wrapper()
        );
        wrap(&mut out, &how, "", "");
        out.push('\n');
        let rest = format!(
            "`ddtc report --program FILE` prints a program as one file, which needs nothing but `mpi.h`. An entry \
             names only the first other library on which its program passes. What the standard leaves open, and \
             errors that a library need not report, are in [{DIFFERENCES}]({DIFFERENCES})."
        );
        wrap(&mut out, &rest, "", "");
    }
    if findings.is_empty() {
        out.push_str("\nNothing was found.\n");
    }
    let is_shown = |f: &Finding| f.class != Class::Bug || f.confirmed != Some(false);
    type Belongs<'f> = &'f dyn Fn(&Finding) -> bool;
    let parts: [(&str, Belongs<'_>); 4] = [
        ("Bugs", &|f| f.class == Class::Bug && is_shown(f)),
        ("Bugs that their programs do not show", &|f| !is_shown(f)),
        ("Errors that a library need not report", &|f| f.class == Class::Quality && published.is_none()),
        ("Left open by the standard", &|f| f.class == Class::Open && published.is_none()),
    ];
    for (title, belongs) in parts {
        let mut of_part = findings.iter().filter(|f| belongs(f)).peekable();
        if of_part.peek().is_some() {
            let _ = write!(out, "\n## {title}\n");
        }
        for f in of_part {
            entry(&mut out, f, &published.map_or(String::new(), |name| format!("{name}/")));
        }
    }
    out
}

/// Appends the entry of a finding to a document. `folder` is the path of the folder that has the C
/// program of the finding, with a slash at the end. It is empty if the document is in that folder.
fn entry(out: &mut String, f: &Finding, folder: &str) {
    let _ = write!(out, "\n### {}\n\n", f.fingerprint);
    wrap(out, &summary(f), "", "");
    if !f.is_misuse() {
        let _ = write!(out, "\n    {}\n", f.datatype);
    }
    out.push('\n');
    let (rule, library) = (f.rule(), f.library.title());
    let mut item = |head: &str, text: &str| wrap(out, &format!("**{head}** {text}"), "* ", "  ");
    item("What the program does.", &action(f));
    item(
        &format!("What MPI 5.0 says (section {}).", rule.section),
        &format!("{} {}", rule.text, expected(f)),
    );
    item(&format!("What {library} does."), &format!("On this library, {}.", f.got));
    item("How to see it.", &reproduced(f, folder));
    let others = elsewhere(f);
    if !others.is_empty() {
        item("Other libraries.", &others);
    }
    let found = match (f.seed, f.case) {
        (Some(seed), Some(case)) => format!("The run with seed {seed} found it in case {case}."),
        _ => "The program was written by hand, and not by a run.".to_owned(),
    };
    item("Origin.", &found);
}

/// Returns the sentences that say what the program of a finding must show according to the rule of
/// the standard.
fn expected(f: &Finding) -> String {
    match f.class {
        Class::Bug => format!("By this rule, {}.", f.expected),
        Class::Quality => format!("{} In a library of high quality, {}.", why_open(f), f.expected),
        Class::Open => format!("{} In ddtc's reading, {}.", why_open(f), f.expected),
    }
}

/// Returns the sentences that name the C program of a finding and say whether it showed the finding
/// when it was run.
fn reproduced(f: &Finding, folder: &str) -> String {
    let Some(program) = &f.program else {
        return "There is no program, because the datatype or its values are too large for one.".to_owned();
    };
    let run = match f.confirmed {
        Some(true) => "It was compiled and run with this version, which showed the difference.",
        Some(false) => {
            "It was compiled and run with this version, which did not show the difference: the run of the fuzzer saw \
             it in a process that had made other calls before."
        }
        None => "It was not compiled and run, because there was no compiler or no header of the library.",
    };
    format!(
        "[{program}]({folder}{program}) exits with a status other than 0, or ends by a signal, if the library \
             shows the difference. {run}"
    )
}

/// Text that `preload/tests/hosts/published.rs` records for a library that lacks functions that the
/// program calls. It takes the place of what the program printed.
const LACKS: &str = "it has not all functions of the program";
/// Text that `preload/tests/hosts/published.rs` records for a library on which the program ended by
/// a signal and printed nothing.
const SIGNAL: &str = "the process ends by a signal";

/// Returns the sentences about runs of the same program on other libraries. A run on a library with
/// the same name and version as the finding's own library is left out. But it is kept if the
/// finding is about a library with the standard ABI, because it was then a run on the same library
/// with MPICH's own ABI.
fn elsewhere(f: &Finding) -> String {
    let has_name = |e: &Elsewhere| e.library == f.library.title();
    let others = || f.elsewhere.iter().filter(|e| !has_name(e) || f.library.is_standard());
    let name = |e: &Elsewhere| {
        let abi = if has_name(e) { format!(" with the {}", MPICH.name) } else { String::new() };
        format!("{}{abi}", e.library)
    };
    let list = |names: Vec<String>| names.join(", ");
    let right: Vec<String> = others().filter(|e| e.said.is_none()).map(name).collect();
    let lacking: Vec<String> = others().filter(|e| e.said.as_deref() == Some(LACKS)).map(name).collect();
    let wrong: Vec<String> = others()
        .filter_map(|e| Some((name(e), e.said.as_deref().filter(|text| *text != LACKS)?)))
        .map(|(library, text)| match text {
            SIGNAL => format!("{library} ({SIGNAL})"),
            printed => format!("{library} (`{printed}`)"),
        })
        .collect();
    let mut sentences = Vec::new();
    if !right.is_empty() {
        sentences.push(format!("The program passes on {}.", list(right)));
    }
    if !wrong.is_empty() {
        sentences.push(format!("The program fails on {}.", wrong.join(", ")));
    }
    if !lacking.is_empty() {
        sentences.push(format!(
            "The program does not run on {}, which lacks functions that it calls.",
            list(lacking)
        ));
    }
    sentences.join(" ")
}

/// Returns the comment at the head of the program of a finding.
pub(crate) fn head(f: &Finding) -> String {
    let mut body = String::new();
    let mut paragraph = |text: &str| {
        if !body.is_empty() {
            body.push_str(" *\n");
        }
        wrap(&mut body, &text.replace("*/", "* /"), " * ", " * ");
    };
    let (rule, library) = (f.rule(), f.library.title());
    paragraph(&format!("{} on {library} ({})", f.fingerprint, f.library.flavour));
    paragraph(&summary(f));
    if !f.is_misuse() {
        paragraph(&format!("The datatype: {}", f.datatype));
    }
    paragraph(&format!("What the program does: {}", action(f)));
    paragraph(&format!("What MPI 5.0 says (section {}): {} {}", rule.section, rule.text, expected(f)));
    paragraph(&format!("What {library} does: on this library, {}.", f.got));
    let others = elsewhere(f);
    if !others.is_empty() {
        paragraph(&format!("Other libraries: {others}"));
    }
    paragraph(&format!(
        "How to run it: {} FILE && ./a.out. An exit status other than 0 shows the difference.",
        f.library.wrapper()
    ));
    format!("/*\n{body} */\n")
}

/// Appends a text as lines of at most [`COLUMNS`] columns. The first line begins with `first`, and
/// the others with `next`.
fn wrap(out: &mut String, text: &str, first: &str, next: &str) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(out, "{line}");
            line = next.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(out, "{line}");
}

/// A run whose findings are published.
struct Published {
    name: String,
    run: Summary,
    findings: Vec<Finding>,
}

impl Published {
    fn read(folder: &Path) -> Result<Published, Box<dyn Error>> {
        let named = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|e| named(&path, &e))
        };
        let run =
            serde_json::from_str(&text("run.json")?).map_err(|e| named(&folder.join("run.json"), &e))?;
        let mut findings = Vec::new();
        for (number, line) in (1..).zip(text("findings.jsonl")?.lines()) {
            let place = folder.join("findings.jsonl");
            findings.push(
                serde_json::from_str(line).map_err(|e| format!("{}, line {number}: {e}", place.display()))?,
            );
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Published { name, run, findings })
    }
}

/// Renders all texts of a folder of published findings. The folder has a subfolder for each run,
/// with `findings.jsonl`, `run.json` and the programs. Writes the document of each run next to its
/// subfolder, the comment at the head of each program, and `differences.md`. Returns the paths of
/// the documents.
///
/// # Errors
/// Returns an error if no folder has findings, or if a file cannot be read or written. The error
/// names the file.
pub fn publish(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("findings.jsonl").is_file())
        .collect();
    folders.sort();
    if folders.is_empty() {
        let at = folder.display();
        return Err(format!(
            "no folder in {at} has a findings.jsonl: name the folder above those of the runs"
        )
        .into());
    }
    let runs: Vec<Published> = folders.iter().map(|f| Published::read(f)).collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    for (run, place) in runs.iter().zip(&folders) {
        for f in &run.findings {
            if let Some(program) = &f.program {
                renew_head(&place.join(program), f)?;
            }
        }
        let path = folder.join(format!("{}.md", run.name));
        files::save(&path, document(&run.run, &run.findings, Some(&run.name)))?;
        written.push(path);
    }
    let path = folder.join(DIFFERENCES);
    files::save(&path, differences(&runs))?;
    written.push(path);
    Ok(written)
}

/// Replaces the comment at the head of a finding's program by a new one that is made from the
/// finding.
fn renew_head(path: &Path, f: &Finding) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let rest = text.split_once("\n */\n").filter(|_| text.starts_with("/*\n"));
    let (_, rest) = rest.ok_or_else(|| format!("{}: no comment at its head", path.display()))?;
    let new = head(f) + rest;
    if new != text {
        files::save(path, new)?;
    }
    Ok(())
}

/// Returns the document about those differences of all published runs that are not bugs.
fn differences(runs: &[Published]) -> String {
    let mut out = "# Differences, not bugs\n\n".to_owned();
    let intro = "MPI libraries differ here from each other, or from ddtc, and none of them breaks a rule of the MPI \
                 standard. Programs that depend on one behavior are not portable. The programs are in the folders \
                 of the libraries; each expects the result of ddtc, with the bounds that its library gives the \
                 parts of the datatype. A program passes on a library if it gets the expected result there. The \
                 datatypes of the rows of one table can differ.";
    wrap(&mut out, intro, "", "");
    for (class, title) in [
        (Class::Open, "Left open by the standard"),
        (Class::Quality, "Errors that a library need not report"),
    ] {
        let mut groups: BTreeMap<&str, Vec<(&str, &Finding)>> = BTreeMap::new();
        for run in runs {
            for f in run.findings.iter().filter(|f| f.class == class) {
                groups.entry(&f.fingerprint).or_default().push((&run.name, f));
            }
        }
        if !groups.is_empty() {
            let _ = write!(out, "\n## {title}\n");
        }
        groups.into_iter().for_each(|(name, group)| difference(&mut out, name, &group));
    }
    out
}

/// Appends the section about the difference called `name`, with a table that has a row for each
/// finding in `group`.
fn difference(out: &mut String, name: &str, group: &[(&str, &Finding)]) {
    let Some((_, first)) = group.first() else { return };
    let rule = first.rule();
    let _ = write!(out, "\n### {name}\n\n");
    wrap(out, &format!("{} {}", summary(first), action(first).replacen("It ", "Each program ", 1)), "", "");
    out.push('\n');
    let says = format!("MPI 5.0, section {}: {} {}", rule.section, rule.text, why_open(first));
    wrap(out, &says, "", "");
    out.push_str("\n| Library | Datatype | Expected | On this library | Program | Program on other libraries |\n|---|---|---|---|---|---|\n");
    let cell = |text: &str| text.replace('|', "\\|");
    for (folder, f) in group {
        let datatype = match (f.is_misuse(), f.count) {
            (true, _) => String::new(),
            (false, 1) => format!("`{}`", f.datatype),
            (false, n) => format!("{n} of `{}`", f.datatype),
        };
        let program = match &f.program {
            Some(program) => format!("[{program}]({folder}/{program})"),
            None => "none".to_owned(),
        };
        let _ = writeln!(
            out,
            "| {} ({}) | {} | {} | {} | {program} | {} |",
            f.library.title(),
            f.library.flavour,
            cell(&datatype),
            cell(&f.expected),
            cell(&f.got),
            cell(&elsewhere(f))
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words() {
        let mut out = String::new();
        wrap(&mut out, &"word ".repeat(30), "* ", "  ");
        assert!(out.lines().all(|l| l.len() <= COLUMNS) && out.lines().count() == 2, "{out}");
        assert!(out.starts_with("* word") && out.lines().nth(1).unwrap().starts_with("  word"), "{out}");
        out.clear();
        wrap(&mut out, &"x".repeat(300), " * ", " * ");
        assert_eq!(out, format!(" * {}\n", "x".repeat(300)));
    }
}
