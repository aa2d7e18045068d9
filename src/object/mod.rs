//! MPI's datatype objects: handles, references, commit state, attributes and names, on top of
//! immutable datatypes.
//!
//! A handle names an [`Object`]: one underlying [`Datatype`], with one attribute cache and one
//! name. Several objects may share a datatype (`MPI_Type_dup`, decoding), as the discussion of
//! `MPI_TYPE_DUP` of 1996 proposed. A handle contains a generation, so a stale handle is refused
//! and never names another object. Reading through a handle takes no lock, and after a thread has
//! used the handle repeatedly, it writes nothing that threads share ([`with`]). No lock is held
//! while a callback runs, because callbacks may call this module again.
//!
//! Objects belong to a process, as those of MPI do. Sources: MPI 5.0, sections 5.1.9, 5.1.13, 7.7.4
//! and 7.8.

mod attribute;
mod elements;
mod handle;
mod recent;
mod reduced;
pub mod runtime;
pub mod table;
pub mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

pub use attribute::{Callbacks, create_keyval, delete_attribute, free_keyval, get_attribute, set_attribute};
pub use elements::{elements, elements_size};
pub use handle::Handle;

use crate::committed::{Committed, CommittedOperation};
use crate::datatype::{Datatype, Named};
use crate::error::{Error, ErrorClass, Result};
use crate::kind::Operation;
use crate::process::{Lazy, Mutex, Once};
use attribute::Attributes;
use table::Table;

/// Reason for which an operation on objects failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A rule was broken, or a resource is used up.
    Refused(Error),
    /// A callback of the user returned this error code, which the operation returns.
    Callback(i32),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Refused(error)
    }
}

/// A datatype object.
#[derive(Debug)]
pub struct Object {
    handle: Handle,
    /// Whether the object is predefined. A predefined object is a named, an f90 or a value_index
    /// type, and is never freed.
    predefined: bool,
    /// Whether the object has not been freed.
    live: AtomicBool,
    /// Whether a call of [`free`] is deleting the attributes of the object.
    dying: AtomicBool,
    /// Default INTEGER that names the object in Fortran; 0 if there is none yet.
    integer: AtomicI32,
    datatype: Datatype,
    committed: Once<Committed>,
    /// Committed type that converts to and from external32. The first call that needs it makes it.
    external32: Once<CommittedOperation>,
    extras: Mutex<Option<Box<Extras>>>,
}

/// Name, attributes and reductions of an object. Most objects have none of these, so the memory is
/// allocated when it is first used.
#[derive(Debug, Default)]
struct Extras {
    name: Option<Box<[u8]>>,
    attributes: Attributes,
    reductions: reduced::Reductions,
}

/// Maximum number of bytes of a name: `MPI_MAX_OBJECT_NAME` of the standard ABI without the
/// terminating NUL.
pub const MAX_NAME: usize = 127;

static DERIVED: Table<Object> = Table::new(handle::DATATYPE_TAG);
static PREDEFINED: Lazy<Vec<Object>> = Lazy::new(|| {
    Named::ALL.iter().map(|&n| Object::new(Handle::of_named(n), true, Datatype::named(n), None)).collect()
});
/// Handles of the unnamed predefined types (f90 and value_index types). There is one handle for
/// each type and its list of arguments, and it is never freed.
static UNNAMED: Lazy<Mutex<HashMap<Datatype, Handle>>> = Lazy::new(Mutex::default);
static INTEGERS: Lazy<Mutex<Integers>> = Lazy::new(Mutex::default);

#[derive(Default)]
struct Integers {
    next: i32,
    handles: HashMap<i32, Handle>,
}

impl Object {
    fn new(handle: Handle, predefined: bool, datatype: Datatype, committed: Option<Committed>) -> Object {
        Object {
            handle,
            predefined,
            live: AtomicBool::new(true),
            dying: AtomicBool::new(false),
            integer: AtomicI32::new(0),
            datatype,
            committed: committed.map(Once::from).unwrap_or_default(),
            external32: Once::new(),
            extras: Mutex::default(),
        }
    }

