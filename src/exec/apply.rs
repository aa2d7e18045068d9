//! Executor of nests of values: does to the values of a normal nest what a leaf operation says, for
//! any range of the packed stream.
//!
//! For conversions and reductions this module is what the interpreter of nests (`nest_interpreter`)
//! is for bytes: the fallback where there is no compiled code, for example because the schedule
//! refuses the nest. It keeps its position in the nest on an explicit stack, and passes runs of
//! values, and whole loops around a single run, to the operation. The traversal knows nothing of
//! the operations: each one is an arm in the function `run`, and conversions and reductions have a
//! file each.

mod external32;
mod reduce;

use std::ops::Range;

use crate::interval::{Cover, Interval};
use crate::kind::{Op, Operation};
use crate::micro::Buffers;
use crate::micro::buffers::{Element, Handed};
use crate::nest::{Body, Leaf, LoopNest, Node, Normal, Offsets, Value};

/// Report of a value that was not moved, because the other side cannot hold it or because the
/// operation is not defined for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// Position of the value in bytes, on both sides. The user offset counts from the same address
    /// as the user offsets of the nest, the packed offset from the start of the packed stream. The
    /// position is [`Offsets::ZERO`] if the operation is not defined for the value at all.
    pub at: Offsets,
    /// Rule that the value does not meet.
    pub rule: &'static str,
}

/// `n` blocks at a constant distance `step`. Each block has `units` contiguous values.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: Offsets,
    n: u64,
    step: Offsets,
    units: u64,
    value: Value,
}

/// Kind of memory on the packed side of a run. It determines the distance of consecutive values
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    /// The packed stream, in which values follow each other without gaps.
    Stream,
    /// A second buffer that is laid out as the user's buffer.
    Memory,
}

impl Run {
    /// Returns the number of bytes from one value to the next one on the packed side.
    fn packed(&self, side: Packed) -> i64 {
        if side == Packed::Memory { self.value.user() } else { self.value.packed() }
    }

    /// Returns the run with the packed offset and step that it has on the packed side `side`. In a
    /// second buffer, which has the layout of the user's buffer, they equal the user offset and
    /// step.
    fn on(self, side: Packed) -> Run {
        let moved = |o: Offsets| Offsets::new(o.user, if side == Packed::Memory { o.user } else { o.packed });
        Run { at: moved(self.at), step: moved(self.step), ..self }
    }
}

/// Applies `operation` to all values of a run, in order.
fn run(operation: Operation, memory: &Buffers, run: &Run) -> Result<(), Unfit> {
    match operation {
        // Nests of values are made for conversions and reductions. If such a nest is used to move
        // bytes, its bytes are moved unchanged, which is right if a value has the same bytes on
        // both sides.
        Operation::Bytes => {
            let len = run.units * run.value.user() as u64;
            memory.strided(run.at.user, run.at.packed, run.n, (run.step.user, run.step.packed), len);
            Ok(())
        }
        Operation::External32 => external32::run(memory, run),
        Operation::Reduce(op) => reduce::run(op, memory, run, Packed::Stream),
    }
}

