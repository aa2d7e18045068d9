//! Attributes of datatypes: keyvals, one attribute cache for each object, and callbacks for copying
//! and deleting (MPI 5.0, section 7.7.4).
//!
//! Keyvals of datatypes are numbered separately from those of communicators and windows, which are
//! unknown here. A keyval that was freed remains usable until the last attribute that uses it is
//! gone (7.7.2). Callbacks run without a lock and see the current state of the object. Since they
//! may change it, the attributes are read again after each callback.
//!
//! A call that deletes an attribute claims it before it calls the delete callback. So no two calls
//! pass one value to the callback, which often frees memory. Other calls that delete, set, copy or
//! free treat a claimed attribute as deleted; only [`get_attribute`] still finds it. They do not
//! wait for the end of the callback, because the callback may wait for the program's other threads.

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
    /// Whether a call is deleting the attribute.
    claimed: bool,
}

impl Attribute {
    /// Calls the copy callback. Returns the value for the duplicate, or none to leave the attribute
    /// out.
    pub(super) fn copy(&self, old: Handle) -> std::result::Result<Option<usize>, Fault> {
        self.keyval.callbacks.copy(old, self.keyval.number, self.value).map_err(Fault::Callback)
    }

    /// Deletes the attribute, which the caller has claimed: calls the delete callback, and then
    /// removes the attribute from the datatype. If the callback fails, the attribute is released,
    /// or removed nevertheless if `regardless` is true.
    fn delete(&self, handle: Handle, regardless: bool) -> std::result::Result<(), Fault> {
        let result = self.keyval.callbacks.delete(handle, self.keyval.number, self.value);
        // The callback or another thread may have freed the datatype in the meantime, together with
        // its attributes. Then there is nothing to remove.
        let _ = with("type_delete_attr", handle, |o| {
            let mut extras = o.extras.lock();
            let Some(attributes) = extras.as_mut().map(|s| &mut s.attributes) else { return };
            let Some(i) = attributes.iter().position(|a| a.stamp == self.stamp) else { return };
            let replaced = attributes.iter().any(|a| a.stamp != self.stamp && a.is_of(self.keyval.number));
            if result.is_ok() || regardless || replaced {
                // This does not drop the last reference to the keyval, because `self` has another.
                attributes.remove(i);
            } else {
                attributes[i].claimed = false;
            }
        });
        result.map_err(Fault::Callback)
    }

    fn is_of(&self, number: i32) -> bool {
        self.keyval.number == number
    }
}

/// Claims the last attribute for which `wanted` is true, among those that no other call has
/// claimed. Returns a copy of it, or none if there is no such attribute.
fn claim(attributes: &mut Attributes, wanted: impl Fn(&Attribute) -> bool) -> Option<Attribute> {
    let found = attributes.iter_mut().rfind(|a| !a.claimed && wanted(a))?;
    found.claimed = true;
    Some(found.clone())
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

/// Claims the attribute of the keyval `keyval` and returns it. If the object has none, or another
/// call has claimed it, adds an attribute with `value` and returns none.
fn claim_or_push(object: &Object, keyval: &Arc<Keyval>, value: usize) -> Option<Attribute> {
    let mut extras = object.extras.lock();
    let attributes = &mut extras.get_or_insert_default().attributes;
    let old = claim(attributes, |a| a.is_of(keyval.number));
    if old.is_none() {
        let (keyval, stamp) = (Arc::clone(keyval), STAMP.fetch_add(1, Ordering::Relaxed));
        attributes.push(Attribute { keyval, value, stamp, claimed: false });
    }
    old
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
    while let Some(old) = with(CALL, handle, |o| claim_or_push(o, &keyval, value))? {
        old.delete(handle, false)?;
    }
    Ok(())
}

/// Returns the value of an attribute (`MPI_Type_get_attr`), or none if the datatype has no such
/// attribute.
///
/// # Errors
/// The errors of [`with`]; class `Keyval` for an unknown keyval.
pub fn get_attribute(handle: Handle, number: i32) -> Result<Option<usize>> {
    const CALL: &str = "type_get_attr";
    // The last attribute of the keyval counts: those before it are being deleted.
    let value = with(CALL, handle, |o| {
        let extras = o.extras.lock();
        extras.as_ref()?.attributes.iter().rfind(|a| a.is_of(number)).map(|a| a.value)
    })?;
    match value {
        Some(value) => Ok(Some(value)),
        None => keyval(CALL, number).map(|_| None),
    }
}

/// Deletes an attribute (`MPI_Type_delete_attr`).
///
/// # Errors
/// The errors of [`with`]; class `Keyval` for an unknown keyval, or if the datatype has no such
/// attribute or another call is deleting it; the code of the delete callback if it fails, in which
/// case the value stays.
pub fn delete_attribute(handle: Handle, number: i32) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_delete_attr";
    let old = with(CALL, handle, |o| claim(&mut o.extras.lock().as_mut()?.attributes, |a| a.is_of(number)))?;
    let Some(old) = old else {
        keyval(CALL, number)?;
        let rule = "must be the keyval of an attribute that the datatype has";
        return Err(Error::new(ErrorClass::Keyval, CALL, "type_keyval", number, rule).into());
    };
    old.delete(handle, false)
}

/// Returns a copy of the attributes of `object` that are not being deleted, in the order in which
/// they were set.
pub(super) fn snapshot(object: &Object) -> Attributes {
    let extras = object.extras.lock();
    let attributes = extras.iter().flat_map(|s| &s.attributes);
    attributes.filter(|a| !a.claimed).cloned().collect()
}

/// Adds to a duplicate the attribute `from` of the original, with the value that the copy callback
/// returned.
pub(super) fn attach_copy(object: &Object, from: &Attribute, value: usize) {
    // The program does not know the handle of the duplicate yet, and each of its attributes is the
    // copy of another keyval's, so there is nothing to claim.
    claim_or_push(object, &from.keyval, value);
}

/// Deletes all attributes that no other call is deleting, including those that callbacks set in the
/// meantime, beginning with the one that was set last. It stops at the first callback that fails
/// and returns the code. The attribute of that callback stays, unless `regardless` is true.
pub(super) fn delete_all(handle: Handle, regardless: bool) -> std::result::Result<(), Fault> {
    const CALL: &str = "type_free";
    loop {
        let last = with(CALL, handle, |o| claim(&mut o.extras.lock().as_mut()?.attributes, |_| true))?;
        let Some(last) = last else { return Ok(()) };
        last.delete(handle, regardless)?;
    }
}
