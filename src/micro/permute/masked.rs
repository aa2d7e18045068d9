//! The loop of permutations for instruction sets with masks: loads and stores touch the mapped lanes alone.

use super::table::Table;

/// Lanes that an instruction set permutes. Masks have one bit per lane.
pub(in crate::micro) trait Lanes {
    /// Bytes of a lane.
    const UNIT: u64;
    /// Bytes of a vector.
    const BYTES: u64;
    /// A vector.
    type Vector: Copy;
    /// Where its lanes come from.
    type Places: Copy;

    /// # Safety
    /// The machine has the instructions; lanes in `mask` are readable at `p`.
    unsafe fn load(p: *const u8, mask: u64) -> Self::Vector;
    /// # Safety
    /// The machine has the instructions; lanes in `mask` are writable at `p`.
    unsafe fn store(p: *mut u8, mask: u64, v: Self::Vector);
    /// # Safety
    /// The machine has the instructions; a vector is readable at `p`.
    unsafe fn load_all(p: *const u8) -> Self::Vector;
    /// Stores the first 32, 48 or 64 bytes, or the whole of a vector that is shorter.
    ///
    /// # Safety
    /// The machine has the instructions; a vector is writable at `p`.
    unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: Self::Vector);
    /// # Safety
    /// The machine has the instructions.
    unsafe fn places(lanes: &[u8; 64], within: &[u8; 64]) -> Self::Places;
    /// # Safety
    /// The machine has the instructions.
    unsafe fn permute(v: Self::Vector, places: Self::Places) -> Self::Vector;
}

/// The lowest `bytes` bytes, at least one lane, as lanes.
#[inline(always)]
fn below<L: Lanes>(bytes: u64) -> u64 {
    u64::MAX >> (64 - (bytes / L::UNIT).min(64))
}

/// Moves `n` instances.
///
/// # Safety
/// `table` has the words of a permutation made for these lanes and for `stride`, disjoint to unpack; all instances are valid on both
/// sides, which do not overlap; the machine has the instructions.
#[inline(always)]
pub(in crate::micro) unsafe fn all<const PACK: bool, L: Lanes>(
    user: *mut u8,
    packed: *mut u8,
    n: u64,
    stride: isize,
    table: *const u64,
) {
    // SAFETY: `words` of a permutation is a table, word by word. A copy, which no store can be thought to change.
    let table = unsafe { table.cast::<Table>().read() };
    // SAFETY: the instructions are there.
    let lanes = unsafe {
        if PACK {
            L::places(&table.pack, &table.pack_within)
        } else {
            L::places(&table.unpack, &table.unpack_within)
        }
    };
    let step = table.instances * table.size;
    // Steps before which a vector of packed bytes is left: the packed side is loaded or stored whole, and what a store writes in
    // excess is written again by what follows.
    let whole = if n * table.size >= L::BYTES { (n * table.size - L::BYTES) / step + 1 } else { 0 };
    let steps = n / table.instances;
    let mut at = Cursors {
        user: user.wrapping_offset(table.lowest as isize),
        packed,
        user_step: stride.wrapping_mul(table.instances as isize),
        packed_step: step as usize,
    };
    let packed_mask = below::<L>(step);
    // SAFETY: in every step `instances` instances remain. The masks have the lanes of their bytes and no others, and in a
    // whole step a vector remains on the packed side.
    unsafe {
        if PACK {
            // The narrower the store, the fewer cross lines.
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
        // Instances of one vector lie one after the other, so the first `left` of them are the lowest lanes.
        let mapped = table.mapped & below::<L>((left - 1) * stride as u64 + table.span);
        let packed_mask = below::<L>(left * table.size);
        // SAFETY: `left` instances remain, and the masks have their bytes and no others.
        unsafe {
            if PACK {
                L::store(at.packed, packed_mask, L::permute(L::load(at.user, mapped), lanes));
            } else {
                L::store(at.user, mapped, L::permute(L::load(at.packed, packed_mask), lanes));
            }
        }
    }
}

/// Where the next step begins on either side, and how far the one after it is.
struct Cursors {
    user: *mut u8,
    packed: *mut u8,
    user_step: isize,
    packed_step: usize,
}

impl Cursors {
    /// Runs `n` steps.
    #[inline(always)]
    fn run(&mut self, n: u64, step: impl Fn(*mut u8, *mut u8)) {
        for _ in 0..n {
            step(self.user, self.packed);
            self.user = self.user.wrapping_offset(self.user_step);
            self.packed = self.packed.wrapping_add(self.packed_step);
        }
    }
}

/// Makes the C functions of lanes, with the features of their instruction set.
macro_rules! masked_permute {
    ($name:ident, $lanes:ty, $feature:literal) => {
        /// # Safety
        /// As [`masked::all`].
        #[target_feature(enable = $feature)]
        unsafe extern "C" fn $name<const PACK: bool>(
            user: *mut u8,
            packed: *mut u8,
            n: u64,
            stride: i64,
            table: *const u64,
        ) {
            // SAFETY: as promised by the caller.
            unsafe { masked::all::<PACK, $lanes>(user, packed, n, stride as isize, table) }
        }
    };
}

pub(in crate::micro) use masked_permute;
