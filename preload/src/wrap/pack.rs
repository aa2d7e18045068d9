//! Wrappers of `MPI_Pack` and `MPI_Unpack`.

use std::ffi::c_int;

use ddtc::internal::count::Count;
use ddtc::internal::kind::Direction;

use crate::convert::{Outcome, PackCall, convert, passed};
use crate::forms::Forms;
use crate::handles::{On, missing, too_large};
use crate::host::Host;
use crate::signatures::{Handle, In, Out};

type PackFn<N> = unsafe extern "C-unwind" fn(In, N, Handle, Out, N, *mut N, Handle) -> c_int;
type UnpackFn<N> = unsafe extern "C-unwind" fn(In, N, *mut N, Out, N, Handle, Handle) -> c_int;

/// Returns the arguments of `MPI_Pack` by their roles.
#[inline(always)]
pub(super) fn packing<N: Count>(
    inbuf: In,
    incount: N,
    datatype: Handle,
    outbuf: Out,
    outsize: N,
    position: *mut N,
    comm: Handle,
) -> PackCall<N> {
    PackCall {
        direction: Direction::Pack,
        user: inbuf.cast_mut(),
        count: incount,
        datatype,
        packed: outbuf,
        packed_size: outsize,
        position,
        comm,
    }
}

/// Returns the arguments of `MPI_Unpack` by their roles.
#[inline(always)]
pub(super) fn unpacking<N: Count>(
    inbuf: In,
    insize: N,
    position: *mut N,
    outbuf: Out,
    outcount: N,
    datatype: Handle,
    comm: Handle,
) -> PackCall<N> {
    PackCall {
        direction: Direction::Unpack,
        user: outbuf,
        count: outcount,
        datatype,
        packed: inbuf.cast_mut(),
        packed_size: insize,
        position,
        comm,
    }
}

/// Tries to convert a call of `MPI_Pack` or `MPI_Unpack` before its wrapper does anything else.
/// Gives true if the call was converted and is complete. For all other wrapped functions the macro
/// gives false.
macro_rules! at_once {
    ($host:ident, pack::pack($($argument:ident),*)) => {
        // SAFETY: the arguments are those of the program's call.
        unsafe { $crate::convert::convert_at_once($host, &pack::packing($($argument),*)) }
    };
    ($host:ident, pack::unpack($($argument:ident),*)) => {
        // SAFETY: the arguments are those of the program's call.
        unsafe { $crate::convert::convert_at_once($host, &pack::unpacking($($argument),*)) }
    };
    ($host:ident, $($other:tt)*) => {
        false
    };
}
pub(super) use at_once;

/// Packs by compiled code, or calls the MPI library's function.
///
/// # Safety
/// As `MPI_Pack` (MPI 5.0, 5.2).
#[inline]
pub(super) unsafe fn pack<N: Count>(
    host: &'static Host,
    forms: Forms<PackFn<c_int>, PackFn<i64>>,
    inbuf: In,
    incount: N,
    datatype: Handle,
    outbuf: Out,
    outsize: N,
    position: *mut N,
    comm: Handle,
) -> c_int {
    let call = packing(inbuf, incount, datatype, outbuf, outsize, position, comm);
    let theirs = || match (forms.large, forms.small) {
        // SAFETY: the arguments are the program's. `N` is the integer type of the large form, so
        // `position` points to an `MPI_Count`, as the function expects.
        (Some(pack), _) if N::LARGE => unsafe {
            pack(inbuf, incount.wide(), datatype, outbuf, outsize.wide(), position.cast(), comm)
        },
        // SAFETY: the arguments are the program's, except the `int` arguments, which `narrowed`
        // supplies. The position that it supplies is null or points to an `int`.
        (_, Some(pack)) => unsafe {
            narrowed(host, &call, forms.on, |count, size, at| {
                pack(inbuf, count, datatype, outbuf, size, at, comm)
            })
        },
        (_, None) => missing(host),
    };
    // SAFETY: `call` has the arguments of the program's call.
    unsafe { wrapped(host, &call, theirs) }
}

/// Unpacks by compiled code, or calls the MPI library's function.
///
/// # Safety
/// As `MPI_Unpack` (MPI 5.0, 5.2).
#[inline]
pub(super) unsafe fn unpack<N: Count>(
    host: &'static Host,
    forms: Forms<UnpackFn<c_int>, UnpackFn<i64>>,
    inbuf: In,
    insize: N,
    position: *mut N,
    outbuf: Out,
    outcount: N,
    datatype: Handle,
    comm: Handle,
) -> c_int {
    let call = unpacking(inbuf, insize, position, outbuf, outcount, datatype, comm);
    let theirs = || match (forms.large, forms.small) {
        // SAFETY: the arguments are the program's. `N` is the integer type of the large form, so
        // `position` points to an `MPI_Count`, as the function expects.
        (Some(unpack), _) if N::LARGE => unsafe {
            unpack(inbuf, insize.wide(), position.cast(), outbuf, outcount.wide(), datatype, comm)
        },
        // SAFETY: the arguments are the program's, except the `int` arguments, which `narrowed`
        // supplies. The position that it supplies is null or points to an `int`.
        (_, Some(unpack)) => unsafe {
            narrowed(host, &call, forms.on, |count, size, at| {
                unpack(inbuf, size, at, outbuf, count, datatype, comm)
            })
        },
        (_, None) => missing(host),
    };
    // SAFETY: `call` has the arguments of the program's call.
    unsafe { wrapped(host, &call, theirs) }
}

/// Converts a pack or unpack. If that is not possible, runs `theirs`, which calls the MPI library's
/// function, and passes the result to [`passed`].
///
/// # Safety
/// As [`convert`].
#[inline]
unsafe fn wrapped<N: Count>(
    host: &'static Host,
    call: &PackCall<N>,
    theirs: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the requirements are those of `convert`, as the caller promises.
    let outcome = unsafe { convert(host, call) };
    if outcome == Outcome::Done {
        return 0;
    }
    // SAFETY: the position is null or points to a number, as `convert` requires of the caller.
    let before = unsafe { call.position_value() };
    let code = theirs();
    // SAFETY: `call` has the arguments of the program's call, as the caller promises.
    unsafe { passed(host, call, outcome, code, before) };
    code
}

/// Calls the MPI library's function in the form whose counts are of type `int`, whichever form the
/// program has used. Raises an error on the object `on` if the count or the position does not fit
/// into an `int`.
///
/// # Safety
/// `call.position` must be null or point to a number of type `N`.
unsafe fn narrowed<N: Count>(
    host: &Host,
    call: &PackCall<N>,
    on: On,
    small: impl FnOnce(c_int, c_int, *mut c_int) -> c_int,
) -> c_int {
    // SAFETY: the position is null or points to a number, as the caller promises.
    let position = unsafe { call.position.as_mut() };
    let at = position.as_deref().map_or(0, |at| at.wide());
    // A packed buffer may be larger than the call needs. A buffer size that does not fit into an
    // `int` is replaced by the maximum `int`, because the position after the call must fit into an
    // `int` anyway.
    let size = c_int::try_from(call.packed_size.wide().min(i64::from(c_int::MAX)));
    match (c_int::try_from(call.count.wide()), size, c_int::try_from(at)) {
        (Ok(count), Ok(size), Ok(mut at)) => match position {
            None => small(count, size, std::ptr::null_mut()),
            Some(position) => {
                let code = small(count, size, &raw mut at);
                *position = at.into();
                code
            }
        },
        _ => too_large(host, on),
    }
}
