//! Sections, and the fork handlers that wait for them.
//!
//! Every thread has a seat, on which it says whether it is in a section; a fork says that it is coming, and then waits seat by seat. Both write
//! first and read the other's word then, in one total order (SeqCst), so one of them sees the other. Nothing here is a lock of the standard
//! library: a child could inherit it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

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
/// Whether a thread is forking.
static FORKING: AtomicU32 = AtomicU32::new(0);
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
    /// It waited for all other threads.
    Alone,
    /// It is in a section itself, where its fork must not wait: a signal handler, or an allocator that forks.
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

/// While it lives, no other thread's fork happens, so what is changed meanwhile is whole in every child. Sections nest.
#[derive(Debug)]
pub struct Section(PhantomData<*const ()>);

/// Begins a section. Waits while another thread forks.
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

    /// Waits until no other thread has it, and none forks. Until it is given back its holder is in a section.
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
        let (mut turns, mut pause) = (0, Duration::from_micros(1));
        loop {
            if forks() {
                wait_for_the_end();
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

/// Another thread forks: it goes first.
#[cold]
fn give_way(seat: &Seat) {
    loop {
        seat.leave();
        wait_for_the_end();
        seat.enter();
        if FORKING.load(Ordering::SeqCst) == 0 {
            return;
        }
    }
}

/// Waits until no thread forks, or for less.
fn wait_for_the_end() {
    // SAFETY: a word of this process's own to wait on, as long as it is 1, and no time limit.
    unsafe {
        let (word, none) = (FORKING.as_ptr(), ptr::null::<libc::timespec>());
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 1, none);
    }
}

/// Threads may enter sections again.
fn end() {
    FORKING.store(0, Ordering::SeqCst);
    // SAFETY: as above; wakes all that wait.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            FORKING.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Waits for threads in sections: these are short, but a thread may have lost the processor.
fn wait_for(inside: impl Fn() -> bool) {
    let mut pause = Duration::from_micros(1);
    while inside() {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
    }
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
        if here.depth.get() > 0 {
            here.fork.set(Fork::Amid);
        } else {
            while FORKING.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                wait_for_the_end();
            }
            OWN.iter().chain([&SHARED]).for_each(|seat| wait_for(|| seat.inside.load(Ordering::SeqCst) != 0));
            for place in &BOLTS {
                // SAFETY: null, or a bolt that was announced, which lives as long as the process.
                if let Some(bolt) = unsafe { place.load(Ordering::SeqCst).as_ref() } {
                    wait_for(|| bolt.taken.load(Ordering::SeqCst));
                }
            }
            here.fork.set(Fork::Alone);
        }
        // Handlers of others that run between these may call us: they are as if in a section.
        here.depth.set(here.depth.get() + 1);
        FORKS.fetch_add(1, Ordering::AcqRel);
    });
}

extern "C" fn after_in_parent() {
    HERE.with(|here| {
        let fork = here.fork.replace(Fork::None);
        if fork != Fork::None {
            here.depth.set(here.depth.get() - 1);
        }
        if fork == Fork::Alone {
            end();
        }
    });
}

extern "C" fn after_in_child() {
    HERE.with(|here| {
        if here.fork.replace(Fork::None) == Fork::None {
            return;
        }
        here.depth.set(here.depth.get() - 1);
        // The other threads are gone, wherever they were.
        let mine = here.seat.get();
        for seat in OWN.iter().chain([&SHARED]) {
            let own = mine.is_some_and(|mine| ptr::eq(mine, seat));
            seat.taken.store(own, Ordering::Relaxed);
            seat.inside.store(u32::from(own && here.depth.get() > 0), Ordering::Relaxed);
        }
        GENERATION.fetch_add(1, Ordering::AcqRel);
        end();
    });
}
