//! Staging buffers of collective calls, in which the parts of the program's buffer are packed one
//! after the other.

use std::ffi::c_void;

use ddtc::internal::kind::Direction;
use ddtc_hosts::policy::Call;

use crate::decision::Purpose;
use crate::guard::guard;
use crate::host::Host;
use crate::messages::{PackBuffers, Staging, stage};
use crate::partial_element::Origin;
use crate::use_kind::CompletedBy;
use crate::user_buffer::UserBuffer;

/// Parts of a buffer of a collective call, with places and lengths in elements of the buffer's
/// type.
pub(crate) enum Parts {
    /// `blocks` parts of `count` elements each, one after the other. All parts together are one run
    /// of elements.
    Equal { blocks: i64, count: i64 },
    /// Parts that each have a place and a length of their own. `total`: number of elements of the
    /// packed buffer, some of which may belong to no part.
    Own { parts: Vec<Part>, total: i64 },
}

/// One part of a buffer of a collective call.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Place of the part's first element in the program's buffer, in extents of the type.
    pub(crate) at: i64,
    /// Number of elements of the part.
    pub(crate) count: i64,
    /// Place of the part's first element in the packed buffer, in elements.
    pub(crate) packed: i64,
}

impl Parts {
    /// Returns parts with the given places and lengths in elements, packed one after the other.
    /// Returns `None` if a length is negative, or if the number of all elements does not fit into
    /// 64 bits.
    pub(crate) fn own(places: impl Iterator<Item = (i64, i64)>) -> Option<Parts> {
        let mut total = 0i64;
        let parts = places.map(|(at, count)| {
            let packed = total;
            total = total.checked_add(count).filter(|_| count >= 0)?;
            Some(Part { at, count, packed })
        });
        Some(Parts::Own { parts: parts.collect::<Option<_>>()?, total })
    }

    /// Keeps only the parts with an index for which `there` returns true. The removed parts have no
    /// process at the other end, so nobody reads or writes them. The packed buffer keeps its
    /// length.
    pub(crate) fn only(self, there: impl Fn(usize) -> bool) -> Parts {
        match self {
            Parts::Equal { blocks, count } => {
                // If there are too many elements for 64 bits, the total is negative, and then the
                // buffer is bypassed.
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

    /// Returns the number of elements of the packed buffer. Returns `None` if the parts are equal
    /// and this number does not fit into 64 bits or their length is negative. If [`Parts::only`]
    /// was given such parts, the number is negative.
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
            // Parts that [`Parts::only`] has removed do not count.
            Parts::Own { parts, .. } => {
                parts.iter().map(|p| p.count).sum::<i64>() / parts.len().max(1) as i64
            }
        }
    }

    /// Returns the place of each part in the packed buffer, in elements, if the parts have places
    /// of their own; nothing for equal parts.
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

    /// Calls `f` for all parts. Equal parts are one run of elements, so `f` is called once for all
    /// of them together.
    fn for_each_part(&self, mut f: impl FnMut(Part)) {
        match self {
            Parts::Equal { blocks, count } => f(Part { at: 0, count: blocks * count, packed: 0 }),
            Parts::Own { parts, .. } => parts.iter().for_each(|&p| f(p)),
        }
    }

    /// Calls `f` once for each part that has elements, also if the parts are equal.
    fn each_apart(&self, f: impl FnMut(Part)) {
        let parts = (0..).map_while(|i| self.part(i)).filter(|part| part.count > 0);
        parts.for_each(f);
    }
}

impl Part {
    /// Returns the part with index `i`, if all parts have `count` elements and follow each other.
    fn equal(i: usize, count: i64) -> Part {
        Part { at: i as i64 * count, count, packed: i as i64 * count }
    }
}

/// Parts of a receive buffer that contain the program's data before the call, because the program
/// has passed `MPI_IN_PLACE`.
#[derive(Clone, Copy)]
pub(crate) enum Own {
    Nothing,
    /// Only the part with this index.
    Part(usize),
    All,
}

/// Makes one staging buffer for all parts of a collective call's buffer, if the buffer is to be
/// converted. `convert_below` and `completed_by`: as in [`Purpose::Elements`]. `direction`: as in
/// [`stage`].
///
/// # Safety
/// As for the collective call.
pub(crate) unsafe fn stage_parts(
    host: &'static Host,
    call: Call,
    given: UserBuffer,
    parts: &Parts,
    convert_below: u64,
    completed_by: CompletedBy,
    direction: Direction,
) -> Option<Box<Staging>> {
    let all = UserBuffer { count: parts.total()?, ..given };
    let purpose =
        Purpose::Elements { call, count: given.count, part: parts.average(), convert_below, completed_by };
    // SAFETY: as the caller promises. The `Origin` has an effect only on messages and files, so any
    // value does for a collective call.
    unsafe { stage(host, all, None, i64::MAX, Origin::Matched, purpose, direction) }
}

impl Staging {
    /// Packs the parts of a receive buffer that contain the program's data before the call.
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
            parts.for_each_part(|part| {
                // SAFETY: as the caller promises; the staging buffer has room for all parts.
                unsafe { self.move_part(host, part, direction) };
            });
        });
    }

    /// Packs or unpacks one part: element by element if each element has a gap, otherwise all
    /// elements at once.
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

    /// Prepares the staging buffer before a call that receives parts: packs the parts that contain
    /// the program's data before the call, and marks the ends of all other parts.
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

    /// Unpacks the parts that were received completely, after a call that the MPI library reports
    /// as an error.
    ///
    /// # Safety
    /// As for `Committed::unpack_raw` with every part, after [`Staging::expect_parts`].
    pub(crate) unsafe fn unpack_parts_that_came(&self, host: &'static Host, parts: &Parts) {
        let _ = guard(|| {
            parts.each_apart(|part| {
                // SAFETY: as the caller promises. Every part has a mark at its end, unless it was
                // packed over the mark.
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
            packed: self.buffer().cast::<u8>().wrapping_add(self.gap().offset(part.packed, self.size())),
        }
    }
}

/// Returns true if the address of a buffer means `MPI_IN_PLACE`.
pub(crate) fn in_place(host: &Host, buf: *const c_void) -> bool {
    host.abi.is_some_and(|a| buf.addr() == a.in_place)
}
