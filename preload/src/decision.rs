//! The decision about one buffer of a call: it is bypassed, staged, moved inside the MPI library,
//! or some work on its type comes first.
//!
//! [`decide`] chooses among these four. It is a pure function of [`Facts`]: words of the type
//! record, the profile of the MPI library, the settings and the call. It reads no clock, no buffer
//! and no communicator. Its caller does the work that `decide` asks for, enters the result into the
//! facts and asks again: at most three times, once for each kind of work. Whether the uses of a
//! type have paid for the work is asked of [`crate::hotness`] and of the type's entry.
//!
//! A call is decided in two steps. First the types of its arguments alone are looked at, because
//! most calls end there ([`Facts::of_type`]). Then each buffer is decided with its number of bytes,
//! which in collective calls depends on the communicator. A buffer can still be bypassed after
//! [`Decision::Stage`], for reasons that are no facts: foreign packing that was found meanwhile,
//! device memory, the limits on staging buffers, or no datatype that can replace the program's.

use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::policy::{Call, Class, Policy};
use ddtc_hosts::profile::WireForm;

use crate::use_kind::CompletedBy;

/// Answer of [`decide`] about a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// The buffer is given to the MPI library as it is, for this reason.
    Bypass(Bypass),
    /// Compiled code packs or unpacks the buffer, and the MPI library gets a staging buffer.
    Stage(Plan),
    /// The MPI library gets the buffer as it is, and compiled code moves the bytes inside the
    /// library, in Open MPI's convertor hook.
    Hook,
    /// The caller must work on the type of the buffer first, and then ask again.
    Work(Work),
}

/// Work on a type that comes before a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Decode the type, if that is expected to pay.
    Decode,
    /// Compile the type for the direction of the call, if its uses have moved enough bytes for
    /// that.
    Compile,
    /// Time the packing of messages of this size.
    Time,
}

/// Form in which the MPI library gets a staging buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// The number of bytes is not known yet: decide again when it is.
    Later,
    /// The call is a pack or unpack: nothing is staged.
    Direct,
    /// Bytes of `MPI_PACKED`.
    Packed,
    /// Bytes of `MPI_PACKED` if the MPI library can cut the message nowhere inside an element, else
    /// the dense equivalent of the type.
    Uncut,
    /// Elements of the size of the type, each of which replaces one instance.
    Elements,
    /// The staged bytes with a gap before the last ones, because the MPI library copies a
    /// contiguous buffer without checking its length.
    BytesWithGap,
    /// The staged bytes with a gap before the last ones, as bytes or as wider basic elements. The
    /// MPI library cuts the message between these, so that a receiver that does not convert can
    /// join the two halves of an element of its own type.
    PiecesWithGap,
    /// One element for each instance, each with a gap.
    ElementsWithGap,
    /// Elements of the size of the type, for a file.
    FileElements,
}

/// Use of a buffer in its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Buffer that the program packs or unpacks itself (`MPI_Pack`, `MPI_Unpack`).
    Pack {
        /// The MPI library has accepted the communicator in an earlier call.
        is_met: bool,
        /// Position and size of the packed buffer allow the call.
        fits: bool,
        /// Minimum number of bytes of a contiguous run that the MPI library copies faster than
        /// compiled code does.
        own_runs: i64,
    },
    /// Buffer of a send. The receiver may be a rank that does not convert.
    Send(CompletedBy),
    /// Buffer of a receive.
    Receive(CompletedBy),
    /// A collective call of `count` elements. All ranks give the same count of types of one size.
    Elements {
        call: Call,
        count: i64,
        /// Elements that one rank sends to another, on average.
        part: i64,
        /// Bytes of a part below which the buffer is converted whatever the policy says, because
        /// the other side of the call is: one side alone would keep the MPI library from its fast
        /// path for contiguous buffers. 0 if the other side is not converted.
        beside: u64,
        completed_by: CompletedBy,
    },
    /// Buffer that is written to a file or read from it. If `uncached` is not 0, a contiguous
    /// access of a multiple of that many bytes bypasses the system's cache, and takes longer than
    /// one of a type with gaps.
    File { call: Call, uncached: i64 },
    /// Origin buffer of a put into a window.
    Put(CompletedBy),
    /// Origin buffer of a get from a window.
    Get,
    /// Type that is an argument of the call `call`; its buffer is not looked at yet. `persistent`:
    /// the call makes a persistent request, which is started often.
    Argument { call: Call, persistent: bool },
}

