//! Reads the ELF file of a program or library without running it. The contents are not trusted.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache, SymbolKind};

/// Properties of a file that decide whether a library can be loaded into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elf {
    pub(crate) bits: u32,
    pub(crate) architecture: Architecture,
    /// Path of the program's dynamic loader. Libraries and statically linked programs have none.
    pub(crate) loader: Option<String>,
    /// Sonames of the libraries that the file needs.
    pub(crate) needed: Vec<String>,
    /// The string that is stored at a certain dynamic symbol; `None` if the file does not have this
    /// symbol. The caller of [`Elf::read`] names the symbol.
    pub(crate) symbol: Option<String>,
}

/// Returns the names of the functions that a program or library exports.
///
/// # Errors
/// As [`Elf::read`].
pub(super) fn functions(path: &Path) -> Result<BTreeSet<String>, String> {
    let cache = ReadCache::new(File::open(path).map_err(|e| e.to_string())?);
    let file = object::File::parse(&cache).map_err(|e| format!("not an ELF file: {e}"))?;
    let defined = file.dynamic_symbols().filter(|s| s.is_definition() && s.kind() == SymbolKind::Text);
    Ok(defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect())
}

impl Elf {
    /// Reads a file. Also reads the string at the dynamic symbol `symbol`, or the first 256 bytes
    /// of the string if it is longer.
    ///
    /// # Errors
    /// If the file cannot be opened or is not an ELF file (for example, if it is a script).
    pub(crate) fn read(path: &Path, symbol: &str) -> Result<Elf, String> {
        let cache = ReadCache::new(File::open(path).map_err(|e| e.to_string())?);
        let file = object::File::parse(&cache).map_err(|e| format!("not an ELF file: {e}"))?;
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let loader = file.section_by_name(".interp").and_then(|s| s.data().ok()).map(text);
        let needed = file.import_libraries().map_err(|e| e.to_string())?;
        let needed = needed.filter_map(Result::ok).map(|library| text(library.name())).collect();
        let place = file.dynamic_symbols().find(|s| s.name() == Ok(symbol)).map(|s| (s.address(), s.size()));
        let symbol = place.and_then(|(address, size)| {
            let mut data =
                file.sections().filter_map(|s| s.data_range(address, size.min(256)).ok().flatten());
            data.next().map(text)
        });
        Ok(Elf {
            bits: if file.is_64() { 64 } else { 32 },
            architecture: file.architecture(),
            loader,
            needed,
            symbol,
        })
    }

    /// Returns why the preload library cannot be loaded into this file, with a remedy, or `None` if
    /// it can be loaded.
    pub(crate) fn unfit(&self) -> Option<(String, &'static str)> {
        let ours = if cfg!(target_arch = "x86_64") { Architecture::X86_64 } else { Architecture::Aarch64 };
        let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        if self.bits != 64 {
            return Some((
                "is a 32-bit file".into(),
                "ddtc works only with 64-bit programs and libraries: build it for 64 bit",
            ));
        }
        if known && self.architecture != ours {
            let rule = "it was built for another machine: use a build for this machine's processors";
            return Some((format!("is for {:?}", self.architecture), rule));
        }
        let musl = |name: &String| name.contains("ld-musl") || name.contains("libc.musl");
        if self.loader.iter().any(musl) || self.needed.iter().any(musl) {
            let rule = "the preload library needs glibc, as the MPI libraries' packages do: build it on a system with glibc";
            return Some(("is linked with musl".into(), rule));
        }
        None
    }

    /// Returns whether the program is linked statically, so that nothing can be preloaded.
    pub(crate) fn is_static(&self) -> bool {
        self.loader.is_none() && self.needed.is_empty()
    }
}
