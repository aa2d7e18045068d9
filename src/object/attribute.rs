//! Attributes of datatypes: keyvals, one cache per object, copy and delete callbacks (MPI 5.0 section 7.7.4).
//!
//! Keyvals of datatypes are numbers of their own: those of communicators or windows are unknown here. A keyval that was freed
//! does all that it did until the last attribute that uses it is gone (7.7.2). Callbacks run without any lock held and see the
//! object as it is: what they change is looked at anew after each one.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::{Fault, Handle, Object, with};
use crate::error::{Error, ErrorClass, Result};
use crate::process::{Lazy, Mutex};

/// Functions that a keyval calls. Attribute values are the bits of a pointer.
pub trait Callbacks: Send + Sync {
    /// `MPI_Type_copy_attr_function`: the value for the duplicate, none to leave it out, or an error code.
    fn copy(&self, old: Handle, keyval: i32, value: usize) -> std::result::Result<Option<usize>, i32>;
    /// `MPI_Type_delete_attr_function`; an error code keeps the attribute.
    fn delete(&self, datatype: Handle, keyval: i32, value: usize) -> std::result::Result<(), i32>;
}

/// Held by its attributes, and by its number until that is freed.
struct Keyval {
    number: i32,
    callbacks: Box<dyn Callbacks>,
}

impl Drop for Keyval {
    fn drop(&mut self) {
        // Whoever drops a keyval holds no lock: callbacks are the user's.
        KEYVALS.lock().known.remove(&self.number);
    }
}

impl fmt::Debug for Keyval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyval({})", self.number)
    }
}

/// One attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    keyval: Arc<Keyval>,
    value: usize,
    /// Tells a value from one that was set over it meanwhile.
    stamp: u64,
}

impl Attribute {
    /// Runs the copy callback.
    pub(super) fn copy(&self, old: Handle) -> std::result::Result<Option<usize>, Fault> {
        self.keyval.callbacks.copy(old, self.keyval.number, self.value).map_err(Fault::Callback)
    }

    fn delete(&self, handle: Handle) -> std::result::Result<(), Fault> {
        self.keyval.callbacks.delete(handle, self.keyval.number, self.value).map_err(Fault::Callback)
    }
}

/// The attributes of one object in the order in which they were set.
pub(super) type Attributes = Vec<Attribute>;

#[derive(Default)]
struct Keyvals {
    next: i32,
    known: HashMap<i32, Known>,
}

/// Keyval that a number names.
struct Known {
    keyval: Weak<Keyval>,
    /// The reference of the number itself, until `MPI_Type_free_keyval`.
    own: Option<Arc<Keyval>>,
}

/// Numbers start above those that the ABI gives to predefined keys.
const FIRST: i32 = 1 << 16;

static KEYVALS: Lazy<Mutex<Keyvals>> = Lazy::new(Mutex::default);
static STAMP: AtomicU64 = AtomicU64::new(0);

/// `MPI_Type_create_keyval`: a number that is never given out twice.
///
/// # Errors
/// Class `NoMem` after 2^31 keyvals.
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
    let rule =
        if number == 0 { "is MPI_KEYVAL_INVALID" } else { "is not a keyval of datatypes, or was freed" };
    Error::new(ErrorClass::Keyval, operation, "type_keyval", number, rule)
}

fn keyval(operation: &'static str, number: i32) -> Result<Arc<Keyval>> {
    let known = KEYVALS.lock().known.get(&number).and_then(|k| k.keyval.upgrade());
    known.ok_or_else(|| unknown(operation, number))
}

/// `MPI_Type_free_keyval`. While attributes use it, everything else goes on as before, and freeing it again is no error: a key that is in use is
/// extant until its last attribute is gone (MPI 5.0, 7.7.2).
///
/// # Errors
/// Class `Keyval`.
pub fn free_keyval(number: i32) -> Result<()> {
    let freed = {
        let mut keyvals = KEYVALS.lock();
        keyvals.known.get_mut(&number).and_then(|k| k.own.take().or_else(|| k.keyval.upgrade()))
    };
    // Its last reference takes the lock.
    freed.map(drop).ok_or_else(|| unknown("type_free_keyval", number))
}

fn find(object: &Object, number: i32) -> Option<Attribute> {
    let extras = object.extras.lock();
    extras.as_ref()?.attributes.iter().find(|a| a.keyval.number == number).cloned()
}

/// Takes out the attribute that `old` is, unless it was replaced meanwhile.
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

/// `MPI_Type_set_attr`: deletes the old value first, then sets. The attribute becomes the last one set.
///
/// # Errors
/// A bad handle or keyval; the code of the delete callback, and the old value stays.
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

/// `MPI_Type_get_attr`: the value, if there is one.
///
/// # Errors
/// A bad handle or keyval.
pub fn get_attribute(handle: Handle, number: i32) -> Result<Option<usize>> {
    const CALL: &str = "type_get_attr";
    match with(CALL, handle, |o| find(o, number))? {
        Some(attribute) => Ok(Some(attribute.value)),
        None => keyval(CALL, number).map(|_| None),
    }
}

/// `MPI_Type_delete_attr`.
///
/// # Errors
/// A bad handle or keyval; class `Keyval` when the type has no such attribute; the callback's code, and the value stays.
pub fn delete_attribute(handle: Handle, number: i32) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_delete_attr";
    let old = with(CALL, handle, |o| find(o, number))?;
    keyval(CALL, number)?;
    let Some(old) = old else {
        let rule = "the datatype has no attribute of this keyval";
        return Err(Error::new(ErrorClass::Keyval, CALL, "type_keyval", number, rule).into());
    };
    old.delete(handle)?;
    with(CALL, handle, |o| take(o, &old))?;
    Ok(())
}

/// Returns the attributes as they are, first set first.
pub(super) fn snapshot(object: &Object) -> Attributes {
    object.extras.lock().as_ref().map(|s| s.attributes.clone()).unwrap_or_default()
}

/// Gives a duplicate its copy.
pub(super) fn attach_copy(object: &Object, from: &Attribute, value: usize) {
    push(object, Arc::clone(&from.keyval), value);
}

/// Deletes all attributes, last set first, those that callbacks set meanwhile included; `regardless` drops an attribute
/// whose callback fails, and still reports it.
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