/// State of a type, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    /// The commit of the type was not seen.
    Unseen,
    /// The commit of the type was seen, and the type is not decoded.
    Noted {
        /// Some type may be converted in such calls, so uses in them count.
        counts: bool,
        /// The type was not decoded for this call, because that is not expected to pay yet.
        declined: bool,
    },
    /// The type cannot be decoded, or has no bytes.
    NotTaken,
    /// The type is decoded.
    Known(Known),
}

/// Facts about a decoded type in one kind of call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) class: Class,
    /// Bytes of one instance.
    pub(crate) size: i64,
    /// Some payload of the type is converted in such calls.
    pub(crate) converts: bool,
    /// Payloads that the policy converts in such calls, as [`Policy::has`] reads them.
    pub(crate) payloads: u64,
    /// Verdict for this number of bytes. `None`: nothing was timed, and the layout alone decides
    /// nothing.
    pub(crate) verdict: Option<Verdict>,
    /// Messages of this size have moved enough to be timed.
    pub(crate) is_due: bool,
    /// Whether the type is compiled for the direction of the call.
    pub(crate) code: Code,
    pub(crate) hook: HookState,
}

/// Verdict on converting messages of one size, by the layout alone or by its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// A conversion saves time, even with the time for finding the request if a later call
    /// completes the message.
    pub(crate) gains: bool,
    /// Our kernel is no faster than the MPI library, or the layout alone decides against it.
    pub(crate) loses: bool,
}

impl Verdict {
    /// Returns true if messages are converted. `table`: the policy table converts them.
    #[inline]
    pub(crate) fn wants(self, table: bool) -> bool {
        self.gains || table && !self.loses
    }
}

/// State of the code of a type for one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    Ready,
    Missing,
    /// The caller was asked to compile the type for this call and did not, usually because the uses
    /// of the type have not moved enough bytes for that.
    Declined,
}

/// Whether compiled code moves a buffer inside the MPI library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookState {
    /// Never: there is no convertor hook, or the policy does not have such buffers there.
    No,
    /// Not yet: the hook is not enabled, or the type is not ready there.
    NotReady,
    /// Possible. `gains`: compiled code is faster there than the library's own code.
    Ready { gains: bool },
}

/// Bytes of a buffer that are to be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    /// There are elements to move, and a process at the other end.
    pub(crate) moves: bool,
    /// The buffer is null although the displacements of the type are not addresses. In packs also:
    /// the packed buffer or the position is a null pointer.
    pub(crate) is_null: bool,
    /// Number of bytes; `None` if that is more than the call of the MPI library can carry. In packs
    /// also `None` if the bytes do not fit into the packed buffer, or if the arguments are wrong.
    pub(crate) bytes: Option<i64>,
}

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) purpose: Purpose,
    pub(crate) record: Record,
    /// Bytes of the buffer. `None`: they are not known before the communicator, file or window is
    /// looked at.
    pub(crate) payload: Option<Payload>,
    /// It is known that compiled code can replace the packing of this MPI library and, for
    /// messages, that packed bytes can replace its messages.
    pub(crate) is_tried: bool,
    /// A PMPI layer after this library takes such calls.
    pub(crate) is_layers: bool,
    pub(crate) wire_form: WireForm,
}

impl Facts {
    /// Facts about an argument of a call before its buffer is looked at.
    #[inline(always)]
    pub(crate) fn of_type(call: Call, persistent: bool, record: Record) -> Facts {
        Facts {
            purpose: Purpose::Argument { call, persistent },
            record,
            payload: None,
            is_tried: true,
            is_layers: false,
            wire_form: WireForm::Packed,
        }
    }
}

impl Purpose {
    /// Returns true if the operation has a request, whose handle says after an error whether it
    /// goes on.
    #[inline]
    pub(crate) fn has_request(self) -> bool {
        match self {
            Purpose::Send(by) | Purpose::Receive(by) | Purpose::Put(by) => by == CompletedBy::LaterCall,
            Purpose::Elements { completed_by, .. } => completed_by == CompletedBy::LaterCall,
            Purpose::Get => true,
            Purpose::Pack { .. } | Purpose::File { .. } | Purpose::Argument { .. } => false,
        }
    }

