//! Effects of the process on a library with shared state: it forks, and it has limits.
//!
//! A child of `fork` has one thread and a copy of the memory of all: a lock that another thread held stays locked, a value that another
//! thread was making is never finished. So nothing shared is ever locked or half made but inside a **section**, and a fork
//! waits until no other thread is in one ([`section`]), up to a limit. [`Mutex`], [`Once`] and [`Lazy`] are those of the standard library inside sections, [`Latch`] is a lock and a section in one; no other
//! room of this workspace uses the standard ones for what it shares (`tests/safety.rs`).
//!
//! Invariants:
//! * a section is short, and in it a thread waits only for threads in sections: no callback, no log line, no file, no compile. A
//!   thread that waits for a fork to end holds no lock of ours. So there is no order of locks, and a fork waits for milliseconds at most;
//! * neither a fork nor a thread at the entrance waits for the other without a limit, since handlers of
//!   the program may wait for either. The child of a fork that has reached the limit is marked ([`is_inconsistent`]);
//! * what takes long is not in a section: a compile may be under way when the process forks, and [`Awaited`] lets the child make its own;
//! * entering a section writes nothing that other threads write.
//!
//! `vfork`, `posix_spawn`, `_Fork` and `clone` by hand run no fork handlers; a child of theirs must not call this library before `exec`.
#![allow(unsafe_code)] // Registers fork handlers and masks a signal: calls of the C library.

mod fork;
mod limit;
mod lock;

pub use fork::{Section, forks, is_inconsistent, section, when_inconsistent};
pub use limit::{NO_TEXT, cut, said, to_stderr, without_sigxfsz};
pub use lock::{Awaited, Guard, Latch, Latched, Lazy, Mutex, Once};
