//! Types between processes. A form is a head of 88 bytes followed by ddtc's wire form, which starts with its magic number, version and length.
//!
//! The head is there for ranks of the same job that use yaksa itself. Its `yaksa_unflatten` copies the bytes of a form into a type, arrays and addresses
//! included, and checks nothing. It reads the `int` at byte 4 first, the kind of the type. Kind 0 is a predefined type, and yaksa then looks up the type
//! number at byte 80 and reads nothing else. So the head has kind 0 and a number that no type has: the receiving process ends, by an assertion or, in a build
//! without assertions, by reading through a null pointer. Without the head the receive succeeds and the data are wrong.
//!
//! In the other direction this library ends the process too, with a line that says why ([`refuse_foreign`]). An error code would not do: MPICH ignores it at
//! the target of one-sided operations, and an `MPI_Put` then returns success and moves nothing. Damaged forms of this library are refused with a code.

use std::ffi::{c_int, c_void};

use ddtc::Datatype;
use ddtc::internal::methods::*;
use ddtc::internal::process;

use crate::abi::{Code, Result, export, out, require};
use crate::startup::running;
use crate::{convert, received, recent};

/// First bytes of a form. yaksa has the reference count of the type here, which never has this value.
const MAGIC: [u8; 4] = *b"ddty";
/// Bytes before the wire form.
const HEAD_LENGTH: usize = 88;
/// Offset of the type number in yaksa's form of a predefined type.
const NUMBER_AT: usize = 80;
/// A type number that yaksa never gives: it counts up from 0 and reuses the numbers of freed types.
const NO_NUMBER: u64 = 0xffff_ffff;
/// What stands before every wire form.
const HEAD: [u8; HEAD_LENGTH] = head();
/// The result for a form that is refused with a code. No type has this number, so every later use of it is an error.
const NO_TYPE: u64 = u64::MAX;
/// The highest kind of a type in yaksa.
const LAST_KIND: u32 = 8;
/// More references than a type in yaksa has in practice, and fewer than [`MAGIC`] reads as.
const MANY_REFERENCES: u32 = 1 << 24;
/// First bytes of a wire form ([`Datatype::to_wire`]).
const WIRE_MAGIC: [u8; 4] = *b"ddtw";
/// Bytes in which a wire form says its magic number, version and length.
const WIRE_START: usize = 16;

const fn head() -> [u8; HEAD_LENGTH] {
    let mut head = [0; HEAD_LENGTH];
    head.split_at_mut(MAGIC.len()).0.copy_from_slice(&MAGIC);
    head.split_at_mut(NUMBER_AT).1.copy_from_slice(&NO_NUMBER.to_ne_bytes());
    head
}

/// Returns the length of the form whose wire form has `wire` bytes. Callers keep it in an `int`.
fn length(wire: usize) -> Result<usize> {
    wire.checked_add(HEAD_LENGTH).filter(|&n| n <= c_int::MAX as usize).ok_or(Code::NotSupported)
}

/// Ends the process if the first bytes of a form are those of yaksa's, which are the number of references to the type and its kind, or those of a version of
/// this library that wrote no head.
fn refuse_foreign(start: [u8; 8]) {
    let (first, second) = start.split_at(4);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
    let yaksa = (1..MANY_REFERENCES).contains(&number(first)) && number(second) <= LAST_KIND;
    if yaksa || first == WIRE_MAGIC {
        let text = "ddtc (libyaksa.so.0): a datatype came from a process with another libyaksa or another version of this one: \
                    all processes of a job must load the same\n";
        // The process ends whether or not anybody reads the line.
        let _ = process::to_stderr(text.as_bytes());
        std::process::abort();
    }
}

/// Returns the wire form in the form at `form`. Its length is what it says of itself.
///
/// # Safety
/// `form` must point to a form of this library or of yaksa, or to eight bytes of which the first four are not [`MAGIC`].
unsafe fn wire<'a>(form: *const u8) -> Result<&'a [u8]> {
    require(!form.is_null())?;
    // SAFETY: the caller vouches for eight bytes. Only these are read of what is not a form of this library.
    let first = unsafe { form.cast::<[u8; 8]>().read_unaligned() };
    if !first.starts_with(&MAGIC) {
        refuse_foreign(first);
        return Err(Code::Internal);
    }
    // SAFETY: the magic number says that this is a form of this library, which has a head and the start of a wire form.
    let (head, start) = unsafe { form.cast::<([u8; HEAD_LENGTH], [u8; WIRE_START])>().read_unaligned() };
    require(head == HEAD && start.starts_with(&WIRE_MAGIC))?;
    let claimed = start.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let claimed = usize::try_from(claimed).ok().filter(|&n| n >= WIRE_START).ok_or(Code::Internal)?;
    length(claimed)?;
    // SAFETY: the caller vouches for the form, whose wire form begins after the head and has this length. Nothing is made of its bytes before
    // `Datatype::from_wire` has compared its checksum.
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
        // The caller has as much room as `yaksa_flatten_size` said for this type: the head, and the wire form after it.
        let form: *mut u8 = flattened.cast();
        std::ptr::copy_nonoverlapping(HEAD.as_ptr(), form, HEAD_LENGTH);
        std::ptr::copy_nonoverlapping(wire.as_ptr(), form.add(HEAD_LENGTH), wire.len());
        Ok(())
    }

    fn yaksa_unflatten(number: *mut u64, flattened: *const c_void) {
        let number = out(number)?;
        // A caller that ignores the code, as MPICH does at the target of one-sided operations, would go on with the number that it had here.
        number.set(NO_TYPE);
        running()?;
        let wire = wire(flattened.cast())?;
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
