//! Sections, and the fork handlers that wait for them.
//!
//! Every thread has a seat, on which it says whether it is in a section; a fork says that it is coming, and then waits seat by seat. Both write
//! first and read the other's word then, in one total order (SeqCst), so one of them sees the other. Nothing here is a lock of the standard
//! library: a child could inherit it.
//!
//! Neither side waits without a limit. A program may register fork handlers that take a lock of its
//! own, and the order in which its handlers and ours run cannot be chosen. So its handler may wait
//! for a thread that holds that lock and waits for the fork to end before it enters a section. Such
//! a thread enters after [`LOOKS`], and the fork then counts as one in the middle of a section:
//! its child is marked ([`is_inconsistent`]).

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks of a thread at the entrance of a section at the thread that forks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks in a row that must find the forking thread asleep before the thread at the entrance enters:
/// 20 ms. A handler that waits for a lock sleeps all the time. An ordinary fork sleeps now and then,
/// for a lock of the allocator whose holder has lost its processor: of 1000 forks among three busy
/// threads on two loaded processors, one was found asleep by a single look after 5 ms (2026-11-28).
const LOOKS: u32 = 5;

/// Time that a fork waits for threads in sections, and a thread at the entrance for a fork whose
/// thread runs or waits for a processor. Sections and forks are meant to take milliseconds; the limit
/// is far longer, so that a busy machine seldom reaches it. If it does, the child is marked.
const LIMIT: Duration = Duration::from_secs(1);

/// Threads with a seat of their own; the others share one, and write to it as many.
const SEATS: usize = 128;

/// Cache lines of its own.
#[repr(align(128))]
struct Seat {
    taken: AtomicBool,
    /// Threads of this seat that are in a section.
    inside: AtomicU32,
}

impl Seat {
    const fn new() -> Seat {
        Seat { taken: AtomicBool::new(false), inside: AtomicU32::new(0) }
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

static OWN: [Seat; SEATS] = [const { Seat::new() }; SEATS];
static SHARED: Seat = Seat::new();
/// 0 while no thread forks; [`GATHERING`] while a forking thread waits for sections to end; after
/// that the id of the forking thread.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// No id of a thread: these are below 2^22.
const GATHERING: u32 = u32::MAX;
/// A thread has entered a section while another thread was forking. The child of that fork is
/// inconsistent.
static INTRUDED: AtomicBool = AtomicBool::new(false);
/// Whether this process or an ancestor is the child of a fork in the middle of a section.
static INCONSISTENT: AtomicBool = AtomicBool::new(false);
/// Functions to call in an inconsistent child, or null: the preload library's registry and its hook in
/// Open MPI have one each.
static NOTICES: [AtomicPtr<fn()>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];
/// Forks of this process and of its ancestors before it was forked.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// How often this process is a child.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether the handlers are registered.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Steps of a forking thread before the fork.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fork {
    /// It does not fork.
    None,
    /// The thread has waited until all other threads had left their sections, and threads that want to
    /// enter one wait for its fork to end.
    Alone,
    /// The thread has not waited. It is in a section itself (a signal handler, or an allocator that
    /// forks), or another thread's fork did not end in time.
    Amid,
}

/// Of this thread.
struct Here {
    /// Sections inside sections.
    depth: Cell<u32>,
    seat: Cell<Option<&'static Seat>>,
    fork: Cell<Fork>,
}

/// Gives the seat back when the thread ends.
struct Leaver;

thread_local! {
    static HERE: Here = const { Here { depth: Cell::new(0), seat: Cell::new(None), fork: Cell::new(Fork::None) } };
    static LEAVER: Leaver = const { Leaver };
}

impl Drop for Leaver {
    fn drop(&mut self) {
        // Destructors that run later may need a seat once more.
        HERE.with(|here| {
            if let Some(seat) = here.seat.replace(Some(&SHARED))
                && !seat.is_shared()
            {
                seat.taken.store(false, Ordering::Release);
            }
        });
    }
}

/// While it lives, no other thread's fork happens, so what is changed meanwhile is whole in every child that is not marked
/// ([`is_inconsistent`]). Sections nest.
#[derive(Debug)]
pub struct Section(PhantomData<*const ()>);

/// Begins a section. Waits while another thread forks, up to a limit.
///
/// Until it ends the thread must do nothing that may wait for a thread outside of sections: no callback, no log line, no input or output.
#[inline]
pub fn section() -> Section {
    HERE.with(|here| {
        let depth = here.depth.get();
        // First, so that a signal handler that forks between the two does not wait for this thread.
        here.depth.set(depth + 1);
        if depth == 0 {
            let seat = here.seat.get().unwrap_or_else(|| take_seat(here));
            seat.enter();
            if FORKING.load(Ordering::SeqCst) != 0 {
                give_way(seat);
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
                && let Some(seat) = here.seat.get()
            {
                seat.leave();
            }
            here.depth.set(depth);
        });
    }
}

#[cold]
fn take_seat(here: &Here) -> &'static Seat {
    register();
    let free = |seat: &&Seat| !seat.taken.load(Ordering::Relaxed) && !seat.taken.swap(true, Ordering::AcqRel);
    // Without a destructor to come nobody would give it back.
    let lasts = LEAVER.try_with(|_| ()).is_ok();
    let seat = OWN.iter().filter(|_| lasts).find(free).unwrap_or(&SHARED);
    here.seat.set(Some(seat));
    seat
}

/// Lock that one thread holds at a time, for a few instructions. A fork waits for it as for a seat.
#[derive(Debug)]
pub(super) struct Bolt {
    taken: AtomicBool,
    /// Whether forks look at it.
    known: AtomicBool,
}

/// Those that forks look at.
static BOLTS: [AtomicPtr<Bolt>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];

impl Bolt {
    pub(super) const fn new() -> Bolt {
        Bolt { taken: AtomicBool::new(false), known: AtomicBool::new(false) }
    }

