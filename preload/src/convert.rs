//! Packing and unpacking by compiled code, or the decision to leave a call to the host.
//!
//! A call is converted only if the host would have succeeded: every argument that it checks is checked here, and whatever is
//! not clearly right goes to the host untouched, which raises what it would raise. So no error of the program is ours to report.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::count::Count;
use ddtc::kind::Direction;
use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::policy;
use ddtc_hosts::profile::WireForm;

use crate::canary::packs_raw;
use crate::candidates;
use crate::deciding::met;
use crate::decision::{Code, Decision, Facts, HookState, Known, Payload, Purpose, Record, Work, decide};
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::reentrancy;
use crate::run::run;
use crate::slow_path::{
    CHECK, COUNT, FOREIGN, GPU, LAYER, OPAQUE_GPU, PACKING, PERF, UNPROVEN, UNSEEN, reasons, watched_for,
};
use crate::table::{self, Found, TypeEntry};
use crate::use_kind::UseKind;
use crate::{check, comms, gpu, outcome, perf, types};

/// Arguments of `MPI_Pack` or `MPI_Unpack`, by their roles.
pub(crate) struct Call<P> {
    pub(crate) direction: Direction,
    pub(crate) user: *mut c_void,
    pub(crate) count: P,
    pub(crate) datatype: HandleWord,
    pub(crate) packed: *mut c_void,
    pub(crate) packed_size: P,
    pub(crate) position: *mut P,
    pub(crate) comm: HandleWord,
}

impl<P: Count> Call<P> {
    /// Returns where the position stands; `None`: it is null.
    ///
    /// # Safety
    /// If the position is not null, it must point to a number.
    #[inline]
    pub(crate) unsafe fn at(&self) -> Option<i64> {
        // SAFETY: null, or a number, as the caller promises.
        unsafe { self.position.as_ref() }.map(|p| p.wide())
    }

    /// Moves the position behind the call.
    ///
    /// # Safety
    /// It must not be null.
    #[inline]
    unsafe fn moved(&self, position: P) {
        // SAFETY: not null, as the caller promises, so a position by the rules of MPI.
        unsafe { *self.position = position };
    }
}

/// Outcome of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Packed or unpacked; the position is moved.
    Done,
    /// The host's business.
    Pass,
    /// The host's business, and if it succeeds the type or communicator is worth knowing.
    PassAndLearn,
}

/// Where the packed bytes of a call lie.
#[derive(Clone, Copy)]
struct Place<P> {
    /// Number of packed bytes.
    bytes: u64,
    packed: *mut u8,
    /// The position after them.
    position: P,
}

/// Returns where the packed bytes of a call with elements lie; none: the buffer is too small, or the
/// arguments are wrong, of which the MPI library raises the error.
///
/// # Safety
/// If the position is not null, it must point to a number.
#[inline(always)]
unsafe fn place<P: Count>(entry: &'static TypeEntry, call: &Call<P>) -> Option<Place<P>> {
    // SAFETY: as the caller promises.
    let at = unsafe { call.at() }?;
    let end = entry.size().checked_mul(call.count.wide()).and_then(|bytes| at.checked_add(bytes))?;
    if at < 0 || end < at || end > call.packed_size.wide() {
        return None;
    }
    // No larger than a number of that form: it fits.
    let position = P::narrow(end)?;
    let packed = call.packed.cast::<u8>().wrapping_add(at as usize);
    Some(Place { bytes: (end - at) as u64, packed, position })
}

