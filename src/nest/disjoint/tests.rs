//! Tests of the overlap analysis: tables worked out by hand, and small random nests, both compared
//! with a list of every byte.

use super::Disjoint::{self, No, Unknown, UpTo};
use crate::datatype::Datatype;
use crate::fuzzing::{Budget, Choices, datatype};
use crate::lower::{Bytes, lower};
use crate::nest::{Body, Byte, Leaf, LoopNest, Lowered, Node, Normal, Offsets, Phase, Quantity, Value};
use crate::normalize::normalize;

/// Returns true if some user byte belongs to two entries of `count` instances. It lists all bytes.
fn overlaps<P: Phase, L: Leaf>(nest: &LoopNest<P, L>, count: u64) -> bool {
    let mut bytes: Vec<i64> = Vec::new();
    nest.visit(count, |v| bytes.extend((0..v.n as i64 * v.unit.user()).map(|i| v.at.user + i)));
    bytes.sort_unstable();
    bytes.windows(2).any(|w| w[0] == w[1])
}

/// Checks that a result is right for instance counts up to `max_count`.
fn truthful<P: Phase, L: Leaf>(nest: &LoopNest<P, L>, known: Disjoint, max_count: u64) {
    match known {
        UpTo(limit) => {
            let wrong = (0..=max_count.min(limit)).find(|&count| overlaps(nest, count));
            assert_eq!(wrong, None, "{known:?}, but so many instances overlap\n{nest}");
        }
        No => assert!(overlaps(nest, 2), "{known:?}, but two instances do not overlap\n{nest}"),
        Unknown => {}
    }
}

/// Returns the smallest instance count up to `max_count` for which entries overlap.
fn first_overlap<P: Phase, L: Leaf>(nest: &LoopNest<P, L>, max_count: u64) -> Option<u64> {
    (0..=max_count).find(|&count| overlaps(nest, count))
}

const ANY: Disjoint = UpTo(u64::MAX);

/// Maximum instance count that is tried, which is above every finite limit in the tables.
const MAX_COUNT: u64 = 40;

/// Nests over values, whose units may be wider in memory than in the stream. Each item has the
/// nest, the expected result, and the smallest instance count for which entries overlap.
const VALUES: &[(&str, Disjoint, Option<u64>)] = &[
    ("size 4 extent 8 loop count step 8 4 { copy 1 of int8_4 }", ANY, None),
    ("size 4 extent 7 loop count step 7 4 { copy 1 of int8_4 }", Unknown, Some(2)),
    ("size 16 extent 16 loop count step 16 16 { copy 2 of float8 }", ANY, None),
    ("size 16 extent 15 loop count step 15 16 { copy 2 of float8 }", Unknown, Some(2)),
    ("size 24 extent 64 loop count step 64 24 { blocks [0:0:1 8:8:2] of swap8 }", ANY, None),
    ("size 24 extent 64 loop count step 64 24 { blocks [0:0:2 8:16:1] of swap8 }", No, Some(1)),
];

