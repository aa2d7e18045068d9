//! Tests of forks that take long because a fork handler of the program delays them. During such a
//! fork, other threads want to begin short work for which every fork must wait (a fork section).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ddtc::internal::process::{Mutex, SpinLock, is_inconsistent, section, when_inconsistent};

use crate::alone;
use crate::child::{HANG_TIMEOUT, Step};

/// A handler that a program registers with `pthread_atfork`. It delays a fork that its own thread
/// makes.
struct Handler {
    /// Whether the handler has begun to run.
    began: AtomicBool,
    /// Whether the handler may return and so let the fork go on.
    done: AtomicBool,
}

/// The handler that is registered before the library's fork handlers. It runs after them, like the
/// handlers of a program that registers them at its start.
static AFTER: Handler = Handler { began: AtomicBool::new(false), done: AtomicBool::new(false) };
/// The handler that is registered after the library's fork handlers. It runs before them.
static BEFORE: Handler = Handler { began: AtomicBool::new(false), done: AtomicBool::new(false) };

thread_local! {
    /// The handler that is to delay the forks of this thread, or none.
    static DELAYED_BY: Cell<Option<&'static Handler>> = const { Cell::new(None) };
}

impl Handler {
    fn run(&'static self) {
        if DELAYED_BY.get().is_some_and(|handler| std::ptr::eq(handler, self)) {
            self.began.store(true, SeqCst);
            let start = Instant::now();
            // The handler sleeps while it delays the fork, like the handler of a program that waits
            // for a lock.
            while !self.done.load(SeqCst) && start.elapsed() < HANG_TIMEOUT {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Runs `fork` in this thread and `meanwhile` in another thread. This handler delays the fork
    /// until `meanwhile` has returned.
    fn delays<T>(&'static self, meanwhile: impl FnOnce() + Send, fork: impl FnOnce() -> T) -> T {
        self.began.store(false, SeqCst);
        self.done.store(false, SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !self.began.load(SeqCst) {
                    std::thread::yield_now();
                }
                meanwhile();
                self.done.store(true, SeqCst);
            });
            DELAYED_BY.set(Some(self));
            let result = fork();
            DELAYED_BY.set(None);
            assert!(self.done.load(SeqCst), "the fork has waited for the thread");
            result
        })
    }
}

extern "C" fn after() {
    AFTER.run();
}

extern "C" fn before() {
    BEFORE.run();
}

extern "C" fn register_after() {
    // SAFETY: `after` is a function with the C ABI that exists as long as the program.
    assert_eq!(unsafe { libc::pthread_atfork(Some(after), None, None) }, 0);
}

/// Registers the handler `AFTER` before `main` runs, and therefore before the first fork section,
/// which registers the library's handlers.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register_after;

fn register_before() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    enter_all();
    if !REGISTERED.swap(true, SeqCst) {
        // SAFETY: `before` is a function with the C ABI that exists as long as the program.
        assert_eq!(unsafe { libc::pthread_atfork(Some(before), None, None) }, 0);
    }
}

/// Forks, and returns true if the child process is not marked as inconsistent and takes the spin
/// lock. Also checks that the parent is not marked.
fn fork_is_consistent() -> bool {
    let child = Step::new().run(|_| !is_inconsistent() && *SPIN_LOCK.lock() < u32::MAX);
    assert!(!is_inconsistent(), "the parent has all its threads");
    child.is_ok()
}

static SPIN_LOCK: SpinLock<u32> = SpinLock::new(0);
static MUTEX: Mutex<u32> = Mutex::new(0);

/// Enters a fork section, and takes locks of both kinds, which enter one as well. The first call in
/// a process registers the library's fork handlers.
fn enter_all() {
    drop(section());
    *MUTEX.lock() += 1;
    *SPIN_LOCK.lock() += 1;
}

