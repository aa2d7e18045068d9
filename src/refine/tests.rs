use super::*;
use crate::datatype::Datatype;
use crate::exec::interp;
use crate::fuzzing::{self, Budget, Choices};
use crate::kind::Op;
use crate::lower::{self, Bytes};
use crate::nest::Byte;
use crate::normalize;

fn t(text: &str) -> Datatype {
    text.parse().unwrap()
}

fn normal(t: &Datatype) -> (LoopNest<Normal>, i64) {
    let normal = normalize::normalize(&lower::lower(t, Bytes).unwrap(), t.arguments()).unwrap();
    (normal.nest, normal.origin)
}

fn refined(from: &str, to: &str) -> Refined<Byte> {
    let refined = refine(&normal(&t(from)).0, &normal(&t(to)).0).unwrap().unwrap();
    refined.nest.verify().unwrap_or_else(|e| panic!("{e}\n{}", refined.nest));
    refined
}

/// Returns the user memory that `count` instances need: its size in bytes, and the index of
/// displacement 0.
fn memory(t: &Datatype, count: u64) -> (usize, usize) {
    let last = (count as i64 - 1).max(0) * t.extent();
    let low = (t.true_lb() + last.min(0)).min(0);
    let high = (t.true_ub() + last.max(0)).max(0);
    ((high - low) as usize, (-low) as usize)
}

/// Moves `periods` joint periods and compares the result with packing and unpacking by the
/// definition. Returns false if the types cannot be joined, or if they need too much memory for the
/// test.
fn check(from: &Datatype, to: &Datatype, periods: u64) -> bool {
    let ((a, from_origin), (b, to_origin)) = (normal(from), normal(to));
    let Ok(refined) = refine(&a, &b).unwrap() else { return false };
    let at = |e| panic!("{e}\n{from}\n{to}\n{}", refined.nest);
    refined.nest.verify().unwrap_or_else(at);
    if refined.period == 0 {
        assert!(from.size() == 0 || to.size() == 0);
        return true;
    }
    // Use enough whole instances of each type to cover the bytes of these periods.
    let bytes = refined.period * periods;
    let counts = [from, to].map(|t| bytes.div_ceil(t.size() as u64));
    if counts.into_iter().zip([from, to]).any(|(n, t)| n * t.extent().unsigned_abs() > 1 << 22) {
        return false;
    }
    let ((from_len, from_at), (to_len, to_at)) = (memory(from, counts[0]), memory(to, counts[1]));
    // Pack the instances of `from` by the definition, and unpack the bytes of the periods to `to`.
    let mut source: Vec<u8> = (0..from_len).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut stream = vec![0; (counts[0] * from.size() as u64) as usize];
    interp::pack(from, counts[0], &source, from_at, &mut stream).unwrap();
    let before = vec![0xa5; to_len];
    let mut want = before.clone();
    interp::unpack_range(to, counts[1], &stream[..bytes as usize], &mut want, to_at, 0).unwrap();
    // The fused nest must move the same bytes directly, without the stream, both before and after
    // normalization.
    let normal = normalize::normalize(&refined.nest, from.arguments() + to.arguments()).unwrap();
    normal.nest.verify().unwrap_or_else(at);
    let periods = if refined.still { 1 } else { periods };
    let places = [
        (&refined.nest.to_string(), 0, 0, true),
        (&normal.nest.to_string(), normal.origin, normal.packed_origin, false),
    ];
    for (text, user, packed, lowered) in places {
        let mut got = before.clone();
        let from_at = (from_at as i64 + from_origin + user) as usize;
        let to_at = to_at as i64 + to_origin + packed;
        let mut put = |v: crate::nest::Visit| {
            for i in 0..v.n as i64 {
                let (u, p) = (from_at as i64 + v.at.user + i, to_at + v.at.packed + i);
                got[p as usize] = source[u as usize];
            }
        };
        if lowered {
            refined.nest.visit(periods, &mut put);
        } else {
            normal.nest.visit(periods, &mut put);
        }
        assert!(got == want, "{periods} periods from {from}\nto {to}\n{text}");
    }
    source.clear();
    true
}

