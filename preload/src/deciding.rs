//! Step between a wrapper and [`decide`]: gathers the facts about the types and buffers of a call,
//! calls `decide`, does the work that `decide` requests (decoding, compiling or timing a type), and
//! calls `decide` again.
//!
//! The types of a call are looked up once, before ddtc examines its buffers or its communicator
//! ([`look`]). Only calls in which every peer has a type of its own look their types up again for
//! each peer. The decision about a buffer is made when its number of bytes is known ([`decided`]),
//! from the table entries that the look-up found.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ddtc::internal::engine::Mode;
use ddtc::internal::kind::Direction;
use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::policy::{Call, Class, Policy};

use crate::decision::{
    Code, Decision, Facts, HookState, Known, Payload, Plan, Purpose, Record, Verdict, Work, decide, unwanted,
};
use crate::guard::guard;
use crate::hooks::{allowed_hook, hook};
use crate::host::{HandleWord, Host};
use crate::hotness::{self, Like};
use crate::outcome::bypassed;
use crate::policy::policy;
use crate::reentrancy;
use crate::settings::{Choice, settings};
use crate::slow_path::{FOREIGN, GPU, OPAQUE_GPU, reasons};
use crate::table::{self, TypeEntry};
use crate::timing::time;
use crate::types::{self, mode};
use crate::use_kind::{CompletedBy, UseKind, UseRules};
use crate::user_buffer::UserBuffer;
use crate::{eligible, gpu, overhead_budget, reserve, retired};

/// Result of looking up a datatype that is an argument of a call.
#[derive(Clone, Copy)]
pub(crate) struct Looked {
    /// Table entry of the type; `None` for a named type and for a type that is not decoded.
    pub(crate) entry: Option<&'static TypeEntry>,
    /// True if buffers of the type may be converted, at least those of some lengths, in calls of
    /// the kind for which the type was looked up.
    pub(crate) is_wanted: bool,
}

impl Looked {
    pub(crate) const NOTHING: Looked = Looked { entry: None, is_wanted: false };

    fn new(entry: &'static TypeEntry, decision: Decision) -> Looked {
        Looked { entry: Some(entry), is_wanted: matches!(decision, Decision::Stage(_)) }
    }
}

/// Looks up a datatype that is an argument of a call; the call uses `count` instances of it. If the
/// type is not decoded, adds the cost of this use to the type's hotness counter, and decodes the
/// type as soon as decoding is expected to pay.
#[inline(always)]
pub(crate) fn look(
    host: &'static Host,
    datatype: HandleWord,
    count: i64,
    call: Call,
    used: UseKind,
) -> Looked {
    if host.is_named(datatype & host.mask) {
        Looked::NOTHING
    } else {
        look_derived(host, datatype, count, call, used)
    }
}

/// Looks up a datatype as [`look`] does, if the value of the handle alone does not show that the
/// type is a named one. The functions for rare cases are called in tail position, so that the
/// common path need not save registers.
#[inline(never)]
fn look_derived(host: &'static Host, datatype: HandleWord, count: i64, call: Call, used: UseKind) -> Looked {
    match table::known(host, datatype) {
        Some(entry) if call.is_collective() || entry.served.is_asked() || used == UseKind::Persistent => {
            attended(host, entry, datatype, count, call, used)
        }
        Some(entry) => Looked::new(entry, decide(&Facts::of_type(call, false, record(entry, call)))),
        None if hotness::has(datatype & host.mask) => look_undecoded(host, datatype, count, call, used),
        None => Looked::NOTHING,
    }
}

/// Returns the facts about a decoded type in a call of the kind `call`, as far as they are known
/// before ddtc examines the buffer of the call.
#[inline(always)]
fn record(entry: &TypeEntry, call: Call) -> Record {
    if entry.size() <= 0 {
        return Record::NotTaken;
    }
    Record::Known(Known {
        class: entry.class(),
        size: entry.size(),
        converts: entry.converts(call),
        payloads: 0,
        verdict: None,
        is_due: false,
        code: Code::Ready,
        hook: HookState::No,
    })
}

/// Returns the facts about a type that is an argument of a call. Counts no use of the type, and
/// neither decodes nor compiles the type. `packs`: the call is a pack or unpack, which is converted
/// whatever the policy says.
pub(crate) fn known_of_type(host: &Host, datatype: HandleWord, call: Call, packs: bool) -> Record {
    match table::known(host, datatype) {
        Some(entry) => record(entry, call),
        None if hotness::has(datatype & host.mask) => {
            Record::Undecoded { counts: packs || use_rules(host).counts(call), declined: true }
        }
        None => Record::Unseen,
    }
}

