//! Wrappers of blocking sends and receives.

use std::ffi::c_int;

use ddtc::internal::count::Count;

use crate::forms::{Form, Forms, forward};
use crate::handles::sender_of;
use crate::host::Host;
use crate::partial_element::Origin;
use crate::signatures::{Handle, In, Int, Out};
use crate::staged::Staged;
use crate::user_buffer::UserBuffer;

type SendFn<N> = unsafe extern "C-unwind" fn(In, N, Handle, Int, Int, Handle) -> c_int;
type RecvFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Int, Int, Handle, Out) -> c_int;
type MrecvFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Out, Out) -> c_int;
type SendrecvFn<N> =
    unsafe extern "C-unwind" fn(In, N, Handle, Int, Int, Out, N, Handle, Int, Int, Handle, Out) -> c_int;
type ReplaceFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Int, Int, Int, Int, Handle, Out) -> c_int;

/// Sends a message. If the message is converted, the MPI library sends packed bytes.
///
/// # Safety
/// As `MPI_Send`, `MPI_Ssend`, `MPI_Rsend` and `MPI_Bsend` (MPI 5.0, 3.2.1 and 3.4).
#[inline]
pub(super) unsafe fn send<N: Count>(
    host: &'static Host,
    forms: Forms<SendFn<c_int>, SendFn<i64>>,
    buf: In,
    count: N,
    datatype: Handle,
    dest: Int,
    tag: Int,
    comm: Handle,
) -> c_int {
    let mut staged = Staged::new(host, forms.max_bytes::<N>());
    // SAFETY: the arguments are those of the program's call. The MPI library gets them unchanged,
    // except that `s` is the program's buffer or the staging buffer that replaces it.
    unsafe {
        let s = staged.send(
            UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] },
            dest,
        );
        staged.sending(|| forward!(N, forms, host, (s.buf)[s.count](s.datatype)(dest)(tag)(comm)))
    }
}

/// Receives a message. If the message is converted, its bytes are unpacked after the call.
///
/// # Safety
/// As `MPI_Recv` (MPI 5.0, 3.2.4).
#[inline]
pub(super) unsafe fn recv<N: Count>(
    host: &'static Host,
    forms: Forms<RecvFn<c_int>, RecvFn<i64>>,
    buf: Out,
    count: N,
    datatype: Handle,
    source: Int,
    tag: Int,
    comm: Handle,
    status: Out,
) -> c_int {
    let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
    let mut staged = Staged::new(host, forms.max_bytes::<N>());
    // SAFETY: the arguments are those of the program's call, so `status` is null,
    // `MPI_STATUS_IGNORE` or a status. The call receives into `r`, which is the program's buffer or
    // the staging buffer that replaces it.
    unsafe {
        let r = staged.receive(given, Some(source), Origin::Named(comm));
        staged.receiving(status, |s| {
            forward!(N, forms, host, (r.buf)[r.count](r.datatype)(source)(tag)(comm)(s))
        })
    }
}

/// Receives a message that was matched before by `MPI_Mprobe` or `MPI_Improbe`. If the message is
/// converted, its bytes are unpacked after the call.
///
/// # Safety
/// As `MPI_Mrecv` (MPI 5.0, 3.8.3).
#[inline]
pub(super) unsafe fn mrecv<N: Count>(
    host: &'static Host,
    forms: Forms<MrecvFn<c_int>, MrecvFn<i64>>,
    buf: Out,
    count: N,
    datatype: Handle,
    message: Out,
    status: Out,
) -> c_int {
    let mut staged = Staged::new(host, forms.max_bytes::<N>());
    // SAFETY: the arguments are those of the program's call, so `status` is null,
    // `MPI_STATUS_IGNORE` or a status. The call receives into `r`, which is the program's buffer or
    // the staging buffer that replaces it.
    unsafe {
        let r = staged.receive(
            UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] },
            sender_of(host, message),
            Origin::Matched,
        );
        staged.receiving(status, |s| forward!(N, forms, host, (r.buf)[r.count](r.datatype)(message)(s)))
    }
}

/// Sends one message and receives another, each of which may be converted.
///
/// # Safety
/// As `MPI_Sendrecv` (MPI 5.0, 3.10).
#[inline]
pub(super) unsafe fn sendrecv<N: Count>(
    host: &'static Host,
    forms: Forms<SendrecvFn<c_int>, SendrecvFn<i64>>,
    sendbuf: In,
    sendcount: N,
    sendtype: Handle,
    dest: Int,
    sendtag: Int,
    recvbuf: Out,
    recvcount: N,
    recvtype: Handle,
    source: Int,
    recvtag: Int,
    comm: Handle,
    status: Out,
) -> c_int {
    let mut staged = Staged::new(host, forms.max_bytes::<N>());
    let sent = UserBuffer {
        buf: sendbuf.cast_mut(),
        count: sendcount.wide(),
        datatype: sendtype,
        entry: forms.entries[0],
    };
    let received =
        UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
    // SAFETY: the arguments are those of the program's call, so `status` is null,
    // `MPI_STATUS_IGNORE` or a status. The call sends from `s` and receives into `r`, each of which
    // is the program's buffer or the staging buffer that replaces it.
    unsafe {
        let s = staged.send(sent, dest);
        let r = staged.receive(received, Some(source), Origin::Named(comm));
        staged.receiving(status, |status| {
            forward!(
                N,
                forms,
                host,
                (s.buf)[s.count](s.datatype)(dest)(sendtag)(r.buf)[r.count](r.datatype)(source)(recvtag)(
                    comm
                )(status)
            )
        })
    }
}

/// Sends a message and receives another into the same buffer. Either both messages are converted,
/// or neither is.
///
/// # Safety
/// As `MPI_Sendrecv_replace` (MPI 5.0, 3.10).
#[inline]
pub(super) unsafe fn sendrecv_replace<N: Count>(
    host: &'static Host,
    forms: Forms<ReplaceFn<c_int>, ReplaceFn<i64>>,
    buf: Out,
    count: N,
    datatype: Handle,
    dest: Int,
    sendtag: Int,
    source: Int,
    recvtag: Int,
    comm: Handle,
    status: Out,
) -> c_int {
    let mut staged = Staged::new(host, forms.max_bytes::<N>());
    let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
    // The buffer is converted only if neither of the two ranks is `MPI_PROC_NULL`.
    let both = host.abi.is_some_and(|a| dest != a.proc_null && source != a.proc_null);
    // SAFETY: the arguments are those of the program's call, so `status` is null,
    // `MPI_STATUS_IGNORE` or a status. The call sends from `r` and receives into it; `r` is the
    // program's buffer or the staging buffer that replaces it.
    unsafe {
        let r = if both { staged.replace(given, Origin::Named(comm)) } else { given };
        staged.reading(status, |s| {
            forward!(N, forms, host, (r.buf)[r.count](r.datatype)(dest)(sendtag)(source)(recvtag)(comm)(s))
        })
    }
}
