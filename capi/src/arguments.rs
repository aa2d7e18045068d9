//! Conversion of arguments from C: numbers of two widths, arrays and their lengths, strings,
//! addresses of results, and handles.
//!
//! The functions here check what can be checked before a pointer is used: pointers to memory that
//! is read or written must not be null, and lengths must not be negative. No check can show that
//! the memory exists. By the contract in ddtc.h, the caller must ensure this.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use ddtc::internal::count::Count;
use ddtc::internal::datatype::Datatype;
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;
use ddtc::internal::object::{self, Handle};

/// A handle as C passes it, such as `ddtc_datatype`. The ABI declares it as a pointer, which is
/// never dereferenced.
pub(crate) type Type = *mut c_void;

/// Defines exported functions. Panics and errors in a body become return codes. A body is unsafe
/// code that relies on the contract of the function in ddtc.h.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {$(
        #[doc = concat!("See `", stringify!($name), "` in its header, ddtc.h or ddtc_cuda.h.")]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            #[allow(unused_unsafe)]
            $crate::guard::guard(
                // SAFETY: the caller satisfies the contract of the declaration in its header. Each
                // pointer is null or points to memory of its type, of the length that the other
                // arguments give, and each function pointer has the declared type.
                || unsafe { $body },
            )
        }
    )+};
}
pub(crate) use export;

/// `MPI_UNDEFINED` of the standard ABI. It is the result if a count does not exist or does not fit.
pub(crate) const UNDEFINED: c_int = -32766;

/// Returns `value` as a number of type `N`, which is the count type of the call. Returns
/// `MPI_UNDEFINED` if there is no value or if it does not fit in `N`.
pub(crate) fn or_undefined<N: Count>(value: Option<i64>) -> N {
    value.and_then(N::narrow).unwrap_or(UNDEFINED.into())
}

/// Address of a result, which is not null. Arguments that a call both reads and writes use this
/// type, too.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    #[inline]
    pub(crate) fn set(&self, value: T) {
        // SAFETY: the caller of `out` promised that the address, which is not null, is valid for
        // writes of a `T` as long as this value is used. It need not be aligned, so that a C caller
        // with an unaligned variable does no harm.
        unsafe { self.0.as_ptr().write_unaligned(value) };
    }

    #[inline]
    pub(crate) fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller of `out` promised that the address is valid for reads of a `T`, too.
        // The exports read only arguments that ddtc.h asks the program to set before the call. The
        // address need not be aligned.
        unsafe { self.0.as_ptr().read_unaligned() }
    }
}

/// Access to structures to which later versions of ddtc have added fields. A caller that was
/// compiled for an earlier version has only the first bytes of such a structure.
impl<T: Copy> Out<T> {
    /// Writes the first `n` bytes of `value` to the address.
    ///
    /// # Safety
    /// The memory at the address must have at least `n` bytes and must not overlap `value`. `n`
    /// must be at most the size of `T`. None of the first `n` bytes of a `T` may be padding.
    pub(crate) unsafe fn set_start(&self, value: &T, n: usize) {
        let from = std::ptr::from_ref(value).cast::<u8>();
        // SAFETY: the caller promises that `n` bytes can be read from `value` and written to the
        // address, and that these do not overlap. Bytes have no alignment.
        unsafe { std::ptr::copy_nonoverlapping(from, self.0.as_ptr().cast(), n) };
    }

    /// Returns `value` with its first `n` bytes replaced by those at the address.
    ///
    /// # Safety
    /// The conditions are those of [`Out::set_start`]. In addition, the `n` bytes at the address
    /// must be initialized, and `T` must be a type in which any values of these bytes are valid.
    pub(crate) unsafe fn get_start(&self, mut value: T, n: usize) -> T {
        let to = std::ptr::from_mut(&mut value).cast::<u8>();
        // SAFETY: the caller promises that `n` initialized bytes can be read from the address, and
        // that `n` is at most the size of `T`. `value` is a local variable, which overlaps nothing.
        // The caller also promises that the result is a valid `T`.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr().cast(), to, n) };
        value
    }
}

