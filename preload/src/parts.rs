//! Buffers of collective calls: the parts of the program's buffer, packed one after the other.

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

/// Places of the parts of a buffer, in elements of its type.
pub(crate) enum Parts {
    /// `blocks` parts of `count` elements each, one after the other. All of them are one run of
    /// elements.
    Equal { blocks: i64, count: i64 },
    /// Parts that each have a place and a length of their own. `total`: number of elements of the
    /// packed buffer, some of which may belong to no part.
    Own { parts: Vec<Part>, total: i64 },
}

/// One part of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// First element in the program's buffer, in extents of the type.
    pub(crate) at: i64,
    /// Number of elements.
    pub(crate) count: i64,
    /// First element in the packed buffer.
    pub(crate) packed: i64,
}

impl Parts {
    /// Returns parts of these places and lengths, packed one after the other. None: a length is
    /// negative, or the number of all elements does not fit into 64 bits.
    pub(crate) fn own(places: impl Iterator<Item = (i64, i64)>) -> Option<Parts> {
        let mut total = 0i64;
        let parts = places.map(|(at, count)| {
            let packed = total;
            total = total.checked_add(count).filter(|_| count >= 0)?;
            Some(Part { at, count, packed })
        });
        Some(Parts::Own { parts: parts.collect::<Option<_>>()?, total })
    }

    /// Returns only those parts for whose number `there` returns true; the packed buffer keeps its
    /// length. The others have no process at the other end, so nobody reads or writes them.
    pub(crate) fn only(self, there: impl Fn(usize) -> bool) -> Parts {
        match self {
            Parts::Equal { blocks, count } => {
                // If there are too many elements, the total is negative, and then the buffer is
                // bypassed.
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

    /// Returns the number of elements of the packed buffer. None: it does not fit into 64 bits, or
    /// a length is negative.
    pub(crate) fn total(&self) -> Option<i64> {
        match self {
            Parts::Equal { blocks, count } => blocks.checked_mul(*count).filter(|_| *count >= 0),
            Parts::Own { total, .. } => Some(*total),
        }
    }

    /// Returns the average number of elements of a part.
    fn average(&self) -> i64 {
        match self {
            Parts::Equal { count, .. } => *count,
            // Parts that were left out do not count.
            Parts::Own { parts, .. } => {
                parts.iter().map(|p| p.count).sum::<i64>() / parts.len().max(1) as i64
            }
        }
    }

    /// Returns the first element in the packed buffer of each part that has its own place; nothing
    /// for equal parts.
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

    /// Calls `f` for all parts. Equal parts are one run of elements, and are passed as a single
    /// part.
    fn each(&self, mut f: impl FnMut(Part)) {
        match self {
            Parts::Equal { blocks, count } => f(Part { at: 0, count: blocks * count, packed: 0 }),
            Parts::Own { parts, .. } => parts.iter().for_each(|&p| f(p)),
        }
    }

    /// Calls `f` for every part that has elements, and separately for each of several equal parts.
    fn each_apart(&self, f: impl FnMut(Part)) {
        let parts = (0..).map_while(|i| self.part(i)).filter(|part| part.count > 0);
        parts.for_each(f);
    }
}

impl Part {
    /// Returns part number `i` of parts of `count` elements each.
    fn equal(i: usize, count: i64) -> Part {
        Part { at: i as i64 * count, count, packed: i as i64 * count }
    }
}

/// Parts of a receive buffer that are there before the call, because of `MPI_IN_PLACE`.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    Nothing,
    /// The part with this index.
    Part(usize),
    All,
}

/// Makes a staging buffer for all parts together, if they are to be converted. `beside` and
/// `completed_by`: as in [`Purpose::Elements`].
///
/// # Safety
/// As for the collective call.
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
    // SAFETY: as the caller promises. An `Origin` is looked at only for messages and files, so any
    // value does for a collective call.
    unsafe { stage(host, all, None, i64::MAX, Origin::Matched, purpose) }
}

impl Staging {
    /// Packs the parts that are in the program's buffer before the call.
    ///
    /// # Safety
    /// As for `Committed::pack_raw` with these parts. The staging buffer must be that of `parts`.
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

    /// Packs or unpacks all parts.
    ///
    /// # Safety
    /// As for `Committed::pack_raw` or `Committed::unpack_raw` with every part, according to
    /// `direction`. The staging buffer must be that of `parts`.
    pub(crate) unsafe fn move_parts(&self, host: &'static Host, parts: &Parts, direction: Direction) {
        let _ = guard(|| {
            parts.each(|part| {
                // SAFETY: as the caller promises; the staging buffer has room for all parts.
                unsafe { self.move_part(host, part, direction) };
            });
        });
    }

    /// Packs or unpacks one part: element by element if each has a gap, otherwise at once.
    ///
    /// # Safety
    /// As for `Committed::pack_raw` or `Committed::unpack_raw` with the part, according to
    /// `direction`. The part must be one of those that the staging buffer was made for.
    unsafe fn move_part(&self, host: &'static Host, part: Part, direction: Direction) {
        let gap = self.gap();
        if gap.is_none() && part.count > 0 {
            // SAFETY: as the caller promises; the staging buffer has room for all parts, and this
            // is one of them.
            return unsafe { self.moved(host, &self.buffers(part), direction) };
        }
        for i in 0..part.count {
            let buffers = self.buffers(Part { at: part.at + i, count: 1, packed: part.packed + i });
            // SAFETY: as the caller promises; the staging buffer has room for all elements, each
            // with its gap.
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

    /// Packs the parts that are in place, and marks the ends of the others, before a call that
    /// receives parts.
    ///
    /// # Safety
    /// As for [`Staging::fill_own`]. Nobody else may use the staging buffer.
    pub(crate) unsafe fn expect_parts(&self, host: &'static Host, parts: &Parts, own: Own) {
        // SAFETY: as the caller promises; the staging buffer has room for all parts. All ends are
        // marked, and then the parts in place are packed over their marks.
        unsafe {
            parts.each_apart(|part| self.mark_end(self.buffers(part).packed, part.count, self.size()));
            self.fill_own(host, parts, own);
        }
    }

    /// Unpacks the parts that came completely, after a call that the MPI library reports as an
    /// error.
    ///
    /// # Safety
    /// As for `Committed::unpack_raw` with every part, after [`Staging::expect_parts`].
    pub(crate) unsafe fn unpack_parts_that_came(&self, host: &'static Host, parts: &Parts) {
        let _ = guard(|| {
            parts.each_apart(|part| {
                // SAFETY: as the caller promises. Every part has a mark at its end, or was packed
                // in place.
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

/// Returns true if an address means `MPI_IN_PLACE`.
pub(crate) fn in_place(host: &Host, buf: *const c_void) -> bool {
    host.abi.is_some_and(|a| buf.addr() == a.in_place)
}
