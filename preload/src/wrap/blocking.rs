//! Blocking sends and receives.
#![allow(clippy::too_many_arguments, reason = "the signatures of MPI")]

use std::ffi::{c_int, c_void};

use super::too_large;
use crate::handles::{NO_HOST, missing};
use crate::host::{HandleWord, Host, host};
use crate::messages::{Packed, ReceiveStaging, pack, stage_receive};
use crate::partial_element::Origin;
use crate::status::{Status, mark};

/// Most bytes of a message whose length is an `int`, and of one whose host has the large-count form.
pub(super) const INT: i64 = c_int::MAX as i64;

pub(super) fn most<F>(large: Option<F>) -> i64 {
    large.map_or(INT, |_| i64::MAX)
}

/// What the host is given to send: the packed bytes, or what the program gave.
pub(super) fn out(
    host: &Host,
    packed: &Option<Packed>,
    buf: *const c_void,
    count: i64,
    datatype: HandleWord,
) -> (*const c_void, i64, HandleWord) {
    match packed {
        Some(p) => (p.at(), p.bytes(), host.packed),
        None => (buf, count, datatype),
    }
}

/// The same for a receive.
pub(super) fn into(
    host: &Host,
    staging: &Option<ReceiveStaging>,
    buf: *mut c_void,
    count: i64,
    datatype: HandleWord,
) -> (*mut c_void, i64, HandleWord) {
    match staging {
        Some(l) => (l.at(), l.bytes(), host.packed),
        None => (buf, count, datatype),
    }
}

/// Runs a receiving call with a status that can be read, and unpacks after its success.
///
/// # Safety
/// `status` must be null, the host's mark for none, or a status; `call` must be a receive into the staging.
unsafe fn received(
    host: &'static Host,
    staging: Option<ReceiveStaging>,
    status: *mut c_void,
    call: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    let (Some(staging), Some(abi)) = (staging, host.abi) else { return call(status) };
    if status.is_null() && abi.status_ignore != 0 {
        // An error, and the host's to raise.
        return call(status);
    }
    let mut own = Status::new();
    let status = own.unless(abi, status);
    // SAFETY: a status, the user's or ours.
    let marked = unsafe { mark(abi, status) };
    let code = call(status);
    // SAFETY: the same status; if the receive has succeeded it is its.
    let refused =
        unsafe { if marked.written(abi, status) && code == 0 { staging.unpack(host, status) } else { None } };
    refused.map_or(code, |refused| refused.raise(host))
}

macro_rules! sends {
    ($($name:ident $name_c:ident $small:ident $large:ident;)*) => {$(
        /// # Safety
        /// As the function of MPI 5.0, 3.2.1 or 3.4, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            buf: *const c_void, count: c_int, datatype: HandleWord, dest: c_int, tag: c_int, comm: HandleWord,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            let Some(send) = host.f.$small else { return missing(host) };
            // SAFETY: the caller's arguments.
            unsafe {
                let packed = pack(host, buf, i64::from(count), datatype, dest, INT);
                let (buf, n, datatype) = out(host, &packed, buf, i64::from(count), datatype);
                send(buf, n as c_int, datatype, dest, tag, comm)
            }
        }

        /// # Safety
        /// As the function of MPI 5.0, 3.2.1 or 3.4, of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_c(
            buf: *const c_void, count: i64, datatype: HandleWord, dest: c_int, tag: c_int, comm: HandleWord,
        ) -> c_int {
            let Some(host) = host() else { return NO_HOST };
            // SAFETY: the caller's arguments.
            unsafe {
                let packed = pack(host, buf, count, datatype, dest, most(host.f.$large));
                let (buf, n, datatype) = out(host, &packed, buf, count, datatype);
                match (host.f.$large, host.f.$small, c_int::try_from(n)) {
                    (Some(send), _, _) => send(buf, n, datatype, dest, tag, comm),
                    (None, Some(send), Ok(n)) => send(buf, n, datatype, dest, tag, comm),
                    (None, Some(_), Err(_)) => too_large(host, comm),
                    (None, None, _) => missing(host),
                }
            }
        }
    )*};
}

