//! Sections, and the fork handlers that wait for them.
//!
//! Every thread that uses sections has a slot (`ThreadSlot`), which says whether the thread is in a
//! section. A forking thread announces its fork and then waits for one slot after the other. The
//! forking thread and a thread that enters a section each write their own word first and then read
//! the word of the other thread, in one total order (`SeqCst`). So at least one of the two sees the
//! other. The code here uses no lock of the standard library, because a child could inherit it
//! locked.
//!
//! Neither of the two threads waits without a limit. A program may register fork handlers that take
//! locks of its own, and the order in which its handlers and ours run cannot be chosen. So a
//! handler of the program may wait for a lock, while the holder of that lock waits for the fork to
//! end before it enters a section. The holder then enters its section after [`LOOKS`] looks at the
//! forking thread, and the fork counts as one in the middle of a section: its child is marked
//! ([`is_inconsistent`]).

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks that a thread which wants to enter a section takes at the state of the
/// forking thread.
const PAUSE: Duration = Duration::from_millis(5);

/// Number of consecutive looks at which a waiting thread must find the forking thread asleep before
/// it enters its section. The looks span 20 ms. While a fork handler waits for a lock, the forking
/// thread sleeps all the time. In an ordinary fork it sleeps now and then, while it waits for a
/// lock of the allocator and the holder of the lock has lost its processor: of 1000 forks among
/// three busy threads on two loaded processors, one was found asleep by a single look after 5 ms
/// (2026-11-28).
const LOOKS: u32 = 5;

/// Maximum time that a fork waits for threads in sections. After this wait, it is also the maximum
/// time that a thread waits before a section for the fork to end, if the forking thread runs or
/// waits for a processor. Sections and forks are meant to take milliseconds. The limit is much
/// longer, so that it is seldom reached even on a busy machine. If it is reached, the child is
/// marked.
const LIMIT: Duration = Duration::from_secs(1);

/// Number of threads that can have a slot of their own. All other threads share one more slot and
/// update it by atomic additions, which costs more.
const MAX_OWN_SLOTS: usize = 128;

/// Slot in which a thread says whether it is in a section. The alignment keeps different slots in
/// different cache lines.
#[repr(align(128))]
struct ThreadSlot {
    /// Whether a thread owns the slot.
    taken: AtomicBool,
    /// Number of threads that use this slot and are in a section.
    inside: AtomicU32,
}

impl ThreadSlot {
    const fn new() -> ThreadSlot {
        ThreadSlot { taken: AtomicBool::new(false), inside: AtomicU32::new(0) }
    }

    #[inline]
    fn is_shared(&self) -> bool {
        ptr::eq(self, &raw const SHARED)
    }

    #[inline]
    fn enter(&self) {
        if self.is_shared() {
            self.inside.fetch_add(1, Ordering::SeqCst);
        } else {
            self.inside.swap(1, Ordering::SeqCst);
        }
    }

    #[inline]
    fn leave(&self) {
        if self.is_shared() {
            self.inside.fetch_sub(1, Ordering::Release);
        } else {
            self.inside.store(0, Ordering::Release);
        }
    }
}

static OWN: [ThreadSlot; MAX_OWN_SLOTS] = [const { ThreadSlot::new() }; MAX_OWN_SLOTS];
/// Slot of all threads that have none of their own.
static SHARED: ThreadSlot = ThreadSlot::new();
/// State of the current fork: 0 while no thread forks, [`GATHERING`] while a forking thread waits
/// for sections to end, and after that the id of the forking thread.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// Value that is not the id of a thread, since these are below 2^22.
const GATHERING: u32 = u32::MAX;
/// Whether a thread has entered a section while another thread was forking, or was still in one
/// when the forking thread stopped waiting. The child of that fork is inconsistent.
static INTRUDED: AtomicBool = AtomicBool::new(false);
/// Whether this process or one of its ancestors is the child of a fork in the middle of a section.
static INCONSISTENT: AtomicBool = AtomicBool::new(false);
/// Functions to call in a child that becomes inconsistent, or null. The preload library registers
/// two functions: one for its registry of MPI functions, and one for its hook in Open MPI.
static NOTICES: [AtomicPtr<fn()>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];
/// Counter that advances once before and once after each fork of this process. A child continues
/// with the value of its parent.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// Number of forks in the line of descent of this process: each of them created this process or one
/// of its ancestors.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether the fork handlers have been registered.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// What a forking thread has done before its fork.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fork {
    /// The thread does not fork.
    None,
    /// The thread has waited for all other threads to leave their sections, or until the limit.
    /// Threads that want to enter a section wait for its fork to end.
    Alone,
    /// The thread has not waited. Either it is in a section itself (a signal handler or an
    /// allocator has forked), or another thread's fork did not end in time, or the process is
    /// inconsistent already.
    Amid,
}

