//! Legalization: every move becomes loads and stores that the target has. Decides nothing by cost.
//!
//! A move of `len` bytes becomes accesses of 64, 32, 16, 8, 4, 2, 1 bytes. Its tail is covered by one access that overlaps the one
//! before it: the overlapped bytes belong to the same block and are written twice with the same value, so gaps and the
//! neighbours of the block stay untouched. A whole cache line never overlaps: misaligned, it would cross two.

use crate::error::Result;
use crate::plan::{Body, Legal, Offsets, Op, Plan, Scheduled};

/// Splits the moves of `plan` into accesses of at most `widest` bytes (64 to 8, by the vectors that the emitter has).
///
/// # Errors
/// Only faults of ddtc.
pub fn legalize(plan: &Plan<Scheduled>, widest: u32) -> Result<Plan<Legal>> {
    let mut ops: Vec<Op> = Vec::with_capacity(plan.ops().len() + 8);
    // Old index -> new index of the first access; bodies stay runs because order is kept.
    let mut starts: Vec<u32> = Vec::with_capacity(plan.ops().len() + 1);
    let moved = |body: Body, starts: &[u32], end: u32| {
        let range = body.range();
        let start = starts.get(range.start).copied().unwrap_or(end);
        let stop = starts.get(range.end).copied().unwrap_or(end);
        Body { start, len: stop - start }
    };
    for op in plan.ops() {
        let end = ops.len() as u32;
        starts.push(end);
        match op {
            Op::Move { at, len } => accesses(*len, widest, |offset, width| {
                let at = *at + Offsets::new(i64::from(offset), i64::from(offset));
                ops.push(Op::Move { at, len: width });
            }),
            Op::Loop { .. } | Op::Table { .. } => {
                let mut op = op.clone();
                if let Op::Loop { body, .. } | Op::Table { body, .. } = &mut op {
                    *body = moved(*body, &starts, end);
                }
                ops.push(op);
            }
            Op::Guard { limit, then, otherwise } => {
                let [then, otherwise] = [then, otherwise].map(|b| moved(*b, &starts, end));
                ops.push(Op::Guard { limit: *limit, then, otherwise });
            }
            _ => ops.push(op.clone()),
        }
    }
    let end = ops.len() as u32;
    let root = moved(plan.root(), &starts, end);
    Ok(Plan::new(ops, root, plan.tables().to_vec(), plan.kind(), plan.target()))
}

/// Calls `f(offset, width)` for the accesses that cover `len` bytes.
fn accesses(len: u32, widest: u32, mut f: impl FnMut(u32, u32)) {
    let mut offset = 0;
    while offset < len {
        let rest = len - offset;
        let width = (1 << rest.ilog2()).min(widest);
        // The smallest access that covers the rest, if it may reach back over bytes of this block.
        let cover = rest.next_power_of_two();
        if cover <= widest.min(32) && cover != rest && offset + rest >= cover {
            f(len - cover, cover);
            return;
        }
        f(offset, width);
        offset += width;
    }
}

#[cfg(test)]
mod tests {
    use super::accesses;

    fn split(len: u32, widest: u32) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        accesses(len, widest, |o, w| out.push((o, w)));
        out
    }

    #[test]
    fn tails_overlap_inside_the_block() {
        assert_eq!(split(1, 16), [(0, 1)]);
        assert_eq!(split(3, 16), [(0, 2), (2, 1)]);
        assert_eq!(split(7, 16), [(0, 4), (3, 4)]);
        assert_eq!(split(12, 16), [(0, 8), (8, 4)]);
        assert_eq!(split(20, 16), [(0, 16), (16, 4)]);
        assert_eq!(split(24, 16), [(0, 16), (16, 8)]);
        assert_eq!(split(27, 16), [(0, 16), (11, 16)]);
        assert_eq!(split(24, 8), [(0, 8), (8, 8), (16, 8)]);
        assert_eq!(split(40, 32), [(0, 32), (32, 8)]);
        assert_eq!(split(60, 32), [(0, 32), (28, 32)]);
        assert_eq!(split(120, 64), [(0, 64), (64, 32), (88, 32)]);
    }

    #[test]
    fn every_length_is_covered_and_nothing_else() {
        for widest in [8, 16, 32, 64] {
            for len in 1..200_u32 {
                let mut hit = vec![false; len as usize];
                for (o, w) in split(len, widest) {
                    assert!(o + w <= len && w <= widest && w.is_power_of_two());
                    hit[o as usize..(o + w) as usize].fill(true);
                }
                assert!(hit.into_iter().all(|h| h), "length {len}");
            }
        }
    }
}
