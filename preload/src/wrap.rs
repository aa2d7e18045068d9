//! The C functions that this library puts before the host's.
//!
//! Handles are taken as 64-bit registers, so one set of symbols serves every ABI: on the 64-bit ELF targets of MPI an `int` handle
//! arrives in the lower half of the same register or stack slot.
#![allow(non_snake_case, reason = "the names of MPI")]

mod blocking;
mod completion;
mod emulated;
mod nonblocking;

use std::ffi::{c_int, c_void};

use ddtc::kind::Direction;

use crate::convert::{Call, Outcome, convert, passed};
use crate::epoch::end_epoch;
use crate::handles::{NO_HOST, handle_at, missing};
use crate::host::{HandleWord, Host, host};
use crate::table::{self, Found};
use crate::{requests, types};

/// # Safety
/// As `MPI_Type_commit` (MPI 5.0, 5.1.9).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Type_commit(datatype: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(type_commit) = host.f.type_commit else { return missing(host) };
    // SAFETY: the caller's arguments.
    let code = unsafe { type_commit(datatype) };
    if code == 0 && !datatype.is_null() && host.abi.is_some() {
        // SAFETY: the host has accepted the handle there.
        let datatype = unsafe { handle_at(host, datatype) };
        if let Found::Unknown = table::find(datatype & host.mask) {
            types::adopt(host, datatype);
        }
    }
    code
}

/// # Safety
/// As `MPI_Type_dup` (MPI 5.0, 5.1.10).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Type_dup(oldtype: HandleWord, newtype: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(type_dup) = host.f.type_dup else { return missing(host) };
    // SAFETY: the caller's arguments.
    let code = unsafe { type_dup(oldtype, newtype) };
    if code == 0
        && let Found::Convert(_) = table::find(oldtype & host.mask)
    {
        // A committed type's duplicate is committed, and brought its entry along.
        // SAFETY: the host has written a handle there.
        types::adopt(host, unsafe { handle_at(host, newtype) });
    }
    code
}

/// # Safety
/// As `MPI_Pack` (MPI 5.0, 5.2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Pack(
    inbuf: *const c_void,
    incount: c_int,
    datatype: HandleWord,
    outbuf: *mut c_void,
    outsize: c_int,
    position: *mut c_int,
    comm: HandleWord,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let call = Call {
        direction: Direction::Pack,
        user: inbuf.cast_mut(),
        count: incount,
        datatype,
        packed: outbuf,
        packed_size: outsize,
        position,
        comm,
    };
    // SAFETY: the caller's arguments.
    let outcome = unsafe { convert(host, &call) };
    if outcome == Outcome::Done {
        return 0;
    }
    let before = call.at();
    let Some(pack) = host.f.pack else { return missing(host) };
    // SAFETY: the caller's arguments.
    let code = unsafe { pack(inbuf, incount, datatype, outbuf, outsize, position, comm) };
    passed(host, &call, outcome, code, before);
    code
}

/// # Safety
/// As `MPI_Unpack` (MPI 5.0, 5.2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Unpack(
    inbuf: *const c_void,
    insize: c_int,
    position: *mut c_int,
    outbuf: *mut c_void,
    outcount: c_int,
    datatype: HandleWord,
    comm: HandleWord,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let call = Call {
        direction: Direction::Unpack,
        user: outbuf,
        count: outcount,
        datatype,
        packed: inbuf.cast_mut(),
        packed_size: insize,
        position,
        comm,
    };
    // SAFETY: the caller's arguments.
    let outcome = unsafe { convert(host, &call) };
    if outcome == Outcome::Done {
        return 0;
    }
    let before = call.at();
    let Some(unpack) = host.f.unpack else { return missing(host) };
    // SAFETY: the caller's arguments.
    let code = unsafe { unpack(inbuf, insize, position, outbuf, outcount, datatype, comm) };
    passed(host, &call, outcome, code, before);
    code
}

