//! Records of the calls that are in the MPI library, and of the memory that ddtc keeps for them
//! meanwhile.
//!
//! While a call is in the MPI library, the MPI library may run code of the program, namely an error
//! handler or a callback of an attribute. That code may leave the MPI call by a C++ exception, by
//! `longjmp` or by the end of the thread. Then the call never returns, and this module names the
//! call **abandoned**. Destructors in the stack frames of an abandoned call may never run. So no
//! stack frame of ddtc between the program and the MPI library owns a staging buffer. Instead,
//! before a wrapper calls the MPI library, the wrapper moves the memory that it owns into a
//! [`Record`]. After the MPI library has returned, the wrapper takes the memory out again. The
//! record of an abandoned call is found when its thread makes its next call with a record, or when
//! the thread ends.
//!
//! A record has the stack address at which the MPI library was called ([`crate::stack`]). Stacks
//! grow downwards, so on the thread's own stack an earlier call is abandoned if its address is at
//! or below the address of a new call. Addresses on different stacks, such as the stacks of
//! coroutines, have no order. So on any other stack than the thread's own, an earlier call is
//! abandoned if the address of a new call lies within the [`FRAMES`] bytes that the frames of the
//! earlier call occupied. A call may return on another thread than the thread that made the call,
//! because a coroutine may move between threads.

use std::cell::{OnceCell, RefCell, UnsafeCell};
use std::ops::Range;
use std::ptr::addr_eq;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use ddtc::internal::process::{Mutex, is_inconsistent};

use crate::stack::{bounds, here};

/// Maximum number of bytes of stack that the frames of a wrapper take, from the frame of the
/// program's function that calls the wrapper down to the frame of the MPI library's function
/// (docs/PRELOAD.md, "Limits").
const FRAMES: usize = 4096;

/// Type of the memory that a wrapper's call owns while the call is in the MPI library.
pub(crate) trait Kept: Send + Sized + 'static {
    /// Returns the shared list of empty records that belonged to threads which have ended. All
    /// threads take records from this list before they make new ones.
    fn spare() -> &'static Mutex<Vec<&'static Record<Self>>>;

    /// Disposes of the memory of an abandoned call. The MPI library may still read or write that
    /// memory.
    fn abandoned(self);
}

/// Place for the memory that one call owns while the call is in the MPI library. A record is never
/// freed. After the call has ended, a later call may use the record again, unless the record is in
/// no list ([`Record::alone`]).
pub(crate) struct Record<T> {
    /// Stack address at which the call of this record entered the MPI library.
    place: AtomicUsize,
    state: AtomicU8,
    /// True if [`Record::inspect`] was called during the present call, because an error handler of
    /// the program was about to run. That handler may have abandoned the call since.
    is_inspected: AtomicBool,
    kept: UnsafeCell<Option<T>>,
}

/// State of a [`Record`] without memory. Only the thread that has the record in one of its lists,
/// or that has just made the record, may fill it.
const EMPTY: u8 = 0;
/// State of a [`Record`] with memory that no thread is taking or inspecting.
const FULL: u8 = 1;
/// State of a [`Record`] whose memory one thread is taking or inspecting. That thread has changed
/// the state from `FULL`. It alone may use or take the memory, and changes the state to `FULL` or
/// `EMPTY` afterwards.
const TAKEN: u8 = 2;

// SAFETY: all other fields are atomic. `kept` is accessed by one thread at a time: while the state
// is `EMPTY`, by the one thread that has the record, and while the state is `TAKEN`, by the one
// thread whose compare-exchange from `FULL` succeeded. The memory moves between threads, so `T` is
// `Send`.
unsafe impl<T: Send> Sync for Record<T> {}

impl<T> Record<T> {
    const fn new() -> Record<T> {
        Record {
            place: AtomicUsize::new(0),
            state: AtomicU8::new(EMPTY),
            is_inspected: AtomicBool::new(false),
            kept: UnsafeCell::new(None),
        }
    }

    /// Returns an empty record: a spare one from a thread that has ended, or else a new one.
    fn spare_or_new() -> &'static Record<T>
    where
        T: Kept,
    {
        let spare = if is_inconsistent() { None } else { T::spare().lock().pop() };
        spare.unwrap_or_else(|| Box::leak(Box::new(Record::new())))
    }

    /// Returns true if [`Calls::inspect_innermost`] has called `inspect` with the memory of this
    /// record during the present call.
    pub(crate) fn is_inspected(&self) -> bool {
        self.is_inspected.load(Ordering::Relaxed)
    }

