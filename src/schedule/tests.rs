//! Choices at edges that a filetest cannot show: lists of thousands of rows, and of tens of parts.

use super::*;
use crate::datatype::Datatype;
use crate::lower::{Bytes, lower};
use crate::micro::Role;
use crate::normalize::normalize;

fn normal(t: &Datatype) -> LoopNest<Normal> {
    normalize(&lower(t, Bytes).unwrap(), t.arguments()).unwrap().nest
}

/// Whether rows of odd lengths, `distance` bytes apart, are moved in another order than the type map's.
fn reordered(rows: usize, distance: i64, direction: Direction, level: Level) -> bool {
    let lengths: Vec<i64> = (0..rows as i64).map(|i| 1 + 2 * (i * 17 % 31)).collect();
    let places: Vec<i64> = (0..rows as i64).map(|i| distance * i).collect();
    let t = Datatype::hindexed(&lengths, &places, &"char".parse().unwrap()).unwrap();
    let plan = schedule(&normal(&t), direction, Target::new(level)).unwrap();
    let [Op::Call { call, .. }, ..] = plan.ops() else { panic!("{plan}") };
    let columns = [Role::UserOffsets, Role::PackedOffsets, Role::Lengths];
    let [user, packed, len] =
        columns.map(|role| call.column(plan.tables(), role).unwrap().iter().collect::<Vec<i64>>());
    // The same rows, in whatever order.
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
        // Masks have no branches on lengths.
        for level in [Level::Avx512, Level::Neon] {
            assert!(!reordered(most, 64, direction, level), "{direction} {level}");
        }
    }
    // Rows of up to 61 bytes that overlap: the last one wins, so an unpack keeps their order.
    assert!(reordered(most, 60, Direction::Pack, Level::Avx2));
    assert!(!reordered(most, 60, Direction::Unpack, Level::Avx2));
    assert!(reordered(most, 62, Direction::Unpack, Level::Avx2));
}

/// Up to so many rows a body is a permutation wherever there is one: on targets that permute bytes, and by words on none.
#[test]
fn patterns_have_few_rows() {
    for (rows, allowed) in [(cost::PERMUTED_ROWS, true), (cost::PERMUTED_ROWS + 1, false)] {
        // One byte and one gap, two bytes first, so that lengths vary; from the last row to the first, with one row in another place.
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

/// Whether a body is written out is asked of no more levels than a kernel may have: a chain of bodies inside bodies may be as long as memory.
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
