//! Ranges for callers that may not wait: everything is made ahead, and a call makes nothing.

use std::ops::Range;
use std::sync::atomic::Ordering::Acquire;

use super::copy::LayoutCopy;
use super::definition::Call;
use super::{Committed, Inner};
use crate::calls;
use crate::code::kernel::EntryPoint;
use crate::kind::Direction;
use crate::micro::Buffers;

impl Committed {
    /// Makes all that [`Committed::range_made`] goes by in `direction`: the kernel, as far as the mode compiles, and those of whole iterations.
    pub(crate) fn make_ranges(&self, direction: Direction) {
        if self.kernel(direction).is_some() {
            self.0.engine.make_parts(&self.0.layout, direction);
        }
    }

    /// Moves the packed bytes `range` of `count` instances in `direction`, as [`Committed::range_raw`] does, by what is made: it compiles nothing, takes
    /// no lock, starts no thread and allocates nothing, but for the comparison of [`Config::check`](crate::engine::Config::check). For callers inside a
    /// runtime's progress.
    ///
    /// # Safety
    /// As [`Committed::range_raw`].
    pub(crate) unsafe fn range_made(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        let Inner { entry_points, origin, layout, engine, .. } = &*self.0;
        if calls::counting() {
            calls::count(direction.into(), range.end - range.start);
        }
        let whole = range.start == 0 && self.packed_size(count) == Ok(range.end);
        let entry = EntryPoint::from_ptr(entry_points[direction as usize].load(Acquire));
        if let Some(entry) = entry.filter(|_| whole) {
            // SAFETY: the entry point of this layout's kernel, which lives as long as `self`; the rest is as the caller promises.
            return unsafe { entry.call(user.wrapping_offset(*origin), packed, count) };
        }
        let call = Call { direction, user, packed, count, range: range.clone() };
        let (user, from) = (user.wrapping_offset(*origin), packed.wrapping_sub(range.start as usize));
        // SAFETY: only blocks of this nest inside the range are moved, which the caller vouches for.
        unsafe {
            let memory = Buffers::new(user, from, direction, engine.config().level);
            engine.range_made(layout, &memory, count, range);
            if engine.config().check {
                self.0.compare(&call);
            }
        }
    }
}

impl LayoutCopy {
    /// Makes the kernel that [`LayoutCopy::copy_made`] goes by, as far as the mode compiles. Whether instances of the source go by it whole.
    pub(crate) fn make(&self) -> bool {
        let size = self.from().datatype().size() as u64;
        self.kernel_made().is_some_and(|period| size.is_multiple_of(period))
    }

    /// Copies `count` instances at `src` to as many at `dst`, of the same datatype or one that is as long, by the kernel that is made: it compiles nothing,
    /// takes no lock and allocates nothing. False: there is none, or the memories overlap, or values are combined; what is at `dst` is then undefined
    /// where both map it, and all is to be copied in another way. For callers inside a runtime's progress.
    ///
    /// # Safety
    /// As [`LayoutCopy::copy_raw`]; [`LayoutCopy::make`] must have been called.
    pub(crate) unsafe fn copy_made(&self, src: *const u8, dst: *mut u8, count: u64) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.whole_raw(src, dst, count) }
    }
}

#[cfg(test)]
mod tests;
