//! Substitute datatypes: they replace the program's when a staging buffer goes to the MPI library.

use ddtc::datatype::Datatype;
use ddtc_hosts::profile::WireForm;

use crate::decision::{Plan, Purpose};
use crate::gapped::{self, Substitute};
use crate::host::Host;
use crate::own_types;
use crate::table::TypeEntry;

/// Returns the elements and their type that the MPI library gets in place of `count` instances of
/// the type `t`, `bytes` bytes in all. None: there is no such type, and the buffer is bypassed.
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
    // A collective call keeps its own count; `count` has the elements of all its parts.
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