/// Looks up a decoded type in a call in which the type may first have to be compiled or to be made
/// ready in Open MPI's convertor hook. That may be necessary if the call is collective or makes a
/// persistent request, if the type is queued for the hook, or if the type was decoded for this
/// call.
#[inline(never)]
fn attended(
    host: &'static Host,
    entry: &'static TypeEntry,
    datatype: HandleWord,
    count: i64,
    call: Call,
    used: UseKind,
) -> Looked {
    let persistent = used == UseKind::Persistent;
    let mut record = record(entry, call);
    let is_ready = || Direction::BOTH.into_iter().all(|direction| entry.is_ready(direction));
    if let Record::Known(known) = &mut record
        && persistent
        && !is_ready()
    {
        known.code = Code::Missing;
    }
    if decide(&Facts::of_type(call, persistent, record)) == Decision::Work(Work::Compile) {
        compile(entry);
    }
    if let Some(hook) = hook(host) {
        if entry.served.is_asked() {
            hook.attend(host, entry, datatype & host.mask);
        }
        if persistent && !entry.served.is_final() {
            hook.persists(host, entry, datatype & host.mask);
        }
        if let Record::Known(known) = &mut record
            && call.is_collective()
        {
            let bytes = entry.size().saturating_mul(count).max(0) as u64;
            hook.record_collective(host, entry, bytes);
            // If compiled code inside the MPI library moves the messages of this collective call
            // faster than the library's own code, the call is bypassed here, before ddtc examines
            // its communicator and its buffers.
            known.hook = hook.inside(host, entry, bytes, &Direction::BOTH);
        }
    }
    let decision = decide(&Facts::of_type(call, false, record));
    if decision == Decision::Hook {
        let _: Option<()> = bypassed(Bypass::Hook);
    }
    Looked::new(entry, decision)
}

/// Compiles a type for both directions when the program makes a persistent request of the type. The
/// compilation does not wait until calls with the type have moved enough bytes, because a
/// persistent request is usually started often.
#[cold]
fn compile(entry: &'static TypeEntry) {
    if mode() == Mode::Off || entry.rules().class == Class::Dense {
        return;
    }
    if let Some(_inside) = reentrancy::Inside::enter().filter(|_| !reserve::is_short()) {
        guard(|| {
            overhead_budget::on(|| {
                for direction in Direction::BOTH {
                    // SAFETY: the entry is bound to a handle, and the program holds the type of
                    // that handle during the call, so nobody retires the entry meanwhile.
                    unsafe { entry.ready(direction, u64::MAX) };
                }
            });
        });
    }
}

/// Counts a use of a type that is not decoded. If decoding the type is expected to pay from this
/// use on, decodes the type and looks it up. Otherwise returns [`Looked::NOTHING`].
#[inline(never)]
fn look_undecoded(
    host: &'static Host,
    datatype: HandleWord,
    count: i64,
    call: Call,
    used: UseKind,
) -> Looked {
    let record = Record::Undecoded { counts: use_rules(host).counts(call), declined: false };
    if decide(&Facts::of_type(call, false, record)) != Decision::Work(Work::Decode)
        || !count_use(host, datatype, count, used)
    {
        return Looked::NOTHING;
    }
    match table::known(host, datatype) {
        Some(entry) => attended(host, entry, datatype, count, call, used),
        None => Looked::NOTHING,
    }
}

/// Returns the rules for counting uses of types, which depend on the settings and on the MPI
/// library. The rules are determined once and kept in a static word.
#[inline]
fn use_rules(host: &Host) -> UseRules {
    static RULES: AtomicU32 = AtomicU32::new(0);
    #[cold]
    fn find(host: &Host) -> UseRules {
        let measured = settings().policy == Choice::Measure;
        let moves_inside = allowed_hook(host).is_some();
        let counts = |call| {
            !host.layers.take(call)
                && !host.never_converts(call)
                && (policy(host).any(call) || call == Call::Message && measured || moves_inside)
        };
        let found = UseRules::new(settings().config.lazy_threshold == 0, moves_inside, counts);
        RULES.store(found.word(), Relaxed);
        found
    }
    UseRules::from_word(RULES.load(Relaxed)).unwrap_or_else(|| find(host))
}