    /// Returns the handle that names the object.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the underlying datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Returns true if the object is predefined, that is, a named, an f90 or a value_index type. A
    /// predefined object is never freed and always ready for use.
    pub fn is_predefined(&self) -> bool {
        self.predefined
    }

    /// Returns the committed type that packs and unpacks the datatype, or none before the commit. A
    /// predefined type needs no commit by the program: its committed type is made when it is first
    /// used.
    ///
    /// # Errors
    /// The errors of [`Object::commit`], if a predefined type is used for the first time.
    #[inline]
    pub fn committed(&self) -> Result<Option<&Committed>> {
        match self.committed.get() {
            None if self.predefined => self.commit().map(Some),
            known => Ok(known),
        }
    }

    /// Commits the datatype (`MPI_Type_commit`). If it is committed already, this does nothing.
    ///
    /// # Errors
    /// Class `NoMem` if there is not enough memory for the layout. Any other error is a fault of
    /// ddtc.
    pub fn commit(&self) -> Result<&Committed> {
        if let Some(committed) = self.committed.get() {
            return Ok(committed);
        }
        let committed = runtime::engine().commit(&self.datatype)?;
        Ok(self.committed.get_or_init(|| committed))
    }

    /// Returns the committed type that packs and unpacks the datatype in external32, or none before
    /// the commit.
    ///
    /// # Errors
    /// The errors of [`Object::committed`] and [`Committed::for_operation`].
    pub fn external32(&self) -> Result<Option<&CommittedOperation>> {
        if let known @ Some(_) = self.external32.get() {
            return Ok(known);
        }
        let Some(committed) = self.committed()? else { return Ok(None) };
        let applied = committed.for_operation(Operation::External32)?;
        Ok(Some(self.external32.get_or_init(|| applied)))
    }

    /// Returns the packed size in bytes of one instance in external32. The type need not be
    /// committed.
    ///
    /// # Errors
    /// The errors of [`Object::commit`], an error if the size does not fit in 63 bits, and an error
    /// that names the first element for which external32 is not defined.
    pub fn external32_size(&self) -> Result<i64> {
        let placed = runtime::engine().values(&self.datatype, Operation::External32)?;
        Ok(placed.layout.nest().size())
    }

    #[inline]
    fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }
}

/// Returns the error for a handle that names no datatype.
fn refuse(operation: &'static str, handle: Handle) -> Error {
    let rule = match handle {
        Handle::NULL => "must not be MPI_DATATYPE_NULL",
        Handle::ZERO => "must not be a null pointer",
        h if h.tag() == handle::DATATYPE_TAG && DERIVED.was_given(h) => {
            "must not be a datatype that was freed"
        }
        _ => "must be the handle of a datatype",
    };
    Error::new(ErrorClass::Type, operation, "datatype", handle, rule)
}

/// Calls `f` with the object of `handle`. No lock is held during the call.
///
/// # Errors
/// Class `Type` if the handle is null, was freed, or does not name a datatype.
#[inline]
pub fn with<R>(operation: &'static str, handle: Handle, f: impl FnOnce(&Object) -> R) -> Result<R> {
    match handle.named() {
        Some(named) => Ok(f(&PREDEFINED[named as usize])),
        None => recent::with(&DERIVED, handle, f).ok_or_else(|| refuse(operation, handle)),
    }
}

/// Returns the underlying datatype of `handle`.
///
/// # Errors
/// The errors of [`with`].
pub fn datatype(operation: &'static str, handle: Handle) -> Result<Datatype> {
    with(operation, handle, |o| o.datatype.clone())
}

/// Returns the handle of a new object for a datatype that a constructor made. The object has one
/// reference, no attributes and no name, and is not committed. Named, f90 and value_index types are
/// predefined: for these, equal arguments give equal handles.
///
/// # Errors
/// Class `NoMem` if all handles are in use.
pub fn create(datatype: Datatype) -> Result<Handle> {
    let kind = datatype.constructed().combiner().kind();
    if !kind.is_predefined() {
        return insert(datatype, None, false);
    }
    if let Some(named) = crate::datatype::contents::named_of(&datatype) {
        return Ok(Handle::of_named(named));
    }
    let mut unnamed = UNNAMED.lock();
    if let Some(&handle) = unnamed.get(&datatype) {
        return Ok(handle);
    }
    let handle = insert(datatype.clone(), None, true)?;
    unnamed.insert(datatype, handle);
    Ok(handle)
}

