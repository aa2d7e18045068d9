//! Near blocks: short blocks at short steps. One permutation moves 64 packed bytes of near blocks,
//! at a lower cost than a call. The blocks are written out as moves, and legalization turns the
//! moves into permutations if the emitter has them.

use super::{Refusal, Scheduler, Weight};
use crate::kind::Direction;
use crate::nest::{Offsets, Quantity, Side};
use crate::plan::PlanOp;
use crate::target::{Level, cost};

/// Division of near blocks into a loop and a remainder. The loop has `turns` turns, and the blocks
/// of one turn fill whole permutations. The other `rest` blocks follow the loop.
struct NearBlocks {
    turns: u64,
    rest: u64,
}

impl NearBlocks {
    fn new(trip: u64) -> NearBlocks {
        // If the loop would have fewer than two turns, there is no loop, because a loop of one turn
        // is useless.
        let turns = if trip < 2 * cost::NEAR_BLOCKS { 0 } else { trip / cost::NEAR_BLOCKS };
        NearBlocks { turns, rest: trip - turns * cost::NEAR_BLOCKS }
    }

    /// Returns the number of moves in the plan for these blocks.
    fn moves(&self) -> u64 {
        self.rest + if self.turns > 0 { cost::NEAR_BLOCKS } else { 0 }
    }
}

impl<S: Side> Scheduler<'_, S> {
    /// Returns true if the blocks of a loop are to be written out as moves, because permutations
    /// can then move 64 bytes at a time.
    pub(super) fn fits_permutations(&self, trip: Quantity, step: Offsets, len: Quantity) -> bool {
        let Quantity { k: len, per_count: counted } = len;
        if self.level != Level::Avx512 || trip.per_count || counted || step.packed != len as i64 {
            return false;
        }
        let longest = match self.direction {
            Direction::Pack => cost::NEAR_PACK,
            Direction::Unpack => cost::NEAR_UNPACK,
        };
        let apart = step.user.unsigned_abs();
        let near = len <= longest && (len + 1..=2 * len).contains(&apart);
        if !near || !len.is_multiple_of(4) || !apart.is_multiple_of(4) {
            return false;
        }
        let bytes = trip.k.saturating_mul(len);
        let written = Weight::of_copy(len, self.level).times(NearBlocks::new(trip.k).moves() as usize);
        (64..=cost::near(self.direction, len, apart)).contains(&bytes) && written.fits(self.remaining())
    }

    /// Plans `trip` blocks of `len` bytes as moves. If there are enough blocks, a loop moves most
    /// of them; its body has [`cost::NEAR_BLOCKS`] blocks, which fill whole permutations. The moves
    /// of the remaining blocks follow the loop.
    pub(super) fn near_blocks(
        &mut self,
        at: Offsets,
        trip: u64,
        step: Offsets,
        len: u32,
        out: &mut Vec<PlanOp>,
    ) -> Result<(), Refusal> {
        let NearBlocks { turns, rest } = NearBlocks::new(trip);
        let each = cost::NEAR_BLOCKS;
        if turns > 0 {
            let mut list = Vec::with_capacity(each as usize);
            for i in 0..each as i64 {
                self.push(&mut list, PlanOp::Move { at: Offsets::ZERO.step(step, i), len })?;
            }
            let body = self.seal(list);
            let turn = Offsets::ZERO.step(step, each as i64);
            self.push(out, PlanOp::Loop { at, trip: Quantity::fixed(turns), step: turn, unroll: 1, body })?;
        }
        out.reserve(rest as usize);
        let after_loop = (trip - rest..trip).map(|i| at.step(step, i as i64));
        after_loop.into_iter().try_for_each(|at| self.push(out, PlanOp::Move { at, len }))
    }
}
