//! Arrays of counts and displacements for the host: the program's, or others where parts were moved together or the host has only the
//! small form.

use std::ffi::c_int;

use crate::forms::{Forms, Length};
use crate::parts::Part;

/// An array for the host.
pub(crate) enum Numbers<N> {
    /// The program's, of the form that the host is asked in.
    Given(*const N),
    Small(Vec<c_int>),
    Large(Vec<i64>),
}

impl<N: Length> Numbers<N> {
    /// For the small form of a call.
    pub(crate) fn small(&self) -> *const c_int {
        match self {
            Numbers::Given(at) => at.cast(),
            Numbers::Small(own) => own.as_ptr(),
            Numbers::Large(_) => std::ptr::null(),
        }
    }

    /// For its large form.
    pub(crate) fn large(&self) -> *const i64 {
        match self {
            Numbers::Given(at) => at.cast(),
            Numbers::Large(own) => own.as_ptr(),
            Numbers::Small(_) => std::ptr::null(),
        }
    }
}

/// Counts and displacements of a buffer's parts.
pub(crate) struct Vector<N> {
    pub(crate) counts: Numbers<N>,
    pub(crate) displs: Numbers<N>,
    /// The program's own, and how many.
    given: (*const N, *const N),
    parts: usize,
    /// Whether the host is asked in the small form.
    small: bool,
}

fn narrowed(numbers: impl Iterator<Item = i64>) -> Option<Vec<c_int>> {
    numbers.map(|n| c_int::try_from(n).ok()).collect()
}

impl<N: Length> Vector<N> {
    /// The arrays of a call; `None`: they are of the large form, the host has only the small one, and they do not fit.
    ///
    /// # Safety
    /// The arrays must have `parts` elements.
    pub(crate) unsafe fn of<S: Copy, L: Copy>(
        forms: &Forms<S, L>,
        counts: *const N,
        displs: *const N,
        parts: i64,
    ) -> Option<Vector<N>> {
        let small = !(N::LARGE && forms.large.is_some());
        let n = usize::try_from(parts).unwrap_or(0);
        // SAFETY: as the caller promises.
        let read = |at: *const N| (0..n).map(move |i| unsafe { *at.add(i) }.wide());
        let narrow = forms.narrows::<N>() && n > 0 && !counts.is_null() && !displs.is_null();
        let own = if narrow { Some((narrowed(read(counts))?, narrowed(read(displs))?)) } else { None };
        let given = (counts, displs);
        let (counts, displs) = match own {
            Some((c, d)) => (Numbers::Small(c), Numbers::Small(d)),
            None => (Numbers::Given(counts), Numbers::Given(displs)),
        };
        Some(Vector { counts, displs, given, parts: n, small })
    }

    /// The parts; `None` where there are no arrays.
    ///
    /// # Safety
    /// As [`Vector::of`].
    pub(crate) unsafe fn parts(&self) -> Option<Vec<Part>> {
        let (counts, displs) = self.given;
        if counts.is_null() || displs.is_null() || self.parts == 0 {
            return None;
        }
        // SAFETY: as the caller promises.
        let part = |i| unsafe { Part { at: (*displs.add(i)).wide(), count: (*counts.add(i)).wide() } };
        let parts: Vec<Part> = (0..self.parts).map(part).collect();
        // Packed parts stand one after the other: their displacements must be numbers of the form.
        let total: i128 = parts.iter().map(|p| i128::from(p.count)).sum();
        (!self.small || total <= i128::from(c_int::MAX)).then_some(parts)
    }

    /// Displacements of the same parts, one after the other.
    pub(crate) fn close_up(&mut self, parts: &[Part]) {
        let mut at = 0;
        let places = parts.iter().map(|p| {
            at += p.count;
            at - p.count
        });
        self.displs = if self.small {
            Numbers::Small(places.map(|at| at as c_int).collect())
        } else {
            Numbers::Large(places.collect())
        };
    }
}
