//! Datatypes of which the MPI library moves other places than their definition names.
//!
//! Such a type is left to the library: a program that uses it at both ends of a transfer is right,
//! because the library errs alike at both, and would go wrong if one end were converted. Three tests
//! find these types:
//!
//! * At decoding, the library's size and true bounds are compared with ours.
//! * At decoding, the constructors are looked up in the table of known faults
//!   ([`ddtc_hosts::faults`]).
//! * Where a type is timed, what the library and our kernel packed is compared. A difference ends the
//!   conversion of all types of the same constructors, for the rest of the process.

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
/// Whether there are any.
static ANY: AtomicBool = AtomicBool::new(false);

/// Maximum number of types that [`DIFFERENT`] keeps. After that, types are ended one by one.
const MAX_DIFFERENT: usize = 4096;

/// Says whether a type that was just decoded is the library's. It is counted and named then.
///
/// # Errors
/// What the library says.
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

/// Says whether the library was seen to pack other bytes of a type of the same constructors than its
/// definition names.
pub(crate) fn packs_differently(t: &Datatype) -> bool {
    ANY.load(Relaxed) && DIFFERENT.lock().contains(&t.structural_hash())
}

/// Why a type is the library's whose packed bytes were compared.
const PACKED: &str = "the MPI library packs other bytes than the definition names";

/// The library packs other bytes of a type than we do. Ends the conversion of this type, and of all
/// types of the same constructors.
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