/// # Safety
/// As `MPI_Pack_c` (MPI 5.0, 5.2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Pack_c(
    inbuf: *const c_void,
    incount: i64,
    datatype: HandleWord,
    outbuf: *mut c_void,
    outsize: i64,
    position: *mut i64,
    comm: HandleWord,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let call = Call {
        direction: Direction::Pack,
        user: inbuf.cast_mut(),
        count: incount,
        datatype,
        packed: outbuf,
        packed_size: outsize,
        position,
        comm,
    };
    // SAFETY: the caller's arguments.
    let outcome = unsafe { convert(host, &call) };
    if outcome == Outcome::Done {
        return 0;
    }
    let before = call.at();
    let code = match (host.f.pack_c, host.f.pack) {
        // SAFETY: the caller's arguments.
        (Some(pack), _) => unsafe { pack(inbuf, incount, datatype, outbuf, outsize, position, comm) },
        // SAFETY: the caller's arguments, narrowed.
        (None, Some(pack)) => unsafe {
            narrowed(host, &call, |count, size, position| {
                pack(inbuf, count, datatype, outbuf, size, position, comm)
            })
        },
        (None, None) => missing(host),
    };
    passed(host, &call, outcome, code, before);
    code
}

/// # Safety
/// As `MPI_Unpack_c` (MPI 5.0, 5.2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Unpack_c(
    inbuf: *const c_void,
    insize: i64,
    position: *mut i64,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: HandleWord,
    comm: HandleWord,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let call = Call {
        direction: Direction::Unpack,
        user: outbuf,
        count: outcount,
        datatype,
        packed: inbuf.cast_mut(),
        packed_size: insize,
        position,
        comm,
    };
    // SAFETY: the caller's arguments.
    let outcome = unsafe { convert(host, &call) };
    if outcome == Outcome::Done {
        return 0;
    }
    let before = call.at();
    let code = match (host.f.unpack_c, host.f.unpack) {
        // SAFETY: the caller's arguments.
        (Some(unpack), _) => unsafe { unpack(inbuf, insize, position, outbuf, outcount, datatype, comm) },
        // SAFETY: the caller's arguments, narrowed.
        (None, Some(unpack)) => unsafe {
            narrowed(host, &call, |count, size, position| {
                unpack(inbuf, size, position, outbuf, count, datatype, comm)
            })
        },
        (None, None) => missing(host),
    };
    passed(host, &call, outcome, code, before);
    code
}

/// A large-count call on a host that has only the small form.
///
/// # Safety
/// `call.position` must be null or point to a count.
unsafe fn narrowed(
    host: &Host,
    call: &Call<i64>,
    small: impl FnOnce(c_int, c_int, *mut c_int) -> c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let position = unsafe { call.position.as_mut() };
    let at = position.as_deref().copied().unwrap_or(0);
    // A packed buffer may be larger than the call uses: what an int cannot say of it is not needed.
    let size = c_int::try_from(call.packed_size.min(i64::from(c_int::MAX)));
    match (c_int::try_from(call.count), size, c_int::try_from(at)) {
        (Ok(count), Ok(size), Ok(mut at)) => match position {
            None => small(count, size, std::ptr::null_mut()),
            Some(position) => {
                let code = small(count, size, &raw mut at);
                *position = i64::from(at);
                code
            }
        },
        _ => too_large(host, call.comm),
    }
}

/// Raises the error of a large count on a host that has only the small form of a call.
fn too_large(host: &Host, comm: HandleWord) -> c_int {
    let code = host.abi.map_or(NO_HOST, |a| a.err_value_too_large);
    if let Some(raise) = host.f.comm_call_errhandler {
        // SAFETY: raises the error as the host would on the communicator that was given.
        unsafe { raise(comm, code) };
    }
    code
}

/// # Safety
/// As `MPI_Finalize` (MPI 5.0, 11.2.2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    let Some(host) = host() else { return NO_HOST };
    end_epoch(host);
    // SAFETY: no arguments.
    let code = host.f.finalize.map_or(missing(host), |finalize| unsafe { finalize() });
    requests::end_epoch();
    code
}

/// # Safety
/// As `MPI_Session_finalize` (MPI 5.0, 11.3.1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Session_finalize(session: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    end_epoch(host);
    // SAFETY: the caller's argument.
    host.f.session_finalize.map_or(missing(host), |finalize| unsafe { finalize(session) })
}
