//! Tests that compare packing with streaming stores, which bypass the caches, with the scalar
//! reference.

use super::function;
use crate::micro::strided::scalar_reference;
use crate::micro::testing::{Guarded, check, span};
use crate::target::Level;

fn check_one(areas: &mut (Guarded, Guarded), n: u64, ds: i64, ss: i64, len: u64, level: Level) {
    let f = function(level);
    let ((dst_len, d), (src_len, s)) = (span(n, ds, len), span(n, ss, len));
    check(
        areas,
        (dst_len, src_len),
        // SAFETY: both areas contain all blocks at these strides.
        |dst, src| unsafe { f(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len) },
        // SAFETY: both areas contain all blocks at these strides.
        |dst, src| unsafe { scalar_reference(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len) },
        || format!("{level}: {n} blocks of {len} by ({ds}, {ss})"),
    );
}

#[test]
fn every_length_between_guard_pages() {
    let mut areas = (Guarded::new(300 << 10), Guarded::new(300 << 10));
    for level in Level::available() {
        for len in (0..=1024).chain([2047, 2048, 2049, 8191, 8192, 8193, 20_000]) {
            let l = len as i64;
            for (ss, n) in [(l, 1), (l + 8, 3), (-l, 2), (2 * l, 5), (0, 2)] {
                check_one(&mut areas, n, l, ss, len, level);
            }
            check_one(&mut areas, 3, l + 1, l, len, level);
        }
        // In these cases the packed bytes exceed the buffer from which cache lines are streamed,
        // with various remainders of a cache line.
        for len in [1, 3, 8, 24, 100, 1000, 2000] {
            for n in 20_000 / len..20_000 / len + 3 {
                check_one(&mut areas, n, len as i64, len as i64 + 3, len, level);
            }
        }
    }
}
