//! Planted faults for tests: they make ddtc's movers move wrong bytes, which `DDTC_HOOK=check` must
//! find.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use super::described::Way;
use super::layout::{Convertor, layout};

/// Interval of planted faults: one in this many compared pieces is moved wrongly on purpose. If it
/// is 0, no piece is moved wrongly.
static EVERY: AtomicU64 = AtomicU64::new(0);
static PIECES: AtomicU64 = AtomicU64::new(0);

/// Makes ddtc's movers move one piece in `every` wrongly from now on, counting only pieces that are
/// compared with Open MPI's. 0: no piece is moved wrongly.
#[unsafe(no_mangle)]
pub extern "C" fn ddtc_hook_spoils(every: u64) {
    EVERY.store(every, Relaxed);
}

/// Replaces the first byte of a piece by a wrong value if it is the turn of this piece. The piece
/// was just moved, and starts at packed byte `first` of the request.
///
/// # Safety
/// As for `advance`, which has just moved the piece through `convertor`; `used` are the buffers
/// that `advance` has used.
pub(super) unsafe fn spoil(convertor: Convertor, way: Way<'_>, first: u64, used: &[libc::iovec]) {
    let every = EVERY.load(Relaxed);
    let Some(buffer) = used.first().filter(|b| every > 0 && b.iov_len > 0) else { return };
    if !PIECES.fetch_add(1, Relaxed).is_multiple_of(every) {
        return;
    }
    let byte: *mut u8 = buffer.iov_base.cast();
    // SAFETY: the buffer is not empty, so its first byte may be written. If the piece was received,
    // packed byte `first` was just unpacked into the program's buffer, so it may be unpacked there
    // once more, now with a wrong value.
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
