//! The comparison of ddtc's kernels with a kernel in which each thread moves one basic element, as
//! in yaksa, the datatype engine of the MPI library MPICH.
#![allow(unsafe_code)] // `LoadedKernel::submit` is unsafe, because it takes addresses.

use ddtc::Committed;
use ddtc::internal::datatype::TypeMap;
use ddtc::internal::kind::Direction;
use ddtc_gpu::kernel::{Addresses, Mover, launches};
use ddtc_gpu::per_element::PerElement;
use ddtc_gpu::selection::{Selection, select};

use crate::cuda::{LoadedKernel, Stream};
use crate::transfer::Buffers;

/// A layout that is moved by one thread for each basic element, with the kernels for both
/// directions.
pub(crate) struct Elements {
    committed: Committed,
    mover: PerElement,
    kernels: [LoadedKernel; 2],
}

impl Elements {
    /// Loads the kernels for the layout `committed`, whose basic elements must all have the same
    /// size. Returns `None` if the layout is not one run of bytes in nested loops.
    pub(crate) fn load(committed: &Committed) -> Option<Elements> {
        let Ok(Selection::Kernels(mover)) = select("judge", committed) else { return None };
        let (element, _) = TypeMap::instances(committed.datatype(), 1).next()?;
        let mover = PerElement::new(&*mover, element.size() as u32)?;
        let kernels = Direction::BOTH.map(|direction| LoadedKernel::load(mover.kernel(0, direction)));
        Some(Elements { committed: committed.clone(), mover, kernels })
    }

    /// Submits the packing or unpacking of whole instances to a stream. Panics unless all bytes lie
    /// in the buffers, and unless both addresses are aligned to elements.
    pub(crate) fn submit(&self, direction: Direction, buffers: Buffers<'_>, stream: Stream) {
        let (user, packed) = buffers.addresses(self.committed.datatype());
        let bytes = self.committed.packed_size(buffers.count).expect("a size");
        let addresses = Addresses { user, packed, table: 0 };
        let variant = self.mover.variant(&addresses, &(0..bytes));
        for mut launch in launches(&self.mover, variant, addresses, 0..bytes) {
            let kernel = &self.kernels[direction as usize];
            // SAFETY: the values are those of this kernel. `Buffers::addresses` has checked that
            // the buffers hold all bytes that the kernel moves.
            unsafe { kernel.submit(launch.blocks, launch.parameters.values_mut(), stream) };
        }
    }
}