impl Out<c_char> {
    /// Writes `bytes` from this address on, followed by a NUL if `nul` is true.
    ///
    /// # Safety
    /// The memory at the address must have room for `bytes` and the NUL and must not overlap
    /// `bytes`.
    pub(crate) unsafe fn write_bytes(&self, bytes: &[u8], nul: bool) {
        // SAFETY: the caller promises room for all of `bytes`, which the copy fills, and for one
        // more byte if `nul` is true, and that this memory does not overlap `bytes`.
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

/// Returns the address of a result, or an error of class `Arg` if `place` is null.
///
/// # Safety
/// `place` must be null, or valid for the reads and writes of a `T` that are made through the
/// returned value, for as long as that value is used. `place` need not be aligned.
#[inline]
pub(crate) unsafe fn out<T>(
    operation: &'static str,
    argument: &'static str,
    place: *mut T,
) -> Result<Out<T>> {
    NonNull::new(place).map(Out).ok_or_else(|| null(operation, argument))
}

/// Number of entries of an array, with the name of the argument that gives it.
pub(crate) type Length = (&'static str, i64);

/// Returns the entries of an array that is only read.
///
/// # Errors
/// Class `Count`, with the name in `length`, if the number in `length` is negative or if the
/// entries exceed `isize::MAX` bytes. Class `Arg` if the number is not 0 and `array` is null or not
/// aligned for `T`.
///
/// # Safety
/// Unless `array` is null or not aligned for `T`, it must point to as many initialized entries as
/// `length` says, which nothing may change for as long as the returned slice is used.
pub(crate) unsafe fn input<'a, T>(
    operation: &'static str,
    argument: &'static str,
    array: *const T,
    (length, n): Length,
) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    let too_many = || {
        let rule = "must not be negative nor more than memory holds";
        Error::new(ErrorClass::Count, operation, length, n, rule)
    };
    let n = usize::try_from(n).map_err(|_| too_many())?;
    if n > isize::MAX as usize / size_of::<T>() {
        return Err(too_many());
    }
    if array.is_null() {
        return Err(null(operation, argument));
    }
    if !array.is_aligned() {
        let rule = "must be aligned for its type";
        return Err(Error::new(ErrorClass::Arg, operation, argument, format_args!("{array:p}"), rule));
    }
    // SAFETY: `array` is not null and aligned, and the `n` entries have at most `isize::MAX` bytes,
    // as just checked. The caller promises that they are initialized and do not change.
    Ok(unsafe { std::slice::from_raw_parts(array, n) })
}

/// Returns the entries of an array that the library writes. The program need not have initialized
/// them. The errors are those of [`input`].
///
/// # Safety
/// `array` must be null, or point to aligned room for as many entries as `length` says for as long
/// as the returned slice is used, and nothing else may access them during that time.
pub(crate) unsafe fn output<'a, T>(
    operation: &'static str,
    argument: &'static str,
    array: *mut T,
    length: Length,
) -> Result<&'a mut [MaybeUninit<T>]> {
    let places = array.cast::<MaybeUninit<T>>();
    // SAFETY: the caller promises that `array` is null or points to aligned room for the entries
    // of `length`, and that nothing else accesses them. Any memory is an initialized `MaybeUninit`.
    let n = unsafe { input(operation, argument, places.cast_const(), length)? }.len();
    if n == 0 {
        return Ok(&mut []);
    }
    // SAFETY: `input` has checked that `array` is not null and that the `n` entries have at most
    // `isize::MAX` bytes; its own slice is no longer in use. The caller promises that the entries
    // are aligned and that nothing else accesses them.
    Ok(unsafe { std::slice::from_raw_parts_mut(places, n) })
}

/// Returns a copy of an array of numbers, converted to 64 bits. `N` is the C type of the numbers,
/// which depends on whether the call has large counts. The errors are those of [`input`].
///
/// # Safety
/// The conditions are those of [`input`], until this function returns.
pub(crate) unsafe fn numbers<N: Count>(
    operation: &'static str,
    argument: &'static str,
    array: *const N,
    length: Length,
) -> Result<Arc<[i64]>> {
    // SAFETY: the caller promises the conditions of `input`; the slice is used only here.
    let entries = unsafe { input(operation, argument, array, length)? };
    Ok(entries.iter().map(|&x| x.wide()).collect())
}

/// Returns the bytes of a C string without its NUL, or an error of class `Arg` if `string` is null.
///
/// # Safety
/// `string` must be null or a NUL-terminated string that lives and does not change for as long as
/// the returned slice is used.
pub(crate) unsafe fn bytes<'a>(
    call: &'static str,
    argument: &'static str,
    string: *const c_char,
) -> Result<&'a [u8]> {
    if string.is_null() {
        return Err(Error::new(ErrorClass::Arg, call, argument, "NULL", "must not be a null pointer"));
    }
    // SAFETY: `string` is not null, as just checked. The caller promises that it is a
    // NUL-terminated string that lives and does not change as long as the slice is used.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// Returns the text of a C string, or an error of class `Arg` if `string` is null or is not UTF-8.
///
/// # Safety
/// The conditions are those of [`bytes`].
pub(crate) unsafe fn text<'a>(
    call: &'static str,
    argument: &'static str,
    string: *const c_char,
) -> Result<&'a str> {
    // SAFETY: the conditions of `bytes` are those that the caller of this function promises.
    let bytes = unsafe { bytes(call, argument, string)? };
    std::str::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorClass::Arg, call, argument, "not UTF-8", "must be UTF-8 text"))
}

/// Returns the handle that a C value stands for. The handle need not name an object.
#[inline]
pub(crate) fn handle(datatype: Type) -> Handle {
    Handle::from_bits(datatype.addr() as u64)
}

/// Returns the C value of a handle. This value has a pointer type, but is never dereferenced.
pub(crate) fn to_c(handle: Handle) -> Type {
    std::ptr::without_provenance_mut(handle.bits() as usize)
}

/// Returns the datatype of a handle, such as the `oldtype` of a constructor. A handle that names no
/// datatype is an error of class `Type`.
pub(crate) fn tree(operation: &'static str, datatype: Type) -> Result<Datatype> {
    object::datatype(operation, handle(datatype))
}

/// Returns a count as an unsigned number, or an error of class `Count` if it is negative.
#[inline]
pub(crate) fn natural(operation: &'static str, argument: &'static str, value: i64) -> Result<u64> {
    u64::try_from(value)
        .map_err(|_| Error::new(ErrorClass::Count, operation, argument, value, "must not be negative"))
}
