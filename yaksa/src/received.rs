//! Cache of the types that were recently received from other processes. The key of an entry is a
//! wire form, that is, a serialized type without the head that `flatten.rs` describes. The target
//! of one-sided operations gets a serialized type with each message, in most cases the same one as
//! with the message before.
//!
//! A lookup compares all bytes of the received wire form with those of an entry. If they are equal,
//! the type in the entry is used again, with all that was made for it, such as its compiled code.
//! The wire form need not be checked, because an equal wire form was checked when the entry was
//! made.
//!
//! In this module, the parameters named `form` are wire forms.

use ddtc::internal::process::SpinLock;

use crate::node::Ref;

/// Number of entries of the cache. The hash that a wire form contains determines its entry.
const PLACES: usize = 8;
/// Maximum length in bytes of a wire form that the cache stores.
const LONGEST: usize = 8 << 10;
/// Offset in bytes of the hash of a datatype in its wire form, which is the part of a serialized
/// type after the head.
const HASH: usize = 16;

/// Entry of the cache: a wire form, and the type that was made from it.
struct Form {
    bytes: Box<[u8]>,
    node: Ref,
}

static FORMS: SpinLock<[Option<Form>; PLACES]> = SpinLock::new([const { None }; PLACES]);

/// Returns the index in [`FORMS`] of the only entry in which the wire form `form` may be stored.
/// Returns `None` if it is never stored, because it is longer than [`LONGEST`], or too short to
/// contain a hash.
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
/// index. Does nothing if the wire form is longer than [`LONGEST`], or too short to contain a hash.
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
