//! The single named type of all elements of a type, if there is one. A buffer that must not be cut
//! inside an element is passed as elements of this type.
//!
//! Two kinds of types are treated as if they had no such named type, so their buffers are bypassed.
//! If the named type has gaps of its own, which pairs have, packed elements are no array of the
//! named type. Types with parameters of Fortran (`MPI_Type_create_f90_real` and its relatives) have
//! handles that this library has not asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::datatype::{Class, Combiner, Datatype};

use crate::host::{HandleWord, Host};

const UNKNOWN: u64 = 0;
const NONE: u64 = 1;

/// Bits of the handle in a word. The bits above them are the size of an element in bytes.
const HANDLE: u64 = (1 << 48) - 1;

/// Named type of all elements of a type, as a word; it is found out when it is first asked for.
pub(crate) struct ElementType(AtomicU64);

impl ElementType {
    pub(crate) const fn new() -> ElementType {
        ElementType(AtomicU64::new(UNKNOWN))
    }

    pub(crate) fn reset(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Returns `bytes` packed bytes of a type as a number of elements and their named type; none if
    /// there is no such type.
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
    // The MPI library's size of the type must be the usual one: the options of a compiler may have
    // changed the sizes of Fortran's types.
    let (handle, mut size) = (host.handle(named)?, 0);
    // SAFETY: `handle` is a named type of the MPI library, and `size` a number to write to.
    let code = unsafe { host.f.type_size?(handle, &raw mut size) };
    let right = code == 0 && i64::from(size) == named.size() && handle & !HANDLE == 0;
    right.then_some(handle | (size as u64) << 48)
}
