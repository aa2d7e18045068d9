//! Cache of the types that were recently received from other processes. The keys are their wire
//! forms, that is, serialized types without the head that `flatten.rs` describes. The target of
//! one-sided operations gets a serialized type with each message, and it is mostly the same as in
//! the message before.
//!
//! The lookup compares all bytes of the wire form. If they are equal to the bytes of an entry, they
//! have passed all checks before and stand for the same type. The data structures that were made
//! for that type, such as its compiled code, then serve the next message too.

use ddtc::internal::process::SpinLock;

use crate::node::Ref;

/// Number of entries of the cache. The hash that a wire form contains determines its entry.
const PLACES: usize = 8;
/// Maximum length in bytes of a wire form that the cache stores.
const LONGEST: usize = 8 << 10;
/// Offset in a wire form of the hash of the datatype, in bytes. In this module, names with `form`
/// mean a wire form, which is a serialized type without the head that `flatten.rs` describes.
const HASH: usize = 16;

struct Form {
    bytes: Box<[u8]>,
    node: Ref,
}

static FORMS: SpinLock<[Option<Form>; PLACES]> = SpinLock::new([const { None }; PLACES]);

/// Returns the index in [`FORMS`] of the only entry that may contain a wire form; `None` if the
/// wire form is too long or too short to be stored.
fn form_index(form: &[u8]) -> Option<usize> {
    if form.len() > LONGEST {
        return None;
    }
    form.get(HASH).map(|&byte| usize::from(byte) % PLACES)
}

/// Returns the type of a wire form if the cache contains the wire form.
pub(crate) fn find(form: &[u8]) -> Option<Ref> {
    let index = form_index(form)?;
    let known = FORMS.lock();
    known[index].as_ref().filter(|known| *known.bytes == *form).map(|known| known.node.clone())
}

/// Stores a wire form and its type in the cache, in place of the previous wire form at the same
/// index. Does nothing if the wire form is too long or too short to be stored.
pub(crate) fn keep(form: &[u8], node: &Ref) {
    let Some(index) = form_index(form) else { return };
    let known = Form { bytes: form.into(), node: node.clone() };
    let old = FORMS.lock()[index].replace(known);
    // The old type is dropped after the lock is released, since dropping a deeply nested type takes
    // long.
    drop(old);
}

/// Removes all entries of the cache, and returns them so that the caller can drop them while no
/// lock is held.
pub(crate) fn emptied() -> impl Sized {
    std::mem::replace(&mut *FORMS.lock(), [const { None }; PLACES])
}
