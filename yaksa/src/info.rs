//! Info objects, which pass hints to the library as pairs of key and value. A program may make them
//! before it calls `yaksa_init` and free them after `yaksa_finalize`.
//!
//! The handle of an info object has a pointer type in C. It is never dereferenced, and its value is
//! larger than all addresses of user programs. Only a hint that names a GPU driver has an effect: a
//! call that gets an info object with this hint is refused.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::process::Mutex;

use crate::abi::{Code, Result, export, out, require};

/// Highest byte of every handle of an info object. It makes the handle larger than all addresses of
/// user programs.
const TAG: u64 = 0xd3 << 56;
/// Maximum length of the key of a hint in bytes, including the NUL character at its end.
const MAX_KEY: usize = 256;

/// All info objects, and the handle that the next one gets, without its highest byte [`TAG`].
struct Infos {
    next: u64,
    /// Info objects that exist. The key is the handle, and the value is true if the info object
    /// names a GPU driver.
    living: BTreeMap<u64, bool>,
}

static INFOS: Mutex<Infos> = Mutex::new(Infos { next: 1, living: BTreeMap::new() });

/// Counter of the events that can make an info object unusable: an info object is freed, or gets a
/// hint about a GPU driver. As long as the counter does not change, the info object in [`RECENT`]
/// stays usable.
static CHANGES: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Handle of the info object that this thread last found to be usable, and the value of
    /// [`CHANGES`] at that time.
    static RECENT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Checks that `info` is null or an existing info object that names no GPU driver. Fails with
/// [`Code::Internal`] if the info object does not exist, and with [`Code::NotSupported`] if it
/// names a GPU driver.
#[inline]
pub(crate) fn usable(info: *const c_void) -> Result<()> {
    let number = info.addr() as u64;
    let now = (number, CHANGES.load(Ordering::Acquire));
    if number == 0 || RECENT.try_with(|recent| recent.get() == now).unwrap_or(false) {
        return Ok(());
    }
    // The value of `CHANGES` in `now` was read before the table of info objects is searched. If
    // another thread changes `CHANGES` meanwhile, `RECENT` gets the old value, so the next call of
    // this function searches the table again.
    match INFOS.lock().living.get(&number) {
        None => return Err(Code::Internal),
        Some(true) => return Err(Code::NotSupported),
        Some(false) => {}
    }
    let _ = RECENT.try_with(|recent| recent.set(now));
    Ok(())
}

/// Returns the bytes of a C string before its NUL character, or the first `most` bytes if there is
/// no NUL character among them.
///
/// # Safety
/// `text` must not be null, and must point to a C string or to `most` bytes. The string or the
/// bytes must be readable, and must not change as long as the result is used.
unsafe fn text<'a>(text: *const c_char, most: usize) -> &'a [u8] {
    // SAFETY: bytes are read one by one, up to the NUL character or up to `most` bytes. The caller
    // promises that the bytes up to there are readable.
    let length = (0..most).find(|&i| unsafe { *text.add(i) } == 0).unwrap_or(most);
    // SAFETY: the line above has read these `length` bytes, so they are readable. The caller
    // promises that `text` is not null and that the bytes do not change.
    unsafe { std::slice::from_raw_parts(text.cast(), length) }
}

/// Checks a hint. If its key is `yaksa_gpu_driver`, returns `Some(true)` if the value names a GPU
/// driver, and `Some(false)` if the value is `nogpu`. Returns `None` for all other keys.
///
/// Fails with [`Code::Internal`] if `key` is null, or if `val` is null although `vallen` is not 0.
/// Also fails with this code if the key is one of those that the function knows, and its value has
/// the wrong length or is not permitted.
///
/// # Safety
/// `key` must be null or point to a C string, or to [`MAX_KEY`] readable bytes. `val` must be null
/// or point to `vallen` readable bytes.
unsafe fn hint(key: *const c_char, val: *const c_void, vallen: c_uint) -> Result<Option<bool>> {
    require(!key.is_null() && (!val.is_null() || vallen == 0))?;
    // SAFETY: `key` is not null, so the caller promises a C string or `MAX_KEY` readable bytes.
    let key = unsafe { text(key, MAX_KEY) };
    match key {
        b"yaksa_gpu_driver" => {
            require(vallen > 0)?;
            // SAFETY: `vallen` is not 0, so `val` is not null by the check above. The caller
            // promises `vallen` readable bytes, and `text` reads at most `vallen` bytes.
            match unsafe { text(val.cast(), (vallen as usize).min(MAX_KEY)) } {
                b"nogpu" => Ok(Some(false)),
                b"cuda" | b"ze" | b"hip" => Ok(Some(true)),
                _ => Err(Code::Internal),
            }
        }
        b"yaksa_mapped_device" => require(vallen as usize == size_of::<c_int>()).map(|()| None),
        b"yaksa_seq_iov_pack_threshold" | b"yaksa_seq_iov_unpack_threshold" => {
            require(vallen as usize == size_of::<usize>()).map(|()| None)
        }
        // All other keys are accepted without effect. Some keys are known only to later releases of
        // yaksa, and others concern devices that this library does not use.
        _ => Ok(None),
    }
}

export! {
    fn yaksa_info_create(info: *mut *mut c_void) {
        let info = out(info)?;
        let mut infos = INFOS.lock();
        let number = TAG | infos.next;
        infos.next += 1;
        infos.living.insert(number, false);
        info.set(std::ptr::without_provenance_mut(number as usize));
        Ok(())
    }

    fn yaksa_info_free(info: *mut c_void) {
        let known = INFOS.lock().living.remove(&(info.addr() as u64));
        CHANGES.fetch_add(1, Ordering::AcqRel);
        require(known.is_some())
    }

    fn yaksa_info_keyval_append(info: *mut c_void, key: *const c_char, val: *const c_void, vallen: c_uint) {
        let number = info.addr() as u64;
        require(INFOS.lock().living.contains_key(&number))?;
        if let Some(gpu) = hint(key, val, vallen)? {
            *INFOS.lock().living.get_mut(&number).ok_or(Code::Internal)? = gpu;
            CHANGES.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }
}
