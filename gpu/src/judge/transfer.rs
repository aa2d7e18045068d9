//! Transfers by layouts of the library `ddtc_gpu`. Before a transfer can be submitted, this module
//! checks that all its bytes lie in the buffers.
#![allow(unsafe_code)] // `Layout::submit` is unsafe, because it takes addresses.

use std::marker::PhantomData;

use ddtc::internal::datatype::Datatype;
use ddtc::internal::kind::Direction;
use ddtc_gpu::device::{Layout, Transfer};

use crate::cuda::{Memory, Place, Stream};

/// Returns the displacements of the lowest byte of `count` instances of `t` and of the byte after
/// the highest one. There must be at least one instance.
pub(crate) fn bounds(t: &Datatype, count: u64) -> (i128, i128) {
    let last = i128::from(t.extent()) * (i128::from(count) - 1);
    (i128::from(t.true_lb()) + last.min(0), i128::from(t.true_ub()) + last.max(0))
}

/// The two buffers of a transfer of `count` instances.
#[derive(Clone, Copy)]
pub(crate) struct Buffers<'m> {
    pub(crate) count: u64,
    /// Memory of the user's buffer, and the offset in it to which displacement 0 of the first
    /// instance belongs. The offset may lie outside of the memory.
    pub(crate) user: (&'m Memory<'m>, i64),
    /// Place of the first packed byte.
    pub(crate) packed: Place<'m>,
}

impl Buffers<'_> {
    /// Returns the address of displacement 0 of the first instance, and the address of the first
    /// packed byte. Panics unless every byte of the instances of `t` lies in the user's buffer and
    /// every packed byte in the packed buffer, and unless these are different allocations.
    pub(crate) fn addresses(&self, t: &Datatype) -> (u64, u64) {
        let (user, origin) = self.user;
        let (low, high) = bounds(t, self.count);
        let fits = low + i128::from(origin) >= 0 && high + i128::from(origin) <= i128::from(user.bytes());
        assert!(fits, "the user's buffer has all instances");
        assert!(!std::ptr::eq(user, self.packed.memory), "the buffers do not overlap");
        let packed = self.packed.address(self.count * t.size() as u64);
        (user.address().wrapping_add_signed(origin), packed)
    }
}

/// A transfer that may be submitted any number of times. Its buffers cannot be freed while this
/// value exists.
pub(crate) struct Call<'m> {
    layout: &'m Layout,
    transfer: Transfer,
    _buffers: PhantomData<Buffers<'m>>,
}

impl<'m> Call<'m> {
    /// Describes the packing or unpacking of whole instances of `layout`. Panics unless all bytes
    /// lie in the buffers.
    pub(crate) fn new(layout: &'m Layout, direction: Direction, buffers: Buffers<'m>) -> Call<'m> {
        let (user, packed) = buffers.addresses(layout.committed().datatype());
        // ddtc gets the address that a program would pass, which is the host address of pinned
        // memory.
        let packed = packed - buffers.packed.memory.address() + buffers.packed.memory.known();
        let count = buffers.count;
        let range = 0..layout.committed().packed_size(count).expect("a size");
        let transfer = Transfer { direction, user, count, packed, range };
        Call { layout, transfer, _buffers: PhantomData }
    }

    /// Submits the transfer to a stream.
    pub(crate) fn submit(&self, stream: Stream) {
        // SAFETY: `Buffers::addresses` has checked that the buffers hold all bytes and do not
        // overlap. They are freed only after all work is done ([`Memory`]), and this program
        // submits no work that writes them to another stream. Streams are never destroyed.
        let done = unsafe { self.layout.submit("judge", &self.transfer, stream.handle()) };
        done.unwrap_or_else(|e| panic!("{e}"));
    }
}