/// State of one thread.
struct Here {
    /// Number of nested sections that the thread is in. A fork in progress counts as one.
    depth: Cell<u32>,
    /// Slot of the thread, once it has been in a section.
    slot: Cell<Option<&'static ThreadSlot>>,
    /// If the thread is forking, what it has done before the fork.
    fork: Cell<Fork>,
}

/// Guard whose destructor gives the slot back when the thread ends.
struct ThreadExitGuard;

thread_local! {
    static HERE: Here = const { Here { depth: Cell::new(0), slot: Cell::new(None), fork: Cell::new(Fork::None) } };
    static EXIT_GUARD: ThreadExitGuard = const { ThreadExitGuard };
}

impl Drop for ThreadExitGuard {
    fn drop(&mut self) {
        // Destructors of other thread-local values may run after this one and enter sections. They
        // use the shared slot.
        HERE.with(|here| {
            if let Some(slot) = here.slot.replace(Some(&SHARED))
                && !slot.is_shared()
            {
                slot.taken.store(false, Ordering::Release);
            }
        });
    }
}

/// A section, which lasts as long as this value. While a thread is in a section, a fork of another
/// thread waits, up to a limit. State that is changed in a section is complete in every child that
/// is not marked ([`is_inconsistent`]). Sections nest.
#[derive(Debug)]
pub struct Section(PhantomData<*const ()>);

/// Begins a section. Waits while another thread forks, up to a limit.
///
/// Until the section ends the thread must do nothing that may wait for a thread outside of
/// sections: no callback, no log line, no input or output.
#[inline]
pub fn section() -> Section {
    HERE.with(|here| {
        let depth = here.depth.get();
        // Set the depth first. A signal handler that forks after this line finds the thread in a
        // section, and does not wait for the thread's own slot.
        here.depth.set(depth + 1);
        if depth == 0 {
            let slot = here.slot.get().unwrap_or_else(|| assign_slot(here));
            slot.enter();
            if FORKING.load(Ordering::SeqCst) != 0 {
                give_way(slot);
            }
        }
    });
    Section(PhantomData)
}

impl Drop for Section {
    #[inline]
    fn drop(&mut self) {
        HERE.with(|here| {
            let depth = here.depth.get() - 1;
            if depth == 0
                && let Some(slot) = here.slot.get()
            {
                slot.leave();
            }
            here.depth.set(depth);
        });
    }
}

/// Gives this thread a slot: a free one of `OWN`, or `SHARED` if there is none. Returns the slot.
#[cold]
fn assign_slot(here: &Here) -> &'static ThreadSlot {
    register();
    let free =
        |slot: &&ThreadSlot| !slot.taken.load(Ordering::Relaxed) && !slot.taken.swap(true, Ordering::AcqRel);
    // While the thread ends, the guard that gives a slot back cannot be set up any more. The thread
    // then uses the shared slot, which need not be given back.
    let lasts = EXIT_GUARD.try_with(|_| ()).is_ok();
    let slot = OWN.iter().filter(|_| lasts).find(free).unwrap_or(&SHARED);
    here.slot.set(Some(slot));
    slot
}

