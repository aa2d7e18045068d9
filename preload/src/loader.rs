//! The objects that are loaded: which they are, where they lie, and what they have.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::{ControlFlow, Range};

/// Returns what the objects after this library have of a name, or null.
pub(crate) fn symbol_after_ours(name: &CStr) -> *mut c_void {
    // SAFETY: a scope of the loader's own, and a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Returns what the global scope has of a name, or null.
pub(crate) fn global_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a scope of the loader's own, and a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Does something with the loader's record of every loaded object, while that says so.
fn each<F: FnMut(&libc::dl_phdr_info) -> ControlFlow<()>>(mut f: F) {
    unsafe extern "C" fn one<F: FnMut(&libc::dl_phdr_info) -> ControlFlow<()>>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        f: *mut c_void,
    ) -> c_int {
        // SAFETY: `f` is the closure of the call below, and the loader's record is valid during the call.
        let (f, info) = unsafe { (&mut *f.cast::<F>(), &*info) };
        c_int::from(f(info).is_break())
    }
    // SAFETY: the callback takes the closure, and is called only during this call.
    unsafe { libc::dl_iterate_phdr(Some(one::<F>), (&raw mut f).cast()) };
}

/// Where the segments of an object begin and end in memory.
fn segments_of(info: &libc::dl_phdr_info) -> impl Iterator<Item = Range<u64>> {
    // SAFETY: the loader's record, whose headers are as many as it says.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        start..start.saturating_add(header.p_memsz)
    })
}

/// The file name of an object; nothing of the program itself.
fn name(info: &libc::dl_phdr_info) -> String {
    if info.dlpi_name.is_null() {
        return String::new();
    }
    // SAFETY: a C string of the loader's record.
    unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
}

/// Returns the file of the object that holds an address, or nothing. `dladdr` looks at every symbol of the object for it, which takes it 25 us in an MPI library: it
/// is asked for the program's own name alone.
pub(crate) fn object_of(address: *const c_void) -> String {
    let (at, mut found) = (address.addr() as u64, None);
    each(|info| {
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

/// The name of the program, which holds an address.
fn program(address: *const c_void) -> String {
    // SAFETY: all zero is a valid Dl_info, which dladdr fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr takes any address.
    if unsafe { libc::dladdr(address, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return String::new();
    }
    // SAFETY: dladdr gave a C string that lives as long as the object.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// Returns where the segments of the object that holds an address begin and end in memory; none if
/// no object holds it.
pub(crate) fn segments_around(address: *const c_void) -> Vec<Range<u64>> {
    let (at, mut found) = (address.addr() as u64, Vec::new());
    each(|info| {
        if segments_of(info).any(|segment| segment.contains(&at)) {
            found.extend(segments_of(info));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

/// Returns the objects on the stack other than this library, each once, the one that called it
/// first.
pub(crate) fn callers(ours: &str) -> Vec<String> {
    let mut frames = [std::ptr::null_mut(); 64];
    // SAFETY: an array with room for that many addresses.
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

/// Where the segments of all loaded objects begin and end in memory.
pub(crate) fn segments() -> Vec<Range<u64>> {
    let mut all = Vec::new();
    each(|info| {
        all.extend(segments_of(info));
        ControlFlow::Continue(())
    });
    all
}

/// File names of all loaded objects but the program.
pub(crate) fn loaded_objects() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    each(|info| {
        names.extend(Some(name(info)).filter(|name| !name.is_empty()));
        ControlFlow::Continue(())
    });
    names
}

/// Returns how often objects were loaded and unloaded so far: cheap, to notice that one more was.
pub(crate) fn loads() -> (u64, u64) {
    let mut counts = (0, 0);
    each(|info| {
        counts = (info.dlpi_adds, info.dlpi_subs);
        ControlFlow::Break(())
    });
    counts
}

/// A loaded object, held: the program may close it, and then it must go.
pub(crate) struct Opened(*mut c_void);

impl Opened {
    /// Returns a loaded object by its file name, without loading anything.
    pub(crate) fn loaded(object: &str) -> Option<Opened> {
        let name = CString::new(object).ok()?;
        // SAFETY: a C string; RTLD_NOLOAD runs no code of the object.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then(|| Opened(handle))
    }

    /// Returns the program's global scope. A symbol that is found by `RTLD_DEFAULT` would keep its
    /// object loaded, since this library is never unloaded; one that is found here does not.
    pub(crate) fn global() -> Option<Opened> {
        // SAFETY: the program itself, which is loaded.
        let handle = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
        (!handle.is_null()).then(|| Opened(handle))
    }

    /// Returns a function that the object or one that it needs has, or null.
    pub(crate) fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: a handle from dlopen, which is closed only when this is dropped, and a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// Returns a function that the object has itself, or null.
    pub(crate) fn function(&self, object: &str, name: &CStr) -> *mut c_void {
        let found = self.symbol(name);
        if !found.is_null() && object_of(found) == object { found } else { std::ptr::null_mut() }
    }

    /// Never closes it: it is a GPU runtime, whose function is called from now on.
    pub(crate) fn keep(self) -> *mut c_void {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: a handle from dlopen, which nobody has after this.
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
        // Nothing is loaded where memory is allocated.
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
}
