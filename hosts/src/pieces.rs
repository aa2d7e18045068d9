//! Number of calls with which MPICH moves a message that is cut into pieces.

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

/// Maximum number of constructors that are looked at. For a type with more of them, the result of
/// [`calls`] is too small.
const MAX_NODES: usize = 1000;

/// Returns the number of calls with which MPICH 4.2 and 4.3 move one instance of a type in pieces
/// of `piece` bytes. What is shorter than a piece is moved whole by one call: an instance, a block,
/// or a member of a structure. What is longer is cut, and its parts are moved in the same way
/// (pmodels/yaksa, `yaksi_ipack_element.c`). The constructors decide and not the normal form, in
/// which loops are joined that are separate for MPICH.
pub fn calls(t: &Datatype, piece: u64) -> u64 {
    let size = |t: &Datatype| t.size().unsigned_abs();
    let sum = |lengths: &[i64]| lengths.iter().fold(0u64, |sum, &n| sum.saturating_add(n.unsigned_abs()));
    let (mut all, mut nodes) = (0u64, 0);
    // Types that are to be cut, each with the number of its instances.
    let mut open = vec![(t, 1u64)];
    while let Some((t, number)) = open.pop() {
        nodes += 1;
        if size(t) < piece || nodes > MAX_NODES {
            all = all.saturating_add(number);
            continue;
        }
        let t = t.expansion().unwrap_or(t);
        // Every part is a number of blocks with a number of children in all. If a child is shorter
        // than a piece, the children of a block are moved together.
        let mut part = |blocks: u64, children: u64, child| {
            let times = if size(child) < piece { blocks } else { children };
            open.push((child, number.saturating_mul(times)));
        };
        match t.combiner() {
            Combiner::Struct { blocklengths, types, .. } => {
                for (&length, member) in blocklengths.iter().zip(types.iter()).take(MAX_NODES) {
                    part(1, length.unsigned_abs(), member);
                }
            }
            Combiner::Contiguous { count, oldtype } => part(1, count.unsigned_abs(), oldtype),
            Combiner::Vector { count, blocklength, oldtype, .. }
            | Combiner::Hvector { count, blocklength, oldtype, .. } => {
                let blocks = count.unsigned_abs();
                part(blocks, blocks.saturating_mul(blocklength.unsigned_abs()), oldtype);
            }
            Combiner::Indexed { blocklengths, oldtype, .. }
            | Combiner::Hindexed { blocklengths, oldtype, .. } => {
                part(blocklengths.len() as u64, sum(blocklengths), oldtype);
            }
            Combiner::IndexedBlock { blocklength, displacements, oldtype }
            | Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
                let blocks = displacements.len() as u64;
                part(blocks, blocks.saturating_mul(blocklength.unsigned_abs()), oldtype);
            }
            _ => match t.combiner().children().next() {
                Some(child) => part(1, 1, child),
                None => all = all.saturating_add(number),
            },
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shorter_than_a_piece_is_one_call() {
        let list: Vec<String> = (0..3000).map(|i| (i * i + i % 3 * 2).to_string()).collect();
        let field = "hvector(44,1,8320,vector(65,3,32,float))";
        for (text, expected) in [
            // A vector of 64 KiB is moved double by double, and a subarray row by row.
            ("vector(8192,1,2,double)".to_owned(), 8192),
            ("subarray([100,200],[90,100],[0,0],C,double)".to_owned(), 90),
            ("subarray([9,100,200],[8,90,100],[0,0,0],Fortran,double)".to_owned(), 100),
            // A face without a halo is moved row by row too, although it is a single loop.
            ("subarray([64,64,64],[64,64,1],[0,0,0],C,double)".to_owned(), 64),
            // What has 16 KiB or more is cut again.
            ("hvector(2,1,10000000,vector(65536,1,2,double))".to_owned(), 131_072),
            ("hvector(2,1,10000000,vector(2048,1,2,double))".to_owned(), 4096),
            ("hvector(2,1,10000000,vector(2047,1,2,double))".to_owned(), 2),
            (format!("indexed_block(1,[{}],double)", list.join(",")), 3000),
            ("struct([1,1],[0,9000000],[vector(4096,1,2,double),vector(100,1,2,double)])".to_owned(), 4097),
            (format!("struct([1,1],[0,9000000],[{field},resized(0,64,{field})])"), 88),
            // Whole instances and children of a block are moved together.
            ("resized(0,32,struct([1,1,3],[0,8,16],[int,double,float]))".to_owned(), 1),
            ("contiguous(4096,resized(0,32,struct([1,1],[0,8],[int,double])))".to_owned(), 1),
        ] {
            assert_eq!(calls(&text.parse().unwrap(), 16 << 10), expected, "{text}");
        }
    }

    #[test]
    fn types_of_any_depth_take_bounded_time() {
        let mut t: Datatype = "vector(8192,1,2,double)".parse().unwrap();
        for _ in 0..20_000 {
            t = Datatype::structure(&[1, 1], &[0, t.extent()], &[t.dup(), t.dup()])
                .unwrap_or_else(|_| t.dup());
        }
        assert!(calls(&t, 16 << 10) > 0);
    }
}
