//! Calls that are in the MPI library, and the memory that is kept for them meanwhile.
//!
//! The MPI library may run the program's code: an error handler, a callback of an attribute. That
//! code may leave by a C++ exception, by `longjmp` or with its thread, and the call never returns.
//! So no frame of ours between the program and the library owns anything. A call puts what it owns
//! into a [`Record`] before it enters the library, and takes it out when the library has returned.
//! A record whose call never returned is found by its place on the stack (see [`crate::stack`]) when
//! the thread makes its next such call, or when the thread ends.
//!
//! On a thread's own stack a record is lost if it was made at or below the place of the new call. On
//! any other stack, such as a coroutine's, only if the new call's place lies within the range of the
//! frames of the lost one, since stacks that exist side by side have no order. A call may return on another thread
//! than the one that it was made on.

use std::cell::{OnceCell, RefCell, UnsafeCell};
use std::ops::Range;
use std::ptr::addr_eq;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use crate::stack::{bounds, here};

/// Bytes of stack that the frames of a wrapper take at most, from the program down to the library
/// (docs/PRELOAD.md, "Limits").
const FRAMES: usize = 4096;

/// Memory that a call keeps.
pub(crate) trait Kept: Send + 'static {
    /// The call never returned.
    fn lost(self);
}

/// Room for what one call keeps. Never freed, only used again.
pub(crate) struct Record<T> {
    /// Where on the stack the library was called.
    place: AtomicUsize,
    state: AtomicU8,
    /// An error handler of the program has run in the call. A record that is still there after that
    /// may be that of a call that the handler has left.
    is_shown: AtomicBool,
    kept: UnsafeCell<Option<T>>,
}

/// States of a record. Only who has an empty record fills it, and only who has made it `TAKEN` from
/// `FULL` empties it.
const EMPTY: u8 = 0;
const FULL: u8 = 1;
const TAKEN: u8 = 2;

// SAFETY: what is kept is reached by one thread at a time, by the states above.
unsafe impl<T: Send> Sync for Record<T> {}

impl<T> Record<T> {
    const fn new() -> Record<T> {
        Record {
            place: AtomicUsize::new(0),
            state: AtomicU8::new(EMPTY),
            is_shown: AtomicBool::new(false),
            kept: UnsafeCell::new(None),
        }
    }

    /// Keeps something in a record that is in no thread's list.
    pub(crate) fn alone(kept: T) -> &'static Record<T> {
        let record = Box::leak(Box::new(Record::new()));
        record.put(kept);
        record
    }

    fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    /// Keeps something in a record that is empty and that nobody else fills.
    fn put(&self, kept: T) {
        // SAFETY: the record is empty, so nobody reads it, and nobody else fills it.
        unsafe { *self.kept.get() = Some(kept) };
        self.is_shown.store(false, Ordering::Relaxed);
        self.state.store(FULL, Ordering::Release);
    }

    /// Shows what is kept, once. Nobody takes it meanwhile.
    fn show(&self, show: impl FnOnce(&mut T)) {
        if self.is_shown.swap(true, Ordering::Relaxed)
            || self.state.compare_exchange(FULL, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        // SAFETY: it was full, and this thread has made it `TAKEN`.
        if let Some(kept) = unsafe { (*self.kept.get()).as_mut() } {
            show(kept);
        }
        self.state.store(FULL, Ordering::Release);
    }

    pub(crate) fn take(&self) -> Option<T> {
        let taken = self.state.compare_exchange(FULL, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.ok()?;
        // SAFETY: it was full, and this thread has made it `TAKEN`.
        let kept = unsafe { (*self.kept.get()).take() };
        self.state.store(EMPTY, Ordering::Release);
        kept
    }
}

/// The calls of one thread that are in the library, the innermost last.
pub(crate) struct Calls<T: Kept> {
    lists: RefCell<Lists<T>>,
    /// The thread's own stack, if it is known.
    own: OnceCell<Option<Range<usize>>>,
}

struct Lists<T: 'static> {
    under_way: Vec<&'static Record<T>>,
    spare: Vec<&'static Record<T>>,
}

impl<T: Kept> Calls<T> {
    pub(crate) const fn new() -> Calls<T> {
        let lists = Lists { under_way: Vec::new(), spare: Vec::new() };
        Calls { lists: RefCell::new(lists), own: OnceCell::new() }
    }

