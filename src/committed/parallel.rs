//! Calls that are split over threads.

use std::ops::Range;

use super::Inner;
use crate::kind::Direction;

impl Inner {
    /// Whether a call is to be split: large enough, and no user byte is written by two threads.
    pub(super) fn splits(&self, direction: Direction, count: u64, bytes: u64) -> bool {
        let config = self.engine.config();
        config.threads > 1
            && bytes >= config.parallel_bytes
            && (direction == Direction::Pack || self.layout.nest().disjoint().holds(count))
    }

    /// One piece of the packed range per thread; the pieces end on cache lines of the packed buffer.
    ///
    /// # Safety
    /// As [`Inner::run`].
    pub(super) unsafe fn run_parallel(
        &self,
        direction: Direction,
        user: *mut u8,
        packed: *mut u8,
        count: u64,
        bytes: u64,
    ) {
        let threads = self.engine.config().threads as u64;
        let piece = bytes.div_ceil(threads).next_multiple_of(64);
        let (user, packed) = (Shared(user), Shared(packed));
        std::thread::scope(|scope| {
            for i in 1..threads {
                let range = (i * piece).min(bytes)..((i + 1) * piece).min(bytes);
                let work = move || {
                    let (user, packed) = (user, packed);
                    // SAFETY: as the caller promises; the pieces are disjoint on the side that is written.
                    unsafe { self.piece(direction, user.0, packed.0, count, range) };
                };
                if i * piece < bytes && std::thread::Builder::new().spawn_scoped(scope, work.clone()).is_err()
                {
                    // No thread to be had: this one does the piece.
                    work();
                }
            }
            // SAFETY: as above.
            unsafe { self.piece(direction, user.0, packed.0, count, 0..piece.min(bytes)) };
        });
    }

    /// One thread's part of a call.
    ///
    /// # Safety
    /// As [`Inner::walk`].
    unsafe fn piece(
        &self,
        direction: Direction,
        user: *mut u8,
        packed: *mut u8,
        count: u64,
        range: Range<u64>,
    ) {
        tracing::trace!(target: "ddtc", %direction, from = range.start, to = range.end, "piece");
        // SAFETY: as the caller promises.
        unsafe { self.walk(direction, user, packed, count, range) }
    }
}

/// A caller's address, on its way to a thread of the same call.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: the address is only used for pieces of one call, whose caller vouches for all of its bytes; pieces do not overlap.
unsafe impl Send for Shared {}
