//! Fortran bindings that bypass the C functions.
//!
//! MPICH's and Intel's Fortran functions call the C functions by their MPI_ names, so the C wrappers see them. Open MPI's call
//! PMPI_ directly: their symbols are put before the host's here, for `mpif.h`, `use mpi` (each compiler's way to spell a name) and
//! `use mpi_f08`. Handles are Fortran integers, arguments are references, the error code is the last one. Whatever is not
//! converted is the host's own Fortran function under its `pmpi_` name, arguments untouched.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use ddtc::kind::Direction;

use crate::convert::{Call, Outcome, convert, passed};
use crate::fortran_bridge::{Bridge, bridge};
use crate::host::{Host, c_name, host, host_of_caller};
use crate::outcome::Counted;
use crate::scopes::{behind, next};
use crate::users::User;
use crate::warn::warn;
use crate::{counting, epoch, report};

type AbortFn = unsafe extern "C-unwind" fn(Ref, Ref, Ref);
/// `MPI_PACK` and `MPI_UNPACK`: every argument is a reference.
type MoveFn = unsafe extern "C-unwind" fn(Ref, Ref, Ref, Ref, Ref, Ref, Ref, Ref);
/// An argument of a Fortran function, which is always a reference.
pub(crate) type Ref = *mut c_void;