/// Counts a use of `count` instances of a type that has a counter in [`hotness`], and starts
/// decoding the type if that is expected to pay. Returns true if decoding was started. In that case
/// decoding may still have failed.
#[inline]
pub(crate) fn count_use(host: &'static Host, datatype: HandleWord, count: i64, used: UseKind) -> bool {
    if count <= 0 {
        return bypassed(Bypass::NothingToMove).unwrap_or(false);
    }
    let Some(arguments) = hotness::used(host, datatype, count, used, use_rules(host)) else {
        return false;
    };
    types::adopt(host, datatype, arguments);
    true
}

/// Buffer that is to be staged for the MPI library.
pub(crate) struct Approved {
    pub(crate) entry: &'static TypeEntry,
    /// Bytes of the buffer.
    pub(crate) bytes: i64,
    pub(crate) plan: Plan,
}

/// Decides whether a buffer whose type was looked up is staged. Returns `None` if the buffer is
/// bypassed, or if compiled code moves its bytes inside the MPI library. `peer`: the rank at the
/// other end; `None` if the call does not name a single rank. `max_bytes`: the maximum number of
/// bytes that the call of the MPI library can carry. `direction`: the direction for which compiled
/// code must be ready.
#[inline]
pub(crate) fn decided(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    purpose: Purpose,
    direction: Direction,
) -> Option<Approved> {
    // Sends and receives each have a function of their own, into which `decided_for` is inlined
    // with a known purpose, so that the branches for other purposes disappear.
    match purpose {
        Purpose::Send(by) => sent(host, given, peer, max_bytes, by),
        Purpose::Receive(by) => received(host, given, peer, max_bytes, by),
        _ => other(host, given, peer, max_bytes, purpose, direction),
    }
}

#[inline(never)]
fn sent(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    by: CompletedBy,
) -> Option<Approved> {
    decided_for(host, given, peer, max_bytes, Purpose::Send(by), Direction::Pack)
}

#[inline(never)]
fn received(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    by: CompletedBy,
) -> Option<Approved> {
    decided_for(host, given, peer, max_bytes, Purpose::Receive(by), Direction::Unpack)
}

#[inline(never)]
fn other(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    purpose: Purpose,
    direction: Direction,
) -> Option<Approved> {
    decided_for(host, given, peer, max_bytes, purpose, direction)
}

/// Decides about a buffer as [`decided`] does. This body is inlined into one function for sends,
/// one for receives and one for all other purposes.
#[inline(always)]
fn decided_for(
    host: &'static Host,
    given: UserBuffer,
    peer: Option<c_int>,
    max_bytes: i64,
    purpose: Purpose,
    direction: Direction,
) -> Option<Approved> {
    // Types without an entry or without bytes were already bypassed when they were looked up.
    let entry = given.entry.filter(|entry| entry.size() > 0)?;
    let payload = Payload {
        moves: given.count > 0 && (peer.is_none() || peer != host.abi.map(|abi| abi.proc_null)),
        is_null: !entry.takes(given.buf),
        bytes: entry.size().checked_mul(given.count).filter(|&bytes| bytes <= max_bytes),
    };
    let bytes = payload.bytes.filter(|_| payload.moves && !payload.is_null).unwrap_or(0);
    let mut known = known(host, entry, purpose, bytes, direction);
    if bytes > 0 {
        entry.moves(bytes as u64);
        known.is_due = purpose.is_started() && is_due(host, entry, bytes as u64, known.code);
    }
    let facts = Facts {
        purpose,
        record: Record::Known(known),
        payload: Some(payload),
        is_tried: eligible::messages(host) && host.permits(purpose.call()),
        is_layers: false,
        wire_form: host.profile.wire_form,
    };
    let mut decision = decide(&facts);
    if let Decision::Work(work) = decision {
        decision = worked(host, entry, given, facts, work, direction);
    }
    if known.hook == HookState::NotReady && bytes > 0 {
        offer(host, entry, purpose, bytes, direction);
    }
    let Decision::Stage(plan) = decision else {
        if !known.converts {
            // No payload of the type is converted in calls of this kind, so the type was already
            // bypassed when it was looked up. No reason is recorded here, because `counting` finds
            // the reason again from the entry of the type when it counts the call.
            return None;
        }
        return bypassed(reason(host, entry, given, purpose, bytes, decision));
    };
    if let Some(why) = veto(entry, given, purpose) {
        return bypassed(why);
    }
    Some(Approved { entry, bytes, plan })
}