    /// Returns a new record that contains `kept` and that is in no thread's list.
    pub(crate) fn alone(kept: T) -> &'static Record<T> {
        let record = Box::leak(Box::new(Record::new()));
        record.put(kept);
        record
    }

    fn stack_address(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    /// Stores `kept` in this record. The record must be empty, and no other thread may fill the
    /// record at the same time.
    fn put(&self, kept: T) {
        // SAFETY: the state is `EMPTY`, so no other thread takes or inspects the memory. No other
        // thread fills the record either: the callers have just made the record, or have taken it
        // from their own or from the shared list of empty records.
        unsafe { *self.kept.get() = Some(kept) };
        self.is_inspected.store(false, Ordering::Relaxed);
        self.state.store(FULL, Ordering::Release);
    }

    /// Calls `inspect` with the memory of this record, at most once during each call. No other
    /// thread can take the memory while `inspect` runs.
    fn inspect(&self, inspect: impl FnOnce(&mut T)) {
        if self.is_inspected.swap(true, Ordering::Relaxed)
            || self.state.compare_exchange(FULL, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        // SAFETY: this thread has changed the state from `FULL` to `TAKEN`, so no other thread uses
        // the memory until this thread changes the state again.
        if let Some(kept) = unsafe { (*self.kept.get()).as_mut() } {
            inspect(kept);
        }
        self.state.store(FULL, Ordering::Release);
    }

    /// Takes the memory out of this record. Returns `None` if the record is empty, or if another
    /// thread is taking or inspecting the memory.
    pub(crate) fn take(&self) -> Option<T> {
        let taken = self.state.compare_exchange(FULL, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.ok()?;
        // SAFETY: this thread has changed the state from `FULL` to `TAKEN`, so no other thread uses
        // the memory until this thread changes the state again.
        let kept = unsafe { (*self.kept.get()).take() };
        self.state.store(EMPTY, Ordering::Release);
        kept
    }
}

/// The records of one thread.
pub(crate) struct Calls<T: Kept> {
    lists: RefCell<Lists<T>>,
    /// Range of the addresses of the thread's own stack, looked up at the first use. The inner
    /// value is `None` if the C library does not return the range.
    own: OnceCell<Option<Range<usize>>>,
}

struct Lists<T: 'static> {
    /// Records of the calls of this thread that are in the MPI library, in the order in which the
    /// calls began. Some of these calls may be abandoned, or may have returned on another thread.
    under_way: Vec<&'static Record<T>>,
    /// Empty records for later calls of this thread.
    spare: Vec<&'static Record<T>>,
}

impl<T> Lists<T> {
    const fn new() -> Lists<T> {
        Lists { under_way: Vec::new(), spare: Vec::new() }
    }
}

impl<T: Kept> Calls<T> {
    pub(crate) const fn new() -> Calls<T> {
        Calls { lists: RefCell::new(Lists::new()), own: OnceCell::new() }
    }

    /// Moves the memory of a call into a record, before the call enters the MPI library. `place`
    /// must be the address that [`here`] returns in the frame that calls the MPI library. If
    /// `place` were the address of a deeper frame, it could be below the address of a call that an
    /// error handler makes while this call is in the MPI library. Then this call would be mistaken
    /// for an abandoned one.
    pub(crate) fn enter(&self, place: usize, kept: T) -> &'static Record<T> {
        if !self.lists.borrow().under_way.is_empty() {
            self.remove_abandoned(place);
        }
        let mut lists = self.lists.borrow_mut();
        let record = lists.spare.pop().unwrap_or_else(Record::spare_or_new);
        record.place.store(place, Ordering::Relaxed);
        record.put(kept);
        lists.under_way.push(record);
        record
    }

    /// Takes the memory of a call out of its record, after the MPI library has returned. Returns
    /// `None` if the call was mistaken for an abandoned one while it was in the MPI library. This
    /// happens to a call of a coroutine whose stack is copied to another address.
    pub(crate) fn leave(&self, record: &'static Record<T>) -> Option<T> {
        let kept = record.take();
        let mut lists = self.lists.borrow_mut();
        // Nearly always the innermost call returns first, so the search starts at the end of the
        // list. If the call was made on another thread, its record is in the list of that thread.
        // That thread will find the record empty and use it again.
        if let Some(at) = lists.under_way.iter().rposition(|r| addr_eq(*r, record)) {
            lists.under_way.remove(at);
            lists.spare.push(record);
        }
        kept
    }

    /// Calls `inspect` with the memory of this thread's innermost call. Is called when the MPI
    /// library is about to run code of the program. Does nothing in three cases: the innermost call
    /// is abandoned; its memory was inspected before, so that code of the program may have
    /// abandoned the call since; or the thread runs on another stack than its own, where the
    /// innermost call is not known.
    pub(crate) fn inspect_innermost(&self, inspect: impl FnOnce(&mut T)) {
        let Some(record) = self.lists.borrow().under_way.last().copied() else { return };
        if self.is_own(here()) && self.is_own(record.stack_address()) && here() < record.stack_address() {
            record.inspect(inspect);
        }
    }

    /// Returns true if the address `place` is on the thread's own stack.
    fn is_own(&self, place: usize) -> bool {
        self.own.get_or_init(bounds).as_ref().is_some_and(|own| own.contains(&place))
    }

    /// Finds the calls of this thread that must have been abandoned, because a new call is made at
    /// the stack address `place`. Empties their records and passes the memory to
    /// [`Kept::abandoned`].
    #[cold]
    fn remove_abandoned(&self, place: usize) {
        let is_abandoned =
            |record: &Record<T>| match (record.stack_address(), self.is_own(record.stack_address())) {
                (made, true) => self.is_own(place) && made <= place,
                (made, false) => (made..made + FRAMES).contains(&place),
            };
        let mut abandoned = Vec::new();
        let mut lists = self.lists.borrow_mut();
        let Lists { under_way, spare } = &mut *lists;
        under_way.retain(|record| {
            if is_abandoned(record) {
                abandoned.extend(record.take());
            }
            // A record may also be empty because its call has returned on another thread.
            let is_empty = record.state.load(Ordering::Acquire) == EMPTY;
            if is_empty {
                spare.push(record);
            }
            !is_empty
        });
        drop(lists);
        abandoned.into_iter().for_each(T::abandoned);
    }
}

