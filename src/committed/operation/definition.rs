//! Calls of values by the definition of the type map: what check mode compares every call of an [`super::CommittedOperation`] with.

use std::hash::{DefaultHasher, Hasher};

use super::Inner;
use crate::committed::definition::{Call, PARTS};
use crate::engine::Place;
use crate::error::Result;
use crate::kind::Direction;

impl Inner {
    /// The values of a call in packing order, up to the first that does not fit, which is returned: `f` for each, with what it is by
    /// definition, and where that belongs.
    ///
    /// # Safety
    /// As [`super::CommittedOperation::range_raw`].
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
            // SAFETY: a value of the type map or its place in the stream, which the caller vouches for.
            let bytes = unsafe { std::slice::from_raw_parts(source, len) };
            match place.converted(call.direction, bytes) {
                Some(value) => f(&place, &value, destination),
                None => return Some(place),
            }
        }
        None
    }

    /// Does a call by the definition, value by value.
    ///
    /// # Safety
    /// As [`super::CommittedOperation::range_raw`].
    unsafe fn define(&self, call: &Call) {
        // SAFETY: as the caller promises; a value and its place on the destination side.
        unsafe {
            self.values(call, &mut |_, value, destination| {
                std::ptr::copy_nonoverlapping(value.as_ptr(), destination, value.len());
            });
        }
    }

    /// Compares what a call did, and the value that it refused, with the definition; a difference is counted, logged, and put right. Bytes that
    /// the call does not map are not looked at.
    ///
    /// # Errors
    /// The value that does not fit by definition.
    ///
    /// # Safety
    /// As [`super::CommittedOperation::range_raw`], just after the call.
    pub(super) unsafe fn compare(&self, call: &Call, done: Result<()>) -> Result<()> {
        let mut wrong = None;
        // SAFETY: as the caller promises; a value's place on the destination side.
        let unfit = unsafe {
            self.values(call, &mut |place, value, destination| {
                if wrong.is_none() && std::slice::from_raw_parts(destination, value.len()) != value {
                    wrong = Some(*place);
                }
            })
        };
        // Of entries that share bytes the last one wins, so earlier ones may differ rightly.
        let ordered = call.direction == Direction::Unpack && !self.layout.nest().disjoint().holds(call.count);
        if wrong.is_some() && ordered {
            // SAFETY: as the caller promises.
            wrong = unsafe { self.replay(call) };
        }
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
        // SAFETY: as the caller promises.
        unsafe { self.define(call) };
        wanted
    }

    /// Unpacks once more, by the definition: a right unpack leaves every byte as it was. Otherwise, about where it does not.
    ///
    /// # Safety
    /// As [`Inner::compare`].
    unsafe fn replay(&self, call: &Call) -> Option<Place> {
        // SAFETY: as the caller promises.
        let (before, after) = unsafe {
            let before = self.digests(call);
            self.define(call);
            (before, self.digests(call))
        };
        let part = (0..PARTS).find(|&part| before[part] != after[part])?;
        let mut first = None;
        // SAFETY: as the caller promises.
        unsafe {
            self.values(call, &mut |place, _, _| {
                if first.is_none() && call.part((place.at - call.range.start) as usize) == part {
                    first = Some(*place);
                }
            })
        };
        first
    }

    /// Digests of the user's values, in packing order.
    ///
    /// # Safety
    /// As [`Inner::compare`].
    unsafe fn digests(&self, call: &Call) -> [u64; PARTS] {
        let mut parts: [DefaultHasher; PARTS] = std::array::from_fn(|_| DefaultHasher::new());
        // SAFETY: as the caller promises; a value's place on the destination side.
        unsafe {
            self.values(call, &mut |place, value, destination| {
                let part = &mut parts[call.part((place.at - call.range.start) as usize)];
                part.write(std::slice::from_raw_parts(destination, value.len()));
            })
        };
        parts.map(|part| part.finish())
    }
}
