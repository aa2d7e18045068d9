//! Packs and unpacks MPI derived datatypes in the memory of NVIDIA GPUs. GPU kernels move the
//! bytes. ddtc does not make one copy for each contiguous block of a datatype.
//!
//! The text of a kernel depends only on a few properties of a layout, such as the number of its
//! nested loops. Strides and trip counts are parameters of the kernel, and lists of blocks are
//! tables in device memory. So many layouts have the same kernel. The module [`selection`] chooses
//! the kernel for a committed layout. There are four kinds of kernels, each in a module of its own:
//! [`strided`], [`list`], [`pieces`] and [`tile`]. Such a module prints the PTX text of its
//! kernels, and computes on the host how a transfer is split into launches. [`index`] computes
//! which addresses a thread of a kernel accesses, [`ptx`] prints instructions as PTX text,
//! [`loops`] describes the nested loops of a layout, and [`kernel`] contains what all kernels have
//! in common. [`driver`] calls NVIDIA's driver library. [`device`] opens a layout on a device,
//! packs and unpacks with it, and closes it. [`bound`] computes an upper bound of the speed of a
//! transfer, relative to a plain copy.
//!
//! docs/GPU.md says which layouts and buffers are supported, and how the kernels are tested on a
//! machine without a GPU.
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
