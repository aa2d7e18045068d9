//! Functions of the C interface for packing, unpacking and packed sizes in external32. Some of them
//! take the handle of a datatype. Others take an object that belongs to one committed type and one
//! leaf operation. A leaf operation is what happens to values while they are moved: conversion to
//! external32, or a reduction. A runtime looks up such an object once and uses it for many calls.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use ddtc::internal::committed::{Committed, CommittedOperation};
use ddtc::internal::count::Count;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::kind::{Direction, Operation};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Object};

use crate::arguments::{Type, UNDEFINED, export, handle, natural, out};
use crate::embed::{committed, direction};
use crate::guard::Outcome;
use crate::pack::{bad_position, check_span, null, uncommitted};
use crate::reduce::predefined;

/// Checks the name of the data representation. MPI 5.0, 5.3 has only `external32`.
///
/// # Errors
/// Class `Arg` if `name` is null. Class `UnsupportedDatarep` for any name other than `external32`.
/// The message has at most the first 64 characters of the name.
///
/// # Safety
/// `name` must be null or a NUL-terminated string that nothing changes during the call.
unsafe fn check_representation(call: &'static str, name: *const c_char) -> Result<()> {
    if name.is_null() {
        return Err(Error::new(ErrorClass::Arg, call, "datarep", "NULL", "must not be a null pointer"));
    }
    // SAFETY: `name` is not null, as just checked, and the caller promises that it is a
    // NUL-terminated string, which does not change while it is used here.
    let name = unsafe { CStr::from_ptr(name) };
    if name == c"external32" {
        return Ok(());
    }
    let rule = "must be external32, the only canonical representation";
    let shown = name.to_string_lossy().chars().take(64).collect::<String>();
    Err(Error::new(ErrorClass::UnsupportedDatarep, call, "datarep", shown, rule))
}

/// Returns the object for packing `object`'s datatype in external32, or an error of class `Type` if
/// the datatype is not committed.
fn ready<'o>(call: &'static str, object: &'o Object) -> Result<&'o CommittedOperation> {
    object.external32()?.ok_or_else(|| uncommitted(call, object.datatype()))
}

/// Arguments of one call with a handle. The packed data begin at byte `position` of the buffer
/// `packed`, which has `size` bytes.
#[derive(Clone, Copy)]
struct Call {
    name: &'static str,
    direction: Direction,
    user: *mut c_void,
    count: u64,
    packed: *mut c_void,
    /// Names of the arguments `packed` and `size` in messages.
    names: (&'static str, &'static str),
    size: i64,
    position: i64,
}

/// Packs or unpacks all instances and returns the position after their packed bytes.
///
/// # Safety
/// All instances at `call.user` must be readable for packing and writable for unpacking.
/// `call.packed` must be null or point to `call.size` bytes that do not overlap the instances.
/// These bytes must be writable for packing and readable for unpacking. During the call, nothing
/// else may write to the memory that is read or access the memory that is written.
unsafe fn moved(datatype: Type, call: Call) -> Result<i64> {
    let Call { name, direction, user, count, packed, names, size, position } = call;
    object::with(name, handle(datatype), |o| {
        let applied = ready(name, o)?;
        let bytes = applied.packed_size(count)?;
        if (position | size) < 0 || bytes as i64 > size - position {
            return Err(bad_position(name, (position, size, bytes), names.1));
        }
        if bytes == 0 {
            return Ok(position);
        }
        if packed.is_null() {
            return Err(null(name, names.0));
        }
        check_span(name, o.datatype(), user, count)?;
        let packed = packed.cast::<u8>().wrapping_add(position as usize);
        // SAFETY: the range is the whole stream of `count` instances. The caller promises access to
        // these and to `size` bytes at the packed buffer, which is not null, without overlap and
        // without interference. `bytes` bytes fit there after `position`, as checked above.
        unsafe { applied.range_raw(direction, user.cast(), count, packed, 0..bytes) }?;
        Ok(position + bytes as i64)
    })?
}

