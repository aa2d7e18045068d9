//! Counts of bypassed calls for the report, by reason. A call is examined after it has returned,
//! and only while calls are counted.
//!
//! A call counts as bypassed if at least one of its buffers has a derived type and none of its
//! buffers was converted. Each derived type of the call has a bypass reason. If the type itself
//! rules a conversion out (its commit was not seen, it has no gaps, or the policy does not convert
//! it), that is the reason. Otherwise the reason is the first one that was recorded when ddtc
//! decided about the buffers of the call. The whole call is counted under the reason of the type
//! that came closest to being converted.

use std::ffi::c_int;

use ddtc_hosts::bypass::Bypass;
use ddtc_hosts::layer::Group as FunctionGroup;
use ddtc_hosts::policy::Call;

use crate::counted::CALLS_CONVERTED;
use crate::deciding::known_of_type;
use crate::decision::{Decision, Facts, Purpose, decide};
use crate::group::{Group, Role};
use crate::host::{HandleWord, Host};
use crate::outcome::{Counted, add};
use crate::report;

/// Arguments of a call, as far as they decide which of its types this rank uses.
pub(crate) struct Arguments {
    pub(crate) call: Call,
    /// True if the call is a pack or unpack, which is converted whatever the policy says.
    pub(crate) always: bool,
    pub(crate) root: Option<c_int>,
    pub(crate) comm: Option<HandleWord>,
    /// Types in the order of the arguments: the send type comes before the receive type.
    pub(crate) types: Vec<HandleWord>,
}

/// Finishes the count of a call that has returned the error code `code`. If the call was bypassed,
/// counts it under its bypass reason. `given` returns the arguments of the call. It is called only
/// if the call has succeeded and was not converted.
#[cold]
pub(crate) fn end(host: &'static Host, counted: Counted, code: c_int, given: impl FnOnce() -> Arguments) {
    let outcome = counted.outcome();
    // A call that has returned an error counts neither as converted nor as bypassed.
    if code == 0 && outcome.converted {
        CALLS_CONVERTED.add();
    } else if code == 0 && host.abi.is_some() {
        let given = given();
        // `used` passes the communicator to functions of the MPI library. If a PMPI layer takes the
        // call, the handle may be one that only the layer knows. Then the MPI library must not get
        // the handle, and all types count as used.
        let used = if given.is_layers(host) { &given.types } else { given.used(host) };
        let why = |&datatype: &HandleWord| why(host, &given, datatype, outcome.bypass_reason);
        // The call counts under the bypass reason of the type that came closest to being converted.
        if let Some(reason) = used.iter().filter_map(why).max_by_key(|&reason| closeness(reason)) {
            add(reason);
        }
    }
    drop(counted);
    report::from_time_to_time(host);
}

/// Finishes the count of a pack or unpack that the program has called through the Fortran binding.
/// `code`: the error code that the call has returned.
#[cold]
pub(crate) fn end_packing(host: &'static Host, counted: Counted, code: c_int, datatype: HandleWord) {
    let types = vec![datatype];
    end(host, counted, code, || Arguments {
        call: Call::Message,
        always: true,
        root: None,
        comm: None,
        types,
    });
}

/// Returns the reason for which the buffer of one type of a call was bypassed. Returns `None` for a
/// named type or a null handle. `recorded`: the first bypass reason that was recorded when ddtc
/// decided about the buffers of the call.
fn why(host: &Host, given: &Arguments, datatype: HandleWord, recorded: Option<Bypass>) -> Option<Bypass> {
    let handle = datatype & host.mask;
    if handle == 0 || handle == host.type_null || host.named(handle).is_some() {
        return None;
    }
    if !given.always && host.never_converts(given.call) {
        return Some(Bypass::Untried);
    }
    let purpose = match given.always {
        true => Purpose::Pack { is_accepted: true, fits: true, own_runs: i64::MAX },
        false => Purpose::Argument { call: given.call, persistent: false },
    };
    let record = known_of_type(host, datatype, given.call, given.always);
    let facts =
        Facts { purpose, is_layers: given.is_layers(host), ..Facts::of_type(given.call, false, record) };
    Some(match decide(&facts) {
        // `decide` returns `Rare` here for a type whose commit was seen and that is not decoded.
        // ddtc examined the use of the type during the call, so a reason that was recorded then is
        // more exact than `Rare`.
        Decision::Bypass(Bypass::Rare) => recorded.unwrap_or(Bypass::Rare),
        Decision::Bypass(why) => why,
        Decision::Hook => Bypass::Hook,
        _ => recorded.unwrap_or(Bypass::Other),
    })
}

/// Returns a number that ranks bypass reasons: the higher the number, the closer a buffer that was
/// bypassed for this reason came to being converted.
fn closeness(reason: Bypass) -> u8 {
    match reason {
        Bypass::UnknownType | Bypass::TypeNotTaken | Bypass::Rare => 0,
        Bypass::Contiguous => 1,
        Bypass::Policy => 2,
        Bypass::TooSmall
        | Bypass::TooLarge
        | Bypass::NullBuffer
        | Bypass::FirstUse
        | Bypass::NothingToMove
        | Bypass::Untried
        | Bypass::Device
        | Bypass::OverStagingLimit
        | Bypass::NoSubstitute
        | Bypass::UnseenCompletion
        | Bypass::AfterErrors
        | Bypass::Layer
        | Bypass::Hook
        | Bypass::Other => 3,
    }
}

impl Arguments {
    /// Returns true if a PMPI layer that comes after this library takes this call, because the
    /// layer has a function of the call's group.
    fn is_layers(&self, host: &Host) -> bool {
        if self.always { host.layers.have(FunctionGroup::Pack) } else { host.layers.take(self.call) }
    }

    /// Returns the types of the call that this rank uses, which are all types except in a gather or
    /// a scatter. There, only the root uses the receive type of the gather or the send type of the
    /// scatter. On an intercommunicator the root uses only that type, and the other ranks of the
    /// root's group use no type at all. If the ranks of the communicator cannot be found out,
    /// returns all types.
    fn used(&self, host: &'static Host) -> &[HandleWord] {
        let rooted = matches!(self.call, Call::Gather | Call::Scatter);
        let (Some(root), Some(comm), [send, receive]) = (self.root, self.comm, self.types.as_slice()) else {
            return &self.types;
        };
        // The call has succeeded, so the communicator is valid and may be passed to the MPI
        // library.
        let Some((group, role)) = rooted
            .then(|| Group::ask(host, comm))
            .flatten()
            .and_then(|group| Some((group, group.role(host, root)?)))
        else {
            return &self.types;
        };
        let (at_root, everywhere) = if self.call == Call::Gather { (receive, send) } else { (send, receive) };
        match (role == Role::Root, group.takes_part(role)) {
            (true, true) => &self.types,
            (true, false) => std::slice::from_ref(at_root),
            (false, true) => std::slice::from_ref(everywhere),
            (false, false) => &[],
        }
    }
}
