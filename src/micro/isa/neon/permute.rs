//! The loop of permutations for NEON: `tbl` looks up to 16 bytes of the packed side up in four registers of the user's.
//!
//! Without masks the four registers, 64 bytes, are read whole, so they lie between the first and the last mapped byte of the call, and what
//! a whole store writes in excess is written again by what follows; the last steps go by way of the stack. Two instances of
//! {int, double, float[3]} take 2 `ldp`, 3 `tbl`, 1 `stp` and 1 `str` instead of 6 loads and 6 stores (counted, not timed).

use std::arch::aarch64::{uint8x16_t, uint8x16x4_t, vaddq_u8, vdupq_n_u8, vld1q_u8, vqtbl4q_u8, vst1q_u8};

use crate::micro::block;
use crate::micro::permute::table::Table;

/// Bytes of four registers.
const FOUR: usize = 64;

/// Loads four registers.
///
/// # Safety
/// 64 bytes are readable at `p`.
#[inline(always)]
unsafe fn load(p: *const u8) -> uint8x16x4_t {
    // SAFETY: as promised by the caller.
    unsafe { uint8x16x4_t(vld1q_u8(p), vld1q_u8(p.add(16)), vld1q_u8(p.add(32)), vld1q_u8(p.add(48))) }
}

/// Packs `steps` times four registers, each time in `STORES` whole stores.
///
/// # Safety
/// At each of `steps` places, so many bytes apart on each side, 64 bytes are readable and the stores are writable.
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
        // SAFETY: as promised by the caller.
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

/// Packs `n` instances.
///
/// # Safety
/// `table` has the words of a permutation made for NEON and for `stride`; all instances are valid on both sides, which do not
/// overlap.
pub(super) unsafe extern "C" fn pack(user: *mut u8, packed: *mut u8, n: u64, stride: i64, table: *const u64) {
    if n == 0 {
        return;
    }
    // SAFETY: `words` of a permutation is a table, word by word. A copy, which no store can be thought to change.
    let table = unsafe { table.cast::<Table>().read() };
    let (n, stride) = (n as usize, stride as usize);
    let (instances, size, span) = (table.instances as usize, table.size as usize, table.span as usize);
    let user = user.wrapping_offset(table.lowest as isize).cast_const();
    // From the first to the last mapped byte; a permutation for NEON has a stride that is not less than its span.
    let (length, total) = ((n - 1) * stride + span, n * size);
    // SAFETY: the table has 64 lanes.
    let lanes = unsafe { load(table.pack.as_ptr()) };
    let lanes = [lanes.0, lanes.1, lanes.2, lanes.3];
    let (by, stores) = ((instances * size, instances * stride), (instances * size).div_ceil(16));
    let mut steps = 0;
    if length >= FOUR && total >= 16 * stores {
        steps = (n / instances).min((length - FOUR) / by.1 + 1).min((total - 16 * stores) / by.0 + 1);
        // SAFETY: before every step 64 bytes remain before the last mapped byte, and the stores before the last packed byte;
        // gaps in them are shorter, between two mapped bytes.
        unsafe {
            match stores {
                1 => whole::<1>(packed, user, steps, by, lanes),
                2 => whole::<2>(packed, user, steps, by, lanes),
                3 => whole::<3>(packed, user, steps, by, lanes),
                _ => whole::<4>(packed, user, steps, by, lanes),
            }
        }
    }
    // The rest: 64 bytes that end with the last mapped byte at the latest, the lanes moved by what they start too early.
    let (mut short, mut out) = ([0; FOUR], [0; FOUR]);
    let mut from = user;
    if length < FOUR {
        // SAFETY: all bytes from the first to the last mapped one; the gaps between them are shorter than that.
        unsafe { block::run_time::<32>(short.as_mut_ptr(), user, length) };
        from = short.as_ptr();
    }
    let latest = length.saturating_sub(FOUR);
    let mut done = steps * instances;
    while done < n {
        let count = instances.min(n - done);
        let start = (done * stride).min(latest);
        // SAFETY: `start` leaves 64 bytes before the end, of the instances or of the copy; `count * size` is at most as much, and the
        // bytes of these instances, which lie within.
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
