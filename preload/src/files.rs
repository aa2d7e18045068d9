//! Views of open files, and a test whether a read ends before the end of its file.
//!
//! Only the memory side of a call on a file is converted. Packed bytes go to the file as they are,
//! which is right only if the file's data representation is `native` (MPI 5.0, 14.5). So this
//! module records each file that a wrapped `MPI_File_open` opens, and its view after each wrapped
//! `MPI_File_set_view`. Calls on files that are not recorded are bypassed.
//!
//! Reads that go beyond the end of a file are bypassed too, because ROMIO treats them differently
//! for types with and without gaps in memory. If the type has gaps, ROMIO reports that all bytes of
//! the call were read, and moves the file pointer by this number. If the type has no gaps, ROMIO
//! reports the bytes that the file contained. So before a read, ddtc queries the MPI library for
//! the size of the file and for the place of the last element that is to be read.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};

use ddtc::internal::process::{Awaited, Guard, Lazy, Mutex, is_inconsistent};
use ddtc_hosts::policy::Call;

use crate::host::{HandleWord, Host};
use crate::policy::policy;
use crate::scopes::ours;
use crate::slow_path::{BYPASS, FORTRAN, watched_for};

/// View of a file with native data representation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// Bytes of the elementary type of the view; `None` if the type has gaps or no bytes.
    element: Option<i64>,
}

/// View of a file that was just opened, whose elementary type is the byte.
const BYTES: View = View { element: Some(1) };

/// Views of the known files with native data representation, by the handles of the files. In every
/// ABI these handles are addresses or small numbers.
static FILES: Lazy<Mutex<HashMap<HandleWord, View>>> = Lazy::new(Mutex::default);

fn files() -> Guard<'static, HashMap<HandleWord, View>> {
    FILES.lock()
}

/// Place in a file at which a read begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// Offset from the beginning of the file's view, in elementary types of the view.
    Offset(i64),
    /// The place at which the rank's individual file pointer stands.
    Pointer,
}

/// Records a file that was opened. Files of mode `MPI_MODE_SEQUENTIAL` are not recorded, because
/// the MPI library returns no places in these files.
pub(crate) fn opened(host: &Host, file: HandleWord, amode: c_int) {
    if host.abi.is_some_and(|abi| amode & abi.mode_sequential == 0) {
        files().insert(file, BYTES);
    }
}

/// Forgets a file that is about to be closed, or whose view is no longer known.
pub(crate) fn forget(file: HandleWord) {
    if is_inconsistent() {
        return;
    }
    files().remove(&file);
}

/// Records the new view of a file, if the file is known. A file whose data representation is not
/// `native` is forgotten.
///
/// # Safety
/// The MPI library must have accepted the call, so `etype` must be a type and `datarep` a string.
pub(crate) unsafe fn viewed(host: &Host, file: HandleWord, etype: HandleWord, datarep: *const c_char) {
    // SAFETY: `datarep` is a string, as the caller promises.
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

/// Returns the number of bytes of an elementary type; `None` if the type has gaps or no bytes.
fn element(host: &Host, etype: HandleWord) -> Option<i64> {
    let (mut size, mut lb, mut extent) = (0, 0, 0);
    // SAFETY: `etype` is a type that the MPI library has accepted as an elementary type, and the
    // other arguments are numbers to write to.
    let codes = unsafe {
        (host.f.type_size?(etype, &raw mut size), host.f.type_extent?(etype, &raw mut lb, &raw mut extent))
    };
    let dense = codes == (0, 0) && size > 0 && lb == 0 && extent == size as isize;
    dense.then_some(i64::from(size))
}

/// Forgets all files at the end of the epoch, after which handles have no meaning.
pub(crate) fn end_epoch() {
    files().clear();
}

/// Returns true if ddtc sees every change of a file's view. That is so under two conditions. No
/// object is loaded that may complete requests unseen or that is a Fortran binding, because both
/// kinds of objects may change views by the MPI library's own functions. No other library comes
/// before ddtc in the program's symbol look-up.
pub(crate) fn covered() -> bool {
    if watched_for(BYPASS | FORTRAN) {
        return false;
    }
    static FIRST: Awaited<bool> = Awaited::new();
    *FIRST.get_or_init(|| {
        [c"MPI_File_open", c"MPI_File_set_view", c"MPI_File_close"].iter().all(|name| ours(name))
    })
}

/// Returns the view of the file on which a call operates; `None` if the call is bypassed.
pub(crate) fn view(host: &Host, call: Call, file: HandleWord) -> Option<View> {
    if host.abi.is_none() || !policy(host).any(call) || !covered() {
        return None;
    }
    files().get(&file).copied()
}

impl View {
    /// Returns true if a read of `bytes` bytes ends before or at the end of the file, as this rank
    /// sees the file now. Queries the MPI library only with arguments that it accepts.
    pub(crate) fn holds(self, host: &Host, file: HandleWord, at: At, bytes: i64) -> bool {
        self.end(host, file, at, bytes).is_some_and(|(end, size)| end <= size)
    }

    /// Returns the place in the file at which a read ends, and the size of the file, both in bytes;
    /// `None` if either is not known.
    fn end(self, host: &Host, file: HandleWord, at: At, bytes: i64) -> Option<(i64, i64)> {
        let element = self.element.filter(|element| bytes > 0 && bytes % element == 0)?;
        let f = &host.f;
        let (mut first, mut last, mut size) = (0i64, 0i64, 0i64);
        // SAFETY: `file` is open and not sequential, because only such files have a view here. The
        // other arguments are numbers to write to.
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
