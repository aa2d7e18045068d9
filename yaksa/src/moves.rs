//! Functions that pack and unpack instances of a type. A call may begin at any offset in the packed
//! data of its instances, and moves as many whole basic elements as fit in the packed buffer. A
//! pair or a complex number is one element.
//!
//! All work is done when a call returns, even in the variants that take a request (`yaksa_ipack`)
//! or a stream (`yaksa_pack_stream`). The stream is a queue of a GPU. This library accepts no GPU
//! buffers, so it does not use the stream argument.

use std::ffi::c_void;
use std::ops::Range;

use ddtc::internal::committed::FIRST_PAGE;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use crate::abi::{Code, Out, Result, export, out, require};
use crate::builtin::{Operation, operation};
use crate::call::Call;
use crate::info::usable;
use crate::node::Facts;
use crate::recent::{facts, with_node};
use crate::startup::running;
use crate::{by_pieces, compile, list, reduce, request};

/// Part of the packed data that a caller wants to move: its offset and its maximum length, both in
/// bytes. For packing, the maximum is the size of the buffer for packed bytes; for unpacking, it is
/// the number of packed bytes that the caller provides.
struct Piece {
    offset: usize,
    room: usize,
}

/// Returns the bytes that a call moves, as a range of offsets in the packed data of `count`
/// instances. Fails with [`Code::Internal`] if the number of packed bytes of all instances does not
/// fit in 63 bits, or if the offset is larger than that number.
#[inline]
fn range(ty: u64, facts: &Facts, count: u64, piece: &Piece) -> Result<Range<u64>> {
    let total = i64::try_from(count).ok().and_then(|n| n.checked_mul(facts.size)).ok_or(Code::Internal)?;
    let (total, offset) = (total as u64, piece.offset as u64);
    require(offset <= total)?;
    let end = total.min(offset.saturating_add(piece.room as u64));
    if end == total { Ok(offset..end) } else { cut(ty, offset, end) }
}

/// Returns the range of packed bytes from `offset` to `end`, with its end moved back to a boundary
/// between basic elements. The result is empty if this boundary lies before `offset`. `end` must be
/// less than the number of packed bytes of all instances.
#[cold]
fn cut(ty: u64, offset: u64, end: u64) -> Result<Range<u64>> {
    // `end` is less than the number of packed bytes of all instances, which fits in 63 bits, so the
    // cast to `i64` keeps its value.
    let whole = with_node(ty, |node| list::whole_elements(node, end as i64))?;
    Ok(offset..offset.max(whole as u64))
}

/// Checks that all `count` instances lie in the address space, above its first page. `user` is the
/// address of displacement 0 of the first instance. Fails with [`Code::Internal`] if they do not.
fn spans(facts: &Facts, user: *const u8, count: u64) -> Result<()> {
    let last = (i128::from(count) - 1) * i128::from(facts.extent);
    let low = user.addr() as i128 + i128::from(facts.true_lb) + last.min(0);
    let high = user.addr() as i128 + i128::from(facts.true_lb) + i128::from(facts.true_extent) + last.max(0);
    require(low >= FIRST_PAGE as i128 && high <= i128::from(u64::MAX))
}

/// Packs or unpacks the bytes of a call without a reduction.
///
/// # Safety
/// The arguments in `call` must have been checked, as [`Call`] says. The bytes to be moved are in
/// one of two memories, the instances at `call.user` and the packed data at `call.packed`, and are
/// moved to the other one. They must be readable and initialized at the source, and writable at the
/// destination. Except for contiguous types, the two memories must not overlap.
#[inline]
unsafe fn copy(call: &Call, facts: &Facts) -> Result<()> {
    if facts.contiguous() {
        let at = facts.true_lb.wrapping_add(call.range.start as i64);
        let (user, n) =
            (call.user.wrapping_offset(at as isize), (call.range.end - call.range.start) as usize);
        let (from, to) = match call.direction {
            Direction::Pack => (user, call.packed),
            Direction::Unpack => (call.packed, user),
        };
        // SAFETY: the instances are one run of bytes, so the `n` bytes of the range are contiguous
        // in user memory, as they are in packed memory. The caller promises that they are valid at
        // the source and at the destination. `ptr::copy` allows an overlap: some callers pass the
        // same memory for both.
        unsafe { std::ptr::copy(from, to, n) };
        return Ok(());
    }
    with_node(call.ty, |node| {
        // SAFETY: the arguments in `call` have been checked, and its type is not contiguous. The
        // caller promises that the bytes to be moved are valid at the source and at the
        // destination, and that the two memories do not overlap.
        if unsafe { by_pieces::try_move(call, node) } {
            return Ok(());
        }
        let committed = compile::committed(node)?;
        // SAFETY: the arguments in `call` have been checked, so its range lies inside the packed
        // bytes of `count` instances. The caller promises that the bytes to be moved are valid at
        // the source and at the destination, and that the two memories do not overlap.
        unsafe {
            committed.range_raw(call.direction, call.user, call.count, call.packed, call.range.clone())
        };
        Ok(())
    })?
}

