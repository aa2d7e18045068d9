//! Cache of the types that were recently received from other processes. The key of an entry is a
//! wire form, that is, a serialized type without the head that `flatten.rs` describes. The target
//! of one-sided operations gets a serialized type with each message. In most cases it is the same
//! one as in the message before.
//!
//! A lookup compares all bytes of the received wire form with those of an entry. If they are equal,
//! the wire form needs no further checks, because an equal one has passed them before, and it
//! stands for the type in the entry. The data structures that were made for this type, such as its
//! compiled code, are then used for the next message too.

use ddtc::internal::process::SpinLock;

use crate::node::Ref;

/// Number of entries of the cache. The hash that a wire form contains determines its entry.
const PLACES: usize = 8;
/// Maximum length in bytes of a wire form that the cache stores.
const LONGEST: usize = 8 << 10;
/// Offset in bytes at which a wire form contains the hash of its datatype. In this module, names
/// with `form` mean a wire form, which is a serialized type without the head that `flatten.rs`
/// describes.
const HASH: usize = 16;

struct Form {
    bytes: Box<[u8]>,
    node: Ref,
}

static FORMS: SpinLock<[Option<Form>; PLACES]> = SpinLock::new([const { None }; PLACES]);

/// Returns the index in [`FORMS`] of the only entry that may contain a wire form; `None` if the
/// wire form is longer than [`LONGEST`], or too short to contain a hash. Such wire forms are not
/// stored.
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
