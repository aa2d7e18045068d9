//! Checks of layouts that are larger than memory. The user memory is reserved address space, and
//! only the pages are accessed that have bytes of the range of the packed stream that is moved.
//!
//! In this way a type of 2^40 bytes is packed as any other, one piece of its stream at a time.
//! Pages without a byte of the range are inaccessible while the range is moved, unless the range
//! has so many pages that they cannot be protected one by one.
#![allow(unsafe_code)] // Reserves address space and hands raw buffers to kernels.

use std::ops::Range;
use std::ptr;

use super::case::{Check, Mismatch, PROCESS, append_pattern, ensure, patterned, seeds};
use super::guard::page;
use crate::committed::Committed;
use crate::datatype::Datatype;
use crate::exec::interp;
use crate::kind::Direction;

/// Maximum number of pages that are protected one by one. By default a Linux process can have about
/// 65,000 mappings, and protecting a page splits a mapping.
const MAX_PROTECTED: usize = 4096;

/// Number of bytes of memory for each piece of a range while a [`RangeCase`] is made. A piece takes
/// 24 bytes in the list of pieces, and 8 in the list of pages. The former is counted three times,
/// because the list doubles when it grows, and the old list and the new one then exist at the same
/// time.
const PIECE: u64 = 80;

/// Reserved address space that stands for the user memory of some instances.
struct Space {
    start: *mut u8,
    len: usize,
    /// Displacement of the first byte of the space.
    low: i64,
}

impl Space {
    /// Reserves address space for the displacements `[low, high)`. Returns none if the system does
    /// not have that much.
    fn reserve(low: i64, high: i64) -> Option<Space> {
        let low = low - low.rem_euclid(page() as i64);
        let len =
            usize::try_from(i128::from(high) - i128::from(low)).ok()?.checked_next_multiple_of(page())?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the system chooses the address, so the mapping is new memory that nothing else
        // uses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len.max(page()), libc::PROT_NONE, flags, -1, 0) };
        (start != libc::MAP_FAILED).then(|| Space { start: start.cast(), len: len.max(page()), low })
    }

