//! The worked example of docs/records/kinds.md. It uses the nest of one datatype under different
//! kinds: for ranges of the packed stream, positions in it, external32, reductions and direct
//! copies.
//!
//! The evaluator of each kind consists of a few lines over `LoopNest::visit` or `Interval`. Its
//! result is compared with what the type map gives.

use ddtc::internal::datatype::{Datatype, Named};
use ddtc::internal::exec::interp;
use ddtc::internal::interval::Interval;
use ddtc::internal::kind::Direction;
use ddtc::internal::lower::{self, Bytes, External32, Leaves, Native};
use ddtc::internal::methods::*;
use ddtc::internal::nest::{
    Body, Leaf, LoopNest, Lowered, Node, Normal, Number, Offsets, Phase, Value, ValueClass, Visit,
};
use ddtc::internal::{normalize, refine};

use crate::text::{blocks, read};

/// A copy of `len` bytes between an offset in user memory and an offset in the packed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    at: Offsets,
    len: i64,
}

fn normal<V: Leaves>(t: &Datatype, leaves: V) -> LoopNest<Normal, V::Leaf> {
    let normal = normalize::normalize(&lower::lower(t, leaves).unwrap(), t.arguments()).unwrap();
    normal.nest.verify().unwrap();
    assert_eq!((normal.origin, normal.packed_origin), (0, 0), "the example starts at displacement 0");
    normal.nest
}

/// Returns the leaf copies of a type at their original offsets in user memory. Normalization
/// subtracts one common offset, so that the normal nest begins at 0. This function adds that offset
/// again.
fn placed_visits(t: &Datatype, count: u64) -> Vec<Visit> {
    let normal = normalize::normalize(&lower::lower(t, Bytes).unwrap(), t.arguments()).unwrap();
    let mut found = visits(&normal.nest, count);
    for v in &mut found {
        v.at.user += normal.origin;
    }
    found
}

fn visits<P: Phase, L: Leaf>(nest: &LoopNest<P, L>, count: u64) -> Vec<Visit<L>> {
    let mut found = Vec::new();
    nest.visit(count, |v| found.push(v));
    found
}

/// Returns the leaf copies of a nest that lie in an interval of the packed stream, cut at the ends
/// of the interval.
fn range(nest: &LoopNest<Normal>, count: u64, interval: Interval) -> Vec<Piece> {
    let pieces = visits(nest, count).into_iter().map(|v| {
        let (at, len) = interval.clip(v.at, v.n as i64);
        Piece { at, len }
    });
    pieces.filter(|p| p.len > 0).collect()
}

