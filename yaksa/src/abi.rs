//! Result codes of the interface, and functions that check two kinds of arguments. [`out`] checks a
//! pointer through which a single result is returned. [`input`] checks an array that a constructor
//! gets and whose length is another argument, and returns it as a slice.
//!
//! Other pointers are checked where they are used: buffers in `moves.rs`, the array of pieces in
//! `iov.rs`, hints in `info.rs`, and serialized types in `flatten.rs`. The key of a hint and a
//! serialized type have no argument for their length. No check can show that the memory behind a
//! pointer is valid. The caller of the interface promises that it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use ddtc::internal::error::{Error, ErrorClass};

/// Error code of an exported function, as yaksa's interface defines it. Code 0 stands for success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    /// Out of memory.
    OutOfMem = 1,
    /// A bad argument, or a fault of this library.
    Internal = 2,
    /// An operation that does not exist or is not defined for the basic type of an element; a
    /// serialized type that is too long or comes from another version of this library; or anything
    /// that concerns a GPU.
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

/// Runs the body of an exported function and returns the result code of the function. A panic in
/// the body becomes [`Code::Internal`], because it must not unwind into the caller, which is
/// written in C.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> i32 {
    if ddtc::internal::process::is_inconsistent() {
        // While this process or an ancestor of it was forked, another thread of the parent was
        // changing shared state of ddtc. So a lock may be held by a thread that does not exist in
        // this process, and the body could wait for that lock forever.
        return Code::Internal as i32;
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code as i32,
        Err(payload) => {
            // Dropping the payload of the panic could run arbitrary code, which could panic again.
            // Leaking the payload loses only the memory of a message.
            std::mem::forget(payload);
            Code::Internal as i32
        }
    }
}

/// Defines exported functions. Each body returns a `Result`, and `guard` turns the result, or a
/// panic, into a result code. The body is unsafe code that relies on the contract of the interface.
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

/// Pointer through which an exported function returns a result. It comes from the caller and is not
/// null.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    #[inline]
    pub(crate) fn set(&self, value: T) {
        // SAFETY: `out` made this pointer from one that is not null. The caller of `out` promises
        // that the place can be written as long as `self` is used. `write_unaligned` is used
        // because some programs pass pointers that are not aligned, and it costs nothing.
        unsafe { self.0.as_ptr().write_unaligned(value) };
    }
}

/// Checks `place`, the pointer to which a result will be written. Fails with [`Code::Internal`] if
/// `place` is null.
///
/// # Safety
/// `place` must be null, or valid for writes of a `T` as long as the returned [`Out`] is used.
#[inline]
pub(crate) unsafe fn out<T>(place: *mut T) -> Result<Out<T>> {
    NonNull::new(place).map(Out).ok_or(Code::Internal)
}

/// Returns the first `n` entries of an array. Fails with [`Code::Internal`] if `n` is negative. If
/// `n` is positive, it fails in the same way if the array is null, is not aligned, or has more than
/// `isize::MAX` bytes.
///
/// # Safety
/// If `n` is positive, and `array` is aligned and not null, it must point to `n` initialized
/// entries. They must be readable, and nobody may write to them as long as the result is used. (If
/// `array` is null or not aligned, the function fails without reading it.)
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

/// Checks that `holds` is true. Fails with [`Code::Internal`] if it is not.
pub(crate) fn require(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(Code::Internal) }
}
