//! Work on a type that a decision asks for: the packing of messages of one size is timed.

use ddtc::kind::Direction;

use crate::evidence::Evidence;
use crate::guard::guard;
use crate::hooks::adopted;
use crate::host::Host;
use crate::reentrancy::Inside;
use crate::slow_path::{FOREIGN, GPU, OPAQUE_GPU, reasons};
use crate::table::TypeEntry;
use crate::timed::Timing;
use crate::use_kind::CompletedBy;
use crate::user_buffer::UserBuffer;
use crate::{eligible, gpu, prospect, spending, timed, wrong_map};

/// Times the packing of a message that is about to be sent or received, for it and all later messages of its
/// layout and size. Does nothing if no more time may be spent, if the MPI library is not known to allow
/// it, if a GPU runtime is loaded, or inside another piece of our own work.
#[cold]
pub(crate) fn time(
    host: &'static Host,
    entry: &'static TypeEntry,
    evidence: &Evidence,
    UserBuffer { buf, count, datatype, .. }: UserBuffer,
    bytes: u64,
    direction: Direction,
) {
    if !spending::allows(0) {
        return;
    }
    let eligible = eligible::timing(host);
    gpu::refresh();
    if !eligible || reasons() & (FOREIGN | OPAQUE_GPU | GPU) != 0 {
        return;
    }
    let Some(_inside) = Inside::enter() else { return };
    guard(|| {
        // SAFETY: the entry is bound, and the program holds the type during the call; what it sends or receives into can be read.
        unsafe {
            let Some(committed) = entry.committed().filter(|_| entry.ready(Direction::Pack, u64::MAX)) else {
                return;
            };
            let times = match spending::on(|| timed::times(host, buf, count, datatype, committed)) {
                Timing::Same(times) => times,
                Timing::Different => {
                    wrong_map::found(committed.datatype());
                    return evidence.give_up(bytes);
                }
                Timing::Failed => return evidence.give_up(bytes),
            };
            evidence.learn_bytes(&host.profile.costs, bytes, times);
            prospect::found(committed.datatype(), entry.rules().prospect());
            if evidence.wants(bytes, CompletedBy::SameCall, false) {
                entry.ready(direction, u64::MAX);
            }
            if evidence.is_ahead(bytes) {
                adopted(host, entry, datatype & host.mask);
            }
        }
    });
}
