//! Buffers as the program passes them to a call.

use std::ffi::c_void;

use crate::host::HandleWord;
use crate::table::TypeEntry;

/// Buffer of a call: its address, the number of elements and their type.
#[derive(Clone, Copy)]
pub(crate) struct UserBuffer {
    pub(crate) buf: *mut c_void,
    pub(crate) count: i64,
    pub(crate) datatype: HandleWord,
    /// Entry of the type, looked up once for the call; none if it is a named type or is not
    /// decoded.
    pub(crate) entry: Option<&'static TypeEntry>,
}
