//! Micro-kernels for blocks of irregular lengths and offsets, compared with the scalar reference.

use std::sync::Arc;

use super::{Widths, function, scalar_reference};
use crate::column::Column;
use crate::micro::testing::{Guarded, check};
use crate::micro::{Direction, Width};
use crate::target::Level;

#[test]
fn blocks_by_hand() {
    let (users, packeds, lens): (Column, Column, Column) =
        (vec![5, 0].into(), vec![0, 3].into(), vec![3, 2].into());
    let widths = Widths { user: Width::I32, packed: Width::I32, len: Width::I32 };
    for level in Level::available() {
        let mut user = *b"abcdefgh";
        let mut packed = [0; 5];
        let columns = [&users, &packeds, &lens].map(Column::as_ptr);
        // SAFETY: 3 bytes at 5 and 2 bytes at 0 lie within the 8 bytes of the user's buffer, and 5
        // bytes are packed.
        unsafe {
            let pack = function(widths, Direction::Pack, level);
            pack(user.as_mut_ptr(), packed.as_mut_ptr(), 2, columns[0], columns[1], columns[2]);
        }
        assert_eq!(&packed, b"fghab");
    }
}

/// Blocks of a test, which follow each other with gaps in user memory and are packed without gaps
/// in the reverse order of their addresses.
struct Layout {
    columns: [Column; 3],
    bases: [i64; 2],
    widths: Widths,
    user_len: usize,
    packed_len: usize,
    n: u64,
}

fn layout(lens: &[u64], wide: [bool; 3]) -> Layout {
    let base = |wide| if wide { 1i64 << 34 } else { 0 };
    let mut user_len = 0;
    let mut users = Vec::new();
    for (i, &len) in lens.iter().enumerate() {
        users.push(base(wide[0]) + user_len as i64);
        user_len += len as usize + if i + 1 < lens.len() { i % 9 } else { 0 };
    }
    users.reverse();
    let lens: Vec<u64> = lens.iter().rev().copied().collect();
    let mut packed_len = 0;
    let mut packeds = Vec::new();
    for &len in &lens {
        packeds.push(base(wide[1]) + packed_len as i64);
        packed_len += len as usize;
    }
    let lens = lens.iter().map(|&l| l as i64);
    // All lengths of this test fit into entries of 4 bytes, but a column of lengths may also have
    // entries of 8 bytes.
    let lens = if wide[2] { Column::I64(Arc::new(lens.collect())) } else { lens.collect() };
    let n = users.len() as u64;
    let columns = [users.into(), packeds.into(), lens];
    let [user, packed, len] = [0, 1, 2].map(|i| Width::from_column(&columns[i]));
    let bases = [0, 1].map(|i| base(wide[i]));
    Layout { columns, bases, widths: Widths { user, packed, len }, user_len, packed_len, n }
}

fn check_layout(areas: &mut (Guarded, Guarded), layout: &Layout, level: Level) {
    let Layout { columns, bases, widths, user_len, packed_len, n } = layout;
    let columns = [0, 1, 2].map(|i| columns[i].as_ptr());
    let places = |user: *mut u8, packed: *mut u8| {
        (user.wrapping_offset(-bases[0] as isize), packed.wrapping_offset(-bases[1] as isize))
    };
    for direction in [Direction::Pack, Direction::Unpack] {
        let f = function(*widths, direction, level);
        let order = |dst: *mut u8, src: *mut u8| match direction {
            Direction::Pack => places(src, dst),
            Direction::Unpack => places(dst, src),
        };
        let lens = match direction {
            Direction::Pack => (*packed_len, *user_len),
            Direction::Unpack => (*user_len, *packed_len),
        };
        check(
            areas,
            lens,
            |dst, src| {
                let (user, packed) = order(dst, src);
                // SAFETY: both areas contain all blocks, and the columns have `n` entries of these
                // widths.
                unsafe { f(user, packed, *n, columns[0], columns[1], columns[2]) }
            },
            |dst, src| {
                // SAFETY: both areas contain all blocks, and the columns have `n` entries of these
                // widths.
                unsafe { scalar_reference(direction, *widths, order(dst, src), *n, columns) }
            },
            || format!("{direction} {level} {widths:?}: {n} blocks"),
        );
    }
}

#[test]
fn every_length_between_guard_pages() {
    let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
    for level in Level::available() {
        for len in 0..=1024 {
            for lens in [&[len][..], &[len, 1, len], &[3, len, 0, 2 * len / 3, 17]] {
                check_layout(&mut areas, &layout(lens, [false; 3]), level);
            }
        }
    }
}

#[test]
fn long_lists_between_guard_pages() {
    let mut areas = (Guarded::new(300 << 10), Guarded::new(300 << 10));
    for level in Level::available() {
        for last in 0..=70 {
            let lens: Vec<u64> = (0..5000).map(|i| if i == 0 { last } else { (i + last) % 71 }).collect();
            check_layout(&mut areas, &layout(&lens, [false, last % 3 == 1, last % 5 == 1]), level);
        }
    }
}

#[test]
fn every_combination_of_widths() {
    let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
    let lens: Vec<u64> = (0..150).map(|i| i * 37 % 90).collect();
    for level in Level::available() {
        for bits in 0..8 {
            let layout = layout(&lens, [0, 1, 2].map(|b| bits >> b & 1 == 1));
            assert_eq!(layout.widths.packed == Width::I64, bits & 2 != 0);
            check_layout(&mut areas, &layout, level);
        }
    }
}

#[test]
fn names() {
    let widths = Widths { user: Width::I64, packed: Width::I32, len: Width::I32 };
    let micro = super::micro(widths, Direction::Unpack, Level::Baseline);
    assert_eq!(micro.to_string(), "blocks.i64.i32.i32.unpack.baseline");
    // The variant number of a micro-kernel encodes the widths of all three columns.
    for [user, packed, len] in (0..8).map(|bits| [0, 1, 2].map(|b| Width::of_number(bits >> b))) {
        let widths = Widths { user, packed, len };
        assert_eq!(Widths::of_number(widths.number()), widths);
        let micro = super::micro(widths, Direction::Unpack, Level::Baseline);
        assert_eq!(micro.address(), function(widths, Direction::Unpack, Level::Baseline) as usize);
    }
}
