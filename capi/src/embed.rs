//! Exports for runtimes that embed ddtc and keep committed types in objects of their own. The
//! exports provide committed types with a reference count, packing without a handle, and access to
//! the compiled kernel.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use ddtc::internal::code::kernel::Entry;
use ddtc::internal::committed::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object;

use crate::arguments::{Type, export, handle, natural, out};
use crate::pack::{check_span, range};

/// A compiled kernel for direct calls: `ddtc_kernel` of ddtc.h.
#[repr(C)]
pub(crate) struct CKernel {
    entry: Option<Entry>,
    context: *const u64,
    origin: isize,
}

/// Returns the direction that an argument of C stands for, or an error of class `Arg`.
pub(crate) fn direction(call: &'static str, value: c_int) -> Result<Direction> {
    match value {
        0 => Ok(Direction::Pack),
        1 => Ok(Direction::Unpack),
        _ => {
            let rule = "must be DDTC_PACK or DDTC_UNPACK";
            Err(Error::new(ErrorClass::Arg, call, "direction", value, rule))
        }
    }
}

/// Borrows a committed type, or returns an error of class `Arg` if `pointer` is null.
///
/// # Safety
/// `pointer` must be null or a result of `ddtc_type_get_committed`, and the caller must hold a
/// reference to it for as long as the returned value is used.
pub(crate) unsafe fn committed<'a>(call: &'static str, pointer: *const Committed) -> Result<&'a Committed> {
    // SAFETY: the caller promises that `pointer` is null or comes from `Arc::into_raw`, and that a
    // reference is held while the result is used, so it points to a live and aligned value.
    unsafe { pointer.as_ref() }
        .ok_or_else(|| Error::new(ErrorClass::Arg, call, "committed", "NULL", "must not be a null pointer"))
}

/// Returns true if `count` instances at `user` have any packed bytes.
///
/// # Errors
/// Class `Count` if the packed size does not fit in 63 bits, and class `Buffer` if there is data
/// and its span does not lie in the address space.
#[inline]
pub(crate) fn has_data(
    call: &'static str,
    committed: &Committed,
    user: *const c_void,
    count: u64,
) -> Result<bool> {
    if let Some(bytes) = committed.plain_size(user.addr(), count) {
        return Ok(bytes > 0);
    }
    if committed.packed_size(count)? == 0 {
        return Ok(false);
    }
    check_span(call, committed.datatype(), user, count)?;
    Ok(true)
}

/// Returns the kernel for a direction and the context of that kernel, or null pointers if there is
/// no kernel. The field for the origin is set in both cases.
fn kernel(committed: &Committed, direction: Direction) -> CKernel {
    match committed.kernel(direction) {
        Some(kernel) => {
            CKernel { entry: Some(kernel.entry()), context: kernel.context(), origin: committed.origin() }
        }
        None => CKernel { entry: None, context: std::ptr::null(), origin: committed.origin() },
    }
}

export! {
    fn ddtc_type_get_committed(datatype: Type, pointer: *mut *const Committed) {
        const CALL: &str = "type_get_committed";
        let pointer = out(CALL, "committed", pointer)?;
        let known = object::with(CALL, handle(datatype), |o| o.committed().map(|c| c.cloned()))??;
        let Some(known) = known else {
            return Err(Error::new(ErrorClass::Type, CALL, "datatype", handle(datatype), "must be committed").into());
        };
        pointer.set(Arc::into_raw(Arc::new(known)));
        Ok(())
    }

    fn ddtc_committed_retain(pointer: *const Committed) {
        committed("committed_retain", pointer)?;
        Arc::increment_strong_count(pointer);
        Ok(())
    }

    fn ddtc_committed_release(pointer: *const Committed) {
        committed("committed_release", pointer)?;
        Arc::decrement_strong_count(pointer);
        Ok(())
    }

    fn ddtc_committed_bounds(
        pointer: *const Committed, size: *mut i64, lb: *mut i64, extent: *mut i64, true_lb: *mut i64,
        true_extent: *mut i64,
    ) {
        let t = committed("committed_bounds", pointer)?.datatype();
        let values = [t.size(), t.lb(), t.extent(), t.true_lb(), t.true_extent()];
        for (place, value) in [size, lb, extent, true_lb, true_extent].into_iter().zip(values) {
            if !place.is_null() {
                out("committed_bounds", "size", place)?.set(value);
            }
        }
        Ok(())
    }

    fn ddtc_committed_pack(pointer: *const Committed, user: *const c_void, count: i64, packed: *mut c_void) {
        const CALL: &str = "committed_pack";
        let committed = committed(CALL, pointer)?;
        let count = natural(CALL, "count", count)?;
        if has_data(CALL, committed, user, count)? {
            committed.pack_raw(user.cast(), count, packed.cast());
        }
        Ok(())
    }

    fn ddtc_committed_unpack(
        pointer: *const Committed, packed: *const c_void, user: *mut c_void, count: i64,
    ) {
        const CALL: &str = "committed_unpack";
        let committed = committed(CALL, pointer)?;
        let count = natural(CALL, "count", count)?;
        if has_data(CALL, committed, user, count)? {
            committed.unpack_raw(packed.cast(), count, user.cast());
        }
        Ok(())
    }

    fn ddtc_committed_range(
        pointer: *const Committed, direction_value: c_int, user: *mut c_void, count: i64, offset: i64,
        packed: *mut c_void, max_bytes: i64, bytes: *mut i64,
    ) {
        const CALL: &str = "committed_range";
        let bytes = out(CALL, "bytes", bytes)?;
        let direction = direction(CALL, direction_value)?;
        let count = natural(CALL, "count", count)?;
        let place = (packed, max_bytes);
        bytes.set(range(CALL, committed(CALL, pointer)?, direction, user, count, offset, place)?);
        Ok(())
    }

    fn ddtc_committed_kernel(pointer: *const Committed, direction_value: c_int, place: *mut CKernel) {
        const CALL: &str = "committed_kernel";
        let place = out(CALL, "kernel", place)?;
        place.set(kernel(committed(CALL, pointer)?, direction(CALL, direction_value)?));
        Ok(())
    }

    fn ddtc_type_get_kernel(datatype: Type, direction_value: c_int, place: *mut CKernel) {
        const CALL: &str = "type_get_kernel";
        let place = out(CALL, "kernel", place)?;
        let direction = direction(CALL, direction_value)?;
        let found = object::with(CALL, handle(datatype), |o| {
            o.committed().map(|c| c.map(|c| kernel(c, direction)))
        })??;
        let Some(found) = found else {
            return Err(Error::new(ErrorClass::Type, CALL, "datatype", handle(datatype), "must be committed").into());
        };
        place.set(found);
        Ok(())
    }
}
