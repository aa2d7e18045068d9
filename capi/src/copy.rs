//! Exports for copies and reductions from one layout to another. Some calls take two handles.
//! Others take an object that a runtime looks up once for a pair of committed types.

use std::ffi::c_void;
use std::sync::Arc;

use ddtc::internal::committed::{Committed, LayoutCopy};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object;

use crate::arguments::{Type, export, handle, natural, out};
use crate::embed::{committed, has_data};
use crate::pack::uncommitted;
use crate::reduce::predefined;

/// Returns the committed type of the handle `datatype`. If the handle names no committed datatype,
/// returns an error of class `Type` whose message mentions the argument `name`.
fn ready(call: &'static str, name: &'static str, datatype: Type) -> Result<Committed> {
    let known = object::with(call, handle(datatype), |o| {
        o.committed()?.cloned().ok_or_else(|| uncommitted(call, o.datatype()))
    });
    known.and_then(|known| known).map_err(|error| error.about(name))
}

/// Borrows a direct copy, or returns an error of class `Arg` if `pointer` is null.
///
/// # Safety
/// `pointer` must be null or a result of `ddtc_committed_direct` or `ddtc_committed_direct_reduce`,
/// and the caller must hold a reference to it for as long as the returned value is used.
unsafe fn direct<'a>(call: &'static str, pointer: *const LayoutCopy) -> Result<&'a LayoutCopy> {
    // SAFETY: the caller promises that `pointer` is null or comes from `Arc::into_raw`, and that a
    // reference is held while the result is used, so it points to a live and aligned value.
    unsafe { pointer.as_ref() }
        .ok_or_else(|| Error::new(ErrorClass::Arg, call, "direct", "NULL", "must not be a null pointer"))
}

/// Copies the `incount` instances at `inbuf` to the `outcount` instances at `outbuf`, or combines
/// the values at `inbuf` with those at `outbuf` if `direct` is a reduction. Returns the number of
/// packed bytes that were moved. The counts and the spans of all instances on both sides are
/// checked first.
///
/// # Safety
/// All bytes of the instances at `inbuf` must be readable. The bytes of the instances at `outbuf`
/// that receive data must be writable, and readable if values are combined. During the call,
/// nothing else may write to the bytes at `inbuf` or access those at `outbuf`. This is the contract
/// of `ddtc_copy`.
unsafe fn copy(
    call: &'static str,
    direct: &LayoutCopy,
    (inbuf, incount): (*const c_void, i64),
    (outbuf, outcount): (*mut c_void, i64),
) -> Result<i64> {
    let (incount, outcount) = (natural(call, "incount", incount)?, natural(call, "outcount", outcount)?);
    has_data(call, direct.from(), inbuf, incount).map_err(|error| error.about("inbuf"))?;
    has_data(call, direct.to(), outbuf, outcount).map_err(|error| error.about("outbuf"))?;
    // SAFETY: the caller promises that the instances at `inbuf` are readable, that those at
    // `outbuf` are writable and, if needed, readable, and that nothing else interferes during the
    // call. Both spans lie in the address space, as just checked.
    Ok(unsafe { direct.copy_raw(inbuf.cast(), incount, outbuf.cast(), outcount)? } as i64)
}

export! {
    fn ddtc_copy(
        inbuf: *const c_void, incount: i64, intype: Type, outbuf: *mut c_void, outcount: i64, outtype: Type,
    ) {
        const CALL: &str = "copy";
        let direct = ready(CALL, "intype", intype)?.direct(&ready(CALL, "outtype", outtype)?)?;
        copy(CALL, &direct, (inbuf, incount), (outbuf, outcount))?;
        Ok(())
    }

    fn ddtc_committed_direct(from: *const Committed, to: *const Committed, place: *mut *const LayoutCopy) {
        const CALL: &str = "committed_direct";
        let place = out(CALL, "direct", place)?;
        let direct = committed(CALL, from)?.direct(committed(CALL, to)?)?;
        place.set(Arc::into_raw(Arc::new(direct)));
        Ok(())
    }

    fn ddtc_committed_direct_reduce(
        from: *const Committed, to: *const Committed, op: Type, place: *mut *const LayoutCopy,
    ) {
        const CALL: &str = "committed_direct_reduce";
        let place = out(CALL, "direct", place)?;
        let op = predefined(CALL, op)?;
        let direct = committed(CALL, from)?.direct_reduce(committed(CALL, to)?, op)?;
        place.set(Arc::into_raw(Arc::new(direct)));
        Ok(())
    }

    fn ddtc_direct_retain(pointer: *const LayoutCopy) {
        direct("direct_retain", pointer)?;
        Arc::increment_strong_count(pointer);
        Ok(())
    }

    fn ddtc_direct_release(pointer: *const LayoutCopy) {
        direct("direct_release", pointer)?;
        Arc::decrement_strong_count(pointer);
        Ok(())
    }

    fn ddtc_direct_period(pointer: *const LayoutCopy, bytes: *mut i64) {
        const CALL: &str = "direct_period";
        let bytes = out(CALL, "bytes", bytes)?;
        bytes.set(direct(CALL, pointer)?.period().unwrap_or(0) as i64);
        Ok(())
    }

    fn ddtc_direct_copy(
        pointer: *const LayoutCopy, inbuf: *const c_void, incount: i64, outbuf: *mut c_void, outcount: i64,
        bytes: *mut i64,
    ) {
        const CALL: &str = "direct_copy";
        let bytes = out(CALL, "bytes", bytes)?;
        bytes.set(copy(CALL, direct(CALL, pointer)?, (inbuf, incount), (outbuf, outcount))?);
        Ok(())
    }
}
