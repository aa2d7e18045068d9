//! Queries to the dynamic loader: which objects are loaded, at which addresses, and which symbols
//! they define.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

/// Returns the address of a symbol. Searches only the objects after this library in the loader's
/// search order, and takes the first of them that has the symbol. Returns null if none has the
/// symbol.
pub(crate) fn symbol_after_ours(name: &CStr) -> *mut c_void {
    // SAFETY: a pseudo-handle that `dlsym` accepts, and a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Returns the address of a symbol in the global scope, or null if the scope does not define it.
pub(crate) fn global_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a pseudo-handle that `dlsym` accepts, and a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Calls `f` with the loader's record of every loaded object until `f` returns `Break`.
fn for_each_object<F: FnMut(&libc::dl_phdr_info) -> ControlFlow<()>>(mut f: F) {
    unsafe extern "C" fn one<F: FnMut(&libc::dl_phdr_info) -> ControlFlow<()>>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        f: *mut c_void,
    ) -> c_int {
        // SAFETY: `f` is the pointer that the call of `dl_iterate_phdr` below passes, to a closure
        // of type `F` that only this callback uses meanwhile. The loader's record is valid during
        // the callback.
        let (f, info) = unsafe { (&mut *f.cast::<F>(), &*info) };
        c_int::from(f(info).is_break())
    }
    // SAFETY: `one::<F>` expects a pointer to an `F`, which `f` is. The callback runs only during
    // this call, and `f` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(one::<F>), (&raw mut f).cast()) };
}

/// Returns the address ranges of an object's segments in memory.
fn segments_of(info: &libc::dl_phdr_info) -> impl Iterator<Item = Range<u64>> {
    // SAFETY: `dlpi_phdr` of a loader's record points to `dlpi_phnum` headers, which are valid as
    // long as the record is.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        start..start.saturating_add(header.p_memsz)
    })
}

/// Returns the file name of an object, which is empty for the program itself.
fn name(info: &libc::dl_phdr_info) -> String {
    if info.dlpi_name.is_null() {
        return String::new();
    }
    // SAFETY: `dlpi_name` of a loader's record is a C string if it is not null, which was just
    // checked.
    unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
}