/// The place of a packed byte in a nest: the iteration of each loop and table that contains the
/// byte, the row of a list of blocks if there is one, and the rest of the byte's leaf copy from
/// this byte on.
struct Place {
    path: Vec<(&'static str, u64)>,
    rest: Piece,
}

/// Finds the place in `nest` of the packed byte with offset `position`, by division and binary
/// search.
fn locate(nest: &LoopNest<Normal>, count: u64, position: i64) -> Place {
    let byte = Interval { from: position, to: position + 1 };
    // In each round, `at` is the offset of `body`, which contains the byte. Find the node of `body`
    // that contains the byte. If the node is a leaf, return; otherwise enter the node's iteration
    // that contains the byte.
    let mut path = Vec::new();
    let mut at = Offsets::ZERO;
    let mut body: Body = nest.root();
    loop {
        let nodes = nest.body(body);
        let node = &nodes[nodes.partition_point(|n| at.packed + n.offsets().packed <= position) - 1];
        at = at + node.offsets();
        let leaf = |at: Offsets, len: i64| {
            let (inside, _) = byte.clip(at, len);
            Piece { at: inside, len: len - (inside.packed - at.packed) }
        };
        match node {
            Node::Loop { trip, step, body: inner, .. } => {
                let i = byte.pieces(at.packed, step.packed, trip.for_count(count)).start;
                path.push(("iteration", i));
                at = at.step(*step, i as i64);
                body = *inner;
            }
            Node::Table { displacements, packed, body: inner, .. } => {
                let i = byte.pieces(at.packed, *packed, displacements.len() as u64).start;
                path.push(("iteration", i));
                at = at + Offsets::new(displacements.get(i as usize), packed * i as i64);
                body = *inner;
            }
            Node::Blocks { user, packed, len, .. } => {
                let starts: Vec<i64> = packed.iter().collect();
                let i = starts.partition_point(|p| at.packed + p <= position) - 1;
                path.push(("row", i as u64));
                return Place { path, rest: leaf(at + Offsets::new(user.get(i), packed.get(i)), len.get(i)) };
            }
            Node::Copy { .. } => return Place { path, rest: leaf(at, node.packed_bytes(count)) },
        }
    }
}

/// Returns an integer, given as little-endian bytes, in `len` bytes. The integer is truncated or
/// extended. A signed integer is extended by its sign, and an unsigned one by zeros.
fn resized(number: Number, value: &[u8], len: usize) -> Vec<u8> {
    let negative = number == Number::Int && value.last().is_some_and(|b| b & 0x80 != 0);
    assert!(matches!(number, Number::Int | Number::Uint), "the example has no {number:?} of two sizes");
    let mut value = value.to_vec();
    value.resize(len, if negative { 0xff } else { 0 });
    value
}

/// Returns `bytes` in reverse order if this machine is little-endian, and unchanged otherwise.
fn turned(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if cfg!(target_endian = "little") {
        bytes.reverse();
    }
    bytes
}

/// Converts one value between native bytes and external32 bytes, which are big-endian. Integers are
/// truncated or extended, signed ones by their sign (MPI 5.0, 14.5.2).
fn swap(direction: Direction, value: Value, user: &mut [u8], packed: &mut [u8]) {
    let converted = |from: &[u8], len| match value.class() {
        ValueClass::Resize(number) => {
            let mut little = from.to_vec();
            little.reverse();
            let mut resized = resized(number, &little, len);
            resized.reverse();
            resized
        }
        _ => from.to_vec(),
    };
    match direction {
        Direction::Pack => packed.copy_from_slice(&converted(&turned(user), packed.len())),
        Direction::Unpack => user.copy_from_slice(&turned(&converted(packed, user.len()))),
    }
}

/// Converts `count` instances to or from external32. The function visits the leaves as a copy does,
/// and converts each value.
fn external32(
    nest: &LoopNest<Normal, Value>,
    direction: Direction,
    count: u64,
    user: &mut [u8],
    packed: &mut [u8],
) {
    for v in visits(nest, count) {
        let (from, to) = (v.unit.user() as usize, v.unit.packed() as usize);
        for i in 0..v.n as usize {
            let (u, p) = (v.at.user as usize + i * from, v.at.packed as usize + i * to);
            swap(direction, v.unit, &mut user[u..u + from], &mut packed[p..p + to]);
        }
    }
}

/// Adds one packed value to the value in user memory. Only the classes of values that the example
/// contains are known.
fn add(value: Value, user: &mut [u8], packed: &[u8]) {
    macro_rules! sum {
        ($t:ty) => {{
            let value = |b: &[u8]| <$t>::from_ne_bytes(b.try_into().unwrap());
            let sum = value(user) + value(packed);
            user.copy_from_slice(&sum.to_ne_bytes());
        }};
    }
    match (value.class(), value.user()) {
        (ValueClass::Native(Number::Float), 4) => sum!(f32),
        (ValueClass::Native(Number::Int), 4) => sum!(i32),
        (ValueClass::Native(Number::Int), 8) => sum!(i64),
        _ => panic!("the example has no {value}"),
    }
}

/// Reduces packed values into user memory by addition. The function visits the leaves as a copy
/// does, and adds each packed value to the value in user memory.
fn reduce(nest: &LoopNest<Normal, Value>, count: u64, user: &mut [u8], packed: &[u8]) {
    for v in visits(nest, count) {
        let len = v.unit.user() as usize;
        for i in 0..v.n as usize {
            let (u, p) = (v.at.user as usize + i * len, v.at.packed as usize + i * len);
            add(v.unit, &mut user[u..u + len], &packed[p..p + len]);
        }
    }
}

/// Returns the pieces of a direct copy from one layout to another. `from` and `to` are the leaf
/// copies of both layouts; a piece ends where a leaf copy of either layout ends. A piece goes from
/// `at.user` in the first layout to `at.packed` in the second.
fn direct(from: &[Visit], to: &[Visit]) -> Vec<Piece> {
    let (mut i, mut j, mut position) = (0, 0, 0);
    let mut found = Vec::new();
    while i < from.len() && j < to.len() {
        let (a, b) = (from[i], to[j]);
        let end = (a.at.packed + a.n as i64).min(b.at.packed + b.n as i64);
        let at = Offsets::new(a.at.user + position - a.at.packed, b.at.user + position - b.at.packed);
        found.push(Piece { at, len: end - position });
        position = end;
        i += usize::from(end == a.at.packed + a.n as i64);
        j += usize::from(end == b.at.packed + b.n as i64);
    }
    assert_eq!((i, j), (from.len(), to.len()), "equal signatures have equal streams");
    found
}

/// Returns the text that a block of docs/records/kinds.md must have if its tag is `kind` with the
/// given words after it. `t` is the datatype of the example.
pub(crate) fn shown(words: &[&str], t: &Datatype) -> String {
    let number = |w: &str| w.parse::<i64>().unwrap();
    let copy = |p: &Piece| format!("user {} packed {} len {}\n", p.at.user, p.at.packed, p.len);
    let nest = normal(t, Bytes);
    match words {
        ["visit"] => visits(&nest, 2).iter().map(|v| copy(&Piece { at: v.at, len: v.n as i64 })).collect(),
        ["range", from, to] => {
            range(&nest, 2, Interval { from: number(from), to: number(to) }).iter().map(copy).collect()
        }
        ["positions", positions @ ..] => positions
            .iter()
            .map(|p| {
                let Place { path, rest } = locate(&nest, 2, number(p));
                let path: Vec<String> = path.iter().map(|(what, i)| format!("{what} {i}")).collect();
                format!("byte {p}: {}: user {}, {} to go\n", path.join(", "), rest.at.user, rest.len)
            })
            .collect(),
        ["external32"] => visits(&normal(t, External32), 2)
            .iter()
            .map(|v| {
                let (u, p) = (v.unit.user() * v.n as i64, v.unit.packed() * v.n as i64);
                format!("user {} len {u}, packed {} len {p}\n", v.at.user, v.at.packed)
            })
            .collect(),
        ["direct", other @ ..] => {
            let other: Datatype = other.join(" ").parse().unwrap();
            let pieces = direct(&placed_visits(t, 2), &placed_visits(&other, 2));
            pieces.iter().map(|p| format!("from {} to {} len {}\n", p.at.user, p.at.packed, p.len)).collect()
        }
        _ => panic!("no such kind: {words:?}"),
    }
}

/// Returns the datatype of the example in docs/records/kinds.md, and the second datatype of the
/// example's direct copy.
fn example() -> (Datatype, Datatype) {
    let document = read("docs/records/kinds.md");
    let (_, section) = document.split_once("\n## The example\n").expect("the example");
    let blocks = blocks(section);
    let find = |tag: &str| blocks.iter().find(|b| b.tag.starts_with(tag)).unwrap_or_else(|| panic!("{tag}"));
    let t: Datatype = find("datatype").text.parse().unwrap();
    let other: Datatype = find("kind direct ").tag["kind direct ".len()..].parse().unwrap();
    assert_eq!(t.signature(), other.signature());
    (t, other)
}

const COUNT: u64 = 5;

/// Returns user memory with small values of each basic type, so that sums and conversions are
/// exact. The bytes in gaps between values are 0xdd.
fn values(t: &Datatype, first: i32) -> Vec<u8> {
    let mut user = vec![0xdd; (COUNT as i64 * t.extent()) as usize];
    let mut value = first;
    interp::for_each(t, COUNT, &mut |at, len, basic| {
        let at = at as usize;
        match basic {
            Named::Float => user[at..at + len].copy_from_slice(&(value as f32).to_ne_bytes()),
            Named::Long => user[at..at + len].copy_from_slice(&std::ffi::c_long::from(value).to_ne_bytes()),
            Named::Int => user[at..at + len].copy_from_slice(&value.to_ne_bytes()),
            _ => panic!("the example has no {basic}"),
        }
        value = -value + 3 * value.signum();
    })
    .unwrap();
    user
}

fn packed(t: &Datatype, user: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; (COUNT as i64 * t.size()) as usize];
    interp::pack(t, COUNT, user, 0, &mut packed).unwrap();
    packed
}