/// Arguments that all exported functions for packing and unpacking have in common.
struct Arguments {
    direction: Direction,
    user: *mut u8,
    count: usize,
    ty: u64,
    packed: *mut u8,
    piece: Piece,
    op: u64,
    info: *const c_void,
}

/// Checks and carries out a call of any exported function for packing or unpacking. Writes the
/// number of moved packed bytes to `actual`.
///
/// # Safety
/// The contract of the interface must hold: `actual` is null or a place for a number, and the user
/// memory and the packed memory that the arguments describe belong to the caller and are valid. The
/// user memory and the packed memory must not overlap, except for contiguous types.
#[inline]
unsafe fn run(actual: *mut usize, arguments: &Arguments) -> Result<()> {
    // SAFETY: the caller promises that `actual` is null or valid for writes, as `out` requires.
    let actual: Out<usize> = unsafe { out(actual) }?;
    running()?;
    let &Arguments { direction, user, count, ty, packed, ref piece, op, info } = arguments;
    usable(info)?;
    let facts = facts(ty)?;
    let operation = operation(op).ok_or(Code::NotSupported)?;
    // `range` may be shorter than the part that the caller asked for: it ends at the end of the
    // packed data, or at a boundary between basic elements. It may even be empty. Then the buffers
    // are not used, and their addresses may be null.
    let range = range(ty, &facts, count as u64, piece)?;
    let n = range.end - range.start;
    if n > 0 {
        require(!packed.is_null())?;
        spans(&facts, user, count as u64)?;
        let count = count as u64;
        let call = Call { direction, user, packed, count, range, ty };
        // SAFETY: the call has been checked: its range lies inside the packed bytes of all
        // instances, `packed` is not null, and the instances lie in the address space. The caller
        // promises that the memory on both sides is valid.
        unsafe {
            match operation {
                Operation::Replace => copy(&call, &facts)?,
                Operation::Reduce(op) => reduce::combine(&call, &facts, op)?,
            }
        }
    }
    actual.set(n as usize);
    Ok(())
}

export! {
    fn yaksa_pack(
        inbuf: *const c_void, count: usize, ty: u64, offset: usize, outbuf: *mut c_void, max: usize,
        actual: *mut usize, info: *mut c_void, op: u64,
    ) {
        run(actual, &Arguments {
            direction: Direction::Pack, user: inbuf.cast_mut().cast(), count, ty, packed: outbuf.cast(),
            piece: Piece { offset, room: max }, op, info,
        })
    }

    fn yaksa_unpack(
        inbuf: *const c_void, size: usize, outbuf: *mut c_void, count: usize, ty: u64, offset: usize,
        actual: *mut usize, info: *mut c_void, op: u64,
    ) {
        run(actual, &Arguments {
            direction: Direction::Unpack, user: outbuf.cast(), count, ty, packed: inbuf.cast_mut().cast(),
            piece: Piece { offset, room: size }, op, info,
        })
    }

    fn yaksa_ipack(
        inbuf: *const c_void, count: usize, ty: u64, offset: usize, outbuf: *mut c_void, max: usize,
        actual: *mut usize, info: *mut c_void, op: u64, request: *mut u64,
    ) {
        let request = out(request)?;
        run(actual, &Arguments {
            direction: Direction::Pack, user: inbuf.cast_mut().cast(), count, ty, packed: outbuf.cast(),
            piece: Piece { offset, room: max }, op, info,
        })?;
        request.set(request::NULL);
        Ok(())
    }

    fn yaksa_iunpack(
        inbuf: *const c_void, size: usize, outbuf: *mut c_void, count: usize, ty: u64, offset: usize,
        actual: *mut usize, info: *mut c_void, op: u64, request: *mut u64,
    ) {
        let request = out(request)?;
        run(actual, &Arguments {
            direction: Direction::Unpack, user: outbuf.cast(), count, ty, packed: inbuf.cast_mut().cast(),
            piece: Piece { offset, room: size }, op, info,
        })?;
        request.set(request::NULL);
        Ok(())
    }

    fn yaksa_pack_stream(
        inbuf: *const c_void, count: usize, ty: u64, offset: usize, outbuf: *mut c_void, max: usize,
        actual: *mut usize, info: *mut c_void, op: u64, _stream: *mut c_void,
    ) {
        run(actual, &Arguments {
            direction: Direction::Pack, user: inbuf.cast_mut().cast(), count, ty, packed: outbuf.cast(),
            piece: Piece { offset, room: max }, op, info,
        })
    }

    fn yaksa_unpack_stream(
        inbuf: *const c_void, size: usize, outbuf: *mut c_void, count: usize, ty: u64, offset: usize,
        actual: *mut usize, info: *mut c_void, op: u64, _stream: *mut c_void,
    ) {
        run(actual, &Arguments {
            direction: Direction::Unpack, user: outbuf.cast(), count, ty, packed: inbuf.cast_mut().cast(),
            piece: Piece { offset, room: size }, op, info,
        })
    }
}