fn text(from: &str, to: &str) -> String {
    let text = refined(from, to).nest.to_string();
    let lines = text.lines().skip(1).map(str::trim).filter(|line| *line != "}");
    lines.collect::<Vec<_>>().join("; ")
}

#[test]
fn equal_structure_stays() {
    // Two blocks of two elements match four blocks of one element.
    assert_eq!(
        text("vector(4, 1, 2, double)", "vector(2, 2, 3, double)"),
        "loop count step 56 40 {; loop 2 step 32 24 {; loop 2 step 16 8 {; copy 8"
    );
    // If one side is dense, the fused nest has the structure of the other side.
    assert_eq!(
        text("resized(0, 32, struct([1, 1, 3], [0, 8, 16], [int, double, float]))", "byte"),
        "loop count step 32 24 {; blocks [0:0:4 8:4:20]"
    );
    // One matrix is read by columns, the other one is written by rows.
    assert_eq!(
        text(
            "contiguous(8, resized(0, 16, vector(6, 1, 10, double_complex)))",
            "vector(8, 6, 9, double_complex)"
        ),
        "loop count step 128 1104 {; loop 8 step 16 144 {; loop 6 step 160 16 {; copy 16"
    );
}

#[test]
fn a_period_is_the_least_common_multiple() {
    let r = refined("vector(6, 1, 2, int)", "vector(4, 1, 3, int)");
    assert_eq!((r.period, r.still, r.nest.size()), (48, false, 48));
    // The two loops end at different places of the stream, so each is cut where the other ends.
    assert_eq!(
        text("vector(6, 1, 2, int)", "vector(4, 1, 3, int)"),
        "loop count step 88 120 {; loop 4 step 8 12 {; copy 4; loop 2 step 8 12 at 32 40 {; copy 4; \
         loop 2 step 8 12 at 44 64 {; copy 4; loop 4 step 8 12 at 60 80 {; copy 4"
    );
    // An iteration of the first root is a single element and not a whole instance of 1000 elements,
    // so the period is short.
    assert_eq!(refined("contiguous(1000, resized(0, 8, int))", "vector(3, 1, 2, int)").period, 12);
    assert_eq!(refined("vector(1000003, 1, 2, int)", "vector(7, 3, 5, int)").period, 4 * 21 * 1000003);
}

#[test]
fn rows_stay_rows_on_the_user_side() {
    assert_eq!(
        text("indexed_block(1, [5, 0, 9], int)", "vector(3, 1, 2, int)"),
        "loop count step 40 20 {; table [0 -20 16] packed 8 {; copy 4"
    );
    assert_eq!(
        text("vector(3, 1, 2, int)", "indexed_block(1, [5, 0, 9], int)"),
        "loop count step 20 40 {; blocks [0:0:4 8:-20:4 16:16:4]"
    );
    // If a body is more than a single copy, the rows that use it share it.
    let nest = refined(
        "hvector(3, 1, 64, vector(2, 1, 2, int))",
        "indexed_block(1, [5, 0, 9], vector(2, 1, 2, int))",
    )
    .nest;
    assert_eq!(nest.nodes().len(), 6, "{nest}");
}

#[test]
fn what_stays_in_place() {
    let r = refined("vector(4, 1, 2, double)", "resized(0, 0, vector(2, 2, 3, double))");
    assert_eq!(r.nest.to_string().lines().nth(1), Some("loop count step 56 0 {"));
    assert!(!r.still);
    let r = refined("resized(0, 0, vector(2, 1, 2, int))", "resized(0, 0, vector(2, 1, 5, int))");
    assert!(r.still, "every period is the same");
    // A loop whose step is 0 on both sides is executed only once.
    assert_eq!(
        text("hvector(5, 1, 0, vector(2, 1, 2, int))", "hvector(5, 1, 0, vector(2, 1, 3, int))"),
        "loop count step 12 16 {; loop 1 step 0 0 {; loop 2 step 8 12 {; copy 4"
    );
    assert_eq!(refined("contiguous(0, int)", "int").period, 0);
}

