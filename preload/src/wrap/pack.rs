//! `MPI_Pack` and `MPI_Unpack`.

use std::ffi::c_int;

use ddtc::count::Count;
use ddtc::kind::Direction;

use crate::convert::{Call, Outcome, convert, passed};
use crate::forms::Forms;
use crate::handles::{On, missing, too_large};
use crate::host::Host;
use crate::signatures::{Handle, In, Out};

type PackFn<N> = unsafe extern "C-unwind" fn(In, N, Handle, Out, N, *mut N, Handle) -> c_int;
type UnpackFn<N> = unsafe extern "C-unwind" fn(In, N, *mut N, Out, N, Handle, Handle) -> c_int;

/// The arguments of `MPI_Pack` by their roles.
#[inline(always)]
pub(super) fn packing<N: Count>(
    inbuf: In,
    incount: N,
    datatype: Handle,
    outbuf: Out,
    outsize: N,
    position: *mut N,
    comm: Handle,
) -> Call<N> {
    Call {
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

/// Those of `MPI_Unpack`.
#[inline(always)]
pub(super) fn unpacking<N: Count>(
    inbuf: In,
    insize: N,
    position: *mut N,
    outbuf: Out,
    outcount: N,
    datatype: Handle,
    comm: Handle,
) -> Call<N> {
    Call {
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

/// Says whether a call of a row of the table of calls was converted before anything else of it was looked at: packing and unpacking alone may be.
macro_rules! at_once {
    ($host:ident, pack::pack($($argument:ident),*)) => {
        // SAFETY: the caller's arguments.
        unsafe { $crate::convert::convert_at_once($host, &pack::packing($($argument),*)) }
    };
    ($host:ident, pack::unpack($($argument:ident),*)) => {
        // SAFETY: the caller's arguments.
        unsafe { $crate::convert::convert_at_once($host, &pack::unpacking($($argument),*)) }
    };
    ($host:ident, $($other:tt)*) => {
        false
    };
}
pub(super) use at_once;

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
        // SAFETY: the caller's arguments; the position is of the large form.
        (Some(pack), _) if N::LARGE => unsafe {
            pack(inbuf, incount.wide(), datatype, outbuf, outsize.wide(), position.cast(), comm)
        },
        // SAFETY: the caller's arguments, narrowed where they are of the large form.
        (_, Some(pack)) => unsafe {
            narrowed(host, &call, forms.on, |count, size, at| {
                pack(inbuf, count, datatype, outbuf, size, at, comm)
            })
        },
        (_, None) => missing(host),
    };
    // SAFETY: the caller's arguments.
    unsafe { wrapped(host, &call, theirs) }
}

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
        // SAFETY: the caller's arguments; the position is of the large form.
        (Some(unpack), _) if N::LARGE => unsafe {
            unpack(inbuf, insize.wide(), position.cast(), outbuf, outcount.wide(), datatype, comm)
        },
        // SAFETY: the caller's arguments, narrowed where they are of the large form.
        (_, Some(unpack)) => unsafe {
            narrowed(host, &call, forms.on, |count, size, at| {
                unpack(inbuf, size, at, outbuf, count, datatype, comm)
            })
        },
        (_, None) => missing(host),
    };
    // SAFETY: the caller's arguments.
    unsafe { wrapped(host, &call, theirs) }
}

/// Converts the call, or makes the host's.
///
/// # Safety
/// As [`convert`].
#[inline]
unsafe fn wrapped<N: Count>(host: &'static Host, call: &Call<N>, theirs: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: as the caller promises.
    let outcome = unsafe { convert(host, call) };
    if outcome == Outcome::Done {
        return 0;
    }
    // SAFETY: as the caller promises.
    let before = unsafe { call.at() };
    let code = theirs();
    // SAFETY: as the caller promises.
    unsafe { passed(host, call, outcome, code, before) };
    code
}

/// The small form of a call, whichever form the program used.
///
/// # Safety
/// `call.position` must be null or point to a count.
unsafe fn narrowed<N: Count>(
    host: &Host,
    call: &Call<N>,
    on: On,
    small: impl FnOnce(c_int, c_int, *mut c_int) -> c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let position = unsafe { call.position.as_mut() };
    let at = position.as_deref().map_or(0, |at| at.wide());
    // A packed buffer may be larger than the call uses: what an int cannot say of it is not needed.
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
