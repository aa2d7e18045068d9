//! Tests that compare the micro-kernels of the family `rows`, which gather and scatter blocks at
//! listed offsets, with their scalar reference.

use super::{
    AHEAD, FAR, LENGTHS, MAX_PREFETCHED_BLOCKS, MAX_UNSAMPLED_BLOCKS, PAGES, function, scalar_reference,
};
use crate::column::Column;
use crate::micro::testing::{Guarded, check, span};
use crate::micro::{Direction, Width};
use crate::target::Level;

/// Returns a table of `n` offsets from 0 to `room`, which are neither sorted nor consecutive. If
/// `wide` is true, a base is added to all offsets, so that the entries of the table need 8 bytes.
/// The base is returned too, and callers subtract it from the buffer's address.
fn column(n: usize, room: usize, wide: bool) -> (Column, i64) {
    let base = if wide { 1 << 33 } else { 0 };
    let column: Column = (0..n)
        .map(|i| base + if i == 1 { room as i64 } else { (i * 7919 % n * (room / n.max(1))) as i64 })
        .collect();
    if wide && n > 0 {
        assert!(matches!(column, Column::I64(_)));
    }
    (column, base)
}

#[test]
fn three_rows_by_hand() {
    let rows: Column = vec![6, 0, 3].into();
    for level in Level::available() {
        let mut user = *b"abcdefgh";
        let mut packed = [0; 6];
        // SAFETY: rows of 2 bytes at 0, 3 and 6 lie within 8 bytes; 6 bytes are packed.
        unsafe {
            let pack = function(2, Width::I32, Direction::Pack, level);
            pack(user.as_mut_ptr(), packed.as_mut_ptr(), 3, rows.as_ptr(), 2, 2);
        }
        assert_eq!(&packed, b"ghabde");
        packed = *b"123456";
        // SAFETY: rows of 2 bytes at 0, 3 and 6 lie within 8 bytes; 6 bytes are unpacked.
        unsafe {
            let unpack = function(2, Width::I32, Direction::Unpack, level);
            unpack(user.as_mut_ptr(), packed.as_mut_ptr(), 3, rows.as_ptr(), 2, 2);
        }
        assert_eq!(&user, b"34c56f12");
    }
}

#[test]
fn every_length_between_guard_pages() {
    let mut areas = (Guarded::new(100 << 10), Guarded::new(100 << 10));
    for level in Level::available() {
        for len in 0..=1024u64 {
            let l = len as i64;
            for (width, wide) in [(Width::I32, false), (Width::I64, true)] {
                for (n, gap) in [(0, 0), (1, 0), (2, 3), (7, 0), (9, 5), (17, 1)] {
                    if len > 130 && n > 7 {
                        // For lengths of more than 130 bytes there is only the loop that serves any
                        // length, and seven blocks suffice to test it.
                        continue;
                    }
                    let strides = [l, l + 5, -l, l / 2];
                    for &stride in if len > 130 { &strides[..1 + len as usize % 2] } else { &strides[..] } {
                        let room = n as usize * (len + gap) as usize;
                        let (column, base) = column(n as usize, room, wide);
                        let user_len = room + len as usize;
                        let (packed_len, p) = span(n, stride, len);
                        let what = |d: Direction| {
                            move || format!("{d} {level} {width}: {n} rows of {len}, packed by {stride}")
                        };
                        let rows = column.as_ptr();
                        let pack = function(len, width, Direction::Pack, level);
                        let places = |user: *mut u8, packed: *mut u8| {
                            (user.wrapping_offset(-base as isize), packed.wrapping_add(p))
                        };
                        check(
                            &mut areas,
                            (packed_len, user_len),
                            |packed, user| {
                                let (user, packed) = places(user, packed);
                                // SAFETY: both areas contain all blocks, and the column has `n`
                                // entries of this width.
                                unsafe { pack(user, packed, n, rows, stride, len) }
                            },
                            |packed, user| {
                                // SAFETY: both areas contain all blocks, and the column has `n`
                                // entries of this width.
                                unsafe {
                                    scalar_reference(
                                        Direction::Pack,
                                        width,
                                        places(user, packed),
                                        n,
                                        rows,
                                        stride,
                                        len,
                                    )
                                }
                            },
                            what(Direction::Pack),
                        );
                        let unpack = function(len, width, Direction::Unpack, level);
                        check(
                            &mut areas,
                            (user_len, packed_len),
                            |user, packed| {
                                let (user, packed) = places(user, packed);
                                // SAFETY: both areas contain all blocks, and the column has `n`
                                // entries of this width.
                                unsafe { unpack(user, packed, n, rows, stride, len) }
                            },
                            |user, packed| {
                                // SAFETY: both areas contain all blocks, and the column has `n`
                                // entries of this width.
                                unsafe {
                                    scalar_reference(
                                        Direction::Unpack,
                                        width,
                                        places(user, packed),
                                        n,
                                        rows,
                                        stride,
                                        len,
                                    )
                                }
                            },
                            what(Direction::Unpack),
                        );
                    }
                }
            }
        }
    }
}

