//! Detection of loaded objects that may complete requests, or end epochs of windows, by calls that
//! ddtc does not see.
//!
//! The program starts operations by functions that ddtc wraps, and most calls that complete
//! operations are wrapped too. ddtc does not see the calls of an object that uses the MPI library's
//! functions by their `PMPI_` names, or that calls a Fortran binding which uses them. A few
//! functions that ddtc does not wrap complete requests as well, or reveal that a request is
//! complete (`ddtc_hosts::mpi_functions`).
//!
//! An object has a relocation with the name of every function of another object that it calls,
//! because the loader resolves calls by these relocations. So the relocations in the dynamic
//! section of an object show which functions it may call. A function that is found by `dlsym` at
//! run time has no relocation and is not noticed.

use std::collections::HashSet;
use std::ffi::{CStr, c_int, c_void};

use ddtc::internal::process::{Lazy, Mutex};
use ddtc_hosts::mpi_functions::touches_requests_unseen;

use crate::loader::{Opened, object_of};
use crate::slow_path::{BINDING, BYPASS, EPOCHS, FORTRAN, unwatch, watch};

/// Names, without `PMPI_`, of the functions that complete operations on windows.
const ENDING: [&str; 9] = [
    "Win_fence",
    "Win_flush",
    "Win_flush_local",
    "Win_flush_all",
    "Win_flush_local_all",
    "Win_unlock",
    "Win_unlock_all",
    "Win_complete",
    "Win_free",
];

/// Symbols of `MPI_WAIT` and `PMPI_WAIT` as Fortran compilers spell them. An object that defines
/// one of them is a Fortran binding. ddtc exports none of these symbols.
const WAITS: [&CStr; 6] =
    [c"pmpi_wait_", c"pmpi_wait", c"pmpi_wait__", c"PMPI_WAIT", c"mpi_wait_f08_", c"mpi_wait_"];

/// Objects that were examined, by their file names. After any object was unloaded, all objects are
/// examined again, because an object that is loaded later may have the file name of the unloaded
/// object.
static SEEN: Lazy<Mutex<Seen>> = Lazy::new(Mutex::default);
/// Loaded Fortran bindings of MPICH that were not tested yet, so it is not known whether their
/// calls reach ddtc's wrappers.
static UNPROVEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Reason why nonblocking operations are not converted: the first object that was found to complete
/// requests unseen, and the function that it refers to.
static BYPASS_REASON: Mutex<Option<String>> = Mutex::new(None);

#[derive(Default)]
struct Seen {
    unloads: u64,
    files: HashSet<String>,
}

/// Examines the objects in `objects` that were not examined before, and the program itself, whose
/// name is empty. `unloads`: number of objects that the process had unloaded when `objects` was
/// listed.
pub(crate) fn look(objects: &[String], unloads: u64) {
    let unseen: HashSet<String> = {
        let mut seen = SEEN.lock();
        if seen.unloads < unloads {
            *seen = Seen { unloads, files: HashSet::new() };
        }
        let known = |object: &str| seen.unloads == unloads && seen.files.contains(object);
        let with_program = objects.iter().map(String::as_str).chain([""]);
        with_program.filter(|object| !known(object)).map(str::to_owned).collect()
    };
    if unseen.is_empty() {
        return;
    }
    let ours = object_of(look as *const c_void);
    let mut search =
        Search { unseen: &unseen, ours: &ours, found: None, ends: false, speaking: HashSet::new() };
    // SAFETY: `examine` expects a pointer to a `Search`. `search` is one, and outlives this call.
    // The callback runs only during this call.
    unsafe { libc::dl_iterate_phdr(Some(examine), (&raw mut search).cast()) };
    let Search { found, ends, speaking, .. } = search;
    for object in &unseen {
        let file = object.rsplit('/').next().unwrap_or("");
        // An object is a Fortran binding only if it refers to a function of MPI or has "mpi" in its
        // file name. Other objects are skipped, because a look-up of their functions by the loader
        // takes some microseconds.
        let may_be = speaking.contains(object) || speaks(file.as_bytes());
        if *object == ours || object.is_empty() || !may_be || !is_binding(object) {
            continue;
        }
        watch(FORTRAN);
        if is_mpich_binding(file) {
            // MPICH has one library for all its Fortran bindings. Whether the calls of this library
            // reach ddtc's wrappers is found out later by test calls of its functions
            // (`crate::bindings`).
            let mut unproven = UNPROVEN.lock();
            unproven.push(object.clone());
            watch(BINDING);
        } else {
            bypass(format!("{object} has a Fortran MPI_WAIT"));
        }
    }
    if let Some(found) = found {
        bypass(found);
    }
    if ends {
        watch(EPOCHS);
    }
    let mut seen = SEEN.lock();
    if seen.unloads == unloads {
        seen.files.extend(unseen);
    }
}

