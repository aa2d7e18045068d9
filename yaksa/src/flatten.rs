//! Serialized types: the bytes in which MPICH sends a datatype to another process. A serialized
//! type is a head of 88 bytes, followed by the bytes that [`Datatype::to_wire`] returns, called the
//! wire form. The wire form starts with its magic number, version and length. Zeros may follow it.
//!
//! The head protects jobs in which other ranks use yaksa itself: it makes yaksa end a process that
//! receives a serialized type of this library. Without the head, the receive would succeed and the
//! data would be wrong, because yaksa's own `yaksa_unflatten` checks nothing, and takes even arrays
//! and addresses from the bytes that were received.
//!
//! The head works as follows. `yaksa_unflatten` of yaksa first reads the `int` at byte 4, the kind
//! of the type. Kind 0 is a predefined type, for which yaksa looks up the type handle at byte 80
//! and reads nothing else. The head has kind 0 and a handle that no type has. So yaksa finds no
//! type, and the process ends: an assertion fails or, in a build without assertions, the process
//! reads through a null pointer.
//!
//! If this library receives a serialized type of yaksa, it also ends the process, with a line on
//! standard error that says why ([`refuse_foreign`]). An error code would not suffice: MPICH
//! ignores it at the target of one-sided operations, and an `MPI_Put` would return success and move
//! nothing. A damaged serialized type of this library is refused with an error code.
//!
//! **Length.** MPICH 5 sends a message of 8 KiB and more by CMA (`process_vm_readv`) if the
//! serialized type fits into a header and has at most 1024 pieces, however short these are, although
//! packing is faster for short pieces. One-sided operations also take another way if it does not
//! fit. Serialized types would be shorter here than in yaksa, and so fit more often. Zeros make them
//! as long as those of yaksa ([`length`]), so that MPICH decides as it does with yaksa.

use std::ffi::{c_int, c_void};

use ddtc::Datatype;
use ddtc::internal::methods::*;
use ddtc::internal::process;

use crate::abi::{Code, Result, export, out, require};
use crate::node::Node;
use crate::startup::running;
use crate::{convert, received, recent};

/// First four bytes of a serialized type of this library. A serialized type of yaksa begins with
/// the type's reference count in four bytes. Read as a number, the bytes of `MAGIC` are larger than
/// any reference count in practice. So they distinguish the serialized types of this library from
/// those of yaksa.
const MAGIC: [u8; 4] = *b"ddty";
/// Length in bytes of the head of a serialized type. The wire form begins after the head.
const HEAD_LENGTH: usize = 88;
/// Offset in bytes of the type handle in the serialized form that yaksa itself writes for a
/// predefined type.
const NUMBER_AT: usize = 80;
/// Type handle that yaksa gives to no type. yaksa counts its handles up from 0 and reuses the
/// handles of freed types, so it never reaches this value.
const NO_NUMBER: u64 = 0xffff_ffff;
/// First bytes of every serialized type of this library, which make yaksa refuse it.
const HEAD: [u8; HEAD_LENGTH] = head();
/// Length in bytes of the header of a message in MPICH 5 (`MPIDI_POSIX_MAX_AM_HDR_SIZE`). No
/// serialized type of this length fits into it, since the header has further fields.
const MPICH_HEADER: usize = 800;
/// Type handle that `yaksa_unflatten` writes if it fails. No type has this handle, so every later
/// use of the handle is an error.
const NO_TYPE: u64 = u64::MAX;
/// Highest value with which yaksa encodes the kind of a type, that is, its constructor.
const LAST_KIND: u32 = 8;
/// Upper bound on the reference count of a type in yaksa. It is larger than all counts that occur
/// in practice, and less than the number that the bytes of [`MAGIC`] encode.
const MAX_YAKSA_REFERENCES: u32 = 1 << 24;
/// First bytes of a wire form, which is what [`Datatype::to_wire`] returns.
const WIRE_MAGIC: [u8; 4] = *b"ddtw";
/// Number of bytes at the start of a wire form that hold its magic number, version and length.
const WIRE_START: usize = 16;

/// Returns the value of [`HEAD`]: zeros, except for the magic number and the type handle.
const fn head() -> [u8; HEAD_LENGTH] {
    let mut head = [0; HEAD_LENGTH];
    head.split_at_mut(MAGIC.len()).0.copy_from_slice(&MAGIC);
    head.split_at_mut(NUMBER_AT).1.copy_from_slice(&NO_NUMBER.to_ne_bytes());
    head
}

/// Returns the length in bytes of the serialized type of a node whose wire form has `wire` bytes. It
/// is at least that of yaksa's serialized type, but longer than [`MPICH_HEADER`] only if the wire
/// form needs it. The callers of the library store this length in an `int`. So the function fails
/// with [`Code::NotSupported`] if the length does not fit in an `int`.
fn length(node: &Node, wire: usize) -> Result<usize> {
    let least = node.yaksa_length(MPICH_HEADER).min(MPICH_HEADER);
    let form = wire.checked_add(HEAD_LENGTH).map(|n| n.max(least));
    form.filter(|&n| n <= c_int::MAX as usize).ok_or(Code::NotSupported)
}