/// The function to which a call goes on: a PMPI layer's, or the host's under its profiling name, or
/// where it has none (Intel's `mpi_f08`) under its own. Looked up once for the library that all calls
/// are for.
pub(crate) fn real(cell: &AtomicPtr<c_void>, host: &Host, profiling: &CStr, own: &CStr) -> *mut c_void {
    let cached = host.abi.is_some();
    let known = cell.load(Ordering::Acquire);
    if cached && !known.is_null() {
        return known;
    }
    let mut found = host.layers_fortran(own, profiling).unwrap_or_else(|| host.function(profiling));
    if found.is_null() {
        found = behind(&own.to_string_lossy());
    }
    if found.is_null() {
        warn(format_args!("{}: the host has no such function", own.to_string_lossy()));
    }
    if cached {
        cell.store(found, Ordering::Release);
    }
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

/// The roles in `MPI_PACK` (MPI 5.0, 5.2).
fn pack_roles([inbuf, incount, datatype, outbuf, outsize, position, comm, ierror]: [Ref; 8]) -> FortranCall {
    FortranCall {
        direction: Direction::Pack,
        user: inbuf,
        count: incount.cast(),
        datatype: datatype.cast(),
        packed: outbuf,
        packed_size: outsize.cast(),
        position: position.cast(),
        comm: comm.cast(),
        ierror: ierror.cast(),
    }
}

/// The roles in `MPI_UNPACK` (MPI 5.0, 5.2).
fn unpack_roles(
    [inbuf, insize, position, outbuf, outcount, datatype, comm, ierror]: [Ref; 8],
) -> FortranCall {
    FortranCall {
        direction: Direction::Unpack,
        user: outbuf,
        count: outcount.cast(),
        datatype: datatype.cast(),
        packed: inbuf,
        packed_size: insize.cast(),
        position: position.cast(),
        comm: comm.cast(),
        ierror: ierror.cast(),
    }
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
    let counted = Counted::begin();
    let mut own = 0;
    // `use mpi_f08` may leave the argument out.
    let ierror = if call.ierror.is_null() { &raw mut own } else { call.ierror };
    // SAFETY: the caller's arguments.
    match unsafe { convert(host, &c) } {
        // SAFETY: a place for the error code.
        Outcome::Done => unsafe { *ierror = 0 },
        outcome => {
            // SAFETY: Fortran passes a position by reference.
            let before = unsafe { c.at() };
            host_call(ierror);
            // SAFETY: a place for the error code, and a position by reference.
            unsafe { passed(host, &c, outcome, *ierror, before) };
        }
    }
    if let Some(counted) = counted {
        // SAFETY: as above.
        counting::end_packing(host, counted, unsafe { *ierror }, c.datatype);
    }
}

/// Exports a call in every spelling that compilers have for it, each for the host's function of that spelling under its profiling name.
macro_rules! spelled {
    ($call:ident $lower:literal $upper:literal $($more:ident)?) => {
        $call! { "p" concat!("mpi_", $lower) $($more)? }
        $call! { "p" concat!("mpi_", $lower, "_") $($more)? }
        $call! { "p" concat!("mpi_", $lower, "__") $($more)? }
        $call! { "P" concat!("MPI_", $upper) $($more)? }
        $call! { "p" concat!("mpi_", $lower, "_f08_") $($more)? }
    };
}

/// The host's function of a spelling.
macro_rules! host_function {
    ($host:ident, $p:literal, $name:expr) => {{
        static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
        real(&REAL, $host, c_name!(concat!($p, $name)), c_name!($name))
    }};
}

macro_rules! moving {
    ($p:literal concat!($($part:literal),*) $roles:ident) => {
        const _: () = {
            /// # Safety
            /// As `MPI_PACK` and `MPI_UNPACK` (MPI 5.0, 5.2).
            #[unsafe(export_name = concat!($($part),*))]
            pub unsafe extern "C-unwind" fn exported(
                a: Ref, b: Ref, c: Ref, d: Ref, e: Ref, f: Ref, comm: Ref, ierror: Ref,
            ) {
                let Some(host) = host() else { return };
                let real = host_function!(host, $p, concat!($($part),*));
                let call = $roles([a, b, c, d, e, f, comm, ierror]);
                // SAFETY: the caller's arguments, for the function that the caller meant.
                unsafe {
                    bridged(host, &call, |ierror| {
                        if let Some(theirs) = std::mem::transmute::<*mut c_void, Option<MoveFn>>(real) {
                            theirs(a, b, c, d, e, f, comm, ierror.cast());
                        }
                    });
                }
            }
        };
    };
}

/// The function that the caller of a spelling would have reached without this library.
macro_rules! next_function {
    ($host:ident, $p:literal, $name:expr) => {
        next(c_name!($name))
    };
}

/// Runs a Fortran call with which a user of MPI begins or ends, `call`, which is given a place for
/// its error code. Where C sees the call too, it is counted there: `is_seen`.
///
/// # Safety
/// `ierror` must be null or a place for an error code.
unsafe fn by_user(
    host: &'static Host,
    is_seen: bool,
    counted: fn(&'static Host, User, &mut dyn FnMut() -> c_int) -> c_int,
    user: User,
    ierror: Ref,
    call: impl Fn(Ref),
) {
    if is_seen {
        return call(ierror);
    }
    let mut own: c_int = 0;
    // `use mpi_f08` may leave the argument out.
    let place = if ierror.is_null() { &raw mut own } else { ierror.cast() };
    counted(host, user, &mut || {
        call(place.cast());
        // SAFETY: as the caller promises, or our own; MPI's functions write it.
        unsafe { *place }
    });
}

/// Exports a call with which a user of MPI begins or ends: its arguments but the error code, and
/// what finds its function.
macro_rules! by_user {
    ($p:literal concat!($($part:literal),*) $does:ident $user:ident $find:ident ($($argument:ident),*)) => {
        const _: () = {
            /// # Safety
            /// As the function of Fortran of this name (MPI 5.0, 11.2 and 11.3).
            #[unsafe(export_name = concat!($($part),*))]
            pub unsafe extern "C-unwind" fn exported($($argument: Ref,)* ierror: Ref) {
                type Function = unsafe extern "C-unwind" fn($(by_user!(@ $argument),)* Ref);
                let Some(host) = host_of_caller() else { return };
                let real = $find!(host, $p, concat!($($part),*));
                // SAFETY: null is none, and any other address the function that the caller meant.
                let Some(real) = (unsafe { std::mem::transmute::<*mut c_void, Option<Function>>(real) }) else {
                    return;
                };
                let (own, profiling) =
                    (c_name!(concat!($($part),*)), c_name!(concat!($p, concat!($($part),*))));
                // Open MPI's binding calls C by `PMPI_` names. The others' calls come by the wrappers of
                // C, except where a layer's Fortran function calls what it likes.
                let is_seen = !host.is_open_mpi() && host.layers_fortran(own, profiling).is_none();
                // SAFETY: the caller's arguments.
                unsafe {
                    let counted = |host, user, call: &mut dyn FnMut() -> c_int| epoch::$does(host, user, call);
                    by_user(host, is_seen, counted, User::$user, ierror, |ierror| real($($argument,)* ierror));
                }
            }
        };
    };
    (@ $argument:ident) => { Ref };
}

macro_rules! init {
    ($p:literal $($name:tt)*) => { by_user! { $p $($name)* initialize World next_function () } };
}

macro_rules! init_thread {
    ($p:literal $($name:tt)*) => { by_user! { $p $($name)* initialize World next_function (required, provided) } };
}

macro_rules! session_init {
    ($p:literal $($name:tt)*) => {
        by_user! { $p $($name)* initialize Session next_function (info, errhandler, session) }
    };
}

macro_rules! finalize {
    ($p:literal $($name:tt)*) => { by_user! { $p $($name)* finalize World host_function () } };
}

macro_rules! session_finalize {
    ($p:literal $($name:tt)*) => { by_user! { $p $($name)* finalize Session host_function (session) } };
}

macro_rules! abort {
    ($p:literal concat!($($part:literal),*)) => {
        const _: () = {
            /// # Safety
            /// As `MPI_ABORT` (MPI 5.0, 9.5).
            #[unsafe(export_name = concat!($($part),*))]
            pub unsafe extern "C-unwind" fn exported(comm: Ref, code: Ref, ierror: Ref) {
                let Some(host) = host() else { return };
                let real = host_function!(host, $p, concat!($($part),*));
                report::so_far(host);
                // SAFETY: the caller's arguments, for the function that the caller meant.
                unsafe {
                    if let Some(theirs) = std::mem::transmute::<*mut c_void, Option<AbortFn>>(real) {
                        theirs(comm, code, ierror);
                    }
                }
            }
        };
    };
}

spelled! { abort "abort" "ABORT" }
spelled! { moving "pack" "PACK" pack_roles }
spelled! { moving "unpack" "UNPACK" unpack_roles }
spelled! { init "init" "INIT" }
spelled! { init_thread "init_thread" "INIT_THREAD" }
spelled! { session_init "session_init" "SESSION_INIT" }
spelled! { finalize "finalize" "FINALIZE" }
spelled! { session_finalize "session_finalize" "SESSION_FINALIZE" }
