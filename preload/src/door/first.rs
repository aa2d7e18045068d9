//! The first requests of a type that is known by its description alone: the host moves them, and what it moved is compared with what ours would have.
//!
//! What is sent is packed once more, and its pieces have to end where ours would; what was received is read back. So nothing of ours reaches the program or a
//! peer before an instance and more was the same. Nothing is allocated, and a thread that finds the room taken compares nothing.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use ddtc::kind::Direction;

use super::described::Way;
use super::host::{FAILED, Mover, proven};
use super::layout::{Convertor, layout};
use super::mover::{Kept, Ours};
use crate::guard::guard;

/// Bytes that are compared at a time.
const ROOM: usize = 64 << 10;
/// Buffers of a call whose lengths are looked at.
const BUFFERS: usize = 8;

struct Room {
    taken: AtomicBool,
    bytes: UnsafeCell<[u8; ROOM]>,
}

// SAFETY: the bytes are touched by whoever has set `taken`.
unsafe impl Sync for Room {}

static PLACE: Room = Room { taken: AtomicBool::new(false), bytes: UnsafeCell::new([0; ROOM]) };

/// Returns the mover that is stored for them: the host's mover, and the comparison after it.
pub(crate) fn mover(direction: Direction) -> Mover {
    match direction {
        Direction::Pack => pack,
        Direction::Unpack => unpack,
    }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn pack(c: Convertor, buffers: *mut libc::iovec, n: *mut u32, bytes: *mut usize) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Direction::Pack, c, buffers, n, bytes) }
}

/// # Safety
/// As Open MPI calls the mover of a convertor.
unsafe extern "C" fn unpack(
    c: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { moves(Direction::Unpack, c, buffers, n, bytes) }
}

/// Lets the host's mover move bytes, and compares them with those that ours would have moved.
///
/// # Safety
/// As Open MPI calls the mover of a convertor, in which [`mover`] of this direction is that mover.
unsafe fn moves(
    direction: Direction,
    convertor: Convertor,
    buffers: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: [`proven`] returns 0, which is `None`, or the address of the host's mover.
    let theirs = unsafe { std::mem::transmute::<usize, Option<Mover>>(proven(direction)) };
    let Some(theirs) = theirs else { return FAILED };
    // SAFETY: the convertor and the buffers are as the host's movers get them, as the caller
    // promises. The host's mover leaves no more buffers in use than it was given, and [`PLACE`] is
    // this thread's, which has set `taken`.
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
            if !PLACE.taken.swap(true, Ordering::Acquire) {
                let used = std::slice::from_raw_parts(buffers, used);
                match alike(convertor, way, first, used, &given, &mut *PLACE.bytes.get()) {
                    true => known.was_alike(direction, *bytes as u64),
                    false => known.differs(),
                }
                PLACE.taken.store(false, Ordering::Release);
            }
        });
        done
    }
}

/// Whether ours would have moved the same bytes, and ended its pieces at the same places.
///
/// # Safety
/// `convertor` must be one of the host's, prepared for `way`; `used` what it has just moved from `first` on.
unsafe fn alike(
    convertor: Convertor,
    way: Way<'_>,
    first: u64,
    used: &[libc::iovec],
    given: &[usize; BUFFERS],
    room: &mut [u8; ROOM],
) -> bool {
    // SAFETY: as the caller promises.
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
            // SAFETY: bytes that the host has just moved.
            unsafe { std::slice::from_raw_parts(buffer.iov_base.cast(), buffer.iov_len) }
        };
        for theirs in bytes.chunks(ROOM) {
            let ours = &mut room[..theirs.len()];
            let range = at..at + theirs.len() as u64;
            // SAFETY: the range ends at `end`, which is no more than the `size` of the request. The
            // host has just read or written these bytes of the program's buffer, and `ours` has
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

/// Whether bytes differ only where they may be those behind the ten of a long double: the host leaves them as they are.
#[cold]
fn is_padding(way: Way<'_>, at: u64, ours: &[u8], theirs: &[u8]) -> bool {
    let mut pairs = ours.iter().zip(theirs).zip(at..);
    pairs.all(|((a, b), at)| a == b || (at - way.cuts.before(at)) % 16 >= 10)
}
