//! Mean number of bytes that MPICH moves with one call in a message that is cut into pieces.

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

/// Maximum number of constructors that are looked at, counted again each time that a type occurs.
/// The constructors beyond this number count as if no end of a piece cut them.
const MAX_NODES: usize = 1000;

/// Returns the mean number of bytes that MPICH 4.2 and 4.3 move with one call, if they move
/// messages of a type in pieces of `piece` bytes; at least 1.
///
/// A block of a list or vector is moved by one call if it lies in one piece. Whole instances are
/// moved together, as many as lie in one piece. What the end of a piece cuts is moved in the same
/// way one level further down, by a call for each of its blocks (pmodels/yaksa,
/// `yaksi_ipack_element.c`). The constructors decide and not the normal form, in which loops are
/// joined that are separate for MPICH.
pub fn bytes_per_call(t: &Datatype, piece: u64) -> u64 {
    let piece = piece.max(1) as f64;
    let (mut calls, mut left) = (0.0, MAX_NODES);
    // Types that are to be moved, each with a number of instances.
    let mut open = vec![(t, 1.0)];
    while let Some((t, instances)) = open.pop() {
        if size(t) < piece || left == 0 {
            calls += instances * size(t) / piece * (1.0 + cut(t, &mut left));
            continue;
        }
        left -= 1;
        for (blocks, children, child) in parts(t) {
            if size(child) >= piece {
                open.push((child, instances * children));
            } else {
                // The end of each piece cuts one block. Before the cut, and after it, the whole
                // children of a block that is longer than a piece are moved together.
                let pieces = instances * children * size(child) / piece;
                calls += (instances * blocks).max(pieces) + pieces * cut(child, &mut left);
            }
        }
    }
    (size(t) / calls.max(1e-9)).max(1.0) as u64
}

/// Returns the number of calls that are needed for an instance that the end of a piece cuts: one
/// for each of its blocks, and those for the child that is cut. Of a structure, the longest member
/// counts as the one that is cut. `left` is the number of constructors that may still be looked at,
/// and is reduced by those that were.
fn cut(mut t: &Datatype, left: &mut usize) -> f64 {
    let mut calls = 0.0;
    while *left > 0 {
        *left -= 1;
        let mut longest: Option<(f64, &Datatype)> = None;
        for (blocks, children, child) in parts(t) {
            calls += blocks;
            let bytes = children * size(child);
            if longest.is_none_or(|(most, _)| bytes > most) {
                longest = Some((bytes, child));
            }
        }
        match longest {
            Some((_, child)) => t = child,
            None => break,
        }
    }
    calls
}

/// Returns the parts of a type that have data: numbers of blocks and of children in them, and the
/// child type. A basic type and a type whose bytes are contiguous have no parts.
fn parts(t: &Datatype) -> Vec<(f64, f64, &Datatype)> {
    let t = t.expansion().unwrap_or(t);
    if t.size() == t.true_extent() && t.size() == t.extent() {
        return Vec::new();
    }
    let lists = |lengths: &[i64]| {
        let with_data = lengths.iter().filter(|&&n| n > 0);
        with_data.fold((0.0, 0.0), |(blocks, children), &n| (blocks + 1.0, children + n as f64))
    };
    let parts = match t.combiner() {
        Combiner::Struct { blocklengths, types, .. } => {
            blocklengths.iter().zip(types.iter()).map(|(&n, member)| (1.0, n as f64, member)).collect()
        }
        Combiner::Contiguous { count, oldtype } => vec![(1.0, *count as f64, oldtype)],
        Combiner::Vector { count, blocklength, oldtype, .. }
        | Combiner::Hvector { count, blocklength, oldtype, .. } => {
            vec![(*count as f64, *count as f64 * *blocklength as f64, oldtype)]
        }
        Combiner::Indexed { blocklengths, oldtype, .. }
        | Combiner::Hindexed { blocklengths, oldtype, .. } => {
            let (blocks, children) = lists(blocklengths);
            vec![(blocks, children, oldtype)]
        }
        Combiner::IndexedBlock { blocklength, displacements, oldtype }
        | Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
            let blocks = displacements.len() as f64;
            vec![(blocks, blocks * *blocklength as f64, oldtype)]
        }
        _ => t.combiner().children().next().map(|child| vec![(1.0, 1.0, child)]).unwrap_or_default(),
    };
    parts.into_iter().filter(|(_, children, child)| children * size(child) > 0.0).collect()
}

fn size(t: &Datatype) -> f64 {
    t.size() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_piece_is_moved_by_one_call() {
        let list: Vec<String> = (0..3000).map(|i| (i * i + i % 3 * 2).to_string()).collect();
        let field = "hvector(44,1,8320,vector(65,3,32,float))";
        for (text, expected) in [
            // A vector of 64 KiB is moved double by double.
            ("vector(8192,1,2,double)".to_owned(), 8..=8),
            ("hvector(2,1,10000000,vector(65536,1,2,double))".to_owned(), 8..=8),
            (format!("indexed_block(1,[{}],double)", list.join(",")), 8..=8),
            // A subarray is moved row by row. Its rows are contiguous.
            ("subarray([100,200],[90,100],[0,0],C,double)".to_owned(), 800..=800),
            // Rows of 780 B are moved one by one, and 65 runs of the row that each piece cuts.
            (field.to_owned(), 180..=200),
            (format!("struct([1,1],[0,9000000],[{field},resized(0,64,{field})])"), 180..=200),
            // The blocks of a face without a halo have 512 B, although it is a single loop.
            ("subarray([64,64,64],[64,64,1],[0,0,0],C,double)".to_owned(), 160..=180),
            // Vectors of nearly a piece are cut nearly always.
            ("hvector(2,1,10000000,vector(2047,1,2,double))".to_owned(), 7..=8),
            ("vector(2047,1,2,double)".to_owned(), 7..=8),
            // Columns of 8000 B: two are moved together, and one is cut.
            ("resized(0,8,vector(1000,1,1000,double))".to_owned(), 16..=17),
            // Short instances are moved together.
            ("resized(0,32,struct([1,1,3],[0,8,16],[int,double,float]))".to_owned(), 2000..=16384),
            ("contiguous(4096,resized(0,32,struct([1,1],[0,8],[int,double])))".to_owned(), 2000..=16384),
            // Empty blocks cost nothing.
            ("indexed([4096,0,0],[0,9000,9001],resized(0,16,double))".to_owned(), 2000..=16384),
        ] {
            let bytes = bytes_per_call(&text.parse().unwrap(), 16 << 10);
            assert!(expected.contains(&bytes), "{text}: {bytes}, expected {expected:?}");
        }
    }

    #[test]
    fn types_of_any_depth_take_bounded_time() {
        let mut t: Datatype = "vector(8192,1,2,double)".parse().unwrap();
        for _ in 0..20_000 {
            t = Datatype::structure(&[1, 1], &[0, t.extent()], &[t.dup(), t.dup()])
                .unwrap_or_else(|_| t.dup());
        }
        assert!((8..=16 << 10).contains(&bytes_per_call(&t, 16 << 10)));
    }
}
