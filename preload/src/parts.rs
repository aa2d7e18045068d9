//! Buffers of collective calls: parts of the program's, packed one after the other.

use std::ffi::c_void;

use ddtc::kind::Direction;
use ddtc::policy::Call;

use crate::guard::guard;
use crate::host::Host;
use crate::messages::{Given, PackBuffers, Staging, Use, stage};
use crate::partial_element::Origin;

/// Where the parts of a buffer are, in elements of its type.
pub(crate) enum Parts {
    /// `blocks` parts of equal length, one after the other: one run of elements.
    Equal { blocks: i64, count: i64 },
    /// Parts of their own length and place, and the elements of the packed buffer, of which some may belong to no part.
    Own { parts: Vec<Part>, total: i64 },
}

/// A part: its first element in the buffer, in extents of the type, its length, and its first element in the packed buffer.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) at: i64,
    pub(crate) count: i64,
    pub(crate) packed: i64,
}

impl Parts {
    /// Parts of these places and lengths, packed one after the other; `None`: too many elements, or a negative number.
    pub(crate) fn own(places: impl Iterator<Item = (i64, i64)>) -> Option<Parts> {
        let mut total = 0i64;
        let parts = places.map(|(at, count)| {
            let packed = total;
            total = total.checked_add(count).filter(|_| count >= 0)?;
            Some(Part { at, count, packed })
        });
        Some(Parts::Own { parts: parts.collect::<Option<_>>()?, total })
    }

    /// The same without the parts that `there` says nobody writes.
    pub(crate) fn only(self, there: impl Fn(usize) -> bool) -> Parts {
        match self {
            Parts::Equal { blocks, count } => {
                // Too many elements: a negative number, which nobody converts.
                let total = blocks.checked_mul(count).unwrap_or(-1);
                let n = if total < 0 { 0 } else { usize::try_from(blocks).unwrap_or(0) };
                let parts = (0..n).filter(|&i| there(i)).map(|i| Part::equal(i, count)).collect();
                Parts::Own { parts, total }
            }
            Parts::Own { mut parts, total } => {
                let mut i = 0;
                parts.retain(|_| {
                    i += 1;
                    there(i - 1)
                });
                Parts::Own { parts, total }
            }
        }
    }

    /// Elements of the packed buffer; `None`: too many, or a negative number.
    pub(crate) fn total(&self) -> Option<i64> {
        match self {
            Parts::Equal { blocks, count } => blocks.checked_mul(*count).filter(|_| *count >= 0),
            Parts::Own { total, .. } => Some(*total),
        }
    }

    /// Elements of a part, on average.
    fn average(&self) -> i64 {
        match self {
            Parts::Equal { count, .. } => *count,
            // Of those that are there.
            Parts::Own { parts, .. } => {
                parts.iter().map(|p| p.count).sum::<i64>() / parts.len().max(1) as i64
            }
        }
    }

    /// First elements of parts of their own in the packed buffer.
    pub(crate) fn each_packed(&self) -> impl Iterator<Item = i64> {
        let parts = if let Parts::Own { parts, .. } = self { parts.as_slice() } else { &[] };
        parts.iter().map(|p| p.packed)
    }

    fn part(&self, i: usize) -> Option<Part> {
        match self {
            Parts::Equal { blocks, count } => ((i as i64) < *blocks).then(|| Part::equal(i, *count)),
            Parts::Own { parts, .. } => parts.get(i).copied(),
        }
    }

    /// All parts, joined where they are one run.
    fn each(&self, mut f: impl FnMut(Part)) {
        match self {
            Parts::Equal { blocks, count } => f(Part { at: 0, count: blocks * count, packed: 0 }),
            Parts::Own { parts, .. } => parts.iter().for_each(|&p| f(p)),
        }
    }
}

impl Part {
    /// That of a number among parts of equal length.
    fn equal(i: usize, count: i64) -> Part {
        Part { at: i as i64 * count, count, packed: i as i64 * count }
    }
}

/// What of a receive buffer is there before the call, by `MPI_IN_PLACE`.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    Nothing,
    /// The part of this number.
    Part(usize),
    All,
}

/// A staging buffer for all parts, if they are to be converted.
///
/// # Safety
/// As the collective call.
pub(crate) unsafe fn stage_parts(
    host: &'static Host,
    call: Call,
    given: Given,
    parts: &Parts,
) -> Option<Staging> {
    let all = Given { count: parts.total()?, ..given };
    let used = Use::Elements { call, count: given.count, part: parts.average() };
    // SAFETY: as the caller promises; an origin is for what is received by message.
    unsafe { stage(host, all, None, i64::MAX, Origin::Matched, used) }
}

impl Staging {
    /// Packs what is in place.
    ///
    /// # Safety
    /// As `Committed::pack_raw` for those parts.
    pub(crate) unsafe fn fill_own(&self, host: &'static Host, parts: &Parts, own: Own) {
        // SAFETY: as the caller promises.
        unsafe {
            match own {
                Own::Nothing => {}
                Own::Part(i) => {
                    if let Some(part) = parts.part(i) {
                        let buffers = self.buffers(part);
                        let _ = guard(|| self.moved(host, &buffers, Direction::Pack));
                    }
                }
                Own::All => self.move_parts(host, parts, Direction::Pack),
            }
        }
    }

    /// # Safety
    /// As `Committed::pack_raw` or `Committed::unpack_raw` for every part.
    pub(crate) unsafe fn move_parts(&self, host: &'static Host, parts: &Parts, direction: Direction) {
        let _ = guard(|| {
            parts.each(|part| {
                if part.count > 0 {
                    // SAFETY: as the caller promises; the buffer has room for all parts.
                    unsafe { self.moved(host, &self.buffers(part), direction) };
                }
            });
        });
    }

    fn buffers(&self, part: Part) -> PackBuffers {
        PackBuffers {
            user: self.user().wrapping_offset((part.at * self.extent()) as isize),
            count: part.count as u64,
            packed: self.buffer().cast::<u8>().wrapping_add((part.packed * self.size()) as usize),
        }
    }
}

/// Whether an address means `MPI_IN_PLACE`.
pub(crate) fn in_place(host: &Host, buf: *const c_void) -> bool {
    host.abi.is_some_and(|a| buf.addr() == a.in_place)
}
