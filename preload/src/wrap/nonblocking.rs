//! Nonblocking and persistent operations: started, not completed.

use std::ffi::{c_int, c_void};

use super::blocking::{INT, into, most, out};
use super::too_large;
use crate::handles::{NO_HOST, handle_at, missing, set_handle};
use crate::host::{HandleWord, Host, host};
use crate::messages::{pack, stage_receive};
use crate::partial_element::Origin;
use crate::requests::{self, Operation, Work, covered};

/// Runs a call that makes a request for an operation, and keeps the operation while it is not complete.
///
/// # Safety
/// `request` must be writable where `work` is given; `call` must start that work.
unsafe fn start(
    host: &'static Host,
    request: *mut c_void,
    operation: Option<Operation>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let Some(operation) = operation else { return call() };
    // The code alone does not tell: after an error handler of the program that returns, MPICH returns success.
    // SAFETY: a handle of the program's.
    let before = unsafe { handle_at(host, request) };
    // SAFETY: as above.
    unsafe { set_handle(host, request, host.request_null) };
    let code = call();
    // SAFETY: as above.
    let handle = unsafe { handle_at(host, request) } & host.mask;
    if handle == host.request_null {
        // SAFETY: as above.
        unsafe { set_handle(host, request, before) };
        return code;
    }
    if code != 0 {
        return code;
    }
    if operation.persistent {
        requests::put(handle, operation);
    } else {
        // SAFETY: the host made this request for the operation.
        unsafe { requests::started(host, handle, operation) };
    }
    code
}

/// What an operation needs, if every completion of its request will be seen.
fn ready<T>(host: &'static Host, request: *mut c_void, make: impl FnOnce() -> Option<T>) -> Option<T> {
    if request.is_null() || !covered(host) {
        return None;
    }
    let made = make()?;
    if requests::live() {
        requests::drain(host);
    }
    // Bindings that were loaded meanwhile are known now.
    covered(host).then_some(made)
}

macro_rules! sends {
    ($($name:ident $name_c:ident $small:ident $large:ident;)*) => {$(
        /// # Safety
        /// As the function of MPI 5.0, 3.7.2, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            buf: *const c_void, count: c_int, datatype: HandleWord, dest: c_int, tag: c_int, comm: HandleWord, request: *mut c_void,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(send) = host.f.$small else { return missing(host) };
            // SAFETY: the caller's arguments.
            unsafe {
                let packed = ready(host, request, || pack(host, buf, i64::from(count), datatype, dest, INT));
                let (buf, n, datatype) = out(host, &packed, buf, i64::from(count), datatype);
                let operation = packed.map(|p| Operation::once(Work::Send(p.into_buffer())));
                start(host, request, operation, || send(buf, n as c_int, datatype, dest, tag, comm, request))
            }
        }

        /// # Safety
        /// As the function of MPI 5.0, 3.7.2, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_c(
            buf: *const c_void, count: i64, datatype: HandleWord, dest: c_int, tag: c_int, comm: HandleWord, request: *mut c_void,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let (large, small) = (host.f.$large, host.f.$small);
            // SAFETY: the caller's arguments.
            unsafe {
                let packed = ready(host, request, || pack(host, buf, count, datatype, dest, most(large)));
                let (buf, n, datatype) = out(host, &packed, buf, count, datatype);
                let operation = packed.map(|p| Operation::once(Work::Send(p.into_buffer())));
                start(host, request, operation, || match (large, small, c_int::try_from(n)) {
                    (Some(send), ..) => send(buf, n, datatype, dest, tag, comm, request),
                    (None, Some(send), Ok(n)) => send(buf, n, datatype, dest, tag, comm, request),
                    (None, Some(_), Err(_)) => too_large(host, comm),
                    (None, None, _) => missing(host),
                })
            }
        }
    )*};
}

sends! {
    MPI_Isend MPI_Isend_c isend isend_c;
    MPI_Issend MPI_Issend_c issend issend_c;
    MPI_Irsend MPI_Irsend_c irsend irsend_c;
}

