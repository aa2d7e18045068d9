//! Buffers as the program gives them to a call.

use std::ffi::c_void;

use crate::host::HandleWord;
use crate::table::TypeEntry;

/// A buffer of a call: an address, a number of elements and their type.
#[derive(Clone, Copy)]
pub(crate) struct UserBuffer {
    pub(crate) buf: *mut c_void,
    pub(crate) count: i64,
    pub(crate) datatype: HandleWord,
    /// Entry of the type, looked up once for the call; none for a named type and for one that is not
    /// decoded.
    pub(crate) entry: Option<&'static TypeEntry>,
}
