//! Choice of the substitute datatype that replaces the program's datatype when the MPI library gets
//! a staging buffer.

use ddtc::internal::datatype::Datatype;
use ddtc_hosts::profile::WireForm;

use crate::decision::{Plan, Purpose};
use crate::gapped::{self, Substitute};
use crate::host::Host;
use crate::own_types;
use crate::table::TypeEntry;

/// Returns the number of elements and the substitute datatype that the MPI library gets in place of
/// `count` instances of the type `t`, which have `bytes` bytes in all. Returns `None` if there is
/// no such datatype; then the buffer is bypassed.
#[inline]
pub(crate) fn substitute(
    plan: Plan,
    purpose: Purpose,
    host: &Host,
    entry: &TypeEntry,
    t: &Datatype,
    count: i64,
    bytes: i64,
) -> Option<Substitute> {
    let pieces = || {
        let WireForm::Gap { joined } = host.profile.wire_form else { return None };
        entry.wire_type.pieces(host, t, &entry.element_type, joined)
    };
    // A collective call keeps the count that the program has passed. `count` is the number of
    // elements in all parts of its buffer.
    let elements = if let Purpose::Elements { count, .. } = purpose { count } else { count };
    let contiguous = match plan {
        Plan::Later | Plan::Direct => return None,
        Plan::BytesWithGap => return gapped::substitute(host, 1, bytes, (host.byte, 1)),
        Plan::PiecesWithGap => return gapped::substitute(host, 1, bytes, pieces()?),
        Plan::ElementsWithGap => return gapped::substitute(host, elements, t.size(), pieces()?),
        Plan::Packed => (bytes, host.packed),
        Plan::Uncut => entry.wire_type.message(host, t, count)?,
        Plan::Elements => (elements, entry.wire_type.element(host, t)?),
        Plan::FileElements => (count, own_types::of_bytes(host, t.size())?),
    };
    Some(Substitute::contiguous(contiguous))
}
