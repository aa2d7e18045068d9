//! Open files: which views are known, and whether a read stays before the end of its file.
//!
//! Only the memory side of a call on a file is converted: packed bytes go to the file as they are, which is right where its representation of
//! data is `native` (MPI 5.0, 14.5). So a file is known from the `MPI_File_open` that was seen, and its view from each
//! `MPI_File_set_view`; any other file is the host's.
//!
//! Reads that meet the end of a file are the host's: ROMIO says that all was read where the type in memory has gaps, and moves the pointer of the file by all
//! of it; where the type has none it says what was there. Whether the end is met is asked before: size, and the place of the last element.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};

use ddtc::process::{Awaited, Guard, Lazy, Mutex, is_inconsistent};
use ddtc_hosts::policy::Call;

use crate::host::{HandleWord, Host};
use crate::policy::policy;
use crate::scopes::ours;
use crate::slow_path::{BYPASS, FORTRAN, watched_for};

/// Of a view: bytes of its elementary type, where that has no gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    element: Option<i64>,
}

/// The view of a file that was just opened: bytes.
const BYTES: View = View { element: Some(1) };

/// Files with a native view, by their handles, which are addresses or small numbers in every ABI.
static FILES: Lazy<Mutex<HashMap<HandleWord, View>>> = Lazy::new(Mutex::default);

fn files() -> Guard<'static, HashMap<HandleWord, View>> {
    FILES.lock()
}

/// Where a call begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// So many elements of the view after its beginning.
    Offset(i64),
    /// Where the rank's own pointer stands.
    Pointer,
}

/// A file was opened. Those that are read and written in sequence alone have no place to ask for.
pub(crate) fn opened(host: &Host, file: HandleWord, amode: c_int) {
    if host.abi.is_some_and(|abi| amode & abi.mode_sequential == 0) {
        files().insert(file, BYTES);
    }
}

/// A file is about to be closed, or its view is no longer known.
pub(crate) fn forget(file: HandleWord) {
    if is_inconsistent() {
        return;
    }
    files().remove(&file);
}

/// A file that is known has a new view.
///
/// # Safety
/// The host must have taken the call: `etype` is a type and `datarep` a string.
pub(crate) unsafe fn viewed(host: &Host, file: HandleWord, etype: HandleWord, datarep: *const c_char) {
    // SAFETY: as the caller promises.
    let native = unsafe { CStr::from_ptr(datarep) } == c"native";
    if is_inconsistent() || host.layers.take(Call::FileRead) {
        return;
    }
    let view = View { element: element(host, etype) };
    let mut files = files();
    if !native {
        files.remove(&file);
    } else if let Some(known) = files.get_mut(&file) {
        *known = view;
    }
}

/// Bytes of a type without gaps.
fn element(host: &Host, etype: HandleWord) -> Option<i64> {
    let (mut size, mut lb, mut extent) = (0, 0, 0);
    // SAFETY: a type, which the host has accepted; numbers to write to.
    let codes = unsafe {
        (host.f.type_size?(etype, &raw mut size), host.f.type_extent?(etype, &raw mut lb, &raw mut extent))
    };
    let dense = codes == (0, 0) && size > 0 && lb == 0 && extent == size as isize;
    dense.then_some(i64::from(size))
}

/// Ends the epoch.
pub(crate) fn end_epoch() {
    files().clear();
}

/// Says whether every change of a view is seen: no Fortran binding that may change one by the host's own functions is loaded, and no other library
/// stands before this one.
pub(crate) fn covered() -> bool {
    if watched_for(BYPASS | FORTRAN) {
        return false;
    }
    static FIRST: Awaited<bool> = Awaited::new();
    *FIRST.get_or_init(|| {
        [c"MPI_File_open", c"MPI_File_set_view", c"MPI_File_close"].iter().all(|name| ours(name))
    })
}

/// Returns the view of a file that this call may convert; `None`: the call is the host's.
pub(crate) fn view(host: &Host, call: Call, file: HandleWord) -> Option<View> {
    if host.abi.is_none() || !policy(host).any(call) || !covered() {
        return None;
    }
    files().get(&file).copied()
}

impl View {
    /// Says whether all bytes of a read are there, as far as this rank sees. Nothing is asked that the host would refuse.
    pub(crate) fn holds(self, host: &Host, file: HandleWord, at: At, bytes: i64) -> bool {
        self.end(host, file, at, bytes).is_some_and(|(end, size)| end <= size)
    }

    /// The place in the file after a read, and the size of the file.
    fn end(self, host: &Host, file: HandleWord, at: At, bytes: i64) -> Option<(i64, i64)> {
        let element = self.element.filter(|element| bytes > 0 && bytes % element == 0)?;
        let f = &host.f;
        let (mut first, mut last, mut size) = (0i64, 0i64, 0i64);
        // SAFETY: a file that is open and not sequential, numbers to write to.
        unsafe {
            match at {
                At::Offset(offset) => first = offset,
                At::Pointer if f.file_get_position?(file, &raw mut first) == 0 => {}
                At::Pointer => return None,
            }
            let place = first.checked_add(bytes / element - 1).filter(|_| first >= 0)?;
            if f.file_get_size?(file, &raw mut size) != 0
                || f.file_get_byte_offset?(file, place, &raw mut last) != 0
            {
                return None;
            }
        }
        Some((last.checked_add(element)?, size))
    }
}
