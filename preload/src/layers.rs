//! PMPI layers between this library and the MPI library. They are searched for once, and each call
//! of a function that a layer defines is passed on to the layer.
//!
//! A PMPI layer is a library that defines functions of MPI and calls the MPI library by their
//! `PMPI_` names: a profiler, or a library that translates communicators or requests. Without this
//! library the program's calls would reach the layer, so this library passes them on to the layer
//! with the program's own arguments. The handles that the program passes may be known to the layer
//! alone. So if a layer defines one function of a group ([`Group`]), nothing of that group is
//! converted, and the MPI library is not queried about the objects of the group.
//!
//! The layers take effect when the MPI library is found: their functions are stored in the function
//! pointers of [`crate::host::Host`], and the groups that they take restrict the policy. The
//! wrappers themselves know nothing of layers.

use std::cell::{OnceCell, RefCell};
use std::ffi::{CStr, CString, c_void};
use std::ops::Range;

use ddtc_hosts::layer::Group;
use ddtc_hosts::policy::Call;

use crate::loader::{Opened, callers, global_symbol, object_of, segments_around, symbol_after_ours};

/// PMPI layers between this library and the MPI library, and the groups of functions that they
/// define.
#[derive(Default)]
pub(crate) struct Layers {
    /// Set of groups: bit `group as u8` is set if a layer has a function of the group.
    groups: u8,
    found: Vec<Found>,
}

/// Functions of one group that one layer defines.
struct Found {
    group: Group,
    object: String,
    /// Name of the first function that was found of all the functions of the group that the layer
    /// defines.
    function: String,
    /// Number of further functions of the group that the layer defines.
    others: usize,
}

impl Layers {
    /// Returns true if a layer has a function of this group.
    #[inline]
    pub(crate) fn have(&self, group: Group) -> bool {
        self.groups >> group as u8 & 1 != 0
    }

    /// Returns true if calls of this kind are bypassed because of a layer. One-sided gets are
    /// bypassed also if a layer has functions for messages, because a request completes a get, and
    /// requests are in the group of messages.
    pub(crate) fn take(&self, call: Call) -> bool {
        Group::of_call(call).is_some_and(|group| self.have(group))
            || call == Call::Get && self.have(Group::Messages)
    }

    fn add(&mut self, group: Group, object: String, function: &CStr) {
        self.groups |= 1 << group as u8;
        if let Some(known) = self.found.iter_mut().find(|f| f.group == group && f.object == object) {
            known.others += 1;
        } else {
            let function = function.to_string_lossy().into_owned();
            self.found.push(Found { group, object, function, others: 0 });
        }
    }

    /// Returns the lines about layers for the report: one line for each group of each layer.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|Found { group, object, function, others }| {
            let functions = and_others(function, *others);
            format!("{} are not converted: the PMPI layer {object} has {functions}", group.name())
        })
    }
}

fn and_others(function: &str, others: usize) -> String {
    match others {
        0 => function.to_owned(),
        1 => format!("{function} and another function"),
        _ => format!("{function} and {others} other functions"),
    }
}

/// Symbols of Fortran bindings. Each Fortran binding of an MPI library defines at least one of
/// them. An object that defines one of them is taken for such a binding, and not for a PMPI layer.
const FORTRAN_BINDINGS: [&CStr; 5] =
    [c"pmpi_init_", c"pmpi_init", c"pmpi_init__", c"PMPI_INIT", c"pmpi_init_f08_"];

/// Search for the functions to which this library passes on the program's calls: functions of PMPI
/// layers, or functions of the MPI library.
pub(crate) struct Successors<'a> {
    /// The scope in which the MPI library was found.
    library: &'a Opened,
    /// Address ranges of the object that defines the MPI library's `PMPI_Type_commit`.
    of_library: Vec<Range<u64>>,
    /// File name of this library.
    ours: String,
    /// Scopes of the objects that have a frame on the stack, if a symbol of an MPI library is found
    /// in them. They are opened when they are first needed.
    callers: OnceCell<Vec<Opened>>,
    layers: RefCell<Layers>,
}