/// Ends the process if a serialized type was written by yaksa, or by an old version of this
/// library, whose serialized types had no head. `start` has the first eight bytes of the serialized
/// type. If yaksa has written them, they are two 32-bit numbers: the reference count of the type,
/// and its kind, which stands for its constructor.
fn refuse_foreign(start: [u8; 8]) {
    let (first, second) = start.split_at(4);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
    let yaksa = (1..MAX_YAKSA_REFERENCES).contains(&number(first)) && number(second) <= LAST_KIND;
    if yaksa || first == WIRE_MAGIC {
        let text = "ddtc (libyaksa.so.0): a datatype came from a process with another libyaksa or another version of this one: \
                    all processes of a job must load the same\n";
        // The process ends even if the line cannot be written, so a failure to write it is ignored.
        let _ = process::to_stderr(text.as_bytes());
        // A handler of this signal may call `exit`; the library libpsm_infinipath, which libfabric
        // may load, has such a handler. The process would then end like one that has finished, and
        // now and then the launcher would not end the other ranks, which wait for it.
        // SAFETY: `signal` reads no memory. The default action runs no code of this process.
        unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
        std::process::abort();
    }
}

/// Returns the wire form, that is, the part after the head, of the serialized type at address
/// `form`. The length of the result is read from the wire form itself.
///
/// Fails with [`Code::Internal`] if `form` is null or does not point to a serialized type, and with
/// [`Code::NotSupported`] if the length in the wire form is too large. Ends the process if the
/// serialized type was written by yaksa or has no head ([`refuse_foreign`]).
///
/// # Safety
/// If `form` is not null, it must point to a serialized type, of this library or of yaksa, or to
/// eight other bytes that do not begin with [`MAGIC`]. The serialized type or the eight bytes must
/// be readable, and stay unchanged as long as the result is used.
unsafe fn wire<'a>(form: *const u8) -> Result<&'a [u8]> {
    require(!form.is_null())?;
    // SAFETY: `form` is not null, so it points to at least eight readable bytes: those of a
    // serialized type, or the eight bytes that the caller promises. `read_unaligned` requires no
    // alignment.
    let first = unsafe { form.cast::<[u8; 8]>().read_unaligned() };
    if !first.starts_with(&MAGIC) {
        refuse_foreign(first);
        return Err(Code::Internal);
    }
    // SAFETY: the bytes begin with `MAGIC`, so the caller promises that they are a serialized type
    // of this library. A serialized type has a head of `HEAD_LENGTH` bytes and at least the first
    // `WIRE_START` bytes of a wire form.
    let bytes = unsafe { form.cast::<[u8; HEAD_LENGTH + WIRE_START]>().read_unaligned() };
    let (head, start) = bytes.split_at(HEAD_LENGTH);
    require(head == HEAD && start.starts_with(&WIRE_MAGIC))?;
    let claimed = start.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let claimed = usize::try_from(claimed).ok().filter(|&n| n >= WIRE_START).ok_or(Code::Internal)?;
    if claimed > c_int::MAX as usize - HEAD_LENGTH {
        return Err(Code::NotSupported);
    }
    // SAFETY: the caller promises that `form` points to a whole serialized type, whose wire form
    // begins after the head and has the length `claimed`, and that its bytes stay unchanged.
    // `claimed` is less than `isize::MAX`, as the lines above have checked. The content of the wire
    // form need not be correct: `Datatype::from_wire` compares its checksum before it makes a
    // datatype.
    Ok(unsafe { std::slice::from_raw_parts(form.add(HEAD_LENGTH), claimed) })
}

export! {
    fn yaksa_flatten_size(number: u64, size: *mut usize) {
        let size = out(size)?;
        running()?;
        let node = recent::get(number)?;
        size.set(length(&node, node.datatype()?.wire_size()?)?);
        Ok(())
    }

    fn yaksa_flatten(number: u64, flattened: *mut c_void) {
        require(!flattened.is_null())?;
        running()?;
        let node = recent::get(number)?;
        let wire = node.datatype()?.to_wire()?;
        let zeros = length(&node, wire.len())? - HEAD_LENGTH - wire.len();
        // The caller of `yaksa_flatten` promises that `flattened` has room for as many bytes as
        // `yaksa_flatten_size` returns for this type. These are the bytes of the head, of the wire
        // form and of the zeros after it, which the three lines below write. `HEAD` and `wire` are
        // memory of this library, so they do not overlap the buffer of the caller.
        let form: *mut u8 = flattened.cast();
        std::ptr::copy_nonoverlapping(HEAD.as_ptr(), form, HEAD_LENGTH);
        std::ptr::copy_nonoverlapping(wire.as_ptr(), form.add(HEAD_LENGTH), wire.len());
        form.add(HEAD_LENGTH + wire.len()).write_bytes(0, zeros);
        Ok(())
    }

    fn yaksa_unflatten(number: *mut u64, flattened: *const c_void) {
        let number = out(number)?;
        // MPICH ignores the error code at the target of one-sided operations, and would go on with
        // the handle that `number` had before the call. So a handle that no type has is written
        // first.
        number.set(NO_TYPE);
        running()?;
        let wire = wire(flattened.cast())?;
        // If the same wire form was received recently, its type is used again. Otherwise a
        // `Datatype` is read from the wire form and converted to a type of this library. A
        // `Datatype` without data whose bounds are all 0 becomes the null type, which has handle 0.
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