/// Spin lock that one thread holds at a time, for a few instructions. A fork waits until no thread
/// holds it, as it waits for threads in sections.
#[derive(Debug)]
pub(super) struct RawSpinLock {
    /// Whether a thread holds the lock.
    taken: AtomicBool,
    /// Whether the lock is in `SPIN_LOCKS`, so that forks wait for it.
    known: AtomicBool,
}

/// The spin locks for which forks wait.
static SPIN_LOCKS: [AtomicPtr<RawSpinLock>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];

/// Returns the spin lock that has this place in `SPIN_LOCKS`; `None` if the place is free.
fn spin_lock(place: &AtomicPtr<RawSpinLock>) -> Option<&'static RawSpinLock> {
    // SAFETY: the pointer is null or was stored by `announce`, from a reference that is valid as
    // long as the process lives. The fields of `RawSpinLock` are accessed only as atomics.
    unsafe { place.load(Ordering::SeqCst).as_ref() }
}

impl RawSpinLock {
    pub(super) const fn new() -> RawSpinLock {
        RawSpinLock { taken: AtomicBool::new(false), known: AtomicBool::new(false) }
    }

    /// Takes the lock. Waits until no other thread holds it, and while another thread forks, up to
    /// the limits of a section. The holder is in a section until it gives the lock back.
    #[inline]
    pub(super) fn take(&'static self) {
        if !self.known.load(Ordering::Acquire) {
            self.announce();
        }
        HERE.with(|here| {
            let depth = here.depth.get();
            // Set the depth first, for the same reason as in `section`.
            here.depth.set(depth + 1);
            // If the thread is in a section already, a fork waits for that section anyway, so the
            // thread need not look whether another thread forks.
            let forks = || depth == 0 && FORKING.load(Ordering::SeqCst) != 0;
            if self.taken.swap(true, Ordering::SeqCst) {
                self.wait(forks);
            } else if forks() {
                self.taken.store(false, Ordering::Release);
                self.wait(forks);
            }
        });
    }

    /// Gives the lock back and ends the section of its holder.
    #[inline]
    pub(super) fn give(&self) {
        self.taken.store(false, Ordering::Release);
        HERE.with(|here| here.depth.set(here.depth.get() - 1));
    }

    /// Waits for the lock and takes it. While another thread forks, waits for the end of the fork
    /// first, unless that takes too long: then `late` is true, and the child of a fork that is
    /// still under way is marked as inconsistent.
    #[cold]
    fn wait(&self, forks: impl Fn() -> bool) {
        let (mut turns, mut pause, mut late) = (0, Duration::from_micros(1), false);
        loop {
            if !late && forks() {
                late = !wait_for_the_end();
            } else if self.taken.load(Ordering::Relaxed) {
                // The holder gives the lock back soon, unless it has lost its processor. So spin a
                // little, then sleep for growing times.
                turns += 1;
                if turns < 100 {
                    std::hint::spin_loop();
                } else {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(1));
                }
            } else if !self.taken.swap(true, Ordering::SeqCst) {
                if !forks() {
                    return;
                }
                if late {
                    // Mark the child of the fork only now that the lock is taken. If a later fork
                    // resets the mark, that fork also has to wait for the lock, so its child needs
                    // no mark.
                    INTRUDED.store(true, Ordering::SeqCst);
                    return;
                }
                self.taken.store(false, Ordering::Release);
            }
        }
    }

    /// Registers the fork handlers, and enters the lock in `SPIN_LOCKS` if it is not there. The
    /// assertion fails for the ninth lock of a process.
    #[cold]
    fn announce(&'static self) {
        register();
        let mine = ptr::from_ref(self).cast_mut();
        let free = |place: &AtomicPtr<RawSpinLock>| {
            place
                .compare_exchange(ptr::null_mut(), mine, Ordering::SeqCst, Ordering::SeqCst)
                .map_or_else(|other| ptr::eq(other, mine), |_| true)
        };
        assert!(SPIN_LOCKS.iter().any(free), "there are no more spin locks than places for them");
        self.known.store(true, Ordering::Release);
    }
}

