//! Buffers of collective calls: parts of the program's, packed one after the other.

use std::ffi::c_void;

use ddtc::kind::Direction;
use ddtc_hosts::policy::Call;

use crate::decision::Purpose;
use crate::guard::guard;
use crate::host::Host;
use crate::messages::{PackBuffers, Staging, stage};
use crate::partial_element::Origin;
use crate::use_kind::CompletedBy;
use crate::user_buffer::UserBuffer;

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

    /// Returns the parts without those that `there` says nobody writes.
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

    /// All parts that have elements, each for itself.
    fn each_apart(&self, f: impl FnMut(Part)) {
        let parts = (0..).map_while(|i| self.part(i)).filter(|part| part.count > 0);
        parts.for_each(f);
    }
}

impl Part {
    /// That of a number among parts of equal length.
    fn equal(i: usize, count: i64) -> Part {
        Part { at: i as i64 * count, count, packed: i as i64 * count }
    }
}

/// Part of a receive buffer that is there before the call, by `MPI_IN_PLACE`.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    Nothing,
    /// The part of this number.
    Part(usize),
    All,
}

/// Returns a staging buffer for all parts, if they are to be converted. `beside` and
/// `completed_by`: as in [`Purpose::Elements`].
///
/// # Safety
/// As the collective call.
pub(crate) unsafe fn stage_parts(
    host: &'static Host,
    call: Call,
    given: UserBuffer,
    parts: &Parts,
    beside: u64,
    completed_by: CompletedBy,
) -> Option<Box<Staging>> {
    let all = UserBuffer { count: parts.total()?, ..given };
    let purpose = Purpose::Elements { call, count: given.count, part: parts.average(), beside, completed_by };
    // SAFETY: as the caller promises; an origin is for what is received by message.
    unsafe { stage(host, all, None, i64::MAX, Origin::Matched, purpose) }
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
                        let _ = guard(|| self.move_part(host, part, Direction::Pack));
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
                // SAFETY: as the caller promises; the buffer has room for all parts.
                unsafe { self.move_part(host, part, direction) };
            });
        });
    }

    /// # Safety
    /// As `Committed::pack_raw` or `Committed::unpack_raw` for the part.
    unsafe fn move_part(&self, host: &'static Host, part: Part, direction: Direction) {
        let gap = self.gap();
        if gap.is_none() && part.count > 0 {
            // SAFETY: as the caller promises.
            return unsafe { self.moved(host, &self.buffers(part), direction) };
        }
        for i in 0..part.count {
            let buffers = self.buffers(Part { at: part.at + i, count: 1, packed: part.packed + i });
            // SAFETY: as the caller promises; the buffer has room for the gap of every element.
            unsafe {
                match direction {
                    Direction::Pack => {
                        self.moved(host, &buffers, direction);
                        gap.open(buffers.packed);
                    }
                    Direction::Unpack => {
                        gap.close(buffers.packed);
                        self.moved(host, &buffers, direction);
                    }
                }
            }
        }
    }

    /// Before a call that receives parts: packs what is in place, and marks the ends of the others.
    ///
    /// # Safety
    /// As [`Staging::fill_own`]; nobody else may use the buffer.
    pub(crate) unsafe fn expect_parts(&self, host: &'static Host, parts: &Parts, own: Own) {
        // SAFETY: as the caller promises; the buffer has room for all parts. What is in place is packed over its mark.
        unsafe {
            parts.each_apart(|part| self.mark_end(self.buffers(part).packed, part.count, self.size()));
            self.fill_own(host, parts, own);
        }
    }

    /// After a call that the host calls an error: unpacks the parts that came.
    ///
    /// # Safety
    /// As `Committed::unpack_raw` for every part, after [`Staging::expect_parts`].
    pub(crate) unsafe fn unpack_parts_that_came(&self, host: &'static Host, parts: &Parts) {
        let _ = guard(|| {
            parts.each_apart(|part| {
                // SAFETY: as the caller promises.
                unsafe {
                    if self.came(self.buffers(part).packed, part.count, self.size()) {
                        self.move_part(host, part, Direction::Unpack);
                    }
                }
            });
        });
    }

    fn buffers(&self, part: Part) -> PackBuffers {
        PackBuffers {
            user: self.user().wrapping_offset((part.at * self.extent()) as isize),
            count: part.count as u64,
            packed: self.buffer().cast::<u8>().wrapping_add(self.gap().place(part.packed, self.size())),
        }
    }
}

/// Says whether an address means `MPI_IN_PLACE`.
pub(crate) fn in_place(host: &Host, buf: *const c_void) -> bool {
    host.abi.is_some_and(|a| buf.addr() == a.in_place)
}
