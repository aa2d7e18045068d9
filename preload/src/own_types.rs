//! Types of our own that stand for the program's, made once and kept to the end of the epoch.
//!
//! In collective calls hosts choose the algorithm by count and type size, and every rank must choose the same. So what a rank converts
//! goes as the same count of a type of the same size; a total of bytes would differ from what the others pass.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::process::{Lazy, Mutex};

use crate::handles::set_handle;
use crate::host::{HandleWord, Host};

/// Types that are kept; what would need another is the host's.
const MOST: usize = 4096;

/// A committed type of ours, of some instances of the one that it stands for. In one word: a handle is 32 bits wide, a small number, or an address
/// below 2^48, and none is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnType(u64);

/// The bits of a handle in a word.
const HANDLE: u64 = (1 << 48) - 1;

impl OwnType {
    pub(crate) fn new(handle: HandleWord, instances: u16) -> OwnType {
        OwnType(handle & HANDLE | u64::from(instances) << 48)
    }

    pub(crate) fn handle(self) -> HandleWord {
        self.0 & HANDLE
    }

    pub(crate) fn instances(self) -> i64 {
        (self.0 >> 48) as i64
    }

    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Reads the result of [`OwnType::word`].
    pub(crate) fn from_word(word: u64) -> OwnType {
        OwnType(word)
    }
}

/// They, by what they stand for: runs of bytes by their length, others by the hash of a signature.
static OWN_TYPES: Lazy<Mutex<HashMap<u128, OwnType>>> = Lazy::new(Mutex::default);

/// Returns the type of a key.
pub(crate) fn known(key: u128) -> Option<OwnType> {
    OWN_TYPES.lock().get(&key).copied()
}

/// Keeps a type that was just made under its key; the one that another thread kept meanwhile, which may be in use, stays.
pub(crate) fn keep(host: &Host, key: u128, made: OwnType) -> Option<OwnType> {
    let mut own_types = OWN_TYPES.lock();
    let kept = match own_types.get(&key) {
        Some(&kept) => Some(kept),
        None if own_types.len() >= MOST => None,
        None => {
            own_types.insert(key, made);
            return Some(made);
        }
    };
    drop(own_types);
    free(host, made.handle());
    kept
}

/// `contiguous(size, MPI_BYTE)`. No lock is held while the host makes it.
pub(crate) fn of_bytes(host: &Host, size: i64) -> Option<HandleWord> {
    let key = size as u128;
    if let Some(known) = known(key) {
        return Some(known.handle());
    }
    let mut handle: HandleWord = 0;
    // SAFETY: a count, a named type, a word to write to, which has room for any handle; then the type just made.
    unsafe {
        let bytes = c_int::try_from(size).ok()?;
        let code = host.f.type_contiguous?(bytes, host.byte, (&raw mut handle).cast());
        if code != 0 || host.f.type_commit?((&raw mut handle).cast()) != 0 {
            return None;
        }
    }
    keep(host, key, OwnType::new(handle & host.mask, 1)).map(OwnType::handle)
}

/// Returns a structure of runs of the host's types at these places.
pub(crate) fn structure(host: &Host, runs: &[(HandleWord, c_int)], places: &[isize]) -> Option<HandleWord> {
    let bytes = host.abi?.handle_bytes;
    let mut types = vec![0u64; (runs.len() * bytes).div_ceil(8)];
    for (i, &(handle, _)) in runs.iter().enumerate() {
        let place: *mut c_void = types.as_mut_ptr().cast::<c_void>().wrapping_byte_add(i * bytes);
        // SAFETY: a place of the array.
        unsafe { set_handle(host, place, handle) };
    }
    let lengths: Vec<c_int> = runs.iter().map(|run| run.1).collect();
    let n = c_int::try_from(runs.len().min(places.len())).ok()?;
    let mut made: HandleWord = 0;
    // SAFETY: arrays of that many elements; a word has room for any handle.
    let code = unsafe {
        host.f.type_create_struct?(
            n,
            lengths.as_ptr(),
            places.as_ptr(),
            types.as_ptr().cast(),
            (&raw mut made).cast(),
        )
    };
    (code == 0).then_some(made)
}

/// Commits a type that was just made; gives it back where that fails.
pub(crate) fn commit(host: &Host, mut made: HandleWord) -> Option<OwnType> {
    // SAFETY: a type that we made; a word has room for any handle.
    if unsafe { host.f.type_commit?((&raw mut made).cast()) } != 0 {
        free(host, made);
        return None;
    }
    Some(OwnType::new(made & host.mask, 1))
}

/// Twins that a thread remembers, by the end of their key.
const NEAR: usize = 16;

thread_local! {
    static MINE: [Cell<(u128, u64, HandleWord)>; NEAR] = const { [const { Cell::new((0, 0, 0)) }; NEAR] };
}

/// The epoch, in which handles mean what they meant.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// The place of a key: sizes that differ little are apart.
fn near_place(key: u128) -> usize {
    ((key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % NEAR
}

/// Returns the type of a key that this thread has met lately.
#[inline]
pub(crate) fn near(key: u128) -> Option<HandleWord> {
    let (of, epoch, handle) = MINE.try_with(|mine| mine[near_place(key)].get()).ok()?;
    (of == key && epoch == EPOCH.load(Ordering::Relaxed)).then_some(handle)
}

/// Remembers the type of a key for this thread.
pub(crate) fn keep_near(key: u128, handle: HandleWord) {
    let _ = MINE.try_with(|mine| mine[near_place(key)].set((key, EPOCH.load(Ordering::Relaxed), handle)));
}

/// Gives a type of ours back. A call that uses it keeps it (MPI 5.0, 5.1.9).
pub(crate) fn free(host: &Host, mut handle: HandleWord) {
    if let Some(type_free) = host.f.type_free {
        // SAFETY: a type that we made.
        let _ = unsafe { type_free((&raw mut handle).cast()) };
    }
}

/// Ends the epoch.
pub(crate) fn end_epoch(host: &Host) {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    let own_types = std::mem::take(&mut *OWN_TYPES.lock());
    own_types.into_values().for_each(|own| free(host, own.handle()));
}