/// Does the work on a type that [`decide`] requests, and calls `decide` again, until `decide`
/// requests no more work. Each kind of work is requested at most once, because its result is
/// entered into the facts.
#[inline(never)]
fn worked(
    host: &'static Host,
    entry: &'static TypeEntry,
    given: UserBuffer,
    mut facts: Facts,
    mut work: Work,
    direction: Direction,
) -> Decision {
    let (purpose, payload) = (facts.purpose, facts.payload);
    let bytes = payload.and_then(|payload| payload.bytes).unwrap_or(0);
    loop {
        let Record::Known(known) = &mut facts.record else { return Decision::Bypass(Bypass::Other) };
        match work {
            Work::Time => {
                if let Some(measured) = entry.measured() {
                    time(host, entry, measured, given, bytes as u64, direction);
                }
                *known = self::known(host, entry, purpose, bytes, direction);
            }
            Work::Compile => {
                let measured = entry.measured().filter(|_| purpose.is_message());
                let both =
                    measured.and_then(|measured| measured.verdict_of_both(&host.profile.costs, bytes as u64));
                // If both ranks must decide alike, a message for which the layout alone promises a
                // gain is converted as soon as its type is decoded. So two ranks that decode their
                // types at the same message also compile them at the same message.
                let moved = if both.is_some_and(|both| both.gains) { u64::MAX } else { bytes as u64 };
                // SAFETY: the entry is bound to a handle, and the program holds the type of that
                // handle during the call, so nobody retires the entry meanwhile.
                let is_ready = unsafe { entry.ready(direction, moved) };
                known.code = if is_ready { Code::Ready } else { Code::Declined };
            }
            Work::Decode => return Decision::Bypass(Bypass::Other),
        }
        match decide(&facts) {
            Decision::Work(next) => work = next,
            decision => return decision,
        }
    }
}

/// Passes a buffer to Open MPI's convertor hook, which counts it: after enough of these buffers the
/// hook makes their type ready. Called if the hook cannot move the bytes of the buffer because the
/// type is not ready there. Does nothing if the policy or the measured times do not want the buffer
/// converted, or if the call makes no messages between ranks.
#[inline(never)]
fn offer(host: &'static Host, entry: &'static TypeEntry, purpose: Purpose, bytes: i64, direction: Direction) {
    let known = known(host, entry, purpose, bytes, direction);
    if unwanted(purpose, &known, host.profile.wire_form, bytes).is_none()
        && let Some((hook, part)) = hook(host).zip(purpose.of_messages(entry.size(), bytes))
    {
        hook.offer(host, entry, part, direction);
    }
}

/// Returns the reason for bypassing a buffer for which `decide` has returned `decision`. If the
/// reason holds for similar messages too, starts a back-off, in which the next similar messages are
/// bypassed without being examined ([`back_off`]).
#[inline(never)]
fn reason(
    host: &'static Host,
    entry: &TypeEntry,
    given: UserBuffer,
    purpose: Purpose,
    bytes: i64,
    decision: Decision,
) -> Bypass {
    let (why, by_policy) = match decision {
        Decision::Bypass(why @ (Bypass::Policy | Bypass::TooSmall | Bypass::TooLarge)) => (why, true),
        Decision::Bypass(Bypass::Untried) => (Bypass::Untried, false),
        Decision::Hook => (Bypass::Hook, false),
        Decision::Bypass(why) => return why,
        Decision::Stage(_) | Decision::Work(_) => return Bypass::Other,
    };
    back_off(host, entry, given, purpose, bytes, by_policy);
    why
}

/// Gathers the facts about a decoded type for a buffer of `bytes` bytes. `bytes` is 0 if the call
/// moves nothing.
#[inline(always)]
fn known(
    host: &'static Host,
    entry: &'static TypeEntry,
    purpose: Purpose,
    bytes: i64,
    direction: Direction,
) -> Known {
    let (call, class) = (purpose.call(), entry.class());
    let part = purpose.of_messages(entry.size(), bytes);
    let by = match purpose {
        Purpose::Send(by) | Purpose::Receive(by) => by,
        Purpose::LaterSend | Purpose::LaterReceive => CompletedBy::LaterCall,
        _ => CompletedBy::SameCall,
    };
    let is_timed = call == Call::Message || call.is_collective();
    Known {
        class,
        size: entry.size(),
        converts: entry.converts(call),
        payloads: if call == Call::Message { entry.payloads() } else { policy(host).payloads(call, class) },
        verdict: match part {
            Some(bytes) if purpose.is_message() => verdict(host, entry, bytes, by),
            Some(part) if is_timed => entry.measured().and_then(|measured| measured.verdict(part, by)),
            _ => None,
        },
        is_due: false,
        code: if entry.is_ready(direction) { Code::Ready } else { Code::Missing },
        hook: match (hook(host), part) {
            (Some(hook), Some(part)) => hook.inside(host, entry, part, &[direction]),
            _ => HookState::No,
        },
    }
}

