//! Length of the serialized form that yaksa, which this library replaces, writes for a type. MPICH
//! decides by the length of a form in which way it moves data ([`crate::flatten`]).

use super::{Node, Ref, Shape};

/// Number of bytes that a form of yaksa has for each type in the tree (`yaksi_type_s` in MPICH
/// 5.0.1). The arrays of the type's constructor follow.
const TYPE: usize = 136;

impl Node {
    /// Returns about how many bytes the serialized form has that yaksa writes for the same type.
    /// The sum ends as soon as it is larger than `limit`, so at most `limit / TYPE` children and
    /// one more are visited.
    ///
    /// A subarray has one type more in yaksa than here. A resized type has not, but it has the same
    /// [`Shape`], so both count as two types.
    pub(crate) fn yaksa_length(&self, limit: usize) -> usize {
        let one = std::slice::from_ref;
        let (own, children): (usize, &[Ref]) = match &self.shape {
            Shape::Empty | Shape::Named(_) => (TYPE, &[]),
            Shape::Copies { child, .. } | Shape::Strided { child, .. } => (TYPE, one(child)),
            Shape::Blocks { at, child, .. } => (TYPE + size_of_val(at.displacements()), one(child)),
            Shape::Listed { blocks, child } => (TYPE + 2 * size_of_val(blocks.both().0), one(child)),
            Shape::Struct { blocks, children } => (TYPE + 2 * size_of_val(blocks.both().0), children),
            Shape::Bounded { child } => (2 * TYPE, one(child)),
        };
        let mut sum = own;
        for child in children {
            if sum > limit {
                break;
            }
            sum += child.yaksa_length(limit - sum);
        }
        sum
    }
}
