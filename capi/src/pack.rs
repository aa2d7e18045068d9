//! Pack, unpack, pack_size, and ranges of the packed stream, through handles.

use std::ffi::{c_int, c_void};

use ddtc::internal::committed::{Committed, FIRST_PAGE};
use ddtc::internal::count::Count;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Object};

use crate::arguments::{Type, export, handle, natural, or_undefined, out};
use crate::guard::Outcome;

/// Returns the committed type of a call's object.
#[inline]
fn ready<'o>(call: &'static str, object: &'o Object) -> Result<&'o Committed> {
    object.committed()?.ok_or_else(|| uncommitted(call, object.datatype()))
}

#[cold]
pub(crate) fn uncommitted(call: &'static str, t: &Datatype) -> Error {
    let name = t.envelope().combiner.mpi_name();
    Error::new(ErrorClass::Type, call, "datatype", name, "is not committed")
}

/// MPI 5.0 section 5.1.12: the span of all instances must lie inside the address space. Computed in 128 bits, where
/// [`Committed::plain_size`] has not answered.
#[cold]
pub(crate) fn check_span(call: &'static str, t: &Datatype, buffer: *const c_void, count: u64) -> Result<()> {
    let last = (i128::from(count) - 1) * i128::from(t.extent());
    let at = buffer.addr() as i128;
    let low = at + i128::from(t.true_lb()) + last.min(0);
    let high = at + i128::from(t.true_ub()) + last.max(0);
    if low >= FIRST_PAGE as i128 && high <= i128::from(u64::MAX) {
        return Ok(());
    }
    Err(outside(call, buffer, count, low, high))
}

#[cold]
fn outside(call: &'static str, buffer: *const c_void, count: u64, low: i128, high: i128) -> Error {
    let rule = format!(
        "the data of {count} instances would span bytes {low} to {high}, which is not in the address space"
    );
    Error::new(ErrorClass::Buffer, call, "buffer", format_args!("{:#x}", buffer.addr()), rule)
}

/// Numbers of a call whose position and room are checked; `spans` says that the span of all instances still has to be.
struct CheckedCall {
    at: i64,
    bytes: u64,
    spans: bool,
}

/// Describes the fault of a position and the room behind it.
#[cold]
pub(crate) fn bad_position(
    call: &'static str,
    (at, size, bytes): (i64, i64, u64),
    size_name: &'static str,
) -> Error {
    if size < 0 {
        return Error::new(ErrorClass::Arg, call, size_name, size, "must not be negative");
    }
    if at < 0 || at > size {
        let rule = format!("must be from 0 to {size_name}, which is {size}");
        return Error::new(ErrorClass::Arg, call, "position", at, rule);
    }
    let rule = format!("must hold {bytes} packed bytes after position {at}");
    Error::new(ErrorClass::Truncate, call, size_name, size, rule)
}

#[inline(always)] // Its result would go through memory: a third of the call.
fn check_call<N: Count>(
    call: &'static str,
    committed: &Committed,
    (buffer, count): (*const c_void, u64),
    (at, size): (N, N),
    size_name: &'static str,
) -> Result<CheckedCall> {
    let (at, size) = (at.wide(), size.wide());
    let plain = committed.plain_size(buffer.addr(), count);
    let bytes = match plain {
        Some(bytes) => bytes,
        // A bad position is told first.
        None => committed.packed_size(count).or_else(|e| if at < 0 || at > size { Ok(0) } else { Err(e) })?,
    };
    // A position past the end leaves less than no room, which no number of bytes fits.
    if (at | size) < 0 || bytes as i64 > size - at {
        return Err(bad_position(call, (at, size, bytes), size_name));
    }
    Ok(CheckedCall { at, bytes, spans: plain.is_none() })
}

#[cold]
pub(crate) fn null(call: &'static str, argument: &'static str) -> Error {
    Error::new(ErrorClass::Buffer, call, argument, "NULL", "must not be a null pointer")
}

#[inline]
unsafe fn pack<N: Count>(
    buffer: *const c_void,
    count: N,
    datatype: Type,
    packed: *mut c_void,
    size: N,
    position: *mut N,
) -> Outcome {
    const CALL: &str = "pack";
    // SAFETY: the exports below hand on what they were promised.
    let position = unsafe { out(CALL, "position", position)? };
    let count = natural(CALL, "incount", count.wide())?;
    // One reference: a closure that captures much is copied, and its copy stalls on the stores just made.
    let arguments = &(position, count, size, packed, buffer);
    Ok(object::with(CALL, handle(datatype), move |o| -> Result<()> {
        let &(ref position, count, size, packed, buffer) = arguments;
        let committed = ready(CALL, o)?;
        let CheckedCall { at, bytes, spans } =
            check_call(CALL, committed, (buffer, count), (position.get(), size), "outsize")?;
        if bytes == 0 {
            return Ok(());
        }
        if packed.is_null() {
            return Err(null(CALL, "outbuf"));
        }
        if spans {
            check_span(CALL, committed.datatype(), buffer, count)?;
        }
        // SAFETY: the caller promises that all instances at `buffer` are readable and `size` bytes at `packed`
        // writable, apart from them; `bytes` fit there after the position.
        unsafe { committed.pack_raw(buffer.cast(), count, packed.cast::<u8>().wrapping_add(at as usize)) };
        position.set(or_undefined(Some(at + bytes as i64)));
        Ok(())
    })??)
}

