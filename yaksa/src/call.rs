//! Arguments of a call that packs or unpacks, after they have been checked.

use std::ops::Range;

use ddtc::internal::kind::Direction;

/// Arguments of a call that packs or unpacks. `moves.rs` has checked them: the number of packed
/// bytes of all instances fits in 63 bits, the range is not empty and lies inside these bytes,
/// `packed` is not null, and the instances lie in the address space.
pub(crate) struct Call {
    pub(crate) direction: Direction,
    /// Address of displacement 0 of the first instance, as MPI defines a buffer's address.
    pub(crate) user: *mut u8,
    /// Address in the packed buffer of the first byte that is moved, which is packed byte
    /// `range.start` of the instances.
    pub(crate) packed: *mut u8,
    pub(crate) count: u64,
    /// Bytes that the call moves, as a range of offsets in the packed data of all instances. The
    /// range ends at the end of a basic element, but may begin inside one.
    pub(crate) range: Range<u64>,
    pub(crate) ty: u64,
}