#[test]
fn a_thread_enters_while_a_handler_of_the_program_holds_a_fork_up() {
    let _alone = alone();
    enter_all();
    for enter in [|| drop(section()), || *MUTEX.lock() += 1, || *SPIN_LOCK.lock() += 1] {
        // Enter a section twice while the handler delays the fork. The first entry waits up to a
        // limit, and then the child is marked as inconsistent. The second entry therefore need not
        // wait.
        let twice = || (0..2).for_each(|_| enter());
        assert!(!AFTER.delays(twice, fork_is_consistent), "the child is marked");
        assert!(fork_is_consistent(), "the next one is not");
    }
}

/// Tests a handler of the program that runs before the library's handler. No thread waits to enter
/// a section while the program's handler delays the fork, because the library's handler runs only
/// after it.
#[test]
fn a_handler_that_runs_before_ours_holds_nobody_up() {
    let _alone = alone();
    register_before();
    assert!(BEFORE.delays(enter_all, fork_is_consistent));
}

#[test]
fn a_fork_goes_on_while_a_thread_stays_in_a_section() {
    let _alone = alone();
    for stay in [|work: &dyn Fn()| (section(), work()).1, |work: &dyn Fn()| (SPIN_LOCK.lock(), work()).1] {
        let ((entered, has_entered), (leave, may_leave)) = (channel(), channel::<()>());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                stay(&|| {
                    entered.send(()).unwrap();
                    may_leave.recv_timeout(HANG_TIMEOUT).unwrap();
                });
            });
            has_entered.recv_timeout(HANG_TIMEOUT).unwrap();
            assert!(!fork_is_consistent(), "the child is marked");
            leave.send(()).unwrap();
        });
        assert!(fork_is_consistent(), "the next one is not");
    }
}

/// Tests two forks at the same time. A fork handler delays the fork of one thread until the fork of
/// another thread has returned. The test forks from a process of its own, which has no threads of
/// other tests: a thread that ends may enter a section, and would mark the child of a fork that is
/// delayed so long.
#[test]
fn a_fork_goes_on_while_another_one_is_held_up() {
    let _alone = alone();
    enter_all();
    let second = || assert!(!fork_is_consistent(), "the child is marked");
    let unmarked = Step::new().run(|_| AFTER.delays(second, fork_is_consistent));
    assert_eq!(unmarked, Ok(()), "no thread was in a section");
}

/// Tests the mark of a child process as inconsistent, which a child gets if its fork reached the
/// limit of its wait. Children of a marked child are marked as well, and the forks of a marked
/// child do not wait for other threads.
#[test]
fn a_marked_child_is_notified_and_its_children_are_marked() {
    let _alone = alone();
    static NOTICES: AtomicU32 = AtomicU32::new(0);
    static NOTICE: fn() = || _ = NOTICES.fetch_add(1, SeqCst);
    when_inconsistent(&NOTICE);
    enter_all();
    let child = |_: &AtomicU32| {
        let grandchild = Step::new().run(|_| is_inconsistent() && NOTICES.load(SeqCst) == 1);
        is_inconsistent() && NOTICES.load(SeqCst) == 1 && grandchild.is_ok()
    };
    let step = Step::new();
    let forked = || AFTER.delays(|| drop(section()), || step.run(child));
    assert_eq!(forked(), Ok(()));
    assert_eq!((NOTICES.load(SeqCst), step.run(|_| NOTICES.load(SeqCst) == 0)), (0, Ok(())));
}

/// Tests that forked children are not marked as inconsistent because a machine is busy: more
/// threads want a processor than there are processors. Half of the threads are in fork sections
/// most of the time, three of them by a spin lock, and the other half never are. A child takes the
/// spin lock.
#[test]
fn forks_among_spinning_threads_are_not_marked() {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for n in 0..10 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    let _section = (n % 2 == 0 && n > 2).then(section);
                    let _locked = (n < 3).then(|| SPIN_LOCK.lock());
                    (0..100).for_each(|_| std::hint::spin_loop());
                }
            });
        }
        let marked = (0..200).filter(|_| !fork_is_consistent()).count();
        stop.store(true, SeqCst);
        assert_eq!(marked, 0);
    });
}
