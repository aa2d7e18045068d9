//! Wrappers of calls on files. Bytes of converted calls are packed before a write and unpacked
//! after a read.
//!
//! Blocking calls are converted, both independent and collective ones. Three kinds of calls are
//! not:
//!
//! * nonblocking calls, which MPI libraries carry out in different ways for types with and without
//!   gaps in memory;
//! * split collective calls (`_begin` and `_end`);
//! * reads by the shared file pointer, because another rank may move the pointer after this rank
//!   has asked whether the read ends before the end of the file.

use std::ffi::{c_char, c_int, c_void};

use ddtc::internal::count::Count;
use ddtc_hosts::policy::Call;

use crate::files::{self, At, View};
use crate::forms::{Form, Forms, forward};
use crate::gpu;
use crate::handles::{NO_HOST, missing};
use crate::host::{HandleWord, Host, host};
use crate::outcome::converted;
use crate::signatures::{Handle, In, Offset, Out};
use crate::staged::Staged;
use crate::user_buffer::UserBuffer;

type WriteFn<N> = unsafe extern "C-unwind" fn(Handle, In, N, Handle, Out) -> c_int;
type WriteAtFn<N> = unsafe extern "C-unwind" fn(Handle, Offset, In, N, Handle, Out) -> c_int;
type ReadFn<N> = unsafe extern "C-unwind" fn(Handle, Out, N, Handle, Out) -> c_int;
type ReadAtFn<N> = unsafe extern "C-unwind" fn(Handle, Offset, Out, N, Handle, Out) -> c_int;

/// Maximum number of bytes of a converted read or write: 2^31 - 1. A system call of Linux moves at
/// most 2^31 - 4096 bytes. For a longer transfer the MPI library's behaviour depends on the number
/// of pieces in which it moves the bytes.
const MAX_BYTES: i64 = c_int::MAX as i64;

/// Stages the buffer of a write. Returns the staged call and the buffer for the MPI library.
///
/// # Safety
/// `given` must be the buffer of the program's call: if the MPI library would accept the call, the
/// buffer may be read.
unsafe fn written(host: &'static Host, file: HandleWord, given: UserBuffer) -> (Staged, UserBuffer) {
    let mut staged = Staged::new(host, MAX_BYTES);
    let mut replacement = given;
    if files::view(host, Call::FileWrite, file).is_some() {
        // SAFETY: the buffer is that of the program's call, as the caller promises.
        replacement = unsafe { staged.write(given) };
    }
    kept(host, staged, given, replacement)
}

/// Stages the buffer of a read that begins at `at`. Returns the staged call and the buffer for the
/// MPI library.
///
/// # Safety
/// `given` must be the buffer of the program's call.
unsafe fn read_into(
    host: &'static Host,
    file: HandleWord,
    at: At,
    given: UserBuffer,
) -> (Staged, UserBuffer) {
    let mut staged = Staged::new(host, MAX_BYTES);
    let mut replacement = given;
    if let Some(view) = files::view(host, Call::FileRead, file) {
        let there = |view: View, bytes| view.holds(host, file, at, bytes);
        // SAFETY: the buffer is that of the program's call, as the caller promises.
        replacement = unsafe { staged.read(given, |bytes| there(view, bytes)) };
    }
    kept(host, staged, given, replacement)
}

/// Returns `staged` and `replacement`, the buffer for the MPI library. Instead returns an empty
/// `Staged` and the program's buffer if a library has been loaded meanwhile that may have changed
/// the view of the file without a call that ddtc sees.
fn kept(
    host: &'static Host,
    staged: Staged,
    given: UserBuffer,
    replacement: UserBuffer,
) -> (Staged, UserBuffer) {
    if staged.is_empty() {
        return (staged, given);
    }
    gpu::refresh_now();
    if !files::covered() {
        return (Staged::new(host, MAX_BYTES), given);
    }
    converted();
    (staged, replacement)
}

/// Writes to a file at the rank's own or the shared file pointer.
///
/// # Safety
/// As `MPI_File_write`, `MPI_File_write_all`, `MPI_File_write_shared` and `MPI_File_write_ordered`
/// (MPI 5.0, 14.4).
pub(super) unsafe fn write<N: Count>(
    host: &'static Host,
    forms: Forms<WriteFn<c_int>, WriteFn<i64>>,
    fh: Handle,
    buf: In,
    count: N,
    datatype: Handle,
    status: Out,
) -> c_int {
    // SAFETY: the arguments are those of the program's call. The MPI library gets them unchanged,
    // except that `w` is the program's buffer or the staging buffer that replaces it.
    unsafe {
        let given =
            UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, w) = written(host, fh, given);
        staged.sending(|| forward!(N, forms, host, (fh)(w.buf)[w.count](w.datatype)(status)))
    }
}