/// Lowered nests over bytes. Each item has the nest, the expected result, and the smallest instance
/// count for which entries overlap, all worked out by hand.
const NESTS: &[(&str, Disjoint, Option<u64>)] = &[
    // One loop, which is the loop over instances.
    ("size 4 extent 8 loop count step 8 4 { copy 4 }", ANY, None),
    ("size 4 extent 4 loop count step 4 4 { copy 4 }", ANY, None),
    ("size 4 extent 3 loop count step 3 4 { copy 4 }", Unknown, Some(2)),
    ("size 4 extent 0 loop count step 0 4 { copy 4 }", No, Some(2)),
    ("size 4 extent -4 loop count step -4 4 { copy 4 }", ANY, None),
    ("size 4 extent -3 loop count step -3 4 { copy 4 }", Unknown, Some(2)),
    ("size 12 extent 0 loop 3*count step 0 4 { copy 4 }", No, Some(1)),
    ("size 12 extent 12 loop 3*count step 4 4 { copy 4 }", ANY, None),
    ("size 4 extent 4 copy 4*count", ANY, None),
    ("size 0 extent 4 nothing", ANY, None),
    // Two loops. The loop over instances has the smaller stride. The entries are disjoint as long
    // as all instances of the first iteration end before the second iteration begins.
    ("size 8 extent 4 loop count step 4 8 { loop 2 step 16 4 { copy 4 } }", UpTo(4), Some(5)),
    ("size 8 extent 5 loop count step 5 8 { loop 2 step 16 4 { copy 4 } }", UpTo(3), Some(4)),
    ("size 8 extent 6 loop count step 6 8 { loop 2 step 16 4 { copy 4 } }", UpTo(3), Some(4)),
    ("size 8 extent 12 loop count step 12 8 { loop 2 step 16 4 { copy 4 } }", UpTo(2), None),
    ("size 8 extent 13 loop count step 13 8 { loop 2 step 16 4 { copy 4 } }", UpTo(1), Some(2)),
    ("size 8 extent -4 loop count step -4 8 { loop 2 step 16 4 { copy 4 } }", UpTo(4), Some(5)),
    ("size 8 extent 4 loop count step 4 8 { loop 2 step -16 4 { copy 4 } }", UpTo(4), Some(5)),
    ("size 8 extent -5 loop count step -5 8 { loop 2 step -16 4 { copy 4 } }", UpTo(3), Some(4)),
    // The same two loops, where an instance is several iterations of the outer loop.
    ("size 16 extent 8 loop 2*count step 4 8 { loop 2 step 16 4 { copy 4 } }", UpTo(2), Some(3)),
    ("size 24 extent 12 loop 3*count step 4 8 { loop 2 step 16 4 { copy 4 } }", UpTo(1), Some(2)),
    ("size 40 extent 20 loop 5*count step 4 8 { loop 2 step 16 4 { copy 4 } }", UpTo(0), Some(1)),
    // The loop over instances lies around the other one.
    ("size 12 extent 36 loop count step 36 12 { loop 3 step 16 4 { copy 4 } }", ANY, None),
    ("size 12 extent 35 loop count step 35 12 { loop 3 step 16 4 { copy 4 } }", Unknown, Some(2)),
    ("size 12 extent -36 loop count step -36 12 { loop 3 step 16 4 { copy 4 } }", ANY, None),
    ("size 12 extent -35 loop count step -35 12 { loop 3 step -16 4 { copy 4 } }", Unknown, Some(2)),
    // Both strides are equal, so the second instance begins at the second block.
    ("size 12 extent 16 loop count step 16 12 { loop 3 step 16 4 { copy 4 } }", Unknown, Some(2)),
    // Loops with stride 0, as the inner loop and as the loop over instances.
    ("size 12 extent 99 loop count step 99 12 { loop 3 step 0 4 { copy 4 } }", No, Some(1)),
    ("size 12 extent 0 loop count step 0 12 { loop 3 step 16 4 { copy 4 } }", No, Some(2)),
    ("size 8 extent 0 loop count step 0 8 { copy 4; copy 4 at 3 4 }", No, Some(1)),
    // Three loops with strides 4, 16 and 64, in every order of nesting. The last two entries
    // of this group have the strides -48 and 47 instead of 64.
    (
        "size 24 extent 4 loop count step 4 24 { loop 3 step 16 8 { loop 2 step 64 4 { copy 4 } } }",
        UpTo(4),
        Some(5),
    ),
    (
        "size 24 extent 4 loop count step 4 24 { loop 2 step 64 12 { loop 3 step 16 4 { copy 4 } } }",
        UpTo(4),
        Some(5),
    ),
    (
        "size 32 extent 16 loop count step 16 32 { loop 4 step 4 8 { loop 2 step 64 4 { copy 4 } } }",
        UpTo(4),
        Some(5),
    ),
    (
        "size 32 extent 16 loop count step 16 32 { loop 2 step 64 16 { loop 4 step -4 4 { copy 4 } } }",
        UpTo(4),
        Some(5),
    ),
    (
        "size 48 extent 64 loop count step 64 48 { loop 4 step 4 12 { loop 3 step 16 4 { copy 4 } } }",
        ANY,
        None,
    ),
    (
        "size 48 extent -48 loop count step -48 48 { loop 3 step 16 16 { loop 4 step 4 4 { copy 4 } } }",
        ANY,
        None,
    ),
    (
        "size 48 extent 47 loop count step 47 48 { loop 4 step 4 12 { loop 3 step 16 4 { copy 4 } } }",
        Unknown,
        Some(2),
    ),
    // The limit follows from the next larger stride only. The third stride is too small for the
    // first two loops: instances 0 and 2 overlap at byte 24.
    (
        "size 16 extent 4 loop count step 4 16 { loop 2 step 16 8 { loop 2 step 24 4 { copy 4 } } }",
        Unknown,
        Some(3),
    ),
    (
        "size 24 extent 60 loop count step 60 24 { loop 2 step 20 12 { loop 3 step 8 4 { copy 4 } } }",
        ANY,
        None,
    ),
    (
        "size 24 extent 60 loop count step 60 24 { loop 2 step 19 12 { loop 3 step 8 4 { copy 4 } } }",
        Unknown,
        Some(1),
    ),
    (
        "size 24 extent 60 loop count step 60 24 { loop 2 step 12 12 { loop 3 step 8 4 { copy 4 } } }",
        Unknown,
        None,
    ),
    // Loops with a single iteration, which do not matter.
    ("size 4 extent 4 loop count step 4 4 { loop 1 step 0 4 { copy 4 } }", ANY, None),
    ("size 4 extent 4 loop count step 4 4 { loop 1 step 1 4 { copy 4 } }", ANY, None),
    ("size 4 extent 4 loop count step 4 4 { loop 1 step -9 4 at 7 0 { copy 4 } }", ANY, None),
    (
        "size 12 extent 12 loop count step 12 12 { loop 1 step 99 8 { copy 4; copy 4 at 4 4 }; copy 4 at 8 8 }",
        ANY,
        None,
    ),
    // Nodes that move no byte, wherever they lie and however often they are repeated.
    ("size 0 extent 0 loop 0*count step 0 4 { copy 4 }", ANY, None),
    ("size 0 extent 0 loop count step 0 0 { loop 0 step 0 4 { copy 4 } }", ANY, None),
    ("size 0 extent 0 loop count step 0 0 { loop 0 step 4 8 { blocks [0:0:4 2:4:4] } }", ANY, None),
    ("size 0 extent 0 loop count step 0 0 { loop 3 step 0 0 { copy 0 } }", ANY, None),
    ("size 0 extent 0 loop count step 0 0 { table [] packed 8 { blocks [0:0:4 2:4:4] } }", ANY, None),
    ("size 0 extent 0 loop count step 0 0 { blocks [] }", ANY, None),
    ("size 0 extent 0 loop count step 0 0 { table [3 3] packed 0 { } }", ANY, None),
    ("size 4 extent 4 loop count step 4 4 { loop 0 step 0 4 { copy 4 }; copy 4 }", ANY, None),
    (
        "size 4 extent 4 loop count step 4 4 { copy 4; table [] packed 4 at 2 0 { copy 4 }; blocks [] at 90 0 }",
        ANY,
        None,
    ),
    // A node that moves nothing does not count, so the body has one node and its loop is perfectly
    // nested.
    ("size 8 extent 4 loop count step 4 8 { copy 0 at 1 0; loop 2 step 16 4 { copy 4 } }", UpTo(4), Some(5)),
    // Bodies of several nodes.
    ("size 8 extent 12 loop count step 12 8 { copy 4; copy 4 at 8 4 }", ANY, None),
    ("size 8 extent 11 loop count step 11 8 { copy 4; copy 4 at 8 4 }", Unknown, Some(2)),
    ("size 8 extent 4 loop count step 4 8 { copy 4; copy 4 at 8 4 }", Unknown, Some(3)),
    ("size 8 extent 8 loop count step 8 8 { copy 4; copy 4 at 4 4 }", ANY, None),
    ("size 8 extent 8 loop count step 8 8 { copy 4; copy 4 at 3 4 }", Unknown, Some(1)),
    ("size 8 extent 12 loop count step 12 8 { copy 4; copy 4 at -8 4 }", ANY, None),
    ("size 8 extent 11 loop count step 11 8 { copy 4; copy 4 at -8 4 }", Unknown, Some(2)),
    ("size 12 extent 24 loop count step 24 12 { copy 4 at 8 0; copy 4 at 20 4; copy 4 at 0 8 }", ANY, None),
    ("size 14 extent 24 loop count step 24 14 { copy 8; copy 2 at 4 8; copy 4 at 20 10 }", Unknown, Some(1)),
    (
        "size 12 extent 200 loop count step 200 12 { copy 4; loop 2 step 0 4 at 100 4 { copy 4 } }",
        No,
        Some(1),
    ),
    (
        "size 12 extent 200 loop count step 200 12 { loop 2 step 0 4 at 100 0 { copy 4 }; copy 4 at 0 8 }",
        No,
        Some(1),
    ),
    (
        "size 12 extent 200 loop count step 200 12 { copy 4; loop 2 step 3 4 at 100 4 { copy 4 } }",
        Unknown,
        Some(1),
    ),
    // The copy lies in the gap of the loop. The analysis compares only the ranges from the first to
    // the last byte of both, so it cannot show that they are disjoint.
    ("size 12 extent 12 loop count step 12 12 { loop 2 step 8 4 { copy 4 }; copy 4 at 4 8 }", Unknown, None),
    // Loops at several offsets in a body, in ascending and descending order.
    (
        "size 12 extent 20 loop count step 20 12 { loop 2 step 8 4 at 8 0 { copy 4 }; copy 4 at 0 8 }",
        ANY,
        None,
    ),
    (
        "size 12 extent 19 loop count step 19 12 { loop 2 step 8 4 at 8 0 { copy 4 }; copy 4 at 0 8 }",
        Unknown,
        Some(2),
    ),
    (
        "size 16 extent 24 loop count step 24 16 { loop 3 step -8 4 at 16 0 { copy 4 }; copy 4 at 20 12 }",
        ANY,
        None,
    ),
    (
        "size 16 extent 24 loop count step 24 16 { loop 3 step -8 4 at 16 0 { copy 4 }; copy 4 at 19 12 }",
        Unknown,
        Some(1),
    ),
    (
        "size 16 extent 24 loop count step 24 16 { loop 3 step -8 4 at 16 0 { copy 4 }; copy 4 at -4 12 }",
        ANY,
        None,
    ),
    (
        "size 16 extent 24 loop count step 24 16 { loop 3 step -8 4 at 16 0 { copy 4 }; copy 4 at -3 12 }",
        Unknown,
        Some(1),
    ),
    // Two nested loops next to a copy. The loops are folded into one range of bytes, by ascending
    // stride.
    (
        "size 52 extent 52 loop count step 52 52 { loop 4 step 4 12 { loop 3 step 16 4 { copy 4 } }; copy 4 at 48 48 }",
        ANY,
        None,
    ),
    // Blocks, whose rows have separate lengths.
    ("size 8 extent 12 loop count step 12 8 { blocks [0:0:4 8:4:4] }", ANY, None),
    ("size 8 extent 11 loop count step 11 8 { blocks [0:0:4 8:4:4] }", Unknown, Some(2)),
    ("size 12 extent 12 loop count step 12 12 { blocks [8:0:4 0:4:4 4:8:4] }", ANY, None),
    ("size 12 extent 99 loop count step 99 12 { blocks [8:0:4 0:4:4 3:8:4] }", No, Some(1)),
    ("size 8 extent 99 loop count step 99 8 { blocks [5:0:4 5:4:4] }", No, Some(1)),
    ("size 14 extent 99 loop count step 99 14 { blocks [0:0:10 2:10:3 20:13:1] }", No, Some(1)),
    ("size 8 extent 12 loop count step 12 8 { blocks [-8:0:4 0:4:4] at 3 0 }", ANY, None),
    ("size 12 extent 24 loop count step 24 12 { blocks [0:0:4 8:4:4] at 3 0; copy 4 at 15 8 }", ANY, None),
    (
        "size 12 extent 24 loop count step 24 12 { blocks [0:0:4 8:4:4] at 3 0; copy 4 at 14 8 }",
        Unknown,
        Some(1),
    ),
    ("size 12 extent 24 loop count step 24 12 { blocks [0:0:4 8:4:4] at 3 0; copy 4 at -1 8 }", ANY, None),
    (
        "size 12 extent 24 loop count step 24 12 { blocks [0:0:4 8:4:4] at 3 0; copy 4 at 0 8 }",
        Unknown,
        Some(1),
    ),
    // Tables over one copy.
    ("size 12 extent 20 loop count step 20 12 { table [0 8 16] packed 4 { copy 4 } }", ANY, None),
    ("size 12 extent 19 loop count step 19 12 { table [0 8 16] packed 4 { copy 4 } }", Unknown, Some(2)),
    (
        "size 12 extent 20 loop count step 20 12 { table [16 -3 8] packed 4 { copy 4 at 5 0 } }",
        Unknown,
        Some(2),
    ),
    ("size 12 extent 23 loop count step 23 12 { table [16 -3 8] packed 4 { copy 4 at 5 0 } }", ANY, None),
    ("size 8 extent 99 loop count step 99 8 { table [0 3] packed 4 { copy 4 } }", No, Some(1)),
    ("size 8 extent 99 loop count step 99 8 { table [7 7] packed 4 { copy 4 } }", No, Some(1)),
    (
        "size 12 extent 24 loop count step 24 12 { copy 4; table [0 8] packed 4 at 1 4 { copy 4 at 4 0 } }",
        ANY,
        None,
    ),
    (
        "size 12 extent 24 loop count step 24 12 { copy 4; table [0 8] packed 4 at -1 4 { copy 4 at 4 0 } }",
        Unknown,
        Some(1),
    ),
    // Tables over loops and bodies, whose rows are apart, interleaved, or at one place.
    (
        "size 24 extent 136 loop count step 136 24 { table [100 0] packed 12 { loop 3 step 16 4 { copy 4 } } }",
        ANY,
        None,
    ),
    (
        "size 24 extent 136 loop count step 136 24 { table [36 0] packed 12 { loop 3 step -16 4 { copy 4 } } }",
        ANY,
        None,
    ),
    (
        "size 24 extent 136 loop count step 136 24 { table [35 0] packed 12 { loop 3 step 16 4 { copy 4 } } }",
        Unknown,
        Some(1),
    ),
    (
        "size 24 extent 136 loop count step 136 24 { table [4 0] packed 12 { loop 3 step 16 4 { copy 4 } } }",
        Unknown,
        None,
    ),
    (
        "size 24 extent 136 loop count step 136 24 { table [0 0] packed 12 { loop 3 step 16 4 { copy 4 } } }",
        Unknown,
        Some(1),
    ),
    (
        "size 16 extent 136 loop count step 136 16 { table [0 50] packed 8 { loop 2 step 0 4 { copy 4 } } }",
        No,
        Some(1),
    ),
    (
        "size 16 extent 136 loop count step 136 16 { table [0 50] packed 8 { loop 2 step 2 4 { copy 4 } } }",
        Unknown,
        Some(1),
    ),
    (
        "size 16 extent 136 loop count step 136 16 { table [0 50] packed 8 { blocks [0:0:4 3:4:4] } }",
        No,
        Some(1),
    ),
    ("size 16 extent 22 loop count step 22 16 { table [0 12] packed 8 { blocks [0:0:4 6:4:4] } }", ANY, None),
    // The rows of a table are not a loop that can be sorted by its stride. Only the ranges from the
    // first to the last byte of the rows are compared.
    ("size 24 extent 4 loop count step 4 24 { table [0 16] packed 12 { copy 12 } }", Unknown, Some(2)),
    (
        "size 16 extent 4 loop count step 4 16 { loop 2 step 48 8 { table [0 16] packed 4 { copy 4 } } }",
        Unknown,
        Some(5),
    ),
    (
        "size 16 extent 20 loop count step 20 16 { loop 2 step 48 8 { table [0 16] packed 4 { copy 4 } } }",
        UpTo(2),
        None,
    ),
    // One body at two offsets.
    (
        "size 24 extent 88 let b = { loop 3 step 16 4 { copy 4 } } loop count step 88 24 { loop 1 step 0 12 b; loop 1 step 0 12 at 52 12 b }",
        ANY,
        None,
    ),
    (
        "size 24 extent 72 let b = { loop 3 step 16 4 { copy 4 } } loop count step 72 24 { loop 1 step 0 12 b; loop 1 step 0 12 at 36 12 b }",
        ANY,
        None,
    ),
    (
        "size 24 extent 72 let b = { loop 3 step 16 4 { copy 4 } } loop count step 72 24 { loop 1 step 0 12 b; loop 1 step 0 12 at 35 12 b }",
        Unknown,
        Some(1),
    ),
    (
        "size 24 extent 72 let b = { copy 4; copy 4 at 8 4 } loop count step 72 24 { loop 2 step 12 8 b; table [60] packed 8 at 0 16 b }",
        ANY,
        None,
    ),
];

