//! Locks, and values that are made once. The child of a fork never finds them locked or half made,
//! unless it is marked as inconsistent.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use super::fork::{RawSpinLock, Section, generation, in_section, section};
use super::later::Making;

/// Mutex that is locked only inside a section. A panic does not poison it, so its holders must
/// leave the value usable after each step.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// Access to the value of a locked [`Mutex`]. Dropping it unlocks the mutex and ends the section.
#[derive(Debug)]
pub struct Guard<'a, T> {
    // The order of the fields is that in which they are dropped: the mutex is unlocked before the
    // section ends.
    guard: MutexGuard<'a, T>,
    _section: Section,
}

impl<T> Mutex<T> {
    /// Returns an unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Begins a section and waits for the lock. The section ends when the lock is released.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let _section = section();
        Guard { guard: self.0.lock().unwrap_or_else(PoisonError::into_inner), _section }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Lock for short pieces of work, of a few instructions, that are done often: it costs one locked
/// instruction, where [`Mutex`] costs three. Its holder is in a section. A thread that waits for it
/// first spins, and then sleeps for short times. A process can have at most eight such locks.
#[derive(Debug)]
pub struct SpinLock<T> {
    raw: RawSpinLock,
    value: UnsafeCell<T>,
}

// SAFETY: a shared lock gives access to its value only through `SpinGuard`, which exists only while
// its thread holds the raw lock, and one thread holds the raw lock at a time. So threads use the
// value one after the other, for which `T: Send` suffices. The raw lock consists of atomics.
unsafe impl<T: Send> Sync for SpinLock<T> {}

/// Access to the value of a locked [`SpinLock`]. Dropping it releases the lock.
#[derive(Debug)]
pub struct SpinGuard<T: 'static> {
    lock: &'static SpinLock<T>,
    // The raw pointer makes this type neither `Send` nor `Sync`: the thread that took the lock must
    // release it.
    _here: PhantomData<*const ()>,
}

impl<T> SpinLock<T> {
    /// Returns a spin lock that no thread holds.
    pub const fn new(value: T) -> SpinLock<T> {
        SpinLock { raw: RawSpinLock::new(), value: UnsafeCell::new(value) }
    }

    /// Begins a section and waits until no other thread holds the lock. The section ends when the
    /// lock is released. A thread that holds the lock must not call this again: it would wait for
    /// itself.
    ///
    /// # Panics
    /// If the process already has eight other spin locks that have been locked.
    #[inline]
    pub fn lock(&'static self) -> SpinGuard<T> {
        self.raw.take();
        SpinGuard { lock: self, _here: PhantomData }
    }
}

impl<T> Deref for SpinGuard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer is that of a cell inside a spin lock that lives as long as the
        // process. This value holds the raw lock, which one thread holds at a time, and `self` is
        // borrowed, so nobody changes the value meanwhile.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; and `self` is borrowed mutably, so there is no other reference to
        // the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.give();
    }
}

/// Value that is made once, by short work inside a section.
#[derive(Debug)]
pub struct Once<T>(OnceLock<T>);

impl<T> Once<T> {
    /// Returns a value that is not made yet.
    pub const fn new() -> Once<T> {
        Once(OnceLock::new())
    }

    /// Returns the value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Returns the value. If it has not been made, calls `make` inside a section, so `make` must be
    /// as short as any section.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get().unwrap_or_else(|| self.init(make))
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) -> &T {
        let _section = section();
        self.0.get_or_init(make)
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once::new()
    }
}

impl<T> From<T> for Once<T> {
    fn from(value: T) -> Self {
        Once(value.into())
    }
}

/// Value that is made when it is first used. As with [`Once`], it is made once, by short work
/// inside a section.
#[derive(Debug)]
pub struct Lazy<T> {
    once: Once<T>,
    make: fn() -> T,
}

impl<T> Lazy<T> {
    /// Returns a value that `make` will make.
    pub const fn new(make: fn() -> T) -> Lazy<T> {
        Lazy { once: Once::new(), make }
    }
}

impl<T> Deref for Lazy<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.once.get_or_init(self.make)
    }
}

