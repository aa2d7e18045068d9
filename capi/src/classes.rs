//! Descriptions of the error classes of MPI and of its tool interface.

use std::ffi::c_int;

/// Descriptions of the error classes of MPI 5.0 (9.4). The index is the value of the class in the
/// standard ABI.
const CLASSES: [&str; 63] = [
    "no error",
    "invalid buffer pointer",
    "invalid count argument",
    "invalid datatype argument",
    "invalid tag",
    "invalid communicator",
    "invalid rank",
    "invalid request",
    "invalid root",
    "invalid group",
    "invalid operation",
    "invalid topology",
    "invalid dimensions",
    "invalid argument",
    "unknown error",
    "data longer than its space",
    "known error not in the list of classes",
    "internal error of the library",
    "pending request",
    "error code in the status",
    "permission denied",
    "invalid access mode",
    "invalid assertion",
    "invalid file name",
    "invalid base",
    "error in a conversion of data",
    "invalid displacement",
    "data representation defined already",
    "file exists",
    "file in use",
    "invalid file handle",
    "invalid info key",
    "no such info key",
    "invalid info value",
    "invalid info object",
    "error of input or output",
    "invalid attribute key",
    "invalid lock type",
    "service name not published",
    "out of memory",
    "collective argument not the same everywhere",
    "not enough space",
    "no such file",
    "invalid port name",
    "quota exceeded",
    "read-only file or file system",
    "memory cannot be attached",
    "conflicting accesses to a window",
    "outside the window",
    "memory cannot be shared",
    "wrong synchronization of a window",
    "service name published already or not by this program",
    "invalid size",
    "processes cannot be spawned",
    "unsupported data representation",
    "unsupported operation",
    "invalid window",
    "wrong flavor of window",
    "a process was aborted",
    "value too large for its argument",
    "invalid session",
    "invalid error handler",
    "error of the binary interface",
];

/// Value of the first error class of the tool interface, which is the first entry of
/// `TOOL_CLASSES`.
const FIRST_TOOL: usize = 1001;
/// Descriptions of the error classes of the tool interface, in the order of their values.
const TOOL_CLASSES: [&str; 18] = [
    "the tool interface cannot be initialized",
    "the tool interface is not accessible",
    "the tool interface is not initialized",
    "not supported by the tool interface",
    "the tool interface is out of memory",
    "invalid argument of the tool interface",
    "no variable, category or enumeration of that index",
    "no item of that index",
    "invalid session handle",
    "invalid variable handle",
    "no variable of that name",
    "no more variable handles",
    "no more sessions",
    "the variable cannot be set now",
    "the variable can never be set",
    "the performance variable cannot be written",
    "the performance variable cannot be started or stopped",
    "the performance variable cannot be read and reset at once",
];

/// Returns the description of a predefined error class, or none for any other number. The
/// description serves as the message for a code if the thread has no message of a failed call for
/// it.
pub(crate) fn meaning(code: c_int) -> Option<&'static str> {
    let code = usize::try_from(code).ok()?;
    CLASSES.get(code).or_else(|| TOOL_CLASSES.get(code.checked_sub(FIRST_TOOL)?)).copied()
}

/// Returns true if `code` is a predefined error class. The class 0, no error, is one of them.
pub(crate) fn is_predefined(code: c_int) -> bool {
    meaning(code).is_some()
}
