//! Shrinking: finds a small datatype for which the same check still fails.
//!
//! Edits are made on the tree of constructors and not on the choices from which it was generated,
//! so that any failing datatype can be shrunk, wherever it came from. A node is replaced by one of
//! its children or by a basic type, children and array entries are removed, and numbers are moved
//! closer to zero. The search is greedy. Every accepted edit lowers [`weight`], so it ends.

use std::collections::HashMap;
use std::sync::Arc;

use crate::datatype::{Combiner, Datatype, Named, postorder};
use crate::error::Result;

/// Maximum number of candidates that are tried.
const TRIES: usize = 3000;
/// Maximum length of an array whose entries are edited one by one.
const SHORT: usize = 24;

/// Shrinks `t`, for which `fails` must return true, to a smaller datatype for which it returns true
/// as well. Returns `t` if there is none.
pub fn shrink(t: &Datatype, mut fails: impl FnMut(&Datatype) -> bool) -> Datatype {
    let mut best = t.clone();
    let mut tries = 0;
    'again: loop {
        let most = weight(&best);
        for candidate in candidates(&best) {
            if weight(&candidate) >= most {
                continue;
            }
            tries += 1;
            if tries > TRIES {
                return best;
            }
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

/// Returns what shrinking lowers: the number of nodes, the number of arguments, and the sum of all
/// numbers. They are compared in this order.
fn weight(t: &Datatype) -> (usize, u64, u128) {
    let numbers = t.nodes().map(|n| magnitude(n.combiner())).sum();
    (t.nodes().count(), t.arguments(), numbers)
}

/// Returns the datatypes that differ from `t` by one edit, with larger cuts before smaller ones
/// where possible.
fn candidates(t: &Datatype) -> impl Iterator<Item = Datatype> + use<> {
    let order: Vec<Datatype> = postorder(t).into_iter().rev().cloned().collect();
    let root = t.clone();
    let nodes = order.clone().into_iter();
    // First try to remove many levels at once. One level at a time would take as many tries as a
    // deep tree has levels.
    let cuts = levels_less(&order);
    cuts.into_iter().chain(nodes.flat_map(move |node| {
        let (root, order) = (root.clone(), order.clone());
        edits(&node).into_iter().filter_map(move |edit| replaced(&root, &order, &node, edit))
    }))
}

/// Returns copies of a tree from which a number of successive levels has been removed, at the top
/// or at the bottom. The largest numbers come first. If a node of the tree has several children,
/// nothing is returned. `order` lists the nodes of the tree, parents before children.
fn levels_less(order: &[Datatype]) -> Vec<Datatype> {
    let chain = order.iter().all(|t| t.combiner().children().count() <= 1);
    let halves = std::iter::successors(Some(order.len() / 2), |n| Some(n / 2)).take_while(|&n| n > 1);
    let cuts = halves.filter(|_| chain).flat_map(|n| [(0, n), (order.len() - 1 - n, n)]);
    cuts.filter_map(|(from, n)| replaced(&order[0], order, &order[from], order[from + n].clone())).collect()
}

/// Returns `root` with `node` replaced by `edit` wherever it occurs, or none if a constructor
/// refuses its new child. `order` lists the nodes of `root`, parents before children.
fn replaced(root: &Datatype, order: &[Datatype], node: &Datatype, edit: Datatype) -> Option<Datatype> {
    let mut done: HashMap<usize, Datatype> = HashMap::from([(node.id(), edit)]);
    for t in order.iter().rev() {
        if t.id() == node.id() || !t.combiner().children().any(|c| done.contains_key(&c.id())) {
            continue;
        }
        let children =
            t.combiner().children().map(|c| done.get(&c.id()).unwrap_or(c).clone()).collect::<Vec<_>>();
        done.insert(t.id(), with_children(t.combiner(), &children).ok()?);
    }
    done.remove(&root.id())
}

/// Returns the tree with each of its named types replaced by the one that `new` returns for it, or
/// none if a constructor refuses the result. Value-index types, `MPI_LB` and `MPI_UB` stay as they
/// are.
pub(super) fn retyped(root: &Datatype, new: &dyn Fn(Named) -> Named) -> Option<Datatype> {
    rebuilt(root, &mut |t, combiner| match t.basic() {
        Some(named) if !named.is_marker() => Some(Datatype::named(new(named))),
        _ if matches!(combiner, Combiner::ValueIndex { .. }) => Some(t.clone()),
        _ => Datatype::new(combiner).ok(),
    })
}

/// Makes `root` anew. `make` is called once for every node, children first, with the node and with
/// its constructor applied to the new children. Returns none as soon as `make` does.
pub fn rebuilt(
    root: &Datatype,
    make: &mut dyn FnMut(&Datatype, Combiner) -> Option<Datatype>,
) -> Option<Datatype> {
    let mut done: HashMap<usize, Datatype> = HashMap::new();
    for t in postorder(root) {
        let children: Option<Vec<_>> =
            t.combiner().children().map(|child| done.get(&child.id()).cloned()).collect();
        let made = make(t, over(t.combiner(), &children?))?;
        done.insert(t.id(), made);
    }
    done.remove(&root.id())
}

/// Applies the constructor `combiner` to `children` in place of its own children.
fn with_children(combiner: &Combiner, children: &[Datatype]) -> Result<Datatype> {
    Datatype::new(over(combiner, children))
}

/// Returns a copy of a constructor with `children` in place of its own. There must be as many of
/// them as the constructor has.
fn over(combiner: &Combiner, children: &[Datatype]) -> Combiner {
    let mut combiner = combiner.clone();
    match &mut combiner {
        Combiner::Named(_)
        | Combiner::F90Real { .. }
        | Combiner::F90Complex { .. }
        | Combiner::F90Integer { .. } => {}
        Combiner::Dup { oldtype }
        | Combiner::Contiguous { oldtype, .. }
        | Combiner::Vector { oldtype, .. }
        | Combiner::Hvector { oldtype, .. }
        | Combiner::Indexed { oldtype, .. }
        | Combiner::Hindexed { oldtype, .. }
        | Combiner::IndexedBlock { oldtype, .. }
        | Combiner::HindexedBlock { oldtype, .. }
        | Combiner::Subarray { oldtype, .. }
        | Combiner::Darray { oldtype, .. }
        | Combiner::Resized { oldtype, .. }
        | Combiner::Bounds { oldtype, .. } => *oldtype = children[0].clone(),
        Combiner::Struct { types, .. } => *types = children.into(),
        Combiner::ValueIndex { value, index } => {
            (*value, *index) = (children[0].clone(), children[1].clone());
        }
    }
    combiner
}

/// Mutable references to the numbers of a constructor: single numbers, and arrays that all have the
/// same length.
struct Numbers<'a> {
    single: Vec<&'a mut i64>,
    arrays: Vec<&'a mut Arc<[i64]>>,
    types: Option<&'a mut Arc<[Datatype]>>,
}

fn numbers(combiner: &mut Combiner) -> Numbers<'_> {
    let (mut single, mut arrays, mut kinds) = (Vec::new(), Vec::new(), None);
    match combiner {
        Combiner::Contiguous { count, .. } => single.push(count),
        Combiner::Vector { count, blocklength, stride, .. }
        | Combiner::Hvector { count, blocklength, stride, .. } => single.extend([count, blocklength, stride]),
        Combiner::Indexed { blocklengths, displacements, .. }
        | Combiner::Hindexed { blocklengths, displacements, .. } => {
            arrays.extend([blocklengths, displacements]);
        }
        Combiner::IndexedBlock { blocklength, displacements, .. }
        | Combiner::HindexedBlock { blocklength, displacements, .. } => {
            single.push(blocklength);
            arrays.push(displacements);
        }
        Combiner::Struct { blocklengths, displacements, types, .. } => {
            arrays.extend([blocklengths, displacements]);
            kinds = Some(types);
        }
        Combiner::Subarray { sizes, subsizes, starts, .. } => arrays.extend([sizes, subsizes, starts]),
        // Two of the arrays of a darray are listed here. All of its arrays must have the same
        // length, so entries of these two can be changed, but if entries are removed, the
        // constructor refuses the arguments.
        Combiner::Darray { size, rank, gsizes, psizes, .. } => {
            single.extend([size, rank]);
            arrays.extend([gsizes, psizes]);
        }
        Combiner::Resized { lb, extent, .. } | Combiner::Bounds { lb, extent, .. } => {
            single.extend([lb, extent]);
        }
        Combiner::Named(_)
        | Combiner::Dup { .. }
        | Combiner::F90Real { .. }
        | Combiner::F90Complex { .. }
        | Combiner::F90Integer { .. }
        | Combiner::ValueIndex { .. } => {}
    }
    Numbers { single, arrays, types: kinds }
}

