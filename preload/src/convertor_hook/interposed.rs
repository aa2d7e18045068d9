//! Exported functions that the dynamic linker finds before Open MPI's functions of the same names.
//! While Open MPI's convertor hook is disabled, each of these functions only loads the address of
//! Open MPI's function and the state of the hook, and calls Open MPI's function.

use std::ffi::{c_int, c_void};

use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use super::described::ENOUGH;
use super::host::{
    COPY, Copy, FAILED, Original, PREPARE_FOR_RECV, PREPARE_FOR_SEND, Position, Prepare, RAW, SET_POSITION,
    called, generic, is_enabled, typed,
};
use super::layout::{Convertor, OF_TYPE, layout};
use super::lists;
use super::mover::{Ours, leave, position};
use super::unseen;
use crate::counted;
use crate::guard::guard;
use crate::host;
use crate::hotness;
use crate::reentrancy::is_inside;
use crate::slow_path::{FOREIGN, GPU, OPAQUE_GPU, SHADOW, watched_for};
use crate::table::{self, Found};

/// Type of `opal_convertor_raw`, which lists the memory of a request. Arguments: convertor, list to
/// fill, number of entries of the list, number of bytes in the listed memory.
type Raw = unsafe extern "C" fn(Convertor, *mut libc::iovec, *mut u32, *mut usize) -> c_int;

/// Prepares a convertor for packing.
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_prepare_for_send(
    convertor: *mut c_void,
    datatype: *const c_void,
    count: usize,
    buffer: *const c_void,
) -> c_int {
    // SAFETY: the arguments are those of Open MPI's function, which prepares for packing and whose
    // contract the caller keeps.
    unsafe { prepare(&PREPARE_FOR_SEND, Direction::Pack, Convertor(convertor), datatype, count, buffer) }
}

/// Prepares a convertor for unpacking.
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_prepare_for_recv(
    convertor: *mut c_void,
    datatype: *const c_void,
    count: usize,
    buffer: *const c_void,
) -> c_int {
    // SAFETY: the arguments are those of Open MPI's function, which prepares for unpacking and
    // whose contract the caller keeps.
    unsafe { prepare(&PREPARE_FOR_RECV, Direction::Unpack, Convertor(convertor), datatype, count, buffer) }
}

/// Prepares a convertor by Open MPI's function `original`. Then stores ddtc's mover, which packs or
/// unpacks by compiled code, in the convertor, if the type is ready for it.
///
/// # Safety
/// As for Open MPI's function `original`, which must prepare convertors of this direction.
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
        // Open MPI calls this function for every message. For nearly all messages the function is
        // only a jump to Open MPI's function.
        // SAFETY: `theirs` is `original`, whose contract the caller keeps.
        Some(theirs) if is_theirs(datatype) => unsafe { theirs(convertor, datatype, count, buffer) },
        // SAFETY: the contract of `prepared` is this function's.
        _ => unsafe { prepared(original, direction, convertor, datatype, count, buffer) },
    }
}

/// Returns true if Open MPI's mover serves all convertors of a type. That is so if the hook is
/// disabled, if the type is a named type or its instances are one contiguous run of bytes, or if
/// the table says that the type is always bypassed.
#[inline(always)]
fn is_theirs(datatype: *const c_void) -> bool {
    let handle = datatype as u64;
    !is_enabled()
        || host::known().is_some_and(|host| host.is_named(handle))
        || match table::find(handle) {
            Found::Convert(entry) => entry.is_a_run(),
            Found::Pass => true,
            Found::Unknown => false,
        }
}

/// Does the work of [`prepare`] for a type whose convertors ddtc's mover may serve.
///
/// # Safety
/// As for [`prepare`].
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
    // SAFETY: `theirs` is `original`, whose contract the caller keeps. `generic` is 0 while the
    // hook is disabled. If it is not 0, the proof has found where the fields of a convertor are.
    // `convertor` was just prepared by this call, so no other thread uses it.
    unsafe {
        let code = theirs(convertor, datatype, count, buffer);
        let generic = generic(direction);
        if generic != 0 && convertor.word(layout().mover) == generic as u64 {
            choose(direction, convertor);
        }
        code
    }
}