    /// Returns true for a message between two ranks.
    #[inline]
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Purpose::Send(_) | Purpose::Receive(_))
    }

    /// Returns the call under which the policy has rules for a buffer of this purpose.
    #[inline]
    pub(crate) fn call(self) -> Call {
        match self {
            Purpose::Pack { .. } | Purpose::Send(_) | Purpose::Receive(_) => Call::Message,
            Purpose::Elements { call, .. } | Purpose::File { call, .. } | Purpose::Argument { call, .. } => {
                call
            }
            Purpose::Put(_) => Call::Put,
            Purpose::Get => Call::Get,
        }
    }

    /// Returns the mean number of bytes of the messages that the MPI library makes of the call.
    /// `None`: the call makes no messages between ranks. `size`: bytes of an instance, `bytes`:
    /// bytes of the buffer.
    #[inline]
    pub(crate) fn of_messages(self, size: i64, bytes: i64) -> Option<u64> {
        match self {
            Purpose::Send(_) | Purpose::Receive(_) => Some(bytes.max(0) as u64),
            Purpose::Elements { part, .. } => Some(size.saturating_mul(part).max(0) as u64),
            _ => None,
        }
    }
}

/// Decides about a buffer.
#[inline(always)]
pub(crate) fn decide(facts: &Facts) -> Decision {
    use Decision::{Hook, Stage};
    let bypass = Decision::Bypass;
    if facts.is_layers {
        return bypass(Bypass::Layer);
    }
    let known = match &facts.record {
        Record::Known(known) => known,
        Record::Noted { counts: false, .. } => return bypass(Bypass::Policy),
        Record::Noted { declined: true, .. } => return bypass(Bypass::Rare),
        Record::Noted { .. } => return Decision::Work(Work::Decode),
        Record::NotTaken => return bypass(Bypass::TypeNotTaken),
        // A pack goes to the MPI library first. If the library accepts it, the type is valid.
        Record::Unseen if matches!(facts.purpose, Purpose::Pack { .. }) => return bypass(Bypass::FirstUse),
        Record::Unseen => return bypass(Bypass::UnknownType),
    };
    // The program's own packs are converted whatever the policy says. So is one side of a
    // collective call if its other side is converted.
    let is_given = match facts.purpose {
        Purpose::Pack { .. } => true,
        Purpose::Elements { beside, .. } => known.converts || beside > 0,
        _ => known.converts,
    };
    if !is_given {
        return bypass(if known.class == Class::Dense { Bypass::Contiguous } else { Bypass::Policy });
    }
    let Some(payload) = &facts.payload else {
        return match facts.purpose {
            Purpose::Argument { persistent: true, .. } if known.code == Code::Missing => {
                Decision::Work(Work::Compile)
            }
            _ if known.hook == (HookState::Ready { gains: true }) => Hook,
            _ => Stage(Plan::Later),
        };
    };
    if !payload.moves {
        return bypass(Bypass::NothingToMove);
    }
    if payload.is_null {
        return bypass(Bypass::NullBuffer);
    }
    if let Purpose::Pack { is_met, fits, own_runs } = facts.purpose {
        // If the packed buffer is too small, the MPI library raises the error.
        return match payload.bytes {
            _ if !is_met => bypass(Bypass::FirstUse),
            Some(bytes) if fits && bytes >= own_runs && known.class == Class::Dense => {
                bypass(Bypass::Contiguous)
            }
            Some(_) if fits => with_code(facts, known, Plan::Direct),
            _ => bypass(Bypass::Other),
        };
    }
    let Some(bytes) = payload.bytes else { return bypass(Bypass::Other) };
    if known.is_due {
        return Decision::Work(Work::Time);
    }
    if let Some(why) = unwanted(facts.purpose, known, facts.wire_form, bytes) {
        return bypass(why);
    }
    if known.hook == (HookState::Ready { gains: true }) {
        return Hook;
    }
    with_code(facts, known, plan(facts.purpose, facts.wire_form, bytes))
}

