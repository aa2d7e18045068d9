//! Attributes of datatypes: keyvals, one attribute cache for each object, and callbacks for copying
//! and deleting (MPI 5.0, section 7.7.4).
//!
//! Keyvals of datatypes are numbered separately from those of communicators and windows, which are
//! unknown here. A keyval that was freed remains usable until the last attribute that uses it is
//! gone (7.7.2). Callbacks run without a lock and see the current state of the object. Since they
//! may change it, the attributes are read again after each callback.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::{Fault, Handle, Object, with};
use crate::error::{Error, ErrorClass, Result};
use crate::process::{Lazy, Mutex};

/// Functions that a keyval calls. The value of an attribute is the bits of a pointer.
pub trait Callbacks: Send + Sync {
    /// Calls the `MPI_Type_copy_attr_function`. Returns the value for the duplicate, or none to
    /// leave the attribute out, or an error code.
    fn copy(&self, old: Handle, keyval: i32, value: usize) -> std::result::Result<Option<usize>, i32>;
    /// Calls the `MPI_Type_delete_attr_function`. If it returns an error code, the attribute stays,
    /// except in a duplicate that could not be completed.
    fn delete(&self, datatype: Handle, keyval: i32, value: usize) -> std::result::Result<(), i32>;
}

/// A keyval. Its attributes hold references to it, and so does its entry in `KEYVALS` until the
/// keyval is freed.
struct Keyval {
    number: i32,
    callbacks: Box<dyn Callbacks>,
}

impl Drop for Keyval {
    fn drop(&mut self) {
        // No lock may be held where the last reference is dropped: this function takes the lock of
        // the keyvals, and dropping the callbacks runs code of the user.
        KEYVALS.lock().known.remove(&self.number);
    }
}

impl fmt::Debug for Keyval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyval({})", self.number)
    }
}

/// One attribute of an object.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    keyval: Arc<Keyval>,
    value: usize,
    /// Unique number that distinguishes this attribute from a later one of the same keyval.
    stamp: u64,
}

impl Attribute {
    /// Calls the copy callback. Returns the value for the duplicate, or none to leave the attribute
    /// out.
    pub(super) fn copy(&self, old: Handle) -> std::result::Result<Option<usize>, Fault> {
        self.keyval.callbacks.copy(old, self.keyval.number, self.value).map_err(Fault::Callback)
    }

    fn delete(&self, handle: Handle) -> std::result::Result<(), Fault> {
        self.keyval.callbacks.delete(handle, self.keyval.number, self.value).map_err(Fault::Callback)
    }
}

/// Attributes of one object in the order in which they were set.
pub(super) type Attributes = Vec<Attribute>;

#[derive(Default)]
struct Keyvals {
    next: i32,
    known: HashMap<i32, Known>,
}

/// Entry of [`KEYVALS`] for one number: the keyval that the number names.
struct Known {
    keyval: Weak<Keyval>,
    /// Reference that keeps the keyval alive while it has no attributes, until
    /// `MPI_Type_free_keyval`.
    own: Option<Arc<Keyval>>,
}

/// First number of a keyval. It is above the numbers of the predefined keys of the ABI.
const FIRST: i32 = 1 << 16;

static KEYVALS: Lazy<Mutex<Keyvals>> = Lazy::new(Mutex::default);
static STAMP: AtomicU64 = AtomicU64::new(0);

/// Makes a keyval (`MPI_Type_create_keyval`) and returns its number. A number is never given out
/// twice.
///
/// # Errors
/// Class `NoMem` if all numbers, about 2^31, have been given out.
pub fn create_keyval(callbacks: Box<dyn Callbacks>) -> Result<i32> {
    let mut keyvals = KEYVALS.lock();
    let number = keyvals.next.max(FIRST);
    keyvals.next = number.checked_add(1).ok_or_else(|| {
        Error::new(ErrorClass::NoMem, "type_create_keyval", "keyval", number, "all keyvals were given out")
    })?;
    let own = Arc::new(Keyval { number, callbacks });
    keyvals.known.insert(number, Known { keyval: Arc::downgrade(&own), own: Some(own) });
    Ok(number)
}

fn unknown(operation: &'static str, number: i32) -> Error {
    let rule = if number == 0 {
        "must not be MPI_KEYVAL_INVALID"
    } else {
        "must be a keyval of datatypes that was not freed"
    };
    Error::new(ErrorClass::Keyval, operation, "type_keyval", number, rule)
}

fn keyval(operation: &'static str, number: i32) -> Result<Arc<Keyval>> {
    let known = KEYVALS.lock().known.get(&number).and_then(|k| k.keyval.upgrade());
    known.ok_or_else(|| unknown(operation, number))
}

