//! Call that moves bytes, after its arguments have been checked.

use std::ops::Range;

use ddtc::internal::kind::Direction;

/// Checked arguments of a call that moves bytes.
pub(crate) struct Call {
    pub(crate) direction: Direction,
    /// Address of displacement 0 of the first instance, as MPI defines a buffer's address.
    pub(crate) user: *mut u8,
    /// Address of byte `range.start` of the packed stream.
    pub(crate) packed: *mut u8,
    pub(crate) count: u64,
    /// Bytes of the packed stream that are moved. The range ends at the end of an element, but may
    /// begin inside one.
    pub(crate) range: Range<u64>,
    pub(crate) ty: u64,
}
