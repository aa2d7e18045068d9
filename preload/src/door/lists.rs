//! Lists the program's memory for the host's `opal_convertor_raw`, for a convertor that ours has advanced.
//!
//! The host lists by its stack, which stands where it stood. No layer of the host packs and lists by one convertor: who lists does so on a fresh one, which is
//! the host's own business. So this is for what is not known.

use std::ffi::c_int;

use ddtc::segments::Segment;

use super::layout::{Convertor, layout};
use super::mover::{Ours, way};

/// Segments that are asked for at a time.
const FEW: usize = 32;

/// Lists memory from where the convertor stands, as `opal_convertor_raw` does, and moves it on. `None`: nothing was done, and it is the host's to do.
///
/// # Safety
/// As Open MPI's function, for a convertor whose mover is `ours`.
pub(crate) unsafe fn list(
    convertor: Convertor,
    ours: Ours,
    entries: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> Option<c_int> {
    let l = layout();
    // SAFETY: as the caller promises.
    let (way, size, first, count, user, room) = unsafe {
        let word = |offset| convertor.word(offset);
        let (_, way) = way(convertor, ours)?;
        (way, word(l.size), word(l.moved), word(l.count), word(l.buffer), *n as usize)
    };
    if first == 0 || first >= size {
        return None;
    }
    let segments = way.committed.segments(count).ok()?;
    let (mut index, into) = segments.find(first).ok()?;
    let (mut skip, mut used, mut at, mut few) = (into, 0, first, [Segment::default(); FEW]);
    while used < room && at < size {
        let asked = few.get_mut(..FEW.min(room - used))?;
        let found = segments.fill(index, asked).ok().filter(|&found| found > 0)?;
        for segment in few.get(..found)? {
            let length = segment.len - skip;
            let place = (user as *mut u8).wrapping_offset((segment.at + skip as i64) as isize);
            // SAFETY: one of the entries.
            unsafe { *entries.add(used) = libc::iovec { iov_base: place.cast(), iov_len: length as usize } };
            (skip, used, at) = (0, used + 1, at + length);
        }
        index += found as u64;
    }
    // SAFETY: places to write to; the convertor is the caller's.
    unsafe {
        *n = used as u32;
        *bytes = (at - first) as usize;
        convertor.put(l.moved, at);
        if at == size {
            convertor.add_flags(l, l.bits.completed);
            return Some(1);
        }
    }
    Some(0)
}
