//! Wrappers of the calls that start nonblocking operations, and of the calls that make or start
//! persistent operations. The wrappers of the calls that complete these operations are in
//! `wrap/completion.rs`.

use std::ffi::{c_int, c_void};

use ddtc::internal::count::Count;
use ddtc_hosts::tried::Kind;

use crate::bindings::{covered, may_be_covered};
use crate::call_memory::{completing, handlers_begun, start};
use crate::completing::{Answer, Batch};
use crate::eligible;
use crate::forms::{Form, Forms, forward};
use crate::handles::{NO_HOST, missing, sender_of};
use crate::host::{Host, host};
use crate::partial_element::Origin;
use crate::requests::{self, Asks, Operation};
use crate::signatures::{Handle, In, Int, Out};
use crate::staged::Staged;
use crate::user_buffer::UserBuffer;

type StartFn<B, N> = unsafe extern "C-unwind" fn(B, N, Handle, Int, Int, Handle, Out) -> c_int;
type ExchangeFn<N> =
    unsafe extern "C-unwind" fn(In, N, Handle, Int, Int, Out, N, Handle, Int, Int, Handle, Out) -> c_int;
type ReplaceFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Int, Int, Int, Int, Handle, Out) -> c_int;
type ImrecvFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Out, Out) -> c_int;

/// Stages the buffers of an operation by `stage`, if ddtc will see every call that may complete the
/// operation's request. Returns the staged buffers, and the arguments with which the MPI library
/// must be called: those that `stage` returns or, if nothing is staged, the program's own
/// (`given`).
pub(super) fn before<G: Copy>(
    host: &'static Host,
    request: *mut c_void,
    max_bytes: i64,
    given: G,
    stage: impl FnOnce(&mut Staged) -> G,
) -> (Staged, G) {
    let nothing = || (Staged::new(host, max_bytes), given);
    if request.is_null() || !may_be_covered(host) {
        return nothing();
    }
    // `drain` may raise the error of a freed request, and the program's error handler may then
    // leave the call by a jump. So `drain` is called before anything is staged.
    requests::drain(host);
    let mut staged = Staged::of_a_request(host, max_bytes);
    let replacement = stage(&mut staged);
    if staged.is_empty() {
        return nothing();
    }
    // `may_be_covered` uses only what is known already. `covered` also looks at the objects that
    // are loaded now, and tests new Fortran bindings. `covered` is called only here, so that a call
    // that stages nothing does not spend time on that.
    if covered(host) { (staged, replacement) } else { nothing() }
}

/// # Safety
/// As `MPI_Isend`, `MPI_Issend` and `MPI_Irsend` (MPI 5.0, 3.7.2).
#[inline]
pub(super) unsafe fn isend<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<In, c_int>, StartFn<In, i64>>,
    buf: In,
    count: N,
    datatype: Handle,
    dest: Int,
    tag: Int,
    comm: Handle,
    request: Out,
) -> c_int {
    let given = UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] };
    // SAFETY: the arguments are those of a send, as the caller promises, and `given` is its buffer.
    // `made` has a buffer with the same message, perhaps packed.
    unsafe {
        let made = before(host, request, forms.max_bytes::<N>(), given, |staged| staged.send(given, dest));
        sent::<N>(host, forms, made, (dest, tag, comm), request, Operation::once)
    }
}

/// # Safety
/// As `MPI_Send_init`, `MPI_Ssend_init` and `MPI_Rsend_init` (MPI 5.0, 3.9). The buffer is not read
/// before the operation is started.
#[inline]
pub(super) unsafe fn send_init<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<In, c_int>, StartFn<In, i64>>,
    buf: In,
    count: N,
    datatype: Handle,
    dest: Int,
    tag: Int,
    comm: Handle,
    request: Out,
) -> c_int {
    let given = UserBuffer { buf: buf.cast_mut(), count: count.wide(), datatype, entry: forms.entries[0] };
    // SAFETY: the arguments are those of a persistent send, as the caller promises, and `given` is
    // its buffer. `made` has a buffer for the same message, which is packed when the operation is
    // started.
    unsafe {
        let made =
            before(host, request, forms.max_bytes::<N>(), given, |staged| staged.send_later(given, dest));
        sent::<N>(host, forms, made, (dest, tag, comm), request, Operation::persistent)
    }
}

