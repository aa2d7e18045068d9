//! `ddtc segments`: lists the contiguous pieces of memory that a datatype consists of.

use std::error::Error;
use std::io::{BufWriter, ErrorKind, Write, stdout};

use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::methods::*;
use ddtc::internal::segments::Segments;

use ddtc_bench::bytes_in_words;

/// Arguments of `ddtc segments`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Each line has the index of a segment, its first packed byte, its displacement and its length in bytes.\n\nExamples:\n  \
    ddtc segments 'vector(3, 1, 2, int)' --count 2\n  \
    ddtc segments WRF_x_vec.L --from 1000 --limit 5"
)]
pub(crate) struct Args {
    /// A datatype in text notation, or the name of an entry of the corpus
    #[arg(value_name = "TYPE")]
    datatype: String,
    /// Number of instances [default: the count of the corpus entry if TYPE names one, otherwise 1]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Index of the first segment to print
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    from: u64,
    /// Maximum number of segments to print
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u64,
}

/// Runs the subcommand `ddtc segments`.
///
/// # Errors
/// - If the type cannot be read, or breaks a rule of one of its constructors.
/// - If the number of packed bytes of `count` instances does not fit in 63 bits, or if a
///   displacement does not fit in 64 bits.
/// - If the index of the first segment is larger than the number of segments.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (t, count) = ddtc::internal::corpus::asked(&args.datatype)?;
    let count = args.count.unwrap_or(count);
    let committed = Engine::new(Config { mode: Mode::Interpret, ..Config::default() }).commit(&t)?;
    let segments = committed.segments(count)?;
    let start = segments.start(args.from)?;
    match print(&segments, args, start, &mut BufWriter::new(stdout().lock())) {
        // A broken pipe is not an error: the process that reads the output, for example `head`, has
        // closed its end of the pipe.
        Err(error)
            if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe) =>
        {
            Ok(())
        }
        printed => printed,
    }
}

fn print(
    segments: &Segments<'_>,
    args: &Args,
    mut start: u64,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    writeln!(out, "{} segments, {}", segments.len(), bytes_in_words(segments.bytes()))?;
    let shown = args.limit.min(segments.len() - args.from);
    let rows = (args.from..args.from + shown).zip(segments.cursor(args.from));
    for (index, segment) in rows {
        let segment = segment?;
        writeln!(out, "{index:>10} {start:>12} {:>12} {:>10}", segment.at, segment.len)?;
        start += segment.len;
    }
    let left = segments.len() - args.from - shown;
    if left > 0 {
        writeln!(out, "       ... {left} more")?;
    }
    out.flush()?;
    Ok(())
}
