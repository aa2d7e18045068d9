//! Questions about a datatype to the library: size, bounds, envelope and contents.

use std::ffi::c_int;

use ddtc::internal::datatype::contents::{Contents, Envelope};

use super::{Answer, Handle, Library, absent};

/// Lower bound and extent, or the true ones, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lb: i64,
    pub(crate) extent: i64,
}

impl Library {
    /// `MPI_Type_size`, in 64 bits where the library has that.
    pub(crate) fn size(&self, t: Handle) -> Answer<i64> {
        if let Some(size_x) = self.f.size_x {
            let mut size = 0i64;
            // SAFETY: a datatype, and a number to write to.
            self.done("MPI_Type_size_x", unsafe { size_x(t.0, &raw mut size) })?;
            return Ok(size);
        }
        self.small_size(t).map(i64::from)
    }

    /// `MPI_Type_size`, which is `MPI_UNDEFINED` where an int is too small.
    pub(crate) fn small_size(&self, t: Handle) -> Answer<c_int> {
        let size = self.f.size.ok_or(absent("MPI_Type_size"))?;
        let mut small: c_int = 0;
        // SAFETY: a datatype, and a number to write to.
        self.done("MPI_Type_size", unsafe { size(t.0, &raw mut small) })?;
        Ok(small)
    }

    /// `MPI_Type_get_extent`.
    pub(crate) fn bounds(&self, t: Handle) -> Answer<Bounds> {
        let f = self.f.extent.ok_or(absent("MPI_Type_get_extent"))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: a datatype, and numbers to write to.
        self.done("MPI_Type_get_extent", unsafe { f(t.0, &raw mut lb, &raw mut extent) })?;
        Ok(Bounds { lb: lb as i64, extent: extent as i64 })
    }

    /// `MPI_Type_get_true_extent`.
    pub(crate) fn true_bounds(&self, t: Handle) -> Answer<Bounds> {
        let f = self.f.true_extent.ok_or(absent("MPI_Type_get_true_extent"))?;
        let (mut lb, mut extent) = (0isize, 0isize);
        // SAFETY: a datatype, and numbers to write to.
        self.done("MPI_Type_get_true_extent", unsafe { f(t.0, &raw mut lb, &raw mut extent) })?;
        Ok(Bounds { lb: lb as i64, extent: extent as i64 })
    }

    /// `MPI_Type_get_envelope`, in the large form where the library has it.
    ///
    /// # Errors
    /// In words: an error code, or a combiner that the ABI does not have.
    pub(crate) fn envelope(&self, t: Handle) -> Result<Envelope, String> {
        // SAFETY: the library's functions, and a datatype of it.
        unsafe { self.queries().envelope(t.0) }.map_err(|e| e.to_string())
    }

    /// `MPI_Type_get_contents` of a derived datatype. Derived datatypes among the contents are the caller's to free.
    ///
    /// # Errors
    /// As [`Library::envelope`].
    pub(crate) fn contents(&self, t: Handle, envelope: &Envelope) -> Result<Contents<Handle>, String> {
        // SAFETY: as above, with the envelope that was just returned for it.
        let contents = unsafe { self.queries().contents(t.0, envelope) }.map_err(|e| e.to_string())?;
        let Contents { integers, addresses, large_counts, datatypes } = contents;
        let datatypes = datatypes.into_iter().map(|h| Handle(h & self.abi.handle_mask)).collect();
        Ok(Contents { integers, addresses, large_counts, datatypes })
    }
}
