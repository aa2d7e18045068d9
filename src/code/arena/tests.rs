//! Tests of the arena: reuse of slots, limits, and both sources of memory.

use super::{Arena, LINE, Usage, size_class};
use crate::error::ErrorClass;

/// Returns an arena for each source of memory, with the name of the source.
fn sources(limit: usize) -> [(&'static str, Arena); 2] {
    [("memfd", Arena::new(limit)), ("pages", Arena::without_memfd(limit))]
}

#[test]
fn classes_are_coarse_and_large_enough() {
    for len in 1..100_000 {
        let size = size_class(len, LINE);
        assert!(
            size >= len && size.is_multiple_of(LINE) && size_class(size, LINE) == size,
            "{len} -> {size}"
        );
        assert!(size < len + LINE || size * 4 <= len * 5 + 4 * LINE, "{len} -> {size}");
    }
}

#[test]
fn a_written_slot_reads_back_and_is_reused() {
    for (name, arena) in sources(1 << 20) {
        let mut draft = arena.allocate(100, 16).unwrap();
        draft.write(&[7; 100]);
        let slot = draft.seal().unwrap();
        assert_eq!(slot.code(), [7; 100], "{name}");
        let first = slot.address();
        let other = arena.allocate(100, 16).unwrap().seal().unwrap();
        assert_ne!(other.address(), first);
        drop(slot);
        assert_eq!(arena.usage().live, 1);
        if name == "memfd" {
            assert_eq!(
                arena.allocate(70, 16).unwrap().seal().unwrap().address(),
                first,
                "same class, same slot"
            );
        }
    }
}

#[test]
fn the_limit_is_an_error_and_freeing_helps() {
    for (name, arena) in sources(16 << 10) {
        let mut slots = Vec::new();
        let error = loop {
            match arena.allocate(4000, 64) {
                Ok(draft) => slots.push(draft),
                Err(e) => break e,
            }
        };
        assert_eq!((error.class(), error.argument()), (ErrorClass::NoMem, "limit"), "{name}");
        assert!(arena.usage().charged <= 16 << 10);
        slots.pop();
        assert!(arena.allocate(4000, 64).is_ok(), "{name}");
    }
}

#[test]
fn wrong_requests_are_errors() {
    let arena = Arena::new(1 << 20);
    assert_eq!(arena.allocate(0, 16).unwrap_err().argument(), "len");
    assert_eq!(arena.allocate(usize::MAX, 16).unwrap_err().argument(), "len");
    assert_eq!(arena.allocate(8, 3).unwrap_err().argument(), "alignment");
    assert_eq!(arena.allocate(8, 8192).unwrap_err().argument(), "alignment");
    assert_eq!(arena.usage(), Usage::default());
}

#[test]
fn alignment_is_kept() {
    for (name, arena) in sources(4 << 20) {
        let mut keep = Vec::new();
        for alignment in [1, 16, 64, 128, 1024, 4096] {
            for _ in 0..3 {
                keep.push(arena.allocate(10, 16).unwrap().seal().unwrap());
                let slot = arena.allocate(200, alignment).unwrap().seal().unwrap();
                assert_eq!(slot.address().as_ptr() as u64 % alignment, 0, "{name} {alignment}");
            }
        }
    }
}

#[test]
fn no_page_is_writable_and_executable() {
    /// Returns the permissions of the mapping that contains `address`.
    fn permissions(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| {
            let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            let [from, to] = [from, to].map(|a| usize::from_str_radix(a, 16).unwrap());
            (from..to).contains(&address)
        });
        line.unwrap().split(' ').nth(1).unwrap().to_owned()
    }
    for (name, arena) in sources(1 << 20) {
        let mut draft = arena.allocate(1000, 64).unwrap();
        draft.write(&[0xc3; 1000]);
        let write = draft.as_mut_ptr() as usize;
        assert!(permissions(write).starts_with("rw-"), "{name} while written");
        let slot = draft.seal().unwrap();
        let execute = slot.address().as_ptr() as usize;
        assert!(permissions(execute).starts_with("r-x"), "{name} once sealed");
        assert_eq!(write == execute, name == "pages");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.lines().any(|line| line.split(' ').nth(1).unwrap().starts_with("rwx")), "{name}");
    }
}

#[test]
fn nothing_grows_over_200_000_slots() {
    for (name, arena) in sources(1 << 20) {
        // Without a memfd, each slot takes several system calls, so this test makes fewer rounds
        // then.
        let rounds = if name == "memfd" { 200_000 } else { 20_000 };
        let mut ring: Vec<_> = (0..16).map(|_| None).collect();
        let mut settled = None;
        for i in 0..rounds {
            ring[i % 16] = None;
            ring[i % 16] = Some(arena.allocate(64 + i * 37 % 700, 16).unwrap().seal().unwrap());
            if i == 5_000 {
                settled = Some(arena.usage());
            }
        }
        let (settled, now) = (settled.unwrap(), arena.usage());
        assert_eq!((settled.live, settled.segments), (now.live, now.segments), "{name}");
        if name == "memfd" {
            assert_eq!(settled.charged, now.charged);
        }
        drop(ring);
        assert_eq!(arena.usage().live, 0);
    }
}

#[test]
fn threads_never_share_a_slot() {
    for (name, arena) in sources(8 << 20) {
        std::thread::scope(|scope| {
            for t in 0..4u8 {
                let arena = arena.clone();
                scope.spawn(move || {
                    let mut kept = std::collections::VecDeque::new();
                    for i in 0..2_000usize {
                        let mut draft = arena.allocate(1 + i * 131 % 3000, 16).unwrap();
                        let bytes = vec![t.wrapping_mul(64).wrapping_add(i as u8); 1 + i * 131 % 3000];
                        draft.write(&bytes);
                        kept.push_back((draft.seal().unwrap(), bytes));
                        if kept.len() > 20 {
                            let (slot, bytes) = kept.pop_front().unwrap();
                            assert!(slot.code() == bytes, "{name}");
                        }
                    }
                });
            }
        });
        assert_eq!(arena.usage().live, 0);
    }
}

#[test]
fn a_slot_outlives_the_arena_that_made_it() {
    for (_, arena) in sources(1 << 20) {
        let mut draft = arena.allocate(64, 16).unwrap();
        draft.write(&[9; 64]);
        let slot = draft.seal().unwrap();
        drop(arena);
        assert_eq!(slot.code(), [9; 64]);
    }
}

#[test]
fn large_slots_have_segments_of_their_own_size() {
    let arena = Arena::new(64 << 20);
    let slot = arena.allocate(5 << 20, 64).unwrap().seal().unwrap();
    assert_eq!(slot.code().len(), 5 << 20);
    assert!(arena.allocate(60 << 20, 64).is_err());
}
