//! Packing and unpacking by compiled code, or the decision to leave a call to the host.
//!
//! A call is converted only if the host would have succeeded: every argument that it checks is checked here, and whatever is
//! not clearly right goes to the host untouched, which raises what it would raise. So no error of the program is ours to report.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::committed::Committed;
use ddtc::count::Count;
use ddtc::datatype::Named;
use ddtc::kind::Direction;
use ddtc_hosts::left::Left;

use crate::candidates;
use crate::guard::guard;
use crate::host::{HandleWord, Host};
use crate::reentrancy::Inside;
use crate::settings::settings;
use crate::slow_path::{
    CHECK, COUNT, FOREIGN, GPU, LAYER, OPAQUE_GPU, PACKING, PERF, UNPROVEN, UNSEEN, proven, reasons, watch,
    watched_for,
};
use crate::table::{self, Found, TypeEntry};
use crate::use_kind::UseKind;
use crate::warn::warn;
use crate::{check, comms, gpu, left, perf, types};

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

/// What the arguments of a call say, where the host would accept them.
struct Accepted<P> {
    count: u64,
    /// Packed bytes of the call.
    bytes: u64,
    /// Where they begin.
    packed: *mut u8,
    /// The position behind them.
    position: P,
}

/// Why a call is the host's.
enum Refused {
    /// For a reason that is counted.
    For(Left),
    /// The host says why.
    Wrong,
    /// The host has not accepted its communicator yet.
    Unmet,
}

/// Checks the arguments of a call as the host would.
///
/// # Safety
/// If the position is not null, it must point to a number.
#[inline(always)]
unsafe fn accepted<P: Count>(
    host: &'static Host,
    entry: &'static TypeEntry,
    call: &Call<P>,
) -> Result<Accepted<P>, Refused> {
    let count = call.count.wide();
    if count <= 0 {
        return Err(Refused::For(Left::NothingToMove));
    }
    if !entry.takes(call.user) || call.packed.is_null() || call.position.is_null() {
        return Err(Refused::For(Left::NullBuffer));
    }
    if !comms::accepted(host, call.comm) {
        return Err(Refused::Unmet);
    }
    // SAFETY: not null, so a number, as the caller promises.
    let at = unsafe { *call.position }.wide();
    let end = entry.size().checked_mul(count).and_then(|bytes| at.checked_add(bytes));
    let end = end.filter(|&end| at >= 0 && end <= call.packed_size.wide()).ok_or(Refused::Wrong)?;
    if end - at >= host.own_runs && entry.is_a_run() {
        return Err(Refused::For(Left::Contiguous));
    }
    // No larger than a number of that form: it fits.
    let position = P::narrow(end).ok_or(Refused::Wrong)?;
    let packed = call.packed.cast::<u8>().wrapping_add(at as usize);
    Ok(Accepted { count: count as u64, bytes: (end - at) as u64, packed, position })
}

/// Converts a call if its type, communicator and kernel are known and nobody watches, and says whether it did: else nothing is done, and [`convert`] is to look
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
    let Ok(Accepted { count, packed, position, .. }) = (unsafe { accepted(host, entry, call) }) else {
        return false;
    };
    // SAFETY: the entry is bound, and the program holds its type during the call.
    let Some(committed) = (unsafe { entry.committed() }) else { return false };
    if !entry.is_ready(call.direction) {
        return false;
    }
    // SAFETY: memory as the caller promises.
    if !gpu::is_fresh() || !unsafe { committed.try_raw(call.direction, call.user.cast(), count, packed) } {
        return false;
    }
    // SAFETY: not null: the call is accepted.
    unsafe { call.moved(position) };
    true
}

/// Converts a call if it can.
///
/// # Safety
/// As `MPI_Pack` and `MPI_Unpack`: if the host would succeed, the buffers are what the arguments say.
#[inline]
pub(crate) unsafe fn convert<P: Count>(host: &'static Host, call: &Call<P>) -> Outcome {
    let entry = match table::find(call.datatype & host.mask) {
        Found::Convert(entry) => entry,
        Found::Pass => return Outcome::Pass,
        Found::Unknown => match first_use(host, call) {
            Ok(entry) => entry,
            Err(outcome) => return outcome,
        },
    };
    // SAFETY: as the caller promises.
    let Accepted { count, bytes, packed, position } = match unsafe { accepted(host, entry, call) } {
        Ok(accepted) => accepted,
        Err(Refused::For(why)) => return passed_for(why),
        Err(Refused::Wrong) => return Outcome::Pass,
        Err(Refused::Unmet) => return to_be_met(),
    };
    // SAFETY: the entry is bound.
    if !unsafe { entry.ready(call.direction, bytes) } {
        return passed_for(Left::Rare);
    }
    gpu::refresh();
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
            left::converted();
            // SAFETY: not null: the call is accepted.
            unsafe { call.moved(position) };
            Outcome::Done
        }
        Some(other) => other,
        None => Outcome::Pass,
    }
}

