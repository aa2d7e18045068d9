//! The end of an epoch: from an initialization of MPI, of the world or of the first session, to its end.

use crate::guard::guard;
use crate::host::Host;
use crate::reentrancy::Inside;
use crate::remembered::KEEPING;
use crate::{comms, eligible, evidence, files, kin, own_types, remembered, report, requests, types};

/// Handle values are about to lose their meaning: everything known about them is forgotten, and the report is written. If
/// another session or the world goes on, its types are met again.
pub(crate) fn end_epoch(host: &'static Host) {
    if host.abi.is_some()
        && let Some(_inside) = Inside::enter()
    {
        guard(|| {
            requests::finish(host);
            types::end_epoch(host);
            own_types::end_epoch(host);
            comms::end_epoch(host);
            files::end_epoch();
            eligible::end_epoch();
            if report::rank(host).is_some_and(|(rank, _)| rank < KEEPING) {
                remembered::keep(host, &[evidence::all(), kin::all()].concat());
            }
            report::write(host);
        });
    }
}
