//! `ddtc draw`: draws the memory of a datatype, as SVG or as characters.
//!
//! A [`map::Map`] lists the contiguous pieces of memory that a datatype consists of, and a
//! [`fold::Fold`] arranges memory in rows. For SVG, [`mod@picture`] turns both into a
//! [`scene::Scene`] of shapes, which the module `svg` writes. For a terminal, the module `chars`
//! writes characters directly from the map and the fold.

mod bins;
mod chars;
mod fold;
mod frame;
mod map;
mod marks;
mod picture;
mod scene;
mod svg;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::{Path, PathBuf};

use ddtc::internal::datatype::Datatype;
use ddtc::internal::{corpus, files};

use crate::output::out;
use fold::Fold;
use map::Map;

/// Arguments of `ddtc draw`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    ddtc draw 'vector(8, 2, 8, double)'                       in the terminal\n  \
    ddtc draw 'subarray([8,16], [4,6], [2,3], C, int)' --count 3 -o rows.svg\n  \
    ddtc draw FFT2D_scatter.L -o scatter.svg --dark\n  \
    ddtc draw 'vector(100, 1, 3, int)' --width 48             rows of 48 bytes")]
pub(crate) struct Args {
    /// A datatype in text notation, or the name of an entry of the corpus
    #[arg(value_name = "TYPE")]
    datatype: String,
    /// Number of instances to draw [default: the count of the corpus entry if TYPE names one,
    /// otherwise 1]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Write the picture into this file, whose name must end in .svg
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Number of bytes in a row [default: chosen so that the rows show the structure of the type]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    width: Option<u64>,
    /// Use colours for a dark background [default: follow the preference of the program that shows
    /// the file]
    #[arg(long, requires = "output")]
    dark: bool,
    /// Use only ASCII characters in the terminal [default: only if the locale does not use UTF-8]
    #[arg(long, conflicts_with = "output")]
    ascii: bool,
    /// When to use colours [default: if standard output is a terminal and NO_COLOR is not set]
    #[arg(long, value_name = "WHEN", conflicts_with = "output", visible_alias = "color")]
    colour: Option<When>,
}

/// When to use colours.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Never,
}

/// Returns an error if the name of a file does not end in `.svg`.
fn is_svg(path: &Path) -> Result<(), String> {
    match path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg")) {
        true => Ok(()),
        false => Err(format!("{}: a picture's name must end in .svg", path.display())),
    }
}

/// Runs the subcommand `ddtc draw`.
///
/// # Errors
/// - If the type cannot be read, or breaks a rule of one of its constructors.
/// - If the number of packed bytes of `count` instances does not fit in 63 bits, or if a
///   displacement does not fit in 64 bits.
/// - If the name of the file does not end in `.svg`, or if the file cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    args.output.as_deref().map(is_svg).transpose()?;
    let (t, count) = corpus::asked(&args.datatype)?;
    let count = args.count.unwrap_or(count);
    if let Some(path) = &args.output {
        let ground = args.dark.then_some(true);
        return Ok(files::save(path, document(&t, count, &args.datatype, args.width, ground)?)?);
    }
    let map = Map::new(&t, count)?;
    let screen = console::Term::stdout();
    let size = screen.size_checked().map(|(_, columns)| usize::from(columns)).filter(|_| screen.is_term());
    let requested = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = chars::Terminal {
        columns: size.or(requested).unwrap_or(80).clamp(20, 400),
        ascii: args.ascii || !utf8(),
        colour: match args.colour {
            Some(when) => when == When::Always,
            None => screen.is_term() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        },
    };
    let text = chars::write(&map, &args.datatype, args.width, terminal);
    Ok(out!("{text}")?)
}

/// Writes a picture of `count` instances of `t` with the title `name` into the file `path`. If an
/// error is returned, the file is unchanged.
///
/// # Errors
/// As for [`svg()`]; also if `path` does not end in `.svg`, or if the file cannot be written.
pub(crate) fn picture(path: &Path, t: &Datatype, count: u64, name: &str) -> Result<(), Box<dyn Error>> {
    is_svg(path)?;
    Ok(files::save(path, svg(t, count, name)?)?)
}

/// Returns a picture of `count` instances of `t` as SVG, to be embedded in a page. The style sheet
/// of the SVG applies to the whole page. It defines CSS classes whose names have one or two
/// letters, so the page must use other names.
///
/// # Errors
/// If the number of packed bytes of `count` instances does not fit in 63 bits, or if a displacement
/// does not fit in 64 bits.
pub(crate) fn svg(t: &Datatype, count: u64, name: &str) -> Result<String, Box<dyn Error>> {
    document(t, count, name, None, None)
}

fn document(
    t: &Datatype,
    count: u64,
    name: &str,
    width: Option<u64>,
    dark: Option<bool>,
) -> Result<String, Box<dyn Error>> {
    let map = Map::new(t, count)?;
    let fold = Fold::new(&map, width, picture::LINES);
    Ok(svg::write(&picture::scene(&map, &fold, name), dark))
}

/// Returns whether the locale uses UTF-8. The locale is the value of the first of the variables
/// `LC_ALL`, `LC_CTYPE` and `LANG` that is set and not empty, as in POSIX.
fn utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
