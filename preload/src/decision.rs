//! Decision about one buffer of a call: the buffer is bypassed or staged, or compiled code moves
//! its bytes inside the MPI library, or some work on its type must be done first.
//!
//! [`decide`] chooses among these four. It is a pure function of [`Facts`]: words of the type
//! record, the profile of the MPI library, the settings and the call. It reads no clock, no buffer
//! and no communicator. If `decide` returns work, its caller does the work, enters the result into
//! the facts and calls `decide` again. This happens at most three times, once for each kind of
//! work. Whether a type was used so much that the work pays is decided by [`crate::hotness`] and by
//! the type's entry in the table.
//!
//! A call is decided in two steps. The first step considers only the types of the call's arguments,
//! because most calls are bypassed for their types alone ([`Facts::of_type`]). The second step
//! decides each buffer with its number of bytes, which in collective calls depends on the
//! communicator. A buffer can still be bypassed after [`Decision::Stage`], for reasons that are not
//! in the facts: the MPI library was meanwhile found to pack in another format, the buffer is in
//! device memory, a limit on staging buffers is reached, or no substitute datatype can be made.

use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::policy::{Call, Class, Policy};
use ddtc_hosts::profile::WireForm;

use crate::use_kind::CompletedBy;

/// Result of [`decide`] for one buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// The buffer is bypassed: the MPI library gets it as it is. The reason is given.
    Bypass(Bypass),
    /// Compiled code packs or unpacks the buffer, and the MPI library gets a staging buffer.
    Stage(Plan),
    /// The MPI library gets the buffer as it is, and compiled code packs or unpacks its bytes
    /// inside the MPI library, in Open MPI's convertor hook.
    Hook,
    /// The caller must do this work on the type of the buffer first, and then call [`decide`]
    /// again.
    Work(Work),
}

/// Work on a datatype that must be done before [`decide`] can decide about a buffer of the type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Decode the type, if decoding is expected to save more time than it takes.
    Decode,
    /// Compile the type for the direction of the call, if the uses of the type have moved enough
    /// bytes to pay for the compilation.
    Compile,
    /// Measure the times that compiled code and the MPI library take to pack messages of this
    /// length.
    Time,
}

/// Form in which the MPI library gets the packed bytes of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// The form is not decided yet, because the number of bytes is not known. Once it is known,
    /// [`decide`] must be called again.
    Later,
    /// Nothing is staged, because the call itself is a pack or unpack.
    Direct,
    /// Bytes that are sent or received with the datatype `MPI_PACKED`.
    Packed,
    /// Bytes with the datatype `MPI_PACKED` if the MPI library can cut the message nowhere inside
    /// an element, else instances of the dense equivalent of the type.
    Uncut,
    /// Elements of a contiguous substitute datatype that has the size of the program's type. Each
    /// element replaces one instance.
    Elements,
    /// Packed bytes with a gap before the last bytes. The gap is needed because Open MPI copies a
    /// message between contiguous buffers without comparing its length with that of the receive.
    BytesWithGap,
    /// Packed bytes with a gap before the last bytes, as bytes or as wider basic elements. The MPI
    /// library cuts the message only between these basic elements, so that a receiver that does not
    /// convert can join the two halves of an element of its own type.
    PiecesWithGap,
    /// One element of a substitute datatype with a gap for each instance of the program's type.
    ElementsWithGap,
    /// Elements of a substitute datatype that has the size of the program's type, for a call that
    /// reads or writes a file.
    FileElements,
}

