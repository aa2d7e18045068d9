//! Packing and unpacking, from any offset of the stream and as much as there is room for: whole elements, a pair being one.
//!
//! All of it is done when a call returns, in the forms with a request or a stream too. A stream is one of a GPU, for which there are no buffers here.

use std::ffi::c_void;
use std::ops::Range;

use ddtc::committed::FIRST_PAGE;
use ddtc::kind::Direction;

use crate::abi::{Code, Out, Result, export, out, require};
use crate::builtin::{Operation, operation};
use crate::info::usable;
use crate::life::running;
use crate::node::Facts;
use crate::recent::{facts, with_node, with_used};
use crate::{list, reduce, request};

/// A call whose arguments are checked.
pub(crate) struct Call {
    pub(crate) direction: Direction,
    /// The buffer address as MPI means it.
    pub(crate) user: *mut u8,
    /// Where byte `range.start` of the stream is.
    pub(crate) packed: *mut u8,
    pub(crate) count: u64,
    /// Whole elements of the stream, except that an element may lie before its beginning in part.
    pub(crate) range: Range<u64>,
    /// Whether that is all of the stream.
    whole: bool,
    pub(crate) ty: u64,
}

/// Most pieces that the calls of a type move one by one before it is lowered: these cost about what that does (4 us), and a type that is used once in its
/// life stays as light as it was made.
const LISTED: u16 = 512;

/// Which bytes of the stream are meant: `offset`, and how many there may be.
struct Piece {
    offset: usize,
    room: usize,
}

/// The part of the stream of `count` instances that is to be moved.
#[inline]
fn range(ty: u64, facts: &Facts, count: u64, piece: &Piece) -> Result<Range<u64>> {
    let total = i64::try_from(count).ok().and_then(|n| n.checked_mul(facts.size)).ok_or(Code::Internal)?;
    let (total, offset) = (total as u64, piece.offset as u64);
    require(offset <= total)?;
    let end = total.min(offset.saturating_add(piece.room as u64));
    if end == total { Ok(offset..end) } else { cut(ty, offset, end) }
}

/// A range that ends before the stream does, without the element that would be cut.
#[cold]
fn cut(ty: u64, offset: u64, end: u64) -> Result<Range<u64>> {
    // Less than a total that fits.
    let whole = with_node(ty, |node| Ok::<_, Code>(node.datatype()?.whole_elements(end as i64)))??;
    Ok(offset..offset.max(whole as u64))
}

/// Whether all instances lie in the address space, above its first page.
fn spans(facts: &Facts, user: *const u8, count: u64) -> Result<()> {
    let last = (i128::from(count) - 1) * i128::from(facts.extent);
    let low = user.addr() as i128 + i128::from(facts.true_lb) + last.min(0);
    let high = user.addr() as i128 + i128::from(facts.true_lb) + i128::from(facts.true_extent) + last.max(0);
    require(low >= FIRST_PAGE as i128 && high <= i128::from(u64::MAX))
}

/// Copies a piece, of which most have the length of a number.
///
/// # Safety
/// There must be `n` bytes at both.
#[inline]
unsafe fn piece(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: as the caller promises; each is read whole before it is written.
    unsafe {
        match n {
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            16 => to.cast::<u128>().write_unaligned(from.cast::<u128>().read_unaligned()),
            _ => std::ptr::copy(from, to, n),
        }
    }
}

/// Moves bytes of a checked call as they are.
///
/// # Safety
/// The caller of the export vouches for both sides.
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
        // SAFETY: the bytes of the range, one behind the other, on both sides; sloppy callers let them be the same.
        unsafe { std::ptr::copy(from, to, n) };
        return Ok(());
    }
    // Whole calls that are few and short cost less than it takes to lower the type.
    if call.whole && with_node(call.ty, |node| node.lists(facts.pieces().saturating_mul(call.count), LISTED))?
    {
        let (mut packed, at) = (call.packed, call.user.expose_provenance() as i64);
        return with_node(call.ty, |node| {
            list::list(node, at, call.count, 0, &mut |at, length| {
                let user = std::ptr::with_exposed_provenance_mut::<u8>(at as usize);
                let (from, to) = match call.direction {
                    Direction::Pack => (user.cast_const(), packed),
                    Direction::Unpack => (packed.cast_const(), user),
                };
                // SAFETY: a piece of the instances, and as many bytes of the stream.
                unsafe { piece(from, to, length as usize) };
                packed = packed.wrapping_add(length as usize);
                true
            });
        });
    }
    with_used(call.ty, |used| {
        let committed = used.committed()?;
        // SAFETY: `range` lies inside the stream of `count` instances.
        unsafe {
            committed.range_raw(call.direction, call.user, call.count, call.packed, call.range.clone())
        };
        Ok(())
    })
}

/// Who calls, by all that the forms have in common.
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

/// Every form comes to this.
///
/// # Safety
/// As the interface has it: what the arguments describe is memory of the caller's, and both sides are apart.
#[inline]
unsafe fn run(actual: *mut usize, arguments: &Arguments) -> Result<()> {
    // SAFETY: as the caller promises.
    let actual: Out<usize> = unsafe { out(actual) }?;
    running()?;
    let &Arguments { direction, user, count, ty, packed, ref piece, op, info } = arguments;
    usable(info)?;
    let facts = facts(ty)?;
    let operation = operation(op).ok_or(Code::NotSupported)?;
    let range = range(ty, &facts, count as u64, piece)?;
    let n = range.end - range.start;
    if n > 0 {
        require(!packed.is_null())?;
        spans(&facts, user, count as u64)?;
        let count = count as u64;
        // The total is known to fit.
        let whole = n == count * facts.size as u64;
        let call = Call { direction, user, packed, count, range, whole, ty };
        // SAFETY: as the caller promises.
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
