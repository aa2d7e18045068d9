//! State of a datatype in Open MPI's convertor hook: whether compiled code moves the bytes of
//! requests of the type, and how many bytes went to the MPI library's own movers.
//!
//! While the MPI library makes progress, nothing is decoded or compiled. So a request of a type
//! that is not ready is left to the MPI library's mover, and its bytes are counted. Once the MPI
//! library has moved enough bytes of the type, the type is queued. It is made ready when the
//! program next passes it to a call. A type that is known only by Open MPI's description of it is
//! made ready at the next call of the program, whatever the call's arguments are.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use ddtc::internal::committed::LayoutCopy;
use ddtc::internal::kind::Direction;

use crate::cuts::Cuts;

/// Returns the bit of a type's state that is set if compiled code moves requests of this direction.
const fn ready(direction: Direction) -> u8 {
    1 << direction as u8
}

/// Returns the bit of a type's state that is set if the type is queued to be made ready for this
/// direction.
const fn asked(direction: Direction) -> u8 {
    4 << direction as u8
}

/// Bit of a type's state that is set if the MPI library moves all requests of the type, for good.
const REFUSED: u8 = 16;
/// Bit of a type's state that is set if the MPI library moves the type's long requests
/// ([`MIN_LONG_REQUEST`]).
const SHORT: u8 = 32;
/// Bit of a type's state that is set if the type is queued for a compiled copy from buffer to
/// buffer.
const COPIES_ASKED: u8 = 64;
/// Bit of a type's state that is set if the MPI library makes all copies from buffer to buffer, for
/// good.
const COPIES_REFUSED: u8 = 128;

/// Minimum packed bytes of a request that is left to the MPI library because it is long. This limit
/// applies only to types of single short blocks that lie less than a page apart. For long requests
/// of these types the MPI library is as fast as compiled code, because the processor prefetches the
/// memory for both loops. Compiled code took 0.9 of the MPI library's time at 384 KiB, and 1.2 at
/// 1.5 MiB and 3 MiB (Sapphire Rapids, two ranks).
const MIN_LONG_REQUEST: u64 = 1 << 20;

/// Maximum number of doublings of the number of bytes after which a type is queued. It is the
/// largest number of bits by which a `u64` can be shifted.
const MAX_WAITS: u8 = 63;

/// State of one type in Open MPI's convertor hook.
pub(crate) struct Served {
    state: AtomicU8,
    /// Bytes of requests, for each direction, that the MPI library's mover has moved since the type
    /// was last taken from the queue.
    moved_by_mpi: [AtomicU64; 2],
    /// Number of times that the type was taken from the queue and was not made ready, because the
    /// overhead budget was used up; at most [`MAX_WAITS`].
    waits: AtomicU8,
    /// Places in the packed stream at which elements of the MPI library's own description of the
    /// type end. A piece of a message that is sent must end at one of them. Null until the places
    /// are found.
    cuts: AtomicPtr<Cuts>,
    /// Bytes that the MPI library copied from buffer to buffer.
    copied: AtomicU64,
    /// Compiled code that copies instances of the type from one buffer to another; null until it is
    /// compiled.
    copies: AtomicPtr<LayoutCopy>,
}

// `by` and `copies` return references to these values to all threads. Since the fields are raw
// pointers, the compiler does not check that the values may be shared; this check does.
const _: () = {
    const fn are_shared<T: Send + Sync>() {}
    are_shared::<Cuts>();
    are_shared::<LayoutCopy>();
};

