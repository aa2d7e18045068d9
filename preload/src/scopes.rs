//! Where functions are looked for: the scope of the object that has called a wrapper, the global
//! one, and those of all loaded objects.
//!
//! Nothing that is found here is kept loaded. A library that a program has opened, and closes, must
//! go.

use std::ffi::{CStr, CString, c_void};

use crate::loader::{Opened, callers, loaded_objects, object_of, symbol_after_ours};

/// Returns a scope in which `name` is found: that of the caller, the global one, or that of any
/// loaded object.
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

/// The object and the address at which a library has `PMPI_Type_commit`.
#[derive(PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) object: String,
    commit: usize,
}

impl Place {
    /// Returns the place of the library that is found in a scope.
    pub(crate) fn of(scope: &Opened) -> Place {
        let commit = scope.symbol(c"PMPI_Type_commit");
        Place { object: object_of(commit), commit: commit.addr() }
    }

    /// Returns whether an object of this name is loaded there, which may be another copy.
    pub(crate) fn is_loaded(&self) -> bool {
        object_of(std::ptr::without_provenance(self.commit)) == self.object
    }
}

/// Returns the file of this library.
fn own_object() -> String {
    object_of(own_object as *const c_void)
}

/// Returns a function of another loaded object that has the name of a wrapper: of one that is
/// behind this library in the order in which names are looked for, where there is one. Those before
/// it may be tools whose functions call ours.
pub(crate) fn behind(name: &str) -> *mut c_void {
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

/// Returns the function of a name that the caller of a wrapper would have reached without this
/// library, or null: the next one in the global scope, which may be that of a profiling layer, and
/// only if there is none, the one in the scope of the calling object.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    let found = symbol_after_ours(name);
    if !found.is_null() {
        return found;
    }
    let ours = own_object();
    let caller = caller(&ours).and_then(|caller| Opened::loaded(&caller));
    let found = caller.map_or(std::ptr::null_mut(), |scope| scope.symbol(name));
    // The caller may have jumped here, and then it is not on the stack.
    if found.is_null() { behind(name.to_str().unwrap_or_default()) } else { found }
}

/// Says whether the program's calls of a function come here.
pub(crate) fn ours(name: &CStr) -> bool {
    Opened::global().is_some_and(|scope| object_of(scope.symbol(name)) == own_object())
}

/// Returns the object that called into us: the first one on the stack that is not this library.
fn caller(ours: &str) -> Option<String> {
    callers(ours).into_iter().next()
}
