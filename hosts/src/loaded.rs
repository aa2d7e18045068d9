//! An MPI library that this process loads by its file name: its symbols, version, ABI and
//! predefined handles.
//!
//! The ranks that `ddtc doctor` starts and the workers of `ddtc check --mpi` are MPI programs that
//! are linked with no MPI library. They load the library that they are given. The library stays
//! loaded as long as the process lives.
#![allow(unsafe_code)] // Calls functions of the loader and of an MPI library.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};

use crate::abi::queries::{self, AbiVersionFn, VersionFn};
use crate::abi::{Abi, Signs};
use ddtc::internal::datatype::Named;

/// Maximum size of a file that is read as a linker script, in bytes. Linker scripts that name a
/// library have a few lines.
const MAX_SCRIPT: u64 = 4096;

/// Returns the path of the library that a linker script names. A relative path is taken from the
/// folder of the script. Returns `None` if the file is not a linker script that names a library.
fn linker_script_target(path: &Path) -> Option<PathBuf> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_SCRIPT {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(path.parent()?.join(first_input(&text)?))
}

/// Returns the first shared library in the `INPUT` or `GROUP` command of a linker script; `None` if
/// there is none.
fn first_input(script: &str) -> Option<&str> {
    let (_, list) = script.split_once("INPUT").or_else(|| script.split_once("GROUP"))?;
    let (list, _) = list.trim_start().strip_prefix('(')?.split_once(')')?;
    let names = list.split(|c: char| c.is_whitespace() || "(,".contains(c));
    names.into_iter().find(|name| name.contains(".so"))
}

/// An MPI library that is loaded into the global scope and never unloaded.
#[derive(Debug)]
pub struct Loaded {
    /// Handle from `dlopen`, which is never closed.
    scope: *mut c_void,
    file: String,
    /// First line of `MPI_Get_library_version`; `None` if the function is missing or fails.
    version: Option<String>,
}

impl Loaded {
    /// Loads an MPI library into the global scope. The constructors of the library run, but MPI is
    /// not initialized. If the file is a linker script, as `libmpi.so` is in some packages, the
    /// library that the script names is loaded instead.
    ///
    /// # Errors
    /// The loader cannot load the file; the message is that of the loader. Or the path is not
    /// UTF-8, or contains a NUL character.
    pub fn open(path: &Path) -> Result<Loaded, String> {
        let target = linker_script_target(path);
        let path = target.as_deref().unwrap_or(path);
        let file = path.to_str().ok_or("the library's path is not UTF-8")?;
        let name = CString::new(file).map_err(|e| e.to_string())?;
        // SAFETY: `name` is a C string. The constructors of the library run, as they do in every
        // program that is linked with the library.
        let scope = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if scope.is_null() {
            // SAFETY: `dlerror` returns null or a C string that is valid until this thread calls
            // the loader again. The string is copied before that.
            let said = unsafe {
                let text = libc::dlerror();
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            return Err(said.unwrap_or_else(|| "the loader gives no reason".to_owned()));
        }
        let mut library = Loaded { scope, file: file.to_owned(), version: None };
        // SAFETY: a null pointer becomes `None`. Any other pointer is the library's function of
        // this name, whose type the MPI standard fixes (MPI 5.0, 9.1.1).
        let version: Option<VersionFn> =
            unsafe { std::mem::transmute(library.symbol(c"MPI_Get_library_version")) };
        // SAFETY: `f` is `MPI_Get_library_version` of the library, as `version` requires.
        library.version = version.and_then(|f| unsafe { queries::version(f) });
        Ok(library)
    }

    /// Returns the address of a symbol of the library or of one of its dependencies, or null.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: `scope` is a handle from `dlopen` that is never closed, and `name` is a C string.
        unsafe { libc::dlsym(self.scope, name.as_ptr()) }
    }

    /// Returns the address that a program which is linked with the library would use for a symbol;
    /// null if there is none. The address may be in a preloaded library, because the loader
    /// searches preloaded libraries before the MPI library.
    pub fn interposed(&self, name: &CStr) -> *mut c_void {
        // SAFETY: `RTLD_DEFAULT` is a pseudo-handle that `dlsym` accepts, and `name` is a C string.
        let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if global.is_null() { self.symbol(name) } else { global }
    }