impl Served {
    pub(crate) const fn new() -> Served {
        Served {
            state: AtomicU8::new(0),
            moved_by_mpi: [const { AtomicU64::new(0) }; 2],
            waits: AtomicU8::new(0),
            cuts: AtomicPtr::new(std::ptr::null_mut()),
            copied: AtomicU64::new(0),
            copies: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Returns all fields to their initial state and frees the cuts and the compiled copy, so that
    /// this value can be used for another type.
    ///
    /// # Safety
    /// During this call no thread may hold a reference that [`Served::by`] or [`Served::copies`]
    /// has returned, or call one of these two functions.
    pub(crate) unsafe fn reset(&self) {
        self.state.store(0, Ordering::Relaxed);
        self.waits.store(0, Ordering::Relaxed);
        self.moved_by_mpi.iter().chain([&self.copied]).for_each(|bytes| bytes.store(0, Ordering::Relaxed));
        let copies = self.copies.swap(std::ptr::null_mut(), Ordering::Acquire);
        if !copies.is_null() {
            // SAFETY: the pointer was made by `Box::into_raw` in `copy_by` and was taken out of its
            // place by the `swap`, so it is freed once. Nobody holds a reference to the value, as
            // the caller promises.
            drop(unsafe { Box::from_raw(copies) });
        }
        let cuts = self.cuts.swap(std::ptr::null_mut(), Ordering::Acquire);
        if !cuts.is_null() {
            // SAFETY: the pointer was made by `Box::into_raw` in `keep` and was taken out of its
            // place by the `swap`, so it is freed once. Nobody holds a reference to the value, as
            // the caller promises.
            drop(unsafe { Box::from_raw(cuts) });
        }
    }

    /// Returns the places at which pieces of a message that are sent may end, if compiled code
    /// moves requests of the type in this direction; `None` if the MPI library moves them.
    #[inline]
    pub(crate) fn by(&self, direction: Direction) -> Option<&Cuts> {
        if self.state.load(Ordering::Acquire) & ready(direction) == 0 {
            return None;
        }
        // SAFETY: the pointer is null or was made by `keep` from a box. Only `reset` frees the box,
        // and its caller promises that nobody holds a reference to it.
        unsafe { self.cuts.load(Ordering::Acquire).as_ref() }
    }

    /// Counts a request of `bytes` bytes that is left to the MPI library's mover. Queues the type
    /// once these requests have `enough` bytes. This number is doubled for each time that the type
    /// was taken from the queue and was not made ready. Returns true if this call has queued the
    /// type.
    #[inline]
    pub(crate) fn ask(&self, direction: Direction, bytes: u64, enough: u64) -> bool {
        if self.state.load(Ordering::Relaxed) & (asked(direction) | REFUSED) != 0 {
            return false;
        }
        let moved = &self.moved_by_mpi[direction as usize];
        let all = moved.load(Ordering::Relaxed).saturating_add(bytes);
        moved.store(all, Ordering::Relaxed);
        let is_due = all >= enough.saturating_mul(1 << self.waits.load(Ordering::Relaxed));
        if is_due {
            self.state.fetch_or(asked(direction), Ordering::Relaxed);
        }
        is_due
    }

    /// Doubles the number of bytes after which the type is queued again. Called if the type was
    /// taken from the queue but could not be made ready, because the overhead budget was used up.
    pub(crate) fn wait_longer(&self) {
        // If two threads add at once, one addition may be lost. That does no harm, because only the
        // moment at which the type is queued depends on the number.
        self.waits.store((self.waits.load(Ordering::Relaxed) + 1).min(MAX_WAITS), Ordering::Relaxed);
    }

    /// Returns true if the type is queued, to be made ready or to get a compiled copy at a later
    /// call of the program.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (asked(Direction::Pack) | asked(Direction::Unpack) | COPIES_ASKED) != 0
            && state & REFUSED == 0
    }

    /// Returns the compiled copy of instances from buffer to buffer, if it was made. Otherwise
    /// counts `bytes` bytes that the MPI library copies, and queues the type once the MPI library
    /// has copied `enough` bytes.
    #[inline]
    pub(crate) fn copies(&self, bytes: u64, enough: u64) -> Option<&LayoutCopy> {
        // SAFETY: the pointer is null or was made by `copy_by` from a box. Only `reset` frees the
        // box, and its caller promises that nobody holds a reference to it.
        let made = unsafe { self.copies.load(Ordering::Acquire).as_ref() };
        if made.is_none()
            && self.state.load(Ordering::Relaxed) & (COPIES_ASKED | COPIES_REFUSED | REFUSED) == 0
        {
            let all = self.copied.load(Ordering::Relaxed).saturating_add(bytes);
            self.copied.store(all, Ordering::Relaxed);
            if all >= enough {
                self.state.fetch_or(COPIES_ASKED, Ordering::Relaxed);
            }
        }
        made
    }

    /// Takes the type from the queue for compiled copies. Returns true if the type was queued and
    /// has no compiled copy yet.
    pub(crate) fn take_copies(&self) -> bool {
        self.state.fetch_and(!COPIES_ASKED, Ordering::Relaxed) & COPIES_ASKED != 0
            && self.copies.load(Ordering::Acquire).is_null()
    }

    /// Sets the compiled code that copies instances of the type from one buffer to another. With
    /// `None`, the MPI library makes such copies of this type from now on.
    pub(crate) fn copy_by(&self, copies: Option<LayoutCopy>) {
        let Some(copies) = copies else {
            self.state.fetch_or(COPIES_REFUSED, Ordering::Relaxed);
            return;
        };
        let made = Box::into_raw(Box::new(copies));
        let null = std::ptr::null_mut();
        if self.copies.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: the box was made above and was not published, because the exchange failed:
            // another thread has set a copy first.
            drop(unsafe { Box::from_raw(made) });
        }
    }

