//! Datatypes that ddtc creates to replace the program's. Each is created once and kept until the
//! end of the epoch, which lasts from the first initialization of MPI to the last finalization.
//!
//! In collective calls, MPI libraries choose the algorithm by count and type size, and every rank
//! must choose the same algorithm. So a buffer that a rank converts is passed as the same count of
//! a type of the same size. If it were passed as its total number of bytes, count and size would
//! differ from those of the ranks that do not convert.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::process::{Lazy, Mutex};

use crate::handles::set_handle;
use crate::host::{HandleWord, Host};

/// Maximum number of types in [`OWN_TYPES`]. A buffer that would need another type is bypassed.
const MAX_OWN_TYPES: usize = 4096;

/// Committed type that ddtc has created, and the number of instances of the program's type that it
/// replaces, in one word. The handle takes 48 bits of the word, because in every MPI library a
/// handle is 32 bits wide, a small number, or an address below 2^48. No handle is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnType(u64);

/// Mask of the bits of an [`OwnType`] that hold the handle.
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

    /// Returns the type from a word that [`OwnType::word`] has returned.
    pub(crate) fn from_word(word: u64) -> OwnType {
        OwnType(word)
    }
}

/// All types that ddtc has created in this epoch and keeps. The key of a type for a contiguous run
/// of bytes is the length of the run. The key of a type for an element with a gap is made from the
/// size of the element and the handle of its basic type. The keys of all other types are hashes of
/// type signatures.
static OWN_TYPES: Lazy<Mutex<HashMap<u128, OwnType>>> = Lazy::new(Mutex::default);

/// Returns the type that is kept under a key in [`OWN_TYPES`].
pub(crate) fn known(key: u128) -> Option<OwnType> {
    OWN_TYPES.lock().get(&key).copied()
}

/// Keeps a newly created type under its key in [`OWN_TYPES`], and returns it. If another thread has
/// kept a type under this key meanwhile, that type may be in use, so it stays and is returned, and
/// `made` is freed. If [`MAX_OWN_TYPES`] types are kept already, frees `made` and returns `None`.
pub(crate) fn keep(host: &Host, key: u128, made: OwnType) -> Option<OwnType> {
    let mut own_types = OWN_TYPES.lock();
    let kept = match own_types.get(&key) {
        Some(&kept) => Some(kept),
        None if own_types.len() >= MAX_OWN_TYPES => None,
        None => {
            own_types.insert(key, made);
            return Some(made);
        }
    };
    drop(own_types);
    free(host, made.handle());
    kept
}

/// Returns the type `contiguous(size, MPI_BYTE)`, and creates it if it is not kept yet. Returns
/// `None` if it cannot be created or kept. No lock is held while the MPI library creates the type.
pub(crate) fn of_bytes(host: &Host, size: i64) -> Option<HandleWord> {
    let key = size as u128;
    if let Some(known) = known(key) {
        return Some(known.handle());
    }
    let made = contiguous(host, size, host.byte)?;
    keep(host, key, commit(host, made)?).map(OwnType::handle)
}

/// Creates the type `contiguous(n, of)`, and does not commit it. Returns `None` if `n` is no `int`
/// or the MPI library returns an error.
fn contiguous(host: &Host, n: i64, of: HandleWord) -> Option<HandleWord> {
    let (n, mut made): (c_int, HandleWord) = (c_int::try_from(n).ok()?, 0);
    // SAFETY: `n` is a count and `of` a type. The new handle is written to a word, which has room
    // for any handle.
    let code = unsafe { host.f.type_contiguous?(n, of, (&raw mut made).cast()) };
    (code == 0).then_some(made)
}

/// Creates a type of `n` repetitions of the newly created type `made`, and frees `made`. Returns
/// `made` itself if `n` is 1. The type is not committed.
pub(crate) fn repeated(host: &Host, made: HandleWord, n: i64) -> Option<HandleWord> {
    if n == 1 {
        return Some(made);
    }
    let all = contiguous(host, n, made);
    free(host, made);
    all
}

