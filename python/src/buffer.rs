//! Access to the memory of Python's objects without a copy.
//!
//! While a [`Memory`] exists, the object's buffer stays exported, so its memory does not move.
//! Calls that use the memory release the interpreter's lock. So the user must ensure that no other
//! thread writes to the memory during such a call, as the documentation of each call says.

use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;

use crate::Error;
use crate::dlpack::is_on_device;

/// The bytes from the lowest to the highest element of a buffer, including the gaps between strided
/// elements.
pub struct Memory {
    buffer: PyUntypedBuffer,
    name: &'static str,
    /// Distance in bytes from the first element to the lowest byte; 0 or negative.
    low: isize,
    len: usize,
}

impl Memory {
    /// Exports the buffer of `object`, which may be strided. `name` is the argument's name in
    /// errors.
    ///
    /// # Errors
    /// If the object has no buffer, its elements are in device memory, the buffer consists of
    /// pointers to rows, or the distance between two of its elements does not fit in the address
    /// space.
    pub fn strided(object: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Memory> {
        let buffer = match PyUntypedBuffer::get(object) {
            Err(_) if is_on_device(object)? => {
                let found = object.get_type().name()?;
                return Err(Error::new_err(format!(
                    "{name} = a {found} in device memory: must be host memory; a ddtc.CudaLayout takes device memory"
                )));
            }
            exported => exported?,
        };
        if buffer.suboffsets().is_some_and(|s| s.iter().any(|&offset| offset >= 0)) {
            return Err(Error::new_err(format!("{name}: must be memory in one piece, not pointers to rows")));
        }
        let (mut low, mut high) = (0isize, 0isize);
        let empty = buffer.shape().contains(&0);
        let outside = || Error::new_err(format!("{name}: its strides lead out of memory"));
        for (&n, &stride) in buffer.shape().iter().zip(buffer.strides()) {
            let last = (n.max(1) as isize - 1).checked_mul(stride).ok_or_else(outside)?;
            low = low.checked_add(last.min(0)).ok_or_else(outside)?;
            high = high.checked_add(last.max(0)).ok_or_else(outside)?;
        }
        let len = high.checked_sub(low).and_then(|span| span.checked_add_unsigned(buffer.item_size()));
        let len = if empty { 0 } else { len.ok_or_else(outside)? as usize };
        Ok(Memory { buffer, name, low: if empty { 0 } else { low }, len })
    }

    /// Exports the buffer of `object`, which must be contiguous. It holds packed bytes, or user
    /// data in pinned host memory for a call of a `CudaLayout`.
    ///
    /// # Errors
    /// As for [`Memory::strided`]; also if the buffer is not contiguous in the order of C or of
    /// Fortran, or if `write` is true and the buffer is read-only.
    pub fn dense(object: &Bound<'_, PyAny>, name: &'static str, write: bool) -> PyResult<Memory> {
        let memory = Memory::strided(object, name)?;
        if !memory.buffer.is_c_contiguous() && !memory.buffer.is_fortran_contiguous() {
            return Err(Error::new_err(format!("{name}: must be contiguous in C's or Fortran's order")));
        }
        if write { memory.writable() } else { Ok(memory) }
    }

    /// Returns the memory if it may be written to.
    ///
    /// # Errors
    /// If the memory is read-only.
    pub fn writable(self) -> PyResult<Memory> {
        if self.buffer.readonly() {
            return Err(Error::new_err(format!("{}: must be writable, and is read-only", self.name)));
        }
        Ok(self)
    }

    /// Converts `origin`, an offset in bytes from the first element, to an offset from the lowest
    /// byte.
    ///
    /// # Errors
    /// If the result would be negative.
    pub fn origin(&self, origin: i64) -> PyResult<usize> {
        let at = i64::try_from(self.low).ok().and_then(|low| origin.checked_sub(low));
        at.and_then(|at| usize::try_from(at).ok()).ok_or_else(|| {
            Error::new_err(format!("origin = {origin}: must not lie before the memory of {}", self.name))
        })
    }

    /// Returns the address of the lowest byte.
    pub fn address(&self) -> u64 {
        self.start().addr() as u64
    }

    /// Returns the number of bytes from the lowest byte to the highest one, including gaps.
    pub fn len(&self) -> usize {
        self.len
    }

    fn start(&self) -> *mut u8 {
        // The object that exports the buffer gives the address of the first element, which is not
        // the lowest one if a stride is negative.
        self.buffer.buf_ptr().cast::<u8>().wrapping_offset(self.low)
    }

    /// Returns the bytes for reading.
    ///
    /// # Safety
    /// Nothing may write to the bytes while the slice exists.
    pub unsafe fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the object that exports the buffer guarantees that the elements are readable, and
        // the gaps between them belong to the same memory, which stays in place while the buffer is
        // exported. The caller guarantees that nothing writes to it.
        unsafe { slice::from_raw_parts(self.start(), self.len) }
    }

    /// Returns the bytes for writing.
    ///
    /// # Safety
    /// The buffer must be writable, and nothing else may access its bytes while the slice exists.
    #[allow(clippy::mut_from_ref, reason = "the memory is the exporter's, not this value's")]
    pub unsafe fn bytes_mut(&self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as in `bytes`; the caller guarantees that the buffer is writable and not used by
        // others.
        unsafe { slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

/// Checks that two buffers have no byte in common.
///
/// # Errors
/// If they overlap.
pub fn check_disjoint(a: &Memory, b: &Memory) -> PyResult<()> {
    let (a_start, b_start) = (a.start().addr(), b.start().addr());
    // The addresses come from objects that need not tell the truth, so the ends may overflow.
    let (a_end, b_end) = (a_start.saturating_add(a.len), b_start.saturating_add(b.len));
    if a.len > 0 && b.len > 0 && a_start < b_end && b_start < a_end {
        return Err(Error::new_err("source and target: must not overlap"));
    }
    Ok(())
}