/// Ends the conversion of nonblocking operations. If this is the first call, keeps the reason for
/// the report.
pub(crate) fn bypass(reason: String) {
    BYPASS_REASON.lock().get_or_insert(reason);
    watch(BYPASS);
}

/// Returns the reason why nonblocking operations are not converted; `None` if they are.
pub(crate) fn bypass_reason() -> Option<String> {
    BYPASS_REASON.lock().clone()
}

/// Returns true if a file name is that of the Fortran binding of MPICH or of a library derived from
/// MPICH. Debian and Ubuntu call the binding `libmpichfort`.
fn is_mpich_binding(file: &str) -> bool {
    file.starts_with("libmpifort") || file.starts_with("libmpichfort")
}

/// Returns true if an object defines a Fortran `MPI_WAIT` or `PMPI_WAIT`.
fn is_binding(object: &str) -> bool {
    let opened = Opened::loaded(object);
    opened.is_some_and(|opened| WAITS.iter().any(|name| !opened.function(object, name).is_null()))
}

/// Returns the loaded Fortran bindings of MPICH that were not tested yet.
pub(crate) fn unproven() -> Vec<String> {
    UNPROVEN.lock().clone()
}

/// Records that these bindings were tested, and that all their calls reach ddtc.
pub(crate) fn tried(bindings: &[String]) {
    let mut left = UNPROVEN.lock();
    left.retain(|binding| !bindings.contains(binding));
    if left.is_empty() {
        unwatch(BINDING);
    }
}

struct Search<'a> {
    /// Names of the objects to examine.
    unseen: &'a HashSet<String>,
    /// File of ddtc's preload library.
    ours: &'a str,
    /// Sentence that names the first object that may complete requests unseen, and the function by
    /// which it may complete them; `None` if no such object was found.
    found: Option<String>,
    /// True if an examined object may end epochs of windows unseen.
    ends: bool,
    /// Objects that refer to a function of MPI.
    speaking: HashSet<String>,
}

