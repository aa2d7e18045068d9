//! Exports for the size, bounds, name and text of a datatype, for addresses, and for the numbers of
//! elements and instances in a received message.

use std::ffi::{c_char, c_int, c_void};

use ddtc::internal::count::Count;
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, MAX_NAME};

use crate::arguments::{Type, bytes, export, handle, natural, or_undefined, out};
use crate::guard::Outcome;

/// Writes the size in bytes of a datatype, for all forms of `ddtc_type_size`. A size that does not
/// fit is `MPI_UNDEFINED`.
///
/// # Safety
/// `size` must be null or valid for a write.
#[inline]
unsafe fn type_size<N: Count>(datatype: Type, size: *mut N) -> Outcome {
    // SAFETY: the caller promises that `size` is null or valid for the write for which `out`
    // returns it.
    unsafe {
        const CALL: &str = "type_size";
        let size = out(CALL, "size", size)?;
        let value = object::with(CALL, handle(datatype), |o| o.datatype().size())?;
        size.set(or_undefined(Some(value)));
        Ok(())
    }
}

/// Writes the lower bound and the extent in bytes of a datatype, for all forms of
/// `ddtc_type_get_extent`.
///
/// # Safety
/// `lb` and `extent` must each be null or valid for a write.
#[inline]
unsafe fn type_extent<A: Count>(datatype: Type, lb: *mut A, extent: *mut A) -> Outcome {
    // SAFETY: the caller promises that `lb` and `extent` are each null or valid for the write for
    // which `out` returns them.
    unsafe {
        const CALL: &str = "type_get_extent";
        let (lb, extent) = (out(CALL, "lb", lb)?, out(CALL, "extent", extent)?);
        let (l, e) = object::with(CALL, handle(datatype), |o| (o.datatype().lb(), o.datatype().extent()))?;
        lb.set(or_undefined(Some(l)));
        extent.set(or_undefined(Some(e)));
        Ok(())
    }
}

/// Writes the true lower bound and the true extent in bytes of a datatype, for all forms of
/// `ddtc_type_get_true_extent`.
///
/// # Safety
/// `lb` and `extent` must each be null or valid for a write.
#[inline]
unsafe fn true_extent<A: Count>(datatype: Type, lb: *mut A, extent: *mut A) -> Outcome {
    // SAFETY: the caller promises that `lb` and `extent` are each null or valid for the write for
    // which `out` returns them.
    unsafe {
        const CALL: &str = "type_get_true_extent";
        let (lb, extent) = (out(CALL, "true_lb", lb)?, out(CALL, "true_extent", extent)?);
        let (l, e) =
            object::with(CALL, handle(datatype), |o| (o.datatype().true_lb(), o.datatype().true_extent()))?;
        lb.set(or_undefined(Some(l)));
        extent.set(or_undefined(Some(e)));
        Ok(())
    }
}

/// Writes the number of basic elements in `bytes` packed bytes, for all forms of
/// `ddtc_get_elements`. The result is `MPI_UNDEFINED` if the bytes end inside an element or if the
/// number does not fit.
///
/// # Safety
/// `count` must be null or valid for a write.
#[inline]
unsafe fn elements<N: Count>(datatype: Type, bytes: i64, count: *mut N) -> Outcome {
    // SAFETY: the caller promises that `count` is null or valid for the write for which `out`
    // returns it.
    unsafe {
        const CALL: &str = "get_elements";
        let count = out(CALL, "count", count)?;
        let bytes = natural(CALL, "bytes", bytes)?;
        let found = object::with(CALL, handle(datatype), |o| object::elements(o.datatype(), bytes))?;
        count.set(or_undefined(found));
        Ok(())
    }
}

/// Writes the number of whole instances in `bytes` packed bytes, for all forms of `ddtc_get_count`.
/// The result is `MPI_UNDEFINED` if `bytes` is not a multiple of the size or if the number does not
/// fit. For a datatype of size 0, the result is 0 if `bytes` is 0, and otherwise `MPI_UNDEFINED`.
///
/// # Safety
/// `count` must be null or valid for a write.
#[inline]
unsafe fn count_of<N: Count>(datatype: Type, bytes: i64, count: *mut N) -> Outcome {
    // SAFETY: the caller promises that `count` is null or valid for the write for which `out`
    // returns it.
    unsafe {
        const CALL: &str = "get_count";
        let count = out(CALL, "count", count)?;
        let bytes = natural(CALL, "bytes", bytes)? as i64;
        let size = object::with(CALL, handle(datatype), |o| o.datatype().size())?;
        let whole = match size {
            0 => (bytes == 0).then_some(0),
            _ => (bytes % size == 0).then_some(bytes / size),
        };
        count.set(or_undefined(whole));
        Ok(())
    }
}

