//! Structural equality of datatypes: whether two of them have the same combiner tree.
//!
//! Two DAGs are compared as automata are (Hopcroft and Karp). If the hashes, arguments and numbers
//! of children of two nodes agree, the nodes are merged in a union-find structure, and then their
//! children are compared. A pair of nodes that are merged already is not expanded again, so the
//! work is linear in the number of nodes, however far the trees unfold. Nothing recurses.

use std::collections::HashMap;

use super::Datatype;
use super::combiner::Combiner;

/// Returns true if two nodes have the same combiner and the same arguments, not counting datatypes.
fn same_arguments(a: &Combiner, b: &Combiner) -> bool {
    use Combiner as C;
    match (a, b) {
        // Each arm compares all arguments of one constructor except datatypes. Two different
        // constructors are never the same, and neither are a legacy form and its successor.
        (C::Named(x), C::Named(y)) => x == y,
        (C::Dup { .. }, C::Dup { .. }) | (C::ValueIndex { .. }, C::ValueIndex { .. }) => true,
        (C::Contiguous { count: x, .. }, C::Contiguous { count: y, .. }) => x == y,
        (
            C::Vector { count: c, blocklength: l, stride: s, .. },
            C::Vector { count: c2, blocklength: l2, stride: s2, .. },
        ) => (c, l, s) == (c2, l2, s2),
        (
            C::Hvector { count: c, blocklength: l, stride: s, legacy: g, .. },
            C::Hvector { count: c2, blocklength: l2, stride: s2, legacy: g2, .. },
        ) => (c, l, s, g) == (c2, l2, s2, g2),
        (
            C::Indexed { blocklengths: l, displacements: d, .. },
            C::Indexed { blocklengths: l2, displacements: d2, .. },
        ) => l == l2 && d == d2,
        (
            C::Hindexed { blocklengths: l, displacements: d, legacy: g, .. },
            C::Hindexed { blocklengths: l2, displacements: d2, legacy: g2, .. },
        ) => l == l2 && d == d2 && g == g2,
        (
            C::IndexedBlock { blocklength: l, displacements: d, .. },
            C::IndexedBlock { blocklength: l2, displacements: d2, .. },
        )
        | (
            C::HindexedBlock { blocklength: l, displacements: d, .. },
            C::HindexedBlock { blocklength: l2, displacements: d2, .. },
        ) => l == l2 && d == d2,
        (
            C::Struct { blocklengths: l, displacements: d, legacy: g, .. },
            C::Struct { blocklengths: l2, displacements: d2, legacy: g2, .. },
        ) => l == l2 && d == d2 && g == g2,
        (
            C::Subarray { sizes: n, subsizes: m, starts: s, order: o, .. },
            C::Subarray { sizes: n2, subsizes: m2, starts: s2, order: o2, .. },
        ) => (n, m, s, o) == (n2, m2, s2, o2),
        (
            C::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. },
            C::Darray {
                size: size2,
                rank: rank2,
                gsizes: gsizes2,
                distribs: distribs2,
                dargs: dargs2,
                psizes: psizes2,
                order: order2,
                ..
            },
        ) => {
            (size, rank, gsizes, distribs, dargs, psizes, order)
                == (size2, rank2, gsizes2, distribs2, dargs2, psizes2, order2)
        }
        (C::F90Real { p, r }, C::F90Real { p: p2, r: r2 })
        | (C::F90Complex { p, r }, C::F90Complex { p: p2, r: r2 }) => (p, r) == (p2, r2),
        (C::F90Integer { r }, C::F90Integer { r: r2 }) => r == r2,
        (C::Resized { lb, extent, .. }, C::Resized { lb: lb2, extent: extent2, .. })
        | (C::Bounds { lb, extent, .. }, C::Bounds { lb: lb2, extent: extent2, .. }) => {
            (lb, extent) == (lb2, extent2)
        }
        _ => false,
    }
}

/// Disjoint sets of nodes, which are identified by their addresses. Two nodes are merged only after
/// their hashes, arguments and numbers of children have been found to agree, and before their
/// children are compared. Merging is transitive, so a set can contain two nodes that have not been
/// compared with each other.
#[derive(Default)]
struct UnionFind(HashMap<usize, usize>);

impl UnionFind {
    fn find(&mut self, mut node: usize) -> usize {
        while let Some(&parent) = self.0.get(&node) {
            if let Some(&grandparent) = self.0.get(&parent) {
                self.0.insert(node, grandparent);
            }
            node = parent;
        }
        node
    }

    /// Merges the sets of two nodes. Returns false if they are in one set already.
    fn merge(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        self.0.insert(a, b);
        true
    }
}

/// Returns true if both datatypes have the same combiner tree.
pub(crate) fn equal(a: &Datatype, b: &Datatype) -> bool {
    let mut merged = UnionFind::default();
    let mut open = vec![(a, b)];
    while let Some((a, b)) = open.pop() {
        if a.id() == b.id() {
            continue;
        }
        if a.structural_hash() != b.structural_hash() || !same_arguments(a.combiner(), b.combiner()) {
            return false;
        }
        let (left, right) = (a.combiner().children(), b.combiner().children());
        if left.len() != right.len() {
            return false;
        }
        // Merge the pair, so that it is not expanded again. In two cases this is not needed. If
        // each node of the pair has a single owner, the pair comes up only once for each time that
        // the pair of the owners is expanded. (A node in an array of children that several structs
        // share counts as having one owner. Pairs of such nodes may be expanded several times,
        // which costs only time.) If no other pair is open and the depth of `a` is at most 1, only
        // pairs of named types follow, so this pair cannot come up again.
        let met_once =
            a.reference_count() == 1 && b.reference_count() == 1 || open.is_empty() && a.depth() <= 1;
        if left.len() > 0 && (met_once || merged.merge(a.id(), b.id())) {
            open.extend(left.zip(right));
        }
    }
    true
}