    /// Returns true if the type needs no more preparation, because compiled code moves its requests
    /// in both directions, or because the MPI library moves all of them for good.
    pub(crate) fn is_final(&self) -> bool {
        let (state, both) =
            (self.state.load(Ordering::Relaxed), ready(Direction::Pack) | ready(Direction::Unpack));
        state & REFUSED != 0 || state & both == both
    }

    /// Takes the type from the queue. Returns, for each direction that was queued, the bytes that
    /// the MPI library's mover has moved, and counts both directions from 0 again.
    pub(crate) fn take(&self) -> [Option<u64>; 2] {
        Direction::BOTH.map(|direction| {
            let state = self.state.fetch_and(!asked(direction), Ordering::Relaxed);
            let moved = self.moved_by_mpi[direction as usize].swap(0, Ordering::Relaxed);
            (state & asked(direction) != 0).then_some(moved)
        })
    }

    /// Returns true if the length of a request, `bytes` bytes, does not exclude it from compiled
    /// code: the request is not long ([`MIN_LONG_REQUEST`]), or the type's long requests gain by
    /// compiled code too.
    #[inline]
    pub(crate) fn gains(&self, bytes: u64) -> bool {
        bytes < MIN_LONG_REQUEST || self.state.load(Ordering::Relaxed) & SHORT == 0
    }

    /// Leaves long requests of the type to the MPI library ([`MIN_LONG_REQUEST`]).
    pub(crate) fn keep_short(&self) {
        self.state.fetch_or(SHORT, Ordering::Relaxed);
    }

    /// Leaves all requests of the type to the MPI library for good. The type is not queued any
    /// more.
    pub(crate) fn refuse(&self) {
        self.state.fetch_or(REFUSED, Ordering::Relaxed);
    }

