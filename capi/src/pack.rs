//! Exports that pack and unpack through handles: whole messages, their packed sizes, and ranges of
//! the packed stream.

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

/// Returns the committed type of a datatype object, or an error of class `Type` if the datatype is
/// not committed.
#[inline]
fn ready<'o>(call: &'static str, object: &'o Object) -> Result<&'o Committed> {
    object.committed()?.ok_or_else(|| uncommitted(call, object.datatype()))
}

/// Returns the error for a datatype that is not committed.
#[cold]
pub(crate) fn uncommitted(call: &'static str, t: &Datatype) -> Error {
    let name = t.envelope().combiner.mpi_name();
    Error::new(ErrorClass::Type, call, "datatype", name, "must be committed")
}

/// Checks that the span of `count` instances at `buffer` lies in the address space, above its first
/// page (MPI 5.0, 5.1.12). The span is computed in 128 bits. It need not be checked if
/// [`Committed::plain_size`] has returned a size. `count` must not be 0.
///
/// # Errors
/// Class `Buffer` if the span does not lie in the address space.
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

/// Returns the error for a span from byte `low` to byte `high` outside of the address space.
#[cold]
fn outside(call: &'static str, buffer: *const c_void, count: u64, low: i128, high: i128) -> Error {
    let rule = format!(
        "the data of {count} instances would span bytes {low} to {high}, which is not in the address space"
    );
    Error::new(ErrorClass::Buffer, call, "buffer", format_args!("{:#x}", buffer.addr()), rule)
}

/// Result of [`check_call`], which checks the position and the room of a call.
struct CheckedCall {
    /// Position at which the packed bytes begin.
    at: i64,
    /// Packed bytes of all instances.
    bytes: u64,
    /// True if the span of all instances must still be checked.
    spans: bool,
}

/// Returns the error for the position `at` in a packed buffer of `size` bytes. If `size` is
/// negative, the error is about the size. Otherwise, if `at` lies outside of the buffer, it is
/// about the position. In all other cases it says that the buffer has fewer than `bytes` bytes
/// after `at`.
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

/// Checks the position and room of a call, and determines its number of packed bytes. The errors
/// are those of [`bad_position`], and of [`Committed::packed_size`] if the position is inside the
/// buffer.
#[inline(always)] // Otherwise its result goes through memory, which takes a third of a call.
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
        // If the packed size overflows, a position outside of the buffer must still be reported
        // first. For such a position `bytes` becomes 0, and the check below refuses the position.
        None => committed.packed_size(count).or_else(|e| if at < 0 || at > size { Ok(0) } else { Err(e) })?,
    };
    // If the position lies past the end, the difference `size - at` is negative, so not even 0
    // bytes fit. The difference is computed only if neither operand is negative, so it cannot
    // overflow.
    if (at | size) < 0 || bytes as i64 > size - at {
        return Err(bad_position(call, (at, size, bytes), size_name));
    }
    Ok(CheckedCall { at, bytes, spans: plain.is_none() })
}

/// Returns the error for a null packed buffer. The error has class `Buffer`.
#[cold]
pub(crate) fn null(call: &'static str, argument: &'static str) -> Error {
    Error::new(ErrorClass::Buffer, call, argument, "NULL", "must not be a null pointer")
}

/// Packs `count` instances at `buffer` for both forms of `ddtc_pack`, and advances the position.
///
/// # Safety
/// `position` must be null or valid for a read and a write. All instances at `buffer` must be
/// readable, and `packed` must be null or have `size` writable bytes that do not overlap the
/// instances. During the call, nothing else may write to the instances or access these bytes.
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
    // SAFETY: the caller promises that `position` is null or valid for the read and the write for
    // which it is used.
    let position = unsafe { out(CALL, "position", position)? };
    let count = natural(CALL, "incount", count.wide())?;
    // The closure captures one reference instead of five values. A larger closure would be copied,
    // and the loads of that copy would stall on the stores that have just filled the closure.
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
        // SAFETY: the caller promises that all instances at `buffer` are readable, that `size`
        // bytes at `packed`, which is not null, are writable and do not overlap them, and that
        // nothing else interferes. `check_call` has found that `bytes` bytes fit there after
        // position `at`.
        unsafe { committed.pack_raw(buffer.cast(), count, packed.cast::<u8>().wrapping_add(at as usize)) };
        position.set(or_undefined(Some(at + bytes as i64)));
        Ok(())
    })??)
}

/// Unpacks `count` instances to `buffer` for both forms of `ddtc_unpack`, and advances the
/// position.
///
/// # Safety
/// `position` must be null or valid for a read and a write. `packed` must be null or have `size`
/// readable bytes, and all instances at `buffer` must be writable and must not overlap these bytes.
/// During the call, nothing else may write to these bytes or access the instances.
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
    // SAFETY: the caller promises that `position` is null or valid for the read and the write for
    // which it is used.
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
        // SAFETY: the caller promises that `size` bytes at `packed`, which is not null, are
        // readable, that all instances at `buffer` are writable and do not overlap them, and that
        // nothing else interferes. `check_call` has found that `bytes` bytes follow position `at`.
        unsafe { committed.unpack_raw(packed.cast::<u8>().wrapping_add(at as usize), count, buffer.cast()) };
        position.set(or_undefined(Some(at + bytes as i64)));
        Ok(())
    })??)
}

/// Packs or unpacks a part of the packed stream of `count` instances. The part begins at byte
/// `offset`, and has `max` bytes, or fewer if the stream ends before. Returns the number of bytes
/// that were moved.
///
/// # Errors
/// Class `Count` if the packed size overflows. Class `Arg` if `offset` lies outside of the stream
/// or `max` is negative. Class `Buffer` if there are bytes to move and `packed` is null or the span
/// of the instances does not lie in the address space. After an error, nothing has been moved.
///
/// # Safety
/// The bytes of the instances at `buffer` that lie in the part must be readable for packing and
/// writable for unpacking. `packed` must be null or point to `max` bytes that do not overlap the
/// instances. These bytes must be writable for packing and readable for unpacking. During the call,
/// nothing else may write to the memory that is read or access the memory that is written.
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
    // SAFETY: `range` lies in the stream, since `offset` and `offset + bytes` are at most `total`.
    // It has at most `max` bytes. The caller promises access to these bytes at `packed`, which is
    // not null, and to the mapped bytes at `buffer`, without overlap and without interference.
    unsafe { committed.range_raw(direction, buffer.cast(), count, packed.cast(), range) };
    Ok(bytes)
}

/// Writes the packed size of `incount` instances, for both forms of `ddtc_pack_size`. A size that
/// does not fit is `MPI_UNDEFINED`. The datatype need not be committed.
///
/// # Safety
/// `size` must be null or valid for a write.
#[inline]
unsafe fn pack_size<N: Count>(incount: N, datatype: Type, size: *mut N) -> Outcome {
    // SAFETY: the caller promises that `size` is null or valid for the write for which `out`
    // returns it.
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
            // SAFETY: the contract of the export is that of `range` for packing: readable instances
            // at `inbuf`, and `max_bytes` writable bytes at `packed`, which may be null.
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
            // SAFETY: the contract of the export is that of `range` for unpacking: `max_bytes`
            // readable bytes at `packed`, which may be null, and writable instances at `outbuf`.
            unsafe { range(CALL, committed, Direction::Unpack, outbuf, count, offset, place) }
        })??;
        bytes.set(moved);
        Ok(())
    }
}
