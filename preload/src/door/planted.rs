//! For tests: what would be if our movers moved wrong bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::kind::Direction;

use super::described::Way;
use super::layout::{Convertor, layout};

/// One piece in so many is moved wrong; 0: none is.
static EVERY: AtomicU64 = AtomicU64::new(0);
static PIECES: AtomicU64 = AtomicU64::new(0);

/// From now on one piece in `every` is moved wrong, where pieces are compared.
#[unsafe(no_mangle)]
pub extern "C" fn ddtc_door_spoils(every: u64) {
    EVERY.store(every, Relaxed);
}

/// Spoils the first byte of a piece that was just moved from `first` on, if it is its turn.
///
/// # Safety
/// As `advance`, after it, with the buffers that it used.
pub(super) unsafe fn spoil(convertor: Convertor, way: Way<'_>, first: u64, used: &[libc::iovec]) {
    let every = EVERY.load(Relaxed);
    let Some(buffer) = used.first().filter(|b| every > 0 && b.iov_len > 0) else { return };
    if !PIECES.fetch_add(1, Relaxed).is_multiple_of(every) {
        return;
    }
    let byte: *mut u8 = buffer.iov_base.cast();
    // SAFETY: a byte of the piece; what was received goes to its place once more, wrong.
    unsafe {
        match way.direction {
            Direction::Pack => *byte ^= 0x55,
            Direction::Unpack => {
                let (user, count) = (convertor.word(layout().buffer), convertor.word(layout().count));
                let mut wrong = *byte ^ 0x55;
                let range = first..first + 1;
                way.committed.range_made(way.direction, user as *mut u8, count, &raw mut wrong, range);
            }
        }
    }
}