#[test]
fn ranges_are_cut_leaves() {
    let (t, _) = example();
    let (user, nest) = (values(&t, 7), normal(&t, Bytes));
    let whole = packed(&t, &user);
    let n = whole.len();
    for (from, to) in (0..n).flat_map(|from| (from..=n).map(move |to| (from, to))) {
        let mut got = vec![0xee; to - from];
        for p in range(&nest, COUNT, Interval { from: from as i64, to: to as i64 }) {
            for i in 0..p.len {
                got[(p.at.packed + i) as usize - from] = user[(p.at.user + i) as usize];
            }
        }
        assert_eq!(got, whole[from..to], "[{from}, {to})");
    }
}

#[test]
fn positions_are_found_afresh() {
    let (example, other) = example();
    let more =
        ["vector(7, 3, 5, short)", "indexed_block(2, [0, 9, 4], vector(2, 1, 2, int))", "contiguous(9, int)"];
    let more = more.map(|text| text.parse::<Datatype>().unwrap());
    for t in [example, other].iter().chain(&more) {
        let normalized = normalize::normalize(&lower::lower(t, Bytes).unwrap(), 1).unwrap();
        let (nest, origin) = (normalized.nest, normalized.origin);
        let user: Vec<u8> = (0..(t.extent() as usize * COUNT as usize)).map(|i| (i * 7) as u8).collect();
        let whole = packed(t, &user);
        for piece in [1, 5, 24, whole.len()] {
            let mut got = Vec::new();
            for end in (0..whole.len()).step_by(piece).map(|from| (from + piece).min(whole.len())) {
                while got.len() < end {
                    let Piece { at, len } = locate(&nest, COUNT, got.len() as i64).rest;
                    assert_eq!(at.packed, got.len() as i64);
                    let (start, len) = ((at.user + origin) as usize, (len as usize).min(end - got.len()));
                    got.extend_from_slice(&user[start..start + len]);
                }
            }
            assert_eq!(got, whole, "pieces of {piece} bytes of {t}");
        }
    }
}

