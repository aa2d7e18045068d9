//! `X at a; X at b; X at c ..` (equal loops or tables)  -->  `loop`, or `table [0, b-a, c-a ..] { X }`.
//!
//! Condition: a run of at least two equal non-leaf nodes at constant packed distance. At constant user distance, or with a
//! period, the run is a loop; otherwise a table. Leaves have been merged before and are left alone.

use super::{Normalizer, period};
use crate::column::Column;
use crate::error::Result;
use crate::nest::{At, Node};

/// Rerolls every maximal run of equal non-leaf nodes.
pub(super) fn rewrite(n: &mut Normalizer, list: Vec<Node>) -> Result<Vec<Node>> {
    if list.len() < 2 {
        return Ok(list);
    }
    let mut out = Vec::with_capacity(list.len());
    let mut i = 0;
    while i < list.len() {
        let shape = list[i].placed(At::ZERO);
        let mut j = i + 1;
        if shape.body().is_some() && !shape.carries_count() {
            let distance = |j: usize| list[j].at().packed - list[j - 1].at().packed;
            while j < list.len() && list[j].placed(At::ZERO) == shape && distance(j) == distance(i + 1) {
                j += 1;
            }
        }
        if j - i < 2 {
            out.push(list[i].clone());
        } else {
            let at: Vec<At> = list[i..j].iter().map(Node::at).collect();
            out.extend(run(n, &shape, &at));
        }
        i = j;
    }
    Ok(out)
}

/// `shape` at each of the offsets `at`, which have one packed distance.
fn run(n: &mut Normalizer, shape: &Node, at: &[At]) -> Vec<Node> {
    if at.len() == 1 {
        return vec![shape.placed(at[0])];
    }
    if let Some((p, step)) = period::of(at.len(), |i| at[i], |_, _| true) {
        let list = run(n, shape, &at[..p]);
        return n.looped((at.len() / p) as u64, step, list);
    }
    let displacements: Column = at.iter().map(|a| a.user.wrapping_sub(at[0].user)).collect();
    let body = n.close(vec![shape.placed(At::ZERO)]).body;
    let packed = at[1].packed - at[0].packed;
    vec![Node::Table { at: at[0], displacements, packed, body }]
}
