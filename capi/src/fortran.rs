//! Exports for Fortran: conversion of handles to default INTEGERs and back, the sizes of the
//! default kinds, and the values that the runtime's Fortran compiler stores for LOGICAL.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use ddtc::internal::datatype::FortranKinds;
use ddtc::internal::error::{Error, ErrorClass};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Handle};

use crate::arguments::{Type, export, handle, out, to_c};

/// Value that the Fortran compiler stores for `.TRUE.`.
static TRUE: AtomicI32 = AtomicI32::new(1);
/// Value that the Fortran compiler stores for `.FALSE.`.
static FALSE: AtomicI32 = AtomicI32::new(0);

/// Returns the value that the runtime's Fortran compiler stores for a LOGICAL.
pub(crate) fn logical(value: bool) -> c_int {
    if value { TRUE.load(Relaxed) } else { FALSE.load(Relaxed) }
}

/// Returns true if `value`, a LOGICAL of the runtime's Fortran compiler, is true. Every value
/// counts as true, except the value that stands for `.FALSE.`.
pub(crate) fn truth(value: c_int) -> bool {
    value != FALSE.load(Relaxed)
}

export! {
    fn ddtc_type_toint(datatype: Type, integer: *mut c_int) {
        let integer = out("type_toint", "integer", integer)?;
        integer.set(object::to_integer(handle(datatype))?);
        Ok(())
    }

    fn ddtc_type_fromint(integer: c_int, datatype: *mut Type) {
        let datatype = out("type_fromint", "datatype", datatype)?;
        datatype.set(to_c(object::from_integer(integer).inspect_err(|_| datatype.set(to_c(Handle::NULL)))?));
        Ok(())
    }

    fn ddtc_set_fortran_booleans(logical_true: c_int, logical_false: c_int) {
        if logical_true == logical_false {
            let rule = "must differ from .FALSE.";
            return Err(Error::new(ErrorClass::Arg, "set_fortran_booleans", "logical_true", logical_true, rule).into());
        }
        TRUE.store(logical_true, Relaxed);
        FALSE.store(logical_false, Relaxed);
        Ok(())
    }

    fn ddtc_set_fortran_kinds(integer: c_int, real: c_int, double_precision: c_int) {
        // No kind has a size that is negative or above 255. Such a size becomes 0, and 0 is refused
        // like any other unsupported size.
        let size = |bytes: c_int| u8::try_from(bytes).unwrap_or(0);
        let (integer, real, double_precision) = (size(integer), size(real), size(double_precision));
        Ok(FortranKinds { integer, real, double_precision }.set()?)
    }

    fn ddtc_get_fortran_kinds(integer: *mut c_int, real: *mut c_int, double_precision: *mut c_int) {
        const CALL: &str = "get_fortran_kinds";
        let kinds = FortranKinds::get();
        out(CALL, "integer", integer)?.set(kinds.integer.into());
        out(CALL, "real", real)?.set(kinds.real.into());
        out(CALL, "double_precision", double_precision)?.set(kinds.double_precision.into());
        Ok(())
    }

    fn ddtc_get_fortran_booleans(logical_true: *mut c_int, logical_false: *mut c_int) {
        const CALL: &str = "get_fortran_booleans";
        let (t, f) = (out(CALL, "logical_true", logical_true)?, out(CALL, "logical_false", logical_false)?);
        t.set(logical(true));
        f.set(logical(false));
        Ok(())
    }
}
