//! Tests that compare the micro-kernels of the family `permute` with their scalar reference.

use super::{Granule, Part, Permutation, function, scalar_reference};
use crate::micro::Direction;
use crate::micro::testing::{Guarded, check};
use crate::target::{Level, Target};

/// Returns one part of an instance for each user offset and length in `list`. The parts are packed
/// in this order, and no bytes are reversed.
fn parts(list: &[(i64, u64)]) -> Vec<Part> {
    swapped(&list.iter().map(|&(user, len)| (user, len, 1)).collect::<Vec<_>>())
}

/// Returns one part of an instance for each user offset, length and size of units in `list`. The
/// parts are packed in this order, and the bytes of each unit are reversed.
fn swapped(list: &[(i64, u64, u8)]) -> Vec<Part> {
    let mut packed = 0;
    list.iter()
        .map(|&(user, len, unit)| {
            packed += len;
            Part { user, packed: packed - len, len, unit }
        })
        .collect()
}

/// Returns the granule of `permutation` (bytes or words) and whether it reverses the bytes of
/// units, which together identify its code.
fn code(permutation: &Permutation) -> (Granule, bool) {
    (permutation.granule(), permutation.swaps())
}

/// Returns, for every target that this machine runs and that has code for it, the permutation of
/// instances that consist of `parts` and lie `stride` bytes apart.
fn permutations(parts: &[Part], stride: i64) -> Vec<Permutation> {
    Target::available().filter_map(|target| Permutation::new(parts, stride, target)).collect()
}

fn check_all(areas: &mut (Guarded, Guarded), parts: &[Part], stride: i64) -> usize {
    let size: u64 = parts.iter().map(|p| p.len).sum();
    let lowest = parts.iter().map(|p| p.user).min().unwrap();
    let highest = parts.iter().map(|p| p.user + p.len as i64).max().unwrap();
    let permutations = permutations(parts, stride);
    for permutation in &permutations {
        for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65] {
            let reach = (n as i64 - 1).max(0) * stride;
            let user_len = if n == 0 { 0 } else { (highest - lowest + reach.abs()) as usize };
            // `origin` is the offset of instance 0 in an area that starts at the lowest byte of all
            // instances.
            let origin = -lowest - reach.min(0);
            for direction in [Direction::Pack, Direction::Unpack] {
                if direction == Direction::Unpack && !permutation.unpacks() {
                    continue;
                }
                let f = function(code(permutation), direction, permutation.level()).unwrap();
                let (user_first, packed_len) = (direction == Direction::Unpack, (n * size) as usize);
                let lens = if user_first { (user_len, packed_len) } else { (packed_len, user_len) };
                let places = |dst: *mut u8, src: *mut u8| {
                    let (user, packed) = if user_first { (dst, src) } else { (src, dst) };
                    (user.wrapping_offset(origin as isize), packed)
                };
                check(
                    areas,
                    lens,
                    |dst, src| {
                        let (user, packed) = places(dst, src);
                        // SAFETY: both areas contain all instances, and the table is that of a
                        // permutation for this stride.
                        unsafe { f(user, packed, n, stride, permutation.as_ptr().cast()) }
                    },
                    // SAFETY: both areas contain all instances.
                    |dst, src| unsafe { scalar_reference(direction, places(dst, src), n, stride, parts) },
                    || format!("{direction} {n} of {parts:?} by {stride}: {permutation:?}"),
                );
            }
        }
    }
    permutations.len()
}

