//! Tests of the counts of granules and sectors in device memory, and of the bound of the speed that
//! follows from these counts. Small layouts were counted by hand. For other layouts, the counts are
//! compared with a count over every byte of the type map.

use std::collections::{BTreeMap, BTreeSet};

use ddtc::internal::corpus::{self, SplitMix64};
use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::fuzzing::{Budget, Choices, datatype};
use ddtc_gpu::bound::Touched;

fn touched(text: &str, count: u64) -> Option<Touched> {
    Touched::new(&ddtc::commit(&text.parse().unwrap()).unwrap(), count)
}

/// Reference implementation of `Touched::new`, which looks at every byte of the type map.
fn by_the_type_map(t: &Datatype, count: u64) -> Touched {
    let bytes: BTreeSet<i64> = TypeMap::instances(t, count)
        .flat_map(|(named, at)| (0..named.size()).map(move |byte| at + byte))
        .collect();
    let mut sectors: BTreeMap<i64, u64> = BTreeMap::new();
    bytes.iter().for_each(|byte| *sectors.entry(byte.div_euclid(32)).or_default() += 1);
    Touched {
        granules: bytes.iter().map(|byte| byte.div_euclid(64)).collect::<BTreeSet<_>>().len() as u64,
        sectors: sectors.len() as u64,
        partial: sectors.values().filter(|&&bytes| bytes < 32).count() as u64,
    }
}

#[test]
fn small_layouts_are_counted_by_hand() {
    for (text, count, granules, sectors, partial) in [
        // Doubles at the offsets 0, 64, 128 and so on: one in each granule.
        ("resized(0, 64, double)", 100, 100, 100, 100),
        // Doubles at the offsets 0, 16, 32 and so on: two in each sector, and four in each granule.
        ("resized(0, 16, double)", 100, 25, 50, 50),
        // Bytes 0..24, 40..64, 80..104 and so on. The 8 instances extend over 10 sectors (320
        // bytes), and each sector contains bytes of a gap.
        ("resized(0, 40, contiguous(3, double))", 8, 5, 10, 10),
        // Bytes 0..32, 64..96, 128..160 and so on: every second sector is filled, and the others
        // are empty.
        ("resized(0, 64, contiguous(4, double))", 10, 10, 10, 0),
        // Bytes 0..48 and 96..144. The second instance begins in the middle of a granule. Sectors 0
        // and 3 are filled, and sectors 1 and 4 are filled in part.
        ("resized(0, 96, contiguous(6, double))", 2, 3, 4, 2),
        // Bytes 0..1001 and 1003..2004. Only two of the sectors 0 to 62 are filled in part: sector
        // 31, which contains the gap 1001..1003, and sector 62, in which the layout ends.
        ("resized(0, 1003, contiguous(1001, byte))", 2, 32, 63, 2),
        // Bytes -8..8: the layout begins before the address of the buffer.
        ("hindexed([2], [-8], double)", 1, 2, 2, 2),
        // Each instance is a column of a matrix of 8 x 8 doubles. All instances together are bytes
        // 0..512.
        ("resized(0, 8, vector(8, 1, 8, double))", 8, 8, 16, 0),
        // The blocks 0..16, 12..28 and 24..40 overlap. Together they are bytes 0..40.
        ("hvector(3, 2, 12, double)", 1, 1, 2, 1),
        ("contiguous(0, int)", 5, 0, 0, 0),
        ("double", 0, 0, 0, 0),
    ] {
        let expected = Touched { granules, sectors, partial };
        assert_eq!(touched(text, count), Some(expected), "{count} x {text}");
        assert_eq!(by_the_type_map(&text.parse().unwrap(), count), expected, "{count} x {text}");
    }
}

#[test]
fn bytes_and_shares_follow_from_the_counts() {
    // 100 doubles, 64 bytes apart: the payload has 800 bytes. Packing reads 100 granules of 64
    // bytes and writes the payload. Unpacking reads the payload, reads 100 sectors of 32 bytes, and
    // writes these sectors. A plain copy moves 1600 bytes: it reads the payload and writes the
    // payload.
    let far = touched("resized(0, 64, double)", 100).unwrap();
    assert_eq!(far.bytes(800), [800 + 6400, 800 + 3200 + 3200]);
    assert_eq!(far.shares(800), [1600.0 / 7200.0, 1600.0 / 7200.0]);
    // 10 blocks of 32 bytes, 64 bytes apart. Packing reads 10 granules of 64 bytes, which include
    // the gaps. Unpacking writes 10 whole sectors of 32 bytes and reads none of them.
    let sectors = touched("resized(0, 64, contiguous(4, double))", 10).unwrap();
    assert_eq!(sectors.bytes(320), [320 + 640, 320 + 320]);
    assert_eq!(sectors.shares(320), [640.0 / 960.0, 1.0]);
    assert_eq!(touched("contiguous(0, int)", 1).unwrap().shares(0), [1.0, 1.0]);
}