#[inline]
unsafe fn unpack<N: Count>(
    packed: *const c_void,
    size: N,
    position: *mut N,
    buffer: *mut c_void,
    count: N,
    datatype: Type,
) -> Outcome {
    const CALL: &str = "unpack";
    // SAFETY: the exports below hand on what they were promised.
    let position = unsafe { out(CALL, "position", position)? };
    let count = natural(CALL, "outcount", count.wide())?;
    let arguments = &(position, count, size, packed, buffer);
    Ok(object::with(CALL, handle(datatype), move |o| -> Result<()> {
        let &(ref position, count, size, packed, buffer) = arguments;
        let committed = ready(CALL, o)?;
        let CheckedCall { at, bytes, spans } =
            check_call(CALL, committed, (buffer, count), (position.get(), size), "insize")?;
        if bytes == 0 {
            return Ok(());
        }
        if packed.is_null() {
            return Err(null(CALL, "inbuf"));
        }
        if spans {
            check_span(CALL, committed.datatype(), buffer, count)?;
        }
        // SAFETY: as in `pack`, with the sides exchanged.
        unsafe { committed.unpack_raw(packed.cast::<u8>().wrapping_add(at as usize), count, buffer.cast()) };
        position.set(or_undefined(Some(at + bytes as i64)));
        Ok(())
    })??)
}

/// Moves packed bytes `offset ..` of a stream, as many as `max` and are left; returns how many.
///
/// # Safety
/// As of `ddtc_pack_range` and `ddtc_unpack_range`.
pub(crate) unsafe fn range(
    call: &'static str,
    committed: &Committed,
    direction: Direction,
    buffer: *mut c_void,
    count: u64,
    offset: i64,
    (packed, max): (*mut c_void, i64),
) -> Result<i64> {
    let total = committed.packed_size(count)? as i64;
    if offset < 0 || offset > total {
        let rule = format!("must be from 0 to the {total} packed bytes of {count} instances");
        return Err(Error::new(ErrorClass::Arg, call, "offset", offset, rule));
    }
    if max < 0 {
        return Err(Error::new(ErrorClass::Arg, call, "max_bytes", max, "must not be negative"));
    }
    let bytes = max.min(total - offset);
    if bytes == 0 {
        return Ok(0);
    }
    if packed.is_null() {
        return Err(null(call, "packed"));
    }
    check_span(call, committed.datatype(), buffer, count)?;
    let range = offset as u64..(offset + bytes) as u64;
    // SAFETY: the range lies in the stream; the caller vouches for the memory on both sides.
    unsafe { committed.range_raw(direction, buffer.cast(), count, packed.cast(), range) };
    Ok(bytes)
}

/// # Safety
/// As of the exports below.
#[inline]
unsafe fn pack_size<N: Count>(incount: N, datatype: Type, size: *mut N) -> Outcome {
    // SAFETY: the exports hand on what they were promised.
    unsafe {
        const CALL: &str = "pack_size";
        let size = out(CALL, "size", size)?;
        let count = natural(CALL, "incount", incount.wide())?;
        let one = object::with(CALL, handle(datatype), |o| o.datatype().size())?;
        size.set(or_undefined((count as i64).checked_mul(one)));
        Ok(())
    }
}

export! {
    fn ddtc_pack(
        inbuf: *const c_void, incount: c_int, datatype: Type, outbuf: *mut c_void, outsize: c_int,
        position: *mut c_int,
    ) {
        pack::<c_int>(inbuf, incount, datatype, outbuf, outsize, position)
    }

    fn ddtc_unpack(
        inbuf: *const c_void, insize: c_int, position: *mut c_int, outbuf: *mut c_void, outcount: c_int,
        datatype: Type,
    ) {
        unpack::<c_int>(inbuf, insize, position, outbuf, outcount, datatype)
    }

    fn ddtc_pack_size(incount: c_int, datatype: Type, size: *mut c_int) {
        pack_size::<c_int>(incount, datatype, size)
    }

    fn ddtc_pack_c(
        inbuf: *const c_void, incount: i64, datatype: Type, outbuf: *mut c_void, outsize: i64,
        position: *mut i64,
    ) {
        pack::<i64>(inbuf, incount, datatype, outbuf, outsize, position)
    }

    fn ddtc_unpack_c(
        inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: i64,
        datatype: Type,
    ) {
        unpack::<i64>(inbuf, insize, position, outbuf, outcount, datatype)
    }

    fn ddtc_pack_size_c(incount: i64, datatype: Type, size: *mut i64) {
        pack_size::<i64>(incount, datatype, size)
    }
}

export! {
    fn ddtc_pack_range(
        inbuf: *const c_void, incount: i64, datatype: Type, offset: i64, packed: *mut c_void, max_bytes: i64,
        bytes: *mut i64,
    ) {
        const CALL: &str = "pack_range";
        let bytes = out(CALL, "bytes", bytes)?;
        let count = natural(CALL, "incount", incount)?;
        let moved = object::with(CALL, handle(datatype), |o| {
            let (committed, place) = (ready(CALL, o)?, (packed, max_bytes));
            // SAFETY: as the caller promises.
            unsafe { range(CALL, committed, Direction::Pack, inbuf.cast_mut(), count, offset, place) }
        })??;
        bytes.set(moved);
        Ok(())
    }

    fn ddtc_unpack_range(
        packed: *const c_void, max_bytes: i64, offset: i64, outbuf: *mut c_void, outcount: i64, datatype: Type,
        bytes: *mut i64,
    ) {
        const CALL: &str = "unpack_range";
        let bytes = out(CALL, "bytes", bytes)?;
        let count = natural(CALL, "outcount", outcount)?;
        let moved = object::with(CALL, handle(datatype), |o| {
            let (committed, place) = (ready(CALL, o)?, (packed.cast_mut(), max_bytes));
            // SAFETY: as the caller promises.
            unsafe { range(CALL, committed, Direction::Unpack, outbuf, count, offset, place) }
        })??;
        bytes.set(moved);
        Ok(())
    }
}
