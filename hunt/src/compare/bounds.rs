//! Checks of size, bounds and true bounds of every node. The expected bounds of a node are computed
//! from the bounds that the library gives its children, so a wrong node causes only one difference.
//!
//! Libraries read the rules on markers, epsilon (alignment padding), empty blocks and empty members
//! in several ways, and the standard's own text has changed. Bounds that follow from one of these
//! readings are classified as open, and all other deviating bounds as a bug.

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

use super::{Class, Context, Report};
use crate::library::Bounds;
use crate::subject::Node;

pub(super) fn run(context: &mut Context<'_>, report: &mut Report<'_>) {
    let library = context.library;
    for node in &report.subject.nodes {
        let t = &node.defined;
        match library.size(node.handle) {
            Err(refusal) => report.refused(refusal),
            Ok(size) => {
                let fits = i32::try_from(t.size()).is_ok();
                let undefined = i64::from(library.abi().constants.undefined);
                if size != t.size() && (fits || size != undefined) {
                    let clause = |size: i64| format!("the size is {size}");
                    report.add_at(node, ("size", Class::Bug, "size"), clause(t.size()), clause(size));
                }
                if !fits
                    && let Ok(small) = library.small_size(node.handle)
                    && i64::from(small) != undefined
                {
                    let what = ("size-in-int", Class::Bug, "size");
                    let clause = |size: &dyn std::fmt::Display| format!("MPI_Type_size gives {size}");
                    report.add_at(node, what, clause(&"MPI_UNDEFINED"), clause(&small));
                }
            }
        }
        let want = Bounds { lb: t.lb(), extent: t.extent() };
        if node.bounds != want {
            let (kind, class) = match reading(&node.defined, node.bounds) {
                Some(family) => (format!("bounds-{family}"), Class::Open),
                None => ("bounds".to_owned(), Class::Bug),
            };
            report.add_at(node, (&kind, class, "bounds"), shown("", want), shown("", node.bounds));
        }
        match library.true_bounds(node.handle) {
            Err(refusal) => report.refused(refusal),
            Ok(got) => true_bounds(report, node, got),
        }
    }
}

fn true_bounds(report: &mut Report<'_>, node: &Node, got: Bounds) {
    let t = &node.judged;
    let want = Bounds { lb: t.true_lb(), extent: t.true_extent() };
    if got == want {
        return;
    }
    let what = match t.size() {
        0 => ("true-bounds-of-nothing", Class::Open, "empty-true-bounds"),
        _ => ("true-bounds", Class::Bug, "true-bounds"),
    };
    report.add_at(node, what, shown("true ", want), shown("true ", got));
}

/// Returns a clause that states the lower bound and the extent in `bounds`. `which` is "true " for
/// true bounds, and empty for others.
fn shown(which: &str, bounds: Bounds) -> String {
    format!("the {which}lower bound is {} and the {which}extent is {}", bounds.lb, bounds.extent)
}

/// A block of copies of one child, with its displacement in bytes and the number of copies.
struct Block<'t> {
    at: i64,
    copies: i64,
    child: &'t Datatype,
}

/// Returns the blocks of a constructor. If the blocks have a constant stride, only the first and
/// the last block are returned, since these two determine the bounds of the datatype. Returns none
/// for constructors whose bounds all libraries compute in the same way.
fn blocks(t: &Datatype) -> Option<Vec<Block<'_>>> {
    let row = |count: i64, copies: i64, stride: i64, child| {
        let block = |at| Block { at, copies, child };
        let last = (count - 1).max(0).saturating_mul(stride);
        if count == 0 { vec![Block { at: 0, copies: 0, child }] } else { vec![block(0), block(last)] }
    };
    Some(match t.combiner() {
        Combiner::Contiguous { count, oldtype } => row(1, *count, 0, oldtype),
        Combiner::Vector { count, blocklength, stride, oldtype } => {
            row(*count, *blocklength, stride.saturating_mul(oldtype.extent()), oldtype)
        }
        Combiner::Hvector { count, blocklength, stride, oldtype, .. } => {
            row(*count, *blocklength, *stride, oldtype)
        }
        Combiner::Indexed { blocklengths, displacements, oldtype } => {
            let at = displacements.iter().map(|d| d.saturating_mul(oldtype.extent()));
            let blocks = at.zip(blocklengths.iter());
            blocks.map(|(at, &copies)| Block { at, copies, child: oldtype }).collect()
        }
        Combiner::Hindexed { blocklengths, displacements, oldtype, .. } => {
            let blocks = displacements.iter().zip(blocklengths.iter());
            blocks.map(|(&at, &copies)| Block { at, copies, child: oldtype }).collect()
        }
        Combiner::IndexedBlock { blocklength, displacements, oldtype } => {
            let at = displacements.iter().map(|d| d.saturating_mul(oldtype.extent()));
            at.map(|at| Block { at, copies: *blocklength, child: oldtype }).collect()
        }
        Combiner::HindexedBlock { blocklength, displacements, oldtype, .. } => {
            displacements.iter().map(|&at| Block { at, copies: *blocklength, child: oldtype }).collect()
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            let blocks = displacements.iter().zip(blocklengths.iter()).zip(types.iter());
            blocks.map(|((&at, &copies), child)| Block { at, copies, child }).collect()
        }
        _ => return None,
    })
}

