//! Conversion of a node of this library to a `Datatype` of ddtc, a tree of constructors. The
//! `Datatype` has the same elements in the same order, and the same bounds. `convert.rs` converts
//! in the other direction.

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::methods::*;

use super::{Node, Shape};
use crate::abi::{Code, Result};

/// Returns the `Datatype` of ddtc that is equivalent to a node. The first call makes the `Datatype`
/// and stores it in the node. It does the same for all nodes below this node, so types that have a
/// child type in common share the `Datatype` of that child type.
pub(super) fn datatype(node: &Node) -> Result<&Datatype> {
    // A type may be nested deeply, so an explicit stack replaces recursion. When a node without a
    // `Datatype` is popped from the stack for the first time, it is pushed again, and its children
    // are pushed above it. The second time, the `Datatype`s of its children have been made, and its
    // own is made too. The same node may occur several times. Any further occurrence has a
    // `Datatype` and is skipped.
    let mut open = vec![(node, false)];
    while let Some((node, children_done)) = open.pop() {
        let known = &node.extra().datatype;
        if known.get().is_some() {
            continue;
        }
        if children_done {
            let made = made(node)?;
            known.get_or_init(|| made);
        } else {
            open.push((node, true));
            open.extend(node.children().iter().map(|child| (&**child, false)));
        }
    }
    node.extra().datatype.get().ok_or(Code::Internal)
}

/// Makes the `Datatype` of a node. The `Datatype`s of its children must have been made before.
fn made(node: &Node) -> Result<Datatype> {
    let tree = |child: &Node| child.extra().datatype.get().cloned().ok_or(Code::Internal);
    let combiner = match node.shape() {
        Shape::Empty => Combiner::Contiguous { count: 0, oldtype: Datatype::named(Named::Uint8) },
        Shape::Named(named) => return Ok(Datatype::named(*named)),
        Shape::Copies { count, child } => Combiner::Contiguous { count: *count, oldtype: tree(child)? },
        Shape::Strided { count, length, stride, child } => Combiner::Hvector {
            count: *count,
            blocklength: *length,
            stride: *stride,
            oldtype: tree(child)?,
            legacy: false,
        },
        Shape::Blocks { length, at, child } => Combiner::HindexedBlock {
            blocklength: *length,
            displacements: at.shared(),
            oldtype: tree(child)?,
        },
        Shape::Listed { blocks, child } => {
            let (blocklengths, displacements) = blocks.shared();
            Combiner::Hindexed { blocklengths, displacements, oldtype: tree(child)?, legacy: false }
        }
        Shape::Struct { blocks, children } => {
            let (blocklengths, displacements) = blocks.shared();
            Combiner::Struct {
                blocklengths,
                displacements,
                types: children.iter().map(|child| tree(child)).collect::<Result<_>>()?,
                legacy: false,
            }
        }
        Shape::Bounded { child } => {
            return Ok(Datatype::bounds(node.facts.lb, node.facts.extent, &tree(child)?)?);
        }
    };
    Ok(Datatype::bounds(node.facts.lb, node.facts.extent, &Datatype::new(combiner)?)?)
}
