//! Copies and reductions from layout to layout: through handles, and for runtimes that keep what a look-up gave.

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

/// The committed type of the handle that is argument `name`.
fn ready(call: &'static str, name: &'static str, datatype: Type) -> Result<Committed> {
    let known = object::with(call, handle(datatype), |o| {
        o.committed()?.cloned().ok_or_else(|| uncommitted(call, o.datatype()))
    });
    known.and_then(|known| known).map_err(|error| error.about(name))
}

/// Borrows the result of `ddtc_committed_direct`.
///
/// # Safety
/// `pointer` must be null or such a pointer that was not released as often as retained.
unsafe fn direct<'a>(call: &'static str, pointer: *const LayoutCopy) -> Result<&'a LayoutCopy> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }
        .ok_or_else(|| Error::new(ErrorClass::Arg, call, "direct", "NULL", "must not be a null pointer"))
}

/// Checks both spans, and copies; returns the bytes copied.
///
/// # Safety
/// As of `ddtc_copy`.
unsafe fn copy(
    call: &'static str,
    direct: &LayoutCopy,
    (inbuf, incount): (*const c_void, i64),
    (outbuf, outcount): (*mut c_void, i64),
) -> Result<i64> {
    let (incount, outcount) = (natural(call, "incount", incount)?, natural(call, "outcount", outcount)?);
    has_data(call, direct.from(), inbuf, incount).map_err(|error| error.about("inbuf"))?;
    has_data(call, direct.to(), outbuf, outcount).map_err(|error| error.about("outbuf"))?;
    // SAFETY: the caller vouches for all instances on both sides, which lie in the address space, as just checked.
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
