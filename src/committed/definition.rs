//! Calls by the definition of the type map: what mode `off` does, and what check mode compares every call with.
//!
//! Nothing is allocated: a check takes a few passes over the type map and the bytes that the call moved.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use super::Inner;
use crate::kind::Direction;

/// A call: packed bytes `range` of `count` instances, the first of them at `packed`.
pub(super) struct Call {
    pub(super) direction: Direction,
    pub(super) user: *mut u8,
    pub(super) packed: *mut u8,
    pub(super) count: u64,
    pub(super) range: Range<u64>,
}

/// Parts of a call whose bytes have a digest each, so that a difference can be placed.
pub(super) const PARTS: usize = 64;

impl Inner {
    /// `f(user, packed, displacement, position in the range, length)` for every basic piece of a call, in packing order.
    fn pieces(&self, call: &Call, f: &mut dyn FnMut(*mut u8, *mut u8, i64, usize, usize)) {
        let range = call.range.clone();
        let walked = self.engine.define(&self.datatype, call.count, range, &mut |displacement, at, len| {
            let user = call.user.wrapping_offset(displacement as isize);
            f(user, call.packed.wrapping_add(at), displacement, at, len);
        });
        debug_assert!(walked.is_ok());
    }

    /// Does a call by the definition, one basic piece at a time.
    ///
    /// # Safety
    /// As [`super::Committed::range_raw`].
    pub(super) unsafe fn define(&self, call: &Call) {
        self.pieces(call, &mut |user, packed, _, _, len| {
            // SAFETY: a piece of the type map and its place in the packed stream, which the caller vouches for.
            unsafe {
                match call.direction {
                    Direction::Pack => std::ptr::copy_nonoverlapping(user, packed, len),
                    Direction::Unpack => std::ptr::copy_nonoverlapping(packed, user, len),
                }
            }
        });
    }

    /// Compares what a call did with the definition; a difference is counted, logged, and put right. Bytes that the call does not map
    /// are not looked at.
    ///
    /// # Safety
    /// As [`super::Committed::range_raw`], just after the call.
    pub(super) unsafe fn compare(&self, call: &Call) {
        // SAFETY: as the caller promises.
        let wrong = unsafe {
            match (self.differs(call), call.direction) {
                (None, _) => None,
                // Of entries that share bytes the last one wins, so earlier ones may differ rightly.
                (Some(_), Direction::Unpack) if !self.layout.nest().disjoint().holds(call.count) => {
                    self.replay(call)
                }
                (wrong, _) => wrong,
            }
        };
        let Some((displacement, at)) = wrong else { return };
        self.engine.mismatch();
        let packed_offset = call.range.start + at as u64;
        tracing::error!(
            target: "ddtc", direction = %call.direction, count = call.count, displacement, packed_offset, datatype = %self.datatype,
            "bytes differ from the definition of the type map"
        );
        // SAFETY: as the caller promises.
        unsafe { self.define(call) };
    }

    /// The first piece that is not the same on both sides: displacement, and position in the range.
    ///
    /// # Safety
    /// As [`Inner::compare`].
    unsafe fn differs(&self, call: &Call) -> Option<(i64, usize)> {
        let mut first = None;
        self.pieces(call, &mut |user, packed, displacement, at, len| {
            // SAFETY: a piece of the type map and its place in the packed stream, which the caller vouches for.
            let same =
                unsafe { std::slice::from_raw_parts(user, len) == std::slice::from_raw_parts(packed, len) };
            if !same && first.is_none() {
                first = Some((displacement, at));
            }
        });
        first
    }

    /// Unpacks once more, by the definition: a right unpack leaves every byte as it was. Otherwise, about where it does not.
    ///
    /// # Safety
    /// As [`Inner::compare`].
    unsafe fn replay(&self, call: &Call) -> Option<(i64, usize)> {
        // SAFETY: as the caller promises.
        let (before, after) = unsafe {
            let before = self.digests(call);
            self.define(call);
            (before, self.digests(call))
        };
        let part = (0..PARTS).find(|&part| before[part] != after[part])?;
        let mut first = None;
        self.pieces(call, &mut |_, _, displacement, at, _| {
            if first.is_none() && call.part(at) == part {
                first = Some((displacement, at));
            }
        });
        first
    }

    /// Digests of the user's bytes, in packing order.
    ///
    /// # Safety
    /// As [`Inner::compare`].
    unsafe fn digests(&self, call: &Call) -> [u64; PARTS] {
        let mut parts: [DefaultHasher; PARTS] = std::array::from_fn(|_| DefaultHasher::new());
        self.pieces(call, &mut |user, _, _, at, len| {
            // SAFETY: a piece of the type map, which the caller vouches for.
            parts[call.part(at)].write(unsafe { std::slice::from_raw_parts(user, len) });
        });
        parts.map(|part| part.finish())
    }
}

impl Call {
    /// Returns the part that byte `at` of the range is in.
    pub(super) fn part(&self, at: usize) -> usize {
        let len = u128::from(self.range.end - self.range.start);
        (at as u128 * PARTS as u128 / len) as usize
    }
}
