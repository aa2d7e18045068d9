//! `ddtc report`: what a hunt found, as one page for people and one document for programs.
//!
//! A hunt (`ddtc check --mpi`) writes findings as it finds them. [`record`] reads its folder, whatever state the hunt left it in, and
//! `page` writes `report.html`, which needs nothing but itself. The hunt calls [`write`] when it ends; the verb makes both files again.

mod page;
mod record;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::{Path, PathBuf};

use ddtc::files;

use record::Record;

/// Arguments of `ddtc report`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ddtc report findings/mpich-5.0.2")]
pub(crate) struct Args {
    /// The folder that `ddtc check --mpi` wrote
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// As [`write`].
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let written = write(&args.folder)?;
    written.notes.iter().for_each(|note| eprintln!("warning: {note}"));
    println!("{} and {}: {} findings", written.html.display(), written.json.display(), written.findings);
    Ok(())
}

/// What [`write`] made.
#[derive(Debug)]
pub(crate) struct Written {
    /// The page.
    pub(crate) html: PathBuf,
    /// The document.
    pub(crate) json: PathBuf,
    /// Number of findings in them.
    pub(crate) findings: usize,
    /// What could not be read, and was left out; the page says it too.
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
