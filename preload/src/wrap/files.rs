//! Files: what is written is packed first, what is read is unpacked after.
//!
//! Blocking calls, of one rank or of all. Not here: nonblocking ones, which hosts carry out by another way where the type in memory has gaps, those in two halves, and
//! reads by the shared pointer, which another rank may move after this one has looked for the end of the file.

use std::ffi::{c_char, c_int, c_void};

use ddtc::count::Count;
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

/// Most bytes of a call: systems move less than this at once, and what hosts do then depends on how many pieces there are.
const MOST: i64 = c_int::MAX as i64;

/// Before a write. What is staged, and what the host is given.
///
/// # Safety
/// As the call: if the host would succeed, the buffer is what is given.
unsafe fn written(host: &'static Host, file: HandleWord, given: UserBuffer) -> (Staged, UserBuffer) {
    let mut staged = Staged::new(host, MOST);
    let mut replacement = given;
    if files::view(host, Call::FileWrite, file).is_some() {
        // SAFETY: as the caller promises.
        replacement = unsafe { staged.write(given) };
    }
    kept(host, staged, given, replacement)
}

/// Before a read.
///
/// # Safety
/// As the call.
unsafe fn read_into(
    host: &'static Host,
    file: HandleWord,
    at: At,
    given: UserBuffer,
) -> (Staged, UserBuffer) {
    let mut staged = Staged::new(host, MOST);
    let mut replacement = given;
    if let Some(view) = files::view(host, Call::FileRead, file) {
        let there = |view: View, bytes| view.holds(host, file, at, bytes);
        // SAFETY: as the caller promises.
        replacement = unsafe { staged.read(given, |bytes| there(view, bytes)) };
    }
    kept(host, staged, given, replacement)
}

/// Returns what was staged, or nothing where a binding that was loaded meanwhile may have changed the view.
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
        return (Staged::new(host, MOST), given);
    }
    converted();
    (staged, replacement)
}

/// # Safety
/// As `MPI_File_write`, `MPI_File_write_all`, `MPI_File_write_shared` and `MPI_File_write_ordered` (MPI 5.0, 14.4).
pub(super) unsafe fn write<N: Count>(
    host: &'static Host,
    forms: Forms<WriteFn<c_int>, WriteFn<i64>>,
    fh: Handle,
    buf: In,
    count: N,
    datatype: Handle,
    status: Out,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe {
        let given =
            UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, w) = written(host, fh, given);
        staged.sending(|| forward!(N, forms, host, (fh)(w.buf)[w.count](w.datatype)(status)))
    }
}

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
    // SAFETY: the caller's arguments.
    unsafe {
        let given =
            UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, w) = written(host, fh, given);
        staged.sending(|| forward!(N, forms, host, (fh)(offset)(w.buf)[w.count](w.datatype)(status)))
    }
}

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
    // SAFETY: the caller's arguments.
    unsafe {
        let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, r) = read_into(host, fh, At::Pointer, given);
        staged.receiving(status, |s| forward!(N, forms, host, (fh)(r.buf)[r.count](r.datatype)(s)))
    }
}

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
    // SAFETY: the caller's arguments.
    unsafe {
        let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
        let (staged, r) = read_into(host, fh, At::Offset(offset), given);
        staged.receiving(status, |s| forward!(N, forms, host, (fh)(offset)(r.buf)[r.count](r.datatype)(s)))
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
    // SAFETY: the caller's arguments; after a success the host has written a handle, which is as wide as an address in every ABI.
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
    // SAFETY: the caller's argument; before the call, which may give the handle's value to another thread's file.
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
    // SAFETY: the caller's arguments.
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
