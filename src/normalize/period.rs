//! `X0 .. Xn-1` where `X(i+p)` is `X(i)` moved by a constant `s`  -->  `loop n/p step s { X0 ..
//! Xp-1 }`.
//!
//! `p` is the smallest period `p < n` that divides `n`, in the sequence of (shape, distance to the
//! previous element). This one rewrite covers constant strides (`p = 1`, as in indexed types and in
//! structs of equal parts) as well as periodic tables. An element is either a row or a node. The
//! shape of a row is its length; all rows of a table have the same shape. The shape of a node is
//! the node without its offset.
//!
//! The divisors of `n` are tried in turn. If there is no period, the first elements usually show
//! this for each divisor. For sequences that almost have a period, the failure function of Knuth,
//! Morris and Pratt is used instead, so that the time is O(n) in any case.

use super::Normalizer;
use crate::error::Result;
use crate::nest::{Leaf, Node, Offsets};

/// Returns the smallest proper period that divides the number of elements `n`, and the constant
/// distance from one period to the next. `at` returns the offset of an element, and `same_shape`
/// returns whether two elements have the same shape.
pub(super) fn find(
    n: usize,
    at: impl Fn(usize) -> Offsets,
    same_shape: impl Fn(usize, usize) -> bool,
) -> Option<(usize, Offsets)> {
    if n < 2 {
        return None;
    }
    // The letters 1..n of the sequence: letter `i` is the shape of element `i` and its distance
    // from element `i - 1`. Element 0 has no element before it and so no letter; its shape is
    // compared separately.
    let same = |i: usize, j: usize| same_shape(i, j) && at(i) - at(i - 1) == at(j) - at(j - 1);
    let mut budget = COMPARISONS_PER_ELEMENT * n;
    for p in divisors(n) {
        if !same_shape(0, p) {
            continue;
        }
        let held = (1..n - p).take_while(|&i| same(i + p, i)).count();
        if held == n - p - 1 {
            return Some((p, at(p) - at(0)));
        }
        budget = match budget.checked_sub(held) {
            Some(left) => left,
            None => {
                return by_borders(n, same, |p| same_shape(0, p)).map(|p| (p, at(p) - at(0)));
            }
        };
    }
    None
}

/// Number of successful comparisons per element after which the search stops trying divisors and
/// uses the failure function.
const COMPARISONS_PER_ELEMENT: usize = 4;

/// Returns the proper divisors of `n` in ascending order.
fn divisors(n: usize) -> impl Iterator<Item = usize> {
    let root = n.isqrt();
    let small = (1..=root).filter(move |d| n.is_multiple_of(*d));
    let large = (2..=root).rev().filter(move |d| n.is_multiple_of(*d)).map(move |d| n / d);
    small.chain(large.filter(move |&d| d > root)).filter(move |&d| d < n)
}

/// Returns the smallest proper period `p` of the letters 1..n that divides `n` and for which
/// `begins(p)` is true. Letter `i` is the shape of element `i` and its distance from element
/// `i - 1`, and `same` compares two letters. `begins(p)` returns whether element `p` has the shape
/// of element 0.
fn by_borders(
    n: usize,
    same: impl Fn(usize, usize) -> bool,
    begins: impl Fn(usize) -> bool,
) -> Option<usize> {
    // A list that is too long for the 32 bits of `fail` is too long for a nest, too.
    let m = u32::try_from(n - 1).ok()? as usize;
    // `fail[k]` is the length of the longest proper border of the letters 1..=k. A border is a
    // prefix that is also a suffix.
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
    // Each border of the whole sequence of `m` letters corresponds to a period `m - border`. The
    // chain of borders is in descending order, so the periods are found in ascending order.
    let mut border = fail[m] as usize;
    loop {
        let p = m - border;
        if p >= n {
            return None;
        }
        if p > 0 && n.is_multiple_of(p) && p < n && begins(p) {
            return Some(p);
        }
        if border == 0 {
            return None;
        }
        border = fail[border] as usize;
    }
}

