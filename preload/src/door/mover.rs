//! Our movers: what Open MPI calls, by a convertor, for the bytes of a request.
//!
//! A mover goes by `moved` alone, the packed bytes that were moved before, and the host's stack of loops stays as it was. So a piece may be of any
//! length and at any position, on clones and in restarted requests. Whatever reads the stack is given it anew ([`give_back`]). The type is looked up in the
//! table at each call, without a lock; one that is not found is the host's from then on.

use std::ffi::c_int;

use ddtc::committed::Committed;
use ddtc::kind::Direction;

use super::host::{FAILED, Mover, Position, SET_POSITION, called, generic};
use super::layout::{COMPLETED, Convertor, LAYOUT, Layout};
use super::ready::functions;
use super::shadow::{Piece, agrees};
use crate::counted;
use crate::cuts::Cuts;
use crate::guard::guard;
use crate::host::host;
use crate::slow_path::{SHADOW, watched_for};
use crate::spending;
use crate::table::{self, Found, TypeEntry};

/// How a type is moved.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) direction: Direction,
    pub(crate) committed: &'a Committed,
    pub(crate) cuts: &'a Cuts,
}

/// Moves the bytes of buffers as the host's mover does: each as far as there are bytes, what is sent in whole elements. 1: all are moved; 0: there are more.
///
/// # Safety
/// `convertor` must be one of the host's, prepared for `way` and used by nobody else, with at least as many `buffers` as `n` says, all of them valid, and
/// `layout` what its memory is like.
pub(crate) unsafe fn advance(
    layout: &Layout,
    convertor: Convertor,
    way: Way<'_>,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    let (size, first, count, user, buffers_given) = unsafe {
        let word = |offset| convertor.word(offset);
        (word(layout.size), word(layout.moved), word(layout.count), word(layout.buffer), *n)
    };
    let (mut at, mut used) = (first, 0);
    while used < buffers_given && at < size {
        // SAFETY: one of the buffers.
        let buffer = unsafe { &mut *buffers.add(used as usize) };
        let mut end = at.saturating_add(buffer.iov_len as u64).min(size);
        if way.direction == Direction::Pack && end < size {
            end = way.cuts.before(end).max(at);
        }
        if end > at {
            // SAFETY: bytes of the request, and a buffer with room for as many.
            unsafe {
                way.committed.range_made(
                    way.direction,
                    user as *mut u8,
                    count,
                    buffer.iov_base.cast(),
                    at..end,
                );
            }
        }
        buffer.iov_len = (end - at) as usize;
        at = end;
        used += 1;
    }
    // SAFETY: places to write to; the convertor is the caller's.
    unsafe {
        *n = used;
        *bytes = (at - first) as usize;
        convertor.put(layout.moved, at);
        if at == size {
            convertor.add_flags(layout, COMPLETED);
            return 1;
        }
    }
    0
}

/// Moves a convertor to a position, which ends up at an element where it sends.
///
/// # Safety
/// As [`advance`]; `position` lies before the end.
pub(crate) unsafe fn place(layout: &Layout, convertor: Convertor, way: Way<'_>, position: *mut usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if way.direction == Direction::Pack {
            *position = way.cuts.before(*position as u64) as usize;
        }
        convertor.put(layout.moved, *position as u64);
    }
}

/// Gives a convertor back to the host's mover, with the stack that it would have there.
///
/// # Safety
/// As [`advance`]; `theirs` must be the host's mover for it, and `set_position` its function.
pub(crate) unsafe fn give_back(layout: &Layout, convertor: Convertor, theirs: usize, set_position: Position) {
    // SAFETY: as the caller promises.
    unsafe {
        convertor.put(layout.mover, theirs as u64);
        let (mut at, size) = (convertor.word(layout.moved) as usize, convertor.word(layout.size) as usize);
        // One without a stack has another position: it must be placed before it is used.
        if at < size {
            let mut start = 0;
            // From the beginning, where the host makes the stack anew.
            set_position(convertor, &raw mut start);
            if at > 0 {
                set_position(convertor, &raw mut at);
            }
        }
    }
}

/// What serves a convertor of ours, if its type is still ready, and what is known of the type.
///
/// # Safety
/// `convertor` must be one whose mover is ours: its type lives while it does.
unsafe fn way(convertor: Convertor, direction: Direction) -> Option<(&'static TypeEntry, Way<'static>)> {
    // SAFETY: as the caller promises.
    let handle = unsafe { convertor.word(LAYOUT.datatype) };
    let Found::Convert(entry) = table::find(handle) else { return None };
    let cuts = entry.served.by(direction)?;
    // SAFETY: the entry is bound, since the type lives.
    let committed = unsafe { entry.committed() }?;
    Some((entry, Way { direction, committed, cuts }))
}

