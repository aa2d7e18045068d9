//! Tests that compare the micro-kernels of the family `transpose` with their scalar reference.

use super::{LENGTHS, Strides, function, scalar_reference};
use crate::kind::Direction;
use crate::micro::testing::{Guarded, check};
use crate::target::Level;

/// Returns the number of bytes that a matrix of `rows` by `cols` elements spans, and the offset of
/// element (0, 0) in these bytes. The strides `row` and `col` may have either sign.
fn extent((rows, row): (u64, i64), (cols, col): (u64, i64), len: u64) -> (usize, usize) {
    if rows == 0 || cols == 0 {
        return (0, 0);
    }
    let reach = |n: u64, s: i64| (n - 1) as usize * s.unsigned_abs() as usize;
    let before = |n: u64, s: i64| if s < 0 { reach(n, s) } else { 0 };
    (reach(rows, row) + reach(cols, col) + len as usize, before(rows, row) + before(cols, col))
}

fn check_one(areas: &mut (Guarded, Guarded), (rows, cols): (u64, u64), s: Strides, len: u64, level: Level) {
    let f = function(len, level).unwrap();
    let (dst_len, d) = extent((cols, s.dst_row), (rows, s.dst_step), len);
    let (src_len, p) = extent((rows, s.src_row), (cols, s.src_step), len);
    check(
        areas,
        (dst_len, src_len),
        |dst, src| {
            let (dst, src) = (dst.wrapping_add(d), src.wrapping_add(p));
            // SAFETY: both areas contain all elements at these strides.
            unsafe { f(dst, src, rows, cols, s.dst_row, s.src_row, s.dst_step, s.src_step) }
        },
        // SAFETY: both areas contain all elements at these strides.
        |dst, src| unsafe {
            scalar_reference(dst.wrapping_add(d), src.wrapping_add(p), (rows, cols), s, len)
        },
        || format!("{level}: {rows} x {cols} of {len}, {s:?}"),
    );
}

#[test]
fn two_by_three_by_hand() {
    for level in Level::available() {
        let src = *b"abcdef";
        let mut dst = *b"......";
        // SAFETY: two rows of three bytes become three rows of two, within the 6 bytes of both
        // sides.
        unsafe { function(1, level).unwrap()(dst.as_mut_ptr(), src.as_ptr(), 2, 3, 2, 3, 1, 1) };
        assert_eq!(&dst, b"adbecf");
    }
}

#[test]
fn every_shape_between_guard_pages() {
    let mut areas = (Guarded::new(600 << 10), Guarded::new(600 << 10));
    for level in Level::available() {
        for &len in LENGTHS {
            let (len, l) = (u64::from(len), i64::from(len));
            let small = (0..=17).flat_map(|rows| (0..=17).map(move |cols| (rows, cols)));
            for (rows, cols) in small.chain([(70, 33), (33, 70), (64, 64), (65, 129), (33, 130), (130, 33)]) {
                if rows * cols * len > 70_000 {
                    continue;
                }
                let (r, c) = (rows as i64, cols as i64);
                let dense = Strides { dst_row: r * l, src_row: c * l, dst_step: l, src_step: l };
                let gaps = Strides { dst_row: r * l + 3, src_row: c * l + 40, ..dense };
                let back = Strides { dst_row: -r * l - 5, src_row: -c * l, ..dense };
                let steps =
                    Strides { dst_row: r * (l + 1), src_row: c * 2 * l, dst_step: l + 1, src_step: 2 * l };
                let inward = Strides { dst_step: -l, src_step: -l, ..dense };
                let repeated = Strides { src_row: 0, ..dense };
                for s in [dense, gaps, back, steps, inward, repeated] {
                    check_one(&mut areas, (rows, cols), s, len, level);
                }
            }
        }
    }
}

#[test]
fn names() {
    assert_eq!(
        super::micro(16, Direction::Pack, Level::Baseline).unwrap().to_string(),
        "transpose<16>.baseline"
    );
    assert!(super::micro(17, Direction::Pack, Level::Baseline).is_none());
    for level in Level::available() {
        for &len in LENGTHS {
            let len = u64::from(len);
            let micro = super::micro(len, Direction::Unpack, level).unwrap();
            assert_eq!(micro.address(), function(len, level).unwrap() as usize);
        }
    }
}