sends! {
    MPI_Send MPI_Send_c send send_c;
    MPI_Ssend MPI_Ssend_c ssend ssend_c;
    MPI_Rsend MPI_Rsend_c rsend rsend_c;
}

/// # Safety
/// As `MPI_Recv` (MPI 5.0, 3.2.4).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Recv(
    buf: *mut c_void,
    count: c_int,
    datatype: HandleWord,
    source: c_int,
    tag: c_int,
    comm: HandleWord,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(recv) = host.f.recv else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let staging =
            stage_receive(host, buf, i64::from(count), datatype, Some(source), INT, Origin::Named(comm));
        let (buf, n, datatype) = into(host, &staging, buf, i64::from(count), datatype);
        received(host, staging, status, |s| recv(buf, n as c_int, datatype, source, tag, comm, s))
    }
}

/// # Safety
/// As `MPI_Recv_c` (MPI 5.0, 3.2.4).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Recv_c(
    buf: *mut c_void,
    count: i64,
    datatype: HandleWord,
    source: c_int,
    tag: c_int,
    comm: HandleWord,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    // SAFETY: the caller's arguments.
    unsafe {
        let staging =
            stage_receive(host, buf, count, datatype, Some(source), most(host.f.recv_c), Origin::Named(comm));
        let (buf, n, datatype) = into(host, &staging, buf, count, datatype);
        received(host, staging, status, |s| match (host.f.recv_c, host.f.recv, c_int::try_from(n)) {
            (Some(recv), _, _) => recv(buf, n, datatype, source, tag, comm, s),
            (None, Some(recv), Ok(n)) => recv(buf, n, datatype, source, tag, comm, s),
            (None, Some(_), Err(_)) => too_large(host, comm),
            (None, None, _) => missing(host),
        })
    }
}

/// # Safety
/// As `MPI_Sendrecv` (MPI 5.0, 3.10).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Sendrecv(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: HandleWord,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: HandleWord,
    source: c_int,
    recvtag: c_int,
    comm: HandleWord,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(f) = host.f.sendrecv else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let packed = pack(host, sendbuf, i64::from(sendcount), sendtype, dest, INT);
        let (sb, sn, st) = out(host, &packed, sendbuf, i64::from(sendcount), sendtype);
        let staging = stage_receive(
            host,
            recvbuf,
            i64::from(recvcount),
            recvtype,
            Some(source),
            INT,
            Origin::Named(comm),
        );
        let (rb, rn, rt) = into(host, &staging, recvbuf, i64::from(recvcount), recvtype);
        received(host, staging, status, |s| {
            f(sb, sn as c_int, st, dest, sendtag, rb, rn as c_int, rt, source, recvtag, comm, s)
        })
    }
}

/// # Safety
/// As `MPI_Sendrecv_c` (MPI 5.0, 3.10).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Sendrecv_c(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: HandleWord,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: HandleWord,
    source: c_int,
    recvtag: c_int,
    comm: HandleWord,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let (large, small) = (host.f.sendrecv_c, host.f.sendrecv);
    // SAFETY: the caller's arguments.
    unsafe {
        let packed = pack(host, sendbuf, sendcount, sendtype, dest, most(large));
        let (sb, sn, st) = out(host, &packed, sendbuf, sendcount, sendtype);
        let staging =
            stage_receive(host, recvbuf, recvcount, recvtype, Some(source), most(large), Origin::Named(comm));
        let (rb, rn, rt) = into(host, &staging, recvbuf, recvcount, recvtype);
        received(host, staging, status, |s| match (large, small, c_int::try_from(sn), c_int::try_from(rn)) {
            (Some(f), ..) => f(sb, sn, st, dest, sendtag, rb, rn, rt, source, recvtag, comm, s),
            (None, Some(f), Ok(sn), Ok(rn)) => {
                f(sb, sn, st, dest, sendtag, rb, rn, rt, source, recvtag, comm, s)
            }
            (None, Some(_), ..) => too_large(host, comm),
            (None, None, ..) => missing(host),
        })
    }
}