/// # Safety
/// As `Committed::pack_raw` and `Committed::unpack_raw`.
#[inline]
pub(crate) unsafe fn run(
    committed: &Committed,
    direction: Direction,
    user: *mut u8,
    count: u64,
    packed: *mut u8,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match direction {
            Direction::Pack => committed.pack_raw(user, count, packed),
            Direction::Unpack => committed.unpack_raw(packed, user, count),
        }
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
    if watch & LAYER != 0 {
        return passed_for(Left::Layer);
    }
    if watch & UNPROVEN != 0 {
        return to_be_met();
    }
    if watch & (FOREIGN | OPAQUE_GPU) != 0 {
        return passed_for(if watch & FOREIGN != 0 { Left::Untried } else { Left::Device });
    }
    // SAFETY: the entry is bound.
    let Some(committed) = (unsafe { entry.committed() }) else { return Outcome::Pass };
    let user = call.user.cast::<u8>();
    if watch & GPU != 0 && !(gpu::has_host(user.cast(), committed.datatype()) && gpu::is_host(packed.cast()))
    {
        return passed_for(Left::Device);
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

/// The host's business.
#[cold]
fn passed_for(why: Left) -> Outcome {
    let _: Option<()> = left::left(why);
    Outcome::Pass
}

/// The host's business until it has accepted type and communicator.
#[cold]
fn to_be_met() -> Outcome {
    let _: Option<()> = left::left(Left::FirstUse);
    Outcome::PassAndLearn
}

/// A call with a type that is not decoded: it is, if its uses have paid for that.
#[cold]
fn first_use<P: Count>(host: &'static Host, call: &Call<P>) -> Result<&'static TypeEntry, Outcome> {
    if watched_for(LAYER) {
        return Err(passed_for(Left::Layer));
    }
    if !candidates::has(call.datatype & host.mask) {
        return Err(to_be_met());
    }
    if !types::met(host, call.datatype, call.count.wide(), UseKind::Pack) {
        return Err(passed_for(Left::Rare));
    }
    match table::find(call.datatype & host.mask) {
        Found::Convert(entry) => Ok(entry),
        Found::Pass | Found::Unknown => Err(Outcome::Pass),
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
        && let Some(_inside) = Inside::enter()
    {
        guard(|| {
            packs_raw(host, comm);
            comms::accept(host, comm);
        });
    }
}

/// Says whether the host packs headerless raw bytes; tries it if that is not known yet.
pub(crate) fn packs_raw(host: &'static Host, comm: HandleWord) -> bool {
    if watched_for(UNPROVEN) {
        prove(host, comm);
    }
    !watched_for(FOREIGN)
}

/// Puts the calls on the long path for what the environment asks.
fn watch_as_asked() {
    let settings = settings();
    let asked = [(settings.counting(), COUNT), (settings.check, CHECK), (settings.perf_map, PERF)];
    asked.iter().filter(|(on, _)| *on).for_each(|&(_, reason)| watch(reason));
}

/// Looks whether the host packs headerless raw bytes: `vector(3, 1, 2, int)` there and back.
fn prove(host: &'static Host, comm: HandleWord) {
    // SAFETY: calls with valid arguments and buffers that are large enough.
    let raw = unsafe { canary(host, comm) }.unwrap_or(false);
    if !raw {
        warn(format_args!("{}: MPI_Pack does not give raw bytes; nothing is converted", host.version));
        watch(FOREIGN);
    }
    watch_as_asked();
    proven();
}

/// # Safety
/// The communicator must be valid.
unsafe fn canary(host: &'static Host, comm: HandleWord) -> Option<bool> {
    let f = &host.f;
    let mut user: [c_int; 5] = [0x0102_0304, -1, 0x1122_3344, -2, 0x7a7b_7c7d];
    let mut packed = [0u8; 64];
    let mut datatype: HandleWord = 0;
    let mut position = 0;
    // SAFETY: as the standard says of each call; handles are read and written in place.
    unsafe {
        if f.type_vector?(3, 1, 2, host.handle(Named::Int)?, (&raw mut datatype).cast()) != 0
            || f.type_commit?((&raw mut datatype).cast()) != 0
        {
            return None;
        }
        let code = host.counted.pack?(
            user.as_ptr().cast(),
            1,
            datatype,
            packed.as_mut_ptr().cast(),
            64,
            &raw mut position,
            comm,
        );
        let expected = [user[0], user[2], user[4]].map(c_int::to_ne_bytes).concat();
        let mut raw = code == 0 && position == 12 && packed[..12] == expected;
        let stream = [5, 6, 7].map(c_int::to_ne_bytes).concat();
        position = 0;
        let code = host.counted.unpack?(
            stream.as_ptr().cast(),
            12,
            &raw mut position,
            user.as_mut_ptr().cast(),
            1,
            datatype,
            comm,
        );
        raw &= code == 0 && position == 12 && user == [5, -1, 6, -2, 7];
        f.type_free?((&raw mut datatype).cast());
        Some(raw)
    }
}
