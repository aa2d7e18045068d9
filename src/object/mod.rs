//! MPI's datatype objects: handles, references, commit state, attributes and names over immutable datatypes.
//!
//! A handle names an [`Object`]: one underlying [`Datatype`] with one attribute cache and one name. Many objects may share a
//! datatype (`MPI_Type_dup`, decoding), as the 1996 thread on MPI_TYPE_DUP proposed. Handles carry a generation, so a stale one
//! is refused and never names another object. Reading through a handle takes no lock and writes nothing shared once the thread
//! has used it before ([`with`]). No lock is held while a callback runs: callbacks may call back.
//!
//! Objects are per process, as MPI's are. Sources: MPI 5.0 sections 5.1.9, 5.1.13, 7.7.4, 7.8.

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

/// Why an operation on objects failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A rule was broken.
    Refused(Error),
    /// A callback of the user returned this code, which the operation hands on.
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
    /// Predefined objects, named or not, are never freed.
    predefined: bool,
    /// Until it is freed.
    live: AtomicBool,
    /// While its attributes are being deleted on the way to that.
    dying: AtomicBool,
    /// The default INTEGER that names it in Fortran; 0 = none yet.
    integer: AtomicI32,
    datatype: Datatype,
    committed: Once<Committed>,
    /// Its handle for external32, from the first call that asks for it.
    external32: Once<CommittedOperation>,
    extras: Mutex<Option<Box<Extras>>>,
}

/// The name and the attributes of an object. Most objects never have either, so they are allocated at first use.
#[derive(Debug, Default)]
struct Extras {
    name: Option<Box<[u8]>>,
    attributes: Attributes,
    reductions: reduced::Reductions,
}

/// Most bytes of a name: `MPI_MAX_OBJECT_NAME` of the standard ABI without the terminating NUL.
pub const MAX_NAME: usize = 127;

static DERIVED: Table<Object> = Table::new(handle::DATATYPE_TAG);
static PREDEFINED: Lazy<Vec<Object>> = Lazy::new(|| {
    Named::ALL.iter().map(|&n| Object::new(Handle::of_named(n), true, Datatype::named(n), None)).collect()
});
/// Handles of the unnamed predefined types (f90, value_index): one per argument list, for good.
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

    /// Returns the handle that names it.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the underlying datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Says whether it is predefined, named or not: never freed and always ready for use.
    pub fn is_predefined(&self) -> bool {
        self.predefined
    }

    /// Returns the committed type that packs and unpacks it; none before commit. Predefined types need no commit: theirs is made at first use.
    ///
    /// # Errors
    /// Of the engine, for a predefined type at its first use.
    #[inline]
    pub fn committed(&self) -> Result<Option<&Committed>> {
        match self.committed.get() {
            None if self.predefined => self.commit().map(Some),
            known => Ok(known),
        }
    }

    /// `MPI_Type_commit`. Once more does nothing.
    ///
    /// # Errors
    /// Of the engine.
    pub fn commit(&self) -> Result<&Committed> {
        if let Some(committed) = self.committed.get() {
            return Ok(committed);
        }
        let committed = runtime::engine().commit(&self.datatype)?;
        Ok(self.committed.get_or_init(|| committed))
    }

    /// Returns the handle that packs and unpacks it in external32; none before commit.
    ///
    /// # Errors
    /// As [`Object::committed`]; of [`Committed::for_operation`].
    pub fn external32(&self) -> Result<Option<&CommittedOperation>> {
        if let known @ Some(_) = self.external32.get() {
            return Ok(known);
        }
        let Some(committed) = self.committed()? else { return Ok(None) };
        let applied = committed.for_operation(Operation::External32)?;
        Ok(Some(self.external32.get_or_init(|| applied)))
    }

    /// Packed bytes of one instance in external32; a type need not be committed for that.
    ///
    /// # Errors
    /// When that overflows 63 bits.
    pub fn external32_size(&self) -> Result<i64> {
        let placed = runtime::engine().values(&self.datatype, Operation::External32)?;
        Ok(placed.layout.nest().size())
    }

    #[inline]
    fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }
}

/// The error for a handle that names no datatype.
fn refuse(operation: &'static str, handle: Handle) -> Error {
    let rule = match handle {
        Handle::NULL => "is MPI_DATATYPE_NULL",
        Handle::ZERO => "is a null pointer",
        h if h.tag() == handle::DATATYPE_TAG && DERIVED.was_given(h) => "was freed",
        _ => "does not name a datatype",
    };
    Error::new(ErrorClass::Type, operation, "datatype", handle, rule)
}

