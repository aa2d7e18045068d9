//! Conversion of a `Datatype` of ddtc, a tree of constructors, to a node of this library. The node
//! has the same elements in the same order, and the same bounds. `node/tree.rs` converts in the
//! other direction.

use std::collections::HashMap;
use std::sync::Arc;

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

use crate::abi::{Code, Result};
use crate::arrays::{Blocks, Places};
use crate::builtin;
use crate::node::{Node, Ref};

/// Returns the datatypes that must be converted before `t`. If `t.expansion()` returns an
/// equivalent datatype of simpler constructors, this is the only result. Otherwise the results are
/// the children of `t`.
pub(crate) fn children(t: &Datatype) -> impl Iterator<Item = &Datatype> {
    let expansion = t.expansion();
    let own = expansion.is_none().then(|| t.combiner().children());
    expansion.into_iter().chain(own.into_iter().flatten())
}

/// Returns the node that is equivalent to the datatype `t`.
pub(crate) fn node(t: &Datatype) -> Result<Ref> {
    // A datatype may be nested deeply, so an explicit stack replaces recursion. When a datatype is
    // popped from the stack for the first time, it is pushed again, and its children are pushed
    // above it. The second time, its children have been converted, and it is converted too. The
    // same child may occur several times. `known` has the nodes of all datatypes that have been
    // converted already, so any further occurrence is skipped.
    let mut known: HashMap<usize, Ref> = HashMap::new();
    let mut open = vec![(t, false)];
    while let Some((t, children_done)) = open.pop() {
        if known.contains_key(&t.id()) {
            continue;
        }
        if !children_done {
            open.push((t, true));
            open.extend(children(t).map(|child| (child, false)));
            continue;
        }
        let below: Vec<Ref> = children(t).filter_map(|child| known.get(&child.id()).cloned()).collect();
        let made = read(t, below)?;
        // The node stores `t`, so that it need not be converted back to a `Datatype` later. If
        // `made` is not a new node, but for example that of a predefined type or of a child, it may
        // have a `Datatype` already.
        if made.extra().datatype.get().is_none() {
            made.extra().datatype.get_or_init(|| t.clone());
        }
        known.insert(t.id(), made);
    }
    known.remove(&t.id()).ok_or(Code::Internal)
}

/// Returns the node that is equivalent to the datatype `t`. `below` has the nodes of the datatypes
/// that [`children`] returns for `t`.
fn read(t: &Datatype, mut below: Vec<Ref>) -> Result<Ref> {
    let bounded = |node| Node::bounded(node, t.lb(), t.extent());
    if t.size() == 0 {
        return bounded(Node::empty());
    }
    let Some(child) = below.first().cloned() else {
        return t.basic().map(builtin::node_of).ok_or(Code::Internal);
    };
    if t.expansion().is_some() {
        return bounded(child);
    }
    let extent = child.facts.extent;
    let bytes = |at: &[i64]| -> Arc<[i64]> { at.iter().map(|d| d.wrapping_mul(extent)).collect() };
    let many = |lengths: &Arc<[i64]>, at: Arc<[i64]>| Blocks::Many { lengths: Arc::clone(lengths), at };
    let node = match t.combiner() {
        Combiner::Contiguous { count, .. } => Node::copies(*count, child)?,
        Combiner::Vector { count, blocklength, stride, .. } => Node::strided(
            *count,
            *blocklength,
            if *count > 1 { stride.wrapping_mul(extent) } else { 0 },
            child,
        )?,
        Combiner::Hvector { count, blocklength, stride, .. } => {
            Node::strided(*count, *blocklength, *stride, child)?
        }
        Combiner::Indexed { blocklengths, displacements, .. } => {
            Node::listed(many(blocklengths, bytes(displacements)), child)?
        }
        Combiner::Hindexed { blocklengths, displacements, .. } => {
            Node::listed(many(blocklengths, Arc::clone(displacements)), child)?
        }
        Combiner::IndexedBlock { blocklength, displacements, .. } => {
            Node::blocks(*blocklength, Places::Many(bytes(displacements)), child)?
        }
        Combiner::HindexedBlock { blocklength, displacements, .. } => {
            Node::blocks(*blocklength, Places::Many(Arc::clone(displacements)), child)?
        }
        Combiner::Struct { blocklengths, displacements, .. } => {
            let children = std::mem::take(&mut below).into();
            Node::structure(many(blocklengths, Arc::clone(displacements)), children, false)?
        }
        // Duplicates and constructors that only set bounds have the same data as their child. The
        // bounds of `t` are set after this `match`.
        _ => child,
    };
    bounded(node)
}
