//! The loop of permutations for NEON: `tbl` looks up 16 bytes of the packed side at a time in four
//! registers of the user's side.
//!
//! NEON has no masked loads, so the four registers, 64 bytes, are read whole. These 64 bytes must
//! therefore lie between the first and the last byte of all blocks of the call. Bytes that a store
//! of a whole register writes in excess are overwritten by later stores; the last steps use buffers
//! on the stack. Two instances of {int, double, float[3]} take 2 `ldp`, 3 `tbl`, 1 `stp` and 1
//! `str` instead of 6 loads and 6 stores (counted, not timed).

use std::arch::aarch64::{uint8x16_t, uint8x16x4_t, vaddq_u8, vdupq_n_u8, vld1q_u8, vqtbl4q_u8, vst1q_u8};

use crate::micro::block;
use crate::micro::permute::table::Table;

/// Number of bytes in four registers.
const FOUR: usize = 64;

/// Loads 64 bytes into four registers.
///
/// # Safety
/// 64 bytes must be readable at `p`.
#[inline(always)]
unsafe fn load(p: *const u8) -> uint8x16x4_t {
    // SAFETY: the caller promises 64 readable bytes; the loads need no alignment.
    unsafe { uint8x16x4_t(vld1q_u8(p), vld1q_u8(p.add(16)), vld1q_u8(p.add(32)), vld1q_u8(p.add(48))) }
}

/// Packs in `steps` steps. Each step loads four registers from the user's buffer and stores their
/// packed bytes in `STORES` stores of whole registers.
///
/// # Safety
/// After each of the `steps` steps, the packed address advances by `by.0` bytes and the user
/// address by `by.1` bytes. In each step, 64 bytes must be readable at the user address, and `16 *
/// STORES` bytes must be writable at the packed address.
#[inline(always)]
unsafe fn whole<const STORES: usize>(
    packed: *mut u8,
    user: *const u8,
    steps: usize,
    by: (usize, usize),
    lanes: [uint8x16_t; 4],
) {
    let (mut p, mut u) = (packed, user);
    for _ in 0..steps {
        // SAFETY: the caller promises 64 readable bytes and `STORES` writable pieces of 16 bytes in
        // every step.
        unsafe {
            let from = load(u);
            for (i, &lanes) in lanes[..STORES].iter().enumerate() {
                vst1q_u8(p.add(16 * i), vqtbl4q_u8(from, lanes));
            }
        }
        p = p.wrapping_add(by.0);
        u = u.wrapping_add(by.1);
    }
}

/// Packs `n` instances of a small layout by the permutation that `table` describes.
///
/// # Safety
/// `table` must be the table of a permutation that is made for NEON and for `stride`. All instances
/// must be readable in the user's buffer and writable on the packed side, and the sides must not
/// overlap.
pub(super) unsafe extern "C" fn pack(user: *mut u8, packed: *mut u8, n: u64, stride: i64, table: *const u64) {
    if n == 0 {
        return;
    }
    // SAFETY: the caller promises that a `Table` lies at `table`. It is copied so that the compiler
    // knows that no store changes it.
    let table = unsafe { table.cast::<Table>().read() };
    let (n, stride) = (n as usize, stride as usize);
    let (instances, size, span) = (table.instances as usize, table.size as usize, table.span as usize);
    let user = user.wrapping_offset(table.lowest as isize).cast_const();
    // `length` is the number of bytes from the first to the last byte of the instances, and `total`
    // the number of packed bytes. A permutation for NEON has several instances in a vector, so the
    // stride between instances is not less than the span of one instance.
    let (length, total) = ((n - 1) * stride + span, n * size);
    // SAFETY: `pack` has 64 bytes.
    let lanes = unsafe { load(table.pack.as_ptr()) };
    let lanes = [lanes.0, lanes.1, lanes.2, lanes.3];
    let (by, stores) = ((instances * size, instances * stride), (instances * size).div_ceil(16));
    // Steps with whole loads and stores are possible as long as 64 bytes remain before the end of
    // the last instance, and the whole stores fit into the packed bytes that remain.
    let mut steps = 0;
    if length >= FOUR && total >= 16 * stores {
        steps = (n / instances).min((length - FOUR) / by.1 + 1).min((total - 16 * stores) / by.0 + 1);
        // SAFETY: before every step, 64 bytes remain before the end of the last mapped byte, and
        // the bytes of the stores before the end of the packed bytes. The gaps in the 64 bytes lie
        // between two mapped bytes, on the pages of these.
        unsafe {
            match stores {
                1 => whole::<1>(packed, user, steps, by, lanes),
                2 => whole::<2>(packed, user, steps, by, lanes),
                3 => whole::<3>(packed, user, steps, by, lanes),
                _ => whole::<4>(packed, user, steps, by, lanes),
            }
        }
    }
    // The remaining instances are read from 64 bytes that end with the last byte of the last
    // instance at the latest. These 64 bytes may begin before the next instance. The indices in
    // `lanes` are then increased by the number of bytes in between (`early`).
    let (mut short, mut out) = ([0; FOUR], [0; FOUR]);
    let mut from = user;
    if length < FOUR {
        // SAFETY: these are the bytes from the first to the last mapped one, which are fewer than
        // the 64 bytes of `short`; the gaps between them are shorter still.
        unsafe { block::run_time::<32>(short.as_mut_ptr(), user, length) };
        from = short.as_ptr();
    }
    let latest = length.saturating_sub(FOUR);
    let mut done = steps * instances;
    while done < n {
        let count = instances.min(n - done);
        let start = (done * stride).min(latest);
        // SAFETY: 64 bytes follow `start` before the end of the instances, or of `short`.
        // `count * size` is at most 64, the size of `out`, and these are the packed bytes of
        // `count` instances, which the caller promises.
        unsafe {
            let early = vdupq_n_u8((done * stride - start) as u8);
            let from = load(from.add(start));
            for (i, &lanes) in lanes.iter().enumerate() {
                vst1q_u8(out.as_mut_ptr().add(16 * i), vqtbl4q_u8(from, vaddq_u8(lanes, early)));
            }
            block::run_time::<32>(packed.add(done * size), out.as_ptr(), count * size);
        }
        done += count;
    }
}
