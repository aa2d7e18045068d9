//! The beginning of a packed stream: what lies before a given byte or basic element of the stream.
//! It is found without unfolding the type.
//!
//! The packed stream of a constructor consists of the streams of its children, one copy after
//! another. A position is therefore found by one division per level and, in a struct, by binary
//! search over sums that were computed when the node was built. The position and the answer are the
//! only state, so nothing is allocated. Any datatype takes O(depth * (1 + log m)), where m is the
//! number of members of its longest struct: long structs can be nested, and each takes a search.
//!
//! Source: MPI 5.0 sections 5.1 (type map, type signature) and 5.1.11 (elements of a message).

use super::signature::{Signature, WithPower};
use super::{Combiner, Datatype, Named};

/// Number of members of a struct between two stored sums. With 64, the sums take half a byte per
/// member, and at most 64 members are looked at after the binary search.
pub(crate) const MEMBERS_PER_TOTALS: usize = 64;

/// Number of bytes, and signature, of the members before a given member of a struct.
#[derive(Clone, Copy)]
pub(crate) struct Totals {
    bytes: i64,
    pub(crate) signature: Signature,
}

impl Totals {
    pub(crate) const ZERO: Totals = Totals { bytes: 0, signature: Signature::EMPTY };

    /// Returns the sums after `copies` more copies of `t`. If they do not fit in 64 bits, `bytes`
    /// wraps and the length of the signature saturates, but such a struct is refused anyway.
    pub(crate) fn then<'a>(&self, recent: &mut RecentSignatures<'a>, t: &'a Datatype, copies: i64) -> Totals {
        Totals {
            bytes: self.bytes.wrapping_add(t.size().wrapping_mul(copies)),
            signature: self.signature.then_with_power(&recent.signature(t, copies)),
        }
    }
}

/// Cache of the signatures of recent blocks of a long struct. The members of such a struct often
/// have few different types and lengths, and computing the hash of several copies takes ten times
/// as long as appending it to another hash.
pub(crate) struct RecentSignatures<'a>(Vec<Option<(&'a Datatype, i64, WithPower)>>);

impl<'a> RecentSignatures<'a> {
    /// Returns an empty cache for a struct of `members` members. A struct that is too short for
    /// stored sums is not worth a cache.
    pub(crate) fn new(members: usize) -> RecentSignatures<'a> {
        RecentSignatures(if members > MEMBERS_PER_TOTALS {
            vec![None; MEMBERS_PER_TOTALS]
        } else {
            Vec::new()
        })
    }

    fn signature(&mut self, t: &'a Datatype, copies: i64) -> WithPower {
        let known = || WithPower::from_signature(t.signature().repeat(copies));
        // The upper 6 bits of this product select one of the 64 places.
        let mixed = (t.id() as u64 ^ (copies as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.0.get_mut((mixed >> 58) as usize) {
            Some(Some((recent, n, known))) if recent.id() == t.id() && *n == copies => *known,
            Some(place) => place.insert((t, copies, known())).2,
            None => known(),
        }
    }
}

/// Unit in which a position in a packed stream is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes.
    Bytes,
    /// Basic elements. A pair type has two of them.
    Elements,
}

impl Unit {
    /// Returns the number of units in one instance of `t`.
    pub(crate) fn per_instance(self, t: &Datatype) -> i64 {
        match self {
            Unit::Bytes => t.size(),
            Unit::Elements => t.signature().length(),
        }
    }

