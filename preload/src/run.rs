//! Runs the kernel of a type, in the direction of a call.

use ddtc::committed::Committed;
use ddtc::kind::Direction;

/// Packs or unpacks `count` instances.
///
/// # Safety
/// As `Committed::pack_raw` and `Committed::unpack_raw`.
#[inline]
pub(crate) unsafe fn run(
    committed: &Committed,
    direction: Direction,
    user: *mut u8,
    count: u64,
    packed: *mut u8,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match direction {
            Direction::Pack => committed.pack_raw(user, count, packed),
            Direction::Unpack => committed.unpack_raw(packed, user, count),
        }
    }
}
