//! Packing and unpacking of any part of the packed stream. A call may begin at any offset and moves
//! as many whole elements as fit. A pair or a complex number is one element.
//!
//! All work is done when a call returns, even in the variants of a call that take a request or a
//! stream. A stream belongs to a GPU, and this library accepts no buffers of GPUs, so that argument
//! is not used.

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

/// Part of the packed stream that a caller asks for: its offset, and its maximum length in bytes.
/// For packing, the maximum is the size of the buffer for packed bytes; for unpacking, it is the
/// number of packed bytes that the caller provides.
struct Piece {
    offset: usize,
    room: usize,
}

/// Returns the range of the stream of `count` instances that is to be moved. Fails with
/// [`Code::Internal`] if the size of the stream does not fit in 63 bits, or if the offset is larger
/// than that size.
#[inline]
fn range(ty: u64, facts: &Facts, count: u64, piece: &Piece) -> Result<Range<u64>> {
    let total = i64::try_from(count).ok().and_then(|n| n.checked_mul(facts.size)).ok_or(Code::Internal)?;
    let (total, offset) = (total as u64, piece.offset as u64);
    require(offset <= total)?;
    let end = total.min(offset.saturating_add(piece.room as u64));
    if end == total { Ok(offset..end) } else { cut(ty, offset, end) }
}

/// Returns the range from `offset` to `end` without the element that `end` cuts. `end` must be less
/// than the size of the stream.
#[cold]
fn cut(ty: u64, offset: u64, end: u64) -> Result<Range<u64>> {
    // `end` is less than the size of the stream, which fits in 63 bits.
    let whole = with_node(ty, |node| list::whole_elements(node, end as i64))?;
    Ok(offset..offset.max(whole as u64))
}

/// Returns success if all instances lie in the address space, above its first page. Fails with
/// [`Code::Internal`] otherwise.
fn spans(facts: &Facts, user: *const u8, count: u64) -> Result<()> {
    let last = (i128::from(count) - 1) * i128::from(facts.extent);
    let low = user.addr() as i128 + i128::from(facts.true_lb) + last.min(0);
    let high = user.addr() as i128 + i128::from(facts.true_lb) + i128::from(facts.true_extent) + last.max(0);
    require(low >= FIRST_PAGE as i128 && high <= i128::from(u64::MAX))
}

/// Moves the bytes of a checked call without changing them.
///
/// # Safety
/// `call` must have been checked. The bytes of its range must be valid in the instances at
/// `call.user` and at `call.packed`: readable and initialized on the side from which they are
/// moved, and writable on the other. Except for contiguous types, the two sides must not overlap.
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
        // on both sides. The caller promises that they are valid. `ptr::copy` allows an overlap:
        // some callers pass the same memory for both sides.
        unsafe { std::ptr::copy(from, to, n) };
        return Ok(());
    }
    with_node(call.ty, |node| {
        // SAFETY: the call has been checked, and its type is not contiguous. The caller promises
        // that the bytes of the range are valid on both sides, and that the sides do not overlap.
        if unsafe { by_pieces::try_move(call, node) } {
            return Ok(());
        }
        let committed = compile::committed(node)?;
        // SAFETY: `range` lies inside the stream of `count` instances, since the call has been
        // checked. The caller promises that its bytes are valid on both sides, and that the sides
        // do not overlap.
        unsafe {
            committed.range_raw(call.direction, call.user, call.count, call.packed, call.range.clone())
        };
        Ok(())
    })?
}

/// Arguments that all functions for packing and unpacking have in common.
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

/// Carries out a call of any function for packing or unpacking, and writes the number of moved
/// bytes to `actual`.
///
/// # Safety
/// The contract of the interface must hold: `actual` is null or a place for a number, and the
/// memory that the arguments describe on both sides belongs to the caller and is valid. The sides
/// must not overlap, except for contiguous types.
#[inline]
unsafe fn run(actual: *mut usize, arguments: &Arguments) -> Result<()> {
    // SAFETY: the caller promises that `actual` is null or valid for writes, as `out` requires.
    let actual: Out<usize> = unsafe { out(actual) }?;
    running()?;
    let &Arguments { direction, user, count, ty, packed, ref piece, op, info } = arguments;
    usable(info)?;
    let facts = facts(ty)?;
    let operation = operation(op).ok_or(Code::NotSupported)?;
    // The moved part ends at the end of an element, so it may be shorter than the part that the
    // caller asked for. If the moved part is empty, the addresses are not used and may be null.
    let range = range(ty, &facts, count as u64, piece)?;
    let n = range.end - range.start;
    if n > 0 {
        require(!packed.is_null())?;
        spans(&facts, user, count as u64)?;
        let count = count as u64;
        let call = Call { direction, user, packed, count, range, ty };
        // SAFETY: the call has been checked: its range lies inside the stream, `packed` is not
        // null, and the instances lie in the address space. The caller promises that the memory on
        // both sides is valid.
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
