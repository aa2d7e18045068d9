//! Relative forms of types whose displacements are absolute addresses (`MPI_Get_address` with
//! `MPI_BOTTOM`). The report groups these types by the distances between their pieces, and not by
//! the addresses of the pieces.
//!
//! A program makes a type of absolute addresses for each of its objects, and the addresses differ
//! from rank to rank. Without the relative form, each of these types would have a row of its own in
//! the report.

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

/// Minimum true lower bound in bytes of a type whose displacements are taken for addresses.
/// `MPI_BOTTOM` is the null pointer in every MPI library, so a null buffer does not show whether
/// the displacements are addresses. MPI libraries refuse a null buffer also with derived types, if
/// the true lower bound (MPICH, Intel MPI) or true extent (Open MPI) is 0. Linux distributions
/// usually let programs map no memory below this address (`vm.mmap_min_addr`).
pub(crate) const ADDRESSES: i64 = 64 << 10;
/// Minimum true lower bound in bytes of a type that is made relative. Programs that are not
/// position-independent begin at this address. The relative form keeps the distance between
/// two pieces only if it is less than this number of bytes.
const FAR: i64 = 4 << 20;
/// Bytes of a page. If the distance between two pieces is not kept, the second piece begins at the
/// first multiple of this number after the first piece.
const PAGE: i64 = 4096;
/// Maximum number of constructors around the constructor whose displacements are addresses.
const DEPTH: u32 = 16;

/// Returns the relative form of a type whose displacements are absolute addresses: the smallest
/// displacement is 0, and large gaps ([`FAR`]) between pieces are closed. Returns `None` if
/// the displacements are not absolute addresses, or if the addresses are in a constructor that is
/// not handled here.
pub(crate) fn relative(t: &Datatype) -> Option<Datatype> {
    if t.true_lb() < FAR { None } else { moved(t, DEPTH) }
}

fn moved(t: &Datatype, depth: u32) -> Option<Datatype> {
    let inner = |t: &Datatype| moved(t, depth.checked_sub(1)?);
    let made = match t.combiner() {
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            let ends = blocklengths.iter().map(|&n| end(n, oldtype));
            Datatype::hindexed(blocklengths, &places(displacements, ends)?, oldtype)
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype } => {
            let ends = displacements.iter().map(|_| end(*blocklength, oldtype));
            Datatype::hindexed_block(*blocklength, &places(displacements, ends)?, oldtype)
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            let ends = blocklengths.iter().zip(types.iter()).map(|(&n, t)| end(n, t));
            Datatype::structure(blocklengths, &places(displacements, ends)?, types)
        }
        Combiner::Dup { oldtype } => return Some(inner(oldtype)?.dup()),
        Combiner::Contiguous { count, oldtype } => Datatype::contiguous(*count, &inner(oldtype)?),
        Combiner::Resized { lb, extent, oldtype } => {
            let lb = if *lb < FAR { *lb } else { 0 };
            Datatype::resized(lb, *extent, &inner(oldtype)?)
        }
        _ => return None,
    };
    made.ok()
}

/// Returns the bytes from the displacement of a block of `n` elements to the end of the block.
fn end(n: i64, t: &Datatype) -> i64 {
    (n - 1).max(0).saturating_mul(t.extent()).saturating_add(t.true_ub())
}

/// Returns the displacements of the relative form. The smallest displacement is 0. The distance of
/// a block from the end of the blocks before it is kept if it is less than [`FAR`]. Otherwise the
/// block begins at the next multiple of [`PAGE`]. `ends`: the bytes from each displacement to the
/// end of its block.
fn places(displacements: &[i64], ends: impl Iterator<Item = i64>) -> Option<Vec<i64>> {
    let mut order: Vec<(i64, i64, usize)> =
        displacements.iter().zip(ends).enumerate().map(|(i, (&d, end))| (d, end, i)).collect();
    order.sort_unstable();
    let mut places = vec![0; displacements.len()];
    // `by`: the number that is subtracted from a displacement. `last`: the address at which the
    // blocks so far end, before anything is subtracted.
    let (mut by, mut last) = (order.first()?.0, order.first()?.0);
    for (d, end, i) in order {
        if d.saturating_sub(last) >= FAR {
            by = d - (last - by).checked_add(PAGE - 1)? / PAGE * PAGE;
        }
        places[i] = d.checked_sub(by)?;
        last = last.max(d.saturating_add(end));
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str) -> Option<String> {
        relative(&t.parse().unwrap()).map(|t| t.to_string())
    }

    #[test]
    fn objects_of_one_layout_are_one() {
        let at = |base: i64| {
            text(&format!("struct([1,3],[{},{}],[int,double])", base + 8, base + 16)).expect("an address")
        };
        assert_eq!(at(0x7fff_1234_5678), at(0x5555_0000_1230));
        assert_eq!(at(0x7fff_1234_5678), "struct([1,3],[0,8],[int,double])");
        // One piece is on the heap and the other on the stack. The distance between the pieces
        // has no effect on the relative form.
        let apart = |heap: i64, stack: i64| text(&format!("hindexed([2,1],[{stack},{heap}],int)")).unwrap();
        assert_eq!(apart(0x5555_0000_0000, 0x7fff_0000_0000), apart(0x5555_1000_0040, 0x7ffe_0000_0340));
        assert_eq!(apart(0x5555_0000_0000, 0x7fff_0000_0000), "hindexed([2,1],[4096,0],int)");
        assert_eq!(
            text("resized(0,64,hindexed_block(2,[94000000,94000100],int))").unwrap(),
            "resized(0,64,hindexed_block(2,[0,100],int))"
        );
    }

    #[test]
    fn other_types_are_as_they_are() {
        for t in ["vector(3,1,2,int)", "hindexed([1,1],[4,64],int)", "struct([1,1],[-8,94000000],[int,int])"]
        {
            assert_eq!(text(t), None, "{t}");
        }
    }
}
