//! Policy of this process: which layout classes and payloads are converted in which calls.

use std::path::Path;

use ddtc::internal::committed::Committed;
use ddtc::internal::files;
use ddtc::internal::methods::*;
use ddtc::internal::process::Awaited;
use ddtc_hosts::pieces;
use ddtc_hosts::policy::{Call, Class, Library, Policy, file, has_one_loop};

use crate::host::Host;
use crate::measured::{self, Measured};
use crate::profile_cache::should_warn;
use crate::settings::{Choice, settings};
use crate::similar::SimilarityClass;
use crate::times::Runs;
use crate::warn::warn;

/// Returns the policy for the MPI library of this process. The policy never converts calls that a
/// PMPI layer intercepts, or calls of a kind that may not be converted under the MPI library.
#[inline]
pub(crate) fn policy(host: &Host) -> &'static Policy {
    static POLICY: Awaited<Policy> = Awaited::new();
    POLICY.get_or_init(|| {
        let mut policy = choose(host);
        for call in Call::ALL.into_iter().filter(|&call| host.layers.take(call) || host.never_converts(call))
        {
            policy = Class::ALL.into_iter().fold(policy, |policy, class| policy.with_call(call, class, 0));
        }
        policy
    })
}

/// Rules of the policy for one datatype.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) class: Class,
    /// Set of the calls in which payloads of some size are converted: bit `call as u32` is set for
    /// each such [`Call`].
    pub(crate) calls: u32,
    /// Set of the payload sizes that the policy's table converts in messages, in the encoding that
    /// [`Policy::has`] reads.
    pub(crate) messages: u64,
    /// Measured times of the type's layout, which decide about messages in place of the table;
    /// `None` if layouts of this kind are not timed.
    pub(crate) measured: Option<&'static Measured>,
    /// Similarity class of the type, if it has one.
    pub(crate) similar: Option<&'static SimilarityClass>,
}

impl Rules {
    /// Rules for a type that is never converted.
    pub(crate) const NONE: Rules =
        Rules { class: Class::Dense, calls: 0, messages: 0, measured: None, similar: None };

    /// Returns the rules for a type of the similarity class `similar`.
    pub(crate) fn new(
        host: &Host,
        committed: &Committed,
        similar: Option<&'static SimilarityClass>,
    ) -> Rules {
        let ((class, run), policy) = (Class::and_run(committed.nest()), policy(host));
        let calls = Call::ALL.into_iter().filter(|&call| policy.payloads(call, class) != 0);
        let calls: u32 = calls.map(|call| 1 << call as u32).sum();
        let is_timed =
            settings().policy == Choice::Measure && class != Class::Dense && policy_may_change(host);
        let runs = || {
            let t = committed.datatype();
            let number = (t.size().unsigned_abs() / run.max(1)).max(1);
            let memory = t.extent().unsigned_abs().max(t.true_extent().unsigned_abs());
            let listed = matches!(class, Class::TableShort | Class::TableLong);
            let runs = Runs::new(run, listed, memory.div_ceil(number));
            let runs = if has_one_loop(committed.nest()) { runs.under_one_loop() } else { runs };
            let costs = &host.profile.costs;
            match costs.direct_runs {
                0 => runs,
                _ => runs.with_bytes_per_call(pieces::bytes_per_call(t, costs.in_pieces)),
            }
        };
        let found = || {
            measured::find_or_insert(host, committed.near_hash(), runs, similar.map(|class| &class.measured))
        };
        let measured = if is_timed { found() } else { None };
        // If the layout is timed, the measured times may show that messages of any size gain from
        // conversion, whatever the table says. So the bit for messages is set.
        let calls = calls | if measured.is_some() { 1 << Call::Message as u32 } else { 0 };
        Rules { class, calls, messages: policy.set(class), measured, similar }
    }
}

/// Returns true if measured times may show that messages gain, although the policy's table does not
/// convert them.
fn policy_may_change(host: &Host) -> bool {
    !host.layers.take(Call::Message) && !host.never_converts(Call::Message)
}

fn choose(host: &Host) -> Policy {
    match settings().policy {
        Choice::All => Policy::ALL,
        Choice::Off => Policy::NONE,
        Choice::Measure | Choice::Table => {
            let variable = |name| std::env::var(name).ok();
            let path = file(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref());
            path.and_then(|path| tuned(&path, &host.library)).unwrap_or_else(|| host.profile.shipped_policy())
        }
    }
}

/// Returns the table of this MPI library in the user's file of tables, if the file has one. Writes
/// a warning to standard error if the file cannot be read or parsed. If the reason is a home folder
/// that cannot be read, there is a warning only in a run with a report.
fn tuned(path: &Path, library: &Library) -> Option<Policy> {
    let text = match files::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) if !should_warn(&error, settings().report.is_some()) => return None,
        Err(error) => {
            warn(format_args!("{}: {error}; the shipped policy is used", path.display()));
            return None;
        }
    };
    Policy::parse(&text, &library.to_string()).unwrap_or_else(|error| {
        warn(format_args!("{}: {error}; the shipped policy is used", path.display()));
        None
    })
}
