//! Calls of pack and unpack that are split over several threads.

use std::ops::Range;

use super::Inner;
use crate::kind::Direction;

impl Inner {
    /// Returns true if a call is to be split over threads: the configuration allows several, the
    /// call has enough bytes, and no two threads would write the same user byte. Unpacking is split
    /// only if the user bytes of all instances are known to be disjoint.
    pub(super) fn splits(&self, direction: Direction, count: u64, bytes: u64) -> bool {
        let config = self.engine.config();
        config.threads > 1
            && bytes >= config.parallel_bytes
            && (direction == Direction::Pack || self.layout.disjoint().holds(count))
    }

    /// Moves `count` instances with one piece of the packed stream per thread, and returns when all
    /// pieces are done. All pieces but the last have the same length, a multiple of 64 bytes.
    /// Therefore, if the packed buffer is aligned to cache lines, no two threads write to the same
    /// cache line of the buffer.
    ///
    /// # Safety
    /// The promises of [`Inner::run`] must hold, [`Inner::splits`] must have returned true, and
    /// `bytes` must be the packed size of `count` instances.
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
            // At most `threads - 1` pieces are left, and fewer if there are not enough bytes.
            let mut start = piece;
            while start < bytes {
                let range = start..start.saturating_add(piece).min(bytes);
                start = range.end;
                let work = move || {
                    let (user, packed) = (user, packed);
                    // SAFETY: the caller promises valid memory for the `bytes` bytes of the whole
                    // stream, in which this piece lies. No other thread accesses what this one
                    // writes: the pieces do not overlap in the packed stream, and `splits` has
                    // shown that they do not overlap in user memory when that is written.
                    unsafe { self.piece(direction, user.0, packed.0, count, range) };
                };
                if std::thread::Builder::new().spawn_scoped(scope, work.clone()).is_err() {
                    // The system could not start a thread, so the calling thread moves this piece
                    // itself.
                    work();
                }
            }
            // SAFETY: the caller promises valid memory for the `bytes` bytes of the whole stream,
            // in which this piece lies, and this piece overlaps none of the others on the side that
            // is written.
            unsafe { self.piece(direction, user.0, packed.0, count, 0..piece.min(bytes)) };
        });
    }

    /// Moves the packed bytes `range`, which are the piece of one thread.
    ///
    /// # Safety
    /// The promises of [`Inner::interpret`] must hold.
    unsafe fn piece(
        &self,
        direction: Direction,
        user: *mut u8,
        packed: *mut u8,
        count: u64,
        range: Range<u64>,
    ) {
        tracing::trace!(target: "ddtc", %direction, from = range.start, to = range.end, "piece");
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.interpret(direction, user, packed, count, range) }
    }
}

/// Address from the caller that is passed to the threads of one call.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: the threads use the address only for pieces of one call. Its caller promises that all
// bytes of the call are valid, and two threads do not write the same byte.
unsafe impl Send for Shared {}