    /// Before a call enters the library: keeps what it owns. `place`: that of the frame that calls the
    /// library, by [`here`]. A place of a deeper frame would lie below the library's first frames.
    pub(crate) fn enter(&self, place: usize, kept: T) -> &'static Record<T> {
        if !self.lists.borrow().under_way.is_empty() {
            self.remove_lost(place);
        }
        let mut lists = self.lists.borrow_mut();
        let record = lists.spare.pop().unwrap_or_else(|| Box::leak(Box::new(Record::new())));
        record.place.store(place, Ordering::Relaxed);
        record.put(kept);
        lists.under_way.push(record);
        record
    }

    /// After the library has returned: gives what the call owns. None only if the record was taken
    /// for lost, as that of a coroutine whose stack was copied elsewhere.
    pub(crate) fn leave(&self, record: &'static Record<T>) -> Option<T> {
        let kept = record.take();
        let mut lists = self.lists.borrow_mut();
        // Most calls return in the order in which they were made. A record in the list of another
        // thread is found empty there.
        if let Some(at) = lists.under_way.iter().rposition(|r| addr_eq(*r, record)) {
            lists.under_way.remove(at);
            lists.spare.push(record);
        }
        kept
    }

    /// While the library runs the program's code: shows what the innermost call keeps, if that call
    /// is under way. Which call is the innermost is known on the thread's own stack only. A call is
    /// shown once: after that a handler may have left it.
    pub(crate) fn with_innermost(&self, show: impl FnOnce(&mut T)) {
        let Some(record) = self.lists.borrow().under_way.last().copied() else { return };
        if self.is_own(here()) && self.is_own(record.place()) && here() < record.place() {
            record.show(show);
        }
    }

    /// Says whether a place is on the thread's own stack.
    fn is_own(&self, place: usize) -> bool {
        self.own.get_or_init(bounds).as_ref().is_some_and(|own| own.contains(&place))
    }

    /// Removes the records of calls that never returned, as a new call at this place shows.
    #[cold]
    fn remove_lost(&self, place: usize) {
        let is_lost = |record: &Record<T>| match (record.place(), self.is_own(record.place())) {
            (made, true) => self.is_own(place) && made <= place,
            (made, false) => (made..made + FRAMES).contains(&place),
        };
        let mut lost = Vec::new();
        let mut lists = self.lists.borrow_mut();
        let Lists { under_way, spare } = &mut *lists;
        under_way.retain(|record| {
            if is_lost(record) {
                lost.extend(record.take());
            }
            // An empty one may also be that of a call that has returned on another thread.
            let is_empty = record.state.load(Ordering::Acquire) == EMPTY;
            if is_empty {
                spare.push(record);
            }
            !is_empty
        });
        drop(lists);
        lost.into_iter().for_each(T::lost);
    }
}

impl<T: Kept> Drop for Calls<T> {
    fn drop(&mut self) {
        // The thread ends, so no call on its own stack returns. A coroutine may go on on another
        // thread.
        for record in std::mem::take(&mut self.lists.get_mut().under_way) {
            if self.is_own(record.place())
                && let Some(kept) = record.take()
            {
                kept.lost();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc::process::Mutex;

    static LOST: Mutex<Vec<u32>> = Mutex::new(Vec::new());

    struct Number(u32);

    impl Kept for Number {
        fn lost(self) {
            LOST.lock().push(self.0);
        }
    }

    fn lost() -> Vec<u32> {
        std::mem::take(&mut *LOST.lock())
    }

    /// Runs `f` in a deeper frame, as a call inside the library.
    #[inline(never)]
    fn deeper<R>(f: impl FnOnce() -> R) -> R {
        let room = std::hint::black_box([0u8; 256]);
        let result = f();
        std::hint::black_box(&room);
        result
    }

    // One test: the list of what was lost is global.
    #[test]
    fn a_call_that_never_returned_is_found_by_the_next_one() {
        let calls = Calls::new();
        // Calls that return, one inside the other.
        let outer = calls.enter(here(), Number(1));
        deeper(|| {
            let inner = calls.enter(here(), Number(2));
            deeper(|| calls.with_innermost(|kept| kept.0 += 10));
            deeper(|| calls.with_innermost(|_| panic!("shown twice")));
            assert_eq!(calls.leave(inner).unwrap().0, 12);
        });
        assert_eq!(calls.leave(outer).unwrap().0, 1);
        assert!(lost().is_empty());
        // Two that never return, one inside the other: the next call at the same depth finds both.
        let jump = |n| deeper(|| deeper(|| calls.enter(here(), Number(n))));
        let outer = deeper(|| calls.enter(here(), Number(3)));
        deeper(|| deeper(|| deeper(|| calls.enter(here(), Number(4)))));
        assert!(lost().is_empty());
        let next = calls.enter(here(), Number(5));
        assert_eq!(lost(), [3, 4]);
        assert_eq!((calls.leave(outer).is_none(), calls.leave(next).unwrap().0), (true, 5));
        // A call that is gone is not shown.
        let gone = jump(6);
        calls.with_innermost(|_| panic!("shown"));
        assert_eq!(calls.leave(gone).unwrap().0, 6);
        // Another stack: only what overlaps is lost.
        let elsewhere = |place: usize, n| {
            let record = calls.enter(here(), Number(n));
            record.place.store(place, Ordering::Relaxed);
            record
        };
        let apart = elsewhere(16, 7);
        elsewhere(bounds().unwrap().start - 4096, 8);
        let next = calls.enter(here(), Number(9));
        assert!(lost().is_empty());
        assert_eq!((calls.leave(next).unwrap().0, calls.leave(apart).unwrap().0), (9, 7));
        // A call that returns on another thread, and one whose thread ends.
        let moved: &'static Record<Number> = calls.enter(here(), Number(10));
        std::thread::spawn(move || {
            let there = Calls::new();
            assert_eq!(there.leave(moved).unwrap().0, 10);
            there.enter(here(), Number(11));
        })
        .join()
        .unwrap();
        assert_eq!(lost(), [11]);
        // What is on no stack of the thread's own may go on elsewhere.
        calls.enter(here(), Number(12));
        drop(calls);
        assert_eq!(lost(), [12]);
    }
}