/// Gathers the facts about a pack or unpack with a decoded type. `watch`: why calls leave the short path.
#[inline(always)]
fn facts<P: Count>(
    host: &'static Host,
    entry: &'static TypeEntry,
    call: &Call<P>,
    place: Option<Place<P>>,
    code: Code,
    watch: u32,
) -> Facts {
    let is_null = !entry.takes(call.user) || call.packed.is_null() || call.position.is_null();
    Facts {
        purpose: Purpose::Pack {
            is_met: watch & UNPROVEN == 0 && comms::accepted(host, call.comm),
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

/// Returns whether the code of a type is ready for a direction.
#[inline(always)]
fn code(entry: &TypeEntry, direction: Direction) -> Code {
    if entry.is_ready(direction) { Code::Ready } else { Code::Missing }
}

/// Converts a call if its type, communicator and kernel are known and nobody watches, and says whether it did. Otherwise nothing is done, and [`convert`] is to look
/// into it. Of a call of some bytes the rest of this library would take most of the time.
///
/// # Safety
/// As [`convert`].
#[inline(always)]
pub(crate) unsafe fn convert_at_once<P: Count>(host: &'static Host, call: &Call<P>) -> bool {
    if reasons() & (PACKING | UNSEEN) != 0 {
        return false;
    }
    let Found::Convert(entry) = table::find(call.datatype & host.mask) else { return false };
    // SAFETY: as the caller promises.
    let place = unsafe { place(entry, call) };
    let Decision::Stage(_) = decide(&facts(host, entry, call, place, code(entry, call.direction), 0)) else {
        return false;
    };
    // SAFETY: the entry is bound, and the program holds its type during the call.
    let (Some(committed), Some(Place { packed, position, .. })) = (unsafe { entry.committed() }, place)
    else {
        return false;
    };
    if !gpu::is_fresh() {
        return false;
    }
    let count = call.count.wide() as u64;
    // SAFETY: memory as the caller promises.
    if !unsafe { committed.try_raw(call.direction, call.user.cast(), count, packed) } {
        return false;
    }
    // SAFETY: the position is not null, because `place` is none for a null position.
    unsafe { call.moved(position) };
    true
}

/// Converts a call if it can.
///
/// # Safety
/// As `MPI_Pack` and `MPI_Unpack`: if the host would succeed, the buffers are what the arguments say.
#[inline]
pub(crate) unsafe fn convert<P: Count>(host: &'static Host, call: &Call<P>) -> Outcome {
    let entry = match table::known(host, call.datatype) {
        Some(entry) if entry.size() > 0 => entry,
        known => match undecoded(host, call, known.is_some()) {
            Ok(entry) => entry,
            Err(outcome) => return outcome,
        },
    };
    // SAFETY: as the caller promises.
    let place = unsafe { place(entry, call) };
    let mut code = code(entry, call.direction);
    // Each kind of work is asked for once, because its result is entered.
    let decision = loop {
        match decide(&facts(host, entry, call, place, code, reasons())) {
            Decision::Work(Work::Compile) => {
                // SAFETY: the entry is bound, and the program holds its type during the call.
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
        // SAFETY: the type is bound and the program holds it during the call; memory as the caller promises.
        guard(|| unsafe {
            let Some(committed) = entry.committed() else { return Outcome::Pass };
            run(committed, call.direction, call.user.cast(), count, packed);
            Outcome::Done
        })
    } else {
        // SAFETY: as above.
        guard(|| unsafe { watched(host, entry, call, count, packed, watch) })
    };
    match outcome {
        Some(Outcome::Done) => {
            outcome::converted();
            // SAFETY: the position is not null, because `place` is none for a null position.
            unsafe { call.moved(position) };
            Outcome::Done
        }
        Some(other) => other,
        None => Outcome::Pass,
    }
}

/// The long path: GPU buffers, counting, checking.
///
/// # Safety
/// As [`convert`].
#[cold]
unsafe fn watched<P: Count>(
    host: &'static Host,
    entry: &'static TypeEntry,
    call: &Call<P>,
    count: u64,
    packed: *mut u8,
    watch: u32,
) -> Outcome {
    // A GPU runtime was loaded meanwhile.
    if watch & OPAQUE_GPU != 0 {
        return bypass(Decision::Bypass(Bypass::Device));
    }
    // SAFETY: the entry is bound, and the program holds its type during the call.
    let Some(committed) = (unsafe { entry.committed() }) else { return Outcome::Pass };
    let user = call.user.cast::<u8>();
    if watch & GPU != 0 && !(gpu::has_host(user.cast(), committed.datatype()) && gpu::is_host(packed.cast()))
    {
        return bypass(Decision::Bypass(Bypass::Device));
    }
    let start = Instant::now();
    // SAFETY: as the caller promises.
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
        // SAFETY: as the caller promises; the bytes were just written.
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

/// After the host has had a call that began at position `before`.
///
/// A moved position tells that the host has accepted type and communicator. Its code does not: after an error handler of the
/// program that returns, MPICH returns success.
///
/// # Safety
/// If the position is not null, it must point to a number.
#[inline]
pub(crate) unsafe fn passed<P: Count>(
    host: &'static Host,
    call: &Call<P>,
    outcome: Outcome,
    code: c_int,
    before: Option<i64>,
) {
    // SAFETY: as the caller promises.
    if outcome == Outcome::PassAndLearn && code == 0 && before.is_some() && unsafe { call.at() } > before {
        learn(host, call.datatype, call.comm);
    }
}

/// The MPI library gets the call, because of this decision.
#[cold]
fn bypass(decision: Decision) -> Outcome {
    let Decision::Bypass(why) = decision else { return Outcome::Pass };
    let _: Option<()> = outcome::bypassed(why);
    if why == Bypass::FirstUse { Outcome::PassAndLearn } else { Outcome::Pass }
}

/// A call with a type that is not decoded: it is, if its uses have paid for that. `is_known`: it cannot be
/// decoded.
#[cold]
fn undecoded<P: Count>(
    host: &'static Host,
    call: &Call<P>,
    is_known: bool,
) -> Result<&'static TypeEntry, Outcome> {
    let mut record = match is_known {
        true => Record::NotTaken,
        false if candidates::has(call.datatype & host.mask) => {
            Record::Noted { counts: true, declined: false }
        }
        false => Record::Unseen,
    };
    let is_layers = watched_for(LAYER);
    loop {
        let purpose = Purpose::Pack { is_met: true, fits: true, own_runs: 0 };
        let facts = Facts { purpose, is_layers, ..Facts::of_type(policy::Call::Message, false, record) };
        match decide(&facts) {
            Decision::Work(Work::Decode) => {
                if met(host, call.datatype, call.count.wide(), UseKind::Pack)
                    && let Found::Convert(entry) = table::find(call.datatype & host.mask)
                {
                    return Ok(entry);
                }
                record = Record::Noted { counts: true, declined: true };
            }
            decision => return Err(bypass(decision)),
        }
    }
}

/// After the host has accepted a call: decodes its type and tries its communicator, if they are new.
#[cold]
pub(crate) fn learn(host: &'static Host, datatype: HandleWord, comm: HandleWord) {
    if host.abi.is_none() {
        return;
    }
    types::committed(host, datatype);
    let handle = datatype & host.mask;
    if (candidates::has(handle) || matches!(table::find(handle), Found::Convert(_)))
        && let Some(_inside) = reentrancy::Inside::enter()
    {
        guard(|| {
            packs_raw(host, comm);
            comms::accept(host, comm);
        });
    }
}
