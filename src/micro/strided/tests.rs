//! Tests that compare the micro-kernels of the family `strided` with their scalar reference.

use super::{LENGTHS, function, scalar_reference};
use crate::kind::Direction;
use crate::micro::testing::{Guarded, check, span};
use crate::target::Level;

#[test]
fn two_blocks_by_hand() {
    let src = [1, 2, 3, 4, 5, 6, 7, 8];
    for level in Level::available() {
        let mut dst = [0; 4];
        // SAFETY: blocks of 2 bytes at 0 and 5 of 8 bytes go to the 4 bytes of `dst`.
        unsafe { function(2, level)(dst.as_mut_ptr(), src.as_ptr(), 2, 2, 5, 2) };
        assert_eq!(dst, [1, 2, 6, 7]);
    }
}

/// Returns pairs of a destination stride and a source stride with which blocks of `l` bytes are
/// tested: blocks follow each other directly, have gaps between them, go backwards, lie in one
/// place, or overlap.
fn strides(l: i64) -> Vec<(i64, i64)> {
    vec![
        (l, l),
        (l, l + 1),
        (l, 2 * l),
        (l, 3 * l),
        (l, l + 8),
        (l + 8, l),
        (2 * l, l),
        (l, -l),
        (l, -l - 3),
        (-l - 3, l),
        (l / 2, l),
        (l, l / 2),
        (1, l),
        (l, 1),
        (l, 0),
        (0, l),
        (-1, -1),
        (l + 1, l + 7),
        (l, 4500),
        (4500, l),
    ]
}

#[test]
fn every_length_every_stride_between_guard_pages() {
    let mut areas = (Guarded::new(200 << 10), Guarded::new(200 << 10));
    for level in Level::available() {
        for len in 0..=1024u64 {
            let f = function(len, level);
            for (ds, ss) in strides(len as i64) {
                let counts: &[u64] =
                    if len <= 40 { &[0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 33] } else { &[1, 2, 3, 7] };
                for &n in counts {
                    let ((dst_len, d), (src_len, s)) = (span(n, ds, len), span(n, ss, len));
                    check(
                        &mut areas,
                        (dst_len, src_len),
                        // SAFETY: both areas contain all blocks at these strides.
                        |dst, src| unsafe { f(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len) },
                        // SAFETY: both areas contain all blocks at these strides.
                        |dst, src| unsafe {
                            scalar_reference(dst.wrapping_add(d), src.wrapping_add(s), n, ds, ss, len)
                        },
                        || format!("{level}: {n} blocks of {len} by ({ds}, {ss})"),
                    );
                }
            }
        }
    }
}

#[test]
fn short_blocks_at_short_strides_between_guard_pages() {
    let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
    for level in Level::available() {
        for len in 1..=16u64 {
            let f = function(len, level);
            let l = len as i64;
            for stride in l + 1..66.min(4 * l + 16) {
                // The numbers of blocks lie around the minimum for which blocks are moved by
                // permutations (32), and around and above the minimum for which they are aligned to
                // cache lines (128). If the stride divides the length of a cache line, the first
                // block begins at every distance from a multiple of the stride.
                let shifts = if 64 % stride == 0 { stride.min(16) as usize } else { 1 };
                for n in [31, 32, 33, 127, 128, 129 + stride as u64 % 16, 150 + len] {
                    for ((ds, ss), shift) in [(l, stride), (stride, l)]
                        .into_iter()
                        .flat_map(|s| (0..shifts).map(move |shift| (s, shift)))
                    {
                        let ((dst_len, _), (src_len, _)) = (span(n, ds, len), span(n, ss, len));
                        check(
                            &mut areas,
                            (dst_len + shift, src_len + shift),
                            // SAFETY: both areas contain all blocks at these strides.
                            |dst, src| unsafe {
                                f(dst.wrapping_add(shift), src.wrapping_add(shift), n, ds, ss, len)
                            },
                            // SAFETY: both areas contain all blocks at these strides.
                            |dst, src| unsafe {
                                scalar_reference(
                                    dst.wrapping_add(shift),
                                    src.wrapping_add(shift),
                                    n,
                                    ds,
                                    ss,
                                    len,
                                )
                            },
                            || format!("{level}: {n} blocks of {len} by ({ds}, {ss}), {shift} bytes later"),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn groups_of_blocks_fill_registers_between_guard_pages() {
    let mut areas = (Guarded::new(400 << 10), Guarded::new(400 << 10));
    // The cases `words` are pairs of a length and a stride in bytes of blocks of few words; no gap
    // follows the last block. The cases `lines` are pairs for many blocks that are longer than one
    // register of 64 bytes and shorter than two.
    let words = [(4, 16), (8, 32), (16, 24), (16, 32), (24, 32), (32, 64), (48, 64)];
    let lines = (72..=120).step_by(8).flat_map(|l| [0, 1, l, l + 8, 264, 4500, -l].map(|ss| (l, ss)));
    for level in Level::available() {
        for (l, ss) in words.into_iter().chain(lines.clone()) {
            let counts = if l < 64 { 0..=70 } else { 60..=75 };
            for n in counts {
                let (len, f) = (l as u64, function(l as u64, level));
                let ((dst_len, _), (src_len, s)) = (span(n, l, len), span(n, ss, len));
                check(
                    &mut areas,
                    (dst_len, src_len),
                    // SAFETY: both areas contain all blocks at these strides.
                    |dst, src| unsafe { f(dst, src.wrapping_add(s), n, l, ss, len) },
                    // SAFETY: both areas contain all blocks at these strides.
                    |dst, src| unsafe { scalar_reference(dst, src.wrapping_add(s), n, l, ss, len) },
                    || format!("{level}: {n} blocks of {len} by ({l}, {ss})"),
                );
            }
        }
    }
}

#[test]
fn names_and_addresses() {
    assert_eq!(super::micro(8, Direction::Pack, Level::Baseline).to_string(), "strided<8>.baseline");
    assert_eq!(super::micro(33, Direction::Pack, Level::Baseline).to_string(), "strided.baseline");
    assert_eq!(super::micro(1 << 40, Direction::Pack, Level::Baseline).made_for(), None);
    assert!(LENGTHS.is_sorted());
    for level in Level::available() {
        for len in (0..=1024).chain([1 << 16, 1 << 40]) {
            let micro = super::micro(len, Direction::Unpack, level);
            assert_ne!(micro.address(), 0);
            assert_eq!(micro.address(), function(len, level) as usize);
            assert!(micro.made_for().is_none_or(|l| l == len), "{micro} for {len}");
        }
    }
}
