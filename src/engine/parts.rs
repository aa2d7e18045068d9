//! Kernels for ranges of the packed stream. If a range contains whole iterations of a loop, a
//! separate layout is made whose instances are these iterations, and a kernel of that layout moves
//! them.
//!
//! For a loop with step `s` and body `B`, the nest of the separate layout is
//! `loop count step s {B}`. It is normalized, cached and compiled like the layout of a datatype,
//! but on demand and not at commit. If the plan of a layout cuts the rows of a list of blocks into
//! equal pieces, or sorts the rows within buckets, ranges of that layout use the tables of the
//! plan.

use std::ops::Range;
use std::sync::Arc;

use super::Engine;
use crate::code::kernel::Kernel;
use crate::column::Column;
use crate::error::Result;
use crate::exec::nest_interpreter::{Parts, Rows};
use crate::kind::{Direction, Operation};
use crate::layout::{CompiledLayout, Part, PartSlot, Tier};
use crate::micro::{Argument, Buffers, Call, Role};
use crate::nest::{Descent, EqualPieces, Node, NodeKind, Offsets};
use crate::plan::PlanOp;
use crate::target::cost;
use crate::{calls, normalize, schedule};

/// The parts of one layout, one for each node of its nest. The part of a node moves the whole
/// iterations or rows of that node that lie inside a range. It is made when ranges have moved
/// enough bytes in the node, or in advance by [`Engine::make_parts`].
pub(super) struct Compiled<'e> {
    pub(super) engine: &'e Engine,
    pub(super) layout: &'e Arc<CompiledLayout>,
    /// One slot for each node of the nest of `layout`; empty if that layout has no slots.
    pub(super) slots: &'e [PartSlot],
    /// Whether parts and kernels that do not exist yet may be made now.
    pub(super) makes: bool,
}

/// Maximum number of nodes of a nest for which [`Engine::make_parts`] makes the parts in advance.
const MAX_NODES_AHEAD: usize = 64;

impl<'e> Compiled<'e> {
    /// Returns the part for node `i`, or none if the part does not exist yet.
    ///
    /// If `makes` is set and `bytes` is a number, this method counts these bytes for the node. If
    /// the sum has reached the lazy threshold, it makes the part, unless another thread is making
    /// it. If `makes` is set and `bytes` is `None`, it makes the part now, or waits for the thread
    /// that is making it.
    fn part(&self, i: usize, bytes: Option<u64>) -> Option<&'e Part> {
        let Compiled { engine, layout, slots, makes } = self;
        let slot = slots.get(i)?;
        if !makes {
            return slot.made();
        }
        let mut made = false;
        let make = || {
            made = true;
            engine.part(layout, i).unwrap_or(Part::Interpreted)
        };
        let part = slot.get(bytes, engine.config().lazy_threshold, make);
        if made {
            engine.0.cache.update_charge(layout);
        }
        part
    }
}

impl<'e> Compiled<'e> {
    /// Returns the kernel whose instances are the iterations of node `i`, or none if no such kernel
    /// exists yet. If `makes` is set and the part exists, this call compiles the kernel, unless
    /// another thread is compiling it. No bytes are counted for the kernel: they were counted before
    /// the part was made, unless [`Engine::make_parts`] made it in advance.
    #[cold]
    fn kernel(
        &self,
        slot: &'e PartSlot,
        i: usize,
        direction: Direction,
        bytes: u64,
    ) -> Option<&'e Arc<Kernel>> {
        let Compiled { engine, layout, makes, .. } = self;
        let of: &'e Arc<CompiledLayout> = match self.part(i, Some(bytes)) {
            Some(Part::Own) => layout,
            Some(Part::Iterations(of)) => of,
            _ => return None,
        };
        let compiled = || makes.then(|| engine.try_serve(of, direction)).flatten();
        let kernel = of.served(direction).or_else(compiled).and_then(Tier::kernel)?;
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
        let Descent { kind, step, .. } = slot.descent();
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
        match kind {
            NodeKind::Loop | NodeKind::Strips | NodeKind::Structures => {
                kernel.run(memory, at.step(*step, range.start as i64), range.end - range.start);
            }
            NodeKind::Table => {
                let node = &self.layout.nest().nodes()[i];
                range.for_each(|row| kernel.run(memory, node.iteration(at, row), 1));
            }
            NodeKind::Leaf => return false,
        }
        count(true);
        true
    }

    fn rows(&self, i: usize, bytes: u64) -> Rows<'_> {
        let rows = match self.part(i, Some(bytes)) {
            Some(Part::Pieces(pieces)) => Rows::Pieces(pieces),
            Some(Part::Buckets(columns)) => Rows::Buckets(columns.each_ref(), cost::BUCKET),
            _ => Rows::Listed,
        };
        count(!matches!(rows, Rows::Listed));
        rows
    }
}