#[test]
fn structs_between_guard_pages() {
    let mut areas = (Guarded::new(500 << 10), Guarded::new(500 << 10));
    let mut found = 0;
    for (list, strides) in [
        (&[(0, 4), (8, 8), (16, 12)][..], &[32, 28, 40, 64, 100, 4160, -32, -100][..]),
        (&[(0, 4), (8, 20)], &[32]),
        (&[(16, 12), (0, 4), (8, 8)], &[32]),
        (&[(0, 1), (2, 1), (5, 3)], &[8, 9, 16, 33, -8]),
        (&[(-8, 4), (0, 4)], &[12, 24]),
        (&[(3, 7)], &[7, 8, 13]),
        (&[(0, 64)], &[64, 100]),
        (&[(0, 1), (63, 1)], &[64, 65]),
        (&[(0, 8), (24, 8)], &[8, 16, 32]),
        (&[(0, 4), (0, 4)], &[8]),
        (&[(4, 4)], &[0, -4]),
    ] {
        for &stride in strides {
            found += check_all(&mut areas, &parts(list), stride);
        }
    }
    assert_eq!(found > 0, Level::detect() != Level::Baseline);
}

#[test]
fn every_single_part_and_stride() {
    let mut areas = (Guarded::new(64 << 10), Guarded::new(64 << 10));
    for len in 1..=40 {
        for stride in len as i64..=len as i64 + 34 {
            check_all(&mut areas, &parts(&[(0, len)]), stride);
        }
    }
}

#[test]
fn structs_with_units_between_guard_pages() {
    let mut areas = (Guarded::new(500 << 10), Guarded::new(500 << 10));
    let mut found = [0, 0];
    for (list, strides) in [
        (&[(0, 4, 4), (8, 8, 8), (16, 12, 4)][..], &[32, 28, 40, 64, 100, 4160, -32][..]),
        (&[(0, 8, 8), (8, 8, 2), (16, 16, 16)], &[32, 40, 96]),
        (&[(0, 2, 2), (2, 1, 1), (3, 1, 1), (4, 4, 4)], &[8, 12, 20]),
        (&[(0, 1, 1), (2, 2, 2), (8, 8, 8)], &[16, 24]),
        (&[(8, 8, 8), (0, 4, 4)], &[16]),
        (&[(16, 16, 16), (0, 4, 1)], &[32, 33]),
        (&[(0, 8, 8), (0, 8, 2)], &[8]),
        (&[(2, 2, 2), (0, 2, 2)], &[4, 6]),
        (&[(0, 8, 4)], &[8, 12, 16, 24]),
        (&[(-8, 16, 8)], &[4, 24]),
    ] {
        for &stride in strides {
            let parts = swapped(list);
            check_all(&mut areas, &parts, stride);
            for permutation in permutations(&parts, stride) {
                found[permutation.granule() as usize] += 1;
            }
        }
    }
    let x86 = Level::detect().includes(Level::Avx2);
    assert_eq!(found[Granule::Word as usize] > 20, x86, "{found:?}");
    assert_eq!(found[Granule::Byte as usize] > 0, Target::available().any(Target::permutes_bytes));
}

#[test]
fn units_by_hand() {
    let parts = swapped(&[(0, 2, 2), (2, 2, 1), (8, 4, 4)]);
    let user: Vec<u8> = (0..24).collect();
    let (mut n, wanted) = (0, [1, 0, 2, 3, 11, 10, 9, 8, 13, 12, 14, 15, 23, 22, 21, 20]);
    for permutation in permutations(&parts, 12) {
        n += 1;
        assert_eq!(permutation.to_string(), "permutation of 0:0:2/2 2:2:2/1 8:4:4/4 every 12");
        let (mut packed, f) = ([0; 16], code(&permutation));
        let f = function(f, Direction::Pack, permutation.level()).unwrap();
        // SAFETY: the buffers hold two instances of 12 bytes, and of 8 bytes packed; the table is
        // that of a permutation for this stride.
        unsafe {
            f(user.as_ptr().cast_mut(), packed.as_mut_ptr(), 2, 12, permutation.as_ptr().cast());
        }
        assert_eq!(packed, wanted, "{permutation:?}");
        let micro = super::micro(&permutation, Direction::Pack);
        let (granule, level) = (permutation.granule(), permutation.level());
        assert_eq!(micro.to_string(), format!("permute.{granule}.swap.pack.{level}"));
    }
    assert_eq!(n, Target::available().filter(|t| t.level() != Level::Baseline).count());
}

