//! Named type that all elements of a datatype have in common, if there is one. If the packed bytes
//! of a buffer must not be cut inside an element, they are passed to the MPI library as elements of
//! this named type.
//!
//! Datatypes of two kinds are treated as if they had no common named type, so their buffers are
//! bypassed. First, the named type may have gaps of its own, as the types of pairs have: then
//! packed elements are not an array of the named type. Second, the elements may have a type with
//! parameters of Fortran (`MPI_Type_create_f90_real` and the related functions), whose handle ddtc
//! has not requested from the MPI library.

use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::datatype::{Class, Combiner, Datatype};
use ddtc::internal::methods::*;

use crate::host::{HandleWord, Host};

const UNKNOWN: u64 = 0;
const NONE: u64 = 1;

/// Mask of the bits of an [`ElementType`] that hold the handle of the named type. The upper 16 bits
/// hold the size of the named type in bytes.
const HANDLE: u64 = (1 << 48) - 1;

/// Named type that all elements of a datatype have in common, in one word: its handle ([`HANDLE`])
/// and size, or [`NONE`]. The word is [`UNKNOWN`] until the first call of
/// [`ElementType::elements`].
pub(crate) struct ElementType(AtomicU64);

impl ElementType {
    pub(crate) const fn new() -> ElementType {
        ElementType(AtomicU64::new(UNKNOWN))
    }

    pub(crate) fn reset(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Returns the number of elements in `bytes` packed bytes of `t`, and their common named type;
    /// `None` if the elements have no common named type that can be used.
    pub(crate) fn elements(&self, host: &Host, t: &Datatype, bytes: i64) -> Option<(i64, HandleWord)> {
        let known = match self.0.load(Ordering::Relaxed) {
            UNKNOWN => self.find(host, t),
            known => known,
        };
        (known != NONE).then(|| (bytes / (known >> 48) as i64, known & HANDLE))
    }

    #[cold]
    fn find(&self, host: &Host, t: &Datatype) -> u64 {
        let found = only(host, t).unwrap_or(NONE);
        self.0.store(found, Ordering::Relaxed);
        found
    }
}

fn only(host: &Host, t: &Datatype) -> Option<u64> {
    let parameters = |t: &Datatype| {
        matches!(
            t.combiner(),
            Combiner::F90Real { .. } | Combiner::F90Complex { .. } | Combiner::F90Integer { .. }
        )
    };
    if t.nodes().any(parameters) {
        return None;
    }
    let named = t.only_basic("message").ok()??;
    if named.class() == Class::Packed || named.size() != named.extent() {
        return None;
    }
    // The size of the named type in the MPI library must be the size that ddtc assumes: options of
    // a compiler may have changed the sizes of Fortran's types.
    let (handle, mut size) = (host.handle(named)?, 0);
    // SAFETY: `handle` is a named type of the MPI library, and `size` is a local integer.
    let code = unsafe { host.f.type_size?(handle, &raw mut size) };
    let right = code == 0 && i64::from(size) == named.size() && handle & !HANDLE == 0;
    right.then_some(handle | (size as u64) << 48)
}