fn nest<L: Leaf>(text: &str) -> LoopNest<Lowered, L> {
    // In these texts a semicolon ends a node, as a line break does.
    let nest: LoopNest<Lowered, L> =
        format!("nest lowered {}", text.replace(';', "\n")).parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    nest.verify().unwrap_or_else(|e| panic!("{text}: {e}"));
    nest
}

#[test]
fn nests_by_hand() {
    fn by_hand<L: Leaf>(list: &[(&str, Disjoint, Option<u64>)]) {
        for &(text, known, first) in list {
            let nest: LoopNest<Lowered, L> = nest(text);
            assert_eq!((nest.disjoint(), first_overlap(&nest, MAX_COUNT)), (known, first), "{text}");
            truthful(&nest, known, MAX_COUNT);
            // The result for the same bytes in canonical form may be weaker or stronger.
            let normal = normalize(&nest, 1000).unwrap().nest;
            truthful(&normal, normal.disjoint(), MAX_COUNT);
        }
    }
    by_hand::<Byte>(NESTS);
    by_hand::<Value>(VALUES);
}

/// Datatypes. Each item has the datatype, the expected result for its normal nest, and the smallest
/// instance count for which entries overlap.
const DATATYPES: &[(&str, Disjoint, Option<u64>)] = &[
    ("vector(3, 1, 4, int)", ANY, None),
    // Two loops that fill each other's gaps. Together they cover 48 bytes without a gap.
    ("hvector(4, 1, 4, vector(3, 1, 4, int))", ANY, None),
    ("resized(0, 48, hvector(4, 1, 4, vector(3, 1, 4, int)))", ANY, None),
    ("resized(0, 47, hvector(4, 1, 4, vector(3, 1, 4, int)))", Unknown, Some(2)),
    ("resized(0, -48, hvector(4, 1, 4, vector(3, 1, 4, int)))", ANY, None),
    ("resized(0, 0, hvector(4, 1, 4, vector(3, 1, 4, int)))", No, Some(2)),
    // Three of the four columns of a matrix. The second instance begins before the loops of the
    // first one end, so that entries of the two overlap.
    ("resized(0, 16, hvector(3, 1, 4, vector(3, 1, 4, int)))", Unknown, Some(2)),
    ("hvector(5, 1, 4, vector(3, 1, 4, int))", Unknown, Some(1)),
    // Each instance is one column of a matrix.
    ("resized(0, 4, vector(3, 1, 4, int))", UpTo(4), Some(5)),
    ("resized(0, -4, vector(3, 1, 4, int))", UpTo(4), Some(5)),
    ("resized(0, 4, vector(3, 1, -4, int))", UpTo(4), Some(5)),
    ("contiguous(2, resized(0, 4, vector(3, 1, 4, int)))", UpTo(2), Some(3)),
    ("resized(0, 4, vector(3, 1, 4, vector(2, 1, 32, int)))", UpTo(32), Some(33)),
    ("resized(0, 4, hvector(2, 1, 64, vector(3, 1, 4, int)))", UpTo(4), Some(5)),
    // The loop over instances fills the gaps in part: 3 shorts in 16 bytes.
    ("resized(0, 6, vector(3, 2, 8, short))", UpTo(3), Some(4)),
    ("resized(0, 1, int)", Unknown, Some(2)),
    ("resized(0, 0, int)", No, Some(2)),
    ("vector(9, 3, 2, int)", Unknown, Some(1)),
    ("vector(9, 2, 2, int)", ANY, None),
    ("vector(9, 2, -2, int)", ANY, None),
    ("vector(9, 2, 0, int)", No, Some(1)),
    ("contiguous(0, int)", ANY, None),
    ("resized(0, 0, contiguous(0, vector(3, 1, 0, int)))", ANY, None),
    ("struct([1, 0, 1], [0, 0, 8], [int, vector(3, 1, 0, int), double])", ANY, None),
    ("hindexed([1, 1], [0, 3], int)", Unknown, Some(1)),
    ("hindexed([1, 1], [0, 4], short)", ANY, None),
    ("struct([1, 1], [0, 3], [int, double])", No, Some(1)),
    ("subarray([8, 8], [3, 3], [1, 2], C, int)", ANY, None),
];

