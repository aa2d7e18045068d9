//! Conversion of a tree of ddtc to a type of this library with the same elements, in the same order
//! and with the same bounds. `node/tree.rs` converts in the other direction.

use std::collections::HashMap;
use std::sync::Arc;

use ddtc::internal::datatype::{Combiner, Datatype};
use ddtc::internal::methods::*;

use crate::abi::{Code, Result};
use crate::arrays::{Blocks, Places};
use crate::builtin;
use crate::node::{Node, Ref};

/// Returns the trees that must be converted before `t`. If `t` has an equivalent tree of simpler
/// constructors, this is the only one. Otherwise they are the children of `t`.
pub(crate) fn children(t: &Datatype) -> impl Iterator<Item = &Datatype> {
    let expansion = t.expansion();
    let own = expansion.is_none().then(|| t.combiner().children());
    expansion.into_iter().chain(own.into_iter().flatten())
}

/// Returns the type for a tree.
pub(crate) fn node(t: &Datatype) -> Result<Ref> {
    // Trees are directed acyclic graphs and may be deep, so an explicit stack replaces recursion,
    // and each node is converted once. A node is pushed a second time before its children, and is
    // converted when it is popped again, after its children.
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
        // A new node keeps `t` as its tree. If `made` is not new, but for example the node of a
        // predefined type or of a child, it may have a tree already.
        if made.extra().datatype.get().is_none() {
            made.extra().datatype.get_or_init(|| t.clone());
        }
        known.insert(t.id(), made);
    }
    known.remove(&t.id()).ok_or(Code::Internal)
}

/// Returns the type for a tree, given the types `below` of its children.
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
        // Duplicates and constructors that only set bounds have the data of their child. The bounds
        // of `t` are set below.
        _ => child,
    };
    bounded(node)
}