/// Lets the fork of another thread go first, unless it takes too long: records in the slot that
/// this thread is in no section, waits, and enters the section again.
#[cold]
fn give_way(slot: &ThreadSlot) {
    loop {
        slot.leave();
        let ended = wait_for_the_end();
        slot.enter();
        if FORKING.load(Ordering::SeqCst) == 0 {
            return;
        }
        if !ended {
            // Mark the child of the fork only now that the slot is entered. If a later fork resets
            // the mark, that fork also has to wait for the slot, so its child needs no mark.
            INTRUDED.store(true, Ordering::SeqCst);
            return;
        }
    }
}

/// Waits until no thread forks. Returns false if the fork takes too long, or if its child is marked
/// as inconsistent already.
fn wait_for_the_end() -> bool {
    let start = Instant::now();
    // `alone` is the time at which the forking thread was first seen to have finished its wait for
    // sections, and the value of `FORKS` then. A thread that wakes late may find the next fork of
    // the same thread, and must not take it for the first one.
    let mut alone: Option<(Instant, u64)> = None;
    let mut asleep = 0;
    loop {
        let forking = FORKING.load(Ordering::SeqCst);
        if forking == 0 {
            return true;
        }
        if INTRUDED.load(Ordering::SeqCst) {
            // The child of this fork is marked already, so that waiting longer would gain nothing.
            return false;
        }
        // If the forking thread has finished its wait for sections, watch it: give up after
        // `LIMIT`, or earlier if it sleeps at `LOOKS` looks in a row. The last comparison makes
        // sure that all looks were at the same fork. If the forking thread still waits for
        // sections, which takes at most `LIMIT`, give up after twice that time.
        if forking != GATHERING {
            let number = FORKS.load(Ordering::SeqCst);
            let seen = alone.filter(|&(_, of)| of == number);
            let since = seen.map_or_else(Instant::now, |(since, _)| since);
            alone = Some((since, number));
            asleep = if seen.is_some() && sleeps(forking) { asleep + 1 } else { 0 };
            let too_long = asleep >= LOOKS || since.elapsed() >= LIMIT;
            if too_long && FORKS.load(Ordering::SeqCst) == number {
                return false;
            }
        } else if start.elapsed() >= 2 * LIMIT {
            return false;
        }
        let limit = libc::timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
        // SAFETY: the system call gets the address of a static word of 4 bytes, which it only
        // reads, and the address of `limit`, which lives until the call returns. It sleeps only if
        // the word still has the value `forking`, and for at most `PAUSE`.
        unsafe {
            let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, FORKING.as_ptr(), flags, forking, &raw const limit);
        }
    }
}

/// Returns whether a thread of this process sleeps, according to `/proc`. Returns true if the state
/// of the thread cannot be read. The state distinguishes a fork that is held up by a handler from
/// one that has lost its processor or copies a large process.
fn sleeps(thread: u32) -> bool {
    // Write the path `/proc/self/task/ID/stat` without an allocation, because the caller may be an
    // allocator that waits to enter a section.
    let mut path = [0u8; 40];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        path[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(b"/proc/self/task/");
    let mut digits = [0u8; 10];
    let (mut first, mut rest) = (digits.len(), thread);
    while first == digits.len() || rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    put(&digits[first..]);
    put(b"/stat");
    let mut text = [0u8; 64];
    // SAFETY: `path` ends with a zero byte, because at most 16 + 10 + 5 of its 40 zero bytes are
    // overwritten. `read` gets the address and length of `text`. `file` was opened here and is
    // closed once. `__errno_location` returns a valid address of this thread.
    //
    // Nothing is allocated, since an allocator may be waiting here. The system calls are made
    // directly because the functions of the C library are points at which a thread can be
    // cancelled.
    let n = unsafe {
        let errno = *libc::__errno_location();
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags);
        let mut n = -1;
        if file >= 0 {
            n = libc::syscall(libc::SYS_read, file, text.as_mut_ptr(), text.len());
            libc::syscall(libc::SYS_close, file);
        }
        *libc::__errno_location() = errno;
        n
    };
    let text = &text[..n.max(0) as usize];
    // The state follows the name of the thread. The name is in parentheses and has at most 15
    // bytes, which may be parentheses too, so look for the last one.
    let state = text.iter().rposition(|&byte| byte == b')').and_then(|end| text.get(end + 2));
    !matches!(state, Some(b'R' | b'D'))
}

