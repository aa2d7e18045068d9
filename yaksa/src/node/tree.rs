//! Conversion of a type of this library to a tree of ddtc with the same elements, in the same order
//! and with the same bounds. `convert.rs` converts in the other direction.

use ddtc::internal::datatype::{Combiner, Datatype, Named};
use ddtc::internal::methods::*;

use super::{Node, Shape};
use crate::abi::{Code, Result};

/// Returns the tree of a type. The first caller that needs the tree makes it. The node keeps the
/// tree, so types that have a part in common share the tree of that part.
pub(super) fn datatype(node: &Node) -> Result<&Datatype> {
    // An explicit stack replaces recursion. A node is pushed a second time before its children. Its
    // tree is made when the node is popped again, after the trees of its children.
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

/// Returns the tree of a node whose children have their trees already.
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
