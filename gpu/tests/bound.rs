//! Tests of the counts of granules and sectors, and of the bound that follows from them. Small
//! cases are counted by hand, and others are compared with a count over every byte of the type map.

use std::collections::{BTreeMap, BTreeSet};

use ddtc::internal::corpus;
use ddtc::internal::datatype::{Datatype, TypeMap};
use ddtc::internal::fuzzing::{Budget, Choices, datatype};
use ddtc_gpu::bound::Touched;

fn touched(text: &str, count: u64) -> Option<Touched> {
    Touched::new(&ddtc::commit(&text.parse().unwrap()).unwrap(), count)
}

/// Counts granules and sectors by looking at every byte of the type map.
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
        // One double in each granule.
        ("resized(0, 64, double)", 100, 100, 100, 100),
        // Two doubles in each sector, and four in each granule.
        ("resized(0, 16, double)", 100, 25, 50, 50),
        // Eight instances lie in 320 bytes, and each of the ten sectors has a part of a gap.
        ("resized(0, 40, contiguous(3, double))", 8, 5, 10, 10),
        // Every second sector is written as a whole.
        ("resized(0, 64, contiguous(4, double))", 10, 10, 10, 0),
        // Instance i begins at byte 96 i, so every second one begins in the middle of a granule:
        // bytes 0 to 48, and 96 to 144. Of sectors 0, 1, 3 and 4, the second and the last are not
        // filled.
        ("resized(0, 96, contiguous(6, double))", 2, 3, 4, 2),
        // Bytes 0 to 1001 and 1003 to 2004: only the gap at bytes 1001 and 1002, in sector 31, and
        // the end of the last sector, which is number 62, are not written.
        ("resized(0, 1003, contiguous(1001, byte))", 2, 32, 63, 2),
        // A run that begins in front of the address of the buffer: bytes -8 to 8.
        ("hindexed([2], [-8], double)", 1, 2, 2, 2),
        // The transpose of a dense matrix has every byte.
        ("resized(0, 8, vector(8, 1, 8, double))", 8, 8, 16, 0),
        // Overlapping blocks are counted once: bytes 0 to 40.
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
    // 100 doubles at a stride of 64 bytes: 800 bytes of payload. Packing reads 100 * 64 bytes, and
    // unpacking writes 100 * 32 bytes after it has read them. A plain copy moves 1600 bytes.
    let far = touched("resized(0, 64, double)", 100).unwrap();
    assert_eq!(far.bytes(800), [800 + 6400, 800 + 3200 + 3200]);
    assert_eq!(far.shares(800), [1600.0 / 7200.0, 1600.0 / 7200.0]);
    // Whole sectors in every second place: packing reads the gaps too, and unpacking does not.
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

/// Chains of loops whose strides lie in any order, have any sign, and may make the iterations of
/// different loops lie among each other.
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

/// The time of a count does not depend on the number of bytes of a regular layout, and a layout
/// that is too irregular is not counted.
#[test]
fn huge_layouts_take_little_time() {
    let began = std::time::Instant::now();
    // 2^40 doubles, 24 bytes apart: 64 bytes of every 192 belong to eight of them.
    let many = touched("resized(0, 24, double)", 1 << 40).unwrap();
    assert_eq!(many.granules, 24 * (1u64 << 40) / 64);
    // Of three sectors, which have 96 bytes and four doubles, none is filled.
    assert_eq!((many.sectors, many.partial), (24 << 35, 24 << 35));
    // A plane of a cube with 2^20 doubles in each direction.
    let face = touched("hvector(1048576, 1, 8796093022208, hvector(1048576, 1, 8388608, double))", 1);
    assert_eq!(face, Some(Touched { granules: 1 << 40, sectors: 1 << 40, partial: 1 << 40 }));
    // The columns of a matrix, each as an instance, are the matrix.
    let transpose = touched("resized(0, 8, vector(1048576, 1, 1048576, double))", 1 << 20);
    assert_eq!(transpose, Some(Touched { granules: 1 << 37, sectors: 1 << 38, partial: 0 }));
    // Three fields of 2^30 records, from three arrays.
    let fields = touched("resized(0, 8, hindexed([1, 1, 1], [0, 8589934592, 34359738368], double))", 1 << 30);
    assert_eq!(fields, Some(Touched { granules: 3 << 27, sectors: 3 << 28, partial: 0 }));
    for name in ["zero.struct", "children.10000", "dag.40", "deep.1000", "large.size_2_62"] {
        let (t, count) = corpus::asked(name).unwrap();
        let _ = Touched::new(&ddtc::commit(&t).unwrap(), count);
    }
    // Two loops whose iterations lie among each other, and that are too long to list.
    assert_eq!(touched("hvector(100000, 1, 40, hvector(100000, 1, 24, double))", 1), None);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}
