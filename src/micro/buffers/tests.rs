//! Tests of the methods of `Buffers`: each method moves exactly the blocks that its arguments
//! describe, in both directions.

use super::values::STAGE;
use super::{Buffers, Element, Handed};
use crate::column::Column;
use crate::datatype::Named;
use crate::micro::Direction;
use crate::micro::testing::{Guarded, fill};
use crate::nest::{Leaf, Offsets, Value};
use crate::target::Level;

/// Runs `f` on a handle on a user buffer of 2 KiB and a packed buffer of 1 KiB, and returns the
/// contents of both buffers afterwards.
fn run(direction: Direction, level: Level, f: impl Fn(&Buffers)) -> (Vec<u8>, Vec<u8>) {
    let (mut user, mut packed) = (vec![0; 2048], vec![0; 1024]);
    fill(&mut user, 1);
    fill(&mut packed, 100);
    // SAFETY: the tests move blocks within the 2048 and 1024 bytes, which do not overlap, and
    // `level` is available.
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
            // SAFETY: the block of `len` bytes that is moved below is readable on the user side and
            // writable on the packed side. Every machine runs the baseline.
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

/// If the values in the buffers lack the alignment that the caller's function needs,
/// [`Buffers::hand_on`] passes copies of the values to this function: each value once, in order,
/// and nothing else.
#[test]
fn values_are_handed_on_once() {
    let value = Value::native(Named::Double);
    let n = 2 * STAGE / 8 + 5;
    let (mut user, mut packed) = (vec![0_u8; 8 * n + 9], vec![0_u8; 8 * n + 9]);
    fill(&mut user, 1);
    fill(&mut packed, 100);
    // At most one of the two sides, user memory and packed memory, is aligned to the 8 bytes of a
    // value.
    let (user_at, packed_at) = (1 + user.as_ptr().align_offset(8), packed.as_ptr().align_offset(8));
    let (before, want) = (user.clone(), packed[packed_at..packed_at + 8 * n].to_vec());
    let (mut handed, mut calls) = (Vec::new(), 0);
    let mut f = |new: *const u8, old: *mut u8, k: u64| {
        // SAFETY: the function gets `k` values of 8 bytes on both sides.
        let (new, old) = unsafe {
            (
                std::slice::from_raw_parts(new, 8 * k as usize),
                std::slice::from_raw_parts_mut(old, 8 * k as usize),
            )
        };
        assert_eq!(*old, before[user_at + handed.len()..][..old.len()]);
        handed.extend_from_slice(new);
        old.copy_from_slice(new);
        calls += 1;
    };
    // SAFETY: `n` values lie on both sides, and every machine runs the baseline.
    let memory = unsafe {
        Buffers::new(
            user[user_at..].as_mut_ptr(),
            packed[packed_at..].as_mut_ptr(),
            Direction::Unpack,
            Level::Baseline,
        )
    };
    let run = Handed { value, at: Offsets::ZERO, n: 1, step: Offsets::ZERO, units: n as u64 };
    memory.hand_on(&run, Element { extent: 8, alignment: 8 }, &mut f);
    assert!(handed == want && calls == 3, "{} bytes in {calls} calls", handed.len());
    assert!(
        user[user_at..user_at + 8 * n] == want[..] && user[user_at + 8 * n..] == before[user_at + 8 * n..]
    );
}

/// A pair is a value and an index. In user memory, padding precedes the index. The packed stream
/// does not have this padding, and the padding in user memory is not written.
#[test]
fn pairs_are_handed_on_with_their_padding() {
    let value = Value::native(Named::ShortInt);
    assert_eq!((value.user(), value.packed()), (8, 6));
    let mut user: Vec<u8> = (0..24).collect();
    let mut packed: Vec<u8> = (100..118).collect();
    let mut f = |new: *const u8, old: *mut u8, k: u64| {
        // SAFETY: the function gets `k` pairs of 8 bytes on both sides.
        let (new, old) = unsafe {
            (
                std::slice::from_raw_parts(new, 8 * k as usize),
                std::slice::from_raw_parts_mut(old, 8 * k as usize),
            )
        };
        assert_eq!(*old, *(0..24).collect::<Vec<u8>>());
        for (i, pair) in new.chunks_exact(8).enumerate() {
            let first = 100 + 6 * i as u8;
            assert_eq!((pair[0], pair[1]), (first, first + 1));
            assert_eq!(pair[4..], [first + 2, first + 3, first + 4, first + 5]);
        }
        old.fill(0xee);
    };
    // SAFETY: three pairs lie on both sides, and every machine runs the baseline.
    let memory =
        unsafe { Buffers::new(user.as_mut_ptr(), packed.as_mut_ptr(), Direction::Unpack, Level::Baseline) };
    let run = Handed { value, at: Offsets::ZERO, n: 1, step: Offsets::ZERO, units: 3 };
    memory.hand_on(&run, Element { extent: 8, alignment: 4 }, &mut f);
    for (i, pair) in user.chunks_exact(8).enumerate() {
        let padding = 8 * i as u8 + 2;
        assert_eq!(*pair, [0xee, 0xee, padding, padding + 1, 0xee, 0xee, 0xee, 0xee]);
    }
}
