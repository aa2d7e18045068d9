//! `X at a; X at b; X at c ..` (equal loops or tables)  -->  `loop`, or `table [0, b-a, c-a ..] { X
//! }`.
//!
//! Condition: at least two consecutive nodes are equal except for their offsets, are not leaves,
//! and have a constant packed distance. If their user distance is constant too, or has a period,
//! they become a loop; otherwise they become a table. Leaves have been merged by an earlier rewrite
//! and are not changed here.

use super::{Inner, Normalizer, period};
use crate::column::{Column, try_with_capacity};
use crate::error::Result;
use crate::nest::{Leaf, Node, Offsets};

/// Rerolls every maximal run of equal nodes that are not leaves.
pub(super) fn rewrite<L: Leaf>(n: &mut Normalizer<L>, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
    if list.len() < 2 {
        return Ok(list);
    }
    let mut out = try_with_capacity("normalize", list.len())?;
    let mut i = 0;
    while i < list.len() {
        let first = &list[i];
        let mut j = i + 1;
        if first.body().is_some() && !first.carries_count() {
            let distance = |j: usize| list[j].offsets().packed - list[j - 1].offsets().packed;
            while j < list.len() && list[j].equal_except_offset(first) && distance(j) == distance(i + 1) {
                j += 1;
            }
        }
        if j - i < 2 {
            out.push(first.clone());
        } else {
            let inner = n.single_normal(first.placed(Offsets::ZERO))?;
            out.extend(run(n, inner, &list[i..j])?);
        }
        i = j;
    }
    Ok(out)
}

/// Returns the nodes that repeat the body `inner` at the offsets of the nodes in `list`. These
/// offsets must have a constant packed distance.
fn run<L: Leaf>(n: &mut Normalizer<L>, inner: Inner, list: &[Node<L>]) -> Result<Vec<Node<L>>> {
    let at = |i: usize| list[i].offsets() + inner.base;
    match period::find(list.len(), at, |_, _| true) {
        Some((1, step)) => n.loop_over_body(list.len() as u64, step, Inner { body: inner.body, base: at(0) }),
        Some((p, step)) => {
            let table = run(n, inner, &list[..p])?;
            n.loop_over_list((list.len() / p) as u64, step, table)
        }
        None => {
            let displacements = Column::build((0..list.len()).map(|i| at(i).user.wrapping_sub(at(0).user)))?;
            let packed = at(1).packed - at(0).packed;
            Ok(vec![Node::Table { at: at(0), displacements, packed, body: inner.body }])
        }
    }
}