/// Returns the file name of the object that contains an address; empty if no object contains it.
/// `dladdr` would return the name too, but also searches all symbols of the object, which takes 25
/// us in an MPI library. So `dladdr` is called only for an address in the program itself, because
/// the loader's record of the program has no file name.
pub(crate) fn object_of(address: *const c_void) -> String {
    let (at, mut found) = (address.addr() as u64, None);
    for_each_object(|info| {
        if segments_of(info).any(|segment| segment.contains(&at)) {
            found = Some(name(info));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    match found {
        Some(name) if name.is_empty() => program(address),
        found => found.unwrap_or_default(),
    }
}

/// Returns the file name of the program, given an address in it; empty if `dladdr` fails.
fn program(address: *const c_void) -> String {
    // SAFETY: `Dl_info` consists of raw pointers, for which all zero bits are valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` accepts any address, and `info` is a `Dl_info` that it may write.
    if unsafe { libc::dladdr(address, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return String::new();
    }
    // SAFETY: `dladdr` has succeeded, so `dli_fname`, which is not null, is a C string that lives
    // as long as the object, which is the program itself.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// Returns the address ranges of all segments of the object that contains an address; no range if
/// no object contains it.
pub(crate) fn segments_around(address: *const c_void) -> Vec<Range<u64>> {
    let (at, mut found) = (address.addr() as u64, Vec::new());
    for_each_object(|info| {
        if segments_of(info).any(|segment| segment.contains(&at)) {
            found.extend(segments_of(info));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

/// Returns the file names of the objects that have a frame among the innermost 64 of the stack,
/// except `ours`, the file of this library. Each is listed once, in order from the innermost frame,
/// so the first one is the object that called this library.
pub(crate) fn callers(ours: &str) -> Vec<String> {
    let mut frames = [std::ptr::null_mut(); 64];
    // SAFETY: the array has room for `frames.len()` addresses.
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
    let mut objects: Vec<String> = Vec::new();
    for &address in frames.iter().take(n.max(0) as usize) {
        let object = object_of(address);
        if object != ours && !object.is_empty() && !objects.contains(&object) {
            objects.push(object);
        }
    }
    objects
}

/// Returns the address ranges of the segments of all loaded objects.
pub(crate) fn segments() -> Vec<Range<u64>> {
    let mut all = Vec::new();
    for_each_object(|info| {
        all.extend(segments_of(info));
        ControlFlow::Continue(())
    });
    all
}

/// Returns the file names of all loaded objects except the program.
pub(crate) fn loaded_objects() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for_each_object(|info| {
        names.extend(Some(name(info)).filter(|name| !name.is_empty()));
        ControlFlow::Continue(())
    });
    names
}

/// Returns the number of objects that were loaded so far, and the number of objects that were
/// unloaded. If an earlier call has returned the same numbers, nothing was loaded or unloaded since
/// then. This test is cheap.
pub(crate) fn loads() -> (u64, u64) {
    let mut counts = (0, 0);
    for_each_object(|info| {
        counts = (info.dlpi_adds, info.dlpi_subs);
        ControlFlow::Break(())
    });
    counts
}

/// Maximum number of pages of an object's code that are hashed if the object has no build ID.
const PAGES: u64 = 64;
const PAGE: u64 = 4096;

/// Returns the build ID in the notes of an object, in hexadecimal digits; `None` if the notes have
/// none. A note consists of the lengths of its name and of its contents, its type, its name and its
/// contents. The last two are padded to a multiple of 4 bytes.
fn build_id(mut notes: &[u8]) -> Option<String> {
    const TYPE: usize = 3;
    loop {
        let number = |at: usize| {
            let bytes = notes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_ne_bytes(bytes)).ok()
        };
        let (name, contents, kind) = (number(0)?, number(4)?, number(8)?);
        let from = 12usize.checked_add(name.next_multiple_of(4))?;
        let found = notes.get(from..from.checked_add(contents)?)?;
        if kind == TYPE && notes.get(12..12 + name) == Some(b"GNU\0") {
            return Some(found.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(from.checked_add(contents.next_multiple_of(4))?..)?;
    }
}

/// Returns the identity of an object: its build ID, or if it has none the length of its file and a
/// hash of [`PAGES`] pages of its code, evenly distributed. The pages are read from the file and
/// not from memory, because an access to memory beyond the end of a file that was truncated after
/// it was loaded raises a signal.
fn identity(info: &libc::dl_phdr_info, file: &str) -> String {
    // SAFETY: `dlpi_phdr` of a loader's record points to `dlpi_phnum` headers, which are valid as
    // long as the record is.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let is_loaded = |h: &libc::Elf64_Phdr| {
        headers.iter().any(|load| {
            let range = load.p_vaddr..load.p_vaddr.saturating_add(load.p_filesz);
            let is_readable = load.p_type == libc::PT_LOAD && load.p_flags & libc::PF_R != 0;
            is_readable && range.contains(&h.p_vaddr) && h.p_vaddr.saturating_add(h.p_filesz) <= range.end
        })
    };
    let bytes = |h: &libc::Elf64_Phdr| {
        let start = std::ptr::with_exposed_provenance::<u8>(info.dlpi_addr.wrapping_add(h.p_vaddr) as usize);
        // SAFETY: `h` is a header that `is_loaded`, as the filter below ensures, so its range lies
        // within a segment that is mapped and may be read. The object stays loaded during the
        // loader's callback, and nobody writes to the notes of a loaded library.
        unsafe { std::slice::from_raw_parts(start, h.p_filesz as usize) }
    };
    let notes = headers.iter().filter(|h| h.p_type == libc::PT_NOTE && is_loaded(h));
    let mut ids = notes.filter_map(|h| build_id(bytes(h)));
    if let Some(id) = ids.next() {
        return id;
    }
    let is_code = |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0;
    let code = headers.iter().find(is_code).map_or((0, 0), |code| (code.p_offset, code.p_filesz));
    // The identity of a file that cannot be read equals that of no other process.
    hash_of_code(Path::new(file), code).unwrap_or_else(|_| format!("unreadable-{}", std::process::id()))
}

/// Returns the length of a file and a hash of [`PAGES`] pages of its code. `code` has the offset
/// and the length of the code in the file.
fn hash_of_code(file: &Path, (offset, length): (u64, u64)) -> io::Result<String> {
    let file = File::open(file)?;
    let (mut hash, mut page) = (Xxh3::new(), [0; PAGE as usize]);
    let pages = length / PAGE;
    let taken = pages.min(PAGES);
    for i in 0..taken {
        file.read_exact_at(&mut page, offset + i * pages / taken * PAGE)?;
        hash.update(&page);
    }
    Ok(format!("{}-{:016x}", file.metadata()?.len(), hash.digest()))
}

/// Returns the names, without folders, and the identities of the loaded objects whose files are
/// wanted, in alphabetical order.
pub(crate) fn identities(is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for_each_object(|info| {
        let file = name(info);
        if is_wanted(&file) {
            let last = file.rsplit('/').next().unwrap_or(&file);
            found.push(format!("{last}={}", identity(info, &file)));
        }
        ControlFlow::Continue(())
    });
    found.sort();
    found.dedup();
    found
}

/// An open handle of a loaded object or of the global scope, closed on drop. While the handle is
/// open, the object stays loaded even if the program closes it. Therefore every handle is dropped
/// soon after it was opened, unless [`Opened::keep`] keeps the object loaded on purpose.
pub(crate) struct Opened(*mut c_void);

impl Opened {
    /// Opens a loaded object by its file name; `None` if it is not loaded. Loads nothing.
    pub(crate) fn loaded(object: &str) -> Option<Opened> {
        let name = CString::new(object).ok()?;
        // SAFETY: `name` is a C string. With `RTLD_NOLOAD` nothing is loaded, so no constructor
        // runs.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then(|| Opened(handle))
    }

    /// Opens the program's global scope. If a symbol were looked up by `RTLD_DEFAULT` instead, the
    /// loader would record that this library depends on the object that defines the symbol. Then
    /// the object could never be unloaded, because this library is never unloaded. A look-up by the
    /// handle of the global scope has no such effect.
    pub(crate) fn global() -> Option<Opened> {
        // SAFETY: a null name means the program itself, which is loaded, so no constructor runs.
        let handle = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
        (!handle.is_null()).then(|| Opened(handle))
    }

    /// Returns the address of a symbol that the object or one of its dependencies defines, or null.
    pub(crate) fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is from `dlopen` and is closed only when `self` is dropped; `name` is
        // a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// Returns the address of a function that the object itself defines, not one of its
    /// dependencies; null if the object does not define the function. `object` must be the file
    /// name of the object.
    pub(crate) fn function(&self, object: &str, name: &CStr) -> *mut c_void {
        let found = self.symbol(name);
        if !found.is_null() && object_of(found) == object { found } else { std::ptr::null_mut() }
    }

    /// Returns the handle and never closes it, so the object stays loaded for good. Used for a GPU
    /// runtime, because ddtc calls one of the runtime's functions from now on.
    pub(crate) fn keep(self) -> *mut c_void {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the handle is from `dlopen`, and nothing else has or uses it after this drop.
        unsafe { libc::dlclose(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_what_lies_in_them() {
        let ours = object_of(object_of as *const c_void);
        let libc = object_of(global_symbol(c"dlsym"));
        assert!(
            libc.contains("libc") && loaded_objects().contains(&libc) && !ours.is_empty() && ours != libc
        );
        // Allocated memory lies in no object.
        let allocated = Box::new(0u64);
        assert_eq!(object_of((&raw const *allocated).cast()), "");
        let within = |address: u64| segments().iter().any(|segment| segment.contains(&address));
        assert!(within((object_of as *const c_void).addr() as u64));
        assert!(!within((&raw const *allocated).addr() as u64));
        assert!(loads().0 > 0);
        let around = segments_around(object_of as *const c_void);
        assert!(around.iter().any(|s| s.contains(&((object_of as *const c_void).addr() as u64))));
        assert!(segments_around(std::ptr::null()).is_empty());
    }

    #[test]
    fn objects_have_identities() {
        let libc = object_of(global_symbol(c"dlsym"));
        let found = identities(|file| file == libc);
        let (name, id) = found[0].split_once('=').unwrap();
        assert!(found.len() == 1 && libc.ends_with(name) && !id.is_empty(), "{found:?}");
        let note = |name: &[u8], kind: u8, contents: &[u8]| {
            let mut bytes = vec![name.len() as u8, 0, 0, 0, contents.len() as u8, 0, 0, 0, kind, 0, 0, 0];
            for part in [name, contents] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes =
            [note(b"stapsdt\0", 3, b"abcdef"), note(b"GNU\0", 1, b"1"), note(b"GNU\0", 3, b"\x0a\xff\x01")];
        assert_eq!(build_id(&notes.concat()).as_deref(), Some("0aff01"));
        assert_eq!(build_id(&notes[..2].concat()), None);
        for end in 0..notes.concat().len() - 1 {
            assert_eq!(build_id(&notes.concat()[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_its_code_has_no_hash() {
        let folder = ddtc::internal::files::temporary_folder("ddtc-loader").unwrap();
        let file = folder.join("library");
        let write = |bytes: &[u8]| std::fs::write(&file, bytes).unwrap();
        let code = (PAGE, 100 * PAGE);
        let mut bytes = vec![7; 101 * PAGE as usize];
        write(&bytes);
        let whole = hash_of_code(&file, code).unwrap();
        assert!(whole.starts_with(&format!("{}-", 101 * PAGE)), "{whole}");
        bytes[PAGE as usize] = 8;
        write(&bytes);
        assert_ne!(hash_of_code(&file, code).unwrap(), whole);
        write(&bytes[..90 * PAGE as usize]);
        assert!(hash_of_code(&file, code).is_err() && hash_of_code(&folder.join("none"), code).is_err());
    }
}
