//! Serialized types, called forms: the bytes in which MPICH sends a type to another process. A form
//! is a head of 88 bytes followed by ddtc's wire form, which starts with its magic number, version
//! and length.
//!
//! The head protects jobs in which other ranks use yaksa itself. The function `yaksa_unflatten` of
//! yaksa copies the bytes of a form into a type, arrays and addresses included, and checks nothing.
//! It first reads the `int` at byte 4, the kind of the type. Kind 0 is a predefined type, for which
//! yaksa looks up the type number at byte 80 and reads nothing else. So the head has kind 0 and a
//! number that no type has. This ends the receiving process: an assertion fails or, in a build
//! without assertions, the process reads through a null pointer. Without the head, the receive
//! would succeed and the data would be wrong.
//!
//! In the other direction, this library ends the process too, with a line that says why
//! ([`refuse_foreign`]). An error code would not suffice: MPICH ignores it at the target of
//! one-sided operations, and an `MPI_Put` would return success and move nothing. Damaged forms of
//! this library are refused with a code.

use std::ffi::{c_int, c_void};

use ddtc::Datatype;
use ddtc::internal::methods::*;
use ddtc::internal::process;

use crate::abi::{Code, Result, export, out, require};
use crate::startup::running;
use crate::{convert, received, recent};

/// First four bytes of a form. A form of yaksa has the reference count of the type in this place.
/// Read as a number, these bytes are larger than any reference count in practice.
const MAGIC: [u8; 4] = *b"ddty";
/// Length in bytes of the head, after which the wire form begins.
const HEAD_LENGTH: usize = 88;
/// Offset in bytes of the type number in yaksa's form of a predefined type.
const NUMBER_AT: usize = 80;
/// Type number that yaksa gives to no type. yaksa counts its numbers up from 0 and reuses those of
/// freed types, so it never reaches this one.
const NO_NUMBER: u64 = 0xffff_ffff;
/// Head of every form.
const HEAD: [u8; HEAD_LENGTH] = head();
/// Type number that is returned for a form that is refused with a code. No type has this number, so
/// every later use of it is an error.
const NO_TYPE: u64 = u64::MAX;
/// Highest value with which yaksa encodes the kind of a type, that is, its constructor.
const LAST_KIND: u32 = 8;
/// Bound on the reference count of a type in yaksa, above all counts that occur in practice. The
/// bound is less than the number that the bytes of [`MAGIC`] encode.
const MAX_YAKSA_REFERENCES: u32 = 1 << 24;
/// First bytes of a wire form ([`Datatype::to_wire`]).
const WIRE_MAGIC: [u8; 4] = *b"ddtw";
/// Number of bytes at the start of a wire form that hold its magic number, version and length.
const WIRE_START: usize = 16;

/// Returns [`HEAD`]: zeros, except for the magic number and the type number.
const fn head() -> [u8; HEAD_LENGTH] {
    let mut head = [0; HEAD_LENGTH];
    head.split_at_mut(MAGIC.len()).0.copy_from_slice(&MAGIC);
    head.split_at_mut(NUMBER_AT).1.copy_from_slice(&NO_NUMBER.to_ne_bytes());
    head
}

/// Returns the length in bytes of a form whose wire form has `wire` bytes. Callers keep the length
/// in an `int`, so the function fails with [`Code::NotSupported`] if it does not fit in one.
fn length(wire: usize) -> Result<usize> {
    wire.checked_add(HEAD_LENGTH).filter(|&n| n <= c_int::MAX as usize).ok_or(Code::NotSupported)
}

/// Ends the process if `start`, the first eight bytes of a form, shows that the form was written by
/// yaksa or by a version of this library that wrote no head. A form of yaksa begins with two
/// numbers: the reference count of the type, and the kind of the type.
fn refuse_foreign(start: [u8; 8]) {
    let (first, second) = start.split_at(4);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
    let yaksa = (1..MAX_YAKSA_REFERENCES).contains(&number(first)) && number(second) <= LAST_KIND;
    if yaksa || first == WIRE_MAGIC {
        let text = "ddtc (libyaksa.so.0): a datatype came from a process with another libyaksa or another version of this one: \
                    all processes of a job must load the same\n";
        // The process ends in any case, so a failure to write the line does not matter.
        let _ = process::to_stderr(text.as_bytes());
        std::process::abort();
    }
}

