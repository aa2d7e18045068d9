//! Pack and unpack by the definition of the type map, one basic element at a time.
//!
//! Mode `off` executes calls in this way, with two exceptions: it interprets a nest for operations
//! on values and for calls of `range_made`. Check mode compares data that was packed, unpacked, or
//! copied from one layout to another with the definition. It compares neither reductions nor copies
//! by `copy_made`. The module `operation::definition` compares conversions.
//!
//! A check allocates no memory for the bytes of the call. It makes a few passes over the type map
//! and over the bytes that the call moved.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use super::Inner;
use crate::kind::Direction;

/// Arguments of a call that moves the packed bytes `range` of `count` instances. Packed byte
/// `range.start` lies at `packed`.
pub(super) struct Call {
    pub(super) direction: Direction,
    pub(super) user: *mut u8,
    pub(super) packed: *mut u8,
    pub(super) count: u64,
    pub(super) range: Range<u64>,
}

/// Number of parts into which a call is divided for digests. Each part has its own digest, so that
/// a difference can be located approximately.
pub(super) const PARTS: usize = 64;

impl Inner {
    /// Calls `f(user, packed, displacement, position in the range, length)` for every basic piece
    /// of a call, in packing order. `user` and `packed` are the addresses of the piece on both
    /// sides.
    fn pieces(&self, call: &Call, f: &mut dyn FnMut(*mut u8, *mut u8, i64, usize, usize)) {
        let range = call.range.clone();
        let result = self.engine.define(&self.datatype, call.count, range, &mut |displacement, at, len| {
            let user = call.user.wrapping_offset(displacement as isize);
            f(user, call.packed.wrapping_add(at), displacement, at, len);
        });
        debug_assert!(result.is_ok());
    }

    /// Executes a call by the definition, one basic piece at a time.
    ///
    /// # Safety
    /// The promises of [`super::Committed::range_raw`] must hold.
    pub(super) unsafe fn define(&self, call: &Call) {
        self.pieces(call, &mut |user, packed, _, _, len| {
            // SAFETY: `pieces` passes only mapped bytes inside the range and their places in the
            // packed stream, and the caller promises that both are valid.
            unsafe {
                match call.direction {
                    Direction::Pack => std::ptr::copy_nonoverlapping(user, packed, len),
                    Direction::Unpack => std::ptr::copy_nonoverlapping(packed, user, len),
                }
            }
        });
    }

    /// Compares the result of a call with the definition. A difference is counted and logged, and
    /// the result is corrected. Bytes that the call does not map are not examined.
    ///
    /// # Safety
    /// The promises of [`super::Committed::range_raw`] must still hold just after the call.
    pub(super) unsafe fn compare(&self, call: &Call) {
        // In general, the mapped user bytes must equal the packed bytes. The exception is unpacking
        // into entries that overlap: the last entry wins there, so the bytes of earlier entries may
        // rightly differ from the stream. In that case a second unpack by the definition decides.
        //
        // SAFETY: the caller has promised what the calls in this block require.
        let wrong = unsafe {
            match (self.differs(call), call.direction) {
                (None, _) => None,
                // The entries are not known to be disjoint.
                (Some(_), Direction::Unpack) if !self.layout.disjoint().holds(call.count) => {
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
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.define(call) };
    }

    /// Returns the displacement and the position in the range of the first piece whose bytes differ
    /// between user memory and packed stream, or none if all are equal.
    ///
    /// # Safety
    /// The promises of [`Inner::compare`] must hold.
    unsafe fn differs(&self, call: &Call) -> Option<(i64, usize)> {
        let mut first = None;
        self.pieces(call, &mut |user, packed, displacement, at, len| {
            // SAFETY: `pieces` passes only mapped bytes inside the range and their places in the
            // packed stream, and the caller promises that both are valid.
            let same =
                unsafe { std::slice::from_raw_parts(user, len) == std::slice::from_raw_parts(packed, len) };
            if !same && first.is_none() {
                first = Some((displacement, at));
            }
        });
        first
    }

    /// Unpacks once more, by the definition. If the first unpack was correct, this changes no byte.
    /// Returns none if digests of the user bytes show no change. Otherwise returns the displacement
    /// and position of the first piece in the first part of the call whose digest has changed.
    ///
    /// # Safety
    /// The promises of [`Inner::compare`] must hold.
    unsafe fn replay(&self, call: &Call) -> Option<(i64, usize)> {
        // SAFETY: the caller has promised what the calls in this block require.
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

    /// Returns a digest of the mapped user bytes for each part of the call, in packing order.
    ///
    /// # Safety
    /// The promises of [`Inner::compare`] must hold.
    unsafe fn digests(&self, call: &Call) -> [u64; PARTS] {
        let mut parts: [DefaultHasher; PARTS] = std::array::from_fn(|_| DefaultHasher::new());
        self.pieces(call, &mut |user, _, _, at, len| {
            // SAFETY: `pieces` passes only mapped bytes inside the range, and the caller promises
            // that these are valid.
            parts[call.part(at)].write(unsafe { std::slice::from_raw_parts(user, len) });
        });
        parts.map(|part| part.finish())
    }
}

impl Call {
    /// Returns the index, from 0 up to but excluding [`PARTS`], of the part that byte `at` of the
    /// range belongs to.
    pub(super) fn part(&self, at: usize) -> usize {
        let len = u128::from(self.range.end - self.range.start);
        (at as u128 * PARTS as u128 / len) as usize
    }
}
