//! Where the preload library is.

use std::error::Error;
use std::path::{Path, PathBuf};

/// The preload library's file name.
pub const NAME: &str = "libddtc_preload.so";

/// Returns the library: as given, next to this program, or in the library folder beside its folder.
///
/// # Errors
/// Where it was looked for, and how it comes there; a path that the loader cannot be told.
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
