//! Counts the outcome of each call for the report: looked at after it, only while calls are counted.
//!
//! A call of whose buffers one has a derived type, and of which nothing was converted, was left to the host. Why, for each of its types: it is no candidate (its commit
//! was not seen, it has no gaps, the policy does not have it), or what was noted where the conversion was decided.

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

/// The arguments of a call that say which of its types it uses.
pub(crate) struct Arguments {
    pub(crate) call: Call,
    /// Packs and unpacks are converted whatever the policy says.
    pub(crate) always: bool,
    pub(crate) root: Option<c_int>,
    pub(crate) comm: Option<HandleWord>,
    /// In their order: what is sent comes first.
    pub(crate) types: Vec<HandleWord>,
}

/// Ends a call that returned `code`.
#[cold]
pub(crate) fn end(host: &'static Host, counted: Counted, code: c_int, given: impl FnOnce() -> Arguments) {
    let outcome = counted.outcome();
    // A call that the MPI library has refused counts neither as converted nor as bypassed.
    if code == 0 && outcome.converted {
        CALLS_CONVERTED.add();
    } else if code == 0 && host.abi.is_some() {
        let given = given();
        // Nothing is asked about a communicator that may be a layer's.
        let used = if given.is_layers(host) { &given.types } else { given.used(host) };
        let why = |&datatype: &HandleWord| why(host, &given, datatype, outcome.noted);
        // That of the type which came closest to being converted.
        if let Some(left) = used.iter().filter_map(why).max_by_key(|&left| closeness(left)) {
            add(left);
        }
    }
    drop(counted);
    report::from_time_to_time(host);
}

/// Ends a pack or unpack that was not made by the C functions.
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

/// Why a type is the host's; `None`: it is a named one.
fn why(host: &Host, given: &Arguments, datatype: HandleWord, noted: Option<Bypass>) -> Option<Bypass> {
    let handle = datatype & host.mask;
    if handle == 0 || handle == host.type_null || host.named(handle).is_some() {
        return None;
    }
    let purpose = match given.always {
        true => Purpose::Pack { is_met: true, fits: true, own_runs: i64::MAX },
        false => Purpose::Argument { call: given.call, persistent: false },
    };
    let record = known_of_type(host, datatype, given.call, given.always);
    let facts =
        Facts { purpose, is_layers: given.is_layers(host), ..Facts::of_type(given.call, false, record) };
    Some(match decide(&facts) {
        // What was noted about a type whose commit was seen is more exact.
        Decision::Bypass(Bypass::Rare) => noted.unwrap_or(Bypass::Rare),
        Decision::Bypass(why) => why,
        Decision::Hook => Bypass::Hook,
        _ => noted.unwrap_or(Bypass::Other),
    })
}

fn closeness(left: Bypass) -> u8 {
    match left {
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
    /// Says whether a PMPI layer takes calls of this kind.
    fn is_layers(&self, host: &Host) -> bool {
        if self.always { host.layers.have(FunctionGroup::Pack) } else { host.layers.take(self.call) }
    }

    /// The types that this rank uses: a gather's receive type is the root's alone, so is a scatter's send type.
    fn used(&self, host: &'static Host) -> &[HandleWord] {
        let rooted = matches!(self.call, Call::Gather | Call::Scatter);
        let (Some(root), Some(comm), [send, receive]) = (self.root, self.comm, self.types.as_slice()) else {
            return &self.types;
        };
        // The host has accepted the communicator.
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