/// Calls `f` with the object of `handle`. Nothing is locked meanwhile.
///
/// # Errors
/// Class `Type` when the handle is null, freed, or not one of a datatype.
#[inline]
pub fn with<R>(operation: &'static str, handle: Handle, f: impl FnOnce(&Object) -> R) -> Result<R> {
    match handle.named() {
        Some(named) => Ok(f(&PREDEFINED[named as usize])),
        None => recent::with(&DERIVED, handle, f).ok_or_else(|| refuse(operation, handle)),
    }
}

/// Returns the underlying datatype of `handle`. Errors as [`with`].
pub fn datatype(operation: &'static str, handle: Handle) -> Result<Datatype> {
    with(operation, handle, |o| o.datatype.clone())
}

/// Returns a new object for a datatype that a constructor made: one reference, no attributes, no name, not committed. f90 and
/// value_index types are predefined: equal arguments give equal handles.
///
/// # Errors
/// Class `NoMem` when all handles are in use.
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

/// `MPI_Type_commit`. Errors as [`with`] and of the engine.
pub fn commit(handle: Handle) -> Result<()> {
    with("type_commit", handle, |o| o.commit().map(drop))?
}

/// `MPI_Type_dup`: the same type map and committed state, so that a duplicate of a predefined type is committed; attributes as
/// the copy callbacks say, in the order in which they were set. O(1) plus the callbacks, and a commit where a predefined type
/// was never used before.
///
/// # Errors
/// As [`with`]; of the engine, for such a commit; the code of a failing copy callback, after the copies already made were deleted.
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
            // What a delete callback says now is of no use: the dup has failed with the copy's code.
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

/// `MPI_Type_free`: deletes the attributes, last set first, then the handle. Datatypes built from it, and committed layouts
/// that were retained, live on.
///
/// # Errors
/// As [`with`]; predefined types; a type whose attributes are being deleted; the code of a failing delete callback: that
/// attribute, those set before it and the handle stay.
pub fn free(handle: Handle) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_free";
    let (predefined, bare) = with(CALL, handle, |o| {
        let bare = o.extras.lock().as_ref().is_none_or(|s| s.attributes.is_empty());
        (o.predefined, bare)
    })?;
    if predefined {
        let rule = "a predefined datatype cannot be freed";
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

/// `MPI_Type_set_name`, of at most [`MAX_NAME`] bytes; longer names are cut as MPI says. Errors as [`with`].
pub fn set_name(handle: Handle, name: &[u8]) -> Result<()> {
    let name = &name[..name.len().min(MAX_NAME)];
    with("type_set_name", handle, |o| {
        o.extras.lock().get_or_insert_default().name = Some(name.into());
    })
}

/// `MPI_Type_get_name`: as set, else MPI's name of a named type, else empty. Errors as [`with`].
pub fn name(handle: Handle) -> Result<Vec<u8>> {
    with("type_get_name", handle, |o| {
        let own = o.extras.lock().as_ref().and_then(|s| s.name.as_deref().map(<[u8]>::to_vec));
        own.unwrap_or_else(|| match handle.named() {
            Some(named) => named.mpi_name().as_bytes().to_vec(),
            None => Vec::new(),
        })
    })
}

/// Handles of the datatype arguments of the constructor call that made `handle`: equal ones for predefined types, new
/// references that the caller frees for derived types.
///
/// # Errors
/// As [`with`]; nothing is left behind.
pub fn children(handle: Handle) -> Result<Vec<Handle>> {
    let tree = datatype("type_get_contents", handle)?;
    references(tree.constructed().combiner().children())
}

/// References to `types` as [`children`] returns them.
///
/// # Errors
/// As [`create`]; nothing is left behind.
pub fn references<'a>(types: impl Iterator<Item = &'a Datatype>) -> Result<Vec<Handle>> {
    let mut handles = Vec::with_capacity(types.size_hint().0);
    for t in types {
        match create(t.clone()) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                for handle in handles {
                    // Derived references of a moment ago go; predefined ones refuse and stay.
                    let _ = free(handle);
                }
                return Err(error);
            }
        }
    }
    Ok(handles)
}

/// Returns the default INTEGER that names the type in Fortran (`MPI_Type_toint`): the ABI's value for named types, else a number that
/// is given out once in the life of the process.
///
/// # Errors
/// As [`with`]; class `NoMem` after 2^31 conversions.
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

/// Returns the handle of a Fortran INTEGER (`MPI_Type_fromint`). Errors as [`with`].
pub fn from_integer(integer: i32) -> Result<Handle> {
    let direct = Handle::from_bits(integer as u32 as u64);
    if direct == Handle::NULL || direct.named().is_some() {
        return Ok(direct);
    }
    INTEGERS.lock().handles.get(&integer).copied().ok_or_else(|| {
        let rule = "does not name a datatype";
        Error::new(ErrorClass::Type, "type_fromint", "datatype", integer, rule)
    })
}

/// Derived types that live, predefined unnamed ones included.
pub fn live() -> u64 {
    DERIVED.len()
}

#[cfg(test)]
mod tests;