    /// Ends all use of compiled code for the type. Requests that are under way are continued by the
    /// MPI library's movers, and copies from buffer to buffer are left to the MPI library.
    pub(crate) fn end(&self) {
        let both = ready(Direction::Pack) | ready(Direction::Unpack);
        let ended = |state: u8| Some((state | REFUSED | COPIES_REFUSED) & !both);
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, ended);
        // Another thread may be using the copy, so its memory is not freed.
        self.copies.store(std::ptr::null_mut(), Ordering::Release);
    }

    /// Keeps the places at which elements end, which `find` returns, unless they are known already.
    /// Returns `None` if `find` returns `None`.
    pub(crate) fn keep(&self, find: impl FnOnce() -> Option<Cuts>) -> Option<()> {
        if !self.cuts.load(Ordering::Acquire).is_null() {
            return Some(());
        }
        let made = Box::into_raw(Box::new(find()?));
        let first =
            self.cuts.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            // SAFETY: the box was made above and was not published, because the exchange failed:
            // another thread has set its cuts first.
            drop(unsafe { Box::from_raw(made) });
        }
        Some(())
    }

    /// Lets compiled code move requests of this direction from now on, unless the type is refused.
    /// [`Served::keep`] must have succeeded before.
    pub(crate) fn serve(&self, direction: Direction) {
        let before = self.state.fetch_or(ready(direction), Ordering::Release);
        if before & REFUSED != 0 {
            self.state.fetch_and(!ready(direction), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuts::{Entry, KINDS};

    #[test]
    fn a_type_is_asked_for_then_served_then_another() {
        let served = Served::new();
        served.ask(Direction::Unpack, 10, 25);
        assert!(!served.is_asked());
        served.ask(Direction::Unpack, 15, 25);
        assert!(served.is_asked() && served.take() == [None, Some(25)] && !served.is_asked());
        assert!(served.by(Direction::Unpack).is_none());
        let mut sizes = [0; KINDS];
        sizes[6] = 4;
        let int = Entry { kind: 6, count: 1, length: 1, ..Entry::default() };
        assert!(served.keep(|| None).is_none());
        assert!(served.keep(|| Cuts::from_entries(&[int], &sizes, 4)).is_some());
        served.serve(Direction::Unpack);
        assert!(served.by(Direction::Pack).is_none() && !served.is_final());
        assert_eq!(served.by(Direction::Unpack).map(|cuts| cuts.before(7)), Some(4));
        // SAFETY: this test holds no reference that `by` or `copies` has returned, and no other
        // thread knows the value.
        unsafe { served.reset() };
        assert!(served.by(Direction::Unpack).is_none());
        served.refuse();
        served.ask(Direction::Pack, 100, 25);
        assert!(!served.is_asked() && served.is_final());
    }

    #[test]
    fn a_type_that_has_ended_is_never_served_again() {
        let served = Served::new();
        let mut sizes = [0; KINDS];
        sizes[6] = 4;
        let int = Entry { kind: 6, count: 1, length: 1, ..Entry::default() };
        served.keep(|| Cuts::from_entries(&[int], &sizes, 4)).unwrap();
        served.serve(Direction::Pack);
        assert!(served.by(Direction::Pack).is_some());
        served.end();
        // Another thread may have begun to make the type ready before the end of its conversion.
        // That thread then makes this call.
        served.serve(Direction::Unpack);
        assert!(Direction::BOTH.into_iter().all(|direction| served.by(direction).is_none()));
        assert!(
            !served.ask(Direction::Pack, 100, 25) && served.copies(100, 25).is_none() && !served.is_asked()
        );
        // SAFETY: this test holds no reference that `by` or `copies` has returned, and no other
        // thread knows the value.
        unsafe { served.reset() };
        served.serve(Direction::Unpack);
        assert!(
            served.keep(|| Cuts::from_entries(&[int], &sizes, 4)).is_some()
                && served.by(Direction::Unpack).is_some()
        );
    }

    #[test]
    fn a_type_that_waits_is_asked_for_less_and_less() {
        let served = Served::new();
        let asked = |n: u64| {
            let asked = (0..n).filter(|_| served.ask(Direction::Pack, 10, 10) && served.take()[0].is_some());
            asked.count()
        };
        assert_eq!(asked(3), 3);
        served.wait_longer();
        served.wait_longer();
        assert_eq!(asked(12), 3);
        (0..100).for_each(|_| served.wait_longer());
        assert_eq!(asked(1000), 0);
        // SAFETY: this test holds no reference that `by` or `copies` has returned, and no other
        // thread knows the value.
        unsafe { served.reset() };
        assert_eq!(asked(3), 3);
    }
}
