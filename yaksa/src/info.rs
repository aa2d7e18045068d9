//! Info objects: hints by key and value. They may be made before the library is started and freed after its end.
//!
//! One is named by a number in a pointer's clothes: no address that a process can have, and never followed. Of the hints one counts, which GPU driver is
//! meant: there is none here.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::process::Mutex;

use crate::abi::{Code, Result, export, out, require};

/// In the top byte of every info: above all addresses of programs.
const TAG: u64 = 0xd3 << 56;
/// Keys are no longer, their end included.
const MAX_KEY: usize = 256;

struct Infos {
    next: u64,
    /// Whether each is about a GPU.
    living: BTreeMap<u64, bool>,
}

static INFOS: Mutex<Infos> = Mutex::new(Infos { next: 1, living: BTreeMap::new() });

/// Changes so far: while it stands still, what a thread remembers holds.
static CHANGES: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The info that this thread was last handed and may be used, and when.
    static RECENT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Whether calls may go by `info`: null, or one that lives and is about no GPU.
#[inline]
pub(crate) fn usable(info: *const c_void) -> Result<()> {
    let number = info.addr() as u64;
    let now = (number, CHANGES.load(Ordering::Acquire));
    if number == 0 || RECENT.try_with(|recent| recent.get() == now).unwrap_or(false) {
        return Ok(());
    }
    match INFOS.lock().living.get(&number) {
        None => return Err(Code::Internal),
        Some(true) => return Err(Code::NotSupported),
        Some(false) => {}
    }
    let _ = RECENT.try_with(|recent| recent.set(now));
    Ok(())
}

/// The bytes of a C string before its end, of at most `most`.
///
/// # Safety
/// `text` must point to a NUL or to `most` bytes.
unsafe fn text<'a>(text: *const c_char, most: usize) -> &'a [u8] {
    // SAFETY: as the caller promises: bytes are read one by one up to the NUL.
    let length = (0..most).find(|&i| unsafe { *text.add(i) } == 0).unwrap_or(most);
    // SAFETY: these bytes were just read.
    unsafe { std::slice::from_raw_parts(text.cast(), length) }
}

/// Reads a hint: whether it is about a GPU, if it is about that at all.
///
/// # Safety
/// As the interface has it: a C string, and `vallen` bytes.
unsafe fn hint(key: *const c_char, val: *const c_void, vallen: c_uint) -> Result<Option<bool>> {
    require(!key.is_null() && (!val.is_null() || vallen == 0))?;
    // SAFETY: as the caller promises, for a key that ends.
    let key = unsafe { text(key, MAX_KEY) };
    match key {
        b"yaksa_gpu_driver" => {
            require(vallen > 0)?;
            // SAFETY: `vallen` bytes, or fewer with a NUL.
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
        // What later releases know, and what is about a device that is not used.
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
