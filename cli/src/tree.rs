//! Prints a datatype as an indented tree, with the constructor, its arguments, the size and the
//! bounds of every node.

use std::collections::HashMap;
use std::fmt::Write as _;

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

/// Maximum number of nodes that are printed, each on a line of its own. A struct may have 10^4
/// members, which nobody reads.
const MAX_LINES: usize = 100;
/// Maximum number of elements of an array that are shown.
const MAX_ELEMENTS: usize = 8;
/// Depth in the tree beyond which the indentation no longer grows.
const MAX_INDENT: usize = 24;

/// Returns the tree of `t`, one line per node. A node that occurs again is printed as a reference
/// to the line where it was printed first.
pub(crate) fn tree(t: &Datatype) -> String {
    let mut out = String::new();
    let mut seen: HashMap<usize, usize> = HashMap::new();
    // Keep the nodes that are still to be printed on a heap-allocated stack. The user determines
    // the depth of the tree, so recursion could overflow the program's stack.
    let mut stack = vec![(t, 0usize)];
    let mut line = 0;
    while let Some((t, depth)) = stack.pop() {
        line += 1;
        if line > MAX_LINES {
            let _ = writeln!(out, "      ... more nodes follow");
            break;
        }
        let indent = "  ".repeat(depth.min(MAX_INDENT));
        if let Some(first) = seen.get(&t.id()) {
            let _ = writeln!(out, "{line:>5} {indent}as {first}");
            continue;
        }
        let _ =
            write!(out, "{line:>5} {indent}{}  size {} extent {}", head(t.combiner()), t.size(), t.extent());
        if t.lb() != 0 {
            let _ = write!(out, " lb {}", t.lb());
        }
        if (t.true_lb(), t.true_ub()) != (t.lb(), t.ub()) {
            let _ = write!(out, " true {}..{}", t.true_lb(), t.true_ub());
        }
        out.push('\n');
        if !matches!(t.combiner(), Combiner::Named(_)) {
            seen.insert(t.id(), line);
        }
        stack.extend(t.combiner().children().rev().map(|child| (child, depth + 1)));
    }
    out
}

fn list<T: ToString>(items: &[T]) -> String {
    let shown: Vec<String> = items.iter().take(MAX_ELEMENTS).map(T::to_string).collect();
    if items.len() > MAX_ELEMENTS {
        format!("[{},.. {} in all]", shown.join(","), items.len())
    } else {
        format!("[{}]", shown.join(","))
    }
}

/// Returns a constructor with its arguments, except for datatypes. Long arrays are truncated.
fn head(combiner: &Combiner) -> String {
    let optional = |v: &Option<i64>, none: &str| v.map_or_else(|| none.to_owned(), |v| v.to_string());
    // Arguments are shown in the order of the MPI standard, with its names but without `array_of_`.
    // Lengths of arrays are left out, and so are datatypes, because they are the children in the
    // tree.
    let arguments = match combiner {
        Combiner::Named(named) => return named.text_name().to_owned(),
        Combiner::Dup { .. } | Combiner::ValueIndex { .. } => String::new(),
        Combiner::Contiguous { count, .. } => format!("count={count}"),
        Combiner::Vector { count, blocklength, stride, .. }
        | Combiner::Hvector { count, blocklength, stride, .. } => {
            format!("count={count}, blocklength={blocklength}, stride={stride}")
        }
        Combiner::Indexed { blocklengths, displacements, .. }
        | Combiner::Hindexed { blocklengths, displacements, .. }
        | Combiner::Struct { blocklengths, displacements, .. } => {
            format!("blocklengths={}, displacements={}", list(blocklengths), list(displacements))
        }
        Combiner::IndexedBlock { blocklength, displacements, .. }
        | Combiner::HindexedBlock { blocklength, displacements, .. } => {
            format!("blocklength={blocklength}, displacements={}", list(displacements))
        }
        Combiner::Subarray { sizes, subsizes, starts, order, .. } => {
            format!(
                "sizes={}, subsizes={}, starts={}, order={order:?}",
                list(sizes),
                list(subsizes),
                list(starts)
            )
        }
        Combiner::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
            let distribs: Vec<String> = distribs.iter().map(|d| format!("{d:?}").to_lowercase()).collect();
            let dargs: Vec<String> = dargs.iter().map(|d| optional(d, "default")).collect();
            let (gsizes, psizes) = (list(gsizes), list(psizes));
            format!(
                "size={size}, rank={rank}, gsizes={gsizes}, distribs={}, dargs={}, psizes={psizes}, order={order:?}",
                list(&distribs),
                list(&dargs)
            )
        }
        Combiner::F90Real { p, r } | Combiner::F90Complex { p, r } => {
            format!("p={}, r={}", optional(p, "undefined"), optional(r, "undefined"))
        }
        Combiner::F90Integer { r } => format!("r={r}"),
        Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
            format!("lb={lb}, extent={extent}")
        }
    };
    format!("{}({arguments})", combiner.text_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_by_hand() {
        let t: Datatype = "struct([1,2], [0,8], [int,resized(-4, 8, int)])".parse().unwrap();
        let expected = "    1 struct(blocklengths=[1,2], displacements=[0,8])  size 12 extent 16 lb 4 true 0..20\n    \
            2   int  size 4 extent 4\n    \
            3   resized(lb=-4, extent=8)  size 4 extent 8 lb -4 true 0..4\n    \
            4     int  size 4 extent 4\n";
        assert_eq!(tree(&t), expected);
    }

    #[test]
    fn shared_nodes_are_referred_to_and_size_is_bounded() {
        let dag = ddtc::internal::corpus::datatype("@dag(40)").unwrap();
        assert!(tree(&dag).lines().count() <= MAX_LINES + 1);
        assert!(tree(&dag).contains("  as "));
        for text in ["@children(10000)", "@displaced(1000, 1)", "indexed_block(1, @range(100000, 0, 2), int)"]
        {
            let text = tree(&ddtc::internal::corpus::datatype(text).unwrap());
            assert!(text.lines().count() <= MAX_LINES + 1 && text.len() < 40_000);
        }
    }
}