#[test]
fn counts_agree_with_the_type_map() {
    let mut cases = 0;
    for entry in corpus::application().into_iter().chain(corpus::corner()) {
        let t = &entry.datatype;
        if t.size() < 4 << 10 {
            let committed = ddtc::commit(t).unwrap();
            for count in [1, 2, 3, 70, 131] {
                if t.size() as u64 * count > 40_000 || committed.segments(count).is_err() {
                    continue;
                }
                assert_eq!(
                    Touched::new(&committed, count),
                    Some(by_the_type_map(t, count)),
                    "{count} x {}: {t}",
                    entry.name
                );
                cases += 1;
            }
        }
    }
    assert!(cases > 200, "{cases}");
    for seed in 0..2000 {
        let t = datatype(&mut Choices::from_seed(seed), &Budget::small());
        let Ok(committed) = ddtc::commit(&t) else { continue };
        for count in [1, 2, 67] {
            if t.size() as u64 * count > 20_000 || committed.segments(count).is_err() {
                continue;
            }
            assert_eq!(Touched::new(&committed, count), Some(by_the_type_map(&t, count)), "{count} x {t}");
        }
    }
}

/// Tests two nested loops with all pairs of strides from a list. The outer stride may be smaller
/// than the inner one, strides may be negative, and the iterations of the loops may overlap or
/// interleave.
#[test]
fn chains_of_loops_are_counted() {
    let strides = [-1000i64, -136, -40, -3, 0, 5, 8, 24, 33, 64, 96, 160, 1000];
    for (i, &outer) in strides.iter().enumerate() {
        for &inner in &strides {
            let block = [1, 7, 8, 32, 70][i % 5];
            for (trips, count) in [((3, 5), 2), ((70, 2), 1), ((2, 140), 3)] {
                let text = format!(
                    "resized(0, 48, hvector({}, 1, {outer}, hvector({}, {block}, {inner}, byte)))",
                    trips.0, trips.1
                );
                let t: Datatype = text.parse().unwrap();
                assert_eq!(touched(&text, count), Some(by_the_type_map(&t, count)), "{count} x {text}");
            }
        }
    }
}

/// Counts a list of 2^22 blocks of 16 bytes at irregular places. The benchmark program `judge` has
/// rows with as many blocks, at 64 MiB. One more block must be refused.
#[test]
fn the_longest_list_is_counted() {
    let (mut random, mut at) = (SplitMix64::new(1), 0);
    let mut next = |_| {
        at += 24 + 8 * random.below(4) as i64;
        at
    };
    let mut places: Vec<i64> = (0..1 << 22).map(&mut next).collect();
    let touched = |places: &[i64]| {
        let t = Datatype::hindexed_block(16, places, &Datatype::of::<u8>()).unwrap();
        Touched::new(&ddtc::commit(&t).unwrap(), 1)
    };
    // The units of `size` bytes that a block touches are consecutive, and the places ascend.
    let units = |size: i64| {
        let of_block = |&at: &i64| (at / size, (at + 15) / size);
        let mut last = -1;
        let count = |(first, end): (i64, i64)| {
            let new = end - first.max(last + 1) + 1;
            last = end;
            new as u64
        };
        places.iter().map(of_block).map(count).sum::<u64>()
    };
    let counted = touched(&places).unwrap();
    assert_eq!((counted.granules, counted.sectors), (units(64), units(32)));
    places.push(next(0));
    assert_eq!(touched(&places), None);
}

/// Checks that regular layouts of 2^40 bytes and more are counted fast. All counts of this test
/// together may take at most 30 seconds. Also checks that `Touched::new` returns `None` for a
/// layout that is too irregular.
#[test]
fn huge_layouts_take_little_time() {
    let began = std::time::Instant::now();
    // 2^40 doubles, 24 bytes apart. Gaps have only 16 bytes, so every granule of 64 bytes contains
    // bytes of a double.
    let many = touched("resized(0, 24, double)", 1 << 40).unwrap();
    assert_eq!(many.granules, 24 * (1u64 << 40) / 64);
    // Four doubles, at the offsets 0, 24, 48 and 72, lie in three sectors (96 bytes). This pattern
    // repeats every 96 bytes. Each sector contains bytes of a double and bytes of a gap.
    assert_eq!((many.sectors, many.partial), (24 << 35, 24 << 35));
    // A plane of a cube of 2^20 x 2^20 x 2^20 doubles. The 2^40 doubles of the plane are at least 8
    // MiB apart, so each lies in a granule of its own.
    let face = touched("hvector(1048576, 1, 8796093022208, hvector(1048576, 1, 8388608, double))", 1);
    assert_eq!(face, Some(Touched { granules: 1 << 40, sectors: 1 << 40, partial: 1 << 40 }));
    // A matrix of 2^20 x 2^20 doubles. Each instance is one column, so all instances together are
    // the whole matrix of 2^43 bytes.
    let transpose = touched("resized(0, 8, vector(1048576, 1, 1048576, double))", 1 << 20);
    assert_eq!(transpose, Some(Touched { granules: 1 << 37, sectors: 1 << 38, partial: 0 }));
    // Three arrays of 2^30 doubles, which begin at the offsets 0, 2^33 and 2^35. An instance has
    // one double of each array.
    let fields = touched("resized(0, 8, hindexed([1, 1, 1], [0, 8589934592, 34359738368], double))", 1 << 30);
    assert_eq!(fields, Some(Touched { granules: 3 << 27, sectors: 3 << 28, partial: 0 }));
    for name in ["zero.struct", "children.10000", "dag.40", "deep.1000", "large.size_2_62"] {
        let (t, count) = corpus::asked(name).unwrap();
        let _ = Touched::new(&ddtc::commit(&t).unwrap(), count);
    }
    // Two nested loops of 100000 iterations each, whose doubles interleave. The 10^10 doubles would
    // have to be listed one by one, which exceeds the limit.
    assert_eq!(touched("hvector(100000, 1, 40, hvector(100000, 1, 24, double))", 1), None);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}
