//! State of a type inside the host: whether our mover serves it, and what was left to the host's.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use ddtc::committed::LayoutCopy;
use ddtc::kind::Direction;

use crate::cuts::Cuts;

/// Bits of the state: a direction is served, asked for, or the type never is.
const fn ready(direction: Direction) -> u8 {
    1 << direction as u8
}

const fn asked(direction: Direction) -> u8 {
    4 << direction as u8
}

const REFUSED: u8 = 16;
/// Long requests are the host's.
const SHORT: u8 = 32;
/// Copies from buffer to buffer are asked for, or will not be served.
const COPIES_ASKED: u8 = 64;
const COPIES_REFUSED: u8 = 128;

/// Bytes from which they are long: in single elements a stride apart the host is as fast, and its loop runs ahead of the memory (measured: 0.9 of its time at
/// 384 KiB, 1.2 at 1.5 MiB and 3 MiB, Sapphire Rapids, two ranks).
const LONG: u64 = 1 << 20;

/// Times that it waits longer: a thousand times as long.
const MOST_WAITS: u8 = 10;

/// Of one type.
pub(crate) struct Served {
    state: AtomicU8,
    /// Bytes of requests that went to the host's mover, a direction each.
    left: [AtomicU64; 2],
    /// How often it was looked at while nothing might be spent on it.
    waits: AtomicU8,
    /// Where its elements end; null while nobody has looked.
    cuts: AtomicPtr<Cuts>,
    /// Bytes that the host copied from buffer to buffer.
    copied: AtomicU64,
    /// Copies instances; null while there is nothing.
    copies: AtomicPtr<LayoutCopy>,
}

// References to what is kept go to all threads, which the compiler does not see of the pointers.
const _: () = {
    const fn are_shared<T: Send + Sync>() {}
    are_shared::<Cuts>();
    are_shared::<LayoutCopy>();
};

impl Served {
    pub(crate) const fn new() -> Served {
        Served {
            state: AtomicU8::new(0),
            left: [const { AtomicU64::new(0) }; 2],
            waits: AtomicU8::new(0),
            cuts: AtomicPtr::new(std::ptr::null_mut()),
            copied: AtomicU64::new(0),
            copies: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Frees what is kept, so that this can stand for another type.
    ///
    /// # Safety
    /// No thread must hold what [`Served::by`] or [`Served::copies`] has returned, or call them meanwhile.
    pub(crate) unsafe fn reset(&self) {
        self.state.store(0, Ordering::Relaxed);
        self.waits.store(0, Ordering::Relaxed);
        self.left.iter().chain([&self.copied]).for_each(|left| left.store(0, Ordering::Relaxed));
        let copies = self.copies.swap(std::ptr::null_mut(), Ordering::Acquire);
        if !copies.is_null() {
            // SAFETY: made by `Box::into_raw` in `copy_by`, and nobody holds it, as the caller promises.
            drop(unsafe { Box::from_raw(copies) });
        }
        let cuts = self.cuts.swap(std::ptr::null_mut(), Ordering::Acquire);
        if !cuts.is_null() {
            // SAFETY: made by `Box::into_raw` in `keep`, and nobody holds it, as the caller promises.
            drop(unsafe { Box::from_raw(cuts) });
        }
    }

    /// Returns where its elements end, if our mover serves it in this direction.
    #[inline]
    pub(crate) fn by(&self, direction: Direction) -> Option<&Cuts> {
        if self.state.load(Ordering::Acquire) & ready(direction) == 0 {
            return None;
        }
        // SAFETY: null, or what `keep` has made. Only `reset` frees it, whose caller promises that
        // nobody holds it.
        unsafe { self.cuts.load(Ordering::Acquire).as_ref() }
    }

    /// A request of so many bytes is the host's: once these are `enough`, twice as many each time that it had to wait, the type is to be looked at when the program
    /// next uses it. Says whether it is from now on.
    #[inline]
    pub(crate) fn ask(&self, direction: Direction, bytes: u64, enough: u64) -> bool {
        if self.state.load(Ordering::Relaxed) & (asked(direction) | REFUSED) != 0 {
            return false;
        }
        let left = &self.left[direction as usize];
        let all = left.load(Ordering::Relaxed).saturating_add(bytes);
        left.store(all, Ordering::Relaxed);
        let is_due = all >= enough.saturating_mul(1 << self.waits.load(Ordering::Relaxed));
        if is_due {
            self.state.fetch_or(asked(direction), Ordering::Relaxed);
        }
        is_due
    }

    /// It was looked at in vain while nothing might be spent on it.
    pub(crate) fn wait_longer(&self) {
        // Threads may lose one another's: nothing but a moment hangs on it.
        self.waits.store((self.waits.load(Ordering::Relaxed) + 1).min(MOST_WAITS), Ordering::Relaxed);
    }

    /// Says whether it is to be looked at.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (asked(Direction::Pack) | asked(Direction::Unpack) | COPIES_ASKED) != 0
            && state & REFUSED == 0
    }

    /// Returns the copy of its instances from buffer to buffer, once it is made. A copy of so many bytes that is the host's is counted: once these are `enough`, the
    /// type is looked at when the program next uses it.
    #[inline]
    pub(crate) fn copies(&self, bytes: u64, enough: u64) -> Option<&LayoutCopy> {
        // SAFETY: null, or what `copy_by` has made. Only `reset` frees it, whose caller promises
        // that nobody holds it.
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

    /// Takes what was asked for: whether copies were.
    pub(crate) fn take_copies(&self) -> bool {
        self.state.fetch_and(!COPIES_ASKED, Ordering::Relaxed) & COPIES_ASKED != 0
            && self.copies.load(Ordering::Acquire).is_null()
    }

    /// Copies go by this from now on; `None`: they are the host's for good.
    pub(crate) fn copy_by(&self, copies: Option<LayoutCopy>) {
        let Some(copies) = copies else {
            self.state.fetch_or(COPIES_REFUSED, Ordering::Relaxed);
            return;
        };
        let made = Box::into_raw(Box::new(copies));
        let null = std::ptr::null_mut();
        if self.copies.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: made above, and another thread's is kept.
            drop(unsafe { Box::from_raw(made) });
        }
    }

    /// Says whether nothing is left to be found out.
    pub(crate) fn is_settled(&self) -> bool {
        let (state, both) =
            (self.state.load(Ordering::Relaxed), ready(Direction::Pack) | ready(Direction::Unpack));
        state & REFUSED != 0 || state & both == both
    }

    /// Takes what was asked for: bytes of each direction that were the host's.
    pub(crate) fn take(&self) -> [Option<u64>; 2] {
        Direction::BOTH.map(|direction| {
            let state = self.state.fetch_and(!asked(direction), Ordering::Relaxed);
            let left = self.left[direction as usize].swap(0, Ordering::Relaxed);
            (state & asked(direction) != 0).then_some(left)
        })
    }

    /// Says whether a request of so many bytes gains.
    #[inline]
    pub(crate) fn gains(&self, bytes: u64) -> bool {
        bytes < LONG || self.state.load(Ordering::Relaxed) & SHORT == 0
    }

    /// Long requests are the host's.
    pub(crate) fn keep_short(&self) {
        self.state.fetch_or(SHORT, Ordering::Relaxed);
    }

    /// It is never served.
    pub(crate) fn refuse(&self) {
        self.state.fetch_or(REFUSED, Ordering::Relaxed);
    }

    /// It is not served any more: requests go on by the host's movers, and copies are the host's.
    pub(crate) fn end(&self) {
        let both = ready(Direction::Pack) | ready(Direction::Unpack);
        let ended = |state: u8| Some((state | REFUSED | COPIES_REFUSED) & !both);
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, ended);
        // Another thread may be copying by what is there, so its memory is not given back.
        self.copies.store(std::ptr::null_mut(), Ordering::Release);
    }

