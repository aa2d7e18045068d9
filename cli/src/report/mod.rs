//! `ddtc report`: presents the findings of `ddtc check --mpi` as an HTML page for people and as a
//! JSON document for programs.
//!
//! `ddtc check --mpi` writes each finding into a folder as soon as it is found. [`record`] reads
//! this folder, even if the run was interrupted, and `page` writes `report.html`, which needs no
//! other file. `ddtc check --mpi` calls [`write()`] at its end, and `ddtc report DIR` writes the
//! page and the document again. With `--program`, `ddtc report` prints the C program of a finding
//! as one file, with the parts of the shared `finding.h` that it needs. With `--findings`, it
//! renders the texts of published findings, such as docs/findings, from their records.

mod page;
mod record;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::{Path, PathBuf};

use ddtc::internal::files;

use crate::output::{out, outln};
use record::Record;

/// Arguments of `ddtc report`.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
#[command(after_help = "\
Examples:
  ddtc report findings/mpich-5.0.2
  ddtc report --program docs/findings/mpich-5.0.2/external32.dies.mixed.c > mixed.c
  ddtc report --findings docs/findings

The second example prints a program in which the #include of finding.h is replaced by the parts that it needs, so that `mpicc mixed.c` compiles it without \
other files. Programs in a folder that `ddtc check --mpi` wrote need no other files anyway.

The third example reads the records in each folder of docs/findings, and writes its document, differences.md, and the comment at the head of each program \
again.")]
pub(crate) struct Args {
    /// The folder that `ddtc check --mpi` wrote
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print the C program FILE of a finding together with what it includes, as one file
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Render the texts of published findings: their documents, differences.md, and the comments at
    /// the head of their programs. The records of the findings are in the folders of DIR
    #[arg(long, value_name = "DIR")]
    findings: Option<PathBuf>,
}

/// Runs the subcommand `ddtc report`.
///
/// # Errors
/// As for [`write()`] and [`ddtc_hunt::publish`]; also if a program or its `finding.h` cannot be
/// read, or standard output cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let Some(program) = &args.program {
        return Ok(out!("{}", standalone(program)?)?);
    }
    if let Some(folder) = &args.findings {
        for path in ddtc_hunt::publish(folder)? {
            outln!("{}", path.display())?;
        }
        return Ok(());
    }
    let folder = args.folder.as_deref().ok_or("name a folder, --program or --findings")?;
    let written = write(folder)?;
    written.notes.iter().for_each(|note| eprintln!("warning: {note}"));
    outln!("{} and {}: {} findings", written.html.display(), written.json.display(), written.findings)?;
    Ok(())
}

/// Returns the text of a program, in which the `#include` of `finding.h` is replaced by the parts
/// of `finding.h` that the program needs.
fn standalone(program: &Path) -> Result<String, String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let text = read(program)?;
    // The path of the header is relative to the program's folder, as it is for the compiler.
    let header = ddtc_hunt::shared(&text).map(|path| program.parent().unwrap_or(Path::new("")).join(path));
    Ok(match header {
        Some(header) => ddtc_hunt::alone(&text, &read(&header)?),
        None => text,
    })
}

/// Result of [`write()`].
#[derive(Debug)]
pub(crate) struct Written {
    /// Path of the HTML page.
    pub(crate) html: PathBuf,
    /// Path of the JSON document.
    pub(crate) json: PathBuf,
    /// Number of findings, which is the same in the HTML page and in the JSON document.
    pub(crate) findings: usize,
    /// Parts of the folder that could not be read and were left out. The HTML page lists them, too.
    pub(crate) notes: Vec<String>,
}

/// Writes `report.html` and `report.json` into `folder` from the findings in this folder. After an
/// error each of the two files is either complete or unchanged.
///
/// # Errors
/// If the folder has neither `findings.jsonl` nor `run.json`, or a file cannot be read or written.
pub(crate) fn write(folder: &Path) -> Result<Written, Box<dyn Error>> {
    let record = Record::read(folder)?;
    let (html, json) = (folder.join("report.html"), folder.join("report.json"));
    let mut document = serde_json::to_string_pretty(&record.document())?;
    document.push('\n');
    files::save(&json, document)?;
    files::save(&html, page::write(&record))?;
    Ok(Written { html, json, findings: record.findings.len(), notes: record.notes })
}
