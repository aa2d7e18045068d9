//! Conversion of the program's `MPI_Pack` and `MPI_Unpack` calls by compiled code, or their bypass.
//!
//! A call is converted only if the MPI library's own call would succeed. So this module checks
//! every argument that the MPI library checks. A call that is not clearly correct is bypassed, so
//! that the MPI library raises the error, and ddtc never raises an error of the program here.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::internal::count::Count;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::policy;
use ddtc_hosts::profile::WireForm;

use crate::canary::packs_raw;
use crate::deciding::count_use;
use crate::decision::{Code, Decision, Facts, HookState, Known, Payload, Purpose, Record, Work, decide};
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::hotness;
use crate::reentrancy;
use crate::run::run;
use crate::slow_path::{
    CHECK, COUNT, FOREIGN, GPU, LAYER, OPAQUE_GPU, PACKING, PERF, UNPROVEN, UNSEEN, reasons, watched_for,
};
use crate::table::{self, Found, TypeEntry};
use crate::use_kind::UseKind;
use crate::{check, comms, gpu, outcome, perf, types};

/// Arguments of `MPI_Pack` or `MPI_Unpack`, named by their roles.
pub(crate) struct PackCall<P> {
    pub(crate) direction: Direction,
    pub(crate) user: *mut c_void,
    pub(crate) count: P,
    pub(crate) datatype: HandleWord,
    pub(crate) packed: *mut c_void,
    pub(crate) packed_size: P,
    pub(crate) position: *mut P,
    pub(crate) comm: HandleWord,
}

impl<P: Count> PackCall<P> {
    /// Returns the value of the argument `position`, or `None` if its pointer is null.
    ///
    /// # Safety
    /// If the pointer to the position is not null, it must point to a number.
    #[inline]
    pub(crate) unsafe fn position_value(&self) -> Option<i64> {
        // SAFETY: the pointer is null or points to a number, as the caller promises.
        unsafe { self.position.as_ref() }.map(|p| p.wide())
    }

    /// Sets the program's `position` to the offset after the packed bytes of the call.
    ///
    /// # Safety
    /// The pointer to the position must not be null.
    #[inline]
    unsafe fn moved(&self, position: P) {
        // SAFETY: the pointer is not null, as the caller promises, so it points to a number by the
        // rules of MPI.
        unsafe { *self.position = position };
    }
}

/// Outcome of [`convert`] for a pack or unpack of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Compiled code has packed or unpacked the bytes, and the program's `position` is updated.
    Done,
    /// The call is bypassed, and nothing is recorded about its type or communicator.
    Pass,
    /// The call is bypassed. If the MPI library accepts the call, its type and communicator must be
    /// recorded by [`learn`].
    PassAndLearn,
}

/// Place of the packed bytes of a call in the packed buffer.
#[derive(Clone, Copy)]
struct Place<P> {
    /// Number of packed bytes.
    bytes: u64,
    packed: *mut u8,
    /// Value of the program's `position` after the call.
    position: P,
}

/// Returns the place of the packed bytes of a call. Returns `None` if the packed buffer is too
/// small or an argument is wrong. The call is then bypassed, and the MPI library raises the error.
///
/// # Safety
/// If the pointer to the position is not null, it must point to a number.
#[inline(always)]
unsafe fn packed_place<P: Count>(entry: &'static TypeEntry, call: &PackCall<P>) -> Option<Place<P>> {
    // SAFETY: as the caller promises.
    let at = unsafe { call.position_value() }?;
    let end = entry.size().checked_mul(call.count.wide()).and_then(|bytes| at.checked_add(bytes))?;
    if at < 0 || end < at || end > call.packed_size.wide() {
        return None;
    }
    // `end` fits into a `P`, because it is no larger than the size of the packed buffer, which is a
    // `P`.
    let position = P::narrow(end)?;
    let packed = call.packed.cast::<u8>().wrapping_add(at as usize);
    Some(Place { bytes: (end - at) as u64, packed, position })
}