unsafe extern "C" fn examine(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `search` is the pointer that `look` gave to `dl_iterate_phdr`, to a `Search` that
    // only this callback uses meanwhile. The loader's record `info`, its name (a C string, if not
    // null) and its `dlpi_phnum` headers are valid during the callback.
    let (search, object) = unsafe {
        let name = (*info).dlpi_name;
        let name = if name.is_null() { "".into() } else { CStr::from_ptr(name).to_string_lossy() };
        if !(*search.cast::<Search<'_>>()).unseen.contains(&*name) {
            return 0;
        }
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
        (&mut *search.cast::<Search<'_>>(), Object { base: (*info).dlpi_addr, headers, name })
    };
    if object.name == search.ours {
        return 0;
    }
    let binding = object.name.rsplit('/').next().is_some_and(is_mpich_binding);
    let Some(dynamic) = object.dynamic() else { return 0 };
    let mut speaking = false;
    for name in object.names(&dynamic).filter(|name| speaks(name)) {
        speaking = true;
        if search.found.is_none() && completes(name, binding) {
            let file = if object.name.is_empty() { "the program" } else { &object.name };
            search.found = Some(format!("{file} refers to {}", String::from_utf8_lossy(name)));
        }
        search.ends |= !binding && ends(name);
    }
    if speaking {
        search.speaking.insert(object.name.into_owned());
    }
    0
}

/// Returns true if a name contains "mpi" in upper or lower case, as the names of all MPI functions
/// and MPI libraries do.
fn speaks(name: &[u8]) -> bool {
    name.windows(3).any(|part| part.eq_ignore_ascii_case(b"mpi"))
}

/// Returns true if an object that refers to a function of this name may complete operations on a
/// window by calling the function, without ddtc seeing the call.
fn ends(name: &[u8]) -> bool {
    name.strip_prefix(b"PMPI_").is_some_and(|name| ENDING.iter().any(|ending| ending.as_bytes() == name))
}

/// Returns true if an object that refers to a function of this name may complete requests by
/// calling the function, or find out that requests are complete, without ddtc seeing the call.
/// `binding`: the object is MPICH's Fortran binding. Then the result is always false, because the
/// binding is tested by calls of its functions (`crate::bindings`).
fn completes(name: &[u8], binding: bool) -> bool {
    if binding {
        return false;
    }
    if std::str::from_utf8(name).is_ok_and(touches_requests_unseen) {
        return true;
    }
    // The `mpi_f08` binding of MPICH and its derivatives starts requests by `MPI_` names and
    // completes them by `PMPI_` names. So an object that refers to any function of this binding may
    // complete requests unseen.
    let f08 = name.windows(4).position(|part| part.eq_ignore_ascii_case(b"_f08"));
    f08.is_some_and(|end| name[..end].windows(3).any(|part| part.eq_ignore_ascii_case(b"mpi")))
}

/// A loaded object, as `dl_iterate_phdr` describes it.
struct Object<'a> {
    base: u64,
    headers: &'a [libc::Elf64_Phdr],
    name: std::borrow::Cow<'a, str>,
}

/// Addresses and sizes of the tables to which an object's dynamic section refers.
#[derive(Default)]
struct Dynamic {
    symbols: u64,
    strings: u64,
    strings_bytes: u64,
    /// Address and size in bytes of the two relocation tables, `DT_RELA` and `DT_JMPREL`.
    relocations: [(u64, u64); 2],
    /// Number of relative relocations at the beginning of the `DT_RELA` table (`DT_RELACOUNT`).
    /// Relative relocations name no symbol, and nearly all entries of that table are relative.
    nameless: u64,
}

/// Tags of entries in the dynamic section, and sizes of relocations and symbols in bytes (System V
/// ABI, chapter 5).
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_JMPREL: u64 = 23;
const DT_RELACOUNT: u64 = 0x6fff_fff9;
const RELOCATION_BYTES: u64 = 24;
const SYMBOL_BYTES: u64 = 24;
/// Smallest page size of the supported architectures, in bytes.
const PAGE: u64 = 4096;