/// Compares packing and unpacking with the scalar reference, for blocks of `len` bytes at the user
/// offsets `rows`. On the packed side, the blocks follow each other directly from byte `phase` on.
fn check_dense(areas: &mut (Guarded, Guarded), rows: &Column, len: u64, phase: usize, level: Level) {
    let (n, width) = (rows.len(), Width::from_column(rows));
    let user_len = (0..n).map(|i| rows.get(i) as usize).max().unwrap_or(0) + len as usize;
    let packed_len = phase + n * len as usize;
    for direction in Direction::BOTH {
        let (dst_len, src_len, pack) = match direction {
            Direction::Pack => (packed_len, user_len, true),
            Direction::Unpack => (user_len, packed_len, false),
        };
        let sides = |dst: *mut u8, src: *mut u8| if pack { (src, dst) } else { (dst, src) };
        let f = function(len, width, direction, level);
        check(
            areas,
            (dst_len, src_len),
            |dst, src| {
                let (user, packed) = sides(dst, src);
                // SAFETY: both areas contain all blocks, and the column has `n` entries of this
                // width.
                unsafe { f(user, packed.wrapping_add(phase), n as u64, rows.as_ptr(), len as i64, len) }
            },
            |dst, src| {
                let (user, packed) = sides(dst, src);
                let sides = (user, packed.wrapping_add(phase));
                // SAFETY: both areas contain all blocks, and the column has `n` entries of this
                // width.
                unsafe { scalar_reference(direction, width, sides, n as u64, rows.as_ptr(), len as i64, len) }
            },
            || format!("{direction} {level} {width}: {n} rows of {len} from byte {phase} on"),
        );
    }
}

#[test]
fn every_phase_of_the_packed_side() {
    let mut areas = (Guarded::new(16 << 10), Guarded::new(16 << 10));
    for level in Level::available() {
        for &len in LENGTHS {
            for n in [3, 8, 9, 19] {
                let (rows, _) = column(n, n * (usize::from(len) + 3), false);
                for phase in 0..=64 {
                    check_dense(&mut areas, &rows, u64::from(len), phase, level);
                }
            }
        }
    }
}

#[test]
fn far_rows_in_any_order() {
    let mut areas = (Guarded::new(FAR + (64 << 10)), Guarded::new(FAR + (64 << 10)));
    for level in Level::available() {
        for (len, n) in [
            (4, MAX_UNSAMPLED_BLOCKS + 1),
            (8, 20 * AHEAD),
            (24, 17 * AHEAD - 1),
            (64, 17 * AHEAD + 1),
            (77, 600),
            (12, PAGES + 5),
            (8, MAX_PREFETCHED_BLOCKS + 3),
        ] {
            // Some offsets occur twice, so that the test notices if blocks are moved in a wrong
            // order.
            let near = |i: usize| (i * 7919 % (n - 20) * (FAR / n)) as i64;
            let rows: Vec<i64> = (0..n)
                .map(|i| {
                    if i == 0 {
                        0
                    } else if i == n - 1 {
                        FAR as i64
                    } else {
                        near(i)
                    }
                })
                .collect();
            check_dense(&mut areas, &rows.into(), len, 0, level);
        }
    }
}

#[test]
fn the_last_of_overlapping_rows_wins() {
    let rows: Column = vec![0, 4, 2, 2].into();
    for level in Level::available() {
        let mut user = [0; 12];
        let mut packed: Vec<u8> = (1..=32).collect();
        // SAFETY: rows of 8 bytes at offsets up to 4 lie within 12 bytes; 32 bytes are unpacked.
        unsafe {
            let unpack = function(8, Width::I32, Direction::Unpack, level);
            unpack(user.as_mut_ptr(), packed.as_mut_ptr(), 4, rows.as_ptr(), 8, 8);
        }
        assert_eq!(user, [1, 2, 25, 26, 27, 28, 29, 30, 31, 32, 15, 16], "{level}");
    }
}

#[test]
fn names() {
    let micro = super::micro(24, Width::I32, Direction::Pack, Level::Baseline);
    assert_eq!(micro.to_string(), "rows<24>.i32.pack.baseline");
    let micro = super::micro(25, Width::I64, Direction::Unpack, Level::Baseline);
    assert_eq!(micro.to_string(), "rows.i64.unpack.baseline");
    assert_eq!(micro.address(), function(25, Width::I64, Direction::Unpack, Level::Baseline) as usize);
}
