//! Buffers of collective calls: parts of the program's, packed one after the other.

use std::ffi::c_void;

use ddtc::kind::Direction;

use crate::guard::guard;
use crate::host::Host;
use crate::messages::{Given, PackBuffers, Staging, Use, stage};
use crate::partial_element::Origin;

/// Where the parts of a buffer are, in elements of its type.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    /// `blocks` parts of equal length, one after the other: one run of elements.
    Equal { blocks: i64, count: i64 },
    /// Parts of their own length and place.
    Own(&'a [Part]),
}

/// A part: its first element and its length, in extents and elements of the type.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) at: i64,
    pub(crate) count: i64,
}

impl Parts<'_> {
    /// Elements of all parts; `None`: too many, or a negative number.
    fn total(self) -> Option<i64> {
        match self {
            Parts::Equal { blocks, count } => blocks.checked_mul(count).filter(|_| count >= 0),
            Parts::Own(parts) => {
                parts.iter().try_fold(0i64, |sum, p| sum.checked_add(p.count).filter(|_| p.count >= 0))
            }
        }
    }

    fn part(self, i: usize) -> Option<Part> {
        match self {
            Parts::Equal { blocks, count } => {
                let i = i as i64;
                (i < blocks).then_some(Part { at: i * count, count })
            }
            Parts::Own(parts) => parts.get(i).copied(),
        }
    }

    /// Elements before a part in the packed buffer.
    fn before(self, i: usize) -> i64 {
        match self {
            Parts::Equal { count, .. } => i as i64 * count,
            Parts::Own(parts) => parts[..i].iter().map(|p| p.count).sum(),
        }
    }

    /// All parts, joined where they are one run.
    fn each(self, mut f: impl FnMut(Part)) {
        match self {
            Parts::Equal { blocks, count } => f(Part { at: 0, count: blocks * count }),
            Parts::Own(parts) => parts.iter().for_each(|&p| f(p)),
        }
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
pub(crate) unsafe fn stage_parts(host: &'static Host, given: Given, parts: Parts<'_>) -> Option<Staging> {
    let all = Given { count: parts.total()?, ..given };
    // SAFETY: as the caller promises; an origin is for what is received by message.
    unsafe { stage(host, all, None, i64::MAX, Origin::Matched, Use::Elements(given.count)) }
}

impl Staging {
    /// # Safety
    /// As `Committed::pack_raw` for every part.
    pub(crate) unsafe fn fill_parts(&self, host: &'static Host, parts: Parts<'_>) {
        // SAFETY: as the caller promises.
        unsafe { self.each(host, parts, Direction::Pack) }
    }

    /// # Safety
    /// As `Committed::pack_raw` for that part.
    pub(crate) unsafe fn fill_part(&self, host: &'static Host, parts: Parts<'_>, i: usize) {
        if let Some(part) = parts.part(i) {
            let buffers = self.buffers(part, parts.before(i));
            // SAFETY: as the caller promises.
            let _ = guard(|| unsafe { self.moved(host, &buffers, Direction::Pack) });
        }
    }

    /// # Safety
    /// As `Committed::unpack_raw` for every part.
    pub(crate) unsafe fn unpack_parts(&self, host: &'static Host, parts: Parts<'_>) {
        // SAFETY: as the caller promises.
        unsafe { self.each(host, parts, Direction::Unpack) }
    }

    unsafe fn each(&self, host: &'static Host, parts: Parts<'_>, direction: Direction) {
        let mut before = 0;
        let _ = guard(|| {
            parts.each(|part| {
                if part.count > 0 {
                    // SAFETY: as the caller promises; the buffer has room for all parts.
                    unsafe { self.moved(host, &self.buffers(part, before), direction) };
                }
                before += part.count;
            });
        });
    }

    fn buffers(&self, part: Part, before: i64) -> PackBuffers {
        PackBuffers {
            user: self.user().wrapping_offset((part.at * self.extent()) as isize),
            count: part.count as u64,
            packed: self.buffer().cast::<u8>().wrapping_add((before * self.size()) as usize),
        }
    }
}

/// Whether an address means `MPI_IN_PLACE`.
pub(crate) fn in_place(host: &Host, buf: *const c_void) -> bool {
    host.abi.is_some_and(|a| buf.addr() == a.in_place)
}
