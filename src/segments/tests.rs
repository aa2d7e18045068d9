//! Tests of segments: cases that were worked out by hand, and comparisons with the type map.

use super::*;
use crate::datatype::Datatype;
use crate::exec::interp;
use crate::lower::{Bytes, lower};
use crate::normalize::normalize;

/// Calls `ask` with the segments of `count` instances of a datatype, and returns its result.
fn with<T>(text: &str, count: u64, ask: impl FnOnce(&Segments<'_>) -> T) -> T {
    let t: Datatype = crate::corpus::datatype(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let normal = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap();
    let runs = Runs::new(&normal.nest).unwrap();
    ask(&Segments::new(&normal.nest, &runs, count, normal.origin).unwrap())
}

fn all(segments: &Segments<'_>) -> Vec<(i64, u64)> {
    let mut list = vec![Segment::default(); segments.len() as usize + 1];
    let n = segments.fill(0, &mut list).unwrap();
    list[..n].iter().map(|s| (s.at, s.len)).collect()
}

/// Expected segments, each with its offset and its length.
type List = &'static [(i64, u64)];

#[test]
fn by_hand() {
    let cases: &[(&str, u64, List)] = &[
        ("int", 0, &[]),
        ("contiguous(0, int)", 3, &[]),
        ("int", 3, &[(0, 12)]),
        ("vector(3, 1, 2, int)", 1, &[(0, 4), (8, 4), (16, 4)]),
        // The last block of an instance and the first block of the next one are one segment.
        ("vector(3, 1, 2, int)", 2, &[(0, 4), (8, 4), (16, 8), (28, 4), (36, 4)]),
        ("vector(2, 1, 2, int)", 4, &[(0, 4), (8, 8), (20, 8), (32, 8), (44, 4)]),
        // There is a gap between instances, so that nothing touches.
        ("resized(0, 16, vector(2, 1, 2, int))", 2, &[(0, 4), (8, 4), (16, 4), (24, 4)]),
        // A struct with one gap inside and one gap at its end.
        (
            "resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))",
            2,
            &[(0, 4), (8, 20), (32, 4), (40, 20)],
        ),
        // The only gap is inside the struct, so the last member of an instance and the first member
        // of the next instance are one segment.
        ("struct([1, 1], [0, 8], [int, double])", 3, &[(0, 4), (8, 12), (24, 12), (40, 8)]),
        // In descending order no entries touch, although their bytes are next to each other.
        ("hvector(3, 1, -4, int)", 1, &[(0, 4), (-4, 4), (-8, 4)]),
        ("resized(0, -8, double)", 3, &[(0, 8), (-8, 8), (-16, 8)]),
        // Entries that overlap, and several entries at one place, are listed in the order of the
        // type map.
        ("hvector(3, 1, 2, int)", 1, &[(0, 4), (2, 4), (4, 4)]),
        ("hindexed([1, 1, 1, 1], [0, 0, 4, 0], int)", 1, &[(0, 4), (0, 8), (0, 4)]),
        // The order is that of the type map, not of addresses.
        ("indexed([1, 2, 1], [4, 1, 3], int)", 1, &[(16, 4), (4, 12)]),
        // The first run of the loop touches the member before the loop, and its last run touches
        // the member after it.
        ("struct([1, 1, 1], [0, 4, 24], [int, vector(3, 1, 2, int), int])", 1, &[(0, 8), (12, 4), (20, 8)]),
        // Iterations with several runs each, where each iteration touches the next.
        ("hvector(3, 1, 12, hindexed([1, 1], [0, 8], int))", 1, &[(0, 4), (8, 8), (20, 8), (32, 4)]),
        (
            "hvector(5, 1, 16, hindexed([1, 1, 1], [0, 8, 14], short))",
            1,
            &[
                (0, 2),
                (8, 2),
                (14, 4),
                (24, 2),
                (30, 4),
                (40, 2),
                (46, 4),
                (56, 2),
                (62, 4),
                (72, 2),
                (78, 2),
            ],
        ),
        // Rows with two runs each, where some rows touch the next row.
        (
            "hindexed_block(1, [0, 12, 100, 112, 124, 50], hindexed([1, 1], [0, 8], int))",
            1,
            &[(0, 4), (8, 8), (20, 4), (100, 4), (108, 8), (120, 8), (132, 4), (50, 4), (58, 4)],
        ),
        // A darray in which this process owns no elements.
        ("darray(4, 3, [2], [block], [default], [4], C, int)", 2, &[]),
        // Absolute displacements.
        ("hindexed([1, 2], [4096, 8192], int)", 1, &[(4096, 4), (8192, 8)]),
    ];
    for (text, count, expected) in cases {
        with(text, *count, |s| {
            assert_eq!(all(s), *expected, "{count} of {text}");
            check(s, expected, text);
        });
    }
}

/// Checks the results of all methods for a layout whose segments are listed in `expected`.
fn check(segments: &Segments<'_>, expected: &[(i64, u64)], name: &str) {
    // Returns the `n` expected segments from segment `from` on, without the first `skip` bytes.
    let listed = |from: usize, skip: u64, n: usize| -> Vec<Segment> {
        let mut list: Vec<Segment> =
            expected[from..from + n].iter().map(|&(at, len)| Segment { at, len }).collect();
        if let Some(first) = list.first_mut() {
            *first = Segment { at: first.at + skip as i64, len: first.len - skip };
        }
        list
    };
    assert_eq!(segments.len(), expected.len() as u64, "{name}");
    assert_eq!(segments.is_empty(), expected.is_empty(), "{name}");
    // Compute the first packed byte of each segment, and the end of the stream.
    let mut starts = vec![0];
    expected.iter().for_each(|s| starts.push(starts[starts.len() - 1] + s.1));
    let start = starts[expected.len()];
    let unwritten = Segment { at: -7, len: 7 };
    // For each segment, check lists of several lengths that begin with this segment, its first
    // packed byte, the cursor, and limits in bytes.
    for i in 0..=expected.len() {
        for room in [1, 2, 3, 7, expected.len() + 1] {
            let mut list = vec![unwritten; room];
            let n = segments.fill(i as u64, &mut list).unwrap();
            assert_eq!(n, room.min(expected.len() - i), "{name} from {i}");
            assert_eq!(list[..n], listed(i, 0, n), "{name} from {i}, room for {room}");
            assert!(list[n..].iter().all(|s| *s == unwritten));
        }
        assert_eq!(segments.start(i as u64), Ok(starts[i]), "{name}: start of {i}");
        let rest: Vec<Segment> = segments.cursor(i as u64).map(|s| s.unwrap()).collect();
        assert_eq!(rest, listed(i, 0, expected.len() - i), "{name} by cursor");
        for budget in 0..=(start - starts[i]).min(40) + 1 {
            let n = starts[i..].iter().take_while(|&&s| s - starts[i] <= budget).count() - 1;
            let found = segments.within(i as u64, budget);
            assert_eq!(found, Ok((n as u64, starts[i + n] - starts[i])), "{name}: {budget} bytes from {i}");
        }
    }
    // For each packed byte, check the segment that contains it, and a list that begins at this
    // byte.
    for byte in 0..start {
        let i = starts.partition_point(|&s| s <= byte) - 1;
        assert_eq!(segments.find(byte), Ok((i as u64, byte - starts[i])), "{name}: byte {byte}");
        let mut list = [unwritten; 3];
        let n = segments.fill_from(byte, &mut list).unwrap();
        assert_eq!(list[..n], listed(i, byte - starts[i], n), "{name} from byte {byte}");
    }
    // The end of the stream is a valid position. Positions past the end are refused.
    assert_eq!(segments.find(start), Ok((segments.len(), 0)));
    assert_eq!(segments.fill_from(start, &mut [unwritten; 2]), Ok(0));
    let refused = [segments.find(start + 1).is_err(), segments.start(segments.len() + 1).is_err()];
    let mut list = [unwritten; 2];
    let fills = [
        segments.fill(segments.len() + 1, &mut list).is_err(),
        segments.fill_from(start + 1, &mut list).is_err(),
    ];
    assert!(refused == [true; 2] && fills == [true; 2] && list == [unwritten; 2], "{name}");
}

#[test]
fn every_place_of_small_layouts() {
    let entries = crate::corpus::corner().into_iter().map(|e| (e.name, e.datatype));
    let entries = entries.chain(crate::corpus::application().into_iter().map(|e| (e.name, e.datatype)));
    let mut checked = 0;
    for (name, t) in entries {
        for count in [1, 2, 5] {
            if t.size() > 2000 / count as i64 {
                continue;
            }
            let stream = 0..t.size() as u64 * count;
            let Ok(expected) = interp::segments(&t, count, stream) else { continue };
            let normal = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap();
            let runs = Runs::new(&normal.nest).unwrap();
            check(&Segments::new(&normal.nest, &runs, count, normal.origin).unwrap(), &expected, &name);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

/// The code must not rely on normalization having merged everything that can be merged.
/// Normalization could merge parts of the nests in this test.
#[test]
fn nests_of_any_shape() {
    for (text, count) in [
        // Nests in which all rows touch the next row, and nests in which only some rows do.
        ("nest normal size 12 extent 40\nloop count step 40 12 {\ntable [0 4 8] packed 4 {\ncopy 4\n}\n}", 2),
        (
            "nest normal size 20 extent 40\nloop count step 40 20 {\ntable [0 4 20 24 36] packed 4 {\ncopy 4\n}\n}",
            3,
        ),
        (
            "nest normal size 20 extent 20\nloop count step 20 20 {\ntable [0 4 8 14 18] packed 4 {\ncopy 4\n}\n}",
            3,
        ),
        (
            "nest normal size 14 extent 30\nloop count step 30 14 {\nblocks [0:0:2 2:2:3 5:5:1 10:6:4 14:10:4]\n}",
            3,
        ),
        ("nest normal size 9 extent 9\nloop count step 9 9 {\nblocks [0:0:2 2:2:3 5:5:4]\n}", 3),
        // A loop that is one run, with a loop that has several runs next to it.
        (
            "nest normal size 20 extent 40\nloop count step 40 20 {\nloop 2 step 6 4 {\ncopy 4\n}\nloop 3 step 4 4 at 10 8 {\ncopy 4\n}\n}",
            3,
        ),
        // Members that touch each other and have one run each, and rows with several runs, where
        // some rows touch the next row.
        (
            "nest normal size 12 extent 12\nloop count step 12 12 {\ncopy 4\ncopy 4 at 4 4\ncopy 4 at 8 8\n}",
            4,
        ),
        // A body whose last byte lies just before its own first byte. The loop around the body
        // begins at that first byte too, but is not part of the body.
        (
            "nest normal size 56 extent 300\nloop count step 300 56 {\ncopy 8\nloop 2 step 100 24 at 100 8 {\nloop 2 step 12 8 {\ncopy 4\ncopy 4 at -4 4\n}\ncopy 8 at 50 16\n}\n}",
            3,
        ),
        (
            "nest normal size 32 extent 90\nloop count step 90 32 {\ntable [0 9 18 30] packed 8 {\ncopy 2\nloop 2 step 4 2 at 1 2 {\ncopy 2\n}\ncopy 2 at 7 6\n}\n}",
            3,
        ),
    ] {
        let nest: LoopNest<Normal> = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut expected: Vec<(i64, u64)> = Vec::new();
        nest.visit(count, |v| match expected.last_mut() {
            Some((at, len)) if *at + *len as i64 == v.at.user => *len += v.n,
            _ => expected.push((v.at.user, v.n)),
        });
        let runs = Runs::new(&nest).unwrap();
        check(&Segments::new(&nest, &runs, count, 0).unwrap(), &expected, text);
    }
}

#[test]
fn large_counts() {
    // A DAG that stands for a tree of 2^40 nodes: each level is two instances of the level below.
    // Neighbouring bytes of the type lie 3 bytes apart.
    let mut text = "char".to_owned();
    for level in 0..40 {
        text = format!("hvector(2, 1, {}, {text})", 3_i64 << level);
    }
    with(&text, 1 << 21, |s| {
        // An instance extends exactly to the end of its last byte, so the next instance begins
        // directly after that byte.
        assert_eq!((s.len(), s.bytes()), ((1 << 61) - ((1 << 21) - 1), 1 << 61));
        let (byte, index) = ((1 << 60) + 12_345, (1 << 60) + 12_345 - (1 << 20));
        assert_eq!((s.start(index), s.find(byte)), (Ok(byte), Ok((index, 0))));
    });
    with("resized(0, 3, hvector(2, 1, -1, char))", i64::MAX as u64 / 3, |s| {
        assert_eq!(s.len(), i64::MAX as u64 / 3 * 2);
        let mut last = [Segment::default(); 3];
        assert_eq!(s.fill(s.len() - 2, &mut last), Ok(2));
        let at = (i64::MAX / 3 - 1) * 3;
        assert_eq!(last[..2], [Segment { at, len: 1 }, Segment { at: at - 1, len: 1 }]);
    });
    let t: Datatype = "vector(2, 1, 2, int)".parse().unwrap();
    let normal = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap();
    let runs = Runs::new(&normal.nest).unwrap();
    let refused = Segments::new(&normal.nest, &runs, 1 << 60, 0).unwrap_err();
    assert_eq!((refused.class(), refused.argument()), (ErrorClass::Count, "count"));
}

/// If some rows touch the next row and others do not, a sum is stored for every row and charged to
/// the layout.
#[test]
fn sums_of_rows_are_charged() {
    let stored = |near: i64| {
        let mut at = 0;
        let next = |i: i64| {
            at += if i * i % 7 < 3 { near } else { 20 + i % 3 };
            at
        };
        let places: Vec<i64> = (0..1000).map(next).collect();
        let t = Datatype::hindexed_block(1, &places, &"hvector(2, 1, 5, int)".parse().unwrap()).unwrap();
        let normal = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap();
        Runs::new(&normal.nest).unwrap().bytes_stored()
    };
    assert!(stored(9) >= stored(10) + 4 * 1000, "{} and {}", stored(9), stored(10));
}
