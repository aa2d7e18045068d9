//! What a process can do to a library with shared state: it can fork, and it can have limits on the
//! size of files.
//!
//! The child of a `fork` has one thread and a copy of the memory of all threads. A lock that
//! another thread held stays locked there, and a value that another thread was making is never
//! finished. So shared state is locked or made only inside a **section**, and a fork waits, up to a
//! limit, until no other thread is in a section ([`section`]). [`Mutex`], [`Once`] and [`Lazy`] use
//! the types of the standard library inside sections. [`SpinLock`] is a lock and a section in one.
//! No other module of this workspace uses the locks of the standard library for shared state;
//! `tests/safety.rs` checks this.
//!
//! Invariants:
//! * A section is short, and in it a thread waits only for threads that are in sections: it
//!   contains no callback, no log line, no file access and no compile. A thread that waits for a
//!   fork to end holds no lock of ours. So locks need no order, and a fork normally waits for
//!   milliseconds.
//! * A fork and a thread that wants to enter a section wait for each other only up to a limit,
//!   since fork handlers of the program may wait for either. The child of a fork that has reached
//!   the limit is marked ([`is_inconsistent`]).
//! * Long work is not done in a section. A compile may be under way when the process forks;
//!   [`Awaited`] then lets the child do the work again.
//! * A thread that makes the value of an [`Awaited`] calls no function of the program that may call
//!   the library: such calls are put off by [`later()`].
//! * Entering a section usually writes no memory that other threads write. Exceptions are the first
//!   section of a thread, a section during a fork, and sections of threads that share a slot.
//!
//! `vfork`, `posix_spawn`, `_Fork` and direct calls of `clone` run no fork handlers. Their child
//! must not call this library before `exec`.
#![allow(unsafe_code)] // C library: fork handlers, a futex, a signal mask.

mod fork;
mod later;
mod limit;
mod lock;

pub use fork::{Section, forks, is_inconsistent, section, when_inconsistent};
pub use later::later;
pub use limit::{NO_TEXT, cut, said, to_stderr, without_sigxfsz};
pub use lock::{Awaited, Guard, Lazy, Mutex, Once, SpinGuard, SpinLock};