/// Writes to a file at an offset.
///
/// # Safety
/// As `MPI_File_write_at` and `MPI_File_write_at_all` (MPI 5.0, 14.4.2).
pub(super) unsafe fn write_at<N: Count>(
    host: &'static Host,
    forms: Forms<WriteAtFn<c_int>, WriteAtFn<i64>>,
    fh: Handle,
    offset: Offset,
    buf: In,
    count: N,
    datatype: Handle,
    status: Out,
) -> c_int {
    // SAFETY: the arguments are those of the program's call. The MPI library gets them unchanged,
    // except that `w` is the program's buffer or the staging buffer that replaces it.
    unsafe {
        let given =
            UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, w) = written(host, fh, given);
        staged.sending(|| forward!(N, forms, host, (fh)(offset)(w.buf)[w.count](w.datatype)(status)))
    }
}

/// Reads from a file at the rank's own file pointer.
///
/// # Safety
/// As `MPI_File_read` and `MPI_File_read_all` (MPI 5.0, 14.4.3).
pub(super) unsafe fn read<N: Count>(
    host: &'static Host,
    forms: Forms<ReadFn<c_int>, ReadFn<i64>>,
    fh: Handle,
    buf: Out,
    count: N,
    datatype: Handle,
    status: Out,
) -> c_int {
    // SAFETY: the arguments are those of the program's call, so `status` is null,
    // `MPI_STATUS_IGNORE` or a status. The call reads into `r`, which is the program's buffer or
    // the staging buffer that replaces it.
    unsafe {
        let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, r) = read_into(host, fh, At::Pointer, given);
        staged.reading(status, |s| forward!(N, forms, host, (fh)(r.buf)[r.count](r.datatype)(s)))
    }
}

/// Reads from a file at an offset.
///
/// # Safety
/// As `MPI_File_read_at` and `MPI_File_read_at_all` (MPI 5.0, 14.4.2).
pub(super) unsafe fn read_at<N: Count>(
    host: &'static Host,
    forms: Forms<ReadAtFn<c_int>, ReadAtFn<i64>>,
    fh: Handle,
    offset: Offset,
    buf: Out,
    count: N,
    datatype: Handle,
    status: Out,
) -> c_int {
    // SAFETY: the arguments are those of the program's call, so `status` is null,
    // `MPI_STATUS_IGNORE` or a status. The call reads into `r`, which is the program's buffer or
    // the staging buffer that replaces it.
    unsafe {
        let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, r) = read_into(host, fh, At::Offset(offset), given);
        staged.reading(status, |s| forward!(N, forms, host, (fh)(offset)(r.buf)[r.count](r.datatype)(s)))
    }
}

/// # Safety
/// As `MPI_File_open` (MPI 5.0, 14.2.1).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_File_open(
    comm: HandleWord,
    filename: *const c_char,
    amode: c_int,
    info: HandleWord,
    fh: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(open) = host.next.file_open else { return missing(host) };
    // SAFETY: the arguments are the program's, unchanged. After a success the MPI library has
    // written a handle, which is as wide as an address in every ABI.
    unsafe {
        let code = open(comm, filename, amode, info, fh);
        if code == 0 && !fh.is_null() {
            files::opened(host, *fh.cast::<HandleWord>(), amode);
        }
        code
    }
}

/// # Safety
/// As `MPI_File_close` (MPI 5.0, 14.2.2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_File_close(fh: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(close) = host.next.file_close else { return missing(host) };
    // The file is forgotten before the call, because once the file is closed, the MPI library may
    // give the same handle to a file that another thread opens.
    // SAFETY: the argument is the program's. If it is not null, it points to a handle, which is as
    // wide as an address in every ABI.
    unsafe {
        if !fh.is_null() {
            files::forget(*fh.cast::<HandleWord>());
        }
        close(fh)
    }
}

/// # Safety
/// As `MPI_File_set_view` (MPI 5.0, 14.3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_File_set_view(
    fh: HandleWord,
    disp: Offset,
    etype: HandleWord,
    filetype: HandleWord,
    datarep: *const c_char,
    info: HandleWord,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(set_view) = host.next.file_set_view else { return missing(host) };
    // SAFETY: the arguments are the program's, unchanged. After a success `datarep` is a string and
    // `etype` a type, because the MPI library has accepted them.
    unsafe {
        let code = set_view(fh, disp, etype, filetype, datarep, info);
        if code == 0 && !datarep.is_null() {
            files::viewed(host, fh, etype, datarep);
        } else {
            files::forget(fh);
        }
        code
    }
}