/// Calls the MPI library for a nonblocking or persistent send of the buffer `s`: a staging buffer
/// or, if nothing is staged, the program's buffer. `make` makes the operation of the request from
/// `staged`.
///
/// # Safety
/// As `MPI_Isend` or `MPI_Send_init`. `s` must be the buffer with which the MPI library must be
/// called after `staged` was staged.
#[inline]
unsafe fn sent<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<In, c_int>, StartFn<In, i64>>,
    (staged, s): (Staged, UserBuffer),
    (dest, tag, comm): (Int, Int, Handle),
    request: Out,
    make: impl FnOnce(Staged) -> Box<Operation>,
) -> c_int {
    // SAFETY: the caller promises the arguments of the send, with a buffer `s` from which the MPI
    // library may send. Something is staged only if `request` is not null.
    unsafe {
        start(host, (request, comm), staged, make, || {
            forward!(N, forms, host, (s.buf)[s.count](s.datatype)(dest)(tag)(comm)(request))
        })
    }
}

/// # Safety
/// As `MPI_Irecv` (MPI 5.0, 3.7.2).
#[inline]
pub(super) unsafe fn irecv<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<Out, c_int>, StartFn<Out, i64>>,
    buf: Out,
    count: N,
    datatype: Handle,
    source: Int,
    tag: Int,
    comm: Handle,
    request: Out,
) -> c_int {
    let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
    // SAFETY: the arguments are those of a receive, as the caller promises, and `given` is its
    // buffer.
    unsafe {
        let (staged, r) = before(host, request, forms.max_bytes::<N>(), given, |staged| {
            staged.receive(given, Some(source), Origin::Named(comm))
        });
        received::<N>(host, forms, (staged, r), (source, tag, comm), request, Operation::once)
    }
}

/// # Safety
/// As `MPI_Recv_init` (MPI 5.0, 3.9).
#[inline]
pub(super) unsafe fn recv_init<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<Out, c_int>, StartFn<Out, i64>>,
    buf: Out,
    count: N,
    datatype: Handle,
    source: Int,
    tag: Int,
    comm: Handle,
    request: Out,
) -> c_int {
    let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
    // SAFETY: the arguments are those of a persistent receive, as the caller promises, and `given`
    // is its buffer.
    unsafe {
        let (staged, r) = before(host, request, forms.max_bytes::<N>(), given, |staged| {
            staged.receive_later(given, source, Origin::Named(comm))
        });
        received::<N>(host, forms, (staged, r), (source, tag, comm), request, Operation::persistent)
    }
}

/// Calls the MPI library for a nonblocking or persistent receive into the buffer `r`: a staging
/// buffer or, if nothing is staged, the program's buffer. `make` makes the operation of the request
/// from `staged`.
///
/// # Safety
/// As `MPI_Irecv` or `MPI_Recv_init`. `r` must be the buffer with which the MPI library must be
/// called after `staged` was staged.
#[inline]
unsafe fn received<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<Out, c_int>, StartFn<Out, i64>>,
    (staged, r): (Staged, UserBuffer),
    (source, tag, comm): (Int, Int, Handle),
    request: Out,
    make: impl FnOnce(Staged) -> Box<Operation>,
) -> c_int {
    // SAFETY: the caller promises the arguments of the receive, with a buffer `r` into which the
    // MPI library may receive. Something is staged only if `request` is not null.
    unsafe {
        start(host, (request, comm), staged, make, || {
            forward!(N, forms, host, (r.buf)[r.count](r.datatype)(source)(tag)(comm)(request))
        })
    }
}

