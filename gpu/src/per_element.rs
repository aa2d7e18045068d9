//! The kernel `per_element`, in which each thread moves one basic element of the datatype and
//! divides once for each loop. ddtc never chooses this kernel. The benchmark program `judge`
//! measures it, to compare the kernels of ddtc with what the MPI library MPICH does on a GPU.
//!
//! The model is yaksa, the datatype engine of MPICH (`src/backend/cuda/genpup.py`). A thread of its
//! kernels moves one basic element, and goes through the loops from the outermost to the innermost.
//! In each of them, it divides what is left of its index by the number of elements in one iteration
//! of the loop. The quotient is the iteration, and the remainder is what is left for the loops
//! inside. Operands and results have 64 bits.
//!
//! The kernel `per_element` does less work than yaksa for all datatypes but one kind, so that its
//! time is a lower estimate of yaksa's. A thread of yaksa makes a second division in a loop to
//! compute the number of elements in an iteration of the next loop, which is a parameter here. It
//! also reads the numbers that describe the loops from device memory. The loops here are those of
//! the normal nest, which may be fewer than those of the datatype. The exception is a basic type
//! that is only resized: yaksa divides nothing for it, and `per_element` divides by 1.

use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::Arithmetic;
use crate::kernel::{Addresses, Kernel, Launch, Mover, WIDTHS};
use crate::loops::Loops;
use crate::ptx::{self, Type};
use crate::words::{self, Share};

/// A layout of nested loops around one run of contiguous bytes, which the kernel `per_element`
/// moves.
#[derive(Clone, Debug)]
pub struct PerElement {
    /// Number of bytes in an element.
    element: u32,
    loops: Loops,
    /// Values of the parameters that describe the loops of the kernel, the outermost loop first:
    /// the number of elements in one iteration of the loop, and the stride of the loop in bytes.
    levels: Vec<[u64; 2]>,
}

/// Returns the kernel that moves elements of `element` bytes in `levels` nested loops, in the
/// direction `direction`. Its parameters are the four that `words::kernel` declares. Two parameters
/// of 64 bits follow for each loop, the outermost loop first: the number of elements in one
/// iteration of the loop, and the stride of the loop in bytes.
pub fn kernel(element: u32, levels: usize, direction: Direction) -> Kernel {
    words::kernel(
        format!("ddtc_per_element_{element}_{levels}_{}", ptx::direction(direction)),
        Share::single(element),
        direction,
        |printer| {
            let declare = |i| {
                [format!("inner{i}"), format!("stride{i}")].map(|name| printer.parameter(&name, Type::Long))
            };
            (1..=levels).map(declare).collect::<Vec<_>>()
        },
        |printer, levels, index| {
            let mut rest = printer.widen(index);
            let mut iterations = Vec::new();
            for &[inner, stride] in levels {
                let (iteration, remainder) = printer.split_long(rest, inner);
                iterations.push((iteration, stride));
                rest = remainder;
            }
            let width = printer.constant(element);
            let width = printer.widen(width);
            let in_run = printer.multiply_long(rest, width);
            let add = |sum, (iteration, stride)| printer.multiply_add_long(iteration, stride, sum);
            iterations.into_iter().fold(in_run, add)
        },
    )
}

impl PerElement {
    /// Returns the layout of `mover`, as a layout whose elements have `element` bytes. Returns
    /// `None` if the layout has a table of blocks, if `element` is none of [`WIDTHS`], or if not
    /// all strides and runs of the layout are multiples of elements of this size.
    pub fn new(mover: &dyn Mover, element: u32) -> Option<PerElement> {
        let loops = mover.loops().clone();
        if !mover.table().is_empty() || !WIDTHS.contains(&element) || element > loops.unit() {
            return None;
        }
        let (mut inner, mut levels) = (loops.iteration() / u64::from(element), Vec::new());
        let mut outwards = loops.in_kernel().iter().rev().peekable();
        while let Some(outer) = outwards.next() {
            levels.push([inner, outer.stride as u64]);
            inner /= outwards.peek().map_or(1, |l| l.trip);
        }
        Some(PerElement { element, loops, levels })
    }
}

impl Mover for PerElement {
    fn loops(&self) -> &Loops {
        &self.loops
    }

    fn variants(&self) -> usize {
        1
    }

    fn kernel(&self, _: usize, direction: Direction) -> Kernel {
        kernel(self.element, self.levels.len(), direction)
    }

    /// Returns 0, the number of the only kernel.
    ///
    /// # Panics
    /// Panics if the addresses and both ends of the range are not aligned to elements. Other
    /// layouts have kernels for such transfers.
    fn variant(&self, addresses: &Addresses, range: &Range<u64>) -> usize {
        let width = self.loops.width(addresses.user, addresses.packed, range);
        assert!(width >= self.element, "elements of {} bytes, aligned to {width} bytes", self.element);
        0
    }

    fn launch(&self, _: usize, addresses: &Addresses, range: Range<u64>) -> Launch {
        let mut launch = words::launch(&self.loops, addresses, range, Share::single(self.element));
        self.levels.iter().for_each(|level| launch.parameters.extend(level));
        launch
    }
}
