//! Exports for packing in device memory, which `ddtc_cuda.h` declares. The functions here check
//! arguments. The crate `ddtc_gpu` moves the data.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use ddtc::internal::committed::Committed;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc_gpu::device::{Layout, Transfer};

use crate::arguments::{export, natural, out};
use crate::embed::{committed, direction, has_data};

/// Borrows the layout that a pointer from `ddtc_cuda_open` points to.
///
/// # Safety
/// `pointer` must be null or come from `ddtc_cuda_open`. In the latter case `ddtc_cuda_close` must
/// not have closed the layout, nor close it for as long as the returned reference is used.
unsafe fn layout<'a>(call: &'static str, pointer: *const Layout) -> Result<&'a Layout> {
    // SAFETY: the caller promises that `pointer` is null or points to a layout that stays open
    // while the result is used.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(call))
}

fn null(call: &'static str) -> Error {
    Error::new(ErrorClass::Arg, call, "layout", "NULL", "must not be a null pointer")
}

/// Submits the transfer of the bytes `range` of the packed stream of `count` instances. Submits
/// nothing if `range` is empty.
///
/// # Safety
/// The conditions on the memory and the stream are those that ddtc_cuda.h states for
/// `ddtc_cuda_pack`, `ddtc_cuda_unpack` and `ddtc_cuda_range`.
unsafe fn submit(
    call: &'static str,
    layout: &Layout,
    direction: Direction,
    (user, count): (*const c_void, u64),
    packed: *const c_void,
    range: Range<u64>,
    stream: *mut c_void,
) -> Result<()> {
    let has_data = || has_data(call, layout.committed(), user, count).map_err(|error| error.about("user"));
    if !range.is_empty() && has_data()? {
        let (user, packed) = (user.addr() as u64, packed.addr() as u64);
        // SAFETY: the caller promises what `Layout::submit` needs of the stream and of the memory
        // of all instances.
        unsafe { layout.submit(call, &Transfer { direction, user, count, packed, range }, stream) }?;
    }
    Ok(())
}

export! {
    fn ddtc_cuda_open(pointer: *const Committed, device: c_int, place: *mut *mut Layout) {
        const CALL: &str = "cuda_open";
        let place = out(CALL, "layout", place)?;
        place.set(Box::into_raw(Layout::open(CALL, committed(CALL, pointer)?, device)?));
        Ok(())
    }

    fn ddtc_cuda_close(pointer: *mut Layout) {
        const CALL: &str = "cuda_close";
        if pointer.is_null() {
            return Err(null(CALL).into());
        }
        Ok(Box::from_raw(pointer).close(CALL).map_err(|(layout, error)| {
            // After an error the layout stays open, so the box must not be dropped. The program's
            // pointer stays valid, because the address of the layout is unchanged.
            let _ = Box::into_raw(layout);
            error
        })?)
    }

    fn ddtc_cuda_unit(pointer: *const Layout, bytes: *mut i64) {
        const CALL: &str = "cuda_unit";
        let bytes = out(CALL, "bytes", bytes)?;
        bytes.set(i64::from(layout(CALL, pointer)?.unit()));
        Ok(())
    }

    fn ddtc_cuda_pack(
        pointer: *const Layout, user: *const c_void, count: i64, packed: *mut c_void, stream: *mut c_void,
    ) {
        const CALL: &str = "cuda_pack";
        let (layout, count) = (layout(CALL, pointer)?, natural(CALL, "count", count)?);
        let range = 0..layout.committed().packed_size(count)?;
        Ok(submit(CALL, layout, Direction::Pack, (user, count), packed, range, stream)?)
    }

    fn ddtc_cuda_unpack(
        pointer: *const Layout, packed: *const c_void, user: *mut c_void, count: i64, stream: *mut c_void,
    ) {
        const CALL: &str = "cuda_unpack";
        let (layout, count) = (layout(CALL, pointer)?, natural(CALL, "count", count)?);
        let range = 0..layout.committed().packed_size(count)?;
        Ok(submit(CALL, layout, Direction::Unpack, (user, count), packed, range, stream)?)
    }

    fn ddtc_cuda_range(
        pointer: *const Layout, direction_value: c_int, user: *mut c_void, count: i64, offset: i64,
        packed: *mut c_void, max_bytes: i64, bytes: *mut i64, stream: *mut c_void,
    ) {
        const CALL: &str = "cuda_range";
        let bytes = out(CALL, "bytes", bytes)?;
        let (layout, direction) = (layout(CALL, pointer)?, direction(CALL, direction_value)?);
        let count = natural(CALL, "count", count)?;
        let total = layout.committed().packed_size(count)? as i64;
        if offset < 0 || offset > total {
            let rule = format!("must be from 0 to the {total} packed bytes of {count} instances");
            return Err(Error::new(ErrorClass::Arg, CALL, "offset", offset, rule).into());
        }
        if max_bytes < 0 {
            let rule = "must not be negative";
            return Err(Error::new(ErrorClass::Arg, CALL, "max_bytes", max_bytes, rule).into());
        }
        let moved = max_bytes.min(total - offset);
        let range = offset as u64..(offset + moved) as u64;
        submit(CALL, layout, direction, (user, count), packed, range, stream)?;
        bytes.set(moved);
        Ok(())
    }
}