/// Counts a part of a range if calls are being counted. `ran` must be true if a kernel or the
/// tables of a plan served the part; otherwise nothing is counted.
fn count(ran: bool) {
    if ran && calls::counting() {
        calls::count_part();
    }
}

impl Engine {
    /// Makes the part for node `i` of `layout`: a layout whose instances are iterations of the
    /// node, the tables of a plan, or [`Part::Interpreted`] if neither helps. The origin of the
    /// part is 0, since normal bodies and columns begin at offset 0.
    ///
    /// # Errors
    /// Returns class `NoMem` if there is no memory for the nest of the part, and otherwise only
    /// errors that are faults of ddtc.
    fn part(&self, layout: &Arc<CompiledLayout>, i: usize) -> Result<Part> {
        // Turn the part into a separate normal nest. For a loop or a table, find the layout of that
        // nest in the cache, or insert a new one. The layout found may be `layout` itself, if the
        // node is the root loop of `layout`.
        let node = &layout.nest().nodes()[i];
        let part = layout.nest().part(i)?;
        let nest = normalize::normalize(&part, 0)?.nest;
        self.check(|| nest.verify())?;
        if !matches!(node, Node::Blocks { .. }) {
            let own = self.0.cache.by_nest(None, nest, Operation::Bytes, 0).layout;
            return Ok(if Arc::ptr_eq(&own, layout) { Part::Own } else { Part::Iterations(own) });
        }
        // The node has rows of blocks, so look at the calls of micro-kernels that a plan has for
        // these rows. The plan for unpacking serves both directions: where unpacking may reorder
        // blocks, packing may reorder them too.
        let Ok(plan) = schedule::schedule(&nest, Direction::Unpack, self.target()) else {
            return Ok(Part::Interpreted);
        };
        let calls = plan.ops().iter().filter_map(|op| match op {
            PlanOp::Call { at, call } => Some((*at, call)),
            _ => None,
        });
        let Some((_, call)) = calls.clone().next() else { return Ok(Part::Interpreted) };
        // If a kernel of the layout owns an equal table, share that table instead of keeping a
        // second.
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
            // If every call moves pieces of one constant length, use these pieces, provided that
            // together they cover all packed bytes of the blocks, from the first to the last,
            // without a hole.
            let end = pieces.iter().try_fold(0, |end, next| (next.at.packed == end).then(|| next.end()));
            let all = end == Some(node.packed_bytes(1));
            return Ok(if all { Part::Pieces(pieces) } else { Part::Interpreted });
        }
        let column = |role| call.column(plan.tables(), role);
        let Node::Blocks { user, .. } = node else { return Ok(Part::Interpreted) };
        Ok(match [Role::UserOffsets, Role::PackedOffsets, Role::Lengths].map(column) {
            // The table of the call has as many rows as the nest, but in another order: the plan
            // has sorted the rows within buckets. If the order is the same, the rows of the nest
            // itself serve as well.
            [Some(offsets), Some(packed), Some(len)] if offsets.len() == user.len() && offsets != user => {
                Part::Buckets([offsets, packed, len].map(shared))
            }
            _ => Part::Interpreted,
        })
    }

    /// Makes all parts and kernels that ranges of `layout` use in `direction`, so that later ranges
    /// need not make any. Does nothing for nests of more than `MAX_NODES_AHEAD` nodes.
    pub(crate) fn make_parts(&self, layout: &Arc<CompiledLayout>, direction: Direction) {
        let nodes = layout.nest().nodes();
        if nodes.len() > MAX_NODES_AHEAD {
            return;
        }
        let parts = Compiled { engine: self, layout, slots: layout.slots(), makes: true };
        for i in 0..nodes.len() {
            let served = match parts.part(i, None) {
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