    /// Waits until no other thread has it, and none forks, up to the limit of a section. Until it is given back its holder is in a section.
    #[inline]
    pub(super) fn take(&'static self) {
        if !self.known.load(Ordering::Acquire) {
            self.announce();
        }
        HERE.with(|here| {
            let depth = here.depth.get();
            // First, as in a section.
            here.depth.set(depth + 1);
            // Of a thread that is in a section already a fork waits anyway.
            let forks = || depth == 0 && FORKING.load(Ordering::SeqCst) != 0;
            if self.taken.swap(true, Ordering::SeqCst) {
                self.wait(forks);
            } else if forks() {
                self.taken.store(false, Ordering::Release);
                self.wait(forks);
            }
        });
    }

    /// Gives it back.
    #[inline]
    pub(super) fn give(&self) {
        self.taken.store(false, Ordering::Release);
        HERE.with(|here| here.depth.set(here.depth.get() - 1));
    }

    #[cold]
    fn wait(&self, forks: impl Fn() -> bool) {
        let (mut turns, mut pause, mut late) = (0, Duration::from_micros(1), false);
        loop {
            if !late && forks() {
                late = !wait_for_the_end();
            } else if self.taken.load(Ordering::Relaxed) {
                // Its holder goes on at once, unless it has lost the processor.
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
                    // After the bolt was taken: a fork that begins now and resets the mark waits for the bolt.
                    INTRUDED.store(true, Ordering::SeqCst);
                    return;
                }
                self.taken.store(false, Ordering::Release);
            }
        }
    }

    #[cold]
    fn announce(&'static self) {
        register();
        let mine = ptr::from_ref(self).cast_mut();
        let free = |place: &AtomicPtr<Bolt>| {
            place
                .compare_exchange(ptr::null_mut(), mine, Ordering::SeqCst, Ordering::SeqCst)
                .map_or_else(|other| ptr::eq(other, mine), |_| true)
        };
        assert!(BOLTS.iter().any(free), "there are no more bolts than places for them");
        self.known.store(true, Ordering::Release);
    }
}