/// Returns the period of a list of nodes that have not been simplified yet, if at least one of
/// these nodes is more than a run of bytes.
///
/// Such a list is turned into a loop before the leaves of its nodes are merged with the leaves of
/// their neighbours, so that an array of structs becomes the same loop for a contiguous type and
/// for an indexed type.
pub(super) fn find_in_parts<L: Leaf>(n: &Normalizer<L>, parts: &[Node<L>]) -> Option<(usize, Offsets)> {
    let composite = |node: &Node<L>| match node {
        Node::Loop { body, .. } | Node::Table { body, .. } => !matches!(n.body(*body), [Node::Copy { .. }]),
        Node::Blocks { .. } | Node::Copy { .. } => false,
    };
    if parts.len() < 2 || !parts.iter().any(composite) {
        return None;
    }
    find(parts.len(), |i| parts[i].offsets(), |i, j| parts[i].equal_except_offset(&parts[j]))
}

/// Turns a list of nodes that is a repetition of a shorter list into one loop.
pub(super) fn rewrite<L: Leaf>(n: &mut Normalizer<L>, list: Vec<Node<L>>) -> Result<Vec<Node<L>>> {
    if list.len() < 2 || list.iter().any(Node::carries_count) {
        return Ok(list);
    }
    let Some((p, step)) =
        find(list.len(), |i| list[i].offsets(), |i, j| list[i].equal_except_offset(&list[j]))
    else {
        return Ok(list);
    };
    let trip = (list.len() / p) as u64;
    let mut list = list;
    list.truncate(p);
    let list = n.rewrite_list(list)?;
    n.loop_over_list(trip, step, list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_ascend() {
        for n in 1..500 {
            let all: Vec<usize> = (1..n).filter(|d| n % d == 0).collect();
            assert_eq!(divisors(n).collect::<Vec<_>>(), all, "{n}");
        }
    }

    #[test]
    fn both_ways_find_the_smallest_period() {
        // Check every sequence of up to 9 elements with two distances and two shapes, and then long
        // sequences that almost have a period.
        let check = |places: &[i64], shapes: &[u8]| {
            let at = |i: usize| Offsets::new(places[i], 8 * i as i64);
            let same_shape = |i: usize, j: usize| shapes[i] == shapes[j];
            let same = |i: usize, j: usize| same_shape(i, j) && at(i) - at(i - 1) == at(j) - at(j - 1);
            let n = places.len();
            let is_period = |p: usize| {
                n.is_multiple_of(p)
                    && (p..n).all(|i| same_shape(i, i - p) && at(i) - at(i - p) == at(p) - at(0))
            };
            let smallest = (1..n).find(|&p| is_period(p));
            assert_eq!(
                find(n, at, same_shape),
                smallest.map(|p| (p, at(p) - at(0))),
                "{places:?} {shapes:?}"
            );
            assert_eq!(by_borders(n, same, |p| same_shape(0, p)), smallest, "{places:?} {shapes:?}");
        };
        let places = |steps: &mut dyn Iterator<Item = i64>| -> Vec<i64> {
            steps.scan(0, |at, step| Some(std::mem::replace(at, *at + step))).collect()
        };
        for n in 2..=9_usize {
            for bits in 0..1_u32 << (2 * n) {
                let bit = |i: usize| i64::from(bits >> i & 1);
                let shapes: Vec<u8> = (n..2 * n).map(|i| bit(i) as u8).collect();
                check(&places(&mut (0..n).map(|i| 10 + bit(i))), &shapes);
            }
        }
        for odd in [1, 359, 700, 719] {
            for base in [1, 2, 12] {
                let step = |i: i64| 10 + i64::from(i % base == 0) + 100 * i64::from(i == odd);
                check(&places(&mut (0..720).map(step)), &[0; 720]);
            }
        }
    }
}
