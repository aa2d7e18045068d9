//! Types that came over from other processes lately, by their forms: the target of one-sided operations is told the type of each message, and mostly it is that
//! of the last one.
//!
//! A form is known by all its bytes. What was made of equal bytes before, checks included, is what would be made of these, and what was made of it since
//! (its tree, what packs it) serves the next message.

use ddtc::internal::process::Latch;

use crate::node::Ref;

/// Forms that are kept, each in the place that its hash says.
const PLACES: usize = 8;
/// Longer ones are not.
const LONGEST: usize = 8 << 10;
/// Where a wire form, which is what is kept of a form, has the hash of its datatype.
const HASH: usize = 16;

struct Form {
    bytes: Box<[u8]>,
    node: Ref,
}

static FORMS: Latch<[Option<Form>; PLACES]> = Latch::new([const { None }; PLACES]);

/// The place of a form that may be kept.
fn place(form: &[u8]) -> Option<usize> {
    if form.len() > LONGEST {
        return None;
    }
    form.get(HASH).map(|&byte| usize::from(byte) % PLACES)
}

/// Returns the type of a form, if it came lately.
pub(crate) fn find(form: &[u8]) -> Option<Ref> {
    let place = place(form)?;
    let known = FORMS.lock();
    known[place].as_ref().filter(|known| *known.bytes == *form).map(|known| known.node.clone())
}

/// Keeps the type of a form.
pub(crate) fn keep(form: &[u8], node: &Ref) {
    let Some(place) = place(form) else { return };
    let known = Form { bytes: form.into(), node: node.clone() };
    let old = FORMS.lock()[place].replace(known);
    // Outside of the lock: a tree may be large.
    drop(old);
}

/// Forgets all of them: what was kept.
pub(crate) fn emptied() -> impl Sized {
    std::mem::replace(&mut *FORMS.lock(), [const { None }; PLACES])
}
