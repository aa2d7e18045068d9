//! Types of our own that stand for the program's, made once and kept to the end of the epoch.
//!
//! In collective calls hosts choose the algorithm by count and type size, and every rank must choose the same. So what a rank converts
//! goes as the same count of a type of the same size; a total of bytes would differ from what the others pass.

use std::collections::HashMap;
use std::ffi::c_int;

use ddtc::datatype::Named;
use ddtc::process::{Lazy, Mutex};

use crate::host::{HandleWord, Host};

/// Types that are kept; what would need another is the host's.
const MOST: usize = 4096;

/// Committed types by what they stand for: runs of bytes by their length, others by the hash of a signature. The bits above a handle are
/// the user's of this table.
static TWINS: Lazy<Mutex<HashMap<u128, u64>>> = Lazy::new(Mutex::default);

/// The type of a key.
pub(crate) fn known(key: u128) -> Option<u64> {
    TWINS.lock().get(&key).copied()
}

/// Keeps a type that was just made under its key; the one that another thread kept meanwhile, which may be in use, stays.
pub(crate) fn keep(host: &Host, key: u128, made: u64) -> Option<u64> {
    let mut twins = TWINS.lock();
    let kept = match twins.get(&key) {
        Some(&kept) => Some(kept),
        None if twins.len() >= MOST => None,
        None => {
            twins.insert(key, made);
            return Some(made);
        }
    };
    drop(twins);
    free(host, made);
    kept
}

/// `contiguous(size, MPI_BYTE)`. No lock is held while the host makes it.
pub(crate) fn of_bytes(host: &Host, size: i64) -> Option<HandleWord> {
    let key = size as u128;
    if let Some(known) = known(key) {
        return Some(known);
    }
    let mut handle: HandleWord = 0;
    // SAFETY: a count, a named type, a word to write to, which has room for any handle; then the type just made.
    unsafe {
        let bytes = c_int::try_from(size).ok()?;
        let code = host.f.type_contiguous?(bytes, host.handle(Named::Byte)?, (&raw mut handle).cast());
        if code != 0 || host.f.type_commit?((&raw mut handle).cast()) != 0 {
            return None;
        }
    }
    keep(host, key, handle)
}

/// Gives a type of ours back. A call that uses it keeps it (MPI 5.0, 5.1.9).
pub(crate) fn free(host: &Host, made: u64) {
    let mut handle = made & HANDLE;
    if let Some(type_free) = host.f.type_free {
        // SAFETY: a type that we made.
        let _ = unsafe { type_free((&raw mut handle).cast()) };
    }
}

/// The bits of a handle, an address at most.
const HANDLE: u64 = 0x0000_ffff_ffff_ffff;

/// Ends the epoch.
pub(crate) fn end_epoch(host: &Host) {
    let twins = std::mem::take(&mut *TWINS.lock());
    twins.into_values().for_each(|handle| free(host, handle));
}
