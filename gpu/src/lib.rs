//! Packs and unpacks MPI derived datatypes in the memory of NVIDIA GPUs. The bytes are moved by
//! kernels, instead of one copy for each block of a datatype.
//!
//! A kernel belongs to a shape, not to a layout: the strides and trip counts of a layout are
//! parameters of the kernel. The module [`selection`] chooses a shape for a committed layout.
//! [`strided`] has the arithmetic that the host does, [`index`] has the index arithmetic of one
//! thread, and [`ptx`] prints a kernel as PTX text. [`driver`] calls NVIDIA's driver library, and
//! [`device`] uses it to open a layout, to pack and unpack with the layout, and to close it.
//! [`bound`] computes how fast a transfer can be at best, compared with a plain copy.
//!
//! docs/GPU.md says which layouts and buffers are served, and how this is tested on a machine
//! without a GPU.
#![deny(unsafe_code)]

pub mod bound;
pub mod device;
pub mod driver;
pub mod index;
pub mod ptx;
pub mod selection;
pub mod strided;
