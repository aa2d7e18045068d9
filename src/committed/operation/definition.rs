//! Conversions of values by the definition of the type map. Check mode compares every conversion of
//! a [`super::CommittedOperation`] with them. Reductions are not compared.

use std::hash::{DefaultHasher, Hasher};

use super::Inner;
use crate::committed::definition::{Call, PARTS};
use crate::engine::Place;
use crate::error::Result;
use crate::kind::Direction;

impl Inner {
    /// Calls `f(place, converted bytes, destination)` for the values of a call, in packing order.
    /// It stops at the first value that the other side cannot hold and returns its place, or none
    /// if all fit.
    ///
    /// # Safety
    /// The promises of [`super::CommittedOperation::range_raw`] must hold.
    unsafe fn values(&self, call: &Call, f: &mut dyn FnMut(&Place, &[u8], *mut u8)) -> Option<Place> {
        let engine = self.committed.engine();
        let places = engine.places(self.committed.datatype(), self.layout.nest().size(), call.range.clone());
        for place in places {
            let user = call.user.wrapping_offset((place.displacement + place.within) as isize);
            let packed = call.packed.wrapping_add((place.at - call.range.start) as usize);
            let (source, len, destination) = match call.direction {
                Direction::Pack => (user, place.user, packed),
                Direction::Unpack => (packed, place.packed, user),
            };
            // SAFETY: `source` is the place of a value inside the range, in user memory or in the
            // packed stream, and the caller promises that both are readable.
            let bytes = unsafe { std::slice::from_raw_parts(source, len) };
            match place.converted(call.direction, bytes) {
                Some(value) => f(&place, &value, destination),
                None => return Some(place),
            }
        }
        None
    }

    /// Executes a call by the definition, value by value, up to the first value that does not fit.
    ///
    /// # Safety
    /// The promises of [`super::CommittedOperation::range_raw`] must hold.
    unsafe fn define(&self, call: &Call) {
        // SAFETY: `destination` is the place of the value on the side that is written, and the
        // caller promises that it is writable. The converted value is a separate array, so they do
        // not overlap.
        unsafe {
            self.values(call, &mut |_, value, destination| {
                std::ptr::copy_nonoverlapping(value.as_ptr(), destination, value.len());
            });
        }
    }

    /// Compares the bytes that a call wrote, and its result `done`, with the definition. A
    /// difference is counted and logged, and the bytes and the result are corrected. Bytes that the
    /// call does not map are not examined.
    ///
    /// # Errors
    /// Returns class `Conversion` for the first value that does not fit according to the
    /// definition.
    ///
    /// # Safety
    /// The promises of [`super::CommittedOperation::range_raw`] must still hold just after the
    /// call.
    pub(super) unsafe fn compare(&self, call: &Call, done: Result<()>) -> Result<()> {
        // Find the first value whose bytes differ from the definition, up to the first value that
        // does not fit.
        let mut wrong = None;
        // SAFETY: `destination` is the place of a value on the side that was written, and the
        // caller promises that it is valid.
        let unfit = unsafe {
            self.values(call, &mut |place, value, destination| {
                if wrong.is_none() && std::slice::from_raw_parts(destination, value.len()) != value {
                    wrong = Some(*place);
                }
            })
        };
        // When entries overlap, an unpack leaves the bytes of the last entry, so the bytes of
        // earlier entries may rightly differ. In that case a second unpack by the definition
        // decides.
        if wrong.is_some() && call.direction == Direction::Unpack && !self.layout.disjoint().holds(call.count)
        {
            // SAFETY: the caller has promised what the calls in this block require.
            wrong = unsafe { self.replay(call) };
        }
        // The call is correct if its bytes are correct and if it refused the same value as the
        // definition, or if both refused none. Otherwise count and log the difference, and execute
        // the call by the definition.
        let engine = self.committed.engine();
        let wanted = unfit.map_or(Ok(()), |place| Err(engine.unfit(call.direction, &place)));
        if wrong.is_none() && done == wanted {
            return done;
        }
        engine.mismatch();
        let (displacement, packed_offset) = wrong
            .or(unfit)
            .map_or((0, call.range.start), |place| (place.displacement + place.within, place.at));
        tracing::error!(
            target: "ddtc", direction = %call.direction, operation = %self.layout.operation(), count = call.count, displacement,
            packed_offset, datatype = %self.committed.datatype(), "values differ from the definition of the type map"
        );
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.define(call) };
        wanted
    }

    /// Unpacks once more, by the definition. If the first unpack was correct, this changes no byte.
    /// Returns none if digests of the user's values show no change. Otherwise returns the first
    /// value in the first part of the call whose digest has changed.
    ///
    /// # Safety
    /// The promises of [`Inner::compare`] must hold.
    unsafe fn replay(&self, call: &Call) -> Option<Place> {
        // SAFETY: the caller has promised what the calls in this block require.
        let (before, after) = unsafe {
            let before = self.digests(call);
            self.define(call);
            (before, self.digests(call))
        };
        let part = (0..PARTS).find(|&part| before[part] != after[part])?;
        let mut first = None;
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe {
            self.values(call, &mut |place, _, _| {
                if first.is_none() && call.part((place.at - call.range.start) as usize) == part {
                    first = Some(*place);
                }
            })
        };
        first
    }

    /// Returns a digest of the values in user memory for each part of the call, in packing order.
    /// Call it for unpacking only, where user memory is the destination.
    ///
    /// # Safety
    /// The promises of [`Inner::compare`] must hold.
    unsafe fn digests(&self, call: &Call) -> [u64; PARTS] {
        let mut parts: [DefaultHasher; PARTS] = std::array::from_fn(|_| DefaultHasher::new());
        // SAFETY: `destination` is the place of a value on the side that was written, and the
        // caller promises that it is valid.
        unsafe {
            self.values(call, &mut |place, value, destination| {
                let part = &mut parts[call.part((place.at - call.range.start) as usize)];
                part.write(std::slice::from_raw_parts(destination, value.len()));
            })
        };
        parts.map(|part| part.finish())
    }
}
