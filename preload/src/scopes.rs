//! Search for functions by name in the dynamic linker's scopes: the scope of the object that has
//! called a wrapper, the global scope, and the scopes of all loaded objects.
//!
//! A search keeps no reference to the objects that it searches. If it did, a library that the
//! program has opened would stay loaded after the program has closed it.

use std::ffi::{CStr, CString, c_void};

use crate::loader::{Opened, callers, loaded_objects, object_of, symbol_after_ours};

/// Returns the first scope in which `name` is found. The scopes are searched in this order: that of
/// the calling object, the global scope, and those of all other loaded objects except ddtc.
pub(crate) fn find_scope(name: &CStr) -> Option<Opened> {
    let ours = own_object();
    let has = |scope: Option<Opened>| scope.filter(|scope| !scope.symbol(name).is_null());
    has(caller(&ours).and_then(|caller| Opened::loaded(&caller))).or_else(|| has(Opened::global())).or_else(
        || {
            let others = loaded_objects();
            others.iter().filter(|object| **object != ours).find_map(|object| has(Opened::loaded(object)))
        },
    )
}

/// Identity of an MPI library: the object that has its `PMPI_Type_commit`, and the address of that
/// function.
#[derive(PartialEq, Eq)]
pub(crate) struct Place {
    /// File of the object.
    pub(crate) object: String,
    /// Address of `PMPI_Type_commit`.
    commit: usize,
}

impl Place {
    /// Returns the identity of the MPI library that is found in a scope.
    pub(crate) fn from_scope(scope: &Opened) -> Place {
        let commit = scope.symbol(c"PMPI_Type_commit");
        Place { object: object_of(commit), commit: commit.addr() }
    }

    /// Returns true if an object with the same file is loaded at the same address. This object may
    /// be another copy of the MPI library, which was loaded after the first copy had been unloaded.
    pub(crate) fn is_loaded(&self) -> bool {
        object_of(std::ptr::without_provenance(self.commit)) == self.object
    }
}

/// Returns the file of the preload library.
fn own_object() -> String {
    object_of(own_object as *const c_void)
}

/// Returns the function `name` of another loaded object than ddtc, or null if no other object has
/// such a function. The objects after ddtc in the dynamic linker's list, which is the order in
/// which symbols are searched, come first. The objects before ddtc come last, because they may be
/// tools whose functions call ddtc's functions.
pub(crate) fn after_ours(name: &str) -> *mut c_void {
    let Ok(name) = CString::new(name) else { return std::ptr::null_mut() };
    let ours = own_object();
    let mut all = loaded_objects();
    let before = all.iter().position(|object| *object == ours).unwrap_or(0);
    all.rotate_left(before);
    let mut others = all.into_iter().filter(|object| *object != ours);
    let found = others.find_map(|object| {
        let scope = Opened::loaded(&object)?;
        let found = scope.symbol(&name);
        (!found.is_null() && object_of(found) != ours).then_some(found)
    });
    found.unwrap_or(std::ptr::null_mut())
}

/// Returns the function of this name that the caller of a wrapper would have reached without ddtc,
/// or null if there is none. This is the next function in the global scope, which may be a PMPI
/// layer's. If the global scope has none, it is the function in the scope of the calling object,
/// and if that scope has none, the function of any other object.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    let found = symbol_after_ours(name);
    if !found.is_null() {
        return found;
    }
    let ours = own_object();
    let caller = caller(&ours).and_then(|caller| Opened::loaded(&caller));
    let found = caller.map_or(std::ptr::null_mut(), |scope| scope.symbol(name));
    // If the calling function has ended with a jump to the wrapper (a tail call), the calling
    // function is not on the stack, so its object was not found.
    if found.is_null() { after_ours(name.to_str().unwrap_or_default()) } else { found }
}

/// Returns true if the program's calls of a function reach ddtc, because the global scope finds
/// ddtc's function of this name first.
pub(crate) fn ours(name: &CStr) -> bool {
    Opened::global().is_some_and(|scope| object_of(scope.symbol(name)) == own_object())
}

/// Returns the object that has called a function of ddtc: the first object on the stack that is not
/// `ours`, the file of ddtc.
fn caller(ours: &str) -> Option<String> {
    callers(ours).into_iter().next()
}