/// Returns the wire form that is part of the form at `form`. Its length is read from the wire form.
///
/// Fails with [`Code::Internal`] if `form` is null or is no form, and with [`Code::NotSupported`]
/// if the stated length is too large. Ends the process if the form is that of another library.
///
/// # Safety
/// `form` must be null, or point to a form of this library or of yaksa, or to eight bytes of which
/// the first four are not [`MAGIC`]. These bytes must be readable, and stay unchanged as long as
/// the result is used.
unsafe fn wire<'a>(form: *const u8) -> Result<&'a [u8]> {
    require(!form.is_null())?;
    // SAFETY: `form` is not null, and points to at least eight readable bytes in each of the cases
    // that the caller may have. `read_unaligned` requires no alignment.
    let first = unsafe { form.cast::<[u8; 8]>().read_unaligned() };
    if !first.starts_with(&MAGIC) {
        refuse_foreign(first);
        return Err(Code::Internal);
    }
    // SAFETY: the bytes begin with `MAGIC`, so the caller promises that they are a form of this
    // library. Such a form has a head of `HEAD_LENGTH` bytes and at least the first `WIRE_START`
    // bytes of a wire form.
    let bytes = unsafe { form.cast::<[u8; HEAD_LENGTH + WIRE_START]>().read_unaligned() };
    let (head, start) = bytes.split_at(HEAD_LENGTH);
    require(head == HEAD && start.starts_with(&WIRE_MAGIC))?;
    let claimed = start.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let claimed = usize::try_from(claimed).ok().filter(|&n| n >= WIRE_START).ok_or(Code::Internal)?;
    length(claimed)?;
    // SAFETY: the caller promises that `form` points to a whole form, whose wire form begins after
    // the head and has the length `claimed`, and that its bytes stay unchanged. `length` has
    // limited `claimed` to less than `isize::MAX`. The bytes need not be trusted: no datatype is
    // made of them before `Datatype::from_wire` has compared their checksum.
    Ok(unsafe { std::slice::from_raw_parts(form.add(HEAD_LENGTH), claimed) })
}

export! {
    fn yaksa_flatten_size(number: u64, size: *mut usize) {
        let size = out(size)?;
        running()?;
        size.set(length(recent::get(number)?.datatype()?.wire_size()?)?);
        Ok(())
    }

    fn yaksa_flatten(number: u64, flattened: *mut c_void) {
        require(!flattened.is_null())?;
        running()?;
        let wire = recent::get(number)?.datatype()?.to_wire()?;
        length(wire.len())?;
        // `flattened` is not null, and the caller provides as many bytes as `yaksa_flatten_size`
        // returns for this type: the head, and the wire form after it. Neither source lies in the
        // memory of the caller.
        let form: *mut u8 = flattened.cast();
        std::ptr::copy_nonoverlapping(HEAD.as_ptr(), form, HEAD_LENGTH);
        std::ptr::copy_nonoverlapping(wire.as_ptr(), form.add(HEAD_LENGTH), wire.len());
        Ok(())
    }

    fn yaksa_unflatten(number: *mut u64, flattened: *const c_void) {
        let number = out(number)?;
        // A caller that ignores the code, as MPICH does at the target of one-sided operations,
        // would go on with the number that was in `number` before. So a number that no type has is
        // written first.
        number.set(NO_TYPE);
        running()?;
        let wire = wire(flattened.cast())?;
        // If the same form was received recently, its type is kept and used again. Otherwise the
        // tree is read from the form and converted. A tree without data whose bounds are all 0 is
        // the null type, which has number 0.
        let node = match received::find(wire) {
            Some(node) => node,
            None => {
                let t = Datatype::from_wire(wire)?;
                if t.size() == 0 && t.extent() == 0 && t.lb() == 0 {
                    number.set(0);
                    return Ok(());
                }
                let node = convert::node(&t)?;
                received::keep(wire, &node);
                node
            }
        };
        number.set(recent::insert(node)?);
        Ok(())
    }
}
