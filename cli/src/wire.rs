//! `ddtc wire`: writes the wire form of a datatype, which is its portable representation in bytes,
//! into a file, or reads a datatype from such a file.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::methods::*;

use crate::output::outln;

/// Arguments of `ddtc wire`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc wire indexed_1to8.L                              how large its form is\n  \
    ddtc wire 'vector(3, 2, 4, int)' -o vector.ddtw       writes it\n  \
    ddtc wire --read vector.ddtw                          prints the datatype")]
pub(crate) struct Args {
    /// A datatype in text notation, or the name of an entry of the corpus
    #[arg(value_name = "TYPE", required_unless_present = "read")]
    datatype: Option<String>,
    /// Write the wire form into this file
    #[arg(short, long, value_name = "FILE", conflicts_with = "read")]
    output: Option<PathBuf>,
    /// Read a wire form from this file, and print the datatype
    #[arg(long, value_name = "FILE", conflicts_with = "datatype")]
    read: Option<PathBuf>,
}

/// Runs the subcommand `ddtc wire`.
///
/// # Errors
/// If the type cannot be read or breaks a rule of one of its constructors, if a file cannot be read
/// or written, or if a file contains no wire form.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if let Some(path) = &args.read {
        let named = |e: &dyn Error| format!("{}: {e}", path.display());
        let form = fs::read(path).map_err(|e| named(&e))?;
        outln!("{}", Datatype::from_wire(&form).map_err(|e| named(&e))?)?;
        return Ok(());
    }
    let (t, _) = ddtc::internal::corpus::asked(args.datatype.as_deref().unwrap_or_default())?;
    let form = t.to_wire()?;
    if let Some(path) = &args.output {
        fs::write(path, &form).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let (nodes, arguments) = (t.nodes().count(), t.arguments());
    outln!("{} bytes, {nodes} nodes, {arguments} arguments, hash {:032x}", form.len(), t.structural_hash())?;
    Ok(())
}
