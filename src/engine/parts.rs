//! Ranges at the speed of kernels: whole iterations of a loop inside a range are instances of a layout of their own.
//!
//! `loop count step s {B}` of a loop's iterations is normalized, cached and compiled as the layout of a datatype is, on demand and never at
//! commit. Where a plan cuts rows of blocks into equal pieces, or sorts them within buckets, ranges go by the same tables.

use std::ops::Range;
use std::sync::Arc;

use super::Engine;
use crate::code::kernel::Kernel;
use crate::column::Column;
use crate::error::Result;
use crate::exec::walk::{Parts, Rows};
use crate::kind::{Direction, Operation};
use crate::layout::{CompiledLayout, Part, PartSlot, Tier};
use crate::micro::{Argument, Buffers, Call, Role};
use crate::nest::{Descent, EqualPieces, Level, Node, Offsets};
use crate::plan::Op;
use crate::target::cost;
use crate::{calls, normalize, schedule};

/// The parts of one layout, compiled where enough was asked for.
pub(super) struct Compiled<'e> {
    pub(super) engine: &'e Engine,
    pub(super) layout: &'e Arc<CompiledLayout>,
    /// Slots of its nodes; empty if there are none.
    pub(super) slots: &'e [PartSlot],
    /// Whether what is not made yet may be made now.
    pub(super) makes: bool,
}

/// Nodes of a nest up to which all of its parts are made ahead.
const MAX_NODES_AHEAD: usize = 64;

impl<'e> Compiled<'e> {
    /// The part that node `i` is, once ranges have moved enough of it.
    fn part(&self, i: usize, bytes: u64) -> Option<&'e Part> {
        let Compiled { engine, layout, slots, makes } = self;
        let slot = slots.get(i)?;
        if !makes {
            return slot.made();
        }
        let mut made = false;
        let make = || {
            made = true;
            engine.part(layout, i).unwrap_or(Part::Walked)
        };
        let part = slot.get(bytes, engine.config().lazy_threshold, make);
        if made {
            engine.0.cache.update_charge(layout);
        }
        part
    }
}

impl<'e> Compiled<'e> {
    /// The kernel of which an iteration of node `i` is an instance. Who comes first compiles, if ranges have moved enough; others need not wait.
    #[cold]
    fn kernel(
        &self,
        slot: &'e PartSlot,
        i: usize,
        direction: Direction,
        bytes: u64,
    ) -> Option<&'e Arc<Kernel>> {
        let Compiled { engine, layout, makes, .. } = self;
        let of: &'e Arc<CompiledLayout> = match self.part(i, bytes) {
            Some(Part::Own) => layout,
            Some(Part::Iterations(of)) => of,
            _ => return None,
        };
        // Calls of the layout itself count too, where there are any.
        let begins =
            || *makes && of.begins_or_reaches_threshold(direction, bytes, engine.config().lazy_threshold);
        let first = || begins().then(|| engine.serve(of, direction));
        let kernel = of.served(direction).or_else(first).and_then(Tier::kernel)?;
        Some(if *makes { slot.keep_kernel(direction, kernel) } else { kernel })
    }
}

impl Parts for Compiled<'_> {
    #[inline(always)]
    fn descent(&self, i: usize) -> Option<&Descent> {
        Some(self.slots.get(i)?.descent())
    }

    fn run(&self, memory: &Buffers, i: usize, at: Offsets, range: Range<u64>) -> bool {
        let Some(slot) = self.slots.get(i) else { return false };
        let Descent { level, step, .. } = slot.descent();
        let kernel = slot.kernel(memory.direction());
        let found = || {
            self.kernel(
                slot,
                i,
                memory.direction(),
                (range.end - range.start).wrapping_mul(step.packed as u64),
            )
        };
        let Some(kernel) = kernel.or_else(found) else { return false };
        match level {
            Level::Loop | Level::Strips | Level::Structures => {
                kernel.run(memory, at.step(*step, range.start as i64), range.end - range.start);
            }
            Level::Table => {
                let node = &self.layout.nest().nodes()[i];
                range.for_each(|row| kernel.run(memory, node.iteration(at, row), 1));
            }
            Level::Leaf => return false,
        }
        count(true);
        true
    }

    fn rows(&self, i: usize, bytes: u64) -> Rows<'_> {
        let rows = match self.part(i, bytes) {
            Some(Part::Pieces(pieces)) => Rows::Pieces(pieces),
            Some(Part::Buckets(columns)) => Rows::Buckets(columns.each_ref(), cost::BUCKET),
            _ => Rows::Listed,
        };
        count(!matches!(rows, Rows::Listed));
        rows
    }
}

