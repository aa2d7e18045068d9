//! The beginning of a packed stream: what lies before a byte or a basic element of it, without unfolding the type.
//!
//! The packed stream of a constructor is its children's, one copy after another, so a position is found by one division a level, and in a
//! struct by binary search over sums that were made with the node. Position and answer are the descent's only state: nothing is
//! allocated, and the time is O(depth + log members) for any datatype.
//!
//! Source: MPI 5.0 sections 5.1 (type map, type signature) and 5.1.11 (elements of a message).

use super::signature::{Signature, WithPower};
use super::{Combiner, Datatype, Named};

/// Members of a struct between two sums that it keeps: half a byte a member, and a search that ends in as many steps.
pub(crate) const MEMBERS_PER_TOTALS: usize = 64;

/// Sums over the members before one of a struct.
#[derive(Clone, Copy)]
pub(crate) struct Totals {
    bytes: i64,
    pub(crate) signature: Signature,
}

impl Totals {
    pub(crate) const ZERO: Totals = Totals { bytes: 0, signature: Signature::EMPTY };

    /// This, then `copies` of `t`. Sums that do not fit are those of a struct that is refused.
    pub(crate) fn then<'a>(&self, recent: &mut RecentSignatures<'a>, t: &'a Datatype, copies: i64) -> Totals {
        Totals {
            bytes: self.bytes.wrapping_add(t.size().wrapping_mul(copies)),
            signature: self.signature.then_with_power(&recent.signature(t, copies)),
        }
    }
}

/// Signatures of the blocks that a long struct had last: members are often of few types and lengths, and the hash of copies costs ten
/// times what putting it behind another does.
pub(crate) struct RecentSignatures<'a>(Vec<Option<(&'a Datatype, i64, WithPower)>>);

impl<'a> RecentSignatures<'a> {
    /// For a struct of so many members.
    pub(crate) fn new(members: usize) -> RecentSignatures<'a> {
        RecentSignatures(if members > MEMBERS_PER_TOTALS {
            vec![None; MEMBERS_PER_TOTALS]
        } else {
            Vec::new()
        })
    }

    fn signature(&mut self, t: &'a Datatype, copies: i64) -> WithPower {
        let known = || WithPower::from_signature(t.signature().repeat(copies));
        let mixed = (t.id() as u64 ^ (copies as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.0.get_mut((mixed >> 58) as usize) {
            Some(Some((recent, n, known))) if recent.id() == t.id() && *n == copies => *known,
            Some(place) => place.insert((t, copies, known())).2,
            None => known(),
        }
    }
}

/// Unit of a position in a packed stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes.
    Bytes,
    /// Basic elements; a pair has two.
    Elements,
}

impl Unit {
    /// Returns those of one instance.
    pub(crate) fn per_instance(self, t: &Datatype) -> i64 {
        match self {
            Unit::Bytes => t.size(),
            Unit::Elements => t.signature().length(),
        }
    }

    /// Those of one basic element of `size` bytes.
    fn per_basic_element(self, size: i64) -> i64 {
        match self {
            Unit::Bytes => size,
            Unit::Elements => 1,
        }
    }

    fn in_totals(self, totals: &Totals) -> i64 {
        match self {
            Unit::Bytes => totals.bytes,
            Unit::Elements => totals.signature.length(),
        }
    }
}

/// A part of the beginning of a stream.
pub(crate) enum Part<'a> {
    /// So many instances of a datatype.
    Instances(&'a Datatype, i64),
    /// The first members of a struct.
    Members(&'a Totals),
    /// A basic element of so many bytes.
    Basic(Named, i64),
}

impl Part<'_> {
    /// Returns how much of `unit` the part has; none where that does not fit in 64 bits.
    pub(crate) fn count(&self, unit: Unit) -> Option<i64> {
        match self {
            Part::Instances(t, n) => unit.per_instance(t).checked_mul(*n),
            Part::Members(totals) => Some(unit.in_totals(totals)),
            Part::Basic(_, size) => Some(unit.per_basic_element(*size)),
        }
    }

    fn signature(&self) -> Signature {
        match self {
            Part::Instances(t, n) => t.signature().repeat(*n),
            Part::Members(totals) => totals.signature,
            Part::Basic(named, _) => Signature::from_named(*named),
        }
    }
}

