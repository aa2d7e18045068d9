//! Functions of `MPI_T` about enumerations. The handle of an enumeration of ddtc is the address of
//! a byte in this file. Every other handle is that of an enumeration of the MPI library.

use std::ffi::{c_char, c_int, c_void};

use ddtc::internal::tool::{ENUMERATIONS, Enumeration};

use super::{constants, member, ready, set, string};

/// Bytes whose addresses are the handles of ddtc's enumerations.
static HANDLES: [u8; ENUMERATIONS.len()] = [0; ENUMERATIONS.len()];

/// Returns the handle of ddtc's enumeration with this index. If `index` is `None`, returns a null
/// pointer, which is `MPI_T_ENUM_NULL` in every ABI.
pub(super) fn handle(index: Option<usize>) -> *const c_void {
    index.and_then(|i| HANDLES.get(i)).map_or(std::ptr::null(), |byte| std::ptr::from_ref(byte).cast())
}

/// Returns ddtc's enumeration that has this handle, or `None` if the handle is the MPI library's.
fn ours(handle: *const c_void) -> Option<&'static Enumeration> {
    static ALL: [Enumeration; ENUMERATIONS.len()] = ENUMERATIONS;
    ALL.get(member(&HANDLES, handle)?)
}

tool! {
    /// Describes an enumeration.
    fn MPI_T_enum_get_info(host, enumtype: *mut c_void, num: *mut c_int, name: *mut c_char, name_len: *mut c_int) {
        let Some(ours) = ours(enumtype) else { return call!(host.enum_get_info(enumtype, num, name, name_len)) };
        ready(host)?;
        // SAFETY: each pointer is an argument of the tool. It is null if the tool does not want the
        // result, and otherwise points to writable memory for the result.
        unsafe {
            set(num, ours.items.len() as c_int);
            string(ours.name, name, name_len);
        }
        Ok(0)
    }

    /// Describes an item of an enumeration.
    fn MPI_T_enum_get_item(host, enumtype: *mut c_void, index: c_int, value: *mut c_int, name: *mut c_char,
        name_len: *mut c_int) {
        let Some(ours) = ours(enumtype) else {
            return call!(host.enum_get_item(enumtype, index, value, name, name_len));
        };
        ready(host)?;
        let Some(item) = usize::try_from(index).ok().and_then(|i| ours.items.get(i)) else {
            return Ok(constants(host)?.err_invalid_index);
        };
        // SAFETY: each pointer is an argument of the tool. It is null if the tool does not want the
        // result, and otherwise points to writable memory for the result.
        unsafe {
            set(value, index);
            string(item, name, name_len);
        }
        Ok(0)
    }
}