/// Packs in external32, for both forms of `ddtc_pack_external`.
///
/// # Safety
/// `datarep` must be null or a NUL-terminated string, and `position` null or valid for a read and a
/// write. All instances at `inbuf` must be readable, and `outbuf` must be null or have `outsize`
/// writable bytes that do not overlap the instances. During the call, nothing else may write to the
/// instances or access these bytes.
#[inline]
unsafe fn pack_external<N: Count>(
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: N,
    datatype: Type,
    outbuf: *mut c_void,
    outsize: i64,
    position: *mut i64,
) -> Outcome {
    // SAFETY: `check_representation`, `out` and `moved` need what the caller promises of the
    // string, the position and the two buffers. All of them are passed on unchanged.
    unsafe {
        const CALL: &str = "pack_external";
        check_representation(CALL, datarep)?;
        let position = out(CALL, "position", position)?;
        let end = moved(
            datatype,
            Call {
                name: CALL,
                direction: Direction::Pack,
                user: inbuf.cast_mut(),
                count: natural(CALL, "incount", incount.wide())?,
                packed: outbuf,
                names: ("outbuf", "outsize"),
                size: outsize,
                position: position.get(),
            },
        )?;
        position.set(end);
        Ok(())
    }
}

/// Unpacks from external32, for both forms of `ddtc_unpack_external`.
///
/// # Safety
/// `datarep` must be null or a NUL-terminated string, and `position` null or valid for a read and a
/// write. `inbuf` must be null or have `insize` readable bytes, and all instances at `outbuf` must
/// be writable and must not overlap these bytes. During the call, nothing else may write to these
/// bytes or access the instances.
#[inline]
unsafe fn unpack_external<N: Count>(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: i64,
    position: *mut i64,
    outbuf: *mut c_void,
    outcount: N,
    datatype: Type,
) -> Outcome {
    // SAFETY: `check_representation`, `out` and `moved` need what the caller promises of the
    // string, the position and the two buffers. All of them are passed on unchanged.
    unsafe {
        const CALL: &str = "unpack_external";
        check_representation(CALL, datarep)?;
        let position = out(CALL, "position", position)?;
        let end = moved(
            datatype,
            Call {
                name: CALL,
                direction: Direction::Unpack,
                user: outbuf,
                count: natural(CALL, "outcount", outcount.wide())?,
                packed: inbuf.cast_mut(),
                names: ("inbuf", "insize"),
                size: insize,
                position: position.get(),
            },
        )?;
        position.set(end);
        Ok(())
    }
}

/// Writes the packed size of `incount` instances in external32, for both forms of
/// `ddtc_pack_external_size`. A size that does not fit in 63 bits is `MPI_UNDEFINED`.
///
/// # Safety
/// `datarep` must be null or a NUL-terminated string, and `size` null or valid for a write.
#[inline]
unsafe fn external_size<N: Count>(
    datarep: *const c_char,
    incount: N,
    datatype: Type,
    size: *mut i64,
) -> Outcome {
    // SAFETY: `check_representation` and `out` need what the caller promises of the string and of
    // `size`, which are passed on unchanged.
    unsafe {
        const CALL: &str = "pack_external_size";
        check_representation(CALL, datarep)?;
        let size = out(CALL, "size", size)?;
        let count = natural(CALL, "incount", incount.wide())?;
        let one = object::with(CALL, handle(datatype), Object::external32_size)??;
        size.set((count as i64).checked_mul(one).unwrap_or(i64::from(UNDEFINED)));
        Ok(())
    }
}

export! {
    fn ddtc_pack_external(
        datarep: *const c_char, inbuf: *const c_void, incount: c_int, datatype: Type, outbuf: *mut c_void,
        outsize: i64, position: *mut i64,
    ) {
        pack_external::<c_int>(datarep, inbuf, incount, datatype, outbuf, outsize, position)
    }

    fn ddtc_unpack_external(
        datarep: *const c_char, inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void,
        outcount: c_int, datatype: Type,
    ) {
        unpack_external::<c_int>(datarep, inbuf, insize, position, outbuf, outcount, datatype)
    }

    fn ddtc_pack_external_size(datarep: *const c_char, incount: c_int, datatype: Type, size: *mut i64) {
        external_size::<c_int>(datarep, incount, datatype, size)
    }

    fn ddtc_pack_external_c(
        datarep: *const c_char, inbuf: *const c_void, incount: i64, datatype: Type, outbuf: *mut c_void,
        outsize: i64, position: *mut i64,
    ) {
        pack_external::<i64>(datarep, inbuf, incount, datatype, outbuf, outsize, position)
    }

    fn ddtc_unpack_external_c(
        datarep: *const c_char, inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void,
        outcount: i64, datatype: Type,
    ) {
        unpack_external::<i64>(datarep, inbuf, insize, position, outbuf, outcount, datatype)
    }

    fn ddtc_pack_external_size_c(datarep: *const c_char, incount: i64, datatype: Type, size: *mut i64) {
        external_size::<i64>(datarep, incount, datatype, size)
    }
}

