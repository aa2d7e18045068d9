//! The interface's codes, and how its arguments come in: places for results, arrays with a length beside them.
//!
//! Here alone pointers of callers become references, after the checks that can be made. That the memory is there is the caller's promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use ddtc::internal::error::{Error, ErrorClass};

/// Why a call failed, as the codes that the interface has; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    /// Out of memory.
    OutOfMem = 1,
    /// A bad argument, or a fault of this library.
    Internal = 2,
    /// An operation that the element type does not have, or anything on a GPU.
    NotSupported = 3,
}

pub(crate) type Result<T> = std::result::Result<T, Code>;

impl From<Error> for Code {
    fn from(error: Error) -> Code {
        match error.class() {
            ErrorClass::NoMem => Code::OutOfMem,
            ErrorClass::Op | ErrorClass::Unsupported => Code::NotSupported,
            _ => Code::Internal,
        }
    }
}

/// Runs the body of an export: nothing unwinds into the caller.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> i32 {
    if ddtc::internal::process::is_inconsistent() {
        // The body could wait for a lock that nobody gives back.
        return Code::Internal as i32;
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code as i32,
        Err(payload) => {
            // Dropping a payload may run anything; nothing is lost but a message.
            std::mem::forget(payload);
            Code::Internal as i32
        }
    }
}

/// Defines exports: panic-proof, results to codes. The body is unsafe code under the contract of the interface.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {$(
        #[doc = concat!("`", stringify!($name), "`: docs/YAKSA.md.")]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            #[allow(unused_unsafe)]
            $crate::abi::guard(
                // SAFETY: the caller keeps the contract of the function: pointers are null or point to as much memory of
                // their type as the arguments beside them say.
                || unsafe { $body },
            )
        }
    )+};
}
pub(crate) use export;

/// A place for a result: not null.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    #[inline]
    pub(crate) fn set(&self, value: T) {
        // SAFETY: `out` took a place that its caller vouched for; it may be unaligned in sloppy callers, which costs nothing.
        unsafe { self.0.as_ptr().write_unaligned(value) };
    }
}

/// Returns a place for a result.
///
/// # Safety
/// `place` must be null or valid for as long as the result is used.
#[inline]
pub(crate) unsafe fn out<T>(place: *mut T) -> Result<Out<T>> {
    NonNull::new(place).map(Out).ok_or(Code::Internal)
}

/// `n` entries to read.
///
/// # Safety
/// `array` must be null or point to `n` entries for as long as the result is used.
pub(crate) unsafe fn input<'a, T>(array: *const T, n: isize) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    let n = usize::try_from(n).map_err(|_| Code::Internal)?;
    if n > isize::MAX as usize / size_of::<T>() || array.is_null() || !array.is_aligned() {
        return Err(Code::Internal);
    }
    // SAFETY: not null, aligned, no longer than memory, and the caller vouches for `n` entries.
    Ok(unsafe { std::slice::from_raw_parts(array, n) })
}

/// Returns success if a condition on pointers holds, else the error.
pub(crate) fn require(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(Code::Internal) }
}