#[test]
fn datatypes_by_hand() {
    for &(text, known, first) in DATATYPES {
        let t: Datatype = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let lowered = lower(&t, Bytes).unwrap();
        let normal = normalize(&lowered, t.arguments()).unwrap().nest;
        assert_eq!(
            (normal.disjoint(), first_overlap(&normal, MAX_COUNT)),
            (known, first),
            "{text}\n{normal}"
        );
        truthful(&normal, known, MAX_COUNT);
        truthful(&lowered, lowered.disjoint(), MAX_COUNT);
    }
}

/// Tests a long body that many loops share. If each loop examined the body again, this would take
/// 4 * 10^8 steps for each nest.
#[test]
fn a_shared_body_is_examined_once() {
    let n = 20_000;
    // Places the types one after the other, with gaps of no regular length.
    let all = |types: &[Datatype]| {
        let mut end = 0;
        let places: Vec<i64> = (types.iter().zip(1_i64..))
            .map(|(t, i)| {
                let place = end + i * i % 7 * 8;
                end = place + t.extent();
                place
            })
            .collect();
        Datatype::structure(&vec![1; types.len()], &places, types).unwrap()
    };
    let strided = |i: i64| Datatype::hvector(3, 1, 16 + 8 * i, &Datatype::of::<f64>()).unwrap();
    let shared = all(&(0..n).map(strided).collect::<Vec<_>>());
    let repeated = |i: i64| Datatype::contiguous(i + 2, &shared).unwrap();
    let t = all(&(0..n).map(repeated).collect::<Vec<_>>());
    let lowered = lower(&t, Bytes).unwrap();
    assert_eq!(lowered.disjoint(), ANY);
    assert_eq!(normalize(&lowered, t.arguments()).unwrap().nest.disjoint(), ANY);
}