/// Way in which a call uses one of its buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Buffer that the program packs or unpacks itself (`MPI_Pack`, `MPI_Unpack`).
    Pack {
        /// True if the MPI library's packing was tested and the MPI library has accepted the
        /// communicator of the pack or unpack in an earlier call.
        is_accepted: bool,
        /// True if the packed bytes of the call fit into the packed buffer from the given position
        /// on.
        fits: bool,
        /// Minimum number of bytes of a contiguous run that the MPI library copies faster than
        /// compiled code does.
        own_runs: i64,
    },
    /// Buffer of a send. The receiver may be a rank that does not convert.
    Send(CompletedBy),
    /// Buffer of a receive.
    Receive(CompletedBy),
    /// Buffer of a persistent send. It belongs to the program until the send is started, so the
    /// call that makes the request must not read it.
    LaterSend,
    /// Buffer of a persistent receive. It belongs to the program until the receive is started.
    LaterReceive,
    /// Buffer of `count` elements in a collective call. All ranks pass the same number of elements,
    /// of types that have the same size.
    Elements {
        call: Call,
        count: i64,
        /// Number of elements that one rank sends to another in the collective call, on average.
        part: i64,
        /// Size of a part, in bytes, below which the buffer is converted whatever the policy says,
        /// because the buffer on the other side of the call is converted. If only one of the two
        /// buffers became contiguous, the MPI library could not use its fast path for contiguous
        /// buffers. 0 if the other side is not converted.
        convert_below: u64,
        completed_by: CompletedBy,
    },
    /// Buffer that is written to a file or read from it. If `uncached` is not 0, a contiguous
    /// access whose length is a multiple of `uncached` bytes bypasses the operating system's cache.
    /// It takes longer than an access with a type that has gaps.
    File { call: Call, uncached: i64 },
    /// Origin buffer of a put into a window.
    Put(CompletedBy),
    /// Origin buffer of a get from a window.
    Get,
    /// Type that is an argument of the call `call`, in the step that does not consider its buffer
    /// yet. `persistent`: the call makes a persistent request, which is started often.
    Argument { call: Call, persistent: bool },
}

/// Knowledge that ddtc has of the datatype of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    /// The commit of the type was not seen.
    Unseen,
    /// The commit of the type was seen, and the type is not decoded.
    Undecoded {
        /// True if uses of types in calls of this kind add to hotness counters, because some type
        /// may be converted in these calls.
        counts: bool,
        /// True if the type was not decoded for this call, because decoding is not expected to pay
        /// yet.
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
    /// True if the policy converts some payload of the type in calls of this kind.
    pub(crate) converts: bool,
    /// Set of the payloads (numbers of bytes) of the type that the policy converts in calls of this
    /// kind. [`Policy::has`] reads it.
    pub(crate) payloads: u64,
    /// Verdict on converting messages of the buffer's length; `None` if nothing was timed and the
    /// layout alone gives no verdict.
    pub(crate) verdict: Option<Verdict>,
    /// True if the messages of the type in the buffer's size class have moved enough bytes to be
    /// timed.
    pub(crate) is_due: bool,
    /// Whether the type is compiled for the direction of the call.
    pub(crate) code: Code,
    pub(crate) hook: HookState,
}

/// Verdict on converting messages of one length, from the layout of their type or from its measured
/// times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// True if a conversion saves time. If a later call completes the message, the time for finding
    /// the message's request is included.
    pub(crate) gains: bool,
    /// True if ddtc's kernel is no faster than the MPI library, or if the layout alone decides
    /// against a conversion.
    pub(crate) loses: bool,
}

impl Verdict {
    /// Returns true if messages with this verdict are to be converted. `table`: the policy table
    /// converts them.
    #[inline]
    pub(crate) fn wants(self, table: bool) -> bool {
        self.gains || table && !self.loses
    }
}

/// State of the compiled code of a type for one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    Ready,
    Missing,
    /// The caller was asked to compile the type for this call and did not compile it, usually
    /// because the uses of the type have not moved enough bytes to pay for the compilation.
    Declined,
}

/// State of Open MPI's convertor hook for one buffer: whether compiled code packs or unpacks the
/// buffer inside the MPI library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookState {
    /// Compiled code never serves the buffer inside the MPI library, because there is no convertor
    /// hook, or because the policy does not convert buffers of this length and layout in the hook.
    No,
    /// Compiled code does not serve the buffer inside the MPI library yet, because the hook is not
    /// enabled, or the type is not ready for the hook.
    NotReady,
    /// Compiled code can serve the buffer inside the MPI library. `gains`: compiled code is faster
    /// there than the MPI library's own code.
    Ready { gains: bool },
}

