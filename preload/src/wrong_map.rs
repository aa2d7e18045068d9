//! Datatypes whose bytes the MPI library copies to or from other places than the definition of the
//! type says, because of a fault in the MPI library.
//!
//! ddtc bypasses such a type. A program that uses the type at both ends of a transfer works without
//! ddtc, because the MPI library makes the same error at both ends. If ddtc converted one end, the
//! transfer would go wrong. Three tests find these types:
//!
//! * When a type is decoded, the size and the true bounds that the MPI library returns are compared
//!   with those that ddtc computes.
//! * When a type is decoded, its constructors are looked up in the table of known faults
//!   ([`ddtc_hosts::faults`]).
//! * When a type is timed, the bytes that the MPI library has packed are compared with those that
//!   ddtc's kernel has packed. A difference ends the conversion of all types with the same
//!   constructors for the rest of the process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ddtc::Result;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::methods::*;
use ddtc::internal::process::{Lazy, Mutex};
use ddtc_hosts::faults;
use ddtc_hosts::policy::Family;

use crate::counted;
use crate::host::{HandleWord, Host};
use crate::introspect::Types;
use crate::table;

/// Structural hashes of the types whose bytes the MPI library and ddtc's kernel have packed
/// differently.
static DIFFERENT: Lazy<Mutex<HashSet<u128>>> = Lazy::new(Mutex::default);
/// True once [`DIFFERENT`] has an entry. It is read before the lock of [`DIFFERENT`] is taken, so
/// that most decodings need not take the lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// Maximum number of hashes in [`DIFFERENT`]. If another type is found to differ, [`found`] still
/// ends the conversion of that type and of decoded types with the same constructors, but types with
/// these constructors that are decoded later are converted.
const MAX_DIFFERENT: usize = 4096;

/// Returns true if the MPI library copies the bytes of a type that was just decoded to or from
/// other places than the definition of the type says. In that case counts the type, and records a
/// line about it for the report.
///
/// # Errors
/// Errors that the MPI library returns when it is queried about the type.
pub(crate) fn is_wrong(host: &Host, types: &Types, handle: HandleWord, t: &Datatype) -> Result<bool> {
    let why = match faults::misplaces(host.library, t) {
        // Without a known family, the fault is only possible.
        Some(fault) if host.library.family == Family::Other => {
            format!("{}, and this MPI library may do so too", fault.text)
        }
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

/// Returns true if the MPI library was found to pack other bytes than ddtc's kernel for a type with
/// the same constructors.
pub(crate) fn packs_differently(t: &Datatype) -> bool {
    ANY.load(Relaxed) && DIFFERENT.lock().contains(&t.structural_hash())
}

/// Reason that the report gives for bypassing a type whose bytes the MPI library and ddtc's kernel
/// have packed differently.
const PACKED: &str = "the MPI library packs other bytes than the definition requires";

/// Ends the conversion of a type, and of all types with the same constructors, because the MPI
/// library was found to pack other bytes than ddtc's kernel.
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