/// Tests counts that are too large for a list. With strides `1`, `2^41` and `3 * 2^40`, instance
/// `2^40` of the second iteration lies at `2^40 + 2^41`, where instance 0 of the third begins.
#[test]
fn limits_are_not_cut_off() {
    let two = "size 2 extent 1 loop count step 1 2 { loop 2 step 2199023255552 1 { copy 1 } }";
    assert_eq!(nest::<Byte>(two).disjoint(), UpTo(1 << 41));
    let three = "size 4 extent 1 loop count step 1 4 { loop 2 step 2199023255552 2 { loop 2 step 3298534883328 1 { copy 1 } } }";
    assert_eq!(nest::<Byte>(three).disjoint(), Unknown);
    let far = "size 2 extent 1 loop count step 1 2 { loop 2 step 9223372036854775807 1 { copy 1 } }";
    assert_eq!(nest::<Byte>(far).disjoint(), UpTo(i64::MAX as u64));
    // Instances at a distance of 2^62 bytes do not overlap, although four of them reach up to 2^64.
    let wide = "size 4 extent 4611686018427387904 loop count step 4611686018427387904 4 { copy 4 }";
    assert_eq!(nest::<Byte>(wide).disjoint(), ANY);
}

#[test]
fn a_limit_holds_up_to_itself() {
    let held = |known: Disjoint| [0, 1, 4, 5, u64::MAX].map(|count| known.holds(count));
    assert_eq!(held(UpTo(4)), [true, true, true, false, false]);
    assert_eq!(held(UpTo(0)), [true, false, false, false, false]);
    assert_eq!(held(ANY), [true; 5]);
    assert_eq!(held(No), [false; 5]);
    assert_eq!(held(Unknown), [false; 5]);
}

