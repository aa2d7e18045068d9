//! Applying: does what a leaf operation does to the values of a normal nest, directly, from any element to any other.
//!
//! What the walker is for bytes: the fallback, and what the schedule refuses. It keeps its place on an explicit stack and hands runs of
//! values, and loops over one run, to the operation. Nothing here knows what an operation is; each has a file and a line in `run`.

mod external32;
mod reduce;

use std::ops::Range;

use crate::interval::{Cover, Interval};
use crate::kind::{Op, Operation};
use crate::micro::Buffers;
use crate::micro::buffers::{Element, Handed};
use crate::nest::{Body, Leaf, LoopNest, Node, Normal, Offsets, Value};

/// A value that the other side cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// Where it is: in bytes from the buffer address that the nest's offsets are relative to, and in the packed stream.
    pub at: Offsets,
    /// Rule that the value does not meet.
    pub rule: &'static str,
}

/// `n` blocks at a constant step, of `units` values each.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: Offsets,
    n: u64,
    step: Offsets,
    units: u64,
    value: Value,
}

/// Form of the packed side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    /// The stream.
    Stream,
    /// A second buffer of the same layout.
    Memory,
}

impl Run {
    /// Bytes from a value to the next one on the packed side.
    fn packed(&self, side: Packed) -> i64 {
        if side == Packed::Memory { self.value.user() } else { self.value.packed() }
    }

    /// Returns the run with a packed side as `side` says.
    fn on(self, side: Packed) -> Run {
        let moved = |o: Offsets| Offsets::new(o.user, if side == Packed::Memory { o.user } else { o.packed });
        Run { at: moved(self.at), step: moved(self.step), ..self }
    }
}

/// Does what `operation` does to a run, in order.
fn run(operation: Operation, memory: &Buffers, run: &Run) -> Result<(), Unfit> {
    match operation {
        // Nests of values are made for other operations; moved as they are where both sides have the same bytes.
        Operation::Bytes => {
            let len = run.units * run.value.user() as u64;
            memory.strided(run.at.user, run.at.packed, run.n, (run.step.user, run.step.packed), len);
            Ok(())
        }
        Operation::External32 => external32::run(memory, run),
        Operation::Reduce(op) => reduce::run(op, memory, run, Packed::Stream),
    }
}

enum Pending<'a> {
    Nodes { nodes: &'a [Node<Value>], at: Offsets },
    Iterate { node: &'a Node<Value>, next: u64, end: u64, at: Offsets },
}

/// Does what `operation` does to the whole values in the packed bytes `range` of `count` instances of `nest`, in order; a value that the
/// range cuts is left out.
///
/// # Errors
/// The first value that the other side cannot hold: those before it are done, and nothing behind it is.
pub fn apply(
    nest: &LoopNest<Normal, Value>,
    operation: Operation,
    memory: &Buffers,
    count: u64,
    range: Range<u64>,
) -> Result<(), Unfit> {
    runs(nest, count, range, &mut |one| run(operation, memory, &one))
}

/// Combines the values of `count` instances in the buffer on the packed side, which is laid out as the user's, with the user's own, in order: what
/// `MPI_Reduce_local` does (MPI 5.0, 6.9.7).
///
/// # Errors
/// As [`apply`]; none with the values that reductions have.
pub fn combine(nest: &LoopNest<Normal, Value>, op: Op, memory: &Buffers, count: u64) -> Result<(), Unfit> {
    let (side, all) = (Packed::Memory, 0..count.saturating_mul(nest.size() as u64));
    runs(nest, count, all, &mut |one| reduce::run(op, memory, &one.on(side), side))
}

/// Hands the values of `count` instances to `f`, by runs that lie one after the other on both sides and are aligned for
/// `element`, in order.
///
/// # Errors
/// None.
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

/// Calls `run` with the whole values in a range of the packed stream, by runs, in order.
fn runs(
    nest: &LoopNest<Normal, Value>,
    count: u64,
    range: Range<u64>,
    run: &mut dyn FnMut(Run) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let end = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
    let interval = Interval { from: end(range.start), to: end(range.end) };
    let root = |body: Body| Pending::Nodes { nodes: nest.body(body), at: Offsets::ZERO };
    let mut stack = vec![root(nest.root())];
    let mut run = |at, n, step, units, value| match units {
        0 => Ok(()),
        _ => run(Run { at, n, step, units, value }),
    };
    while let Some(top) = stack.last_mut() {
        let (node, at) = match top {
            Pending::Nodes { nodes, at } => {
                let Some((node, rest)) = nodes.split_first() else {
                    stack.pop();
                    continue;
                };
                *nodes = rest;
                (node, *at + node.at())
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
        let cover = interval.cover(at.packed, node.packed_bytes(count));
        if cover == Cover::None {
            continue;
        }
        match node {
            Node::Copy { n, unit, .. } => {
                let (at, units) = whole(interval, at, n.at(count), *unit);
                run(at, 1, Offsets::ZERO, units, *unit)?;
            }
            Node::Blocks { user, packed, len, unit, .. } => {
                // The rows from the first that ends inside.
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
                let touched = interval.pieces(at.packed, step.packed, trip.at(count));
                if let ([Node::Copy { at: inner, n, unit }], Cover::All) = (nest.body(*body), cover) {
                    run(at + *inner, trip.at(count), *step, n.at(count), *unit)?;
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

/// Of `n` values from `at` on those that lie whole inside `interval`: where they begin, and how many.
fn whole(interval: Interval, at: Offsets, n: u64, value: Value) -> (Offsets, u64) {
    let unit = value.packed();
    let before = (interval.from - at.packed).max(0);
    let first = (before / unit + i64::from(before % unit != 0)).min(n as i64);
    let last = ((interval.to - at.packed).max(0) / unit).min(n as i64);
    (at + value.span(first), (last - first).max(0) as u64)
}
