//! Movers for the first requests of a type that ddtc knows only by Open MPI's description of it.
//! Open MPI's own mover packs or unpacks the bytes. Then the bytes are compared with those that
//! compiled code would have packed or unpacked.
//!
//! Sent bytes are packed a second time by compiled code, and each piece must end where ddtc's mover
//! would end it. After a receive, compiled code packs the bytes again from the program's buffer. So
//! no byte that compiled code has moved reaches the program or a peer before the bytes of at least
//! one instance were found equal. Nothing is allocated, because all threads share one buffer for
//! the comparison. A thread that finds the buffer in use by another thread skips the comparison.
//!
//! A persistent request keeps the mover that was stored when the request was made. If the type was
//! proven since, the first move of the request's next start replaces the mover by the one that runs
//! compiled code.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;

use super::described::Way;
use super::host::{FAILED, Mover, proven};
use super::layout::{Convertor, layout};
use super::mover::{Kept, Ours};
use crate::guard::guard;

/// Length in bytes of the buffer for the comparison, which is the maximum number of bytes that are
/// packed and compared at a time.
const COMPARISON_BYTES: usize = 64 << 10;
/// Maximum number of buffers of a mover's call whose bytes are compared. If a call uses more
/// buffers, its bytes are not compared.
const BUFFERS: usize = 8;

struct ComparisonBuffer {
    taken: AtomicBool,
    bytes: UnsafeCell<[u8; COMPARISON_BYTES]>,
}

// SAFETY: only the thread that has set `taken` from false to true reads or writes `bytes`.
unsafe impl Sync for ComparisonBuffer {}

static COMPARISON_BUFFER: ComparisonBuffer =
    ComparisonBuffer { taken: AtomicBool::new(false), bytes: UnsafeCell::new([0; COMPARISON_BYTES]) };

/// Returns the mover that is stored in the convertor of a first request. It calls Open MPI's mover
/// and then compares the bytes with those of compiled code.
pub(crate) fn mover(direction: Direction) -> Mover {
    match direction {
        Direction::Pack => pack,
        Direction::Unpack => unpack,
    }
}

/// Packs with Open MPI's mover, and compares the packed bytes with those that compiled code packs.
///
/// # Safety
/// Open MPI must call this function as the mover that is stored in `c`, with arguments as it passes
/// them to its own movers.
unsafe extern "C" fn pack(c: Convertor, buffers: *mut libc::iovec, n: *mut u32, bytes: *mut usize) -> c_int {
    // SAFETY: the caller promises what `moves` requires, and this function is the mover for
    // packing.
    unsafe { moves(Direction::Pack, c, buffers, n, bytes) }
}

/// Unpacks with Open MPI's mover, and compares the unpacked bytes with those that compiled code
/// would have unpacked.
///
/// # Safety
/// Open MPI must call this function as the mover that is stored in `c`, with arguments as it passes
/// them to its own movers.
unsafe extern "C" fn unpack(
    c: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the caller promises what `moves` requires, and this function is the mover for
    // unpacking.
    unsafe { moves(Direction::Unpack, c, buffers, n, bytes) }
}

/// Packs or unpacks with Open MPI's mover, and compares the bytes with those that compiled code
/// would have moved. Returns the result of Open MPI's mover, or [`FAILED`] if its address is not
/// known. At the beginning of a request whose type was proven since this mover was stored, replaces
/// the mover by the one that runs compiled code, and calls that one.
///
/// # Safety
/// The arguments must be those that Open MPI passes to the mover of `convertor`, and this mover
/// must be [`mover`] of `direction`.
unsafe fn moves(
    direction: Direction,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: the convertor is one of Open MPI, of the proven layout, that no other thread uses,
    // because Open MPI calls its mover. This mover was stored for a request with the `HeaderCopy`
    // of its type, and [`replaceable`] has found that the convertor still has it. So the mover of
    // `ours` can serve the type, and it gets the arguments that Open MPI passes to movers.
    unsafe {
        let ours = Ours::Described(direction);
        if replaceable(convertor, ours, direction) {
            ours.store(convertor);
            return ours.mover()(convertor, buffers, n, bytes);
        }
    }
    // SAFETY: [`proven`] returns 0, which is `None`, or the address of Open MPI's mover.
    let theirs = unsafe { std::mem::transmute::<usize, Option<Mover>>(proven(direction)) };
    let Some(theirs) = theirs else { return FAILED };
    // SAFETY: the convertor and the buffers are those that Open MPI passes to its movers, as the
    // caller promises. `given` is filled from the first `*n` buffers only. Open MPI's mover leaves
    // no more buffers in use than it was given, and the bytes of [`COMPARISON_BUFFER`] are read and
    // written only after this thread has set `taken`.
    unsafe {
        let (first, mut given) = (convertor.word(layout().moved), [0; BUFFERS]);
        for (i, given) in given.iter_mut().enumerate().take(*n as usize) {
            *given = (*buffers.add(i)).iov_len;
        }
        let done = theirs(convertor, buffers, n, bytes);
        let used = *n as usize;
        guard(|| {
            let Some(Kept::Described(known)) = Ours::Described(direction).kept(convertor) else { return };
            let (Some(way), true) = (known.way(direction), used <= BUFFERS) else { return };
            if !COMPARISON_BUFFER.taken.swap(true, Ordering::Acquire) {
                let used = std::slice::from_raw_parts(buffers, used);
                // A panic in the comparison is caught here, so that the buffer is given back in any
                // case. A panic counts as a difference.
                let is_same = guard(|| {
                    moves_same_bytes(convertor, way, first, used, &given, &mut *COMPARISON_BUFFER.bytes.get())
                });
                COMPARISON_BUFFER.taken.store(false, Ordering::Release);
                match is_same {
                    Some(true) => known.add_equal_bytes(direction, *bytes as u64),
                    Some(false) | None => known.differs(),
                }
            }
        });
        done
    }
}