/// Generator of small random nests with all kinds of nodes. It makes bodies from the leaves up, so
/// that some bodies are shared.
struct Random<'c> {
    nodes: Vec<Node>,
    /// Bodies made so far, with the packed bytes of one iteration.
    bodies: Vec<(Body, i64)>,
    c: Choices<'c>,
}

impl Random<'_> {
    fn nest(seed: u64) -> LoopNest<Lowered> {
        let mut r = Random { nodes: Vec::new(), bodies: Vec::new(), c: Choices::from_seed(seed) };
        for _ in 0..1 + r.c.below(3) {
            let several = r.c.chance(30);
            let nodes = (0..if several { 2 + r.c.below(2) } else { 1 }).map(|_| r.node()).collect();
            r.seal(nodes);
        }
        let (body, packed) = r.bodies[r.bodies.len() - 1];
        let trip = Quantity::counted(if r.c.chance(20) { 1 + r.c.below(4) } else { 1 });
        let step = Offsets::new(r.stride(), packed);
        let (size, extent) = (packed * trip.k as i64, step.user * trip.k as i64);
        let root = Node::Loop { at: Offsets::ZERO, trip, step, body };
        let root = if r.c.chance(5) { Node::Copy { at: Offsets::ZERO, n: trip, unit: Byte } } else { root };
        let size = if let Node::Copy { n, .. } = root { n.k as i64 } else { size };
        let start = r.nodes.len() as u32;
        r.nodes.push(root);
        LoopNest::new(r.nodes, Body { start, len: 1 }, size, extent)
    }

    fn seal(&mut self, nodes: Vec<(Node, i64)>) {
        let body = Body { start: self.nodes.len() as u32, len: nodes.len() as u32 };
        self.bodies.push((body, nodes.iter().map(|n| n.1).sum()));
        self.nodes.extend(nodes.into_iter().map(|n| n.0));
    }

    /// Returns a random stride. Some strides are small and others large, so that many loops nest
    /// without overlap; some strides are negative.
    fn stride(&mut self) -> i64 {
        let stride = match self.c.below(4) {
            0 => self.c.below(5) as i64,
            1 => self.c.below(12) as i64,
            2 => 4 * self.c.below(8) as i64,
            _ => 8 * self.c.below(16) as i64,
        };
        if self.c.chance(20) { -stride } else { stride }
    }

    fn place(&mut self) -> Offsets {
        let user = if self.c.chance(60) { self.stride() } else { 0 };
        Offsets::new(user, 0)
    }

    /// Makes a node and returns it with its packed bytes. Packed offsets are 0, because the
    /// analysis of user bytes does not read them.
    fn node(&mut self) -> (Node, i64) {
        let at = self.place();
        let body = self.bodies.len().checked_sub(1).map(|last| {
            let back = if self.c.chance(30) { self.c.below(last as u64 + 1) as usize } else { 0 };
            self.bodies[last - back]
        });
        match (self.c.below(8), body) {
            (0..=3, Some((body, packed))) => {
                let trip = Quantity::fixed(self.c.pick(&[2, 3, 2, 4, 1, 0]));
                let step = Offsets::new(self.stride(), packed);
                (Node::Loop { at, trip, step, body }, trip.k as i64 * packed)
            }
            (4, Some((body, packed))) => {
                let rows: Vec<i64> = (0..self.c.below(4)).map(|_| self.stride()).collect();
                let size = rows.len() as i64 * packed;
                (Node::Table { at, displacements: rows.into(), packed, body }, size)
            }
            (5 | 6, _) => {
                let mut rows = [Vec::new(), Vec::new(), Vec::new()];
                for _ in 0..self.c.below(4) {
                    [self.stride(), 0, 1 + self.c.below(4) as i64]
                        .into_iter()
                        .zip(&mut rows)
                        .for_each(|(v, r)| r.push(v));
                }
                let size = rows[2].iter().sum();
                let [user, packed, len] = rows.map(crate::column::Column::from);
                (Node::Blocks { at, user, packed, len, unit: Byte }, size)
            }
            _ => {
                let n = self.c.pick(&[4, 1, 2, 4, 8, 0]);
                (Node::bytes(at, n), n as i64)
            }
        }
    }
}

