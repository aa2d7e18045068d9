//! Buffers as the program passes them to a call.

use std::ffi::c_void;

use crate::host::HandleWord;
use crate::table::TypeEntry;

/// Buffer that the program passes to a call: its address, the number of elements and their type.
#[derive(Clone, Copy)]
pub(crate) struct UserBuffer {
    pub(crate) buf: *mut c_void,
    pub(crate) count: i64,
    pub(crate) datatype: HandleWord,
    /// Table entry of the type, which is looked up once for the call; `None` if the type is a named
    /// one or is not decoded.
    pub(crate) entry: Option<&'static TypeEntry>,
}
