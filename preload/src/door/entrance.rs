//! Stands before Open MPI's functions of the same names. While the door is shut each is the host's, one load later.

use std::ffi::{c_int, c_void};

use ddtc::kind::Direction;

use super::described::LOOKED_AT;
use super::host::{
    COPY, Copy, FAILED, Original, PREPARE_FOR_RECV, PREPARE_FOR_SEND, Position, Prepare, RAW, SET_POSITION,
    called, generic, is_open, typed,
};
use super::layout::{Convertor, OF_TYPE, layout};
use super::lists;
use super::mover::{Ours, leave, position};
use super::ready::ENOUGH;
use super::unseen;
use crate::candidates;
use crate::counted;
use crate::guard::guard;
use crate::host;
use crate::reentrancy::is_inside;
use crate::slow_path::{FOREIGN, GPU, OPAQUE_GPU, SHADOW, watched_for};
use crate::table::{self, Found};

/// Buffers, how many of them, bytes.
type Raw = unsafe extern "C" fn(Convertor, *mut libc::iovec, *mut u32, *mut usize) -> c_int;

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_prepare_for_send(
    convertor: *mut c_void,
    datatype: *const c_void,
    count: usize,
    buffer: *const c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { prepare(&PREPARE_FOR_SEND, Direction::Pack, Convertor(convertor), datatype, count, buffer) }
}

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_prepare_for_recv(
    convertor: *mut c_void,
    datatype: *const c_void,
    count: usize,
    buffer: *const c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { prepare(&PREPARE_FOR_RECV, Direction::Unpack, Convertor(convertor), datatype, count, buffer) }
}

/// Prepares a convertor by the host's function, and stores our mover where it serves the type.
///
/// # Safety
/// As Open MPI's function `original`, which prepares convertors of this direction.
#[inline(always)]
unsafe fn prepare(
    original: &Original,
    direction: Direction,
    convertor: Convertor,
    datatype: *const c_void,
    count: usize,
    buffer: *const c_void,
) -> c_int {
    match typed!(original.known(), Prepare) {
        // Every message comes by here, most of them by a jump.
        // SAFETY: as the caller promises.
        Some(theirs) if is_theirs(datatype) => unsafe { theirs(convertor, datatype, count, buffer) },
        // SAFETY: as the caller promises.
        _ => unsafe { prepared(original, direction, convertor, datatype, count, buffer) },
    }
}

/// Says whether convertors of a type are never served, whatever is moved: the door is shut, or it is a named type, a run of bytes, or one that was found to be the host's.
#[inline(always)]
fn is_theirs(datatype: *const c_void) -> bool {
    let handle = datatype as u64;
    !is_open()
        || host::known().is_some_and(|host| host.is_named(handle))
        || match table::find(handle) {
            Found::Convert(entry) => entry.is_a_run(),
            Found::Pass => true,
            Found::Unknown => false,
        }
}

/// # Safety
/// As [`prepare`].
#[inline(never)]
unsafe fn prepared(
    original: &Original,
    direction: Direction,
    convertor: Convertor,
    datatype: *const c_void,
    count: usize,
    buffer: *const c_void,
) -> c_int {
    let Some(theirs) = called!(original, Prepare) else { return FAILED };
    // SAFETY: as the caller promises; the memory of a convertor is as it was proven to be where the door is open.
    unsafe {
        let code = theirs(convertor, datatype, count, buffer);
        let generic = generic(direction);
        if generic != 0 && convertor.word(layout().mover) == generic as u64 {
            choose(direction, convertor);
        }
        code
    }
}