/// Number of results of each kind, and number of results that could have been better.
#[derive(Default, Debug)]
struct Shares {
    any: u64,
    limited: u64,
    no: u64,
    unknown: u64,
    /// Number of `Unknown` results for nests whose first instances do not overlap.
    missed: u64,
    /// Number of limits after which one more instance does overlap.
    exact: u64,
}

impl Shares {
    fn take<P: Phase>(&mut self, nest: &LoopNest<P>, max_count: u64) {
        let known = nest.disjoint();
        truthful(nest, known, max_count);
        match known {
            UpTo(u64::MAX) => self.any += 1,
            UpTo(limit) => {
                self.limited += 1;
                // The gaps of these nests are smaller than 1000 bytes, so finite limits are smaller
                // than 1000 too.
                assert!(limit < 1000, "{known:?}\n{nest}");
                self.exact += u64::from(overlaps(nest, limit + 1));
            }
            No => self.no += 1,
            Unknown => {
                self.unknown += 1;
                self.missed += u64::from(!overlaps(nest, max_count));
            }
        }
    }
}

#[test]
fn random_nests() {
    let (mut lowered, mut normal) = (Shares::default(), Shares::default());
    let n = 20_000;
    for seed in 0..n {
        let nest = Random::nest(seed);
        nest.verify().unwrap_or_else(|e| panic!("{e}\n{nest}"));
        lowered.take(&nest, 8);
        let made: LoopNest<Normal> = normalize(&nest, 100).unwrap().nest;
        normal.take(&made, 8);
    }
    for shares in [lowered, normal] {
        // An analysis that always answers `Unknown` must not pass.
        assert!(shares.any > n / 2 && shares.limited > n / 40 && shares.no > n / 8, "{shares:?}");
        assert!(shares.exact * 2 > shares.limited && shares.missed < n / 25, "{shares:?}");
    }
}

#[test]
fn random_datatypes() {
    let mut shares = Shares::default();
    let n = 4_000;
    for seed in 0..n {
        let t = datatype(&mut Choices::from_seed(seed), &Budget::small());
        let nest = normalize(&lower(&t, Bytes).unwrap(), t.arguments()).unwrap().nest;
        shares.take(&nest, 5);
    }
    assert!(shares.any > n * 4 / 5 && shares.limited > n / 100 && shares.no > n / 40, "{shares:?}");
    assert!(shares.exact * 2 > shares.limited && shares.missed < n / 100, "{shares:?}");
}
