//! Asks an MPI library by its own functions for its version, and for envelope and contents of its datatypes. The preload library and the
//! command line tool ask the same.
//!
//! The large-count form is used where there is one. Handles are 64-bit words (see [`super`]). Nothing of an answer is trusted but that the
//! library keeps to the lengths of the arrays that it is given.
#![allow(unsafe_code)] // Functions of another library, which take raw pointers.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::Abi;
use ddtc::datatype::contents::{Contents, Envelope};
use ddtc::error::{Error, ErrorClass, Result};

/// `MPI_Get_library_version`.
pub type VersionFn = unsafe extern "C-unwind" fn(*mut c_char, *mut c_int) -> c_int;
/// `MPI_Abi_get_version`.
pub type AbiVersionFn = unsafe extern "C-unwind" fn(*mut c_int, *mut c_int) -> c_int;
/// `MPI_Type_get_envelope`.
pub type EnvelopeFn =
    unsafe extern "C-unwind" fn(u64, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
/// `MPI_Type_get_envelope_c`.
pub type LargeEnvelopeFn =
    unsafe extern "C-unwind" fn(u64, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int) -> c_int;
/// `MPI_Type_get_contents`.
pub type ContentsFn =
    unsafe extern "C-unwind" fn(u64, c_int, c_int, c_int, *mut c_int, *mut isize, *mut c_void) -> c_int;
/// `MPI_Type_get_contents_c`.
pub type LargeContentsFn = unsafe extern "C-unwind" fn(
    u64,
    i64,
    i64,
    i64,
    i64,
    *mut c_int,
    *mut isize,
    *mut i64,
    *mut c_void,
) -> c_int;

/// Returns the first line of a library's version (MPI 5.0, 9.1.1), words with one space between them. `None` if the call fails.
///
/// # Safety
/// The function is the library's.
pub unsafe fn version(function: VersionFn) -> Option<String> {
    let mut text = vec![0u8; 16384];
    let mut length = 0;
    // SAFETY: more room than any library's MPI_MAX_LIBRARY_VERSION_STRING (8192), and a number to write to; callable at any time.
    let code = unsafe { function(text.as_mut_ptr().cast(), &raw mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
    let words: Vec<&str> = text.lines().next().unwrap_or("").split_whitespace().collect();
    (code == 0).then(|| words.join(" "))
}

/// Version and subversion of the standard's ABI that a library has (MPI 5.0, 20.1). `None` if the call fails.
///
/// # Safety
/// The function is the library's.
pub unsafe fn abi_version(function: AbiVersionFn) -> Option<(c_int, c_int)> {
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: two numbers to write to; callable at any time.
    (unsafe { function(&raw mut major, &raw mut minor) } == 0).then_some((major, minor))
}

/// The functions of one library; `None` where it has no such symbol.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the function of its name")]
pub struct Queries {
    pub abi: &'static Abi,
    pub envelope: Option<EnvelopeFn>,
    pub envelope_c: Option<LargeEnvelopeFn>,
    pub contents: Option<ContentsFn>,
    pub contents_c: Option<LargeContentsFn>,
}

impl Queries {
    /// Returns the envelope of a datatype.
    ///
    /// # Errors
    /// A code other than success, or a combiner unknown to the ABI.
    ///
    /// # Safety
    /// The functions are the library's, and `handle` names a datatype of it.
    pub unsafe fn envelope(&self, handle: u64) -> Result<Envelope> {
        let (mut ints, mut addresses, mut large, mut types) = (0i64, 0i64, 0i64, 0i64);
        let mut combiner: c_int = 0;
        if let Some(envelope) = self.envelope_c {
            // SAFETY: a datatype by the caller's promise, and numbers to write to.
            let code = unsafe {
                envelope(
                    handle,
                    &raw mut ints,
                    &raw mut addresses,
                    &raw mut large,
                    &raw mut types,
                    &raw mut combiner,
                )
            };
            done("MPI_Type_get_envelope_c", code)?;
        } else if let Some(envelope) = self.envelope {
            let mut n: [c_int; 3] = [0; 3];
            let [a, b, c] = &mut n;
            // SAFETY: as above.
            let code = unsafe { envelope(handle, a, b, c, &raw mut combiner) };
            done("MPI_Type_get_envelope", code)?;
            (ints, addresses, types) = (i64::from(n[0]), i64::from(n[1]), i64::from(n[2]));
        }
        let combiner = self
            .abi
            .combiner(combiner)
            .ok_or_else(|| refused("MPI_Type_get_envelope", combiner, "must be a known combiner"))?;
        Ok(Envelope { combiner, integers: ints, addresses, large_counts: large, datatypes: types })
    }

    /// Returns the contents of a derived datatype, whose datatypes are handles that the caller has to free where they are derived.
    ///
    /// # Errors
    /// A code other than success, or negative lengths in the envelope.
    ///
    /// # Safety
    /// As [`Queries::envelope`], and `envelope` is what it returned for `handle`, which is not predefined by name.
    pub unsafe fn contents(&self, handle: u64, envelope: &Envelope) -> Result<Contents<u64>> {
        let length = |n: i64| {
            usize::try_from(n).map_err(|_| refused("MPI_Type_get_envelope", n, "must not be negative"))
        };
        let mut integers = vec![0 as c_int; length(envelope.integers)?];
        let mut addresses = vec![0isize; length(envelope.addresses)?];
        let mut large_counts = vec![0i64; length(envelope.large_counts)?];
        let count = length(envelope.datatypes)?;
        // Handles of 4 or 8 bytes, in room for 8.
        let mut words = vec![0u64; count];
        let datatypes: *mut c_void = words.as_mut_ptr().cast();
        if let Some(contents) = self.contents_c {
            // SAFETY: a datatype, and arrays of the lengths given.
            let code = unsafe {
                contents(
                    handle,
                    envelope.integers,
                    envelope.addresses,
                    envelope.large_counts,
                    envelope.datatypes,
                    integers.as_mut_ptr(),
                    addresses.as_mut_ptr(),
                    large_counts.as_mut_ptr(),
                    datatypes,
                )
            };
            done("MPI_Type_get_contents_c", code)?;
        } else if let Some(contents) = self.contents {
            let n = [integers.len() as c_int, addresses.len() as c_int, count as c_int];
            // SAFETY: as above; the lengths came from the library as C integers.
            let code = unsafe {
                contents(handle, n[0], n[1], n[2], integers.as_mut_ptr(), addresses.as_mut_ptr(), datatypes)
            };
            done("MPI_Type_get_contents", code)?;
        }
        let datatypes = if self.abi.handle_bytes == 4 {
            // SAFETY: 8 bytes were reserved per handle, and any bytes are integers.
            let small = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u32>(), count) };
            small.iter().map(|&h| u64::from(h)).collect()
        } else {
            words
        };
        let addresses = addresses.into_iter().map(|a| a as i64).collect();
        Ok(Contents { integers, addresses, large_counts, datatypes })
    }
}

/// That a library refused something: which call, the value, the rule.
pub fn refused(operation: &'static str, value: impl std::fmt::Display, rule: &'static str) -> Error {
    Error::new(ErrorClass::Type, operation, "host", value, rule)
}

/// Whether a call returned `MPI_SUCCESS`.
///
/// # Errors
/// Any other code.
pub fn done(operation: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(refused(operation, code, "the host must return MPI_SUCCESS")) }
}