#[test]
fn rows_are_paid_for() {
    // Two tables of 60,000 and 40,000 rows have no common period. The fused nest has no more rows
    // than both tables together.
    let table = |n: i64, len: i64| {
        let places: Vec<i64> = (0..n).map(|i| 3 * len * i + i % 7).collect();
        Datatype::indexed_block(len, &places, &t("int")).unwrap()
    };
    let (a, b) = (table(60_000, 2), table(40_000, 3));
    let rows = refine(&normal(&a).0, &normal(&b).0).unwrap().unwrap();
    assert!(rows.nest.nodes().iter().map(Node::rows).sum::<usize>() <= 100_000);
    // The ends of the instances rarely coincide here, so both sides would be unfolded very many
    // times.
    let (a, b) = (table(1009, 2), table(1013, 3));
    let refused = refine(&normal(&a).0, &normal(&b).0).unwrap().map(|refined| refined.nest.nodes().len());
    assert_eq!(refused, Err(Refusal { reason: "the joint nest has too many rows" }));
}

/// Bytes can always be joined, but values only if their classes are equal. An integer and a float
/// of the same size have different classes.
#[test]
fn values_of_other_classes_are_refused() {
    let values = |text: &str| {
        let t = t(text);
        let lowered = lower::lower(&t, lower::Reduced(Op::Sum)).unwrap();
        normalize::normalize(&lowered, t.arguments()).unwrap().nest
    };
    let joined = |a: &str, b: &str| refine(&values(a), &values(b)).unwrap().map(|refined| refined.period);
    assert_eq!(joined("vector(4, 1, 2, int)", "vector(2, 2, 3, int)"), Ok(16));
    let refused = Err(Refusal { reason: "values of different classes" });
    assert_eq!(joined("vector(4, 1, 2, int)", "vector(2, 2, 3, float)"), refused);
    assert_eq!(joined("hindexed([1, 2], [0, 9], int)", "hindexed([2, 1], [0, 11], float)"), refused);
}

/// A nest that has only loops has no rows, but joining it takes steps for its nodes.
#[test]
fn nodes_are_paid_for() {
    // So many pairs of loops take more steps than `BASE_STEPS`.
    const LOOPS: i64 = BASE_STEPS as i64 + 100;
    let loops = |step: i64| {
        let members: Vec<Datatype> =
            (0..LOOPS).map(|i| t(&format!("vector(2, 1, {}, int)", step + i * 7 % 5))).collect();
        let places: Vec<i64> = (0..LOOPS).map(|i| 100 * i + 12 * (i * i % 7)).collect();
        Datatype::structure(&vec![1; LOOPS as usize], &places, &members).unwrap()
    };
    let (from, to) = (normal(&loops(2)).0, normal(&loops(3)).0);
    assert!(from.nodes().len() > LOOPS as usize && from.nodes().iter().all(|node| node.rows() == 0));
    let refined = refine(&from, &to).unwrap().unwrap();
    assert_eq!(refined.period, 8 * LOOPS as u64);
}

/// Tests random pairs of types. Any two layouts can be joined over a stream of bytes.
#[test]
fn random_pairs() {
    let (mut joined, mut tried) = (0, 0);
    for seed in 0..400 {
        let mut choices = Choices::from_seed(seed);
        let from = fuzzing::datatype(&mut choices, &Budget::default());
        let to = fuzzing::datatype(&mut choices, &Budget::default());
        if from.size() > 0 && to.size() > 0 {
            tried += 1;
            joined += usize::from(check(&from, &to, 1) && check(&from, &to, 3));
        }
    }
    assert!(joined * 2 > tried, "{joined} of {tried}");
}
