//! Call that packs or unpacks, after its arguments have been checked.

use std::ops::Range;

use ddtc::internal::kind::Direction;

/// Checked arguments of a call that packs or unpacks.
pub(crate) struct Call {
    pub(crate) direction: Direction,
    /// Address of displacement 0 of the first instance, as MPI defines a buffer's address.
    pub(crate) user: *mut u8,
    /// Address in the packed buffer of the first byte that is moved, which is packed byte
    /// `range.start` of the instances.
    pub(crate) packed: *mut u8,
    pub(crate) count: u64,
    /// Range of the packed bytes of all instances that the call moves. It ends at the end of a
    /// basic element, but may begin inside one.
    pub(crate) range: Range<u64>,
    pub(crate) ty: u64,
}