impl<'a> Successors<'a> {
    /// Prepares the search. The call of the program must still be on the stack during the search,
    /// because the search goes through the symbol scopes of the shared objects whose functions are
    /// on the stack.
    pub(crate) fn new(library: &'a Opened) -> Successors<'a> {
        Successors {
            library,
            of_library: segments_around(library.symbol(c"PMPI_Type_commit")),
            ours: object_of(Successors::new as *const c_void),
            callers: OnceCell::new(),
            layers: RefCell::default(),
        }
    }

    /// Returns the function to which calls of a C function of MPI are passed on: the function of a
    /// layer, or if no layer has one, the MPI library's function under its `PMPI_` name. If a layer
    /// has the function, adds it to the layers that were found. `profiling`: the `PMPI_` name of
    /// the function.
    pub(crate) fn function(&self, profiling: &CStr) -> *mut c_void {
        let own = self.library.symbol(profiling);
        let Some(name) = without_first_letter(profiling) else { return own };
        let Some(layer) = self.layer(name, own, &[profiling]) else { return own };
        if let Some(group) = Group::of_function(&name.to_string_lossy()) {
            self.layers.borrow_mut().add(group, object_of(layer), name);
        }
        layer
    }

    /// Returns the function of a layer that has the Fortran name `name`; `None` if no layer has
    /// one. `profiling`: the same Fortran name with the letter P before it.
    pub(crate) fn of_fortran(&self, name: &CStr, profiling: &CStr) -> Option<*mut c_void> {
        let names: Vec<&CStr> = FORTRAN_BINDINGS.into_iter().chain([profiling]).collect();
        self.layer(name, std::ptr::null_mut(), &names)
    }

    /// Searches for layers that define Fortran's `MPI_PACK` or `MPI_UNPACK`, which this library
    /// exports, and adds these functions to the layers that were found.
    pub(crate) fn look_for_fortran_packs(&self) {
        for name in ["pack", "unpack"] {
            let lower = ["", "_", "__", "_f08_"].map(|suffix| format!("mpi_{name}{suffix}"));
            let upper = format!("MPI_{}", name.to_uppercase());
            for (first, own) in lower.iter().map(|own| ("p", own)).chain([("P", &upper)]) {
                let (Ok(own), Ok(profiling)) =
                    (CString::new(own.as_str()), CString::new(format!("{first}{own}")))
                else {
                    continue;
                };
                if let Some(layer) = self.of_fortran(&own, &profiling) {
                    self.layers.borrow_mut().add(Group::Pack, object_of(layer), &own);
                }
            }
        }
    }

    /// Returns the layers that were found.
    pub(crate) fn into_layers(self) -> Layers {
        self.layers.into_inner()
    }

    /// Returns the function of a layer that calls of `name` would reach if this library were not
    /// loaded; `None` if they would not reach a layer. They would reach the next function of that
    /// name in the global scope, or if there is none, the function in the scope of an object on the
    /// stack. `own`: the MPI library's function under its `PMPI_` name. An object that itself
    /// defines one of the names in `profiling` is an MPI library, perhaps one of another ABI, and
    /// not a layer.
    fn layer(&self, name: &CStr, own: *mut c_void, profiling: &[&CStr]) -> Option<*mut c_void> {
        let is_layers = |found: *mut c_void| {
            let at = found.addr() as u64;
            !found.is_null()
                && found != own
                && !self.of_library.iter().any(|segment| segment.contains(&at))
                && {
                    let object = object_of(found);
                    object != self.ours && !has_any(&object, profiling)
                }
        };
        let next = symbol_after_ours(name);
        if !next.is_null() {
            return Some(next).filter(|&next| is_layers(next));
        }
        let mut found = self.callers().iter().map(|caller| caller.symbol(name));
        found.find(|&found| is_layers(found))
    }

    fn callers(&self) -> &[Opened] {
        self.callers.get_or_init(|| {
            let opened = callers(&self.ours).into_iter().filter_map(|object| Opened::loaded(&object));
            opened.filter(|opened| !opened.symbol(c"PMPI_Type_commit").is_null()).collect()
        })
    }
}

/// Returns true if an object itself defines a function of one of these names.
fn has_any(object: &str, names: &[&CStr]) -> bool {
    Opened::loaded(object)
        .is_some_and(|opened| names.iter().any(|name| !opened.function(object, name).is_null()))
}

/// Returns a function's name without its first letter: `MPI_X` for `PMPI_X`. `None` if the name is
/// empty.
fn without_first_letter(profiling: &CStr) -> Option<&CStr> {
    CStr::from_bytes_with_nul(profiling.to_bytes_with_nul().get(1..)?).ok()
}

/// Returns a line for the report if another object, earlier in the loader's search order, defines
/// functions that this library wraps. Calls of these functions reach that object first, and may not
/// reach this library. `profiling`: the `PMPI_` names of the functions that this library wraps or
/// calls.
pub(crate) fn hidden(profiling: impl Iterator<Item = &'static CStr>) -> Option<String> {
    let ours = object_of(Successors::new as *const c_void);
    let opened = Opened::loaded(&ours)?;
    let mut hidden = profiling.filter_map(without_first_letter).filter_map(|name| {
        let first = object_of(global_symbol(name));
        (first != ours && !opened.function(&ours, name).is_null()).then_some((name, first))
    });
    let (name, object) = hidden.next()?;
    let functions = and_others(&name.to_string_lossy(), hidden.count());
    Some(format!("{object} takes {functions} before this library, which does not see these calls"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_takes_whole_groups() {
        let mut layers = Layers::default();
        assert!(!Call::ALL.into_iter().any(|call| layers.take(call)));
        layers.add(Group::Files, "/a.so".to_owned(), c"MPI_File_open");
        assert!(layers.take(Call::FileRead) && !layers.take(Call::Message) && !layers.take(Call::Get));
        layers.add(Group::Messages, "/a.so".to_owned(), c"MPI_Send");
        layers.add(Group::Messages, "/a.so".to_owned(), c"MPI_Recv");
        layers.add(Group::Messages, "/b.so".to_owned(), c"MPI_Wait");
        layers.add(Group::Messages, "/a.so".to_owned(), c"MPI_Bcast");
        assert!(layers.have(Group::Messages) && !layers.have(Group::Pack));
        assert!(layers.take(Call::Alltoall) && layers.take(Call::Get));
        assert!(!layers.take(Call::Put) && !layers.take(Call::Inside));
        assert_eq!(
            layers.notes().collect::<Vec<_>>(),
            [
                "files are not converted: the PMPI layer /a.so has MPI_File_open",
                "messages are not converted: the PMPI layer /a.so has MPI_Send and 2 other functions",
                "messages are not converted: the PMPI layer /b.so has MPI_Wait",
            ]
        );
    }

    #[test]
    fn functions_that_nobody_has_are_no_layers() {
        let global = Opened::global().unwrap();
        let successors = Successors::new(&global);
        assert!(successors.function(c"PMPI_Nobody_has_this").is_null());
        assert!(successors.of_fortran(c"mpi_nobody_", c"pmpi_nobody_").is_none());
        // `without_first_letter` removes any first letter. The C library, which has `strlen`,
        // defines no function of MPI.
        assert_eq!(without_first_letter(c"xstrlen"), Some(c"strlen"));
        assert!(!has_any(&object_of(global_symbol(c"strlen")), &[c"PMPI_Send"]));
        successors.look_for_fortran_packs();
        assert_eq!(successors.into_layers().notes().count(), 0);
    }
}
