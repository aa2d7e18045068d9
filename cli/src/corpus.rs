//! `ddtc corpus`: lists or prints the entries of the corpus, which are datatypes with names.

use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;

use ddtc::internal::corpus::{self, CorpusEntry};

use ddtc_bench::bytes_in_words;

use crate::output::outln;

/// Arguments of `ddtc corpus`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc corpus                     lists all entries\n  \
    ddtc corpus WRF                 lists those with WRF in their names\n  \
    ddtc corpus --text vec_8B.S     prints an entry as a corpus file\n  \
    ddtc corpus --text --expand indexed_1to8.S   with its random lists written out")]
pub(crate) struct Args {
    /// Show only entries whose names contain one of these texts [default: all entries]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print the entries as a corpus file
    #[arg(long)]
    text: bool,
    /// With --text, print every list element by element, even if the corpus file describes it by a
    /// short form such as @range
    #[arg(long, requires = "text")]
    expand: bool,
    /// Read the entries from this file instead of the corpora that are built into the program
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
}

/// Runs the subcommand `ddtc corpus`.
///
/// # Errors
/// If the corpus file cannot be read, if one of the texts in `args.names` occurs in no entry's
/// name, or if standard output cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut entries = match &args.corpus {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            corpus::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?
        }
        None => corpus::application().into_iter().chain(corpus::corner()).collect(),
    };
    for name in &args.names {
        if !entries.iter().any(|e| e.name.contains(name.as_str())) {
            return Err(format!("no entry has '{name}' in its name: `ddtc corpus` lists all entries").into());
        }
    }
    entries.retain(|e| args.names.is_empty() || args.names.iter().any(|n| e.name.contains(n.as_str())));
    for entry in &entries {
        if args.text { print_text(entry, args.expand)? } else { print_line(entry)? }
    }
    Ok(())
}

fn print_line(entry: &CorpusEntry) -> io::Result<()> {
    let payload = entry.payload().map_or_else(|| "over 2^64 B".into(), bytes_in_words);
    let comment = entry.comment.lines().next().unwrap_or_default();
    outln!("{:26} {payload:>10}  {comment}", entry.name)
}

fn print_text(entry: &CorpusEntry, expand: bool) -> io::Result<()> {
    for line in entry.comment.lines() {
        outln!("# {line}")?;
    }
    let count = if entry.count == 1 { String::new() } else { format!("{} of ", entry.count) };
    if expand {
        outln!("{} = {count}{}", entry.name, entry.datatype)
    } else {
        outln!("{} = {count}{}", entry.name, entry.text)
    }
}
