//! Tests of the arena, which holds executable memory, across `fork`. A fork seals all arenas of its
//! process, so that parent and child can no longer change each other's code.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use ddtc::internal::code::arena::{Arena, Slot};

use crate::alone;
use crate::child::{fork, wait};

fn slot(arena: &Arena, value: u8) -> Slot {
    let mut draft = arena.allocate(200, 16).unwrap();
    draft.write(&[value; 200]);
    draft.seal().unwrap()
}

/// One end of a connection between parent and child, by which both proceed in lockstep.
struct Turns(OwnedFd);

fn turns() -> (Turns, Turns) {
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    (Turns(a.into()), Turns(b.into()))
}

impl Turns {
    /// Waits until the process at the other end of the connection has also called `meet`.
    fn meet(&self) {
        let mut byte = [0u8];
        // SAFETY: `byte` is one byte that is valid for reads and writes, and each of the two calls
        // transfers one byte.
        unsafe {
            assert_eq!(libc::write(self.0.as_raw_fd(), byte.as_ptr().cast(), 1), 1);
            assert_eq!(libc::read(self.0.as_raw_fd(), byte.as_mut_ptr().cast(), 1), 1);
        }
    }
}

/// Runs what both parent and child do after the fork: the function writes code into the arena,
/// checks it, frees it, writes code again and checks it again. Returns the number of the first
/// check that fails, or 0.
fn one_side(turns: &Turns, arena: &Arena, old: Slot, dropped: Slot, value: u8) -> u8 {
    let new = slot(arena, value);
    turns.meet();
    if old.code() != [1; 200] || dropped.code() != [2; 200] {
        return 1;
    }
    if new.code() != [value; 200] {
        return 2;
    }
    turns.meet();
    drop(dropped);
    let again = slot(arena, value + 1);
    turns.meet();
    if old.code() != [1; 200] || new.code() != [value; 200] || again.code() != [value + 1; 200] {
        return 3;
    }
    drop(old);
    drop(new);
    let last = slot(arena, value + 2);
    turns.meet();
    if again.code() != [value + 1; 200] || last.code() != [value + 2; 200] { 4 } else { 0 }
}

#[test]
fn both_sides_compile_and_free() {
    let _alone = alone();
    for arena in [Arena::new(1 << 20), Arena::without_memfd(1 << 20)] {
        let (old, dropped, spare) = (slot(&arena, 1), slot(&arena, 2), slot(&arena, 3));
        // A slot that is free at the time of the fork must not be handed out again, in neither
        // process.
        drop(spare);
        let (parents, childs) = turns();
        // The child has copies of the slots `old` and `dropped`. Each process drops its own copies.
        let (mut parent_slots, mut child_slots) = (None, Some((old, dropped)));
        let pid = fork(|| {
            let (old, dropped) = child_slots.take().unwrap();
            one_side(&childs, &arena, old, dropped, 100)
        });
        std::mem::swap(&mut parent_slots, &mut child_slots);
        let (old, dropped) = parent_slots.unwrap();
        let fault = one_side(&parents, &arena, old, dropped, 200);
        assert_eq!((fault, wait(pid)), (0, 0), "(parent, child)");
        assert_eq!(arena.usage().live, 0);
    }
}

#[test]
fn a_child_of_a_child_too() {
    let _alone = alone();
    let arena = Arena::new(1 << 20);
    let old = slot(&arena, 1);
    let pid = fork(|| {
        let mine = slot(&arena, 2);
        let pid = fork(|| {
            let own = slot(&arena, 3);
            u8::from(old.code() != [1; 200] || mine.code() != [2; 200] || own.code() != [3; 200])
        });
        let other = slot(&arena, 4);
        u8::from(
            wait(pid) != 0
                || mine.code() != [2; 200]
                || other.code() != [4; 200]
                || arena.usage().sealed != 2,
        )
    });
    assert_eq!(wait(pid), 0);
    assert_eq!(old.code(), [1; 200]);
}

#[test]
fn a_fork_amid_busy_threads_leaves_no_lock_behind() {
    let _alone = alone();
    let arena = Arena::new(16 << 20);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(slot(&arena, 5));
                }
            });
        }
        let statuses: Vec<i32> = (0..100)
            .map(|_| {
                wait(fork(|| {
                    let own = slot(&arena, 6);
                    u8::from(own.code() != [6; 200])
                }))
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [0; 100]);
    });
    assert_eq!(arena.usage().live, 0);
}

#[test]
fn a_process_that_forks_often_does_not_grow() {
    let _alone = alone();
    let arena = Arena::new(1 << 20);
    let kept = slot(&arena, 7);
    for _ in 0..100 {
        let one = slot(&arena, 8);
        assert_eq!(wait(fork(|| 0)), 0);
        drop(one);
        drop(slot(&arena, 9));
    }
    let usage = arena.usage();
    assert_eq!((usage.live, usage.sealed), (1, 1), "{usage:?}");
    assert!(usage.segments == 2 && usage.charged <= 1024, "{usage:?}");
    assert_eq!(kept.code(), [7; 200]);
}
