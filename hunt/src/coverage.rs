//! The features of datatypes, such as "stride -1" or "empty member". The features of the cases show
//! what a run has tried, and the features of a finding show what a fault depends on.

use std::collections::BTreeSet;

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::methods::*;

/// All features except constructors. A run uses this list to name the features that were never
/// tried.
pub(crate) const FEATURES: [&str; 29] = [
    "stride -1",
    "stride 0",
    "stride +1",
    "byte stride -1",
    "backwards",
    "zero count",
    "zero blocklength",
    "empty member",
    "nothing",
    "marker",
    "negative lb",
    "negative extent",
    "zero extent",
    "overlap of copies",
    "misaligned",
    "1-byte",
    "2-byte",
    "4-byte",
    "8-byte",
    "16-byte",
    "32-byte",
    "long double",
    "pair",
    "mixed",
    "depth 8",
    "depth 16",
    "depth 32",
    "long table",
    "past 2^31",
];

/// The constructors of datatypes, by their names in ddtc's text notation of datatypes.
pub(crate) const CONSTRUCTORS: [&str; 16] = [
    "dup",
    "contiguous",
    "vector",
    "hvector",
    "indexed",
    "hindexed",
    "indexed_block",
    "hindexed_block",
    "struct",
    "subarray",
    "darray",
    "resized",
    "f90_real",
    "f90_complex",
    "f90_integer",
    "value_index",
];

/// Returns all features of a datatype: the names of its constructors, and properties such as
/// "stride -1".
pub(crate) fn features(t: &Datatype) -> BTreeSet<&'static str> {
    let mut found = of_whole(t);
    t.nodes().for_each(|node| of_node(node, &mut found));
    found
}

/// Adds the features of one node: those of its constructor or basic type, its bounds and its direct
/// children. Features that only deeper nodes have are not added.
fn of_node(node: &Datatype, found: &mut BTreeSet<&'static str>) {
    numbers(node, found);
    if let Combiner::Named(n) = node.combiner() {
        return leaf(*n, found);
    }
    found.insert(node.combiner().text_name());
    if node.extent() < 0 {
        found.insert("negative extent");
    }
    if node.extent() == 0 && node.size() > 0 {
        found.insert("zero extent");
    }
    if node.lb() < 0 {
        found.insert("negative lb");
    }
    if node.size() > 0 && node.true_extent() < node.size() {
        found.insert("overlap of copies");
    }
    if node.combiner().children().any(|c| c.size() == 0) {
        found.insert("empty member");
    }
}

/// Returns the features that belong to a datatype as a whole and not to a single node, such as its
/// depth.
fn of_whole(t: &Datatype) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    if t.size() == 0 {
        found.insert("nothing");
    }
    let mut leaves = t.nodes().filter_map(|node| match node.combiner() {
        Combiner::Named(n) if !n.is_marker() => Some(*n),
        _ => None,
    });
    if let Some(first) = leaves.next()
        && leaves.any(|n| n != first)
    {
        found.insert("mixed");
    }
    for (depth, name) in [(8, "depth 8"), (16, "depth 16"), (32, "depth 32")] {
        if t.depth() >= depth {
            found.insert(name);
        }
    }
    let far = [t.size(), t.true_lb(), t.true_ub(), t.lb(), t.ub()];
    if far.iter().any(|n| n.unsigned_abs() > i32::MAX as u64) {
        found.insert("past 2^31");
    }
    found
}

/// The way through the tree from a datatype to one byte of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Features of the whole datatype and of the nodes between its root and the byte.
    pub(crate) features: BTreeSet<&'static str>,
    /// Position of the byte within its element, and the size of the element in bytes.
    pub(crate) lane: i64,
    pub(crate) element: i64,
}

/// Returns the way to byte `at` of the stream of one instance, or none if the stream has no such
/// byte.
pub(crate) fn way(t: &Datatype, mut at: i64) -> Option<Way> {
    if !(0..t.size()).contains(&at) {
        return None;
    }
    let (mut node, mut features) = (t, of_whole(t));
    loop {
        of_node(node, &mut features);
        let combiner = node.combiner();
        let below = match combiner {
            Combiner::Struct { blocklengths, types, .. } => {
                let mut members = blocklengths.iter().zip(types.iter());
                members.find(|(n, child)| {
                    let bytes = *n * child.size();
                    let here = at < bytes;
                    at -= if here { 0 } else { bytes };
                    here
                })
            }
            Combiner::ValueIndex { .. } => None,
            _ => combiner.children().next().map(|child| (&0, child)),
        };
        let Some((_, child)) = below else {
            return Some(Way { features, lane: at, element: node.size() });
        };
        at %= child.size();
        node = child;
    }
}

// Adds the features of a basic type: `pair` if it is a value with an index, or else its size, and
// also `long double` if it is or contains a long double. A marker (`MPI_LB`, `MPI_UB`) has size 0
// and would be counted as `32-byte`, but cases have no markers, because `Means::buildable` replaces
// them.
fn leaf(n: Named, found: &mut BTreeSet<&'static str>) {
    found.insert(match n.parts().first().map_or(n.size(), |p| p.0.size()) {
        _ if n.parts().len() > 1 => "pair",
        1 => "1-byte",
        2 => "2-byte",
        4 => "4-byte",
        8 => "8-byte",
        16 => "16-byte",
        _ => "32-byte",
    });
    if matches!(
        n,
        Named::LongDouble | Named::CLongDoubleComplex | Named::CxxLongDoubleComplex | Named::LongDoubleInt
    ) {
        found.insert("long double");
    }
}