export! {
    fn ddtc_type_size(datatype: Type, size: *mut c_int) {
        type_size::<c_int>(datatype, size)
    }

    fn ddtc_type_get_extent(datatype: Type, lb: *mut i64, extent: *mut i64) {
        type_extent::<i64>(datatype, lb, extent)
    }

    fn ddtc_type_get_true_extent(datatype: Type, lb: *mut i64, extent: *mut i64) {
        true_extent::<i64>(datatype, lb, extent)
    }

    fn ddtc_get_elements(datatype: Type, bytes: i64, count: *mut c_int) {
        elements::<c_int>(datatype, bytes, count)
    }

    fn ddtc_get_count(datatype: Type, bytes: i64, count: *mut c_int) {
        count_of::<c_int>(datatype, bytes, count)
    }

    fn ddtc_type_size_c(datatype: Type, size: *mut i64) {
        type_size::<i64>(datatype, size)
    }

    fn ddtc_type_get_extent_c(datatype: Type, lb: *mut i64, extent: *mut i64) {
        type_extent::<i64>(datatype, lb, extent)
    }

    fn ddtc_type_get_true_extent_c(datatype: Type, lb: *mut i64, extent: *mut i64) {
        true_extent::<i64>(datatype, lb, extent)
    }

    fn ddtc_get_elements_c(datatype: Type, bytes: i64, count: *mut i64) {
        elements::<i64>(datatype, bytes, count)
    }

    fn ddtc_get_count_c(datatype: Type, bytes: i64, count: *mut i64) {
        count_of::<i64>(datatype, bytes, count)
    }

    fn ddtc_type_size_x(datatype: Type, size: *mut i64) {
        type_size::<i64>(datatype, size)
    }

    fn ddtc_type_get_extent_x(datatype: Type, lb: *mut i64, extent: *mut i64) {
        type_extent::<i64>(datatype, lb, extent)
    }

    fn ddtc_type_get_true_extent_x(datatype: Type, lb: *mut i64, extent: *mut i64) {
        true_extent::<i64>(datatype, lb, extent)
    }

    fn ddtc_get_elements_x(datatype: Type, bytes: i64, count: *mut i64) {
        elements::<i64>(datatype, bytes, count)
    }

    fn ddtc_get_count_x(datatype: Type, bytes: i64, count: *mut i64) {
        count_of::<i64>(datatype, bytes, count)
    }
}

export! {
    fn ddtc_elements_size(datatype: Type, elements: i64, bytes: *mut i64) {
        const CALL: &str = "elements_size";
        let bytes = out(CALL, "bytes", bytes)?;
        bytes.set(object::with(CALL, handle(datatype), |o| object::elements_size(o.datatype(), elements))??);
        Ok(())
    }

    fn ddtc_type_set_name(datatype: Type, name: *const c_char) {
        Ok(object::set_name(handle(datatype), bytes("type_set_name", "type_name", name)?)?)
    }

    fn ddtc_type_get_name(datatype: Type, name: *mut c_char, resultlen: *mut c_int) {
        const CALL: &str = "type_get_name";
        let (place, resultlen) = (out(CALL, "type_name", name)?, out(CALL, "resultlen", resultlen)?);
        let known = object::name(handle(datatype))?;
        let known = &known[..known.len().min(MAX_NAME)];
        place.write_bytes(known, true);
        resultlen.set(known.len() as c_int);
        Ok(())
    }

    fn ddtc_type_print(datatype: Type, text: *mut c_char, length: *mut i64) {
        const CALL: &str = "type_print";
        let length = out(CALL, "length", length)?;
        let room = natural(CALL, "length", length.get())? as usize;
        let datatype = object::datatype(CALL, handle(datatype))?;
        let known = datatype.to_string();
        if room > 0 && !text.is_null() {
            let n = known.len().min(room - 1);
            out(CALL, "text", text)?.write_bytes(&known.as_bytes()[..n], true);
        }
        length.set(known.len() as i64 + 1);
        Ok(())
    }

    fn ddtc_get_address(location: *const c_void, address: *mut i64) {
        out("get_address", "address", address)?.set(location.addr() as i64);
        Ok(())
    }
}

/// Returns the sum of an address and a displacement (see `ddtc_aint_add` in ddtc.h). An overflow
/// wraps around.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ddtc_aint_add(base: i64, displacement: i64) -> i64 {
    base.wrapping_add(displacement)
}

/// Returns the difference of two addresses (see `ddtc_aint_diff` in ddtc.h). An overflow wraps
/// around.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ddtc_aint_diff(a: i64, b: i64) -> i64 {
    a.wrapping_sub(b)
}
