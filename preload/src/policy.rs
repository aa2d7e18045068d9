//! The policy of this process: which layouts and payloads of messages are converted.

use std::path::Path;

use ddtc::committed::Committed;
use ddtc::files;
use ddtc::policy::{Class, Library, Policy, file};
use ddtc::process::Awaited;

use crate::host::Host;
use crate::settings::{Choice, settings};
use crate::warn::warn;

/// Payloads that are converted for a type.
pub(crate) fn payloads(host: &Host, committed: &Committed) -> u64 {
    static POLICY: Awaited<Policy> = Awaited::new();
    POLICY.get_or_init(|| choose(&Library::of(&host.version))).set(Class::of(committed.nest()))
}

fn choose(library: &Library) -> Policy {
    match settings().policy {
        Choice::All => Policy::ALL,
        Choice::Off => Policy::NONE,
        Choice::Table => {
            let variable = |name| std::env::var(name).ok();
            let path = file(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref());
            path.and_then(|path| tuned(&path, library)).unwrap_or_else(|| Policy::shipped(library))
        }
    }
}

/// The user's table, if there is one for this library.
fn tuned(path: &Path, library: &Library) -> Option<Policy> {
    let text = match files::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
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