    /// Returns the first line of the library's version text.
    ///
    /// # Errors
    /// `MPI_Get_library_version` is missing or fails.
    pub fn version(&self) -> Result<&str, String> {
        self.version.as_deref().ok_or_else(|| "MPI_Get_library_version is missing or fails".to_owned())
    }

    /// Returns the ABI of the library.
    ///
    /// # Errors
    /// The ABI is not a known one, or the library has no version text.
    pub fn abi(&self) -> Result<&'static Abi, String> {
        // SAFETY: a null pointer becomes `None`. Any other pointer is the library's function of
        // this name, whose type the MPI standard fixes (MPI 5.0, 20.1).
        let abi_version: Option<AbiVersionFn> =
            unsafe { std::mem::transmute(self.symbol(c"MPI_Abi_get_version")) };
        Abi::find(&Signs {
            has_ompi_int: !self.symbol(c"ompi_mpi_int").is_null(),
            has_mpir_dup_fn: !self.symbol(c"MPIR_Dup_fn").is_null(),
            // SAFETY: `f` is `MPI_Abi_get_version` of the library, as `abi_version` requires.
            abi_version: abi_version.and_then(|f| unsafe { queries::abi_version(f) }),
            file: &self.file,
            version: self.version()?,
        })
    }

    /// Returns a predefined handle: `constant` if `symbol` is empty, else the address of the
    /// library's object of this name, or 0 if there is no such object.
    pub fn handle(&self, constant: u64, symbol: &str) -> u64 {
        if symbol.is_empty() {
            return constant;
        }
        CString::new(symbol).map_or(0, |name| self.symbol(&name).addr() as u64)
    }

    /// Returns the named types for which the library has a handle, with their handles.
    pub fn named(&self, abi: &Abi) -> Vec<(Named, u64)> {
        let constants = abi.named().map(|(handle, named)| (named, handle));
        let symbols =
            abi.named_symbols().map(|(name, named)| (named, self.handle(0, &format!("ompi_mpi_{name}"))));
        constants.chain(symbols).filter(|&(_, handle)| handle != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_a_linker_script_is_found() {
        assert_eq!(first_input("INPUT(libmpi.so.12)\n"), Some("libmpi.so.12"));
        let script = "/* GNU ld script */\nGROUP ( /lib/libm.so.6 AS_NEEDED ( /lib/libmvec.so.1 ) )\n";
        assert_eq!(first_input(script), Some("/lib/libm.so.6"));
        assert_eq!(first_input("INPUT ( -lmpi, libmpi.so.40 )"), Some("libmpi.so.40"));
        for other in ["", "INPUT", "INPUT(libmpi.so", "INPUT()", "INPUT(-lmpi)", "libmpi.so.12"] {
            assert_eq!(first_input(other), None, "{other}");
        }
    }

    #[test]
    fn a_linker_script_is_followed() {
        let folder = std::env::temp_dir().join(format!("ddtc-script-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // A link to the C library serves as the MPI library of this test. The C library is loaded
        // already, so opening the link loads nothing new.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.split_whitespace().find(|word| word.contains("/libc.so")).expect("the C library");
        std::os::unix::fs::symlink(libc, folder.join("libmpi.so.12")).unwrap();
        let open = |script: &str| {
            std::fs::write(folder.join("libmpi.so"), script).unwrap();
            Loaded::open(&folder.join("libmpi.so")).map(|library| library.file)
        };
        let library = Ok(folder.join("libmpi.so.12").display().to_string());
        assert_eq!(open("INPUT(libmpi.so.12)\n"), library);
        let named = format!("GROUP ( {}/libmpi.so.12 AS_NEEDED ( libother.so.1 ) )", folder.display());
        assert_eq!(open(&named), library);
        assert!(open("INPUT(libmissing.so.12)").unwrap_err().contains("libmissing.so.12"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