    /// Returns the number of units in one basic element of `size` bytes.
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

/// A part of the beginning of a packed stream.
pub(crate) enum Part<'a> {
    /// The given number of instances of a datatype.
    Instances(&'a Datatype, i64),
    /// The first members of a struct, given as the sums over them.
    Members(&'a Totals),
    /// A basic element and its size in bytes.
    Basic(Named, i64),
}

impl Part<'_> {
    /// Returns the size of the part in `unit`, or `None` if it does not fit in 64 bits.
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

/// Finds the basic element at `position`, which is counted in `unit`, in the packed stream of
/// instances of `t`. Returns the element and the distance from its start to the position, or `None`
/// if the type has no data.
///
/// Calls `before` for the parts of the stream that lie before the element at `position`, in order.
pub(crate) fn descend<'a>(
    t: &'a Datatype,
    unit: Unit,
    position: i64,
    mut before: impl FnMut(Part<'a>),
) -> Option<(Named, i64)> {
    let (mut node, mut left) = (t, position);
    // At the beginning of each iteration, the position is `left` units after the start of some
    // instances of `node`, and every node but the first is known to have data. Once whole instances
    // have been passed, `left` is less than the units of one instance, so one of the parts or
    // children of the node always contains the position.
    loop {
        let whole = unit.per_instance(node);
        if whole == 0 {
            return None;
        }
        if left >= whole {
            before(Part::Instances(node, left / whole));
            left %= whole;
        }
        // The descent ends at a named type, in one of its parts. A pair type has two parts.
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
                // Binary search finds the last stored sum that is not past the position. The
                // members after that sum are looked at one by one.
                let totals = node.member_totals();
                let passed = totals.partition_point(|sum| unit.in_totals(sum) <= left);
                if let Some(sum) = passed.checked_sub(1).map(|last| &totals[last]) {
                    left -= unit.in_totals(sum);
                    before(Part::Members(sum));
                }
                let mut rest =
                    (passed * MEMBERS_PER_TOTALS..types.len()).map(|i| (&types[i], blocklengths[i]));
                rest.find(|&(child, length)| {
                    // This product cannot overflow, because it is at most the number of units in
                    // one instance of the node.
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
            // All other constructors pack copies of a single child one after another, whatever the
            // order of the copies in memory.
            combiner => combiner.children().next()?,
        };
    }
}

/// Returns the signature of the first `elements` basic elements of instances of `t`. Unless
/// `elements` is 0, `t` must have data.
pub(crate) fn signature(t: &Datatype, elements: i64) -> Signature {
    let mut signature = Signature::EMPTY;
    descend(t, Unit::Elements, elements, |part| signature = signature.then(&part.signature()));
    signature
}

/// Converts a position from one unit to the other. Returns `None` if the position is inside a basic
/// element, is not 0 in a type without data, or does not fit in 64 bits in the other unit.
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
    /// Returns the number of basic elements in the first `bytes` packed bytes of instances of the
    /// type. A pair counts as two elements (MPI 5.0 section 5.1.11). Returns `None` if the bytes
    /// end inside an element, or if `bytes` is not 0 but the type has no data. Takes O(depth * (1 +
    /// log m)) for structs of up to m members.
    pub(crate) fn elements_before(&self, bytes: i64) -> Option<i64> {
        convert(self, bytes, Unit::Bytes, Unit::Elements)
    }

    /// Returns how many of the first `bytes` packed bytes of instances of the type lie before the
    /// element that contains byte `bytes`. These bytes belong to whole elements, where a named pair
    /// type is one element, but an unnamed pair (value_index) is two. The answer is 0 for a type
    /// without data. Takes O(depth * (1 + log m)) for structs of up to m members.
    pub(crate) fn whole_elements(&self, bytes: i64) -> i64 {
        let mut pair = 0;
        let found = descend(self, Unit::Bytes, bytes, |part| {
            if let Part::Basic(_, size) = part {
                pair += size;
            }
        });
        found.map_or(0, |(_, inside)| bytes - inside - pair)
    }

    /// Returns the number of packed bytes in the first `elements` basic elements of instances of
    /// the type. Returns `None` if the number does not fit in 64 bits, or if `elements` is not 0
    /// but the type has no data. Takes O(depth * (1 + log m)) for structs of up to m members.
    pub(crate) fn bytes_before(&self, elements: i64) -> Option<i64> {
        convert(self, elements, Unit::Elements, Unit::Bytes)
    }
}