/// Returns true if a datatype has lower-bound or upper-bound markers, which then determine its
/// bounds. The markers may be set by its own constructor or by that of a datatype below it in the
/// tree.
fn is_marked(t: &Datatype) -> bool {
    t.nodes().any(|n| {
        matches!(
            n.combiner(),
            Combiner::Resized { .. }
                | Combiner::Bounds { .. }
                | Combiner::Subarray { .. }
                | Combiner::Darray { .. }
        )
    })
}

/// Returns a name for the question, such as "zero-blocks", on which the standard can be read in
/// several ways, if one of these readings gives `t` the bounds `got`. The children of `t` must have
/// the bounds that the library gives them. Returns none if no known reading of the standard gives
/// the bounds `got`.
fn reading(t: &Datatype, got: Bounds) -> Option<&'static str> {
    let blocks = blocks(t)?;
    if t.size() == 0 {
        return Some("of-nothing");
    }
    let Bounds { lb, extent } = got;
    let ub = lb.checked_add(extent)?;
    // Collect the displacements that are a lower or an upper bound in some reading of the standard.
    // The readings differ in the blocks that they consider: blocks with copies, with markers, or
    // with bytes, combinations of these, or all blocks.
    let (mut lows, mut highs) = (vec![], vec![]);
    type Selected<'a> = &'a dyn Fn(&Block<'_>) -> bool;
    let selections: [Selected<'_>; 5] = [
        &|b| b.copies > 0,
        &|b| b.copies > 0 && is_marked(b.child),
        &|b| b.copies > 0 && b.child.size() > 0,
        &|b| b.copies > 0 && (b.child.size() > 0 || is_marked(b.child)),
        &|_| true,
    ];
    for selected in selections {
        let chosen = || blocks.iter().filter(|b| selected(b));
        let reach = |b: &Block<'_>| (b.copies - 1).max(0).saturating_mul(b.child.extent());
        let low = |b: &Block<'_>| b.at.saturating_add(b.child.lb()).saturating_add(reach(b).min(0));
        let high = |b: &Block<'_>| b.at.saturating_add(b.child.ub()).saturating_add(reach(b).max(0));
        lows.extend(chosen().map(low).min());
        highs.extend(chosen().map(high).max());
        // In some readings, a block without copies counts as a bound at its displacement. In others
        // it does not count.
        let place = |b: &Block<'_>| if b.copies > 0 { None } else { Some(b.at) };
        lows.extend(chosen().map(|b| place(b).unwrap_or(low(b))).min());
        highs.extend(chosen().map(|b| place(b).unwrap_or(high(b))).max());
    }
    // The extent may also be padded to a multiple of an alignment. If neither the exact bounds nor
    // padded ones match, no reading of the standard explains `got`. Otherwise the difference is
    // named after the feature of the datatype on which the readings differ.
    let aligned = |width: i64| {
        [2, 4, 8, 16, 32].into_iter().any(|a: i64| {
            width.checked_rem_euclid(a).and_then(|past| width.checked_add((a - past) % a)) == Some(extent)
        })
    };
    let exact = lows.contains(&lb) && highs.contains(&ub);
    let padded = lows.contains(&lb)
        && highs
            .iter()
            .any(|&high| high.checked_sub(lb).is_some_and(|width| width == extent || aligned(width)));
    if !exact && !padded {
        return None;
    }
    Some(if blocks.iter().any(|b| b.copies == 0) {
        "zero-blocks"
    } else if blocks.iter().any(|b| b.child.size() == 0) {
        "empty-members"
    } else if !exact || lb == t.lb() && (extent - t.extent()).abs() < 32 {
        "epsilon"
    } else {
        "markers"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading_of(text: &str, lb: i64, extent: i64) -> Option<&'static str> {
        reading(&text.parse().unwrap(), Bounds { lb, extent })
    }

    #[test]
    fn what_some_reading_gives_is_open() {
        assert_eq!(reading_of("hvector(2,1,5,int)", 0, 9), Some("epsilon"));
        assert_eq!(reading_of("struct([1,0],[8,0],[int,int])", 0, 12), Some("zero-blocks"));
        assert_eq!(reading_of("struct([1,1],[0,40],[resized(0,8,int),int])", 0, 44), Some("markers"));
    }

    #[test]
    fn what_none_gives_is_wrong() {
        // The bounds in the first two assertions are like those that Open MPI 5.0.11 gives for a
        // stride of -1 byte.
        assert_eq!(reading_of("vector(8,1,-1,char)", 0, 8), None);
        assert_eq!(reading_of("vector(8,1,-1,char)", -7, 9), None);
        assert_eq!(reading_of("resized(0,8,int)", 0, 12), None);
    }
}
