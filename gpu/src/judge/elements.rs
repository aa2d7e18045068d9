//! The comparison of ddtc's kernels with a kernel in which each thread moves one basic element, as
//! in yaksa, the datatype engine of the MPI library MPICH.

use ddtc::Committed;
use ddtc::internal::datatype::TypeMap;
use ddtc::internal::kind::Direction;
use ddtc_gpu::driver::Opaque;
use ddtc_gpu::kernel::{Addresses, Mover, launches};
use ddtc_gpu::per_element::PerElement;
use ddtc_gpu::selection::{Selection, select};

use crate::cuda::LoadedKernel;

/// A layout that is moved by one thread for each basic element, with the kernels for both
/// directions.
pub(crate) struct Elements {
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
        Some(Elements { mover, kernels })
    }

    /// Submits the packing or unpacking of the first `bytes` packed bytes to a stream. `user` is
    /// the address of the user's buffer, and `packed` is the address of the packed bytes. Both must
    /// be aligned to elements, and the buffers must be long enough.
    pub(crate) fn submit(
        &self,
        direction: Direction,
        (user, packed): (u64, u64),
        bytes: u64,
        stream: Opaque,
    ) {
        let addresses = Addresses { user, packed, table: 0 };
        let variant = self.mover.variant(&addresses, &(0..bytes));
        for mut launch in launches(&self.mover, variant, addresses, 0..bytes) {
            self.kernels[direction as usize].submit(launch.blocks, launch.parameters.values_mut(), stream);
        }
    }
}
