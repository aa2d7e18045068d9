//! The export that decodes a datatype of the runtime that embeds ddtc. It calls functions of the
//! runtime that describe the datatype. The decoded datatype keeps the bounds that the runtime
//! reports.

use std::ffi::{c_int, c_void};

use ddtc::internal::datatype::{CombinerKind, Constants, Contents, Envelope, Named};
use ddtc::internal::decode::{Introspect, decode};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Handle};

use crate::arguments::{Type, export, out, to_c};

/// The callback `envelope` of `ddtc_introspect`.
type EnvelopeFunction =
    unsafe extern "C" fn(*mut c_void, usize, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int) -> c_int;
/// The callback `contents` of `ddtc_introspect`.
type ContentsFunction = unsafe extern "C" fn(
    *mut c_void,
    usize,
    i64,
    i64,
    i64,
    i64,
    *mut c_int,
    *mut i64,
    *mut i64,
    *mut usize,
) -> c_int;

/// The table of the runtime's functions: `ddtc_introspect` of ddtc.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Functions {
    struct_size: usize,
    context: *mut c_void,
    envelope: Option<EnvelopeFunction>,
    contents: Option<ContentsFunction>,
    named: Option<unsafe extern "C" fn(*mut c_void, usize, *mut Type) -> c_int>,
    bounds: Option<unsafe extern "C" fn(*mut c_void, usize, *mut i64, *mut i64) -> c_int>,
    identity: Option<unsafe extern "C" fn(*mut c_void, usize, *mut u64) -> c_int>,
    release: Option<unsafe extern "C" fn(*mut c_void, usize)>,
}

/// The runtime as a source of datatypes for the decoder.
struct Host(Functions);

fn missing(argument: &'static str) -> Error {
    Error::new(ErrorClass::Arg, "type_decode", argument, "NULL", "the table must have this function")
}

/// Returns an error of class `Other` if a callback returned a code other than 0.
fn answer(argument: &'static str, code: c_int) -> Result<()> {
    if code != 0 {
        let rule = "the runtime's function refused with this code";
        return Err(Error::new(ErrorClass::Other, "type_decode", argument, code, rule));
    }
    Ok(())
}

impl Introspect for Host {
    type Handle = usize;

    fn envelope(&mut self, handle: &usize) -> Result<Envelope> {
        let envelope = self.0.envelope.ok_or_else(|| missing("envelope"))?;
        let (mut n, mut combiner) = ([0i64; 4], 0);
        let [integers, addresses, large_counts, datatypes] = &mut n;
        // SAFETY: the runtime passed this function and context in its table, to be called with a
        // handle of its own. All references are to local variables that live until after the call.
        answer("envelope", unsafe {
            envelope(self.0.context, *handle, integers, addresses, large_counts, datatypes, &mut combiner)
        })?;
        let kind = CombinerKind::all().find(|k| k.abi_value() == combiner).ok_or_else(|| {
            let rule = "must be a combiner of the standard ABI or of ddtc.h";
            Error::new(ErrorClass::Type, "type_decode", "combiner", combiner, rule)
        })?;
        Ok(Envelope { combiner: kind, integers: n[0], addresses: n[1], large_counts: n[2], datatypes: n[3] })
    }

    fn contents(&mut self, handle: &usize, envelope: &Envelope) -> Result<Contents<usize>> {
        let contents = self.0.contents.ok_or_else(|| missing("contents"))?;
        // The decoder has checked that the lengths are not negative and within its limits.
        let mut arrays = Contents {
            integers: vec![0; envelope.integers as usize],
            addresses: vec![0; envelope.addresses as usize],
            large_counts: vec![0; envelope.large_counts as usize],
            datatypes: vec![0; envelope.datatypes as usize],
        };
        // SAFETY: the runtime passed this function and context in its table, to be called with a
        // handle of its own. Each array has exactly the length that is passed with it, and lives
        // until after the call.
        answer("contents", unsafe {
            contents(
                self.0.context,
                *handle,
                envelope.integers,
                envelope.addresses,
                envelope.large_counts,
                envelope.datatypes,
                arrays.integers.as_mut_ptr(),
                arrays.addresses.as_mut_ptr(),
                arrays.large_counts.as_mut_ptr(),
                arrays.datatypes.as_mut_ptr(),
            )
        })?;
        Ok(arrays)
    }

    fn named(&mut self, handle: &usize) -> Result<Named> {
        let named = self.0.named.ok_or_else(|| missing("named"))?;
        let mut datatype = std::ptr::null_mut();
        // SAFETY: the runtime passed this function and context in its table, to be called with a
        // handle of its own. `datatype` is a local variable that lives until after the call.
        answer("named", unsafe { named(self.0.context, *handle, &mut datatype) })?;
        let handle = crate::arguments::handle(datatype);
        handle.named().ok_or_else(|| {
            let rule = "must be a named predefined datatype";
            Error::new(ErrorClass::Type, "type_decode", "named", handle, rule)
        })
    }

    fn bounds(&mut self, handle: &usize) -> Result<Option<(i64, i64)>> {
        let Some(bounds) = self.0.bounds else { return Ok(None) };
        let (mut lb, mut extent) = (0, 0);
        // SAFETY: the runtime passed this function and context in its table, to be called with a
        // handle of its own. `lb` and `extent` are local variables that live until after the call.
        answer("bounds", unsafe { bounds(self.0.context, *handle, &mut lb, &mut extent) })?;
        Ok(Some((lb, extent)))
    }

    fn identity(&mut self, handle: &usize) -> Option<u64> {
        let mut value = 0;
        // SAFETY: the runtime passed this function and context in its table, to be called with a
        // handle of its own. `value` is a local variable that lives until after the call.
        let code = unsafe { (self.0.identity?)(self.0.context, *handle, &mut value) };
        (code == 0).then_some(value)
    }

    fn release(&mut self, handle: usize) {
        if let Some(release) = self.0.release {
            // SAFETY: the runtime passed this function and context in its table, to be called once
            // with each handle that `contents` returned, as the decoder does.
            unsafe { release(self.0.context, handle) };
        }
    }

    fn constants(&self) -> Constants {
        Constants::ABI
    }
}

export! {
    fn ddtc_type_decode(functions: *const Functions, host: usize, newtype: *mut Type) {
        const CALL: &str = "type_decode";
        let newtype = out(CALL, "newtype", newtype)?;
        // The result of a call that fails.
        newtype.set(to_c(Handle::NULL));
        // First only the size is read, because a table of another version may end before the end of
        // `Functions`.
        let size = out(CALL, "functions", functions.cast_mut().cast::<usize>())?.get();
        if size != size_of::<Functions>() {
            let rule = format!("must be sizeof(ddtc_introspect), which is {}", size_of::<Functions>());
            return Err(Error::new(ErrorClass::Arg, CALL, "struct_size", size, rule).into());
        }
        let functions = out(CALL, "functions", functions.cast_mut())?.get();
        let datatype = decode(&mut Host(functions), &host)?;
        newtype.set(to_c(object::create(datatype)?));
        Ok(())
    }
}