impl<T: Kept> Drop for Calls<T> {
    fn drop(&mut self) {
        // The thread ends, so no call on the thread's own stack will return. The records of calls
        // on other stacks stay full, because the coroutines of these stacks may continue on another
        // thread.
        let Lists { under_way, mut spare } = std::mem::replace(self.lists.get_mut(), Lists::new());
        for record in under_way {
            if self.is_own(record.stack_address())
                && let Some(kept) = record.take()
            {
                kept.abandoned();
                spare.push(record);
            }
        }
        if !is_inconsistent() && !spare.is_empty() {
            T::spare().lock().append(&mut spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::deeper;

    static SPARE: Mutex<Vec<&Record<Number>>> = Mutex::new(Vec::new());
    static ABANDONED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

    struct Number(u32);

    impl Kept for Number {
        fn spare() -> &'static Mutex<Vec<&'static Record<Number>>> {
            &SPARE
        }

        fn abandoned(self) {
            ABANDONED.lock().push(self.0);
        }
    }

    fn abandoned() -> Vec<u32> {
        std::mem::take(&mut *ABANDONED.lock())
    }

    // All cases are in a single test, because the list of abandoned numbers is global.
    #[test]
    fn a_call_that_never_returned_is_found_by_the_next_one() {
        let calls = Calls::new();
        // Two nested calls, both of which return.
        let outer = calls.enter(here(), Number(1));
        deeper(|| {
            let inner = calls.enter(here(), Number(2));
            deeper(|| calls.inspect_innermost(|kept| kept.0 += 10));
            deeper(|| calls.inspect_innermost(|_| panic!("inspected twice")));
            assert_eq!(calls.leave(inner).unwrap().0, 12);
        });
        assert_eq!(calls.leave(outer).unwrap().0, 1);
        assert!(abandoned().is_empty());
        // Calls 3 and 4 never return. Call 4 is made deeper on the stack than call 3. Call 5, which
        // is made at the depth of call 3, finds both abandoned calls.
        let jump = |n| deeper(|| deeper(|| calls.enter(here(), Number(n))));
        let outer = deeper(|| calls.enter(here(), Number(3)));
        deeper(|| deeper(|| deeper(|| calls.enter(here(), Number(4)))));
        assert!(abandoned().is_empty());
        let next = calls.enter(here(), Number(5));
        assert_eq!(abandoned(), [3, 4]);
        assert_eq!((calls.leave(outer).is_none(), calls.leave(next).unwrap().0), (true, 5));
        // An abandoned call is not inspected.
        let gone = jump(6);
        calls.inspect_innermost(|_| panic!("inspected"));
        assert_eq!(calls.leave(gone).unwrap().0, 6);
        // On another stack than the thread's own, a call is abandoned only if the new call's
        // address lies in the frames of the old call.
        let elsewhere = |place: usize, n| {
            let record = calls.enter(here(), Number(n));
            record.place.store(place, Ordering::Relaxed);
            record
        };
        let apart = elsewhere(16, 7);
        elsewhere(bounds().unwrap().start - 4096, 8);
        let next = calls.enter(here(), Number(9));
        assert!(abandoned().is_empty());
        assert_eq!((calls.leave(next).unwrap().0, calls.leave(apart).unwrap().0), (9, 7));
        // Call 10 returns on another thread. Call 11 is abandoned because its thread ends.
        let moved: &'static Record<Number> = calls.enter(here(), Number(10));
        std::thread::spawn(move || {
            let there = Calls::new();
            assert_eq!(there.leave(moved).unwrap().0, 10);
            there.enter(here(), Number(11));
        })
        .join()
        .unwrap();
        assert_eq!(abandoned(), [11]);
        // Dropping `calls` does what happens at the end of a thread: the call on the thread's own
        // stack is abandoned, and calls on other stacks are not.
        calls.enter(here(), Number(12));
        drop(calls);
        assert_eq!(abandoned(), [12]);
        // The next thread uses the records of threads that have ended.
        let spare = SPARE.lock().len();
        let calls = Calls::new();
        let record = calls.enter(here(), Number(13));
        assert_eq!((SPARE.lock().len(), calls.leave(record).unwrap().0), (spare - 1, 13));
    }
}
