//! Locks and values made once, that a child never finds taken or half made.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use super::fork::{Bolt, Section, generation, in_section, section};

/// A mutex that is only ever locked inside a section. What it guards must be whole after every step of its holders: a panic does not
/// poison it.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// Access to what a [`Mutex`] guards.
#[derive(Debug)]
pub struct Guard<'a, T> {
    // In the order in which they are dropped.
    guard: MutexGuard<'a, T>,
    _section: Section,
}

impl<T> Mutex<T> {
    /// Returns an unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits for the lock, and begins a section that ends with it.
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

/// A lock for a few instructions that are done again and again: it costs one locked instruction where [`Mutex`] takes three. Holding it is a section; who waits does so
/// by looking, and by sleeping in between. There is room for eight of them in a process.
#[derive(Debug)]
pub struct Latch<T> {
    bolt: Bolt,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the one thread that holds the bolt, so it is sent from thread to thread and never shared.
unsafe impl<T: Send> Sync for Latch<T> {}

/// Access to what a [`Latch`] guards.
#[derive(Debug)]
pub struct Latched<T: 'static> {
    latch: &'static Latch<T>,
    // It is given back by the thread that took it.
    _here: PhantomData<*const ()>,
}

impl<T> Latch<T> {
    /// Open.
    pub const fn new(value: T) -> Latch<T> {
        Latch { bolt: Bolt::new(), value: UnsafeCell::new(value) }
    }

    /// Waits until no other thread holds it, and begins a section that ends with it. No thread may take it twice.
    #[inline]
    pub fn lock(&'static self) -> Latched<T> {
        self.bolt.take();
        Latched { latch: self, _here: PhantomData }
    }
}

impl<T> Deref for Latched<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this holds the bolt, which one thread does at a time.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for Latched<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and this is borrowed alone.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for Latched<T> {
    #[inline]
    fn drop(&mut self) {
        self.latch.bolt.give();
    }
}

/// A value that is made once, by something short.
#[derive(Debug)]
pub struct Once<T>(OnceLock<T>);

impl<T> Once<T> {
    /// Not made.
    pub const fn new() -> Once<T> {
        Once(OnceLock::new())
    }

    /// Returns the value, if it is made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Returns the value; `make` makes it inside a section if nobody has, so it must be as short as any section.
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

/// A value that is made at its first use, as [`Once`] does.
#[derive(Debug)]
pub struct Lazy<T> {
    once: Once<T>,
    make: fn() -> T,
}

impl<T> Lazy<T> {
    /// Made by `make`.
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

/// A value that takes long to make: one thread does while others wait, a fork waits for nobody, and a child makes its own.
#[derive(Debug)]
pub struct Awaited<T> {
    value: OnceLock<T>,
    /// Boxed: most are made once, and there are many.
    turn: Mutex<Option<Box<Turn>>>,
}

/// Somebody makes the value.
#[derive(Debug)]
struct Turn {
    /// Of the process that does. A turn of another one is that of a thread which this process does not have, or has it in a callback
    /// that forked: nobody waits for it.
    generation: u64,
    done: Arc<OnceLock<()>>,
}

impl<T> Awaited<T> {
    /// Not made.
    pub const fn new() -> Awaited<T> {
        Awaited { value: OnceLock::new(), turn: Mutex::new(None) }
    }

    /// Returns the value, if it is made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value; `make` makes it outside of any section if nobody has and nobody else does.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.value.get().unwrap_or_else(|| self.init(make))
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) -> &T {
        debug_assert!(!in_section(), "a section must not wait for who is in none");
        self.turn().get_or_init(|| {
            // A turn that began after the last one had ended.
            if self.value.get().is_none() {
                let value = make();
                let _section = section();
                // A callback of `make` that forked may have been here before, in the child.
                let _ = self.value.set(value);
            }
        });
        let over = self.turn.lock().take();
        drop(over);
        self.value.get().expect("set by whoever had the turn")
    }

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

impl<T> Default for Awaited<T> {
    fn default() -> Self {
        Awaited::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LATCH: Latch<(u64, u64)> = Latch::new((0, 0));

    #[test]
    fn one_thread_at_a_time_holds_a_latch() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let mut both = LATCH.lock();
                        both.0 += 1;
                        assert!(in_section(), "a fork waits");
                        // Sections and locks inside do not wait for a fork that waits for the latch.
                        drop(section());
                        both.1 += 1;
                        assert_eq!(both.0, both.1);
                    }
                });
            }
        });
        assert_eq!(*LATCH.lock(), (8000, 8000));
        assert!(!in_section());
    }
}
