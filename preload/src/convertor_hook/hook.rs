//! Implementation of the trait [`Hook`] by Open MPI's convertor hook.

use ddtc::internal::kind::Direction;

use super::{described, functions, host, ready, unseen};
use crate::decision::HookState;
use crate::hook::{Hook, HookReport};
use crate::host::Host;
use crate::table::TypeEntry;

/// Open MPI's convertor hook, for callers that know only the trait [`Hook`].
pub(crate) struct OpenMpiHook;

impl Hook for OpenMpiHook {
    fn may_enable(&self, host: &Host) -> bool {
        ready::may_enable(host)
    }

    fn attend_in_call(&self) {
        unseen::attend();
    }

    fn adopted(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64) {
        ready::adopted(host, entry, handle);
    }

    fn attend(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64) {
        ready::attend(host, entry, handle);
    }

    fn persists(&self, host: &'static Host, entry: &'static TypeEntry, handle: u64) {
        ready::persists(host, entry, handle);
    }

    fn record_collective(&self, host: &'static Host, entry: &TypeEntry, bytes: u64) {
        ready::record_collective(host, entry, bytes);
    }

    fn inside(
        &self,
        host: &'static Host,
        entry: &TypeEntry,
        bytes: u64,
        directions: &[Direction],
    ) -> HookState {
        ready::inside(host, entry, bytes, directions)
    }

    fn offer(&self, host: &'static Host, entry: &TypeEntry, bytes: u64, direction: Direction) {
        ready::offer(host, entry, bytes, direction);
    }

    fn misses(&self, host: &'static Host, nanos: &dyn Fn() -> u64) {
        ready::misses(host, nanos);
    }

    fn fold_all(&self) {
        described::fold_all();
    }

    fn report(&self) -> HookReport {
        let failure = ready::failure().map(|why| format!("nothing is moved inside the MPI library: {why}"));
        let unread = (!ready::reads_descriptions()).then(|| {
            "types whose commit was not seen are bypassed: this Open MPI describes them in a form that is not known".to_owned()
        });
        HookReport {
            notes: failure.into_iter().chain(unread).collect(),
            types_unseen: described::all().count() as u64,
            types_different: described::different().into(),
        }
    }

    fn disable(&self) {
        functions::disable_and_forget();
    }

    fn enable_again(&self) {
        host::enable_again();
    }
}
