//! Raw calls that belong to the workspace, not to the interface: ranges, and calls that make nothing.
//!
//! Each calls the method of the same name that the type has inside the library, which documents it.

use std::ops::Range;

use super::{Committed, CommittedOperation, LayoutCopy};
use crate::error::Result;
use crate::kind::Direction;

mod sealed {
    /// Keeps the traits to the types of this library.
    pub trait Sealed {}

    impl Sealed for super::Committed {}
    impl Sealed for super::CommittedOperation {}
    impl Sealed for super::LayoutCopy {}
}

/// Raw calls of [`Committed`] for the workspace.
pub trait RawCalls: sealed::Sealed {
    /// Moves as [`Committed::pack_raw`] or [`Committed::unpack_raw`] do, if that needs nothing to be made.
    ///
    /// # Safety
    /// As [`Committed::pack_raw`] and [`Committed::unpack_raw`].
    unsafe fn try_raw(&self, direction: Direction, user: *mut u8, count: u64, packed: *mut u8) -> bool;

    /// Moves a part of the packed stream.
    ///
    /// # Safety
    /// As [`Committed::pack_raw`] and [`Committed::unpack_raw`], for the bytes inside the range; `range` must lie inside the stream.
    unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    );

    /// Moves a part of the packed stream by what is made.
    ///
    /// # Safety
    /// As [`RawCalls::range_raw`].
    unsafe fn range_made(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    );
}

impl RawCalls for Committed {
    #[inline]
    unsafe fn try_raw(&self, direction: Direction, user: *mut u8, count: u64, packed: *mut u8) -> bool {
        // SAFETY: as the caller promises.
        unsafe { Committed::try_raw(self, direction, user, count, packed) }
    }

    #[inline]
    unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        // SAFETY: as the caller promises.
        unsafe { Committed::range_raw(self, direction, user, count, packed, range) }
    }

    #[inline]
    unsafe fn range_made(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) {
        // SAFETY: as the caller promises.
        unsafe { Committed::range_made(self, direction, user, count, packed, range) }
    }
}

/// Raw calls of [`CommittedOperation`] for the workspace.
pub trait RawOperationCalls: sealed::Sealed {
    /// Moves the whole values in a part of the packed stream.
    ///
    /// # Errors
    /// As [`CommittedOperation::pack_raw`] and [`CommittedOperation::unpack_raw`].
    ///
    /// # Safety
    /// As [`CommittedOperation::pack_raw`] and [`CommittedOperation::unpack_raw`], for the values inside the range; `range` must lie
    /// inside the stream.
    unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) -> Result<()>;

    /// Combines `count` instances at `from` with those at `user`.
    ///
    /// # Errors
    /// Class `Op` where the operation is no reduction; a packed size beyond 63 bits.
    ///
    /// # Safety
    /// All instances are readable at both, writable at `user`, and do not overlap between the two.
    unsafe fn combine_raw(&self, from: *const u8, count: u64, user: *mut u8) -> Result<()>;
}

impl RawOperationCalls for CommittedOperation {
    #[inline]
    unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { CommittedOperation::range_raw(self, direction, user, count, packed, range) }
    }

    #[inline]
    unsafe fn combine_raw(&self, from: *const u8, count: u64, user: *mut u8) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { CommittedOperation::combine_raw(self, from, count, user) }
    }
}

/// Raw calls of [`LayoutCopy`] for the workspace.
pub trait RawCopyCalls: sealed::Sealed {
    /// Copies `count` instances at `src` to as many at `dst` by the kernel that is made, and says whether it did.
    ///
    /// # Safety
    /// As [`LayoutCopy::copy_raw`]; `LayoutCopy::make` must have been called.
    unsafe fn copy_made(&self, src: *const u8, dst: *mut u8, count: u64) -> bool;
}

impl RawCopyCalls for LayoutCopy {
    #[inline]
    unsafe fn copy_made(&self, src: *const u8, dst: *mut u8, count: u64) -> bool {
        // SAFETY: as the caller promises.
        unsafe { LayoutCopy::copy_made(self, src, dst, count) }
    }
}