/// Adds the features that follow from the arguments of one constructor: strides, order of
/// displacements, counts, block lengths and alignment.
fn numbers(t: &Datatype, found: &mut BTreeSet<&'static str>) {
    let mut stride = |elements: i64, extent: i64, count: i64| {
        if count < 2 {
            return;
        }
        match elements {
            -1 => _ = found.insert("stride -1"),
            0 => _ = found.insert("stride 0"),
            1 => _ = found.insert("stride +1"),
            _ => {}
        }
        if elements.saturating_mul(extent) == -1 {
            found.insert("byte stride -1");
        }
        if elements.saturating_mul(extent) < 0 {
            found.insert("backwards");
        }
    };
    // The first features are those of constructors with a stride, and of the constructor that sets
    // markers. The stride of a vector is in elements, that of an hvector in bytes. If there are
    // fewer than two blocks, the stride has no effect and is not a feature.
    match t.combiner() {
        Combiner::Vector { count, stride: s, oldtype, .. } => stride(*s, oldtype.extent(), *count),
        Combiner::Hvector { count, stride: s, .. } => stride(*s, 1, *count),
        Combiner::Resized { .. } => _ = found.insert("marker"),
        _ => {}
    }
    // The next features are those of constructors with lists of displacements. A constructor of
    // blocks that all have the same length has a list of displacements, but no list of lengths.
    let tables: &[&[i64]] = match t.combiner() {
        Combiner::Indexed { blocklengths, displacements, .. }
        | Combiner::Hindexed { blocklengths, displacements, .. }
        | Combiner::Struct { blocklengths, displacements, .. } => &[blocklengths, displacements],
        Combiner::IndexedBlock { displacements, .. } | Combiner::HindexedBlock { displacements, .. } => {
            &[&[], displacements]
        }
        _ => &[],
    };
    if let [lengths, displacements] = tables {
        if lengths.contains(&0) {
            found.insert("zero blocklength");
        }
        if displacements.is_empty() {
            found.insert("zero count");
        }
        if displacements.windows(2).any(|w| w[1] < w[0]) {
            found.insert("backwards");
        }
        if displacements.len() >= 64 {
            found.insert("long table");
        }
    }
    // The last features are those of constructors with a count or a block length of 0, and of
    // constructors with displacements or strides that are not a multiple of the child's alignment.
    match t.combiner() {
        Combiner::Contiguous { count: 0, .. }
        | Combiner::Vector { count: 0, .. }
        | Combiner::Hvector { count: 0, .. } => _ = found.insert("zero count"),
        Combiner::Vector { blocklength: 0, .. }
        | Combiner::Hvector { blocklength: 0, .. }
        | Combiner::IndexedBlock { blocklength: 0, .. }
        | Combiner::HindexedBlock { blocklength: 0, .. } => _ = found.insert("zero blocklength"),
        Combiner::Hvector { stride, oldtype, .. } if stride % oldtype.alignment() != 0 => {
            found.insert("misaligned");
        }
        Combiner::Hindexed { displacements, oldtype, .. }
        | Combiner::HindexedBlock { displacements, oldtype, .. }
            if displacements.iter().any(|d| d % oldtype.alignment() != 0) =>
        {
            found.insert("misaligned");
        }
        Combiner::Struct { displacements, types, .. }
            if displacements.iter().zip(types.iter()).any(|(d, t)| d % t.alignment() != 0) =>
        {
            found.insert("misaligned");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_by_hand() {
        let features_of = |text: &str| features(&text.parse().unwrap());
        assert_eq!(
            features_of("vector(8,1,-1,char)"),
            BTreeSet::from(["vector", "stride -1", "byte stride -1", "backwards", "1-byte", "negative lb"])
        );
        let t = features_of("struct([1,0,1],[0,9,21],[real16,contiguous(0,int),int])");
        for name in
            ["struct", "16-byte", "zero blocklength", "empty member", "misaligned", "mixed", "zero count"]
        {
            assert!(t.contains(name), "{name}: {t:?}");
        }
        for t in ["resized(0,-8,contiguous(2147483648,int))", "dup(double_int)"] {
            let named =
                features_of(t).into_iter().all(|f| FEATURES.contains(&f) || CONSTRUCTORS.contains(&f));
            assert!(named, "{t}: {:?}", features_of(t));
        }
    }

    #[test]
    fn the_way_to_a_byte_has_what_is_above_it_alone() {
        let t = "struct([2,1],[0,40],[vector(2,1,-1,char),indexed([1,1],[0,3],real16)])".parse().unwrap();
        let first = way(&t, 3).unwrap();
        assert!(
            first.features.contains("byte stride -1") && !first.features.contains("16-byte"),
            "{first:?}"
        );
        assert_eq!((first.lane, first.element), (0, 1));
        let last = way(&t, 4 + 16 + 5).unwrap();
        assert!(last.features.contains("indexed") && !last.features.contains("byte stride -1"), "{last:?}");
        assert!(last.features.contains("mixed") && last.features.contains("struct"), "{last:?}");
        assert_eq!((last.lane, last.element), (5, 16));
        assert_eq!(way(&t, t.size()), None);
    }
}
