//! The loop that moves instances by permutations, for instruction sets with masked loads and
//! stores. In the user's buffer, loads and stores access only those bytes or words of a vector
//! (lanes) that belong to an instance. On the packed side, whole vectors are loaded or stored as
//! long as a whole vector remains.

use super::table::Table;

/// Access to the lanes of a vector, which are the bytes or the words that an instruction set
/// permutes. Masks have one bit per lane.
pub(in crate::micro) trait Lanes {
    /// Number of bytes of a lane.
    const UNIT: u64;
    /// Number of bytes of a vector.
    const BYTES: u64;
    /// A vector register.
    type Vector: Copy;
    /// Registers with the tables of a permutation, which tell from which lane (byte or word) each
    /// lane of the result comes.
    type Places: Copy;

    /// Loads the lanes (bytes or words) whose bit in `mask` is set; the other lanes of the result
    /// are not used.
    ///
    /// # Safety
    /// The machine must have the instructions that this implementation uses, and the lanes in
    /// `mask` must be readable at `p`.
    unsafe fn load(p: *const u8, mask: u64) -> Self::Vector;
    /// Stores the lanes (bytes or words) whose bit in `mask` is set, and leaves the bytes of the
    /// other lanes in memory as they are.
    ///
    /// # Safety
    /// The machine must have the instructions that this implementation uses, and the lanes in
    /// `mask` must be writable at `p`.
    unsafe fn store(p: *mut u8, mask: u64, v: Self::Vector);
    /// Loads a whole vector.
    ///
    /// # Safety
    /// The machine must have the instructions that this implementation uses, and a whole vector
    /// must be readable at `p`.
    unsafe fn load_all(p: *const u8) -> Self::Vector;
    /// Stores the first 32, 48 or 64 bytes of a vector, or the whole vector if it is shorter.
    ///
    /// # Safety
    /// The machine must have the instructions that this implementation uses, and a whole vector
    /// must be writable at `p`.
    unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: Self::Vector);
    /// Loads the two tables of a permutation into registers: `lanes` has the lane from which each
    /// lane comes, and `within` has, for each byte, the index of the byte of the same 16 aligned
    /// bytes from which it then comes.
    ///
    /// # Safety
    /// The machine must have the instructions.
    unsafe fn places(lanes: &[u8; 64], within: &[u8; 64]) -> Self::Places;
    /// Permutes the lanes of the vector `v` as the tables in `places` tell.
    ///
    /// # Safety
    /// The machine must have the instructions.
    unsafe fn permute(v: Self::Vector, places: Self::Places) -> Self::Vector;
}

/// Returns the mask of the lanes that lie in the lowest `bytes` bytes of a vector. `bytes` must be
/// at least the size of one lane.
#[inline(always)]
fn below<L: Lanes>(bytes: u64) -> u64 {
    u64::MAX >> (64 - (bytes / L::UNIT).min(64))
}