/// Stores ddtc's mover in a convertor that has Open MPI's generic mover, if the type is ready for
/// compiled code. Otherwise counts the bytes of the request, so that the type is made ready after
/// enough of them.
///
/// # Safety
/// The hook must be enabled. `convertor` must be a convertor of Open MPI that was just prepared, or
/// whose position was just set to 0, and that no other thread uses.
#[inline(never)]
unsafe fn choose(direction: Direction, convertor: Convertor) {
    let l = layout();
    // SAFETY: the caller promises a convertor of Open MPI and that the hook is enabled. The hook is
    // enabled only after the proof has found these offsets.
    let (flags, handle, description, moved, buffer, size) = unsafe {
        let word = |offset| convertor.word(offset);
        let (flags, datatype, description) = (convertor.flags(l), word(l.datatype), word(l.description));
        (flags, datatype, description, word(l.moved), word(l.buffer), word(l.size))
    };
    // Open MPI's preparation may have stored no mover, because the request needs none. Then the
    // generic mover in the convertor is left from an earlier request. The flags of such a convertor
    // always differ from those of a convertor for which a mover was stored just now.
    if flags & !OF_TYPE != l.fresh(direction == Direction::Pack)
        || description != handle + u64::from(l.optimized)
        || moved != 0
    {
        return;
    }
    let entry = match table::find(handle) {
        Found::Convert(entry) => entry,
        Found::Unknown if size >= ENOUGH && !watched_for(FOREIGN | GPU | OPAQUE_GPU) && !is_inside() => {
            // SAFETY: the convertor was just prepared, or its position was just set to 0, as the
            // caller promises, and its flags show that it was prepared for the generic mover.
            // `handle` and `size` were read from the convertor.
            return unsafe { unseen::choose(direction, convertor, handle, size) };
        }
        _ => return,
    };
    if entry.served.by(direction).is_none() {
        if entry.served.ask(direction, size, ENOUGH) {
            hotness::end_back_off(handle);
        }
        return;
    }
    if entry.takes(buffer as *const c_void)
        && entry.gains_inside(size)
        && !watched_for(FOREIGN | GPU | OPAQUE_GPU)
        // If ddtc itself makes the call to measure Open MPI, Open MPI's mover must serve the
        // request.
        && !is_inside()
    {
        // SAFETY: the convertor was prepared for the generic mover, as its flags show, with the
        // optimized description of its own type, and has moved nothing, as was compared above.
        // `served` has shown that ddtc's mover can serve that type in this direction.
        unsafe { Ours::Known(direction).store(convertor) };
    }
}

/// Returns the mover of ddtc that serves a convertor; `None` if Open MPI's mover serves it or the
/// hook is disabled.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI.
#[inline]
unsafe fn served(convertor: Convertor) -> Option<Ours> {
    // SAFETY: the caller promises a convertor of Open MPI. The hook is enabled only after the proof
    // has found the layout of convertors.
    if is_enabled() { unsafe { Ours::serving(convertor) } } else { None }
}

/// Sets the position of a convertor in the packed bytes of its request.
///
/// Open MPI 4.1 starts a persistent send again only by setting its position to 0, without a new
/// preparation. So at position 0 a convertor with Open MPI's generic mover is treated like one that
/// was just prepared (`restarted`).
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_set_position_nocheck(
    convertor: *mut c_void,
    at: *mut usize,
) -> c_int {
    let convertor = Convertor(convertor);
    let Some(theirs) = called!(SET_POSITION, Position) else { return FAILED };
    // SAFETY: `theirs` is Open MPI's function of this name, whose contract the caller keeps. So
    // `*at` can be read, and no other thread uses the convertor. `position` is called only for the
    // mover that `served` has found in the convertor, and `restarted` only for a convertor that
    // `theirs` has just set to the beginning of its request.
    unsafe {
        if let Some(ours) = served(convertor) {
            return position(ours, convertor, at);
        }
        let code = theirs(convertor, at);
        if *at == 0 && code == 0 && is_enabled() {
            restarted(convertor);
        }
        code
    }
}