/// Returns the verdict on converting messages of `bytes` bytes between two ranks: the verdict of
/// the layout alone if both ranks must decide alike, otherwise the verdict of the measured times.
/// `None` if the layout alone does not decide and there are no measured times.
#[inline]
fn verdict(host: &Host, entry: &TypeEntry, bytes: u64, by: CompletedBy) -> Option<Verdict> {
    let measured = entry.measured()?;
    measured.verdict_of_both(&host.profile.costs, bytes).or_else(|| measured.verdict(bytes, by))
}

/// Counts a message of `bytes` bytes. Returns true if the messages of its size class have moved
/// enough bytes to be timed now. Timing a type compiles the type. So if both ranks must compile the
/// type at the same message, this function returns false until the type is compiled.
#[inline]
fn is_due(host: &Host, entry: &TypeEntry, bytes: u64, code: Code) -> bool {
    entry.measured().is_some_and(|measured| {
        measured.due(bytes, settings().config.lazy_threshold)
            && (code == Code::Ready || measured.verdict_of_both(&host.profile.costs, bytes).is_none())
    })
}

/// Returns a reason for bypassing a buffer, if one of the conditions holds that [`Facts`] does not
/// contain: the MPI library was found not to pack raw bytes, the buffer is or may be in device
/// memory, or the operation has no request and earlier errors in such calls have taken too many
/// staging buffers out of use.
#[inline]
fn veto(entry: &'static TypeEntry, given: UserBuffer, purpose: Purpose) -> Option<Bypass> {
    gpu::refresh();
    let watch = reasons();
    if watch & (FOREIGN | OPAQUE_GPU) != 0 {
        return Some(if watch & FOREIGN != 0 { Bypass::Untried } else { Bypass::Device });
    }
    if watch & GPU != 0 {
        // SAFETY: the entry is bound to a handle, and the program holds the type of that handle
        // during the call, so nobody retires the entry while `committed` lives.
        let committed = unsafe { entry.committed() };
        if !committed.is_some_and(|committed| gpu::has_host(given.buf, committed.datatype())) {
            return Some(Bypass::Device);
        }
    }
    (!purpose.has_request() && retired::is_full()).then_some(Bypass::AfterErrors)
}

/// Starts a back-off after a message was bypassed: the next similar messages are bypassed without
/// being examined. Does nothing while the layout is still to be timed for the size class of the
/// message. `by_policy`: the message was bypassed because the policy or the measured times do not
/// want it. Then messages that their own call completes may still be wanted, because they cost less
/// to convert; if they are, the back-off holds only for messages that a later call completes. Any
/// other reason holds for all similar messages. Also reports to Open MPI's convertor hook how much
/// time the bypassed messages would have saved inside the MPI library.
fn back_off(
    host: &'static Host,
    entry: &TypeEntry,
    given: UserBuffer,
    purpose: Purpose,
    bytes: i64,
    by_policy: bool,
) {
    let bytes = bytes as u64;
    if !purpose.is_message() || entry.measured().is_some_and(|measured| !measured.is_timed(bytes)) {
        return;
    }
    let table = Policy::has(entry.payloads(), bytes);
    let at_once =
        verdict(host, entry, bytes, CompletedBy::SameCall).map_or(table, |verdict| verdict.wants(table));
    let by = if by_policy && at_once { CompletedBy::LaterCall } else { CompletedBy::SameCall };
    let like = Like { count: given.count, by };
    // If the type is queued for the hook, no back-off is started, because the next message must be
    // examined.
    let more =
        if entry.served.is_asked() { 0 } else { hotness::start_back_off(given.datatype & host.mask, like) };
    if let Some(hook) = hook(host) {
        hook.misses(host, &|| {
            let gain = entry.measured().and_then(|measured| measured.gain_inside(bytes));
            gain.unwrap_or(0).saturating_mul(1 + more)
        });
    }
}