/// Borrows the object for a committed type and a leaf operation, or returns an error of class `Arg`
/// if `pointer` is null.
///
/// # Safety
/// `pointer` must be null or a result of `ddtc_committed_external32` or `ddtc_committed_reduce`,
/// and the caller must hold a reference to it for as long as the returned value is used.
unsafe fn applied<'a>(
    call: &'static str,
    pointer: *const CommittedOperation,
) -> Result<&'a CommittedOperation> {
    // SAFETY: the caller promises that `pointer` is null or comes from `Arc::into_raw`, and that a
    // reference is held while the result is used, so it points to a live and aligned value.
    unsafe { pointer.as_ref() }
        .ok_or_else(|| Error::new(ErrorClass::Arg, call, "applied", "NULL", "must not be a null pointer"))
}

export! {
    fn ddtc_committed_external32(pointer: *const Committed, place: *mut *const CommittedOperation) {
        const CALL: &str = "committed_external32";
        let place = out(CALL, "applied", place)?;
        let applied = committed(CALL, pointer)?.for_operation(Operation::External32)?;
        place.set(Arc::into_raw(Arc::new(applied)));
        Ok(())
    }

    fn ddtc_committed_reduce(pointer: *const Committed, op: Type, place: *mut *const CommittedOperation) {
        const CALL: &str = "committed_reduce";
        let place = out(CALL, "applied", place)?;
        let op = predefined(CALL, op)?;
        let applied = committed(CALL, pointer)?.for_operation(Operation::Reduce(op))?;
        place.set(Arc::into_raw(Arc::new(applied)));
        Ok(())
    }

    fn ddtc_applied_retain(pointer: *const CommittedOperation) {
        applied("applied_retain", pointer)?;
        Arc::increment_strong_count(pointer);
        Ok(())
    }

    fn ddtc_applied_release(pointer: *const CommittedOperation) {
        applied("applied_release", pointer)?;
        Arc::decrement_strong_count(pointer);
        Ok(())
    }

    fn ddtc_applied_size(pointer: *const CommittedOperation, count: i64, bytes: *mut i64) {
        const CALL: &str = "applied_size";
        let bytes = out(CALL, "bytes", bytes)?;
        let count = natural(CALL, "count", count)?;
        bytes.set(applied(CALL, pointer)?.packed_size(count)? as i64);
        Ok(())
    }

    fn ddtc_applied_range(
        pointer: *const CommittedOperation, direction_value: c_int, user: *mut c_void, count: i64, offset: i64,
        packed: *mut c_void, max_bytes: i64, bytes: *mut i64,
    ) {
        const CALL: &str = "applied_range";
        let bytes = out(CALL, "bytes", bytes)?;
        let direction = direction(CALL, direction_value)?;
        let applied = applied(CALL, pointer)?;
        let count = natural(CALL, "count", count)?;
        // Negative numbers of bytes are errors of class `Arg`, as in `ddtc_committed_range`.
        let bytes_of = |argument, value: i64| {
            let refused = |_| Error::new(ErrorClass::Arg, CALL, argument, value, "must not be negative");
            u64::try_from(value).map_err(refused)
        };
        let (offset, room) = (bytes_of("offset", offset)?, bytes_of("max_bytes", max_bytes)?);
        applied.check_direction(direction)?;
        let range = applied.whole_values(count, offset, room)?;
        let moved = (range.end - range.start) as i64;
        if moved > 0 {
            if packed.is_null() {
                return Err(null(CALL, "packed").into());
            }
            check_span(CALL, applied.committed().datatype(), user, count)?;
            applied.range_raw(direction, user.cast(), count, packed.cast(), range)?;
        }
        bytes.set(moved);
        Ok(())
    }
}