/// Ends the fork: threads may enter sections again. Wakes the threads that wait for the end of the
/// fork.
fn end() {
    INTRUDED.store(false, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
    // SAFETY: the system call gets the address of a static word of 4 bytes. It wakes the threads
    // that wait for this word, and accesses no other memory.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            FORKING.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Waits while `inside` returns true, that is, for threads in a section. Sections are short, but a
/// thread may have lost its processor. Returns false if `LIMIT` has passed since `start`: a section
/// may call an allocator of the program, which may wait for a lock that a fork handler of the
/// program holds.
fn wait_for(inside: impl Fn() -> bool, start: Instant) -> bool {
    let mut pause = Duration::from_micros(1);
    while inside() {
        if start.elapsed() >= LIMIT {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
    }
    true
}

/// Returns whether this process, or one that it descends from, is the child of a fork during which
/// another thread was in a section or may have been in one. In such a process a lock may be held
/// that no thread will release, and a value may be half changed. So the process must not use state
/// that the threads of its parent shared.
#[inline]
pub fn is_inconsistent() -> bool {
    INCONSISTENT.load(Ordering::Relaxed)
}

/// Registers a function that is called in the child of a fork when the child becomes inconsistent,
/// before `fork` returns there. The function must only store to atomics. A process can have at most
/// two functions registered; registering the same one again has no effect.
///
/// # Panics
/// If two other functions are registered already.
pub fn when_inconsistent(notice: &'static fn()) {
    let notice = ptr::from_ref(notice).cast_mut();
    let registers = |place: &AtomicPtr<fn()>| {
        let found = place.compare_exchange(ptr::null_mut(), notice, Ordering::AcqRel, Ordering::Acquire);
        found.is_ok() || found == Err(notice)
    };
    assert!(NOTICES.iter().any(registers), "a third function for inconsistent children");
}

/// Returns a counter that advances with each fork that this process comes through, as the parent or
/// as the child. If the counter has changed, memory that this process shares with others by a
/// mapping may be shared with one more process.
pub fn forks() -> u64 {
    FORKS.load(Ordering::Acquire)
}

/// Returns the number of forks by which this process or one of its ancestors was created. Work that
/// another thread began under an earlier number is never finished here, because that thread does
/// not exist in this process.
pub(super) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Returns whether this thread is in a section that it has begun itself. The level that a fork in
/// progress adds is not counted.
pub(super) fn in_section() -> bool {
    HERE.with(|here| here.depth.get() > u32::from(here.fork.get() != Fork::None))
}

/// Registers the fork handlers, if they are not registered yet. This must happen before the first
/// section, so that no fork is missed. Two threads may both register them: running the handlers
/// twice in one fork is harmless, and a lock that prevented it could itself be inherited by a
/// child.
fn register() {
    // Miri does not support fork.
    if cfg!(miri) || REGISTERED.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the three arguments are functions of this library with the signature that
    // `pthread_atfork` takes. They neither unwind nor allocate.
    let status = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    assert_eq!(status, 0, "no memory for fork handlers");
    REGISTERED.store(true, Ordering::Release);
}

/// Fork handler that runs in the forking thread before the fork.
extern "C" fn before() {
    HERE.with(|here| {
        if here.fork.get() != Fork::None {
            return;
        }
        // In an inconsistent process, slots and locks may belong to threads that the process does
        // not have, so do not wait for them.
        let fork =
            if here.depth.get() == 0 && !is_inconsistent() && gather() { Fork::Alone } else { Fork::Amid };
        here.fork.set(fork);
        // Fork handlers of the program and of other libraries may run between this handler and the
        // one after the fork, and may call this library. Their calls are treated as if they were in
        // a section.
        here.depth.set(here.depth.get() + 1);
        FORKS.fetch_add(1, Ordering::AcqRel);
    });
}

/// Waits until no other thread forks, and then until no other thread is in a section, each up to a
/// limit. Returns false if another thread's fork does not end in time. If a section does not end in
/// time, marks the child.
fn gather() -> bool {
    let begin = || FORKING.compare_exchange(0, GATHERING, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    while !begin() {
        if !wait_for_the_end() {
            return false;
        }
    }
    // Reset the mark. A thread that entered a section during the previous fork may have set it
    // after that fork had ended.
    INTRUDED.store(false, Ordering::SeqCst);
    let start = Instant::now();
    // Wait for the slots and then for the spin locks. All of them together get the time `LIMIT`.
    let mut slots = OWN.iter().chain([&SHARED]);
    let mut locks = SPIN_LOCKS.iter().filter_map(spin_lock);
    let all = slots.all(|slot| wait_for(|| slot.inside.load(Ordering::SeqCst) != 0, start))
        && locks.all(|lock| wait_for(|| lock.taken.load(Ordering::SeqCst), start));
    if !all {
        INTRUDED.store(true, Ordering::SeqCst);
    }
    // The function `gettid` of the C library is younger than the oldest glibc that packages are
    // built for (2.30 and 2.28), so ask the kernel.
    // SAFETY: this system call has no arguments and no precondition.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    FORKING.store(thread as u32, Ordering::SeqCst);
    true
}

/// Fork handler that runs in the parent after the fork.
extern "C" fn after_in_parent() {
    HERE.with(|here| {
        let fork = here.fork.replace(Fork::None);
        if fork != Fork::None {
            here.depth.set(here.depth.get() - 1);
            // Memory that a fork handler or a late thread has mapped since the handler `before` ran
            // is shared with the child too, so the counter advances again.
            FORKS.fetch_add(1, Ordering::AcqRel);
        }
        if fork == Fork::Alone {
            end();
        }
    });
}

/// Fork handler that runs in the child after the fork, in its only thread.
extern "C" fn after_in_child() {
    HERE.with(|here| {
        let fork = here.fork.replace(Fork::None);
        if fork == Fork::None {
            return;
        }
        here.depth.set(here.depth.get() - 1);
        FORKS.fetch_add(1, Ordering::AcqRel);
        // The other threads of the parent do not exist in the child, whether or not they were in a
        // section. A thread that entered a section during the fork set `INTRUDED` before it changed
        // anything. So a child that has the changes of that thread has the mark too.
        let marked = fork == Fork::Amid || INTRUDED.load(Ordering::SeqCst);
        // Free the slots of the other threads. This thread keeps its own; if the fork happened
        // inside a section, the thread is still in it.
        let mine = here.slot.get();
        for slot in OWN.iter().chain([&SHARED]) {
            let own = mine.is_some_and(|mine| ptr::eq(mine, slot));
            slot.taken.store(own, Ordering::Relaxed);
            slot.inside.store(u32::from(own && here.depth.get() > 0), Ordering::Relaxed);
        }
        if !marked {
            // The forking thread has seen every spin lock free, and holds none. A lock that is
            // taken now was taken during the fork, by a thread that had not yet looked whether
            // another thread forks, so it has changed nothing.
            for lock in SPIN_LOCKS.iter().filter_map(spin_lock) {
                lock.taken.store(false, Ordering::Relaxed);
            }
        }
        GENERATION.fetch_add(1, Ordering::AcqRel);
        end();
        if marked && !INCONSISTENT.swap(true, Ordering::AcqRel) {
            for notice in &NOTICES {
                // SAFETY: the pointer is null, or was stored by `when_inconsistent` from a
                // reference to a function pointer that is valid as long as the process lives.
                if let Some(notice) = unsafe { notice.load(Ordering::Acquire).as_ref() } {
                    notice();
                }
            }
        }
    });
}
