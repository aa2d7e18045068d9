//! Result codes of the interface, and the conversion of two kinds of arguments: pointers to which
//! results are written, and arrays whose length is a separate argument.
//!
//! Such pointers become references only here, after all checks that can be made. (Strings and
//! serialized types, whose length the caller does not give, are read in `info.rs` and
//! `flatten.rs`.) No check can show that the memory is valid. The caller of the interface promises
//! this.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use ddtc::internal::error::{Error, ErrorClass};

/// Reason why a call failed, with the codes of the interface. Code 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    /// Out of memory.
    OutOfMem = 1,
    /// A bad argument, or a fault of this library.
    Internal = 2,
    /// An operation that does not exist or is not defined for a type of the elements; a serialized
    /// type that is too long or comes from another version; or anything that concerns a GPU.
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

/// Runs the body of an exported function and returns its code. A panic in the body becomes
/// [`Code::Internal`], because it must not unwind into the caller, which is written in C.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> i32 {
    if ddtc::internal::process::is_inconsistent() {
        // This process is the child of a fork, or descends from one, and another thread was in a
        // fork section during that fork. So a lock may be held by a thread that does not exist in
        // this process, and the body could wait for that lock forever.
        return Code::Internal as i32;
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code as i32,
        Err(payload) => {
            // Dropping the payload could run arbitrary code, which could panic again. Leaking it
            // loses only the memory of a message.
            std::mem::forget(payload);
            Code::Internal as i32
        }
    }
}

/// Defines exported functions. `guard` turns the result of the body, or a panic in it, into a code.
/// The body is unsafe code that relies on the contract of the interface.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {$(
        #[doc = concat!("`", stringify!($name), "`: docs/YAKSA.md.")]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> ::std::ffi::c_int {
            #[allow(unused_unsafe)]
            $crate::abi::guard(
                // SAFETY: the caller keeps the contract of the function: each pointer is null, or
                // points to memory of its type that is as long as the other arguments say.
                || unsafe { $body },
            )
        }
    )+};
}
pub(crate) use export;

/// Pointer, which is not null, to the place where a result is written.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    #[inline]
    pub(crate) fn set(&self, value: T) {
        // SAFETY: `out` made this pointer from one that is not null. Its caller promises that the
        // place can be written as long as `self` is used. The place need not be aligned, since some
        // callers pass unaligned ones and that costs nothing.
        unsafe { self.0.as_ptr().write_unaligned(value) };
    }
}

/// Returns the pointer `place`, checked, as the place where a result is written. Fails with
/// [`Code::Internal`] if `place` is null.
///
/// # Safety
/// `place` must be null, or valid for writes of a `T` for as long as the result is used.
#[inline]
pub(crate) unsafe fn out<T>(place: *mut T) -> Result<Out<T>> {
    NonNull::new(place).map(Out).ok_or(Code::Internal)
}

/// Returns the first `n` entries of an array. Fails with [`Code::Internal`] if `n` is negative. If
/// `n` is positive, it fails in the same way if the array is null, not aligned, or longer than
/// memory can be.
///
/// # Safety
/// If `n` is positive, `array` must be null or unaligned, or point to `n` initialized entries that
/// can be read, and that nobody writes, for as long as the result is used.
pub(crate) unsafe fn input<'a, T>(array: *const T, n: isize) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    let n = usize::try_from(n).map_err(|_| Code::Internal)?;
    if n > isize::MAX as usize / size_of::<T>() || array.is_null() || !array.is_aligned() {
        return Err(Code::Internal);
    }
    // SAFETY: the checks above ensure that `array` is not null, is aligned, and that `n` entries
    // have at most `isize::MAX` bytes. The caller promises that the `n` entries are initialized and
    // stay unchanged while the result is used.
    Ok(unsafe { std::slice::from_raw_parts(array, n) })
}

/// Returns success if `holds` is true, else the error [`Code::Internal`].
pub(crate) fn require(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(Code::Internal) }
}
