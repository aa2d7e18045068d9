//! Calls for ranges and copies, for callers that must not wait. Kernels are made in advance by
//! separate calls, and a call that moves bytes makes nothing.

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
    /// Makes the kernels that [`Committed::range_made`] uses in `direction`: the kernel of the
    /// layout, and those for whole iterations of its loops. The kernels for iterations are not made
    /// if the layout has no kernel, for example because the mode does not compile, or if its nest
    /// has more than 64 nodes.
    pub(crate) fn make_ranges(&self, direction: Direction) {
        if self.kernel(direction).is_some() {
            self.0.engine.make_parts(&self.0.layout, direction);
        }
    }

    /// Moves the packed bytes `range` of `count` instances in `direction`, like
    /// [`Committed::range_raw`], but only with the kernels that exist already. It is meant for
    /// callers inside the progress engine of a runtime.
    ///
    /// This method compiles nothing and starts no thread. It takes no lock and allocates nothing,
    /// except in three cases: [`Config::check`](crate::engine::Config::check) asks for a
    /// comparison; this is the first call that the thread makes while calls are counted; or the
    /// loops are nested so deeply that the interpreter's stack does not fit in an array of 16
    /// entries.
    ///
    /// # Safety
    /// The promises of [`Committed::range_raw`] must hold.
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
            // SAFETY: this is the entry point of a kernel of `layout`, which `self` keeps alive.
            // The range is the whole stream of `count` instances, whose memory is as the caller
            // promises.
            return unsafe { entry.call(user.wrapping_offset(*origin), packed, count) };
        }
        let call = Call { direction, user, packed, count, range: range.clone() };
        let (user, from) = (user.wrapping_offset(*origin), packed.wrapping_sub(range.start as usize));
        // SAFETY: only blocks of this nest inside the range are moved, and the caller promises that
        // these are valid, do not overlap, and are free of data races. This machine runs
        // the level of an engine, since `Engine::new` replaces any other.
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
    /// Makes the kernel that [`LayoutCopy::copy_made`] uses, if the mode compiles. Returns true if
    /// that kernel moves whole instances of the source, so that it can copy any number of them.
    pub(crate) fn make(&self) -> bool {
        let size = self.from().datatype().size() as u64;
        self.kernel_made().is_some_and(|period| size.is_multiple_of(period))
    }

    /// Copies `count` instances at `src` to `count` instances at `dst` with the kernel that exists
    /// already. It compiles nothing. It takes no lock and allocates nothing, unless this is the
    /// first call that the thread makes while calls are counted. It is meant for callers inside the
    /// progress engine of a runtime.
    ///
    /// Returns true if all bytes were copied. Returns false if there are bytes to copy but no
    /// kernel, if the bytes of all instances are not a whole number of the periods that the kernel
    /// moves, if the memories overlap, or if this copy combines values. The mapped bytes at `dst`
    /// are undefined then, and the caller must copy everything in another way.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must hold for `count` instances on both sides. Both
    /// datatypes must have the same size, and [`LayoutCopy::make`] must have been called.
    pub(crate) unsafe fn copy_made(&self, src: *const u8, dst: *mut u8, count: u64) -> bool {
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { self.whole_raw(src, dst, count) }
    }
}

#[cfg(test)]
mod tests;
