//! The one named type that all elements of a type are, if there is one: what must not be cut inside an element goes as that many of it.
//!
//! Packed elements are an array of the named type only where it has no gaps of its own, which pairs have;
//! types of Fortran's parameters have handles that were never asked for. Both are the host's.

use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::datatype::{Class, Combiner, Datatype};

use crate::host::{HandleWord, Host};

const UNKNOWN: u64 = 0;
const NONE: u64 = 1;

/// The bits of a handle in a word; above them are the bytes of an element.
const HANDLE: u64 = (1 << 48) - 1;

/// Stands for a type in elements: found out when it is first asked for.
pub(crate) struct ElementType(AtomicU64);

impl ElementType {
    pub(crate) const fn new() -> ElementType {
        ElementType(AtomicU64::new(UNKNOWN))
    }

    pub(crate) fn reset(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Returns `bytes` packed bytes of a type as elements and their type.
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
    // The host's size, which a compiler's options may have changed for Fortran's types.
    let (handle, mut size) = (host.handle(named)?, 0);
    // SAFETY: a named type of the host's, a number to write to.
    let code = unsafe { host.f.type_size?(handle, &raw mut size) };
    let right = code == 0 && i64::from(size) == named.size() && handle & !HANDLE == 0;
    right.then_some(handle | (size as u64) << 48)
}