/// Packed bytes of a buffer in a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    /// True if the call has elements to move, and a process at the other end.
    pub(crate) moves: bool,
    /// True if the buffer is null although the displacements of the type are not addresses. In a
    /// pack or unpack also true if the packed buffer or the position is a null pointer.
    pub(crate) is_null: bool,
    /// Number of bytes; `None` if the MPI library's function cannot carry this number. In a pack or
    /// unpack also `None` if the bytes do not fit into the packed buffer, or if the arguments are
    /// wrong.
    pub(crate) bytes: Option<i64>,
}

/// All values on which the decision about a buffer depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) purpose: Purpose,
    pub(crate) record: Record,
    /// Packed bytes of the buffer; `None` if they are not known before the communicator, file or
    /// window of the call is examined.
    pub(crate) payload: Option<Payload>,
    /// True if it is known that compiled code can replace the packing of this MPI library. If the
    /// call makes messages, it must also be known that the MPI library can send packed bytes
    /// instead.
    pub(crate) is_tried: bool,
    /// True if a PMPI layer that comes after ddtc handles calls of this kind.
    pub(crate) is_layers: bool,
    pub(crate) wire_form: WireForm,
}

impl Facts {
    /// Returns the facts about a datatype argument of a call, before the argument's buffer is
    /// considered.
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
    /// Returns true if the operation has a request. After an error, the handle of the request shows
    /// whether the operation continues.
    #[inline]
    pub(crate) fn has_request(self) -> bool {
        match self {
            Purpose::Send(by) | Purpose::Receive(by) | Purpose::Put(by) => by == CompletedBy::LaterCall,
            Purpose::Elements { completed_by, .. } => completed_by == CompletedBy::LaterCall,
            Purpose::LaterSend | Purpose::LaterReceive | Purpose::Get => true,
            Purpose::Pack { .. } | Purpose::File { .. } | Purpose::Argument { .. } => false,
        }
    }

    /// Returns true for a message between two ranks.
    #[inline]
    pub(crate) fn is_message(self) -> bool {
        self.is_started() || matches!(self, Purpose::LaterSend | Purpose::LaterReceive)
    }

    /// Returns true for a message between two ranks whose buffer belongs to the message during the
    /// call, so that the buffer may be read.
    #[inline]
    pub(crate) fn is_started(self) -> bool {
        matches!(self, Purpose::Send(_) | Purpose::Receive(_))
    }

    /// Returns the kind of call for which the policy has the rules that apply to a buffer of this
    /// purpose.
    #[inline]
    pub(crate) fn call(self) -> Call {
        match self {
            Purpose::Pack { .. }
            | Purpose::Send(_)
            | Purpose::Receive(_)
            | Purpose::LaterSend
            | Purpose::LaterReceive => Call::Message,
            Purpose::Elements { call, .. } | Purpose::File { call, .. } | Purpose::Argument { call, .. } => {
                call
            }
            Purpose::Put(_) => Call::Put,
            Purpose::Get => Call::Get,
        }
    }

    /// Returns the mean number of bytes of the messages that the MPI library makes from the buffer;
    /// `None` if it makes no messages between ranks. `size`: bytes of an instance. `bytes`: bytes
    /// of the buffer.
    #[inline]
    pub(crate) fn of_messages(self, size: i64, bytes: i64) -> Option<u64> {
        match self {
            _ if self.is_message() => Some(bytes.max(0) as u64),
            Purpose::Elements { part, .. } => Some(size.saturating_mul(part).max(0) as u64),
            _ => None,
        }
    }
}