/// Returns a measure of the distance of `n` from zero. It is slightly larger for a negative number
/// than for the positive number of the same magnitude.
fn height(n: i64) -> u128 {
    2 * u128::from(n.unsigned_abs()) + u128::from(n < 0)
}

/// Returns the sum of the distances from zero of a constructor's numbers. For a named type, returns
/// a number that orders these types by their size.
fn magnitude(combiner: &Combiner) -> u128 {
    if let Combiner::Named(n) = combiner {
        return n.size() as u128 * 256 + *n as u128;
    }
    let mut copy = combiner.clone();
    let numbers = numbers(&mut copy);
    let single: u128 = numbers.single.iter().map(|n| height(**n)).sum();
    single + numbers.arrays.iter().flat_map(|a| a.iter()).map(|&n| height(n)).sum::<u128>()
}

/// Returns some numbers that are closer to zero than `n` by the measure `height`.
fn closer(n: i64) -> impl Iterator<Item = i64> {
    let near = [0, 1, n / 2, n.saturating_neg(), n - n.signum()];
    near.into_iter().filter(move |&m| height(m) < height(n))
}

/// Returns candidates for replacing the node `t`: its children, three named types, and copies of
/// the node with shorter arrays or with one smaller number.
fn edits(t: &Datatype) -> Vec<Datatype> {
    let combiner = t.combiner();
    let mut out: Vec<Datatype> = combiner.children().cloned().collect();
    out.extend([Named::Byte, Named::Short, Named::Int].map(Datatype::named));
    let mut edit = |change: &mut dyn FnMut(&mut Combiner)| {
        let mut combiner = combiner.clone();
        change(&mut combiner);
        out.extend(Datatype::new(combiner));
    };
    let mut copy = combiner.clone();
    let shape = numbers(&mut copy);
    let (singles, arrays) = (shape.single.len(), shape.arrays.len());
    let len = shape.arrays.first().map_or(0, |a| a.len());
    // Parts of the arrays to remove: first both halves, then each entry, or each eighth if there
    // are many entries.
    let mut cuts: Vec<std::ops::Range<usize>> = Vec::new();
    if len > 1 {
        cuts.extend([0..len / 2, len / 2..len]);
    }
    if len <= SHORT {
        cuts.extend((0..len).map(|i| i..i + 1));
    } else {
        cuts.extend((0..8).map(|i| len * i / 8..len * (i + 1) / 8));
    }
    for cut in cuts {
        edit(&mut |combiner| {
            let numbers = numbers(combiner);
            for array in numbers.arrays {
                *array = without(array, &cut);
            }
            if let Some(types) = numbers.types {
                *types = without(types, &cut);
            }
        });
    }
    for i in 0..singles {
        for n in closer(*shape.single[i]) {
            edit(&mut |combiner| *numbers(combiner).single[i] = n);
        }
    }
    if len <= SHORT {
        for i in 0..arrays {
            for (j, &old) in shape.arrays[i].iter().enumerate() {
                for n in closer(old) {
                    edit(&mut |combiner| {
                        let array = &mut numbers(combiner).arrays[i];
                        **array =
                            array.iter().enumerate().map(|(k, &m)| if k == j { n } else { m }).collect();
                    });
                }
            }
        }
    }
    out
}