/// Returns false if messages may be converted under this MPI library, but not those of exchanges
/// (`MPI_Isendrecv`). Returns true if no message may be converted, because then the decision about
/// each buffer bypasses it.
fn may_exchange(host: &'static Host) -> bool {
    let kinds = eligible::kinds(host);
    kinds.has(Kind::Exchanges) || !kinds.has(Kind::Messages)
}

/// # Safety
/// As `MPI_Isendrecv` (MPI 5.0, 3.10).
#[inline]
pub(super) unsafe fn isendrecv<N: Count>(
    host: &'static Host,
    forms: Forms<ExchangeFn<c_int>, ExchangeFn<i64>>,
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
    request: Out,
) -> c_int {
    let sent = UserBuffer {
        buf: sendbuf.cast_mut(),
        count: sendcount.wide(),
        datatype: sendtype,
        entry: forms.entries[0],
    };
    let received =
        UserBuffer { buf: recvbuf, count: recvcount.wide(), datatype: recvtype, entry: forms.entries[1] };
    // SAFETY: the caller promises the arguments of an exchange of `sent` and `received`. `s` and
    // `r` are these buffers or staging buffers for their messages. Something is staged only if
    // `request` is not null.
    unsafe {
        let (staged, (s, r)) = before(host, request, forms.max_bytes::<N>(), (sent, received), |staged| {
            if !may_exchange(host) {
                return (sent, received);
            }
            let s = staged.send(sent, dest);
            // If the MPI library leaves the status of exchanges empty, ddtc cannot find out how
            // many bytes were received, so the receive is bypassed.
            let fills_status = host.profile.fills_exchange_status;
            (
                s,
                if fills_status {
                    staged.receive(received, Some(source), Origin::Named(comm))
                } else {
                    received
                },
            )
        });
        start(host, (request, comm), staged, exchange(host, source), || {
            forward!(
                N,
                forms,
                host,
                (s.buf)[s.count](s.datatype)(dest)(sendtag)(r.buf)[r.count](r.datatype)(source)(recvtag)(
                    comm
                )(request)
            )
        })
    }
}

/// # Safety
/// As `MPI_Isendrecv_replace` (MPI 5.0, 3.10).
#[inline]
pub(super) unsafe fn isendrecv_replace<N: Count>(
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
    request: Out,
) -> c_int {
    let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
    // True if neither the destination nor the source is `MPI_PROC_NULL`.
    let both = host.abi.is_some_and(|a| dest != a.proc_null && source != a.proc_null);
    // SAFETY: the caller promises the arguments of an exchange in place of `given`. `g` is `given`
    // or a staging buffer for its message. Something is staged only if `request` is not null.
    unsafe {
        let converts = both && may_exchange(host);
        let (staged, g) = before(host, request, forms.max_bytes::<N>(), given, |staged| match converts {
            false => given,
            true if host.profile.fills_exchange_status => staged.replace(given, Origin::Named(comm)),
            true => staged.send(given, dest),
        });
        if staged.is_empty() || host.profile.fills_exchange_status {
            return start(host, (request, comm), staged, exchange(host, source), || {
                forward!(
                    N,
                    forms,
                    host,
                    (g.buf)[g.count](g.datatype)(dest)(sendtag)(source)(recvtag)(comm)(request)
                )
            });
        }
        // The MPI library leaves the status of exchanges empty, so only the outgoing message is
        // packed, and the receive goes to the program's buffer. The call becomes `MPI_Isendrecv` of
        // these two buffers.
        let Forms { call, wanted, entries, on, .. } = forms;
        let (small, large) = (host.next_counted.isendrecv, host.next_counted.isendrecv_c);
        let forms = Forms { small, large, call, wanted, entries, on };
        start(host, (request, comm), staged, exchange(host, source), || {
            forward!(
                N,
                forms,
                host,
                (g.buf)[g.count](g.datatype)(dest)(sendtag)(buf)[given.count](datatype)(source)(recvtag)(
                    comm
                )(request)
            )
        })
    }
}

