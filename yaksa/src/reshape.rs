//! Conversions of datatypes of ddtc (trees of constructors) for reductions. [`parts`] replaces each
//! pair by two elements, because a reduction combines the two parts of a pair separately.
//! [`stream`] also removes the gaps between elements.

use std::collections::HashMap;

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::methods::*;

use crate::abi::{Code, Result};
use crate::convert::children;

/// Rebuilds the datatype `t`, children before parents, and returns the new datatype. `node` makes
/// each new datatype from the old one and its new children.
fn rebuilt(t: &Datatype, node: impl Fn(&Datatype, &[Datatype]) -> Result<Datatype>) -> Result<Datatype> {
    // A datatype may be nested deeply, so an explicit stack replaces recursion. When a datatype is
    // popped from the stack for the first time, it is pushed again, and its children are pushed
    // above it. The second time, its children have been made, and it is made too. The same datatype
    // may occur several times, but is made only once: `done` has all datatypes that were made, so
    // any further occurrence is skipped.
    let mut done: HashMap<usize, Datatype> = HashMap::new();
    let mut open = vec![(t, false)];
    while let Some((t, children_done)) = open.pop() {
        if done.contains_key(&t.id()) {
            continue;
        }
        if !children_done {
            open.push((t, true));
            open.extend(children(t).map(|child| (child, false)));
            continue;
        }
        let below: Vec<Datatype> = children(t).filter_map(|child| done.get(&child.id()).cloned()).collect();
        done.insert(t.id(), node(t, &below)?);
    }
    done.remove(&t.id()).ok_or(Code::Internal)
}

/// Returns a struct with the two parts of the pair type `named` as members, at the given
/// displacements in bytes.
fn pair(named: Named, displacements: &[i64]) -> Result<Datatype> {
    let parts: Vec<Datatype> = named.parts().iter().map(|&(part, _)| Datatype::named(part)).collect();
    Ok(Datatype::structure(&vec![1; parts.len()], displacements, &parts)?)
}

/// Returns a datatype with the same data as `t` at the same places, in which each pair is two
/// elements.
pub(crate) fn parts(t: &Datatype) -> Result<Datatype> {
    let has_pairs = t.nodes().any(|node| node.basic().is_some_and(|named| named.parts().len() > 1));
    if !has_pairs {
        return Ok(t.clone());
    }
    rebuilt(t, |t, below| {
        let made = match (t.basic(), below) {
            (Some(named), []) if named.parts().len() > 1 => {
                let displacements: Vec<i64> = named.parts().iter().map(|part| part.1).collect();
                pair(named, &displacements)?
            }
            (_, []) => return Ok(t.clone()),
            _ => moved(t, below)?,
        };
        Ok(Datatype::bounds(t.lb(), t.extent(), &made)?)
    })
}

/// Returns the datatype that the constructor of `t` makes of the new children `below`, which must
/// have the same bounds as the old children. Duplicates and constructors that only set bounds are
/// left out, so the bounds of the result may differ from those of `t`. The caller must set them.
fn moved(t: &Datatype, below: &[Datatype]) -> Result<Datatype> {
    if t.expansion().is_some() {
        return Ok(below[0].clone());
    }
    let mut combiner = t.combiner().clone();
    match &mut combiner {
        Combiner::Struct { types, .. } => *types = below.into(),
        Combiner::Contiguous { oldtype, .. }
        | Combiner::Vector { oldtype, .. }
        | Combiner::Hvector { oldtype, .. }
        | Combiner::Indexed { oldtype, .. }
        | Combiner::Hindexed { oldtype, .. }
        | Combiner::IndexedBlock { oldtype, .. }
        | Combiner::HindexedBlock { oldtype, .. } => *oldtype = below[0].clone(),
        // Duplicates and constructors that only set bounds have the same data as their child, so
        // the new child is the result. The caller sets the bounds.
        _ => return Ok(below[0].clone()),
    }
    Ok(Datatype::new(combiner)?)
}

/// Returns a datatype that describes packed data of `t`. It has the elements of `t` in the same
/// order, but each element begins where the element before it ends. A pair counts as two elements.
pub(crate) fn stream(t: &Datatype) -> Result<Datatype> {
    rebuilt(t, |t, below| {
        let made = match (t.combiner(), below.first()) {
            (_, None) => match t.basic() {
                Some(named) if named.parts().len() > 1 => {
                    let (first, _) = named.parts()[0];
                    pair(named, &[0, first.size()])?
                }
                _ => t.clone(),
            },
            (Combiner::Struct { blocklengths, .. }, _) => {
                let (mut at, mut displacements) = (0i64, Vec::with_capacity(below.len()));
                for (member, length) in below.iter().zip(blocklengths.iter()) {
                    displacements.push(at);
                    // `at` is the sum of the sizes of the blocks so far. The sum over all blocks is
                    // the size of the struct, which fits in 63 bits. So neither the product nor the
                    // sum overflows.
                    at = at.wrapping_add(member.size().wrapping_mul(*length));
                }
                Datatype::structure(blocklengths, &displacements, below)?
            }
            (_, Some(child)) if child.size() == 0 => child.clone(),
            (_, Some(child)) => Datatype::contiguous(t.size() / child.size(), child)?,
        };
        Ok(Datatype::bounds(0, t.size(), &made)?)
    })
}
