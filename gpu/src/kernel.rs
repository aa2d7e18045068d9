//! What all kernels have in common: how a layout is moved by kernels, how a kernel is named and
//! launched, and the values of its parameters.

use std::fmt::Debug;
use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::{Chain, Split};
use crate::loops::Loops;

/// Number of threads in a block.
pub const THREADS: u32 = 256;

/// Widths that a word may have, in bytes. A word is the unit of data that a thread moves by one
/// load and one store.
pub const WIDTHS: [u32; 5] = [16, 8, 4, 2, 1];

/// Maximum number of parameters of a kernel.
pub const MAX_PARAMETERS: usize = 24;

/// A kernel, in a module of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: String,
    /// PTX text of the module.
    pub text: String,
}

/// Values of the parameters of a kernel for one launch, in the order in which the kernel declares
/// the parameters. A parameter of 32 bits has the lower half of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    values: [u64; MAX_PARAMETERS],
    number: usize,
}

impl Parameters {
    /// Returns the values `first` as the values of the first parameters.
    pub(crate) fn new(first: &[u64]) -> Parameters {
        let mut parameters = Parameters { values: [0; MAX_PARAMETERS], number: 0 };
        parameters.extend(first);
        parameters
    }

    /// Adds the values of the next parameters.
    pub(crate) fn extend(&mut self, values: &[u64]) {
        self.values[self.number..][..values.len()].copy_from_slice(values);
        self.number += values.len();
    }

    /// Adds the parameters of a division with remainder, which `Printer::split` declares.
    pub(crate) fn split(&mut self, by: Split<u32>) {
        self.extend(&[by.divisor.multiplier, by.divisor.shift, by.number].map(u64::from));
    }

    /// Adds the parameters of a chain of loops, which `Printer::chain` declares.
    pub(crate) fn chain(&mut self, chain: &Chain<u32, u64>) {
        self.extend(&[chain.stride]);
        for (divisor, step) in &chain.divisions {
            self.extend(&[u64::from(divisor.multiplier), u64::from(divisor.shift), *step]);
        }
    }

    /// Returns the values of all parameters.
    pub fn values(&self) -> &[u64] {
        &self.values[..self.number]
    }

    /// Returns the values of all parameters, so that the driver can be given a pointer to each.
    pub fn values_mut(&mut self) -> &mut [u64] {
        &mut self.values[..self.number]
    }
}

/// One launch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of blocks of [`THREADS`] threads in each of the three dimensions of the grid.
    pub blocks: [u32; 3],
    /// Values of the parameters of the kernel.
    pub parameters: Parameters,
    /// Number of packed bytes that the launch moves.
    pub bytes: u64,
}

/// Addresses by which a device reaches the memory of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Address of the user's buffer.
    pub user: u64,
    /// Address of the first packed byte of the range that is moved.
    pub packed: u64,
    /// Address of the layout's table, or 0 if the layout has no table.
    pub table: u64,
}

/// A layout whose bytes are moved by kernels.
///
/// A layout has several variants of its kernels. In most layouts, each variant moves words of
/// another width: variant `i` moves words of `2^i` bytes.
pub trait Mover: Debug + Send + Sync {
    /// Returns the loops of the layout.
    fn loops(&self) -> &Loops;

    /// Returns the table of the layout, which must be in device memory before a kernel is launched.
    /// It is empty if the kernels use no table.
    fn table(&self) -> &[u32] {
        &[]
    }

    /// Returns the number of variants of the kernels.
    fn variants(&self) -> usize {
        self.loops().unit().ilog2() as usize + 1
    }

    /// Returns the kernel of the variant `variant` for the direction `direction`.
    fn kernel(&self, variant: usize, direction: Direction) -> Kernel;

    /// Returns the variant that moves the packed bytes `range`.
    fn variant(&self, addresses: &Addresses, range: &Range<u64>) -> usize {
        self.loops().width(addresses.user, addresses.packed, range).ilog2() as usize
    }

    /// Returns a launch of the variant `variant` that moves the first packed bytes of `range`, as
    /// many as one launch can move. The range must not be empty, and the address
    /// [`Addresses::packed`] must be that of its first byte. The variant must be one that
    /// [`Mover::variant`] returns for the range, or for a longer range that ends where this one
    /// ends.
    fn launch(&self, variant: usize, addresses: &Addresses, range: Range<u64>) -> Launch;
}

/// Returns all launches of the variant `variant` that together move the packed bytes `range`.
pub fn launches(
    mover: &dyn Mover,
    variant: usize,
    mut addresses: Addresses,
    mut range: Range<u64>,
) -> impl Iterator<Item = Launch> {
    std::iter::from_fn(move || {
        if range.is_empty() {
            return None;
        }
        let launch = mover.launch(variant, &addresses, range.clone());
        range.start += launch.bytes;
        addresses.packed = addresses.packed.wrapping_add(launch.bytes);
        Some(launch)
    })
}