macro_rules! send_inits {
    ($($name:ident $name_c:ident $small:ident $large:ident;)*) => {$(
        /// # Safety
        /// As the function of MPI 5.0, 3.9, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            buf: *const c_void, count: c_int, datatype: HandleWord, dest: c_int, tag: c_int, comm: HandleWord, request: *mut c_void,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(init) = host.f.$small else { return missing(host) };
            // SAFETY: the caller's arguments; nothing is read before a start.
            unsafe {
                let from = buf.cast_mut();
                let staging = ready(host, request, || stage_receive(host, from, i64::from(count), datatype, Some(dest), INT, Origin::Named(comm)));
                let (buf, n, datatype) = into(host, &staging, from, i64::from(count), datatype);
                let operation = staging.map(|l| Operation::persistent(Work::Resend(l.without_handle())));
                start(host, request, operation, || init(buf, n as c_int, datatype, dest, tag, comm, request))
            }
        }

        /// # Safety
        /// As the function of MPI 5.0, 3.9, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_c(
            buf: *const c_void, count: i64, datatype: HandleWord, dest: c_int, tag: c_int, comm: HandleWord, request: *mut c_void,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let (large, small) = (host.f.$large, host.f.$small);
            // SAFETY: as above.
            unsafe {
                let from = buf.cast_mut();
                let staging = ready(host, request, || stage_receive(host, from, count, datatype, Some(dest), most(large), Origin::Named(comm)));
                let (buf, n, datatype) = into(host, &staging, from, count, datatype);
                let operation = staging.map(|l| Operation::persistent(Work::Resend(l.without_handle())));
                start(host, request, operation, || match (large, small, c_int::try_from(n)) {
                    (Some(init), ..) => init(buf, n, datatype, dest, tag, comm, request),
                    (None, Some(init), Ok(n)) => init(buf, n, datatype, dest, tag, comm, request),
                    (None, Some(_), Err(_)) => too_large(host, comm),
                    (None, None, _) => missing(host),
                })
            }
        }
    )*};
}

send_inits! {
    MPI_Send_init MPI_Send_init_c send_init send_init_c;
    MPI_Ssend_init MPI_Ssend_init_c ssend_init ssend_init_c;
    MPI_Rsend_init MPI_Rsend_init_c rsend_init rsend_init_c;
}

macro_rules! receives {
    ($($name:ident $name_c:ident $small:ident $large:ident $make:ident;)*) => {$(
        /// # Safety
        /// As the function of MPI 5.0, 3.7.2 or 3.9, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            buf: *mut c_void, count: c_int, datatype: HandleWord, source: c_int, tag: c_int, comm: HandleWord, request: *mut c_void,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(recv) = host.f.$small else { return missing(host) };
            // SAFETY: the caller's arguments.
            unsafe {
                let staging = ready(host, request, || stage_receive(host, buf, i64::from(count), datatype, Some(source), INT, Origin::Named(comm)));
                let (buf, n, datatype) = into(host, &staging, buf, i64::from(count), datatype);
                let operation = staging.map(|l| Operation::$make(Work::Receive(l.without_handle())));
                start(host, request, operation, || recv(buf, n as c_int, datatype, source, tag, comm, request))
            }
        }

        /// # Safety
        /// As the function of MPI 5.0, 3.7.2 or 3.9, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_c(
            buf: *mut c_void, count: i64, datatype: HandleWord, source: c_int, tag: c_int, comm: HandleWord, request: *mut c_void,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let (large, small) = (host.f.$large, host.f.$small);
            // SAFETY: the caller's arguments.
            unsafe {
                let staging = ready(host, request, || stage_receive(host, buf, count, datatype, Some(source), most(large), Origin::Named(comm)));
                let (buf, n, datatype) = into(host, &staging, buf, count, datatype);
                let operation = staging.map(|l| Operation::$make(Work::Receive(l.without_handle())));
                start(host, request, operation, || match (large, small, c_int::try_from(n)) {
                    (Some(recv), ..) => recv(buf, n, datatype, source, tag, comm, request),
                    (None, Some(recv), Ok(n)) => recv(buf, n, datatype, source, tag, comm, request),
                    (None, Some(_), Err(_)) => too_large(host, comm),
                    (None, None, _) => missing(host),
                })
            }
        }
    )*};
}