/// Returns the constructor for the operation of an exchange: [`Operation::exchange`], because its
/// one request is for a send and a receive, or [`Operation::once`] if the source is `MPI_PROC_NULL`
/// and nothing is received.
fn exchange(host: &Host, source: Int) -> fn(Staged) -> Box<Operation> {
    let receives = host.abi.is_some_and(|abi| source != abi.proc_null);
    if receives { Operation::exchange } else { Operation::once }
}

/// # Safety
/// As `MPI_Imrecv` (MPI 5.0, 3.8.3).
#[inline]
pub(super) unsafe fn imrecv<N: Count>(
    host: &'static Host,
    forms: Forms<ImrecvFn<c_int>, ImrecvFn<i64>>,
    buf: Out,
    count: N,
    datatype: Handle,
    message: Out,
    request: Out,
) -> c_int {
    let given = UserBuffer { buf, count: count.wide(), datatype, entry: forms.entries[0] };
    // SAFETY: the caller promises the arguments of a matched receive into `given`. `r` is `given`
    // or a staging buffer for its message. Something is staged only if `request` is not null.
    unsafe {
        let (staged, r) = before(host, request, forms.max_bytes::<N>(), given, |staged| {
            staged.receive(given, sender_of(host, message), Origin::Matched)
        });
        start(host, (request, 0), staged, Operation::once, || {
            forward!(N, forms, host, (r.buf)[r.count](r.datatype)(message)(request))
        })
    }
}

/// # Safety
/// As `MPI_Start` (MPI 5.0, 3.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Start(request: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(start) = host.next.start else { return missing(host) };
    if !requests::live() {
        // SAFETY: the caller promises the argument of `MPI_Start`.
        return unsafe { start(request) };
    }
    // SAFETY: the caller promises the argument of `MPI_Start`: `request` points to one handle, or
    // is null, which the MPI library refuses.
    unsafe { started(host, 1, request, || start(request)) }
}

/// # Safety
/// As `MPI_Startall` (MPI 5.0, 3.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Startall(count: c_int, requests: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(startall) = host.next.startall else { return missing(host) };
    if !requests::live() {
        // SAFETY: the caller promises the arguments of `MPI_Startall`.
        return unsafe { startall(count, requests) };
    }
    // SAFETY: the caller promises the arguments of `MPI_Startall`: `requests` points to `count`
    // handles, or is null, which the MPI library refuses.
    unsafe { started(host, count, requests, || startall(count, requests)) }
}

/// Starts requests by `call`. Before that, packs the buffers that the converted persistent
/// operations among the requests send, and prepares the staging buffers into which they receive.
///
/// # Safety
/// `handles` must be null or point to `count` handles, and `call` must start these requests.
#[inline(never)] // Starts that are bypassed need not save registers for this function.
unsafe fn started(
    host: &'static Host,
    count: c_int,
    handles: *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: `handles` points to `count` handles or is null, as the caller promises.
    let Some(batch) = (unsafe { Batch::find(host, count, handles, Asks::Starts) }) else { return call() };
    let mut are_doubtful = false;
    for found in batch.operations() {
        // An operation that the table has as active may be inactive all the same, because an
        // earlier call has ended it with an error but has not reported the error.
        // `MPI_Request_get_status` then returns an empty status. For a receive that is complete,
        // but not yet completed by the program, the status has the source of the message.
        // SAFETY: the program starts this request, so the request is not freed.
        let is_inactive = !found.active || unsafe { requests::inactive(host, found.handle) };
        let Some((mut operation, mark)) = found.take_marked() else { continue };
        if is_inactive {
            // SAFETY: by starting the operation the program gives its buffers to the operation, so
            // they can be read.
            unsafe { operation.staged.fill() };
        }
        operation.begin_start();
        are_doubtful |= operation.is_doubtful;
        requests::put(found.handle, operation);
        drop(mark);
    }
    let handlers = handlers_begun();
    completing(batch, Answer::Nowhere(None), call, |batch, code| {
        // MPICH returns success for a refused start after an error handler of the program has
        // returned.
        if are_doubtful && code == 0 && handlers_begun() == handlers {
            requests::are_started(batch.operations());
        }
        code
    })
}
