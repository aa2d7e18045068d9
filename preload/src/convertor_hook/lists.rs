//! Replacement for Open MPI's `opal_convertor_raw`, which lists the pieces of the program's memory
//! that a request uses, for a convertor that ddtc's mover has advanced.
//!
//! Open MPI makes the list from the convertor's stack of loops. ddtc's mover does not advance the
//! stack, so Open MPI's list would begin at a wrong place. No known layer of Open MPI needs the
//! replacement, because no layer both packs and lists by one convertor: a layer that lists memory
//! does so by a newly prepared convertor, for which Open MPI makes the list itself. So this module
//! is only for layers that are not known.

use std::ffi::c_int;

use ddtc::internal::segments::Segment;

use super::layout::{Convertor, layout};
use super::mover::{Ours, way};

/// Maximum number of segments that are computed at a time for a list of memory.
const SEGMENTS_AT_ONCE: usize = 32;

/// Lists the pieces of the program's memory from the position of the convertor on, as
/// `opal_convertor_raw` does, and advances the convertor. Returns 1 if the request then has no more
/// bytes, else 0. Returns `None`, with `n`, `bytes` and the convertor unchanged, if Open MPI must
/// make the list, because the convertor is at its beginning or its end, because its type is not
/// ready any more, or because its segments cannot be listed.
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
    // SAFETY: the caller promises a convertor of Open MPI whose mover is `ours`, and an `n` that
    // can be read. A mover of ddtc is stored in a convertor only after the layout of convertors was
    // proven.
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
    let (mut skip, mut used, mut at, mut chunk) = (into, 0, first, [Segment::default(); SEGMENTS_AT_ONCE]);
    while used < room && at < size {
        let asked = chunk.get_mut(..SEGMENTS_AT_ONCE.min(room - used))?;
        let found = segments.fill(index, asked).ok().filter(|&found| found > 0)?;
        for segment in chunk.get(..found)? {
            let length = segment.len - skip;
            let place = (user as *mut u8).wrapping_offset((segment.at + skip as i64) as isize);
            // SAFETY: `asked` has at most as many elements as the `room - used` entries that were
            // free, and `found` is at most that number. So `used` is less than `room`, the number
            // of entries that the caller promises.
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