/// Gathers the facts from which [`decide`] decides how a pack or unpack with a decoded type is
/// done. `watch` is the set of flags of [`crate::slow_path`] that make calls take the long path.
#[inline(always)]
fn facts<P: Count>(
    host: &'static Host,
    entry: &'static TypeEntry,
    call: &PackCall<P>,
    place: Option<Place<P>>,
    code: Code,
    watch: u32,
) -> Facts {
    let is_null = !entry.takes(call.user) || call.packed.is_null() || call.position.is_null();
    Facts {
        purpose: Purpose::Pack {
            is_accepted: watch & UNPROVEN == 0 && comms::accepted(host, call.comm),
            fits: place.is_some(),
            own_runs: host.own_runs,
        },
        record: Record::Known(Known {
            class: entry.class(),
            size: entry.size(),
            converts: true,
            payloads: u64::MAX,
            verdict: None,
            is_due: false,
            code,
            hook: HookState::No,
        }),
        payload: Some(Payload {
            moves: call.count.wide() > 0,
            is_null,
            bytes: place.map(|place| place.bytes as i64),
        }),
        is_tried: watch & FOREIGN == 0,
        is_layers: watch & LAYER != 0,
        wire_form: WireForm::Packed,
    }
}

/// Returns `Code::Ready` if it is settled already how the bytes of the type are copied in a
/// direction, otherwise `Code::Missing`.
#[inline(always)]
fn code(entry: &TypeEntry, direction: Direction) -> Code {
    if entry.is_ready(direction) { Code::Ready } else { Code::Missing }
}

/// Converts a call if its type, communicator and kernel are known and nothing requires the long
/// path. Returns true if the call was converted. Otherwise nothing was done, and the caller must
/// pass the call to [`convert`]. This short path exists because a call with few bytes would spend
/// most of its time on the long path of ddtc.
///
/// # Safety
/// As for [`convert`].
#[inline(always)]
pub(crate) unsafe fn convert_at_once<P: Count>(host: &'static Host, call: &PackCall<P>) -> bool {
    if reasons() & (PACKING | UNSEEN) != 0 {
        return false;
    }
    let Found::Convert(entry) = table::find(call.datatype & host.mask) else { return false };
    // SAFETY: as the caller promises.
    let place = unsafe { packed_place(entry, call) };
    let Decision::Stage(_) = decide(&facts(host, entry, call, place, code(entry, call.direction), 0)) else {
        return false;
    };
    // SAFETY: the entry belongs to the type of this call. So it is bound to that type, and nobody
    // retires it while the reference lives, because the program holds the type during the call.
    let (Some(committed), Some(Place { packed, position, .. })) = (unsafe { entry.committed() }, place)
    else {
        return false;
    };
    if !gpu::is_fresh() {
        return false;
    }
    let count = call.count.wide() as u64;
    // SAFETY: `decide` stages only a call that the MPI library would accept, so the buffers are
    // what the arguments say, as the caller promises. `packed_place` has checked that the packed
    // bytes are inside the packed buffer.
    if !unsafe { committed.try_raw(call.direction, call.user.cast(), count, packed) } {
        return false;
    }
    // SAFETY: the pointer to the position is not null, because `packed_place` returns `None` for a
    // null pointer.
    unsafe { call.moved(position) };
    true
}

