//! Arrays of counts and displacements that the MPI library gets in collective calls: the program's
//! arrays, or replacements. An array is replaced if the parts of a buffer were packed together into
//! a staging buffer, or if the call is widened to its large form, whose counts are `MPI_Count`. It
//! is also replaced if the program made the call in the large form and the MPI library has only the
//! small form, whose counts are `int`.

use std::ffi::{c_int, c_void};

use ddtc::internal::count::Count;

use crate::forms::Forms;
use crate::parts::Parts;
use crate::staged::{Kept, Staged};

/// An array of counts or displacements for a call of the MPI library.
pub(crate) enum Numbers<N> {
    /// The program's own array, whose numbers have the type that this call of the MPI library
    /// expects.
    UserBuffer(*const N),
    /// An array that ddtc has made, for a call in the small form, whose counts are `int`.
    Small(Vec<c_int>),
    /// An array that ddtc has made, for a call in the large form, whose counts are `MPI_Count`.
    Large(Vec<i64>),
}

/// Address of an array of counts or displacements for the MPI library. The staged call or the
/// program owns the memory of the array. The stack frame of the call must not own it, because the
/// program may leave the call by a jump or an exception while the MPI library still reads the
/// array.
#[derive(Clone, Copy)]
pub(crate) struct KeptNumbers(*const c_void);

impl KeptNumbers {
    /// Returns the address of the array for a call in the small form, whose counts are `int`.
    pub(crate) fn small(self) -> *const c_int {
        self.0.cast()
    }

    /// Returns the address of the array for a call in the large form, whose counts are `MPI_Count`.
    pub(crate) fn large(self) -> *const i64 {
        self.0.cast()
    }
}

impl<N: Count> Numbers<N> {
    /// Moves the array into `staged`, where it lives as long as the operation, unless it is the
    /// program's own array. Returns the address of the array.
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
    /// Returns the array that the MPI library gets for the program's array `given`: an array
    /// narrowed to `int` if the program made the call in the large form and the MPI library has
    /// only the small one, else the program's own array. Returns `None` if a number does not fit an
    /// `int`.
    ///
    /// # Safety
    /// The array `given` must have `parts` elements, or be null.
    pub(crate) unsafe fn from_array<S: Copy, L: Copy>(
        forms: &Forms<S, L>,
        given: *const N,
        parts: i64,
    ) -> Option<Numbers<N>> {
        if !forms.narrows::<N>() || parts <= 0 || given.is_null() {
            return Some(Numbers::UserBuffer(given));
        }
        // SAFETY: `i` is below `parts`, and the caller promises that the array has that many
        // elements.
        let number = |i| unsafe { *given.add(i) }.wide();
        let narrowed = (0..usize::try_from(parts).ok()?).map(|i| c_int::try_from(number(i)).ok());
        narrowed.collect::<Option<_>>().map(Numbers::Small)
    }
}

/// Addresses of the arrays of counts and displacements of a buffer. The staged call or the program
/// owns the memory of the arrays.
#[derive(Clone, Copy)]
pub(crate) struct KeptVector {
    pub(crate) counts: KeptNumbers,
    pub(crate) displs: KeptNumbers,
}

/// Arrays of counts and displacements of the parts of a buffer, for a collective call of the MPI
/// library.
pub(crate) struct Vector<N> {
    pub(crate) counts: Numbers<N>,
    pub(crate) displs: Numbers<N>,
    /// The program's own arrays of counts and displacements.
    given: (*const N, *const N),
    /// Number of elements of each array.
    parts: usize,
    /// Whether the MPI library is called in the small form, whose counts are `int`.
    small: bool,
}

impl<N: Count> Vector<N> {
    /// Returns the arrays that the MPI library gets for the program's arrays `counts` and `displs`.
    /// Returns `None` if they must be narrowed to `int` and a number does not fit.
    ///
    /// # Safety
    /// Each of the arrays must have `parts` elements, or be null.
    pub(crate) unsafe fn from_arrays<S: Copy, L: Copy>(
        forms: &Forms<S, L>,
        counts: *const N,
        displs: *const N,
        parts: i64,
    ) -> Option<Vector<N>> {
        let given = (counts, displs);
        let (small, n) = (!(N::LARGE && forms.large.is_some()), usize::try_from(parts).unwrap_or(0));
        // SAFETY: the caller promises for both arrays what `Numbers::from_array` requires.
        let (counts, displs) = unsafe {
            (Numbers::from_array(forms, counts, parts)?, Numbers::from_array(forms, displs, parts)?)
        };
        Some(Vector { counts, displs, given, parts: n, small })
    }

    /// Returns the parts of the buffer with their places in a staging buffer, where they follow
    /// each other. Returns `None` if an array is null or empty, if a count is negative, or if the
    /// total number of elements does not fit the form in which the MPI library is called.
    ///
    /// # Safety
    /// As [`Vector::from_arrays`]: the program's arrays must still have their elements.
    pub(crate) unsafe fn parts(&self) -> Option<Parts> {
        let (counts, displs) = self.given;
        if counts.is_null() || displs.is_null() || self.parts == 0 {
            return None;
        }
        // SAFETY: `i` is below the number of elements, and the caller promises that both arrays,
        // which are not null, have that many.
        let place = |i| unsafe { ((*displs.add(i)).wide(), (*counts.add(i)).wide()) };
        let parts = Parts::own((0..self.parts).map(place))?;
        (!self.small || parts.total()? <= i64::from(c_int::MAX)).then_some(parts)
    }

    /// Returns the displacements of the parts in a staging buffer, where they follow each other.
    pub(crate) fn closed_up(&self, parts: &Parts) -> Numbers<N> {
        let places = parts.each_packed();
        if self.small {
            Numbers::Small(places.map(|at| at as c_int).collect())
        } else {
            Numbers::Large(places.collect())
        }
    }

    /// Prepares the arrays for the large form of a call that the program made in the small one:
    /// widens the counts and replaces the displacements by `displs`, which are in bytes, or widens
    /// the program's own displacements if `displs` is `None`.
    ///
    /// # Safety
    /// As [`Vector::from_arrays`]: the program's arrays must still have their elements. If there
    /// are parts, neither array may be null.
    pub(crate) unsafe fn widen(&mut self, displs: Option<Vec<i64>>) {
        let (counts, places) = self.given;
        // SAFETY: `i` is below the number of elements, and the caller promises that each array has
        // that many.
        let all = |at: *const N| (0..self.parts).map(|i| unsafe { *at.add(i) }.wide()).collect::<Vec<_>>();
        self.counts = Numbers::Large(all(counts));
        self.displs = Numbers::Large(displs.unwrap_or_else(|| all(places)));
    }

    /// Moves the arrays into `staged`, where they live as long as the operation, unless they are
    /// the program's own. Returns their addresses.
    pub(crate) fn kept_by(self, staged: &mut Staged) -> KeptVector {
        KeptVector { counts: self.counts.kept_by(staged), displs: self.displs.kept_by(staged) }
    }
}