    /// Returns where its elements end, found by `find` if nobody has.
    pub(crate) fn keep(&self, find: impl FnOnce() -> Option<Cuts>) -> Option<()> {
        if !self.cuts.load(Ordering::Acquire).is_null() {
            return Some(());
        }
        let made = Box::into_raw(Box::new(find()?));
        let first =
            self.cuts.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            // SAFETY: made above, and another thread's is kept.
            drop(unsafe { Box::from_raw(made) });
        }
        Some(())
    }

    /// From now on requests of this direction are served. After [`Served::keep`].
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
        assert!(served.keep(|| Cuts::of(&[int], &sizes, 4)).is_some());
        served.serve(Direction::Unpack);
        assert!(served.by(Direction::Pack).is_none() && !served.is_settled());
        assert_eq!(served.by(Direction::Unpack).map(|cuts| cuts.before(7)), Some(4));
        // SAFETY: nothing of it is held.
        unsafe { served.reset() };
        assert!(served.by(Direction::Unpack).is_none());
        served.refuse();
        served.ask(Direction::Pack, 100, 25);
        assert!(!served.is_asked() && served.is_settled());
    }

    #[test]
    fn a_type_that_has_ended_is_never_served_again() {
        let served = Served::new();
        let mut sizes = [0; KINDS];
        sizes[6] = 4;
        let int = Entry { kind: 6, count: 1, length: 1, ..Entry::default() };
        served.keep(|| Cuts::of(&[int], &sizes, 4)).unwrap();
        served.serve(Direction::Pack);
        assert!(served.by(Direction::Pack).is_some());
        served.end();
        // As another thread that had begun to make it ready.
        served.serve(Direction::Unpack);
        assert!(Direction::BOTH.into_iter().all(|direction| served.by(direction).is_none()));
        assert!(
            !served.ask(Direction::Pack, 100, 25) && served.copies(100, 25).is_none() && !served.is_asked()
        );
        // SAFETY: nothing of it is held.
        unsafe { served.reset() };
        served.serve(Direction::Unpack);
        assert!(
            served.keep(|| Cuts::of(&[int], &sizes, 4)).is_some() && served.by(Direction::Unpack).is_some()
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
        assert_eq!([asked(1023), asked(1), asked(1023)], [0, 1, 0]);
        // SAFETY: nothing of it is held.
        unsafe { served.reset() };
        assert_eq!(asked(3), 3);
    }
}
