//! Tests of fork sections, which are short pieces of work that a fork waits for, and of the locks
//! and values that use fork sections.

use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::time::Duration;

use ddtc::internal::process::{Awaited, Lazy, Mutex, Once, forks, section};

use crate::alone;
use crate::child::{HANG_TIMEOUT, Step};

/// Time for which a thread stays in a fork section while another thread forks. A fork that wrongly
/// does not wait for the section happens within this time, so that the test notices it. A fork that
/// waits does not depend on the length of the time.
const WHILE: Duration = Duration::from_millis(50);

#[test]
fn a_fork_waits_for_a_lock_and_finds_it_free() {
    let _alone = alone();
    let (halves, step) = (Mutex::new([0u32; 2]), Step::new());
    let (began, has_begun) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut halves = halves.lock();
            halves[0] = 1;
            began.send(()).unwrap();
            std::thread::sleep(WHILE);
            halves[1] = 1;
        });
        has_begun.recv_timeout(HANG_TIMEOUT).unwrap();
        let seen = step.run(|_| {
            let mut halves = halves.lock();
            let whole = *halves == [1; 2];
            halves[0] = 2;
            whole
        });
        assert_eq!(seen, Ok(()));
    });
    assert_eq!(*halves.lock(), [1; 2], "the child has its own");
}

#[test]
fn a_value_that_is_being_made_is_made_before_the_fork() {
    let _alone = alone();
    static LAZY: Lazy<u32> = Lazy::new(|| {
        std::thread::sleep(WHILE);
        7
    });
    let (once, step) = (Once::new(), Step::new());
    let (began, has_begun) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            once.get_or_init(|| {
                began.send(()).unwrap();
                *LAZY + 1
            })
        });
        has_begun.recv_timeout(HANG_TIMEOUT).unwrap();
        assert_eq!(step.run(|_| once.get() == Some(&8) && *LAZY == 7), Ok(()));
    });
}

/// Tests a value that one thread takes long to make. If another thread forks meanwhile, neither the
/// fork nor the child process waits for the value.
#[test]
fn a_child_makes_its_own_of_what_is_awaited() {
    let _alone = alone();
    let (value, step) = (Awaited::<u32>::new(), Step::new());
    let (began, has_begun) = channel();
    let (go, gone) = channel::<()>();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let gone = gone;
            *value.get_or_init(|| {
                began.send(()).unwrap();
                gone.recv().unwrap();
                1
            })
        });
        has_begun.recv_timeout(HANG_TIMEOUT).unwrap();
        let seen = step.run(|_| {
            // Another thread of the child makes the value first. The call after it, in this thread,
            // must return the same value.
            let other = std::thread::scope(|s| s.spawn(|| *value.get_or_init(|| 2)).join().unwrap());
            other == 2 && *value.get_or_init(|| 3) == 2
        });
        let second = scope.spawn(|| *value.get_or_init(|| 4));
        go.send(()).unwrap();
        assert_eq!(seen, Ok(()));
        assert_eq!((first.join().unwrap(), second.join().unwrap(), value.get()), (1, 1, Some(&1)));
    });
}

/// Tests a fork in the callback that makes a value. Both the parent and the child finish making it.
#[test]
fn whoever_makes_a_value_may_fork_meanwhile() {
    let _alone = alone();
    let (value, step) = (Awaited::<u32>::new(), Step::new());
    let made = value.get_or_init(|| {
        // The child process asks for the same value inside the callback.
        assert_eq!(step.run(|_| *value.get_or_init(|| 5) == 5), Ok(()));
        6
    });
    assert_eq!(*made, 6);
}

#[test]
fn a_panic_leaves_everything_usable() {
    let _alone = alone();
    let (awaited, once, mutex, step) = (Awaited::<u32>::new(), Once::new(), Mutex::new(1), Step::new());
    let panics = |f: &dyn Fn()| {
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err());
    };
    panics(&|| {
        awaited.get_or_init(|| panic!("of this test"));
    });
    panics(&|| {
        once.get_or_init(|| panic!("of this test"));
    });
    panics(&|| {
        let _guard = mutex.lock();
        panic!("of this test");
    });
    let usable = || *awaited.get_or_init(|| 1) + *once.get_or_init(|| 1) + *mutex.lock() == 3;
    assert_eq!(step.run(|_| usable()), Ok(()));
    assert!(usable());
}

/// Tests a fork inside a fork section, which a signal handler or an allocator may cause. Such a
/// fork does not wait for other threads, since they may wait for the section.
#[test]
fn a_fork_inside_a_section_does_not_wait() {
    let _alone = alone();
    let step = Step::new();
    let (began, has_begun) = channel();
    let (go, gone) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _section = section();
            began.send(()).unwrap();
            gone.recv().unwrap();
        });
        has_begun.recv_timeout(HANG_TIMEOUT).unwrap();
        let outer = section();
        let child = |_: &_| {
            drop(outer);
            // The threads of the parent that were in a section do not exist in the child, so a fork
            // of the child must not wait for them.
            drop(section());
            Step::new().run(|_| forks() >= 2).is_ok()
        };
        assert_eq!(step.run(child), Ok(()));
        go.send(()).unwrap();
    });
    // No thread is in a fork section any more, so this fork does not wait.
    assert_eq!(step.run(|_| true), Ok(()));
}

/// Tests that forks also wait for threads in sections if there are more threads than reader slots.
/// The threads run one after the other and at the same time, in the parent and in a child process.
#[test]
fn threads_without_a_reader_slot_are_waited_for() {
    let _alone = alone();
    const THREADS: usize = 300;
    let (sum, step) = (Mutex::new([0usize; 2]), Step::new());
    let run = |rounds: usize| {
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..rounds {
                        let mut sum = sum.lock();
                        sum[0] += 1;
                        std::thread::yield_now();
                        sum[1] += 1;
                    }
                });
            }
        });
    };
    (0..THREADS).for_each(|_| std::thread::scope(|s| drop(s.spawn(|| drop(section())))));
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| run(50));
        for _ in 0..100 {
            let whole = step.run(|_| {
                let sum = sum.lock();
                sum[0] == sum[1]
            });
            assert_eq!(whole, Ok(()));
        }
        busy.join().unwrap();
    });
    let child = |_: &_| {
        run(2);
        let sum = *sum.lock();
        sum[0] == sum[1] && Step::new().run(|_| true).is_ok()
    };
    assert_eq!(step.run(child), Ok(()));
}
