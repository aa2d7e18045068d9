//! `ddtc report`: what a hunt found, as one page for people and one document for programs.
//!
//! A hunt (`ddtc check --mpi`) writes findings as it finds them. [`record`] reads its folder, whatever state the hunt left it in, and
//! `page` writes `report.html`, which needs nothing but itself. The hunt calls [`write`] when it ends; the verb makes both files again.
//! Of a published program, which shares `finding.h` with others, the verb prints one that stands alone.

mod page;
mod record;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ddtc::internal::files;

use record::Record;

/// Arguments of `ddtc report`.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
#[command(after_help = "\
Examples:
  ddtc report findings/mpich-5.0.2
  ddtc report --program docs/findings/mpich-5.0.2/external32.dies.mixed.c > mixed.c

The second prints the program with what it needs of finding.h in place of its #include: one file that `mpicc mixed.c` compiles, with nothing beside it. \
Programs in a folder that `ddtc check --mpi` wrote stand alone already.")]
pub(crate) struct Args {
    /// The folder that `ddtc check --mpi` wrote
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print this C program of a finding standing alone
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// As [`write`]; a program or its `finding.h` that cannot be read; standard output.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let Some(program) = &args.program {
        return Ok(std::io::stdout().write_all(standalone(program)?.as_bytes())?);
    }
    let folder = args.folder.as_deref().ok_or("name a folder or --program")?;
    let written = write(folder)?;
    written.notes.iter().for_each(|note| eprintln!("warning: {note}"));
    println!("{} and {}: {} findings", written.html.display(), written.json.display(), written.findings);
    Ok(())
}

/// A program with what it needs of the `finding.h` that it includes.
fn standalone(program: &Path) -> Result<String, String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let text = read(program)?;
    // As the compiler finds it: from the program's own folder.
    let header = ddtc_hunt::shared(&text).map(|path| program.parent().unwrap_or(Path::new("")).join(path));
    Ok(match header {
        Some(header) => ddtc_hunt::alone(&text, &read(&header)?),
        None => text,
    })
}

/// Result of [`write`].
#[derive(Debug)]
pub(crate) struct Written {
    /// The page.
    pub(crate) html: PathBuf,
    /// The document.
    pub(crate) json: PathBuf,
    /// Number of findings in them.
    pub(crate) findings: usize,
    /// Parts that could not be read, and were left out; the page names them too.
    pub(crate) notes: Vec<String>,
}

/// Makes `report.html` and `report.json` in `folder` of what is in it, each whole or not at all.
///
/// # Errors
/// A folder that has neither `findings.jsonl` nor `run.json`; a file that cannot be read or written.
pub(crate) fn write(folder: &Path) -> Result<Written, Box<dyn Error>> {
    let record = Record::read(folder)?;
    let (html, json) = (folder.join("report.html"), folder.join("report.json"));
    let mut document = serde_json::to_string_pretty(&record.document())?;
    document.push('\n');
    files::save(&json, document)?;
    files::save(&html, page::write(&record))?;
    Ok(Written { html, json, findings: record.findings.len(), notes: record.notes })
}
