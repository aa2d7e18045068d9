//! Packs and unpacks MPI derived datatypes in the memory of NVIDIA GPUs. GPU kernels move the
//! bytes, instead of one copy by the driver for each block of contiguous bytes.
//!
//! The text of a kernel depends only on a few properties of a layout, such as the number of its
//! nested loops. Strides and trip counts are parameters of the kernel, and lists of blocks are
//! tables in device memory. Therefore different layouts often have the same kernel.
//!
//! The modules are:
//!
//! * [`selection`] chooses the kernel for a committed layout.
//! * [`strided`], [`list`], [`pieces`] and [`tile`] are the four kinds of kernels. Each of these
//!   modules prints the PTX text of its kernels, and computes on the host how a transfer is split
//!   into launches.
//! * [`per_element`] prints a kernel that ddtc never chooses. The benchmark program `judge`
//!   compares the other kernels with it.
//! * [`kernel`] contains what all kernels have in common.
//! * [`index`] computes which addresses a thread of a kernel accesses.
//! * [`loops`] describes the nested loops of a layout.
//! * [`ptx`] prints instructions as PTX text.
//! * [`driver`] calls NVIDIA's driver library.
//! * [`device`] opens a layout on a device, packs and unpacks with it, and closes it.
//! * [`bound`] computes an upper bound of the speed of a transfer, relative to a plain copy.
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
pub mod per_element;
pub mod pieces;
pub mod ptx;
mod rows;
pub mod selection;
pub mod strided;
pub mod tile;
mod words;
