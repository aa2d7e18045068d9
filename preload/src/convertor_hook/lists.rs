//! Lists of the program's memory in place of Open MPI's `opal_convertor_raw`, for a convertor that
//! ddtc's mover has advanced.
//!
//! Open MPI makes the list from the convertor's stack of loops, which ddtc's mover leaves where a
//! preparation put it. No known layer of Open MPI both packs and lists by one convertor: a layer
//! that lists memory does so on a newly prepared convertor, and Open MPI makes that list itself. So
//! this module is for callers that are not known.

use std::ffi::c_int;

use ddtc::segments::Segment;

use super::layout::{Convertor, layout};
use super::mover::{Ours, way};

/// Number of segments that are queried at a time.
const FEW: usize = 32;

/// Lists memory from the position of the convertor on, as `opal_convertor_raw` does, and advances
/// the convertor. Returns `None`, with `n`, `bytes` and the convertor unchanged, if Open MPI is to
/// make the list: the convertor is at its beginning or its end, its type is not ready any more, or
/// its segments cannot be listed.
///
/// # Safety
/// As for Open MPI's `opal_convertor_raw`. The convertor's mover must be `ours`.
pub(crate) unsafe fn list(
    convertor: Convertor,
    ours: Ours,
    entries: *mut libc::iovec,
    n: *mut u32,
    bytes: *mut usize,
) -> Option<c_int> {
    let l = layout();
    // SAFETY: the caller promises a convertor of Open MPI whose mover is `ours`, which is stored
    // only if the layout is proven, and an `n` that can be read.
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
            // SAFETY: `asked`, and so `found`, is no longer than the `room - used` entries that
            // were free, so `used` is less than `room`, the number of entries that the caller
            // promises.
            unsafe { *entries.add(used) = libc::iovec { iov_base: place.cast(), iov_len: length as usize } };
            (skip, used, at) = (0, used + 1, at + length);
        }
        index += found as u64;
    }
    // SAFETY: the caller promises that `n` and `bytes` can be written, and that no other thread
    // uses the convertor.
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
