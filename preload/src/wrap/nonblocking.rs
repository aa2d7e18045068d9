//! Nonblocking and persistent operations: started, not completed.

use std::ffi::{c_int, c_void};

use ddtc::count::Count;

use crate::bindings::{covered, may_be_covered};
use crate::completing::found;
use crate::forms::{Form, Forms, forward};
use crate::handles::{NO_HOST, missing};
use crate::held::start;
use crate::host::{Host, host};
use crate::partial_element::Origin;
use crate::requests::{self, Operation};
use crate::signatures::{Handle, In, Int, Out};
use crate::staged::Staged;
use crate::user_buffer::UserBuffer;

type StartFn<B, N> = unsafe extern "C-unwind" fn(B, N, Handle, Int, Int, Handle, Out) -> c_int;
type ExchangeFn<N> =
    unsafe extern "C-unwind" fn(In, N, Handle, Int, Int, Out, N, Handle, Int, Int, Handle, Out) -> c_int;
type ReplaceFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Int, Int, Int, Int, Handle, Out) -> c_int;
type ImrecvFn<N> = unsafe extern "C-unwind" fn(Out, N, Handle, Out, Out) -> c_int;

/// Stages the buffers of an operation by `stage`, if every completion of its request will be seen. What the host is given: `given` is
/// what the program gave.
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
    // It may raise the error of a freed request, so nothing is staged yet.
    requests::drain(host);
    let mut staged = Staged::of_a_request(host, max_bytes);
    let replacement = stage(&mut staged);
    if staged.is_empty() {
        return nothing();
    }
    // Bindings that were loaded meanwhile are known now.
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
    // SAFETY: the caller's arguments.
    unsafe {
        let made = before(host, request, forms.max_bytes::<N>(), given, |staged| staged.send(given, dest));
        sent::<N>(host, forms, made, (dest, tag, comm), request, Operation::once)
    }
}

/// # Safety
/// As `MPI_Send_init`, `MPI_Ssend_init` and `MPI_Rsend_init` (MPI 5.0, 3.9): nothing is read before a start.
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
    // SAFETY: the caller's arguments.
    unsafe {
        let made =
            before(host, request, forms.max_bytes::<N>(), given, |staged| staged.send_later(given, dest));
        sent::<N>(host, forms, made, (dest, tag, comm), request, Operation::persistent)
    }
}

/// A send of what is staged, whose operation `make` makes.
///
/// # Safety
/// As `MPI_Isend`.
#[inline]
unsafe fn sent<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<In, c_int>, StartFn<In, i64>>,
    (staged, s): (Staged, UserBuffer),
    (dest, tag, comm): (Int, Int, Handle),
    request: Out,
    make: impl FnOnce(Staged) -> Box<Operation>,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe {
        start(host, request, staged, make, || {
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
    // SAFETY: the caller's arguments.
    unsafe { receive::<N>(host, forms, given, (source, tag, comm), request, Operation::once) }
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
    // SAFETY: the caller's arguments.
    unsafe { receive::<N>(host, forms, given, (source, tag, comm), request, Operation::persistent) }
}

/// A receive whose operation `make` makes.
///
/// # Safety
/// As `MPI_Irecv`.
#[inline]
unsafe fn receive<N: Count>(
    host: &'static Host,
    forms: Forms<StartFn<Out, c_int>, StartFn<Out, i64>>,
    given: UserBuffer,
    (source, tag, comm): (Int, Int, Handle),
    request: Out,
    make: impl FnOnce(Staged) -> Box<Operation>,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe {
        let (staged, r) = before(host, request, forms.max_bytes::<N>(), given, |staged| {
            staged.receive(given, Some(source), Origin::Named(comm))
        });
        start(host, request, staged, make, || {
            forward!(N, forms, host, (r.buf)[r.count](r.datatype)(source)(tag)(comm)(request))
        })
    }
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
    // SAFETY: the caller's arguments.
    unsafe {
        let (staged, (s, r)) = before(host, request, forms.max_bytes::<N>(), (sent, received), |staged| {
            let s = staged.send(sent, dest);
            // What nobody tells the length of is left to the host.
            let told = host.profile.tells_exchanges;
            (s, if told { staged.receive(received, Some(source), Origin::Named(comm)) } else { received })
        });
        start(host, request, staged, exchange(host, source), || {
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
    // Neither side is the null process.
    let both = host.abi.is_some_and(|a| dest != a.proc_null && source != a.proc_null);
    // SAFETY: the caller's arguments.
    unsafe {
        let (staged, g) = before(host, request, forms.max_bytes::<N>(), given, |staged| match both {
            false => given,
            true if host.profile.tells_exchanges => staged.replace(given, Origin::Named(comm)),
            true => staged.send(given, dest),
        });
        if staged.is_empty() || host.profile.tells_exchanges {
            return start(host, request, staged, exchange(host, source), || {
                forward!(
                    N,
                    forms,
                    host,
                    (g.buf)[g.count](g.datatype)(dest)(sendtag)(source)(recvtag)(comm)(request)
                )
            });
        }
        // What is sent is packed, what is received is the host's: an exchange of two buffers.
        let Forms { call, wanted, entries, on, .. } = forms;
        let (small, large) = (host.next_counted.isendrecv, host.next_counted.isendrecv_c);
        let forms = Forms { small, large, call, wanted, entries, on };
        start(host, request, staged, exchange(host, source), || {
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

/// The operation of an exchange: one request for a send and a receive, of which either may be converted.
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
    // SAFETY: the caller's arguments.
    unsafe {
        let (staged, r) = before(host, request, forms.max_bytes::<N>(), given, |staged| {
            staged.receive(given, None, Origin::Matched)
        });
        start(host, request, staged, Operation::once, || {
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
        // SAFETY: the caller's argument.
        return unsafe { start(request) };
    }
    // SAFETY: the caller's argument.
    unsafe { started(host, 1, request, || start(request)) }
}

/// # Safety
/// As `MPI_Startall` (MPI 5.0, 3.9).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Startall(count: c_int, requests: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(startall) = host.next.startall else { return missing(host) };
    if !requests::live() {
        // SAFETY: the caller's arguments.
        return unsafe { startall(count, requests) };
    }
    // SAFETY: the caller's arguments.
    unsafe { started(host, count, requests, || startall(count, requests)) }
}

/// Packs what persistent sends will send, and starts them.
///
/// # Safety
/// `handles` must be null or that many handles; `call` must start them.
#[inline(never)] // What it keeps in registers and on the stack is nothing to a start of the host's.
unsafe fn started(
    host: &'static Host,
    count: c_int,
    handles: *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let operations = unsafe { found(host, count, handles) };
    for found in &operations {
        // A call that ended with an error may not have said that the request is inactive. A receive
        // that is complete has a status with its source; the status of an inactive request is
        // empty.
        // SAFETY: the program's request, which lives.
        let is_inactive = !found.active || unsafe { requests::inactive(host, found.handle) };
        let Some(mut operation) = found.take() else { continue };
        if is_inactive {
            // SAFETY: a start says that the program's buffers are ready.
            unsafe { operation.staged.fill() };
        }
        // Where the start fails too: the empty status of an inactive request unpacks nothing.
        operation.active = true;
        requests::put(found.handle, operation);
    }
    drop(operations);
    call()
}
