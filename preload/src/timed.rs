//! Times the host's packing and our kernel on a buffer of the program's, for [`crate::evidence`].

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ddtc::committed::Committed;
use ddtc::kind::Direction;

use crate::convert::run;
use crate::host::{HandleWord, Host};
use crate::pool::Buffer;
use crate::times::{PART, Times};

/// How often each is timed; the least counts.
const ROUNDS: usize = 3;
/// Nanoseconds of one round from which a clear difference is believed: what interrupts it is short of that.
const LONG: u64 = 50_000;

/// Times a part of a buffer: whole instances, at most [`PART`] bytes unless one has more. The buffer is read. `None`: the host does not pack it, or there is
/// no memory.
///
/// # Safety
/// As `MPI_Pack` of the same elements: the type must be one that the host has accepted as committed, and `committed` what it is.
pub(crate) unsafe fn times(
    host: &'static Host,
    user: *mut c_void,
    count: i64,
    datatype: HandleWord,
    committed: &Committed,
) -> Option<Times> {
    let size = u64::try_from(committed.datatype().size()).ok().filter(|&size| size > 0)?;
    let count = (PART / size).clamp(1, u64::try_from(count).ok().filter(|&count| count > 0)?);
    let bytes = size.checked_mul(count)?;
    let (packed, more) = (Buffer::get(bytes)?, Buffer::get(bytes)?);
    let (room, elements) = (c_int::try_from(bytes).ok()?, c_int::try_from(count).ok()?);
    let clock = (0..5).map(|_| Instant::now().elapsed().as_nanos() as u64).min()?;
    let nanos = |start: Instant| (start.elapsed().as_nanos() as u64).saturating_sub(clock);
    let mut least = [u64::MAX; 3];
    for _ in 0..ROUNDS {
        // Ours first: what is not in the cache is its loss.
        let start = Instant::now();
        // SAFETY: as the caller promises; the buffer has room.
        unsafe { run(committed, Direction::Pack, user.cast(), count, packed.at().cast()) };
        let ours = nanos(start);
        let (mut position, out): (c_int, *mut c_void) = (0, more.at());
        let pack = host.counted.pack?;
        let start = Instant::now();
        // SAFETY: as the caller promises; the buffer has room.
        let code = unsafe { pack(user, elements, datatype, out, room, &raw mut position, host.myself) };
        let theirs = nanos(start);
        if code != 0 || position != room {
            return None;
        }
        let start = Instant::now();
        // SAFETY: two buffers of that many bytes.
        unsafe { more.at().cast::<u8>().copy_from_nonoverlapping(packed.at().cast(), bytes as usize) };
        let copy = nanos(start);
        for (least, now) in least.iter_mut().zip([theirs, ours, copy]) {
            *least = now.min(*least);
        }
        if theirs + ours >= LONG && (theirs / 2 > ours || ours / 2 > theirs) {
            break;
        }
    }
    let [theirs, ours, copy] = least.map(|nanos| u32::try_from(nanos).unwrap_or(u32::MAX));
    Some(Times { bytes: u32::try_from(bytes).ok()?, host: theirs, ours, copy })
}
