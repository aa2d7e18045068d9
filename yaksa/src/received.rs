//! Cache of the types that were recently received from other processes. Its keys are their
//! serialized types, called forms. The target of one-sided operations gets a form with each
//! message, and mostly it is the same form as in the message before.
//!
//! A form is looked up by all its bytes. Bytes that are equal to those of a kept form have passed
//! the checks before and give the same type. The tree and the committed type that have been made
//! for that type are then used for the next message too.

use ddtc::internal::process::SpinLock;

use crate::node::Ref;

/// Number of forms that are kept. The hash that a form contains determines its place.
const PLACES: usize = 8;
/// Maximum length in bytes of a form that is kept.
const LONGEST: usize = 8 << 10;
/// Offset in bytes of the hash of the datatype in a wire form. In this module, a form is a wire
/// form without the head of `flatten.rs`.
const HASH: usize = 16;

struct Form {
    bytes: Box<[u8]>,
    node: Ref,
}

static FORMS: SpinLock<[Option<Form>; PLACES]> = SpinLock::new([const { None }; PLACES]);

/// Returns the index in [`FORMS`] at which a form is kept; `None` if the form is too long or too
/// short to be kept.
fn form_index(form: &[u8]) -> Option<usize> {
    if form.len() > LONGEST {
        return None;
    }
    form.get(HASH).map(|&byte| usize::from(byte) % PLACES)
}

/// Returns the type of a form if the form is kept.
pub(crate) fn find(form: &[u8]) -> Option<Ref> {
    let index = form_index(form)?;
    let known = FORMS.lock();
    known[index].as_ref().filter(|known| *known.bytes == *form).map(|known| known.node.clone())
}

/// Keeps a form with its type, in place of the form that had the same place.
pub(crate) fn keep(form: &[u8], node: &Ref) {
    let Some(index) = form_index(form) else { return };
    let known = Form { bytes: form.into(), node: node.clone() };
    let old = FORMS.lock()[index].replace(known);
    // The old type is dropped after the lock is released, since dropping a large tree takes long.
    drop(old);
}

/// Removes all forms, and returns them so that the caller can drop them without holding the lock.
pub(crate) fn emptied() -> impl Sized {
    std::mem::replace(&mut *FORMS.lock(), [const { None }; PLACES])
}