/// Frees a keyval (`MPI_Type_free_keyval`). While attributes use it, all operations continue to
/// work, and it is no error to free it again: a key that is in use exists until its last attribute
/// is gone (MPI 5.0, 7.7.2).
///
/// # Errors
/// Class `Keyval` if the number does not name a keyval of datatypes, or if it was freed and no
/// attribute uses it.
pub fn free_keyval(number: i32) -> Result<()> {
    let freed = {
        let mut keyvals = KEYVALS.lock();
        keyvals.known.get_mut(&number).and_then(|k| k.own.take().or_else(|| k.keyval.upgrade()))
    };
    // Dropping the last reference takes the lock of the keyvals, so that lock must be free here.
    freed.map(drop).ok_or_else(|| unknown("type_free_keyval", number))
}

fn find(object: &Object, number: i32) -> Option<Attribute> {
    let extras = object.extras.lock();
    extras.as_ref()?.attributes.iter().find(|a| a.keyval.number == number).cloned()
}

/// Removes the attribute `old` from the object and returns it, unless it was replaced or removed in
/// the meantime.
fn take(object: &Object, old: &Attribute) -> Option<Attribute> {
    let mut extras = object.extras.lock();
    let attributes = &mut extras.as_mut()?.attributes;
    let i = attributes.iter().position(|a| a.stamp == old.stamp)?;
    Some(attributes.remove(i))
}

fn push(object: &Object, keyval: Arc<Keyval>, value: usize) {
    let stamp = STAMP.fetch_add(1, Ordering::Relaxed);
    object.extras.lock().get_or_insert_default().attributes.push(Attribute { keyval, value, stamp });
}

/// Sets an attribute (`MPI_Type_set_attr`). If there is an old value, it is deleted first. The
/// attribute becomes the last one in the order in which the attributes were set.
///
/// # Errors
/// The errors of [`with`]; class `Keyval` for an unknown keyval; the code of the delete callback if
/// it fails, in which case the old value stays.
pub fn set_attribute(handle: Handle, number: i32, value: usize) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_set_attr";
    with(CALL, handle, |_| ())?;
    let keyval = keyval(CALL, number)?;
    while let Some(old) = with(CALL, handle, |o| find(o, number))? {
        old.delete(handle)?;
        with(CALL, handle, |o| take(o, &old))?;
    }
    Ok(with(CALL, handle, |o| push(o, keyval, value))?)
}

/// Returns the value of an attribute (`MPI_Type_get_attr`), or none if the datatype has no such
/// attribute.
///
/// # Errors
/// The errors of [`with`]; class `Keyval` for an unknown keyval.
pub fn get_attribute(handle: Handle, number: i32) -> Result<Option<usize>> {
    const CALL: &str = "type_get_attr";
    match with(CALL, handle, |o| find(o, number))? {
        Some(attribute) => Ok(Some(attribute.value)),
        None => keyval(CALL, number).map(|_| None),
    }
}

/// Deletes an attribute (`MPI_Type_delete_attr`).
///
/// # Errors
/// The errors of [`with`]; class `Keyval` for an unknown keyval, or if the datatype has no such
/// attribute; the code of the delete callback if it fails, in which case the value stays.
pub fn delete_attribute(handle: Handle, number: i32) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_delete_attr";
    let old = with(CALL, handle, |o| find(o, number))?;
    keyval(CALL, number)?;
    let Some(old) = old else {
        let rule = "must be the keyval of an attribute that the datatype has";
        return Err(Error::new(ErrorClass::Keyval, CALL, "type_keyval", number, rule).into());
    };
    old.delete(handle)?;
    with(CALL, handle, |o| take(o, &old))?;
    Ok(())
}

/// Returns a copy of the attributes of `object`, in the order in which they were set.
pub(super) fn snapshot(object: &Object) -> Attributes {
    object.extras.lock().as_ref().map(|s| s.attributes.clone()).unwrap_or_default()
}

/// Adds to a duplicate the attribute `from` of the original, with the value that the copy callback
/// returned.
pub(super) fn attach_copy(object: &Object, from: &Attribute, value: usize) {
    push(object, Arc::clone(&from.keyval), value);
}

/// Deletes all attributes, including those that callbacks set in the meantime, beginning with the
/// one that was set last. It stops at the first callback that fails and returns the code. The
/// attribute of that callback stays, unless `regardless` is true.
pub(super) fn delete_all(handle: Handle, regardless: bool) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_free";
    loop {
        let last =
            with(CALL, handle, |o| o.extras.lock().as_ref().and_then(|s| s.attributes.last().cloned()))?;
        let Some(last) = last else { return Ok(()) };
        let result = last.delete(handle);
        if result.is_ok() || regardless {
            with(CALL, handle, |o| take(o, &last))?;
        }
        result?;
    }
}
