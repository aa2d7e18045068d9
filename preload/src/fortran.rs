//! Wrappers of Fortran functions, for Fortran bindings that do not call the C wrappers.
//!
//! The Fortran functions of MPICH and Intel MPI for `mpif.h` and `use mpi` call the C functions by
//! their `MPI_` names, so the C wrappers see these calls. (Their binding of `use mpi_f08` may use
//! the `PMPI_` names; see [`crate::fortran_types`].) The Fortran functions of Open MPI call the
//! `PMPI_` functions directly. So ddtc exports Fortran functions, which come before those of the
//! MPI library in the loader's search order. They are exported for `mpif.h` and `use mpi` in each
//! spelling that compilers use, and for `use mpi_f08`. Handles are Fortran integers, arguments are
//! passed by reference, and the last argument receives the error code. A call that is not converted
//! is passed to the MPI library's own Fortran function under its `pmpi_` name, or to the function
//! of a PMPI layer, with its arguments unchanged ([`real`]).

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use ddtc::internal::kind::Direction;

use crate::convert::{Outcome, PackCall, convert, passed};
use crate::fortran_bridge::{Bridge, bridge};
use crate::host::{Host, c_name, host, host_of_caller};
use crate::outcome::Counted;
use crate::scopes::{after_ours, next};
use crate::users::User;
use crate::warn::warn;
use crate::{counting, epoch, report};

type AbortFn = unsafe extern "C-unwind" fn(Ref, Ref, Ref);
/// C type of Fortran's `MPI_PACK` and `MPI_UNPACK`.
type MoveFn = unsafe extern "C-unwind" fn(Ref, Ref, Ref, Ref, Ref, Ref, Ref, Ref);
/// Argument of a Fortran function, which is always a reference.
pub(crate) type Ref = *mut c_void;

/// Returns the Fortran function to which a call is passed on: the function of a PMPI layer; if
/// there is none, the MPI library's function with the name `profiling`; if there is none either, as
/// in Intel MPI's `mpi_f08`, the function `own` of any other object. Warns and returns null if
/// there is no such function at all. The result is kept in `cell` only if calls of `host` may be
/// converted.
pub(crate) fn real(cell: &AtomicPtr<c_void>, host: &Host, profiling: &CStr, own: &CStr) -> *mut c_void {
    let cached = host.abi.is_some();
    let known = cell.load(Ordering::Acquire);
    if cached && !known.is_null() {
        return known;
    }
    let mut found = host.layers_fortran(own, profiling).unwrap_or_else(|| host.function(profiling));
    if found.is_null() {
        found = after_ours(&own.to_string_lossy());
    }
    if found.is_null() {
        warn(format_args!("{}: the MPI library has no such function", own.to_string_lossy()));
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

/// Assigns roles to the arguments of `MPI_PACK` (MPI 5.0, 5.2).
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

/// Assigns roles to the arguments of `MPI_UNPACK` (MPI 5.0, 5.2).
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

/// Packs or unpacks by compiled code if possible, and otherwise by `host_call`, which calls the MPI
/// library's function with the given place for the error code. A call is bypassed if there is no
/// bridge from Fortran handles to C handles, or if a buffer is `MPI_BOTTOM`.
///
/// # Safety
/// The arguments must be those of a call of Fortran's `MPI_PACK` or `MPI_UNPACK`. `host_call` must
/// accept a null pointer or a pointer to an integer, and write an error code, and nothing else,
/// through a pointer that is not null.
unsafe fn bridged(host: &'static Host, call: &FortranCall, host_call: impl FnOnce(*mut c_int)) {
    let bottom = |b: &Bridge, address: *mut c_void| b.bottoms.contains(&address.addr());
    let bridge = bridge(host).filter(|b| !bottom(b, call.user) && !bottom(b, call.packed));
    let Some(bridge) = bridge else { return host_call(call.ierror) };
    // SAFETY: the caller promises arguments of a Fortran call. Fortran passes count, size, datatype
    // and communicator by reference to default integers, which have 4 bytes if there is a bridge.
    // The two functions of the bridge accept any integer.
    let c = unsafe {
        PackCall {
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
    // In `use mpi_f08` the error argument is optional, and null if it is absent.
    let ierror = if call.ierror.is_null() { &raw mut own } else { call.ierror };
    // SAFETY: `c` has the arguments of the program's call of `MPI_PACK` or `MPI_UNPACK`, with
    // handles translated to those of C.
    match unsafe { convert(host, &c) } {
        // SAFETY: `ierror` points to `own` or to the caller's integer for the error code.
        Outcome::Done => unsafe { *ierror = 0 },
        outcome => {
            // SAFETY: Fortran passes the position by reference to an integer.
            let before = unsafe { c.position_value() };
            host_call(ierror);
            // SAFETY: `ierror` points to `own` or to the caller's integer for the error code, and
            // Fortran passes the position by reference to an integer.
            unsafe { passed(host, &c, outcome, *ierror, before) };
        }
    }
    if let Some(counted) = counted {
        // SAFETY: `ierror` points to `own` or to the caller's integer for the error code.
        counting::end_packing(host, counted, unsafe { *ierror }, c.datatype);
    }
}

/// Exports a Fortran function in every spelling that compilers use for it. The function of each
/// spelling passes calls on to the MPI library's function of the same spelling with a P before it.
macro_rules! spelled {
    ($call:ident $lower:literal $upper:literal $($more:ident)?) => {
        $call! { "p" concat!("mpi_", $lower) $($more)? }
        $call! { "p" concat!("mpi_", $lower, "_") $($more)? }
        $call! { "p" concat!("mpi_", $lower, "__") $($more)? }
        $call! { "P" concat!("MPI_", $upper) $($more)? }
        $call! { "p" concat!("mpi_", $lower, "_f08_") $($more)? }
    };
}

/// Expands to the function, looked up by `real`, to which a wrapper passes its calls on. Each
/// Fortran spelling of the name (such as `mpi_pack_` and `mpi_pack__`) has a wrapper, and keeps its
/// function in a static variable.
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
                // SAFETY: the arguments are those of the caller, who keeps the contract of
                // `MPI_PACK` or `MPI_UNPACK`, and `call` has the same arguments by their roles.
                // `real` is null, which becomes `None`, or the Fortran function with the name that
                // the caller has used, which takes eight references and writes its error code.
                unsafe {
                    let theirs = std::mem::transmute::<*mut c_void, Option<MoveFn>>(real);
                    let Some(theirs) = theirs else { return };
                    bridged(host, &call, |ierror| theirs(a, b, c, d, e, f, comm, ierror.cast()));
                }
            }
        };
    };
}

