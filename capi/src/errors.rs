//! Exports for the texts and classes of error codes, and for recording a message. `ddtc_mpi.h` and
//! the Fortran module use the latter for messages of their own.

use std::borrow::Cow;
use std::ffi::{c_char, c_int};

use ddtc::internal::error::ErrorClass;

use crate::arguments::{export, out, text};
use crate::classes::{is_predefined, meaning};
use crate::codes;
use crate::guard::{last, store_last_error};

/// `MPI_MAX_ERROR_STRING` of the standard ABI: the room for a message in bytes, including the NUL.
const MAX_ERROR_STRING: usize = 512;

export! {
    fn ddtc_error_string(code: c_int, string: *mut c_char, resultlen: *mut c_int) {
        let resultlen = out("error_string", "resultlen", resultlen)?;
        let string = out("error_string", "string", string)?;
        // The text is the string that the program added for this code. If there is none, it is the
        // message of this thread's last failure, provided that the failure had this code. Otherwise
        // it is a general description. A string of the program may have any encoding, so the result
        // is bytes.
        let text: Cow<'_, [u8]> = if let Some(added) = codes::text_of(code) {
            Cow::Owned(added.into_vec())
        } else {
            match last() {
                Some((c, text)) if c == code && code != 0 => {
                    let mut n = text.len().min(MAX_ERROR_STRING - 1);
                    while !text.is_char_boundary(n) {
                        n -= 1;
                    }
                    Cow::Owned(text.as_bytes()[..n].to_vec())
                }
                _ => Cow::Borrowed(meaning(code).unwrap_or("an error code of the user").as_bytes()),
            }
        };
        string.write_bytes(&text, true);
        resultlen.set(text.len() as c_int);
        Ok(())
    }

    fn ddtc_error_class(code: c_int, class: *mut c_int) {
        let class = out("error_class", "errorclass", class)?;
        let other = ErrorClass::Other as c_int;
        class.set(if is_predefined(code) { code } else { codes::class_of(code).unwrap_or(other) });
        Ok(())
    }

    fn ddtc_mpi_explain(
        code: c_int,
        call: *const c_char,
        argument: *const c_char,
        value: *const c_char,
        rule: *const c_char,
    ) {
        let text = |string| text("mpi_explain", "text", string);
        let (call, argument, value, rule) = (text(call)?, text(argument)?, text(value)?, text(rule)?);
        store_last_error(code, format!("{call}: {argument} = {value}: {rule}"));
        Ok(())
    }
}