#[test]
fn words_are_whole() {
    let new = |parts: &[Part]| Permutation::new(parts, 16, Target::new(Level::Avx2)).is_some();
    assert!(new(&swapped(&[(0, 2, 2), (2, 2, 2), (8, 8, 8)])), "two units in a word");
    assert!(new(&swapped(&[(2, 2, 2), (0, 2, 2)])), "in the other order");
    assert!(!new(&parts(&[(2, 2), (0, 2)])), "words that are not shuffled stay as they are");
    assert!(!new(&swapped(&[(0, 2, 2), (4, 2, 2)])), "halves of two words");
    assert!(!new(&swapped(&[(0, 2, 2), (0, 2, 2)])), "one half twice");
    assert!(!new(&swapped(&[(0, 6, 4)])), "a unit cut");
}

#[test]
fn what_does_not_fit_is_refused() {
    let target = Target::host(Level::detect());
    assert!(Permutation::new(&parts(&[(0, 65)]), 100, target).is_none(), "longer than a vector");
    assert!(Permutation::new(&parts(&[(0, 4), (100, 4)]), 200, target).is_none(), "wider than a vector");
    assert!(Permutation::new(&[], 8, target).is_none());
    assert!(
        Permutation::new(&[Part { user: 0, packed: 4, len: 4, unit: 1 }], 8, target).is_none(),
        "a hole in the packed side"
    );
    assert!(
        Permutation::new(&[Part { user: i64::MAX, packed: 0, len: 4, unit: 1 }], 8, target).is_none(),
        "overflow"
    );
    assert!(
        Permutation::new(&[Part { user: 0, packed: u64::MAX, len: 4, unit: 1 }], 8, target).is_none(),
        "overflow"
    );
    assert!(Permutation::new(&parts(&[(i64::MIN, 4), (i64::MAX - 4, 4)]), 8, target).is_none(), "overflow");
    assert!(Permutation::new(&parts(&[(0, 4)]), 8, Target::new(Level::Baseline)).is_none());
}

#[test]
fn vectors_are_filled() {
    for target in Target::available().filter(|t| t.level() != Level::Baseline) {
        let level = target.level();
        let permutation = Permutation::new(&parts(&[(0, 4), (8, 20)]), 32, target).unwrap();
        assert_eq!((permutation.size(), permutation.unpacks()), (24, level != Level::Neon));
        assert_eq!(permutation.instances(), if level == Level::Avx2 { 1 } else { 2 });
        let overlapping = Permutation::new(&parts(&[(0, 4), (0, 4)]), 8, target).unwrap();
        assert!(!overlapping.unpacks());
        let micro = super::micro(&permutation, Direction::Pack);
        assert_ne!(micro.address(), 0);
        let granule = permutation.granule();
        assert_eq!(micro.to_string(), format!("permute.{granule}.pack.{level}"));
    }
}

#[test]
fn neon_reads_whole_vectors_and_does_not_unpack() {
    let neon = |list: &[(i64, u64)], stride| Permutation::new(&parts(list), stride, Target::new(Level::Neon));
    let two = neon(&[(0, 4), (8, 8), (20, 12)], 32).unwrap();
    assert_eq!((two.granule(), two.instances(), two.unpacks()), (Granule::Byte, 2, false));
    for (stride, why) in [(40, "one in a vector"), (-32, "backwards"), (8, "interleaved"), (5000, "far")] {
        assert!(neon(&[(0, 4), (8, 8), (20, 12)], stride).is_none(), "{why}");
    }
    assert_eq!(function((Granule::Byte, false), Direction::Pack, Level::Neon).is_some(), Level::Neon.runs());
    assert!(function((Granule::Byte, false), Direction::Unpack, Level::Neon).is_none());
}
