//! Packs and unpacks MPI derived datatypes in the memory of NVIDIA GPUs, by kernels instead of one
//! copy per block.
//!
//! A kernel belongs to a shape, not to a layout: the strides and trip counts of a layout are the
//! parameters of a kernel. [`selection`] chooses a shape for a committed layout, [`strided`] has
//! the arithmetic of the host, [`index`] has the index arithmetic of one thread, and [`ptx`] prints
//! a kernel as PTX text. [`driver`] calls NVIDIA's driver library, and [`device`] opens, packs,
//! unpacks and closes a layout with it.
//!
//! docs/GPU.md says what is served, and how it is tested on a machine without a GPU.
#![deny(unsafe_code)]

pub mod device;
pub mod driver;
pub mod index;
pub mod ptx;
pub mod selection;
pub mod strided;
