//! Arrays of counts and displacements for the host: the program's, or others where parts were moved together or the host has only the
//! small form.

use std::ffi::{c_int, c_void};

use ddtc::count::Count;

use crate::forms::Forms;
use crate::parts::Parts;
use crate::staged::{Kept, Staged};

/// An array for the host.
pub(crate) enum Numbers<N> {
    /// The program's, of the form that the host is asked in.
    UserBuffer(*const N),
    Small(Vec<c_int>),
    Large(Vec<i64>),
}

/// Array for the MPI library, whose memory the staged call or the program owns. A call may be
/// abandoned, so its frame must not own the array.
#[derive(Clone, Copy)]
pub(crate) struct KeptNumbers(*const c_void);

impl KeptNumbers {
    /// For the small form of a call.
    pub(crate) fn small(self) -> *const c_int {
        self.0.cast()
    }

    /// For its large form.
    pub(crate) fn large(self) -> *const i64 {
        self.0.cast()
    }
}

impl<N: Count> Numbers<N> {
    /// Moves an array that is not the program's into `staged`, where it lives as long as the operation.
    pub(crate) fn kept_by(self, staged: &mut Staged) -> KeptNumbers {
        match self {
            Numbers::UserBuffer(at) => KeptNumbers(at.cast()),
            Numbers::Small(own) => {
                let at = own.as_ptr().cast();
                staged.keep(Kept::Ints(own));
                KeptNumbers(at)
            }
            Numbers::Large(own) => {
                let at = own.as_ptr().cast();
                staged.keep(Kept::Longs(own));
                KeptNumbers(at)
            }
        }
    }
}

impl<N: Count> Numbers<N> {
    /// Returns an array of a call; `None`: it is of the large form, the host has only the small one, and a number does not fit.
    ///
    /// # Safety
    /// The array must have `parts` elements.
    pub(crate) unsafe fn of<S: Copy, L: Copy>(
        forms: &Forms<S, L>,
        given: *const N,
        parts: i64,
    ) -> Option<Numbers<N>> {
        if !forms.narrows::<N>() || parts <= 0 || given.is_null() {
            return Some(Numbers::UserBuffer(given));
        }
        // SAFETY: as the caller promises.
        let number = |i| unsafe { *given.add(i) }.wide();
        let narrowed = (0..usize::try_from(parts).ok()?).map(|i| c_int::try_from(number(i)).ok());
        narrowed.collect::<Option<_>>().map(Numbers::Small)
    }
}

/// Counts and displacements, whose memory the staged call or the program owns.
#[derive(Clone, Copy)]
pub(crate) struct KeptVector {
    pub(crate) counts: KeptNumbers,
    pub(crate) displs: KeptNumbers,
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

impl<N: Count> Vector<N> {
    /// Returns the arrays of a call; `None`: as [`Numbers::of`].
    ///
    /// # Safety
    /// The arrays must have `parts` elements.
    pub(crate) unsafe fn of<S: Copy, L: Copy>(
        forms: &Forms<S, L>,
        counts: *const N,
        displs: *const N,
        parts: i64,
    ) -> Option<Vector<N>> {
        let given = (counts, displs);
        let (small, n) = (!(N::LARGE && forms.large.is_some()), usize::try_from(parts).unwrap_or(0));
        // SAFETY: as the caller promises.
        let (counts, displs) =
            unsafe { (Numbers::of(forms, counts, parts)?, Numbers::of(forms, displs, parts)?) };
        Some(Vector { counts, displs, given, parts: n, small })
    }

    /// Returns the parts; `None` where there are no arrays, or their packed places are no numbers of the form.
    ///
    /// # Safety
    /// As [`Vector::of`].
    pub(crate) unsafe fn parts(&self) -> Option<Parts> {
        let (counts, displs) = self.given;
        if counts.is_null() || displs.is_null() || self.parts == 0 {
            return None;
        }
        // SAFETY: as the caller promises.
        let place = |i| unsafe { ((*displs.add(i)).wide(), (*counts.add(i)).wide()) };
        let parts = Parts::own((0..self.parts).map(place))?;
        (!self.small || parts.total()? <= i64::from(c_int::MAX)).then_some(parts)
    }

    /// Displacements of the same parts, one after the other.
    pub(crate) fn closed_up(&self, parts: &Parts) -> Numbers<N> {
        let places = parts.each_packed();
        if self.small {
            Numbers::Small(places.map(|at| at as c_int).collect())
        } else {
            Numbers::Large(places.collect())
        }
    }

    /// For the large form of a call that the program made in the small one: its counts, and displacements in bytes, others where given.
    ///
    /// # Safety
    /// As [`Vector::of`].
    pub(crate) unsafe fn widen(&mut self, displs: Option<Vec<i64>>) {
        let (counts, places) = self.given;
        // SAFETY: as the caller promises.
        let all = |at: *const N| (0..self.parts).map(|i| unsafe { *at.add(i) }.wide()).collect::<Vec<_>>();
        self.counts = Numbers::Large(all(counts));
        self.displs = Numbers::Large(displs.unwrap_or_else(|| all(places)));
    }

    /// Moves all arrays that are not the program's into `staged`, where they live as long as the operation.
    pub(crate) fn kept_by(self, staged: &mut Staged) -> KeptVector {
        KeptVector { counts: self.counts.kept_by(staged), displs: self.displs.kept_by(staged) }
    }
}
