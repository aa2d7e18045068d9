//! A lower bound for the time of short calls: the best C loop, called after the same additional
//! memory reads that a call through a committed type needs.
//!
//! A call through a committed type reads three cache lines that a loop with constants does not
//! read: the record of the type, the flag of the counters, and the entry with the kernel's
//! constants. These reads cost a few cycles. They cost more if a layout fills all ways of the
//! first-level cache, since then each additional line makes a whole set miss. So the best loop is
//! timed after reads of zero to three such lines. The compiled code is timed in turn with it, and
//! both use the same places of the buffers as the other benchmarks.

use std::error::Error;
use std::fmt::Write as _;

use ddtc::internal::corpus::CorpusEntry;
use ddtc::internal::engine::{Config, Engine, Mode};
use ddtc::internal::kind::Direction;
use ddtc::internal::target::Level;

use crate::bytes;
use crate::csource::Style;
use crate::hand::ByName;
use crate::measure::{Effort, geometric_mean};
use crate::native::{HandLoop, Subject};
use crate::places::over_places;
use crate::result::Column;

/// Number of cache lines that a call through a committed type reads in addition to those that a
/// loop with constants reads.
pub(crate) const LINES: usize = 3;

/// Maximum payload in bytes that is measured: about as many bytes as the first-level cache holds if
/// the gaps between the blocks are in it too.
const SHORT: usize = 32 << 10;

/// Styles of C loops with which compiled code is compared: the two styles in which all extents are
/// constants.
const RIVALS: [Style; 2] = [Style::Constant, Style::Memcpy];

/// Measures those of `entries` whose payload has at most [`SHORT`] bytes, prints a table and
/// returns the record.
///
/// # Errors
/// Returns the errors of commits and of loops, or an error if the bytes of a variant differ.
pub(crate) fn run<'e>(
    entries: impl Iterator<Item = &'e CorpusEntry>,
    loops: &mut ByName,
    level: Level,
    quick: bool,
) -> Result<String, Box<dyn Error>> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let mut csv = String::from("layout,direction,payload_bytes,compiled_ns,loop_ns");
    println!(
        "nanoseconds of the best C loop, of the same loop after reads of 1 to {LINES} cache lines, and of compiled code"
    );
    print!("{:22} {:>6} {:>8} {:>8}", "layout", "", "payload", "loop");
    for lines in 1..=LINES {
        print!(" {:>8}", format!("+{lines}"));
        let _ = write!(csv, ",loop_{lines}_lines_ns");
    }
    println!(" {:>8} {:>9} {:>9}", "compiled", "over loop", format!("over +{LINES}"));
    csv.push('\n');
    let (mut over, mut over_called) = (Vec::new(), Vec::new());
    for entry in entries {
        let Some(hand) = loops.remove(&entry.name) else { continue };
        if Subject::fits(entry)?.1 > SHORT {
            continue;
        }
        let mut subject = subject(entry, hand, level)?;
        // The last variant is the reference interpreter. It serves for the check of bytes and is
        // not timed.
        let timed: Vec<usize> = (0..subject.columns().len() - 1).collect();
        let times = over_places(&mut subject, &timed, effort.places, effort);
        for (direction, times) in Direction::BOTH.into_iter().zip(times) {
            let (compiled, rivals) = times.split_first().ok_or("nothing was timed")?;
            // The times of the loops of one style are adjacent: first without additional reads,
            // then after reads of 1 to `LINES` cache lines. The best style is the one whose loop
            // without additional reads is the fastest.
            let best = rivals.chunks(LINES + 1).min_by(|a, b| a[0].middle.total_cmp(&b[0].middle));
            let best = best.ok_or("no loop was timed")?;
            let ratios = [0, LINES].map(|lines| compiled.middle / best[lines].middle);
            print!("{:22} {:>6} {:>8}", entry.name, direction.name(), subject.payload());
            best.iter().chain([compiled]).for_each(|time| print!(" {:>8.2}", time.middle));
            println!(" {:>9.2} {:>9.2}", ratios[0], ratios[1]);
            let _ = write!(csv, "{},{direction},{},{:.2}", entry.name, subject.payload(), compiled.middle);
            best.iter().for_each(|time| _ = write!(csv, ",{:.2}", time.middle));
            csv.push('\n');
            over.push(ratios[0]);
            over_called.push(ratios[1]);
        }
    }
    let means = [over, over_called].map(geometric_mean);
    println!("geometric means: {:.2} of the loop, {:.2} of the loop that is called so", means[0], means[1]);
    Ok(csv)
}

/// Returns the layout of `entry` with all variants, that is, ways to move its bytes, after a check
/// of the bytes. The first variant is compiled code. Then each loop of [`RIVALS`] is a variant by
/// itself, followed by the same loop after reads of 1 to [`LINES`] cache lines. The last variant is
/// the reference interpreter, and all others must move the same bytes.
fn subject(
    entry: &CorpusEntry,
    hand: Vec<(Style, HandLoop)>,
    level: Level,
) -> Result<Subject, Box<dyn Error>> {
    let engine = |mode| Engine::new(Config { mode, level, both_directions: true, ..Config::default() });
    let mut subject = Subject::new(entry)?;
    subject.add_engine(Column::Compiled, &engine(Mode::Commit))?;
    for (style, hand) in hand.into_iter().filter(|(style, _)| RIVALS.contains(style)) {
        let own = subject.columns().len();
        subject.add_loops(style.column(), hand)?;
        (1..=LINES).for_each(|lines| subject.add_called(own, lines));
    }
    subject.add_engine(Column::Interp, &engine(Mode::Off))?;
    bytes::check(&mut subject, Column::Interp)?;
    Ok(subject)
}