/// Returns true if the mover `ours` can serve a convertor from here on: nothing of the request was
/// moved yet, and enough bytes of the type were found equal in this direction. That happens in
/// later starts of a persistent request, which Open MPI 4.1 does not prepare again.
///
/// # Safety
/// As for [`Ours::kept`].
#[inline]
unsafe fn replaceable(convertor: Convertor, ours: Ours, direction: Direction) -> bool {
    // SAFETY: the caller keeps the contract of `kept`, which includes a proven layout.
    unsafe {
        convertor.word(layout().moved) == 0
            && matches!(ours.kept(convertor), Some(Kept::Described(known))
                if known.is_proven(direction) && known.way(direction).is_some())
    }
}

/// Returns true if compiled code would have moved the same bytes as the call of Open MPI's mover
/// that has just ended. If the call packs, compiled code must also end each piece at the same
/// place. `first`: packed byte of the request at which the call began. `given`: lengths of the
/// buffers before the call.
///
/// # Safety
/// `convertor` must be a convertor of Open MPI that is prepared for the type of `way`. `used` must
/// be the buffers whose bytes Open MPI's mover has just packed or unpacked, from packed byte
/// `first` of the request on.
unsafe fn moves_same_bytes(
    convertor: Convertor,
    way: Way<'_>,
    first: u64,
    used: &[libc::iovec],
    given: &[usize; BUFFERS],
    memory: &mut [u8; COMPARISON_BYTES],
) -> bool {
    // SAFETY: the caller promises a convertor of Open MPI. Its mover is a mover of this module, and
    // such a mover is stored only if the layout of convertors is proven.
    let (size, count, user) = unsafe {
        let l = layout();
        (convertor.word(l.size), convertor.word(l.count), convertor.word(l.buffer))
    };
    let mut at = first;
    for (buffer, &given) in used.iter().zip(given) {
        let end = at + buffer.iov_len as u64;
        if way.direction == Direction::Pack && end != way.end(at, given as u64, size) || end > size {
            return false;
        }
        let bytes: &[u8] = if buffer.iov_len == 0 {
            &[]
        } else {
            // SAFETY: Open MPI has just read or written these bytes of the buffer.
            unsafe { std::slice::from_raw_parts(buffer.iov_base.cast(), buffer.iov_len) }
        };
        for theirs in bytes.chunks(COMPARISON_BYTES) {
            let ours = &mut memory[..theirs.len()];
            let range = at..at + theirs.len() as u64;
            // SAFETY: the range ends at `end`, which is no more than the `size` of the request.
            // Open MPI has just read or written these bytes of the program's buffer, and `ours` has
            // room for them.
            unsafe {
                let packed = ours.as_mut_ptr();
                way.committed.range_made(Direction::Pack, user as *mut u8, count, packed, range);
            }
            if ours != theirs && !is_padding(way, at, ours, theirs) {
                return false;
            }
            at += theirs.len() as u64;
        }
        at = end;
    }
    true
}

/// Returns true if the bytes `ours` and `theirs` differ only at places that may be the padding
/// after the ten bytes of a `long double`, because Open MPI does not write this padding. `at`:
/// packed byte of the request at which both begin.
#[cold]
fn is_padding(way: Way<'_>, at: u64, ours: &[u8], theirs: &[u8]) -> bool {
    let mut pairs = ours.iter().zip(theirs).zip(at..);
    pairs.all(|((a, b), at)| a == b || (at - way.cuts.before(at)) % 16 >= 10)
}
