//! Function that packs or unpacks, according to a direction.

use ddtc::internal::committed::Committed;
use ddtc::internal::kind::Direction;

/// Packs `count` instances from `user` to `packed`, or unpacks them from `packed` to `user`.
///
/// # Safety
/// As for `Committed::pack_raw` or `Committed::unpack_raw`, according to `direction`.
#[inline]
pub(crate) unsafe fn run(
    committed: &Committed,
    direction: Direction,
    user: *mut u8,
    count: u64,
    packed: *mut u8,
) {
    // SAFETY: the caller keeps the contract of the function that is called for this direction.
    unsafe {
        match direction {
            Direction::Pack => committed.pack_raw(user, count, packed),
            Direction::Unpack => committed.unpack_raw(packed, count, user),
        }
    }
}