/// Decides about a buffer that is to be converted, which needs compiled code and an MPI library
/// whose packing is known to be replaceable.
#[inline(always)]
fn with_code(facts: &Facts, known: &Known, plan: Plan) -> Decision {
    match known.code {
        _ if !facts.is_tried => Decision::Bypass(Bypass::Untried),
        Code::Ready => Decision::Stage(plan),
        Code::Missing => Decision::Work(Work::Compile),
        Code::Declined => Decision::Bypass(Bypass::Rare),
    }
}

/// Returns the reason for which the policy or the measured times do not want a buffer of `bytes`
/// bytes converted. Returns `None` if they want it converted.
#[inline(always)]
pub(crate) fn unwanted(purpose: Purpose, known: &Known, wire_form: WireForm, bytes: i64) -> Option<Bypass> {
    let has = |bytes: u64| Policy::has(known.payloads, bytes);
    let why_not = |bytes: u64| (!has(bytes)).then(|| outside(known.payloads, bytes));
    match purpose {
        Purpose::Send(_) | Purpose::Receive(_) => match known.verdict {
            None => why_not(bytes as u64),
            Some(verdict) => (!verdict.wants(has(bytes as u64))).then_some(Bypass::Policy),
        },
        Purpose::Elements { part, beside, .. } => {
            // If every instance gets a gap, each instance alone must be long enough for the policy.
            let each = match wire_form {
                WireForm::Gap { .. } => known.size as u64,
                _ => u64::MAX,
            };
            let part = known.size.saturating_mul(part).max(0) as u64;
            let mut lengths = [each, part].into_iter().filter(|&bytes| bytes >= beside && bytes != u64::MAX);
            // The costs of conversions in collective calls are not measured. So the policy must
            // have both lengths, and the times of messages must not speak against a conversion.
            lengths
                .find_map(why_not)
                .or_else(|| known.verdict.is_some_and(|verdict| verdict.loses).then_some(Bypass::Policy))
        }
        Purpose::File { uncached, .. } => {
            let bypasses_cache = uncached != 0 && bytes % uncached == 0;
            why_not(bytes as u64).or_else(|| bypasses_cache.then_some(Bypass::Other))
        }
        Purpose::Put(_) | Purpose::Get => why_not(bytes as u64),
        Purpose::Pack { .. } | Purpose::Argument { .. } => None,
    }
}

/// Returns the bypass reason for a number of bytes that the policy does not convert: `TooSmall` if
/// the policy converts some larger number, `TooLarge` if it converts smaller ones only, and
/// `Policy` if it converts none.
fn outside(payloads: u64, bytes: u64) -> Bypass {
    match payloads {
        0 => Bypass::Policy,
        _ if bytes == 0 => Bypass::Policy,
        _ if payloads >> bytes.ilog2() != 0 => Bypass::TooSmall,
        _ => Bypass::TooLarge,
    }
}

/// Returns the form in which a staged buffer of `bytes` bytes goes to the MPI library.
#[inline(always)]
fn plan(purpose: Purpose, wire_form: WireForm, bytes: i64) -> Plan {
    match (purpose, wire_form) {
        (Purpose::Pack { .. } | Purpose::Argument { .. }, _) => Plan::Direct,
        (Purpose::Send(_), WireForm::Gap { .. }) => Plan::PiecesWithGap,
        // A message that is received into a staging buffer may be cut at any byte, because the
        // bytes are unpacked only after all of them have arrived.
        (Purpose::Receive(_), WireForm::Gap { .. }) => Plan::BytesWithGap,
        (Purpose::Elements { .. }, WireForm::Gap { .. }) => Plan::ElementsWithGap,
        (Purpose::Send(_) | Purpose::Put(_), WireForm::Segments { whole, .. }) if bytes > whole => {
            Plan::Uncut
        }
        (Purpose::Send(_) | Purpose::Put(_) | Purpose::Receive(_) | Purpose::Get, _) => Plan::Packed,
        (Purpose::Elements { .. }, _) => Plan::Elements,
        // The MPI library compares the size of the type with that of the file view, and returns in
        // the status how many elements were moved. So size and count must stay the same.
        (Purpose::File { .. }, _) => Plan::FileElements,
    }
}

#[cfg(test)]
mod tests;