/// Gives the function that a call of one spelling would have reached without ddtc, or null if there
/// is none.
macro_rules! next_function {
    ($host:ident, $p:literal, $name:expr) => {
        next(c_name!($name))
    };
}

/// Runs `call`, a Fortran call that initializes or finalizes the world or a session, and passes it
/// a place for the error code. If `is_seen` is true, the call also reaches a C wrapper, which
/// counts the user of MPI. Otherwise `counted` runs the call and counts the user.
///
/// # Safety
/// `ierror` must be null or point to a Fortran integer for an error code.
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
    // In `use mpi_f08` the error argument is optional, and null if it is absent.
    let place = if ierror.is_null() { &raw mut own } else { ierror.cast() };
    counted(host, user, &mut || {
        call(place.cast());
        // SAFETY: `place` points to `own`, or to the integer that the caller promises. Both have a
        // value if `call` returns, because every Fortran function of MPI writes its error code.
        unsafe { *place }
    });
}

/// Exports a Fortran function that initializes or finalizes the world or a session, in one
/// spelling. The parameters are the letter before the profiling name, the name, the function of
/// `epoch` and the `User` that it is for, the macro that finds the function to call, and the
/// arguments except the error code.
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
                // SAFETY: null becomes `None`. Any other address is that of the Fortran function of
                // the name that the caller has used, which takes these arguments, all by reference.
                let Some(real) = (unsafe { std::mem::transmute::<*mut c_void, Option<Function>>(real) }) else {
                    return;
                };
                let (own, profiling) =
                    (c_name!(concat!($($part),*)), c_name!(concat!($p, concat!($($part),*))));
                // Open MPI's binding calls C by the `PMPI_` names, so no C wrapper sees the call.
                // The bindings of other MPI libraries are taken to call the C wrappers. If a PMPI
                // layer has the Fortran function, it is not known which C functions it calls.
                let is_seen = !host.is_open_mpi() && host.layers_fortran(own, profiling).is_none();
                // SAFETY: the arguments are those of the caller, who keeps the contract of the
                // Fortran function, so `ierror` is null or points to an integer.
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
            /// As `MPI_ABORT` (MPI 5.0, 11.4.2).
            #[unsafe(export_name = concat!($($part),*))]
            pub unsafe extern "C-unwind" fn exported(comm: Ref, code: Ref, ierror: Ref) {
                let Some(host) = host() else { return };
                let real = host_function!(host, $p, concat!($($part),*));
                report::so_far(host);
                // SAFETY: `real` is null, which becomes `None`, or the Fortran function of the name
                // that the caller has used, which takes three references. The arguments are the
                // caller's.
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