/// Converts a pack or unpack if that is possible, and otherwise returns that the call is bypassed.
///
/// # Safety
/// As for `MPI_Pack` and `MPI_Unpack`: if the MPI library's own call would succeed, the buffers
/// must be what the arguments say.
#[inline]
pub(crate) unsafe fn convert<P: Count>(host: &'static Host, call: &PackCall<P>) -> Outcome {
    let entry = match table::known(host, call.datatype) {
        Some(entry) if entry.size() > 0 => entry,
        known => match undecoded(host, call, known.is_some()) {
            Ok(entry) => entry,
            Err(outcome) => return outcome,
        },
    };
    // SAFETY: as the caller promises.
    let place = unsafe { packed_place(entry, call) };
    let mut code = code(entry, call.direction);
    // The loop ends, because `decide` requires each kind of work at most once: the result of the
    // work is entered into the facts for the next turn.
    let decision = loop {
        match decide(&facts(host, entry, call, place, code, reasons())) {
            Decision::Work(Work::Compile) => {
                // SAFETY: the entry belongs to the type of this call. So it is bound to that type,
                // and nobody retires it meanwhile, because the program holds the type during the
                // call.
                let is_ready = unsafe { entry.ready(call.direction, place.map_or(0, |place| place.bytes)) };
                code = if is_ready { Code::Ready } else { Code::Declined };
            }
            decision => break decision,
        }
    };
    let (Decision::Stage(_), Some(Place { packed, position, .. })) = (decision, place) else {
        return bypass(decision);
    };
    gpu::refresh();
    let count = call.count.wide() as u64;
    let watch = reasons() & PACKING;
    let outcome = if watch == 0 {
        // SAFETY: the entry is bound to the type of this call, which the program holds during the
        // call, so nobody retires it. The buffers are what the arguments say, as the caller
        // promises, and `packed_place` has checked that the packed bytes are inside the packed
        // buffer.
        guard(|| unsafe {
            let Some(committed) = entry.committed() else { return Outcome::Pass };
            run(committed, call.direction, call.user.cast(), count, packed);
            Outcome::Done
        })
    } else {
        // SAFETY: the buffers are what the arguments say, as the caller promises, and `decide` has
        // staged the call.
        guard(|| unsafe { watched(host, entry, call, count, packed, watch) })
    };
    match outcome {
        Some(Outcome::Done) => {
            outcome::converted();
            // SAFETY: the pointer to the position is not null, because `packed_place` returns
            // `None` for a null pointer.
            unsafe { call.moved(position) };
            Outcome::Done
        }
        Some(other) => other,
        None => Outcome::Pass,
    }
}

/// Converts a call on the long path. Unlike the short path, the long path finds out whether the
/// buffers are in GPU memory, counts and checks the call, and gives the name of its kernel to the
/// profiler `perf`. `count` is the number of instances, `packed` the address of their packed bytes,
/// and `watch` contains the flags of [`PACKING`] that are set.
///
/// # Safety
/// As for [`convert`]. [`decide`] must have returned `Decision::Stage` for the call.
#[cold]
unsafe fn watched<P: Count>(
    host: &'static Host,
    entry: &'static TypeEntry,
    call: &PackCall<P>,
    count: u64,
    packed: *mut u8,
    watch: u32,
) -> Outcome {
    // A GPU runtime is loaded that cannot distinguish addresses in host memory from those in GPU
    // memory.
    if watch & OPAQUE_GPU != 0 {
        return bypass(Decision::Bypass(Bypass::Device));
    }
    // SAFETY: the entry belongs to the type of this call. So it is bound to that type, and nobody
    // retires it while the reference lives, because the program holds the type during the call.
    let Some(committed) = (unsafe { entry.committed() }) else { return Outcome::Pass };
    let user = call.user.cast::<u8>();
    if watch & GPU != 0 && !(gpu::has_host(user.cast(), committed.datatype()) && gpu::is_host(packed.cast()))
    {
        return bypass(Decision::Bypass(Bypass::Device));
    }
    let start = Instant::now();
    // SAFETY: the buffers are what the arguments say, as the caller promises.
    unsafe { run(committed, call.direction, user, count, packed) };
    let nanos = start.elapsed().as_nanos() as u64;
    if watch & CHECK != 0 {
        let checked = check::Checked {
            host,
            committed,
            datatype: call.datatype,
            direction: call.direction,
            user,
            count,
            packed,
            comm: call.comm,
        };
        // SAFETY: the buffers are what the arguments say, as the caller promises. The bytes were
        // packed or unpacked just above.
        unsafe { checked.compare() };
    }
    if watch & COUNT != 0 {
        entry.uses.count(call.direction, count * entry.size() as u64, nanos);
    }
    if watch & PERF != 0 {
        perf::name(committed, call.direction);
    }
    Outcome::Done
}