/// Moves `n` instances of a small layout by the permutation that `table` describes.
///
/// # Safety
/// `table` must be the table of a permutation that is made for these lanes and for `stride`; to
/// unpack, each lane of the user's vector must belong to at most one part. All instances must be
/// readable on the source side and writable on the destination side, and the sides must not
/// overlap. The machine must have the instructions of `L`.
#[inline(always)]
pub(in crate::micro) unsafe fn all<const PACK: bool, L: Lanes>(
    user: *mut u8,
    packed: *mut u8,
    n: u64,
    stride: isize,
    table: *const u64,
) {
    // SAFETY: the caller promises that a `Table` lies at `table`. It is copied so that the compiler
    // knows that no store changes it.
    let table = unsafe { table.cast::<Table>().read() };
    // SAFETY: the caller promises a machine with the instructions of `L`.
    let lanes = unsafe {
        if PACK {
            L::places(&table.pack, &table.pack_within)
        } else {
            L::places(&table.unpack, &table.unpack_within)
        }
    };
    let step = table.instances * table.size;
    // `whole` is the number of steps that begin when at least a whole vector of packed bytes
    // remains. In these steps the packed side is loaded or stored as a whole vector. A store may
    // write bytes that belong to later steps; the stores of those steps overwrite them.
    let whole = if n * table.size >= L::BYTES { (n * table.size - L::BYTES) / step + 1 } else { 0 };
    let steps = n / table.instances;
    let mut at = Cursors {
        user: user.wrapping_offset(table.lowest as isize),
        packed,
        user_step: stride.wrapping_mul(table.instances as isize),
        packed_step: step as usize,
    };
    let packed_mask = below::<L>(step);
    // SAFETY: there are `n / instances` steps, so a full vector of instances remains in each.
    // `mapped` and `packed_mask` have the lanes of these instances and no others. In the first
    // `whole` steps, a whole vector of bytes remains on the packed side.
    unsafe {
        if PACK {
            // The narrowest possible store is used, because fewer stores cross a cache line if they
            // are narrow.
            match step {
                0..=32 => at.run(whole.min(steps), |u, p| {
                    L::store_first::<32>(p, L::permute(L::load(u, table.mapped), lanes));
                }),
                33..=48 => at.run(whole.min(steps), |u, p| {
                    L::store_first::<48>(p, L::permute(L::load(u, table.mapped), lanes));
                }),
                _ => at.run(whole.min(steps), |u, p| {
                    L::store_first::<64>(p, L::permute(L::load(u, table.mapped), lanes));
                }),
            }
            at.run(steps.saturating_sub(whole), |u, p| {
                L::store(p, packed_mask, L::permute(L::load(u, table.mapped), lanes));
            });
        } else {
            at.run(whole.min(steps), |u, p| {
                L::store(u, table.mapped, L::permute(L::load_all(p), lanes));
            });
            at.run(steps.saturating_sub(whole), |u, p| {
                L::store(u, table.mapped, L::permute(L::load(p, packed_mask), lanes));
            });
        }
    }
    let left = n - steps * table.instances;
    if left > 0 {
        // Instances that share a vector do not interleave, so the lanes (bytes or words) of the
        // first `left` instances are the lowest lanes of the vector.
        let mapped = table.mapped & below::<L>((left - 1) * stride as u64 + table.span);
        let packed_mask = below::<L>(left * table.size);
        // SAFETY: `left` instances remain, and the two masks have the lanes of their bytes and no
        // others.
        unsafe {
            if PACK {
                L::store(at.packed, packed_mask, L::permute(L::load(at.user, mapped), lanes));
            } else {
                L::store(at.user, mapped, L::permute(L::load(at.packed, packed_mask), lanes));
            }
        }
    }
}

/// The addresses in the user's buffer and in the packed stream at which the next step begins, and
/// the distances from each step to the step after it.
struct Cursors {
    user: *mut u8,
    packed: *mut u8,
    user_step: isize,
    packed_step: usize,
}

impl Cursors {
    /// Calls `step` `n` times with the current addresses in the user's buffer and in the packed
    /// stream, and advances both addresses after each call.
    #[inline(always)]
    fn run(&mut self, n: u64, step: impl Fn(*mut u8, *mut u8)) {
        for _ in 0..n {
            step(self.user, self.packed);
            self.user = self.user.wrapping_offset(self.user_step);
            self.packed = self.packed.wrapping_add(self.packed_step);
        }
    }
}

/// Declares a C function that moves instances by permutations of one type of lanes (bytes or
/// words), with the target features of its instruction set.
macro_rules! masked_permute {
    ($name:ident, $lanes:ty, $feature:literal) => {
        /// Moves `n` instances of a small layout by the permutation that `table` describes
        /// ([`masked::all`]).
        ///
        /// # Safety
        /// `table` must be the table of a permutation that is made for these lanes and for
        /// `stride`; to unpack, each lane of the user's vector must belong to at most one part. All
        /// instances must be readable on the source side and writable on the destination side, and
        /// the sides must not overlap. The machine must have the target features of this function.
        #[target_feature(enable = $feature)]
        unsafe extern "C" fn $name<const PACK: bool>(
            user: *mut u8,
            packed: *mut u8,
            n: u64,
            stride: i64,
            table: *const u64,
        ) {
            // SAFETY: the conditions of `masked::all` are those of this function; the target
            // features are those that the lanes need.
            unsafe { masked::all::<PACK, $lanes>(user, packed, n, stride as isize, table) }
        }
    };
}

pub(in crate::micro) use masked_permute;
