//! Timing of the packing of messages of one type and one size class, when a decision about a
//! message requests it.

use ddtc::internal::kind::Direction;

use crate::guard::guard;
use crate::hooks::adopted;
use crate::host::Host;
use crate::measured::Measured;
use crate::reentrancy::Inside;
use crate::slow_path::{FOREIGN, GPU, OPAQUE_GPU, reasons};
use crate::table::TypeEntry;
use crate::timed::Timing;
use crate::use_kind::CompletedBy;
use crate::user_buffer::UserBuffer;
use crate::{eligible, gpu, overhead_budget, timed, wrong_map};

/// Measures how long the MPI library and our kernel take to pack a message that is about to be sent
/// or received. The times serve this message and all later messages of the same layout and size
/// class. Must not be called for a persistent message, whose buffer belongs to the program until
/// the message is started. Does nothing in any of these cases: the overhead budget is used up, the
/// packing of the MPI library may not be timed ([`eligible::timing`]) or does not produce raw bytes,
/// a GPU runtime is loaded, or this thread is inside another call that ddtc makes to the MPI
/// library.
#[cold]
pub(crate) fn time(
    host: &'static Host,
    entry: &'static TypeEntry,
    measured: &Measured,
    UserBuffer { buf, count, datatype, .. }: UserBuffer,
    bytes: u64,
    direction: Direction,
) {
    if !overhead_budget::allows(0) {
        return;
    }
    let eligible = eligible::timing(host);
    gpu::refresh();
    if !eligible || reasons() & (FOREIGN | OPAQUE_GPU | GPU) != 0 {
        return;
    }
    let Some(_inside) = Inside::enter() else { return };
    guard(|| {
        // SAFETY: `committed` and `ready` require that nobody retires the entry: the entry is
        // bound, and the program holds its type during the call. `times` requires what `MPI_Pack`
        // of these elements requires: the program passes them to a send or a receive, so they can
        // be read, and MPI forbids the program to write to them during the call. The MPI library
        // has accepted `datatype` as committed, and `committed` is its compiled form.
        unsafe {
            let Some(committed) = entry.committed().filter(|_| entry.ready(Direction::Pack, u64::MAX)) else {
                return;
            };
            let times = match overhead_budget::on(|| timed::times(host, buf, count, datatype, committed)) {
                Timing::Same(times) => times,
                Timing::Different => {
                    wrong_map::found(committed.datatype());
                    return measured.give_up(bytes);
                }
                Timing::Failed => return measured.give_up(bytes),
            };
            measured.learn_bytes(&host.profile.costs, bytes, times);
            if measured.wants(bytes, CompletedBy::SameCall, false) {
                entry.ready(direction, u64::MAX);
            }
            if measured.gain_inside(bytes).is_some() {
                adopted(host, entry, datatype & host.mask);
            }
        }
    });
}
