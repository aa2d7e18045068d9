//! Search for the file of the preload library.

use std::error::Error;
use std::path::{Path, PathBuf};

/// File name of the preload library.
pub const NAME: &str = "libddtc_preload.so";

/// Returns the canonical path of the preload library. If `given` is `None`, searches the folder of
/// this program, then the folder `../lib` relative to it.
///
/// # Errors
/// The library is not found; the message names the places that were searched, and how to install
/// the library there. Or its path contains a blank, tab, line feed or colon, at which the loader
/// would split `LD_PRELOAD`.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Box<dyn Error>> {
    let candidates = match given {
        Some(file) => vec![file.to_path_buf()],
        None => {
            let here = std::env::current_exe()?.canonicalize()?;
            let folder = here.parent().unwrap_or(Path::new("/"));
            vec![folder.join(NAME), folder.join("../lib").join(NAME)]
        }
    };
    let found = candidates.iter().find(|c| c.is_file());
    let file = found.map(|file| file.canonicalize()).transpose()?.ok_or_else(|| {
        let tried: Vec<String> = candidates.iter().map(|c| c.display().to_string()).collect();
        let help = "packaging/install.sh and the Python package put it there; from the sources `cargo build --release -p ddtc-preload` does; \
                    or name it with --library";
        format!("no preload library at {}: {help}", tried.join(" or "))
    })?;
    if file.to_string_lossy().contains([' ', ':', '\t', '\n']) {
        let rule = "the loader splits LD_PRELOAD at blanks and colons: move it to a folder without them";
        return Err(format!("{}: {rule}", file.display()).into());
    }
    Ok(file)
}
