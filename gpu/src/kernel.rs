//! Types that all kernels share: the text of a kernel, the values of its parameters, a launch, and
//! the trait [`Mover`], which describes how kernels move the bytes of a layout.

use std::fmt::Debug;
use std::ops::Range;

use ddtc::internal::kind::Direction;

use crate::index::{Chain, Split};
use crate::loops::Loops;

/// Number of threads in each block of a launch.
pub const THREADS: u32 = 256;

/// Widths that a word may have, in bytes. A word is the unit of data that a thread moves by one
/// load and one store.
pub const WIDTHS: [u32; 5] = [16, 8, 4, 2, 1];

/// Maximum number of parameters that a kernel of ddtc has.
pub const MAX_PARAMETERS: usize = 24;

/// PTX text of a module that contains a single kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: String,
    /// PTX text of the module.
    pub text: String,
}

/// Values of the parameters of a kernel for one launch, in the order in which the kernel declares
/// the parameters. The value of a 32-bit parameter is the lower half of its 64-bit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    values: [u64; MAX_PARAMETERS],
    number: usize,
}

impl Parameters {
    /// Creates the list of parameter values that begins with the values `first`.
    /// [`Parameters::extend`] appends the values of further parameters.
    pub(crate) fn new(first: &[u64]) -> Parameters {
        let mut parameters = Parameters { values: [0; MAX_PARAMETERS], number: 0 };
        parameters.extend(first);
        parameters
    }

    /// Appends the values of the next parameters.
    pub(crate) fn extend(&mut self, values: &[u64]) {
        self.values[self.number..][..values.len()].copy_from_slice(values);
        self.number += values.len();
    }

    /// Appends the values of the three parameters that `Printer::split` declares for a division
    /// with remainder.
    pub(crate) fn split(&mut self, by: Split<u32>) {
        self.extend(&[by.divisor.multiplier, by.divisor.shift, by.number].map(u64::from));
    }

    /// Appends the values of the parameters that `Printer::chain` declares for nested loops: the
    /// stride of the innermost loop, and a divisor and a step for each other loop.
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

    /// Returns the values of all parameters. They are mutable because the driver expects a mutable
    /// pointer to each value.
    pub fn values_mut(&mut self) -> &mut [u64] {
        &mut self.values[..self.number]
    }
}

/// One launch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Size of the grid: the number of blocks in each of its three dimensions. A block has
    /// [`THREADS`] threads.
    pub blocks: [u32; 3],
    /// Values of the parameters of the kernel.
    pub parameters: Parameters,
    /// Number of packed bytes that the launch moves.
    pub bytes: u64,
}

/// Device addresses of the memory that a transfer accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Device address of the user's buffer.
    pub user: u64,
    /// Device address of the first packed byte of the range that is moved.
    pub packed: u64,
    /// Device address of the table that [`Mover::table`] returns, or 0 if this table is empty.
    pub table: u64,
}

/// A layout whose bytes are moved by GPU kernels.
///
/// A layout has several kernels for each direction, and a transfer uses one of them. The kernels of
/// a direction are numbered. The number of a kernel is called its variant. The kernel of variant
/// `i` moves words of `2^i` bytes. The layout of a transpose ([`Tile`](crate::tile::Tile)) has one
/// more variant: the kernel `tile`.
pub trait Mover: Debug + Send + Sync {
    /// Returns the nested loops of the layout.
    fn loops(&self) -> &Loops;

    /// Returns the table of blocks that the kernels of this layout read, or an empty slice if they
    /// read no table. The caller must copy the table to device memory before it launches a kernel.
    fn table(&self) -> &[u32] {
        &[]
    }

    /// Returns the number of variants, which is the number of different kernels for each direction.
    fn variants(&self) -> usize {
        self.loops().unit().ilog2() as usize + 1
    }

    /// Returns the kernel with the number `variant` for the direction `direction`.
    fn kernel(&self, variant: usize, direction: Direction) -> Kernel;

    /// Returns the number of the kernel that moves the packed bytes `range` between the given
    /// addresses.
    fn variant(&self, addresses: &Addresses, range: &Range<u64>) -> usize {
        self.loops().width(addresses.user, addresses.packed, range).ilog2() as usize
    }

    /// Returns a launch of the kernel with the number `variant`. The launch moves as many of the
    /// first packed bytes of `range` as a single launch can move. The range must not be empty, and
    /// [`Addresses::packed`] must be the address of its first byte. [`Mover::variant`] must have
    /// returned `variant` for this range, or for a longer range with the same end.
    fn launch(&self, variant: usize, addresses: &Addresses, range: Range<u64>) -> Launch;
}

/// Returns the launches that together move the packed bytes `range`. All of them launch the kernel
/// with the number `variant`. [`Addresses::packed`] must be the address of the first byte of the
/// range.
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
