//! Traits with raw calls for the other crates of the workspace: calls for ranges, and calls that
//! compile nothing. These traits are not part of the public interface.
//!
//! Each method of a trait calls the inherent method of the same name, where the full documentation
//! is.

use std::ops::Range;

use super::{Committed, CommittedOperation, LayoutCopy};
use crate::error::Result;
use crate::kind::Direction;

mod sealed {
    /// Supertrait that keeps other crates from implementing the traits of this module.
    pub trait Sealed {}

    impl Sealed for super::Committed {}
    impl Sealed for super::CommittedOperation {}
    impl Sealed for super::LayoutCopy {}
}

/// Raw calls of [`Committed`] for the other crates of the workspace.
pub trait RawCalls: sealed::Sealed {
    /// Moves `count` whole instances and returns true, or returns false without moving anything. It
    /// moves them if calls are not being counted and, in addition, either one copy suffices or the
    /// entry point of a kernel for them is published in this value.
    ///
    /// # Safety
    /// The promises of [`Committed::pack_raw`] or [`Committed::unpack_raw`] must hold.
    unsafe fn try_raw(&self, direction: Direction, user: *mut u8, count: u64, packed: *mut u8) -> bool;

    /// Moves the packed bytes `range` of `count` instances. `packed` is the address of packed byte
    /// `range.start`.
    ///
    /// # Safety
    /// The promises of [`Committed::pack_raw`] or [`Committed::unpack_raw`] must hold for the bytes
    /// inside the range, and `range` must lie inside the packed stream.
    unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    );

    /// Moves a range like [`RawCalls::range_raw`], but only with kernels that exist already.
    ///
    /// # Safety
    /// The promises of [`RawCalls::range_raw`] must hold.
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
        // SAFETY: the caller has promised what the calls in this block require.
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
        // SAFETY: the caller has promised what the calls in this block require.
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
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { Committed::range_made(self, direction, user, count, packed, range) }
    }
}

/// Raw calls of [`CommittedOperation`] for the other crates of the workspace.
pub trait RawOperationCalls: sealed::Sealed {
    /// Moves the whole values in the packed bytes `range` of `count` instances. `packed` is the
    /// address of packed byte `range.start`.
    ///
    /// # Errors
    /// Returns the errors of [`CommittedOperation::pack_raw`] or
    /// [`CommittedOperation::unpack_raw`], and class `Op` for packing under a reduction.
    ///
    /// # Safety
    /// The promises of [`CommittedOperation::pack_raw`] or [`CommittedOperation::unpack_raw`] must
    /// hold for the values inside the range, and `range` must lie inside the packed stream. A
    /// reduction also reads the values in user memory, so these must be readable, too.
    unsafe fn range_raw(
        &self,
        direction: Direction,
        user: *mut u8,
        count: u64,
        packed: *mut u8,
        range: Range<u64>,
    ) -> Result<()>;

    /// Combines `count` instances at `from` with those at `user`, where the results go.
    ///
    /// # Errors
    /// Returns class `Op` if the operation is not a reduction, and class `Count` if the packed size
    /// of all instances does not fit into 63 bits.
    ///
    /// # Safety
    /// All instances must be readable at both addresses and writable at `user`. The instances at
    /// `from` must not overlap those at `user`. During the call, nothing else may write to the
    /// instances at `from` or access those at `user`.
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
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { CommittedOperation::range_raw(self, direction, user, count, packed, range) }
    }

    #[inline]
    unsafe fn combine_raw(&self, from: *const u8, count: u64, user: *mut u8) -> Result<()> {
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { CommittedOperation::combine_raw(self, from, count, user) }
    }
}

/// Raw calls of [`LayoutCopy`] for the other crates of the workspace.
pub trait RawCopyCalls: sealed::Sealed {
    /// Copies `count` instances at `src` to `count` instances at `dst` with the kernel that exists
    /// already. Returns true if it copied all of them; if not, the mapped bytes at `dst` are
    /// undefined.
    ///
    /// # Safety
    /// The promises of [`LayoutCopy::copy_raw`] must hold for `count` instances on both sides. Both
    /// datatypes must have the same size, and `LayoutCopy::make` must have been called.
    unsafe fn copy_made(&self, src: *const u8, dst: *mut u8, count: u64) -> bool;
}

impl RawCopyCalls for LayoutCopy {
    #[inline]
    unsafe fn copy_made(&self, src: *const u8, dst: *mut u8, count: u64) -> bool {
        // SAFETY: the caller has promised what the calls in this block require.
        unsafe { LayoutCopy::copy_made(self, src, dst, count) }
    }
}
