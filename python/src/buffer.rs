//! Memory of Python's objects, without a copy.
//!
//! A buffer stays exported, so its memory stays where it is, while a [`Memory`] lives. That no other thread writes to it meanwhile is the
//! caller's part, as in every call that gives up the interpreter's lock over a buffer; the documentation of each call says so.

use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::Error;

/// The bytes from the lowest to the highest element of a buffer, gaps between strided elements included.
pub struct Memory {
    buffer: PyUntypedBuffer,
    name: &'static str,
    /// From the first element to the lowest byte: not positive.
    low: isize,
    len: usize,
}

impl Memory {
    /// Any buffer, strided ones too.
    ///
    /// # Errors
    /// If the object has no buffer, or one of pointers to pointers.
    pub fn strided(object: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Memory> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.suboffsets().is_some_and(|s| s.iter().any(|&offset| offset >= 0)) {
            return Err(Error::new_err(format!("{name}: must be memory in one piece, not pointers to rows")));
        }
        let (mut low, mut high) = (0isize, 0isize);
        let empty = buffer.shape().contains(&0);
        for (&n, &stride) in buffer.shape().iter().zip(buffer.strides()) {
            let last = (n.max(1) as isize - 1).checked_mul(stride);
            let last =
                last.ok_or_else(|| Error::new_err(format!("{name}: its strides lead out of memory")))?;
            low += last.min(0);
            high += last.max(0);
        }
        let len = if empty { 0 } else { (high - low) as usize + buffer.item_size() };
        Ok(Memory { buffer, name, low: if empty { 0 } else { low }, len })
    }

    /// Returns a buffer in one piece, as a packed stream is.
    ///
    /// # Errors
    /// As [`Memory::strided`]; if it has gaps, or shall be written to and must not.
    pub fn dense(object: &Bound<'_, PyAny>, name: &'static str, write: bool) -> PyResult<Memory> {
        let memory = Memory::strided(object, name)?;
        if !memory.buffer.is_c_contiguous() && !memory.buffer.is_fortran_contiguous() {
            return Err(Error::new_err(format!("{name}: must be contiguous: packed bytes have no gaps")));
        }
        if write { memory.writable() } else { Ok(memory) }
    }

    /// Returns the memory if it may be written to.
    ///
    /// # Errors
    /// If it is read-only.
    pub fn writable(self) -> PyResult<Memory> {
        if self.buffer.readonly() {
            return Err(Error::new_err(format!("{}: must be writable, and is read-only", self.name)));
        }
        Ok(self)
    }

    /// Returns where in the bytes an instance begins that begins `origin` bytes behind the first element.
    ///
    /// # Errors
    /// If that is in front of them.
    pub fn origin(&self, origin: i64) -> PyResult<usize> {
        let at = i64::try_from(self.low).ok().and_then(|low| origin.checked_sub(low));
        at.and_then(|at| usize::try_from(at).ok()).ok_or_else(|| {
            Error::new_err(format!("origin = {origin}: must not lie in front of the memory of {}", self.name))
        })
    }

    fn start(&self) -> *mut u8 {
        // The lowest element: `low` leads to it from the first one.
        self.buffer.buf_ptr().cast::<u8>().wrapping_offset(self.low)
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// Nobody writes to them while the slice lives.
    pub unsafe fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the exporter vouches for the elements; the gaps between strided ones belong to the same memory, and it stays while
        // the buffer is exported. The rest is the caller's promise.
        unsafe { slice::from_raw_parts(self.start(), self.len) }
    }

    /// Returns the bytes, to write to.
    ///
    /// # Safety
    /// The buffer is writable, and nobody else touches its bytes while the slice lives.
    #[allow(clippy::mut_from_ref, reason = "the memory is the exporter's, not this value's")]
    pub unsafe fn bytes_mut(&self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above, with the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

/// That two buffers have no byte in common.
///
/// # Errors
/// If they have.
pub fn check_disjoint(a: &Memory, b: &Memory) -> PyResult<()> {
    let (a_start, b_start) = (a.start().addr(), b.start().addr());
    if a.len > 0 && b.len > 0 && a_start < b_start + b.len && b_start < a_start + a.len {
        return Err(Error::new_err("source and target: must not overlap"));
    }
    Ok(())
}