#[test]
fn external32_is_another_leaf_and_other_lengths() {
    let (t, _) = example();
    let nest = normal(&t, External32);
    assert_eq!((t.size(), nest.size()), (24, 20), "long has 8 bytes here and 4 in external32");
    let user = values(&t, -2);
    let mut stream = vec![0; nest.size() as usize * COUNT as usize];
    external32(&nest, Direction::Pack, COUNT, &mut user.clone(), &mut stream);
    // These first values were computed by hand by the formula in `values`: int -2, long -1 = -(-2)
    // - 3, float -2 = -(-1) - 3.
    assert_eq!(stream[..12], [0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xc0, 0, 0, 0]);
    // Compute the expected stream by the type map: convert one value after the other, and append
    // each converted value to `want`.
    let mut want = Vec::new();
    interp::for_each(&t, COUNT, &mut |at, len, basic| {
        let mut value = vec![0; basic.external32_size() as usize];
        let (unit, _) = Value::external32(basic);
        swap(Direction::Pack, unit, &mut user[at as usize..at as usize + len].to_vec(), &mut value);
        want.extend(value);
    })
    .unwrap();
    assert_eq!(stream, want);
    let mut back = vec![0xdd; user.len()];
    external32(&nest, Direction::Unpack, COUNT, &mut back, &mut stream);
    assert_eq!(back, user, "small values survive, gaps are not touched");
}

#[test]
fn lengths_of_every_named_type() {
    fn lowered<V: Leaves>(named: Named, leaves: V, size: i64) -> Vec<(String, u64, i64)> {
        let nest = lower::lower(&Datatype::named(named), leaves).unwrap();
        nest.verify().unwrap_or_else(|e| panic!("{named}: {e}\n{nest}"));
        assert_eq!(nest.size(), size, "{named}");
        assert_eq!(nest.to_string().parse::<LoopNest<Lowered, V::Leaf>>().unwrap(), nest);
        visits(&nest, 1).iter().map(|v| (v.unit.to_string(), v.n, v.at.user)).collect()
    }
    for &named in Named::ALL {
        assert!(named.external32_size() <= 2 * named.size(), "{named}: the limit in lower");
        lowered(named, Bytes, named.size());
        // In external32, pairs and complex numbers are split into the values that they consist of.
        // For reductions (`Native`), a pair is one value.
        let parts = named.parts().iter().map(|&(part, at)| {
            let (value, n) = Value::external32(part);
            (value.to_string(), n, at)
        });
        assert_eq!(lowered(named, External32, named.external32_size()), parts.collect::<Vec<_>>(), "{named}");
        let whole = (!named.is_marker()).then(|| (Value::native(named).to_string(), 1, 0));
        assert_eq!(lowered(named, Native, named.size()), Vec::from_iter(whole), "{named}");
    }
}