/// Stores ddtc's mover in a convertor whose position Open MPI has just set to 0, if the convertor
/// has Open MPI's generic mover and its type is ready. Usually the convertor is that of a
/// persistent send which is started again. It may also be a new clone, or a request whose first
/// bytes are sent or received once more. At position 0, all of them are in the state in which the
/// preparation leaves a convertor, and `choose` checks the flags and the description.
///
/// # Safety
/// The hook must be enabled. `convertor` must be a convertor of Open MPI that no other thread uses,
/// and whose position Open MPI's own function has just set to 0.
#[cold]
unsafe fn restarted(convertor: Convertor) {
    let l = layout();
    // SAFETY: the caller promises a convertor of Open MPI that no other thread uses, and that the
    // hook is enabled, so the proof has found where the fields of a convertor are. At position 0
    // the convertor is in the state in which a preparation leaves it.
    unsafe {
        let sends = convertor.flags(l) & l.bits.sends != 0;
        let direction = if sends { Direction::Pack } else { Direction::Unpack };
        let generic = generic(direction);
        if generic != 0 && convertor.word(l.mover) == generic as u64 {
            choose(direction, convertor);
        }
    }
}

/// Lists the pieces of memory in which the instances of a convertor's request lie, from the
/// convertor's position on.
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_convertor_raw(
    convertor: *mut c_void,
    list: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    let convertor = Convertor(convertor);
    let Some(theirs) = called!(RAW, Raw) else { return FAILED };
    // SAFETY: `theirs` is Open MPI's function of this name, whose contract the caller keeps. `list`
    // and `leave` are called only for the mover that `served` has found in the convertor.
    unsafe {
        if let Some(ours) = served(convertor) {
            // Open MPI makes the list from the convertor's stack of loops, which ddtc's mover does
            // not advance. So ddtc makes the list, or `leave` lets Open MPI build the stack anew.
            if let Some(Some(done)) = guard(|| lists::list(convertor, ours, list, n, bytes)) {
                return done;
            }
            leave(convertor, ours);
        }
        theirs(convertor, list, n, bytes)
    }
}

/// Copies instances of a type from one buffer to another.
///
/// # Safety
/// As for Open MPI's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_datatype_copy_content_same_ddt(
    datatype: *const c_void,
    count: usize,
    to: *mut c_void,
    from: *mut c_void,
) -> i32 {
    let Some(theirs) = called!(COPY, Copy) else { return FAILED };
    // SAFETY: `theirs` is Open MPI's function of this name, and `copied` has the same contract,
    // which the caller keeps.
    unsafe {
        if is_enabled() && copied(datatype, count, to, from) { 0 } else { theirs(datatype, count, to, from) }
    }
}

/// Copies instances of a type from one buffer to another by compiled code, if compiled code for
/// this is ready and the buffers do not overlap. If this returns false, the caller must let Open
/// MPI copy all instances, because the contents of the destination are then undefined.
///
/// # Safety
/// As for Open MPI's `opal_datatype_copy_content_same_ddt`.
unsafe fn copied(datatype: *const c_void, count: usize, to: *mut c_void, from: *mut c_void) -> bool {
    let Found::Convert(entry) = table::find(datatype.addr() as u64) else { return false };
    let count = layout().instances(count);
    let (Some(bytes), Ok(instances)) = (entry.size().checked_mul(count), u64::try_from(count)) else {
        return false;
    };
    let Some(copies) = entry.served.copies(bytes.max(0) as u64, ENOUGH) else {
        if entry.served.is_asked() {
            hotness::end_back_off(datatype.addr() as u64);
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
    // SAFETY: the caller promises buffers with `count` instances of the type, and a type that lives
    // during the call. `served` has only copies from a type to itself, so both sizes are the same,
    // and only copies for which `LayoutCopy::make` was called.
    let done = unsafe { guard(|| copies.copy_made(from.cast(), to.cast(), instances)) == Some(true) };
    if done {
        counted::copied_inside(bytes as u64);
    }
    done
}
