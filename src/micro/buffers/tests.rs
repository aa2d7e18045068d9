//! The handle moves the blocks that it is told to, both ways.

use super::Buffers;
use crate::column::Column;
use crate::micro::Direction;
use crate::micro::testing::{Guarded, fill};
use crate::target::Level;

/// Runs `f` on 2 KiB of user memory and 1 KiB of packed memory and returns both.
fn run(direction: Direction, level: Level, f: impl Fn(&Buffers)) -> (Vec<u8>, Vec<u8>) {
    let (mut user, mut packed) = (vec![0; 2048], vec![0; 1024]);
    fill(&mut user, 1);
    fill(&mut packed, 100);
    // SAFETY: the tests move blocks within the first 2048 and 1024 bytes.
    f(&unsafe { Buffers::new(user.as_mut_ptr(), packed.as_mut_ptr(), direction, level) });
    (user, packed)
}

#[test]
fn all_methods_agree_with_copies() {
    let rows: Column = vec![9, 40, 0, 30, 1000].into();
    let packeds: Column = vec![0, 100, 7, 50, 200].into();
    let lens: Column = vec![0, 90, 20, 8, 3].into();
    for direction in [Direction::Pack, Direction::Unpack] {
        for level in Level::available() {
            let same = |f: &dyn Fn(&Buffers), g: &dyn Fn(&Buffers)| {
                assert_eq!(run(direction, level, f), run(direction, level, g), "{direction} {level}");
            };
            same(&|m| m.strided(500, 3, 5, (-100, 9), 7), &|m| {
                (0..5).for_each(|i| m.copy(500 - 100 * i, 3 + 9 * i, 7));
            });
            same(&|m| m.rows(4, 10, (&rows, 1, 4), 24, 24), &|m| {
                (1..5).for_each(|i| m.copy(4 + rows.get(i), 10 + 24 * (i as i64 - 1), 24));
            });
            same(&|m| m.blocks(2, 1, [&rows, &packeds, &lens], (0, 5)), &|m| {
                (0..5).for_each(|i| m.copy(2 + rows.get(i), 1 + packeds.get(i), lens.get(i) as u64));
            });
        }
    }
}

#[test]
fn copies_of_every_length_between_guard_pages() {
    let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
    for len in 0..=1024 {
        for back in [false, true] {
            let user = areas.0.edge(back, len);
            fill(user, 5);
            let expected = user.to_vec();
            let packed = areas.1.edge(back, len);
            packed.fill(0);
            // SAFETY: one block of `len` bytes on either side.
            let memory = unsafe {
                Buffers::new(user.as_mut_ptr(), packed.as_mut_ptr(), Direction::Pack, Level::Baseline)
            };
            memory.copy(0, 0, len as u64);
            assert!(packed == expected, "{len}");
        }
    }
}

#[test]
#[should_panic(expected = "beyond the end")]
fn rows_past_the_column_are_refused() {
    let rows: Column = vec![0, 8].into();
    run(Direction::Pack, Level::Baseline, |m| m.rows(0, 0, (&rows, 1, 2), 8, 8));
}