fn insert(datatype: Datatype, committed: Option<Committed>, predefined: bool) -> Result<Handle> {
    DERIVED.insert(|handle| Object::new(handle, predefined, datatype, committed))
}

/// Commits the datatype of `handle` (`MPI_Type_commit`).
///
/// # Errors
/// The errors of [`with`] and [`Object::commit`].
pub fn commit(handle: Handle) -> Result<()> {
    with("type_commit", handle, |o| o.commit().map(drop))?
}

/// Duplicates a datatype (`MPI_Type_dup`). The duplicate has the same type map and the same
/// committed state; a duplicate of a predefined type is committed. The copy callbacks decide which
/// attributes the duplicate gets. They are called in the order in which the attributes were set.
/// The call takes O(1) and the time of the callbacks. For a predefined type that was never used
/// before, the time of a commit is added.
///
/// # Errors
/// The errors of [`with`], those of [`Object::commit`] for a predefined type that was never used
/// before, class `NoMem` if all handles are in use, and the code of a copy callback that fails. In
/// this last case, the attributes that were copied before have been deleted.
pub fn dup(handle: Handle) -> std::result::Result<Handle, Fault> {
    let (tree, committed, copies) = with("type_dup", handle, |o| {
        Ok::<_, Error>((o.datatype.dup(), o.committed()?.cloned(), attribute::snapshot(o)))
    })??;
    let new = insert(tree, committed, false)?;
    for one in copies {
        let copied = one.copy(handle).and_then(|value| match value {
            Some(value) => {
                with("type_dup", new, |o| attribute::attach_copy(o, &one, value)).map_err(Fault::from)
            }
            None => Ok(()),
        });
        if let Err(fault) = copied {
            // Drop the attributes even if delete callbacks fail. The error codes of these callbacks
            // are ignored, because the call returns that of the copy callback.
            while let Err(Fault::Callback(_)) = attribute::delete_all(new, true) {}
            let _ = remove(new);
            return Err(fault);
        }
    }
    Ok(new)
}

fn remove(handle: Handle) -> Option<Arc<Object>> {
    let object = DERIVED.remove(handle)?;
    object.live.store(false, Ordering::Release);
    recent::forget(handle);
    let integer = object.integer.load(Ordering::Acquire);
    if integer != 0 {
        INTEGERS.lock().handles.remove(&integer);
    }
    Some(object)
}

/// Frees a datatype (`MPI_Type_free`): first its attributes, starting with the one that was set
/// last, then the handle. Datatypes that were built from it and committed layouts that others hold
/// stay valid.
///
/// # Errors
/// The errors of [`with`]; class `Type` for a predefined type, and for a type whose attributes are
/// being deleted by another call; the code of a delete callback that fails. In this last case the
/// attribute of that callback, the attributes set before it and the handle stay.
pub fn free(handle: Handle) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_free";
    let (predefined, bare) = with(CALL, handle, |o| {
        let bare = o.extras.lock().as_ref().is_none_or(|s| s.attributes.is_empty());
        (o.predefined, bare)
    })?;
    if predefined {
        let rule = "must not be predefined: such a datatype cannot be freed";
        return Err(Error::new(ErrorClass::Type, CALL, "datatype", handle, rule).into());
    }
    if !bare {
        if with(CALL, handle, |o| o.dying.swap(true, Ordering::AcqRel))? {
            let rule = "is being freed already";
            return Err(Error::new(ErrorClass::Type, CALL, "datatype", handle, rule).into());
        }
        let deleted = attribute::delete_all(handle, false);
        if let Err(fault) = deleted {
            with(CALL, handle, |o| o.dying.store(false, Ordering::Release))?;
            return Err(fault);
        }
    }
    remove(handle).map(drop).ok_or_else(|| refuse(CALL, handle).into())
}

