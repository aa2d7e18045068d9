//! Queries to an MPI library about its version and about the envelope and contents of its
//! datatypes. The preload library and the command-line tool use them.
//!
//! The large-count form of a function is used if the library has it. Handles are 64-bit words (see
//! [`super`]). The answers of a library are not trusted, with one exception: the code relies on the
//! library not to write beyond the lengths of the arrays that it is given.
#![allow(unsafe_code)] // Functions of another library, which take raw pointers.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::Abi;
use crate::transport::NO_SHARED_MEMORY;
use ddtc::internal::datatype::contents::{Contents, Envelope};
use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;

/// C type of `MPI_Get_library_version`.
pub type VersionFn = unsafe extern "C-unwind" fn(*mut c_char, *mut c_int) -> c_int;
/// C type of `MPI_Abi_get_version`.
pub type AbiVersionFn = unsafe extern "C-unwind" fn(*mut c_int, *mut c_int) -> c_int;
/// C type of `MPI_Type_get_envelope`.
pub type EnvelopeFn =
    unsafe extern "C-unwind" fn(u64, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
/// C type of `MPI_Type_get_envelope_c`.
pub type LargeEnvelopeFn =
    unsafe extern "C-unwind" fn(u64, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int) -> c_int;
/// C type of `MPI_Type_get_contents`.
pub type ContentsFn =
    unsafe extern "C-unwind" fn(u64, c_int, c_int, c_int, *mut c_int, *mut isize, *mut c_void) -> c_int;
/// C type of `MPI_Type_get_contents_c`.
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

/// Returns the first line of a library's version text (MPI 5.0, 9.1.1), with one space between
/// words. If the text names the device of MPICH, the device is appended, as in `MPICH Version:
/// 5.0.2, device ch4:ucx,ofi`. If the text contains an option by which MPICH is built without
/// memory that ranks share, `, without shared memory` is appended too. Returns `None` if the call
/// fails or the text has no NUL character at its end.
///
/// # Safety
/// `function` must be `MPI_Get_library_version` of an MPI library.
pub unsafe fn version(function: VersionFn) -> Option<String> {
    let mut text = vec![0u8; 16384];
    let mut length = 0;
    // SAFETY: the caller promises that `function` is `MPI_Get_library_version`, which may be called
    // at any time. `text` has more room than any library's `MPI_MAX_LIBRARY_VERSION_STRING` (at
    // most 8192), and `length` is an `int` to write to.
    let code = unsafe { function(text.as_mut_ptr().cast(), &raw mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
    // The version text of MPICH lists the options with which MPICH was configured in a later line
    // than the first. Each of the three options in `without` removes shared memory between the
    // ranks of one machine.
    let words: Vec<&str> = text.lines().next().unwrap_or("").split_whitespace().collect();
    let modules = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(",");
    let device = text.lines().find_map(|line| line.strip_prefix("MPICH Device:")).map(modules);
    let device = device.map_or(String::new(), |device| format!(", device {device}"));
    let without = ["--with-ch4-shmmods=none", "--enable-nolocal", "--enable-ch4-direct=netmod"];
    let lacks_memory = without.iter().any(|option| text.contains(option));
    let memory = if lacks_memory { NO_SHARED_MEMORY } else { "" };
    (code == 0).then(|| words.join(" ") + &device + memory)
}

/// Returns the version and subversion of the standard ABI that a library has (MPI 5.0, 20.1).
/// `None` if the call fails.
///
/// # Safety
/// `function` must be `MPI_Abi_get_version` of an MPI library.
pub unsafe fn abi_version(function: AbiVersionFn) -> Option<(c_int, c_int)> {
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: the caller promises that `function` is `MPI_Abi_get_version`, which may be called at
    // any time. `major` and `minor` are `int`s to write to.
    (unsafe { function(&raw mut major, &raw mut minor) } == 0).then_some((major, minor))
}

/// Functions of one MPI library that query datatypes; `None` if the library has no such symbol.
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
    /// The library's function fails, or the ABI has no combiner of the value that it returns.
    ///
    /// # Safety
    /// The functions of `self` must be those of one MPI library, and `handle` must be that of a
    /// datatype of the library.
    pub unsafe fn envelope(&self, handle: u64) -> Result<Envelope> {
        let (mut ints, mut addresses, mut large, mut types) = (0i64, 0i64, 0i64, 0i64);
        let mut combiner: c_int = 0;
        if let Some(envelope) = self.envelope_c {
            // SAFETY: the caller promises that `handle` is that of a datatype of the function's
            // library. The other arguments are valid pointers to numbers of the types that the
            // function writes.
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
            // SAFETY: the caller promises that `handle` is that of a datatype of the function's
            // library. The other arguments are valid pointers to `int`s.
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

    /// Returns the contents of a derived datatype. The datatypes in the contents are handles, of
    /// which the caller must free those of derived datatypes.
    ///
    /// # Errors
    /// The library's function fails, or the envelope has a negative length.
    ///
    /// # Safety
    /// As [`Queries::envelope`]. In addition, `envelope` must be the result of
    /// [`Queries::envelope`] for `handle`, and the datatype must not be a named type.
    pub unsafe fn contents(&self, handle: u64, envelope: &Envelope) -> Result<Contents<u64>> {
        let length = |n: i64| {
            usize::try_from(n).map_err(|_| refused("MPI_Type_get_envelope", n, "must not be negative"))
        };
        let mut contents = Contents {
            integers: vec![0; length(envelope.integers)?],
            addresses: vec![0; length(envelope.addresses)?],
            large_counts: vec![0; length(envelope.large_counts)?],
            datatypes: vec![0; length(envelope.datatypes)?],
        };
        let Contents { integers, addresses, large_counts, datatypes } = &mut contents;
        // SAFETY: the caller keeps the contract of `contents`, which is that of `contents_into`,
        // and the arrays were just made with the lengths of the envelope.
        unsafe { self.contents_into(handle, integers, addresses, large_counts, datatypes)? };
        Ok(contents)
    }

    /// Writes the contents of a derived datatype to arrays that have exactly the lengths of its
    /// envelope. The datatypes in the contents are handles, of which the caller must free those of
    /// derived datatypes.
    ///
    /// # Errors
    /// The library's function fails.
    ///
    /// # Safety
    /// As [`Queries::contents`]. In addition, the lengths of the arrays must be those of the
    /// envelope of the datatype.
    pub unsafe fn contents_into(
        &self,
        handle: u64,
        integers: &mut [c_int],
        addresses: &mut [i64],
        large_counts: &mut [i64],
        datatypes: &mut [u64],
    ) -> Result<()> {
        const { assert!(size_of::<isize>() == size_of::<i64>(), "addresses are words of 64 bits") }
        let handles: *mut c_void = datatypes.as_mut_ptr().cast();
        let addresses_at = addresses.as_mut_ptr().cast::<isize>();
        if let Some(contents) = self.contents_c {
            // SAFETY: the caller promises that `handle` is that of a derived datatype of the
            // function's library. The arrays have the lengths that are given. The array of handles
            // has 8 bytes for each, and a handle has 4 or 8 bytes.
            let code = unsafe {
                contents(
                    handle,
                    integers.len() as i64,
                    addresses.len() as i64,
                    large_counts.len() as i64,
                    datatypes.len() as i64,
                    integers.as_mut_ptr(),
                    addresses_at,
                    large_counts.as_mut_ptr(),
                    handles,
                )
            };
            done("MPI_Type_get_contents_c", code)?;
        } else if let Some(contents) = self.contents {
            let n = [integers.len(), addresses.len(), datatypes.len()].map(|n| n as c_int);
            // SAFETY: the caller promises that `handle` is that of a derived datatype of the
            // function's library, and that the lengths are those of the envelope. The library has
            // returned them as `int`s, so the conversion to `int` changes none. The array of
            // handles has 8 bytes for each, and a handle has 4 or 8 bytes.
            let code =
                unsafe { contents(handle, n[0], n[1], n[2], integers.as_mut_ptr(), addresses_at, handles) };
            done("MPI_Type_get_contents", code)?;
        }
        if self.abi.handle_bytes == 4 {
            // Handles of 4 bytes are widened to 8 bytes in place. The last one is widened first, so
            // that none is overwritten before it is read.
            for i in (0..datatypes.len()).rev() {
                let [a, b, c, d, e, f, g, h] = datatypes[i / 2].to_ne_bytes();
                let halves = [[a, b, c, d], [e, f, g, h]];
                datatypes[i] = u64::from(u32::from_ne_bytes(halves[i % 2]));
            }
        }
        Ok(())
    }
}

/// Returns the error for a call that a library refused, or for a value in its answer that breaks a
/// rule.
pub fn refused(operation: &'static str, value: impl std::fmt::Display, rule: &'static str) -> Error {
    Error::new(ErrorClass::Type, operation, "host", value, rule)
}

/// Checks that a call returned `MPI_SUCCESS`.
///
/// # Errors
/// `code` is not `MPI_SUCCESS`.
pub fn done(operation: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(refused(operation, code, "the MPI library must return MPI_SUCCESS")) }
}
