//! Queries of the library about a datatype: size, bounds, envelope and contents.

use std::ffi::c_int;

use ddtc::internal::datatype::contents::{Contents, Envelope};

use super::{Answer, Handle, Library, absent};

/// Lower bound and extent, or true lower bound and true extent, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lb: i64,
    pub(crate) extent: i64,
}

impl Library {
    /// Returns the size of a datatype from `MPI_Type_size_x` if the library has that function, or
    /// else from `MPI_Type_size`.
    pub(crate) fn size(&self, t: Handle) -> Answer<i64> {
        if let Some(size_x) = self.f.size_x {
            let mut size = 0i64;
            // SAFETY: `size_x` is the library's function with its C type, `t` is a datatype of this
            // library, and `size` is a number to which the call may write.
            self.done("MPI_Type_size_x", unsafe { size_x(t.0, &raw mut size) })?;
            return Ok(size);
        }
        self.small_size(t).map(i64::from)
    }

    /// Returns the size of a datatype from `MPI_Type_size`, which is `MPI_UNDEFINED` if the size
    /// does not fit an int.
    pub(crate) fn small_size(&self, t: Handle) -> Answer<c_int> {
        let size = self.f.size.ok_or(absent("MPI_Type_size"))?;
        let mut small: c_int = 0;
        // SAFETY: `size` is the library's function with its C type, `t` is a datatype of this
        // library, and `small` is a number to which the call may write.
        self.done("MPI_Type_size", unsafe { size(t.0, &raw mut small) })?;
        Ok(small)
    }

    /// Returns the bounds from `MPI_Type_get_extent`.
    pub(crate) fn bounds(&self, t: Handle) -> Answer<Bounds> {
        let f = self.f.extent.ok_or(absent("MPI_Type_get_extent"))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: `f` is the library's function with its C type, `t` is a datatype of this library,
        // and `lb` and `extent` are numbers to which the call may write.
        self.done("MPI_Type_get_extent", unsafe { f(t.0, &raw mut lb, &raw mut extent) })?;
        Ok(Bounds { lb: lb as i64, extent: extent as i64 })
    }

    /// Returns the true bounds from `MPI_Type_get_true_extent`.
    pub(crate) fn true_bounds(&self, t: Handle) -> Answer<Bounds> {
        let f = self.f.true_extent.ok_or(absent("MPI_Type_get_true_extent"))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: `f` is the library's function with its C type, `t` is a datatype of this library,
        // and `lb` and `extent` are numbers to which the call may write.
        self.done("MPI_Type_get_true_extent", unsafe { f(t.0, &raw mut lb, &raw mut extent) })?;
        Ok(Bounds { lb: lb as i64, extent: extent as i64 })
    }

    /// Returns the envelope of a datatype. Calls the large-count variant of `MPI_Type_get_envelope`
    /// if the library has that variant.
    ///
    /// # Errors
    /// Returns a text that names the error code of the library, or a combiner that its ABI does not
    /// have.
    pub(crate) fn envelope(&self, t: Handle) -> Result<Envelope, String> {
        // SAFETY: `queries` has functions of this library with its ABI, and `t` is a datatype of
        // this library.
        unsafe { self.queries().envelope(t.0) }.map_err(|e| e.to_string())
    }

    /// Returns the contents of a datatype that is not a named type, from `MPI_Type_get_contents`.
    /// `envelope` must be what [`Library::envelope`] returned for the same datatype. The caller
    /// must free the derived datatypes among the contents.
    ///
    /// # Errors
    /// Returns a text that names the error, as [`Library::envelope`] does. This includes the case
    /// that a length in `envelope` is negative.
    pub(crate) fn contents(&self, t: Handle, envelope: &Envelope) -> Result<Contents<Handle>, String> {
        // SAFETY: `queries` has functions of this library with its ABI, `t` is a datatype of this
        // library, `envelope` is what the library returned for it, and it is not a named type. The
        // only caller, the check `decode`, returns early for named types.
        let contents = unsafe { self.queries().contents(t.0, envelope) }.map_err(|e| e.to_string())?;
        let Contents { integers, addresses, large_counts, datatypes } = contents;
        let datatypes = datatypes.into_iter().map(|h| Handle(h & self.abi.handle_mask)).collect();
        Ok(Contents { integers, addresses, large_counts, datatypes })
    }
}
