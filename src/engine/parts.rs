//! Ranges at the speed of kernels: whole iterations of a loop inside a range are instances of a layout of their own.
//!
//! `loop count step s {B}` of a loop's iterations is normalized, cached and compiled as the layout of a datatype is, on demand and never at
//! commit. Where a plan cuts rows of blocks into equal pieces, ranges go by the same table. Heads and tails are walked.

use std::ops::Range;
use std::sync::Arc;

use super::Engine;
use crate::cache::{Layout, Part, Tier};
use crate::column::Column;
use crate::error::Result;
use crate::kind::Direction;
use crate::micro::{Argument, Buffers, Role, rows};
use crate::nest::{Node, Offsets};
use crate::plan::Op;
use crate::segment::packed_bytes;
use crate::walk::Parts;
use crate::{calls, normalize, schedule};

/// The parts of one layout, compiled where enough was asked for.
pub(super) struct Compiled<'e> {
    pub(super) engine: &'e Engine,
    pub(super) layout: &'e Arc<Layout>,
}

impl Parts for Compiled<'_> {
    fn run(&self, memory: &Buffers, i: usize, at: Offsets, range: Range<u64>) -> bool {
        let Compiled { engine, layout } = self;
        let node = &layout.nest().nodes()[i];
        let make = || engine.part(layout, i, memory.direction()).unwrap_or(Part::Walked);
        let Some(slot) = layout.part(i) else { return false };
        let bytes = bytes(node, &range);
        let Some(part) = slot.get(bytes as u64, engine.config().lazy_threshold, make) else { return false };
        let ran = match part {
            Part::Own => engine.instances(layout, memory, node, at, range, bytes),
            Part::Iterations(layout) => engine.instances(layout, memory, node, at, range, bytes),
            Part::Pieces(column, piece) => pieces(memory, node, (column, *piece), at, range, bytes),
            Part::Walked => false,
        };
        if ran && calls::counting() {
            calls::count_part();
        }
        ran
    }
}

/// Packed bytes of iterations or rows `range` of `node`.
fn bytes(node: &Node, range: &Range<u64>) -> i64 {
    let n = (range.end - range.start) as i64;
    match node {
        Node::Loop { step, .. } => step.packed.wrapping_mul(n),
        Node::Table { packed, .. } => packed.wrapping_mul(n),
        Node::Blocks { packed, len, .. } => {
            let last = range.end as usize - 1;
            packed.get(last) + len.get(last) - packed.get(range.start as usize)
        }
        Node::Copy { .. } => packed_bytes(node, 1),
    }
}

/// Rows `range` of blocks, of so many bytes, by a table of their pieces.
fn pieces(
    memory: &Buffers,
    node: &Node,
    (column, piece): (&Column, u64),
    at: Offsets,
    range: Range<u64>,
    bytes: i64,
) -> bool {
    let Node::Blocks { packed, .. } = node else { return false };
    let start = packed.get(range.start as usize) - packed.get(0);
    let (first, n) = (start as u64 / piece, bytes as u64 / piece);
    let rows = (column, first as usize, n as usize);
    memory.rows(at.user, at.packed.wrapping_add(start), rows, piece as i64, piece);
    true
}

impl Engine {
    /// Makes the part that node `i` of `layout` is, which the walker does not do in one call. Its first entry is at offset 0, since
    /// normal bodies and columns begin there.
    fn part(&self, layout: &Arc<Layout>, i: usize, direction: Direction) -> Result<Part> {
        let node = &layout.nest().nodes()[i];
        let part = layout.nest().part(i)?;
        let nest = normalize::normalize(&part, 0)?.nest;
        self.check(|| nest.verify())?;
        if !matches!(node, Node::Blocks { .. }) {
            let own = self.0.cache.by_nest(None, nest, 0).layout;
            return Ok(if Arc::ptr_eq(&own, layout) { Part::Own } else { Part::Iterations(own) });
        }
        let Ok(plan) = schedule::schedule(&nest, direction, self.target()) else {
            return Ok(Part::Walked);
        };
        let rows = plan.ops().iter().find_map(|op| match op {
            Op::Call { call, .. } if *call.callee().family() == rows::FAMILY => {
                let Some(Argument::Number(len)) = call.argument(Role::Length) else { return None };
                Some((call.column(plan.tables(), Role::UserOffsets)?, len.k))
            }
            _ => None,
        });
        // All of the blocks, not a period of them.
        let all =
            |(column, piece): &(&Column, u64)| column.len() as u64 * piece == packed_bytes(node, 1) as u64;
        let Some((column, piece)) = rows.filter(all) else { return Ok(Part::Walked) };
        let kernel = layout.served(direction).and_then(Tier::kernel);
        let column = kernel.map_or_else(|| column.clone(), |kernel| kernel.shared(column.clone()));
        Ok(Part::Pieces(column, piece))
    }

    /// Iterations `range` of `node`, of so many bytes, which are instances of `layout`. Who comes first compiles; others need not wait.
    fn instances(
        &self,
        layout: &Arc<Layout>,
        memory: &Buffers,
        node: &Node,
        at: Offsets,
        range: Range<u64>,
        bytes: i64,
    ) -> bool {
        let direction = memory.direction();
        let first = || layout.moves(direction, bytes as u64, 0).then(|| self.serve(layout, direction));
        let served = layout.served(direction).or_else(first);
        let Some(kernel) = served.and_then(Tier::kernel) else { return false };
        match node {
            Node::Loop { step, .. } => {
                kernel.run(memory, at.step(*step, range.start as i64), range.end - range.start);
            }
            Node::Table { displacements, packed, .. } => {
                for row in range {
                    let to = Offsets::new(displacements.get(row as usize), packed.wrapping_mul(row as i64));
                    kernel.run(memory, at + to, 1);
                }
            }
            Node::Blocks { .. } | Node::Copy { .. } => return false,
        }
        true
    }
}