/// Sets the name of a datatype (`MPI_Type_set_name`). Of a longer name, only the first [`MAX_NAME`]
/// bytes are kept, as MPI defines it.
///
/// # Errors
/// The errors of [`with`].
pub fn set_name(handle: Handle, name: &[u8]) -> Result<()> {
    let name = &name[..name.len().min(MAX_NAME)];
    with("type_set_name", handle, |o| {
        o.extras.lock().get_or_insert_default().name = Some(name.into());
    })
}

/// Returns the name of a datatype (`MPI_Type_get_name`): the name that was set, otherwise MPI's
/// name of a named type, otherwise an empty name.
///
/// # Errors
/// The errors of [`with`].
pub fn name(handle: Handle) -> Result<Vec<u8>> {
    with("type_get_name", handle, |o| {
        let own = o.extras.lock().as_ref().and_then(|s| s.name.as_deref().map(<[u8]>::to_vec));
        own.unwrap_or_else(|| match handle.named() {
            Some(named) => named.mpi_name().as_bytes().to_vec(),
            None => Vec::new(),
        })
    })
}

/// Returns the handles of the datatype arguments of the constructor call that made the datatype of
/// `handle`. Arguments that are predefined types have their usual handles. For derived types, the
/// handles are new references, which the caller must free.
///
/// # Errors
/// The errors of [`with`] and [`create`]. If there is an error, no reference is left behind.
pub fn children(handle: Handle) -> Result<Vec<Handle>> {
    let tree = datatype("type_get_contents", handle)?;
    references(tree.constructed().combiner().children())
}

/// Returns a handle for each of `types`. Predefined types have their usual handles. The handles of
/// derived types are new references, which the caller must free.
///
/// # Errors
/// The errors of [`create`]. If there is an error, no reference is left behind.
pub fn references<'a>(types: impl Iterator<Item = &'a Datatype>) -> Result<Vec<Handle>> {
    let mut handles = Vec::with_capacity(types.size_hint().0);
    for t in types {
        match create(t.clone()) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                for handle in handles {
                    // This frees the references to derived types that were just made. Predefined
                    // types refuse to be freed and stay.
                    let _ = free(handle);
                }
                return Err(error);
            }
        }
    }
    Ok(handles)
}

/// Returns the default INTEGER that names the datatype in Fortran (`MPI_Type_toint`). For named
/// types and `MPI_DATATYPE_NULL` this is the value of the ABI. For other types it is a number that
/// the process gives out only once.
///
/// # Errors
/// The errors of [`with`]; class `NoMem` if all numbers, about 2^31, have been given out.
pub fn to_integer(handle: Handle) -> Result<i32> {
    const CALL: &str = "type_toint";
    if handle == Handle::NULL || handle.named().is_some() {
        return Ok(handle.bits() as i32);
    }
    with(CALL, handle, |o| {
        let mut integers = INTEGERS.lock();
        let known = o.integer.load(Ordering::Acquire);
        if known != 0 {
            return Ok(known);
        }
        let integer = integers.next.max(handle::FIRST_DERIVED as i32);
        integers.next = integer.checked_add(1).ok_or_else(|| {
            Error::new(ErrorClass::NoMem, CALL, "datatype", handle, "all Fortran handles were given out")
        })?;
        integers.handles.insert(integer, handle);
        o.integer.store(integer, Ordering::Release);
        Ok(integer)
    })?
}

/// Returns the handle for a default INTEGER of Fortran (`MPI_Type_fromint`). `MPI_DATATYPE_NULL` is
/// no error.
///
/// # Errors
/// Class `Type` if the number does not name a datatype.
pub fn from_integer(integer: i32) -> Result<Handle> {
    let direct = Handle::from_bits(integer as u32 as u64);
    if direct == Handle::NULL || direct.named().is_some() {
        return Ok(direct);
    }
    INTEGERS.lock().handles.get(&integer).copied().ok_or_else(|| {
        let rule = "must be the Fortran handle of a datatype";
        Error::new(ErrorClass::Type, "type_fromint", "datatype", integer, rule)
    })
}

/// Returns the number of live objects that are not named types. Unnamed predefined types are
/// included.
pub fn live() -> u64 {
    DERIVED.len()
}

#[cfg(test)]
mod tests;
