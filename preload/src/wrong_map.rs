//! Datatypes whose bytes the MPI library moves to or from other places than the definition says.
//!
//! Such a type is bypassed. A program that uses it at both ends of a transfer works without this
//! library, because the MPI library errs alike at both ends, and would go wrong if one end were
//! converted. Three tests find these types:
//!
//! * When a type is decoded, the size and the true bounds that the MPI library returns are compared
//!   with ours.
//! * When a type is decoded, its constructors are looked up in the table of known faults
//!   ([`ddtc_hosts::faults`]).
//! * When a type is timed, the bytes that the MPI library has packed are compared with those that
//!   our kernel has packed. A difference ends the conversion of all types of the same constructors
//!   for the rest of the process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ddtc::Result;
use ddtc::datatype::Datatype;
use ddtc::process::{Lazy, Mutex};
use ddtc_hosts::faults;

use crate::counted;
use crate::host::{HandleWord, Host};
use crate::introspect::Types;
use crate::table;

/// Structural hashes of the types whose packed bytes differed.
static DIFFERENT: Lazy<Mutex<HashSet<u128>>> = Lazy::new(Mutex::default);
/// Whether [`DIFFERENT`] has any entry, so that most decodings need not take its lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// Maximum number of hashes in [`DIFFERENT`]. If more types differ, [`found`] still ends the
/// conversion of those that are decoded by then, but types of their constructors that are decoded
/// later are not recognized.
const MAX_DIFFERENT: usize = 4096;

/// Returns true if the MPI library moves the bytes of a type that was just decoded to or from other
/// places than its definition says. Then the type is counted, and named in the report.
///
/// # Errors
/// Errors of the MPI library.
pub(crate) fn is_wrong(host: &Host, types: &Types, handle: HandleWord, t: &Datatype) -> Result<bool> {
    let why = match faults::misplaces(host.library, t) {
        Some(fault) => fault.text.to_owned(),
        None if packs_differently(t) => PACKED.to_owned(),
        None => match types.difference(handle, t)? {
            Some(why) => why,
            None => return Ok(false),
        },
    };
    counted::bypassed_for_map(t, &why);
    Ok(true)
}

/// Returns true if the MPI library was seen to pack other bytes than the definition says for a type
/// of the same constructors.
pub(crate) fn packs_differently(t: &Datatype) -> bool {
    ANY.load(Relaxed) && DIFFERENT.lock().contains(&t.structural_hash())
}

/// Reason that the report gives for a type whose packed bytes differed.
const PACKED: &str = "the MPI library packs other bytes than the definition names";

/// Ends the conversion of a type, and of all types of the same constructors, because the MPI
/// library was seen to pack other bytes than our kernel.
#[cold]
pub(crate) fn found(t: &Datatype) {
    counted::bypassed_for_map(t, PACKED);
    let hash = t.structural_hash();
    {
        let mut different = DIFFERENT.lock();
        if different.len() < MAX_DIFFERENT {
            different.insert(hash);
        }
    }
    ANY.store(true, Relaxed);
    table::end_all(hash);
}