/// Stores our mover where the host has stored its generic one for a type that is ready.
///
/// # Safety
/// The door must be open, and `convertor` one of the host's that was just prepared and nobody else
/// uses.
#[inline(never)]
unsafe fn choose(direction: Direction, convertor: Convertor) {
    let l = layout();
    // SAFETY: as the caller promises.
    let (flags, handle, description, moved, buffer, size) = unsafe {
        let word = |offset| convertor.word(offset);
        let (flags, datatype, description) = (convertor.flags(l), word(l.datatype), word(l.description));
        (flags, datatype, description, word(l.moved), word(l.buffer), word(l.size))
    };
    // If the preparation stored no mover, the generic one is an earlier request's. The flags of such a
    // convertor are never those of a fresh one.
    if flags & !OF_TYPE != l.fresh(direction == Direction::Pack)
        || description != handle + u64::from(l.optimized)
        || moved != 0
    {
        return;
    }
    let entry = match table::find(handle) {
        Found::Convert(entry) => entry,
        Found::Unknown if size >= LOOKED_AT && !watched_for(FOREIGN | GPU | OPAQUE_GPU) && !is_inside() => {
            // SAFETY: the convertor was just prepared, for the generic mover as its flags say;
            // `handle` and `size` are its own.
            return unsafe { unseen::choose(direction, convertor, handle, size) };
        }
        _ => return,
    };
    if entry.served.by(direction).is_none() {
        if entry.served.ask(direction, size, ENOUGH) {
            candidates::wake(handle);
        }
        return;
    }
    if entry.takes(buffer as *const c_void)
        && entry.gains_inside(size)
        && !watched_for(FOREIGN | GPU | OPAQUE_GPU)
        // What the host is timed at is its own.
        && !is_inside()
    {
        // SAFETY: the convertor was just prepared for the generic mover, as its flags say, by its
        // type's own description; ours serves that type in this direction.
        unsafe { Ours::Known(direction).store(convertor) };
    }
}

/// Returns the mover of ours that serves a convertor, if one does.
///
/// # Safety
/// `convertor` must be one of the host's.
#[inline]
unsafe fn served(convertor: Convertor) -> Option<Ours> {
    // SAFETY: as the caller promises; the memory of a convertor is as it was proven to be where the door is open.
    if is_open() { unsafe { Ours::of(convertor) } } else { None }
}

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_set_position_nocheck(
    convertor: *mut c_void,
    at: *mut usize,
) -> c_int {
    let convertor = Convertor(convertor);
    let Some(theirs) = called!(SET_POSITION, Position) else { return FAILED };
    // SAFETY: as the caller promises.
    unsafe { served(convertor).map_or_else(|| theirs(convertor, at), |ours| position(ours, convertor, at)) }
}

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_raw(
    convertor: *mut c_void,
    list: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    let convertor = Convertor(convertor);
    let Some(theirs) = called!(RAW, Raw) else { return FAILED };
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(ours) = served(convertor) {
            // The host lists by the stack, where ours has not moved.
            if let Some(Some(done)) = guard(|| lists::list(convertor, ours, list, n, bytes)) {
                return done;
            }
            leave(convertor, ours);
        }
        theirs(convertor, list, n, bytes)
    }
}

/// # Safety
/// As Open MPI's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_datatype_copy_content_same_ddt(
    datatype: *const c_void,
    count: usize,
    to: *mut c_void,
    from: *mut c_void,
) -> i32 {
    let Some(theirs) = called!(COPY, Copy) else { return FAILED };
    // SAFETY: as the caller promises.
    unsafe {
        if is_open() && copied(datatype, count, to, from) { 0 } else { theirs(datatype, count, to, from) }
    }
}

/// Copies instances from buffer to buffer, if the type is ready for that and they lie apart.
///
/// # Safety
/// As Open MPI's `opal_datatype_copy_content_same_ddt`.
unsafe fn copied(datatype: *const c_void, count: usize, to: *mut c_void, from: *mut c_void) -> bool {
    let Found::Convert(entry) = table::find(datatype.addr() as u64) else { return false };
    let count = layout().instances(count);
    let (Some(bytes), Ok(instances)) = (entry.size().checked_mul(count), u64::try_from(count)) else {
        return false;
    };
    let Some(copies) = entry.served.copies(bytes.max(0) as u64, ENOUGH) else {
        if entry.served.is_asked() {
            candidates::wake(datatype.addr() as u64);
        }
        return false;
    };
    if !entry.takes(to)
        || !entry.takes(from)
        || watched_for(FOREIGN | GPU | OPAQUE_GPU | SHADOW)
        || is_inside()
    {
        return false;
    }
    // SAFETY: as the caller promises; the type lives during the call.
    let done = unsafe { guard(|| copies.copy_made(from.cast(), to.cast(), instances)) == Some(true) };
    if done {
        counted::copied_inside(bytes as u64);
    }
    done
}