/// Calls `before` with the parts of what lies before `position` in the packed stream of instances of `t`, as many as it takes, in
/// order, and returns the basic element at the position with how far inside it that is. None for a type without data.
pub(crate) fn descend<'a>(
    t: &'a Datatype,
    unit: Unit,
    position: i64,
    mut before: impl FnMut(Part<'a>),
) -> Option<(Named, i64)> {
    let (mut node, mut left) = (t, position);
    // Every node entered has data, and `left` is less than its amount: so is it for the child or part that is found.
    loop {
        let whole = unit.per_instance(node);
        if whole == 0 {
            return None;
        }
        if left >= whole {
            before(Part::Instances(node, left / whole));
            left %= whole;
        }
        if let Some(named) = node.basic() {
            for (&(part, _), &(_, size)) in named.parts().iter().zip(named.pieces()) {
                let each = unit.per_basic_element(size);
                if left < each {
                    return Some((part, left));
                }
                left -= each;
                before(Part::Basic(part, size));
            }
            return None;
        }
        node = match node.combiner() {
            Combiner::Struct { blocklengths, types, .. } => {
                let totals = node.member_totals();
                let passed = totals.partition_point(|sum| unit.in_totals(sum) <= left);
                if let Some(sum) = passed.checked_sub(1).map(|last| &totals[last]) {
                    left -= unit.in_totals(sum);
                    before(Part::Members(sum));
                }
                let mut rest =
                    (passed * MEMBERS_PER_TOTALS..types.len()).map(|i| (&types[i], blocklengths[i]));
                rest.find(|&(child, length)| {
                    // No larger than that of the node, which fits.
                    let block = unit.per_instance(child) * length;
                    let found = left < block;
                    if !found && block > 0 {
                        left -= block;
                        before(Part::Instances(child, length));
                    }
                    found
                })?
                .0
            }
            Combiner::ValueIndex { value, index } => {
                let first = unit.per_instance(value);
                if left < first {
                    value
                } else {
                    left -= first;
                    before(Part::Instances(value, 1));
                    index
                }
            }
            // Child after child, whatever the order in memory.
            combiner => combiner.children().next()?,
        };
    }
}

/// Returns the signature of the first `elements` basic elements of instances of `t`, which must have data where that is not 0.
pub(crate) fn signature(t: &Datatype, elements: i64) -> Signature {
    let mut signature = Signature::EMPTY;
    descend(t, Unit::Elements, elements, |part| signature = signature.then(&part.signature()));
    signature
}

/// Returns the amount before `position` of one unit, in the other; none where that is inside a basic element, past what a type without data has, or does not
/// fit in 64 bits.
fn convert(t: &Datatype, position: i64, from: Unit, to: Unit) -> Option<i64> {
    if position == 0 {
        return Some(0);
    }
    let mut total = Some(0i64);
    let (_, inside) = descend(t, from, position, |part| {
        total = total.and_then(|sum| sum.checked_add(part.count(to)?));
    })?;
    total.filter(|_| inside == 0)
}

impl Datatype {
    /// Basic elements in the first `bytes` packed bytes of instances of the type, a pair's two apart (MPI 5.0 section 5.1.11); none
    /// where these end inside an element. O(depth + log members).
    pub(crate) fn elements_before(&self, bytes: i64) -> Option<i64> {
        convert(self, bytes, Unit::Bytes, Unit::Elements)
    }

    /// Returns how many of the first `bytes` packed bytes of instances of the type are whole elements, a pair being one: all up to where the element
    /// begins that byte `bytes` lies in. Of a type without data none. O(depth + log members).
    pub(crate) fn whole_elements(&self, bytes: i64) -> i64 {
        let mut pair = 0;
        let found = descend(self, Unit::Bytes, bytes, |part| {
            if let Part::Basic(_, size) = part {
                pair += size;
            }
        });
        found.map_or(0, |(_, inside)| bytes - inside - pair)
    }

    /// Packed bytes of the first `elements` basic elements of instances of the type; none where they do not fit in 64 bits, or
    /// there are none. O(depth + log members).
    pub(crate) fn bytes_before(&self, elements: i64) -> Option<i64> {
        convert(self, elements, Unit::Elements, Unit::Bytes)
    }
}