/// Entry of the stack of [`runs`], which is work still to be done: the remaining nodes of a body,
/// or iterations `[next, end)` of a loop or table.
enum Pending<'a> {
    Nodes { nodes: &'a [Node<Value>], at: Offsets },
    Iterate { node: &'a Node<Value>, next: u64, end: u64, at: Offsets },
}

/// Applies `operation` to the values in the packed bytes `range` of `count` instances of `nest`, in
/// order. If the range contains only a part of a value, that value is left out.
///
/// # Errors
/// The first value that the other side cannot hold, or for which the operation is not defined, such
/// as a reduction while packing. The values before it are done, and nothing after it is.
pub fn apply(
    nest: &LoopNest<Normal, Value>,
    operation: Operation,
    memory: &Buffers,
    count: u64,
    range: Range<u64>,
) -> Result<(), Unfit> {
    runs(nest, count, range, &mut |one| run(operation, memory, &one))
}

/// Combines the values of `count` instances in two buffers of the same layout, in order. One buffer
/// is the packed side of `memory`. The other buffer is its user side, and receives the results.
/// This is what `MPI_Reduce_local` does (MPI 5.0, 6.9.7).
///
/// # Errors
/// As [`apply`]. There are no errors if `memory` unpacks and the nest has the classes of values
/// that reductions have, `Native` and `Pair`.
pub fn combine(nest: &LoopNest<Normal, Value>, op: Op, memory: &Buffers, count: u64) -> Result<(), Unfit> {
    let (side, all) = (Packed::Memory, 0..count.saturating_mul(nest.size() as u64));
    runs(nest, count, all, &mut |one| reduce::run(op, memory, &one.on(side), side))
}

/// Calls `f(packed values, user values, number)` for the values of `count` instances, in order.
/// Each call is for a row of values, which are contiguous on both sides and aligned for `element`.
/// If they are not contiguous or aligned in memory, `f` gets copies, and what it changes on the
/// user side is written back.
///
/// # Errors
/// None: the result is always `Ok`. It is a `Result` only because the traversal calls functions
/// that return one.
pub fn hand_on(
    nest: &LoopNest<Normal, Value>,
    element: Element,
    memory: &Buffers,
    count: u64,
    f: &mut dyn FnMut(*const u8, *mut u8, u64),
) -> Result<(), Unfit> {
    runs(nest, count, 0..count.saturating_mul(nest.size() as u64), &mut |one| {
        let Run { at, n, step, units, value } = one;
        memory.hand_on(&Handed { value, at, n, step, units }, element, f);
        Ok(())
    })
}

/// Calls `run` for the values that lie completely in a range of the packed stream, as runs and in
/// order. Stops at the first error.
fn runs(
    nest: &LoopNest<Normal, Value>,
    count: u64,
    range: Range<u64>,
    run: &mut dyn FnMut(Run) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    // Positions in the stream are compared as `i64`. A range that begins or ends after `i64::MAX`
    // is cut there. That loses nothing, because no stream is longer.
    let end = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
    let interval = Interval { from: end(range.start), to: end(range.end) };
    let root = |body: Body| Pending::Nodes { nodes: nest.body(body), at: Offsets::ZERO };
    let mut stack = vec![root(nest.root())];
    let mut run = |at, n, step, units, value| match units {
        0 => Ok(()),
        _ => run(Run { at, n, step, units, value }),
    };
    while let Some(top) = stack.last_mut() {
        // The top of the stack is the current position. Each round takes the next node of a body,
        // or begins the next iteration of a loop or table by pushing its body.
        let (node, at) = match top {
            Pending::Nodes { nodes, at } => {
                let Some((node, rest)) = nodes.split_first() else {
                    stack.pop();
                    continue;
                };
                *nodes = rest;
                (node, *at + node.offsets())
            }
            Pending::Iterate { node, next, end, at } => {
                if next == end {
                    stack.pop();
                    continue;
                }
                let at = node.iteration(*at, *next);
                *next += 1;
                let body = node.body().unwrap_or_default();
                stack.push(Pending::Nodes { nodes: nest.body(body), at });
                continue;
            }
        };
        // `at` is the position of `node`. If the range does not touch the node, skip it. Otherwise
        // pass a leaf to the operation at once, and put a loop or table on the stack.
        let cover = interval.cover(at.packed, node.packed_bytes(count));
        if cover == Cover::None {
            continue;
        }
        match node {
            Node::Copy { n, unit, .. } => {
                let (at, units) = whole(interval, at, n.for_count(count), *unit);
                run(at, 1, Offsets::ZERO, units, *unit)?;
            }
            Node::Blocks { user, packed, len, unit, .. } => {
                // Begin with the last row that starts at or before the beginning of the range.
                // `whole` leaves out the values that lie before it.
                let first =
                    packed.partition_point(|start| start <= interval.from - at.packed).saturating_sub(1);
                for i in first..len.len() {
                    let at = at + Offsets::new(user.get(i), packed.get(i));
                    if at.packed >= interval.to {
                        break;
                    }
                    let (at, units) = whole(interval, at, len.get(i) as u64, *unit);
                    run(at, 1, Offsets::ZERO, units, *unit)?;
                }
            }
            Node::Loop { trip, step, body, .. } => {
                let touched = interval.pieces(at.packed, step.packed, trip.for_count(count));
                // A loop around a single copy, all of it inside the range, is one run. Any other
                // loop is iterated, from the first to the last iteration that the range touches.
                if let ([Node::Copy { at: inner, n, unit }], Cover::All) = (nest.body(*body), cover) {
                    run(at + *inner, trip.for_count(count), *step, n.for_count(count), *unit)?;
                } else {
                    stack.push(Pending::Iterate { node, next: touched.start, end: touched.end, at });
                }
            }
            Node::Table { displacements, packed, .. } => {
                let touched = interval.pieces(at.packed, *packed, displacements.len() as u64);
                stack.push(Pending::Iterate { node, next: touched.start, end: touched.end, at });
            }
        }
    }
    Ok(())
}

/// Selects, from `n` consecutive values at `at`, the values that lie completely inside `interval`.
/// Returns the position of the first of them and their number.
fn whole(interval: Interval, at: Offsets, n: u64, value: Value) -> (Offsets, u64) {
    let unit = value.packed();
    let before = (interval.from - at.packed).max(0);
    let first = (before / unit + i64::from(before % unit != 0)).min(n as i64);
    let last = ((interval.to - at.packed).max(0) / unit).min(n as i64);
    (at + value.span(first), (last - first).max(0) as u64)
}
