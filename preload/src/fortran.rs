//! Fortran bindings that bypass the C functions.
//!
//! MPICH's and Intel's Fortran functions call the C functions by their MPI_ names, so the C wrappers see them. Open MPI's call
//! PMPI_ directly: their symbols are put before the host's here, for `mpif.h`, `use mpi` (each compiler's way to spell a name) and
//! `use mpi_f08`. Handles are Fortran integers, arguments are references, the error code is the last one. Whatever is not
//! converted is the host's own Fortran function under its `pmpi_` name, arguments untouched.
#![allow(non_snake_case, reason = "the names of MPI")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use ddtc::kind::Direction;

use crate::convert::{Call, Outcome, convert, passed};
use crate::epoch::end_epoch;
use crate::fortran_bridge::{Bridge, bridge};
use crate::host::{Host, behind, host};
use crate::warn::warn;

type PackFn = unsafe extern "C" fn(
    *mut c_void,
    *mut c_int,
    *mut c_int,
    *mut c_void,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
);
type UnpackFn = unsafe extern "C" fn(
    *mut c_void,
    *mut c_int,
    *mut c_int,
    *mut c_void,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
);
type FinalizeFn = unsafe extern "C" fn(*mut c_int);

/// The host's function under its profiling name, or where it has none (Intel's `mpi_f08`) under its own, looked up once.
fn real(cell: &AtomicPtr<c_void>, host: &Host, profiling: &CStr, own: &str) -> *mut c_void {
    let known = cell.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let mut found = host.function(profiling);
    if found.is_null() {
        found = behind(own);
    }
    if found.is_null() {
        warn(format_args!("{own}: the host has no such function"));
    }
    cell.store(found, Ordering::Release);
    found
}

/// Arguments of a Fortran pack or unpack, by their roles.
struct FortranCall {
    direction: Direction,
    user: *mut c_void,
    count: *mut c_int,
    datatype: *mut c_int,
    packed: *mut c_void,
    packed_size: *mut c_int,
    position: *mut c_int,
    comm: *mut c_int,
    ierror: *mut c_int,
}

/// # Safety
/// As `MPI_PACK` and `MPI_UNPACK`; `host_call` makes the host's call and stores its code.
unsafe fn bridged(host: &'static Host, call: &FortranCall, host_call: impl FnOnce(*mut c_int)) {
    let bottom = |b: &Bridge, address: *mut c_void| b.bottoms.contains(&address.addr());
    let bridge = bridge(host).filter(|b| !bottom(b, call.user) && !bottom(b, call.packed));
    let Some(bridge) = bridge else { return host_call(call.ierror) };
    // SAFETY: references to integers, as the Fortran binding has them.
    let c = unsafe {
        Call {
            direction: call.direction,
            user: call.user,
            count: *call.count,
            datatype: (bridge.type_f2c)(*call.datatype),
            packed: call.packed,
            packed_size: *call.packed_size,
            position: call.position,
            comm: (bridge.comm_f2c)(*call.comm),
        }
    };
    let mut own = 0;
    // `use mpi_f08` may leave the argument out.
    let ierror = if call.ierror.is_null() { &raw mut own } else { call.ierror };
    // SAFETY: the caller's arguments.
    match unsafe { convert(host, &c) } {
        // SAFETY: a place for the error code.
        Outcome::Done => unsafe { *ierror = 0 },
        outcome => {
            let before = c.at();
            host_call(ierror);
            // SAFETY: as above.
            passed(host, &c, outcome, unsafe { *ierror }, before);
        }
    }
}

macro_rules! pack {
    ($($name:ident $real:literal),*) => {$(
        /// # Safety
        /// As `MPI_PACK` (MPI 5.0, 5.2).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            inbuf: *mut c_void,
            incount: *mut c_int,
            datatype: *mut c_int,
            outbuf: *mut c_void,
            outsize: *mut c_int,
            position: *mut c_int,
            comm: *mut c_int,
            ierror: *mut c_int,
        ) {
            static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let Some(host) = host() else { return };
            let real = real(&REAL, host, $real, stringify!($name));
            let call = FortranCall {
                direction: Direction::Pack,
                user: inbuf,
                count: incount,
                datatype,
                packed: outbuf,
                packed_size: outsize,
                position,
                comm,
                ierror,
            };
            // SAFETY: the caller's arguments, for the function that the caller meant.
            unsafe {
                bridged(host, &call, |ierror| {
                    if let Some(pack) = std::mem::transmute::<*mut c_void, Option<PackFn>>(real) {
                        pack(inbuf, incount, datatype, outbuf, outsize, position, comm, ierror);
                    }
                });
            }
        }
    )*};
}

macro_rules! unpack {
    ($($name:ident $real:literal),*) => {$(
        /// # Safety
        /// As `MPI_UNPACK` (MPI 5.0, 5.2).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            inbuf: *mut c_void,
            insize: *mut c_int,
            position: *mut c_int,
            outbuf: *mut c_void,
            outcount: *mut c_int,
            datatype: *mut c_int,
            comm: *mut c_int,
            ierror: *mut c_int,
        ) {
            static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let Some(host) = host() else { return };
            let real = real(&REAL, host, $real, stringify!($name));
            let call = FortranCall {
                direction: Direction::Unpack,
                user: outbuf,
                count: outcount,
                datatype,
                packed: inbuf,
                packed_size: insize,
                position,
                comm,
                ierror,
            };
            // SAFETY: the caller's arguments, for the function that the caller meant.
            unsafe {
                bridged(host, &call, |ierror| {
                    if let Some(unpack) = std::mem::transmute::<*mut c_void, Option<UnpackFn>>(real) {
                        unpack(inbuf, insize, position, outbuf, outcount, datatype, comm, ierror);
                    }
                });
            }
        }
    )*};
}

macro_rules! finalize {
    ($($name:ident $real:literal),*) => {$(
        /// # Safety
        /// As `MPI_FINALIZE` (MPI 5.0, 11.2.2).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(ierror: *mut c_int) {
            static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let Some(host) = host() else { return };
            let real = real(&REAL, host, $real, stringify!($name));
            if host.is_open_mpi() {
                end_epoch(host);
            }
            // SAFETY: the caller's argument, for the function that the caller meant.
            unsafe {
                if let Some(finalize) = std::mem::transmute::<*mut c_void, Option<FinalizeFn>>(real) {
                    finalize(ierror);
                }
            }
        }
    )*};
}

pack! {
    mpi_pack c"pmpi_pack", mpi_pack_ c"pmpi_pack_", mpi_pack__ c"pmpi_pack__", MPI_PACK c"PMPI_PACK",
    mpi_pack_f08_ c"pmpi_pack_f08_"
}
unpack! {
    mpi_unpack c"pmpi_unpack", mpi_unpack_ c"pmpi_unpack_", mpi_unpack__ c"pmpi_unpack__",
    MPI_UNPACK c"PMPI_UNPACK", mpi_unpack_f08_ c"pmpi_unpack_f08_"
}
finalize! {
    mpi_finalize c"pmpi_finalize", mpi_finalize_ c"pmpi_finalize_", mpi_finalize__ c"pmpi_finalize__",
    MPI_FINALIZE c"PMPI_FINALIZE", mpi_finalize_f08_ c"pmpi_finalize_f08_"
}
