//! Packing and unpacking, from any offset of the stream and as much as there is room for: whole elements, a pair being one.
//!
//! All of it is done when a call returns, in the forms with a request or a stream too. A stream is one of a GPU, for which there are no buffers here.

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
use crate::{compile, list, reduce, request};

/// Most pieces that the calls of a type move one by one before it is lowered: these cost about what that does (2 to 4 us), and a type that is used once in its
/// life stays as light as it was made.
const LISTED: u16 = 2048;

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

/// Pieces of a checked call, which are moved as they are listed.
struct Pieces {
    direction: Direction,
    /// Where the next one is in the stream.
    packed: *mut u8,
}

/// Copies `n` blocks that are numbers, with steps from one to the next.
///
/// # Safety
/// There must be as many at both.
#[inline]
unsafe fn numbers<T>(mut from: *const u8, from_step: isize, mut to: *mut u8, to_step: isize, n: u64) {
    for _ in 0..n {
        // SAFETY: as the caller promises.
        unsafe { number::<T>(from, to) };
        (from, to) = (from.wrapping_offset(from_step), to.wrapping_offset(to_step));
    }
}

/// Copies a number.
///
/// # Safety
/// There must be as many at both.
#[inline]
unsafe fn number<T>(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller promises; it is read whole before it is written.
    unsafe { to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned()) };
}

impl Pieces {
    /// Both ends of the pieces at `at`: from where to where, with what steps.
    #[inline]
    fn ends(&mut self, at: i64, step: i64, length: i64, n: u64) -> (*const u8, isize, *mut u8, isize) {
        let user = std::ptr::with_exposed_provenance_mut::<u8>(at as usize);
        let packed = self.packed;
        self.packed = packed.wrapping_add((length as usize).wrapping_mul(n as usize));
        match self.direction {
            Direction::Pack => (user, step as isize, packed, length as isize),
            Direction::Unpack => (packed, length as isize, user, step as isize),
        }
    }
}

impl list::Pieces for Pieces {
    #[inline]
    fn one(&mut self, at: i64, length: i64) -> bool {
        let (from, _, to, _) = self.ends(at, 0, length, 1);
        // SAFETY: a piece of the instances, and as many bytes of the stream; whoever makes this vouches for both.
        unsafe {
            match length {
                4 => number::<u32>(from, to),
                8 => number::<u64>(from, to),
                16 => number::<u128>(from, to),
                _ => std::ptr::copy(from, to, length as usize),
            }
        }
        true
    }

    #[inline]
    fn run(&mut self, at: i64, length: i64, step: i64, n: u64) -> bool {
        let (mut from, from_step, mut to, to_step) = self.ends(at, step, length, n);
        // SAFETY: as above, for pieces.
        unsafe {
            match length {
                4 => numbers::<u32>(from, from_step, to, to_step, n),
                8 => numbers::<u64>(from, from_step, to, to_step, n),
                16 => numbers::<u128>(from, from_step, to, to_step, n),
                _ => {
                    for _ in 0..n {
                        std::ptr::copy(from, to, length as usize);
                        (from, to) = (from.wrapping_offset(from_step), to.wrapping_offset(to_step));
                    }
                }
            }
        }
        true
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
    with_node(call.ty, |node| {
        // Whole calls that are few and short cost less than it takes to lower the type.
        if call.whole && node.lists(call.count, LISTED) {
            let at = call.user.expose_provenance() as i64;
            let mut pieces = Pieces { direction: call.direction, packed: call.packed };
            list::list(node, at, call.count, 0, &mut pieces);
            return Ok(());
        }
        let committed = compile::committed(node)?;
        // SAFETY: `range` lies inside the stream of `count` instances.
        unsafe {
            committed.range_raw(call.direction, call.user, call.count, call.packed, call.range.clone())
        };
        Ok(())
    })?
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