receives! {
    MPI_Irecv MPI_Irecv_c irecv irecv_c once;
    MPI_Recv_init MPI_Recv_init_c recv_init recv_init_c persistent;
}

/// # Safety
/// As `MPI_Imrecv` (MPI 5.0, 3.8.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Imrecv(
    buf: *mut c_void,
    count: c_int,
    datatype: HandleWord,
    message: *mut c_void,
    request: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(imrecv) = host.f.imrecv else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let staging = ready(host, request, || {
            stage_receive(host, buf, i64::from(count), datatype, None, INT, Origin::Matched)
        });
        let (buf, n, datatype) = into(host, &staging, buf, i64::from(count), datatype);
        let operation = staging.map(|l| Operation::once(Work::Receive(l.without_handle())));
        start(host, request, operation, || imrecv(buf, n as c_int, datatype, message, request))
    }
}

/// # Safety
/// As `MPI_Imrecv_c` (MPI 5.0, 3.8.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Imrecv_c(
    buf: *mut c_void,
    count: i64,
    datatype: HandleWord,
    message: *mut c_void,
    request: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let (large, small) = (host.f.imrecv_c, host.f.imrecv);
    // SAFETY: the caller's arguments.
    unsafe {
        let staging = ready(host, request, || {
            stage_receive(host, buf, count, datatype, None, most(large), Origin::Matched)
        });
        let (buf, n, datatype) = into(host, &staging, buf, count, datatype);
        let operation = staging.map(|l| Operation::once(Work::Receive(l.without_handle())));
        start(host, request, operation, || match (large, small, c_int::try_from(n)) {
            (Some(imrecv), ..) => imrecv(buf, n, datatype, message, request),
            (None, Some(imrecv), Ok(n)) => imrecv(buf, n, datatype, message, request),
            // No communicator is named.
            (None, Some(_), Err(_)) => too_large(host, host.world),
            (None, None, _) => missing(host),
        })
    }
}

/// # Safety
/// As `MPI_Start` (MPI 5.0, 3.9).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Start(request: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(start) = host.f.start else { return missing(host) };
    if !requests::live() || request.is_null() {
        // SAFETY: the caller's argument.
        return unsafe { start(request) };
    }
    // SAFETY: the caller's argument.
    unsafe { started(host, 1, request, || start(request)) }
}

/// # Safety
/// As `MPI_Startall` (MPI 5.0, 3.9).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Startall(count: c_int, requests: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(startall) = host.f.startall else { return missing(host) };
    if !requests::live() || requests.is_null() {
        // SAFETY: the caller's arguments.
        return unsafe { startall(count, requests) };
    }
    // SAFETY: the caller's arguments.
    unsafe { started(host, count, requests, || startall(count, requests)) }
}

/// Packs what persistent sends will send, and starts them.
///
/// # Safety
/// `requests` must be that many handles; `call` must start them.
unsafe fn started(
    host: &'static Host,
    count: c_int,
    handles: *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let taken = unsafe { super::completion::taken(host, count, handles) };
    for (_, _, operation) in &taken {
        if let Work::Resend(staging) = &operation.work
            && !operation.active
        {
            // SAFETY: a start says that the program's buffer is ready.
            unsafe { staging.fill(host) };
        }
    }
    let code = call();
    for (_, handle, mut operation) in taken {
        // Where the start failed too: the empty status of an inactive request unpacks nothing.
        operation.active = true;
        requests::put(handle, operation);
    }
    code
}
