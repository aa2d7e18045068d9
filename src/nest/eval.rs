//! Reference evaluation of a nest: one copy at a time, in type-map order, on an explicit stack.
//!
//! The tests compare other stages with this evaluation. The evaluation takes every node as it is,
//! except that it skips nodes that move nothing. It shares no code with the interpreter of nests or
//! the emitters.

use super::{Body, Byte, Leaf, LoopNest, Node, Offsets, Phase, Side};
use crate::kind::Direction;

/// One leaf copy: offsets on both sides, number of units, and unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit<L = Byte> {
    /// Offsets in bytes.
    pub at: Offsets,
    /// Number of units.
    pub n: u64,
    /// Unit that `n` counts.
    pub unit: L,
}

enum Pending<'a, L> {
    /// The nodes `[next, end)` of the nest have not been visited yet. They belong to an iteration
    /// at offset `at`.
    Nodes {
        next: usize,
        end: usize,
        at: Offsets,
    },
    Loop {
        node: &'a Node<L>,
        i: u64,
        at: Offsets,
    },
}

impl<L> Pending<'_, L> {
    fn nodes(body: Body, at: Offsets) -> Self {
        let range = body.range();
        Pending::Nodes { next: range.start, end: range.end, at }
    }
}

impl<P: Phase, L: Leaf, S: Side> LoopNest<P, L, S> {
    /// Returns for every node whether it moves anything, in one of its leaves. The evaluation skips
    /// all nodes that move nothing, because a loop over an empty body may have 2^60 iterations.
    fn moving(&self) -> Vec<bool> {
        let mut moving: Vec<bool> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let inside = |body: Body| moving[body.range()].contains(&true);
            moving.push(match node {
                Node::Loop { trip, body, .. } => trip.k > 0 && inside(*body),
                Node::Table { displacements, body, .. } => !displacements.is_empty() && inside(*body),
                Node::Blocks { len, .. } => !len.is_empty(),
                Node::Copy { n, .. } => n.k > 0,
            });
        }
        moving
    }

    /// Calls `f` for every leaf copy of `count` instances, in type-map order.
    pub fn visit(&self, count: u64, f: impl FnMut(Visit<L>)) {
        self.visit_body(self.root(), count, f);
    }

    /// Calls `f` for every leaf copy of one execution of `body`, in type-map order. The offsets are
    /// counted from the place at which the body is executed. `count` is the number of instances,
    /// which matters only if the body contains the loop over them.
    pub fn visit_body(&self, body: Body, count: u64, mut f: impl FnMut(Visit<L>)) {
        // The stack holds the parts of the nest that have not been visited yet, the innermost part
        // last. Such a part is the rest of a body, or the remaining iterations of a loop or table.
        let moving = self.moving();
        let mut stack = vec![Pending::nodes(body, Offsets::ZERO)];
        while let Some(top) = stack.last_mut() {
            match top {
                Pending::Nodes { next, end, at } => {
                    if next == end {
                        stack.pop();
                        continue;
                    }
                    let index = *next;
                    *next += 1;
                    if !moving[index] {
                        continue;
                    }
                    let node = &self.nodes()[index];
                    let at = *at + node.offsets();
                    match node {
                        Node::Copy { n, unit, .. } => f(Visit { at, n: n.for_count(count), unit: *unit }),
                        Node::Blocks { user, packed, len, unit, .. } => {
                            for i in 0..len.len() {
                                let at = at + Offsets::new(user.get(i), packed.get(i));
                                f(Visit { at, n: len.get(i) as u64, unit: *unit });
                            }
                        }
                        Node::Loop { .. } | Node::Table { .. } => {
                            stack.push(Pending::Loop { node, i: 0, at })
                        }
                    }
                }
                Pending::Loop { node, i, at } => {
                    // Find the number of iterations, `trip`, and the offset `step` at which
                    // iteration `i` begins. After the last iteration of a table, row `i` does not
                    // exist and must not be read. The lines below then pop the table from the
                    // stack.
                    let (trip, step) = match node {
                        Node::Loop { trip, step, .. } => (trip.for_count(count), at.step(*step, *i as i64)),
                        Node::Table { displacements, packed, .. } => {
                            let user = if (*i as usize) < displacements.len() {
                                displacements.get(*i as usize)
                            } else {
                                0
                            };
                            (
                                displacements.len() as u64,
                                at.step(Offsets::new(0, *packed), *i as i64) + Offsets::new(user, 0),
                            )
                        }
                        Node::Blocks { .. } | Node::Copy { .. } => (0, *at),
                    };
                    if *i == trip {
                        stack.pop();
                        continue;
                    }
                    *i += 1;
                    let body = node.body().unwrap_or_default();
                    stack.push(Pending::nodes(body, step));
                }
            }
        }
    }
}

impl<P: Phase, S: Side> LoopNest<P, Byte, S> {
    /// Moves the bytes of `count` instances, one leaf copy at a time; `origin` is the index in
    /// `user` of user offset 0.
    ///
    /// # Panics
    /// If an offset lies outside a slice. The caller must choose the sizes of both slices by the
    /// true bounds of the datatype.
    pub fn eval(&self, direction: Direction, count: u64, user: &mut [u8], origin: usize, packed: &mut [u8]) {
        self.visit(count, |v| {
            // An empty copy may lie outside the slices, so do not index the slices for an empty
            // copy.
            if v.n == 0 {
                return;
            }
            let (u, p, n) = ((origin as i64 + v.at.user) as usize, v.at.packed as usize, v.n as usize);
            let (user, packed) = (&mut user[u..][..n], &mut packed[p..][..n]);
            match direction {
                Direction::Pack => packed.copy_from_slice(user),
                Direction::Unpack => user.copy_from_slice(packed),
            }
        });
    }
}