    /// Makes some pages of the space accessible.
    fn open(&self, pages: Range<usize>) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        assert!(pages.end * page() <= self.len);
        // SAFETY: the assertion above shows that these are whole pages inside the mapping, and
        // `open` only makes them accessible.
        let done = unsafe {
            libc::mprotect(self.start.add(pages.start * page()).cast(), pages.len() * page(), access)
        };
        assert_eq!(done, 0, "mprotect of reserved pages");
    }

    /// Returns the bytes of page `index` of the space, which `open` must have made accessible.
    fn bytes(&mut self, index: usize) -> &mut [u8] {
        assert!((index + 1) * page() <= self.len);
        // SAFETY: the page is inside the mapping, by the assertion above. The callers pass only
        // pages that `RangeCase::new` has made accessible by `open`. The slice borrows `self`
        // mutably, so there is no other reference to the bytes.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(index * page()), page()) }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `reserve` made, and its owner is dropped, so that
        // nothing refers to it.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// A range of the packed stream of some instances, and the bytes that moving it must give.
pub struct RangeCase {
    count: u64,
    range: Range<u64>,
    space: Space,
    /// Indices of the pages that have bytes of the range, in ascending order.
    pages: Vec<usize>,
    /// Contents of the pages in `pages`, one after the other: `before` is what they have before a
    /// pack or unpack, and `after` is what an unpack must leave in them.
    before: Vec<u8>,
    after: Vec<u8>,
    /// Bytes of the range of the packed stream: `packed` is what a pack must give, and `stream` is
    /// what an unpack gets.
    packed: Vec<u8>,
    stream: Vec<u8>,
    /// Whether the pages have the contents `before` at present.
    fresh: bool,
}

impl RangeCase {
    /// Returns an upper estimate of the memory, in bytes, that the checks of the range `range`
    /// need. It consists of the lists of pieces, of three copies of each page that has bytes of the
    /// range (the user memory, `before` and `after`), of three copies of the range of the packed
    /// stream, and of what every check needs. The function runs through the range, and keeps
    /// nothing of it.
    ///
    /// # Errors
    /// A range that ends after the end of the stream.
    pub fn memory(t: &Datatype, count: u64, range: Range<u64>) -> Result<u64, Mismatch> {
        // Pieces follow each other in the order of the stream. A page is counted again if the
        // stream comes back to it, so the number of pages that the instances span is a second
        // bound.
        let (mut pieces, mut pages, mut last) = (0, 0, None);
        let len = range.end - range.start;
        let of = |place: i128| place.div_euclid(page() as i128);
        let listed = interp::pieces(t, count, range.start, len as usize, &mut |to, _, n| {
            let ends = [i128::from(to), i128::from(to) + n as i128 - 1].map(of);
            let touched = (ends[1] - ends[0]) as u64 + 1;
            pieces += touched;
            pages += touched - u64::from(last == Some(ends[0]));
            last = Some(ends[1]);
            Ok(())
        });
        listed.map_err(Mismatch::error("interp"))?;
        let span = i128::from(t.true_ub()) - i128::from(t.true_lb())
            + i128::from(t.extent()).abs() * (i128::from(count) - 1).max(0);
        let spanned = u64::try_from(span / page() as i128 + 2).unwrap_or(u64::MAX);
        let copies = pages.min(spanned).saturating_mul(page() as u64).saturating_add(len).saturating_mul(3);
        Ok(copies.saturating_add(pieces * PIECE).saturating_add(PROCESS))
    }

    /// Returns the range `range` of the packed stream of `count` instances of `t`, with the bytes
    /// that moving it must give according to the type map. Returns `None` if the displacements do
    /// not fit in 64 bits or if the system does not have that much address space.
    ///
    /// # Errors
    /// A range that ends after the end of the stream.
    pub fn new(t: &Datatype, count: u64, range: Range<u64>) -> Result<Option<RangeCase>, Mismatch> {
        let last = i128::from(t.extent()) * (i128::from(count) - 1).max(0);
        let ends = [i128::from(t.true_lb()) + last.min(0), i128::from(t.true_ub()) + last.max(0)];
        let [Ok(low), Ok(high)] = ends.map(i64::try_from) else { return Ok(None) };
        let Some(space) = Space::reserve(low, high) else { return Ok(None) };
        let len = (range.end - range.start) as usize;
        // Each piece of the range is listed by its index in the address space, its index in the
        // range, and its length. Pieces are split at the ends of pages.
        let mut pieces: Vec<(usize, usize, usize)> = Vec::new();
        let listed = interp::pieces(t, count, range.start, len, &mut |to, mut at, mut len| {
            let mut place = (i128::from(to) - i128::from(space.low)) as usize;
            while len > 0 {
                let n = len.min(page() - place % page());
                pieces.push((place, at, n));
                (place, at, len) = (place + n, at + n, len - n);
            }
            Ok(())
        });
        listed.map_err(Mismatch::error("interp"))?;
        let mut pages: Vec<usize> = pieces.iter().map(|p| p.0 / page()).collect();
        pages.sort_unstable();
        pages.dedup();
        // Make the pages that have bytes of the range accessible. If there are too many such pages,
        // make the whole space accessible.
        if pages.len() <= MAX_PROTECTED {
            pages.iter().for_each(|&p| space.open(p..p + 1));
        } else {
            space.open(0..space.len / page());
        }
        let mut before = Vec::with_capacity(pages.len() * page() + 8);
        pages.iter().for_each(|&p| append_pattern(seeds::USER, p * page(), page(), &mut before));
        let stream = patterned(seeds::PACKED, len);
        let (mut after, mut packed) = (before.clone(), stream.clone());
        let mut slot = 0;
        for (place, at, n) in pieces {
            // The piece is usually on the same page as the piece before it; otherwise search for
            // its page.
            if pages.get(slot) != Some(&(place / page())) {
                slot = pages.binary_search(&(place / page())).unwrap_or(0);
            }
            let start = slot * page() + place % page();
            packed[at..at + n].copy_from_slice(&before[start..start + n]);
            after[start..start + n].copy_from_slice(&stream[at..at + n]);
        }
        Ok(Some(RangeCase { count, range, space, pages, before, after, packed, stream, fresh: false }))
    }

    /// Checks that `committed`, which must be of this case's datatype, moves the range correctly in
    /// `direction`.
    ///
    /// # Errors
    /// The first difference. An access to a page without bytes of the range ends the process, if
    /// that page is inaccessible.
    pub fn check(&mut self, stage: &'static str, committed: &Committed, direction: Direction) -> Check {
        if !self.fresh {
            for (slot, &p) in self.pages.iter().enumerate() {
                self.space.bytes(p).copy_from_slice(&self.before[slot * page()..][..page()]);
            }
        }
        // A pack must not change the pages, which is checked below. So the next call need not fill
        // them again.
        self.fresh = direction == Direction::Pack;
        let mut got = self.stream.clone();
        let user = self.space.start.wrapping_offset(-(self.space.low as isize));
        // SAFETY: every byte of the range lies on an accessible page of the space, according to the
        // type map from which the pages were computed. `got` has as many bytes as the range. It is
        // separate from the space, and nobody else accesses the two.
        unsafe { committed.range_raw(direction, user, self.count, got.as_mut_ptr(), self.range.clone()) };
        let (want_user, want_packed) = match direction {
            Direction::Pack => (&self.before, &self.packed),
            Direction::Unpack => (&self.after, &self.stream),
        };
        let position = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
        let place = |what: String| format!("{direction} of {:?}: {what} is wrong", self.range);
        ensure(got == *want_packed, stage, || {
            let at = self.range.start + position(&got, want_packed) as u64;
            format!("{}\n{}", place(format!("packed byte {at}")), committed.schedule(direction))
        })?;
        for (slot, &p) in self.pages.iter().enumerate() {
            let want = &want_user[slot * page()..][..page()];
            let low = i128::from(self.space.low);
            let bytes = self.space.bytes(p);
            ensure(bytes == want, stage, || {
                let at = low + (p * page() + position(bytes, want)) as i128;
                format!("{}\n{}", place(format!("displacement {at}")), committed.schedule(direction))
            })?;
        }
        Ok(())
    }
}