/// Our mover of a direction, as the host stores it.
pub(crate) fn ours(direction: Direction) -> Mover {
    match direction {
        Direction::Pack => pack,
        Direction::Unpack => unpack,
    }
}

/// The direction of a mover of ours.
#[inline]
pub(crate) fn direction_of(mover: u64) -> Option<Direction> {
    Direction::BOTH.into_iter().find(|&direction| mover == ours(direction) as usize as u64)
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn pack(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Direction::Pack, convertor, buffers, n, bytes) }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn unpack(
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Direction::Unpack, convertor, buffers, n, bytes) }
}

#[inline]
unsafe fn moves(
    direction: Direction,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the host calls our mover, by a convertor that it was stored in.
    let Some((entry, way)) = (unsafe { way(convertor, direction) }) else {
        // SAFETY: as above.
        return unsafe { theirs(direction, convertor, buffers, n, bytes) };
    };
    // SAFETY: the host's convertor, which was proven to be like this, with buffers as its movers get them.
    let done = guard(|| unsafe {
        let done = if watched_for(SHADOW) {
            compared(convertor, way, buffers, n, bytes)
        } else {
            advance(&LAYOUT, convertor, way, buffers, n, bytes)
        };
        if done == 1 {
            spending::saved(entry.spares(convertor.word(LAYOUT.size)));
        }
        counted::inside(&entry.uses, direction, *bytes as u64);
        done
    });
    done.unwrap_or(FAILED)
}

/// Moves a piece and compares it with the host's; one that differs is moved by the host again, as is all that comes after it.
///
/// # Safety
/// As [`advance`], for a convertor whose mover is ours.
#[cold]
unsafe fn compared(
    convertor: Convertor,
    way: Way<'_>,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let (first, all) = (convertor.word(LAYOUT.moved), *n);
        let buffers = std::slice::from_raw_parts_mut(buffers, all as usize);
        let given: Vec<usize> = buffers.iter().map(|buffer| buffer.iov_len).collect();
        let done = advance(&LAYOUT, convertor, way, buffers.as_mut_ptr(), n, bytes);
        let (Some(host), Some(functions)) = (host(), functions()) else { return done };
        let (direction, moved) = (way.direction, buffers.get(..*n as usize).unwrap_or_default());
        #[cfg(debug_assertions)]
        super::planted::spoil(convertor, way, first, moved);
        let piece = Piece { direction, first, buffers: moved, given: &given };
        if agrees(host, functions, convertor, way.committed.datatype(), &piece) {
            return done;
        }
        for (buffer, given) in buffers.iter_mut().zip(given) {
            buffer.iov_len = given;
        }
        *n = all;
        convertor.put(LAYOUT.moved, first);
        convertor.remove_flags(&LAYOUT, COMPLETED);
        theirs(direction, convertor, buffers.as_mut_ptr(), n, bytes)
    }
}

/// The type is not known any more: the host's mover goes on.
#[cold]
unsafe fn theirs(
    direction: Direction,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    let mover = generic(direction);
    // SAFETY: 0 is none, another number the address of the host's mover.
    let theirs = unsafe { std::mem::transmute::<usize, Option<Mover>>(mover) };
    let (Some(theirs), Some(set_position)) = (theirs, called!(SET_POSITION, Position)) else { return FAILED };
    // SAFETY: as in `moves`.
    unsafe {
        give_back(&LAYOUT, convertor, mover, set_position);
        theirs(convertor, buffers, n, bytes)
    }
}

/// Before the host reads the stack of a convertor of ours: it is the host's from now on.
///
/// # Safety
/// `convertor` must be one whose mover is ours.
#[cold]
pub(crate) unsafe fn leave(convertor: Convertor, direction: Direction) {
    if let Some(set_position) = called!(SET_POSITION, Position) {
        // SAFETY: its mover is ours, so it was prepared for the generic one.
        unsafe { give_back(&LAYOUT, convertor, generic(direction), set_position) };
    }
}

/// Places a convertor of ours; false: it is the host's from now on.
///
/// # Safety
/// As Open MPI's `opal_convertor_set_position_nocheck`, for a convertor whose mover is ours.
pub(crate) unsafe fn placed(convertor: Convertor, direction: Direction, position: *mut usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        match way(convertor, direction) {
            Some((_, way)) => place(&LAYOUT, convertor, way, position),
            None => leave(convertor, direction),
        }
        direction_of(convertor.word(LAYOUT.mover)).is_some()
    }
}