/// Calls [`learn`] after a bypassed call if `outcome` is `PassAndLearn` and the MPI library has
/// accepted the call. `code` is the error code that the MPI library has returned. `before` is the
/// position at which the call began.
///
/// If the position has changed, the MPI library has accepted the type and the communicator. An
/// error code of 0 alone does not show that, because MPICH returns success after an error handler
/// of the program has returned.
///
/// # Safety
/// If the pointer to the position is not null, it must point to a number.
#[inline]
pub(crate) unsafe fn passed<P: Count>(
    host: &'static Host,
    call: &PackCall<P>,
    outcome: Outcome,
    code: c_int,
    before: Option<i64>,
) {
    if outcome != Outcome::PassAndLearn || code != 0 || before.is_none() {
        return;
    }
    // SAFETY: as the caller promises.
    let after = unsafe { call.position_value() };
    if after > before {
        learn(host, call.datatype, call.comm);
    }
}

/// Records the reason for which a call is bypassed, and returns the outcome of the call.
#[cold]
fn bypass(decision: Decision) -> Outcome {
    let Decision::Bypass(why) = decision else { return Outcome::Pass };
    let _: Option<()> = outcome::bypassed(why);
    if why == Bypass::FirstUse { Outcome::PassAndLearn } else { Outcome::Pass }
}

/// Handles a call with a type that is not decoded or that cannot be converted. If the type was used
/// so much that decoding pays, decodes the type and returns its entry. Otherwise returns the
/// outcome of the bypassed call. `is_known` is true if the type has an entry but cannot be decoded
/// or has no bytes.
#[cold]
fn undecoded<P: Count>(
    host: &'static Host,
    call: &PackCall<P>,
    is_known: bool,
) -> Result<&'static TypeEntry, Outcome> {
    let mut record = match is_known {
        true => Record::NotTaken,
        false if hotness::has(call.datatype & host.mask) => {
            Record::Undecoded { counts: true, declined: false }
        }
        false => Record::Unseen,
    };
    let is_layers = watched_for(LAYER);
    loop {
        let purpose = Purpose::Pack { is_accepted: true, fits: true, own_runs: 0 };
        let facts = Facts { purpose, is_layers, ..Facts::of_type(policy::Call::Message, false, record) };
        match decide(&facts) {
            Decision::Work(Work::Decode) => {
                if count_use(host, call.datatype, call.count.wide(), UseKind::Pack)
                    && let Found::Convert(entry) = table::find(call.datatype & host.mask)
                {
                    return Ok(entry);
                }
                record = Record::Undecoded { counts: true, declined: true };
            }
            decision => return Err(bypass(decision)),
        }
    }
}

/// Records the type and the communicator of a pack or unpack that the MPI library has accepted, if
/// they are new. A new type is recorded or decoded as after a commit ([`types::committed`]), unless
/// the program may have freed it ([`hotness::may_be_dying`]). If it is not known yet whether the
/// MPI library packs raw bytes, a test on the communicator finds that out.
#[cold]
pub(crate) fn learn(host: &'static Host, datatype: HandleWord, comm: HandleWord) {
    if host.abi.is_none() {
        return;
    }
    let handle = datatype & host.mask;
    let is_new = !hotness::has(handle) && matches!(table::find(handle), Found::Unknown);
    if is_new && !hotness::may_be_dying(handle) {
        types::committed(host, datatype);
    }
    if (hotness::has(handle) || matches!(table::find(handle), Found::Convert(_)))
        && let Some(_inside) = reentrancy::Inside::enter()
    {
        guard(|| {
            packs_raw(host, comm);
            comms::accept(host, comm);
        });
    }
}