/// Counts a part of a range that did not go the walker's way.
fn count(ran: bool) {
    if ran && calls::counting() {
        calls::count_part();
    }
}

impl Engine {
    /// Makes the part that node `i` of `layout` is, which the walker does not do in one call. Its first entry is at offset 0, since
    /// normal bodies and columns begin there.
    fn part(&self, layout: &Arc<CompiledLayout>, i: usize) -> Result<Part> {
        let node = &layout.nest().nodes()[i];
        let part = layout.nest().part(i)?;
        let nest = normalize::normalize(&part, 0)?.nest;
        self.check(|| nest.verify())?;
        if !matches!(node, Node::Blocks { .. }) {
            let own = self.0.cache.by_nest(None, nest, Operation::Bytes, 0).layout;
            return Ok(if Arc::ptr_eq(&own, layout) { Part::Own } else { Part::Iterations(own) });
        }
        // What unpacking may reorder, packing may.
        let Ok(plan) = schedule::schedule(&nest, Direction::Unpack, self.target()) else {
            return Ok(Part::Walked);
        };
        let calls = plan.ops().iter().filter_map(|op| match op {
            Op::Call { at, call } => Some((*at, call)),
            _ => None,
        });
        let Some((_, call)) = calls.clone().next() else { return Ok(Part::Walked) };
        // Kept once where a kernel of the layout has it too.
        let shared = |column: &Column| {
            let own = layout.kernels().find_map(|kernel| kernel.shared(column));
            own.unwrap_or_else(|| column.clone())
        };
        let pieces = |(at, call): (Offsets, &Call)| {
            let len = match call.argument(Role::Length)? {
                Argument::Number(len) => len.k,
                _ => return None,
            };
            let user = call.column(plan.tables(), Role::UserOffsets)?;
            Some(EqualPieces { at, user: shared(user), len })
        };
        if let Some(pieces) = calls.map(pieces).collect::<Option<Vec<_>>>() {
            // All of the blocks, not a period of them.
            let end = pieces.iter().try_fold(0, |end, next| (next.at.packed == end).then(|| next.end()));
            let all = end == Some(node.packed_bytes(1));
            return Ok(if all { Part::Pieces(pieces) } else { Part::Walked });
        }
        let column = |role| call.column(plan.tables(), role);
        let Node::Blocks { user, .. } = node else { return Ok(Part::Walked) };
        Ok(match [Role::UserOffsets, Role::PackedOffsets, Role::Lengths].map(column) {
            // In buckets: otherwise the rows are those of the nest.
            [Some(offsets), Some(packed), Some(len)] if offsets.len() == user.len() && offsets != user => {
                Part::Buckets([offsets, packed, len].map(shared))
            }
            _ => Part::Walked,
        })
    }

    /// Makes all that ranges of `layout` go by in `direction`, of nests of few nodes: later ranges make nothing.
    pub(crate) fn make_parts(&self, layout: &Arc<CompiledLayout>, direction: Direction) {
        let nodes = layout.nest().nodes();
        if nodes.len() > MAX_NODES_AHEAD {
            return;
        }
        let parts = Compiled { engine: self, layout, slots: layout.slots(), makes: true };
        for i in 0..nodes.len() {
            let served = match parts.part(i, u64::MAX) {
                Some(Part::Own) => self.serve(layout, direction),
                Some(Part::Iterations(of)) => self.serve(of, direction),
                _ => continue,
            };
            if let (Some(kernel), Some(slot)) = (served.kernel(), parts.slots.get(i)) {
                slot.keep_kernel(direction, kernel);
            }
        }
    }
}