/// Neither side of an exchange in place is the null process.
fn both(host: &Host, dest: c_int, source: c_int) -> bool {
    host.abi.is_some_and(|a| dest != a.proc_null && source != a.proc_null)
}

/// # Safety
/// As `MPI_Sendrecv_replace` (MPI 5.0, 3.10).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Sendrecv_replace(
    buf: *mut c_void,
    count: c_int,
    datatype: HandleWord,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: HandleWord,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(f) = host.f.sendrecv_replace else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let staging = if both(host, dest, source) {
            stage_receive(host, buf, i64::from(count), datatype, None, INT, Origin::Named(comm))
        } else {
            None
        };
        if let Some(staging) = &staging {
            staging.fill(host);
        }
        let (buf, n, datatype) = into(host, &staging, buf, i64::from(count), datatype);
        received(host, staging, status, |s| {
            f(buf, n as c_int, datatype, dest, sendtag, source, recvtag, comm, s)
        })
    }
}

/// # Safety
/// As `MPI_Sendrecv_replace_c` (MPI 5.0, 3.10).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Sendrecv_replace_c(
    buf: *mut c_void,
    count: i64,
    datatype: HandleWord,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: HandleWord,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let (large, small) = (host.f.sendrecv_replace_c, host.f.sendrecv_replace);
    // SAFETY: the caller's arguments.
    unsafe {
        let staging = if both(host, dest, source) {
            stage_receive(host, buf, count, datatype, None, most(large), Origin::Named(comm))
        } else {
            None
        };
        if let Some(staging) = &staging {
            staging.fill(host);
        }
        let (buf, n, datatype) = into(host, &staging, buf, count, datatype);
        received(host, staging, status, |s| match (large, small, c_int::try_from(n)) {
            (Some(f), ..) => f(buf, n, datatype, dest, sendtag, source, recvtag, comm, s),
            (None, Some(f), Ok(n)) => f(buf, n, datatype, dest, sendtag, source, recvtag, comm, s),
            (None, Some(_), Err(_)) => too_large(host, comm),
            (None, None, _) => missing(host),
        })
    }
}

/// # Safety
/// As `MPI_Mrecv` (MPI 5.0, 3.8.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Mrecv(
    buf: *mut c_void,
    count: c_int,
    datatype: HandleWord,
    message: *mut c_void,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(mrecv) = host.f.mrecv else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let staging = stage_receive(host, buf, i64::from(count), datatype, None, INT, Origin::Matched);
        let (buf, n, datatype) = into(host, &staging, buf, i64::from(count), datatype);
        received(host, staging, status, |s| mrecv(buf, n as c_int, datatype, message, s))
    }
}

/// # Safety
/// As `MPI_Mrecv_c` (MPI 5.0, 3.8.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Mrecv_c(
    buf: *mut c_void,
    count: i64,
    datatype: HandleWord,
    message: *mut c_void,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let (large, small) = (host.f.mrecv_c, host.f.mrecv);
    // SAFETY: the caller's arguments.
    unsafe {
        let staging = stage_receive(host, buf, count, datatype, None, most(large), Origin::Matched);
        let (buf, n, datatype) = into(host, &staging, buf, count, datatype);
        received(host, staging, status, |s| match (large, small, c_int::try_from(n)) {
            (Some(mrecv), ..) => mrecv(buf, n, datatype, message, s),
            (None, Some(mrecv), Ok(n)) => mrecv(buf, n, datatype, message, s),
            // No communicator is named.
            (None, Some(_), Err(_)) => too_large(host, host.world),
            (None, None, _) => missing(host),
        })
    }
}