impl Object<'_> {
    /// Returns the `bytes` bytes of the object at address `at`; `None` unless they all lie in one
    /// readable segment of the object.
    fn bytes(&self, at: u64, bytes: u64) -> Option<&[u8]> {
        let end = at.checked_add(bytes)?;
        let inside = self.headers.iter().any(|header| {
            let first = self.base.wrapping_add(header.p_vaddr);
            let readable = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0;
            readable && at >= first && first.checked_add(header.p_memsz).is_some_and(|last| end <= last)
        });
        // SAFETY: the range is inside a `PT_LOAD` segment with `PF_R`, as just checked. The loader
        // keeps the segment mapped and readable while its record of the object is valid, which is
        // as long as `self`. Nothing writes the bytes meanwhile: only tables for the loader are
        // read here, and these are not written after the object was relocated.
        inside.then(|| unsafe { std::slice::from_raw_parts(at as *const u8, bytes as usize) })
    }

    /// Returns what [`Object::bytes`] returns, after one system call has read all pages of the
    /// range into memory. Most of these pages were not read from the object's file before. Without
    /// the system call, each of them would cause a page fault of its own.
    fn table(&self, at: u64, bytes: u64) -> Option<&[u8]> {
        let table = self.bytes(at, bytes)?;
        let before = at % PAGE;
        // SAFETY: the pages belong to a mapped segment, since `bytes` has returned the range. The
        // advice only makes the kernel read them in, and changes nothing that a program can
        // observe. Kernels before 5.14 refuse it, and then the pages are read when they are first
        // touched.
        unsafe {
            libc::madvise((at - before) as *mut c_void, (bytes + before) as usize, libc::MADV_POPULATE_READ)
        };
        Some(table)
    }

    fn word(&self, at: u64) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(at, 8)?.try_into().ok()?))
    }

    fn dynamic(&self) -> Option<Dynamic> {
        let header = self.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let (start, mut dynamic) = (self.base.wrapping_add(header.p_vaddr), Dynamic::default());
        for entry in 0..header.p_memsz / 16 {
            let (tag, value) = (self.word(start + 16 * entry)?, self.word(start + 16 * entry + 8)?);
            // Some loaders replace the value by an absolute address; others leave it relative to
            // the base of the object.
            let address = if value < self.base { value.wrapping_add(self.base) } else { value };
            match tag {
                0 => break,
                DT_SYMTAB => dynamic.symbols = address,
                DT_STRTAB => dynamic.strings = address,
                DT_STRSZ => dynamic.strings_bytes = value,
                DT_RELA => dynamic.relocations[0].0 = address,
                DT_RELASZ => dynamic.relocations[0].1 = value,
                DT_JMPREL => dynamic.relocations[1].0 = address,
                DT_PLTRELSZ => dynamic.relocations[1].1 = value,
                DT_RELACOUNT => dynamic.nameless = value,
                _ => {}
            }
        }
        let (at, bytes) = &mut dynamic.relocations[0];
        let skipped = dynamic.nameless.saturating_mul(RELOCATION_BYTES).min(*bytes);
        (*at, *bytes) = (at.wrapping_add(skipped), *bytes - skipped);
        Some(dynamic)
    }

    /// Returns the names of the symbols that the object's relocations refer to and that the object
    /// does not define itself.
    fn names<'a>(&'a self, dynamic: &'a Dynamic) -> impl Iterator<Item = &'a [u8]> {
        let strings = self.table(dynamic.strings, dynamic.strings_bytes).unwrap_or(&[]);
        // The number of symbols is stored nowhere. Usually the string table follows the symbol
        // table, so all symbols up to the strings are taken at once, with one check that they are
        // mapped. If that check fails, each symbol is checked separately below.
        let symbols_bytes = dynamic.strings.saturating_sub(dynamic.symbols);
        let all = self.table(dynamic.symbols, symbols_bytes).unwrap_or(&[]);
        let tables = dynamic.relocations.iter().filter_map(|&(at, bytes)| self.table(at, bytes));
        let entries = tables.flat_map(|table| table.chunks_exact(RELOCATION_BYTES as usize));
        let symbols = entries.filter_map(|entry| {
            // The upper half of `r_info` is the index of the symbol; 0 means no symbol.
            let symbol = u32::from_ne_bytes(entry[12..16].try_into().ok()?);
            (symbol != 0).then_some(u64::from(symbol))
        });
        symbols.filter_map(move |symbol| {
            let (start, bytes) = (symbol * SYMBOL_BYTES, SYMBOL_BYTES as usize);
            let entry = match all.get(start as usize..).and_then(|rest| rest.get(..bytes)) {
                Some(entry) => entry,
                None => self.bytes(dynamic.symbols.checked_add(start)?, SYMBOL_BYTES)?,
            };
            let (name, section) = (&entry[..4], &entry[6..8]);
            if section != [0, 0] {
                return None;
            }
            let name = strings.get(u32::from_ne_bytes(name.try_into().ok()?) as usize..)?;
            name.split(|&byte| byte == 0).next()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_complete_unseen() {
        for name in [
            "PMPI_Wait",
            "PMPI_Request_get_status_some",
            "MPIX_Request_is_complete",
            "mpi_wait_f08_",
            "mpi_isend_f08ts_",
            "MPI_WAIT_F08",
            "pmpir_wait_f08_",
        ] {
            assert!(completes(name.as_bytes(), false), "{name}");
            assert!(!completes(name.as_bytes(), true), "{name}");
        }
        for name in ["PMPI_Wait", "mpi_isend_f08ts_", "MPI_WAIT_F08", "libmpifort.so.12", "ompi_mpifh_wait_f"]
        {
            assert!(speaks(name.as_bytes()), "{name}");
        }
        assert!(!speaks(b"dlsym") && !speaks(b"libucp.so.0"));
        for name in [
            "MPI_Wait",
            "PMPI_Waiting",
            "PMPI_Isend",
            "PMPI_Type_commit",
            "mpi_wait_",
            "pmpi_wait_",
            "wait_f08_",
            "_f08",
            "mp_f08",
        ] {
            assert!(!completes(name.as_bytes(), false), "{name}");
        }
    }

    #[test]
    fn names_that_complete_operations_on_windows_unseen() {
        for name in ["PMPI_Win_fence", "PMPI_Win_flush_local_all", "PMPI_Win_free"] {
            assert!(ends(name.as_bytes()), "{name}");
        }
        for name in ["MPI_Win_fence", "PMPI_Win_create", "PMPI_Win_flush_locally", "PMPI_Wait"] {
            assert!(!ends(name.as_bytes()), "{name}");
        }
    }

    unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _size: usize, all: *mut c_void) -> c_int {
        // SAFETY: `all` is the pointer to the vector that the test below passes; the loader's
        // record and its `dlpi_phnum` headers are valid during the callback.
        let (all, object) = unsafe {
            let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
            (&mut *all.cast::<Vec<String>>(), Object { base: (*info).dlpi_addr, headers, name: "".into() })
        };
        if let Some(dynamic) = object.dynamic() {
            all.extend(object.names(&dynamic).map(|name| String::from_utf8_lossy(name).into_owned()));
        }
        0
    }

    /// The test program calls `dl_iterate_phdr` and `dlsym` of the C library, so it refers to them.
    #[test]
    fn references_of_this_process_are_read() {
        let mut all: Vec<String> = Vec::new();
        // SAFETY: `collect` expects a pointer to a vector of strings. `all` is one, and outlives
        // this call. The callback runs only during this call.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut all).cast()) };
        for name in ["dl_iterate_phdr", "dlsym"] {
            assert!(all.iter().any(|known| known == name), "{name} of {}", all.len());
        }
    }

    #[test]
    fn tables_outside_of_an_object_are_not_read() {
        // SAFETY: `Elf64_Phdr` has only integer fields, for which all zero bits are valid.
        let mut header: libc::Elf64_Phdr = unsafe { std::mem::zeroed() };
        let memory = [7u64; 8];
        (header.p_type, header.p_flags, header.p_memsz) = (libc::PT_LOAD, libc::PF_R, 64);
        let base = memory.as_ptr().addr() as u64;
        let headers = [header];
        let object = Object { base, headers: &headers, name: "".into() };
        assert_eq!(object.word(base + 56), Some(7));
        for at in [base - 1, base + 57, base + 64, u64::MAX - 3] {
            assert_eq!(object.word(at), None);
        }
        let dynamic = Dynamic {
            symbols: 8,
            strings: 16,
            strings_bytes: 1 << 40,
            relocations: [(u64::MAX, 24), (base, 1 << 20)],
            nameless: 0,
        };
        assert_eq!(object.names(&dynamic).count(), 0);
        assert!(object.dynamic().is_none());
    }
}