fn without<T: Clone>(array: &Arc<[T]>, cut: &std::ops::Range<usize>) -> Arc<[T]> {
    let kept = array.iter().enumerate().filter(|(i, _)| !cut.contains(i));
    kept.map(|(_, v)| v.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Datatype {
        text.parse().unwrap()
    }

    #[test]
    fn shrinks_to_what_matters() {
        let t = parse(
            "struct([2,1,3],[0,100,200],[vector(9,3,7,double),indexed([1,2,0,3],[9,40,2,7],dup(short_int)),int])",
        );
        let has =
            |name: &'static str| move |t: &Datatype| t.nodes().any(|n| n.combiner().text_name() == name);
        assert_eq!(shrink(&t, has("indexed")).to_string(), "indexed([],[],byte)");
        assert_eq!(shrink(&t, has("dup")).to_string(), "dup(byte)");
        assert_eq!(shrink(&t, |t| t.size() >= 6).to_string(), "double");
        let small = shrink(&t, |t| t.true_ub() > 100 && t.size() > 0);
        assert!(small.nodes().count() <= 2 && small.true_ub() < 110, "{small}");
    }

    #[test]
    fn deep_trees_lose_many_levels_at_once() {
        let mut t = parse("int");
        for _ in 0..40 {
            t = t.dup();
        }
        // In a fuzzer, each step may cost a process, so there must be few.
        let mut steps = 0;
        let small = shrink(&t, |t| {
            steps += u32::from(t.depth() >= 17);
            t.depth() >= 17
        });
        assert_eq!((small.depth(), small.nodes().count()), (17, 18));
        assert!(steps < 8, "{steps}");
    }

    #[test]
    fn ends_on_anything_and_never_loses_the_failure() {
        for seed in 0..60 {
            let mut c = super::super::Choices::from_seed(seed);
            let t = super::super::datatype(&mut c, &super::super::Budget::small());
            let small = shrink(&t, |t| t.size() % 3 == t.size() % 2);
            assert!(small == t || small.size() % 3 == small.size() % 2);
        }
    }

    #[test]
    fn postorder_has_children_first() {
        let t = parse("let a = vector(2,1,3,int); struct([1,1],[0,99],[dup(a),a])");
        let order = postorder(&t);
        assert_eq!(order.len(), t.nodes().count());
        let place = |id| order.iter().position(|n| n.id() == id).unwrap();
        assert!(t.nodes().all(|n| n.combiner().children().all(|c| place(c.id()) < place(n.id()))));
    }
}
