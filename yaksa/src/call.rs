//! A call that moves bytes, once its arguments are checked.

use std::ops::Range;

use ddtc::internal::kind::Direction;

/// A call whose arguments are checked.
pub(crate) struct Call {
    pub(crate) direction: Direction,
    /// The buffer address as MPI means it.
    pub(crate) user: *mut u8,
    /// Where byte `range.start` of the stream is.
    pub(crate) packed: *mut u8,
    pub(crate) count: u64,
    /// Whole elements of the stream, except that an element may lie before its beginning in part.
    pub(crate) range: Range<u64>,
    /// Whether that is all of the stream.
    pub(crate) whole: bool,
    pub(crate) ty: u64,
}
