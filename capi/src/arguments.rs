//! Arguments as C passes them: numbers of two widths, arrays with a length beside them, strings, places for results, handles.
//!
//! Here alone raw pointers of callers become references, after the checks that can be made: not null where something is to be read or
//! written, lengths not negative. That the memory is there is the caller's side of the contract in ddtc.h.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use ddtc::internal::count::Count;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Handle};

/// `ddtc_datatype`: the ABI's pointer, never dereferenced.
pub(crate) type Type = *mut c_void;

/// Defines exports: panic-proof, errors to codes. The body is unsafe code under the contract of the header.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {$(
        #[doc = concat!("See `", stringify!($name), "` in its header, ddtc.h or ddtc_cuda.h.")]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            #[allow(unused_unsafe)]
            $crate::guard::guard(
                // SAFETY: the caller keeps the contract of the declaration in the header: pointers are null or point to
                // as much memory of their type as the arguments beside them say.
                || unsafe { $body },
            )
        }
    )+};
}
pub(crate) use export;

/// `MPI_UNDEFINED` of the standard ABI.
pub(crate) const UNDEFINED: c_int = -32766;

/// A result in the form of the call; `MPI_UNDEFINED` where there is none, or it does not fit.
pub(crate) fn or_undefined<N: Count>(value: Option<i64>) -> N {
    value.and_then(N::narrow).unwrap_or(UNDEFINED.into())
}

/// A place for a result: not null.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    #[inline]
    pub(crate) fn set(&self, value: T) {
        // SAFETY: `out` took a place that its caller vouched for; it may be unaligned in sloppy callers, which costs nothing.
        unsafe { self.0.as_ptr().write_unaligned(value) };
    }

    #[inline]
    pub(crate) fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: as in `set`, for a place that the caller initialized.
        unsafe { self.0.as_ptr().read_unaligned() }
    }
}

/// Structures that have grown: callers of earlier versions have their first bytes alone.
impl<T: Copy> Out<T> {
    /// Writes the first `n` bytes of `value`.
    ///
    /// # Safety
    /// The place and `T` must have that many, none of them padding.
    pub(crate) unsafe fn set_start(&self, value: &T, n: usize) {
        let from = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(from, self.0.as_ptr().cast(), n) };
    }

    /// `value` with its first `n` bytes replaced by those of the place.
    ///
    /// # Safety
    /// As [`Out::set_start`]; any bytes must be a value of `T`.
    pub(crate) unsafe fn get_start(&self, mut value: T, n: usize) -> T {
        let to = std::ptr::from_mut(&mut value).cast::<u8>();
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr().cast(), to, n) };
        value
    }
}

impl Out<c_char> {
    /// Writes bytes from here on, and a NUL if asked.
    ///
    /// # Safety
    /// There must be room for them.
    pub(crate) unsafe fn write_bytes(&self, bytes: &[u8], nul: bool) {
        // SAFETY: as the caller promises.
        unsafe {
            let to = self.0.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            if nul {
                to.add(bytes.len()).write(0);
            }
        }
    }
}

fn null(operation: &'static str, argument: &'static str) -> Error {
    Error::new(ErrorClass::Arg, operation, argument, "NULL", "must not be a null pointer")
}

/// Returns a place for a result.
///
/// # Safety
/// `place` must be null or valid for as long as the result is used.
#[inline]
pub(crate) unsafe fn out<T>(
    operation: &'static str,
    argument: &'static str,
    place: *mut T,
) -> Result<Out<T>> {
    NonNull::new(place).map(Out).ok_or_else(|| null(operation, argument))
}

/// `n` entries to read.
///
/// # Safety
/// `array` must be null or point to `n` entries for as long as the result is used.
pub(crate) unsafe fn input<'a, T>(
    operation: &'static str,
    argument: &'static str,
    array: *const T,
    n: i64,
) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    let too_many = || {
        let rule = "must not be negative nor more than memory holds";
        Error::new(ErrorClass::Count, operation, "count", n, rule)
    };
    let n = usize::try_from(n).map_err(|_| too_many())?;
    if n > isize::MAX as usize / size_of::<T>() {
        return Err(too_many());
    }
    if array.is_null() {
        return Err(null(operation, argument));
    }
    // SAFETY: not null, and the caller vouches for `n` entries.
    Ok(unsafe { std::slice::from_raw_parts(array, n) })
}

/// Returns `n` entries to write to, which C need not have initialized.
///
/// # Safety
/// `array` must be null or point to room for `n` entries for as long as the result is used, and nobody else
/// may use them meanwhile.
pub(crate) unsafe fn output<'a, T>(
    operation: &'static str,
    argument: &'static str,
    array: *mut T,
    n: i64,
) -> Result<&'a mut [MaybeUninit<T>]> {
    let places = array.cast::<MaybeUninit<T>>();
    // SAFETY: as the caller promises, since any memory holds entries that may be uninitialized.
    let n = unsafe { input(operation, argument, places.cast_const(), n)? }.len();
    if n == 0 {
        return Ok(&mut []);
    }
    // SAFETY: `input` checked the pointer; the caller vouches that the entries are its own.
    Ok(unsafe { std::slice::from_raw_parts_mut(places, n) })
}

/// Numbers of either form as the core takes them.
///
/// # Safety
/// As [`input`].
pub(crate) unsafe fn numbers<N: Count>(
    operation: &'static str,
    argument: &'static str,
    array: *const N,
    n: i64,
) -> Result<Arc<[i64]>> {
    // SAFETY: as the caller promises.
    let entries = unsafe { input(operation, argument, array, n)? };
    Ok(entries.iter().map(|&x| x.wide()).collect())
}

/// Returns the bytes of a C string argument.
///
/// # Safety
/// `string` must be null or a NUL-terminated string that lives as long as the result is used.
pub(crate) unsafe fn bytes<'a>(
    call: &'static str,
    argument: &'static str,
    string: *const c_char,
) -> Result<&'a [u8]> {
    if string.is_null() {
        return Err(Error::new(ErrorClass::Arg, call, argument, "NULL", "must not be a null pointer"));
    }
    // SAFETY: not null; the rest is the caller's promise.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// Returns a C string argument.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'a>(
    call: &'static str,
    argument: &'static str,
    string: *const c_char,
) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { bytes(call, argument, string)? };
    std::str::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorClass::Arg, call, argument, "not UTF-8", "must be UTF-8 text"))
}

/// Returns the handle of a C value.
#[inline]
pub(crate) fn handle(datatype: Type) -> Handle {
    Handle::from_bits(datatype.addr() as u64)
}

/// Returns the C value of a handle.
pub(crate) fn to_c(handle: Handle) -> Type {
    std::ptr::without_provenance_mut(handle.bits() as usize)
}

/// Returns the datatype of an `oldtype` argument.
pub(crate) fn tree(operation: &'static str, datatype: Type) -> Result<Datatype> {
    object::datatype(operation, handle(datatype))
}

/// Returns a count that must not be negative.
#[inline]
pub(crate) fn natural(operation: &'static str, argument: &'static str, value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::new(ErrorClass::Count, operation, argument, value, "must not be negative"))
}