/// Value that takes long to make. One thread makes it, outside of any section, while others wait
/// for that thread. A fork does not wait for that thread, and the child makes the value again if it
/// needs it.
#[derive(Debug)]
pub struct Awaited<T> {
    value: OnceLock<T>,
    /// Record of the thread that is making the value, if there is one. It is boxed to save memory:
    /// there are many values of type `Awaited`, and the box exists only while one of them is made.
    turn: Mutex<Option<Box<Turn>>>,
}

/// Record of a thread that is making the value of an [`Awaited`].
#[derive(Debug)]
struct Turn {
    /// Generation of the process (see `generation`) when the work began. Work of another generation
    /// belongs to a thread that does not exist in this process, or to the current thread, if a
    /// callback of `make` has forked. Nobody waits for work of another generation.
    generation: u64,
    /// Cell that is set when the value has been made. Other threads wait for it.
    done: Arc<OnceLock<()>>,
}

impl<T> Awaited<T> {
    /// Returns a value that is not made yet.
    pub const fn new() -> Awaited<T> {
        Awaited { value: OnceLock::new(), turn: Mutex::new(None) }
    }

    /// Returns the value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value. If it has not been made, calls `make` outside of any section. Returns
    /// none if a thread of this process is making the value already; this function waits for that
    /// thread only if both begin at the same moment. Must not be called inside a section.
    pub fn try_get_or_init(&self, make: impl FnOnce() -> T) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        let is_begun = self.turn.lock().as_ref().is_some_and(|turn| turn.generation == generation());
        (!is_begun).then(|| self.init(make))
    }

    /// Returns the value. If it has not been made, calls `make` outside of any section, or waits
    /// for the thread of this process that is making it already. Must not be called inside a
    /// section.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.value.get().unwrap_or_else(|| self.init(make))
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) -> &T {
        debug_assert!(!in_section(), "a section must not wait for who is in none");
        // This mark is dropped last, so that calls that were put off find the value.
        let _making = Making::begin();
        // `over` removes the record of the work on the value when it is dropped, even if `make`
        // panics. The next caller can then begin its own work. A thread that waited for another one
        // removes the record, too, which does no harm once the value exists.
        let over = Over(self);
        self.turn().get_or_init(|| {
            // Another thread may have made the value after the caller found none and before this
            // thread began its own work.
            if self.value.get().is_none() {
                let value = make();
                let _section = section();
                // If a callback of `make` has forked, the child returns to this line too. It may
                // have made the value in the callback already; the earlier value then stays.
                let _ = self.value.set(value);
            }
        });
        drop(over);
        self.value.get().expect("set by whoever had the turn")
    }

    /// Returns the cell that is set when the thread that makes the value has finished. If no thread
    /// of this process is making the value, records the current thread as the one that does.
    fn turn(&self) -> Arc<OnceLock<()>> {
        let mut turn = self.turn.lock();
        if let Some(turn) = turn.as_ref().filter(|turn| turn.generation == generation()) {
            return Arc::clone(&turn.done);
        }
        let done = Arc::default();
        *turn = Some(Box::new(Turn { generation: generation(), done: Arc::clone(&done) }));
        done
    }
}

/// Guard that, when it is dropped, removes the record of the thread that is making the value.
struct Over<'a, T>(&'a Awaited<T>);

impl<T> Drop for Over<'_, T> {
    fn drop(&mut self) {
        let turn = self.0.turn.lock().take();
        drop(turn);
    }
}

impl<T> Default for Awaited<T> {
    fn default() -> Self {
        Awaited::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SPIN_LOCK: SpinLock<(u64, u64)> = SpinLock::new((0, 0));

    #[test]
    fn one_thread_at_a_time_holds_a_spin_lock() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let mut both = SPIN_LOCK.lock();
                        both.0 += 1;
                        assert!(in_section(), "a fork waits");
                        // Sections and locks inside the spin lock do not wait for a fork, since
                        // that fork waits for the spin lock.
                        drop(section());
                        both.1 += 1;
                        assert_eq!(both.0, both.1);
                    }
                });
            }
        });
        assert_eq!(*SPIN_LOCK.lock(), (8000, 8000));
        assert!(!in_section());
    }
}