/// Decides whether a buffer is bypassed, staged or moved in the hook, or which work on its type
/// must be done first.
#[inline(always)]
pub(crate) fn decide(facts: &Facts) -> Decision {
    use Decision::{Hook, Stage};
    let bypass = Decision::Bypass;
    if facts.is_layers {
        return bypass(Bypass::Layer);
    }
    let known = match &facts.record {
        Record::Known(known) => known,
        Record::Undecoded { counts: false, .. } => return bypass(Bypass::Policy),
        Record::Undecoded { declined: true, .. } => return bypass(Bypass::Rare),
        Record::Undecoded { .. } => return Decision::Work(Work::Decode),
        Record::NotTaken => return bypass(Bypass::TypeNotTaken),
        // A pack or unpack of a type that is not known goes to the MPI library first. If the MPI
        // library accepts the call, the type is valid.
        Record::Unseen if matches!(facts.purpose, Purpose::Pack { .. }) => return bypass(Bypass::FirstUse),
        Record::Unseen => return bypass(Bypass::UnknownType),
    };
    // The program's own packs and unpacks are converted whatever the policy says. In a collective
    // call, a buffer is also converted if the buffer on the other side of the call is converted.
    let is_given = match facts.purpose {
        Purpose::Pack { .. } => true,
        Purpose::Elements { convert_below, .. } => known.converts || convert_below > 0,
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
    if let Purpose::Pack { is_accepted, fits, own_runs } = facts.purpose {
        // If the packed buffer is too small, the call is bypassed, so that the MPI library raises
        // the error.
        return match payload.bytes {
            _ if !is_accepted => bypass(Bypass::FirstUse),
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

/// Decides about a buffer that is to be converted. The conversion needs compiled code, and an MPI
/// library whose packing is known to be replaceable.
#[inline(always)]
fn with_code(facts: &Facts, known: &Known, plan: Plan) -> Decision {
    match known.code {
        _ if !facts.is_tried => Decision::Bypass(Bypass::Untried),
        Code::Ready => Decision::Stage(plan),
        Code::Missing => Decision::Work(Work::Compile),
        Code::Declined => Decision::Bypass(Bypass::Rare),
    }
}

/// Returns the reason why the policy or the measured times reject the conversion of a buffer of
/// `bytes` bytes; `None` if they do not reject it.
#[inline(always)]
pub(crate) fn unwanted(purpose: Purpose, known: &Known, wire_form: WireForm, bytes: i64) -> Option<Bypass> {
    let has = |bytes: u64| Policy::has(known.payloads, bytes);
    let why_not = |bytes: u64| (!has(bytes)).then(|| outside(known.payloads, bytes));
    match purpose {
        Purpose::Send(_) | Purpose::Receive(_) | Purpose::LaterSend | Purpose::LaterReceive => {
            match known.verdict {
                None => why_not(bytes as u64),
                Some(verdict) => (!verdict.wants(has(bytes as u64))).then_some(Bypass::Policy),
            }
        }
        Purpose::Elements { part, convert_below, .. } => {
            // If each instance gets a gap of its own, the policy must also convert the length of a
            // single instance.
            let each = match wire_form {
                WireForm::Gap { .. } => known.size as u64,
                _ => u64::MAX,
            };
            let part = known.size.saturating_mul(part).max(0) as u64;
            let mut lengths =
                [each, part].into_iter().filter(|&bytes| bytes >= convert_below && bytes != u64::MAX);
            // The costs of conversions in collective calls are not measured. So the policy must
            // convert both lengths (of a part and, with a gap in each instance, of an instance),
            // and the measured times of messages must not show that a conversion loses time.
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
/// `Policy` if it converts none or if `bytes` is 0.
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
        (Purpose::Send(_) | Purpose::LaterSend, WireForm::Gap { .. }) => Plan::PiecesWithGap,
        // A message that is received into a staging buffer may be cut at any byte, because the
        // bytes are unpacked only after all of them have arrived.
        (Purpose::Receive(_) | Purpose::LaterReceive, WireForm::Gap { .. }) => Plan::BytesWithGap,
        (Purpose::Elements { .. }, WireForm::Gap { .. }) => Plan::ElementsWithGap,
        (Purpose::Send(_) | Purpose::LaterSend | Purpose::Put(_), WireForm::Segments { whole, .. })
            if bytes > whole =>
        {
            Plan::Uncut
        }
        (Purpose::Elements { .. }, _) => Plan::Elements,
        // The MPI library compares the size of the type with that of the file view, and returns in
        // the status how many elements were moved. So size and count must stay the same.
        (Purpose::File { .. }, _) => Plan::FileElements,
        _ => Plan::Packed,
    }
}

#[cfg(test)]
mod tests;
