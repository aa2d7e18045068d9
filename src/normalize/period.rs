//! `X0 .. Xn-1` where `X(i+p)` is `X(i)` moved by a constant `s`  -->  `loop n/p step s { X0 .. Xp-1 }`.
//!
//! The smallest period `p < n` that divides `n`, found by the failure function of Knuth, Morris and Pratt over the sequence of
//! (shape, distance to the previous element) in O(n): constant strides (p = 1, the reroll of indexed types and of structs of
//! equal parts) and periodic tables are the same rewrite. Elements are rows with their lengths, or nodes with their shapes.

use super::Normalizer;
use crate::error::Result;
use crate::nest::{At, Node};

/// The smallest proper period of `n` elements that divides `n`, with the constant distance; elements are given by their offset
/// and by whether two of them have one shape.
pub(super) fn of(
    n: usize,
    at: impl Fn(usize) -> At,
    alike: impl Fn(usize, usize) -> bool,
) -> Option<(usize, At)> {
    if n < 2 {
        return None;
    }
    // Letters 1..n: the shape of element i and its distance to element i - 1. Element 0 has a shape only.
    let same = |i: usize, j: usize| alike(i, j) && at(i) - at(i - 1) == at(j) - at(j - 1);
    let m = n - 1;
    // fail[k] = length of the longest proper border of letters 1..=k.
    let mut fail = vec![0_u32; m + 1];
    let mut k = 0;
    for i in 2..=m {
        while k > 0 && !same(i, k + 1) {
            k = fail[k] as usize;
        }
        if same(i, k + 1) {
            k += 1;
        }
        fail[i] = k as u32;
    }
    // Periods of the letters in ascending order are m - border, along the chain of borders.
    let mut border = fail[m] as usize;
    loop {
        let p = m - border;
        if p >= n {
            return None;
        }
        if p > 0 && n.is_multiple_of(p) && p < n && alike(0, p) {
            return Some((p, at(p) - at(0)));
        }
        if border == 0 {
            return None;
        }
        border = fail[border] as usize;
    }
}

/// The period of a list of parts that are not simplified yet, if one of them is more than a run of bytes.
///
/// Such parts are rolled before their leaves are merged with those of their neighbours: an array of structs is the same loop
/// whether a contiguous or an indexed type made it.
pub(super) fn of_parts(n: &Normalizer, parts: &[Node]) -> Option<(usize, At)> {
    let composite = |node: &Node| match node {
        Node::Loop { body, .. } | Node::Table { body, .. } => !matches!(n.body(*body), [Node::Copy { .. }]),
        Node::Blocks { .. } | Node::Copy { .. } => false,
    };
    if parts.len() < 2 || !parts.iter().any(composite) {
        return None;
    }
    let at: Vec<At> = parts.iter().map(Node::at).collect();
    let shapes: Vec<Node> = parts.iter().map(|node| node.placed(At::ZERO)).collect();
    of(parts.len(), |i| at[i], |i, j| shapes[i] == shapes[j])
}

/// Turns a list of nodes that repeats itself as a whole into one loop.
pub(super) fn rewrite(n: &mut Normalizer, list: Vec<Node>) -> Result<Vec<Node>> {
    if list.len() < 2 || list.iter().any(Node::carries_count) {
        return Ok(list);
    }
    let at: Vec<At> = list.iter().map(Node::at).collect();
    let shapes: Vec<Node> = list.iter().map(|node| node.placed(At::ZERO)).collect();
    let Some((p, step)) = of(at.len(), |i| at[i], |i, j| shapes[i] == shapes[j]) else { return Ok(list) };
    let trip = (list.len() / p) as u64;
    let mut list = list;
    list.truncate(p);
    let list = n.list(list)?;
    Ok(n.looped(trip, step, list))
}
