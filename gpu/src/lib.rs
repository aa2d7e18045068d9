//! Packs and unpacks MPI derived datatypes in the memory of NVIDIA GPUs. The bytes are moved by
//! kernels, instead of one copy for each block of a datatype.
//!
//! A kernel belongs to a shape, not to a layout: the strides and trip counts of a layout are
//! parameters of the kernel, and lists of blocks are tables in device memory. The module
//! [`selection`] chooses the kernel for a committed layout. There is one module for each kernel:
//! [`strided`], [`list`], [`pieces`] and [`tile`]. Each of them has the text of the kernel, and the
//! computation of its launches on the host. [`index`] has the index arithmetic of one thread,
//! [`ptx`] prints instructions as PTX text, [`loops`] has the loops of a layout, and [`kernel`] has
//! what all kernels have in common. [`driver`] calls NVIDIA's driver library, and [`device`] uses
//! it to open a layout, to pack and unpack with the layout, and to close it.
//! [`bound`] computes how fast a transfer can be at best, compared with a plain copy.
//!
//! docs/GPU.md says which layouts and buffers are served, and how this is tested on a machine
//! without a GPU.
#![deny(unsafe_code)]

pub mod bound;
pub mod device;
pub mod driver;
pub mod index;
pub mod kernel;
pub mod list;
pub mod loops;
pub mod pieces;
pub mod ptx;
mod rows;
pub mod selection;
pub mod strided;
pub mod tile;
mod words;
