//! Datatypes of our own that replace the program's. Each is made once and kept until the end of the
//! epoch, which lasts from the first initialization of MPI to the last finalization.
//!
//! In collective calls, MPI libraries choose the algorithm by count and type size, and every rank
//! must choose the same algorithm. So a buffer that a rank converts is passed as the same count of
//! a type of the same size. A total of bytes would differ from the counts and sizes that other
//! ranks pass.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::process::{Lazy, Mutex};

use crate::handles::set_handle;
use crate::host::{HandleWord, Host};

/// Maximum number of types that are kept. A buffer that would need another type is bypassed.
const MOST: usize = 4096;

/// Committed type of our own, and the number of instances of the program's type that it replaces,
/// in one word. A handle fits into 48 bits: it is 32 bits wide, a small number, or an address below
/// 2^48. No handle is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnType(u64);

/// Bits of the handle in a word.
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

    /// Returns the type of a word that [`OwnType::word`] has returned.
    pub(crate) fn from_word(word: u64) -> OwnType {
        OwnType(word)
    }
}

/// All types that are kept. The key of a run of bytes is its length, the key of an element with a
/// gap is its size and basic type, and other keys are hashes of signatures.
static OWN_TYPES: Lazy<Mutex<HashMap<u128, OwnType>>> = Lazy::new(Mutex::default);

/// Returns the type that is kept under a key.
pub(crate) fn known(key: u128) -> Option<OwnType> {
    OWN_TYPES.lock().get(&key).copied()
}

/// Keeps a type that was just made under its key, and returns it. If another thread has kept a type
/// under this key meanwhile, that type may be in use, so it stays and is returned, and `made` is
/// freed. None: too many types are kept, and `made` is freed.
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

/// Returns `contiguous(size, MPI_BYTE)`, and makes it if it is not kept yet. No lock is held while
/// the MPI library makes it.
pub(crate) fn of_bytes(host: &Host, size: i64) -> Option<HandleWord> {
    let key = size as u128;
    if let Some(known) = known(key) {
        return Some(known.handle());
    }
    let mut handle: HandleWord = 0;
    let bytes = c_int::try_from(size).ok()?;
    // SAFETY: `bytes` is a count and `host.byte` a named type. The new handle is written to a word,
    // which has room for any handle.
    if unsafe { host.f.type_contiguous?(bytes, host.byte, (&raw mut handle).cast()) } != 0 {
        return None;
    }
    keep(host, key, commit(host, handle)?).map(OwnType::handle)
}

/// Returns a structure of blocks of the MPI library's types, each with its number of elements, at
/// these displacements. The structure is not committed.
pub(crate) fn structure(host: &Host, runs: &[(HandleWord, c_int)], places: &[isize]) -> Option<HandleWord> {
    let bytes = host.abi?.handle_bytes;
    let mut types = vec![0u64; (runs.len() * bytes).div_ceil(8)];
    for (i, &(handle, _)) in runs.iter().enumerate() {
        let place: *mut c_void = types.as_mut_ptr().cast::<c_void>().wrapping_byte_add(i * bytes);
        // SAFETY: `place` is handle `i` of the array, which has room for all of them.
        unsafe { set_handle(host, place, handle) };
    }
    let lengths: Vec<c_int> = runs.iter().map(|run| run.1).collect();
    let n = c_int::try_from(runs.len().min(places.len())).ok()?;
    let mut made: HandleWord = 0;
    // SAFETY: the arrays have `n` elements at least; `made` is a word, which has room for any
    // handle.
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

/// Commits a type that was just made. If that fails, frees it and returns none.
pub(crate) fn commit(host: &Host, mut made: HandleWord) -> Option<OwnType> {
    // SAFETY: `made` is a type that was just made, in a word, which has room for any handle.
    if host.f.type_commit.is_none_or(|commit| unsafe { commit((&raw mut made).cast()) } != 0) {
        free(host, made);
        return None;
    }
    Some(OwnType::new(made & host.mask, 1))
}

/// Number of types that a thread remembers, each in the slot of its key ([`near_place`]).
const NEAR: usize = 16;

// Key, epoch and handle of the types that the thread remembers.
thread_local! {
    static MINE: [Cell<(u128, u64, HandleWord)>; NEAR] = const { [const { Cell::new((0, 0, 0)) }; NEAR] };
}

/// Number of the epoch. A handle means the same type only within an epoch.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// Returns the slot of a key, by a hash of its lower half: sizes that differ little mostly have
/// slots of their own.
fn near_place(key: u128) -> usize {
    ((key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % NEAR
}

/// Returns the type of a key, if this thread has remembered it lately and in this epoch.
#[inline]
pub(crate) fn near(key: u128) -> Option<HandleWord> {
    let (of, epoch, handle) = MINE.try_with(|mine| mine[near_place(key)].get()).ok()?;
    (of == key && epoch == EPOCH.load(Ordering::Relaxed)).then_some(handle)
}

/// Remembers the type of a key for this thread, in the place of the type that had its slot.
pub(crate) fn keep_near(key: u128, handle: HandleWord) {
    let _ = MINE.try_with(|mine| mine[near_place(key)].set((key, EPOCH.load(Ordering::Relaxed), handle)));
}

/// Frees a type of our own. A call that still uses the type is not affected (MPI 5.0, 5.1.9).
pub(crate) fn free(host: &Host, mut handle: HandleWord) {
    if let Some(type_free) = host.f.type_free {
        // SAFETY: `handle` is a type that this library has made.
        let _ = unsafe { type_free((&raw mut handle).cast()) };
    }
}

/// Ends the epoch: frees and forgets all types.
pub(crate) fn end_epoch(host: &Host) {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    let own_types = std::mem::take(&mut *OWN_TYPES.lock());
    own_types.into_values().for_each(|own| free(host, own.handle()));
}