/// Creates a struct type, and does not commit it. Block `i` of the type has the datatype and the
/// number of elements of `runs[i]` and lies at the byte displacement `places[i]`. Returns `None` if
/// the MPI library returns an error.
pub(crate) fn structure(host: &Host, runs: &[(HandleWord, c_int)], places: &[isize]) -> Option<HandleWord> {
    let bytes = host.abi?.handle_bytes;
    let mut types = vec![0u64; (runs.len() * bytes).div_ceil(8)];
    for (i, &(handle, _)) in runs.iter().enumerate() {
        let place: *mut c_void = types.as_mut_ptr().cast::<c_void>().wrapping_byte_add(i * bytes);
        // SAFETY: `place` is the address of handle `i` in `types`, which has room for all handles
        // of `runs`.
        unsafe { set_handle(host, place, handle) };
    }
    let lengths: Vec<c_int> = runs.iter().map(|run| run.1).collect();
    let n = c_int::try_from(runs.len().min(places.len())).ok()?;
    let mut made: HandleWord = 0;
    // SAFETY: each of the three arrays has at least `n` elements. `made` is a word, which has room
    // for any handle.
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

/// Commits a newly created type. If that fails, frees the type and returns `None`.
pub(crate) fn commit(host: &Host, mut made: HandleWord) -> Option<OwnType> {
    // SAFETY: `made` is a newly created type, in a word, which has room for any handle.
    if host.f.type_commit.is_none_or(|commit| unsafe { commit((&raw mut made).cast()) } != 0) {
        free(host, made);
        return None;
    }
    Some(OwnType::new(made & host.mask, 1))
}

/// Number of slots in a thread's own cache of types. A type is in the slot of its key
/// ([`near_place`]).
const NEAR: usize = 16;

// The thread's own cache of types: key, epoch and handle of one type for each slot.
thread_local! {
    static MINE: [Cell<(u128, u64, HandleWord)>; NEAR] = const { [const { Cell::new((0, 0, 0)) }; NEAR] };
}

/// Number of the current epoch. The same handle may stand for different types in different epochs.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// Returns the slot of a key in the thread's own cache of types, by a hash of the lower half of the
/// key. Keys of sizes that differ little mostly get different slots.
fn near_place(key: u128) -> usize {
    ((key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % NEAR
}

/// Returns the type of a key from the thread's own cache, if the cache has the type and it was put
/// there in the current epoch.
#[inline]
pub(crate) fn near(key: u128) -> Option<HandleWord> {
    let (of, epoch, handle) = MINE.try_with(|mine| mine[near_place(key)].get()).ok()?;
    (of == key && epoch == EPOCH.load(Ordering::Relaxed)).then_some(handle)
}

/// Puts the type of a key into the thread's own cache, in place of the type that had its slot.
pub(crate) fn keep_near(key: u128, handle: HandleWord) {
    let _ = MINE.try_with(|mine| mine[near_place(key)].set((key, EPOCH.load(Ordering::Relaxed), handle)));
}

/// Frees a type that ddtc has created. Operations under way that use the type are not affected (MPI
/// 5.0, 5.1.9).
pub(crate) fn free(host: &Host, mut handle: HandleWord) {
    if let Some(type_free) = host.f.type_free {
        // SAFETY: `handle` is the handle of a type that ddtc has created.
        let _ = unsafe { type_free((&raw mut handle).cast()) };
    }
}

/// Ends the epoch: frees and forgets all types in [`OWN_TYPES`].
pub(crate) fn end_epoch(host: &Host) {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    let own_types = std::mem::take(&mut *OWN_TYPES.lock());
    own_types.into_values().for_each(|own| free(host, own.handle()));
}

/// Called after the MPI library was finalized. Forgets the types that ddtc has created meanwhile,
/// without a call of the MPI library.
pub(crate) fn forget_after_end() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    OWN_TYPES.lock().clear();
}