/// Another thread forks: it goes first, unless it takes too long.
#[cold]
fn give_way(seat: &Seat) {
    loop {
        seat.leave();
        let ended = wait_for_the_end();
        seat.enter();
        if FORKING.load(Ordering::SeqCst) == 0 {
            return;
        }
        if !ended {
            // After the seat was entered: a fork that begins now and resets the mark waits for the seat.
            INTRUDED.store(true, Ordering::SeqCst);
            return;
        }
    }
}

/// Waits until no thread forks. Returns false if the fork takes too long to be waited for.
fn wait_for_the_end() -> bool {
    let start = Instant::now();
    // When the forking thread was first seen to wait for no section, and the number of forks then: a
    // thread that wakes late may find the next fork of the same thread.
    let mut alone: Option<(Instant, u64)> = None;
    let mut asleep = 0;
    loop {
        let forking = FORKING.load(Ordering::SeqCst);
        if forking == 0 {
            return true;
        }
        if INTRUDED.load(Ordering::SeqCst) {
            // Its child is marked already.
            return false;
        }
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
        // SAFETY: a word of this process's own to wait on, as long as it has the value that was read, for so long at most.
        unsafe {
            let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, FORKING.as_ptr(), flags, forking, &raw const limit);
        }
    }
}

/// Says whether a thread of this process sleeps, as far as the system tells; if it does not tell,
/// the thread is taken to sleep. The state of the thread tells a fork that is held up by a handler
/// from one that has lost its processor or copies a large process.
fn sleeps(thread: u32) -> bool {
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
    // SAFETY: a path that ends with a zero, a buffer of that length, and a file of our own to close.
    // Nothing is allocated, since an allocator may be waiting here, and a thread that is to be cancelled
    // is not cancelled here, as it would be in the functions of the C library.
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
    // After the name of the thread, which is in parentheses and at most 15 bytes long, but may have parentheses of its own.
    let state = text.iter().rposition(|&byte| byte == b')').and_then(|end| text.get(end + 2));
    !matches!(state, Some(b'R' | b'D'))
}

