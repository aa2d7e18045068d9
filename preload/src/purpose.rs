//! Purpose of a buffer in a call: what decides whether it is converted, and what stands in its place.

use ddtc::datatype::Datatype;
use ddtc_hosts::left::Left;
use ddtc_hosts::policy::{Call, Policy};
use ddtc_hosts::profile::WireForm;

use crate::gapped::{self, StandIn};
use crate::host::Host;
use crate::left::{left, outside};
use crate::own_types;
use crate::policy::policy;
use crate::table::TypeEntry;
use crate::use_kind::CompletedBy;

/// Purpose of a staged buffer, which decides the type for the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Sent from, to a rank that may not convert.
    Send(CompletedBy),
    /// Received into.
    Receive(CompletedBy),
    /// A collective call of so many elements: all ranks give the same count of types of one size. `part`: elements that one rank sends to
    /// another, on average. `beside`: bytes of a part below which it is converted whatever the policy says, since what the
    /// call moves the other way is: this side alone would keep the host from its way for what lies together.
    Elements {
        call: Call,
        count: i64,
        part: i64,
        beside: u64,
        completed_by: CompletedBy,
    },
    /// Written to a file or read from it.
    File(Call),
    /// Put into a window, or got from it.
    Put(CompletedBy),
    Get,
}

impl Purpose {
    /// Returns true if the operation has a request, whose handle says after an error whether it
    /// goes on.
    #[inline]
    pub(crate) fn has_request(self) -> bool {
        match self {
            Purpose::Send(by) | Purpose::Receive(by) | Purpose::Put(by) => by == CompletedBy::LaterCall,
            Purpose::Elements { completed_by, .. } => completed_by == CompletedBy::LaterCall,
            Purpose::File(_) => false,
            Purpose::Get => true,
        }
    }

    /// Whether the policy has a type and a number of bytes.
    #[inline]
    pub(crate) fn wants(self, host: &Host, entry: &TypeEntry, bytes: i64) -> bool {
        let in_set = |set, bytes| Policy::has(set, bytes) || outside(set, bytes);
        let has = |call, bytes| in_set(policy(host).of(call, entry.rules().class), bytes);
        match self {
            Purpose::Send(completed_by) | Purpose::Receive(completed_by) => match entry.evidence() {
                None => in_set(entry.payloads(), bytes as u64),
                Some(evidence) => {
                    let (bytes, table) = (bytes as u64, entry.payloads());
                    let table = Policy::has(table, bytes);
                    let wants = match completed_by {
                        CompletedBy::SameCall => evidence.wants(bytes, table),
                        CompletedBy::LaterCall => evidence.wants_later(bytes, table),
                    };
                    wants || left(Left::Policy).unwrap_or(false)
                }
            },
            Purpose::Elements { call, part, beside, .. } => {
                // Where every instance has a gap of its own, each must be long enough for itself.
                let has = |bytes| bytes < beside || has(call, bytes);
                let has_gaps = matches!(host.profile.wire_form, WireForm::Gap { .. });
                let apart = !has_gaps || has(entry.size() as u64);
                let bytes = entry.size().saturating_mul(part).max(0) as u64;
                apart && has(bytes) && entry.evidence().is_none_or(|e| e.allows(bytes))
            }
            Purpose::File(call) => {
                let uncached = host.profile.uncached;
                has(call, bytes as u64) && (uncached == 0 || bytes % uncached != 0)
            }
            Purpose::Put(_) => has(Call::Put, bytes as u64),
            Purpose::Get => has(Call::Get, bytes as u64),
        }
    }

    /// Returns the bytes of a message that the host makes of the call, on average, where it makes messages.
    #[inline]
    pub(crate) fn of_messages(self, entry: &TypeEntry, bytes: i64) -> Option<u64> {
        match self {
            Purpose::Send(_) | Purpose::Receive(_) => Some(bytes as u64),
            Purpose::Elements { part, .. } => Some(entry.size().saturating_mul(part).max(0) as u64),
            Purpose::File(_) | Purpose::Put(_) | Purpose::Get => None,
        }
    }

    /// Returns elements and type for the host in the place of `count` instances of a type; `None`: the call is the host's.
    #[inline]
    pub(crate) fn replacement(
        self,
        host: &Host,
        entry: &TypeEntry,
        t: &Datatype,
        count: i64,
        bytes: i64,
    ) -> Option<StandIn> {
        if let WireForm::Gap { joined } = host.profile.wire_form {
            let pieces = || entry.wire_type.pieces(host, t, &entry.element_type, joined);
            match self {
                Purpose::Send(_) => return gapped::stand_in(host, 1, bytes, pieces()?),
                // Nobody minds where what is received is cut.
                Purpose::Receive(_) => return gapped::stand_in(host, 1, bytes, (host.byte, 1)),
                Purpose::Elements { count, .. } => {
                    return gapped::stand_in(host, count, t.size(), pieces()?);
                }
                Purpose::File(_) | Purpose::Put(_) | Purpose::Get => {}
            }
        }
        let contiguous = match self {
            Purpose::Send(_) | Purpose::Put(_) => entry.wire_type.message(host, t, count)?,
            Purpose::Receive(_) | Purpose::Get => (bytes, host.packed),
            Purpose::Elements { count, .. } => (count, entry.wire_type.element(host, t)?),
            // The host checks the type's size against the view's, and says in the status how many were moved: it stays the same.
            Purpose::File(_) => (count, own_types::of_bytes(host, t.size())?),
        };
        Some(StandIn::contiguous(contiguous))
    }
}
