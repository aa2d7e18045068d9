//! Error classes, error codes and error strings that the program adds (MPI 5.0, 9.5), and the
//! attributes that MPI predefines on communicators.
//!
//! The attributes are here because one of them, `MPI_LASTUSEDCODE`, is the highest number that was
//! given out for an error class or code, even if the program has removed it again.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::process::{Guard, Mutex};

use crate::arguments::{bytes, export, out};
use crate::classes::is_predefined;
use crate::numbered::Numbered;

/// `MPI_ERR_LASTCODE` of the standard ABI. The numbers that the program adds begin after it.
const LAST_PREDEFINED: c_int = 0x3fff;

/// An error class or error code that the program added.
struct Code {
    /// The class to which the code belongs, or none if this entry is a class itself.
    class: Option<c_int>,
    /// The string that the program added for this code or class, or none.
    text: Option<Box<[u8]>>,
}

/// Value of the attribute `MPI_TAG_UB`. The program gets the address of this variable, and likewise
/// of the four variables below.
static TAG_UB: AtomicI32 = AtomicI32::new(i32::MAX);
/// Value of the attribute `MPI_IO`: `MPI_ANY_SOURCE`, since every process can do I/O.
static IO: AtomicI32 = AtomicI32::new(-1);
/// Value of the attribute `MPI_HOST`: `MPI_PROC_NULL`, since there is no host process.
static HOST: AtomicI32 = AtomicI32::new(-3);
/// Value of the attribute `MPI_WTIME_IS_GLOBAL`: true, since there is only one process.
static WTIME_IS_GLOBAL: AtomicI32 = AtomicI32::new(1);
/// Value of the attribute `MPI_LASTUSEDCODE`. It is updated whenever the program asks for a
/// predefined attribute.
static LAST_USED: AtomicI32 = AtomicI32::new(LAST_PREDEFINED);

/// The error classes and codes that the program added and has not removed.
static CODES: Mutex<Numbered<Code>> = Mutex::new(Numbered::new(LAST_PREDEFINED + 1));

fn codes() -> Guard<'static, Numbered<Code>> {
    CODES.lock()
}

/// Returns the class of a code that the program added, or the number itself if it is a class that
/// the program added. Returns none for any other number.
pub(crate) fn class_of(code: c_int) -> Option<c_int> {
    codes().get(code).map(|c| c.class.unwrap_or(code))
}

/// Returns the string of a code or class that the program added. The string is empty until the
/// program adds one. Returns none for a number that is not such a code or class.
pub(crate) fn text_of(code: c_int) -> Option<Box<[u8]>> {
    codes().get(code).map(|c| c.text.clone().unwrap_or_default())
}

fn refuse(call: &'static str, argument: &'static str, value: c_int, rule: &'static str) -> Error {
    Error::new(ErrorClass::Arg, call, argument, value, rule)
}

/// Removes an error class if `is_class` is true, otherwise an error code.
///
/// # Errors
/// Class `Arg` if the program did not add this class or code, if the class or code still has a
/// string, or if a code still belongs to the class. After an error, nothing is removed.
fn remove(call: &'static str, argument: &'static str, code: c_int, is_class: bool) -> Result<()> {
    let mut codes = codes();
    if codes.get(code).is_none_or(|c| c.class.is_none() != is_class) {
        return Err(refuse(call, argument, code, "must be one that the program added and has not removed"));
    }
    if codes.get(code).is_some_and(|c| c.text.is_some()) {
        return Err(refuse(call, argument, code, "must have no string: remove the string first"));
    }
    if codes.values().any(|c| c.class == Some(code)) {
        return Err(refuse(call, argument, code, "must have no codes: remove its codes first"));
    }
    codes.remove(code);
    Ok(())
}

export! {
    fn ddtc_error_add_class(errorclass: *mut c_int) {
        let errorclass = out("error_add_class", "errorclass", errorclass)?;
        errorclass.set(codes().insert("error_add_class", Code { class: None, text: None })?);
        Ok(())
    }

    fn ddtc_error_add_code(errorclass: c_int, errorcode: *mut c_int) {
        const CALL: &str = "error_add_code";
        let errorcode = out(CALL, "errorcode", errorcode)?;
        let mut codes = codes();
        if !is_predefined(errorclass) && codes.get(errorclass).is_none_or(|c| c.class.is_some()) {
            return Err(refuse(CALL, "errorclass", errorclass, "must be an error class of MPI, or one that the program added").into());
        }
        errorcode.set(codes.insert(CALL, Code { class: Some(errorclass), text: None })?);
        Ok(())
    }

    fn ddtc_error_add_string(errorcode: c_int, string: *const c_char) {
        const CALL: &str = "error_add_string";
        let text = bytes(CALL, "string", string)?;
        // With its NUL, a string has at most the 512 bytes of MPI_MAX_ERROR_STRING.
        let text: Box<[u8]> = text[..text.len().min(511)].into();
        let mut codes = codes();
        let rule = "must be one that the program added and has not removed";
        let code = codes.get(errorcode).ok_or_else(|| refuse(CALL, "errorcode", errorcode, rule))?;
        code.text = Some(text);
        Ok(())
    }

    fn ddtc_error_remove_class(errorclass: c_int) {
        Ok(remove("error_remove_class", "errorclass", errorclass, true)?)
    }

    fn ddtc_error_remove_code(errorcode: c_int) {
        Ok(remove("error_remove_code", "errorcode", errorcode, false)?)
    }

    fn ddtc_error_remove_string(errorcode: c_int) {
        const CALL: &str = "error_remove_string";
        let gone = codes().get(errorcode).and_then(|c| c.text.take());
        let rule = "must have a string that the program added";
        Ok(gone.map(drop).ok_or_else(|| refuse(CALL, "errorcode", errorcode, rule))?)
    }

    fn ddtc_mpi_attribute(keyval: c_int, value: *mut c_void, flag: *mut c_int) {
        const CALL: &str = "comm_get_attr";
        let (value, flag) = (out(CALL, "attribute_val", value.cast::<*mut c_int>())?, out(CALL, "flag", flag)?);
        let place = match keyval {
            501 => Some(&TAG_UB),
            502 => Some(&IO),
            503 => Some(&HOST),
            504 => Some(&WTIME_IS_GLOBAL),
            506 => Some(&LAST_USED),
            505 | 507 => None,
            _ => {
                let rule = "must be one of MPI's own keyvals of communicators";
                return Err(Error::new(ErrorClass::Keyval, CALL, "comm_keyval", keyval, rule).into());
            }
        };
        LAST_USED.store(codes().last(), Relaxed);
        if let Some(place) = place {
            value.set(place.as_ptr());
        }
        flag.set(c_int::from(place.is_some()));
        Ok(())
    }
}