/// Threads may enter sections again.
fn end() {
    INTRUDED.store(false, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
    // SAFETY: a word of this process's own; wakes all that wait for it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            FORKING.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Waits for threads in sections: these are short, but a thread may have lost the processor. Returns
/// false if there still are some after the limit: a section may call an allocator of the program,
/// which may wait for a lock that a handler of the program holds.
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

/// Says whether this process, or one that it descends from, is the child of a fork during which
/// another thread was in a section, or may have been: a lock may be taken that nobody gives back,
/// and a value may be half changed. Such a process must not use what it shares with its parent's
/// threads.
#[inline]
pub fn is_inconsistent() -> bool {
    INCONSISTENT.load(Ordering::Relaxed)
}

/// Has `notice` called in the child of a fork when the child becomes inconsistent, before `fork`
/// returns there. It must only store to atomics. A process has at most two such functions; the same
/// one may be given again.
///
/// # Panics
/// If there are two others.
pub fn when_inconsistent(notice: &'static fn()) {
    let notice = ptr::from_ref(notice).cast_mut();
    let registers = |place: &AtomicPtr<fn()>| {
        let found = place.compare_exchange(ptr::null_mut(), notice, Ordering::AcqRel, Ordering::Acquire);
        found.is_ok() || found == Err(notice)
    };
    assert!(NOTICES.iter().any(registers), "a third function for inconsistent children");
}

/// Returns the number of forks that this process has come through, as parent or as child: where it has moved on, memory that was shared with this
/// process by a mapping is shared with another one too.
pub fn forks() -> u64 {
    FORKS.load(Ordering::Acquire)
}

/// Returns the number of forks that this process has come through as a child: what threads of another generation were doing is never finished.
pub(super) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Says whether this thread is in a section of its own making.
pub(super) fn in_section() -> bool {
    HERE.with(|here| here.depth.get() > u32::from(here.fork.get() != Fork::None))
}

/// Before any section, so that no fork is missed. Two threads may both do it: the handlers stand that, and a lock is what they cannot have.
fn register() {
    // Miri has no fork.
    if cfg!(miri) || REGISTERED.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the handlers are functions of this library that neither unwind nor allocate.
    let status = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    assert_eq!(status, 0, "no memory for fork handlers");
    REGISTERED.store(true, Ordering::Release);
}

extern "C" fn before() {
    HERE.with(|here| {
        if here.fork.get() != Fork::None {
            return;
        }
        // In an inconsistent process seats and bolts may belong to threads that it does not have.
        let fork =
            if here.depth.get() == 0 && !is_inconsistent() && gather() { Fork::Alone } else { Fork::Amid };
        here.fork.set(fork);
        // Handlers of others that run between these may call us: they are as if in a section.
        here.depth.set(here.depth.get() + 1);
        FORKS.fetch_add(1, Ordering::AcqRel);
    });
}

/// Waits until no other thread forks or is in a section, up to the limit. Returns false if another
/// fork does not come to an end.
fn gather() -> bool {
    let begin = || FORKING.compare_exchange(0, GATHERING, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    while !begin() {
        if !wait_for_the_end() {
            return false;
        }
    }
    // A thread that was about to enter during the fork before this one may have set it since.
    INTRUDED.store(false, Ordering::SeqCst);
    let start = Instant::now();
    let mut seats = OWN.iter().chain([&SHARED]);
    let mut bolts = BOLTS.iter();
    let all = seats.all(|seat| wait_for(|| seat.inside.load(Ordering::SeqCst) != 0, start))
        && bolts.all(|place| {
            // SAFETY: null, or a bolt that was announced, which lives as long as the process.
            let bolt = unsafe { place.load(Ordering::SeqCst).as_ref() };
            bolt.is_none_or(|bolt| wait_for(|| bolt.taken.load(Ordering::SeqCst), start))
        });
    if !all {
        INTRUDED.store(true, Ordering::SeqCst);
    }
    // SAFETY: it has no precondition.
    let thread = unsafe { libc::gettid() };
    FORKING.store(thread as u32, Ordering::SeqCst);
    true
}

extern "C" fn after_in_parent() {
    HERE.with(|here| {
        let fork = here.fork.replace(Fork::None);
        if fork != Fork::None {
            here.depth.set(here.depth.get() - 1);
            // What a handler or a late thread has mapped since the first handler is shared too.
            FORKS.fetch_add(1, Ordering::AcqRel);
        }
        if fork == Fork::Alone {
            end();
        }
    });
}

extern "C" fn after_in_child() {
    HERE.with(|here| {
        let fork = here.fork.replace(Fork::None);
        if fork == Fork::None {
            return;
        }
        here.depth.set(here.depth.get() - 1);
        FORKS.fetch_add(1, Ordering::AcqRel);
        // The other threads are gone, wherever they were. A late one has set the mark before it
        // changed anything, so a child that has its changes has the mark.
        let marked = fork == Fork::Amid || INTRUDED.load(Ordering::SeqCst);
        let mine = here.seat.get();
        for seat in OWN.iter().chain([&SHARED]) {
            let own = mine.is_some_and(|mine| ptr::eq(mine, seat));
            seat.taken.store(own, Ordering::Relaxed);
            seat.inside.store(u32::from(own && here.depth.get() > 0), Ordering::Relaxed);
        }
        GENERATION.fetch_add(1, Ordering::AcqRel);
        end();
        if marked && !INCONSISTENT.swap(true, Ordering::AcqRel) {
            for notice in &NOTICES {
                // SAFETY: null, or a function pointer that lives as long as the process.
                if let Some(notice) = unsafe { notice.load(Ordering::Acquire).as_ref() } {
                    notice();
                }
            }
        }
    });
}
