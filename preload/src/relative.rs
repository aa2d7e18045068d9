//! Types of absolute addresses (`MPI_Get_address` with `MPI_BOTTOM`), as the report groups them: by what lies beside what, wherever it is.
//!
//! A program makes one such type for each of its objects, and each rank has others: as they are they would have a row each.

use ddtc::datatype::{Combiner, Datatype};

/// The first displacement that is taken for an address. `MPI_BOTTOM` is the null pointer on every host, so the buffer tells nothing; hosts refuse a null
/// buffer of derived types too where true lower bound (MPICH, Intel MPI) or true extent (Open MPI) is 0, and nothing is mapped below.
pub(crate) const ADDRESSES: i64 = 64 << 10;
/// Displacements from which a type's first byte is taken for an address: what programs that are not position-independent begin at.
const FAR: i64 = 4 << 20;
/// Bytes of a page: where a piece begins whose distance from the one before says nothing.
const PAGE: i64 = 4096;
/// Constructors around the one with the addresses.
const DEPTH: u32 = 16;

/// Returns a type of absolute addresses as one whose first byte is at 0 and whose pieces that are far apart follow each other; `None`: it is none.
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

/// Bytes from a block's displacement to its end.
fn end(n: i64, t: &Datatype) -> i64 {
    (n - 1).max(0).saturating_mul(t.extent()).saturating_add(t.true_ub())
}

/// Displacements from 0 up, distances of less than [`FAR`] kept.
fn places(displacements: &[i64], ends: impl Iterator<Item = i64>) -> Option<Vec<i64>> {
    let mut order: Vec<(i64, i64, usize)> =
        displacements.iter().zip(ends).enumerate().map(|(i, (&d, end))| (d, end, i)).collect();
    order.sort_unstable();
    let mut places = vec![0; displacements.len()];
    // What is subtracted, and the last byte so far, as given.
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
        // Parts on heap and stack: how far they are from each other says nothing.
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