/// Tests that a datatype can be refused because of its size only for external32, whose sizes can be
/// larger than the native ones.
#[test]
fn long_types_are_refused_in_external32_only() {
    let t: Datatype = "contiguous(5000000000000000000, byte)".parse().unwrap();
    assert_eq!(lower::lower(&t, Bytes).unwrap().size(), t.size());
    assert_eq!(lower::lower(&t, Native).unwrap().size(), t.size());
    let refused = lower::lower(&t, External32).unwrap_err();
    assert_eq!((refused.class(), refused.argument()), (ddtc::ErrorClass::ValueTooLarge, "size"));
    assert!(refused.to_string().contains("the size in external32 must fit in 64 bits"), "{refused}");
}

/// Tests that neighbouring values are merged in the same way as bytes: values whose classes are
/// converted in the same way become one run, and a long list of runs becomes one node with columns.
#[test]
fn values_merge_and_are_columns() {
    let lengths: Vec<i64> = (0..100_000).map(|i| 1 + i % 3).collect();
    let places: Vec<i64> = (0..100_000).map(|i| 5 * i + i % 7).collect();
    let t = Datatype::indexed(&lengths, &places, &"double".parse().unwrap()).unwrap();
    let nest = lower::lower(&t, External32).unwrap();
    assert!(nest.nodes().len() < 8, "{} nodes", nest.nodes().len());
    let nest = normalize::normalize(&nest, t.arguments()).unwrap().nest;
    assert!(nest.nodes().len() < 8, "{} nodes", nest.nodes().len());
    let t: Datatype = "struct([1, 1, 2, 1], [0, 4, 8, 16], [int, float, unsigned, double])".parse().unwrap();
    let nest = normal(&t, External32);
    assert_eq!(
        nest.to_string().lines().skip(2).map(str::trim).collect::<Vec<_>>(),
        ["copy 4 of swap4", "copy 1 of swap8 at 16 16", "}"]
    );
    assert_eq!(normal(&t, Native).to_string().lines().count(), 7);
}

#[test]
fn reduction_is_another_leaf() {
    let (t, _) = example();
    let (mut user, others) = (values(&t, 100), values(&t, -40));
    let mut want = user.clone();
    interp::for_each(&t, COUNT, &mut |at, len, basic| {
        let at = at as usize..at as usize + len;
        add(Value::native(basic), &mut want[at.clone()], &others[at]);
    })
    .unwrap();
    reduce(&normal(&t, Native), COUNT, &mut user, &packed(&t, &others));
    assert_eq!(user, want);
    assert_eq!(user[..4], 60_i32.to_ne_bytes());
}

#[test]
fn direct_copy_is_two_user_sides() {
    let (t, other) = example();
    let source = values(&t, 5);
    let mut want = vec![0xcc; (COUNT as i64 * other.extent()) as usize];
    interp::unpack(&other, COUNT, &packed(&t, &source), &mut want, 0).unwrap();
    let mut got = vec![0xcc; want.len()];
    for p in direct(&placed_visits(&t, COUNT), &placed_visits(&other, COUNT)) {
        let (a, b, len) = (p.at.user as usize, p.at.packed as usize, p.len as usize);
        got[b..b + len].copy_from_slice(&source[a..a + len]);
    }
    assert_eq!(got, want);
    // Make the same copy with one nest from memory to memory, which has the second layout in place of a
    // packed stream.
    // Normalization has subtracted 4 bytes from the offsets of the second layout, so the copy
    // begins at byte 4.
    let second = normalize::normalize(&lower::lower(&other, Bytes).unwrap(), other.arguments()).unwrap();
    assert_eq!((second.origin, second.packed_origin), (4, 0));
    let fused = refine::refine(&normal(&t, Bytes), &second.nest).unwrap().unwrap();
    assert_eq!((fused.period, fused.still), (24, false));
    fused.nest.verify().unwrap();
    let mut got = vec![0xcc; want.len()];
    fused.nest.eval(Direction::Pack, COUNT, &mut source.clone(), 0, &mut got[4..]);
    assert_eq!(got, want, "{}", fused.nest);
}
