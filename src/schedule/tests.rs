//! Tests of choices of the scheduler that a filetest cannot show: the choices for lists of
//! thousands of rows, for bodies of tens of rows, and for chains of bodies.

use super::*;
use crate::datatype::Datatype;
use crate::lower::{Bytes, lower};
use crate::micro::Role;
use crate::normalize::normalize;

fn normal(t: &Datatype) -> LoopNest<Normal> {
    normalize(&lower(t, Bytes).unwrap(), t.arguments()).unwrap().nest
}

/// Returns true if rows of odd lengths, at distances of `distance` bytes, are moved in an order
/// different from that of the type map.
fn reordered(rows: usize, distance: i64, direction: Direction, level: Level) -> bool {
    let lengths: Vec<i64> = (0..rows as i64).map(|i| 1 + 2 * (i * 17 % 31)).collect();
    let places: Vec<i64> = (0..rows as i64).map(|i| distance * i).collect();
    let t = Datatype::hindexed(&lengths, &places, &"char".parse().unwrap()).unwrap();
    let plan = schedule(&normal(&t), direction, Target::new(level)).unwrap();
    let [PlanOp::Call { call, .. }, ..] = plan.ops() else { panic!("{plan}") };
    let columns = [Role::UserOffsets, Role::PackedOffsets, Role::Lengths];
    let [user, packed, len] =
        columns.map(|role| call.column(plan.tables(), role).unwrap().iter().collect::<Vec<i64>>());
    // The plan must have all rows of the layout, in any order.
    let starts = lengths.iter().scan(0, |at, l| Some(std::mem::replace(at, *at + l)));
    let want: Vec<_> = places.iter().zip(starts).zip(&lengths).map(|((&u, p), &l)| (u, p, l)).collect();
    let got: Vec<_> = user.iter().zip(packed).zip(len).map(|((&u, p), l)| (u, p, l)).collect();
    let mut sorted = got.clone();
    sorted.sort_unstable();
    assert!(sorted == want, "other rows");
    got != want
}

#[test]
fn long_lists_are_sorted_by_length() {
    let most = cost::BUCKETED_ROWS;
    for direction in Direction::BOTH {
        for level in [Level::Baseline, Level::Avx2] {
            assert!(!reordered(most - 1, 64, direction, level), "{direction} {level}");
            assert!(reordered(most, 64, direction, level), "{direction} {level}");
        }
        // At all other levels the rows are not sorted.
        for level in [Level::Avx512, Level::Neon] {
            assert!(!reordered(most, 64, direction, level), "{direction} {level}");
        }
    }
    // Rows of 61 bytes at a distance of 60 bytes overlap. The row that is written last determines
    // the overlapped byte, so unpacking must keep the order of the rows.
    assert!(reordered(most, 60, Direction::Pack, Level::Avx2));
    assert!(!reordered(most, 60, Direction::Unpack, Level::Avx2));
    assert!(reordered(most, 62, Direction::Unpack, Level::Avx2));
}

/// A body of up to `PERMUTED_ROWS` rows is moved by a permutation if the target has a suitable one.
/// The rows of this test need a permutation of bytes, which a target with VBMI has; permutations of
/// words do not fit them.
#[test]
fn patterns_have_few_rows() {
    for (rows, allowed) in [(cost::PERMUTED_ROWS, true), (cost::PERMUTED_ROWS + 1, false)] {
        // Every row has one byte, except the first row, which has two, so that lengths vary. Row
        // `i` is at `(19 * i + 3) % 61`, except that rows 0 and 1 have exchanged their places.
        let mut places: Vec<i64> = (0..rows as i64).map(|i| (i * 19 + 3) % 61).collect();
        places.swap(0, 1);
        let mut lengths = vec![1; rows];
        lengths[0] = 2;
        let t = Datatype::hindexed(&lengths, &places, &"char".parse().unwrap()).unwrap();
        let nest = normal(&Datatype::resized(0, 64, &t).unwrap());
        let [Node::Loop { step, body, .. }] = nest.body(nest.root()) else { panic!("{nest}") };
        let [Node::Blocks { user, packed, len, .. }] = nest.body(*body) else { panic!("{nest}") };
        assert_eq!(len.len(), rows, "{nest}");
        let parts: Vec<Part> = (0..rows)
            .map(|i| Part {
                user: user.get(i),
                packed: packed.get(i) as u64,
                len: len.get(i) as u64,
                unit: 1,
            })
            .collect();
        for (target, permutes) in
            [(Target::new(Level::Avx512), false), (Target::new(Level::Avx512).with_vbmi(), true)]
        {
            assert_eq!(Permutation::new(&parts, step.user, target).is_some(), permutes, "{target}");
            let plan = schedule(&nest, Direction::Pack, target).unwrap();
            let chosen = plan.tables().iter().any(|table| matches!(table, Table::Permutation(_)));
            assert_eq!(chosen, permutes && allowed, "{rows} rows: {plan}");
        }
    }
}

/// A chain of bodies inside bodies can be as long as memory allows. So the decision whether a body
/// is written out examines no more levels of nesting than a kernel may have.
#[test]
fn long_chains_are_refused() {
    let copy = |at| Node::Copy { at, n: Quantity::fixed(1), unit: Byte };
    let mut nodes = vec![copy(Offsets::ZERO)];
    let mut body = Body { start: 0, len: 1 };
    for size in 1..100_000 {
        let start = nodes.len() as u32;
        let step = Offsets::new(0, size);
        nodes.push(Node::Loop { at: Offsets::ZERO, trip: Quantity::fixed(1), step, body });
        nodes.push(copy(Offsets::new(2 * size, size)));
        body = Body { start, len: 2 };
    }
    let (step, start) = (Offsets::new(200_000, 100_000), nodes.len() as u32);
    nodes.push(Node::Loop { at: Offsets::ZERO, trip: Quantity::counted(1), step, body });
    let nest: LoopNest<Normal> = LoopNest::new(nodes, Body { start, len: 1 }, step.packed, step.user);
    nest.verify().unwrap();
    for direction in Direction::BOTH {
        assert!(schedule(&nest, direction, Target::new(Level::Baseline)).is_err(), "{direction}");
    }
}
